"""What `ciwrap trend` found: words, job summary, charts and page, warnings first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import isfinite
from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model import EnvironmentDifference
from ciwrap.model.results import command_words
from ciwrap.report.drawing import (
    WIDTH,
    Frame,
    axes,
    beside_line,
    chart,
    curve,
    dot,
    element,
    join,
    line,
    rect,
    some_of,
    text,
    triangle,
    value_lines,
)
from ciwrap.report.markdown import escaped
from ciwrap.report.page import PageHead, render_page, time_words
from ciwrap.report.text import bytes_text, capital, percent_text, plural, safe_name, time_text
from ciwrap.report.top import commit_of
from ciwrap.snapshot.difference import words_of_kind
from ciwrap.statistics.change_points import LEAST
from ciwrap.studies.timing_report import TIME_LABELS
from ciwrap.studies.timing_words import change_text

if TYPE_CHECKING:
    from ciwrap.studies.observed import Moment
    from ciwrap.studies.trend import (
        GoldenWalk,
        MeasuredSeries,
        SharePoint,
        ShareSeries,
        TrendDocument,
        VerdictPoint,
        VerdictSeries,
    )

_MOST_DIFFERENCES = 3
_MOST_MARKS = 40


def moment_text(moment: Moment) -> str:
    """`1a2b3c4d5e (2026-03-01)`, or the day and the file where no commit is known."""
    if moment.commit is None:
        return f"{moment.when[:10]} ({safe_name(moment.file, 60)})"
    return f"{safe_name(moment.commit)[:10]} ({moment.when[:10]})"


def share_percent(share: float) -> str:
    """`31 %`, or `far beyond` the bound where no percentage says it."""
    return percent_text(share) if isfinite(share) else "far beyond"


def now_text(one: ShareSeries) -> str:
    """`now 31 %`, or `last 31 %` where the newest result does not tell."""
    return f"{'last' if one.is_lost else 'now'} {share_percent(one.newest)}"


def most_text(one: ShareSeries) -> str:
    return f"most {share_percent(max(point.share for point in one.points))}"


def bars(one: ShareSeries) -> str:
    """A character for each of the last results: a digit for tenths of the bound, # beyond it; 9
    where all of it is used, as a match may.
    """
    shares = [point.share for point in one.points[-_MOST_MARKS:]]
    return "".join("#" if share > 1 else str(min(9, int(10 * share))) for share in shares)


def slope_words(one: ShareSeries) -> str:
    """`+2 % with each result`, or the last step: `31 % became 72 % since 1a2b3c4 (2026-03-01)`."""
    if one.change_points:
        last = one.change_points[-1]
        since = moment_text(one.points[last.position].moment)
        return f"{_level_text(last.before)} became {_level_text(last.after)} since {since}"
    if one.slope is None:
        return "no trend" if one.is_enough else "too few results to tell a trend"
    sign = "+" if one.slope.per_step >= 0 else "-"
    return f"{sign}{percent_text(abs(one.slope.per_step))} with each result"


def _level_text(level: float) -> str:
    """Of a level of shares, which are not told apart from twice the bound on."""
    return percent_text(level) if level < _FAR else "twice the bound or more"


def change_words(one: MeasuredSeries, change: float) -> str:
    """`9.8 % more time`, `12 % less memory`."""
    return change_text(change, one.noun)


def value_text(one: MeasuredSeries, value: float) -> str:
    """`1.20 s`, `24.0 MiB`."""
    return time_text(value) if one.noun == "time" else bytes_text(round(value))


def rate_words(one: MeasuredSeries) -> str:
    """`1.2 % more time with each result`."""
    assert one.slope is not None
    return f"{change_words(one, one.slope.per_step / one.median)} with each result"


def reached_words(results: int) -> str:
    """When a line reaches the bound: `at this rate it exceeds its bound in about 5 results`."""
    if results == 0:
        return "the line through these results has reached it"
    return f"at this rate it exceeds its bound in about {plural(results, 'more result')}"


def change_lines(one: MeasuredSeries) -> list[str]:
    """What a command takes, and each change of that."""
    lines = [f"{plural(len(one.points), 'run')}, {value_text(one, one.median)} in the median"]
    for position, point in enumerate(one.change_points):
        moment = one.points[point.position].moment
        lines.append(
            f"since {moment_text(moment)}: {change_words(one, point.change)},"
            f" {value_text(one, point.before)} became {value_text(one, point.after)}"
        )
        lines += _difference_lines(one.differences[position : position + 1])
    if one.slope is not None:
        lines.append(rate_words(one))
    elif not one.change_points:
        is_told = len(one.points) >= LEAST
        lines.append(
            "no change of level found" if is_told else "too few runs to tell a change of level"
        )
    return lines


def _difference_lines(found: Sequence[Sequence[EnvironmentDifference]]) -> list[str]:
    """What differs at a change, the first few."""
    lines = []
    for one in (one for differences in found for one in differences[:_MOST_DIFFERENCES]):
        sides = f"{safe_name(one.golden, 60)} before, {safe_name(one.run, 60)} since"
        name = safe_name(one.name, 60)
        lines.append(f"{name} differs: {sides} ({words_of_kind(one.kind)})")
    more = sum(max(0, len(differences) - _MOST_DIFFERENCES) for differences in found)
    return [*lines, f"and {plural(more, 'other difference')}"] if more else lines


# Of a check in one result, for people and for lines of characters.
_MARKS = {"match": ".", "consistent": ".", "undecided": "~", "not_comparable": "-"}


def check_name(one: VerdictSeries) -> str:
    return safe_name(one.check) if one.check else "all checks"


def verdict_marks(one: VerdictSeries) -> str:
    """A character for each of the last results: `.` matches, `#` differs, `~` undecided, `-` not
    comparable.
    """
    return "".join(_MARKS.get(point.verdict, "#") for point in one.points[-_MOST_MARKS:])


def verdict_words(one: VerdictSeries) -> str:
    """`24 of 25 results match; differ since 1a2b3c4d5e (2026-03-01)`."""
    good = sum(point.verdict.is_good for point in one.points)
    total = len(one.points)
    words = f"{good} of {plural(total, 'result')} {'matches' if good == 1 else 'match'}"
    newest = one.points[-1].verdict
    if newest.is_good:
        return words
    return f"{words}; {newest.words} since {moment_text(one.points[one.bad_since].moment)}"


def walk_words(walk: GoldenWalk) -> str:
    """How far a golden has moved."""
    known = walk.acceptances - walk.unknown
    moved = f"moved by {walk.moved:.2f} bounds at most"
    if walk.unknown:
        moved = f"{moved} in {known} of these" if known else "how far it moved is not known"
        moved += f", how far in the other {walk.unknown} is not known" if known else ""
    times = plural(walk.acceptances, "time")
    return f"{safe_name(walk.check)}: replaced {times} since {walk.since[:10]}, {moved}"


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
        parts.append(beside_line(frame, x, frame.bottom - 6, "today's golden and bound"))
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


def measured_plot(one: MeasuredSeries) -> Markup:
    """What a command took in each result, with the level before and after each change."""
    frame = Frame(left=TIME_LABELS)
    points = one.points[-MOST_POINTS:]
    dropped = len(one.points) - len(points)
    high = 1.08 * max(point.value for point in points)
    # Round numbers of bytes are none of MiB.
    unit, words = (1.0, time_text) if one.noun == "time" else (float(1 << 20), "{:g} MiB".format)
    parts = value_lines(frame, high / unit, words)
    for row, change in enumerate(one.change_points):
        at = change.position - dropped
        if at > 0:
            x = (_x(frame, at - 1, len(points)) + _x(frame, at, len(points))) / 2
            parts.append(line(x, frame.top, x, frame.bottom, "hz"))
            # Each in a row of its own: steps may lie closer together than words are wide.
            y = frame.top + 10 + _ROW * (row % _ROWS)
            parts.append(beside_line(frame, x, y, change_words(one, change.change)))
    parts += _curve(
        frame,
        [frame.y(point.value / high) for point in points],
        [f"{moment_text(point.moment)}: {value_text(one, point.value)}" for point in points],
        [False] * len(points),
        dropped,
    )
    parts.append(axes(frame, "result", ""))
    return chart(f"{capital(one.noun)} of {safe_name(one.command, 60)}, by result", join(parts))


_STRIP_HEIGHT, _STRIP_LOW = 18.0, 7.0
_MOST_STRIP = 120


def verdict_strip(one: VerdictSeries) -> Markup:
    """A bar for each of the last results: low where all is well, high and coloured where not."""
    points = one.points[-_MOST_STRIP:]
    width = WIDTH / max(len(points), 20)
    bars = []
    for at, point in enumerate(points):
        height = _STRIP_LOW if point.verdict.is_good else _STRIP_HEIGHT
        place = (at * width, _STRIP_HEIGHT - height, 0.8 * width, height)
        said = f"{moment_text(point.moment)}: {point.verdict.words}"
        bars.append(rect(*place, f"sb {point.verdict.value}", said))
    title = element("title", f"Verdicts of {check_name(one)}, by result")
    view = f"0 0 {WIDTH} {_STRIP_HEIGHT:g}"
    return element("svg", title + join(bars), viewBox=view, role="img", class_="bars")


def _x(frame: Frame, at: float, count: int) -> float:
    return frame.x(0.03 + 0.94 * (at / (count - 1) if count > 1 else 0.5))


def _curve(
    frame: Frame,
    heights: Sequence[float],
    titles: Sequence[str],
    beyond: Sequence[bool],
    dropped: int,
) -> list[Markup]:
    """A dot for each result, a triangle where it is beyond the bound, and a line through all.

    dropped: how many older ones there are, which are counted, and not drawn.
    """
    count = len(heights)
    parts = []
    if count > 1:
        parts.append(curve(((_x(frame, i, count), y) for i, y in enumerate(heights)), "cv"))
    for i, (y, words, is_beyond) in enumerate(zip(heights, titles, beyond, strict=True)):
        x = _x(frame, i, count)
        parts.append(triangle(x, y, words) if is_beyond else dot(x, y, 2.8, words))
    parts += [
        text(_x(frame, i, count), frame.bottom + 15, dropped + i + 1)
        for i in some_of(range(count), 7)
    ]
    return parts


MOST_WARNINGS = 50
_MOST_COMMANDS = 3
MOST_SERIES = 60


def render_trend_html(document: TrendDocument) -> str:
    """The page of a trend, self-contained as that of a comparison is."""
    warned = len(document.warnings)
    first, *others = document.warnings[:MOST_WARNINGS] or ["nothing to warn of"]
    title, *more = first.split("; ")
    shares, checks = document.shares[:MOST_SERIES], shown_checks(document)
    page = SimpleNamespace(
        title=safe_name(title if warned else capital(title), 300),
        hue=_hue(document),
        has_slope=any(one.slope is not None for one in shares),
        has_beyond=any(point.share > 1 for one in shares for point in one.points),
        has_far=any(point.share > _FAR for one in shares for point in one.points),
        counts=tuple(
            plural(count, noun)
            for count, noun in (
                (document.results, "result"),
                (len(document.shares), "variable"),
                (len(document.times), "command"),
            )
            if count
        ),
        warnings=tuple(f"{safe_name(one, 600)}." for one in (*map(capital, more), *others)),
        commands=tuple(islice(_bisections(document), _MOST_COMMANDS)),
        warnings_left_out=max(0, warned - MOST_WARNINGS),
        shares=tuple(map(_share_card, shares)),
        shares_left_out=max(0, len(document.shares) - MOST_SERIES),
        checks=tuple(map(_verdict_row, checks[:MOST_SERIES])),
        checks_left_out=max(0, len(checks) - MOST_SERIES),
        times=tuple(map(_measured_card, document.times[:MOST_SERIES])),
        times_left_out=max(0, len(document.times) - MOST_SERIES),
        memory=tuple(map(_measured_card, document.memory[:MOST_SERIES])),
        memory_left_out=max(0, len(document.memory) - MOST_SERIES),
        goldens=tuple(f"{walk_words(one)}." for one in document.goldens),
    )
    head = PageHead(
        "trend",
        f"{time_words(document.first)} to {time_words(document.last)}",
        safe_name(document.first, 40),
        safe_name(document.ciwrap_version),
    )
    return render_page("trend.html.j2", head, page)


def _verdict_row(one: VerdictSeries) -> SimpleNamespace:
    newest = one.points[-1].verdict
    return SimpleNamespace(
        name=check_name(one),
        verdict=newest.value,
        words=capital(verdict_words(one)),
        plot=verdict_strip(one),
    )


def shown_checks(document: TrendDocument) -> Sequence[VerdictSeries]:
    """All checks, and results as a whole where these say more than the one check there is."""
    named = [one for one in document.checks if one.check]
    is_all = len(named) == 1 and all(
        [point.verdict for point in one.points] == [point.verdict for point in named[0].points]
        for one in document.checks
    )
    return named if is_all else document.checks


def _hue(document: TrendDocument) -> str:
    """The class that colours the head of the page: what is beyond a bound today is no warning of
    what may come.
    """
    is_beyond = any(one.is_lost or one.newest > 1 for one in document.shares)
    if is_beyond or _bad_checks(document):
        return "differ"
    return "vary" if document.warnings else "match"


def _bad_checks(document: TrendDocument) -> list[VerdictSeries]:
    """Those whose newest result does not match."""
    return [one for one in document.checks if one.check and one.bad_since < len(one.points)]


def _bisections(document: TrendDocument) -> Iterator[tuple[str, str]]:
    """The commands that find the commit since which a check does not match, and that of the last
    step of each share.
    """
    bad = _bad_checks(document)
    for check in bad:
        words = f"which commit moved {safe_name(check.check, 60)}"
        yield from _bisection(words, check.check, check.points, check.bad_since)
    names = {one.check for one in bad}
    for share in document.shares:
        if share.change_points and share.check not in names:
            words = f"which commit moved {safe_name(share.variable, 60)}"
            yield from _bisection(
                words, share.check, share.points, share.change_points[-1].position
            )


def _bisection(
    words: str, check: str, points: Sequence[SharePoint | VerdictPoint], position: int
) -> Iterator[tuple[str, str]]:
    """Between the result at that position and the one before it, if their commits are known."""
    commits = [points[at].moment.commit for at in (position - 1, position) if at >= 0]
    known = [commit_of({"git_commit": one or ""}) for one in commits]
    sides = [one for one in dict.fromkeys(known) if one]
    if len(sides) == len(commits) > 1:
        command = f"ciwrap bisect {' '.join(sides)} --check"
        yield words, command_words(command, [check], " -- COMMAND")


def _share_card(one: ShareSeries) -> SimpleNamespace:
    used = f"{now_text(one)} of the bound, at {most_text(one)}"
    lines = [f"{capital(used)}; {slope_words(one)}."]
    if one.until_bound is not None:
        lines.append(f"{capital(reached_words(one.until_bound))}.")
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


def _measured_card(one: MeasuredSeries) -> SimpleNamespace:
    lines = (
        f"On {safe_name(one.cpu, 80)}.",
        *(f"{capital(text)}." for text in change_lines(one)),
        *_drawn_lines(len(one.points)),
    )
    is_slower = bool(one.change_points) and one.change_points[-1].change > 0
    hue = "differ" if is_slower else "match"
    return SimpleNamespace(
        name=safe_name(one.command, 120), hue=hue, lines=lines, plot=measured_plot(one)
    )


_MOST = 20


def trend_summary(document: TrendDocument) -> str:
    """GitHub-flavoured Markdown: warnings first, then the variables that use most."""
    count = plural(len(document.warnings), "warning") if document.warnings else "nothing to warn of"
    lines = [f"## ciwrap trend: {count} in {plural(document.results, 'result')}"]
    lines += [""] if document.warnings else []
    lines += [f"- {escaped(warning, 600)}" for warning in document.warnings[:_MOST]]
    if len(document.warnings) > _MOST:
        lines.append(f"- ... and {len(document.warnings) - _MOST} more")
    checks = shown_checks(document)
    if checks:
        lines += ["", "| check | verdicts | by result |", "|---|---|---|"]
    lines += [
        f"| {escaped(check_name(one))} | {escaped(verdict_words(one), 300)}"
        f" | `{verdict_marks(one)}` |"
        for one in checks[:_MOST]
    ]
    rest = len(checks) - _MOST
    lines += ["", f"... and {plural(rest, 'more check')}."] if rest > 0 else []
    if document.shares:
        lines += ["", "| variable | share of the bound | most | | tenths of the bound, by result |"]
        lines += ["|---|---|---|---|---|"]
    lines += [
        f"| {escaped(f'{one.check}: {one.variable}')} | {share_percent(one.newest)}"
        f"{' (last known)' if one.is_lost else ''}"
        f" | {share_percent(max(point.share for point in one.points))} | {slope_words(one)}"
        f" | `{bars(one)}` |"
        for one in document.shares[:_MOST]
    ]
    rest = len(document.shares) - _MOST
    if rest > 0:
        lines += ["", f"... and {plural(rest, 'more variable')} with no larger share."]
    measured: list[MeasuredSeries] = [*document.times[:_MOST], *document.memory[:_MOST]]
    for each in measured:
        head = f"{capital(each.noun)} of {escaped(each.command)} on {escaped(each.cpu)}"
        lines += ["", f"{head}:", "", *(f"- {escaped(line)}" for line in change_lines(each))]
    lines += [""] if document.goldens else []
    lines += [f"- {escaped(walk_words(walk), 600)}" for walk in document.goldens[:_MOST]]
    return "\n".join(lines).rstrip() + "\n"
