"""The result words, their order, and the exit code of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import ExitCode
from ciwrap.structs import Word

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(Word):
    """The result words. A variable has one of the first four; a check whose golden is an ensemble
    has one of the last two, or is not comparable: nothing of it was compared value by value, so it
    never matches. suspect: digests differ, and without the golden's data nobody can tell whether a
    number is beyond its bound. It fails as a difference does.
    """

    MATCH = "match"
    SUSPECT = "suspect"
    DIFFER = "differ"
    NOT_COMPARABLE = "not_comparable"
    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"

    @property
    def is_alarm(self) -> bool:
        """Whether numbers were compared that are beyond their bound, or may be."""
        return self in (Verdict.SUSPECT, Verdict.DIFFER)

    @property
    def exit_code(self) -> ExitCode:
        return _EXIT_CODES[self]

    @property
    def severity(self) -> int:
        """How bad it is, from 0 for a match to the highest for what was not compared.

        A test that is wrong once in a hundred times weighs less than numbers that were compared.
        """
        return _SEVERITY[self]

    @property
    def is_good(self) -> bool:
        """Whether the command that comes to it ends with 0."""
        return self.exit_code is ExitCode.MATCH

    @property
    def is_statistical(self) -> bool:
        """Whether it comes from a test on the statistics of runs, and not from their values."""
        return self in (Verdict.CONSISTENT, Verdict.INCONSISTENT)

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """The most severe of the verdicts; of none at all: not_comparable."""
        return max(verdicts, key=_SEVERITY.__getitem__, default=Verdict.NOT_COMPARABLE)

    @staticmethod
    def worst_first() -> tuple[Verdict, ...]:
        """Those that variables have, the most severe one first: the order in which they are
        listed.
        """
        return _WORST_FIRST


_SEVERITY = {
    Verdict.MATCH: 0,
    Verdict.CONSISTENT: 1,
    Verdict.INCONSISTENT: 2,
    Verdict.SUSPECT: 3,
    Verdict.DIFFER: 4,
    Verdict.NOT_COMPARABLE: 5,
}
_WORST_FIRST = (Verdict.NOT_COMPARABLE, Verdict.DIFFER, Verdict.SUSPECT, Verdict.MATCH)
_EXIT_CODES = {
    Verdict.MATCH: ExitCode.MATCH,
    Verdict.CONSISTENT: ExitCode.MATCH,
    Verdict.SUSPECT: ExitCode.DIFFER,
    Verdict.INCONSISTENT: ExitCode.DIFFER,
    Verdict.DIFFER: ExitCode.DIFFER,
    Verdict.NOT_COMPARABLE: ExitCode.NOT_COMPARABLE,
}
