"""A second look at what differs: for the samples and maps of a report, and for what it has in
common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.captures.checkpoint import Variables
from ciwrap.closing import Closing
from ciwrap.compare.explaining import explainer_without_pictures
from ciwrap.compare.tally import DetailKeeper
from ciwrap.compare.work import Work
from ciwrap.errors import CiwrapError
from ciwrap.model import Verdict
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ciwrap.arrays.values import Values
    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Run
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableId, VariableResult
    from ciwrap.trees.build import Resources


def add_details(
    work: Work,
    outcome: Outcome,
    sides: tuple[Run, Run],
    keys_of: Mapping[VariableId, CheckpointKey],
    rules: Rules,
    most_bytes: int,
    *,
    only: set[VariableId] | None = None,
) -> None:
    """Gives the first differing results what a report draws of them; reads at most so many bytes.

    keys_of: the checkpoint of each variable. only: to these alone.
    """
    keeper = DetailKeeper([])  # of thousands that differ, few are drawn
    with Checkpoints(sides) as opened:
        for result in sorted(outcome.results, key=lambda one: one.id.sort_key):
            size = 2 * (result.byte_count or 0)
            is_wanted = result.verdict is Verdict.DIFFER and result.details is None
            is_wanted &= result.text is None and (only is None or result.id in only)
            if is_wanted and size <= most_bytes and result.id in keys_of:
                most_bytes -= size
                found = opened.at(keys_of[result.id])
                again = looked_at_again(work, result, result.id, found, rules)
                keeper.add(_detailed(result, again))
                work.data_bytes_read += size
            else:
                keeper.add(result)
    outcome.results = keeper.results


class Checkpoints(Closing):
    """A checkpoint of each side, open until another is asked for: to open all its files for each of
    its variables would take time that grows with the square of their number.
    """

    def __init__(self, sides: tuple[Run, Run]) -> None:
        self._sides = sides
        self._open: list[tuple[CheckpointKey, Variables] | None] = [None, None]

    def at(self, key: CheckpointKey) -> tuple[Variables, Variables]:
        """Both sides of one checkpoint."""
        return self.of(key, 0), self.of(key, 1)

    def of(self, key: CheckpointKey, number: int) -> Variables:
        """One side of a checkpoint; 0: the golden one, 1: the new one."""
        known = self._open[number]
        if known is not None and known[0] == key:
            return known[1]
        if known is not None:
            known[1].close()
            self._open[number] = None
        found = Variables(self._sides[number], key)
        self._open[number] = (key, found)
        return found

    def close(self) -> None:
        for one in self._open:
            if one is not None:
                one[1].close()
        self._open = [None, None]


def looked_at_again(
    work: Work,
    result: VariableResult,
    reference: VariableId,
    found: tuple[Variables, Variables],
    rules: Rules,
) -> VariableResult:
    """What a second look at a variable's new numbers tells beside those of a reference variable,
    perhaps of another checkpoint; the result as it is if they cannot be had.
    """
    from ciwrap.compare.judge import compare_values

    golden, new = found
    try:
        settings = rules.settings_for(result.id, result.dtype or "")
        if result.bound is not None:
            settings = replace(settings, bound=result.bound)
        return compare_values(
            golden.values(reference, settings.mask),
            new.values(result.id, settings.mask),
            settings,
            result.id,
            work=replace(work, progress=NO_PROGRESS),
        )
    except CiwrapError:
        return result


def _detailed(result: VariableResult, again: VariableResult) -> VariableResult:
    return replace(
        result,
        details=again.details,
        differing_box=again.differing_box,
        explanations=again.explanations,
    )


def explain_first(
    outcome: Outcome, resources: Resources, sides: tuple[Run, Run], rules: Rules
) -> None:
    """Says of two runs what the first difference has in common, after a second look at it alone."""
    from ciwrap.compare.over_checkpoints import first_difference, with_other_iteration

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


def _holder(
    opened: Checkpoints, sides: tuple[Run, Run], identity: VariableId, number: int
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


def parts_of_side(side: Run, first: VariableResult) -> Iterator[tuple[VariableId, Values]]:
    """The variable of a result on every rank of a run, in the iteration of the result."""
    from ciwrap.compare.across_ranks import is_part

    if side.is_fingerprint:
        return
    for key in side.groups:
        if key[0] not in (None, first.iteration):
            continue
        found = Variables(side, key)
        try:
            for identity in found.identities:
                if is_part(identity, first):
                    yield identity, found.values(identity)
        finally:
            found.close()
