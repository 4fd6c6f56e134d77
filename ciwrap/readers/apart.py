"""Sources in a process of their own, for libraries that crash or hang on damaged files.

A copy of this process opens the file, lists it and reads from it; what it reads comes back through
a pipe. If it dies, or comes to no end, that is an error which names the file, whichever part of the
file is damaged. Nothing that comes back is more than names and numbers.
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
import warnings
import weakref
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.closing import closed_on_error
from ciwrap.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    all_errors,
    one_line,
)
from ciwrap.late import numpy as np
from ciwrap.readers.base import Source, VariableInfo
from ciwrap.readers.entries import EntrySource, guarded
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

# Far beyond what it takes to answer one question about a file of that size.
CPU_SECONDS = 5.0
_CPU_SECONDS_PER_MIB = 1.0
# All its threads sleep, and nothing is read: it waits for what will not come.
IDLE_SECONDS = 5.0
_TICK_MS = 100
_ENDING_SECONDS = 1.0
_PIPE_BYTES = 1 << 20
_MOST_LISTED_BYTES = 1 << 30
_HEAD = struct.Struct("<cQ")
_LISTING, _DATA, _ERROR, _BUG = b"L", b"D", b"E", b"B"
_open: weakref.WeakSet[SourceApart] = weakref.WeakSet()


def bytes_below(*paths: Path) -> int:
    """What the files, and those in the folders, hold, as far as they can be asked."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            if path.is_dir():
                total += bytes_below(*path.iterdir())
            else:
                total += path.stat().st_size
    return total


class SourceApart(Source):
    """What `open_source` opens, in a process of its own. byte_count: of the file and all that
    belongs to it; a larger file may take longer. Raises what `open_source` raises, and
    CorruptFileError where that process dies or comes to no end.
    """

    def __init__(self, path: Path, open_source: Callable[[], Source], byte_count: int) -> None:
        self.path = path
        self._fault: CiwrapError | None = None
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        with warnings.catch_warnings():
            # The child only reads one file; it needs none of the threads that a fork leaves behind.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            inherited = [one._ask for one in _open] + [one._answers for one in _open]
            _be_the_child(open_source, asked, answer, [*inherited, self._ask, self._answers])
        os.close(asked)
        os.close(answer)
        self._end = weakref.finalize(self, _end, os.getpid(), child, self._ask, self._answers)
        self._patience = _Patience(child, CPU_SECONDS + _CPU_SECONDS_PER_MIB * (byte_count >> 20))
        self._child = child
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        _open.add(self)
        with closed_on_error(self.close):
            with contextlib.suppress(OSError):  # an unprivileged user may have no more room
                fcntl.fcntl(self._answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            listing = self._answer(_LISTING, None)
            with guarded(path):
                self.variables = tuple(_info(one) for one in json.loads(bytes(listing)))

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        dtype = storage_dtype(info.dtype)
        if count == 0:
            return np.empty(0, dtype=dtype)
        if self._fault is not None:
            raise self._fault
        request = json.dumps([name, first_element, count]).encode() + b"\n"
        # A child that has died is told by its answer, which does not come.
        with contextlib.suppress(BrokenPipeError):
            view = memoryview(request)
            while view:
                view = view[os.write(self._ask, view) :]
        return np.frombuffer(self._answer(_DATA, count * dtype.itemsize), dtype=dtype)

    def close(self) -> None:
        _open.discard(self)
        self._end()

    def _answer(self, wanted: bytes, byte_count: int | None) -> bytearray:
        """The answer to the question that was asked last, or the error that it is."""
        self._patience.begin()
        try:
            kind, length = _HEAD.unpack(self._receive(_HEAD.size))
            expected = byte_count if kind == _DATA else None
            if length > _MOST_LISTED_BYTES if expected is None else length != expected:
                raise CorruptFileError(f"gave {length} bytes, not {byte_count}", file=self.path)
            data = self._receive(length)
        except CiwrapError as error:
            self._fault = error
            raise
        if kind == _ERROR:
            with guarded(self.path):
                raise _error(json.loads(bytes(data)))
        if kind != wanted:
            raise RuntimeError(f"in the process that reads {self.path}: {data.decode()}")
        return data

    def _receive(self, byte_count: int) -> bytearray:
        data = bytearray(byte_count)
        view = memoryview(data)
        while view:
            if not self._poll.poll(_TICK_MS):
                self._lose_patience()
                continue
            received = os.readv(self._answers, [view])
            if received == 0:
                code = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
                raise _crash_error(self.path, code)
            self._patience.begin()
            view = view[received:]
        return data

    def _lose_patience(self) -> None:
        """Ends a child that gets nowhere, and raises."""
        why = self._patience.why_over()
        if why is not None:
            os.kill(self._child, signal.SIGKILL)
            raise (
                _endless_error(self.path)
                if why == "cpu"
                else CorruptFileError(
                    "is damaged: the library that reads it waits for data that do not come",
                    file=self.path,
                    remedy="is it whole, and has the program finished writing it?",
                )
            )


_seen: set[tuple[str, int, int, int]] = set()


def look_first(path: Path, open_source: Callable[[], Source]) -> None:
    """Opens a file and reads an element of each variable, in a process of its own.

    For libraries that crash on few files, and whose data would take long to come through a pipe:
    what they open there without dying is then opened here. A file that has not changed is not
    looked at twice. Raises as `SourceApart`.
    """
    try:
        status = path.stat()
    except OSError:
        return  # opening it will say why
    key = (str(path.resolve()), status.st_ino, status.st_size, status.st_mtime_ns)
    if key not in _seen:
        SourceApart(path, lambda: _looked_at(path, open_source), status.st_size).close()
        _seen.add(key)


def _looked_at(path: Path, open_source: Callable[[], Source]) -> Source:
    with open_source() as source:
        for info in source.variables:
            if info.fault is None and info.element_count:
                # What cannot be read is told when it is compared.
                with contextlib.suppress(CiwrapError):
                    source.read(info.name, 0, 1)
                    source.read(info.name, info.element_count - 1, 1)
    return EntrySource(path, ())


def _endless_error(path: Path) -> CorruptFileError:
    return CorruptFileError(
        "is damaged: the library that reads it comes to no end", file=path, remedy="write it again"
    )


def _crash_error(path: Path, code: int) -> CorruptFileError:
    """code: minus the signal that ended the process, or how it ended."""
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return CorruptFileError(
        f"is damaged: the library that reads it crashes ({how})", file=path, remedy="write it again"
    )


# --- the child ------------------------------------------------------------------------------------


def _be_the_child(
    open_source: Callable[[], Source], asked: int, answer: int, inherited: list[int]
) -> None:
    """Answers until there are no more questions. inherited: what belongs to the parent alone."""
    try:
        _be_quiet()
        for number in inherited:
            with contextlib.suppress(OSError):
                os.close(number)
        with os.fdopen(answer, "wb") as out, os.fdopen(asked, "rb") as questions:
            _serve(open_source, questions, out)
    finally:
        os._exit(0)


def _be_quiet() -> None:
    """No traceback of a crash, nothing on the terminal."""
    for number in (
        *(signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGTERM),
        *(signal.SIGXCPU, signal.SIGALRM),
    ):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends the child
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)


def _serve(open_source: Callable[[], Source], questions: IO[bytes], out: IO[bytes]) -> None:
    def tell(kind: bytes, data: bytes) -> None:
        out.write(_HEAD.pack(kind, len(data)))
        out.write(data)
        out.flush()

    @contextlib.contextmanager
    def telling_errors() -> Iterator[None]:
        try:
            yield
        except CiwrapError as error:
            tell(_ERROR, json.dumps(_as_fields(error)).encode())
        except BrokenPipeError:
            raise
        # Raised again in the parent, where somebody sees it.
        except Exception as error:
            tell(_BUG, one_line(f"{type(error).__name__}: {error}").encode())

    held: list[Source] = []
    with telling_errors():
        held.append(open_source())
        tell(_LISTING, json.dumps([_as_list(info) for info in held[0].variables]).encode())
    for line in questions:
        with telling_errors():
            name, first, count = json.loads(line)
            tell(_DATA, held[0].read(name, first, count).tobytes())


def _as_list(info: VariableInfo) -> list[Any]:
    place = [info.called, info.iteration, info.rank, info.fault]
    return [info.name, info.dtype, [int(length) for length in info.shape], *place, info.labels]


def _info(told: Any) -> VariableInfo:
    name, dtype, shape, called, iteration, rank, fault, pairs = told
    labels = tuple((str(key), str(text)) for key, text in pairs)
    return VariableInfo(
        name, dtype, tuple(shape), None, called, iteration, rank, fault, labels=labels
    )


def _as_fields(error: CiwrapError) -> dict[str, Any]:
    fields = {"slug": error.slug, "message": error.message, "file": error.file}
    fields["key" if isinstance(error, ConfigError) else "variable"] = (
        error.key if isinstance(error, ConfigError) else error.variable
    )
    return {**fields, "remedy": error.remedy}


def _error(fields: dict[str, Any]) -> CiwrapError:
    kind = all_errors().get(fields.pop("slug"), CorruptFileError)
    return kind(fields.pop("message"), **fields)


# --- the parent -----------------------------------------------------------------------------------


def _end(parent: int, child: int, *pipes: int) -> None:
    """Ends the child; harmless if it has ended. In a copy of the parent it is left alone."""
    if os.getpid() != parent:
        return
    for number in pipes:
        os.close(number)
    deadline = time.monotonic() + _ENDING_SECONDS
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
        self._since = 0.0

    def begin(self) -> None:
        self._since = time.monotonic()
        self._spent = self._last = None

    def why_over(self) -> str | None:
        """ "cpu" or "idle" if it has been long enough."""
        now, vitals = time.monotonic(), _vitals(self._child)
        if vitals is None:
            return "cpu" if now - self._since > self._limit else None
        if self._spent is None:
            self._spent = vitals.cpu_seconds
        if vitals != self._last or not vitals.is_asleep:
            self._last, self._since = vitals, now
        elif now - self._since > IDLE_SECONDS:
            return "idle"
        return "cpu" if vitals.cpu_seconds - self._spent > self._limit else None
