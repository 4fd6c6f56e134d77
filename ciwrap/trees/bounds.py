"""Bounds as the core's parameters hold them:

in words, and what a verdict on a tree alone is worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import ErrorBound, number_text

if TYPE_CHECKING:
    from ciwrap import _core


def bound_of(parameters: _core.TreeParameters) -> ErrorBound:
    """The error bound that parameters were made with."""
    return ErrorBound(parameters.atol, parameters.rtol, parameters.ulps)


def describe_bound(parameters: _core.TreeParameters) -> str:
    """`exact`, or the bound's text; then whatever else decides equality and is not the default."""
    bound = bound_of(parameters)
    parts = ["exact" if bound.is_exact else bound.text]
    if not parameters.equal_nan:
        parts.append("equal_nan=false")
    if parameters.fill_values:
        values = ", ".join(
            str(value) if isinstance(value, int) else number_text(value)
            for value in parameters.fill_values
        )
        parts.append(f"fill_values=({values})")
    return " ".join(parts)


def suspect_is_proof(parameters: _core.TreeParameters) -> bool:
    """Whether a suspect chunk surely holds a differing element, without the golden's data."""
    return parameters.suspect_is_proof
