"""Small maps of large arrays: where differences are."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from ciwrap.details import SUSPECT, ShareMap, cells_text
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ROWS = 96
MOST_COLUMNS = 160
MOST_LINE = 640
# Elements of suspect chunks that are put on a map.
_MOST_POSITIONS = 1 << 21


def share_maps(
    positions: NDArray[np.int64], classes: NDArray[np.uint8], shape: tuple[int, ...]
) -> tuple[ShareMap, ...]:
    """Differing elements (flat positions) and the classes of their shares, seen along the axes."""
    if not shape or positions.size == 0 or 0 in shape:
        return ()
    indices = np.unravel_index(positions, shape)
    wide = [axis for axis, extent in enumerate(shape) if extent > 1] or [len(shape) - 1]
    if len(wide) == 1:
        return (_map(None, wide[0], indices, classes, shape),)
    return tuple(
        _map(row, column, indices, classes, shape) for row, column in combinations(wide[-3:], 2)
    )


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
    return share_maps(positions, np.full(positions.size, SUSPECT, np.uint8), shape)


def _map(
    row: int | None,
    column: int,
    indices: tuple[NDArray[np.int64], ...],
    classes: NDArray[np.uint8],
    shape: tuple[int, ...],
) -> ShareMap:
    rows = 1 if row is None else min(shape[row], MOST_ROWS)
    columns = min(shape[column], MOST_LINE if row is None else MOST_COLUMNS)
    found = np.zeros((rows, columns), np.uint8)
    at_column = indices[column] * columns // shape[column]
    at_row = np.zeros_like(at_column) if row is None else indices[row] * rows // shape[row]
    np.maximum.at(found, (at_row, at_column), classes)
    return ShareMap(column, rows, columns, cells_text(found.tobytes()), row_axis=row)
