"""Do new runs of a chaotic program belong to an ensemble of earlier ones?

Where tiny differences grow until nothing can be compared point by point, what stays are statistics
of a run: its features. The test asks whether the features of new runs lie among those of an
ensemble's members, and is exact at any size: under exchange of members and new runs it rejects with
the stated rate, however few there are.
"""

from __future__ import annotations

import math
from enum import Enum
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING

from ciwrap.errors import NotComparableError, UsageError
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

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
    lengths = _squared_lengths(rows, draws)
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


def _squared_lengths(rows: _Numbers, draws: NDArray[np.intp]) -> _Numbers:
    lengths: _Numbers = np.sum(rows[draws].mean(axis=1) ** 2, axis=1)
    return lengths


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
