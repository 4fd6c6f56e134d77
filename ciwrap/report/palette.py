"""Colours of maps: blue within the bound, orange beyond it; told apart by all kinds of colour
vision, and on light and dark ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.details import BOUND_CLASS, NO_CELL, NO_NUMBER, SHARE_CLASSES, SUSPECT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.report.png import Colour

_NOTHING: Colour = (128, 140, 155, 34)
_CLEAR: Colour = (0, 0, 0, 0)
_SUSPECT: Colour = (214, 138, 0, 255)
NOT_FINITE_COLOUR: Colour = (204, 51, 153, 255)
_WITHIN = ((198, 219, 239), (33, 102, 172))
_BEYOND = ((253, 184, 99), (240, 120, 20), (214, 54, 20), (180, 8, 46))
# Dark to light in even steps of lightness, blue to yellow: the order is seen without hue.
_VALUES = (
    (0, 32, 77),
    (30, 60, 114),
    (67, 78, 108),
    (97, 98, 111),
    (127, 124, 117),
    (158, 146, 112),
    (190, 170, 99),
    (224, 196, 75),
    (255, 233, 69),
)


def _between(stops: Sequence[tuple[int, int, int]], position: float) -> Colour:
    """The colour at 0 to 1 along the stops."""
    at = min(max(position, 0.0), 1.0) * (len(stops) - 1)
    first = min(int(at), len(stops) - 2)
    red, green, blue = (
        round(one + (other - one) * (at - first))
        for one, other in zip(stops[first], stops[first + 1], strict=True)
    )
    return red, green, blue, 255


def share_colour(share_class: int) -> Colour:
    """Of a class of |difference| / bound."""
    if share_class == 0:
        return _NOTHING
    if share_class == SUSPECT:
        return _SUSPECT
    if share_class == NO_NUMBER:
        return NOT_FINITE_COLOUR
    if share_class < BOUND_CLASS:
        return _between(_WITHIN, (share_class - 1) / (BOUND_CLASS - 2))
    if share_class < SHARE_CLASSES:
        return _between(_BEYOND, (share_class - BOUND_CLASS) / (SHARE_CLASSES - 1 - BOUND_CLASS))
    return _CLEAR


SHARE_PALETTE = tuple(share_colour(share_class) for share_class in range(256))
VALUE_PALETTE = tuple(
    NOT_FINITE_COLOUR if level == NO_CELL else _between(_VALUES, level / 254)
    for level in range(256)
)

# New below golden to new above it.
_SIGNED = ((33, 84, 164), (120, 164, 214), (240, 240, 240), (236, 160, 96), (178, 72, 10))
_SHARES = ((232, 234, 238), (253, 184, 99), (214, 54, 20), (128, 0, 38))
SIGNED_PALETTE = tuple(
    NOT_FINITE_COLOUR if level == NO_CELL else _between(_SIGNED, level / 254)
    for level in range(256)
)
DIFFERING_PALETTE = tuple(
    _NOTHING if level == 0 else _between(_SHARES, level / 254) for level in range(256)
)


def css_colour(colour: Colour) -> str:
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"
