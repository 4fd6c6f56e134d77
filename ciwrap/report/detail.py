"""How much of a result its document lists, variable by variable; the rest is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from ciwrap.model import Message, MessageLevel, Unlisted, VariableId, Verdict, worst_of
from ciwrap.model.brief import MOST_WHOLE, brief
from ciwrap.report.where import by_name
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.model import CheckResult, RunResult, VariableResult
    from ciwrap.timeline import HistoryFacts

Detail = Literal["summary", "differing", "all"]
# Some 1.5 kB each.
MOST_LISTED = 10_000


def with_detail(run: RunResult, detail: Detail) -> RunResult:
    """The result with the variables that its document is to list.

    `all`: every one. `differing`: of checks with more than `MOST_WHOLE` those that do not match,
    the first `MOST_LISTED` by iteration, rank and name; all but the first and the worst of each
    name without histograms and ranges, and with one differing element. `summary`: only what
    diverged first. What is left out is counted, and a note tells of it.
    """
    if detail == "all":
        return run
    return replace(run, checks=tuple(_reduced(check, detail) for check in run.checks))


def _reduced(check: CheckResult, detail: Detail) -> CheckResult:
    if detail == "summary":
        listed = _first(check)
    elif len(check.variables) <= MOST_WHOLE:
        return check
    else:
        bad = [one for one in check.variables if one.verdict is not Verdict.MATCH]
        kept = {one.id for one in _first(check)}
        listed = _brief(bad[:MOST_LISTED], kept)
        kept.difference_update(one.id for one in listed)
        listed += [one for one in _first(check) if one.id in kept]
    ids = {one.id for one in listed}
    left_out = [one for one in check.variables if one.id not in ids]
    if not left_out:
        return check
    counts = f"{len(listed):,} of {len(check.variables):,} variables are listed"
    note = Message(MessageLevel.NOTE, f"{counts} (--json-detail {detail}); the others are counted")
    return replace(
        check,
        variables=tuple(listed),
        messages=(*check.messages, note),
        unlisted=_counted(check, left_out),
        history=None if check.history is None else _points_of(check.history, ids),
    )


def _first(check: CheckResult) -> list[VariableResult]:
    """What diverged first, and the first of which numbers did."""
    found = (check.first_divergence, check.first_numeric_divergence)
    variables = {one.variable.id: one.variable for one in found if one is not None}
    return list(variables.values())


def _brief(bad: Sequence[VariableResult], whole: set[VariableId]) -> list[VariableResult]:
    """Of each name the first and the worst one, and those in `whole`, keep all that they say."""
    for some in by_name(bad).values():
        whole |= {some[0].id, worst_of(some).id}
    return [one if one.id in whole else brief(one) for one in bad]


def _counted(check: CheckResult, left_out: Sequence[VariableResult]) -> Unlisted:
    counts = Counter(one.verdict for one in left_out)
    shares = [one.max_drift_share for one in left_out] + [one.max_bound_share for one in left_out]
    share = max((known for known in shares if known is not None), default=None)
    named = {one.value: counts[one] for one in Verdict.worst_first()}
    return Unlisted(**named, max_drift_share=share, coverage=check.coverage)


def _points_of(history: HistoryFacts, listed: set[VariableId]) -> HistoryFacts:
    """The history with the points of listed variables alone."""
    named = {identity.name for identity in listed}
    timelines = []
    for one in history.timelines:
        if one.name in named:
            points = [p for p in one.points if VariableId(one.name, p.iteration, p.rank) in listed]
            timelines.append(replace(one, points=tuple(points)))
    return replace(history, timelines=tuple(timelines))
