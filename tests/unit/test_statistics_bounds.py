"""What a few runs say of the next one, and the bound that follows."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.model.settings import two_digits_above
from ciwrap.statistics.spread import (
    Differences,
    far_ones,
    rounded_up,
    safety_factor,
    share_within,
    suggest_bound,
    unequal_run_limit,
)


@pytest.mark.parametrize(("runs", "percent"), [(10, 28), (30, 10)])
def test_equal_runs_leave_a_chance_that_is_stated(runs: int, percent: int) -> None:
    assert round(100 * unequal_run_limit(runs)) == percent


@pytest.mark.parametrize("runs", [2, 3, 10, 59])
def test_the_limit_is_the_exact_binomial_one(runs: int) -> None:
    """Clopper and Pearson's one-sided interval for no success in N - 1 trials."""
    exact = scipy.stats.beta.ppf(0.95, 1, runs - 1)
    assert unequal_run_limit(runs) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("comparisons", [3, 9, 59, 299])
def test_the_share_is_the_quantile_of_the_largest_of_uniform_ones(comparisons: int) -> None:
    exact = scipy.stats.beta.ppf(0.05, comparisons, 1)
    assert share_within(comparisons) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("comparisons", "factor"), [(0, None), (2, None), (3, 5), (8, 5), (9, 3), (99, 3)]
)
def test_fewer_comparisons_take_a_larger_factor(comparisons: int, factor: int | None) -> None:
    assert safety_factor(comparisons) == factor


@pytest.mark.parametrize(
    ("value", "up"),
    [
        (3e-7, 5e-7),
        (1.0, 1.0),
        (1e-323, 1e-323),
        (0.2, 0.2),
        (3 * 1e-7 / 3, 1e-7),
        (5.1, 10.0),
        (9.99e99, 1e100),
    ],
)
def test_round_numbers(value: float, up: float) -> None:
    assert rounded_up(value) == up


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_rounding_up_is_the_next_of_1_2_and_5(value: float) -> None:
    found = rounded_up(value)
    assert Fraction(found) >= Fraction(value) * (1 - Fraction(1, 10**13))
    assert found / value < 2.5 * (1 + 1e-12)
    assert f"{found:.0e}"[0] in "125"
    assert float(f"{found:.0e}") == found


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_what_has_no_round_number(value: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        rounded_up(value)


def test_a_bound_is_absolute_where_a_value_is_zero() -> None:
    found = suggest_bound(Differences(9, 4e-7, 1e-9, median_magnitude=10.0, has_zeros=True))
    assert found is not None
    assert (found.atol, found.rtol, found.factor) == (2e-6, 0.0, 3)


def test_a_bound_is_relative_where_that_is_tighter_and_no_value_is_zero() -> None:
    found = suggest_bound(Differences(9, 4e-7, 1e-9, median_magnitude=10.0, has_zeros=False))
    assert found is not None
    assert (found.atol, found.rtol) == (0.0, 5e-9)


def test_a_bound_is_absolute_where_small_values_vary_as_much_as_large_ones() -> None:
    found = suggest_bound(Differences(4, 4e-7, 1.0, median_magnitude=10.0, has_zeros=False))
    assert found is not None
    assert (found.atol, found.rtol, found.factor) == (2e-6, 0.0, 5)


@pytest.mark.parametrize(
    "found",
    [
        Differences(2, 1e-7, 1e-7),
        Differences(9, 0.0, 0.0),
        Differences(9, math.inf, math.inf),
        Differences(9, 5e307, 5e307),  # rounded up, it is beyond all doubles
    ],
)
def test_nothing_is_suggested_without_a_ground(found: Differences) -> None:
    assert suggest_bound(found) is None


def test_a_program_that_counts_in_few_decimals() -> None:
    """Whoever calls us may have set a context that rounds, or that raises where something does."""
    with decimal.localcontext(decimal.Context(prec=1, traps=[decimal.Inexact, decimal.Rounded])):
        assert rounded_up(0.3) == 0.5
        assert rounded_up(99.0) == 100
        assert two_digits_above(0.12345) == 0.13
        assert two_digits_above(9.96) == 10


@pytest.mark.parametrize(
    ("sizes", "far"),
    [
        ((1.0, 2.0, 3.0, 4.0), set()),
        ((1.0, 2.0, 3.0, 30.0), {3}),
        ((3.0, 1.0, 2.0, 31.0, 33.0), {3, 4}),
        ((0.1, 0.2, 2.0, 3.0), set()),  # two near to the reference may be chance
        ((0.0, 0.0, 0.0, 3.0), set()),
        ((1.0,), set()),
        ((), set()),
    ],
)
def test_groups_of_sizes(sizes: tuple[float, ...], far: set[int]) -> None:
    assert far_ones(dict(enumerate(sizes))) == far
