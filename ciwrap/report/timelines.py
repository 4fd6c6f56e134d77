"""A history on a terminal: a character for each iteration, and the first divergence's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import safe_name, safe_text, short_number
from ciwrap.timeline import PointState, Trend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.timeline import FirstDivergence, HistoryFacts, Timeline, TimelinePoint

_MARKS = {
    PointState.MATCH: ".",
    PointState.WITHIN: "~",
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
    PointState.BEYOND,
    PointState.NOT_COMPARED,
)
_MOST_MARKS = 60
_MOST_LINES = 12


def divergence_text(first: FirstDivergence) -> str:
    """`[5, 7]: 1.0 and 1.5, 500 x the bound`."""
    text = f"[{', '.join(map(str, first.index))}]: {safe_text(first.golden)} and"
    text += f" {safe_text(first.new)}"
    if first.bound_share is not None:
        text += f", {short_number(first.bound_share)} x the bound"
    return text


def timeline_lines(facts: HistoryFacts) -> Iterator[str]:
    """Of the variables that do not match everywhere."""
    told = [
        one
        for one in facts.timelines
        if any(point.state not in (PointState.MATCH, PointState.WITHIN) for point in one.points)
    ]
    if not told:
        return
    iterations = sorted(
        {-1 if p.iteration is None else p.iteration for one in told for p in one.points}
    )
    yield (
        f"over iterations {iterations[0]} to {iterations[-1]}"
        " (. match, ~ within the bound, # beyond, ? not compared, A or B: in that run only)"
    )
    width = max(len(safe_name(one.name, 30)) for one in told[:_MOST_LINES])
    for one in told[:_MOST_LINES]:
        line = f"{safe_name(one.name, 30):{width}}  {_marks(one)}"
        if one.trend is not None:
            line += f"  {_WORDS[one.trend]}"
        yield line
    if len(told) > _MOST_LINES:
        yield f"... and {len(told) - _MOST_LINES} more variables"


def _marks(timeline: Timeline) -> str:
    """The worst rank of each iteration; of many iterations, the worst of each of their groups."""
    groups: dict[int | None, list[TimelinePoint]] = {}
    for point in timeline.points:
        groups.setdefault(point.iteration, []).append(point)
    states = [_worst(points) for points in groups.values()]
    step = -(-len(states) // _MOST_MARKS)
    return "".join(
        _MARKS[max(states[at : at + step], key=_WORST.index)] for at in range(0, len(states), step)
    )


def _worst(points: Sequence[TimelinePoint]) -> PointState:
    return max((point.state for point in points), key=_WORST.index)
