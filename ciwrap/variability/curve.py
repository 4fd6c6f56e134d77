"""How fast the interval of a standard deviation shrinks with more runs.

As in figure 9 of MOANA: after how many runs the interval has come 75 % and 90 % of the way from its
width at 10 runs to its width at 40.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.repeats import bootstrapped_sigmas
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.variability.gaussian_process import Process
    from ciwrap.variability.measured import Measured
    from ciwrap.variability.space import Numbers

FIRST, LAST = 10, 40
DRAWS = 1000
_DRAWS_OF_MANY = 200
_MOST_NEIGHBOURS = 60


class Curve(Struct, frozen=True):
    """Half the width of the interval, over sigma, after so many runs.

    at_75, at_90: after how many runs it has come so far from its width at the first to its width at
    the last of these.
    """

    runs: tuple[int, ...]
    half_widths: tuple[float, ...]
    at_75: int
    at_90: int


def curve_of_runs(runs: Numbers, *, confidence: float, seed: int) -> Curve:
    """The curve of a measured configuration, by drawing from its runs with replacement."""
    generator = np.random.default_rng(seed)
    sigma = float(runs.std(ddof=1))
    widths = [
        _half_width(bootstrapped_sigmas(runs, count, DRAWS, generator) / sigma, confidence)
        for count in range(FIRST, LAST + 1)
    ]
    return _curve(widths)


def curve_of_prediction(
    measured: Measured, process: Process, unit: Numbers, *, confidence: float, seed: int
) -> Curve:
    """The curve of a configuration that was not measured, whose sigma the map predicts from others.

    All configurations are drawn anew with so many runs each; the surface through them is a weighted
    sum of their log sigmas, so its scatter is that of the sum. unit: one place.
    """
    shares = process.shares(unit[np.newaxis, :])[0]
    rows = np.argsort(-np.abs(shares))[:_MOST_NEIGHBOURS]
    generator = np.random.default_rng(seed)
    widths = []
    for count in range(FIRST, LAST + 1):
        total = np.zeros(_DRAWS_OF_MANY)
        for row in rows:
            drawn = bootstrapped_sigmas(measured.runs[row], count, _DRAWS_OF_MANY, generator)
            # Two equal runs may be drawn so often that nothing varies.
            logs = np.log(np.maximum(drawn / measured.sigma[row], 1e-3))
            total += shares[row] * logs
        widths.append(_half_width(np.exp(total), confidence))
    return _curve(widths)


def _half_width(ratios: Numbers, confidence: float) -> float:
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, (tail, 1 - tail))
    return float(high - low) / 2


def _curve(widths: Sequence[float]) -> Curve:
    runs = range(FIRST, LAST + 1)
    # Draws scatter: a straight line in 1/sqrt(n) and 1/n goes through them.
    counts = np.array(runs, dtype=np.float64)
    columns = np.column_stack([np.ones_like(counts), counts**-0.5, 1 / counts])
    smooth = columns @ np.linalg.lstsq(columns, np.array(widths), rcond=None)[0]
    smooth = np.minimum.accumulate(smooth)
    way = (smooth[0] - smooth) / (smooth[0] - smooth[-1]) if smooth[0] > smooth[-1] else smooth * 0
    reached = [
        int(runs[int(np.argmax(way >= part))]) if way.any() else LAST for part in (0.75, 0.9)
    ]
    return Curve(tuple(runs), tuple(float(one) for one in smooth), reached[0], reached[1])
