"""The three result words, their order, and the exit code of each."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ciwrap.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(str, Enum):
    """The three result words."""

    MATCH = "match"
    DIFFER = "differ"
    NOT_COMPARABLE = "not_comparable"

    def __str__(self) -> str:
        return self.value

    @property
    def words(self) -> str:
        """For people: `match`, `differ`, `not comparable`."""
        return self.value.replace("_", " ")

    @property
    def exit_code(self) -> ExitCode:
        return _EXIT_CODES[self]

    @property
    def severity(self) -> int:
        """How bad it is: 0 for a match, 1 for a difference, 2 for what was not compared."""
        return _SEVERITY[self]

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """The most severe of the verdicts; of none at all: not_comparable."""
        return max(verdicts, key=_SEVERITY.__getitem__, default=Verdict.NOT_COMPARABLE)

    @staticmethod
    def worst_first() -> tuple[Verdict, ...]:
        """All three, the most severe one first: the order in which everything is listed."""
        return _WORST_FIRST


_SEVERITY = {Verdict.MATCH: 0, Verdict.DIFFER: 1, Verdict.NOT_COMPARABLE: 2}
_WORST_FIRST = tuple(sorted(Verdict, key=_SEVERITY.__getitem__, reverse=True))
_EXIT_CODES = {
    Verdict.MATCH: ExitCode.MATCH,
    Verdict.DIFFER: ExitCode.DIFFER,
    Verdict.NOT_COMPARABLE: ExitCode.NOT_COMPARABLE,
}
