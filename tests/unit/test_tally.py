"""What variables on one side only, and those that are ignored, do to a check's result."""

from __future__ import annotations

import pytest

from ciwrap.arrays.values import Signature
from ciwrap.catalog.rules import Rules
from ciwrap.compare.law import begun
from ciwrap.compare.outcome import Outcome
from ciwrap.compare.tally import GOLDEN, check_result
from ciwrap.errors import CorruptFileError
from ciwrap.model import (
    CheckResult,
    MessageLevel,
    StrictVariables,
    VariableId,
    VariableResult,
    VariableSettings,
    Verdict,
)

OLD, NEW, A = VariableId("old"), VariableId("new"), VariableId("a")
MATCHING = VariableResult("x", verdict=Verdict.MATCH, element_count=1, differing_count=0)
PLAIN = Signature("<f8", (1,))
BOTH, ALLOW_NEW, NONE = StrictVariables


def outcome(*, missing: bool = False, extra: bool = False) -> Outcome:
    return Outcome(
        results=[MATCHING],
        missing=[begun(OLD, PLAIN, None)] if missing else [],
        extra=[begun(NEW, None, PLAIN)] if extra else [],
    )


def result(strict: StrictVariables, found: Outcome) -> CheckResult:
    def is_ignored(identity: VariableId) -> bool:
        raise AssertionError(identity)  # that has been asked before

    def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
        raise AssertionError((identity, dtype))

    return check_result("c", found, Rules(settings_for, is_ignored, strict), GOLDEN)


@pytest.mark.parametrize(
    ("strict", "missing", "extra", "verdict", "left_out", "levels"),
    [
        (BOTH, False, False, Verdict.MATCH, (), []),
        (BOTH, True, False, Verdict.NOT_COMPARABLE, (), []),
        (BOTH, False, True, Verdict.NOT_COMPARABLE, (), []),
        (ALLOW_NEW, True, False, Verdict.NOT_COMPARABLE, (), []),
        (ALLOW_NEW, False, True, Verdict.MATCH, (), [MessageLevel.NOTE]),
        (ALLOW_NEW, True, True, Verdict.NOT_COMPARABLE, (), [MessageLevel.NOTE]),
        (NONE, True, False, Verdict.MATCH, (OLD,), [MessageLevel.WARNING]),
        (NONE, False, True, Verdict.MATCH, (), [MessageLevel.WARNING]),
    ],
)
def test_variables_on_one_side(
    strict: StrictVariables,
    missing: bool,
    extra: bool,
    verdict: Verdict,
    left_out: tuple[VariableId, ...],
    levels: list[MessageLevel],
) -> None:
    found = result(strict, outcome(missing=missing, extra=extra))
    assert found.verdict is verdict
    assert found.missing_variables == ((OLD,) if missing else ())
    assert found.extra_variables == ((NEW,) if extra else ())
    assert found.left_out_variables == left_out
    assert [message.level for message in found.messages] == levels


def test_what_is_ignored_is_left_out_if_the_golden_holds_it() -> None:
    found = outcome(missing=True)
    found.ignored = [NEW, A]
    found.left_out = [A]
    told = result(NONE, found)
    assert told.ignored_variables == (A, NEW)
    assert told.left_out_variables == (A, OLD)


@pytest.mark.parametrize("strict", StrictVariables)
def test_nothing_compared_is_no_match(strict: StrictVariables) -> None:
    assert result(strict, Outcome(ignored=[A], left_out=[A])).verdict is Verdict.NOT_COMPARABLE
    found = outcome(missing=True, extra=True)
    found.results = []
    assert result(strict, found).verdict is Verdict.NOT_COMPARABLE


def test_an_error_is_not_comparable_whatever_matches() -> None:
    found = outcome(missing=True)
    found.errors = [CorruptFileError("is cut off")]
    told = result(NONE, found)
    assert told.verdict is Verdict.NOT_COMPARABLE
    assert "that could be read" in told.messages[-1].text
