"""How far numbers are apart, in words: as multiples of the bound, or why they have no distance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.report.text import plural, share_text, size_text

if TYPE_CHECKING:
    from ciwrap.model import DifferingElement, VariableResult


def variable_is_exact(variable: VariableResult) -> bool:
    """Whether nothing but equal numbers match: whole numbers move by 1 at least."""
    bound = variable.bound
    if bound is None or bound.is_exact:
        return True
    is_whole = variable.dtype is not None and variable.dtype[1:2] in ("i", "u", "b")
    return is_whole and bound.atol < 1 and not bound.rtol and not bound.ulps


def element_share_text(variable: VariableResult, element: DifferingElement) -> str:
    """How far one element is off that has a share of the bound: `42 x the bound`, `beyond a bound
    of 0`.
    """
    bound, share = variable.bound, element.bound_share or 0.0
    has_sum = bound is not None and bound.atol > 0 and variable.combine is None
    # Nothing is relative to a golden number that is 0.
    is_zero = element.abs_difference is not None and element.rel_difference is None
    if math.isinf(share) and is_zero and not has_sum:
        return "beyond a bound of 0"
    return share_text(share)


def relative_text(relative: float | None, difference: float | None) -> str:
    """A relative difference, in three digits; nothing where there is none, or where the difference
    is more than a double holds, so that nobody knows what it is of the number.
    """
    is_known = difference is None or math.isfinite(difference)
    return size_text(relative) if relative and is_known else ""


def mean_text(mean: float | None) -> str:
    """A mean difference, in three digits; nothing where its sum was more than a double holds."""
    return size_text(mean) if mean and math.isfinite(mean) else ""


def without_share_text(variable: VariableResult) -> str:
    """Of a variable whose largest difference is no multiple of its bound that a double holds."""
    if lost_count(variable):
        return "not a number on one side"
    elements = (one for one in told_elements(variable) if one.bound_share == math.inf)
    told = (element_share_text(variable, one) for one in elements)
    return next(told, share_text(math.inf))


def told_elements(variable: VariableResult) -> tuple[DifferingElement, ...]:
    """The differing elements that are known one by one: the first ones, and then the worst."""
    worst = () if variable.details is None else variable.details.worst_elements
    return (*variable.first_differences, *worst)


def lost_count(variable: VariableResult) -> int:
    """Elements that are NaN, infinite or missing on one side only."""
    counts = (
        variable.nan_mismatch_count,
        variable.inf_mismatch_count,
        variable.missing_mismatch_count,
    )
    return sum(count or 0 for count in counts)


def special_counts(variable: VariableResult) -> list[tuple[int, str]]:
    """How many elements differ that have no distance from their partner, and what they are."""
    counts = (
        (variable.nan_mismatch_count, "NaN without a match"),
        (variable.inf_mismatch_count, "infinite without a match"),
        (variable.missing_mismatch_count, "missing on one side only"),
    )
    return [(count, what) for count, what in counts if count]


def counted_lost(variable: VariableResult, count: int) -> str:
    """`2 elements`; of complex numbers `2 parts`, as each of both is counted by itself."""
    return plural(count, "part" if _is_complex(variable) else "element")


def has_distance(variable: VariableResult) -> bool:
    """Whether what differs is some number from what it was; not if it all is not a number, beside
    which the largest difference is one within the bound.
    """
    lost, count = lost_count(variable), variable.differing_count or 0
    is_all = 0 < lost == count
    if _is_complex(variable) and 0 < count <= lost:
        # Each of both parts counts, so an element may be among the lost ones twice.
        is_all = not any(one.abs_difference is not None for one in told_elements(variable))
    return bool(variable.max_abs_difference) and not is_all


def _is_complex(variable: VariableResult) -> bool:
    return variable.dtype is not None and variable.dtype[1:2] == "c"
