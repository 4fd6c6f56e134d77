"""Where two sides of a check part first, as every output shows it (see `CheckResult`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.structs import Struct, Word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ciwrap.model.results import CheckResult
    from ciwrap.model.variable_result import DifferingElement, VariableResult


class DivergenceKind(Word):
    """Why a variable does not match. SUSPECT: digests differ, and nobody can tell whether a number
    is beyond its bound. MISSING: only the golden side has it. EXTRA: only the new
    side has it. NOT_COMPARABLE: both have it, and it could not be compared.
    """

    DIFFER = "differ"
    SUSPECT = "suspect"
    NOT_COMPARABLE = "not_comparable"
    MISSING = "missing"
    EXTRA = "extra"

    @property
    def is_alarm(self) -> bool:
        """Whether it is about numbers that were compared."""
        return self in (DivergenceKind.DIFFER, DivergenceKind.SUSPECT)


class Divergence(Struct, frozen=True):
    """A variable of one checkpoint that does not match, and why."""

    kind: DivergenceKind
    variable: VariableResult

    @property
    def element(self) -> DifferingElement | None:
        """The first element that differs; None where nothing differs or no values are known."""
        if self.kind is not DivergenceKind.DIFFER or not self.variable.first_differences:
            return None
        return self.variable.first_differences[0]


def earliest(check: CheckResult, found: Iterable[VariableResult]) -> Divergence | None:
    """The first by iteration, rank and name of some variables of a check, none of which matches."""
    first = min(found, key=lambda one: one.id.sort_key, default=None)
    return None if first is None else Divergence(_kind_of(check, first), first)


def _kind_of(check: CheckResult, variable: VariableResult) -> DivergenceKind:
    if variable.verdict.is_alarm:
        return DivergenceKind(variable.verdict.value)
    if variable.id in check.missing_variables:
        return DivergenceKind.MISSING
    if variable.id in check.extra_variables:
        return DivergenceKind.EXTRA
    return DivergenceKind.NOT_COMPARABLE
