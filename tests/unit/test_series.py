"""Pairing by steps, and bounds of which both parts have to hold or either, against plain Python."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import compare_values
from ciwrap.check.texts import pair_steps
from ciwrap.model import ErrorBound, VariableId, VariableSettings, Verdict

STEPS = st.lists(st.integers(-1, 5), max_size=9)
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 100.0, 1e-3]),
    st.floats(-1e3, 1e3),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
)


@settings(max_examples=examples(300))
@given(STEPS, STEPS)
def test_each_step_is_paired_with_its_namesake_in_order(ours: list[int], theirs: list[int]) -> None:
    waiting = defaultdict(list)
    for at, step in enumerate(theirs):
        waiting[step].append(at)
    expected = [(at, waiting[step].pop(0)) for at, step in enumerate(ours) if waiting[step]]
    found = pair_steps(np.array(ours, dtype=np.int64), np.array(theirs, dtype=np.int64))
    assert list(zip(found.ours.tolist(), found.theirs.tolist(), strict=True)) == expected
    left = {at for at, _ in expected}, {at for _, at in expected}
    assert found.only_ours.tolist() == [at for at in range(len(ours)) if at not in left[0]]
    assert found.only_theirs.tolist() == [at for at in range(len(theirs)) if at not in left[1]]


def differs(golden: float, new: float, atol: float, rtol: float, combine: str) -> bool:
    """The contract, with the larger or the smaller part of the bound in place of their sum."""
    if golden == new or (golden != golden and new != new):
        return False
    if not np.isfinite([golden, new]).all():
        return True
    parts = Fraction(atol), Fraction(rtol) * abs(Fraction(golden))
    bound = min(parts) if combine == "both" else max(parts)
    return abs(Fraction(new) - Fraction(golden)) > bound


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([0.0, 1e-3, 0.5, 0.9, 1.1])), min_size=1),
    st.sampled_from([0.0, 1e-3, 1.0]),
    st.sampled_from([0.0, 1e-3, 0.5]),
    st.sampled_from(["both", "either"]),
)
def test_combined_bounds(
    pairs: list[tuple[float, float, float]], atol: float, rtol: float, combine: str
) -> None:
    golden = [one for one, _, _ in pairs]
    # Some beside each other, some near the bound.
    new = [other if not near else one + near * atol for one, other, near in pairs]
    expected = [
        at
        for at, (one, other) in enumerate(zip(golden, new, strict=True))
        if differs(one, other, atol, rtol, combine)
    ]
    rules = VariableSettings(bound=ErrorBound(atol=atol, rtol=rtol), combine=combine)
    result = compare_values(
        ArrayValues(np.array(golden)), ArrayValues(np.array(new)), rules, VariableId("x")
    )
    assert result.verdict is (Verdict.DIFFER if expected else Verdict.MATCH)
    assert result.differing_count == len(expected)
    assert result.first_index == ((expected[0],) if expected else None)
    # Nobody knows how many pairs of numbers there are once a number stands on one side alone.
    lost = any(
        one != other and not (one != one and other != other) and not np.isfinite([one, other]).all()
        for one, other in zip(golden, new, strict=True)
    )
    if lost:
        assert result.bound_share_histogram is None
    else:
        assert result.bound_share_histogram is not None
        assert sum(result.bound_share_histogram) == len(pairs)


def test_parts_of_a_bound_that_are_rounded_to_one_number() -> None:
    """The product is above atol by less than a double tells, and the difference lies between."""
    golden, new, atol, rtol = (
        1.2379646270918914,
        1239.8763282489292,
        1238.6383636218372,
        1000.5442292252959,
    )
    assert rtol * golden == atol
    for combine, verdict in (("both", Verdict.DIFFER), ("either", Verdict.MATCH)):
        assert differs(golden, new, atol, rtol, combine) == (verdict is Verdict.DIFFER)
        rules = VariableSettings(bound=ErrorBound(atol=atol, rtol=rtol), combine=combine)
        sides = (ArrayValues(np.array([one])) for one in (golden, new))
        assert compare_values(*sides, rules, VariableId("x")).verdict is verdict


@pytest.mark.parametrize(("combine", "verdict"), [("both", "differ"), ("either", "match")])
def test_whole_numbers_have_no_relative_part(combine: str, verdict: str) -> None:
    rules = VariableSettings(bound=ErrorBound(atol=1, rtol=0.5), combine=combine)
    sides = (ArrayValues(np.array([one])) for one in (100, 101))
    assert compare_values(*sides, rules, VariableId("n")).verdict.value == verdict
