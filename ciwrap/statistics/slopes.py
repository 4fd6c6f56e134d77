"""Whether a series of measurements goes up or down, and how fast."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

# Fewer have no slope that is worth a line.
LEAST_POINTS = 5


class Slope(Struct, frozen=True):
    """A straight line through a series. per_step: its rise from one measurement to the next. level:
    its height at the last one. p: how often chance alone goes up or down as steadily.
    """

    per_step: float
    level: float
    p: float

    def steps_until(self, height: float) -> int | None:
        """After how many further measurements the line reaches a height; None if it never does."""
        if self.level >= height:
            return 0
        if self.per_step <= 0:
            return None
        return int(np.ceil((height - self.level) / self.per_step))


def least_points(rate: float, tests: int = 1) -> int:
    """How many measurements it takes until those that all go up one after the other are an accident
    so rare that `rare_ones` counts it among so many tests: n of them can come in n! orders, two of
    which are as steady. 6 at 1 %, 7 with from 4 to 25 tests.
    """
    points = LEAST_POINTS
    while 2 * tests > rate * math.factorial(points):
        points += 1
    return points


def slope_of(values: Sequence[float]) -> Slope | None:
    """The line of Theil and Sen: the median of the slopes between all couples of measurements; its
    p is that of Kendall's rank correlation with time.

    None for fewer than 5 measurements, if all are equal, and where that line is level: a few steps
    between equal measurements are a correlation, and no rise with each of them. Raises
    NotAvailableError without SciPy.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.size < LEAST_POINTS or np.ptp(series) == 0:
        return None
    stats = scipy("stats", "a trend")
    steps = np.arange(series.size)
    line = stats.theilslopes(series, steps)
    if line.slope == 0:
        return None
    level = line.intercept + line.slope * steps[-1]
    return Slope(float(line.slope), float(level), float(stats.kendalltau(steps, series).pvalue))


def rare_ones(chances: Sequence[float], rate: float) -> list[bool]:
    """Which of several tests' p values count, so that any of them is a false alarm with probability
    `rate` at most: Holm's method (1979).
    """
    order = sorted(range(len(chances)), key=lambda position: chances[position])
    found = [False] * len(chances)
    for rank, position in enumerate(order):
        if chances[position] > rate / (len(chances) - rank):
            break
        found[position] = True
    return found
