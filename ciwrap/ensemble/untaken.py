"""What runs hold of which no features are taken, so that it is counted and told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from ciwrap.model import VariableId


class Untaken(Struct):
    """Of one run, or of several together.

    others: variables that are no numbers, or empty. ignored: what `ignore` names. early: of
    iterations that are left out. masked: how many elements masks take out. filled: names of
    variables with fill values. excluded: how many files `exclude` took out. rounded: names of
    variables with integers that no double holds. notes: what else is to be told.
    """

    others: set[VariableId] = field(default_factory=set)
    ignored: set[VariableId] = field(default_factory=set)
    early: set[VariableId] = field(default_factory=set)
    masked: int = 0
    filled: set[str] = field(default_factory=set)
    excluded: int = 0
    rounded: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def add(self, run: Untaken) -> None:
        """Takes what one more run has. A variable that several runs hold is one."""
        self.others |= run.others
        self.ignored |= run.ignored
        self.early |= run.early
        self.masked += run.masked
        self.filled |= run.filled
        self.excluded += run.excluded
        self.rounded |= run.rounded
        self.notes += [note for note in run.notes if note not in self.notes]

    @property
    def other_names(self) -> tuple[str, ...]:
        """The names of variables that have no statistics, sorted."""
        return tuple(sorted({one.name for one in self.others}))

    @property
    def rounding(self) -> tuple[str, ...]:
        """A warning for each variable of which doubles cannot tell integers apart."""
        return tuple(
            f"{name} has integers beyond 2^53, of which statistics see no difference of their last"
            " digits"
            for name in sorted(self.rounded)
        )
