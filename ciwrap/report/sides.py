"""What the two sides of a comparison are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, VariableResult

GOLDEN_AND_NEW = ("golden", "new")
A_AND_B = ("A", "B")
# Of numbers that the configuration tells, by its key.
_EXPECTED_AND_NEW = {"expect": ("expected", "new"), "range": ("nearest in range", "new")}


def sides_of(check: CheckResult, variable: VariableResult) -> tuple[str, str]:
    """What the sides of a variable are called: two runs are A and B."""
    return own_sides(variable, GOLDEN_AND_NEW if check.source_path is None else A_AND_B)


def own_sides(variable: VariableResult, sides: tuple[str, str]) -> tuple[str, str]:
    """The same, where the sides of the check have names of their own."""
    return _EXPECTED_AND_NEW.get(variable.expectation or "", sides)
