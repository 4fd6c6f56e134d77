"""All that several runs came to, as the record that terminal, JSON and report show."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from ciwrap.errors import ExitCode
from ciwrap.late import numpy as np
from ciwrap.model import Message, MessageLevel
from ciwrap.model.repeat_result import (
    Behaviour,
    FactorFinding,
    RepeatedRun,
    RepeatedVariable,
    RepeatResult,
)
from ciwrap.repeat.summary import NOT_COMPARED, largest_by_run, summarise
from ciwrap.report.repeat_words import headline
from ciwrap.report.text import percent_text, plural
from ciwrap.statistics.bounds import (
    LEAST_COMPARISONS,
    MANY_COMPARISONS,
    safety_factor,
    unequal_run_limit,
)
from ciwrap.statistics.factors import (
    differing_shares,
    effects,
    power,
    spread_response,
    what_factors_do,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.repeat.measure import Measurer
    from ciwrap.repeat.plan import Plan, PlannedRun


def make_result(
    measurers: Sequence[Measurer],
    runs: Sequence[RepeatedRun],
    *,
    plan: Plan | None = None,
    reference: str = "first",
    is_checked: bool = False,
    messages: Sequence[Message] = (),
) -> RepeatResult:
    """plan: None for runs that were there. is_checked: whether what varies beyond its bound is exit
    code 1.
    """
    numbers = [run.number for run in runs]
    summaries = [summarise(one.name, one.measured, numbers) for one in measurers]
    variables = tuple(chain.from_iterable(summaries))
    said = (*messages, *_run_messages(runs), *_variable_messages(variables, measurers, reference))
    return RepeatResult(
        headline=headline(variables, runs, reference),
        exit_code=_exit_code(runs, variables, is_checked=is_checked),
        reference=reference,
        seed=0 if plan is None else plan.seed,
        design="full" if plan is None else plan.design,
        runs=tuple(runs),
        variables=variables,
        factors=() if plan is None else factor_findings(plan, measurers, variables),
        messages=said,
    )


def _exit_code(
    runs: Sequence[RepeatedRun], variables: Sequence[RepeatedVariable], *, is_checked: bool
) -> int:
    faults = [one for one in variables if one.kind is Behaviour.NOT_COMPARABLE]
    if faults or not variables or any(run.problem is not None for run in runs):
        return int(ExitCode.NOT_COMPARABLE)
    beyond = any(one.breaks_bound for one in variables)
    return int(ExitCode.DIFFER) if is_checked and beyond else 0


def _run_messages(runs: Sequence[RepeatedRun]) -> list[Message]:
    return [
        Message(MessageLevel.ERROR, f"run {run.number}: {run.problem}", slug="command-failed")
        for run in runs
        if run.problem is not None
    ]


def _variable_messages(
    variables: Sequence[RepeatedVariable], measurers: Sequence[Measurer], reference: str
) -> list[Message]:
    found = []
    for one in variables:
        if one.kind is Behaviour.NOT_COMPARABLE:
            # Why no run was compared is told of the runs, once.
            if one.reason != NOT_COMPARED:
                found.append(_of(one, MessageLevel.ERROR, one.reason or ""))
        elif one.kind is Behaviour.UNRELATED:
            found.append(_of(one, MessageLevel.WARNING, one.reason or ""))
        elif one.varies and one.max_abs is None:
            why = "the golden keeps no data of it" if reference == "golden" else "no numbers"
            text = f"how far it varies is unknown: {why}"
            found.append(_of(one, MessageLevel.NOTE, text))
    compared = [len(one.measured.compared) for one in measurers]
    if variables and all(one.kind is Behaviour.EQUAL for one in variables) and min(compared):
        found.append(Message(MessageLevel.NOTE, _equal_words(min(compared), reference)))
    for measurer in measurers:
        for name, spread in sorted(measurer.measured.spreads.items()):
            if spread.nan_count:
                where = f"{measurer.name}: {name}"
                count = plural(spread.nan_count, "sampled element")
                text = f"{where}: holds NaN in the first run ({count})"
                found.append(Message(MessageLevel.WARNING, text, variable=where))
    found += _too_few(variables, measurers)
    return found


def _equal_words(compared: int, reference: str) -> str:
    """What so many runs that are equal to the reference say of the next one."""
    limit = percent_text(unequal_run_limit(compared + 1))
    # The golden is none of the runs.
    runs = (
        f"{plural(compared, 'run')} equal to the golden"
        if reference == "golden"
        else f"{compared + 1} equal runs"
    )
    return f"{runs}: a further one differs with a chance of up to {limit} (at 95 % confidence)"


def _too_few(variables: Sequence[RepeatedVariable], measurers: Sequence[Measurer]) -> list[Message]:
    """Why no bound is suggested, where only more runs could."""
    few = {
        one.name: len(one.measured.compared)
        for one in measurers
        if safety_factor(len(one.measured.compared)) is None
    }
    varying = {one.check for one in variables if one.kind in (Behaviour.NOISE, Behaviour.GROWING)}
    if not varying & few.keys():
        return []
    most = max(few[name] for name in varying & few.keys())
    text = (
        f"{plural(most, 'comparison')} with the reference cannot suggest a bound: that takes"
        f" {LEAST_COMPARISONS}, and {MANY_COMPARISONS} for a good one"
    )
    return [Message(MessageLevel.NOTE, text)]


def _of(one: RepeatedVariable, level: MessageLevel, text: str) -> Message:
    where = f"{one.check}: {one.name}"
    return Message(level, f"{where}: {text}", slug="not-comparable", variable=where)


def factor_findings(
    plan: Plan, measurers: Sequence[Measurer], variables: Sequence[RepeatedVariable]
) -> tuple[FactorFinding, ...]:
    """What each factor does to each variable that could be compared."""
    if not plan.factors:
        return ()
    by_check = {measurer.name: measurer for measurer in measurers}
    found: list[FactorFinding] = []
    for one in variables:
        if one.kind is not Behaviour.NOT_COMPARABLE:
            measured = by_check[one.check].measured
            found += _findings_of(plan, one, largest_by_run(measured, one.name), measured.compared)
    return tuple(found)


def _findings_of(
    plan: Plan,
    variable: RepeatedVariable,
    sizes: Mapping[int, float | None],
    compared: Sequence[int],
) -> list[FactorFinding]:
    known = [
        (run, label) for run, label in zip(plan.runs, variable.classes, strict=True) if label > 0
    ]
    cells = [run.cell for run, _ in known]
    classes = [label for _, label in known]
    shares = differing_shares(cells, classes)
    known_effects = what_factors_do(cells, classes)
    repeats = shares[0]
    spread = _spread_effects(plan, [run for run, _ in known if run.number in compared], sizes)
    is_noisy = bool(repeats.differing)
    return [
        FactorFinding(
            name=factor.name,
            check=variable.check,
            variable=variable.name,
            pairs=share.pairs,
            differing=share.differing,
            repeat_pairs=repeats.pairs,
            repeat_differing=repeats.differing,
            differing_share=share.share,
            max_abs=_largest_alone(known, position, sizes),
            changes=known_effects.get(position),
            spread_effect=spread[0].get(position) if is_noisy else None,
            p=spread[1].get(position) if is_noisy else None,
            power=spread[2] if is_noisy else None,
        )
        for (position, factor), share in zip(enumerate(plan.factors), shares[1:], strict=True)
    ]


def _spread_effects(
    plan: Plan, runs: Sequence[PlannedRun], sizes: Mapping[int, float | None]
) -> tuple[dict[int, float], dict[int, float], float | None]:
    """Of factors by position, what each does to the spread, and p; and the power to find it. runs:
    compared with the reference, which has no distance from itself to be spread.
    """
    known = [sizes.get(run.number, 0.0) for run in runs]
    distances = [one for one in known if one is not None and math.isfinite(one)]
    # Where most come again and again, as those of a switch that is on or off, nothing spreads: each
    # is as far as it gets, and the power is that of numbers of any size.
    is_spread = 2 * len({*distances}) > len(distances) and any(distances)
    if not is_spread or len(distances) < len(known):
        return {}, {}, None
    cells = [run.cell for run in runs]
    tested = effects(spread_response(np.array(distances), cells), cells, seed=plan.seed)
    return (
        {one.factor: one.size for one in tested},
        {one.factor: one.p for one in tested},
        power(cells, seed=plan.seed),
    )


def _largest_alone(
    known: Sequence[tuple[PlannedRun, int]], position: int, sizes: Mapping[int, float | None]
) -> float | None:
    """The largest |v - g| of runs that differ from the first in one factor only; None where there
    is none, and where one of them does not tell.
    """
    if not known:
        return None
    first = known[0][0].cell
    found = [
        sizes.get(run.number, 0.0)
        for run, _ in known
        if [n for n, on in enumerate(run.cell) if on != first[n]] == [position]
    ]
    told = [one for one in found if one is not None]
    return max(told, default=None) if len(told) == len(found) else None
