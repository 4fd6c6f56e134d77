"""How far run times lie apart, against enumeration, SciPy and simulation."""

from __future__ import annotations

import itertools
import statistics
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from ciwrap.base.errors import NotAvailableError, UsageError
from ciwrap.statistics.spread import (
    count_modes,
    expected_makespan,
    makespan,
    median_interval,
    spread_of,
    waste,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = [1.0, 1.2, 1.1, 1.5, 1.05, 1.3, 0.9, 1.15]


def test_the_plain_figures() -> None:
    found = spread_of(TIMES, seed=0)
    assert found.count == 8
    assert found.median == statistics.median(TIMES)
    assert found.mean == pytest.approx(statistics.mean(TIMES))
    assert (found.minimum, found.maximum) == (0.9, 1.5)
    assert found.range == pytest.approx((1.5 - 0.9) / 0.9)
    assert found.iqr == pytest.approx(stats.iqr(TIMES) / statistics.median(TIMES))
    assert found.cov == pytest.approx(stats.variation(TIMES, ddof=1))
    assert found.modes is None


def test_one_time_says_little() -> None:
    found = spread_of([2.0], seed=0)
    assert (found.median, found.range, found.iqr) == (2.0, 0.0, 0.0)
    assert (found.cov, found.autocorrelation, found.median_lower) == (None, None, None)


@pytest.mark.parametrize("count", [*range(1, 30), 100, 301])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_interval_of_the_median_is_the_narrowest_that_is_sure(
    count: int, confidence: float
) -> None:
    """Of the sorted times 0, 1, 2, ...: counted with whole numbers."""

    def covered(beyond: int) -> float:
        missed = 2 * sum(comb(count, below) for below in range(beyond + 1))
        return float(1 - missed / 2**count) if beyond >= 0 else 1.0

    found = median_interval(np.arange(count) + 1.0, confidence)
    if found is None:
        assert covered(0) < confidence
        return
    lower, upper = found
    beyond = int(lower) - 1
    assert upper == count - beyond
    assert covered(beyond) >= confidence - 1e-12
    assert covered(beyond + 1) < confidence or beyond + 1 > (count - 1) // 2


def test_the_autocorrelation_of_a_process_that_remembers() -> None:
    generator = np.random.default_rng(4)
    noise = generator.normal(size=4000)
    for step in range(1, noise.size):
        noise[step] += 0.43 * noise[step - 1]
    found = spread_of(np.exp(0.1 * noise), seed=0).autocorrelation
    assert found == pytest.approx(0.43, abs=0.05)
    assert spread_of([1.0, 1.0, 1.0, 1.0], seed=0).autocorrelation is None
    alternating = spread_of([1.0, 2.0] * 50, seed=0).autocorrelation
    assert alternating == pytest.approx(-1, abs=0.02)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_expected_makespan_is_the_mean_over_all_groups(size: int) -> None:
    times = TIMES[:5]
    groups = [max(group) for group in itertools.product(times, repeat=size)]
    assert expected_makespan(times, size) == pytest.approx(statistics.mean(groups))


def test_makespan_and_waste() -> None:
    assert makespan([1.0, 3.0, 2.0]) == 3.0
    assert waste([1.0, 3.0, 2.0]) == pytest.approx(1 / 3)
    assert waste([2.0, 2.0]) == 0.0
    with pytest.raises(UsageError):
        expected_makespan([1.0], 0)
    for strange in ([], [0.0], [-1.0], [float("nan")], [[1.0]]):
        with pytest.raises(UsageError):
            spread_of(strange, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("draw", "wanted"),
    [
        (lambda g: np.exp(g.normal(0, 0.05, 40)), 1),
        (lambda g: 1 + g.exponential(0.1, 40), 1),
        (lambda g: 1 + 0.1 * g.random(40), 1),
        (lambda g: np.exp(0.02 * g.standard_t(2, 40)), 1),
        (lambda g: np.exp(g.normal(0, 0.02, 40)) * g.choice([1.0, 1.15], 40), 2),
        (lambda g: np.exp(g.normal(0, 0.02, 40)) * g.choice([1.0, 1.2], 40, p=[0.75, 0.25]), 2),
    ],
    ids=["normal", "exponential", "even", "heavy tails", "two groups", "one run in four"],
)
def test_two_groups_are_told_from_accidents(
    draw: Callable[[np.random.Generator], np.ndarray], wanted: int
) -> None:
    """200 sets of 40 times; seed 6."""
    generator = np.random.default_rng(6)
    found = [count_modes(draw(generator), generator) for _ in range(200)]
    assert sum(one == wanted for one in found) / 200 >= 0.96


def test_equal_times_are_one_group_and_few_times_tell_nothing() -> None:
    generator = np.random.default_rng(0)
    assert count_modes([1.0] * 30, generator) == 1
    assert count_modes([1.0, 2.0] * 9, generator) is None
    assert count_modes([1.0, 2.0] * 20, generator) == 2
    assert count_modes([1.0, 1.2] * 500, generator) == 2


def test_without_scipy_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(NotAvailableError, match=r"SciPy.*pip install scipy"):
        spread_of(TIMES, seed=0)
