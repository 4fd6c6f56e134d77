"""What `ciwrap time` found, as the record that its JSON document is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from ciwrap.documents.records import DocumentHead
from ciwrap.statistics.pairs import PairedComparison, TimingVerdict, compare_pairs
from ciwrap.statistics.spread import Spread, expected_makespan, makespan, spread_of, waste

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.timing.measure import Members, Side, Taken


class Together(msgspec.Struct, frozen=True):
    """Runs that take place at once and wait for the slowest of them.

    size: how many at once. waste: the share of their time that they wait, in the mean.
    expected_makespan: the seconds that the slowest would take if runs did not disturb each other
    more than they do in the mean. mean_makespan: the seconds that it took.
    """

    size: int
    mean_makespan: float
    expected_makespan: float
    waste: float


class TimedSide(msgspec.Struct, frozen=True):
    """One of the two sides.

    seconds: of each pair's run, in order; of the slowest run where several took place at once.
    revision: which one of the repository it is. commit: its full name. snapshot: the identity of
    the snapshot of its environment in the first warm-up run, where one is kept.
    """

    name: Literal["A", "B"]
    command: str
    seconds: tuple[float, ...]
    spread: Spread
    revision: str | None = None
    commit: str | None = None
    together: Together | None = None
    snapshot: str | None = None


class TimingDocument(DocumentHead, frozen=True):
    """What time found. order: of each pair, which side ran first; in a duet, which one had the
    first half of the cores. seed: of the order. warm_up: runs of either side that came first and do
    not count. reserve_core: whether one core was left to the operating system. duet: whether both
    sides of a pair ran at the same time, each on half of the cores. load: of the machine when it
    began, as a number of busy processes.
    """

    kind: Literal["timing"]
    exit_code: Literal[0, 1]
    comparison: PairedComparison
    sides: tuple[TimedSide, TimedSide]
    order: tuple[Literal["A", "B"], ...]
    seed: int
    warm_up: int
    reserve_core: bool
    gate: bool
    environment: dict[str, str]
    ciwrap_version: str
    started_at: str
    seconds: float
    load: float | None = None
    duet: bool = False


def timed_side(
    side: Side, times: tuple[Members, ...], seed: int, snapshot: str | None = None
) -> TimedSide:
    """A side and what its times say. snapshot: of its environment.

    Raises NotAvailableError without SciPy.
    """
    seconds = tuple(makespan(members) for members in times)
    return TimedSide(
        name="A" if side.name == "A" else "B",
        command=side.command.text,
        seconds=seconds,
        spread=spread_of(seconds, seed=seed),
        revision=side.revision,
        commit=side.commit,
        together=_together(times) if len(times[0]) > 1 else None,
        snapshot=snapshot,
    )


def _together(times: tuple[Members, ...]) -> Together:
    size = len(times[0])
    everything = [seconds for members in times for seconds in members]
    return Together(
        size=size,
        mean_makespan=sum(map(makespan, times)) / len(times),
        expected_makespan=expected_makespan(everything, size),
        waste=sum(map(waste, times)) / len(times),
    )


def timing_document(
    sides: tuple[Side, Side],
    taken: Taken,
    *,
    margin: float,
    confidence: float,
    gate: bool,
    seed: int,
    warm_up: int,
    reserve_core: bool,
    environment: Mapping[str, str],
    ciwrap_version: str,
    started_at: str,
    seconds: float,
    load: float | None,
    duet: bool = False,
    snapshots: tuple[str | None, str | None] = (None, None),
) -> TimingDocument:
    """The record of times that were taken."""
    a = timed_side(sides[0], taken.a, seed, snapshots[0])
    b = timed_side(sides[1], taken.b, seed, snapshots[1])
    comparison = compare_pairs(a.seconds, b.seconds, margin=margin, confidence=confidence)
    is_slower = comparison.verdict is TimingVerdict.CHANGED and comparison.change > 0
    return TimingDocument(
        schema_version=1,
        kind="timing",
        exit_code=1 if gate and is_slower else 0,
        comparison=comparison,
        sides=(a, b),
        order=tuple("A" if first else "B" for first in taken.a_first),
        seed=seed,
        warm_up=warm_up,
        reserve_core=reserve_core,
        gate=gate,
        environment=dict(environment),
        ciwrap_version=ciwrap_version,
        started_at=started_at,
        seconds=seconds,
        load=load,
        duet=duet,
    )
