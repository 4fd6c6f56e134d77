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
    kept: set[tuple[int, VariableId]] = set()
    viewed: set[tuple[int, VariableId]] = set()
    for group in groups_of(run):
        wanted = {(id(group.check), one.id) for one in (group.first, group.worst) if one.details}
        if len(kept) + len(wanted) > MOST_DETAILED:
            break
        kept |= wanted
        if len(viewed) < MOST_VIEWS:
            viewed.add((id(group.check), group.first.id))

    def trimmed_one(check: CheckResult, one: VariableResult) -> VariableResult:
        if one.details is None:
            return one
        if (id(check), one.id) not in kept:
            return replace(one, details=None)
        if one.details.view is None or (id(check), one.id) in viewed:
            return one
        return replace(one, details=replace(one.details, view=None))

    checks = (
        replace(check, variables=tuple(trimmed_one(check, one) for one in check.variables))
        for check in run.checks
    )
    return replace(run, checks=tuple(checks))
