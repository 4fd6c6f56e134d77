"""Makes the result of repeated runs, which terminal, JSON and page show, of what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict, replace

from ciwrap.base.errors import ExitCode, NotAvailableError
from ciwrap.base.late import numpy as np
from ciwrap.model import ErrorBound, Message, MessageLevel, VariableId, number_text
from ciwrap.model.repeat_result import (
    Behaviour,
    BoundFit,
    BoundSuggestion,
    FactorFinding,
    IterationSpread,
    RepeatedRun,
    RepeatedVariable,
    RepeatResult,
)
from ciwrap.report.text import percent_text, plural, safe_name, size_text
from ciwrap.statistics.change_points import SATURATION, Growth, classify
from ciwrap.statistics.factors import (
    bits_of_spread,
    common_bits,
    decimal_digits,
    differing_shares,
    effects,
    power,
    spread_response,
    what_factors_do,
)
from ciwrap.statistics.spread import (
    LEAST_COMPARISONS,
    MANY_COMPARISONS,
    Differences,
    safety_factor,
    suggest_bound,
    unequal_run_limit,
)
from ciwrap.studies.repeat.measure import Measured, Measurer, Slot, Spread, largest, varying_share

if TYPE_CHECKING:
    from ciwrap.studies.repeat.run import Plan, PlannedRun

# Beyond this share of the present bound there is less room than a suggested bound leaves; below
# that one, the bound lets pass a thousand times what was seen.
_WIDE_SHARE = 1e-3
# Three digits of the spread: what lies beyond says little element by element.
_USEFUL_SHARE = 1e-3
# Kinds of dtypes that can have a bound, and those that can have a relative one.
_BOUNDED, _RELATIVE = frozenset("fciu"), frozenset("fc")
# So many roundings may add up before a difference must have another cause, and what is below this
# share of the values is taken for noise: a conserved quantity hardly spreads at all.
_ROUNDINGS = 1e4
_LEAST_SHARE = 1e-6
_EPSILONS = {
    "f2": 2.0**-10, "bf2": 2.0**-7, "f4": 2.0**-23, "c8": 2.0**-23, "f8": 2.0**-52, "c16": 2.0**-52,
}  # fmt: skip
# Of the sampled elements, this share may have fewer digits than stated.
_FEWER_DIGITS = 0.05
_UNRELATED = (
    "runs differ by {much} the spread of the values, from the first that vary on: is a random seed"
    " left open? Fix it before a bound is set. Chaos before the first checkpoint looks the same"
    " (judge it by `capture --ensemble`), and so does what is nothing but rounding, such as a"
    " residual near 0 (give it an `atol`)"
)
# Of a variable that has nothing but the first run's values.
NOT_COMPARED = "no other run could be compared with the first one"


class _Named(Struct, frozen=True):
    """All slots of one name, in order."""

    name: str
    slots: dict[VariableId, Slot]

    @property
    def iterations(self) -> list[int | None]:
        return list(dict.fromkeys(identity.iteration for identity in self.slots))

    @property
    def dtypes(self) -> set[str]:
        """Of the results that are not equal to the reference."""
        found = (one.dtype for slot in self.slots.values() for one in slot.results.values())
        return {dtype for dtype in found if dtype is not None}

    def at(self, iteration: int | None) -> list[Slot]:
        return [slot for identity, slot in self.slots.items() if identity.iteration == iteration]

    def largest_by_run(self, field: str, until: float = math.inf) -> dict[int, float | None]:
        """Of each run that was compared, the largest value of a result's field; None where one of
        its results does not tell.
        """
        found: dict[int, float | None] = {}
        for identity, slot in self.slots.items():
            if identity.iteration is not None and identity.iteration > until:
                continue
            for run, result in slot.results.items():
                value, known = getattr(result, field), found.get(run, 0.0)
                found[run] = None if value is None or known is None else max(known, float(value))
        return found

    def largest(self, field: str, until: float = math.inf) -> tuple[int, float] | None:
        """The run with the largest value of a field; None where some run does not tell."""
        found = self.largest_by_run(field, until)
        return None if None in found.values() else largest(found)


def names_that_vary(measured: Measured) -> set[str]:
    """The names of which some run has another result than the reference."""
    return {identity.name for identity, slot in measured.slots.items() if slot.results}


def largest_by_run(measured: Measured, name: str) -> dict[int, float | None]:
    """The largest |v - g| of each run that is not equal to the reference, of one name."""
    slots = {one: slot for one, slot in measured.slots.items() if one.name == name}
    return _Named(name, slots).largest_by_run("max_abs_difference")


def summarise(
    check: str, measured: Measured, runs: Sequence[int], *, has_digits: bool = True
) -> tuple[RepeatedVariable, ...]:
    """What is said of each variable of a check. runs: all that were made, in order. has_digits:
    whether significant digits are worked out, for which SciPy is loaded if it is there.
    """
    named: dict[str, dict[VariableId, Slot]] = {name: {} for name in sorted(measured.faults)}
    for identity in sorted(measured.slots):
        named.setdefault(identity.name, {})[identity] = measured.slots[identity]
    found = []
    for name, slots in sorted(named.items()):
        one = _Named(name, slots)
        variable = _variable(check, measured, one, runs)
        if has_digits and variable.kind is not Behaviour.NOT_COMPARABLE:
            variable = replace(
                variable, common_digits=_digits(one, "common"), normal_digits=_digits(one, "normal")
            )
        found.append(variable)
    return tuple(found)


def _variable(
    check: str, measured: Measured, named: _Named, runs: Sequence[int]
) -> RepeatedVariable:
    classes = result_classes(list(named.slots.values()), runs)
    fault = measured.faults.get(named.name)
    if fault is None and not measured.compared:
        fault = NOT_COMPARED
    if fault is not None:
        return RepeatedVariable(
            check, named.name, Behaviour.NOT_COMPARABLE, classes, len({*classes} - {0}),
            reason=fault, present_bound=measured.bounds.get(named.name),
        )  # fmt: skip
    spread = measured.spreads.get(named.name)
    deviation = 0.0 if spread is None else spread.deviation
    rows = tuple(_at_iteration(named, iteration, runs) for iteration in named.iterations)
    growth = _growth(rows, deviation)
    worst = named.largest("max_abs_difference")
    relative = named.largest("max_rel_difference")
    present_share = named.largest("max_bound_share")
    kind, reason = _behaviour(named, rows, growth, spread)
    is_growing = kind is Behaviour.GROWING
    until = _compare_until(rows, growth, deviation) if is_growing else None
    early_share = None
    if until is not None:
        early_share = named.largest("max_bound_share", until) or (0, 0.0)
    has_noise = is_growing or kind is Behaviour.NOISE
    suggested = _suggestion(measured, named, until) if has_noise else None
    present = measured.bounds.get(named.name)
    return RepeatedVariable(
        check=check,
        name=named.name,
        kind=kind,
        classes=classes,
        distinct_results=len({*classes} - {0}),
        first_iteration=next((row.iteration for row in rows if row.distinct_results > 1), None),
        max_abs=0.0 if kind is Behaviour.EQUAL else None if worst is None else worst[1],
        max_abs_run=None if worst is None else worst[0],
        max_abs_index=_worst_index(named, worst),
        max_rel=None if relative is None else relative[1],
        varying_share=_varying_share(named),
        spread=None if spread is None else deviation,
        by_iteration=rows,
        growth_rate=growth.rate if is_growing else None,
        horizon=_horizon(growth, present, deviation, rows) if is_growing else None,
        spread_horizon=growth.horizon(SATURATION * deviation) if is_growing else None,
        compare_until=until,
        suggested_bound=suggested,
        present_bound=present,
        present_share=None if present_share is None else present_share[1],
        early_share=None if early_share is None else early_share[1],
        present_fit=_fit(kind, early_share or present_share, len(measured.compared)),
        reason=reason,
        breaks_bound=not all(
            one.verdict.is_good for slot in named.slots.values() for one in slot.results.values()
        ),
    )


def result_classes(slots: Sequence[Slot], runs: Sequence[int]) -> tuple[int, ...]:
    """A number for each run: equal ones for results that are equal in all slots, 0 for none."""
    numbers: dict[tuple[bytes, ...], int] = {}
    found = []
    for run in runs:
        roots = tuple(slot.roots[run] for slot in slots if run in slot.roots)
        if len(roots) < len(slots) or not slots:
            found.append(0)
        else:
            found.append(numbers.setdefault(roots, len(numbers) + 1))
    return tuple(found)


def _at_iteration(named: _Named, iteration: int | None, runs: Sequence[int]) -> IterationSpread:
    slots = named.at(iteration)
    differences = [result.max_abs_difference for slot in slots for result in slot.results.values()]
    known = [one for one in differences if one is not None]
    movements = [slot.movement for slot in slots if slot.movement is not None]
    typical = None
    if movements:
        count = max(1, sum(one.reference.size for one in movements))
        sizes = [
            math.hypot(*(one.norms.get(run, 0.0) for one in movements)) / math.sqrt(count)
            for run in movements[0].norms
        ]
        typical = float(np.median(sizes)) if sizes else 0.0
    return IterationSpread(
        iteration,
        len({*result_classes(slots, runs)} - {0}),
        max(known, default=0.0) if len(known) == len(differences) else None,
        typical,
    )


def _growth(rows: Sequence[IterationSpread], deviation: float) -> Growth:
    known = [(row.iteration, row.typical) for row in rows if row.iteration is not None]
    steps = np.array([one for one, _ in known], float)
    sizes = np.array([0.0 if size is None else size for _, size in known])
    return classify(steps, sizes, deviation)


def _behaviour(
    named: _Named, rows: Sequence[IterationSpread], growth: Growth, spread: Spread | None
) -> tuple[Behaviour, str | None]:
    deviation = 0.0 if spread is None else spread.deviation
    if not any(slot.results for slot in named.slots.values()):
        return Behaviour.EQUAL, None
    if growth.kind == "growing":
        return Behaviour.GROWING, None
    first = next((row.typical for row in rows if row.typical), None)
    is_wide = first is not None and deviation > 0 and first >= SATURATION * deviation
    if first is not None and is_wide and first > _rounding(named, spread):
        share = first / deviation
        much = "more than" if share == math.inf else f"{percent_text(share)} of"
        return Behaviour.UNRELATED, _UNRELATED.format(much=much)
    return Behaviour.NOISE, None


def _rounding(named: _Named, spread: Spread | None) -> float:
    """What rounding can come to: values that hardly spread may differ by more than they do."""
    magnitude = None if spread is None else spread.magnitude
    epsilons = [_EPSILONS.get(dtype[1:], 0.0) for dtype in named.dtypes]
    return max(_ROUNDINGS * max(epsilons, default=0.0), _LEAST_SHARE) * (magnitude or 0.0)


def _compare_until(rows: Sequence[IterationSpread], growth: Growth, deviation: float) -> int | None:
    limit = growth.horizon(_USEFUL_SHARE * deviation)
    if limit is None:
        return None
    return max((r.iteration for r in rows if r.iteration is not None and r.iteration <= limit),
               default=None)  # fmt: skip


def _suggestion(measured: Measured, named: _Named, until: int | None) -> BoundSuggestion | None:
    limit = math.inf if until is None else until
    by_run = named.largest_by_run("max_abs_difference", limit)
    by_run_relative = named.largest_by_run("max_rel_difference", limit)
    worst, relative = largest(by_run), largest(by_run_relative)
    spread = measured.spreads.get(named.name)
    kinds = {_kind(dtype) for dtype in named.dtypes}
    if worst is None or relative is None or not kinds <= _BOUNDED:
        return None
    found = suggest_bound(
        Differences(
            comparisons=len(measured.compared),
            max_abs=worst[1],
            max_rel=relative[1],
            median_magnitude=None if spread is None else spread.magnitude,
            # Integers have no relative bound.
            has_zeros=measured.zeros.get(named.name, True) or not kinds <= _RELATIVE,
        )
    )
    if found is None:
        return None
    sizes = by_run if found.atol else by_run_relative
    typical = float(np.median([sizes.get(run) or 0.0 for run in measured.compared]))
    return BoundSuggestion(
        **asdict(found),
        noise_multiple=(found.atol or found.rtol) / typical if typical else None,
        until_iteration=until,
    )


def _kind(dtype: str | None) -> str:
    """`f`, `c`, `i`, `u` for numbers; bfloat16 is one of the floats, and booleans are none."""
    kind = (dtype or "")[1:2]
    return "f" if (dtype or "")[1:] == "bf2" else kind


def _fit(kind: Behaviour, share: tuple[int, float] | None, comparisons: int) -> BoundFit | None:
    factor = safety_factor(comparisons)
    if share is None or factor is None or kind not in (Behaviour.NOISE, Behaviour.GROWING):
        return None
    if share[1] * factor > 1:
        return BoundFit.TOO_TIGHT
    return BoundFit.TOO_WIDE if share[1] < _WIDE_SHARE else BoundFit.FITS


def _horizon(
    growth: Growth, present: ErrorBound | None, deviation: float, rows: Sequence[IterationSpread]
) -> float | None:
    """Where typical differences reach the bound while they grow freely: not before the first
    iteration, and not where they are as large as they get.
    """
    if present is None or not 0 < present.atol <= SATURATION * deviation:
        return None
    found = growth.horizon(present.atol)
    first = min((row.iteration for row in rows if row.iteration is not None), default=0)
    return found if found is not None and found >= first else None


def _worst_index(named: _Named, worst: tuple[int, float] | None) -> tuple[int, ...] | None:
    if worst is None:
        return None
    run, size = worst
    for slot in named.slots.values():
        result = slot.results.get(run)
        if result is not None and result.max_abs_difference == size:
            return result.max_abs_index
    return None


def _varying_share(named: _Named) -> float | None:
    shares = [
        varying_share(result) for slot in named.slots.values() for result in slot.results.values()
    ]
    known = [one for one in shares if one is not None]
    return max(known, default=None) if len(known) == len(shares) else None


def _digits(named: _Named, how: str) -> float | None:
    """Decimal digits that all but 5 % of the sampled elements have; None if nothing was told."""
    movements = [slot.movement for slot in named.slots.values() if slot.movement is not None]
    parts = []
    for one in movements:
        if how == "common":
            parts.append(common_bits(one.largest_relative[None, :]))
        elif one.relative_spread.size:
            try:
                parts.append(bits_of_spread(one.relative_spread, one.runs))
            except NotAvailableError:
                return None
    bits = np.concatenate(parts) if parts else np.empty(0)
    if not bits.size:
        return None
    # An element's own digits: between those of two, fewer elements than said would have as many.
    fewer = int(_FEWER_DIGITS * bits.size)
    return decimal_digits(float(np.partition(bits, fewer)[fewer]))


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
    said = (*messages, *failed, *_variable_messages(variables, measurers, reference))
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


def _variable_messages(
    variables: Sequence[RepeatedVariable], measurers: Sequence[Measurer], reference: str
) -> list[Message]:
    found = []
    for one in variables:
        if one.kind is Behaviour.NOT_COMPARABLE:
            # Why no run was compared is reported of the runs, once.
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


_MOST_NAMES = 4


def headline(
    variables: Sequence[RepeatedVariable], runs: Sequence[RepeatedRun], reference: str = "first"
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
    sizes = [one.max_abs for one in varying if one.max_abs is not None]
    size = f", {reach_words('at most', max(sizes))}" if sizes else ""
    is_one = len(varying) == 1
    verb = "varies" if is_one else "vary"
    if reference == "golden":
        # Equal runs may be no golden's, and a golden without data tells no more than a bound.
        verb = "differs from the golden" if is_one else "differ from the golden"
        verb += ", or may" if len(sizes) < len(varying) else ""
    return f"{len(varying)} of {plural(len(told), 'variable')} {verb}{size}"


def _bound_words(variables: Sequence[RepeatedVariable]) -> list[str]:
    found = [one.suggested_bound for one in variables if one.suggested_bound is not None]
    texts = list(dict.fromkeys(map(bound_text, found)))
    varying = sum(one.varies for one in variables)
    if not texts:
        return ["no bound is suggested"] if varying else []
    of_some = f" for {len(found)} of them" if len(found) < varying else ""
    if len(texts) == 1:
        return [f"`{texts[0]}` would hold{of_some}"]
    absolute = [one.atol for one in found if one.atol]
    relative = [one.rtol for one in found if one.rtol]
    ranges = [
        _range(name, values) for name, values in (("atol", absolute), ("rtol", relative)) if values
    ]
    return [f"{' and '.join(ranges)} would hold{of_some}"]


def _range(name: str, values: Sequence[float]) -> str:
    least, most = number_text(min(values)), number_text(max(values))
    return f"`{name}: {least}`" if least == most else f"`{name}` of {least} to {most}"


def _growth_words(variables: Sequence[RepeatedVariable]) -> str:
    growing = [one for one in variables if one.kind is Behaviour.GROWING]
    unrelated = [one for one in variables if one.kind is Behaviour.UNRELATED]
    if unrelated:
        return f"{_names(unrelated)} may have a random seed left open"
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


def _names(variables: Sequence[RepeatedVariable]) -> str:
    shown = ", ".join(safe_name(one.name, 40) for one in variables[:_MOST_NAMES])
    return shown + (", ..." if len(variables) > _MOST_NAMES else "")


def bound_text(bound: BoundSuggestion | ErrorBound) -> str:
    """As it stands in ciwrap.yaml: `atol: 2e-6`."""
    name, value = ("rtol", bound.rtol) if bound.rtol else ("atol", bound.atol)
    return f"{name}: {number_text(value)}"


def bound_reason(bound: BoundSuggestion) -> str:
    """`3 x largest of 9 differences`."""
    return f"{bound.factor} x largest of {bound.comparisons} differences"


def reach_words(words: str, size: float) -> str:
    """`up to 1e-7`; `over 1.79e308` where a double does not reach."""
    return size_text(size) if size == math.inf else f"{words} {size_text(size)}"
