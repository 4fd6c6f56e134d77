"""What `ciwrap time` found: words, job summary, charts and page."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model.results import command_words
from ciwrap.report.drawing import (
    Frame,
    axes,
    chart,
    dot,
    join,
    line,
    number,
    path,
    rect,
    round_ticks,
    some_of,
    text,
    triangle,
    value_lines,
)
from ciwrap.report.markdown import escaped
from ciwrap.report.page import environment_rows, page_head, render_page
from ciwrap.report.text import bytes_text, capital, percent_text, plural, safe_name, time_text
from ciwrap.statistics.spread import PairedComparison, TimingVerdict
from ciwrap.studies.repeat.costs import slow_runs_note
from ciwrap.studies.timing import is_changed_for_the_worse
from ciwrap.studies.timing_words import (
    alone_headline,
    beside_words,
    explanation,
    headline,
    looks_words,
    margin_words,
)

if TYPE_CHECKING:
    from ciwrap.studies.timing import TimedSide, TimingDocument

# Starting a process takes a few milliseconds by itself.
_SHORT_SECONDS = 0.02
_MUCH_MEMORY = 0.4
_COMMIT_DIGITS = 12
_USUAL_MARGIN, _USUAL_CONFIDENCES = 0.05, (0.95, 0.99)
_BUSY = 0.5


def table_of(document: TimingDocument) -> list[tuple[str, ...]]:
    """Rows of what is measured: its name, then that of each side."""
    sides = [_figures(side) for side in document.sides]
    names = dict.fromkeys(name for side in sides for name in side)
    return [(name, *(side.get(name, "") for side in sides)) for name in names]


def lead(document: TimingDocument) -> list[str]:
    """What is over its budget, the headline, and how sure it is."""
    found = document.comparison
    told = [f"over budget: {one}" for one in document.exceeded]
    if found is None:
        return [*told, alone_headline(document.sides[0])]
    told += [headline(found, document.what), *explanation(found, document.what)]
    looks = looks_words(document)
    return told if looks is None else [*told, looks]


def _figures(side: TimedSide) -> dict[str, str]:
    spread = side.spread
    figures = {
        "median": time_text(spread.median),
        "median lies between (95 %)": (
            "too few runs"
            if spread.median_lower is None or spread.median_upper is None
            else f"{time_text(spread.median_lower)} and {time_text(spread.median_upper)}"
        ),
        "shortest, longest": f"{time_text(spread.minimum)}, {time_text(spread.maximum)}",
        "range / shortest": percent_text(spread.range),
        "standard deviation over the mean": "too few runs"
        if spread.cov is None
        else percent_text(spread.cov),
        "interquartile range / median": percent_text(spread.iqr),
    }
    if side.used:
        work = sorted(one.cpu_seconds for one in side.used)
        figures["processor time, median"] = time_text(median(work))
        peaks = [one.peak_bytes for one in side.used if one.peak_bytes is not None]
        if peaks:
            figures["peak memory"] = bytes_text(max(peaks))
    if side.together is not None:
        figures[f"{side.together.size} at once: the slowest takes"] = time_text(
            side.together.mean_makespan
        )
        figures["slowest of as many such runs by chance"] = time_text(
            side.together.expected_makespan
        )
        figures["share of time spent waiting for it"] = percent_text(side.together.waste)
    return figures


def notes(document: TimingDocument) -> list[str]:
    """What makes these times less sure than they look."""
    found = []
    if document.duet:
        found.append(
            "both sides of each pair ran at the same time, each on half of the cores; where one"
            " ends first, the other one runs on alone, so if they slow each other, the change is"
            " larger than what is reported"
        )
    cores = int(document.environment.get("cpu_count", os.cpu_count() or 1))
    if document.load is not None and document.load > _BUSY * cores:
        found.append(
            f"the machine was busy with other things ({document.load:.1f} processes on"
            f" {plural(cores, 'core')}) when this began"
        )
    beside = beside_words(document)
    if beside is not None:
        found.append(beside)
    for side in document.sides:
        if side.used and side.together is None:
            said = slow_runs_note(side.seconds, side.used)
            found += [] if said is None else [f"of {side.name}, {said}"]
        if side.spread.median < _SHORT_SECONDS:
            found.append(
                f"a run of {side.name} takes {time_text(side.spread.median)}, much of which is"
                " the start of a process; let it do more work"
            )
        # Of times that know nothing of each other, one in twenty sets goes beyond this.
        by_chance = 2 / math.sqrt(side.spread.count)
        if (side.spread.autocorrelation or 0) > max(_MUCH_MEMORY, by_chance):
            found.append(
                f"the times of {side.name} follow each other ({side.spread.autocorrelation:.2f}),"
                " so the machine changed meanwhile"
                + ("; pairs allow for that" if len(document.sides) > 1 else "")
            )
        if side.spread.modes == 2:
            found.append(
                f"the times of {side.name} fall into two groups; something switches between runs"
            )
    return found


def side_text(side: TimedSide) -> str:
    """`A: main (1a2b3c4): ./simulate`."""
    revision = f"{safe_name(side.revision, 60)}: " if side.revision else ""
    return f"{side.name}: {revision}{safe_name(side.command, 120)}"


_HEIGHT = 132.0
# Room for `0.0015 ms`, `100.0 min`.
TIME_LABELS = 72.0
MOST_DOTS = 400


def change_plot(found: PairedComparison, what: str = "time") -> Markup:
    """The change of B against A in percent: the estimate, its interval, the margin as a band. what:
    is compared.
    """
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
    height = frame.bottom - frame.top
    parts = [
        rect(left, frame.top, right - left, height, "mg", margin_words(found)),
        line(x_of(0), frame.top, x_of(0), frame.bottom, "ax"),
    ]
    if found.lower is not None and found.upper is not None:
        parts.append(line(x_of(found.lower), middle, x_of(found.upper), middle, "iv"))
        parts += [
            line(x_of(end), middle - 7, x_of(end), middle + 7, "iv")
            for end in (found.lower, found.upper)
        ]
    said = f"the estimate: {100 * found.change:+.3g} %"
    parts.append(dot(x_of(found.change), middle, 5, said, "mo"))
    parts += [
        text(x_of(tick), frame.bottom + 15, f"{100 * tick:+g} %" if tick else "0")
        for tick in round_ticks(low, high)
    ]
    parts.append(
        axes(frame, f"B takes less {what}  \u2190  change  \u2192  B takes more {what}", "")
    )
    return chart("The change of B against A", join(parts), height=_HEIGHT)


def sorted_plot(sides: Sequence[TimedSide]) -> Markup:
    """The times of each side, from the shortest to the longest: what share of the runs took
    no longer than that.
    """
    frame = Frame()
    most = max(max(side.seconds) for side in sides) * 1.08
    parts = []
    for tick in round_ticks(0.0, most):
        x = frame.x(tick / most)
        parts.append(text(x, frame.bottom + 15, time_text(tick) if tick else "0"))
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
        said = f"{side.name}: median {time_text(side.spread.median)}"
        is_dotted = side.name == "A" and len(sides) > 1
        parts.append(path(steps, "lt" if is_dotted else "cv", said))
        x, y = frame.x(seconds[-1] / most), heights[-1]
        # Two ends may lie as close together as letters are wide.
        anchor = "end" if seconds[-1] * 1.08 < most else "start"
        parts.append(text(x, y - 5, side.name, anchor, "lb"))
    parts.append(axes(frame, "time of a run", ""))
    return chart("The share of runs that took no longer than a time", join(parts))


def times_plot(sides: Sequence[TimedSide]) -> Markup:
    """The time of each run of each side, pair by pair in the order in which they ran."""
    counted = "pair" if len(sides) > 1 else "run"
    frame = Frame(left=TIME_LABELS)
    most = max(max(side.seconds) for side in sides) * 1.08
    pairs = min(len(sides[0].seconds), MOST_DOTS)
    parts = value_lines(frame, most, time_text)

    def x_of(pair: int) -> float:
        return frame.x(0.05 + 0.9 * (pair / (pairs - 1) if pairs > 1 else 0.5))

    for side in sides:
        is_a = side.name == "A"
        shift = 0.0 if len(sides) == 1 else -3.0 if is_a else 3.0
        for pair, seconds in enumerate(side.seconds[:pairs]):
            x = x_of(pair) + shift
            y = frame.y(seconds / most)
            said = f"{counted} {pair + 1}, {side.name}: {time_text(seconds)}"
            # Shapes of their own, not colours alone.
            parts.append(dot(x, y, 3.6, said) if is_a else triangle(x, y, said))
    parts += [text(x_of(pair), frame.bottom + 15, pair + 1) for pair in some_of(range(pairs))]
    parts.append(axes(frame, counted, ""))
    return chart(f"The time of each run, {counted} by {counted}", join(parts))


def render_timing_html(document: TimingDocument) -> str:
    """The page of a timing, self-contained as that of a comparison is."""
    found, (first, *more) = document.comparison, lead(document)
    counted = "run" if found is None else "pair"
    count = len(document.sides[0].seconds)
    page = SimpleNamespace(
        title=capital(first),
        lead=tuple(f"{capital(text)}." for text in more),
        hue=_hue(document),
        commands=next_steps(document),
        pairs=plural(count, counted),
        change=None if found is None else change_plot(found, document.what),
        times=times_plot(document.sides),
        drawn=f"; the first {MOST_DOTS} {counted}s are drawn" if count > MOST_DOTS else "",
        names=tuple(side.name for side in document.sides),
        ordered=sorted_plot(document.sides),
        sides=tuple(safe_name(side_text(side), 1000) for side in document.sides),
        figures=tuple(table_of(document)),
        notes=tuple(f"{capital(safe_name(note, 1000))}." for note in notes(document)),
        environment=environment_rows(document.environment),
    )
    head = page_head("time", document.started_at, document.ciwrap_version, document.environment)
    return render_page("timing.html.j2", head, page)


def next_steps(document: TimingDocument) -> tuple[tuple[str, str], ...]:
    """The command that looks further, as (what for, the command)."""
    found, sides = document.comparison, document.sides
    commands = [one.command for one in sides]
    if found is None:
        return (("compare it with another", command_words("ciwrap time", [*commands, "OTHER"])),)
    words = command_words("ciwrap time", commands)
    base, head = ((one.commit or "")[:_COMMIT_DIGITS] for one in sides)
    if base:
        is_here = (sides[1].revision or "").startswith("working tree")
        revisions = f"--base {base}" if is_here or not head else f"--base {base} --head {head}"
        words = command_words(f"ciwrap time {revisions}", commands[:1])
    words += _options_of(document, found)
    if found.verdict is not TimingVerdict.INCONCLUSIVE:
        return (("have CI fail where B takes longer", f"{words} --gate"),)
    if found.more_pairs is not None:
        return (("settle it", f"{words} --pairs {found.pairs + found.more_pairs}"),)
    beside = document.beside
    if beside is not None and beside.verdict is not TimingVerdict.INCONCLUSIVE:
        other = "cpu" if document.decides == "time" else "time"
        words = words.replace(f" --decides {document.decides}", "")
        return (("decide by the other kind of time", f"{words} --decides {other}"),)
    return ()


def _options_of(document: TimingDocument, found: PairedComparison) -> str:
    """What the verdict rests on, where it is not what ciwrap takes by itself."""
    options = f" --margin {found.margin:g}" if found.margin != _USUAL_MARGIN else ""
    if found.confidence not in _USUAL_CONFIDENCES:
        options += f" --confidence {found.confidence:g}"
    options += f" --decides {document.decides}" if document.decides != "time" else ""
    return options + (" --duet" if document.duet else "")


def _hue(document: TimingDocument) -> str:
    """The class that colours the head of the page."""
    found = document.comparison
    if document.exceeded:
        return "differ"
    if found is not None and found.verdict is TimingVerdict.INCONCLUSIVE:
        return "vary"
    return "differ" if found is not None and is_changed_for_the_worse(found) else "match"


def timing_summary(document: TimingDocument) -> str:
    """GitHub-flavoured Markdown: the verdict, what it rests on, a table of both sides."""
    first, *more = lead(document)
    lines = [f"## ciwrap time: {first}", ""]
    lines += [f"{capital(line)}." for line in more]
    lines += [""] if more else []
    lines += [f"- {escaped(side_text(side))}" for side in document.sides]
    names = [side.name for side in document.sides]
    lines += ["", f"| | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in table_of(document)]
    lines += ["", *(f"{capital(note)}." for note in notes(document))]
    return "\n".join(lines).rstrip() + "\n"
