"""How a process that reads files is started: as a copy of this one, or anew.

A copy costs nothing and knows everything. macOS makes copies, but its libraries (Accelerate, Core
Foundation) crash in a copy of a process that has threads; so it is started anew there, and is told
by pickles what it is to do.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import pickle
import signal
import struct
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import do_as_told; do_as_told()"
    )
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


def do_as_told() -> None:
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
