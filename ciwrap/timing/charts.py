"""Charts of a timing: the change with its interval beside the margin, and the times themselves."""

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
    round_ticks,
    some_of,
    text,
    triangle,
    value_lines,
)
from ciwrap.timing.wording import margin_words, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from ciwrap.statistics.pairs import PairedComparison
    from ciwrap.timing.document import TimedSide

_HEIGHT = 132.0
# Room for `0.0015 ms`, `100.0 min`.
TIME_LABELS = 72.0
MOST_DOTS = 400


def change_plot(found: PairedComparison) -> Markup:
    """The change of B against A in percent: the estimate, its interval, the margin as a band."""
    frame = Frame(left=20, right=440, top=12, bottom=_HEIGHT - 44)
    # The margin is a ratio: the band ends where A takes so much more time than B.
    least = 1 / (1 + found.margin) - 1
    ends = [found.change, found.margin, least, 0.0]
    ends += [end for end in (found.lower, found.upper) if end is not None]
    room = (max(ends) - min(ends)) * 0.08
    low, high = min(ends) - room, max(ends) + room

    def x_of(change: float) -> float:
        return frame.x((change - low) / (high - low))

    middle = (frame.top + frame.bottom) / 2
    left, right = x_of(least), x_of(found.margin)
    parts = [
        element(
            "rect",
            element("title", margin_words(found)),
            x=left, y=frame.top, width=right - left, height=frame.bottom - frame.top, class_="mg",
        ),
        line(x_of(0), frame.top, x_of(0), frame.bottom, "ax"),
    ]  # fmt: skip
    if found.lower is not None and found.upper is not None:
        parts.append(line(x_of(found.lower), middle, x_of(found.upper), middle, "iv"))
        parts += [
            line(x_of(end), middle - 7, x_of(end), middle + 7, "iv")
            for end in (found.lower, found.upper)
        ]
    said = element("title", f"the estimate: {100 * found.change:+.3g} %")
    parts.append(element("circle", said, cx=x_of(found.change), cy=middle, r=5, class_="mo"))
    parts += [
        text(x_of(tick), frame.bottom + 15, f"{100 * tick:+g} %" if tick else "0")
        for tick in round_ticks(low, high)
    ]
    parts.append(axes(frame, "B takes less time  \u2190  change  \u2192  B takes more time", ""))
    return chart("The change of B against A", join(parts), height=_HEIGHT)


def sorted_plot(sides: Sequence[TimedSide]) -> Markup:
    """The times of both sides, each from the shortest to the longest: what share of the runs took
    no longer than that.
    """
    frame = Frame()
    most = max(max(side.seconds) for side in sides) * 1.08
    parts = []
    for tick in round_ticks(0.0, most):
        x = frame.x(tick / most)
        parts.append(text(x, frame.bottom + 15, seconds_text(tick) if tick else "0"))
    for share in (0.0, 0.5, 1.0):
        y = frame.y(0.92 * share)
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, f"{100 * share:.0f} %" if share else "0", "end"))
    for side in sides:
        seconds = sorted(side.seconds)
        heights = [frame.y(0.92 * (n + 1) / len(seconds)) for n in range(len(seconds))]
        steps = [f"M{number(frame.x(seconds[0] / most))} {number(frame.y(0.0))}"]
        for time, y in zip(seconds, heights, strict=True):
            steps.append(f"H{number(frame.x(time / most))}V{number(y)}")
        said = element("title", f"{side.name}: median {seconds_text(side.spread.median)}")
        is_a = side.name == "A"
        parts.append(element("path", said, d="".join(steps), class_="lt" if is_a else "cv"))
        x, y = frame.x(seconds[-1] / most), heights[-1]
        parts.append(text(x, y - 5, side.name, class_="lb"))
    parts.append(axes(frame, "time of a run", ""))
    return chart("The share of runs that took no longer than a time", join(parts))


def times_plot(sides: Sequence[TimedSide]) -> Markup:
    """The time of each run of both sides, pair by pair in the order in which they ran."""
    frame = Frame(left=TIME_LABELS)
    most = max(max(side.seconds) for side in sides) * 1.08
    pairs = min(len(sides[0].seconds), MOST_DOTS)
    parts = value_lines(frame, most, seconds_text)

    def x_of(pair: int) -> float:
        return frame.x(0.05 + 0.9 * (pair / (pairs - 1) if pairs > 1 else 0.5))

    for side in sides:
        is_a = side.name == "A"
        shift = -3.0 if is_a else 3.0
        for pair, seconds in enumerate(side.seconds[:pairs]):
            x = x_of(pair) + shift
            y = frame.y(seconds / most)
            said = element("title", f"pair {pair + 1}, {side.name}: {seconds_text(seconds)}")
            # Shapes of their own, not colours alone.
            circle = element("circle", said, cx=x, cy=y, r=3.6, class_="mi")
            parts.append(circle if is_a else triangle(x, y, said))
    parts += [text(x_of(pair), frame.bottom + 15, pair + 1) for pair in some_of(range(pairs))]
    parts.append(axes(frame, "pair", ""))
    return chart("The time of each run, pair by pair", join(parts))
