"""What variables on one side only, and those that are ignored, do to a check's result."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ciwrap.arrays.values import Shaped, Signature
from ciwrap.base.errors import CorruptFileError
from ciwrap.check.findings import MOST_DETAILED_NAMES, DetailKeeper, check_result
from ciwrap.check.two_sides import GOLDEN, RUNS, Findings, uncompared
from ciwrap.formats.catalog import Rules
from ciwrap.model import (
    CheckResult,
    Details,
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

LOST = "as far as files could be read; first fix what the errors name"


def outcome(*, missing: bool = False, extra: bool = False) -> Findings:
    return Findings(
        results=[MATCHING],
        missing=[uncompared(OLD, PLAIN, None)] if missing else [],
        extra=[uncompared(NEW, None, PLAIN)] if extra else [],
    )


def result(strict: StrictVariables, found: Findings) -> CheckResult:
    def is_ignored(identity: VariableId) -> bool:
        raise AssertionError(identity)  # that has been asked before

    def settings_for(identity: VariableId, what: Shaped) -> VariableSettings:
        raise AssertionError((identity, what))

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
    assert result(strict, Findings(ignored=[A], left_out=[A])).verdict is Verdict.NOT_COMPARABLE
    found = outcome(missing=True, extra=True)
    found.results = []
    assert result(strict, found).verdict is Verdict.NOT_COMPARABLE


def test_an_error_is_not_comparable_whatever_matches() -> None:
    found = outcome(missing=True)
    found.errors = [CorruptFileError("is cut off")]
    told = result(NONE, found)
    assert told.verdict is Verdict.NOT_COMPARABLE
    assert "as far as files could be read" in told.messages[-1].text


def test_what_is_new_is_not_in_the_golden_whatever_else_cannot_be_read() -> None:
    """Errors are of the outputs: a golden that cannot be read is no side of a comparison."""
    found = outcome(extra=True)
    found.errors = [CorruptFileError("is cut off")]
    (reason,) = [one.reason for one in result(BOTH, found).variables if one.id == NEW]
    assert reason is not None
    assert reason.startswith("only in the outputs, not in the golden; accept the new outputs")


def test_what_is_told_besides() -> None:
    found = outcome(missing=True, extra=True)
    found.notes = ["twice", "twice", "once"]
    found.unused = ["it is damaged", "it is damaged"]
    found.errors = [CorruptFileError("is cut off", file="a.npy")]
    found.engine, found.capture_bytes_read, found.data_bytes_read = "pread", 3, 5
    rules = Rules(
        lambda *_: VariableSettings(), lambda _: False, strict_variables=StrictVariables.NONE
    )
    told = check_result("c", found, rules, RUNS, messages=["first of all"])
    assert [(message.level.value, message.text) for message in told.messages] == [
        ("warning", "first of all"),
        ("warning", "twice"),
        ("warning", "once"),
        ("warning", "a capture is not used: it is damaged"),
        ("error", "a.npy: is cut off"),
        (
            "warning",
            f"old: only in A, not in B, {LOST}",
        ),
        (
            "warning",
            f"new: only in B, not in A, {LOST}",
        ),
    ]
    assert [message.variable for message in told.messages[-2:]] == ["old", "new"]
    assert (told.name, told.engine, told.bytes_read) == ("c", "pread", 8)


def test_variables_on_one_side_have_the_reason_and_the_remedy() -> None:
    told = result(BOTH, outcome(missing=True, extra=True))
    assert {one.name: one.reason for one in told.variables if one.reason} == {
        "new": f"only in the outputs, not in the golden; {GOLDEN.if_extra}",
        "old": f"only in the golden, not in the outputs; {GOLDEN.if_missing}",
    }
    assert told.messages == ()


def test_nothing_compared_says_so() -> None:
    (message,) = result(NONE, Findings()).messages
    assert (message.level, message.text) == (
        MessageLevel.ERROR,
        "nothing was compared: no variable is on both sides and not ignored",
    )


def test_results_are_in_the_order_of_checkpoints_and_names() -> None:
    found = Findings(
        results=[
            replace(MATCHING, name=name, iteration=iteration)
            for name, iteration in (("b", 2), ("a", 2), ("b", 1))
        ]
    )
    names = [(one.iteration, one.name) for one in result(BOTH, found).variables]
    assert names == [(1, "b"), (2, "a"), (2, "b")]


# --- masks


@pytest.mark.parametrize(
    ("mask", "is_known"),
    [
        (replace(MATCHING, name="m", iteration=3, rank=1), True),
        (VariableResult("m", Verdict.DIFFER, iteration=3, rank=1), False),
        (VariableResult("m", Verdict.NOT_COMPARABLE, iteration=3, rank=1, reason="lost"), False),
        (VariableResult("m", Verdict.DIFFER, iteration=3, rank=2), True),
        (VariableResult("m", Verdict.DIFFER, iteration=2, rank=1), True),
        (VariableResult("m", Verdict.DIFFER), True),
        (VariableResult("n", Verdict.DIFFER, iteration=3, rank=1), True),
    ],
)
def test_how_much_is_masked_is_known_where_the_masks_match(
    mask: VariableResult, is_known: bool
) -> None:
    masked = replace(MATCHING, iteration=3, rank=1, mask="m", masked_count=1, element_count=2)
    plain = replace(MATCHING, name="y", iteration=3, rank=1, masked_count=0)
    found = {
        one.name: one for one in result(BOTH, Findings(results=[masked, plain, mask])).variables
    }
    assert found["x"].masked_count == (1 if is_known else None)
    assert found["y"].masked_count == 0


# --- samples and maps

DETAILS = Details()


def worse(share: float | None, count: int | None, at_most: int | None = None) -> VariableResult:
    return VariableResult(
        "x",
        Verdict.DIFFER,
        max_bound_share=share,
        differing_count=count,
        differing_count_at_most=at_most,
        details=DETAILS,
    )


@pytest.mark.parametrize(
    ("results", "kept"),
    [
        ([worse(1, 1)], [0]),
        ([worse(1, 1), worse(1, 1)], [0]),
        ([worse(1, 1), worse(2, 1)], [0, 1]),
        ([worse(1, 1), worse(1, 2)], [0, 1]),
        ([worse(2, 1), worse(1, 9)], [0]),
        ([worse(1, 1), worse(2, 1), worse(3, 1)], [0, 2]),
        ([worse(1, 1), worse(3, 1), worse(2, 1)], [0, 1]),
        ([worse(1, 1), worse(2, 1), worse(2, 1)], [0, 1]),
        ([worse(None, None, 1), worse(None, None, 2)], [0, 1]),
        ([worse(None, None), worse(None, 1)], [0, 1]),
        ([worse(None, None), worse(0.5, None)], [0, 1]),
        ([worse(None, 2, 9), worse(None, 3, 3)], [0, 1]),
        ([worse(None, 1), worse(None, None)], [0]),
        ([worse(0.5, 1), worse(None, 2)], [0]),
    ],
)
def test_the_first_and_the_worst_keep_their_details(
    results: list[VariableResult], kept: list[int]
) -> None:
    keeper = DetailKeeper([])
    for one in results:
        keeper.add(one)
    assert [at for at, one in enumerate(keeper.results) if one.details is not None] == kept
    assert [replace(one, details=DETAILS) for one in keeper.results] == results


def test_so_many_variables_keep_details() -> None:
    plain = replace(worse(1, 1), details=None)
    keeper = DetailKeeper([plain])
    keeper.add(plain)
    for number in range(MOST_DETAILED_NAMES + 2):
        keeper.add(replace(worse(1, 1), name=f"n{number}"))
    keeper.add(replace(worse(2, 1), name="n0"))
    keeper.add(replace(worse(2, 1), name="another"))
    kept = [one.name for one in keeper.results if one.details is not None]
    assert kept == [*(f"n{number}" for number in range(MOST_DETAILED_NAMES)), "n0"]
