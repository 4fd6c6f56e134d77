"""The space that configurations lie in: one axis for each parameter that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

# Parameters that span this factor or more count by their logarithm.
LOG_FACTOR = 8.0
# Levels closer than this share of an axis are one, if the others are much further apart.
NEAR_SHARE = 0.01
_MUCH = 5.0
_LEAST_PER_LEVEL = 3


class Axis(Struct, frozen=True, forbid_unknown_fields=True):
    """One parameter. low, high: its smallest and largest value. is_log: whether it counts by its
    logarithm.
    """

    name: str
    low: float
    high: float
    is_log: bool

    def unit(self, values: Numbers) -> Numbers:
        """The values' places between 0 (low) and 1 (high). For a logarithmic axis they must be
        above 0.
        """
        low, high = self.low, self.high
        if self.is_log:
            values, low, high = np.log2(values), np.log2(low), np.log2(high)
        placed: Numbers = (values - low) / (high - low)
        return placed

    def value(self, place: float) -> float:
        """The value at a place between 0 and 1."""
        if self.is_log:
            return float(self.low * (self.high / self.low) ** place)
        return float(self.low + (self.high - self.low) * place)


def axis_of(name: str, values: Numbers) -> Axis:
    """The axis of a parameter that has at least two values."""
    low, high = float(values.min()), float(values.max())
    return Axis(name, low, high, is_log=low > 0 and high / low >= LOG_FACTOR)


class Space(Struct, frozen=True):
    """All axes, in the order of the columns of a matrix of configurations."""

    axes: tuple[Axis, ...]

    def places(self, points: Numbers) -> Places:
        """points: a row for each configuration."""
        raw = np.asarray(points, dtype=np.float64)
        units = [axis.unit(raw[:, column]) for column, axis in enumerate(self.axes)]
        return Places(raw, np.column_stack(units))


class Places(Struct, frozen=True):
    """Configurations in the units of the parameters (raw) and in the unit cube (unit)."""

    raw: Numbers
    unit: Numbers

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, rows: NDArray[np.intp]) -> Places:
        return Places(self.raw[rows], self.unit[rows])


def space_of(names: Sequence[str], points: Numbers) -> Space:
    """The space that these configurations span. points: a row for each; every column varies."""
    return Space(tuple(axis_of(name, column) for name, column in zip(names, points.T, strict=True)))


def is_inside(unit: Numbers, place: Numbers) -> bool:
    """Whether a place is a mean of the measured ones with some weights: a linear program."""
    equal = np.vstack([unit.T, np.ones(len(unit))])
    found = scipy("optimize", "a variability map").linprog(
        np.zeros(len(unit)), A_eq=equal, b_eq=np.append(place, 1.0), method="highs"
    )
    return bool(found.status == 0)


def merged_levels(axis: Axis, values: Numbers) -> list[tuple[float, ...]]:
    """Groups of levels of one parameter that are nearly the same, each in rising order.

    Two levels are, if they lie within 1 % of the axis and within a fifth of the usual distance
    between neighbours. Beside a level, its near double would make local slopes explode. A parameter
    that was drawn at random, so that a level stands for fewer than three configurations, stays as
    it is.
    """
    levels = np.unique(values)
    if levels.size * _LEAST_PER_LEVEL > values.size:
        return []
    places = axis.unit(levels)
    gaps = np.diff(places)
    near = min(NEAR_SHARE, float(np.median(gaps)) / _MUCH) if gaps.size else 0.0
    groups: list[tuple[float, ...]] = []
    first = 0
    for position in range(1, len(levels) + 1):
        if position < len(levels) and places[position] - places[first] < near:
            continue
        if position - first > 1:
            groups.append(tuple(float(one) for one in levels[first:position]))
        first = position
    return groups
