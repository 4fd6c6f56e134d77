"""What `ciwrap compare` does with two folders: captures, memory, lists of differences."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.cli.rules import RuleOptions
    from ciwrap.compare.histories import Spread
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import CheckResult
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import FoundOutputs
    from ciwrap.trees.build import Resources

_F = TypeVar("_F", bound="Callable[..., Any]")
_SMALLEST_MEMORY_BYTES = 1 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _memory(ctx: click.Context, param: click.Parameter, value: str) -> int:
    match = re.fullmatch(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", value.strip().lower())
    if match is None:
        raise click.BadParameter("write it as 256M or 1G", ctx, param)
    count = int(match[1]) * _UNITS[match[2]]
    if count < _SMALLEST_MEMORY_BYTES:
        raise click.BadParameter("at least 1M is needed", ctx, param)
    return count


def history_options(function: _F) -> _F:
    for decorate in (
        click.option(
            "--memory",
            "memory_bytes",
            default="256M",
            show_default=True,
            callback=_memory,
            metavar="SIZE",
            help="For the buffers that data are read into (folders).",
        ),
        click.option(
            "--list",
            "list_path",
            metavar="FILE",
            type=click.Path(dir_okay=False),
            help="Write every differing element to FILE.csv or FILE.parquet (folders).",
        ),
        click.option(
            "--verify-checksums",
            is_flag=True,
            help="Trust no file times: look whether the files still are what was captured.",
        ),
        click.option(
            "--no-captures", is_flag=True, help="Read all data, whatever captures there are."
        ),
        click.option(
            "--mpi-silence",
            type=click.FloatRange(1),
            default=30.0,
            show_default=True,
            metavar="SECONDS",
            help="Give up an MPI process that has not been heard of for so long.",
        ),
        click.option(
            "--mpi-launch",
            metavar="COMMAND",
            help="Start the MPI job with this ('mpiexec -n 4'); whatever becomes of it, what it"
            " has found is told.",
        ),
        click.option(
            "--mpi",
            is_flag=True,
            help="Deal the checkpoints out to the processes that mpiexec started (folders).",
        ),
        click.option(
            "--common",
            is_flag=True,
            help="Leave out the iterations that only the longer run reaches.",
        ),
        click.option(
            "--offset",
            type=int,
            default=0,
            metavar="N",
            help="Compare iteration i of A with i + N of B.",
        ),
        click.option("--capture-b", type=click.Path(), help="The capture of folder B."),
        click.option(
            "--capture-a",
            type=click.Path(),
            help="The capture of folder A; default: .ciwrap.tree inside, or A.tree beside.",
        ),
    ):
        function = decorate(function)
    return function


def refuse_without_folders(history: Mapping[str, Any]) -> None:
    """Raises UsageError for options that single files have no use for."""
    for name in (
        "capture_a",
        "capture_b",
        "no_captures",
        "verify_checksums",
        "list_path",
        "mpi",
        "mpi_launch",
    ):
        if history[name]:
            option = "--" + name.removesuffix("_path").replace("_", "-")
            raise UsageError(f"{option} is for folders", remedy="give two folders")


def refuse_with_fingerprints(history: Mapping[str, Any], prints: Sequence[Path | None]) -> None:
    """Raises UsageError for options that captures without data have no use for."""
    if not any(prints):
        return
    refused = ["no_captures", "list_path", "offset"]
    refused += ["capture_a"] if prints[0] else []
    refused += ["capture_b"] if prints[1] else []
    refused += ["verify_checksums"] if all(prints) else []
    for name in refused:
        if history[name]:
            option = "--" + name.removesuffix("_path").replace("_", "-")
            one = next(path for path in prints if path is not None)
            raise UsageError(
                f"{option}, but {one} is a capture without the run's data",
                remedy=f"compare without {option}, or where the data are",
            )


def with_layout_of(chosen: RuleOptions, prints: Sequence[Path | None]) -> RuleOptions:
    """The options with the layout that a fingerprint was captured with, unless one is given: a run
    with data is read in the same way. Raises the errors of `CaptureFile`.
    """
    if chosen.layout is not None or chosen.check is not None:
        return chosen
    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.index_codec import read_index

    for path in prints:
        if path is not None:
            with CaptureFile(path) as capture:
                chosen = replace(chosen, layout=read_index(capture).header.layout)
    return chosen


def refuse_captures(history: Mapping[str, Any], why: str) -> None:
    """Raises UsageError if a capture is to be used where it cannot be, for its trees are of the
    files as they are.
    """
    for name in ("capture_a", "capture_b", "verify_checksums"):
        if history[name]:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"{why}, which captures know nothing of",
                remedy=f"compare without {option}",
            )


@dataclass(frozen=True, slots=True)
class Ending:
    """What is left to do once the result is out. exit: ends the process where MPI could not end by
    itself, since a process of it is lost.
    """

    result: CheckResult | None  # None: another process tells it
    exit: Callable[[int], None] | None = None


def compare_sides(
    paths: tuple[Path, Path],
    found: tuple[FoundOutputs | Path, FoundOutputs | Path],
    rules: Rules,
    history: Mapping[str, Any],
    *,
    arguments: Sequence[str],
    has_documents: bool,
    resources: Resources,
    progress: Progress,
) -> Ending:
    """Compares two folders, or two files: each is a run of one checkpoint, without a capture.

    found: what each of them holds, or the capture that is all that there is of it.
    arguments: of this call, for the processes that --mpi-launch starts. has_documents: whether a
    document or a report will be made of the result; the terminal shows no samples and maps.
    """
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.histories import compare_histories
    from ciwrap.compare.outcome import HistoryOptions

    options = HistoryOptions(history["memory_bytes"], is_common=history["common"])
    # A process of an MPI job cannot know what the one that launched it will write.
    if not has_documents and not history["mpi"]:
        options = replace(options, detail_bytes=0)
    if rules.arrangement is not None:
        refuse_captures(history, "rows are aligned, or copies chosen")
    if history["offset"]:
        refuse_captures(history, "iterations are counted otherwise")
    comm = None
    if history["mpi"]:
        from ciwrap.compare.mpi import world

        comm = world()
    with contextlib.ExitStack() as stack:
        sides = []
        for path, one, option in zip(paths, found, ("capture_a", "capture_b"), strict=True):
            side = _opened(path, one, history[option], history)
            stack.callback(side.close)
            sides.append(side)
        if history["verify_checksums"] and not any(side.capture for side in sides):
            raise UsageError(
                "--verify-checksums, but neither run has a capture",
                remedy="leave it out: all data are read anyway",
            )
        differences = None
        if history["list_path"] is not None:
            target = Path(history["list_path"])
            if comm is not None:
                target = target.with_name(f"{target.stem}.{comm.Get_rank()}{target.suffix}")
            differences = stack.enter_context(DifferenceList(target))
        spread = None if comm is None else _Spread(comm, history["mpi_silence"])
        launched = history["mpi_launch"] is not None and comm is None
        try:
            result = compare_histories(
                f"{paths[0]} : {paths[1]}",
                sides[0],
                sides[1],
                rules,
                options,
                golden_path=str(paths[0]),
                source_path=str(paths[1]),
                resources=resources,
                progress=progress,
                differences=differences,
                spread=_launched(history["mpi_launch"], arguments) if launched else spread,
            )
        except _Served:
            return Ending(None)
    return Ending(result, None if spread is None else spread.exit)


def _opened(
    path: Path, found: FoundOutputs | Path, capture: str | None, history: Mapping[str, Any]
) -> Side:
    from ciwrap.captures.fingerprints import open_fingerprint
    from ciwrap.captures.side import open_side

    if isinstance(found, Path):
        return open_fingerprint(path, found)
    return open_side(
        path,
        found,
        None if capture is None else Path(capture),
        use_capture=path.is_dir() and not (history["no_captures"] or history["offset"]),
        verify_checksums=history["verify_checksums"],
    )


def _launched(launcher: str, arguments: Sequence[str]) -> Spread:
    """Has an MPI job of its own do the work."""
    from ciwrap.compare.mpi import launch

    words = shlex.split(launcher)
    if not words:
        raise UsageError("--mpi-launch is empty", remedy="write --mpi-launch 'mpiexec -n 4'")
    kept = []
    skip = False
    for argument in arguments:
        name = argument.partition("=")[0]
        if not skip and name in ("--mpi-launch", "--json", "--report"):
            skip = "=" not in argument
            continue
        if not skip:
            kept.append(argument)
        skip = False
    return lambda keys, _: launch(words, [*kept, "--mpi"], keys)


class _Served(Exception):  # noqa: N818 - nothing went wrong: another process has the result
    pass


class _Spread:
    """Hands checkpoints to the processes of an MPI job. exit: None while none of them is lost."""

    def __init__(self, comm: Any, silence_seconds: float) -> None:
        self._comm = comm
        self._silence = silence_seconds
        self.exit: Callable[[int], None] | None = None

    def __call__(
        self, keys: Sequence[CheckpointKey], work: Callable[[CheckpointKey], Outcome]
    ) -> Outcome:
        from ciwrap.compare.mpi import JOURNAL_VARIABLE, Dealer, serve

        if self._comm.Get_rank() != 0:
            if not serve(self._comm, work, self._silence):
                print(
                    f"ciwrap: MPI rank 0 has not been heard of for {self._silence:g} s;"
                    f" rank {self._comm.Get_rank()} ends",
                    file=sys.stderr,
                )
                self._end(int(ExitCode.NOT_COMPARABLE))
            raise _Served
        dealer = Dealer(self._comm, keys, work, self._silence)
        try:
            with _told_to_end():
                outcome = dealer.run()
        except _TerminatedError:
            outcome = dealer.lose_the_rest("the MPI job was ended before its turn came")
        if dealer.has_lost_workers:
            self.exit = self._end
        if JOURNAL_VARIABLE in os.environ:
            if self.exit is not None:
                self._end(0)
            raise _Served
        outcome.by_mpi_rank = list(dealer.by_rank.values())
        return outcome

    def _end(self, code: int) -> None:
        """Without MPI's own end, which would wait for the lost process.

        Aborting ends that one, too, should it hang, and most mpiexecs then end with our exit code.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        if code:
            self._comm.Abort(code)
        os._exit(code)


class _TerminatedError(BaseException):
    pass


@contextlib.contextmanager
def _told_to_end() -> Iterator[None]:
    """SIGTERM, which mpiexec sends when another process has died, as an exception."""

    def end(number: int, frame: object) -> None:  # noqa: ARG001
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, before)
