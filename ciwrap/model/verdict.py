"""The four result words, their order, and the exit code of each."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ciwrap.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(str, Enum):
    """The four result words.

    suspect: digests differ, and without the golden's data nobody can tell whether a number is
    beyond its bound. It fails as a difference does.
    """

    MATCH = "match"
    SUSPECT = "suspect"
    DIFFER = "differ"
    NOT_COMPARABLE = "not_comparable"

    def __str__(self) -> str:
        return self.value

    @property
    def words(self) -> str:
        """For people: `match`, `suspect`, `differ`, `not comparable`."""
        return self.value.replace("_", " ")

    @property
    def is_alarm(self) -> bool:
        """Whether numbers were compared that are beyond their bound, or may be."""
        return self in (Verdict.SUSPECT, Verdict.DIFFER)

    @property
    def exit_code(self) -> ExitCode:
        return _EXIT_CODES[self]

    @property
    def severity(self) -> int:
        """How bad it is: from 0 for a match to 3 for what was not compared."""
        return _SEVERITY[self]

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """The most severe of the verdicts; of none at all: not_comparable."""
        return max(verdicts, key=_SEVERITY.__getitem__, default=Verdict.NOT_COMPARABLE)

    @staticmethod
    def worst_first() -> tuple[Verdict, ...]:
        """All of them, the most severe one first: the order in which everything is listed."""
        return _WORST_FIRST


_SEVERITY = {
    Verdict.MATCH: 0,
    Verdict.SUSPECT: 1,
    Verdict.DIFFER: 2,
    Verdict.NOT_COMPARABLE: 3,
}
_WORST_FIRST = tuple(sorted(Verdict, key=_SEVERITY.__getitem__, reverse=True))
_EXIT_CODES = {
    Verdict.MATCH: ExitCode.MATCH,
    Verdict.SUSPECT: ExitCode.DIFFER,
    Verdict.DIFFER: ExitCode.DIFFER,
    Verdict.NOT_COMPARABLE: ExitCode.NOT_COMPARABLE,
}
