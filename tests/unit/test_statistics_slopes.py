"""Whether a series goes up, against SciPy and by simulation with stated seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ciwrap.statistics.change_points import (
    LEAST_POINTS,
    Slope,
    least_points,
    rare_ones,
    slope_of,
)


def test_a_line_is_found_exactly() -> None:
    slope = slope_of([0.1 + 0.02 * step for step in range(8)])
    assert slope is not None
    assert (slope.per_step, slope.level) == pytest.approx((0.02, 0.24))
    assert slope.p < 0.001
    assert slope.steps_until(1.0) == 38
    assert slope.steps_until(0.2) == 0


def test_one_wild_value_does_not_matter() -> None:
    values = [0.1 + 0.02 * step for step in range(20)]
    values[6] = 5.0
    slope = slope_of(values)
    assert slope is not None
    assert slope.per_step == pytest.approx(0.02, rel=0.05)


def dependent(generator: np.random.Generator, count: int, memory: float) -> list[float]:
    """Noise of which each value keeps a share of the one before."""
    noise = generator.normal(size=count + 50)
    for at in range(1, noise.size):
        noise[at] = memory * noise[at - 1] + np.sqrt(1 - memory**2) * noise[at]
    found: list[float] = (0.3 + 0.02 * noise[50:]).tolist()
    return found


@pytest.mark.parametrize(("memory", "most"), [(0.0, 0.02), (0.6, 0.05)])
@pytest.mark.parametrize("count", [12, 30])
def test_noise_makes_no_trend_even_if_it_remembers(memory: float, most: float, count: int) -> None:
    """Six variables at 1 %, 200 times."""
    generator = np.random.default_rng((5, count))
    false = 0
    for _ in range(200):
        slopes = [slope_of(dependent(generator, count, memory)) for _ in range(6)]
        false += any(rare_ones([1.0 if one is None else one.p for one in slopes], 0.01))
    assert false / 200 <= most


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("levels", [(0.3, 0.7), (0.3, 0.5, 0.7), (0.7, 0.3)])
def test_steps_are_no_slope(levels: tuple[float, ...], noise: float) -> None:
    """8 results, then 11: one commit that moves the level, and nothing that grows."""
    generator = np.random.default_rng(3)
    values = np.repeat(levels, (8, 11, 6)[: len(levels)])
    values = values + noise * generator.normal(size=values.size)
    assert slope_of(values.tolist()) is None


def test_what_no_longer_rises_has_no_slope() -> None:
    values = [0.1 + 0.02 * step for step in range(14)]
    assert slope_of([*values, *[0.36, 0.355, 0.35, 0.345, 0.34, 0.335, 0.33]]) is None


@pytest.mark.parametrize("power", [1, 2])
def test_what_rises_ever_faster_rises(power: int) -> None:
    noise = np.random.default_rng(1).normal(size=30)
    slope = slope_of((0.1 + 0.5 * np.linspace(0, 1, 30) ** power + 0.01 * noise).tolist())
    assert slope is not None
    assert slope.p < 0.01


def test_what_has_no_slope() -> None:
    assert slope_of([0.5] * 20) is None
    assert slope_of([0.1, 0.2, 0.3, 0.4][: LEAST_POINTS - 1]) is None
    # One step up, which is no accident, and no rise with each measurement either.
    assert slope_of([0.1] * 17 + [0.2] * 8) is None
    assert Slope(0.0, 0.5, 1.0).steps_until(1.0) is None
    assert Slope(-0.1, 0.5, 0.001).steps_until(1.0) is None


@pytest.mark.parametrize("tests", [1, 3, 4, 25, 26, 300])
def test_how_many_measurements_can_show_a_trend(tests: int) -> None:
    """Those that rise all the time count among so many others, and one fewer would not."""
    least = least_points(0.01, tests)
    for count, is_told in ((least - 1, False), (least, True)):
        slope = slope_of([0.1 * step for step in range(count)])
        assert slope is not None
        assert rare_ones([slope.p, *[1.0] * (tests - 1)], 0.01)[0] is is_told


def test_holm_rejects_what_every_order_of_testing_would() -> None:
    """The closure principle: a test counts if every set of tests that holds it is rejected by
    Bonferroni.
    """
    from itertools import combinations

    generator = np.random.default_rng(3)
    for _ in range(50):
        chances = (generator.random(5) ** 3).tolist()
        expected = [
            all(
                min(chances[one] for one in group) <= 0.05 / size
                for size in range(1, 6)
                for group in combinations(range(5), size)
                if position in group
            )
            for position in range(5)
        ]
        assert rare_ones(chances, 0.05) == expected
    assert rare_ones([], 0.05) == []


def test_the_slope_is_scipys() -> None:
    values = np.linspace(0, 1, 9) + 0.1 * np.random.default_rng(1).random(9)
    slope = slope_of(values.tolist())
    assert slope is not None
    assert slope.per_step == pytest.approx(stats.theilslopes(values).slope)
    assert slope.p >= stats.kendalltau(np.arange(9), values).pvalue
