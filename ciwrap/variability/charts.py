"""Charts of a map: slices, predicted against measured, what drives it, and how intervals shrink."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.report.palette import VALUE_PALETTE, css_colour
from ciwrap.report.png import data_uri, palette_png
from ciwrap.report.svg import (
    NARROW,
    WIDTH,
    Frame,
    axes,
    chart,
    element,
    join,
    line,
    number,
    power_label,
    text,
    value_lines,
)
from ciwrap.report.text import percent_text, safe_name, short_number
from ciwrap.variability.space import Axis
from ciwrap.variability.wording import configuration_words, number_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from ciwrap.variability.curve import Curve
    from ciwrap.variability.document import MapPoint, MapSummary, Slice
    from ciwrap.variability.influence import Influence

_MOST_DOTS = 1500
_LEVELS = 254
_LABEL_ROOM = 26.0
_ROW = 24.0


def sigma_range(one: MapSummary) -> tuple[float, float]:
    """Logarithms of the smallest and the largest sigma of all slices, which share their colours."""
    values = [sigma for each in one.slices for row in each.sigma for sigma in row]
    low, high = math.log(min(values)), math.log(max(values))
    return (low, high) if high > low else (low, low + 1e-9)


def slice_chart(one: Slice, summary: MapSummary) -> Markup:
    """The map over two parameters; dots have the colour of what was measured there."""
    low, high = sigma_range(summary)
    rows, columns = len(one.sigma), len(one.x_values)
    cells = bytes(_colour(sigma, low, high) for row in reversed(one.sigma) for sigma in row)
    frame = Frame(left=58, right=NARROW - 10, top=8, bottom=230 if one.y else 60)
    width, height = frame.right - frame.left, frame.bottom - frame.top
    image = data_uri(palette_png(cells, rows, columns, VALUE_PALETTE))
    parts = [
        element(
            "image", href=image, x=frame.left, y=frame.top, width=width, height=height,
            preserveAspectRatio="none",
        ),
        element("rect", x=frame.left, y=frame.top, width=width, height=height, class_="fr"),
        *_dots(one, summary, frame),
        *_x_ticks(one, summary, frame),
        *(_y_ticks(one, summary, frame) if one.y else []),
        axes(frame, one.x, one.y),
    ]  # fmt: skip
    label = f"Sigma over {one.x}" + (f" and {one.y}" if one.y else "")
    return chart(label, join(parts), width=NARROW, height=frame.bottom + 42)


def _colour(sigma: float, low: float, high: float) -> int:
    """Its place in the palette; what lies beyond the slices has the colour of their ends."""
    return round(_LEVELS * min(max((math.log(sigma) - low) / (high - low), 0.0), 1.0))


def _place(name: str, summary: MapSummary, value: float) -> float:
    """Of a value of a parameter, between 0 and 1."""
    one = next(each for each in summary.parameters if each.name == name)
    return float(Axis(one.name, one.low, one.high, one.is_log).unit(np.array(value)))


def _levels(name: str, summary: MapSummary, room: float) -> list[tuple[float, str]]:
    """The levels of a parameter as far as there is room: the place of each, and its words."""
    column = next(n for n, one in enumerate(summary.parameters) if one.name == name)
    found: list[tuple[float, str]] = []
    for level in sorted({point.values[column] for point in summary.points}):
        place = _place(name, summary, level)
        if not found or place - found[-1][0] >= room:
            found.append((place, tick_words(level)))
    return found


def _x_ticks(one: Slice, summary: MapSummary, frame: Frame) -> list[Markup]:
    levels = _levels(one.x, summary, 1.4 * _LABEL_ROOM / (frame.right - frame.left))
    return [text(frame.x(place), frame.bottom + 17, words) for place, words in levels]


def _y_ticks(one: Slice, summary: MapSummary, frame: Frame) -> list[Markup]:
    levels = _levels(one.y, summary, 16.0 / (frame.bottom - frame.top))
    return [text(frame.left - 8, frame.y(place) + 4, words, "end") for place, words in levels]


def tick_words(value: float) -> str:
    """A level in few characters: `4096`, `1e6`."""
    words = number_words(value)
    return words if len(words) <= 5 else f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


def _dots(one: Slice, summary: MapSummary, frame: Frame) -> list[Markup]:
    names = [each.name for each in summary.parameters]
    low, high = sigma_range(summary)
    found = []
    for point in summary.points:
        values = dict(zip(names, point.values, strict=True))
        if any(values[name] != value for name, value in one.held.items()):
            continue
        x = frame.x(_place(one.x, summary, values[one.x]))
        y = frame.y(_place(one.y, summary, values[one.y]) if one.y else 0.5)
        said = element("title", f"{_where(point, names)}: sigma {short_number(point.sigma)}")
        colour = css_colour(VALUE_PALETTE[_colour(point.sigma, low, high)])
        found.append(element("circle", said, cx=x, cy=y, r=4.2, fill=colour, class_="vr"))
    return found[:_MOST_DOTS]


def _where(point: MapPoint, names: Sequence[str]) -> str:
    return configuration_words(dict(zip(names, point.values, strict=True)), {})


def colour_bar(summary: MapSummary) -> Markup:
    """What the colours of the slices mean."""
    low, high = sigma_range(summary)
    cells = bytes(range(_LEVELS + 1))
    image = data_uri(palette_png(cells, 1, len(cells), VALUE_PALETTE))
    parts = [
        element("image", href=image, x=20, y=2, width=420, height=14, preserveAspectRatio="none"),
        element("rect", x=20, y=2, width=420, height=14, class_="fr"),
    ]
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        words = short_number(math.exp(low + (high - low) * part))
        parts.append(text(20 + 420 * part, 32, words))
    return chart("Sigma by colour", join(parts), width=460, height=38)


def scatter_chart(one: MapSummary) -> Markup:
    """Predicted against measured sigma; the band holds 90 %."""
    logs = [math.log10(value) for point in one.points for value in (point.sigma, point.predicted)]
    low, high = min(logs), max(logs)
    room = max((high - low) * 0.04, 0.02)
    low, high = low - room, high + room
    frame = Frame(left=58, right=WIDTH - 10, top=8, bottom=330)

    def part(value: float) -> float:
        return (math.log10(value) - low) / (high - low)

    parts = [
        grid for value in _round_values(low, high) for grid in _grid_at(value, part(value), frame)
    ]
    if one.factor is not None:
        parts.append(_band(math.log10(one.factor) / (high - low), frame))
    parts.append(line(frame.left, frame.bottom, frame.right, frame.top, "lt"))
    names = [each.name for each in one.parameters]
    for point in one.points[:_MOST_DOTS]:
        said = element(
            "title",
            f"{_where(point, names)}: measured {short_number(point.sigma)},"
            f" predicted {short_number(point.predicted)}",
        )
        x, y = frame.x(part(point.sigma)), frame.y(part(point.predicted))
        parts.append(element("circle", said, cx=x, cy=y, r=2.6, class_="cm"))
    parts.append(line(frame.left, frame.top, frame.left, frame.bottom, "ax"))
    parts.append(axes(frame, "measured sigma", "predicted sigma"))
    return chart("Predicted against measured sigma", join(parts), height=372)


def _round_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten between two logarithms; powers alone where these are many;
    the ends where nothing round lies between them.
    """
    digits = (1, 2, 5) if high - low < 1.7 else (1,)
    exponents = range(math.floor(low), math.ceil(high) + 1)
    values = [digit * 10.0**exponent for exponent in exponents for digit in digits]
    found = [value for value in values if low <= math.log10(value) <= high]
    return found or [10**low, 10**high]


def _grid_at(value: float, place: float, frame: Frame) -> tuple[Markup, ...]:
    exponent = math.log10(value)
    words = power_label(round(exponent)) if exponent.is_integer() else short_number(value)
    return (
        line(frame.left, frame.y(place), frame.right, frame.y(place), "gr"),
        line(frame.x(place), frame.top, frame.x(place), frame.bottom, "gr"),
        text(frame.left - 5, frame.y(place) + 4, words, "end"),
        text(frame.x(place), frame.bottom + 15, words),
    )


def _band(width: float, frame: Frame) -> Markup:
    """Between the diagonal shifted up and down by `width`, within the frame."""
    width = min(width, 1.0)
    corners = ((0, 0), (0, width), (1 - width, 1), (1, 1), (1, 1 - width), (width, 0))
    path = "L".join(f"{number(frame.x(x))} {number(frame.y(y))}" for x, y in corners)
    return element("path", d=f"M{path}z", class_="mg")


def score_chart(one: MapSummary) -> Markup:
    """The error of each predictor with its standard error; dashed the noise floor."""
    scores = [
        (score.predictor, score.error, score.deviation or 0.0)
        for score in one.scores
        if score.error is not None
    ]
    values = [one.floor, *(error + deviation for _, error, deviation in scores)]
    low, high = math.log10(min(values)) - 0.12, math.log10(max(values)) + 0.12
    frame = Frame(left=126, right=WIDTH - 14, top=14, bottom=18 + _ROW * len(scores))

    def x_of(error: float) -> float:
        return frame.x((math.log10(max(error, 10**low)) - low) / (high - low))

    parts = [*_error_ticks(low, high, frame)]
    floor = x_of(one.floor)
    parts.append(line(floor, frame.top - 6, floor, frame.bottom, "bd"))
    for row, (name, error, deviation) in enumerate(scores):
        y = frame.top + _ROW * (row + 0.5)
        is_chosen = name == one.predictor
        parts.append(text(frame.left - 8, y + 4, name, "end", "lb" if is_chosen else "tk"))
        parts.append(line(x_of(error - deviation), y, x_of(error + deviation), y, "iv"))
        said = element("title", f"{name}: {100 * error:.3g} %")
        radius, hue = (5.0, "mo") if is_chosen else (4.0, "mi")
        parts.append(element("circle", said, cx=x_of(error), cy=y, r=radius, class_=hue))
    parts.append(axes(frame, "mean error on unseen configurations", ""))
    label = "Errors of all predictors"
    return chart(label, join(parts), height=frame.bottom + 42)


def _error_ticks(low: float, high: float, frame: Frame) -> list[Markup]:
    found = []
    for value in _round_values(low, high):
        x = frame.x((math.log10(value) - low) / (high - low))
        found.append(line(x, frame.top, x, frame.bottom, "gr"))
        found.append(text(x, frame.bottom + 15, f"{100 * value:.4g} %"))
    return found


def influence_chart(terms: Sequence[Influence], left: float) -> Markup:
    """The share of each term as a bar, the largest first, and what none of them explains."""
    rows = [(" with ".join(term.parameters), term.share, "bi") for term in terms]
    rows.append(("unexplained", left, "b0"))
    frame = Frame(left=180, right=WIDTH - 56, top=4, bottom=8 + _ROW * len(rows))
    most = max(max(share for _, share, _ in rows), 1e-9)
    parts = []
    for row, (name, share, hue) in enumerate(rows):
        y = frame.top + _ROW * row + 3
        width = (frame.right - frame.left) * share / most
        parts.append(text(frame.left - 8, y + 13, safe_name(name, 27), "end"))
        parts.append(
            element("rect", x=frame.left, y=y, width=width, height=_ROW - 7, rx=2, class_=hue)
        )
        parts.append(text(frame.left + width + 5, y + 13, percent_text(share), "start"))
    parts.append(line(frame.left, frame.top, frame.left, frame.bottom, "ax"))
    label = "Share of the variance of log sigma"
    return chart(label, join(parts), height=frame.bottom + 6)


def curve_chart(curve: Curve) -> Markup:
    """Half the width of sigma's interval by runs, with the two points of MOANA's figure 9."""
    frame = Frame(left=62)
    most = max(curve.half_widths) * 1.05
    first, last = curve.runs[0], curve.runs[-1]

    def x_of(runs: float) -> float:
        return frame.x((runs - first) / (last - first))

    parts = value_lines(frame, most, lambda tick: f"{100 * tick:g} %")
    parts += [text(x_of(runs), frame.bottom + 15, runs) for runs in range(first, last + 1, 5)]
    path = "L".join(
        f"{number(x_of(runs))} {number(frame.y(width / most))}"
        for runs, width in zip(curve.runs, curve.half_widths, strict=True)
    )
    parts.append(element("path", d=f"M{path}", class_="lg"))
    for share, runs in ((75, curve.at_75), (90, curve.at_90)):
        y = frame.y(curve.half_widths[runs - first] / most)
        parts.append(line(x_of(runs), y, x_of(runs), frame.bottom, "hz"))
        said = element("title", f"{share} % of the way after {runs} runs")
        parts.append(element("circle", said, cx=x_of(runs), cy=y, r=4.5, class_="mo"))
        parts.append(text(x_of(runs), y - 10, f"{share} %"))
    parts.append(axes(frame, "runs", "half-width over sigma"))
    return chart("The interval of sigma by the number of runs", join(parts))
