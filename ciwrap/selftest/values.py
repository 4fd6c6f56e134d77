"""Values that are wrong by as little as can be."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.model import ErrorBound


def beyond(value: Any, bound: ErrorBound) -> Any | None:
    """The nearest value of the same type that is beyond the bound of `value`, above or, where there
    is none, below. None where there is none at all.
    """
    kind = value.dtype.kind
    if kind == "b":
        return ~value
    if kind in "iu":
        return _beyond_integer(value, bound)
    if kind == "c":
        part = beyond(value.real, bound)
        return None if part is None else value.dtype.type(complex(part, value.imag))
    if kind == "f":
        for direction in (1, -1):
            found = _beyond_float(value, bound, direction)
            if found is not None:
                return found
        return None
    return _other_text(value)


def _beyond_integer(value: Any, bound: ErrorBound) -> Any | None:
    limits = np.iinfo(value.dtype)
    number = int(value)
    step = bound.ulps + 1 if bound.ulps else int(_allowed(Fraction(number), bound)) + 1
    for found in (number + step, number - step):
        if limits.min <= found <= limits.max:
            return value.dtype.type(found)
    return None


def _allowed(value: Fraction, bound: ErrorBound) -> Fraction:
    return Fraction(bound.atol) + Fraction(bound.rtol) * abs(value)


def _beyond_float(value: Any, bound: ErrorBound, direction: int) -> Any | None:
    kind = value.dtype.type
    away, back = kind(direction * np.inf), kind(-direction * np.inf)
    with np.errstate(all="ignore"):
        if bound.ulps:
            for _ in range(bound.ulps + 1):
                value = np.nextafter(value, away)
            return value if np.isfinite(value) else None
        exact = Fraction(float(value))
        allowed = _allowed(exact, bound)
        try:
            found = kind(float(exact + direction * allowed))
        except OverflowError:
            return None

        def is_beyond(one: Any) -> bool:
            return abs(Fraction(float(one)) - exact) > allowed

        while np.isfinite(found) and not is_beyond(found):
            found = np.nextafter(found, away)
        while np.isfinite(found) and is_beyond(nearer := np.nextafter(found, back)):
            found = nearer
    return found if np.isfinite(found) else None


def _other_text(value: Any) -> Any:
    """A text of the same width that is another one."""
    # In bytes, since Python has no text with a number that is no character, which damage may leave.
    unit = "<u4" if value.dtype.kind == "U" else "|u1"
    codes = np.frombuffer(value.astype(value.dtype.newbyteorder("<")).tobytes(), unit).copy()
    if not codes.size:
        codes = np.zeros(1, unit)
    codes[0] = ord("b" if codes[0] == ord("a") else "a")
    return codes.view(f"<{value.dtype.kind}{codes.size}")[0]


def flipped(value: Any) -> Any | None:
    """The value with the other sign; None for a type without signs, or none that can be held."""
    if value.dtype.kind in "fc":
        return -value
    if value.dtype.kind == "i" and value != np.iinfo(value.dtype).min:
        return value.dtype.type(-int(value))
    return None


def sound(elements: NDArray[Any], fill_values: tuple[float | int, ...]) -> NDArray[np.bool_]:
    """Which elements are finite and no fill values, so that damage to them has a meaning."""
    kind = elements.dtype.kind
    found: NDArray[np.bool_] = (
        np.isfinite(elements) if kind in "fc" else np.ones(elements.shape, dtype=bool)
    )
    if kind in "fciu":
        for one in fill_values:
            found &= elements != one
    return found
