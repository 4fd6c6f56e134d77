"""What the first difference of a run has in common, over its checkpoints as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.details import MOST_EXPLANATIONS, Cause, Explanation
from ciwrap.model import Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ciwrap.model import VariableId, VariableResult

# What may be read once more of each side for the first difference.
MOST_BYTES = 32 << 20
# One or two numbers are those of another iteration by chance.
_FEWEST_ELEMENTS = 3


def first_difference(results: Sequence[VariableResult]) -> int | None:
    """Where the earliest one that differs stands; None if there is none, or it is large."""
    found = [
        at
        for at, one in enumerate(results)
        if one.verdict.is_alarm and one.text is None and one.series is None
    ]
    at = min(found, key=lambda one: results[one].id.sort_key, default=None)
    return None if at is None or (results[at].byte_count or 0) > MOST_BYTES else at


def with_other_iteration(
    result: VariableResult,
    known: Iterable[VariableId],
    judge: Callable[[VariableId], VariableResult],
) -> VariableResult:
    """The result, told if its numbers are those of the iteration before or after.

    known: variables of the reference. judge: compares this one of them with the new numbers.
    """
    mine = result.id
    if mine.iteration is None or (result.element_count or 0) < _FEWEST_ELEMENTS:
        return result
    same = [one for one in known if (one.name, one.rank) == (mine.name, mine.rank)]
    ordered = sorted((one for one in same if one.iteration is not None), key=_iteration)
    if mine not in ordered:
        return result
    at = ordered.index(mine)
    for other in (*ordered[max(0, at - 1) : at], *ordered[at + 1 : at + 2]):
        if judge(other).verdict is Verdict.MATCH:
            count = result.differing_count or result.element_count or 0
            told = Explanation(
                Cause.OTHER_ITERATION, count, count, values=(float(_iteration(other)),)
            )
            rest = [one for one in result.explanations if one.cause is not Cause.WIDER_BOUND]
            return replace(result, explanations=(told, *rest)[:MOST_EXPLANATIONS])
    return result


def _iteration(one: VariableId) -> int:
    assert one.iteration is not None
    return one.iteration
