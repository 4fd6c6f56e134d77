"""Repeats, intervals, floors and influences of maps, against SciPy, formulae and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ciwrap.base.errors import NotComparableError, UsageError

pytest.importorskip("scipy", reason="SciPy is not installed")

from scipy import stats

from ciwrap.statistics.spread import (
    kurtosis_of,
    repeats_for_mean,
    repeats_for_sigma,
    sigma_half_width,
)
from ciwrap.studies.variability.predictors import PREDICTORS
from ciwrap.studies.variability.quality import (
    bounded,
    conformal_factor,
    cross_validate,
    curve_of_runs,
    influences,
    noise_floor,
    sorted_residuals,
)
from ciwrap.studies.variability.runs import MOST_CONFIGURATIONS, prepare

NAMES = ("a", "b")


def grid(first: int = 6, second: int = 5):
    return np.array([(a, b) for a in range(1, first + 1) for b in range(1, second + 1)], float)


def measured(points, sigma, *, runs: int = 20, seed: int = 1, **more):
    generator = np.random.default_rng(seed)
    drawn = [10 * one + one * generator.normal(size=runs) for one in sigma]
    return prepare(NAMES, points, drawn, [], where="t.csv", seed=1, **more)


def test_repeats_for_sigma_are_the_formulas() -> None:
    """The least n for which the exact variance of a variance is small enough (Cramer 1946)."""
    z = stats.norm.ppf(0.95)

    def half_width(count: int, kurtosis: float) -> float:
        return z / 2 * math.sqrt((kurtosis - (count - 3) / (count - 1)) / count)

    for kurtosis, error in ((3.0, 0.1), (1.4, 0.1), (1.1, 0.2), (28.0, 0.2), (1.8, 0.5)):
        count = repeats_for_sigma(error, 0.9, kurtosis)
        assert half_width(count, kurtosis) <= error < half_width(count - 1, kurtosis)
        assert sigma_half_width(count, 0.9, kurtosis) == pytest.approx(half_width(count, kurtosis))
    assert repeats_for_sigma(0.1, 0.9) == 137
    assert repeats_for_sigma(1e-200, 0.9) == repeats_for_sigma(1e-9, 0.9, 1e300) == 10**9
    assert repeats_for_mean(1e-200, 0.9, 0.1) == 10**9
    assert repeats_for_sigma(1e200, 0.9) == repeats_for_mean(1e200, 0.9, 0.1) == 2
    assert repeats_for_sigma(5.0, 0.9) == 2
    for error, confidence in ((0, 0.9), (-1, 0.9), (math.inf, 0.9), (0.1, 0), (0.1, 1)):
        with pytest.raises(UsageError):
            repeats_for_sigma(error, confidence)


def test_so_many_repeats_are_as_precise_as_they_say() -> None:
    generator = np.random.default_rng(2)
    count = repeats_for_sigma(0.1, 0.9)
    drawn = generator.normal(size=(4000, count)).std(axis=1, ddof=1)
    assert np.mean(np.abs(drawn - 1) < 0.1) == pytest.approx(0.9, abs=0.02)
    assert sigma_half_width(count, 0.9) == pytest.approx(0.1, rel=0.01)
    few = repeats_for_mean(0.2, 0.9, 0.3)
    assert 5 <= few < 30
    runs = 1 + 0.3 * generator.normal(size=(4000, few))
    assert np.mean(np.abs(runs.mean(axis=1) - 1) < 0.2) >= 0.89
    assert repeats_for_mean(0.01, 0.9, 0.3) == math.ceil((stats.norm.ppf(0.95) * 30) ** 2)


@pytest.mark.parametrize(("peaks", "least"), [(0.0, 0.86), (0.02, 0.85), (0.25, 0.88)])
@pytest.mark.parametrize("error", [0.2, 0.1])
def test_two_peaks_take_more_than_two_runs(peaks: float, error: float, least: float) -> None:
    """Two runs at two peaks have either no standard deviation at all, or 1.4 times the true one."""
    generator = np.random.default_rng(7)
    kurtosis = (1 + 6 * peaks**2 + 3 * peaks**4) / (1 + peaks**2) ** 2
    count = repeats_for_sigma(error, 0.9, kurtosis)
    drawn = generator.choice([-1.0, 1.0], (4000, count))
    drawn += peaks * generator.normal(size=drawn.shape)
    ratio = drawn.std(axis=1, ddof=1) / math.sqrt(1 + peaks**2)
    assert np.mean(np.abs(ratio - 1) <= error) >= least


@pytest.mark.parametrize("relative", [0.3, 3.0])
def test_a_mean_below_nothing_takes_as_many_repeats(relative: float) -> None:
    assert repeats_for_mean(0.2, 0.9, -relative) == repeats_for_mean(0.2, 0.9, relative) > 2


def test_kurtosis_is_scipys() -> None:
    values = np.random.default_rng(4).exponential(size=50)
    few = (values.size + 1) / (values.size - 1)
    assert kurtosis_of(values) == pytest.approx(few * stats.kurtosis(values, fisher=False))
    assert kurtosis_of([1.0, 2.0] * 500) == pytest.approx(1.0, rel=0.01)
    assert kurtosis_of([1.0, 2.0, 3.0]) is None
    assert kurtosis_of([2.0] * 9) is None
    # Three times 0.1 is no three tenths, and no noise.
    assert kurtosis_of([0.1] * 9) is None
    assert kurtosis_of(1e-200 * values) == pytest.approx(kurtosis_of(values))


def test_the_curve_is_that_of_the_square_root_law() -> None:
    """1/sqrt(n) has come 75 % of the way from 10 to 40 after 25.6 runs, 90 % after 33.1."""
    runs = np.random.default_rng(5).normal(size=400)
    curve = curve_of_runs(runs, confidence=0.95, seed=1)
    assert curve.runs == tuple(range(10, 41))
    assert 24 <= curve.at_75 <= 27
    assert 31 <= curve.at_90 <= 35
    assert all(a >= b for a, b in zip(curve.half_widths, curve.half_widths[1:], strict=False))
    assert curve.half_widths[-1] == pytest.approx(1.96 / math.sqrt(80), rel=0.1)


def test_the_floor_is_what_normal_theory_says() -> None:
    """E|s/sigma - 1| is sqrt(2 / pi) / sqrt(2 (n - 1)) for many normal runs."""
    found = measured(grid(8, 8), np.ones(64), runs=100).measured
    assert noise_floor(found, 1) == pytest.approx(math.sqrt(2 / math.pi / 198), rel=0.06)


def test_the_map_of_a_known_sigma_is_as_good_as_its_runs_allow() -> None:
    points = grid(15, 12)
    sigma = np.exp(0.3 * points[:, 0] - 0.1 * points[:, 1] + np.sin(points[:, 1] / 3))
    found = measured(points, sigma, runs=30).measured
    validation = cross_validate(found, seed=1, rounds=2)
    assert validation.chosen == "Gaussian process"
    assert validation.error <= 1.3 * validation.floor
    names = [score.predictor for score in validation.scores]
    errors = [score.error for score in validation.scores]
    assert errors == sorted(errors)
    assert names.index("linear regression") > names.index("Delaunay log")


def test_a_near_double_of_a_level_does_no_harm() -> None:
    points = np.array([(a, b) for a in [*np.linspace(1, 3, 11), 3.001] for b in range(1, 9)], float)
    sigma = np.exp(2 * points[:, 0] + 0.2 * points[:, 1])
    prepared = measured(points, sigma, runs=30)
    assert prepared.notes == ("a: 3, 3.001 are nearly the same and count as 3",)
    assert len(prepared.measured) == 88
    assert prepared.measured.counts.max() == 60
    # The runs of both keep their own deviations: a difference of means is no noise.
    assert prepared.measured.sigma[-1] == pytest.approx(sigma[-1], rel=0.25)
    validation = cross_validate(prepared.measured, seed=1, rounds=2)
    assert validation.error <= 1.3 * validation.floor


def test_intervals_hold_as_many_unseen_configurations_as_they_say() -> None:
    """Of fresh configurations that took no part, 85 to 95 % lie within 90 % intervals."""
    generator = np.random.default_rng(9)
    held = total = 0
    for seed in range(6):
        points = generator.random((160, 2)) * 4
        sigma = np.exp(points[:, 0] + np.sin(2 * points[:, 1]))
        everything = measured(points, sigma, runs=20, seed=seed).measured
        known = everything.only(range(100))
        validation = cross_validate(known, seed=seed, rounds=1, only="Gaussian process")
        factor = conformal_factor(sorted_residuals(validation.predictions, known.sigma), 0.9)
        assert factor is not None
        predict = PREDICTORS["Gaussian process"](known.places, known.sigma)
        rest = np.arange(100, 160)
        predicted = bounded(predict(everything.places[rest]), known.sigma)
        ratio = np.abs(np.log(predicted / everything.sigma[rest]))
        held += int(np.sum(ratio <= math.log(factor)))
        total += 60
    assert 0.85 <= held / total <= 0.95


def test_too_few_residuals_give_no_interval() -> None:
    assert conformal_factor([0.1] * 8, 0.9) is None
    assert conformal_factor([0.1] * 8 + [0.2], 0.9) == pytest.approx(math.exp(0.2))
    assert conformal_factor([], 0.9) is None


def test_influences_are_those_of_a_balanced_analysis_of_variance() -> None:
    """The sums of squares written out for two crossed factors."""
    generator = np.random.default_rng(8)
    cube = np.array([(a, b, c) for a in range(4) for b in range(5) for c in range(6)], float)
    heights = cube[:, 0] + 0.5 * cube[:, 0] * cube[:, 1] + 0.1 * generator.normal(size=len(cube))
    base = generator.normal(size=12)
    base = (base - base.mean()) / base.std(ddof=1)
    runs = [100 + base * math.exp(height) for height in heights]
    prepared = prepare(("a", "b", "c"), cube, runs, [], where="t", seed=1)
    found = influences(prepared.measured)
    assert found is not None
    table = heights.reshape(4, 5, 6) - heights.mean()
    whole = np.sum(table**2)
    a, b = table.mean(axis=(1, 2)), table.mean(axis=(0, 2))
    both = table.mean(axis=2) - a[:, None] - b[None, :]
    shares = {term.parameters: term for term in found.terms}
    assert shares["a",].share == pytest.approx(30 * np.sum(a**2) / whole, rel=1e-6)
    assert shares["b",].share == pytest.approx(24 * np.sum(b**2) / whole, rel=1e-6)
    assert shares["a", "b"].share == pytest.approx(6 * np.sum(both**2) / whole, rel=1e-6)
    assert shares["a", "b"].degrees == 12
    assert sum(term.share for term in found.terms) + found.left == pytest.approx(1)
    left = found.left * whole / found.degrees_left
    f = 6 * np.sum(both**2) / 12 / left
    assert shares["a", "b"].p == pytest.approx(stats.f.sf(f, 12, found.degrees_left), rel=1e-6)
    assert shares["a",].factor == pytest.approx(math.exp(np.ptp(a)))
    assert shares["c",].p > 0.01
    assert found.terms[0].parameters == ("a",)


def test_chance_drives_nothing() -> None:
    found = [
        influences(measured(grid(), np.ones(30), runs=10, seed=seed).measured) for seed in range(40)
    ]
    assert all(one is not None for one in found)
    rare = [term.p < 0.05 for one in found if one is not None for term in one.terms]
    assert np.mean(rare) <= 0.12


def test_too_few_configurations_for_pairs_or_for_anything() -> None:
    def of(count: int, width: int):
        generator = np.random.default_rng(1)
        points = generator.random((count, width))
        runs = list(generator.normal(10, 1, (count, 8)))
        names = [f"p{number}" for number in range(width)]
        return influences(prepare(names, points, runs, [], where="t", seed=1).measured)

    alone = of(14, 6)
    assert alone is not None
    assert not alone.with_pairs
    assert of(10, 8) is None


def test_what_is_left_out_is_said() -> None:
    generator = np.random.default_rng(1)
    points = np.column_stack([grid(), np.full(30, 7.0)])
    runs = [one * generator.normal(size=6) for one in np.arange(1.0, 31)]
    runs[3] = np.ones(6)
    prepared = prepare((*NAMES, "nodes"), points, runs, [], where="t.csv", seed=1)
    assert prepared.notes == (
        "nodes is 7 in every row, so the map says nothing of other values",
        "all runs of 1 configuration are equal, which no logarithm can show; left out",
    )
    assert len(prepared.measured) == 29
    assert prepared.measured.fixed == {"nodes": 7.0}


def test_too_little_is_refused() -> None:
    with pytest.raises(NotComparableError, match=r"t\.csv: has one configuration, and a map"):
        measured(np.ones((1, 2)), [1.0])
    with pytest.raises(NotComparableError, match="has 9 configurations that vary"):
        measured(grid(3, 3), np.ones(9))
    with pytest.raises(NotComparableError, match="nothing varies"):
        measured(grid(), np.zeros(30))
    with pytest.raises(NotComparableError, match="nothing varies"):
        measured(grid(), np.full(30, 1e-80))


def test_equal_runs_are_no_noise_of_rounding() -> None:
    """The mean of 0.1, 0.1 and 0.1 is another number than 0.1."""
    assert np.full(3, 0.1).std() > 0
    with pytest.raises(NotComparableError, match="nothing varies"):
        prepare(NAMES, grid(), [np.full(3, 0.1)] * 30, [], where="t.csv", seed=1)


def test_of_very_many_configurations_some_are_drawn() -> None:
    generator = np.random.default_rng(1)
    points = generator.random((MOST_CONFIGURATIONS + 50, 2))
    prepared = measured(points, np.ones(len(points)), runs=3)
    assert len(prepared.measured) == MOST_CONFIGURATIONS
    assert prepared.notes[-1].startswith("of 1050 configurations, 1000 drawn at random are used")


@pytest.mark.parametrize("runs", [5, 10, 30])
def test_normal_noise_of_a_few_runs_plans_enough(runs: int) -> None:
    """As 200 configurations show their noise, 10 % are reached with 90 % confidence: with ten runs
    of each it was by 78 runs, with 79 %.
    """
    generator = np.random.default_rng(6)
    known = [kurtosis_of(generator.normal(size=runs)) for _ in range(200)]
    count = repeats_for_sigma(0.1, 0.9, float(np.median([one for one in known if one is not None])))
    ratio = generator.normal(size=(4000, count)).std(axis=1, ddof=1)
    assert np.mean(np.abs(ratio - 1) <= 0.1) >= 0.86
