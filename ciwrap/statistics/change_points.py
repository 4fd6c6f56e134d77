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
# Of 13, even six that are all faster than the seven others are no rarer an accident than that: 1 in
# 858; of 14, seven are 1 in 1716, which so few permutations may or may not show.
LEAST = 15
_PERMUTATIONS = 4999
# Stretches are looked for between so many places at most.
_MOST_BORDERS = 64


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
    permutation in a thousand has one as large; else both ends of the stretch with the largest one,
    under the same condition (after Olshen et al., Biostatistics 5(4), 2004), since a level that
    comes and goes is no split of two. Where ranks tell a change, the values tell its place: the
    smallest sum of |ln value - median| of either side. Then all parts are split in the same way. At
    least 5 measurements lie on either side, and 15 in all. Steps whose ratio is within 1 + margin
    are taken out again, the smallest first. After Fleming et al., ICPE 2023, with permuted ranks.

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
    if series.size < LEAST:
        return []
    ranks = scipy("stats", "finding change points").rankdata(series)
    places, p = _places(ranks, generator)
    if p >= RARE:
        return []
    places = _placed(np.log(series), places)
    found = [(offset + place, p) for place in places]
    for start, end in pairwise([0, *places, series.size]):
        found += _split(series[start:end], offset + start, generator)
    return sorted(found)


def _places(ranks: _Numbers, generator: np.random.Generator) -> tuple[tuple[int, ...], float]:
    """Where the level most likely changes, and p: one place, or, where no single one is rare, the
    two between which another level came and went.
    """
    row = ranks[np.newaxis]
    # The same ranks in any other order: none of them knows a level.
    permuted = generator.permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    steps = _standardised_steps(row)[0]
    p = _share_as_large(_standardised_steps(permuted).max(axis=1), float(steps.max()))
    if p < RARE:
        return (int(steps.argmax()) + LEAST_ASIDE,), p
    coarse = -(-ranks.size // _MOST_BORDERS)
    p = _share_as_large(_largest_stretch(permuted, coarse)[0], _largest_stretch(row, coarse)[0][0])
    return (_largest_stretch(row, 1)[1], p) if p < RARE else ((), p)


def _placed(logs: _Numbers, places: tuple[int, ...]) -> tuple[int, ...]:
    """The places where the values part best: by ranks alone, a slow run before a step is one more
    of those after it.
    """
    if len(places) == 1:
        return (_best_split(logs),)
    first = _best_split(logs[: places[1]])
    return (first, first + _best_split(logs[first:]))


def _best_split(logs: _Numbers) -> int:
    def left(place: int) -> float:
        sides = logs[:place], logs[place:]
        return sum(float(np.sum(np.abs(one - np.median(one)))) for one in sides)

    return min(range(LEAST_ASIDE, logs.size - LEAST_ASIDE + 1), key=left)


def _share_as_large(chances: _Numbers, seen: float) -> float:
    return (1 + int(np.sum(chances >= seen - 1e-9))) / (_PERMUTATIONS + 1)


def _largest_stretch(rows: _Numbers, every: int) -> tuple[_Numbers, tuple[int, int]]:
    """Of each row: how far the rank sum of a stretch lies from what is expected, in standard
    deviations, for the stretch where that is most; and where that of the first row begins and ends.

    every: only so many places apart may one begin or end. It and what is before and after it are
    5 measurements long at least.
    """
    count = rows.shape[1]
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    largest, place = np.zeros(len(rows)), (0, 0)
    for start in range(LEAST_ASIDE, count - 2 * LEAST_ASIDE + 1, every):
        ends = np.arange(start + LEAST_ASIDE, count - LEAST_ASIDE + 1, every)
        found = _distances(sums[:, ends] - sums[:, [start]], ends - start, count)
        if found[0].max() > largest[0]:
            place = (start, int(ends[found[0].argmax()]))
        np.maximum(largest, found.max(axis=1), out=largest)
    return largest, place


def _standardised_steps(ranks: _Numbers) -> _Numbers:
    """Of each row and each split into two parts: how far the first part's rank sum lies from what
    is expected, in standard deviations.
    """
    count = ranks.shape[1]
    first = np.arange(LEAST_ASIDE, count - LEAST_ASIDE + 1)
    return _distances(np.cumsum(ranks, axis=1)[:, first - 1], first, count)


def _distances(sums: _Numbers, lengths: NDArray[np.intp], count: int) -> _Numbers:
    """How far sums of so many of all ranks lie from what is expected, in standard deviations."""
    expected = lengths * (count + 1) / 2
    deviation = np.sqrt(lengths * (count - lengths) * (count + 1) / 12)
    found: _Numbers = np.abs(sums - expected) / deviation
    return found
