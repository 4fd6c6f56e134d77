"""What is said of each variable of repeated runs, of what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from ciwrap.base.errors import NotAvailableError
from ciwrap.base.late import numpy as np
from ciwrap.model import ErrorBound, VariableId
from ciwrap.model.repeat_result import Behaviour, IterationSpread, RepeatedVariable
from ciwrap.report.text import percent_text
from ciwrap.statistics.change_points import SATURATION, Growth, classify
from ciwrap.statistics.factors import bits_of_spread, common_bits, decimal_digits
from ciwrap.studies.repeat.bounds import (
    catches_nothing,
    fit_of,
    groups_of,
    rounding_of,
    suggestion,
)
from ciwrap.studies.repeat.measure import Measured, Named, Slot, Spread, varying_share

# Three digits of the spread: what lies beyond says little element by element.
_USEFUL_SHARE = 1e-3
# Of the sampled elements, this share may have fewer digits than stated.
_FEWER_DIGITS = 0.05
_UNRELATED = (
    "runs differ by {much} the spread of the values as soon as they differ: is a random seed"
    " left open? Fix it before a bound is set. Chaos before the first checkpoint looks the same"
    " (judge it by `capture --ensemble`), and so does what is nothing but rounding, such as a"
    " residual near 0 (give it an `atol`)"
)
# Of a variable that has nothing but the first run's values.
NOT_COMPARED = "no other run could be compared with the first one"


def names_that_vary(measured: Measured) -> set[str]:
    """The names of which some run has another result than the reference."""
    return {identity.name for identity, slot in measured.slots.items() if slot.results}


def largest_by_run(measured: Measured, name: str) -> dict[int, float | None]:
    """The largest |v - g| of each run that is not equal to the reference, of one name."""
    slots = {one: slot for one, slot in measured.slots.items() if one.name == name}
    return Named(name, slots).largest_by_run("max_abs_difference")


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
        one = Named(name, slots)
        variable = _variable(check, measured, one, runs)
        if has_digits and variable.kind is not Behaviour.NOT_COMPARABLE:
            variable = replace(
                variable, common_digits=_digits(one, "common"), normal_digits=_digits(one, "normal")
            )
        found.append(variable)
    return tuple(found)


def _variable(
    check: str, measured: Measured, named: Named, runs: Sequence[int]
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
    place = None if worst is None else named.place_of(worst)
    relative = named.largest("max_rel_difference")
    present_share = named.largest("max_bound_share")
    kind, reason = _behaviour(named, rows, growth, spread)
    is_growing = kind is Behaviour.GROWING
    until = _compare_until(rows, growth, deviation) if is_growing else None
    early_share = None
    if until is not None:
        early_share = named.largest("max_bound_share", until) or (0, 0.0)
    suggested, groups = None, None
    if is_growing or kind is Behaviour.NOISE:
        suggested, reason = suggestion(measured, named, until)
        groups = groups_of(measured, named, classes)
    sizes = named.largest_by_run("max_abs_difference")
    present = measured.bounds.get(named.name)
    is_blind = present is not None and catches_nothing(present, named, spread)
    return RepeatedVariable(
        check=check,
        name=named.name,
        kind=kind,
        classes=classes,
        distinct_results=len({*classes} - {0}),
        first_iteration=next((row.iteration for row in rows if row.distinct_results > 1), None),
        max_abs=0.0 if kind is Behaviour.EQUAL else None if worst is None else worst[1],
        max_abs_run=None if worst is None else worst[0],
        max_abs_index=None if place is None else place[1].max_abs_index,
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
        present_fit=fit_of(
            kind, early_share or present_share, len(measured.compared), is_blind=is_blind
        ),
        groups=groups,
        by_run=()
        if kind is Behaviour.EQUAL
        else tuple(
            sizes.get(run, 0.0) if label else None for run, label in zip(runs, classes, strict=True)
        ),
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


def _at_iteration(named: Named, iteration: int | None, runs: Sequence[int]) -> IterationSpread:
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
    named: Named, rows: Sequence[IterationSpread], growth: Growth, spread: Spread | None
) -> tuple[Behaviour, str | None]:
    deviation = 0.0 if spread is None else spread.deviation
    if not any(slot.results for slot in named.slots.values()):
        return Behaviour.EQUAL, None
    if growth.kind == "growing":
        return Behaviour.GROWING, None
    first = next((row.typical for row in rows if row.typical), None)
    is_wide = first is not None and deviation > 0 and first >= SATURATION * deviation
    if first is not None and is_wide and first > rounding_of(named, spread):
        share = first / deviation
        much = "more than" if share == math.inf else f"{percent_text(share)} of"
        return Behaviour.UNRELATED, _UNRELATED.format(much=much)
    return Behaviour.NOISE, None


def _compare_until(rows: Sequence[IterationSpread], growth: Growth, deviation: float) -> int | None:
    limit = growth.horizon(_USEFUL_SHARE * deviation)
    if limit is None:
        return None
    return max((r.iteration for r in rows if r.iteration is not None and r.iteration <= limit),
               default=None)  # fmt: skip


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


def _varying_share(named: Named) -> float | None:
    shares = [
        varying_share(result) for slot in named.slots.values() for result in slot.results.values()
    ]
    known = [one for one in shares if one is not None]
    return max(known, default=None) if len(known) == len(shares) else None


def _digits(named: Named, how: str) -> float | None:
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
