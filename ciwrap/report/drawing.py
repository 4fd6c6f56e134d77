"""What charts are drawn with: static SVG and small palette images, without script or library.

SVG follows the page's colours in dark and light; every text in it is escaped; numbers have three
digits after the point at most. Maps are blue within the bound and orange beyond it, told apart by
all kinds of colour vision. A PNG has a byte for each cell and takes a few hundred bytes.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from markupsafe import Markup, escape
from msgspec import Struct

from ciwrap.model import VariableResult, number_text
from ciwrap.model.variable_result import (
    BOUND_CLASS,
    NO_CELL,
    NO_NUMBER,
    SHARE_CLASSES,
    SUSPECT,
    Effect,
    View,
)
from ciwrap.report.text import (
    GOLDEN_AND_NEW,
    numbers_apart,
    percent_text,
    range_words,
    safe_name,
    short_number,
)

WIDTH, HEIGHT = 460, 210
NARROW = 348
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 16, 44


class Frame(Struct, frozen=True):
    """The plotting area of a chart within its view box."""

    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM

    def x(self, part: float) -> float:
        return self.left + (self.right - self.left) * part

    def x_among(self, value: float, first: float, last: float) -> float:
        """Of a value from first to last; the ends stay off the frame."""
        return self.x(0.04 + 0.92 * ((value - first) / (last - first) if last > first else 0.5))

    def y(self, part: float) -> float:
        """0: the bottom, 1: the top."""
        return self.bottom - (self.bottom - self.top) * part


def number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def element(name: str, body: object = "", /, **attributes: object) -> Markup:
    """One element; `_` in names of attributes stands for `-`, and `class_` for `class`."""
    parts = []
    for key, value in attributes.items():
        words = number(value) if isinstance(value, (int, float)) else str(value)
        parts.append(f' {key.rstrip("_").replace("_", "-")}="{escape(words)}"')
    return Markup(f"<{name}{''.join(parts)}>{escape(body)}</{name}>")


def text(x: float, y: float, words: object, anchor: str = "middle", class_: str = "tk") -> Markup:
    return element("text", safe_name(words), x=x, y=y, text_anchor=anchor, class_=class_)


def join(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def chart(
    label: str,
    body: Markup,
    *,
    width: float = WIDTH,
    height: float = HEIGHT,
    is_fixed: bool = False,
) -> Markup:
    """is_fixed: drawn as large as it is, not as wide as there is room."""
    return element(
        "svg",
        element("title", safe_name(label, 500)) + body,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        class_="chart",
        **({"width": width, "height": height} if is_fixed else {}),
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return path((f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}",), class_)


def curve(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """A line through some places."""
    return path(("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points),), class_)


def path(parts: Iterable[str], class_: str, title: str = "") -> Markup:
    """One path of several pieces. title: what stands under the pointer."""
    body = element("title", title) if title else ""
    return element("path", body, d="".join(parts), class_=class_)


def rect(
    x: float, y: float, width: float, height: float, class_: str, title: str = "", **more: object
) -> Markup:
    """title: what stands under the pointer."""
    body = element("title", title) if title else ""
    shape = {"x": x, "y": y, "width": width, "height": height, **more}
    return element("rect", body, **shape, class_=class_)


def dot(x: float, y: float, radius: float, said: str, class_: str = "mi") -> Markup:
    """said: what stands under the pointer."""
    return element("circle", element("title", said), cx=x, cy=y, r=radius, class_=class_)


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as a piece of a path."""
    wide = number(width)
    return f"M{number(x)} {number(y)}h{wide}v{number(height)}h-{wide}z"


def turned_text(x: float, y: float, words: object) -> Markup:
    """A label that is read from the bottom up, around this place."""
    turned = f"translate({number(x)} {number(y)}) rotate(-90)"
    return element("text", safe_name(words), transform=turned, text_anchor="middle", class_="lb")


def axes(frame: Frame, x_label: str, y_label: str) -> Markup:
    return join(
        (
            line(frame.left, frame.bottom, frame.right, frame.bottom, "ax"),
            text((frame.left + frame.right) / 2, frame.bottom + 36, x_label, class_="lb"),
            turned_text(12, (frame.top + frame.bottom) / 2, y_label),
        )
    )


def value_lines(frame: Frame, high: float, words: Callable[[float], str]) -> list[Markup]:
    """Level lines at round values from 0 to `high`, with the words for each at the left."""
    parts = []
    for tick in round_ticks(0.0, high):
        y = frame.y(tick / high)
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, words(tick) if tick else "0", "end"))
    return parts


def triangle(x: float, y: float, said: str, class_: str = "mo") -> Markup:
    """A mark of its own shape, for what is not told by its colour alone."""
    return path((f"M{number(x)} {number(y - 5)}l4.6 8h-9.2z",), class_, said)


def beside_line(frame: Frame, x: float, y: float, words: str, gap: float = 4) -> Markup:
    """Words beside an upright line, on the side that has more room for them."""
    is_right = x > (frame.left + frame.right) / 2
    side, shift = ("end", -gap) if is_right else ("start", gap)
    return text(x + shift, y, words, side, "lb")


def power_label(exponent: int) -> Markup:
    """10 to a power, the way people write it."""
    if 0 <= exponent <= 3:
        return Markup(str(10**exponent))
    if -2 <= exponent < 0:
        return Markup(number(10.0**exponent))
    return Markup(f"10{str(exponent).translate(_SUPERSCRIPTS)}")


def decade_lines(
    frame: Frame, low: int, high: int, y_of: Callable[[float], float], *, has_zero: bool
) -> list[Markup]:
    """The lines and labels of a logarithmic axis from 10**low to 10**high, five steps or so.

    y_of: the height of a value. has_zero: whether 0 is marked, at the bottom.
    """
    step = max(1, math.ceil((high - low) / 5))
    parts = []
    for exponent in range(high - (high - low) // step * step, high + 1, step):
        y = y_of(10.0**exponent)
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, power_label(exponent), "end"))
    if has_zero:
        parts.append(text(frame.left - 6, frame.bottom + 3, "0", "end"))
    return parts


def some_of(values: Sequence[int], most: int = 7) -> list[int]:
    """Values at even steps, the first among them, so that one can count on."""
    distinct = sorted(set(values))
    return distinct[:: max(1, math.ceil((len(distinct) - 1) / max(most - 1, 1)))]


def iteration_ticks(values: Sequence[int], most: int = 7) -> list[int]:
    """Which of some iterations are named along an axis: all of a few, else round ones, as far as
    they are there.
    """
    there = sorted(set(values))
    if len(there) <= most:
        return there
    whole = [int(one) for one in round_ticks(there[0], there[-1]) if one in there]
    return whole if len(whole) >= _FEWEST_ROUND else some_of(there, most)


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, six or so."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= 7)
    first = math.ceil(low / step)
    return [round(n * step, 10) for n in range(first, math.floor(high / step) + 1)]


_FEWEST_ROUND = 3
_SUPERSCRIPTS = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


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


Colour = tuple[int, int, int, int]  # red, green, blue, opacity


def palette_png(values: bytes, rows: int, columns: int, palette: Sequence[Colour]) -> bytes:
    """An image of rows * columns cells; palette: the colour of each of the 256 values."""
    assert len(values) == rows * columns
    assert len(palette) == 256
    # Each line begins with the number of its filter: 0, none.
    lines = b"".join(b"\0" + values[i * columns : (i + 1) * columns] for i in range(rows))
    colours = bytes(part for colour in palette for part in colour[:3])
    opacities = bytes(colour[3] for colour in palette)
    shown = _chunk(b"PLTE", colours) + _chunk(b"tRNS", opacities)
    return _png(columns, rows, 3, lines, shown)


def rgb_png(lines: Sequence[bytes]) -> bytes:
    """An image of lines of pixels, three bytes each."""
    width = len(lines[0]) // 3
    assert all(len(line) == 3 * width for line in lines)
    return _png(width, len(lines), 2, b"".join(b"\0" + line for line in lines))


def _png(width: int, height: int, colour_type: int, lines: bytes, more: bytes = b"") -> bytes:
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0))
    body = _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + more + body


def data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


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


def effect_facts(
    effect: Effect, sides: tuple[str, str], *, is_whole: bool = True
) -> Iterator[tuple[str, str]]:
    """Whether a difference matters, in the units of the variable and against its range.

    is_whole: whether every element is a number on both sides; what is none is left out.
    """
    shares = (range_words(effect, value) for value in (effect.rms, effect.bias))
    rms, bias = (f" ({words})" if words else "" for words in shares)
    yield "root mean square", f"{short_number(effect.rms)}{rms}"
    if not is_whole:
        yield "numbers on both sides", f"{effect.element_count:,}; mean, range and sum are of these"
    sign = "+" if effect.bias > 0 else ""
    yield f"mean of {sides[1]} - {sides[0]}", f"{sign}{short_number(effect.bias)}{bias}"
    is_flat = effect.least == effect.greatest
    ends = numbers_apart(effect.least, effect.greatest)
    which = "the golden" if sides == GOLDEN_AND_NEW else sides[0]
    yield f"range of {which}", f"{ends[0]} throughout" if is_flat else " to ".join(ends)
    if effect.apart is not None:
        words = f"{effect.apart_count:,} are {number_text(effect.apart)}, perhaps a fill value"
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
            part = f"{percent_text(abs(change))} of the sum of absolute values"
            by = f" by {short_number(moved)}," if before == after else ""
            yield name, f"{words}, a change{by}{'' if by else ' by'} {part}"
