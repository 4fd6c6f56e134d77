"""Small maps of large arrays: where differences are, and what the values look like there."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from ciwrap.compare.shares import as_numbers, share_classes, share_of_bound
from ciwrap.details import NOT_FINITE, SUSPECT, Picture, ShareMap, cells_text
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.details import IndexBox

_MOST_ROWS = 96
_MOST_COLUMNS = 160
_MOST_LINE = 640
# A plane is read for the picture only if it is not larger than this.
_MOST_PLANE_ELEMENTS = 1 << 22
_MOST_ROW_READS = 4096
# Elements of suspect chunks that are put on a map.
_MOST_POSITIONS = 1 << 21


def share_maps(
    positions: NDArray[np.int64], shares: NDArray[np.float64], shape: tuple[int, ...]
) -> tuple[ShareMap, ...]:
    """Differing elements (flat positions) and their shares, seen along the axes."""
    return _maps(positions, share_classes(shares), shape)


def chunk_share_maps(
    suspects: NDArray[np.int64], per_chunk: int, shape: tuple[int, ...], count: int
) -> tuple[ShareMap, ...]:
    """Suspect chunks, seen along the axes."""
    total = int(suspects.size) * per_chunk
    step = -(-total // _MOST_POSITIONS) or 1
    starts = np.arange(0, total, step)
    if step > 1:
        # Even steps could fall into the same columns again and again and leave stripes.
        starts += np.random.default_rng(0).integers(0, step, starts.size)
    starts = starts[starts < total]
    positions = suspects[starts // per_chunk] * per_chunk + starts % per_chunk
    positions = positions[positions < count]
    return _maps(positions, np.full(positions.size, SUSPECT, np.uint8), shape)


def _maps(
    positions: NDArray[np.int64], classes: NDArray[np.uint8], shape: tuple[int, ...]
) -> tuple[ShareMap, ...]:
    if not shape or positions.size == 0 or 0 in shape:
        return ()
    indices = np.unravel_index(positions, shape)
    wide = [axis for axis, extent in enumerate(shape) if extent > 1] or [len(shape) - 1]
    if len(wide) == 1:
        return (_map(None, wide[0], indices, classes, shape),)
    return tuple(
        _map(row, column, indices, classes, shape) for row, column in combinations(wide[-3:], 2)
    )


def _map(
    row: int | None,
    column: int,
    indices: tuple[NDArray[np.int64], ...],
    classes: NDArray[np.uint8],
    shape: tuple[int, ...],
) -> ShareMap:
    rows = 1 if row is None else min(shape[row], _MOST_ROWS)
    columns = min(shape[column], _MOST_LINE if row is None else _MOST_COLUMNS)
    found = np.zeros((rows, columns), np.uint8)
    at_column = indices[column] * columns // shape[column]
    at_row = np.zeros_like(at_column) if row is None else indices[row] * rows // shape[row]
    np.maximum.at(found, (at_row, at_column), classes)
    return ShareMap(column, rows, columns, cells_text(found.tobytes()), row_axis=row)


def make_picture(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    worst: int,
    box: IndexBox | None,
    read: Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]],
) -> Picture | None:
    """The plane (line, for 1-d) through the worst element; None for what has no picture."""
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    if not wide or np.dtype(parameters.dtype.replace("bf2", "f2")).kind in "SU":
        return None
    index = [int(one) for one in np.unravel_index(worst, shape)]
    row, column = _plane(shape, wide, box)
    planes = _read_plane(shape, index, row, column, read)
    if planes is None:
        return None
    golden, new = planes
    shares, _ = share_of_bound(golden.reshape(-1), new.reshape(-1), parameters)
    shares = shares.reshape(golden.shape)
    picked = _pick_worst(shares, 1 if row is None else _MOST_ROWS, row is None)
    classes = share_classes(shares[picked])
    values = [_drawable(side[picked], parameters.dtype) for side in (golden, new)]
    finite = np.concatenate([side[np.isfinite(side)] for side in values])
    if finite.size == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    for axis in (row, column):
        if axis is not None:
            index[axis] = 0
    return Picture(
        column_axis=column,
        rows=classes.shape[0],
        columns=classes.shape[1],
        index=tuple(index),
        low=low,
        high=high,
        golden=cells_text(_levels(values[0], low, high)),
        new=cells_text(_levels(values[1], low, high)),
        classes=cells_text(classes.tobytes()),
        row_axis=row,
    )


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
    shares: NDArray[np.float64], most_rows: int, is_line: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of one element for each cell of the picture: that of the largest share."""
    rows = min(shares.shape[0], most_rows)
    columns = min(shares.shape[1], _MOST_LINE if is_line else _MOST_COLUMNS)
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
    return at[0], at[1]


def _drawable(values: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    found = as_numbers(values, dtype)
    assert found is not None, "strings have no picture"
    if found.dtype.kind == "c":
        found = np.abs(found)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return found.astype(np.float64)


def _levels(values: NDArray[np.float64], low: float, high: float) -> bytes:
    # Halved first: the span of two huge numbers overflows.
    span = high / 2 - low / 2
    with np.errstate(all="ignore"):
        scaled = (values / 2 - low / 2) / span * 254 if span > 0 else np.zeros(values.shape)
        levels = np.where(np.isfinite(values), np.clip(np.rint(scaled), 0, 254), NOT_FINITE)
    return levels.astype(np.uint8).tobytes()
