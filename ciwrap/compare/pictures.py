"""What the values of both sides look like where they differ: a plane, or a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.compare.maps import MOST_COLUMNS, MOST_LINE, MOST_ROWS
from ciwrap.compare.parts import chunk_elements
from ciwrap.compare.planes import Cells, Scale, drawable, plane_axes, scale_of, worst_cells
from ciwrap.compare.shares import as_numbers, share_classes, share_of_bound
from ciwrap.details import BOUND_CLASS, NOT_FINITE, SUSPECT, Picture, cells_text
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
    row, column = plane_axes(shape, wide, box)
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
        start, stop = _part(at, length, box, column)
        found["zoom"] = _picture(plane.columns(start, stop), "real", (start, stop))
    return {name: one for name, one in found.items() if one is not None}


def _part(at: int, length: int, box: IndexBox | None, axis: int) -> tuple[int, int]:
    """Which part of a long line is drawn anew: what differs, with some room around it; next to the
    worst element where that is nearly nothing, or most of the line.
    """
    if box is not None:
        first, last = box.first_index[axis], box.last_index[axis]
        room = max(_ZOOM, (last - first) // 8)
        if first <= at <= last and last - first + 1 <= length // 2:
            return max(0, first - room), min(length, last + room + 1)
    return max(0, at - _ZOOM), min(length, at + _ZOOM + 1)


def make_new_picture(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    suspects: NDArray[np.int64],
    read: Callable[[int, int], NDArray[Any]],
) -> Picture | None:
    """The new values of the plane (or line) through the first suspect chunk, and which of its cells
    are in suspect chunks; None for what has no picture.
    """
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    if not wide or np.dtype(parameters.dtype.replace("bf2", "f2")).kind in "SU":
        return None
    per_chunk = chunk_elements(parameters)
    row, column = plane_axes(shape, wide, None)
    index = [int(one) for one in np.unravel_index(int(suspects[0]) * per_chunk, shape)]
    for axis in (row, column):
        if axis is not None:
            index[axis] = 0
    found = _read_plane(shape, index, row, column, lambda *piece: (read(*piece),) * 2)
    if found is None:
        return None
    values = as_numbers(found[0], parameters.dtype)
    assert values is not None, "strings were left out"
    values = drawable(values, "real")
    scale = scale_of(values)
    if scale is None:
        return None
    chunks = _flat_positions(shape, index, row, column) // per_chunk
    is_suspect = np.isin(chunks, suspects)
    cells = worst_cells(is_suspect.astype(np.float64), _most(row))
    return Picture(
        column_axis=column,
        rows=cells.shape[0],
        columns=cells.shape[1],
        index=tuple(index),
        low=scale.low,
        high=scale.high,
        golden="",
        new=_levels(scale, values[cells.at]),
        classes=_text(np.where(is_suspect[cells.at], SUSPECT, 0)),
        row_axis=row,
        cell_elements=cells.most_elements,
        least=scale.least,
        greatest=scale.greatest,
        part="real" if found[0].dtype.kind == "c" else None,
    )


def _most(row: int | None) -> tuple[int, int]:
    """Rows and columns of a picture, at most."""
    return MOST_ROWS, MOST_LINE if row is None else MOST_COLUMNS


def _levels(scale: Scale, values: NDArray[np.float64]) -> str:
    return _text(scale.levels(values, 254))


def _text(values: NDArray[Any]) -> str:
    return cells_text(values.astype(np.uint8).tobytes())


def _flat_positions(
    shape: tuple[int, ...], index: list[int], row: int | None, column: int
) -> NDArray[np.int64]:
    """Where the elements of a plane lie in the order of storage."""
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    kept = {column} if row is None else {row, column}
    base = sum(index[axis] * step for axis, step in enumerate(steps) if axis not in kept)
    along = base + np.arange(shape[column], dtype=np.int64) * steps[column]
    if row is None:
        return along[None, :]
    return along[None, :] + np.arange(shape[row], dtype=np.int64)[:, None] * steps[row]


def _picture(
    plane: _Plane, part: str, columns: tuple[int, int | None] = (0, None)
) -> Picture | None:
    """The plane, or this part of complex numbers; None if it has no finite value.

    columns: which of the array's the plane has, if not all.
    """
    is_complex = plane.golden.dtype.kind == "c"
    sides = [drawable(side, part) for side in (plane.golden, plane.new)]
    scale = scale_of(*sides)
    if scale is None:
        return None
    cells = worst_cells(plane.shares, _most(plane.row))
    is_reduced = cells.most_elements > 1
    golden, new = (side[cells.at] for side in sides)
    with np.errstate(all="ignore"):
        moved = new - golden
    sizes = np.abs(moved[np.isfinite(moved)])
    limit = float(np.quantile(sizes[sizes > 0], 0.98)) if np.any(sizes > 0) else 0.0
    bands: tuple[str, ...] = ()
    if plane.row is None and is_reduced:
        bands = tuple(
            _levels(scale, _reduced(side, edge, cells.lefts))
            for side in sides
            for edge in (np.fmin, np.fmax)
        )
    return Picture(
        column_axis=plane.column,
        rows=cells.shape[0],
        columns=cells.shape[1],
        index=plane.index,
        low=scale.low,
        high=scale.high,
        golden=_levels(scale, golden),
        new=_levels(scale, new),
        classes=_text(plane.classes[cells.at]),
        row_axis=plane.row,
        start=columns[0],
        stop=columns[1],
        cell_elements=cells.most_elements,
        least=scale.least,
        greatest=scale.greatest,
        part=part if is_complex else None,
        differing=_text(_differing(plane.classes, cells)) if is_reduced else "",
        signed=_text(_signed(moved, limit)) if limit and np.isfinite(limit) else "",
        signed_limit=limit if limit and np.isfinite(limit) else None,
        bands=bands,
    )


def _reduced(
    side: NDArray[np.float64], edge: np.ufunc, lefts: NDArray[np.int64]
) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = edge.reduceat(side, lefts[:-1], axis=1)
    return found


def _differing(classes: NDArray[np.uint8], cells: Cells) -> NDArray[np.float64]:
    """The share of elements beyond their bound in each cell, of 254; not 0 where there is one."""
    beyond = (classes >= BOUND_CLASS).astype(np.float64)
    tops, lefts = cells.tops, cells.lefts
    counts = np.add.reduceat(np.add.reduceat(beyond, tops[:-1], axis=0), lefts[:-1], axis=1)
    share = counts / (np.diff(tops)[:, None] * np.diff(lefts)[None, :])
    found: NDArray[np.float64] = np.ceil(share * 254)
    return found


def _signed(moved: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        levels = np.clip(np.rint(moved / limit * 127) + 127, 0, 254)
        found: NDArray[np.float64] = np.where(np.isfinite(moved), levels, NOT_FINITE)
    return found


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
