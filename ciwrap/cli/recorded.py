"""What a program has recorded, as `ciwrap record` tells it; and why it is not there, if not. It is
read from a folder that one call has to itself.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.errors import NotComparableError, OutputMissingError, WriteFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ciwrap.captures.recording import RecordedCapture
    from ciwrap.errors import CiwrapError
    from ciwrap.model import CheckResult, CommandOutcome, Message, VariableId

_SO = "and recorded nothing"


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else records into the folder meanwhile: what is told of a run in the end is read from
    there. Raises LockBusyError, WriteFailedError.
    """
    from ciwrap.golden.lock import writer_lock

    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=folder) from error
    try:
        with writer_lock(folder, 0, doing="recording", is_needed=False):
            yield
    finally:
        if not was_there:
            with contextlib.suppress(OSError):
                folder.rmdir()  # if nothing came of it


def opened(folder: Path, outcome: CommandOutcome) -> RecordedCapture:
    """The run, to be closed. Raises what went wrong with a command that left none, and the errors
    of reading.
    """
    from ciwrap.captures.recording import RecordedCapture
    from ciwrap.running.run_command import failure_of

    try:
        return RecordedCapture(folder)
    except OutputMissingError as error:
        if outcome.exit_code == 0:
            raise
        raise failure_of(outcome, so=_SO) from error


def refuse_nothing(
    capture: RecordedCapture, folder: Path, views: Iterable[str], outcome: CommandOutcome
) -> None:
    """Raises an error if no array was recorded, or none of a label that was asked for."""
    from ciwrap.captures.index_codec import read_checkpoint, read_index
    from ciwrap.config import name_matches

    names = {
        one.identity
        for directory in read_index(capture).checkpoints.values()
        for one in read_checkpoint(capture, directory).variables
    }
    fault = None if names else _why_nothing(capture, folder, outcome)
    if fault is not None:
        raise fault
    for text in views:
        label = text.partition("=")[0]
        if not any(name_matches(label, name) for name in names):
            raise NotComparableError(
                f"no View was recorded whose label is {label!r}",
                file=folder,
                remedy="see which labels the program gives, and that --step is one of its regions"
                " or kernels",
            )
    if not names:
        raise NotComparableError(
            "holds no array: none was recorded",
            file=folder,
            remedy="add arrays before the first checkpoint (docs/how-to/record-a-program.md)",
        )


def _why_nothing(
    capture: RecordedCapture, folder: Path, outcome: CommandOutcome
) -> CiwrapError | None:
    """What kept a program from recording anything, if something did."""
    from ciwrap.running.run_command import failure_of

    if outcome.exit_code != 0:
        return failure_of(outcome, so=_SO)
    if capture.faults:
        return capture.faults[0]
    return not_ended(folder) if capture.open_journals else None


def recorded_text(capture: RecordedCapture, folder: Path) -> str:
    from ciwrap.captures.index_codec import read_index
    from ciwrap.report.text import bytes_text, seconds_text

    keys = read_index(capture).checkpoints
    ranks = len({rank for _, rank in keys})
    iterations = len({iteration for iteration, _ in keys})
    text = (
        f"recorded {iterations} {'iteration' if iterations == 1 else 'iterations'}"
        f" of {ranks} {'process' if ranks == 1 else 'processes'} in {folder}"
    )
    if not capture.costs:
        return text
    slowest = max(capture.costs, key=lambda one: one.seconds)
    held = max(one.held_bytes for one in capture.costs)
    return (
        f"{text}; that took up to {seconds_text(max(slowest.seconds, 1e-3))} of a process's time"
        f" ({bytes_text(slowest.data_bytes)} hashed) and up to {bytes_text(held)} of its memory"
    )


def not_ended(folder: Path) -> NotComparableError:
    return NotComparableError(
        "not all was recorded: a process was killed, or could not write to the end",
        file=folder,
        remedy="see what the program said on stderr",
    )


def first_words(result: CheckResult, first: VariableId | None) -> Iterator[Message]:
    """What first did not match, in the order in which points were recorded, and which element."""
    from ciwrap.model import Message, MessageLevel
    from ciwrap.report.digest_words import moved_words

    if first is None:
        return
    found = next((one for one in result.variables if one.id == first), None)
    moved = None if found is None else next(iter(found.moved_elements), None)
    where = "" if moved is None else f": {moved_words(moved)}"
    yield Message(MessageLevel.NOTE, f"the first that did not match while it ran: {first}{where}")
