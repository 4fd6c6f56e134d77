"""A process of its own for libraries that crash or hang on damaged files.

It gets questions through one pipe and answers through another. If it dies, or comes to no end, that
is an error which names the file that it was asked about.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
        patience = PATIENCE_SECONDS + _SECONDS_PER_MIB * (file_bytes >> 20)
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
                    "cannot be read: the library that reads it comes to no end",
                    file=path,
                    remedy="is it whole, and has the program finished writing it?",
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
