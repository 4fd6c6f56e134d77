"""Runs readers in a process of their own, for libraries that crash or hang on damaged files.

The other process opens, lists and reads the file; names and numbers come back through a pipe. If it
dies or hangs, that is an error which names the file. It is a copy of this process, which costs
least; on macOS, where libraries crash in copies of processes with threads, it is started anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import warnings
import weakref
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from ciwrap.arrays.values import storage_dtype
from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError, all_errors, one_line
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import Listing
from ciwrap.formats.reader import IS_WHOLE, Source, VariableInfo, guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    # Takes the ends of two pipes, that of questions and that of answers.
    Work = Callable[[int, int], None]

_LENGTH = struct.Struct("<Q")
_FIRST_FREE = 3  # behind standard input, output and errors
_QUIET_SIGNALS = (
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGTERM),
    *(signal.SIGXCPU, signal.SIGALRM),
)


def can_copy() -> bool:
    """Whether a copy of this process, which may have threads, can be relied upon."""
    return sys.platform == "linux" and hasattr(os, "fork")


def start_copy(work: Work, asked: int, answer: int, inherited: Iterable[int]) -> int:
    """Starts a copy of this process that does the work and ends. Returns its number.

    inherited: descriptors that belong to the parent alone.
    """
    with warnings.catch_warnings():
        # The child only reads files; it needs none of the threads that a fork leaves behind.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        try:
            # A collection would write to all that is still shared with the parent, and copy it.
            gc.freeze()
            _be_quiet()
            for number in inherited:
                with contextlib.suppress(OSError):
                    os.close(number)
            work(asked, answer)
        finally:
            os._exit(0)
    return process


def start_anew(work: Work, asked: int, answer: int) -> tuple[int, bytes]:
    """Starts another Python that does the work, once it is told so. Returns its number, and what to
    write before all questions. work: what pickle knows by the names of modules.
    """
    told = pickle.dumps(work)
    # Isolated: no module that lies in the working folder takes the place of another.
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve_work as f; f()"
    ends = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for one in (asked, answer)]
    try:
        process = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-c", program],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)],
        )
    finally:
        for end in ends:
            os.close(end)
    return process, _LENGTH.pack(len(told)) + told


def serve_work() -> None:
    """What the other Python does. Its pipes are standard input and output."""
    try:
        # What a library prints, or asks for, must not come between questions and answers.
        asked, answer = (fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for one in (0, 1))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _be_quiet()
        head = _read(asked, _LENGTH.size)
        if len(head) == _LENGTH.size:
            pickle.loads(_read(asked, _LENGTH.unpack(head)[0]))(asked, answer)
    finally:
        os._exit(0)


def _read(descriptor: int, byte_count: int) -> bytes:
    """So many bytes, or fewer where the parent has ended."""
    data = bytearray()
    while len(data) < byte_count and (more := os.read(descriptor, byte_count - len(data))):
        data += more
    return bytes(data)


def _be_quiet() -> None:
    """No traceback of a crash, nothing on the terminal."""
    for number in _QUIET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends the child
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)


# Far beyond what it takes to answer one question about a file, and for each MiB of it.
PATIENCE_SECONDS = 30.0
_SECONDS_PER_MIB = 1.0
# What a small file may take in memory: other files may belong to it. And what each of its bytes may
# become: zlib packs a thousandfold, bytes become doubles, and there is a copy of these.
_LEAST_MEMORY = 1 << 30
_MEMORY_PER_BYTE = 20_000
ENDING_SECONDS = 1.0
_PIPE_BYTES = 1 << 20
_MOST_LISTED_BYTES = 1 << 30
_HEAD = struct.Struct("<cQ")
LISTING, DATA, ERROR, BUG, AT_WORK = b"L", b"D", b"E", b"B", b"W"
_BETWEEN_SIGNS = 1.0
_open: weakref.WeakSet[Child] = weakref.WeakSet()


class Child:
    """A process that runs `serve`, until it is closed or forgotten.

    `serve` is given the questions and a `Teller`; what it holds open is closed with the process. It
    has to be known to pickle where processes are not copied (`can_copy`).
    """

    def __init__(self, serve: Callable[[IO[bytes], Teller], None]) -> None:
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        work, first = partial(_run_child, serve), b""
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
        # A child that has died is known by its answer, which does not come.
        with contextlib.suppress(BrokenPipeError):
            view = memoryview(question)
            while view:
                view = view[os.write(self._ask, view) :]

    def answer(self, path: Path, file_bytes: int, data_bytes: int) -> tuple[bytes, bytearray]:
        """What it says, and whether that is DATA, LISTING, ERROR or BUG.

        path, file_bytes: what it was asked about; a larger file may take longer. data_bytes: how
        many DATA has. Raises CorruptFileError if it dies, gives another number, or does nothing.
        """
        patience = PATIENCE_SECONDS + _SECONDS_PER_MIB * (file_bytes >> 20)
        kind = AT_WORK
        while kind == AT_WORK:  # however long it takes
            kind, length = _HEAD.unpack(self._receive(_HEAD.size, path, patience))
        if length != data_bytes if kind == DATA else length > _MOST_LISTED_BYTES:
            raise CorruptFileError(f"gave {length} bytes, not {data_bytes}", file=path)
        return kind, self._receive(length, path, patience)

    def close(self) -> None:
        _open.discard(self)
        self._end()

    def _receive(self, byte_count: int, path: Path, patience: float) -> bytearray:
        """patience: for how many seconds nothing may come."""
        data = bytearray(byte_count)
        view = memoryview(data)
        while view:
            if not self._poll.poll(int(patience * 1000)):
                os.kill(self._process, signal.SIGKILL)
                raise CorruptFileError(
                    "cannot be read: the library that reads it has made no progress for"
                    f" {patience:.0f} seconds",
                    file=path,
                    remedy=IS_WHOLE,
                )
            received = os.readv(self._answers, [view])
            if received == 0:
                code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
                raise _crash_error(path, code)
            view = view[received:]
        return data


def _crash_error(path: Path, code: int) -> CorruptFileError:
    """code: minus the signal that ended the process, or how it ended."""
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return CorruptFileError(
        f"is damaged: the library that reads it crashes ({how})", file=path, remedy="write it again"
    )


# --- the child ------------------------------------------------------------------------------------


def _run_child(serve: Callable[[IO[bytes], Teller], None], asked: int, answer: int) -> None:
    """Answers until there are no more questions."""
    with os.fdopen(answer, "wb") as out, os.fdopen(asked, "rb") as questions:
        serve(questions, Teller(out))


class Teller:
    """Writes answers."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._last = time.monotonic()

    def still_at_work(self) -> None:
        """Tells that there is progress, so that slow is not taken for stuck."""
        now = time.monotonic()
        if now - self._last > _BETWEEN_SIGNS:
            self._last = now
            self.tell(AT_WORK, b"")

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
    where = "key" if isinstance(error, ConfigError) else "variable"
    names = ("slug", "message", "file", where, "remedy")
    return {name: getattr(error, name) for name in names}


def limit_memory(path: Path) -> None:
    """Lets this process take no more memory than a file of that size can need: making room for what
    a damaged file claims takes long, and may take all there is. For processes that do nothing else.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):  # only Linux tells
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    file_bytes = path.stat().st_size
    wanted = pages * resource.getpagesize() + _LEAST_MEMORY + file_bytes * _MEMORY_PER_BYTE
    limit = min(wanted, (1 << 63) - 1 if most == resource.RLIM_INFINITY else most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


# --- the parent -----------------------------------------------------------------------------------


def check_answer(path: Path, kind: bytes, data: bytearray, wanted: bytes) -> None:
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
    CorruptFileError where that process dies or makes no progress. `open_source` has to be known to
    pickle where processes are not copied.
    """

    def __init__(self, path: Path, open_source: Callable[[], Source], byte_count: int) -> None:
        self.path = path
        self._fault: CiwrapError | None = None
        self._byte_count = byte_count
        self._child = Child(partial(_serve_source, open_source))
        with closed_on_error(self.close):
            listing = self._answer(LISTING, 0)
            with guarded(path):
                self.variables, self.attributes_left_out = listed(listing)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        dtype = storage_dtype(info.dtype)
        if count == 0:
            return np.empty(0, dtype=dtype)
        if self._fault is not None:
            raise self._fault
        self._child.ask(json.dumps([name, first_element, count]).encode() + b"\n")
        return np.frombuffer(self._answer(DATA, count * dtype.itemsize), dtype=dtype)

    def close(self) -> None:
        self._child.close()

    def _answer(self, wanted: bytes, data_bytes: int) -> bytearray:
        """The answer to the question that was asked last, or the error that it is."""
        try:
            kind, data = self._child.answer(self.path, self._byte_count, data_bytes)
        except CiwrapError as error:
            self._fault = error
            raise
        check_answer(self.path, kind, data, wanted)
        return data


# --- the child ------------------------------------------------------------------------------------


def _serve_source(open_source: Callable[[], Source], questions: IO[bytes], teller: Teller) -> None:
    held: list[Source] = []
    Listing.on_progress = teller.still_at_work
    with teller.telling_errors():
        held.append(open_source())
        teller.tell(LISTING, listing_of(held[0]))
    for line in questions:
        with teller.telling_errors():
            name, first, count = json.loads(line)
            teller.tell(DATA, held[0].read(name, first, count).tobytes())


def listing_of(source: Source) -> bytes:
    """What a source says of its file, to be read by `listed`."""
    told = (source.variables, source.attributes_left_out)
    return json.dumps(msgspec.to_builtins(told, enc_hook=int)).encode()  # whole numbers of NumPy


def listed(listing: bytes | bytearray) -> tuple[tuple[VariableInfo, ...], int]:
    """The variables of a file, and how many attributes were left out of them."""
    return msgspec.convert(json.loads(bytes(listing)), tuple[tuple[VariableInfo, ...], int])
