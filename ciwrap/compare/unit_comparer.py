"""Compares units, in whatever process: what a worker does."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ciwrap.captures.checkpoint import Variables
from ciwrap.compare.comparer import compare_checkpoints
from ciwrap.compare.ending import ended_words
from ciwrap.compare.outcome import Outcome
from ciwrap.compare.pairing import Nothing, pair_up
from ciwrap.compare.unit_lists import list_of_unit
from ciwrap.compare.units import stamp_of
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Run
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.outcome import HistoryOptions
    from ciwrap.compare.units import Unit
    from ciwrap.compare.work import Work


class UnitComparer(Struct):
    """Compares units of two runs. Not thread safe; the sides stay the caller's.

    differences: takes every differing element of all units. list_path: has every unit write a list
    of its own instead, named after it and its number.
    """

    work: Work
    golden: Run
    new: Run
    rules: Rules
    options: HistoryOptions
    differences: DifferenceList | None = None
    list_path: Path | None = None

    def compare(self, unit: Unit) -> Outcome:
        """Raises UsageError and WriteFailedError; all else is in the outcome."""
        with ExitStack() as opened:
            differences = self.differences
            if self.list_path is not None:
                from ciwrap.compare.differences import DifferenceList

                target = list_of_unit(self.list_path, unit)
                differences = opened.enter_context(DifferenceList(target))
            sides = self.golden, self.new
            shared = [key for key in unit.keys if all(key in side.groups for side in sides)]
            outcome = compare_checkpoints(
                self.work,
                sides,
                self.rules,
                self.options,
                shared,
                part=unit.part,
                differences=differences,
            )
        if outcome.ended_by is not None:
            why = ended_words(outcome.ended_by)
            outcome.lost += [(key, why) for key in unit.keys if key not in shared]
        elif len(shared) < len(unit.keys):
            outcome.add(_one_sided(*sides, self.rules, unit.keys))
        return outcome

    def unless_changed(self, outcome: Outcome, unit: Unit) -> Outcome:
        """The outcome of a part; of one whose files are not what they were in the plan, that it is
        lost, for the parts before it are of other numbers. For the process that made the plan
        alone: what a file is known by may differ between machines.
        """
        if (stamp_of(unit.keys[0], self.golden, self.new),) == unit.stamps:
            return outcome
        why = (
            "was written while its parts were being compared; let the program finish first, then"
            " compare again"
        )
        return Outcome(lost=[(unit.keys[0], why)], ended_by=outcome.ended_by)


def _one_sided(golden: Run, new: Run, rules: Rules, keys: Iterable[CheckpointKey]) -> Outcome:
    """The variables of checkpoints that only one run has."""
    outcome = Outcome()
    for key in keys:
        if key in golden.groups and key in new.groups:
            continue
        is_reference = key in golden.groups
        found = Variables(golden if is_reference else new, key)
        found.close()
        ours, theirs = (found, Nothing()) if is_reference else (Nothing(), found)
        pair_up(outcome, rules, ours, theirs)
        outcome.errors += found.errors
        if found.stale is not None:
            outcome.stale.append((str(found.run.path), key, found.stale))
    return outcome
