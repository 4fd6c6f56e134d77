"""Other processes as the kernel shows them; signals that end this one; clean-up after `with`; and
how many threads this one may use beside those of the core.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from msgspec import Struct


class Process(Struct, frozen=True):
    """state: a letter, as proc_pid_stat(5) has it. started: in ticks since the system was."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it is more than an entry that nobody has taken away yet."""
        return self.state not in "ZX"


def all_processes() -> Iterator[Process]:
    """Those that there are; none where the system has no /proc."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found = parse_stat(path.read_bytes())
        except OSError:  # it has ended meanwhile
            continue
        if found is not None:
            yield found


def parse_stat(data: bytes) -> Process | None:
    """What /proc/PID/stat says; None for what is no such line.

    The name in it may hold anything, brackets and line breaks too. The format: proc_pid_stat(5).
    """
    pid, words = data.partition(b" ")[0], data.rpartition(b")")[2].split()
    numbers = [pid, *words[1:4], *words[19:20]]
    if len(numbers) < 5 or not all(word.isdigit() for word in numbers):
        return None
    return Process(int(pid), words[0].decode("ascii", "replace"), *map(int, numbers[1:]))


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True


_most_threads = 0


def use_threads(most: int) -> None:
    """From now on `thread_count` is this; 0: as many as there are processors to run on."""
    global _most_threads
    _most_threads = most


def thread_count() -> int:
    """How many threads to use at once where Python itself starts them, as readers do."""
    if _most_threads:
        return _most_threads
    # Not on macOS.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ends_are_interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP within raise KeyboardInterrupt, as Ctrl-C does, so that `finally` runs.

    A scheduler that cancels a job, or a terminal that is closed, sends these. What is ignored stays
    ignored.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with _handled_by(interrupt):
        yield


@contextlib.contextmanager
def later_interrupts() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP within take effect at the end of the block, where it succeeds.

    They do what they would have done before it, so that one block may be within another. Where
    nobody handles them they raise KeyboardInterrupt.
    """
    came: list[int] = []
    with _handled_by(lambda number, _: came.append(number)) as before:
        yield
    for number in came:
        former = before[number]
        if not callable(former):
            raise KeyboardInterrupt
        former(number, None)


@contextlib.contextmanager
def endings_call(function: Callable[[int], None]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP within do nothing but call the function with their number."""
    with _handled_by(lambda number, _: function(number)):
        yield


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], Any]) -> Iterator[dict[int, Any]]:
    """What handled each of them before."""
    before: dict[int, Any] = {}
    if threading.current_thread() is not threading.main_thread():
        yield before  # signals go to the main thread alone
        return
    try:
        for number in _ENDINGS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
        yield before
    finally:
        for taken, former in before.items():
            signal.signal(taken, signal.SIG_DFL if former is None else former)


_Self = TypeVar("_Self", bound="Closing")


@contextlib.contextmanager
def closed_on_error(close: Callable[[], object]) -> Iterator[None]:
    """Closes what was opened if the block fails; the block's own error is the one to tell."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            close()
        raise


class Closing(ABC):
    """A context manager that closes itself, whatever ends the block."""

    @abstractmethod
    def close(self) -> object:
        """Gives up what is held; harmless when repeated."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
