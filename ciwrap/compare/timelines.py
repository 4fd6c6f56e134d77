"""From the results of all variables to the history's own: timelines and trends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.model import Evidence, Verdict
from ciwrap.structs import Struct
from ciwrap.timeline import (
    HistoryFacts,
    PointState,
    Timeline,
    TimelinePoint,
    Trend,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import CheckResult, VariableResult

# Beyond the bound by so many times what it was one iteration before: a jump, not growth.
_JUMP = 100.0


def history_facts(check: CheckResult, outcome: Outcome) -> HistoryFacts:
    return HistoryFacts(
        timelines=timelines(check),
        by_captures=sum(
            variable.evidence in (Evidence.TREE, Evidence.RESIDUES) for variable in check.variables
        ),
        capture_bytes_read=outcome.capture_bytes_read,
        data_bytes_read=outcome.data_bytes_read,
        not_compared_checkpoints=len(outcome.lost),
    )


def timelines(check: CheckResult) -> tuple[Timeline, ...]:
    """One for each name that has iterations, if there is more than one of them."""
    points: dict[str, list[TimelinePoint]] = {}
    sides = dict.fromkeys(check.missing_variables, PointState.FIRST_ONLY) | dict.fromkeys(
        check.extra_variables, PointState.SECOND_ONLY
    )
    for variable in check.variables:
        if variable.id not in sides and variable.iteration is not None:
            points.setdefault(variable.name, []).append(_point(variable))
    for identity, state in sides.items():
        if identity.iteration is not None:
            point = TimelinePoint(identity.iteration, identity.rank, state)
            points.setdefault(identity.name, []).append(point)
    iterations = {point.iteration for some in points.values() for point in some}
    if len(iterations) < 2:
        return ()
    made = []
    for name in sorted(points):
        ordered = tuple(sorted(points[name], key=_order))
        made.append(Timeline(name, ordered, trend(ordered)))
    return tuple(made)


def _order(point: TimelinePoint) -> tuple[int, int]:
    return (
        -1 if point.iteration is None else point.iteration,
        -1 if point.rank is None else point.rank,
    )


_COMPARED = (PointState.MATCH, PointState.WITHIN, PointState.SUSPECT, PointState.BEYOND)


def _point(variable: VariableResult) -> TimelinePoint:
    share = None if variable.used_interval is None else variable.used_interval[1]
    if variable.verdict is Verdict.NOT_COMPARABLE:
        state = PointState.NOT_COMPARED
    elif variable.verdict is Verdict.SUSPECT:
        state = PointState.SUSPECT
    elif variable.verdict is Verdict.DIFFER:
        state = PointState.BEYOND
    elif _has_moved(variable) or variable.suspect_chunks:
        state = PointState.WITHIN
    else:
        state = PointState.MATCH
    return TimelinePoint(
        variable.iteration,
        variable.rank,
        state,
        variable.differing_count,
        variable.max_abs_difference,
        share,
    )


def _has_moved(variable: VariableResult) -> bool:
    """Whether anything is known to have moved. Of numbers in the same step nothing is."""
    share = variable.max_bound_share
    if share is None:
        share = variable.max_drift_share
    return bool(share or variable.max_abs_difference or variable.suspect_chunks)


def trend(points: Sequence[TimelinePoint]) -> Trend | None:
    """How a variable goes beyond its bound, the worst rank of each iteration counting; None where
    nothing does, and where what was compared does not tell.
    """
    worst: dict[int | None, _Step] = {}
    for point in points:
        if point.state in _COMPARED:
            worst[point.iteration] = _with(worst.get(point.iteration, _Step()), point)
    steps = list(worst.values())
    flags = [step.is_beyond for step in steps]
    if not any(flags):
        return None
    first = flags.index(True)
    if not all(flags[first:]):
        return Trend.COMES_AND_GOES
    if first == 0:
        # What was not compared before may have been within the bound.
        is_start = points[0].iteration == next(iter(worst))
        return Trend.FROM_THE_START if is_start else None
    before, at, last = steps[first - 1], steps[first], steps[-1]
    if at.is_known and at.share >= _JUMP * before.share and at.share >= _JUMP:
        return Trend.JUMPS
    if len(steps) - first < 2 or not (at.is_known and last.is_known):
        return None
    return Trend.GROWS if last.share > at.share or math.isinf(last.share) else Trend.STEADY


class _Step(Struct, frozen=True):
    """One iteration. share: the largest of the bound; of what is suspect it is not known."""

    is_beyond: bool = False
    share: float = 0.0
    is_known: bool = True


def _with(step: _Step, point: TimelinePoint) -> _Step:
    return _Step(
        step.is_beyond or point.state in (PointState.SUSPECT, PointState.BEYOND),
        max(step.share, point.bound_share or 0.0),
        step.is_known and point.state is not PointState.SUSPECT,
    )
