"""Takes the times of two Python calls in interleaved pairs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ciwrap.timing.order import pair_order

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], object]

Times = tuple[tuple[float, ...], tuple[float, ...]]


def time_calls(a: Call, b: Call, *, pairs: int, warm_up: int, seed: int) -> Times:
    """The seconds of each call, pair by pair, in random order within each pair.

    warm_up: calls of either that come first and do not count. What a call raises ends it all.
    """
    for _ in range(warm_up):
        a()
        b()
    times: tuple[list[float], list[float]] = ([], [])
    for a_first in pair_order(pairs, seed):
        for position in (0, 1) if a_first else (1, 0):
            times[position].append(_seconds_of((a, b)[position]))
    return tuple(times[0]), tuple(times[1])


def _seconds_of(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
