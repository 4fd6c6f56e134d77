"""Bounds as the core's parameters hold them:

in words, and what a verdict on a tree alone is worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import ErrorBound, number_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap import _core
    from ciwrap.model import VariableSettings

EXACT = "exact"
_ROUNDED = 1 << 53  # from here on doubles do not hold every whole number
# As in cell-codes.md: of codes of 8 bytes, the largest atol, and the quotient of rtol and atol from
# which on atol is left out.
_MOST_ATOL, _WIDE, _MOST_QUOTIENT = 2.0**960, 8, 2.0**1000


def bound_of(parameters: _core.TreeParameters) -> ErrorBound:
    """The error bound that parameters were made with."""
    return ErrorBound(parameters.atol, parameters.rtol, parameters.ulps)


def describe_bound(parameters: _core.TreeParameters) -> str:
    """`exact`, or the bound's text; then whatever else decides equality and is not the default."""
    return _words(bound_of(parameters), parameters.equal_nan, parameters.fill_values)


def settings_text(settings: VariableSettings) -> str:
    """What settings ask for, in the words of `describe_bound`."""
    return _words(settings.bound, settings.equal_nan, settings.fill_values)


def _words(bound: ErrorBound, equal_nan: bool, fill_values: Sequence[float]) -> str:
    parts = [EXACT if bound.is_exact else bound.text]
    if not equal_nan:
        parts.append("equal_nan=false")
    if fill_values:
        values = ", ".join(
            str(value) if isinstance(value, int) else number_text(value) for value in fill_values
        )
        parts.append(f"fill_values=({values})")
    return " ".join(parts)


# What may follow the bound in the words of `describe_bound`.
_MORE = (" equal_nan=", " fill_values=")


def is_wider(was: str, now: str) -> bool:
    """Whether a bound in the words of `describe_bound` lets something pass that another does not:
    by its size, by NaN, or by other fill values. Without fill values a number near to one of them
    is within its bound, which is missing on one side only with them.
    """
    (old, old_more), (new, new_more) = _parse(was), _parse(now)
    if new.is_wider_than(old):
        return True
    nan_allowed = "equal_nan=false" in old_more and "equal_nan=false" not in new_more
    has_other_fills = _fills(old_more) != _fills(new_more)
    return nan_allowed or (has_other_fills and (_fills(new_more) != "" or not new.is_exact))


def _parse(text: str) -> tuple[ErrorBound, str]:
    """The bound, and what else the words say."""
    cut = min((found for word in _MORE if (found := text.find(word)) >= 0), default=len(text))
    bound = text[:cut]
    return ErrorBound() if bound == EXACT else ErrorBound.parse(bound), text[cut:]


def _fills(more: str) -> str:
    return more.partition("fill_values=")[2]


def kept_fill_values(values: Iterable[float]) -> tuple[float | int, ...]:
    """Fill values as captures keep them: doubles, and whole numbers where a double would round."""
    return tuple(
        one if isinstance(one, int) and _ROUNDED <= abs(one) < 1 << 64 else float(one)
        for one in values
    )


def guaranteed_share(parameters: _core.TreeParameters) -> float:
    """Drift up to this share of the bound raises no alarm; 0 where digests are made by a narrower
    bound than is asked for, a share of which says little of the other.
    """
    return 0.0 if _is_narrowed(parameters) else parameters.guaranteed_share


def _is_narrowed(parameters: _core.TreeParameters) -> bool:
    """Whether docs/reference/cell-codes.md has digests leave out a part of the bound."""
    atol, rtol = parameters.atol, parameters.rtol
    if parameters.kind == "absolute":
        return bool(rtol) or (atol > _MOST_ATOL and parameters.code_bytes == _WIDE)
    return parameters.kind == "relative" and atol > 0 and rtol / atol > _MOST_QUOTIENT
