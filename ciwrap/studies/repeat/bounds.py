"""Which bound the differences of a variable suggest, and why one that catches nothing is none."""

from __future__ import annotations

import math

from msgspec.structs import asdict

from ciwrap.base.late import numpy as np
from ciwrap.model import ErrorBound, number_text
from ciwrap.model.repeat_result import Behaviour, BoundFit, BoundSuggestion, RunGroups
from ciwrap.report.text import index_text, plural, size_text
from ciwrap.statistics.spread import Differences, far_ones, safety_factor, suggest_bound
from ciwrap.studies.repeat.measure import Measured, Named, Spread, largest

# Below this share of it, the present bound lets pass a thousand times what was seen.
_WIDE_SHARE = 1e-3
# Kinds of dtypes that can have a bound, and those that can have a relative one.
_BOUNDED, _RELATIVE = frozenset("fciu"), frozenset("fc")
# So many roundings may add up before a difference must have another cause, and what is below this
# share of the values is taken for noise: a conserved quantity hardly spreads at all.
_ROUNDINGS = 1e4
_LEAST_SHARE = 1e-6
_EPSILONS = {
    "f2": 2.0**-10, "bf2": 2.0**-7, "f4": 2.0**-23, "c8": 2.0**-23, "f8": 2.0**-52, "c16": 2.0**-52,
}  # fmt: skip
# Elements that differ by less than this share of the largest difference are no cause of it.
_NEAR_LARGEST = 0.1


def rounding_of(named: Named, spread: Spread | None) -> float:
    """What rounding can come to: values that hardly spread may differ by more than they do."""
    magnitude = None if spread is None else spread.magnitude
    epsilons = [_EPSILONS.get(dtype[1:], 0.0) for dtype in named.dtypes]
    return max(_ROUNDINGS * max(epsilons, default=0.0), _LEAST_SHARE) * (magnitude or 0.0)


def suggestion(
    measured: Measured, named: Named, until: int | None
) -> tuple[BoundSuggestion | None, str | None]:
    """The bound that differences suggest, or why it is none, if it would catch nothing.

    until: up to which iteration; None for all. Neither, where there are too few runs, or nothing
    that a bound can be made of.
    """
    limit = math.inf if until is None else until
    by_run = named.largest_by_run("max_abs_difference", limit)
    by_run_relative = named.largest_by_run("max_rel_difference", limit)
    worst, relative = largest(by_run), largest(by_run_relative)
    spread = measured.spreads.get(named.name)
    kinds = {_kind(dtype) for dtype in named.dtypes}
    if worst is None or relative is None or not kinds <= _BOUNDED:
        return None, None
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
        return None, None
    sizes = by_run if found.atol else by_run_relative
    typical = float(np.median([sizes.get(run) or 0.0 for run in measured.compared]))
    bound = BoundSuggestion(
        **asdict(found),
        noise_multiple=(found.atol or found.rtol) / typical if typical else None,
        until_iteration=until,
    )
    if catches_nothing(bound.bound, named, spread):
        return None, _refusal(bound, named, spread, worst)
    return bound, None


def catches_nothing(bound: ErrorBound, named: Named, spread: Spread | None) -> bool:
    """Whether a bound lets pass what has nothing to do with the reference: a change as large as
    the spread of the values, or of any of them to 0.
    """
    deviation = 0.0 if spread is None else spread.deviation
    scale = max(deviation, rounding_of(named, spread))
    return bound.rtol >= 1 or (scale > 0 and bound.atol >= scale)


def _refusal(
    bound: BoundSuggestion, named: Named, spread: Spread | None, worst: tuple[int, float]
) -> str:
    """Why a bound is not suggested, with the elements that cause it."""
    deviation = 0.0 if spread is None else spread.deviation
    why = (
        "any value could become 0" if bound.rtol else f"the values spread by {size_text(deviation)}"
    )
    until, remedy = "", "leave them out with a `mask`"
    if bound.until_iteration is not None:
        until = f" up to iteration {bound.until_iteration}"
        remedy = "compare fewer iterations, or judge it by `capture --ensemble`"
    return (
        f"no bound is suggested: it would take `{bound_text(bound)}`{until}, {why}, so hardly"
        f" anything would fail; {_elements_words(named, worst)}: fix what makes them vary (is a"
        f" random seed left open?), or {remedy}"
    )


def _elements_words(named: Named, worst: tuple[int, float]) -> str:
    """`5 of 5,000 elements vary by up to 3.16 (most at [3]), the others by 0`."""
    place = named.place_of(worst)
    size = size_text(worst[1])
    if place is None or place[0].movement is None:
        return f"some values vary by up to {size}"
    far = place[0].movement.farthest
    at = place[1].max_abs_index
    most = "" if at is None else f" (most at {index_text(at)})"
    is_near = far >= _NEAR_LARGEST * worst[1]
    near, others = int(np.count_nonzero(is_near)), float(far[~is_near].max(initial=0.0))
    what = "value" if (place[1].element_count or 0) <= far.size else "sampled value"
    if near == far.size:
        return f"all {plural(near, what)} vary by up to {size}{most}"
    if near:
        rest = "by 0" if others == 0 else f"by at most {size_text(others)}"
        return f"{near:,} of {plural(far.size, what)} vary by up to {size}{most}, the others {rest}"
    return f"some values vary by up to {size}{most}, and none of {plural(far.size, what)} does"


def fit_of(
    kind: Behaviour, share: tuple[int, float] | None, comparisons: int, *, is_blind: bool
) -> BoundFit | None:
    """Whether the present bound fits. share: of it that was used, with the run. is_blind: whether
    it `catches_nothing`.
    """
    factor = safety_factor(comparisons)
    if share is None or factor is None or kind not in (Behaviour.NOISE, Behaviour.GROWING):
        return None
    if share[1] * factor > 1 and not is_blind:
        return BoundFit.TOO_TIGHT
    return BoundFit.TOO_WIDE if is_blind or share[1] < _WIDE_SHARE else BoundFit.FITS


def groups_of(measured: Measured, named: Named, classes: tuple[int, ...]) -> RunGroups | None:
    """The two groups that runs fall into, by their largest |v - g|; None where they do not.

    classes: equal numbers for equal results of all runs.
    """
    by_run = named.largest_by_run("max_abs_difference")
    sizes = {run: by_run.get(run, 0.0) for run in measured.compared}
    known = {run: size for run, size in sizes.items() if size is not None and size < math.inf}
    if len(known) < len(sizes):
        return None
    far = far_ones(known)
    if len({*classes} - {0}) == 2:
        far = {run for run, size in known.items() if size > 0}
    if not far:
        return None
    return RunGroups(
        far_runs=tuple(sorted(far)),
        near_count=len(known) - len(far),
        near_at_most=max((size for run, size in known.items() if run not in far), default=0.0),
        far_at_least=min(known[run] for run in far),
    )


def _kind(dtype: str | None) -> str:
    """`f`, `c`, `i`, `u` for numbers; bfloat16 is one of the floats, and booleans are none."""
    kind = (dtype or "")[1:2]
    return "f" if (dtype or "")[1:] == "bf2" else kind


def bound_text(bound: BoundSuggestion | ErrorBound) -> str:
    """As it stands in ciwrap.yaml: `atol: 2e-6`."""
    name, value = ("rtol", bound.rtol) if bound.rtol else ("atol", bound.atol)
    return f"{name}: {number_text(value)}"


def bound_reason(bound: BoundSuggestion) -> str:
    """`3 x largest of 9 differences`."""
    return f"{bound.factor} x largest of {bound.comparisons} differences"
