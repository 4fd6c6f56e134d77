"""Where a series of measurements changes its level: between which two of them, and by how much."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.statistics.times import as_times
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    _Numbers = NDArray[np.float64]

# Fewer measurements on one side are an accident as easily as a level.
LEAST_ASIDE = 5
RARE = 0.001
_PERMUTATIONS = 4999


class ChangePoint(Struct, frozen=True):
    """A change of level. position: of the first measurement on the new level, from 0. before,
    after: the medians of both levels. p: how often chance makes as large a step.
    """

    position: int
    before: float
    after: float
    p: float

    @property
    def change(self) -> float:
        """The ratio of the levels minus one."""
        return self.after / self.before - 1


def find_change_points(
    values: Sequence[float], *, margin: float, seed: int
) -> tuple[ChangePoint, ...]:
    """The changes of level of a series of positive numbers, in order of position.

    Binary segmentation: the split with the largest standardised rank sum is kept if fewer than one
    permutation in a thousand has one as large, then both parts are split in the same way. At least
    5 measurements lie on either side. Steps whose ratio is within 1 + margin are taken out again,
    the smallest first. After Fleming et al., ICPE 2023, with permuted ranks.

    Raises UsageError for numbers that are not positive, NotAvailableError without SciPy.
    """
    series = as_times(values)
    found = dict(_split(series, 0, np.random.default_rng(seed)))
    while found:
        points = _points(series, found)
        smallest = min(points, key=_step)
        if _step(smallest) >= math.log1p(margin):
            return points
        del found[smallest.position]
    return ()


def _step(point: ChangePoint) -> float:
    return abs(math.log(point.after / point.before))


def _points(series: _Numbers, found: dict[int, float]) -> tuple[ChangePoint, ...]:
    places = sorted(found)
    ends = [0, *places, series.size]
    levels = [float(np.median(series[a:b])) for a, b in pairwise(ends)]
    return tuple(
        ChangePoint(place, before, after, found[place])
        for place, (before, after) in zip(places, pairwise(levels), strict=True)
    )


def _split(
    series: _Numbers, offset: int, generator: np.random.Generator
) -> list[tuple[int, float]]:
    """The significant splits of a stretch, each with its p."""
    if series.size < 2 * LEAST_ASIDE:
        return []
    ranks = scipy("stats", "finding change points").rankdata(series)
    steps = _standardised_steps(ranks[np.newaxis])[0]
    # The same ranks in any other order: none of them knows a level.
    permuted = generator.permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    largest = _standardised_steps(permuted).max(axis=1)
    p = (1 + int(np.sum(largest >= steps.max() - 1e-9))) / (_PERMUTATIONS + 1)
    if p >= RARE:
        return []
    place = int(steps.argmax()) + LEAST_ASIDE
    return [
        *_split(series[:place], offset, generator),
        (offset + place, p),
        *_split(series[place:], offset + place, generator),
    ]


def _standardised_steps(ranks: _Numbers) -> _Numbers:
    """Of each row and each split into two parts: how far the first part's rank sum lies from what
    is expected, in standard deviations.
    """
    count = ranks.shape[1]
    first = np.arange(LEAST_ASIDE, count - LEAST_ASIDE + 1)
    sums = np.cumsum(ranks, axis=1)[:, first - 1]
    expected = first * (count + 1) / 2
    deviation = np.sqrt(first * (count - first) * (count + 1) / 12)
    found: _Numbers = np.abs(sums - expected) / deviation
    return found
