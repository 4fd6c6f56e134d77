"""Where a series changes its level, whether it has a trend, and how fast differences grow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ciwrap.base.late import numpy as np
from ciwrap.statistics.spread import as_times, scipy

if TYPE_CHECKING:
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


# Differences beyond this share of the variable's own spread no longer grow freely.
SATURATION = 0.1
# A random walk and a periodic orbit, too, may fit an exponential a little better than a power law.
LEAST_INCREASE = 100.0
# The corrected criterion of a model with a slope (3 parameters with the variance) needs 5 points.
LEAST_STEPS = 5
_PERFECT = 1e-30  # a mean square below this is a perfect fit

Kind = Literal["deterministic", "noise", "growing"]


class Growth(Struct, frozen=True):
    """How differences develop over a history.

    kind: "deterministic": all runs are equal; "noise": they differ, at a level that does not grow
    exponentially; "growing": they do, as those of chaotic codes. rate: by which ln D grows per
    iteration, and start: D at iteration 0 by the fit; None unless growing. is_settled: whether
    there were enough checkpoints to tell growing from noise.
    """

    kind: Kind
    rate: float | None = None
    start: float | None = None
    is_settled: bool = True

    def horizon(self, bound: float) -> float | None:
        """The iteration at which differences reach a bound; None if they do not grow."""
        if self.rate is None or not self.start or not 0 < bound < math.inf:
            return None
        return (math.log(bound) - math.log(self.start)) / self.rate


def classify(iterations: NDArray[Any], sizes: NDArray[Any], spread: float) -> Growth:
    """The class of a variable and its rate.

    iterations: ascending, shape (n,). sizes: the size D of the differences at each (root mean
    square over elements, median over runs), same shape. spread: the variable's own standard
    deviation over elements, from which saturation is told.

    ln D is fitted by a constant, a power law and an exponential, from the first difference until D
    reaches a tenth of the spread; the corrected Akaike criterion chooses. Growing is only what grew
    100-fold, by the fit and by most checkpoints.
    """
    steps, values = np.asarray(iterations, float), np.asarray(sizes, float)
    if not np.any(values > 0):
        return Growth("deterministic")
    steps, values = _free_part(steps, values, spread)
    if steps.size < LEAST_STEPS:
        return Growth("noise", is_settled=False)
    logs = np.log(values)
    since = steps - steps[0] + np.diff(steps).min()
    fits = {
        "constant": _fit(np.ones((steps.size, 1)), logs),
        "power": _fit(np.stack([np.ones_like(steps), np.log(since)], axis=1), logs),
        "exponential": _fit(np.stack([np.ones_like(steps), steps], axis=1), logs),
    }
    best = min(fits, key=lambda name: fits[name].criterion)
    start, rate = fits["exponential"].coefficients[0], fits["exponential"].coefficients[-1]
    # From each checkpoint to the one half of the history later. Least squares follow a single wild
    # checkpoint; a median does not.
    half = steps.size // 2
    usual = float(np.median((logs[half:] - logs[:-half]) / (steps[half:] - steps[:-half])))
    increase = min(rate, usual) * (steps[-1] - steps[0])
    if best == "exponential" and rate > 0 and increase >= math.log(LEAST_INCREASE):
        return Growth("growing", float(rate), float(np.exp(start)))
    return Growth("noise")


def _free_part(
    steps: NDArray[np.float64], values: NDArray[np.float64], spread: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """From the first difference to the first that is as large as saturated ones, without zeros."""
    first = int(np.flatnonzero(values > 0)[0])
    limit = SATURATION * spread if spread > 0 else math.inf
    beyond = np.flatnonzero(values[first:] >= limit)
    end = first + int(beyond[0]) if beyond.size else values.size
    kept = np.arange(first, end)[values[first:end] > 0]
    return steps[kept], values[kept]


class _Fit(Struct, frozen=True):
    coefficients: NDArray[np.floating[Any]]
    criterion: float


def _fit(design: NDArray[np.float64], logs: NDArray[np.float64]) -> _Fit:
    """Least squares, and Akaike's criterion corrected for few points."""
    count, parameters = design.shape[0], design.shape[1] + 1  # the variance is one, too
    coefficients, *_ = np.linalg.lstsq(design, logs, rcond=None)
    mean_square = float(np.mean((logs - design @ coefficients) ** 2))
    penalty = 2 * parameters * count / (count - parameters - 1)
    return _Fit(coefficients, count * math.log(max(mean_square, _PERFECT)) + penalty)


# Fewer have no slope that is worth a line.
LEAST_POINTS = 5
_LEAST_LAST = 3  # measurements in the last third
_PERFECT_SHARE = 1e-18
_WILD = 5.0  # times the median distance from the line
# Levels are looked for between so many places at most.
_MOST_PLACES = 256
_MOST_CORRELATION = 0.95


class Slope(Struct, frozen=True):
    """A straight line through a series. per_step: its rise from one measurement to the next. level:
    its height at the last one. p: how often chance alone goes up or down as steadily, if each
    measurement depends on the one before as these do.
    """

    per_step: float
    level: float
    p: float

    def steps_until(self, height: float) -> int | None:
        """After how many further measurements the line reaches a height; None if it never does."""
        if self.level >= height:
            return 0
        if self.per_step <= 0:
            return None
        return int(np.ceil((height - self.level) / self.per_step))


def least_points(rate: float, tests: int = 1) -> int:
    """How many measurements it takes until those that all go up one after the other are an accident
    so rare that `rare_ones` counts it among so many tests: n of them can come in n! orders, two of
    which are as steady. 6 at 1 %, 7 with from 4 to 25 tests.
    """
    points = LEAST_POINTS
    while 2 * tests > rate * math.factorial(points):
        points += 1
    return points


def slope_of(values: Sequence[float]) -> Slope | None:
    """The line of Theil and Sen: the median of the slopes between all couples of measurements.

    None for fewer than 5 measurements, if all are equal, and where that line is level; also where
    steps between up to three levels explain the series better than a line or a parabola, and where
    the last third goes the other way: then nothing grows with each measurement. p is the larger one
    of two: Kendall's of the correlation with time, and that of a line's slope with the variance
    that measurements have of which each depends on the one before. Raises NotAvailableError without
    SciPy.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.size < LEAST_POINTS or np.ptp(series) == 0:
        return None
    stats = scipy("stats", "a trend")
    steps = np.arange(series.size)
    line = stats.theilslopes(series, steps)
    straight = line.intercept + line.slope * steps
    # A few wild values are no step, and hide no line.
    most = _WILD * np.median(np.abs(series - straight))
    calm = straight + np.clip(series - straight, -most, most)
    last = calm[-max(_LEAST_LAST, series.size // 3) :]
    if line.slope * stats.theilslopes(last).slope <= 0:
        return None
    curve = _smooth_fit(calm)
    if curve.criterion >= min(_criterion(calm, *one) for one in _step_fits(calm)):
        return None
    kendall = float(stats.kendalltau(steps, series).pvalue)
    return Slope(
        float(line.slope), float(straight[-1]), max(kendall, _dependent_p(curve, series.size))
    )


class _Smooth(Struct, frozen=True):
    """A line or a parabola through a series, by least squares. slope: of the line. residuals: of
    the one with the smaller criterion, which has so many parameters.
    """

    slope: float
    residuals: _Numbers
    parameters: int
    criterion: float


def _smooth_fit(series: _Numbers) -> _Smooth:
    line = np.arange(series.size) - (series.size - 1) / 2
    square = line**2 - np.mean(line**2)
    slope = float(line @ series / (line @ line))
    straight = series - series.mean() - slope * line
    curved = straight - (square @ straight) / (square @ square) * square
    return min(
        (
            _Smooth(slope, left, count, _criterion(series, float(left @ left), count))
            for left, count in ((straight, 2), (curved, 3))
        ),
        key=lambda fit: fit.criterion,
    )


def _criterion(series: _Numbers, squares: float, parameters: int) -> float:
    """Schwarz's criterion (1978) of a fit that leaves such a sum of squares."""
    # What rounding leaves of a perfect fit is nothing.
    least = _PERFECT_SHARE * float(np.mean(series**2))
    return series.size * math.log(max(squares / series.size, least)) + parameters * math.log(
        series.size
    )


def _step_fits(series: _Numbers) -> list[tuple[float, int]]:
    """The sums of squares that the best two and three levels leave, and how many parameters these
    are: levels and places. Each level is at least two measurements long.
    """
    count = series.size
    centred = series - series.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])

    def left(begin: Any, end: Any) -> _Numbers:
        return np.asarray(
            squares[end] - squares[begin] - (sums[end] - sums[begin]) ** 2 / (end - begin)
        )

    places = np.arange(2, count - 1, -(-count // _MOST_PLACES))
    found = [(float((left(0, places) + left(places, count)).min()), 3)]
    first, second = np.triu_indices(places.size, 1)
    is_apart = places[second] - places[first] >= 2
    first, second = places[first][is_apart], places[second][is_apart]
    if first.size:
        three = left(0, first) + left(first, second) + left(second, count)
        found.append((float(three.min()), 5))
    return found


def _dependent_p(curve: _Smooth, count: int) -> float:
    """How often a line rises or falls as much by chance, by Student's t. The correlation of each
    residual with the next one is corrected for what the fit takes away (Marriott and Pope, 1954),
    and taken for larger by its own standard deviation.
    """
    left, parameters = curve.residuals, curve.parameters
    squares = float(left @ left)
    correlation = float(left[1:] @ left[:-1]) / squares if squares else 0.0
    correlation = (count * correlation + parameters) / max(1, count - 2 - parameters)
    correlation = min(max(correlation + 1 / math.sqrt(count), 0.0), _MOST_CORRELATION)
    inflation = (1 + correlation) / (1 - correlation)
    variance = squares / (count - parameters) * inflation / (count * (count**2 - 1) / 12)
    freedom = max(count / inflation - parameters, 1.0)
    if variance == 0:
        return 0.0
    student = scipy("stats", "a trend").t
    return float(2 * student.sf(abs(curve.slope) / math.sqrt(variance), freedom))


def rare_ones(chances: Sequence[float], rate: float) -> list[bool]:
    """Which of several tests' p values count, so that any of them is a false alarm with probability
    `rate` at most: Holm's method (1979).
    """
    order = sorted(range(len(chances)), key=lambda position: chances[position])
    found = [False] * len(chances)
    for rank, position in enumerate(order):
        if chances[position] > rate / (len(chances) - rank):
            break
        found[position] = True
    return found
