"""Charts of a trend: the share of a bound that a variable uses, and how long a command takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.svg import (
    Frame,
    axes,
    chart,
    element,
    join,
    line,
    number,
    some_of,
    text,
    triangle,
    value_lines,
)
from ciwrap.report.text import safe_name
from ciwrap.timing.charts import TIME_LABELS
from ciwrap.timing.wording import change_text, seconds_text
from ciwrap.trend.wording import moment_text, share_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup

    from ciwrap.trend.document import ShareSeries, TimeSeries

MOST_POINTS = 300
_FAR = 2.0
# Of words beside steps: apart by so much, and as many below each other.
_ROW, _ROWS = 13, 8


def share_plot(one: ShareSeries) -> Markup:
    """The share of the bound in each result. What lies beyond twice the bound is drawn at the top.

    A line marks the result from which on golden and bound are those of today; a dashed one is the
    slope since then.
    """
    frame = Frame(left=64)
    points = one.points[-MOST_POINTS:]
    shares = [min(point.share, _FAR) for point in points]
    high = max(1.08, 1.06 * max(shares))

    def y_of(share: float) -> float:
        return frame.y(max(0.0, min(share, high)) / high)

    parts = value_lines(frame, high, lambda tick: f"{100 * tick:.0f} %")
    parts.append(line(frame.left, y_of(1.0), frame.right, y_of(1.0), "bd"))
    parts.append(text(frame.left + 4, y_of(1.0) - 4, "bound", "start", "bl"))
    first = len(points) - one.since
    if first > 0:
        x = (_x(frame, first - 1, len(points)) + _x(frame, first, len(points))) / 2
        parts.append(line(x, frame.top, x, frame.bottom, "hz"))
        parts.append(_beside(frame, x, frame.bottom - 6, "today's golden and bound"))
    if one.slope is not None:
        begin = max(first, 0)
        parts.append(_slope_line(frame, one, begin, len(points), y_of))
    parts += _curve(
        frame,
        [y_of(share) for share in shares],
        [f"{moment_text(point.moment)}: {share_percent(point.share)}" for point in points],
        [share > 1 for share in shares],
        len(one.points) - len(points),
    )
    parts.append(axes(frame, "result", "share of the bound"))
    name = safe_name(f"{one.check}: {one.variable}", 80)
    return chart(f"Share of its bound that {name} uses, by result", join(parts))


def _slope_line(
    frame: Frame, one: ShareSeries, first: int, count: int, y_of: Callable[[float], float]
) -> Markup:
    """The line of Theil and Sen: as many results since today's golden lie above as below it."""
    assert one.slope is not None
    step, since = one.slope.per_step, min(one.since, count)
    shares = [min(point.share, _FAR) for point in one.points[-since:]]
    levels = sorted(share - step * at for at, share in enumerate(shares))
    level = levels[len(levels) // 2]
    begin, end = y_of(level), y_of(level + step * (since - 1))
    return line(_x(frame, first, count), begin, _x(frame, count - 1, count), end, "sg")


def time_plot(one: TimeSeries) -> Markup:
    """How long a command took in each result, with the level before and after each change."""
    frame = Frame(left=TIME_LABELS)
    points = one.points[-MOST_POINTS:]
    dropped = len(one.points) - len(points)
    high = 1.08 * max(point.seconds for point in points)

    def y_of(seconds: float) -> float:
        return frame.y(seconds / high)

    parts = value_lines(frame, high, seconds_text)
    for row, change in enumerate(one.change_points):
        at = change.position - dropped
        if at > 0:
            x = (_x(frame, at - 1, len(points)) + _x(frame, at, len(points))) / 2
            parts.append(line(x, frame.top, x, frame.bottom, "hz"))
            # Each in a row of its own: steps may lie closer together than words are wide.
            y = frame.top + 10 + _ROW * (row % _ROWS)
            parts.append(_beside(frame, x, y, change_text(change.change)))
    parts += _curve(
        frame,
        [y_of(point.seconds) for point in points],
        [f"{moment_text(point.moment)}: {seconds_text(point.seconds)}" for point in points],
        [False] * len(points),
        dropped,
    )
    parts.append(axes(frame, "result", ""))
    return chart(f"Time of {safe_name(one.command, 60)}, by result", join(parts))


def _beside(frame: Frame, x: float, y: float, words: str) -> Markup:
    """Words beside an upright line, on the side that has more room for them."""
    is_right = x > (frame.left + frame.right) / 2
    side, shift = ("end", -4) if is_right else ("start", 4)
    return text(x + shift, y, words, side, "lb")


def _x(frame: Frame, at: float, count: int) -> float:
    return frame.x(0.03 + 0.94 * (at / (count - 1) if count > 1 else 0.5))


def _curve(
    frame: Frame,
    heights: Sequence[float],
    said: Sequence[str],
    beyond: Sequence[bool],
    dropped: int,
) -> list[Markup]:
    """A dot for each result, a triangle where it is beyond the bound, and a line through all.

    dropped: how many older ones there are, which are counted, and not drawn.
    """
    count = len(heights)
    parts = []
    if count > 1:
        steps = (f"{number(_x(frame, i, count))} {number(y)}" for i, y in enumerate(heights))
        parts.append(element("path", d="M" + "L".join(steps), class_="cv"))
    for i, (y, words, is_beyond) in enumerate(zip(heights, said, beyond, strict=True)):
        x, title = _x(frame, i, count), element("title", words)
        circle = element("circle", title, cx=x, cy=y, r=2.8, class_="mi")
        parts.append(triangle(x, y, title) if is_beyond else circle)
    parts += [
        text(_x(frame, i, count), frame.bottom + 15, dropped + i + 1)
        for i in some_of(range(count), 7)
    ]
    return parts
