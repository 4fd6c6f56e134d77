"""Samples and maps for the report: a second look at what differs, as far as that is little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.captures.checkpoint import Variables
from ciwrap.closing import Closing
from ciwrap.compare.tally import DetailKeeper
from ciwrap.errors import CiwrapError
from ciwrap.model import Verdict
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.outcome import Outcome
    from ciwrap.compare.work import Work
    from ciwrap.model import VariableId, VariableResult


def add_details(
    work: Work,
    outcome: Outcome,
    sides: tuple[Side, Side],
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

    def __init__(self, sides: tuple[Side, Side]) -> None:
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
