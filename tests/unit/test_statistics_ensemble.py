"""Whether new runs belong to an ensemble: exactness, sizes, and what is refused. Seeds stated."""

from __future__ import annotations

import math
from itertools import combinations
from math import comb

import numpy as np
import pytest
import scipy.stats

from ciwrap.base.errors import NotComparableError, UsageError
from ciwrap.statistics.factors import (
    EnsembleVerdict,
    chance_of_spread,
    compare_with_ensemble,
    least_members,
)


def rows(seed: int, count: int, features: int = 6, shift: float = 0.0) -> np.ndarray:
    """Features that hang together, on scales of their own."""
    generator = np.random.default_rng(seed)
    mixed = generator.normal(size=(count, features)) @ np.triu(np.ones((features, features)))
    return (mixed + shift) * 10.0 ** np.arange(features)


def test_the_rate_of_false_alarms_is_the_stated_one() -> None:
    """1000 trials with features far from normal; at 5 %, so that there is something to count."""
    generator = np.random.default_rng(3)
    rejected = 0
    for trial in range(1000):
        drawn = np.exp(generator.standard_t(3, size=(28, 5)).clip(-8, 8))
        found = compare_with_ensemble(drawn[:25], drawn[25:], rate=0.05, seed=trial)
        rejected += found.verdict is EnsembleVerdict.INCONSISTENT
    assert 0.03 < rejected / 1000 < 0.07


def test_the_rate_holds_where_every_other_run_is_the_same_to_the_bit() -> None:
    """500 trials at 5 %, as of a program with one usual order of adding up and many rare ones."""
    generator = np.random.default_rng(4)
    rejected = 0
    for trial in range(500):
        drawn = 10 + generator.normal(size=(103, 4))
        drawn[generator.random(103) < 0.5] = 0
        found = compare_with_ensemble(drawn[:100], drawn[100:], rate=0.05, seed=trial)
        rejected += found.verdict is EnsembleVerdict.INCONSISTENT
    assert rejected / 500 < 0.07


def test_p_is_that_of_all_ways_to_draw_the_runs() -> None:
    """Counted over all of them, with covariance and statistic written out."""
    old, new = rows(1, 20, 3), rows(2, 2, 3, shift=1.0)
    pooled = np.concatenate([new, old])
    standard = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0, ddof=1)
    inverse = np.linalg.inv(0.9 * np.cov(standard.T) + 0.1 * np.eye(3))

    def statistic(chosen: tuple[int, ...]) -> float:
        mean = standard[list(chosen)].mean(axis=0)
        return float(mean @ inverse @ mean)

    everything = [statistic(chosen) for chosen in combinations(range(22), 2)]
    exact = np.mean(np.array(everything) >= statistic((0, 1)) - 1e-12)
    found = compare_with_ensemble(old, new, rate=0.01, seed=7)
    assert found.p == pytest.approx(exact)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("power", [-980, -600, 512, 530, 1000])
def test_no_scale_changes_what_is_found(power: int) -> None:
    """Squares of such numbers overflow or vanish; everything was consistent then, or an error."""
    old, new = rows(1, 30) / 2**30, rows(2, 3, shift=5.0) / 2**30
    usual = compare_with_ensemble(old, new, rate=0.01, seed=7)
    found = compare_with_ensemble(np.ldexp(old, power), np.ldexp(new, power), rate=0.01, seed=7)
    assert usual.verdict is EnsembleVerdict.INCONSISTENT
    assert found.p == usual.p
    assert [one.feature for one in found.shifts] == [one.feature for one in usual.shifts]
    deviations = [one.deviations for one in usual.shifts]
    assert [one.deviations for one in found.shifts] == pytest.approx(deviations, rel=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e100, 1e160, 1.7e308, -1.7e308])
def test_a_run_that_blew_up_is_inconsistent(size: float) -> None:
    old = rows(1, 200)
    new = old[:1] * 1.001
    new[0, 2] = size
    found = compare_with_ensemble(old, new, rate=0.01, seed=7)
    assert found.verdict is EnsembleVerdict.INCONSISTENT
    assert found.shifts[0].feature == 2


def test_runs_of_another_kind_are_found_and_what_weighs_most_is_named() -> None:
    old, new = rows(4, 60), rows(5, 3)
    assert compare_with_ensemble(old, new, rate=0.01, seed=0).verdict is EnsembleVerdict.CONSISTENT
    new[:, 2] += 6 * old[:, 2].std()
    found = compare_with_ensemble(old, new, rate=0.01, seed=0)
    assert found.verdict is EnsembleVerdict.INCONSISTENT
    assert found.p is not None
    assert found.p <= 0.01
    assert found.shifts[0].feature == 2
    assert found.shifts[0].deviations == pytest.approx(
        (new[:, 2].mean() - old[:, 2].mean()) / (old[:, 2].std(ddof=1) / np.sqrt(3))
    )
    weights = [abs(one.deviations) for one in found.shifts]
    assert weights == sorted(weights, reverse=True)


def test_a_feature_that_never_varied_and_now_does() -> None:
    old, new = rows(6, 40), rows(7, 3)
    old[:, 1] = new[:, 1] = 5.0
    same = compare_with_ensemble(old, new, rate=0.01, seed=0)
    assert same.verdict is EnsembleVerdict.CONSISTENT
    assert all(one.feature != 1 for one in same.shifts)
    new[:, 1] = 5.0 + 1e-9
    found = compare_with_ensemble(old, new, rate=0.01, seed=0)
    assert found.verdict is EnsembleVerdict.INCONSISTENT
    assert found.shifts[0].feature == 1
    assert np.isinf(found.shifts[0].deviations)


@pytest.mark.parametrize(("runs", "rate", "least"), [(1, 0.01, 99), (2, 0.01, 20), (3, 1e-4, 38)])
def test_how_many_members_it_takes(runs: int, rate: float, least: int) -> None:
    assert least_members(runs, rate) == least
    assert comb(least + runs, runs) * rate >= 1
    few = compare_with_ensemble(rows(8, least - 1), rows(9, runs), rate=rate, seed=0)
    assert (few.verdict, few.more_members, few.p) == (EnsembleVerdict.TOO_SMALL, 1, None)
    enough = compare_with_ensemble(rows(8, least), rows(9, runs), rate=rate, seed=0)
    assert enough.verdict is EnsembleVerdict.CONSISTENT
    far = compare_with_ensemble(rows(8, least), rows(9, runs, shift=50), rate=rate, seed=0)
    assert far.verdict is EnsembleVerdict.INCONSISTENT


def test_runs_that_are_equal_to_the_bit_count_once() -> None:
    old, new = rows(10, 25), rows(11, 1)
    found = compare_with_ensemble(old, np.repeat(new, 5, axis=0), rate=0.01, seed=0)
    assert (found.runs, found.verdict) == (1, EnsembleVerdict.TOO_SMALL)
    few = compare_with_ensemble(np.repeat(old[:10], 9, axis=0), rows(12, 3), rate=0.01, seed=0)
    assert (few.members, few.verdict) == (10, EnsembleVerdict.TOO_SMALL)
    with pytest.raises(NotComparableError, match="the same features"):
        compare_with_ensemble(np.repeat(new, 30, axis=0), new, rate=0.01, seed=0)


def test_the_same_seed_says_the_same() -> None:
    old, new = rows(13, 30), rows(14, 3, shift=0.8)
    found = {compare_with_ensemble(old, new, rate=0.01, seed=5).p for _ in range(3)}
    assert len(found) == 1


def test_many_more_features_than_members_can_be_tested() -> None:
    """A covariance of 20,000 features would take 3 GB."""
    generator = np.random.default_rng(15)
    old, new = generator.normal(size=(25, 20_000)), generator.normal(size=(3, 20_000))
    honest = compare_with_ensemble(old, new, rate=0.01, seed=0)
    assert honest.verdict is EnsembleVerdict.CONSISTENT
    far = compare_with_ensemble(old, new + 0.2, rate=0.01, seed=0)
    assert far.verdict is EnsembleVerdict.INCONSISTENT


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (np.ones(5), np.ones((1, 5)), UsageError),
        (np.ones((20, 5)), np.ones((0, 5)), UsageError),
        (rows(1, 30), rows(2, 3, 5), UsageError),
        (rows(1, 30), rows(2, 3) * np.nan, NotComparableError),
        (rows(1, 30) * np.inf, rows(2, 3), NotComparableError),
    ],
)
def test_what_cannot_be_tested(old: np.ndarray, new: np.ndarray, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        compare_with_ensemble(old, new, rate=0.01, seed=0)
    with pytest.raises(UsageError):
        compare_with_ensemble(rows(1, 30), rows(2, 3), rate=0.0, seed=0)


def test_how_much_wider_members_seem_by_chance() -> None:
    """Honest members seldom seem to vary more than by chance; twice the spread is seen."""
    random = np.random.default_rng(11)
    old, new = random.normal(size=(2, 4000, 30, 16))
    ratios = (new.std(axis=1, ddof=1) / old.std(axis=1, ddof=1)).max(axis=1)
    limit = chance_of_spread(30, 30, 16)
    assert 0.003 < np.mean(ratios > limit) < 0.02
    assert np.mean(2 * ratios > limit) > 0.99
    assert chance_of_spread(20, 60, 16) > limit > chance_of_spread(60, 60, 16) > 1


@pytest.mark.parametrize(("old", "new"), [(20, 20), (20, 60), (60, 20), (200, 60), (20, 500)])
@pytest.mark.parametrize("features", [1, 16, 200])
def test_spreads_grow_by_chance_as_rarely_as_is_said(old: int, new: int, features: int) -> None:
    """The square is F-distributed. Of 200 features, 60 members in place of 20 varied "more than by
    chance" in 9 % of cases without any change.
    """
    limit = chance_of_spread(old, new, features)
    rate = features * float(scipy.stats.f.sf(limit**2, new - 1, old - 1))
    assert 0.005 < rate <= 0.0101


def test_of_two_members_no_spread_is_more_than_by_chance() -> None:
    assert chance_of_spread(2, 60, 16) == math.inf
