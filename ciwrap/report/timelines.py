"""A history on a terminal: what diverges first, and a character for each iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import DivergenceKind, Verdict
from ciwrap.report.sides import sides_of
from ciwrap.report.sizes import element_share_text, variable_is_exact
from ciwrap.report.text import index_text, safe_name
from ciwrap.report.where import by_name
from ciwrap.report.wording import cause_lines
from ciwrap.timeline import PointState, Timeline, TimelinePoint, Trend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.model import CheckResult, Divergence, VariableResult

_MARKS = {
    PointState.MATCH: ".",
    PointState.WITHIN: "~",
    PointState.SUSPECT: "!",
    PointState.BEYOND: "#",
    PointState.NOT_COMPARED: "?",
    PointState.FIRST_ONLY: "A",
    PointState.SECOND_ONLY: "B",
}
_WORDS = {
    Trend.FROM_THE_START: "from the start",
    Trend.JUMPS: "jumps",
    Trend.GROWS: "grows",
    Trend.STEADY: "steady",
    Trend.COMES_AND_GOES: "comes and goes",
}
_WORST = (
    PointState.MATCH,
    PointState.WITHIN,
    PointState.FIRST_ONLY,
    PointState.SECOND_ONLY,
    PointState.SUSPECT,
    PointState.BEYOND,
    PointState.NOT_COMPARED,
)
_MOST_MARKS = 60
_MOST_LINES = 12
_MOST_NAMES = 8


def divergence_lines(check: CheckResult) -> Iterator[tuple[str, str, str, list[str]]]:
    """The first divergence of a history, and beside it the first one of numbers if that is
    another: what it is called, the variable, what is known of it, and what its elements have in
    common.
    """
    if not check.is_history:
        return
    first, numeric = check.first_divergence, check.first_numeric_divergence
    if first is not None:
        yield _divergence(check, "first divergence", first)
    if numeric is not None and numeric != first:
        yield _divergence(check, "first numeric divergence", numeric)


def together_text(check: CheckResult) -> str:
    """The other variables that do not match where the first divergence is; '' if all others do."""
    first = check.first_divergence
    if first is None or not check.is_history:
        return ""
    others = [name for name in check.first_names if name != first.variable.name]
    if not others:
        return ""
    said = ", ".join(safe_name(name, 60) for name in others[:_MOST_NAMES])
    more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
    iteration = first.variable.iteration
    if iteration is None:
        return f"also not matching, without an iteration: {said}{more}"
    return f"also not matching in iteration {iteration}: {said}{more}"


def _divergence(
    check: CheckResult, what: str, divergence: Divergence
) -> tuple[str, str, str, list[str]]:
    variable = divergence.variable
    causes = list(cause_lines(variable, sides_of(check, variable)))
    return what, safe_name(variable.id.text), divergence_text(divergence), causes


def divergence_text(divergence: Divergence) -> str:
    """` [5, 7]: 1.0 and 1.5, 500 x the bound`, or `: not comparable`; nothing where no values are
    known.
    """
    if divergence.kind is not DivergenceKind.DIFFER:
        return f": {divergence.kind.words}"
    element = divergence.element
    if element is None:
        return ""
    where = f" {index_text(element.index)}" if element.index else ""
    text = f"{where}: {safe_name(element.golden)} and {safe_name(element.new)}"
    if variable_is_exact(divergence.variable):
        return f"{text}, compared exactly"
    if element.bound_share is not None:
        text += f", {element_share_text(divergence.variable, element)}"
    return text


def timelines_of(check: CheckResult) -> tuple[Timeline, ...]:
    """Of two runs what was found of their histories; of a check, what its results say."""
    if check.history is not None:
        return check.history.timelines
    if not check.is_history:
        return ()
    ordered = sorted(check.variables, key=lambda one: one.id.sort_key)
    named = by_name(one for one in ordered if one.iteration is not None)
    return tuple(
        Timeline(name, tuple(TimelinePoint(one.iteration, one.rank, _state(one)) for one in some))
        for name, some in sorted(named.items())
    )


def _state(variable: VariableResult) -> PointState:
    if variable.verdict is Verdict.MATCH:
        share = variable.max_bound_share
        share = variable.max_drift_share if share is None else share
        return PointState.WITHIN if share else PointState.MATCH
    return {
        Verdict.SUSPECT: PointState.SUSPECT,
        Verdict.DIFFER: PointState.BEYOND,
    }.get(variable.verdict, PointState.NOT_COMPARED)


def timeline_lines(timelines: Sequence[Timeline]) -> Iterator[str]:
    """Of the variables that do not match everywhere."""
    told = [
        one
        for one in timelines
        if any(point.state not in (PointState.MATCH, PointState.WITHIN) for point in one.points)
    ]
    if not told:
        return
    numbers = {point.iteration for one in timelines for point in one.points}
    iterations = sorted(number for number in numbers if number is not None)
    if not iterations:
        return
    yield (
        f"over iterations {iterations[0]} to {iterations[-1]}"
        " (. match, ~ within the bound, ! suspect, # beyond, ? not compared,"
        " A or B: in that run only)"
    )
    step = -(-len(iterations) // _MOST_MARKS)
    if step > 1:
        yield f"each mark is the worst of {step} iterations"
    width = max(len(safe_name(one.name, 30)) for one in told[:_MOST_LINES])
    for one in told[:_MOST_LINES]:
        line = f"{safe_name(one.name, 30):{width}}  {_marks(one, iterations, step)}"
        if one.trend is not None:
            line += f"  {_trend_words(one)}"
        yield line.rstrip()
    if len(told) > _MOST_LINES:
        yield f"... and {len(told) - _MOST_LINES} more variables"


def _trend_words(timeline: Timeline) -> str:
    """`jumps between 30 and 600`: iterations may lie far apart, and some may not be compared."""
    assert timeline.trend is not None
    words = _WORDS[timeline.trend]
    compared = (PointState.MATCH, PointState.WITHIN)
    placed = [(one.iteration, one.state) for one in timeline.points if one.iteration is not None]
    beyond = [number for number, state in placed if state is PointState.BEYOND]
    first = min(beyond, default=0)
    before = [number for number, state in placed if state in compared and number < first]
    if timeline.trend is not Trend.JUMPS or not before:
        return words
    return f"{words} between {max(before)} and {first}"


def _marks(timeline: Timeline, iterations: Sequence[int], step: int) -> str:
    """The worst rank of each iteration; of many iterations, the worst of each of their groups; a
    blank where the variable is not there at all.

    iterations: of all variables, so that marks of one iteration stand below one another.
    """
    states: dict[int | None, list[PointState]] = {}
    for point in timeline.points:
        states.setdefault(point.iteration, []).append(point.state)
    found = ""
    for at in range(0, len(iterations), step):
        some = [one for number in iterations[at : at + step] for one in states.get(number, ())]
        found += _MARKS[max(some, key=_WORST.index)] if some else " "
    return found
