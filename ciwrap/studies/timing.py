"""`ciwrap time`: times two commands, calls or revisions in pairs, and says what came of it."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.documents import DocumentHead
from ciwrap.base.errors import (
    CommandFailedError,
    NotAvailableError,
    NotComparableError,
    one_line,
)
from ciwrap.base.repository import Repository, place_below, revision_folder
from ciwrap.model import CommandOutcome, Used
from ciwrap.project.config import timing_settings
from ciwrap.project.run_command import (
    ending_of,
    halves_of_cores,
    last_words,
    own_peak_bytes,
    run_command,
    together,
)
from ciwrap.project.settings import CommandSettings, Config, TimingSettings
from ciwrap.report.text import bytes_text, time_text
from ciwrap.statistics.spread import (
    PairedComparison,
    Spread,
    TimingVerdict,
    compare_pairs,
    expected_makespan,
    makespan,
    spread_of,
    waste,
)
from ciwrap.studies.repeat.costs import used_by_all

if TYPE_CHECKING:
    from ciwrap.snapshot.take import ProgramWatcher


def pair_order(pairs: int, seed: int) -> tuple[bool, ...]:
    """Whether A runs first, for each pair: in half of them, in random order.

    With an odd number of pairs chance says which side is first once more.
    """
    generator = random.Random(seed)
    order = [position % 2 == 0 for position in range(pairs)]
    if pairs % 2 and generator.random() < 0.5:
        order = [not a_first for a_first in order]
    generator.shuffle(order)
    return tuple(order)


# The seconds of all commands that ran at once.
Members = tuple[float, ...]


class TimedCommand(Struct, frozen=True):
    """One of the two sides that are compared.

    name: "A" or "B". revision: which one of the repository it is, for people; commit: its name.
    """

    name: str
    command: CommandSettings
    revision: str | None = None
    commit: str | None = None


class Taken(Struct, frozen=True):
    """The times of both sides, pair by pair. a_first: whether A ran first, or had the first half of
    the cores, for each pair. a_used, b_used: what each run used, or all of a side that ran at once;
    () where that is not known.
    """

    a: tuple[Members, ...]
    b: tuple[Members, ...]
    a_first: tuple[bool, ...]
    a_used: tuple[Used, ...] = ()
    b_used: tuple[Used, ...] = ()

    def followed_by(self, more: Taken) -> Taken:
        """These pairs, and then those."""
        return Taken(
            self.a + more.a,
            self.b + more.b,
            self.a_first + more.a_first,
            self.a_used + more.a_used if self.a_used and more.a_used else (),
            self.b_used + more.b_used if self.b_used and more.b_used else (),
        )


def take_times(
    sides: Sequence[TimedCommand],
    *,
    pairs: int,
    warm_up: int,
    seed: int,
    size: int = 1,
    duet: bool = False,
    tell: Callable[[str], None],
    watchers: Sequence[ProgramWatcher | None] = (None, None),
    before: int = 0,
) -> Taken:
    """Runs both sides in pairs, in random order within each; or one side alone, as A.

    warm_up: runs of either side that come first and do not count. size: how many of a side run at
    once. duet: both sides of a pair run at the same time, each on half of the cores, and which of
    them has which half is random (Bulej et al., ICPE 2020); for a size of 1. tell: gets a line for
    each pair. watchers: look at what each side has loaded, in the first warm-up run, since a run
    that is timed is to be left alone. before: how many pairs were taken already. Raises
    CommandFailedError for the first run that fails, and UsageError for a duet on one core.
    """
    halves = halves_of_cores(sides[0].command.cores) if duet else None
    for number in range(warm_up):
        for side, watcher in zip(sides, watchers, strict=False):
            _run(side, size, f"warm-up run {number + 1}", None if number else watcher)
    order = pair_order(pairs, seed)
    times: dict[str, list[Members]] = {side.name: [] for side in sides}
    used: dict[str, list[Used | None]] = {side.name: [] for side in sides}
    for number, a_first in enumerate(order, start=before + 1):
        ordered = sides if a_first else sides[::-1]
        which = f"run {number} of {before + pairs}"
        if halves is None:
            found = [_run(side, size, which) for side in ordered]
        else:
            found = _run_both(ordered, halves, which)
        for side, outcomes in zip(ordered, found, strict=True):
            times[side.name].append(tuple(one.seconds for one in outcomes))
            used[side.name].append(used_by_all([one.used for one in outcomes]))
        said = ", ".join(f"{name} {max(taken[-1]):.3g} s" for name, taken in times.items())
        tell(f"{'pair' if len(sides) > 1 else 'run'} {number} of {before + pairs}: {said}")
    a_used, b_used = (_if_all_known(used.get(name, [])) for name in ("A", "B"))
    return Taken(tuple(times["A"]), tuple(times.get("B", ())), order, a_used, b_used)


def _if_all_known(used: Sequence[Used | None]) -> tuple[Used, ...]:
    known = tuple(one for one in used if one is not None)
    return known if len(known) == len(used) else ()


def take_until_decided(
    sides: Sequence[TimedCommand],
    settings: TimingSettings,
    *,
    seed: int,
    size: int,
    tell: Callable[[str], None],
    watchers: Sequence[ProgramWatcher | None],
) -> Taken:
    """As `take_times`, and more pairs at each look of the settings, until the verdict is settled;
    of one side alone there is none.

    Raises also NotAvailableError where processor times are to decide, and are not known.
    """
    taken: Taken | None = None
    for look, pairs in enumerate(settings.looks):
        before = 0 if taken is None else len(taken.a)
        more = take_times(
            sides,
            pairs=pairs - before,
            warm_up=settings.warm_up if taken is None else 0,
            seed=seed + look,
            size=size,
            duet=settings.duet,
            tell=tell,
            watchers=watchers,
            before=before,
        )
        taken = more if taken is None else taken.followed_by(more)
        if len(sides) == 1:
            break
        found, _ = _comparisons(taken, settings)
        if found.verdict is not TimingVerdict.INCONCLUSIVE:
            break
    assert taken is not None
    return taken


def _run(
    side: TimedCommand, size: int, which: str, watcher: ProgramWatcher | None = None
) -> list[CommandOutcome]:
    outcomes = together([partial(_run_quietly, side.command, watcher)] * size)
    for outcome in outcomes:
        _refuse_failed(side, outcome, which)
    return outcomes


def _run_both(
    sides: Sequence[TimedCommand],
    halves: tuple[frozenset[int], frozenset[int]],
    which: str,
) -> list[list[CommandOutcome]]:
    """Runs both sides at once, the first one on the first half of the cores."""
    commands = [
        replace(side.command, cores=cores) for side, cores in zip(sides, halves, strict=True)
    ]
    outcomes = together([partial(_run_quietly, command, None) for command in commands])
    for side, outcome in zip(sides, outcomes, strict=True):
        _refuse_failed(side, outcome, which)
    return [[outcome] for outcome in outcomes]


def _run_quietly(
    command: CommandSettings, watcher: ProgramWatcher | None, stop: threading.Event | None
) -> CommandOutcome:
    return run_command(command, is_shown=False, stop=stop, watcher=watcher)


def _refuse_failed(side: TimedCommand, outcome: CommandOutcome, which: str) -> None:
    """Raises CommandFailedError for a run that failed."""
    if outcome.exit_code != 0:
        raise _failed(f"{which} of {side.name}", outcome, last_words(outcome))


def _failed(what: str, outcome: CommandOutcome, printed: str = "") -> CommandFailedError:
    how = f"({one_line(outcome.command)}) {ending_of(outcome)}"
    return CommandFailedError(f"{what} {how}, so nothing was compared{printed}")


_SHORT = 10


class Recipe(Struct, frozen=True):
    """How a revision is built and what is then timed.

    Both commands are those of the working tree; they run in the same place of the other one.
    """

    timed: CommandSettings
    build: CommandSettings | None = None


@contextlib.contextmanager
def working_tree_side(name: str, repository: Repository, recipe: Recipe) -> Iterator[TimedCommand]:
    """The working tree as it is, built. Raises CommandFailedError."""
    build_revision(name, recipe.build)
    changed = ", with changes" if repository.changed_files() else ""
    commit = repository.commit("HEAD")
    yield TimedCommand(name, recipe.timed, f"working tree ({commit[:_SHORT]}{changed})", commit)


@contextlib.contextmanager
def revision_side(
    name: str, reference: str, repository: Repository, recipe: Recipe
) -> Iterator[TimedCommand]:
    """A revision, checked out in a working tree of its own and built, as long as the block lasts.

    Raises UsageError for an unknown revision, RepositoryError, CommandFailedError.
    """
    commit = repository.commit(reference)
    with revision_folder(repository, commit) as folder:
        build = None if recipe.build is None else moved(recipe.build, repository.top, folder)
        build_revision(f"{name} ({reference})", build)
        timed = moved(recipe.timed, repository.top, folder)
        yield TimedCommand(name, timed, f"{reference} ({commit[:_SHORT]})", commit)


def moved(command: CommandSettings, top: Path, folder: Path) -> CommandSettings:
    """The command at the same place of another working tree. A place outside of it stays."""
    place = place_below(command.working_dir, top)
    return command if place is None else replace(command, working_dir=folder / place)


def build_revision(what: str, command: CommandSettings | None) -> None:
    """Runs what builds a revision, if anything does. Raises CommandFailedError."""
    if command is None:
        return
    outcome = run_command(command)
    if outcome.exit_code != 0:
        raise _failed(f"the build of {what}", outcome)


if TYPE_CHECKING:
    Call = Callable[[], object]

Times = tuple[tuple[float, ...], tuple[float, ...]]


def time_calls(a: Call, b: Call, *, pairs: int, warm_up: int, seed: int) -> Times:
    """The seconds of each call, pair by pair, in random order within each pair.

    warm_up: calls of either that come first and do not count. What a call raises ends it all.
    """
    for _ in range(warm_up):
        a()
        b()
    times: tuple[list[float], list[float]] = ([], [])
    for a_first in pair_order(pairs, seed):
        for position in (0, 1) if a_first else (1, 0):
            started = time.perf_counter()
            (a, b)[position]()
            times[position].append(time.perf_counter() - started)
    return tuple(times[0]), tuple(times[1])


def chosen_timing(config: Config | None, given: Mapping[str, Any]) -> TimingSettings:
    """given: by name; None for what nobody said. The confidence is set in what is returned."""
    configured = timing_settings() if config is None else config.timing
    said = {name: value for name, value in given.items() if value is not None}
    settings = replace(configured, **said)
    return replace(settings, confidence=settings.confidence_used)


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
    the snapshot of its environment in the first warm-up run, where one is kept. used: by each
    pair's run, or by all that took place at once; () where that is not known.
    """

    name: Literal["A", "B"]
    command: str
    seconds: tuple[float, ...]
    spread: Spread
    revision: str | None = None
    commit: str | None = None
    together: Together | None = None
    snapshot: str | None = None
    used: tuple[Used, ...] = ()


class TimingDocument(DocumentHead, frozen=True):
    """What time found. comparison: the verdict; None for one command alone. sides: A, and B if
    there is one. order: of each pair, which side ran first; in a duet, which one had the first half
    of the cores. seed: of the order. warm_up: runs of either side that came first and do not count.
    reserve_core: whether one core was left to the operating system. duet: whether both sides of a
    pair ran at the same time, each on half of the cores. load: of the machine when it began, as a
    number of busy processes. decides: of what the comparison is, time on the clock or processor
    time. beside: a comparison of the other one, where processor times are known and above 0; the
    exit code does not depend on it. looks: after how many pairs it was asked whether it is decided,
    or would have been. exceeded: what the last side takes more of than its budget, a sentence for
    each; exit code 1 if there is any.
    """

    kind: Literal["timing"]
    exit_code: Literal[0, 1]
    comparison: PairedComparison | None
    sides: tuple[TimedSide, ...]
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
    decides: Literal["time", "cpu"] = "time"
    beside: PairedComparison | None = None
    looks: tuple[int, ...] = ()
    exceeded: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """What is compared, in words."""
        return WHAT[self.decides]


WHAT = {"time": "time", "cpu": "processor time"}


def timed_side(
    side: TimedCommand,
    times: tuple[Members, ...],
    used: tuple[Used, ...],
    seed: int,
    snapshot: str | None,
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
        used=used,
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
    commands: Sequence[TimedCommand],
    taken: Taken,
    *,
    settings: TimingSettings,
    seed: int,
    environment: Mapping[str, str],
    ciwrap_version: str,
    started_at: str,
    seconds: float,
    load: float | None,
    snapshots: Sequence[str | None],
) -> TimingDocument:
    """The record of times that were taken. settings: as `chosen_timing` returns them.

    Raises NotAvailableError where processor times are to decide, and are not known.
    """
    times, used = (taken.a, taken.b), (taken.a_used, taken.b_used)
    sides = tuple(
        timed_side(side, times[at], used[at], seed, snapshots[at])
        for at, side in enumerate(commands)
    )
    comparison, beside = None, None
    if len(sides) > 1:
        comparison, beside = _comparisons(taken, settings)
    is_slower = comparison is not None and is_changed_for_the_worse(comparison)
    exceeded = tuple(over_budget(sides[-1], settings))
    return TimingDocument(
        schema_version=1,
        kind="timing",
        exit_code=1 if exceeded or (settings.gate and is_slower) else 0,
        comparison=comparison,
        sides=sides,
        order=tuple("A" if first else "B" for first in taken.a_first),
        seed=seed,
        warm_up=settings.warm_up,
        reserve_core=settings.reserve_core,
        gate=settings.gate,
        environment=dict(environment),
        ciwrap_version=ciwrap_version,
        started_at=started_at,
        seconds=seconds,
        load=load,
        duet=settings.duet,
        decides=settings.decides,
        beside=beside,
        looks=settings.looks if len(sides) > 1 else (),
        exceeded=exceeded,
    )


def over_budget(side: TimedSide, settings: TimingSettings) -> Iterator[str]:
    """What a side takes more of than it may, a sentence for each: time in the median, memory in any
    run. Raises NotComparableError where nobody knows.
    """
    most = settings.max_seconds
    if most is not None and side.spread.median > most:
        taken = time_text(side.spread.median)
        yield f"{side.name} takes {taken} in the median, and may take {time_text(most)}"
    if settings.max_memory is None:
        return
    peak = _peak_memory(side, settings.max_memory)
    if peak > settings.max_memory:
        may = bytes_text(settings.max_memory)
        yield f"{side.name} takes {bytes_text(peak)} of memory at its peak, and may take {may}"


def _peak_memory(side: TimedSide, most: int) -> int:
    """The most memory of any run; of runs that took less than ciwrap, what that took."""
    own = own_peak_bytes()
    peaks = [one.peak_bytes for one in side.used if one.peak_bytes is not None]
    if side.used and (peaks or own <= most):
        return max(peaks, default=own)
    why = f"less than that of ciwrap itself ({bytes_text(own)})" if side.used else "not known here"
    raise NotComparableError(
        f"the memory of {side.name} is {why}, so nothing tells whether it is within its budget",
        remedy="give a larger --max-memory, or leave it out",
    )


def is_changed_for_the_worse(found: PairedComparison) -> bool:
    """Whether B takes longer for sure, by the margin or more."""
    return found.verdict is TimingVerdict.CHANGED and found.change > 0


def _comparisons(
    taken: Taken, settings: TimingSettings
) -> tuple[PairedComparison, PairedComparison | None]:
    """The comparison that decides, and that of the other kind of time, if there is one.

    Raises NotAvailableError where processor times are to decide, and are not known.
    """
    compare = partial(compare_pairs, margin=settings.margin, confidence=settings.confidence_of_look)
    clock = compare(*([makespan(one) for one in times] for times in (taken.a, taken.b)))
    first, second = ([one.cpu_seconds for one in used] for used in (taken.a_used, taken.b_used))
    is_known = bool(first and second) and min(*first, *second) > 0
    work = compare(first, second) if is_known else None
    if settings.decides == "time":
        return clock, work
    if work is None:
        raise NotAvailableError(
            "the processor times of these runs are not known, or 0, so they decide nothing",
            remedy="let time on the clock decide, which is the default",
        )
    return work, clock
