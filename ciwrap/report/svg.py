"""What charts are drawn with: static SVG, which needs no script and no library on either side and
follows the page's colours in dark and light.

Every text that goes in is escaped; numbers are written with three digits after the point at most.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ciwrap.report.text import safe_name
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
    ]
    return Markup(f"<{name}{''.join(parts)}>{escape(body)}</{name}>")


def _attribute(value: object) -> str:
    return number(value) if isinstance(value, (int, float)) else str(value)


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


def path(parts: Iterable[str], class_: str, said: str = "") -> Markup:
    """One path of several pieces. said: what stands under the pointer."""
    body = element("title", said) if said else ""
    return element("path", body, d="".join(parts), class_=class_)


def rect(
    x: float, y: float, width: float, height: float, class_: str, said: str = "", **more: object
) -> Markup:
    """said: what stands under the pointer."""
    body = element("title", said) if said else ""
    shape = {"x": x, "y": y, "width": width, "height": height, **more}
    return element("rect", body, **shape, class_=class_)


def dot(x: float, y: float, radius: float, said: str) -> Markup:
    """said: what stands under the pointer."""
    return element("circle", element("title", said), cx=x, cy=y, r=radius, class_="mi")


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


def triangle(x: float, y: float, title: Markup) -> Markup:
    """A mark of its own shape, for what is not told by its colour alone."""
    return element("path", title, d=f"M{number(x)} {number(y - 5)}l4.6 8h-9.2z", class_="mo")


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
