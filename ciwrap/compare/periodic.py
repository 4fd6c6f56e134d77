"""Variables on a circle: positions in a periodic box, angles.

The difference of v and g is that of v and the image of g which is nearest to v. It is computed in
double precision, and decided exactly where rounding could matter.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.compare.parts import MOST_ELEMENTS, MOST_INDICES, read_each, to_index, value_texts
from ciwrap.compare.variable import Compared, element_result
from ciwrap.errors import CiwrapError, PeriodError
from ciwrap.model import DifferingElement, ErrorBound, VariableSettings
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.model import VariableId
    from ciwrap.progress import Progress

_EXACT_IN_DOUBLE = {"f2", "f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4"}
_SLAB_BYTES = 4 << 20
_EPSILON = float(np.finfo(np.float64).eps)
# Stands for "missing" where the core sees differences only.
_MISSING = float(np.finfo(np.float64).max)


def compare_periodic(
    golden: Values,
    new: Values,
    settings: VariableSettings,
    identity: VariableId,
    facts: Mapping[str, Any],
    *,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> Compared:
    """Compares two variables of one dtype and shape, both at hand, modulo `settings.period`.

    Raises PeriodError for dtypes, bounds or shapes that a period has no meaning for.
    """
    circle = Circle(golden.dtype, tuple(golden.shape), settings)
    parameters = circle.parameters
    try:
        comparer = _core.ElementComparer(
            parameters,
            max_indices=MOST_INDICES,
            backend=resources.backend,
            threads=resources.threads,
        )
        step = max(1, _SLAB_BYTES // 8)
        for first in range(0, golden.element_count, step):
            count = min(step, golden.element_count - first)
            base, moved = circle.differences(
                golden.read(first, count), new.read(first, count), first
            )
            comparer.update(as_bytes(base), as_bytes(moved), first_element=first)
            progress.advance(count * golden.item_bytes)
        comparison = comparer.finish()
    except CiwrapError as error:
        error.blame(variable=identity.text)
        raise
    shape = tuple(golden.shape)
    result = element_result(
        identity,
        facts,
        comparison,
        parameters,
        shape,
        None,
        0,
        all_compared=True,
        read_elements=read_each(
            lambda flat, count: circle.differences(
                golden.read(flat, count), new.read(flat, count), flat
            )
        ),
    )
    elements = tuple(
        replace(
            one,
            golden=value_texts(golden.read(flat, 1).reshape(-1), golden.dtype)[0],
            new=value_texts(new.read(flat, 1).reshape(-1), new.dtype)[0],
        )
        for one, flat in zip(
            result.first_differences, comparison.indices[:MOST_ELEMENTS].tolist(), strict=True
        )
    )
    # What is relative to the golden value means nothing here.
    return Compared(
        replace(
            result,
            first_differences=_with_indices(elements, shape, comparison),
            max_rel_difference=None,
            max_rel_index=None,
            mean_rel_difference=None,
        )
    )


def _with_indices(
    elements: tuple[DifferingElement, ...], shape: tuple[int, ...], comparison: _core.Comparison
) -> tuple[DifferingElement, ...]:
    flats = comparison.indices[:MOST_ELEMENTS].tolist()
    return tuple(
        replace(one, index=to_index(flat, shape)) for one, flat in zip(elements, flats, strict=True)
    )


class Circle:
    """Differences modulo a period: of each element, or of each component along the last axis.

    parameters: for the core's comparison of what `differences` gives. Raises PeriodError for
    dtypes, bounds or shapes that a period has no meaning for.
    """

    def __init__(self, dtype: str, shape: tuple[int, ...], settings: VariableSettings) -> None:
        periods = settings.period
        if dtype[1:] not in _EXACT_IN_DOUBLE:
            raise PeriodError(f"values of dtype {dtype} cannot be compared modulo a period")
        if settings.bound.rtol or settings.bound.ulps:
            raise PeriodError(
                "rtol and ulps mean nothing modulo a period", remedy="give 'atol' alone"
            )
        half = min((period for period in periods if period > 0), default=math.inf) / 2
        if settings.bound.atol >= half:
            raise PeriodError(
                f"atol={settings.bound.atol:g} is half a period or more, so nothing could differ",
                remedy="give a smaller 'atol'",
            )
        if len(periods) > 1 and (not shape or shape[-1] != len(periods)):
            raise PeriodError(
                f"has {len(periods)} periods, one for each component, but the shape {shape}"
            )
        self._periods = np.asarray(periods, dtype=np.float64)
        self._settings = settings
        plain = VariableSettings(
            bound=ErrorBound(settings.bound.atol),
            equal_nan=settings.equal_nan,
            fill_values=(_MISSING,),
            chunk_bytes=settings.chunk_bytes,
        )
        self.parameters = tree_parameters("<f8", plain)

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
        base = np.where(plain, 0.0, g)
        with np.errstate(all="ignore"):
            raw = v - g
            turns = np.where(period > 0, np.rint(raw / np.where(period > 0, period, 1.0)), 0.0)
            moved = np.where(plain, raw - turns * period, v)
            slack = _EPSILON * (np.abs(raw) + np.abs(turns * period))
        base[missing[0]] = _MISSING
        moved[missing[1]] = _MISSING
        atol = self._settings.bound.atol
        # Where the two are equal there is nothing to decide.
        doubtful = plain & (raw != 0) & (np.abs(np.abs(moved) - atol) <= slack)
        for at in np.flatnonzero(doubtful).tolist():
            moved[at] = _decided(float(g[at]), float(v[at]), float(period[at]), atol)
        return base, moved

    def _is_missing(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        found = np.zeros(values.size, dtype=np.bool_)
        for fill in self._settings.fill_values:
            found |= np.isnan(values) if fill != fill else values == fill
        return found


def _decided(golden: float, new: float, period: float, atol: float) -> float:
    """The difference as a double on the right side of the bound."""
    raw = Fraction(new) - Fraction(golden)
    turns = round(raw / Fraction(period))
    exact = raw - turns * Fraction(period)
    size = abs(float(exact))
    if abs(exact) <= Fraction(atol):
        size = min(size, atol)
    else:
        size = max(size, math.nextafter(atol, math.inf))
    return math.copysign(size, float(exact))
