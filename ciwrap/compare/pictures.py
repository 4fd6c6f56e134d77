"""What the values of both sides look like where they differ: a plane, or a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.compare.maps import MOST_COLUMNS, MOST_LINE, MOST_ROWS
from ciwrap.compare.shares import as_numbers, share_classes, share_of_bound
from ciwrap.details import BOUND_CLASS, NOT_FINITE, Picture, cells_text
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.details import IndexBox

# A plane is read for the picture only if it is not larger than this.
_MOST_PLANE_ELEMENTS = 1 << 22
_MOST_ROW_READS = 4096
# A line is drawn anew next to its worst element, so many elements at each side.
_ZOOM = 40
# A scale that leaves out a hundredth of the values at each end, if they are this much further away.
_FAR = 10.0
# Of so few values none is left out.
_FEW = 500


class _Plane(Struct, frozen=True, dict=True):
    """Both sides of a plane, two-dimensional, and how far apart they are."""

    golden: NDArray[Any]
    new: NDArray[Any]
    shares: NDArray[np.float64]
    classes: NDArray[np.uint8]
    index: tuple[int, ...]
    row: int | None
    column: int

    def columns(self, start: int, stop: int) -> _Plane:
        part = slice(start, stop)
        return _Plane(
            self.golden[:, part],
            self.new[:, part],
            self.shares[:, part],
            self.classes[:, part],
            self.index,
            self.row,
            self.column,
        )


def make_pictures(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    worst: int,
    box: IndexBox | None,
    read: Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]],
) -> dict[str, Picture]:
    """The plane (line, for 1-d) through the worst element, by the names that `Details` has for
    them; nothing for what has no picture.
    """
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    if not wide or np.dtype(parameters.dtype.replace("bf2", "f2")).kind in "SU":
        return {}
    index = [int(one) for one in np.unravel_index(worst, shape)]
    row, column = _plane(shape, wide, box)
    planes = _read_plane(shape, index, row, column, read)
    if planes is None:
        return {}
    golden, new = planes
    shares, differences = share_of_bound(golden.reshape(-1), new.reshape(-1), parameters)
    at = index[column]
    for axis in (row, column):
        if axis is not None:
            index[axis] = 0
    sides = [as_numbers(side, parameters.dtype) for side in (golden, new)]
    assert sides[0] is not None, "strings have no picture"
    assert sides[1] is not None, "strings have no picture"
    plane = _Plane(
        sides[0],
        sides[1],
        shares.reshape(golden.shape),
        share_classes(shares, differences).reshape(golden.shape),
        tuple(index),
        row,
        column,
    )
    found = {"picture": _picture(plane, "real"), "imaginary": None, "zoom": None}
    if plane.golden.dtype.kind == "c":
        found["imaginary"] = _picture(plane, "imaginary")
    length = golden.shape[1]
    if row is None and length > MOST_LINE:
        start, stop = max(0, at - _ZOOM), min(length, at + _ZOOM + 1)
        found["zoom"] = _picture(plane.columns(start, stop), "real", start)
    return {name: one for name, one in found.items() if one is not None}


def _picture(plane: _Plane, part: str, start: int = 0) -> Picture | None:
    """The plane, or this part of complex numbers; None if it has no finite value."""
    is_complex = plane.golden.dtype.kind == "c"
    sides = [_drawable(side, part) for side in (plane.golden, plane.new)]
    finite = np.concatenate([side[np.isfinite(side)] for side in sides])
    if finite.size == 0:
        return None
    low, high = _scale(finite)
    picked, tops, lefts = _pick_worst(plane.shares, plane.row is None)
    per_cell = int(np.diff(tops).max() * np.diff(lefts).max())
    golden, new = (side[picked] for side in sides)
    with np.errstate(all="ignore"):
        moved = new - golden
    sizes = np.abs(moved[np.isfinite(moved)])
    limit = float(np.quantile(sizes[sizes > 0], 0.98)) if np.any(sizes > 0) else 0.0
    bands: tuple[str, ...] = ()
    if plane.row is None and per_cell > 1:
        bands = tuple(
            cells_text(_levels(_reduced(side, edge, lefts), low, high))
            for side in sides
            for edge in (np.fmin, np.fmax)
        )
    return Picture(
        column_axis=plane.column,
        rows=golden.shape[0],
        columns=golden.shape[1],
        index=plane.index,
        low=low,
        high=high,
        golden=cells_text(_levels(golden, low, high)),
        new=cells_text(_levels(new, low, high)),
        classes=cells_text(plane.classes[picked].tobytes()),
        row_axis=plane.row,
        start=start,
        stop=start + plane.golden.shape[1] if start else None,
        cell_elements=per_cell,
        least=float(finite.min()),
        greatest=float(finite.max()),
        part=part if is_complex else None,
        differing=cells_text(_differing(plane.classes, tops, lefts)) if per_cell > 1 else "",
        signed=cells_text(_signed(moved, limit)) if limit and np.isfinite(limit) else "",
        signed_limit=limit if limit and np.isfinite(limit) else None,
        bands=bands,
    )


def _scale(finite: NDArray[np.float64]) -> tuple[float, float]:
    """The least and greatest value; without a hundredth at each end if these are far away."""
    least, greatest = float(finite.min()), float(finite.max())
    if finite.size < _FEW:
        return least, greatest
    # Of a sample, and halved: the span of two huge numbers overflows.
    low, high = (float(one) for one in np.quantile(finite / 2, (0.01, 0.99)) * 2)
    if high > low and greatest / 2 - least / 2 > _FAR * (high / 2 - low / 2):
        return low, high
    common, counts = np.unique(finite, return_counts=True)
    # One value that stands in many elements and far away from all others: a fill value.
    far = common[np.argmax(counts)]
    others = finite[finite != far]
    if others.size:
        low, high = float(others.min()), float(others.max())
        if greatest / 2 - least / 2 > _FAR * (high / 2 - low / 2) and high > low:
            return low, high
    return least, greatest


def _reduced(
    side: NDArray[np.float64], edge: np.ufunc, lefts: NDArray[np.int64]
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = edge.reduceat(side, lefts[:-1], axis=1)
    return found


def _differing(
    classes: NDArray[np.uint8], tops: NDArray[np.int64], lefts: NDArray[np.int64]
) -> bytes:
    """The share of elements beyond their bound in each cell, of 254; not 0 where there is one."""
    beyond = (classes >= BOUND_CLASS).astype(np.float64)
    counts = np.add.reduceat(np.add.reduceat(beyond, tops[:-1], axis=0), lefts[:-1], axis=1)
    share = counts / (np.diff(tops)[:, None] * np.diff(lefts)[None, :])
    found: bytes = np.ceil(share * 254).astype(np.uint8).tobytes()
    return found


def _signed(moved: NDArray[np.float64], limit: float) -> bytes:
    with np.errstate(all="ignore"):
        levels = np.clip(np.rint(moved / limit * 127) + 127, 0, 254)
        levels = np.where(np.isfinite(moved), levels, NOT_FINITE)
    return levels.astype(np.uint8).tobytes()


def _plane(shape: tuple[int, ...], wide: list[int], box: IndexBox | None) -> tuple[int | None, int]:
    """The two axes along which the differing elements spread most; the last ones if unknown."""
    if len(wide) == 1:
        return None, wide[0]

    def spread(axis: int) -> tuple[float, int]:
        if box is None or box.last_index[axis] == box.first_index[axis]:
            return (0.0, axis)
        return ((box.last_index[axis] - box.first_index[axis] + 1) / shape[axis], axis)

    row, column = sorted(sorted(wide, key=spread)[-2:])
    return row, column


def _read_plane(
    shape: tuple[int, ...],
    index: list[int],
    row: int | None,
    column: int,
    read: Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Golden and new of one plane, as 2-d arrays, or None where that would be too much to read."""
    strides = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
    kept = {column} if row is None else {row, column}
    base = sum(
        i * s for axis, (i, s) in enumerate(zip(index, strides, strict=True)) if axis not in kept
    )
    rows = 1 if row is None else shape[row]
    row_stride = 0 if row is None else strides[row]
    width, step = shape[column], strides[column]
    if rows * width > _MOST_PLANE_ELEMENTS:
        return None
    whole = (rows - 1) * row_stride + (width - 1) * step + 1
    if whole <= _MOST_PLANE_ELEMENTS:
        at = np.arange(rows)[:, None] * row_stride + np.arange(width) * step
        golden, new = read(base, whole)
        return golden.reshape(-1)[at], new.reshape(-1)[at]
    if (width - 1) * step + 1 > _MOST_PLANE_ELEMENTS // 16 or rows > _MOST_ROW_READS:
        return None
    lines = [read(base + line * row_stride, (width - 1) * step + 1) for line in range(rows)]
    return (
        np.stack([golden.reshape(-1)[::step] for golden, _ in lines]),
        np.stack([new.reshape(-1)[::step] for _, new in lines]),
    )


def _pick_worst(
    shares: NDArray[np.float64], is_line: bool
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64]]:
    """Positions of one element for each cell of the picture, that of the largest share; and where
    rows and columns of cells begin, the end after the last.
    """
    rows = min(shares.shape[0], MOST_ROWS)
    columns = min(shares.shape[1], MOST_LINE if is_line else MOST_COLUMNS)
    tops = np.arange(rows + 1) * shares.shape[0] // rows
    lefts = np.arange(columns + 1) * shares.shape[1] // columns
    at = np.empty((2, rows, columns), np.int64)
    for i in range(rows):
        band = shares[tops[i] : tops[i + 1]]
        best = band.argmax(axis=0)
        largest = band[best, np.arange(band.shape[1])]
        for j in range(columns):
            across = int(lefts[j]) + int(largest[lefts[j] : lefts[j + 1]].argmax())
            at[:, i, j] = tops[i] + best[across], across
    return (at[0], at[1]), tops, lefts


def _drawable(values: NDArray[Any], part: str) -> NDArray[np.float64]:
    if values.dtype.kind == "c":
        values = values.imag if part == "imaginary" else values.real
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64)


def _levels(values: NDArray[np.float64], low: float, high: float) -> bytes:
    # Halved first: the span of two huge numbers overflows.
    span = high / 2 - low / 2
    with np.errstate(all="ignore"):
        scaled = (values / 2 - low / 2) / span * 254 if span > 0 else np.zeros(values.shape)
        levels = np.where(np.isfinite(values), np.clip(np.rint(scaled), 0, 254), NOT_FINITE)
    return levels.astype(np.uint8).tobytes()
