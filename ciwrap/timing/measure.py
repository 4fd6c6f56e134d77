"""Runs two commands in pairs, one after the other or both at once, and takes their times."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ciwrap.errors import CommandFailedError, one_line
from ciwrap.running.cores import halves_of_cores
from ciwrap.running.run_command import ending_of, last_words, run_command
from ciwrap.running.together import together
from ciwrap.structs import Struct, replace
from ciwrap.timing.order import pair_order

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from ciwrap.config import CommandSettings
    from ciwrap.model import CommandOutcome
    from ciwrap.snapshot.program import ProgramWatcher

# The seconds of all commands that ran at once.
Members = tuple[float, ...]


class Side(Struct, frozen=True):
    """One of the two sides that are compared.

    name: "A" or "B". revision: which one of the repository it is, for people; commit: its name.
    """

    name: str
    command: CommandSettings
    revision: str | None = None
    commit: str | None = None


class Taken(Struct, frozen=True):
    """The times of both sides, pair by pair. a_first: whether A ran first, or had the first half of
    the cores, for each pair.
    """

    a: tuple[Members, ...]
    b: tuple[Members, ...]
    a_first: tuple[bool, ...]


def take_times(
    sides: tuple[Side, Side],
    *,
    pairs: int,
    warm_up: int,
    seed: int,
    size: int = 1,
    duet: bool = False,
    tell: Callable[[str], None],
    watchers: Sequence[ProgramWatcher | None] = (None, None),
) -> Taken:
    """Runs both sides in pairs, in random order within each.

    warm_up: runs of either side that come first and do not count. size: how many of a side run at
    once. duet: both sides of a pair run at the same time, each on half of the cores, and which of
    them has which half is random (Bulej et al., ICPE 2020); for a size of 1. tell: gets a line for
    each pair. watchers: look at what each side has loaded, in the first warm-up run, since a run
    that is timed is to be left alone. Raises CommandFailedError for the first run that fails, and
    UsageError for a duet on one core.
    """
    halves = halves_of_cores(sides[0].command.cores) if duet else None
    for number in range(warm_up):
        for side, watcher in zip(sides, watchers, strict=True):
            _run(side, size, f"warm-up run {number + 1}", None if number else watcher)
    order = pair_order(pairs, seed)
    times: dict[str, list[Members]] = {side.name: [] for side in sides}
    for number, a_first in enumerate(order, start=1):
        ordered = sides if a_first else sides[::-1]
        which = f"run {number} of {pairs}"
        if halves is None:
            found = [_run(side, size, which) for side in ordered]
        else:
            found = _run_both(ordered, halves, which)
        for side, seconds in zip(ordered, found, strict=True):
            times[side.name].append(seconds)
        said = ", ".join(f"{name} {max(taken[-1]):.3g} s" for name, taken in times.items())
        tell(f"pair {number} of {pairs}: {said}")
    a, b = (tuple(times[side.name]) for side in sides)
    return Taken(a, b, order)


def _run(side: Side, size: int, which: str, watcher: ProgramWatcher | None = None) -> Members:
    def once(stop: threading.Event | None) -> CommandOutcome:
        return run_command(side.command, is_shown=False, stop=stop, watcher=watcher)

    outcomes = together([once] * size)
    for outcome in outcomes:
        _refuse_failed(side, outcome, which)
    return tuple(outcome.seconds for outcome in outcomes)


def _run_both(
    sides: tuple[Side, Side], halves: tuple[frozenset[int], frozenset[int]], which: str
) -> list[Members]:
    """Runs both sides at once, the first one on the first half of the cores."""
    commands = [
        replace(side.command, cores=cores) for side, cores in zip(sides, halves, strict=True)
    ]
    outcomes = together([partial(_run_quietly, command) for command in commands])
    for side, outcome in zip(sides, outcomes, strict=True):
        _refuse_failed(side, outcome, which)
    return [(outcome.seconds,) for outcome in outcomes]


def _run_quietly(command: CommandSettings, stop: threading.Event | None) -> CommandOutcome:
    return run_command(command, is_shown=False, stop=stop)


def _refuse_failed(side: Side, outcome: CommandOutcome, which: str) -> None:
    """Raises CommandFailedError for a run that failed."""
    if outcome.exit_code != 0:
        raise CommandFailedError(
            f"{which} of {side.name} ({one_line(outcome.command)}) {ending_of(outcome)},"
            f" so no run times are compared{last_words(outcome)}"
        )
