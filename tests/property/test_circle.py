"""Comparison modulo a period against exact arithmetic: no element is missed, none is made up."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.arrays.values import ArrayValues, MaskedValues
from ciwrap.base.errors import PeriodError
from ciwrap.check.judge import compare_values
from ciwrap.check.other_bounds import Circle
from ciwrap.model import ErrorBound, VariableId, VariableResult, VariableSettings, Verdict

X = VariableId("x")
FILLS = (-999.0, float("nan"))


def differs(g: float, v: float, period: float, atol: float, settings: VariableSettings) -> bool:
    """|v - g| modulo the period, over the reals."""

    def is_missing(x: float) -> bool:
        return any(x == fill or (x != x and fill != fill) for fill in settings.fill_values)

    if is_missing(g) or is_missing(v):
        return is_missing(g) != is_missing(v)
    if math.isnan(g) or math.isnan(v):
        return not (settings.equal_nan and math.isnan(g) and math.isnan(v))
    if math.isinf(g) or math.isinf(v):
        return g != v
    raw = Fraction(v) - Fraction(g)
    if period:
        raw -= round(raw / Fraction(period)) * Fraction(period)
    return abs(raw) > Fraction(atol)


@st.composite
def pairs(draw: st.DrawFn, period: float, atol: float) -> tuple[float, float]:
    """A value and another, which is near the bound modulo the period, or special."""
    special = st.sampled_from([0.0, 1.0, -999.0, np.nan, np.inf, -np.inf, 5e-324, 1e300])
    g = draw(st.floats(-50, 50) | special)
    if not math.isfinite(g) or draw(st.integers(0, 9)) == 0:
        return g, draw(special | st.just(g))
    turns = draw(st.integers(-3, 3)) * period
    v = g + draw(st.sampled_from([-1.0, -0.5, 0.0, 0.9, 1.0, 1.1])) * atol + turns
    for _ in range(draw(st.integers(0, 2))):
        v = math.nextafter(v, draw(st.sampled_from([-math.inf, math.inf])))
    return g, v


@given(st.data())
def test_a_circle_agrees_with_exact_arithmetic(data: st.DataObject) -> None:
    periods = data.draw(
        st.lists(st.sampled_from([0.0, 0.7, 1.0, 2 * math.pi, 10.0, 0.1]), min_size=1, max_size=3)
    )
    smallest = min((one for one in periods if one), default=8.0)
    atol = data.draw(st.sampled_from([0.0, 1e-9, 0.01 * smallest, 0.4 * smallest]))
    settings = VariableSettings(
        bound=ErrorBound(atol),
        period=tuple(periods),
        equal_nan=data.draw(st.booleans()),
        fill_values=data.draw(st.sampled_from([(), FILLS[:1], FILLS])),
    )
    rows = data.draw(st.integers(1, 5))
    at = periods * rows
    both = [data.draw(pairs(period, atol)) for period in at]
    g, v = (np.array(side).reshape(rows, len(periods)) for side in zip(*both, strict=True))
    result = compare_values(ArrayValues(g), ArrayValues(v), settings, X)
    wanted = [
        flat
        for flat, (one, other) in enumerate(both)
        if differs(one, other, at[flat], atol, settings)
    ]
    assert result.differing_count == len(wanted)
    first = [tuple(map(int, np.unravel_index(flat, g.shape))) for flat in wanted[:10]]
    assert [one.index for one in result.first_differences] == first
    assert [one.golden for one in result.first_differences] == [
        repr(both[flat][0]) for flat in wanted[:10]
    ]
    assert [one.new for one in result.first_differences] == [
        repr(both[flat][1]) for flat in wanted[:10]
    ]


def compare(g: Any, v: Any, period: Any, atol: float = 0.01, **more: Any) -> VariableResult:
    settings = VariableSettings(bound=ErrorBound(atol), period=period, **more)
    return compare_values(ArrayValues(np.asarray(g)), ArrayValues(np.asarray(v)), settings, X)


def test_what_is_told_of_a_circle() -> None:
    g = np.array([[0.01, 5.0], [9.99, 5.0], [5.0, 5.0]])
    v = np.array([[9.99, 5.0], [0.01, 5.5], [5.0, 5.001]])
    result = compare(g, v, (10.0, 2.0), 0.1)
    assert (result.verdict, result.differing_count) == (Verdict.DIFFER, 1)
    assert (result.first_index, result.period) == ((1, 1), (10.0, 2.0))
    assert result.max_abs_difference == 0.5
    assert result.max_abs_index == (1, 1)
    assert result.mean_abs_difference == pytest.approx((0.02 + 0.02 + 0.5 + 0.001) / 6)
    assert result.max_bound_share == pytest.approx(5)
    assert result.bound_share_histogram is not None
    assert sum(result.bound_share_histogram) == 6
    assert (result.max_rel_difference, result.max_rel_index) == (None, None)
    assert (result.mean_rel_difference, result.masked_count) == (None, None)
    assert result.bound == ErrorBound(0.1)


@given(
    st.floats(-1e18, 1e18),
    st.floats(-1e18, 1e18) | st.floats(-1e-3, 1e-3),
    st.sampled_from([0.1, 0.7, 1.0, 2 * math.pi, 10.0, 1e-300, 1e300]),
)
def test_the_difference_that_is_told_is_right_however_many_turns_there_are(
    g: float, v: float, period: float
) -> None:
    result = compare([g, 1.0], [v, 1.0], (period,), 1e-6 * period)
    raw = Fraction(v) - Fraction(g)
    wanted = float(abs(raw - round(raw / Fraction(period)) * Fraction(period)))
    assert result.max_abs_difference == pytest.approx(wanted, rel=2.3e-16, abs=5e-324)


@pytest.mark.parametrize("seed", range(8))
def test_of_many_turns_what_is_left_is_rounded_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    period = float(10 ** random.uniform(-3, 3))
    turns = random.integers(-(10**6), 10**6, size=500)
    golden = random.normal(size=500) * 10 ** random.uniform(-3, 3, size=500)
    left = random.uniform(-0.49, 0.49, size=500) * 10 ** -random.uniform(0, 8, size=500)
    new = golden + (turns + left) * period
    settings = VariableSettings(bound=ErrorBound(1e-3 * period), period=(period,))
    _, moved = Circle("<f8", (500,), settings).differences(golden, new, 0)
    for g, v, told in zip(golden.tolist(), new.tolist(), moved.tolist(), strict=True):
        raw = Fraction(v) - Fraction(g)
        exact = raw - round(raw / Fraction(period)) * Fraction(period)
        assert abs(Fraction(told) - exact) <= abs(exact) * Fraction(1.3e-16)


def test_many_turns_do_not_make_a_difference_0() -> None:
    g, v = np.float32([1007340683264.0]), np.float32([1007340617728.0])
    raw = Fraction(-65536)
    wanted = float(abs(raw - round(raw / Fraction(0.1)) * Fraction(0.1)))
    result = compare(g, v, (0.1,), 1e-3)
    assert (result.verdict, result.max_abs_difference) == (Verdict.MATCH, wanted)
    assert result.max_drift_share == wanted / 1e-3


def test_a_component_without_a_period_is_decided_at_the_bound() -> None:
    result = compare([[0.0, 0.0], [0.0, 0.0]], [[0.9, 1e-9], [0.5, 2e-9]], (1.0, 0.0), 1e-9)
    assert [one.index for one in result.first_differences] == [(0, 0), (1, 0), (1, 1)]


def test_each_component_has_its_own_period() -> None:
    g, v = np.zeros((2, 3)), np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 2.0]])
    result = compare(g, v, (1.0, 2.0, 5.0))
    assert [one.index for one in result.first_differences] == [(1, 2)]


def test_a_difference_of_one_is_decided_like_any_other() -> None:
    """3 * 0.3 rounds: in doubles 1 and 0 are 0.10000000000000009 apart, in truth 5e-17 less."""
    assert compare([0.0], [1.0], (0.3,), 0.10000000000000005).differing_count == 0
    assert compare([0.0], [1.0], (0.3,), 0.10000000000000002).differing_count == 1


LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize(
    "period", [LARGEST, LARGEST / 3, LARGEST / 3 * 2, 1e308, 3.0, 1e-200, 5e-323, 0.7]
)
@pytest.mark.parametrize(
    ("g", "v"), [(-LARGEST, LARGEST), (LARGEST, -LARGEST), (0.0, 1.0), (1e300, -3.0)]
)
def test_differences_beyond_doubles_are_decided(g: float, v: float, period: float) -> None:
    """Where v - g overflows, or the number of periods between them."""
    atol = min(0.1, period / 4)
    result = compare([g], [v], (period,), atol)
    assert result.differing_count == differs(g, v, period, atol, VariableSettings())
    assert (result.nan_mismatch_count, result.inf_mismatch_count) == (0, 0)
    assert result.missing_mismatch_count == 0


@pytest.mark.parametrize("v", [LARGEST, -LARGEST])
@pytest.mark.parametrize("g", [0.0, 1e300, LARGEST])
def test_large_differences_without_a_period_are_differences(g: float, v: float) -> None:
    """Also the one that is as large as a double can be."""
    result = compare([[0.0, g]], [[0.0, v]], (1.0, 0.0), 0.1)
    plain = compare([g], [v], (), 0.1)
    assert result.differing_count == plain.differing_count
    assert result.max_abs_difference == plain.max_abs_difference
    assert result.max_bound_share == plain.max_bound_share
    assert (result.inf_mismatch_count, result.missing_mismatch_count) == (0, 0)


@pytest.mark.parametrize("special", [-999.0, math.nan, math.inf])
@pytest.mark.parametrize("number", [LARGEST, -LARGEST, 2.0])
def test_no_number_stands_for_a_missing_one(special: float, number: float) -> None:
    for g, v in ((special, number), (number, special)):
        result = compare([g, g], [v, g], (1.0,), fill_values=(-999.0,))
        told = (
            result.missing_mismatch_count,
            result.nan_mismatch_count,
            result.inf_mismatch_count,
        )
        assert result.differing_count == 1
        assert told == (special == -999.0, math.isnan(special), math.isinf(special))


def test_of_a_difference_on_a_circle_nothing_is_told_in_floats() -> None:
    (one,) = compare([359.99, 1.0], [0.5, 1.0], (360.0,), 0.1).first_differences
    assert one.abs_difference == pytest.approx(0.51)
    assert (one.rel_difference, one.ulps) == (None, None)


@pytest.mark.parametrize("fills", [FILLS, FILLS[::-1]])
def test_any_of_several_values_stands_for_missing(fills: tuple[float, ...]) -> None:
    g, v = np.array([-999.0, np.nan, 1.0, np.nan]), np.array([np.nan, -999.0, np.nan, 1.0])
    result = compare(g, v, (1.0,), fill_values=fills, equal_nan=False)
    assert (result.differing_count, result.missing_mismatch_count) == (2, 2)
    assert result.nan_mismatch_count == 0


def test_missing_values_on_a_circle() -> None:
    g, v = np.array([-999.0, 1.0, -999.0]), np.array([-999.0, -999.0, 1.0])
    result = compare(g, v, (1.0,), fill_values=(-999.0,))
    assert (result.differing_count, result.missing_mismatch_count) == (2, 2)


def test_a_mask_on_a_circle() -> None:
    mask = ArrayValues(np.array([True, False, False]))
    sides = [
        MaskedValues(ArrayValues(np.array([first, 0.0, 0.5])), mask, "land") for first in (0.2, 0.7)
    ]
    settings = VariableSettings(bound=ErrorBound(0.01), period=(1.0,), mask="land")
    result = compare_values(sides[0], sides[1], settings, X)
    assert (result.verdict, result.masked_count) == (Verdict.MATCH, 1)


@pytest.mark.parametrize(
    ("dtype", "shape", "period", "bound", "text"),
    [
        ("<c16", (3,), (1.0,), ErrorBound(0.1), "dtype <c16 cannot be compared modulo"),
        ("<i8", (3,), (9.0,), ErrorBound(1), "dtype <i8 cannot be compared modulo"),
        ("|S3", (3,), (9.0,), ErrorBound(), "cannot be compared modulo"),
        ("<f8", (3,), (1.0,), ErrorBound(0.1, 0.1), "rtol and ulps mean nothing"),
        ("<f8", (3,), (1.0,), ErrorBound(ulps=3), "rtol and ulps mean nothing"),
        ("<f8", (3,), (1.0,), ErrorBound(0.5), "atol=0.5 is half a period or more"),
        ("<f8", (3, 2), (4.0, 0.5), ErrorBound(0.25), "is half a period or more"),
        ("<f8", (3, 2), (1.0, 0.0), ErrorBound(0.5), "is half a period or more"),
        ("<f8", (2, 3), (1.0, 2.0), ErrorBound(0.1), "has 2 periods"),
        ("<f8", (), (1.0, 2.0), ErrorBound(0.1), "has 2 periods"),
    ],
)
def test_what_a_period_means_nothing_for(
    dtype: str, shape: tuple[int, ...], period: Any, bound: ErrorBound, text: str
) -> None:
    with pytest.raises(PeriodError, match=text):
        Circle(dtype, shape, VariableSettings(bound=bound, period=period))


def test_what_a_period_means_something_for() -> None:
    Circle("<f8", (3, 2), VariableSettings(bound=ErrorBound(0.4999), period=(1.0, 0.0)))
    Circle("<f8", (2, 3, 2), VariableSettings(bound=ErrorBound(0.1), period=(1.0, 2.0)))
    Circle("<f8", (2,), VariableSettings(bound=ErrorBound(7.0), period=(0.0,)))
    Circle("|u1", (), VariableSettings(bound=ErrorBound(1, 0.1), period=(9.0,)))
    settings = VariableSettings(period=(1.0,), equal_nan=False, chunk_bytes=128)
    parameters = Circle("<f4", (3,), settings).parameters
    assert (parameters.dtype, parameters.equal_nan, parameters.chunk_bytes) == ("<f8", False, 128)
