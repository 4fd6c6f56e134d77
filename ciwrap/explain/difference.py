"""Both sides of one variable that differs, as hypotheses and pictures read them.

A setting is offered only if it is enough for all values. One that needs another beside it (rtol
and atol) is offered with it, as a mapping.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ciwrap.base.late import numpy as np
from ciwrap.model import number_text, two_digits_above
from ciwrap.model.variable_result import Explanation, IndexBox

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.model.variable_result import Cause

# What a hypothesis says has to stand out of what the bound leaves open by this factor.
CLEAR = 8.0
# Of the differing elements, so many at least have to be as it says.
MOST_OF_THEM = 0.95


class Difference(Struct, frozen=True, dict=True):
    """A variable that differs. golden, new: all of it, in its shape, as numbers of the machine's
    byte order. positions: of the differing elements, ascending, in C order.
    """

    golden: NDArray[Any]
    new: NDArray[Any]
    positions: NDArray[np.int64]
    parameters: _core.TreeParameters

    @property
    def count(self) -> int:
        return int(self.positions.size)

    @property
    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Golden and new of the differing elements, as float64 or complex128."""
        wide = np.complex128 if self.golden.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return (
                self.golden.reshape(-1)[self.positions].astype(wide),
                self.new.reshape(-1)[self.positions].astype(wide),
            )

    def slack(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """What the bound leaves open around values: its width, or some steps of their type."""
        one = self.parameters
        with np.errstate(all="ignore"):
            size = np.abs(values).astype(np.float64)
            steps = 4 * self.spacing(values)
            if one.ulps:
                is_whole = self.golden.dtype.kind in "iu"
                return one.ulps * np.maximum(steps / 4, 1.0 if is_whole else 0.0)
            if one.kind == "exact":
                return steps
            found: NDArray[np.float64] = np.maximum(one.atol + one.rtol * size, steps)
            return found

    def spacing(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """How far apart numbers of their type are at values; 0 of whole numbers."""
        kind = self.golden.real.dtype
        with np.errstate(all="ignore"):
            size = np.abs(values)
            if kind.kind != "f":
                return np.zeros(size.shape)
            found: NDArray[np.float64] = np.spacing(size.astype(kind)).astype(np.float64)
        return found

    def explained(self, cause: Cause, held: NDArray[np.bool_], **facts: Any) -> Explanation:
        """An explanation of those differing elements that are held, and where the others lie.

        facts: further fields of the explanation.
        """
        left = self.positions[~held]
        box = None
        if left.size:
            indices = [axis.tolist() for axis in np.unravel_index(left, self.golden.shape)]
            box = IndexBox(tuple(map(min, indices)), tuple(map(max, indices)))
        count = self.count - int(left.size)
        return Explanation(cause, count, self.count, unexplained=box, **facts)

    def is_most(self, held: NDArray[np.bool_]) -> bool:
        """Whether a hypothesis holds on so many of the elements it speaks of that it is told."""
        return bool(held.size) and int(np.count_nonzero(held)) >= MOST_OF_THEM * held.size


def whole_or_short(value: float) -> str:
    """A number as people write it into a configuration."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def on_most(
    difference: Difference, cause: Cause, held: NDArray[np.bool_], *values: float
) -> Explanation | None:
    """An explanation, if it holds on most values that differ."""
    return difference.explained(cause, held, values=values) if difference.is_most(held) else None


def of_atol(atol: float, rtol: float) -> str:
    """`atol: 3e-9`, or with the rtol that is: an atol alone would set that to 0."""
    if not rtol:
        return f"atol: {number_text(atol)}"
    return f"{{atol: {number_text(atol)}, rtol: {number_text(rtol)}}}"


def of_rtol(difference: Difference, rtol: float, held: NDArray[np.bool_]) -> str | None:
    """`rtol: 6e-8`, or the atol that is with it, where noise next to zero needs one; None if they
    are not enough.

    held: of the differing elements, those that are explained.
    """
    golden, new, some = _meant(difference, held)
    with np.errstate(all="ignore"):
        moved, open_ = np.abs(new - golden), rtol * np.abs(golden)
        same = (golden == new) | (np.isnan(golden) & np.isnan(new))

        def is_enough(atol: float) -> bool:
            return bool(np.all((same | (moved <= atol + open_))[some]))

    parameters = difference.parameters
    if is_enough(0.0):
        return f"rtol: {number_text(rtol)}"
    if parameters.ulps or not parameters.atol or not is_enough(parameters.atol):
        return None
    return of_atol(parameters.atol, rtol)


def of_period(
    difference: Difference, periods: list[float], shown: str, held: NDArray[np.bool_]
) -> str | None:
    """`period: 10`, with an atol where the bound is none that a period goes with, or less than what
    rounding leaves; None if that would not be small beside the period.

    periods: of each component, 0 for none. held: of the differing elements, those explained.
    """
    golden, new, some = _meant(difference, held)
    own = np.asarray(periods)[np.arange(golden.size) % len(periods)]
    with np.errstate(all="ignore"):
        moved = new - golden
        turns = np.where(own > 0, np.rint(moved / np.where(own > 0, own, 1.0)), 0.0)
        back = moved - new
        lost = (new - (moved - back)) - (golden + back)
        apart = np.abs(moved - turns * own + lost)
        # One period is what it is; more of them are rounded.
        apart += np.where(np.abs(turns) > 1, np.spacing(np.abs(turns * own)), 0.0)
        apart += np.where(apart > 0, 2 * np.spacing(apart), 0.0)
        needed = float(np.max(apart[some & np.isfinite(moved)], initial=0.0))
    parameters = difference.parameters
    is_absolute = not parameters.rtol and not parameters.ulps
    if is_absolute and needed <= parameters.atol:
        return f"period: {shown}"
    atol = two_digits_above(max(needed, parameters.atol)) if needed else 0.0
    least = min(period for period in periods if period)
    if not math.isfinite(atol) or atol * CLEAR > least:
        return None
    return f"{{atol: {number_text(atol)}, period: {shown}}}"


def _meant(
    difference: Difference, held: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Both sides as float64, and which of all elements a remedy has to let pass."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        sides = [
            side.reshape(-1).astype(np.float64) for side in (difference.golden, difference.new)
        ]
    some = np.ones(difference.golden.size, dtype=np.bool_)
    some[difference.positions[~held]] = False
    return sides[0], sides[1], some


# A scale that leaves out a hundredth of the values at each end, if they are this much further away.
_FAR = 10.0
# Of so few values none is left out.
_FEW = 500
# So often at least a value stands in an array that stands for something else.
_FEWEST_FILLED = 3


class Cells(Struct, frozen=True):
    """The element that stands for each cell of a plane, the one of the largest share.

    at: rows and columns of these elements. tops, lefts: where cells begin, the end after the last.
    """

    at: tuple[NDArray[np.int64], NDArray[np.int64]]
    tops: NDArray[np.int64]
    lefts: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.tops) - 1, len(self.lefts) - 1

    @property
    def most_elements(self) -> int:
        """How many elements a cell is of, at most."""
        return int(np.diff(self.tops).max() * np.diff(self.lefts).max())


class Scale(Struct, frozen=True):
    """low, high: what is drawn lies between these. least, greatest: all finite values do."""

    low: float
    high: float
    least: float
    greatest: float

    @property
    def is_cut(self) -> bool:
        return self.least < self.low or self.greatest > self.high

    def levels(self, values: NDArray[np.float64], most: int) -> NDArray[np.uint16]:
        """0 for low to `most` for high, what lies off the scale at its ends; most + 1 for what is
        not finite.
        """
        # Halved first: the span of two huge numbers overflows.
        low, span = self.low / 2, self.high / 2 - self.low / 2
        with np.errstate(all="ignore"):
            scaled = (values / 2 - low) / span * most if span > 0 else np.zeros(values.shape)
            levels = np.where(np.isfinite(values), np.clip(np.rint(scaled), 0, most), most + 1)
        return levels.astype("<u2")


def scale_of(*sides: NDArray[np.float64]) -> Scale | None:
    """The scale of all values together; None if none is finite. It leaves out a hundredth at each
    end if these are far away, and a value that stands apart from all others.
    """
    finite = np.concatenate([side[np.isfinite(side)] for side in sides])
    if finite.size == 0:
        return None
    return Scale(*_robust_scale(finite), float(finite.min()), float(finite.max()))


def value_apart(values: NDArray[np.float64]) -> tuple[float, int] | None:
    """The value that stands in several elements, far beyond all others, as a fill value does, and
    in how many; None if there is none.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    value = float(finite[np.argmax(np.abs(finite))])
    count = int(np.count_nonzero(finite == value))
    others = np.abs(finite[finite != value])
    if count < _FEWEST_FILLED or not others.size or abs(value) < 1e3 * float(others.max()):
        return None
    return value, count


def _robust_scale(finite: NDArray[np.float64]) -> tuple[float, float]:
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


def plane_axes(
    shape: tuple[int, ...], wide: list[int], box: IndexBox | None
) -> tuple[int | None, int]:
    """The two axes along which the differing elements spread most; the last ones if unknown."""
    if len(wide) == 1:
        return None, wide[0]

    def spread(axis: int) -> tuple[float, int]:
        if box is None or box.last_index[axis] == box.first_index[axis]:
            return (0.0, axis)
        return ((box.last_index[axis] - box.first_index[axis] + 1) / shape[axis], axis)

    row, column = sorted(sorted(wide, key=spread)[-2:])
    return row, column


def worst_cells(shares: NDArray[np.float64], most: tuple[int, int]) -> Cells:
    """The cells of a plane, each with the place of its first largest share (NaN is the largest);
    most: rows and columns at most.
    """
    rows, columns = (min(pair) for pair in zip(shares.shape, most, strict=True))
    tops = np.arange(rows + 1) * shares.shape[0] // rows
    lefts = np.arange(columns + 1) * shares.shape[1] // columns
    best = np.empty((rows, shares.shape[1]), np.int64)
    for i in range(rows):
        best[i] = tops[i] + shares[tops[i] : tops[i + 1]].argmax(axis=0)
    largest = np.take_along_axis(shares, best, axis=0)
    peaks = np.repeat(np.maximum.reduceat(largest, lefts[:-1], axis=1), np.diff(lefts), axis=1)
    places = np.where((largest == peaks) | np.isnan(largest), np.arange(shares.shape[1]), lefts[-1])
    across = np.minimum.reduceat(places, lefts[:-1], axis=1)
    down = np.take_along_axis(best, across, axis=1)
    return Cells((down, across), tops, lefts)


def drawable(values: NDArray[Any], part: str) -> NDArray[np.float64]:
    """The values as doubles, or this part of complex ones."""
    if values.dtype.kind == "c":
        values = values.imag if part == "imaginary" else values.real
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64)
