"""`ciwrap trend`: what moves in many results: shares of bounds, run times, goldens."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import takewhile
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.base.documents import DocumentHead, to_record
from ciwrap.base.errors import InvalidResultError
from ciwrap.golden.manifest import Manifest
from ciwrap.model import CheckResult, EnvironmentDifference, RunResult
from ciwrap.model.variable_result import Number
from ciwrap.report.document import MOST_BYTES, from_document, load_document, reading_result
from ciwrap.report.text import percent_text, plural, safe_name, share_text
from ciwrap.report.words import used_share
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
from ciwrap.studies.timing import TimingDocument, change_text
from ciwrap.studies.trend_report import moment_text, rate_words, reached_words


class Moment(msgspec.Struct, frozen=True):
    """Which result a number is from. when: UTC, ISO 8601. commit: with -dirty if files had been
    changed; null without git.
    """

    file: str
    when: str
    commit: str | None = None


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


class TimePoint(msgspec.Struct, frozen=True):
    """How long a command took in one result."""

    moment: Moment
    seconds: float


class TimeSeries(msgspec.Struct, frozen=True):
    """One command on one kind of processor over time, oldest first.

    slope: where each run takes longer than the one before, or less long; then there are no change
    points. differences: for each change point, what differs between the environments of the result
    before it and of the first one after, the likeliest to matter first: facts, and no causes.
    """

    command: str
    cpu: str
    points: tuple[TimePoint, ...]
    median: float
    slope: Slope | None = None
    change_points: tuple[ChangePoint, ...] = ()
    differences: tuple[tuple[EnvironmentDifference, ...], ...] = ()


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
    """What trend found. results: how many were read. warnings: a line for each."""

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
    timed = sorted(found.times.items())
    slopes = _sure_slopes([[point.seconds for point, _ in points] for _, points in timed])
    times = tuple(
        _time_series(key, points, slope, margin, snapshots)
        for (key, points), slope in zip(timed, slopes, strict=True)
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
    key: tuple[str, str], points: Sequence[tuple[Basis, SharePoint]], *, is_lost: bool
) -> ShareSeries:
    today = points[-1][0]
    since = len(list(takewhile(lambda one: one[0] == today, reversed(points))))
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
    measured: Sequence[tuple[TimePoint, Mapping[str, str]]],
    slope: Slope | None,
    margin: float,
    snapshots: Sequence[SnapshotStore],
) -> TimeSeries:
    points = tuple(point for point, _ in measured)
    seconds = [point.seconds for point in points]
    # What rises with each run has no levels.
    changes = () if slope is not None else find_change_points(seconds, margin=margin, seed=_SEED)
    pairs = [(measured[one.position - 1][1], measured[one.position][1]) for one in changes]
    return TimeSeries(
        command=key[0],
        cpu=key[1],
        points=points,
        median=median(seconds),
        slope=slope,
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
    return "by no multiple of it that is known"


def _time_warnings(one: TimeSeries) -> list[str]:
    """A line for what grows, or for the last change, if it was for the worse."""
    if one.slope is not None and one.slope.per_step > 0:
        return [f"{safe_name(one.command, 60)} takes {rate_words(one.slope, one.median)}"]
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


_NO_CPU = "unknown"
_KINDS = "check, run, compare or time"
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")

# What shares of one series must have in common to be compared: the golden and the bound.
Basis = tuple[str | None, str]


class Collected(Struct):
    """Everything that results say over time, oldest first.

    shares: by check and variable, each with its basis. lost: of these, those of which the newest
    result of their check tells no share: not comparable, for instance. times: by command and
    processor, each with the facts of its environment. repeated: how many files say the same, byte
    for byte, as another one: what is listed twice has not happened twice.
    """

    moments: list[Moment] = field(default_factory=list)
    shares: dict[tuple[str, str], list[tuple[Basis, SharePoint]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lost: set[tuple[str, str]] = field(default_factory=set)
    times: dict[tuple[str, str], list[tuple[TimePoint, Mapping[str, str]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    repeated: int = 0


class _Observed(Struct):
    """What one result says; the result itself may be large, and is let go."""

    moment: Moment
    environment: Mapping[str, str]
    checks: set[str] = field(default_factory=set)
    shares: dict[tuple[str, str], tuple[Basis, Number]] = field(default_factory=dict)
    times: list[tuple[tuple[str, str], float]] = field(default_factory=list)


def collect(paths: Sequence[Path]) -> Collected:
    """Reads results of check, run, compare and time, whatever their order; two that began at the
    same time stay in the order given.

    Raises UnreadableFileError, InvalidResultError.
    """
    distinct = list({_digest(path): path for path in reversed(paths)}.values())[::-1]
    found = Collected(repeated=len(paths) - len(distinct))
    for one in sorted(map(_observe, distinct), key=lambda one: one.moment.when):
        found.moments.append(one.moment)
        for key, (basis, share) in one.shares.items():
            found.shares[key].append((basis, SharePoint(one.moment, share)))
        found.lost |= {key for key in found.shares if key[0] in one.checks}
        found.lost -= one.shares.keys()
        for which, seconds in one.times:
            found.times[which].append((TimePoint(one.moment, seconds), one.environment))
    return found


def _digest(path: Path) -> bytes:
    with reading_result(path, _KINDS), path.open("rb") as stream:
        # Of one that is longer no more is read, here or later.
        return hashlib.sha256(stream.read(MOST_BYTES + 1)).digest()


def _observe(path: Path) -> _Observed:
    result = read_any(path)
    if not _UTC.match(result.started_at):
        raise InvalidResultError(
            "does not say when it began, so it has no place among the others", file=path
        )
    commit = result.environment.get("git_commit")
    observed = _Observed(Moment(path.name, result.started_at, commit), result.environment)
    cpu = result.environment.get("cpu", _NO_CPU)
    if isinstance(result, TimingDocument):
        new = result.sides[1]  # a comparison's side B
        observed.environment = {**result.environment, "snapshot": new.snapshot or ""}
        observed.times.append(((new.command, cpu), new.spread.median))
        return observed
    for outcome in (result.command, *(check.command for check in result.checks)):
        if outcome is not None and outcome.exit_code == 0 and outcome.seconds > 0:
            observed.times.append(((outcome.command, cpu), outcome.seconds))
    for check in result.checks:
        name = f"{check.name} ({check.label})" if check.label else check.name
        observed.checks.add(name)
        for variable, worst in _worst_shares(check).items():
            observed.shares[name, variable] = worst
    return observed


def read_any(path: Path) -> RunResult | TimingDocument:
    """A result of check, run, compare or time. Raises UnreadableFileError, InvalidResultError."""
    with reading_result(path, _KINDS):
        document = load_document(path)
        is_timing = isinstance(document, dict) and document.get("kind") == "timing"
        # A call of `ciwrap time` that failed writes the document of a run without a verdict.
        if is_timing and "comparison" in document:
            return to_record(document, TimingDocument)
        return from_document(document)


def _worst_shares(check: CheckResult) -> dict[str, tuple[Basis, Number]]:
    """Of each name: the largest share over its checkpoints. Without those of which none is known,
    and those with a bound of 0: where nothing but equality counts, nothing comes nearer to it.
    """
    worst: dict[str, tuple[Basis, Number]] = {}
    for variable in check.variables:
        share = used_share(variable)
        if share is None:
            continue
        basis = (check.golden_root, str(variable.bound))
        if variable.name not in worst or share > worst[variable.name][1]:
            worst[variable.name] = (basis, share)
    return worst
