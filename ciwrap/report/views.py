"""What the page shows of the numbers behind a picture when it is asked to."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING

from ciwrap.details import SHARE_CLASSES
from ciwrap.model import number_text
from ciwrap.report.palette import SHARE_PALETTE, SIGNED_PALETTE, VALUE_PALETTE
from ciwrap.report.text import grouped_number, percent_text, safe_name, short_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.details import Effect, View
    from ciwrap.model import VariableResult

# Sums that agree to so much of what was summed up differ by rounding.
_CONSERVED = 1e-12


def view_text(result: VariableResult, sides: tuple[str, str]) -> str:
    """The view of a variable as JSON for the page's script; nothing if there is none that fits."""
    view = None if result.details is None else result.details.view
    shape = result.golden_shape or result.shape
    if view is None or shape is None or not _fits(view, shape):
        return ""
    extents = [1 if view.row_axis is None else shape[view.row_axis], shape[view.column_axis]]
    return json.dumps(
        {
            "name": safe_name(result.name, 80),
            "sides": sides,
            "cells": [view.rows, view.columns],
            "extents": extents,
            "axes": [view.row_axis, view.column_axis],
            "axis": view.axis,
            "positions": view.positions,
            "index": view.index,
            "scale": [view.low, view.high],
            "cut": view.is_cut,
            "each": view.cell_elements,
            "shown": view.shown,
            "part": safe_name(view.part or "", 20),
            "planes": view.planes,
        },
        separators=(",", ":"),
    )


def _fits(view: View, shape: tuple[int, ...]) -> bool:
    """Whether a document's view is one of this array."""
    axes = [one for one in (view.row_axis, view.column_axis, view.axis) if one is not None]
    is_known = all(0 <= axis < len(shape) and shape[axis] > 0 for axis in axes)
    return is_known and len(view.index) == len(shape) and len(set(axes)) == len(axes)


def palettes_text() -> str:
    """The colours of values, of signed differences and of shares, for the page's script."""
    parts = (VALUE_PALETTE, SIGNED_PALETTE, SHARE_PALETTE[: SHARE_CLASSES + 2])
    colours = (colour for palette in parts for colour in palette)
    return base64.b64encode(bytes(part for colour in colours for part in colour)).decode("ascii")


def range_words(effect: Effect | None, value: float) -> str:
    """`12 % of the range`: of a difference; nothing where all golden values are equal."""
    reach = 0.0 if effect is None else effect.greatest - effect.least
    if not 0 < reach < math.inf:
        return ""
    share = abs(value) / reach
    if share < 10:
        return f"{percent_text(share)} of the range"
    return f"{grouped_number(float(f'{share:.2g}'))} times the range"


def _beside(words: str) -> str:
    return f" ({words})" if words else ""


def effect_facts(
    effect: Effect, sides: tuple[str, str], *, is_whole: bool = True
) -> Iterator[tuple[str, str]]:
    """Whether a difference matters, in the units of the variable and against its range.

    is_whole: whether every element is a number on both sides; what is none is left out.
    """
    rms, bias = (_beside(range_words(effect, value)) for value in (effect.rms, effect.bias))
    yield "root mean square", f"{short_number(effect.rms)}{rms}"
    if not is_whole:
        yield "numbers on both sides", f"{effect.element_count:,}; mean, range and sum are of these"
    sign = "+" if effect.bias > 0 else ""
    yield f"mean of {sides[1]} - {sides[0]}", f"{sign}{short_number(effect.bias)}{bias}"
    yield "range", f"{short_number(effect.least)} to {short_number(effect.greatest)}"
    if effect.apart is not None:
        value = number_text(effect.apart)
        words = f"{effect.apart_count:,} are {value}, perhaps a fill value: fill_values: [{value}]"
        yield "left out of the range", words
    if effect.size_sum > 0:
        name = "sum" if is_whole else "sum of the others"
        change = (effect.new_sum - effect.golden_sum) / effect.size_sum
        before, after = short_number(effect.golden_sum), short_number(effect.new_sum)
        words = before if before == after else f"{before} to {after}"
        if abs(change) <= _CONSERVED:
            yield name, f"{words}, conserved to within rounding"
        else:
            moved = effect.new_sum - effect.golden_sum
            part = f"{percent_text(abs(change))} of the sum of all sizes"
            by = f" by {short_number(moved)}," if before == after else ""
            yield name, f"{words}, a change{by}{'' if by else ' by'} {part}"
