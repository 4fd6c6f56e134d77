"""Bounds of which both parts have to hold, or either: min or max of atol and rtol * |golden|.

Each element is compared by the part that decides there, which follows from the golden value, and
by the core.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import Values
from ciwrap.compare.elements import compare_elements
from ciwrap.compare.findings import with_elements
from ciwrap.compare.parts import MOST_ELEMENTS, read_each
from ciwrap.errors import InvalidBoundError
from ciwrap.late import numpy as np
from ciwrap.model import ErrorBound
from ciwrap.structs import replace
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.compare.work import Work
    from ciwrap.model import VariableId, VariableResult, VariableSettings


def compare_combined(
    work: Work,
    result: VariableResult,
    reference: Values,
    new: Values,
    settings: VariableSettings,
) -> VariableResult:
    """Compares two variables of one dtype and shape; `result` is what is known.

    Raises InvalidBoundError for settings beside which 'combine' says nothing.
    """
    refuse_combined(reference.dtype, settings, result.id)
    parts = [
        _part(work, result, reference, new, parameters, chosen)
        for parameters, chosen in combined_parts(reference, new, settings, result.id)
    ]
    found = _joined(*parts)
    masked = new.masked_count if result.mask else None
    found = _with_bound(found, settings, reference.dtype)
    return replace(found, masked_count=masked)


def _with_bound(found: VariableResult, settings: VariableSettings, dtype: str) -> VariableResult:
    """The result with the bound that it was compared by: whole numbers have no relative part, so
    one part alone is left.
    """
    bound = settings.bound
    if np.dtype(dtype).kind == "f":
        return replace(found, bound=bound)
    left = 0.0 if settings.combine == "both" else bound.atol
    return replace(found, bound=ErrorBound(left), combine=None)


def refuse_combined(dtype: str, settings: VariableSettings, identity: VariableId) -> None:
    """Raises InvalidBoundError for a dtype or settings beside which 'combine' says nothing."""
    is_real = dtype[1] in "iuf"  # of floats not bfloat16, which NumPy does not compute with
    if settings.combine != "sum" and (settings.period or settings.bound.ulps or not is_real):
        raise InvalidBoundError(
            f"'combine: {settings.combine}' is for atol and rtol of real numbers",
            variable=identity.text,
            remedy="set 'combine: sum' for this variable",
        )


def combined_parts(
    reference: Values, new: Values, settings: VariableSettings, identity: VariableId
) -> list[tuple[_core.TreeParameters, Values]]:
    """Both parts of the bound, each with new values of which no others differ than those for which
    it decides.
    """
    bound = settings.bound
    return [
        (
            tree_parameters(
                reference.dtype,
                # A NaN of the golden is told by one part; in the other both sides hold it.
                replace(
                    settings,
                    bound=own,
                    combine="sum",
                    equal_nan=settings.equal_nan or by_atol == (settings.combine == "both"),
                ),
                variable=identity.text,
            ),
            _Chosen(reference, new, settings, by_atol=by_atol),
        )
        for own, by_atol in (
            (ErrorBound(atol=bound.atol), True),
            (ErrorBound(rtol=bound.rtol), False),
        )
    ]


def _part(
    work: Work,
    result: VariableResult,
    reference: Values,
    new: Values,
    parameters: _core.TreeParameters,
    chosen: Values,
) -> VariableResult:
    """The comparison of those elements for which that part of the bound decides."""
    comparison = compare_elements(work, parameters, reference, chosen)
    return with_elements(
        result,
        comparison,
        parameters,
        tuple(reference.shape),
        None,
        all_compared=True,
        read_elements=lambda flats: read_each(
            lambda first, count: (reference.read(first, count), new.read(first, count)), flats
        ),
    )


class _Chosen(Values):
    """The new values where one part of the bound decides, elsewhere the golden ones."""

    def __init__(
        self, reference: Values, new: Values, settings: VariableSettings, *, by_atol: bool
    ) -> None:
        self._reference = reference
        self._new = new
        self._atol = settings.bound.atol
        # Whole numbers have no relative bound.
        is_real = np.dtype(reference.dtype).kind == "f"
        self._rtol = settings.bound.rtol if is_real else 0.0
        self._takes_smaller = settings.combine == "both"
        self._by_atol = by_atol
        self.dtype = new.dtype
        self.shape = new.shape

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        golden = self._reference.read(first_element, count).reshape(-1)
        new = self._new.read(first_element, count).reshape(-1)
        with np.errstate(all="ignore"):
            size = np.abs(golden.astype(np.float64))
            relative = self._rtol * size
            is_smaller = self._atol < relative
            # Rounding makes no two products change places, but some are the same as atol.
            tied = relative == self._atol
            for one in np.unique(size[tied]).tolist():
                if Fraction(self._atol) < Fraction(self._rtol) * Fraction(one):
                    is_smaller |= tied & (size == one)
        atol_decides = is_smaller == self._takes_smaller
        return np.where(atol_decides == self._by_atol, new, golden).astype(golden.dtype)


def _joined(first: VariableResult, second: VariableResult) -> VariableResult:
    """Two results of one variable, each element of which at most one of them compared."""
    worse, other = (
        (first, second)
        if first.verdict.severity >= second.verdict.severity
        else (
            second,
            first,
        )
    )
    both = [*first.first_differences, *second.first_differences]
    both.sort(key=lambda one: one.index)
    indices = [one.first_index for one in (first, second) if one.first_index is not None]
    largest = _larger(first, second, "abs")
    relative = _larger(first, second, "rel")
    shares = [one.max_bound_share for one in (first, second) if one.max_bound_share is not None]
    return replace(
        worse,
        differing_count=(first.differing_count or 0) + (second.differing_count or 0),
        first_index=min(indices, default=None),
        first_differences=tuple(both[:MOST_ELEMENTS]),
        max_abs_difference=largest.max_abs_difference,
        max_abs_index=largest.max_abs_index,
        max_rel_difference=relative.max_rel_difference,
        max_rel_index=relative.max_rel_index,
        mean_abs_difference=_mean(first, second, "abs"),
        mean_rel_difference=_mean(first, second, "rel"),
        max_bound_share=max(shares, default=None),
        max_drift_share=max(shares, default=None),
        drift_share_from=max(shares, default=None),
        drift_share_to=max(shares, default=None),
        bound_share_histogram=_histogram(first, second),
        nan_mismatch_count=(first.nan_mismatch_count or 0) + (second.nan_mismatch_count or 0),
        inf_mismatch_count=(first.inf_mismatch_count or 0) + (second.inf_mismatch_count or 0),
        missing_mismatch_count=(first.missing_mismatch_count or 0)
        + (second.missing_mismatch_count or 0),
        reason=other.reason if worse.reason is None else worse.reason,
    )


def _larger(first: VariableResult, second: VariableResult, kind: str) -> VariableResult:
    """The result with the larger difference; of equal ones that of the element that is the first,
    as the core tells it where bounds add up.
    """

    def order(one: VariableResult) -> tuple[float, tuple[int, ...]]:
        size = getattr(one, f"max_{kind}_difference") or 0.0
        return -size, getattr(one, f"max_{kind}_index") or ()

    return min(first, second, key=order)


def _mean(first: VariableResult, second: VariableResult, kind: str) -> float | None:
    ours, theirs = (getattr(one, f"mean_{kind}_difference") for one in (first, second))
    if ours is None or theirs is None or _lost(first, second):
        return None
    total: float = ours + theirs
    return total


def _lost(first: VariableResult, second: VariableResult) -> bool:
    """Whether an element is a number on one side alone. Where it was compared with itself it may
    count as one, so nobody knows how many pairs of numbers there are.
    """
    return any(
        one.nan_mismatch_count or one.inf_mismatch_count or one.missing_mismatch_count
        for one in (first, second)
    )


def _histogram(first: VariableResult, second: VariableResult) -> tuple[int, ...] | None:
    ours, theirs = first.bound_share_histogram, second.bound_share_histogram
    if ours is None or theirs is None or _lost(first, second):
        return None
    counts = [one + other for one, other in zip(ours, theirs, strict=True)]
    # Each element was compared with itself once.
    counts[0] -= sum(ours)
    return tuple(counts)
