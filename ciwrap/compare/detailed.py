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
) -> None:
    """Gives the first differing results what a report draws of them; reads at most so many bytes.

    keys_of: the checkpoint of each variable.
    """
    keeper = DetailKeeper([])  # of thousands that differ, few are drawn
    with _Checkpoint(sides) as checkpoint:
        for result in sorted(outcome.results, key=lambda one: one.id.sort_key):
            size = 2 * (result.byte_count or 0)
            is_wanted = result.verdict is Verdict.DIFFER and result.details is None
            is_wanted &= result.text is None
            if is_wanted and size <= most_bytes and result.id in keys_of:
                most_bytes -= size
                golden, new = checkpoint.at(keys_of[result.id])
                keeper.add(_detailed(work, result, golden, new, rules))
                work.data_bytes_read += size
            else:
                keeper.add(result)
    outcome.results = keeper.results


class _Checkpoint(Closing):
    """Both sides of one checkpoint, open until another is asked for: to open all its files for each
    of its variables would take time that grows with the square of their number.
    """

    def __init__(self, sides: tuple[Side, Side]) -> None:
        self._sides = sides
        self._key: CheckpointKey | None = None
        self._open: tuple[Variables, ...] = ()

    def at(self, key: CheckpointKey) -> tuple[Variables, ...]:
        if key != self._key:
            self.close()
            self._open = tuple(Variables(side, key) for side in self._sides)
            self._key = key
        return self._open

    def close(self) -> None:
        for one in self._open:
            one.close()
        self._open, self._key = (), None


def _detailed(
    work: Work, result: VariableResult, golden: Variables, new: Variables, rules: Rules
) -> VariableResult:
    """The result with what only a second look can tell; as it is if that cannot be had."""
    from ciwrap.compare.judge import compare_values

    try:
        settings = rules.settings_for(result.id, result.dtype or "")
        if result.bound is not None:
            settings = replace(settings, bound=result.bound)
        found = compare_values(
            golden.values(result.id, settings.mask),
            new.values(result.id, settings.mask),
            settings,
            result.id,
            work=replace(work, progress=NO_PROGRESS),
        )
    except CiwrapError:
        return result
    return replace(
        result,
        details=found.details,
        differing_box=found.differing_box,
        explanations=found.explanations,
    )
