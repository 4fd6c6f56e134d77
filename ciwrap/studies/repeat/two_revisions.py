"""Whether two revisions differ by more than their noise: the revision is a factor of repeated runs,
off for the base and on for the working tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import ExitCode
from ciwrap.model import Message, MessageLevel, Verdict
from ciwrap.model.repeat_result import (
    Behaviour,
    FactorFinding,
    RepeatedRun,
    RepeatedVariable,
    RepeatResult,
)
from ciwrap.model.results import names_text
from ciwrap.project.settings import FactorSettings, LevelSettings
from ciwrap.report.text import plural, safe_name
from ciwrap.studies.repeat.measure import Measurer
from ciwrap.studies.repeat.result import make_result
from ciwrap.studies.repeat.run import Plan, make_plan

_MOST_NAMES = 4


def plan_of(count: int, seed: int) -> Plan:
    """So many runs of each revision, in random order within each pair; the first is the base's."""
    revision = FactorSettings("revision", LevelSettings(), LevelSettings())
    return make_plan(2 * count, (revision,), "full", seed)


def runs_of_base(plan: Plan) -> frozenset[int]:
    return frozenset(run.number for run in plan.runs if not run.cell[0])


class _Sorted(Struct, frozen=True):
    """The variables of which a run of the working tree is beyond its bound. moved: farther than the
    base's own runs are; noisy: no farther than those; untold: too few runs to tell.
    """

    moved: tuple[str, ...]
    noisy: tuple[str, ...]
    untold: tuple[str, ...]


def noise_result(
    measurers: Sequence[Measurer],
    runs: Sequence[RepeatedRun],
    plan: Plan,
    base: str,
    messages: Sequence[Message],
) -> RepeatResult:
    """What repeated runs of both revisions say. base: what that is called. Bounds that would hold,
    and how noise grows, are left out: they would be of both revisions together.
    """
    of_base = runs_of_base(plan)
    told = [
        replace(run, problem=f"{'A' if run.number in of_base else 'B'}: {run.problem}")
        if run.problem is not None
        else run
        for run in runs
    ]
    found = make_result(measurers, told, plan=plan)
    kept = [one for one in found.messages if one.level is MessageLevel.ERROR]
    variables = tuple(map(_without_advice, found.variables))
    if found.has_failed:
        return replace(found, variables=variables, messages=(*messages, *kept))
    sorts = _sorted(measurers, found.factors, of_base)
    code = ExitCode.MATCH
    if sorts.moved:
        code = ExitCode.DIFFER
    elif sorts.untold:
        code = ExitCode.NOT_COMPARABLE
    return replace(
        found,
        headline="; ".join(_headline(sorts, base, len(runs) // 2)),
        exit_code=int(code),
        variables=variables,
        messages=(*messages, *kept),
    )


def _without_advice(one: RepeatedVariable) -> RepeatedVariable:
    if one.kind in (Behaviour.EQUAL, Behaviour.NOT_COMPARABLE):
        return one
    return replace(
        one,
        kind=Behaviour.NOISE,
        growth_rate=None,
        horizon=None,
        spread_horizon=None,
        compare_until=None,
        suggested_bound=None,
        present_fit=None,
        reason=None,
        groups=None,
    )


def _sorted(
    measurers: Sequence[Measurer], factors: Sequence[FactorFinding], base: frozenset[int]
) -> _Sorted:
    findings = {(one.check, one.variable): one for one in factors}
    places: dict[str, list[str]] = {"moved": [], "noisy": [], "untold": []}
    for measurer in measurers:
        for name in _beyond_bound(measurer, base):
            finding = findings.get((measurer.name, name))
            if finding is not None and finding.acts:
                kind = "moved"
            elif finding is None or not finding.power:
                kind = "untold"
            else:
                kind = "noisy"
            places[kind].append(name if len(measurers) == 1 else f"{measurer.name}: {name}")
    return _Sorted(*(tuple(names) for names in places.values()))


def _beyond_bound(measurer: Measurer, base: frozenset[int]) -> Iterator[str]:
    """The variables that some run of the working tree has beyond the bound."""
    found = dict.fromkeys(
        identity.name
        for identity, slot in measurer.measured.slots.items()
        for run, result in slot.results.items()
        if run not in base and result.verdict is not Verdict.MATCH
    )
    yield from found


def _headline(sorts: _Sorted, base: str, count: int) -> Iterator[str]:
    each = f"{plural(count, 'run')} of each"
    if sorts.moved:
        yield f"differs from {base} by more than the bound and the noise: {_names(sorts.moved)}"
    if sorts.untold:
        told = _names(sorts.untold)
        yield f"{each} cannot tell whether this differs from {base} by more than the noise: {told}"
    if sorts.noisy:
        told = _names(sorts.noisy)
        yield f"differs from {base} by more than the bound, but not than the noise: {told}"
    if not any((sorts.moved, sorts.untold, sorts.noisy)):
        yield f"differs from {base} by no more than the bound, in {each}"


def _names(names: Sequence[str]) -> str:
    return names_text([safe_name(one, 40) for one in names], _MOST_NAMES)
