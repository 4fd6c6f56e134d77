"""What is said of runs whose statistics were held against an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import Verdict
from ciwrap.report.text import plural, safe_name, short_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.model import CheckResult, EnsembleFacts, Message, Shift

_MOST_SHIFTS = 5
SHIFT_UNIT = "standard deviations of the mean of so many members"


def rate_text(rate: float) -> str:
    """A rate as somebody has set it: `1 %`, `0.01 %`."""
    return f"{100 * rate:.10g} %"


def ensemble_sentence(facts: EnsembleFacts) -> str:
    """The verdict in one sentence, with what it rests on and what moved most."""
    runs, rate = plural(facts.runs, "new run"), rate_text(facts.rate)
    if facts.p is None:
        members = plural(facts.more_members or 0, "member")
        return (
            f"the ensemble is too small: {runs} and {plural(facts.members, 'member')} cannot tell"
            f" at {rate}; add {members} that differ from the others, or make more new runs"
        )
    is_consistent = facts.p > facts.rate
    word = Verdict.CONSISTENT if is_consistent else Verdict.INCONSISTENT
    numbers = f"{plural(facts.members, 'member')}, {plural(facts.features, 'feature')}"
    said = (
        f"the statistics of {runs} are {word} with the ensemble at {rate} ({numbers},"
        f" p = {short_number(facts.p)})"
    )
    return said if is_consistent else f"{said}; {_what_moved(facts.shifts)}"


def _what_moved(shifts: Iterable[Shift]) -> str:
    most = [
        f"{safe_name(one.feature, 80)} ({short_number(one.deviations)})"
        for one in list(shifts)[:_MOST_SHIFTS]
    ]
    return f"what moved most, in {SHIFT_UNIT}: {', '.join(most)}"


def other_messages(check: CheckResult) -> tuple[Message, ...]:
    """A check's messages, but for the one that is its verdict on statistics in a sentence."""
    if check.ensemble is None or check.ensemble.p is None:
        return check.messages
    sentence = ensemble_sentence(check.ensemble)
    return tuple(message for message in check.messages if message.text != sentence)


def ensemble_title(checks: Iterable[CheckResult]) -> str:
    """The verdict of a command in a few words, where statistics decided it."""
    found = list(checks)
    bad = sum(check.verdict is Verdict.INCONSISTENT for check in found)
    others = sum(not check.verdict.is_statistical for check in found)
    ensemble = "the ensemble" if len(found) == 1 else "the ensembles"
    if bad:
        which = f", in {bad} of {len(found)} checks" if len(found) > 1 else ""
        return f"Inconsistent with {ensemble}{which}"
    if not others:
        return f"Consistent with {ensemble}"
    return "All compared numbers match; the statistics are consistent"
