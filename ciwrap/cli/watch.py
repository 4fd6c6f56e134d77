"""`ciwrap watch`: how far a run that is recorded is from its bounds, while it runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.errors import ExitCode, OutputMissingError

if TYPE_CHECKING:
    from ciwrap.online.watched import WatchedRun

_LOOK_SECONDS = 0.2


@click.command(name="watch", short_help="Show how far a recorded run is from its bounds, live.")
@click.argument("run", metavar="RUN", type=click.Path())
@click.option("--once", is_flag=True, help="Show how it stands now, and end.")
@click.option(
    "--every",
    "every_seconds",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Show it so often: by default every second on a terminal, else only in the end.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0),
    default=10.0,
    metavar="SECONDS",
    help="Wait this long for the run to begin (10).",
)
def command(run: str, once: bool, every_seconds: float | None, wait_seconds: float) -> int:
    """Show, for each variable of RUN, how much of its bound it has used, and how fast that grows.

    RUN is the folder of a run that `ciwrap record --against` records, or has recorded. Shares are
    known of variables with residues. Ends when the run has ended; Ctrl-C ends it before.

    Exit codes: 0 what was compared matches, 1 something does not, 2 usage, 3 something, or
    everything, was not compared.
    """
    from ciwrap.online.watched import WatchedRun

    watched = WatchedRun(Path(run))
    _await(watched, Path(run), 0.0 if once else wait_seconds)
    screen = _Screen(every_seconds)
    try:
        while not (has_ended := watched.has_ended()) and not once:
            screen.show(watched, has_ended=False)
            time.sleep(_LOOK_SECONDS)
            watched.look()
        watched.look()
    except KeyboardInterrupt:
        screen.show(watched, has_ended=False, is_last=True)
        raise
    screen.show(watched, has_ended=has_ended, is_last=True)
    return _code(watched, has_ended=has_ended)


def _await(watched: WatchedRun, run: Path, seconds: float) -> None:
    """Raises OutputMissingError if the run does not begin."""
    until = time.monotonic() + seconds
    watched.look()
    while not watched.ranks:
        if time.monotonic() >= until:
            raise OutputMissingError(
                "holds no journal: nothing was recorded",
                file=run,
                remedy="give the folder that `ciwrap record -o` was given",
            )
        time.sleep(_LOOK_SECONDS)
        watched.look()


class _Screen:
    """Where it is shown: on a terminal each time in the place of the last."""

    def __init__(self, every_seconds: float | None) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._every = every_seconds
        if every_seconds is None and self._is_terminal:
            self._every = 1.0
        encoding = sys.stdout.encoding or "ascii"
        self._has_bars = encoding.lower().replace("-", "") in ("utf8", "utf16")
        self._shown_at = 0.0
        self._height = 0

    def show(self, watched: WatchedRun, *, has_ended: bool, is_last: bool = False) -> None:
        from ciwrap.online.watch_text import watch_lines

        is_due = self._every is not None and time.monotonic() - self._shown_at >= self._every
        if not is_last and not is_due:
            return
        self._shown_at = time.monotonic()
        lines = [*watch_lines(watched, has_ended=has_ended, has_bars=self._has_bars)]
        if self._is_terminal:
            lines = [line[: _columns() - 1] for line in lines]
            if self._height:
                sys.stdout.write(f"\x1b[{self._height}A\x1b[J")
            self._height = len(lines)
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


def _columns() -> int:
    from ciwrap.report.console import terminal_width

    return max(20, terminal_width())


def _code(watched: WatchedRun, *, has_ended: bool) -> int:
    found = watched.variables.values()
    if any(one.first_no_match is not None for one in found):
        return int(ExitCode.DIFFER)
    is_all = all(one.compared and not one.not_compared for one in found)
    # What a process that was killed would have recorded was not compared either.
    is_all = is_all and not watched.errors and not (has_ended and watched.closed < watched.ranks)
    return int(ExitCode.MATCH if found and is_all else ExitCode.NOT_COMPARABLE)
