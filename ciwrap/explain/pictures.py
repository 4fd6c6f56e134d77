"""What the report draws of one variable: samples, maps and planes, bounded whatever its size.

Where the golden's data are not at hand, they are drawn of the new run's suspect chunks.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.late import numpy as np
from ciwrap.check.solve import as_numbers, share_classes, share_of_bound
from ciwrap.check.two_sides import (
    chunk_elements,
    judged_elements,
    read_each,
    runs_of,
    suspect_pieces,
)
from ciwrap.explain.difference import (
    Cells,
    Difference,
    Scale,
    drawable,
    plane_axes,
    scale_of,
    value_apart,
    worst_cells,
)
from ciwrap.explain.hypotheses import explain
from ciwrap.model import Details, DifferingElement, NewValues
from ciwrap.model.variable_result import (
    BOUND_CLASS,
    MOST_RUNS,
    MOST_VIEW_CELLS,
    MOST_WORST,
    NOT_FINITE,
    SUSPECT,
    ChunkMap,
    Effect,
    Explanation,
    IndexBox,
    Picture,
    ShareMap,
    TreeLevel,
    View,
    cells_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.check.two_sides import Pieces, ReadBoth
    from ciwrap.model import VariableResult

# Elements that are looked at: a second or so.
MOST_NEW_VALUES = 1 << 22


def new_values_of(
    parameters: _core.TreeParameters, new: Values, leaves: NDArray[np.int64]
) -> NewValues | None:
    """Counts and extremes of the new numbers in suspect chunks; None for strings and where that
    would be too much to read. Raises CiwrapError for values that cannot be read.
    """
    pieces = list(suspect_pieces(parameters, new, leaves))
    if sum(count for _, count in pieces) > MOST_NEW_VALUES or parameters.dtype[1] in "SU":
        return None
    parts = [_numbers(parameters, new, first, count) for first, count in pieces]
    numbers = np.concatenate(parts)
    finite = numbers[np.isfinite(numbers)]
    with np.errstate(all="ignore"):  # the sum of huge numbers
        mean = float(np.mean(finite)) if finite.size else None
    return NewValues(
        number_count=int(numbers.size),
        nan_count=int(np.count_nonzero(np.isnan(numbers))),
        infinity_count=int(np.count_nonzero(np.isinf(numbers))),
        least=float(finite.min()) if finite.size else None,
        greatest=float(finite.max()) if finite.size else None,
        mean=mean,
    )


def _numbers(
    parameters: _core.TreeParameters, new: Values, first: int, count: int
) -> NDArray[np.float64]:
    found = as_numbers(new.read(first, count).reshape(-1), parameters.dtype)
    assert found is not None, "strings were left out"
    if found.dtype.kind == "c":
        found = np.stack((found.real, found.imag))
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return found.astype(np.float64).reshape(-1)


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
    if max(shape, default=1) <= 1 or np.dtype(parameters.dtype.replace("bf2", "f2")).kind in "SU":
        return None
    per_chunk = chunk_elements(parameters)
    index, row, column = _plane_of_chunk(shape, int(suspects[0]) * per_chunk)
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


def make_means_picture(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    suspects: NDArray[np.int64],
    means: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> Picture | None:
    """The plane (or line) of `make_new_picture`, in which each element is the mean of its chunk;
    None for what has no picture.
    """
    if max(shape, default=1) <= 1:
        return None
    per_chunk = chunk_elements(parameters)
    index, row, column = _plane_of_chunk(shape, int(suspects[0]) * per_chunk)
    if shape[column] * (1 if row is None else shape[row]) > _MOST_SCANNED:
        return None
    chunks = _flat_positions(shape, index, row, column) // per_chunk
    golden, new = (side[chunks] for side in means)
    is_suspect = np.isin(chunks, suspects)
    with np.errstate(invalid="ignore"):
        moved = np.nan_to_num(np.abs(new - golden), nan=0.0)
    plane = _Plane(
        golden,
        new,
        moved,
        np.where(is_suspect, SUSPECT, 0).astype(np.uint8),
        tuple(index),
        row,
        column,
    )
    found = _picture(plane, "real")
    if found is None:
        return None
    return replace(found, differing="", bands=(), block_elements=per_chunk)


def _plane_of_chunk(shape: tuple[int, ...], first: int) -> tuple[list[int], int | None, int]:
    """The plane (or line) through the chunk that begins with this element: the index at which it
    lies, 0 along its own axes, and its row and column axes.
    """
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    row, column = plane_axes(shape, wide, None)
    index = [int(one) for one in np.unravel_index(first, shape)]
    for axis in (row, column):
        if axis is not None:
            index[axis] = 0
    return index, row, column


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
    limit = _signed_limit(moved, plane.shares[cells.at])
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


def _signed_limit(moved: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """The end of the scale of differences: nearly the largest one beyond its bound, so that noise
    within the bound is pale beside a defect; where none is beyond, the bound itself.
    """
    told = np.isfinite(moved) & (moved != 0)
    sizes, shares = np.abs(moved[told]), shares[told]
    if not sizes.size:
        return 0.0
    if np.any(shares > 1):
        return float(np.quantile(sizes[shares > 1], 0.98))
    with np.errstate(all="ignore"):
        bounds = sizes / shares
    return float(np.max(bounds[np.isfinite(bounds)], initial=0.0))


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
    rows = 1 if row is None else shape[row]
    if rows * shape[column] > _MOST_PLANE_ELEMENTS:
        return None
    at = _flat_positions(shape, index, row, column)
    base = int(at[0, 0])
    whole, line = int(at[-1, -1]) - base + 1, int(at[0, -1]) - base + 1
    if whole <= _MOST_PLANE_ELEMENTS:
        golden, new = read(base, whole)
        return golden.reshape(-1)[at - base], new.reshape(-1)[at - base]
    if line > _MOST_PLANE_ELEMENTS // 16 or rows > _MOST_ROW_READS:
        return None
    lines = [read(first, line) for first in at[:, 0].tolist()]
    return (
        np.stack([golden.reshape(-1)[at[0] - base] for golden, _ in lines]),
        np.stack([new.reshape(-1)[at[0] - base] for _, new in lines]),
    )


_MOST_PLANES = 24
_MOST_LINE = 1 << 13
_EXACT = 1 << 53  # up to here doubles hold every whole number
_MOST_LEVEL, _OFF, _MIDDLE, _STEPS = 65534, 65535, 32768, 256


def make_view(
    parameters: _core.TreeParameters,
    sides: tuple[NDArray[Any], NDArray[Any]],
    shape: tuple[int, ...],
    worst: int,
    box: IndexBox | None,
) -> View | None:
    """The plane through the worst element and its neighbours; None where there is nothing to see.

    sides: all elements of golden and new, as they are stored.
    """
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    if not wide or sides[0].dtype.kind in "SU":
        return None
    row, column = plane_axes(shape, wide, box)
    index = [int(one) for one in np.unravel_index(worst, shape)]
    axis = next((one for one in wide if one not in (row, column)), None)
    positions = _positions(index[axis], shape[axis]) if axis is not None else ()
    golden, new = (
        _planes(side.reshape(shape), index, (row, column), axis, positions) for side in sides
    )
    # Both are planes, rows, columns.
    shares, differences = share_of_bound(golden.reshape(-1), new.reshape(-1), parameters)
    shares = np.where(np.isinf(differences), np.inf, shares).reshape(golden.shape)
    parts = []
    for side in (golden, new):
        numbers = as_numbers(side, parameters.dtype)
        assert numbers is not None, "strings were left out"
        parts.append(drawable(numbers, "real"))
    scale = scale_of(*(part.reshape(-1) for part in parts))
    if scale is None:
        return None
    most = _most_cells(golden.shape[1:], len(golden))
    planes = []
    for one, other, share, is_lost in zip(
        *parts, shares, np.isinf(differences).reshape(golden.shape), strict=True
    ):
        cells = worst_cells(share, most)
        codes = _share_codes(share[cells.at], is_lost[cells.at], (other < one)[cells.at])
        levels = (scale.levels(side[cells.at], _MOST_LEVEL) for side in (one, other))
        planes.append(cells_text(b"".join(part.tobytes() for part in (*levels, codes))))
    shown = 0 if axis is None else positions.index(index[axis])
    for one_axis in (row, column, axis):
        if one_axis is not None:
            index[one_axis] = 0
    return View(
        column_axis=column,
        rows=cells.shape[0],
        columns=cells.shape[1],
        index=tuple(index),
        low=scale.low,
        high=scale.high,
        planes=tuple(planes),
        row_axis=row,
        axis=axis,
        positions=positions,
        cell_elements=cells.most_elements,
        shown=shown,
        is_cut=scale.is_cut,
        part="real" if golden.dtype.kind == "c" else None,
    )


def _positions(at: int, extent: int) -> tuple[int, ...]:
    """Even steps along an axis, the plane of the worst element among them."""
    count = min(extent, _MOST_PLANES)
    even = [one * extent // count for one in range(count)]
    nearest = min(range(count), key=lambda one: abs(even[one] - at))
    even[nearest] = at
    return tuple(even)


def _planes(
    side: NDArray[Any],
    index: list[int],
    axes: tuple[int | None, int],
    axis: int | None,
    positions: tuple[int, ...],
) -> NDArray[Any]:
    """Planes, rows, columns of one side; a line is a plane of one row."""
    row, column = axes
    kept = [one for one in (axis, row, column) if one is not None]
    part = side[tuple(slice(None) if at in kept else index[at] for at in range(side.ndim))]
    order = sorted(kept)
    part = part.transpose([order.index(one) for one in kept])
    if axis is not None:
        return np.ascontiguousarray(part[list(positions)])
    return np.ascontiguousarray(part.reshape(1, -1, side.shape[column]))


def _most_cells(shape: tuple[int, ...], planes: int) -> tuple[int, int]:
    """Rows and columns of the cells of each plane, so that all of them have room."""
    rows, columns = shape
    if rows == 1:
        return 1, min(columns, _MOST_LINE // planes)
    room = MOST_VIEW_CELLS / planes
    shrink = min(1.0, math.sqrt(room / (rows * columns)))
    most_rows = max(1, min(rows, int(rows * shrink)))
    return most_rows, max(1, min(columns, int(room / most_rows)))


def _share_codes(
    shares: NDArray[np.float64], is_lost: NDArray[np.bool_], is_below: NDArray[np.bool_]
) -> NDArray[np.uint16]:
    """is_below: whether the new number is below the golden one, which the last bit of a code says;
    golden and new are kept too coarsely to tell.
    """
    below = is_below.astype(np.float64)
    with np.errstate(all="ignore"):
        steps = np.nan_to_num(np.log2(shares) * _STEPS + _MIDDLE, nan=65533)
    codes = 2 * np.rint((np.clip(steps, 2, 65532) - below) / 2)
    # A step is half a percent; no rounding takes anything over the bound, where the page changes
    # colour, and exactly the bound is within it.
    codes = np.where(shares > 1, np.maximum(codes, _MIDDLE + 2), np.minimum(codes, _MIDDLE - 2))
    codes = np.where(shares == 0, 0, codes + below)
    return np.where(is_lost, _OFF, codes).astype("<u2")


def effect_of(
    parameters: _core.TreeParameters, golden: NDArray[Any], new: NDArray[Any]
) -> Effect | None:
    """What a difference comes to; None for complex numbers, flags, whole numbers that a double
    would round, and where no element is finite.

    golden, new: all elements as numbers, without dimensions. Fill values are left out, and so is
    a value that stands apart from all others.
    """
    if golden.dtype.kind == "c" or parameters.dtype.endswith("b1"):
        return None
    if golden.dtype.kind in "iu" and any(_is_rounded(side) for side in (golden, new)):
        return None
    with np.errstate(all="ignore"):
        one, other = golden.astype(np.float64), new.astype(np.float64)
        kept = np.isfinite(one) & np.isfinite(other)
        for value in parameters.fill_values:
            fill = np.asarray(value).astype(golden.dtype)
            kept &= (golden != fill) & (new != fill)
        apart = value_apart(one[kept])
        if apart is not None:
            kept &= (one != apart[0]) & (other != apart[0])
        one, other = one[kept], other[kept]
        if not one.size:
            return None
        moved = other - one
        size = float(np.max(np.abs(moved))) or 1.0
        found = Effect(
            element_count=int(one.size),
            rms=size * math.sqrt(float(np.mean((moved / size) ** 2))),
            bias=float(np.mean(moved)),
            least=float(one.min()),
            greatest=float(one.max()),
            golden_sum=_sum(one),
            new_sum=_sum(other),
            size_sum=float(np.sum(np.abs(one))),
            apart=None if apart is None else apart[0],
            apart_count=0 if apart is None else apart[1],
        )
    sums = (found.rms, found.bias, found.golden_sum, found.new_sum, found.size_sum)
    return found if all(map(math.isfinite, sums)) else None


def _is_rounded(whole: NDArray[Any]) -> bool:
    """Whether doubles do not hold every whole number of this size."""
    return bool(whole.size) and max(int(whole.max()), -int(whole.min())) > _EXACT


def _sum(values: NDArray[np.float64]) -> float:
    """To the last digit where there are few; inf past the largest number."""
    if values.size >= 1 << 16:
        return float(np.sum(values))
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


# Elements that are looked at a second time for the samples: some seconds at most.
_MOST_SCANNED = 1 << 23
# A share that rounds to less is that of an element beyond its bound.
_JUST_BEYOND = math.nextafter(1.0, math.inf)
# Elements of a variable that hypotheses are tried on: a second or so.
_MOST_EXPLAINED = 1 << 21


def chunk_map(
    suspects: NDArray[np.int64], parameters: _core.TreeParameters, leaf_count: int
) -> ChunkMap:
    """All suspect chunks as runs, in coarser cells where there would be too many."""
    per_cell = 1
    while True:
        found = runs_of(np.unique(suspects // per_cell))
        if 2 * len(found) + 1 <= MOST_RUNS:
            break
        per_cell *= 2
    cell_count = -(-leaf_count // per_cell)
    runs, at = [], 0
    for first, last in found:
        runs += [first - at, last - first + 1]
        at = last + 1
    if at < cell_count:
        runs.append(cell_count - at)
    return ChunkMap(chunk_elements(parameters), leaf_count, per_cell, tuple(runs))


def tree_levels(suspects: NDArray[np.int64], tree: _core.Tree) -> tuple[TreeLevel, ...]:
    """How many nodes of each level lie above a suspect chunk; the root first."""
    nodes = suspects
    levels = []
    for count in reversed(tree.level_counts):
        levels.append(TreeLevel(int(count), int(nodes.size)))
        nodes = np.unique(nodes // tree.parameters.arity)
    return tuple(reversed(levels))


def suspect_details(
    suspects: NDArray[np.int64], tree: _core.Tree, shape: tuple[int, ...], count: int
) -> Details:
    """Of a variable whose suspect chunks are known, and no more."""
    return Details(
        chunk_map=chunk_map(suspects, tree.parameters, tree.leaf_count),
        tree_levels=tree_levels(suspects, tree),
        share_maps=chunk_share_maps(suspects, chunk_elements(tree.parameters), shape, count),
    )


def element_details(
    result: VariableResult,
    comparison: _core.Comparison,
    suspects: NDArray[np.int64],
    tree: _core.Tree,
    shape: tuple[int, ...],
    pieces: Pieces,
    read: ReadBoth,
    *,
    with_pictures: bool = True,
) -> VariableResult:
    """Looks a second time at a variable that differs, the data of both sides at hand: its result
    with what reports draw of it (with_pictures), and what stands out.
    """
    parameters = tree.parameters
    scan = _Scan(comparison, parameters, shape)
    for first, golden, new in pieces():
        if scan.scanned + golden.size > _MOST_SCANNED:
            break
        scan.add(first, golden, new)
    # Rounded shares must not tell of other elements than the verdict does.
    is_sure = scan.differing_count == comparison.differing_count
    box = scan.box() if is_sure else None
    whole = _whole(shape, read) if is_sure else None
    explanations: tuple[Explanation, ...] = ()
    if whole is not None:
        explanations = _explained(parameters, shape, scan.positions(), whole)
    result = replace(result, differing_box=box, explanations=explanations)
    if not with_pictures:
        return result
    view: View | None = None
    effect: Effect | None = None
    found = scan.worst_elements() or [int(comparison.max_abs_index), int(comparison.first_index)]
    worst_elements, worst = _beyond(found, parameters, shape, read)
    if whole is not None:
        view, effect = _views(parameters, shape, worst, box, whole)
    if is_sure:
        maps = share_maps(scan.positions(), scan.classes(), shape)
    else:
        count = int(np.prod(shape, dtype=np.int64))
        maps = chunk_share_maps(suspects, chunk_elements(parameters), shape, count)
    pictures = make_pictures(parameters, shape, worst[0], box, read) if worst else {}
    details = Details(
        chunk_map=chunk_map(suspects, parameters, tree.leaf_count),
        tree_levels=tree_levels(suspects, tree),
        worst_elements=worst_elements,
        share_maps=maps,
        view=view,
        # Masked elements count as zero here, and what they would add to means is not known.
        effect=None if result.mask is not None else effect,
        **pictures,
    )
    return replace(result, details=details)


def _beyond(
    flats: list[int], parameters: _core.TreeParameters, shape: tuple[int, ...], read: ReadBoth
) -> tuple[tuple[DifferingElement, ...], list[int]]:
    """Those of some elements that differ, each once, and where they are. -1 is none."""
    known = [flat for flat in dict.fromkeys(flats) if flat >= 0]
    judged = judged_elements(known, parameters, shape, lambda some: read_each(read, some))
    pairs = [
        (one, flat)
        for one, flat in zip(judged, known, strict=True)
        if one.bound_share is None or one.bound_share > 1.0
    ]
    return tuple(one for one, _ in pairs), [flat for _, flat in pairs]


def _whole(shape: tuple[int, ...], read: ReadBoth) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """All elements of both sides; None where that would be too much to read."""
    count = int(np.prod(shape, dtype=np.int64))
    return None if count > _MOST_EXPLAINED else read(0, count)


def _views(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    worst: list[int],
    box: IndexBox | None,
    whole: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[View | None, Effect | None]:
    """The numbers behind the picture, and what the difference comes to; None of strings."""
    numbers = [as_numbers(side, parameters.dtype) for side in whole]
    if numbers[0] is None or numbers[1] is None or not worst:
        return None, None
    view = make_view(parameters, whole, shape, worst[0], box)
    return view, effect_of(parameters, numbers[0], numbers[1])


def _explained(
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    positions: NDArray[np.int64],
    whole: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[Explanation, ...]:
    """What the differing elements have in common; nothing of strings."""
    golden, new = (as_numbers(side, parameters.dtype) for side in whole)
    if golden is None or new is None:
        return ()
    difference = Difference(golden.reshape(shape), new.reshape(shape), positions, parameters)
    return explain(difference)


class _Scan:
    """Looks at the differing elements piece by piece and keeps what is needed of them."""

    def __init__(
        self,
        comparison: _core.Comparison,
        parameters: _core.TreeParameters,
        shape: tuple[int, ...],
    ) -> None:
        indices = comparison.indices
        # Which elements differ the core knows exactly, but it does not list many of them.
        self._known = indices if indices.size == comparison.differing_count else None
        self._parameters = parameters
        self._shape = shape
        self._positions: list[NDArray[np.int64]] = []
        self._classes: list[NDArray[np.uint8]] = []
        self._worst: list[tuple[float, float, int]] = []
        self.scanned = 0
        self.differing_count = 0

    def add(self, first: int, golden: NDArray[Any], new: NDArray[Any]) -> None:
        golden, new = golden.reshape(-1), new.reshape(-1)
        self.scanned += golden.size
        shares, differences = share_of_bound(golden, new, self._parameters)
        inside = self._differing(shares, first)
        if inside.size == 0:
            return
        shares, differences = np.maximum(shares[inside], _JUST_BEYOND), differences[inside]
        self.differing_count += int(inside.size)
        self._positions.append((inside + first).astype(np.int64))
        self._classes.append(share_classes(shares, differences))
        self._note_worst(first, inside, shares, differences)

    def _differing(self, shares: NDArray[np.float64], first: int) -> NDArray[np.int64]:
        """Where in a piece the elements lie that differ; told by rounded shares if need be."""
        if self._known is None:
            return np.flatnonzero(shares > 1.0)
        begin, end = np.searchsorted(self._known, (first, first + shares.size))
        return self._known[begin:end] - first

    def _note_worst(
        self,
        first: int,
        inside: NDArray[np.int64],
        shares: NDArray[np.float64],
        differences: NDArray[np.float64],
    ) -> None:
        order = np.lexsort((inside, -differences, -shares))[:MOST_WORST]
        self._worst += [
            (-float(shares[one]), -float(differences[one]), int(inside[one]) + first)
            for one in order
        ]
        self._worst = sorted(self._worst)[:MOST_WORST]

    def positions(self) -> NDArray[np.int64]:
        return np.concatenate(self._positions) if self._positions else np.empty(0, np.int64)

    def classes(self) -> NDArray[np.uint8]:
        return np.concatenate(self._classes) if self._classes else np.empty(0, np.uint8)

    def worst_elements(self) -> list[int]:
        return [flat for _, _, flat in self._worst]

    def box(self) -> IndexBox | None:
        """The smallest box around all differing elements; None for a single number."""
        positions = self.positions()
        if not positions.size or not self._shape:
            return None
        indices = np.unravel_index(positions, self._shape)
        return IndexBox(
            tuple(int(axis.min()) for axis in indices), tuple(int(axis.max()) for axis in indices)
        )
