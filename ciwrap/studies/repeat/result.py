"""Makes the result of repeated runs, which terminal, JSON and page show, of what was measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ciwrap.base.errors import ExitCode
from ciwrap.model import Message, MessageLevel, number_text
from ciwrap.model.repeat_result import (
    Behaviour,
    FactorFinding,
    RepeatedRun,
    RepeatedVariable,
    RepeatResult,
)
from ciwrap.report.text import percent_text, plural, safe_name, size_text
from ciwrap.statistics.spread import (
    LEAST_COMPARISONS,
    MANY_COMPARISONS,
    safety_factor,
    unequal_run_limit,
)
from ciwrap.studies.repeat.bounds import bound_text
from ciwrap.studies.repeat.costs import hour_note, note_of_runs, run_costs
from ciwrap.studies.repeat.factors import factor_findings
from ciwrap.studies.repeat.measure import Measurer
from ciwrap.studies.repeat.summary import NOT_COMPARED, summarise

if TYPE_CHECKING:
    from ciwrap.studies.repeat.run import Plan


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
    failed = [
        Message(MessageLevel.ERROR, f"run {run.number}: {run.problem}", slug="command-failed")
        for run in runs
        if run.problem is not None
    ]
    factors = () if plan is None else factor_findings(plan, measurers, variables)
    said = (
        *messages,
        *failed,
        *_variable_messages(variables, measurers, reference, plan),
        # Factors make groups by themselves, and findings tell of these.
        *(() if factors else _group_messages(variables, reference)),
    )
    return RepeatResult(
        headline=headline(variables, runs, reference, factors),
        exit_code=_exit_code(runs, variables, is_checked=is_checked),
        reference=reference,
        seed=0 if plan is None else plan.seed,
        design="full" if plan is None else plan.design,
        runs=tuple(runs),
        variables=variables,
        factors=factors,
        costs=run_costs(plan, runs),
        cost_note=note_of_runs(runs),
        hour_note=hour_note(runs),
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


def _variable_messages(
    variables: Sequence[RepeatedVariable],
    measurers: Sequence[Measurer],
    reference: str,
    plan: Plan | None,
) -> list[Message]:
    found = []
    for one in variables:
        if one.kind is Behaviour.NOT_COMPARABLE:
            # Why no run was compared is reported of the runs, once.
            if one.reason != NOT_COMPARED:
                found.append(_of(one, MessageLevel.ERROR, one.reason or ""))
        elif one.reason is not None:
            found.append(_of(one, MessageLevel.WARNING, one.reason))
        elif one.varies and one.max_abs is None:
            why = "the golden keeps no data of it" if reference == "golden" else "no numbers"
            text = f"how far it varies is unknown: {why}"
            found.append(_of(one, MessageLevel.NOTE, text))
    compared = [len(one.measured.compared) for one in measurers]
    if variables and all(one.kind is Behaviour.EQUAL for one in variables) and min(compared):
        found.append(Message(MessageLevel.NOTE, _equal_words(min(compared), reference, plan)))
    for measurer in measurers:
        for name, spread in sorted(measurer.measured.spreads.items()):
            if spread.nan_count:
                where = f"{measurer.name}: {name}"
                count = plural(spread.nan_count, "sampled value")
                text = f"{where}: holds NaN in the first run ({count})"
                found.append(Message(MessageLevel.WARNING, text, variable=where))
    found += _too_few(variables, measurers)
    return found


def _group_messages(variables: Sequence[RepeatedVariable], reference: str) -> list[Message]:
    """Of variables whose runs fall into two groups: which they are, and what to do."""
    found = []
    middle = "the golden" if reference == "golden" else "the first run"
    for one in variables:
        if (groups := one.groups) is None:
            continue
        shown = ", ".join(map(str, groups.far_runs[:_MOST_NAMES]))
        more = ", ..." if len(groups.far_runs) > _MOST_NAMES else ""
        far = f"{plural(len(groups.far_runs), 'run')} ({shown}{more})"
        near = f"{middle} alone"
        if groups.near_count:
            count = plural(groups.near_count, "run")
            near = f"{count} within {size_text(groups.near_at_most)} of {middle}"
        begin = size_text(groups.far_at_least)
        text = (
            f"two groups of runs: {near}, and {far} from {begin} on. Find what switches"
            " between them (`--vary`), or make 30 runs, since a rare group may reach further than"
            " these show"
        )
        found.append(_of(one, MessageLevel.WARNING, text))
    return found


def _equal_words(compared: int, reference: str, plan: Plan | None) -> str:
    """What so many runs that are equal to the reference say of the next one; of several settings,
    those of each say it of a further one with that setting.
    """
    if plan is not None and plan.factors:
        least = min(Counter(run.cell for run in plan.runs).values())
        if least < 2:
            return "all runs are equal, with one of each setting"
        limit = percent_text(unequal_run_limit(least))
        return (
            f"{least} equal runs of each setting: a further one differs with a chance of up to"
            f" {limit} (at 95 % confidence)"
        )
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


_MOST_NAMES = 4


def headline(
    variables: Sequence[RepeatedVariable],
    runs: Sequence[RepeatedRun],
    reference: str = "first",
    factors: Sequence[FactorFinding] = (),
) -> str:
    """The first sentence: `6 of 8 variables vary, at most 5e-7; atol: 2e-6 would hold; no
    exponential growth seen`. reference: what runs were compared with, "first" or "golden".
    """
    failed = [run for run in runs if run.problem is not None]
    if not variables:
        return (
            f"{len(failed)} of {plural(len(runs), 'run')} could not be compared: nothing is known"
        )
    has_compared = any(one.kind is not Behaviour.NOT_COMPARABLE for one in variables)
    parts = []
    if has_compared:
        parts = [_varying_words(variables, runs, reference), *_bound_words(variables)]
    if any(one.varies for one in variables):
        parts.append(_growth_words(variables))
    parts += _acting_words(factors)
    faults = [one for one in variables if one.kind is Behaviour.NOT_COMPARABLE]
    if faults:
        parts.insert(0, f"{plural(len(faults), 'variable')} cannot be compared ({_names(faults)})")
    if failed:
        numbers = ", ".join(str(run.number) for run in failed[:_MOST_NAMES])
        more = ", ..." if len(failed) > _MOST_NAMES else ""
        words = ("run", "was") if len(failed) == 1 else ("runs", "were")
        parts.insert(0, f"{words[0]} {numbers}{more} of {len(runs)} {words[1]} not compared")
    return "; ".join(parts)


def _varying_words(
    variables: Sequence[RepeatedVariable], runs: Sequence[RepeatedRun], reference: str
) -> str:
    varying = [one for one in variables if one.varies]
    told = [one for one in variables if one.kind is not Behaviour.NOT_COMPARABLE]
    good = sum(run.problem is None for run in runs)
    if not varying:
        what = "the variable is" if len(told) == 1 else f"all {len(told)} variables are"
        to_it = " to the golden" if reference == "golden" else ""
        return f"{what} equal{to_it} in {plural(good, 'run')}"
    sizes = [(one.max_abs, one.name) for one in varying if one.max_abs is not None]
    size = ""
    if sizes:
        worst, name = max(sizes)
        of_which = f" ({safe_name(name, 40)})" if len(varying) > 1 else ""
        size = f", {reach_words('at most', worst)}{of_which}"
    is_one = len(varying) == 1
    verb = "varies" if is_one else "vary"
    if reference == "golden":
        # Equal runs may be no golden's, and a golden without data tells no more than a bound.
        verb = "differs from the golden" if is_one else "differ from the golden"
        verb += ", or may" if len(sizes) < len(varying) else ""
    return f"{len(varying)} of {plural(len(told), 'variable')} {verb}{size}"


def _bound_words(variables: Sequence[RepeatedVariable]) -> list[str]:
    named = [
        (one.suggested_bound, one.name) for one in variables if one.suggested_bound is not None
    ]
    found = [bound for bound, _ in named]
    texts = list(dict.fromkeys(map(bound_text, found)))
    varying = sum(one.varies for one in variables)
    if not texts:
        return ["no bound is suggested"] if varying else []
    of_some = f" for {len(found)} of them" if len(found) < varying else ""
    if len(texts) == 1:
        return [f"`{texts[0]}` would hold{of_some}"]
    absolute = [(one.atol, name) for one, name in named if one.atol]
    relative = [(one.rtol, name) for one, name in named if one.rtol]
    ranges = [
        _range(key, values) for key, values in (("atol", absolute), ("rtol", relative)) if values
    ]
    return [f"{' and '.join(ranges)} would hold{of_some}"]


def _range(key: str, values: Sequence[tuple[float, str]]) -> str:
    """`atol` of 2e-8 (ids) to 0.0002 (vx): the variables with the least and the largest."""
    (least, low), (most, high) = min(values), max(values)
    if least == most:
        names = f" ({safe_name(low, 40)})" if len(values) == 1 else ""
        return f"`{key}: {number_text(least)}`{names}"
    return (
        f"`{key}` of {number_text(least)} ({safe_name(low, 40)}) to {number_text(most)}"
        f" ({safe_name(high, 40)})"
    )


def _growth_words(variables: Sequence[RepeatedVariable]) -> str:
    growing = [one for one in variables if one.kind is Behaviour.GROWING]
    unrelated = [one for one in variables if one.kind is Behaviour.UNRELATED]
    if unrelated:
        verb = "differs" if len(unrelated) == 1 else "differ"
        return f"{_names(unrelated)} {verb} by about as much as the values spread"
    if not growing:
        return "no exponential growth seen"
    known = [
        one.compare_until
        for one in growing
        if one.compare_until is not None and not one.is_compared_to_the_end
    ]
    until = f", compare up to iteration {min(known)}" if known else ""
    verb = "grows" if len(growing) == 1 else "grow"
    return f"{_names(growing)} {verb} exponentially{until}"


def _acting_words(factors: Sequence[FactorFinding]) -> list[str]:
    """`threads acts on x, y`, of each factor that acts on anything."""
    found: dict[str, list[str]] = {}
    for one in factors:
        if one.acts:
            found.setdefault(one.name, []).append(one.variable)
    return [f"{safe_name(name, 40)} acts on {_listed(names)}" for name, names in found.items()]


def _names(variables: Sequence[RepeatedVariable]) -> str:
    return _listed([one.name for one in variables])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(safe_name(one, 40) for one in names[:_MOST_NAMES])
    return shown + (", ..." if len(names) > _MOST_NAMES else "")


def reach_words(words: str, size: float) -> str:
    """`up to 1e-7`; `over 1.79e308` where a double does not reach."""
    return size_text(size) if size == math.inf else f"{words} {size_text(size)}"
