"""Keeps a result's document small: samples and maps of the variables that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.view import groups_of
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, RunResult, VariableId

# Each some tens of kilobytes at most.
MOST_DETAILED = 120


def trimmed(run: RunResult) -> RunResult:
    """The result with details for at most `MOST_DETAILED` variables, of the worst for the first
    and the worst checkpoint; everything else is as it was.
    """
    if not any(variable.details for check in run.checks for variable in check.variables):
        return run
    kept: dict[int, set[VariableId]] = {}
    budget = MOST_DETAILED
    for group in groups_of(run):
        wanted = {one.id for one in (group.first, group.worst) if one.details is not None}
        if len(wanted) > budget:
            break
        budget -= len(wanted)
        kept.setdefault(id(group.check), set()).update(wanted)
    return replace(
        run, checks=tuple(_trimmed_check(one, kept.get(id(one), set())) for one in run.checks)
    )


def _trimmed_check(check: CheckResult, kept: set[VariableId]) -> CheckResult:
    if not any(one.details is not None and one.id not in kept for one in check.variables):
        return check
    return replace(
        check,
        variables=tuple(
            one if one.details is None or one.id in kept else replace(one, details=None)
            for one in check.variables
        ),
    )
