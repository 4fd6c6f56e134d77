"""The numbers that mean "missing", as the type of a variable holds them."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ciwrap.model.settings import FormError, parse_number

if TYPE_CHECKING:
    from ciwrap.model.settings import VariableSettings

_FLOAT_CODES = {"f2": "<e", "f4": "<f", "f8": "<d", "c8": "<f", "c16": "<d"}

# The labels of a variable that say which of its numbers mean "missing".
FILL_LABELS = ("_FillValue", "missing_value")


def fit_fill_values(
    settings: VariableSettings, dtype: str, labels: Iterable[tuple[str, str]] = ()
) -> VariableSettings:
    """The settings with the fill values that are configured, and those that the variable's labels
    declare, as that dtype holds them.

    They become what the dtype makes of them (-1e18 is another number in float32); one that it
    cannot hold is dropped, since no element can equal it.
    """
    declared = tuple(_declared(labels)) if labels else ()
    if not (settings.fill_values or declared):
        return settings
    held: list[float | int] = []
    for value in (*settings.fill_values, *declared):
        fitted = _as_held(value, dtype[1:])
        # NaN is no member of a list by ==, so compare as text.
        if fitted is not None and repr(fitted + 0) not in map(repr, held):
            held.append(fitted + 0)  # -0.0 becomes 0.0
    return replace(settings, fill_values=tuple(held))


def _declared(labels: Iterable[tuple[str, str]]) -> Iterable[float | int]:
    """The numbers that labels declare as missing, but for NaN, which `equal_nan` rules."""
    for name, text in labels:
        for word in text.split() if name in FILL_LABELS else ():
            with contextlib.suppress(FormError):  # of a text, in which no element is missing
                number = parse_number(word)
                if not math.isnan(number):
                    yield number


def _as_held(value: float, kind: str) -> float | int | None:
    """The value as a scalar of that kind holds it, None if it cannot."""
    if kind in _FLOAT_CODES or kind == "bf2":
        try:
            plain = float(value)
            if kind == "bf2":
                return _round_to_bfloat16(plain)
            code = _FLOAT_CODES[kind]
            return float(struct.unpack(code, struct.pack(code, plain))[0])
        except OverflowError:
            return None
    if kind[0] in "iu" and value == value and abs(value) != float("inf") and value == int(value):
        bits = 8 * int(kind[1:])
        low, high = (0, 1 << bits) if kind[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
        return int(value) if low <= value < high else None
    return None


def _round_to_bfloat16(value: float) -> float | None:
    if not math.isfinite(value):
        return value
    # 8 bits, and none below the least of its subnormal numbers; half to even, as round() does.
    unit = max(math.frexp(value)[1] - 8, -133)
    rounded = math.ldexp(round(math.ldexp(value, -unit)), unit)
    return rounded if abs(rounded) < 2.0**128 else None
