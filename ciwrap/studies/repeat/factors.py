"""What the factors of repeated runs do to each variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ciwrap.model.repeat_result import Behaviour, FactorFinding, RepeatedVariable
from ciwrap.statistics.factors import (
    Effect,
    alike_pairs,
    differing_shares,
    effects,
    what_factors_do,
)
from ciwrap.studies.repeat.measure import Measurer
from ciwrap.studies.repeat.summary import largest_by_run

if TYPE_CHECKING:
    from ciwrap.studies.repeat.run import Plan, PlannedRun


def factor_findings(
    plan: Plan, measurers: Sequence[Measurer], variables: Sequence[RepeatedVariable]
) -> tuple[FactorFinding, ...]:
    """What each factor does to each variable that could be compared."""
    if not plan.factors:
        return ()
    by_check = {measurer.name: measurer.measured for measurer in measurers}
    told = [one for one in variables if one.kind is not Behaviour.NOT_COMPARABLE]
    sizes = [largest_by_run(by_check[one.check], one.name) for one in told]
    # The reference has no distance from itself.
    compared = [set(measured.compared) for measured in by_check.values()]
    runs = [run for run in plan.runs if all(run.number in one for one in compared)]
    noisy = [place for place, one in enumerate(told) if _is_noisy(plan, one)]
    responses = [_response(plan, told[place], sizes[place], runs) for place in noisy]
    tested = dict(
        zip(noisy, effects(responses, [run.cell for run in runs], seed=plan.seed), strict=True)
        if noisy and runs
        else ()
    )
    return tuple(
        finding
        for place, (one, size) in enumerate(zip(told, sizes, strict=True))
        for finding in _findings_of(plan, one, size, tested.get(place, ()))
    )


def _is_noisy(plan: Plan, variable: RepeatedVariable) -> bool:
    """Whether runs that differ in no factor have different results."""
    cells, classes = _known(plan, variable)
    return any(differing for _, differing in alike_pairs(cells, classes).values())


def _known(plan: Plan, variable: RepeatedVariable) -> tuple[list[tuple[bool, ...]], list[int]]:
    """Cell and class of each run that has a result."""
    known = [
        (run.cell, label)
        for run, label in zip(plan.runs, variable.classes, strict=True)
        if label > 0
    ]
    return [cell for cell, _ in known], [label for _, label in known]


def _response(
    plan: Plan,
    variable: RepeatedVariable,
    sizes: Mapping[int, float | None],
    runs: Sequence[PlannedRun],
) -> list[float]:
    """How far each run is from the reference; where no number tells, whether it is another result
    than that of the first run.
    """
    found = [sizes.get(run.number, 0.0) for run in runs]
    known = [one for one in found if one is not None]
    if len(known) == len(found) and any(known):
        return known
    labels = {run.number: label for run, label in zip(plan.runs, variable.classes, strict=True)}
    return [float(labels[run.number] != labels[plan.runs[0].number]) for run in runs]


def _findings_of(
    plan: Plan,
    variable: RepeatedVariable,
    sizes: Mapping[int, float | None],
    tested: Sequence[Effect],
) -> list[FactorFinding]:
    cells, classes = _known(plan, variable)
    shares = differing_shares(cells, classes)[1:]
    alike = alike_pairs(cells, classes)
    changes = what_factors_do(cells, classes)
    by_factor = {one.factor: one for one in tested}
    found = []
    for (position, factor), share in zip(enumerate(plan.factors), shares, strict=True):
        off = [counts for cell, counts in alike.items() if not cell[position]]
        on = [counts for cell, counts in alike.items() if cell[position]]
        effect = by_factor.get(position)
        found.append(
            FactorFinding(
                name=factor.name,
                check=variable.check,
                variable=variable.name,
                pairs=share.pairs,
                differing=share.differing,
                off_pairs=sum(pairs for pairs, _ in off),
                off_differing=sum(differing for _, differing in off),
                on_pairs=sum(pairs for pairs, _ in on),
                on_differing=sum(differing for _, differing in on),
                max_abs=_largest_alone(plan, variable, position, sizes),
                changes=changes.get(position),
                effect=None if effect is None else effect.size,
                p=None if effect is None else effect.p,
                power=None if effect is None else effect.power,
            )
        )
    return found


def _largest_alone(
    plan: Plan,
    variable: RepeatedVariable,
    position: int,
    sizes: Mapping[int, float | None],
) -> float | None:
    """The largest |v - g| of runs that differ from the first in one factor only; None where there
    is none, and where one of them does not tell.
    """
    first = plan.runs[0].cell
    found = [
        sizes.get(run.number, 0.0)
        for run, label in zip(plan.runs, variable.classes, strict=True)
        if label > 0 and [n for n, on in enumerate(run.cell) if on != first[n]] == [position]
    ]
    told = [one for one in found if one is not None]
    return max(told, default=None) if len(told) == len(found) else None
