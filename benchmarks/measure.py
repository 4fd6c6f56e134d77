"""Timing for a machine shared with others: interleaved repeats, medians, a warm-up."""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one case, one per round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio_of(self, other: Timing) -> float:
        """Median over the rounds of other's time / this one's: the speed of this beside `other`."""
        return statistics.median(b / a for a, b in zip(self.seconds, other.seconds, strict=True))

    def as_json(self) -> dict[str, Any]:
        return {
            "median_seconds": self.median,
            "min_seconds": min(self.seconds),
            "max_seconds": max(self.seconds),
            "repeats": len(self.seconds),
        }


def interleaved(cases: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Timing]:
    """Runs every case once unmeasured, then `repeats` rounds, each in another order."""
    for case in cases.values():
        case()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    names = list(cases)
    for turn in range(repeats):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            start = time.perf_counter()
            cases[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def machine() -> dict[str, Any]:
    """What a number has to be read with."""
    import numpy

    from ciwrap import _core
    from ciwrap.snapshot.take import machine_facts

    return {
        "cpu": machine_facts()["cpu"],
        "cores": len(os.sched_getaffinity(0)),
        "cpu_level": next((level["name"] for level in _core.cpu_levels() if level["active"]), "?"),
        "load_average_at_start": os.getloadavg()[0],
        "kernel": platform.release(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "ciwrap": _core.__version__,
        "libraries": _core.library_versions(),
    }
