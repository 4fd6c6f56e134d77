"""Finds what moves: shares of bounds, run times, goldens."""

from __future__ import annotations

from importlib.metadata import version
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

from ciwrap.report.text import percent_text, plural, safe_name, share_text
from ciwrap.snapshot.runs import environment_differences
from ciwrap.statistics.change_points import find_change_points
from ciwrap.statistics.slopes import least_points, rare_ones, slope_of
from ciwrap.structs import replace
from ciwrap.timing.wording import change_text
from ciwrap.trend.document import GoldenWalk, ShareSeries, TimeSeries, TrendDocument
from ciwrap.trend.wording import moment_text, reached_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.golden.manifest import Manifest
    from ciwrap.snapshot.store import SnapshotStore
    from ciwrap.trend.collect import Basis, Collected
    from ciwrap.trend.document import SharePoint, TimePoint

# From here on a warning: the next change of compiler may be enough.
NEAR = 0.8
_FAR = 2.0
_RATE = 0.01
# Permutations are drawn in the same way each time, so that one set of results says one thing.
_SEED = 1


def find_trends(
    found: Collected,
    manifests: Sequence[Manifest],
    *,
    margin: float,
    snapshots: Sequence[SnapshotStore] = (),
) -> TrendDocument:
    """What results and manifests say together. margin: the smallest change of run time that
    counts. snapshots: where those of the results may lie. Raises NotAvailableError without SciPy.
    """
    shares = _share_series(found)
    times = tuple(
        _time_series(key, points, margin, snapshots) for key, points in sorted(found.times.items())
    )
    goldens = tuple(walk for one in manifests if (walk := _walk(one)) is not None)
    return TrendDocument(
        schema_version=1,
        kind="trend",
        results=len(found.moments),
        first=found.moments[0].when if found.moments else "",
        last=found.moments[-1].when if found.moments else "",
        shares=shares,
        times=times,
        goldens=goldens,
        warnings=(
            *_repeated_warning(found.repeated),
            *(text for one in shares if (text := _share_warning(one)) is not None),
            *(text for one in times for text in _time_warnings(one)),
            *(text for one in goldens if (text := _golden_warning(one)) is not None),
        ),
        margin=margin,
        ciwrap_version=version("ciwrap"),
    )


def _share_series(found: Collected) -> tuple[ShareSeries, ...]:
    """The series of all variables; a slope only where it is no accident among so many."""
    series = [
        _plain_series(key, points, is_lost=key in found.lost)
        for key, points in sorted(found.shares.items())
    ]
    slopes = [slope_of(_shares_of_today(each)) for each in series]
    counts = rare_ones([1.0 if slope is None else slope.p for slope in slopes], _RATE)
    least = least_points(_RATE, len(series))
    told = [
        replace(each, slope=slope, until_bound=slope.steps_until(1.0))
        if slope is not None and is_rare
        else replace(each, is_enough=each.since >= least)
        for each, slope, is_rare in zip(series, slopes, counts, strict=True)
    ]
    return tuple(sorted(told, key=lambda one: -one.newest))


def _shares_of_today(series: ShareSeries) -> list[float]:
    """Returns the shares against today's golden and bound, cut off far beyond the bound: how far is
    no matter of a slope.
    """
    return [min(point.share, _FAR) for point in series.points[-series.since :]]


def _plain_series(
    key: tuple[str, str], points: Sequence[tuple[Basis, SharePoint]], *, is_lost: bool
) -> ShareSeries:
    today = points[-1][0]
    since = 0
    for basis, _ in reversed(points):
        if basis != today:
            break
        since += 1
    return ShareSeries(
        check=key[0],
        variable=key[1],
        points=tuple(point for _, point in points),
        since=since,
        newest=points[-1][1].share,
        is_lost=is_lost,
    )


def _time_series(
    key: tuple[str, str],
    told: Sequence[tuple[TimePoint, Mapping[str, str]]],
    margin: float,
    snapshots: Sequence[SnapshotStore],
) -> TimeSeries:
    points = tuple(point for point, _ in told)
    seconds = [point.seconds for point in points]
    changes = find_change_points(seconds, margin=margin, seed=_SEED)
    pairs = [(told[one.position - 1][1], told[one.position][1]) for one in changes]
    return TimeSeries(
        command=key[0],
        cpu=key[1],
        points=points,
        median=median(seconds),
        change_points=changes,
        differences=tuple(
            environment_differences(before, after, snapshots) for before, after in pairs
        ),
    )


def _walk(manifest: Manifest) -> GoldenWalk | None:
    """None for a golden that was never replaced."""
    replaced = [one for one in manifest.accepted if one.old_root not in (None, one.new_root)]
    if not replaced:
        return None
    known = [
        one.largest_bound_share
        for one in replaced
        if one.largest_bound_share is not None and isfinite(one.largest_bound_share)
    ]
    return GoldenWalk(
        check=manifest.check,
        acceptances=len(replaced),
        moved=sum(known),
        unknown=len(replaced) - len(known),
        bound_changes=sum(bool(one.bounds) for one in replaced),
        since=replaced[0].when,
    )


def _repeated_warning(count: int) -> list[str]:
    if not count:
        return []
    verb = "says" if count == 1 else "say"
    return [f"{plural(count, 'file')} {verb} the same as another one, and the result counts once"]


def _share_warning(one: ShareSeries) -> str | None:
    name = f"{safe_name(one.check)}: {safe_name(one.variable)}"
    if one.is_lost:
        before = f"it used {share_text(one.newest)} before"
        if one.newest > 1:
            before = f"it was beyond its bound before: {_beyond_words(one.newest)}"
        return (
            f"{name} is not told by the newest result of its check (not comparable, or not there);"
            f" {before}"
        )
    if one.newest > 1:
        return f"{name} is beyond its bound: {_beyond_words(one.newest)}"
    if one.newest >= NEAR:
        return f"{name} uses {percent_text(one.newest)} of its bound"
    # Nobody can look further ahead than back.
    if one.slope is not None and one.until_bound is not None and one.until_bound <= one.since:
        return (
            f"{name} uses {percent_text(one.newest)} of its bound and grows by"
            f" {percent_text(one.slope.per_step)} of it with each result:"
            f" {reached_words(one.until_bound)}"
        )
    return None


def _beyond_words(share: float) -> str:
    if isfinite(share):
        return share_text(share)
    # One side is no number, the bound is 0, or a double cannot hold the share.
    return "by no multiple of it that can be told"


def _time_warnings(one: TimeSeries) -> list[str]:
    """A line for the last change, if it was for the worse."""
    if not one.change_points or one.change_points[-1].change <= 0:
        return []
    last = one.change_points[-1]
    moment = one.points[last.position].moment
    return [
        f"{safe_name(one.command, 60)} takes {change_text(last.change)} since {moment_text(moment)}"
    ]


def _golden_warning(one: GoldenWalk) -> str | None:
    if one.moved <= 1 or one.acceptances < 2:
        return None
    further = f", and {one.unknown} times nobody knows how far" if one.unknown else ""
    return (
        f"the golden of {safe_name(one.check)} was replaced {one.acceptances} times since"
        f" {one.since[:10]} and may have moved by {one.moved:.1f} bounds in all{further}"
    )
