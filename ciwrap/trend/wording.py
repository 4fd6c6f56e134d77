"""What `ciwrap trend` found, in plain words."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from ciwrap.report.text import percent_text, plural, safe_name
from ciwrap.snapshot.difference import verb_of, words_of_kind
from ciwrap.statistics.change_points import LEAST
from ciwrap.timing.wording import change_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.model import EnvironmentDifference
    from ciwrap.trend.document import GoldenWalk, Moment, ShareSeries, TimeSeries

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
    """`+2 % with each result`."""
    if one.slope is None:
        return "no trend" if one.is_enough else "too few results to tell a trend"
    sign = "+" if one.slope.per_step >= 0 else "-"
    return f"{sign}{percent_text(abs(one.slope.per_step))} with each result"


def reached_words(results: int) -> str:
    """When a line reaches the bound: `it is reached in about 5 more results`."""
    if results == 0:
        return "the line through these results has reached it"
    return f"it is reached in about {plural(results, 'more result')}"


def change_lines(one: TimeSeries) -> list[str]:
    """How long a command takes, and each change of that."""
    lines = [f"{plural(len(one.points), 'run')}, {seconds_text(one.median)} in the median"]
    for number, point in enumerate(one.change_points):
        moment = one.points[point.position].moment
        lines.append(
            f"since {moment_text(moment)}: {change_text(point.change)},"
            f" {seconds_text(point.before)} became {seconds_text(point.after)}"
        )
        lines += _difference_lines(one.differences[number : number + 1])
    if not one.change_points:
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
        lines.append(f"{name} {verb_of(one)}: {sides} ({words_of_kind(one.kind)})")
    more = sum(max(0, len(differences) - _MOST_DIFFERENCES) for differences in found)
    return [*lines, f"and {plural(more, 'other difference')}"] if more else lines


def walk_words(walk: GoldenWalk) -> str:
    """How far a golden has moved."""
    known = walk.acceptances - walk.unknown
    moved = f"moved by {walk.moved:.2f} bounds at most"
    if walk.unknown:
        moved = f"{moved} in {known} of these" if known else "how far it moved is not known"
        moved += f", how far in the other {walk.unknown} is not known" if known else ""
    times = plural(walk.acceptances, "time")
    return f"{safe_name(walk.check)}: replaced {times} since {walk.since[:10]}, {moved}"
