"""Designs of factors that are on or off, tests of runs against an ensemble, and equal digits.

Designs: Box, Hunter and Hunter, "Statistics for Experimenters", 2005. The test of whether new runs
lie among an ensemble's members is exact at any size: under exchange of members and new runs it
rejects with the stated rate. Digits are of z = v / g - 1, the relative difference of a run's value
v from the reference g: Sohier, de Oliveira Castro, Fevotte, Lathuiliere, Petit and Jamond,
"Confidence intervals for stochastic arithmetic", ACM TOMS 47(2), 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ciwrap.base.errors import NotComparableError, UsageError
from ciwrap.base.late import numpy as np
from ciwrap.statistics.spread import scipy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Design = Literal["full", "fractional", "one-at-a-time"]
Cell = tuple[bool, ...]
LEAST_RUNS_PER_CELL = 2
# Generators of fractions of resolution IV: no factor is mixed up with another one, nor with any
# interaction of two. The columns beyond the base are products of three base columns.
_BASE = {5: 4, 6: 4, 7: 4, 8: 4}
_GENERATORS = ((0, 1, 2), (1, 2, 3), (0, 2, 3), (0, 1, 3))
_PERMUTATIONS = 999
LEVEL = 0.05  # an effect counts if chance makes so large a one in fewer cases
_TRIALS = 500
_LOUD = 5.0
_ROUNDING = 1e-9


def cells_of(design: Design, factors: int) -> list[Cell]:
    """The cells of a design, each once; the first one has all factors off.

    Raises ValueError for a fraction of less than 5 or more than 8 factors.
    """
    if design == "one-at-a-time":
        off = (False,) * factors
        return [off, *(tuple(n == one for n in range(factors)) for one in range(factors))]
    if design == "full":
        return [_cell(number, factors) for number in range(2**factors)]
    if factors not in _BASE:
        raise ValueError(f"a fraction of resolution IV is for 5 to 8 factors, not {factors}")
    base = _BASE[factors]
    generators = _GENERATORS[: factors - base]
    return [
        (*cell, *(sum(cell[at] for at in columns) % 2 == 1 for columns in generators))
        for cell in (_cell(number, base) for number in range(2**base))
    ]


def _cell(number: int, factors: int) -> Cell:
    return tuple(bool(number >> position & 1) for position in range(factors))


class DifferingShare(Struct, frozen=True):
    """Pairs of runs, and how many of them have different results.

    factor: the position of the only factor in which the two runs differ; None for pairs of runs of
    one cell.
    """

    factor: int | None
    pairs: int
    differing: int

    @property
    def share(self) -> float | None:
        return self.differing / self.pairs if self.pairs else None


def differing_shares(cells: Sequence[Cell], classes: Sequence[int]) -> list[DifferingShare]:
    """For pairs of one cell, then for each factor, how often results differ.

    cells: of each run; classes: equal numbers for equal results of a run.
    """
    width = len(cells[0]) if cells else 0
    counts = {one: [0, 0] for one in (None, *range(width))}
    for one, other in combinations(range(len(cells)), 2):
        changed = [n for n in range(width) if cells[one][n] != cells[other][n]]
        if len(changed) > 1:
            continue
        count = counts[changed[0] if changed else None]
        count[0] += 1
        count[1] += classes[one] != classes[other]
    return [DifferingShare(factor, *count) for factor, count in counts.items()]


def alike_pairs(cells: Sequence[Cell], classes: Sequence[int]) -> dict[Cell, tuple[int, int]]:
    """Of each cell, how many pairs of its runs there are, and how many have different results."""
    found: dict[Cell, tuple[int, int]] = {}
    for (cell, one), (other_cell, other) in combinations(zip(cells, classes, strict=True), 2):
        if cell == other_cell:
            pairs, differing = found.get(cell, (0, 0))
            found[cell] = pairs + 1, differing + (one != other)
    return found


def what_factors_do(cells: Sequence[Cell], classes: Sequence[int]) -> dict[int, bool]:
    """Whether each factor changes the result, where runs of one cell are all equal; a factor that
    nothing is known of is missing.

    Where pairs differ in one factor only, these decide. In a fraction no pair does: a factor is
    cleared there by two equal runs that differ in it, and found guilty by two unequal runs that
    differ in it and in cleared ones alone; that holds where factors act each by itself. Runs of one
    cell that are not all equal say nothing here.
    """
    shares = differing_shares(cells, classes)
    if shares[0].differing:
        return {}
    alone = {one.factor for one in shares if one.factor is not None and one.pairs}
    guilty = {one.factor for one in shares if one.factor is not None and one.differing}
    pairs = [
        ({n for n, (a, b) in enumerate(zip(cells[i], cells[j], strict=True)) if a != b}, i, j)
        for i, j in combinations(range(len(cells)), 2)
    ]
    cleared = alone - guilty
    for changed, i, j in pairs:
        if classes[i] == classes[j]:
            cleared |= changed - guilty
    left = [changed - cleared for changed, i, j in pairs if classes[i] != classes[j]]
    guilty |= {factor for one in left if len(one) == 1 for factor in one}
    return dict.fromkeys(cleared, False) | dict.fromkeys(guilty, True)


class Effect(Struct, frozen=True):
    """What switching a factor does to a response.

    factor: its position. size: from -1, where every run with it on is below every run with it off,
    to 1, where all are above (Cliff's delta). p: how often chance alone makes so large an effect of
    any factor on any response. power: the chance to find a factor that spreads normal noise five
    times as much wherever it is on.
    """

    factor: int
    size: float
    p: float
    power: float


def chance_of_levels(values: ArrayLike, levels: Sequence[object], *, seed: int = 0) -> float:
    """How often chance parts values among levels as far as they are (Kruskal and Wallis, 1952).

    levels: of each value, one of two or more. By permutations of the values' ranks.
    """
    ranks = ranks_of(np.asarray(values, float))
    _, which = np.unique(np.asarray(levels, dtype=str), return_inverse=True)
    is_of = np.eye(int(which.max()) + 1)[:, which]
    counts = is_of.sum(axis=1)
    generator = np.random.default_rng(seed)
    permuted = generator.permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    apart = ((permuted @ is_of.T) ** 2 / counts).sum(axis=1)
    found = float(((is_of @ ranks) ** 2 / counts).sum())
    as_far = int(np.count_nonzero(apart >= found * (1 - 1e-9)))
    return (1 + as_far) / (_PERMUTATIONS + 1)


def effects(responses: ArrayLike, cells: Sequence[Cell], *, seed: int = 0) -> list[list[Effect]]:
    """Of each response, the effects of all factors on its ranks.

    responses: shape (responses, runs); cells: of each run. Effects are least squares on contrasts
    of -1 and +1, and p comes from permuting the runs over the cells, all responses alike: each
    effect is compared with the largest one of any factor on any response (Westfall and Young,
    1993), so that many factors or variables are no cause of alarm. Of ranks, since nothing is known
    of the noise. Factors that the cells cannot tell from others are left out.
    """
    ranks = np.array([ranks_of(row) for row in np.atleast_2d(np.asarray(responses, float))])
    contrasts, factors = _contrasts(cells)
    if not factors or not ranks.size:
        return [[] for _ in ranks]
    solve = np.linalg.pinv(contrasts).T
    standardised = _standardised(ranks)
    generator = np.random.default_rng(seed)
    orders = generator.permuted(np.tile(np.arange(len(cells)), (_PERMUTATIONS, 1)), axis=1)
    permuted = (standardised[:, order] @ solve for order in orders)
    extremes = np.array([(found.max(), -found.min()) for found in permuted])
    up, down = np.sort(extremes[:, 0]), np.sort(extremes[:, 1])
    # Upwards and downwards apart: where runs are few, the orders that are as extreme as these in
    # the other direction are others for each response, and many responses have many of them.
    is_on = np.array(cells, dtype=bool)[:, factors].T
    most = int(LEVEL * (_PERMUTATIONS + 1) / 2)
    powers = [
        _power(on, weights, float(up[-most]), generator)
        for on, weights in zip(is_on, solve.T, strict=True)
    ]
    return [
        [
            Effect(factor, _delta(row, on), _p_of(size, up if size >= 0 else down), power)
            for factor, on, size, power in zip(factors, is_on, sizes, powers, strict=True)
        ]
        for row, sizes in zip(ranks, standardised @ solve, strict=True)
    ]


def _p_of(size: float, largest: NDArray[np.float64]) -> float:
    """How often chance makes so large an effect in either direction. largest: effects in this one,
    sorted; an order that makes the same effect counts, though its sum is rounded in another way.
    """
    as_large = largest.size - np.searchsorted(largest, abs(size) * (1 - _ROUNDING))
    return min(1.0, float(2 * (1 + as_large) / (largest.size + 1)))


def ranks_of(values: NDArray[Any]) -> NDArray[np.float64]:
    """The ranks of numbers from 1; equal ones have the mean of theirs."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[position]
    return found


def _standardised(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row with mean 0 and standard deviation 1; zeros where all are equal."""
    centred = ranks - ranks.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    found: NDArray[np.float64] = centred / np.where(spread > 0, spread, 1.0)
    return found


def _delta(ranks: NDArray[np.float64], is_on: NDArray[np.bool_]) -> float:
    return float(2 * (ranks[is_on].mean() - ranks[~is_on].mean()) / ranks.size)


def _power(
    is_on: NDArray[np.bool_],
    weights: NDArray[np.float64],
    limit: float,
    generator: np.random.Generator,
) -> float:
    """How often an effect is beyond the limit where noise spreads five times as much with a factor
    on, by 500 simulations of distances from a reference that is as quiet as the others.
    """
    scale = np.where(is_on, _LOUD, 1.0)
    values = generator.normal(0, scale, size=(_TRIALS, is_on.size))
    distances = np.abs(values - generator.normal(size=(_TRIALS, 1)))
    ranks = _standardised(np.array([ranks_of(row) for row in distances]))
    return float(np.mean(ranks @ weights > limit * (1 + _ROUNDING)))


def _contrasts(cells: Sequence[Cell]) -> tuple[NDArray[np.float64], list[int]]:
    """Columns of -1 and +1 of the factors that are not combinations of others."""
    signs = np.where(np.array(cells, dtype=bool), 1.0, -1.0)
    width = signs.shape[1] if signs.ndim == 2 else 0
    factors: list[int] = []
    kept = np.ones((len(cells), 1))
    for factor in range(width):
        more = np.column_stack([kept, signs[:, factor]])
        if np.linalg.matrix_rank(more) > kept.shape[1]:
            kept = more
            factors.append(factor)
    columns = kept[:, 1:]
    return columns - columns.mean(axis=0), factors


if TYPE_CHECKING:
    _Numbers = NDArray[np.float64]

LEAST_MEMBERS = 20
_SHRINK = 0.1
_LEAST_PERMUTATIONS = 999
_MOST_DRAWS = 5000


class EnsembleVerdict(str, Enum):
    """Never a match: no value of a run was compared with one of another."""

    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"
    TOO_SMALL = "too_small"

    def __str__(self) -> str:
        return self.value.replace("_", " ")


class FeatureShift(Struct, frozen=True):
    """How far the new runs' mean of one feature lies from the members' mean.

    feature: its position. deviations: in standard deviations of the mean of so many members.
    """

    feature: int
    deviations: float


class EnsembleTest(Struct, frozen=True):
    """What the test said. members, runs: how many there were that differ from each other. p: how
    often runs drawn from all of them lie as far out; None where they are too few. rate: of false
    alarms. shifts: of all features that vary, the largest first. more_members: how many further
    ones it takes; None where there are enough.
    """

    verdict: EnsembleVerdict
    members: int
    runs: int
    rate: float
    p: float | None = None
    more_members: int | None = None
    shifts: tuple[FeatureShift, ...] = ()


def least_members(runs: int, rate: float) -> int:
    """How many members it takes for so many new runs: 20, and enough ways to draw the runs from all
    for one of them to be as rare as `rate`.
    """
    members = LEAST_MEMBERS
    while math.comb(members + runs, runs) * rate < 1:
        members += 1
    return members


def least_runs(members: int, rate: float) -> int | None:
    """How many new runs it takes for so many members; None if none are enough."""
    if members < LEAST_MEMBERS:
        return None
    runs = 1
    while math.comb(members + runs, runs) * rate < 1:
        runs += 1
    return runs


def compare_with_ensemble(
    members: ArrayLike, runs: ArrayLike, *, rate: float, seed: int
) -> EnsembleTest:
    """Tests whether new runs belong to an ensemble.

    members, runs: a row of features for each. All rows are pooled and standardised; with C the
    pooled covariance, drawn towards the unit matrix by a tenth, and m the mean of the new runs, the
    statistic is m' C^-1 m. Its p value comes from all other ways to draw as many rows, or from 999
    random ones (more for a rate below 1 %). Rows that are equal in every feature count once where
    it is asked whether there are enough, since a run that is repeated to the bit says nothing new.
    Where some are equal, p is the larger one of two: of each row once, and of all rows as they
    came. The first one alone takes a result that every other run has for as rare as any other; the
    second one alone takes copies of one run for several runs.

    Raises UsageError for shapes or a rate without a meaning, NotComparableError for features that
    are not finite, and if all members are equal.
    """
    if not 0 < rate < 1:
        raise UsageError("the rate of false alarms must be between 0 and 1")
    old, new = distinct_rows(members, "members"), distinct_rows(runs, "new runs")
    if old.shape[1] != new.shape[1]:
        raise UsageError("members and new runs must have the same features")
    if len(old) < 2:
        raise NotComparableError(
            "all members of the ensemble have the same features, so they tell nothing about chance",
            remedy="perturb their initial values, or give each its own seed",
        )
    needed = least_members(len(new), rate)
    if len(old) < needed:
        return EnsembleTest(
            EnsembleVerdict.TOO_SMALL, len(old), len(new), rate, more_members=needed - len(old)
        )
    p = _permutation_p(old, new, rate, seed)
    all_old, all_new = _rows(members, "members"), _rows(runs, "new runs")
    if len(old) + len(new) < len(all_old) + len(all_new):
        p = max(p, _permutation_p(all_old, all_new, rate, seed))
    verdict = EnsembleVerdict.INCONSISTENT if p <= rate else EnsembleVerdict.CONSISTENT
    return EnsembleTest(verdict, len(old), len(new), rate, p=p, shifts=_shifts(old, new))


def _exponents(rows: _Numbers) -> NDArray[np.intc]:
    """Of each feature the power of two that all its values are below."""
    exponents: NDArray[np.intc] = np.frexp(np.abs(rows).max(axis=0))[1]
    return exponents


def _permutation_p(old: _Numbers, new: _Numbers, rate: float, seed: int) -> float:
    pooled = np.concatenate([new, old])
    # On a scale where no square overflows or vanishes: a run that blew up is no run like others.
    pooled = np.ldexp(pooled, -_exponents(pooled))
    varies = np.ptp(pooled, axis=0) > 0
    if not varies.any():
        return 1.0
    pooled = pooled[:, varies]
    pooled = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0, ddof=1)
    # Coordinates in which the statistic is a plain squared length: no more of them than rows, so
    # that a covariance of thousands of features is never made.
    left, scales, _ = np.linalg.svd(pooled, full_matrices=False)
    variances = (1 - _SHRINK) * scales**2 / (len(pooled) - 1) + _SHRINK
    rows = left * (scales / np.sqrt(variances))
    draws = _draws(len(rows), len(new), rate, np.random.default_rng(seed))
    lengths: _Numbers = np.sum(rows[draws].mean(axis=1) ** 2, axis=1)
    # The runs themselves are one of the draws, or are counted beside random ones.
    as_far = int(np.sum(lengths[1:] >= lengths[0] * (1 - 1e-12)))
    return (1 + as_far) / len(lengths)


def _draws(total: int, count: int, rate: float, generator: np.random.Generator) -> NDArray[np.intp]:
    """Ways to draw `count` of `total` rows: all if they are few, else random ones. The first way is
    the first rows.
    """
    if math.comb(total, count) <= _MOST_DRAWS:
        return np.array(list(combinations(range(total), count)))
    draws = max(_LEAST_PERMUTATIONS, math.ceil(10 / rate) - 1)
    keys = generator.random((draws, total))
    drawn = np.argpartition(keys, count - 1, axis=1)[:, :count]
    return np.concatenate([np.arange(count)[np.newaxis], drawn])


def _shifts(old: _Numbers, new: _Numbers) -> tuple[FeatureShift, ...]:
    scale, own = _exponents(np.concatenate([new, old])), _exponents(old)
    spread = np.ldexp(np.ldexp(old, -own).std(axis=0, ddof=1), own - scale) / math.sqrt(len(new))
    moved = np.ldexp(new, -scale).mean(axis=0) - np.ldexp(old, -scale).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        deviations = np.where(moved == 0, 0.0, moved / spread)
    order = np.argsort(-np.abs(deviations), kind="stable")
    return tuple(
        FeatureShift(int(one), float(deviations[one])) for one in order if deviations[one] != 0
    )


def chance_of_spread(old_count: int, new_count: int, features: int, *, rate: float = 0.01) -> float:
    """By what factor standard deviations of equally distributed members may seem to grow.

    The largest of so many features exceeds it with that rate at most, if they are normal: the
    square of the factor then follows an F distribution, whose cube root is the ratio of two nearly
    normal ones (Paulson, 1942). Infinite where so few members tell nothing.
    """
    z = NormalDist().inv_cdf(1 - rate / features)
    old, new = (2 / (9 * (count - 1)) for count in (old_count, new_count))
    # Of x, the cube root: (1 - old) x - (1 - new) = z sqrt(old x^2 + new), squared.
    square, half = (1 - old) ** 2 - z * z * old, (1 - old) * (1 - new)
    if square <= 0:
        return math.inf
    rest = (1 - new) ** 2 - z * z * new
    return float(((half + math.sqrt(half * half - square * rest)) / square) ** 1.5)


def distinct_rows(rows: ArrayLike, what: str) -> _Numbers:
    """The rows without those that are equal to an earlier one. what: they are, for messages. Raises
    UsageError for no rows of features, NotComparableError for features that are not finite.
    """
    values = _rows(rows, what)
    _, first = np.unique(values, axis=0, return_index=True)
    found: _Numbers = values[np.sort(first)]
    return found


def _rows(rows: ArrayLike, what: str) -> _Numbers:
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise UsageError(f"{what} must be rows of features, and one at least")
    if not np.all(np.isfinite(values)):
        raise NotComparableError(f"some features of the {what} are not finite")
    return values


PROBABILITY = 0.95
CONFIDENCE = 0.95
MOST_BITS = 53.0


def bits_of_spread(
    spread: NDArray[Any],
    runs: int,
    probability: float = PROBABILITY,
    confidence: float = CONFIDENCE,
) -> NDArray[np.float64]:
    """Significant bits of each element if z is normally distributed, with that confidence.

    spread: the standard deviation of z over the runs (with runs - 1), at least 2. At least so many
    bits of a run are those of the runs' mean, with that probability; another single run is no such
    middle. An element that never varied has all 53. Raises NotAvailableError without SciPy.
    """
    # Not scipy.stats, which takes five times as long to import.
    special = scipy("special", "the number of significant digits")
    chi_square = 2 * float(special.gammaincinv((runs - 1) / 2, (1 - confidence) / 2))
    lost = 0.5 * math.log2((runs - 1) / chi_square)
    lost += math.log2(float(special.ndtri((probability + 1) / 2)))
    return _limited(-_log2(np.asarray(spread, np.float64)) - lost)


def common_bits(differences: NDArray[Any]) -> NDArray[np.float64]:
    """The largest k with |z| <= 2^-k in every run, for each element; nothing is assumed of z.

    differences: z, shape (runs, ...). How sure that is depends on the number of runs alone.
    """
    return _limited(np.floor(-_log2(np.abs(differences).max(axis=0))))


def decimal_digits(bits: float) -> float:
    """Bits as decimal digits."""
    return bits * math.log10(2)


def _log2(values: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log2(values))


def _limited(bits: NDArray[np.float64]) -> NDArray[np.float64]:
    # None are 0, of no sign: the logarithm of 1 is -0 once it has been turned around.
    return np.clip(bits, 0.0, MOST_BITS) + 0.0
