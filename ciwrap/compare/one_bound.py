"""The bound under which a variable would have matched in every checkpoint, or none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.compare.explain.remedies import of_atol
from ciwrap.details import FAR_BEYOND, Cause
from ciwrap.model import two_digits_above
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.details import Explanation
    from ciwrap.model import VariableResult

_BOUNDS = (Cause.WIDER_BOUND, Cause.NEAR_ZERO)
# Of numbers next to zero: so many times the bound of the one checkpoint is no longer next to zero.
_MOST_TIMES = 10.0


def with_one_bound(results: Sequence[VariableResult]) -> list[VariableResult]:
    """The results; where one says that all of it would match with an atol, it is one for all
    checkpoints of its variable. It is left out where some checkpoint is not known to match with
    any, or is so far off that a bound would hide it.
    """
    by_name: dict[str, list[int]] = {}
    for at, one in enumerate(results):
        if one.verdict.is_alarm:
            by_name.setdefault(one.name, []).append(at)
    found = list(results)
    for places in by_name.values():
        if len(places) < 2:
            continue
        needed = max(_needed(results[at]) for at in places)
        for at in places:
            told = results[at].explanations
            if any(one.cause in _BOUNDS for one in told):
                bound = results[at].bound
                rtol = 0.0 if bound is None else bound.rtol
                shown = (_with_bound(one, needed, rtol) for one in told)
                explanations = tuple(one for one in shown if one is not None)
                found[at] = replace(results[at], explanations=explanations)
    return found


def _needed(result: VariableResult) -> float:
    """An atol with which a checkpoint surely matches; infinite if there is none to be told. Worked
    out of what is known of each, whether or not it was looked at again.
    """
    lost = (
        result.nan_mismatch_count,
        result.inf_mismatch_count,
        result.missing_mismatch_count,
    )
    size, share = result.max_abs_difference, result.max_bound_share
    is_exact = result.bound is None or result.bound.is_exact
    is_far = not is_exact and share is not None and share > FAR_BEYOND
    return math.inf if not size or any(lost) or is_far else two_digits_above(size)


def _with_bound(one: Explanation, atol: float, rtol: float) -> Explanation | None:
    if one.cause not in _BOUNDS:
        return one
    is_told = math.isfinite(atol)
    if one.cause is Cause.NEAR_ZERO:
        if not is_told or not one.values or atol > _MOST_TIMES * one.values[0]:
            return replace(one, values=(), remedy=None)
        return one if atol <= one.values[0] else _of_atol(one, atol, rtol)
    return _of_atol(one, atol, rtol) if is_told else None


def _of_atol(one: Explanation, atol: float, rtol: float) -> Explanation:
    return replace(one, values=(atol,), remedy=of_atol(atol, rtol))
