"""Compares units, in whatever process: what a worker does."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ciwrap.captures.checkpoint import Variables
from ciwrap.compare.comparer import Comparer
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
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.outcome import HistoryOptions
    from ciwrap.compare.unit_loop import UnitSteps
    from ciwrap.compare.units import Unit
    from ciwrap.compare.work import Work


class UnitComparer(Struct):
    """Compares units of two runs. Not thread safe; the sides stay the caller's.

    differences: takes every differing element of all units. list_path: has every unit write a list
    of its own instead, named after it and its number.
    """

    work: Work
    golden: Side
    new: Side
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
            comparer = Comparer(self.work, *sides, self.rules, self.options, differences)
            shared = [key for key in unit.keys if all(key in side.groups for side in sides)]
            outcome = comparer.compare(shared, unit.part) if shared else Outcome()
        if outcome.ended_by is not None:
            why = ended_words(outcome.ended_by)
            outcome.lost += [(key, why) for key in unit.keys if key not in shared]
        elif len(shared) < len(unit.keys):
            outcome.add(_one_sided(*sides, self.rules, unit.keys))
        return outcome

    def unless_changed(self, outcome: Outcome, unit: Unit) -> Outcome:
        """The outcome; of a part whose files are not what they were in the plan, that it is lost,
        for the parts before it are of other numbers. For the process that made the plan alone: what
        a file is known by may differ between machines.
        """
        if unit.part is None or (stamp_of(unit.keys[0], self.golden, self.new),) == unit.stamps:
            return outcome
        why = (
            "was written while its parts were being compared; let the program finish first, then"
            " compare again"
        )
        return Outcome(lost=[(unit.keys[0], why)], ended_by=outcome.ended_by)


class Done:
    """A future that has its result, without the library for those that wait for one."""

    def __init__(self, found: Outcome) -> None:
        self._found = found

    def done(self) -> bool:
        return True

    def cancelled(self) -> bool:
        return False

    def exception(self) -> None:
        return None

    def result(self) -> Outcome:
        return self._found

    def cancel(self) -> bool:
        return False


class InProcess:
    """Compares units one by one, here."""

    at_once = 1
    can_renew = False

    def __init__(self, comparer: UnitComparer, steps: UnitSteps) -> None:
        self._comparer = comparer
        self._steps = steps

    def submit(self, unit: Unit) -> Done:
        """Raises whatever comparing raises: nobody else can be lost."""
        self._steps.begin_unit(unit)
        return Done(self._comparer.compare(unit))

    def outcome(self, answer: Any, unit: Unit) -> Outcome:
        return self._comparer.unless_changed(answer, unit)

    @property
    def told_bytes(self) -> int:
        return self._steps.told_bytes

    def renew(self) -> None:
        raise NotImplementedError


def _one_sided(golden: Side, new: Side, rules: Rules, keys: Iterable[CheckpointKey]) -> Outcome:
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
            outcome.stale.append((str(found.side.run), key, found.stale))
    return outcome
