"""Running several things at once that Ctrl-C and the signals that end a process end together."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from ciwrap.interrupts import endings_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

_T = TypeVar("_T")


def together(jobs: Sequence[Callable[[threading.Event | None], _T]]) -> list[_T]:
    """Starts all jobs at once, each in a thread, and waits for them; results in the order of jobs.

    Each job gets an event that is set when the others are to end, too: because one has failed, or
    on Ctrl-C, SIGTERM or SIGHUP, after which KeyboardInterrupt is raised once all have ended. A
    single job runs in this thread, and gets none. Else raises what the first of them in order
    raises.
    """
    if len(jobs) == 1:
        return [jobs[0](None)]
    # Jobs that have ended, and None for a signal. It only tells: an exception in the middle of what
    # threads, pools and futures do would leave their locks held.
    news: SimpleQueue[Future[_T] | None] = SimpleQueue()
    signals: list[int] = []

    def take_signal(number: int) -> None:
        signals.append(number)
        news.put(None)

    stop = threading.Event()
    with endings_call(take_signal), ThreadPoolExecutor(max(1, len(jobs))) as pool:
        try:
            futures = [pool.submit(job, stop) for job in jobs]
            for future in futures:
                future.add_done_callback(news.put)
            while not all(future.done() for future in futures):
                one = news.get()
                if one is None or one.exception():
                    stop.set()
        except BaseException:
            stop.set()
            raise
    if signals:
        raise KeyboardInterrupt
    return [future.result() for future in futures]
