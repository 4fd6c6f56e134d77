"""Variables on a circle: positions in a periodic box, angles.

The difference of v and g is that of v and the image of g which is nearest to v. It is computed in
double precision, and decided exactly where rounding could matter.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import Values
from ciwrap.compare.elements import compare_elements
from ciwrap.compare.findings import with_elements
from ciwrap.compare.parts import MOST_ELEMENTS, read_each, value_texts
from ciwrap.errors import PeriodError
from ciwrap.late import numpy as np
from ciwrap.model import VariableSettings
from ciwrap.structs import replace
from ciwrap.trees.bounds import bound_of
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.compare.work import Work
    from ciwrap.model import VariableResult

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
    away, and what is left is told as a number. NaN where it overflows on the way.
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
