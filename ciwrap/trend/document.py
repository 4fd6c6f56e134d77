"""What `ciwrap trend` found, as the record that its JSON document is made of."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.details import Number
from ciwrap.documents.records import DocumentHead
from ciwrap.model import EnvironmentDifference
from ciwrap.statistics.change_points import ChangePoint
from ciwrap.statistics.slopes import Slope


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
    of today, at the end of points; the slope is theirs. until_bound: after how many further results
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


class TimePoint(msgspec.Struct, frozen=True):
    """How long a command took in one result."""

    moment: Moment
    seconds: float


class TimeSeries(msgspec.Struct, frozen=True):
    """One command on one kind of processor over time, oldest first.

    differences: for each change point, what differs between the environments of the result before
    it and of the first one after, the likeliest to matter first: facts, and no causes.
    """

    command: str
    cpu: str
    points: tuple[TimePoint, ...]
    median: float
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
