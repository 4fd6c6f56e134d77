"""Running several things at once that Ctrl-C and the signals that end a process end together."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from ciwrap.interrupts import ends_are_interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")


def together(jobs: Sequence[Callable[[threading.Event | None], _T]]) -> list[_T]:
    """Starts all jobs at once, each in a thread, and waits for them; results in the order of jobs.

    Each job gets an event that is set when the others are to end, too: because one has failed, or
    on Ctrl-C, SIGTERM or SIGHUP. A single job runs in this thread, and gets none. Raises what the
    first of them in order raises.
    """
    if len(jobs) == 1:
        return [jobs[0](None)]
    stop = threading.Event()
    with ends_are_interrupts(), ThreadPoolExecutor(max(1, len(jobs))) as pool:
        # From the first job on: Ctrl-C may come while the others are being started.
        try:
            futures = [pool.submit(job, stop) for job in jobs]
            wait(futures, return_when=FIRST_EXCEPTION)  # whichever it is
            if any(future.done() and future.exception() for future in futures):
                stop.set()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise
