"""Whether differences between runs stay as they are or grow, how fast, and for how long comparing
element by element makes sense.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Differences beyond this share of the variable's own spread no longer grow freely.
SATURATION = 0.1
# A random walk and a periodic orbit, too, may fit an exponential a little better than a power law.
LEAST_INCREASE = 100.0
# The corrected criterion of a model with a slope (3 parameters with the variance) needs 5 points.
LEAST_POINTS = 5
_PERFECT = 1e-30  # a mean square below this is a perfect fit

Kind = Literal["deterministic", "noise", "growing"]


class Growth(Struct, frozen=True):
    """How differences develop over a history.

    kind: "deterministic": all runs are equal; "noise": they differ, at a level that does not grow
    exponentially; "growing": they do, as those of chaotic codes. rate: by which ln D grows per
    iteration, and start: D at iteration 0 by the fit; None unless growing. is_settled: whether
    there were enough checkpoints to tell growing from noise.
    """

    kind: Kind
    rate: float | None = None
    start: float | None = None
    is_settled: bool = True

    def horizon(self, bound: float) -> float | None:
        """The iteration at which differences reach a bound; None if they do not grow."""
        if self.rate is None or not self.start or not 0 < bound < math.inf:
            return None
        return (math.log(bound) - math.log(self.start)) / self.rate


def classify(iterations: NDArray[Any], sizes: NDArray[Any], spread: float) -> Growth:
    """The class of a variable and its rate.

    iterations: ascending, shape (n,). sizes: the size D of the differences at each (root mean
    square over elements, median over runs), same shape. spread: the variable's own standard
    deviation over elements, from which saturation is told.

    ln D is fitted by a constant, a power law and an exponential, from the first difference until D
    reaches a tenth of the spread; the corrected Akaike criterion chooses. Growing is only what grew
    100-fold, by the fit and by most checkpoints.
    """
    steps, values = np.asarray(iterations, float), np.asarray(sizes, float)
    if not np.any(values > 0):
        return Growth("deterministic")
    steps, values = _free_part(steps, values, spread)
    if steps.size < LEAST_POINTS:
        return Growth("noise", is_settled=False)
    logs = np.log(values)
    since = steps - steps[0] + np.diff(steps).min()
    fits = {
        "constant": _fit(np.ones((steps.size, 1)), logs),
        "power": _fit(np.stack([np.ones_like(steps), np.log(since)], axis=1), logs),
        "exponential": _fit(np.stack([np.ones_like(steps), steps], axis=1), logs),
    }
    best = min(fits, key=lambda name: fits[name].criterion)
    start, rate = fits["exponential"].coefficients[0], fits["exponential"].coefficients[-1]
    increase = min(rate, _usual_rate(steps, logs)) * (steps[-1] - steps[0])
    if best == "exponential" and rate > 0 and increase >= math.log(LEAST_INCREASE):
        return Growth("growing", float(rate), float(np.exp(start)))
    return Growth("noise")


def _free_part(
    steps: NDArray[np.float64], values: NDArray[np.float64], spread: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """From the first difference to the first that is as large as saturated ones, without zeros."""
    first = int(np.flatnonzero(values > 0)[0])
    limit = SATURATION * spread if spread > 0 else math.inf
    beyond = np.flatnonzero(values[first:] >= limit)
    end = first + int(beyond[0]) if beyond.size else values.size
    kept = np.arange(first, end)[values[first:end] > 0]
    return steps[kept], values[kept]


def _usual_rate(steps: NDArray[np.float64], logs: NDArray[np.float64]) -> float:
    """The median rate from each checkpoint to the one half of the history later. Least squares
    follow a single wild checkpoint; a median does not.
    """
    half = steps.size // 2
    return float(np.median((logs[half:] - logs[:-half]) / (steps[half:] - steps[:-half])))


class _Fit(Struct, frozen=True):
    coefficients: NDArray[np.floating[Any]]
    criterion: float


def _fit(design: NDArray[np.float64], logs: NDArray[np.float64]) -> _Fit:
    """Least squares, and Akaike's criterion corrected for few points."""
    count, parameters = design.shape[0], design.shape[1] + 1  # the variance is one, too
    coefficients, *_ = np.linalg.lstsq(design, logs, rcond=None)
    mean_square = float(np.mean((logs - design @ coefficients) ** 2))
    penalty = 2 * parameters * count / (count - parameters - 1)
    return _Fit(coefficients, count * math.log(max(mean_square, _PERFECT)) + penalty)
