"""Rows without ids, paired by where they are: points by their coordinates, to within a bound, and
cells by the points that they join.

One side keeps its order, and the other side's rows are put into it. Nothing is guessed: a row with
no partner, or with one that is not the only one, is an error.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import ArrayValues, slack_of, storage_dtype
from ciwrap.base.errors import AlignmentError
from ciwrap.base.late import numpy as np
from ciwrap.formats.rows import RowOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.formats.catalog import Read
    from ciwrap.model import ErrorBound

_MOST_AXES = 3
_MOST_OF_A_CELL = 64
# Coordinates that are so little apart, in their own scale, are at one place, whatever the bound.
_SAME_PLACE = 2.0**-44
# What lies so near, in the scale of the coordinates, may be the same point.
_ROUNDING = 1e-6


def match_points(
    name: str,
    golden: NDArray[Any],
    new: NDArray[Any],
    bound: ErrorBound,
    sides: tuple[str, str],
) -> NDArray[np.int64]:
    """The row of `new` that lies within the bound of each row of `golden`.

    golden, new: coordinates, shape (rows,) or (rows, axes). sides: where they are. Raises
    AlignmentError for a row without a partner, and for rows too near to each other to be told
    apart: the bound leaves each row one candidate at most, or nothing is paired.
    """
    old, moved = (_coordinates(name, side) for side in (golden, new))
    axes, count = old.shape
    if len(moved) != axes:
        raise AlignmentError(f"{name!r} has {axes} coordinates {sides[0]}, {len(moved)} {sides[1]}")
    slack = slack_of(golden, bound).reshape(count, axes).T
    if old.shape == moved.shape and bool(np.all(np.abs(moved - old) <= slack)):
        return np.arange(count)  # also where points are too near to each other to be moved
    both = np.concatenate([old, moved], axis=1)
    # Of grids shifted by so many parts of their cells, one at least holds within a single cell
    # whatever spans two bounds: along each axis, it crosses the faces of one of them at most.
    grids = axes + 1
    largest = float(np.abs(both).max(initial=0.0))
    edge = max(4 * grids * float(slack.max(initial=0.0)), _SAME_PLACE * largest) or 1.0
    # Two cells that have one key make points look near to each other: then nothing is paired.
    words = np.random.default_rng(1).integers(0, 1 << 64, size=axes, dtype=np.uint64)
    partner = np.full(count, -1, dtype=np.int64)
    for grid in range(grids):
        cells = np.floor(both / edge + grid / grids).astype(np.int64).view(np.uint64)
        keys = words @ cells
        order = np.argsort(keys, kind="stable")
        at = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        # Golden rows come first within a cell, so a pair of both sides is in this order.
        first, second = order[at], order[at + 1]
        is_crowded = (first < count) == (second < count)
        if is_crowded.any():
            near = both[:, [first[is_crowded][0], second[is_crowded][0]]]
            raise AlignmentError(
                f"the rows cannot be paired by {name!r}: on one side, two points are"
                f" {np.ptp(near, axis=1).max():.3g} apart, at {_place(near[:, 0])}; with its bound,"
                f" points have to be {edge:.3g} apart",
                remedy=f"give {name!r} a smaller bound under 'variables', or pair rows by ids",
            )
        second = second - count
        is_near = np.all(np.abs(moved[:, second] - old[:, first]) <= slack[:, first], axis=0)
        partner[first[is_near]] = second[is_near]
    is_left = np.ones(moved.shape[1], dtype=bool)
    is_left[partner[partner >= 0]] = False
    for where, side, lost, others in (
        (sides[0], old, partner < 0, moved),
        (sides[1], moved, is_left, old),
    ):
        if lost.any():
            raise _unpaired(name, side[:, lost], others, bound, where)
    return partner


def _coordinates(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """The coordinates as doubles of shape (axes, rows). Raises AlignmentError."""
    axes = values.shape[1] if values.ndim == 2 else 1
    if values.dtype.kind != "f" or not 1 <= values.ndim <= 2 or not 1 <= axes <= _MOST_AXES:
        raise AlignmentError(
            f"the variable {name!r} has dtype {values.dtype} and shape {values.shape};"
            f" coordinates are one to {_MOST_AXES} floating-point numbers for each row"
        )
    found = np.ascontiguousarray(values.reshape(len(values), axes).T, dtype=np.float64)
    if not np.isfinite(found).all():
        raise AlignmentError(f"the coordinates {name!r} are not all finite")
    return found


def _place(coordinates: NDArray[Any]) -> str:
    return f"({', '.join(f'{one:.10g}' for one in coordinates.tolist())})"


def _unpaired(
    name: str,
    lost: NDArray[np.float64],
    others: NDArray[np.float64],
    bound: ErrorBound,
    where: str,
) -> AlignmentError:
    """lost: the points of one side without a partner. others: all of the other side."""
    nearest = float(np.abs(others - lost[:, :1]).max(axis=0).min(initial=np.inf))
    count = lost.shape[1]
    points = "1 point is" if count == 1 else f"{count:,} points are"
    is_rounding = nearest <= _ROUNDING * float(np.abs(others).max(initial=0.0))
    return AlignmentError(
        f"the rows cannot be paired by {name!r}: {points} only {where}, the first"
        f" at {_place(lost[:, 0])}; the nearest one on the other side is {nearest:.3g} away,"
        f" and the bound of {name!r} is {'0' if bound.is_exact else bound.text}",
        remedy=f"if that is rounding, give {name!r} a wider bound" if is_rounding else None,
    )


def _in_order(
    points: NDArray[Any], ends: NDArray[Any], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The points of cells in another order, one cell after the other, and where each ends.

    ends: as VTK's readers have them, with a 0 before the first.
    """
    counts = np.diff(ends)[rows]
    moved = np.concatenate([[0], np.cumsum(counts)]).astype(ends.dtype)
    at = np.repeat(ends[rows] - moved[:-1], counts) + np.arange(moved[-1])
    return points[at], moved


def _table(points: NDArray[Any], ends: NDArray[Any]) -> NDArray[np.int64]:
    """The points of each cell in ascending order; -1 where a cell has fewer. Raises AlignmentError.

    Shape (most points of a cell, cells).
    """
    counts = np.diff(ends)
    most = int(counts.max(initial=0))
    if most > _MOST_OF_A_CELL:
        raise AlignmentError(f"cells of more than {_MOST_OF_A_CELL} points are not paired")
    cell = np.repeat(np.arange(counts.size), counts)
    found = np.full((most, counts.size), -1, dtype=np.int64)
    found[np.arange(len(points)) - ends[cell], cell] = points
    found.sort(axis=0)
    return found


def match_cells(
    golden: tuple[NDArray[Any], NDArray[Any]], new: tuple[NDArray[Any], NDArray[Any]]
) -> NDArray[np.int64]:
    """The cell of `new` that joins the same points as each cell of `golden`.

    Both: the points of each cell one after the other, by the golden's numbers, and where they end.
    Raises AlignmentError for a cell without a partner, and for two that join the same points unless
    all cells stand where they stood.
    """
    ours, theirs = (_table(*side) for side in (golden, new))
    rows = np.arange(ours.shape[1])
    if np.array_equal(ours, theirs):
        return rows
    lost = AlignmentError("there are cells of points that no cell of the other side joins")
    if ours.shape != theirs.shape:
        raise lost
    one, other = (np.lexsort(side) for side in (ours, theirs))
    if not np.array_equal(ours[:, one], theirs[:, other]):
        raise lost
    is_again = np.all(ours[:, one[1:]] == ours[:, one[:-1]], axis=0)
    if is_again.any():
        raise AlignmentError(f"cell {one[1:][is_again][0]} joins the points of another cell")
    rows[one] = other
    return rows


class MatchedRows:
    """The rows of one checkpoint in the order of another side's. Methods raise AlignmentError.

    name: of the coordinates. counts: how many rows each rank has. is_known: whether the checkpoint
    has a variable of that name. read: values of all ranks together. other: the same of the side
    that keeps its order, and where both are; None for that side itself. may_be_other: whether all
    rows stay where they are if any cannot be paired. read_names: all by which rows are paired.
    """

    def __init__(
        self,
        name: str,
        counts: tuple[int, ...],
        is_known: Callable[[str], bool],
        read: Read,
        other: tuple[Read, tuple[str, str]] | None,
        bound: ErrorBound,
        *,
        may_be_other: bool = False,
    ) -> None:
        self._name, self._counts, self._read = name, counts, read
        self._other, self._bound = other, bound
        self._prefix = name.removesuffix("points")
        lists = [f"{self._prefix}cells/{one}" for one in ("connectivity", "offsets")]
        is_mesh = name.endswith("points") and all(map(is_known, lists))
        self._lists = lists if is_mesh else []
        self.read_names = {name, *self._lists}
        if may_be_other and not self._can_be_paired:
            self._other = None

    @property
    def _can_be_paired(self) -> bool:
        try:
            return all(self.order_of(one) is not None for one in self.read_names)
        except AlignmentError:
            return False

    def order_of(self, name: str) -> RowOrder | None:
        """The order of a variable's rows; None where they stay."""
        if self._other is None and len(self._counts) == 1:
            return None
        section = name.removeprefix(self._prefix)
        if not self._lists or name == self._name or section.startswith("point_data/"):
            return self._points
        if name in self._lists or section == "cells/types" or section.startswith("cell_data/"):
            return self._cells.get(name, self._cells["rows"])
        return None

    @cached_property
    def _points(self) -> RowOrder:
        rows = np.arange(sum(self._counts))
        if self._other is not None:
            read, sides = self._other
            (golden,), (new,) = (one([self._name]) for one in (read, self._read))
            rows = match_points(self._name, golden, new, self._bound, sides)
        return RowOrder(self._name, np.arange(rows.size), rows, self._counts, is_matched=True)

    @cached_property
    def _cells(self) -> dict[str, RowOrder]:
        """The order of the rows of cells, and of the lists of their points, by name."""
        if self._other is None or len(self._counts) > 1:
            raise AlignmentError(
                "cells are paired within one rank, not across ranks",
                remedy="set 'across_ranks: false'",
            )
        numbers = np.argsort(self._points.rows)
        golden, (points, ends) = (one(self._lists) for one in (self._other[0], self._read))
        if points.size and not 0 <= points.min() <= points.max() < numbers.size:
            raise AlignmentError("has cells of points that do not exist")
        points = numbers[points]
        rows = match_cells((golden[0], golden[1]), (points, ends))
        called = f"{self._prefix}cells"
        order = RowOrder(called, np.arange(rows.size), rows, (rows.size,), is_matched=True)
        found = {"rows": order}
        for name, listed in zip(self._lists, _in_order(points, ends, rows), strict=True):
            ids = np.arange(listed.size)
            found[name] = _InPlace(called, ids, rows, (), is_matched=True, listed=listed)
        return found


class _InPlace(RowOrder, frozen=True, kw_only=True):
    """The order of what has been put in order already."""

    listed: NDArray[Any]

    def put_in_order(self, parts: Sequence[Values]) -> Values:
        return ArrayValues(self.listed.astype(storage_dtype(parts[0].dtype)), parts[0].dtype)
