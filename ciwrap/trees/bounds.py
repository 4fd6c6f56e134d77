"""Bounds as the core's parameters hold them:

in words, and what a verdict on a tree alone is worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import ErrorBound, number_text

if TYPE_CHECKING:
    from ciwrap import _core

_EXACT_TYPES = frozenset("iubSUV")


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
    """Whether a suspect chunk surely holds a differing element, without looking at the golden's
    data.

    True where the codes decide exactly: bound zero, exact types, and step bounds whose residues
    tell every step apart. Everywhere else a suspect chunk may be a false alarm.
    """
    if parameters.kind == "exact":
        type_code = parameters.dtype.lstrip("<>=|")
        is_exact_type = type_code[:1] in _EXACT_TYPES and type_code != "bf2"
        return is_exact_type or bound_of(parameters).is_exact
    return parameters.kind == "steps" and parameters.guaranteed_share >= 1.0
