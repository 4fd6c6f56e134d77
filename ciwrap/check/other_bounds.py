"""Bounds that the core does not compare by itself: periodic ones, and min or max of atol and rtol.

On a circle the difference of v and g is that of v and the image of g which is nearest to v, in
double precision, decided exactly where rounding could matter. Of two parts, the golden value says
which one decides, and the core compares by that one.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap.arrays.values import Values
from ciwrap.base.errors import InvalidBoundError, PeriodError
from ciwrap.base.late import numpy as np
from ciwrap.check.findings import with_elements
from ciwrap.check.two_sides import MOST_ELEMENTS, compare_elements, read_each, value_texts
from ciwrap.golden.trees import bound_of, tree_parameters
from ciwrap.model import ErrorBound, VariableSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.check.two_sides import Work
    from ciwrap.model import VariableId, VariableResult

_EXACT_IN_DOUBLE = {"f2", "f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4"}
_EPSILON = sys.float_info.epsilon
# Stands for "missing" where the core sees differences only.
_MISSING = sys.float_info.max
# Of the smallest difference that no double holds.
_HALF = 2.0**1023
_SPLIT = 2.0**27 + 1


class Circle:
    """Differences modulo a period: of each element, or of each component along the last axis.

    parameters: for the core's comparison of what `differences` gives. Raises PeriodError for
    dtypes, bounds or shapes that a period has no meaning for.
    """

    def __init__(self, dtype: str, shape: tuple[int, ...], settings: VariableSettings) -> None:
        periods = settings.period
        if dtype[1:] not in _EXACT_IN_DOUBLE:
            raise PeriodError(f"values of dtype {dtype} cannot be compared modulo a period")
        bound = bound_of(tree_parameters(dtype, settings))  # integers have no rtol to refuse
        if bound.rtol or bound.ulps:
            raise PeriodError(
                "rtol and ulps mean nothing modulo a period", remedy="give 'atol' alone"
            )
        half = min((period for period in periods if period > 0), default=math.inf) / 2
        if bound.atol >= half:
            raise PeriodError(
                f"atol={bound.atol:g} is half a period or more, so nothing could differ",
                remedy="give a smaller 'atol'",
            )
        if len(periods) > 1 and (not shape or shape[-1] != len(periods)):
            raise PeriodError(
                f"has {len(periods)} periods, one for each component, but the shape {shape}"
            )
        self._periods = np.asarray(periods, dtype=np.float64)
        self._atol = bound.atol
        self._fill_values = settings.fill_values
        plain = VariableSettings(
            bound=bound,
            equal_nan=settings.equal_nan,
            fill_values=(_MISSING,),
            chunk_bytes=settings.chunk_bytes,
        )
        self.parameters = tree_parameters("<f8", plain)

    def compare(
        self, work: Work, result: VariableResult, reference: Values, new: Values
    ) -> VariableResult:
        """Compares two variables of the circle's dtype and shape; `result` is what is known."""
        shape = tuple(reference.shape)
        images = _Images(self, reference, new)
        comparison = compare_elements(
            work, self.parameters, _Half(images, 0, shape), _Half(images, 1, shape)
        )
        found = with_elements(
            result,
            comparison,
            self.parameters,
            shape,
            None,
            all_compared=True,
            read_elements=lambda flats: read_each(images.read, flats),
        )
        flats = comparison.indices[:MOST_ELEMENTS].tolist()
        return replace(
            found,
            first_differences=tuple(
                replace(
                    one,
                    golden=_text(reference, flat),
                    new=_text(new, flat),
                    # Of these, the core has seen the difference alone.
                    rel_difference=None,
                    ulps=None,
                )
                for one, flat in zip(found.first_differences, flats, strict=True)
            ),
            masked_count=new.masked_count if result.mask is not None else None,
            # What is relative to the golden value means nothing here.
            max_rel_difference=None,
            max_rel_index=None,
            mean_rel_difference=None,
        )

    def differences(
        self, golden: NDArray[Any], new: NDArray[Any], first: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(base, moved) for the core: zero and the difference, or what stands for the values where
        they have none.
        """
        g, v = golden.astype(np.float64), new.astype(np.float64)
        period = self._periods[(first + np.arange(g.size)) % self._periods.size]
        missing = self._is_missing(g), self._is_missing(v)
        plain = np.isfinite(g) & np.isfinite(v) & ~missing[0] & ~missing[1]
        # Of what has no difference, only what it is counts: a number is like any other.
        base = np.where(np.isfinite(g), 0.0, g)
        with np.errstate(all="ignore"):
            raw = v - g
            turns = np.where(period > 0, np.rint(raw / np.where(period > 0, period, 1.0)), 0.0)
            apart = _apart(g, v, turns, period)
            moved = np.where(plain, apart, np.where(np.isfinite(v), 0.0, v))
            slack = _EPSILON * (np.abs(raw) + np.abs(turns * period))
            # What overflows is no number or infinite, and never sure.
            is_sure = np.abs(np.abs(moved) - self._atol) > slack
        base[missing[0]] = _MISSING
        moved[missing[1]] = _MISSING
        # Where the two are equal there is nothing to decide.
        for at in np.flatnonzero(plain & (raw != 0) & ~is_sure).tolist():
            moved[at] = _decided(float(g[at]), float(v[at]), float(period[at]), self._atol)
        # A large difference is seen from both sides of zero, where it is neither infinite nor what
        # stands for "missing".
        large = plain & (np.abs(moved) > _HALF)
        halves = np.clip(moved[large] / 2, -_HALF, _HALF)
        base[large], moved[large] = -halves, halves
        return base, moved

    def _is_missing(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        found = np.zeros(values.size, dtype=np.bool_)
        for fill in self._fill_values:
            found |= np.isnan(values) if fill != fill else values == fill
        return found


class _Images:
    """Both sides as the core compares them; the last piece is kept, for each side asks for it."""

    def __init__(self, circle: Circle, reference: Values, new: Values) -> None:
        self._circle = circle
        self._reference = reference
        self._new = new
        self._last: tuple[int, int] | None = None
        self._pair: tuple[NDArray[np.float64], NDArray[np.float64]]

    def read(self, first: int, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self._last != (first, count):
            self._pair = self._circle.differences(
                self._reference.read(first, count), self._new.read(first, count), first
            )
            self._last = (first, count)
        return self._pair


class _Half(Values):
    """One of the two sides of `_Images`."""

    dtype = "<f8"

    def __init__(self, images: _Images, side: int, shape: tuple[int, ...]) -> None:
        self._images = images
        self._side = side
        self.shape = shape

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._images.read(first_element, count)[self._side]


def _text(values: Values, flat: int) -> str:
    return value_texts(values.read(flat, 1).reshape(-1), values.dtype)[0]


def _apart(
    golden: NDArray[np.float64],
    new: NDArray[np.float64],
    turns: NDArray[np.float64],
    period: NDArray[np.float64],
) -> NDArray[np.float64]:
    """new - golden - turns * period, rounded about once: many turns take most of the difference
    away, and what is left is given as a number. NaN where it overflows on the way.
    """
    raw, whole = new - golden, turns * period
    shifted = raw - new
    lost = (new - (raw - shifted)) - (golden + shifted)
    turns_high, period_high = _upper_half(turns), _upper_half(period)
    turns_low, period_low = turns - turns_high, period - period_high
    lost_whole = (turns_high * period_high - whole) + turns_high * period_low
    lost_whole += turns_low * period_high
    lost_whole += turns_low * period_low
    apart = (raw - whole) + (lost - lost_whole)
    # Of many turns the last one may be one too many.
    half = np.where(period > 0, period / 2, np.inf)
    return np.where(np.abs(apart) > half, apart - np.copysign(period, apart), apart)


def _upper_half(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper 26 bits of each number, so that products of halves are exact."""
    scaled = values * _SPLIT
    return scaled - (scaled - values)


def _decided(golden: float, new: float, period: float, atol: float) -> float:
    """The difference as a double on the right side of the bound. period: 0 for none."""
    from fractions import Fraction

    raw = Fraction(new) - Fraction(golden)
    turns = round(raw / Fraction(period)) if period > 0 else 0
    exact = raw - turns * Fraction(period)
    is_negative = exact < 0
    exact = abs(exact)
    size = float(exact) if exact <= Fraction(_MISSING) else math.inf
    is_within = exact <= Fraction(atol)
    size = min(size, atol) if is_within else max(size, math.nextafter(atol, math.inf))
    return -size if is_negative else size


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
                # A NaN of the golden is reported by one part; in the other both sides hold it.
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
