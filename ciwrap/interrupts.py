"""Ctrl-C and the signals that end a process, for what has to be put back before it ends."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

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
