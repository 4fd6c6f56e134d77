"""What the first difference of a run has in common, over its checkpoints as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.compare.detailed import Checkpoints, looked_at_again
from ciwrap.compare.explaining import explainer_without_pictures
from ciwrap.compare.work import Work
from ciwrap.details import MOST_EXPLANATIONS, Cause, Explanation
from ciwrap.model import Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ciwrap.captures.checkpoint import Variables
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableId, VariableResult
    from ciwrap.trees.build import Resources

# What may be read once more of each side for the first difference.
MOST_BYTES = 32 << 20
# One or two numbers are those of another iteration by chance.
_FEWEST_ELEMENTS = 3


def explain_first(
    outcome: Outcome, resources: Resources, sides: tuple[Side, Side], rules: Rules
) -> None:
    """Says of two runs what the first difference has in common, after a second look at it alone."""
    at = first_difference(outcome.results)
    if at is None or any(side.is_fingerprint for side in sides):
        return
    first = outcome.results[at]
    work = Work(resources, explain=explainer_without_pictures)
    with Checkpoints(sides) as opened:

        def looked_at(work: Work, reference: VariableId) -> VariableResult:
            golden = _holder(opened, sides, reference, 0)
            new = _holder(opened, sides, first.id, 1)
            if golden is None or new is None:
                return first
            outcome.data_bytes_read += 2 * (first.byte_count or 0)
            return looked_at_again(work, first, reference, (golden, new), rules)

        known = {one.id for one in outcome.results}
        if not first.explanations:
            again = looked_at(work, first.id)
            causes, box = again.explanations, again.differing_box
            first = replace(first, explanations=causes, differing_box=box)
        # Of other iterations the verdict is all that is asked for.
        plain = replace(work, explain=None)
        first = with_other_iteration(first, known, lambda other: looked_at(plain, other))
    outcome.results[at] = first


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


def _holder(
    opened: Checkpoints, sides: tuple[Side, Side], identity: VariableId, number: int
) -> Variables | None:
    """The checkpoint of a side that has a variable; None if it is gone. Of what the variable tells
    of itself, paths may tell a part or nothing, even beside others that tell all.
    """
    for iteration in dict.fromkeys((identity.iteration, None)):
        for rank in dict.fromkeys((identity.rank, None)):
            if (iteration, rank) in sides[number].groups:
                found = opened.of((iteration, rank), number)
                if identity in found.identities:
                    return found
    return None
