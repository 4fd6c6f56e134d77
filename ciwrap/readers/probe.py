"""A first look at a file in a child process, for libraries that crash on damaged files.

HDF5 and others end the whole process on some damaged files. A comparison that dies says nothing of
which file it was; so a copy of the process looks first, and its death is told as an error.
"""

from __future__ import annotations

import os
import resource
import signal
import time
import warnings
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.readers.base import Source

# A child that turns in circles is ended; far beyond what it takes to list a file of that size.
_CPU_SECONDS = 5
_CPU_SECONDS_PER_MIB = 1
_WAITING_FACTOR = 6  # a child that waits for something, or a busy machine
_seen: set[tuple[str, int, int, int]] = set()


def look_first(path: Path, open_source: Callable[[], Source]) -> None:
    """Opens the source and reads an element of each variable, in a child process.

    Raises CorruptFileError if that process dies. What it finds otherwise, errors included, is left
    to the caller to find again. A file that has not changed is not looked at twice.
    """
    try:
        status = path.stat()
    except OSError:
        return  # opening it will say why
    key = (str(path.resolve()), status.st_ino, status.st_size, status.st_mtime_ns)
    if key in _seen:
        return
    with warnings.catch_warnings():
        # The child only reads one file; it needs none of the threads that a fork leaves behind.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        cpu_seconds = _CPU_SECONDS + _CPU_SECONDS_PER_MIB * (status.st_size >> 20)
        _be_the_child(open_source, cpu_seconds, cpu_seconds * _WAITING_FACTOR)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (-signal.SIGXCPU, -signal.SIGALRM):
        raise endless_error(path)
    if code < 0:
        raise crash_error(path, code)
    _seen.add(key)


def endless_error(path: Path) -> CorruptFileError:
    """Of a process that had to be ended."""
    return CorruptFileError(
        "is damaged: the library that reads it comes to no end", file=path, remedy="write it again"
    )


def crash_error(path: Path, code: int) -> CorruptFileError:
    """Of a process that ended by itself. code: minus the signal that ended it, or how it ended."""
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return CorruptFileError(
        f"is damaged: the library that reads it crashes ({how})", file=path, remedy="write it again"
    )


def be_quiet() -> None:
    """In a child: no traceback of a crash, nothing on the terminal."""
    for number in (
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGABRT,
        signal.SIGFPE,
        signal.SIGTERM,
        signal.SIGXCPU,
        signal.SIGALRM,
    ):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends the child
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)


def _be_the_child(open_source: Callable[[], Source], cpu_seconds: int, wait_seconds: int) -> None:
    try:
        be_quiet()
        signal.alarm(wait_seconds)
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_seconds, used + cpu_seconds + 5))
        with open_source() as source:
            for info in source.variables:
                if info.fault is None and info.element_count:
                    source.read(info.name, 0, 1)
                    source.read(info.name, info.element_count - 1, 1)
    finally:
        os._exit(0)
