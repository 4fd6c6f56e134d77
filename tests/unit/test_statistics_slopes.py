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


def test_chance_is_told_as_often_as_it_should() -> None:
    generator = np.random.default_rng(5)
    found = [slope_of(generator.random(12).tolist()) for _ in range(1000)]
    rare = sum(one is not None and one.p < 0.05 for one in found) / 1000
    assert 0.015 < rare <= 0.055  # few values of p are possible with 12 measurements


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
    values = np.random.default_rng(1).random(9)
    slope = slope_of(values.tolist())
    assert slope is not None
    assert slope.per_step == pytest.approx(stats.theilslopes(values).slope)
    assert slope.p == pytest.approx(stats.kendalltau(np.arange(9), values).pvalue)
