"""Keeps a result's document small: samples and maps of the variables that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.view import groups_of
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, RunResult, VariableId, VariableResult

# Each some tens of kilobytes at most.
MOST_DETAILED = 120
# Of so many also the numbers that a page shows on request, each a hundred kilobytes at most.
MOST_VIEWS = 8


def trimmed(run: RunResult) -> RunResult:
    """The result with details for at most `MOST_DETAILED` variables, of the worst for the first
    and the worst checkpoint; everything else is as it was.
    """
    if not any(variable.details for check in run.checks for variable in check.variables):
        return run
    kept: dict[int, set[VariableId]] = {}
    budget = MOST_DETAILED
    viewed: set[tuple[int, VariableId]] = set()
    for group in groups_of(run):
        wanted = {one.id for one in (group.first, group.worst) if one.details is not None}
        if len(wanted) > budget:
            break
        budget -= len(wanted)
        kept.setdefault(id(group.check), set()).update(wanted)
        if len(viewed) < MOST_VIEWS:
            viewed.add((id(group.check), group.first.id))
    return replace(
        run,
        checks=tuple(
            _trimmed_check(
                one,
                kept.get(id(one), set()),
                {identity for check, identity in viewed if check == id(one)},
            )
            for one in run.checks
        ),
    )


def _trimmed_check(
    check: CheckResult, kept: set[VariableId], viewed: set[VariableId]
) -> CheckResult:
    return replace(
        check, variables=tuple(_trimmed_variable(one, kept, viewed) for one in check.variables)
    )


def _trimmed_variable(
    one: VariableResult, kept: set[VariableId], viewed: set[VariableId]
) -> VariableResult:
    if one.details is None:
        return one
    if one.id not in kept:
        return replace(one, details=None)
    if one.details.view is None or one.id in viewed:
        return one
    return replace(one, details=replace(one.details, view=None))
