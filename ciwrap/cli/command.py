"""Running the configured command, and telling what it wrote from what lay there before."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING

from ciwrap.compare.check import outputs_of
from ciwrap.errors import NotComparableError
from ciwrap.model import CommandOutcome, Message, MessageLevel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.config import Check, CommandSettings

_TAIL_BYTES = 4000
_GRACE_SECONDS = 5.0
_DRAIN_SECONDS = 2.0
# File times come from a clock that ticks every few milliseconds; some file systems count 2 s.
_TICK_SECONDS = 0.02
_MOST_STALE = 5

_Stamp = tuple[int, int, int, int]


class Stamps:
    """What every output looked like before the command ran.

    A file counts as written again if its times, size or inode changed. Nothing is compared with
    this machine's clock, so a file server with another one does no harm.
    """

    def __init__(self, checks: Iterable[Check]) -> None:
        self._before: dict[Path, _Stamp] = {}
        youngest = 0.0
        for check in checks:
            for path in _files_of(check):
                status = path.stat()
                self._before[path] = _stamp(status)
                youngest = max(youngest, status.st_mtime, status.st_ctime)
        # A file written again within the same tick would look untouched.
        if abs(time.time() - youngest) < _TICK_SECONDS:
            time.sleep(_TICK_SECONDS)

    def stale_messages(self, check: Check) -> tuple[Message, ...]:
        """An error for each output of a check that was there before and has not been written
        since.
        """
        stale = [path for path in _files_of(check) if self._before.get(path) == _stamp(path.stat())]
        messages = [
            Message(
                MessageLevel.ERROR,
                f"{path}: was not written by this run, it is left from an earlier one;"
                " let the command write it, or leave it out with 'exclude'",
                slug="not-comparable",
                file=str(path),
            )
            for path in stale[:_MOST_STALE]
        ]
        if len(stale) > _MOST_STALE:
            messages.append(
                Message(MessageLevel.ERROR, f"... and {len(stale) - _MOST_STALE} more files")
            )
        return tuple(messages)


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _files_of(check: Check) -> list[Path]:
    """A check's files as far as they are there; what is missing is told of when it is checked."""
    try:
        files = [file.path for file in outputs_of(check).files]
    except NotComparableError:
        return []
    return [path for path in files if path.exists()]


def run_command(settings: CommandSettings) -> CommandOutcome:
    """Runs a command to its end or its time limit, its output going to stderr as it comes.

    On Ctrl-C the command and its children are ended, too. Raises KeyboardInterrupt then, and
    nothing else: a command that cannot be started has the exit code None and says why in its
    output_tail.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            settings.words if isinstance(settings.words, str) else list(settings.words),
            shell=isinstance(settings.words, str),
            cwd=settings.working_dir,
            env={**os.environ, **settings.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return CommandOutcome(
            settings.text,
            str(settings.working_dir),
            None,
            time.monotonic() - started,
            output_tail=error.strerror or str(error),
        )
    assert process.stdout is not None
    tail = bytearray()
    reader = threading.Thread(target=_pass_on, args=(process.stdout, tail), daemon=True)
    reader.start()
    timed_out = False
    try:
        process.wait(settings.timeout_seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
        _end(process)
    except BaseException:
        _end(process)
        raise
    # A grandchild left running may hold the pipe open for ever.
    reader.join(_DRAIN_SECONDS)
    return CommandOutcome(
        settings.text,
        str(settings.working_dir),
        None if timed_out else process.returncode,
        time.monotonic() - started,
        timed_out=timed_out,
        output_tail=bytes(tail).decode("utf-8", "replace"),
    )


def _pass_on(stream: IO[bytes], tail: bytearray) -> None:
    descriptor = stream.fileno()
    while chunk := os.read(descriptor, 1 << 16):
        tail += chunk
        del tail[:-_TAIL_BYTES]
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command with its whole process group: asks first, then does not ask."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
            return
