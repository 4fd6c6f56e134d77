"""The plain data: bounds, identities, verdicts, and results that refuse to be a false match."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.errors import InvalidBoundError
from ciwrap.model import (
    CheckResult,
    ChunkRange,
    DifferingElement,
    Divergence,
    DivergenceKind,
    EnsembleFacts,
    ErrorBound,
    RunResult,
    VariableId,
    VariableResult,
    Verdict,
    number_text,
)

FINITE = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@given(st.floats(allow_nan=False))
def test_number_text_reads_back(value: float) -> None:
    assert float(number_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"), [(1e-6, "1e-6"), (0.0, "0"), (1.0, "1"), (1e22, "1e22"), (0.001, "0.001")]
)
def test_number_text_is_short(value: float, text: str) -> None:
    assert number_text(value) == text


@given(FINITE, FINITE)
def test_bound_text_reads_back(atol: float, rtol: float) -> None:
    bound = ErrorBound(atol, rtol)
    assert ErrorBound.parse(bound.text) == bound


def test_bound_texts() -> None:
    assert ErrorBound(1e-6).text == "atol=1e-6 rtol=0"
    assert str(ErrorBound(ulps=4)) == "ulps=4"
    assert ErrorBound.parse("rtol=1e-3 atol=2") == ErrorBound(2, 1e-3)
    assert ErrorBound().is_exact
    assert not ErrorBound(ulps=1).is_exact


@pytest.mark.parametrize(
    "arguments",
    [
        {"atol": -1.0},
        {"atol": float("nan")},
        {"rtol": float("inf")},
        {"ulps": -1},
        {"ulps": 1.5},
        {"ulps": 1 << 63},
        {"ulps": 1, "atol": 1.0},
        {"ulps": 1, "rtol": 1.0},
        {"atol": "1"},
        {"atol": True},
        {"atol": 1j},
    ],
)
def test_bad_bounds_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidBoundError):
        ErrorBound(**arguments)


@pytest.mark.parametrize("text", ["1e-6", "atol", "atol=x", "atol=1 atol=2", "tol=1", "ulps=1.5"])
def test_bad_bound_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidBoundError):
        ErrorBound.parse(text)


def test_bounds_hold_plain_numbers() -> None:
    bound = ErrorBound(np.float32(0.5), np.float64(0), np.int64(0))
    assert (type(bound.atol), type(bound.rtol), type(bound.ulps)) == (float, float, int)
    assert str(ErrorBound(-0.0).atol) == "0.0"


def test_variables_are_ordered_as_a_history_is_read() -> None:
    ordered = [
        VariableId("z"),
        VariableId("a", rank=0),
        VariableId("b", iteration=2),
        VariableId("a", iteration=2, rank=0),
        VariableId("b", iteration=2, rank=0),
        VariableId("a", iteration=2, rank=1),
        VariableId("a", iteration=10, rank=0),
    ]
    shuffled = [*ordered[3:], *ordered[:3]]
    assert sorted(shuffled) == ordered
    assert VariableId("x", 10, 0).text == "iter 10 / rank 0 / x"
    assert str(VariableId("x")) == "x"


def test_the_worst_verdict_counts_and_nothing_is_no_match() -> None:
    match, undecided, differ, neither, consistent, inconsistent = Verdict
    assert Verdict.worst([match, match]) is match
    assert Verdict.worst([match, undecided]) is undecided
    assert Verdict.worst([match, differ, undecided]) is differ
    assert [one.is_alarm for one in Verdict] == [False, True, True, *[False] * 3]
    assert Verdict.worst([differ, neither, match]) is neither
    assert Verdict.worst([]) is neither
    assert [int(verdict.exit_code) for verdict in Verdict] == [0, 1, 1, 3, 0, 1]
    assert Verdict.worst([match, consistent]) is consistent
    assert Verdict.worst([inconsistent, consistent, match]) is inconsistent
    assert Verdict.worst([inconsistent, undecided, differ]) is differ
    assert Verdict.worst([inconsistent, undecided]) is undecided
    assert neither.words == "not comparable"


def matching(name: str = "x") -> VariableResult:
    return VariableResult(name, Verdict.MATCH, differing_count=0)


def test_a_verdict_on_statistics_belongs_to_an_ensemble_and_to_nothing_else() -> None:
    facts = EnsembleFacts(members=60, runs=3, features=2, rate=0.01, p=0.5)
    assert CheckResult("air", Verdict.CONSISTENT, ensemble=facts).coverage.compared == (
        "compared the statistics of 1 check, no values"
    )
    too_small = EnsembleFacts(members=9, runs=3, features=2, rate=0.01, more_members=11)
    CheckResult("air", Verdict.NOT_COMPARABLE, ensemble=too_small)
    for verdict, ensemble in (
        (Verdict.MATCH, facts),
        (Verdict.DIFFER, facts),
        (Verdict.CONSISTENT, None),
        (Verdict.INCONSISTENT, too_small),
    ):
        with pytest.raises(ValueError, match="does not fit its ensemble"):
            CheckResult("air", verdict, ensemble=ensemble)
    with pytest.raises(ValueError, match="which no variable has"):
        VariableResult("x", Verdict.CONSISTENT)


def test_results_cannot_be_a_false_match() -> None:
    for count in (None, 1):
        with pytest.raises(ValueError, match="a match with"):
            VariableResult("x", Verdict.MATCH, differing_count=count)
    with pytest.raises(ValueError, match="no reason"):
        VariableResult("x", Verdict.NOT_COMPARABLE)
    with pytest.raises(ValueError, match="not every variable"):
        CheckResult("c", Verdict.MATCH)
    differing = VariableResult("x", Verdict.DIFFER, differing_count=1)
    with pytest.raises(ValueError, match="not every variable"):
        CheckResult("c", Verdict.MATCH, (matching(), differing))
    with pytest.raises(ValueError, match="whose worst"):
        RunResult(Verdict.MATCH, ())
    with pytest.raises(ValueError, match="whose worst"):
        RunResult(Verdict.MATCH, (CheckResult("c", Verdict.DIFFER, (differing,)),))


def test_first_divergence_is_the_earliest_in_the_history() -> None:
    element = DifferingElement((3,), "1.0", "2.0")
    late = VariableResult(
        "a", Verdict.DIFFER, iteration=10, differing_count=5, first_differences=(element,)
    )
    early = VariableResult("z", Verdict.DIFFER, iteration=9, differing_count=1)
    check = CheckResult("c", Verdict.DIFFER, (late, matching(), early))
    assert check.first_divergence == Divergence(DivergenceKind.DIFFER, early)
    assert check.first_divergence.element is None
    assert CheckResult("c", Verdict.DIFFER, (late,)).first_divergence.element is element
    assert CheckResult("c", Verdict.MATCH, (matching(),)).first_divergence is None
    run = RunResult(Verdict.DIFFER, (check,))
    assert run.verdict_counts == {
        Verdict.MATCH: 1,
        Verdict.UNDECIDED: 0,
        Verdict.DIFFER: 2,
        Verdict.NOT_COMPARABLE: 0,
    }
    assert run.verdict.exit_code == 1


@pytest.mark.parametrize("kind", ["missing", "extra", "not_comparable"])
def test_whatever_does_not_match_can_be_the_first(kind: str) -> None:
    """And it has no values, though a later variable has some."""
    element = DifferingElement((3,), "1.0", "2.0")
    bad = VariableResult("z", Verdict.NOT_COMPARABLE, iteration=1, reason="why")
    late = VariableResult(
        "a", Verdict.DIFFER, iteration=2, differing_count=1, first_differences=(element,)
    )
    sides = {"missing": "missing_variables", "extra": "extra_variables"}
    more = {sides[kind]: (bad.id,)} if kind in sides else {}
    check = CheckResult("c", Verdict.NOT_COMPARABLE, (late, bad), **more)
    first, numeric = check.first_divergence, check.first_numeric_divergence
    assert first is not None
    assert (first.variable, first.kind.value, first.element) == (bad, kind, None)
    assert numeric is not None
    assert (numeric.variable, numeric.kind.value, numeric.element) == (late, "differ", element)


def test_only_several_iterations_make_a_history() -> None:
    def check(*iterations: int | None) -> CheckResult:
        made = (VariableResult("x", Verdict.MATCH, one, differing_count=0) for one in iterations)
        return CheckResult("c", Verdict.MATCH, tuple(made))

    assert check(1, 2).is_history
    assert not check(1, 1).is_history
    assert not check(None, 1).is_history


def test_drift_share_is_the_largest_known() -> None:
    one = VariableResult("a", Verdict.MATCH, differing_count=0, max_drift_share=0.25)
    two = VariableResult("b", Verdict.MATCH, differing_count=0, max_bound_share=0.5)
    check = CheckResult("c", Verdict.MATCH, (one, two, matching()))
    assert check.max_drift_share == 0.5
    assert CheckResult("c", Verdict.MATCH, (matching(),)).max_drift_share is None


def test_results_can_be_sent_between_processes() -> None:
    check = CheckResult("c", Verdict.MATCH, (matching(),))
    assert pickle.loads(pickle.dumps(check)) == check
    assert ChunkRange(5, 9).element_count == 5
