"""The numbers of both sides behind a picture, and in the planes before and after it; and what a
difference comes to over a whole variable.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.compare.planes import drawable, plane_axes, scale_of, value_apart, worst_cells
from ciwrap.compare.shares import as_numbers, share_of_bound
from ciwrap.details import MOST_VIEW_CELLS, Effect, View, cells_text
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.details import IndexBox

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
        codes = _share_codes(share[cells.at], is_lost[cells.at])
        levels = (scale.levels(side[cells.at], _MOST_LEVEL) for side in (one, other))
        planes.append(cells_text(b"".join(part.tobytes() for part in (*levels, codes))))
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
        shown=_shown(positions, worst, shape, axis),
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


def _shown(positions: tuple[int, ...], worst: int, shape: tuple[int, ...], axis: int | None) -> int:
    if axis is None:
        return 0
    return positions.index(int(np.unravel_index(worst, shape)[axis]))


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


def _share_codes(shares: NDArray[np.float64], is_lost: NDArray[np.bool_]) -> NDArray[np.uint16]:
    with np.errstate(all="ignore"):
        codes = np.clip(np.rint(np.log2(shares) * _STEPS) + _MIDDLE, 1, 65534)
    # A step is a quarter of a percent; no rounding takes anything over the bound, where the page
    # changes colour, and exactly the bound is within it.
    codes = np.where(shares > 1, np.maximum(codes, _MIDDLE + 1), np.minimum(codes, _MIDDLE - 1))
    codes = np.where(shares == 0, 0, np.nan_to_num(codes, nan=65534))
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
