"""A process of its own for libraries that crash or hang on damaged files.

It gets questions through one pipe and answers through another. If it dies, or comes to no end, that
is an error which names the file that it was asked about.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import struct
import time
import weakref
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ciwrap.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    all_errors,
    one_line,
)
from ciwrap.readers.child_start import can_copy, start_anew, start_copy
from ciwrap.readers.entries import guarded
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Far beyond what it takes to answer one question about a file of that size.
CPU_SECONDS = 5.0
# Where the system does not say what a process does: it may wait for the disk, or load libraries.
UNKNOWN_SECONDS = 60.0
_CPU_SECONDS_PER_MIB = 1.0
# All its threads sleep, and nothing is read: it waits for what will not come.
IDLE_SECONDS = 5.0
ENDING_SECONDS = 1.0
_TICK_MS = 100
_PIPE_BYTES = 1 << 20
_MOST_LISTED_BYTES = 1 << 30
# By why nobody waits any longer.
_ENDLESS = {
    "cpu": "is damaged: the library that reads it comes to no end",
    "idle": "is damaged: the library that reads it waits for data that do not come",
    "unknown": "cannot be read: the library that reads it gives no answer",
}
_REMEDIES = {
    "cpu": "write it again",
    "idle": "is it whole, and has the program finished writing it?",
    "unknown": "is it whole, and on a disk that answers?",
}
_HEAD = struct.Struct("<cQ")
LISTING, DATA, ERROR, BUG = b"L", b"D", b"E", b"B"
_open: weakref.WeakSet[Child] = weakref.WeakSet()


class Child:
    """A process that runs `serve`, until it is closed or forgotten.

    `serve` is given the questions and a `Teller`; what it holds open is closed with the process. It
    has to be known to pickle where processes are not copied (`can_copy`).
    """

    def __init__(self, serve: Callable[[IO[bytes], Teller], None]) -> None:
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        work, first = partial(_serve, serve), b""
        if can_copy():
            inherited = [one._ask for one in _open] + [one._answers for one in _open]
            inherited += [self._ask, self._answers]
            process = start_copy(work, asked, answer, inherited)
        else:
            process, first = start_anew(work, asked, answer)
        os.close(asked)
        os.close(answer)
        self._end = weakref.finalize(self, _end, os.getpid(), process, self._ask, self._answers)
        self._process = process
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        _open.add(self)
        if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
            with contextlib.suppress(OSError):  # an unprivileged user may have no more room
                fcntl.fcntl(self._answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self.ask(first)

    def ask(self, question: bytes) -> None:
        # A child that has died is told by its answer, which does not come.
        with contextlib.suppress(BrokenPipeError):
            view = memoryview(question)
            while view:
                view = view[os.write(self._ask, view) :]

    def answer(self, path: Path, file_bytes: int, data_bytes: int) -> tuple[bytes, bytearray]:
        """What it says, and whether that is DATA, LISTING, ERROR or BUG.

        path, file_bytes: what it was asked about; a larger file may take longer. data_bytes: how
        many DATA has. Raises CorruptFileError if it dies, gives another number, or comes to no end.
        """
        patience = _Patience(self._process, CPU_SECONDS + _CPU_SECONDS_PER_MIB * (file_bytes >> 20))
        kind, length = _HEAD.unpack(self._receive(_HEAD.size, path, patience))
        if length != data_bytes if kind == DATA else length > _MOST_LISTED_BYTES:
            raise CorruptFileError(f"gave {length} bytes, not {data_bytes}", file=path)
        return kind, self._receive(length, path, patience)

    def close(self) -> None:
        _open.discard(self)
        self._end()

    def _receive(self, byte_count: int, path: Path, patience: _Patience) -> bytearray:
        data = bytearray(byte_count)
        view = memoryview(data)
        while view:
            if not self._poll.poll(_TICK_MS):
                self._lose_patience(path, patience)
                continue
            received = os.readv(self._answers, [view])
            if received == 0:
                code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
                raise _crash_error(path, code)
            patience.begin()
            view = view[received:]
        return data

    def _lose_patience(self, path: Path, patience: _Patience) -> None:
        """Ends a child that gets nowhere, and raises."""
        why = patience.why_over()
        if why is not None:
            os.kill(self._process, signal.SIGKILL)
            raise CorruptFileError(_ENDLESS[why], file=path, remedy=_REMEDIES[why])


def _crash_error(path: Path, code: int) -> CorruptFileError:
    """code: minus the signal that ended the process, or how it ended."""
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return CorruptFileError(
        f"is damaged: the library that reads it crashes ({how})", file=path, remedy="write it again"
    )


# --- the child ------------------------------------------------------------------------------------


def _serve(serve: Callable[[IO[bytes], Teller], None], asked: int, answer: int) -> None:
    """Answers until there are no more questions."""
    with os.fdopen(answer, "wb") as out, os.fdopen(asked, "rb") as questions:
        serve(questions, Teller(out))


class Teller:
    """Writes answers."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def fileno(self) -> int:
        return self._out.fileno()

    def tell(self, kind: bytes, data: bytes) -> None:
        self._out.write(_HEAD.pack(kind, len(data)))
        self._out.write(data)
        self._out.flush()

    @contextlib.contextmanager
    def telling_errors(self) -> Iterator[None]:
        """Tells errors instead of raising them."""
        try:
            yield
        except CiwrapError as error:
            self.tell(ERROR, json.dumps(_as_fields(error)).encode())
        except BrokenPipeError:
            raise
        # Raised again in the parent, where somebody sees it.
        except Exception as error:
            self.tell(BUG, one_line(f"{type(error).__name__}: {error}").encode())


def _as_fields(error: CiwrapError) -> dict[str, Any]:
    fields = {"slug": error.slug, "message": error.message, "file": error.file}
    fields["key" if isinstance(error, ConfigError) else "variable"] = (
        error.key if isinstance(error, ConfigError) else error.variable
    )
    return {**fields, "remedy": error.remedy}


# --- the parent -----------------------------------------------------------------------------------


def check_told(path: Path, kind: bytes, data: bytearray, wanted: bytes) -> None:
    """Raises the error that an answer is, if it is not what was wanted."""
    if kind == ERROR:
        with guarded(path):
            raise _error(json.loads(bytes(data)))
    if kind != wanted:
        raise RuntimeError(f"in the process that reads {path}: {data.decode()}")


def _error(fields: dict[str, Any]) -> CiwrapError:
    kind = all_errors().get(fields.pop("slug"), CorruptFileError)
    return kind(fields.pop("message"), **fields)


def _end(parent: int, child: int, *pipes: int) -> None:
    """Ends the child; harmless if it has ended. In a copy of the parent it is left alone."""
    if os.getpid() != parent:
        return
    for number in pipes:
        os.close(number)
    deadline = time.monotonic() + ENDING_SECONDS
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return
            time.sleep(0.001)


class _Vitals(Struct, frozen=True):
    """What a process does. cpu_seconds and read_bytes: since it began."""

    cpu_seconds: float
    read_bytes: int
    is_asleep: bool


def _vitals(process: int) -> _Vitals | None:
    """None where the system does not tell."""
    here = Path("/proc") / str(process)
    try:
        fields = _stat(here)
        states = [_stat(task)[0] for task in (here / "task").iterdir()]
    except (OSError, IndexError):
        return None
    read_bytes = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        read_bytes = int((here / "io").read_text().split()[1])
    ticks = int(fields[11]) + int(fields[12])
    return _Vitals(ticks / os.sysconf("SC_CLK_TCK"), read_bytes, set(states) <= {"S"})


def _stat(folder: Path) -> list[str]:
    """From the state on; what comes before may hold anything."""
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()


class _Patience:
    """How long the parent waits for an answer: as long as the child gets on with it, up to so much
    processor time; not while it sleeps and reads nothing.
    """

    def __init__(self, child: int, cpu_seconds: float) -> None:
        self._child = child
        self._limit = cpu_seconds
        self._spent: float | None = None
        self._last: _Vitals | None = None
        self._since = time.monotonic()

    def begin(self) -> None:
        self._since = time.monotonic()
        self._spent = self._last = None

    def why_over(self) -> str | None:
        """ "cpu", "idle" or "unknown" if it has been long enough."""
        now, vitals = time.monotonic(), _vitals(self._child)
        if vitals is None:
            return "unknown" if now - self._since > UNKNOWN_SECONDS + self._limit else None
        if self._spent is None:
            self._spent = vitals.cpu_seconds
        if vitals != self._last or not vitals.is_asleep:
            self._last, self._since = vitals, now
        elif now - self._since > IDLE_SECONDS:
            return "idle"
        return "cpu" if vitals.cpu_seconds - self._spent > self._limit else None
