"""The chart of an ensemble's verdict: how far each feature moved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.report.svg import Frame, axes, chart, join, line, rect, round_ticks, text
from ciwrap.report.text import safe_name, safe_text, short_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from ciwrap.model import Shift

MOST_SHIFTS = 12
_ROW = 22.0
# So far a mean of honest runs goes once in twenty times.
_USUAL = 2.0
_LONGEST_LABEL = 34


def shift_bars(shifts: Sequence[Shift]) -> Markup:
    """A bar for each of the features that moved most; the band is where honest runs mostly lie."""
    shown = shifts[:MOST_SHIFTS]
    height = 16 + _ROW * len(shown) + 44
    frame = Frame(left=225, right=450, top=12, bottom=height - 44)
    finite = [abs(one.deviations) for one in shown if math.isfinite(one.deviations)]
    most = 1.15 * max([*finite, 1.5 * _USUAL])

    def x_of(deviations: float) -> float:
        return frame.x((max(-most, min(most, deviations)) + most) / (2 * most))

    tall = frame.bottom - frame.top
    usual = f"within {_USUAL:g}: where the mean of honest runs mostly lies"
    parts = [
        rect(x_of(-_USUAL), frame.top, x_of(_USUAL) - x_of(-_USUAL), tall, "mg", usual),
        line(x_of(0), frame.top, x_of(0), frame.bottom, "ax"),
    ]
    for row, one in enumerate(shown):
        y = frame.top + 4 + _ROW * row
        left, right = sorted((x_of(0), x_of(one.deviations)))
        said = f"{safe_name(one.feature)}: {short_number(one.deviations)}"
        parts.append(rect(left, y, max(right - left, 1.0), _ROW - 8, "sb", said))
        parts.append(text(frame.left - 8, y + 11, _label(one.feature), "end"))
    parts += [text(x_of(tick), frame.bottom + 15, f"{tick:g}") for tick in round_ticks(-most, most)]
    parts.append(axes(frame, "standard deviations of such a mean", ""))
    return chart("How far each feature moved", join(parts), height=height)


def _label(feature: str) -> str:
    """`x std, block 2 of 8`: a long name of a variable is cut, never what was made of it."""
    name, block, place = (
        feature.rpartition(", block ") if ", block " in feature else (feature, "", "")
    )
    variable, _, statistic = name.rpartition(" ")
    what = safe_text(f" {statistic}{block}{place}")
    return safe_name(variable, max(9, _LONGEST_LABEL - len(what))) + what
