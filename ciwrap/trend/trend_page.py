"""The page of `ciwrap trend`: warnings first, then each variable and command over time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ciwrap.report.page import PageHead, render_page, time_words
from ciwrap.report.text import capital, plural, safe_name
from ciwrap.trend.charts import MOST_POINTS, share_plot, time_plot
from ciwrap.trend.wording import (
    change_lines,
    most_text,
    now_text,
    reached_words,
    slope_words,
    walk_words,
)

if TYPE_CHECKING:
    from ciwrap.trend.document import ShareSeries, TimeSeries, TrendDocument

MOST_WARNINGS = 50
MOST_SERIES = 60


def render_trend_html(document: TrendDocument) -> str:
    """The page of a trend, self-contained as that of a comparison is."""
    warned = len(document.warnings)
    page = SimpleNamespace(
        title=capital(plural(warned, "warning")) if warned else "Nothing to warn of",
        hue="vary" if warned else "match",
        counts=(
            plural(document.results, "result"),
            plural(len(document.shares), "variable"),
            plural(len(document.times), "command"),
        ),
        warnings=tuple(f"{safe_name(one, 600)}." for one in document.warnings[:MOST_WARNINGS]),
        warnings_left_out=max(0, warned - MOST_WARNINGS),
        shares=tuple(map(_share_card, document.shares[:MOST_SERIES])),
        shares_left_out=max(0, len(document.shares) - MOST_SERIES),
        times=tuple(map(_time_card, document.times[:MOST_SERIES])),
        times_left_out=max(0, len(document.times) - MOST_SERIES),
        goldens=tuple(f"{walk_words(one)}." for one in document.goldens),
    )
    head = PageHead(
        "trend",
        f"{time_words(document.first)} to {time_words(document.last)}",
        safe_name(document.first, 40),
        safe_name(document.ciwrap_version),
    )
    return render_page("trend.html.j2", head, page)


def _share_card(one: ShareSeries) -> SimpleNamespace:
    used = f"Of the bound {now_text(one)}, {most_text(one)}"
    lines = [f"{used}; {slope_words(one)}."]
    if one.until_bound is not None:
        lines.append(f"At this rate {reached_words(one.until_bound)}.")
    lines += _drawn_lines(len(one.points))
    return SimpleNamespace(
        name=safe_name(f"{one.check}: {one.variable}", 120),
        hue="differ" if one.is_lost or one.newest > 1 else "match",
        lines=lines,
        plot=share_plot(one),
    )


def _drawn_lines(points: int) -> list[str]:
    """What the picture leaves out."""
    return [f"Drawn: the newest {MOST_POINTS:,} of {points:,}."] if points > MOST_POINTS else []


def _time_card(one: TimeSeries) -> SimpleNamespace:
    lines = (
        f"On {safe_name(one.cpu, 80)}.",
        *(f"{capital(text)}." for text in change_lines(one)),
        *_drawn_lines(len(one.points)),
    )
    is_slower = bool(one.change_points) and one.change_points[-1].change > 0
    hue = "differ" if is_slower else "match"
    return SimpleNamespace(
        name=safe_name(one.command, 120), hue=hue, lines=lines, plot=time_plot(one)
    )
