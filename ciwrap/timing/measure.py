"""Runs two commands in interleaved pairs and takes their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import CommandFailedError, one_line
from ciwrap.running.run_command import ending_of, run_command
from ciwrap.running.together import together
from ciwrap.structs import Struct
from ciwrap.timing.order import pair_order

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from ciwrap.config import CommandSettings
    from ciwrap.model import CommandOutcome
    from ciwrap.snapshot.program import ProgramWatcher

_MOST_SAID = 200

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
    """The times of both sides, pair by pair. a_first: whether A ran first, for each pair."""

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
    tell: Callable[[str], None],
    watchers: Sequence[ProgramWatcher | None] = (None, None),
) -> Taken:
    """Runs both sides in pairs, in random order within each.

    warm_up: runs of either side that come first and do not count. size: how many of a side run at
    once. tell: gets a line for each pair. watchers: look at what each side has loaded, in the first
    warm-up run, since a run that is timed is to be left alone. Raises CommandFailedError for the
    first run that fails.
    """
    for number in range(warm_up):
        for side, watcher in zip(sides, watchers, strict=True):
            _run(side, size, f"warm-up run {number + 1}", None if number else watcher)
    order = pair_order(pairs, seed)
    times: dict[str, list[Members]] = {side.name: [] for side in sides}
    for number, a_first in enumerate(order, start=1):
        for side in sides if a_first else sides[::-1]:
            times[side.name].append(_run(side, size, f"run {number} of {pairs}"))
        said = ", ".join(f"{name} {max(taken[-1]):.3g} s" for name, taken in times.items())
        tell(f"pair {number} of {pairs}: {said}")
    a, b = (tuple(times[side.name]) for side in sides)
    return Taken(a, b, order)


def _run(side: Side, size: int, which: str, watcher: ProgramWatcher | None = None) -> Members:
    def once(stop: threading.Event | None) -> CommandOutcome:
        return run_command(side.command, is_shown=False, stop=stop, watcher=watcher)

    outcomes = together([once] * size)
    for outcome in outcomes:
        if outcome.exit_code != 0:
            raise _failure(side, outcome, which)
    return tuple(outcome.seconds for outcome in outcomes)


def _failure(side: Side, outcome: CommandOutcome, which: str) -> CommandFailedError:
    said = one_line(outcome.output_tail)[-_MOST_SAID:]
    words = f"; its last words: {said}" if said and outcome.exit_code is not None else ""
    return CommandFailedError(
        f"{which} of {side.name} ({one_line(outcome.command)}) {ending_of(outcome)},"
        f" so no run times are compared{words}"
    )
