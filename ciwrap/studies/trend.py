"""`ciwrap trend`: what moves in many results: shares of bounds, run times, goldens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap, takewhile
from math import isfinite
from statistics import median
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from ciwrap import __version__
from ciwrap.base.documents import DocumentHead
from ciwrap.golden.manifest import Manifest
from ciwrap.model import EnvironmentDifference, Verdict
from ciwrap.model.variable_result import Number
from ciwrap.report.text import percent_text, plural, safe_name, share_text
from ciwrap.snapshot.difference import environment_differences
from ciwrap.snapshot.store import SnapshotStore
from ciwrap.statistics.change_points import (
    ChangePoint,
    Slope,
    find_change_points,
    least_points,
    rare_ones,
    slope_of,
)
from ciwrap.studies.observed import Basis, Collected, Moment, Series
from ciwrap.studies.trend_report import change_words, moment_text, rate_words, reached_words


class SharePoint(msgspec.Struct, frozen=True):
    """How much of its bound a variable used up in one result, at its worst checkpoint; infinite
    where one side alone is finite, the bound is 0, or a double cannot hold it.
    """

    moment: Moment
    share: Number


class ShareSeries(msgspec.Struct, frozen=True):
    """One variable over time.

    points: all results, oldest first. since: the number of results against the golden and the bound
    of today, at the end of points; slope and change_points are theirs, and where there is a slope
    there are no change points. until_bound: after how many further results
    the bound is reached at this rate; null if it is not to be seen. newest: the last share that is
    known. is_lost: whether the newest result that has the check does not tell it. is_enough:
    whether so many results since can tell a trend at all, among so many variables.
    """

    check: str
    variable: str
    points: tuple[SharePoint, ...]
    since: int
    newest: Number
    slope: Slope | None = None
    until_bound: int | None = None
    is_lost: bool = False
    is_enough: bool = True
    change_points: tuple[ChangePoint, ...] = ()


class VerdictPoint(msgspec.Struct, frozen=True):
    """What a check came to in one result. bad: how many of its variables do not match, of those
    that the result lists.
    """

    moment: Moment
    verdict: Verdict
    bad: int


class VerdictSeries(msgspec.Struct, frozen=True):
    """One check over time, oldest first; without a name, results as a whole, of which a command
    that failed has no checks. bad then counts checks.
    """

    check: str
    points: tuple[VerdictPoint, ...]

    @property
    def bad_since(self) -> int:
        """The position of the first of the newest results, none of which matches; the number of
        all if the newest one matches.
        """
        bad = takewhile(lambda one: not one.verdict.is_good, reversed(self.points))
        return len(self.points) - len(list(bad))


class TimePoint(msgspec.Struct, frozen=True):
    """How long a command took in one result."""

    moment: Moment
    seconds: float

    @property
    def value(self) -> float:
        return self.seconds


class MemoryPoint(msgspec.Struct, frozen=True):
    """The memory of a command's largest process in one result."""

    moment: Moment
    bytes: int

    @property
    def value(self) -> float:
        return self.bytes


class MeasuredSeries(msgspec.Struct, frozen=True, kw_only=True):
    """What one command took on one kind of processor over time, oldest first.

    slope: where each run takes longer than the one before, or less long; then there are no change
    points. differences: for each change point, what differs between the environments of the result
    before it and of the first one after, the likeliest to matter first: facts, and no causes.
    """

    noun: ClassVar[str]

    command: str
    cpu: str
    points: tuple[TimePoint | MemoryPoint, ...]
    median: float
    slope: Slope | None = None
    change_points: tuple[ChangePoint, ...] = ()
    differences: tuple[tuple[EnvironmentDifference, ...], ...] = ()


class TimeSeries(MeasuredSeries, frozen=True, kw_only=True):
    noun: ClassVar[str] = "time"
    points: tuple[TimePoint, ...]


class MemorySeries(MeasuredSeries, frozen=True, kw_only=True):
    noun: ClassVar[str] = "memory"
    points: tuple[MemoryPoint, ...]


class GoldenWalk(msgspec.Struct, frozen=True):
    """How far a golden has moved by being accepted again and again.

    acceptances: how often it was replaced. moved: the sum of what each of these moved, as shares of
    the bound of then, so it can have moved no further. unknown: how many of them could not tell.
    bound_changes: how many of them changed a bound. since: when the first of them was.
    """

    check: str
    acceptances: int
    moved: float
    unknown: int
    bound_changes: int
    since: str


class TrendDocument(DocumentHead, frozen=True):
    """What trend found. results: how many were read. warnings: a line for each. memory: of the
    commands whose memory is known.
    """

    kind: Literal["trend"]
    results: int
    first: str
    last: str
    shares: tuple[ShareSeries, ...]
    times: tuple[TimeSeries, ...]
    goldens: tuple[GoldenWalk, ...]
    warnings: tuple[str, ...]
    margin: float
    ciwrap_version: str
    checks: tuple[VerdictSeries, ...] = ()
    memory: tuple[MemorySeries, ...] = ()


_Measured = TypeVar("_Measured", bound=MeasuredSeries)

# From here on a warning: the next change of compiler may be enough.
NEAR = 0.8
_FAR = 2.0
_LEAST_SHARE = 0.01
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
    shares = _share_series(found, margin)
    times = tuple(_measured(TimeSeries, TimePoint, found.times, margin, snapshots))
    memory = tuple(_measured(MemorySeries, MemoryPoint, found.memory, margin, snapshots))
    checks = tuple(
        VerdictSeries(check, tuple(starmap(VerdictPoint, points)))
        for check, points in sorted(found.verdicts.items())
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
        checks=checks,
        memory=memory,
        warnings=(
            *_repeated_warning(found.repeated),
            *(text for one in shares if (text := _share_warning(one)) is not None),
            *_verdict_warnings(checks, shares),
            *(text for one in (*times, *memory) for text in _measured_warnings(one)),
            *(text for one in goldens if (text := _golden_warning(one)) is not None),
        ),
        margin=margin,
        ciwrap_version=__version__,
    )


def _share_series(found: Collected, margin: float) -> tuple[ShareSeries, ...]:
    """The series of all variables; a slope only where it is no accident among so many, and else the
    steps that there are.
    """
    series = [
        _plain_series(key, points, is_lost=key in found.lost)
        for key, points in sorted(found.shares.items())
    ]
    # Against today's golden and bound; how far beyond the bound is no matter of a slope.
    values = [[min(point.share, _FAR) for point in each.points[-each.since :]] for each in series]
    least = least_points(_RATE, len(series))
    told = [
        replace(each, slope=slope, until_bound=slope.steps_until(1.0))
        if slope is not None
        else replace(
            each, is_enough=each.since >= least, change_points=_steps_of(shares, each, margin)
        )
        for each, shares, slope in zip(series, values, _sure_slopes(values), strict=True)
    ]
    return tuple(sorted(told, key=lambda one: -one.newest))


def _sure_slopes(series: Sequence[Sequence[float]]) -> list[Slope | None]:
    """The slopes that are no accident among so many series."""
    slopes = [slope_of(values) for values in series]
    counts = rare_ones([1.0 if slope is None else slope.p for slope in slopes], _RATE)
    return [slope if is_rare else None for slope, is_rare in zip(slopes, counts, strict=True)]


def _steps_of(shares: Sequence[float], one: ShareSeries, margin: float) -> tuple[ChangePoint, ...]:
    """The changes of level of shares, at their places among all points of the series."""
    before = len(one.points) - one.since
    # What is below a hundredth of the bound has no level that matters.
    found = find_change_points(
        [max(_LEAST_SHARE, one) for one in shares], margin=margin, seed=_SEED
    )
    return tuple(replace(step, position=step.position + before) for step in found)


def _plain_series(
    key: tuple[str, str],
    points: Sequence[tuple[Moment, tuple[Basis, float]]],
    *,
    is_lost: bool,
) -> ShareSeries:
    today, newest = points[-1][1]
    since = len(list(takewhile(lambda one: one[1][0] == today, reversed(points))))
    return ShareSeries(
        check=key[0],
        variable=key[1],
        points=tuple(SharePoint(moment, share) for moment, (_, share) in points),
        since=since,
        newest=newest,
        is_lost=is_lost,
    )


def _measured(
    kind: type[_Measured],
    point: Callable[[Moment, Any], TimePoint | MemoryPoint],
    series: Series[tuple[Any, Mapping[str, str]]],
    margin: float,
    snapshots: Sequence[SnapshotStore],
) -> Iterator[_Measured]:
    """Of each command and processor: what was measured, and its levels."""
    listed = sorted(series.items())
    values = [[value for _, (value, _) in points] for _, points in listed]
    for (key, points), measured, slope in zip(listed, values, _sure_slopes(values), strict=True):
        # What rises with each run has no levels.
        steps = () if slope is not None else find_change_points(measured, margin=margin, seed=_SEED)
        facts = [environment for _, (_, environment) in points]
        differences = tuple(
            environment_differences(facts[one.position - 1], facts[one.position], snapshots)
            for one in steps
        )
        command, cpu = key
        yield kind(
            command=command,
            cpu=cpu,
            points=tuple(point(moment, value) for moment, (value, _) in points),
            median=median(measured),
            slope=slope,
            change_points=steps,
            differences=differences,
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
            f"{name} is missing from the newest result of its check, or not comparable there;"
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
            f" {percent_text(one.slope.per_step)} of the bound with each result;"
            f" {reached_words(one.until_bound)}"
        )
    return None


def _verdict_warnings(
    checks: Sequence[VerdictSeries], shares: Sequence[ShareSeries]
) -> Iterator[str]:
    """A line for each check whose newest result does not match, unless one of its variables has
    one.
    """
    warned = {one.check for one in shares if one.is_lost or one.newest > 1}
    for one in checks:
        if one.check and one.check not in warned and one.bad_since < len(one.points):
            since = moment_text(one.points[one.bad_since].moment)
            yield f"{safe_name(one.check)} does not match since {since}"


def _beyond_words(share: float) -> str:
    if isfinite(share):
        return share_text(share)
    # One side is no number, the bound is 0, or a double cannot hold the share.
    return "by no multiple of it that is known"


def _measured_warnings(one: MeasuredSeries) -> list[str]:
    """A line for what grows, or for the last change, if it was for the worse."""
    if one.slope is not None and one.slope.per_step > 0:
        return [f"{safe_name(one.command, 60)} takes {rate_words(one)}"]
    if not one.change_points or one.change_points[-1].change <= 0:
        return []
    last = one.change_points[-1]
    moment = one.points[last.position].moment
    words = change_words(one, last.change)
    return [f"{safe_name(one.command, 60)} takes {words} since {moment_text(moment)}"]


def _golden_warning(one: GoldenWalk) -> str | None:
    if one.moved <= 1 or one.acceptances < 2:
        return None
    further = f", and {one.unknown} times nobody knows how far" if one.unknown else ""
    return (
        f"the golden of {safe_name(one.check)} was replaced {one.acceptances} times since"
        f" {one.since[:10]} and may have moved by {one.moved:.1f} bounds in all{further}"
    )
