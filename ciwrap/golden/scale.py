"""Bounds in the scale of a field: `atol: 1e-12*max` is 1e-12 times the golden's largest magnitude.

The statistic is one of the golden's numbers, never of the new run's, so an error cannot widen its
own bound. A golden that keeps its data tells it from them; one that does not keeps all statistics
beside its labels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap.arrays.values import Values, is_bfloat16, widen_bfloat16
from ciwrap.base.errors import UnsupportedDtypeError, UsageError
from ciwrap.base.late import numpy as np
from ciwrap.model import ErrorBound
from ciwrap.model.settings import DURATION, SCALES, TIME_UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels
    from ciwrap.model import VariableId, VariableSettings


class _Moments:
    """Count, mean and sum of squared deviations of numbers that come in pieces (Chan, Golub and
    LeVeque, 1983), and their ends.
    """

    def __init__(self) -> None:
        self.count = 0
        self.least, self.greatest = math.inf, -math.inf
        self._magnitudes = self._mean = self._deviations = 0.0

    def add(self, numbers: NDArray[np.float64]) -> None:
        if not numbers.size:
            return
        count = self.count + numbers.size
        mean = float(numbers.mean())
        shift = mean - self._mean
        self._deviations += float(((numbers - mean) ** 2).sum())
        self._deviations += shift * shift * self.count * numbers.size / count
        self._mean += shift * numbers.size / count
        self._magnitudes += float(np.abs(numbers).sum())
        self.least = min(self.least, float(numbers.min()))
        self.greatest = max(self.greatest, float(numbers.max()))
        self.count = count

    def statistics(self) -> dict[str, float]:
        """By the names of SCALES; all 0 where there is no number."""
        if not self.count:
            return dict.fromkeys(SCALES, 0.0)
        variance = self._deviations / self.count
        return {
            "max": max(-self.least, self.greatest),
            "range": self.greatest - self.least,
            "std": math.sqrt(variance),
            "rms": math.sqrt(variance + self._mean**2),
            "mean": self._magnitudes / self.count,
        }


def statistics_of(
    values: Values, settings: VariableSettings, identity: VariableId
) -> dict[str, float]:
    """The statistics of all numbers that are finite and no fill value, to three digits. Of complex
    numbers both parts count.

    Raises UnsupportedDtypeError for what has no magnitude, UsageError for statistics beyond a
    double, and the errors of reading.
    """
    if np.dtype("<u2" if is_bfloat16(values.dtype) else values.dtype).kind not in "iufc":
        scale = "" if settings.scale is None else f" for atol: {settings.scale.text}"
        raise UnsupportedDtypeError(
            f"is no number, and has no scale{scale}",
            variable=identity.text,
            remedy="give atol for the variables that are numbers",
        )
    moments = _Moments()
    with np.errstate(over="ignore", invalid="ignore"):
        for _, slab in values.slabs():
            moments.add(_ordinary(slab.reshape(-1), values.dtype, settings.fill_values))
        found = moments.statistics()
    # Three digits say how large a field is, and are the same on every machine.
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def _ordinary(
    elements: NDArray[Any], dtype: str, fill_values: tuple[float | int, ...]
) -> NDArray[np.float64]:
    if is_bfloat16(dtype):
        elements = widen_bfloat16(elements)
    is_number = np.ones(elements.shape, dtype=bool)
    for fill in fill_values:
        is_number &= elements != fill
    numbers = elements[is_number]
    if numbers.dtype.kind == "c":
        numbers = numbers.view(numbers.real.dtype)
    plain = numbers.astype(np.float64)
    return plain[np.isfinite(plain)]


def in_scale(
    settings: VariableSettings, statistics: Mapping[str, float], identity: VariableId
) -> VariableSettings:
    """The settings with their bound as a number. Raises UsageError if a double does not hold it."""
    scale = settings.scale
    if scale is None:
        return settings
    # Without the dust of a product of two decimal numbers.
    atol = float(f"{scale.factor * statistics[scale.statistic]:.12g}")
    if not math.isfinite(atol):
        raise UsageError(
            f"atol: {scale.text} is beyond the range of a double",
            variable=identity.text,
            remedy="give atol as a number",
        )
    return settings.with_bound(replace(settings.bound, atol=atol))


def as_counts(
    values: Values, settings: VariableSettings, identity: VariableId
) -> tuple[Values, VariableSettings]:
    """Durations, which are kept as text, as whole numbers of their unit, and the settings for these
    of an atol that is a duration. Raises UsageError for what are no durations.
    """
    scale, found = settings.scale, DURATION.fullmatch(dict(values.labels).get("type", ""))
    if scale is None or found is None or found[2] not in TIME_UNITS:
        asked = "" if scale is None else f", atol: {scale.text},"
        raise UsageError(
            f"a duration{asked} is a bound for arrays of timedelta64 alone",
            variable=identity.text,
            remedy="give it for these by their names, as bounds={'NAME': ...}",
        )
    from fractions import Fraction

    unit = TIME_UNITS[found[2]] * int(found[1] or 1)
    atol = Fraction(scale.factor) * TIME_UNITS[scale.statistic] // unit
    own = settings.with_bound(ErrorBound(float(atol)))
    return _Counts(values), replace(own, fill_values=(_NOT_A_TIME,))


# Missing equals missing only, whatever the bound.
_NOT_A_TIME = -(1 << 63)


class _Counts(Values):
    def __init__(self, values: Values) -> None:
        self._values = values
        self.dtype, self.shape, self.labels = "<i8", values.shape, values.labels

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        texts = self._values.read(first_element, count)
        return np.where(texts == b"NaT", str(_NOT_A_TIME).encode(), texts).astype("<i8")


def refuse_number(labels: Labels, bound: ErrorBound | None, name: str) -> None:
    """Raises UsageError for a number as the bound of durations, which have units."""
    kind = dict(labels).get("type", "")
    if bound is not None and not bound.is_exact and DURATION.fullmatch(kind):
        raise UsageError(
            f"holds durations ({kind}), for which {bound.text} is no bound",
            variable=name,
            remedy="give atol as a duration: np.timedelta64(2, 'ms'), or '2 ms'",
        )


def in_scale_of(
    values: Values, settings: VariableSettings, identity: VariableId
) -> VariableSettings:
    """The settings with their bound as a number, in the scale of these values. Raises as
    `statistics_of` and `in_scale`. Trees of durations, which are kept as text, are exact.
    """
    if settings.scale is None:
        return settings
    if settings.scale.is_duration:
        as_counts(values, settings, identity)  # which refuses what are no durations
        return settings.with_bound(ErrorBound())
    return in_scale(settings, statistics_of(values, settings, identity), identity)
