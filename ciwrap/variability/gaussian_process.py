"""A Gaussian process: a smooth surface through noisy points, with its own uncertainty.

Matern covariance of smoothness 5/2 with one length per axis, and a nugget for the noise of the
points; all of them by maximum likelihood. Rasmussen and Williams, "Gaussian Processes for Machine
Learning", 2006, chapters 2 and 5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from ciwrap.variability.space import Numbers

MOST_FOR_LIKELIHOOD = 400
_FEW, _STEPS = 150, 8
# Beyond these, a longer length and a larger signal make the same surface.
LENGTHS = (0.03, 10.0)
SIGNAL = (0.05, 10.0)
NUGGET = (1e-6, 4.0)
_STARTS = (0.5, 2.0)
_ROOT = math.sqrt(5)


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """What a process takes for granted of its surface, whose points are scaled to variance 1.

    lengths: on each axis, over which the surface changes. signal: its variance. nugget: the
    variance of the points about it.
    """

    lengths: tuple[float, ...]
    signal: float
    nugget: float


class Process(Struct, frozen=True):
    """A surface. kernel: as fitted. mean, scale: of the points' heights."""

    kernel: Kernel
    unit: Numbers
    mean: float
    scale: float
    _factor: Any
    _weights: Numbers

    def heights(self, unit: Numbers) -> Numbers:
        """The surface at places in the unit cube."""
        found: Numbers = (
            self.mean + self.scale * _covariance(unit, self.unit, self.kernel) @ self._weights
        )
        return found

    def variances(self, unit: Numbers) -> Numbers:
        """How unsure the surface is there, as a variance; without the noise of a measurement."""
        across = _covariance(unit, self.unit, self.kernel)
        solved = scipy("linalg", "a variability map").cho_solve(self._factor, across.T)
        known = np.sum(across * solved.T, axis=1)
        found: Numbers = self.scale**2 * np.maximum(self.kernel.signal - known, 0.0)
        return found

    def shares(self, unit: Numbers) -> Numbers:
        """By how much each point's height counts at these places: a row for each place."""
        across = _covariance(unit, self.unit, self.kernel)
        found: Numbers = scipy("linalg", "a variability map").cho_solve(self._factor, across.T).T
        return found


def fit_process(unit: Numbers, heights: Numbers, kernel: Kernel) -> Process:
    """The process through points of these heights."""
    mean, scale = float(heights.mean()), float(heights.std()) or 1.0
    scaled = (heights - mean) / scale
    covariance = _covariance(unit, unit, kernel) + kernel.nugget * np.eye(len(unit))
    linalg = scipy("linalg", "a variability map")
    factor = linalg.cho_factor(covariance, lower=True)
    return Process(kernel, unit, mean, scale, factor, linalg.cho_solve(factor, scaled))


def likeliest_kernel(
    unit: Numbers, heights: Numbers, start: Kernel | None = None, seed: int = 0
) -> Kernel:
    """The kernel under which points of these heights are likeliest, by L-BFGS-B.

    Few of the points, drawn at random, tell roughly, from two starts; then 400 at most tell more
    exactly. start: a kernel that fits nearly the same points, which few of them then mend.
    """
    generator = np.random.default_rng(seed)
    axes = unit.shape[1]
    scaled = (heights - heights.mean()) / (heights.std() or 1.0)
    if start is not None:
        logs = np.log([*start.lengths, start.signal, start.nugget])
        return _kernel(_likeliest(unit, scaled, [logs], _FEW, _STEPS, generator))
    starts = [np.log([*[length] * axes, 1.0, 0.05]) for length in _STARTS]
    rough = _likeliest(unit, scaled, starts, _FEW, 4 * _STEPS, generator)
    return _kernel(_likeliest(unit, scaled, [rough], MOST_FOR_LIKELIHOOD, _STEPS, generator))


def _kernel(logs: Numbers) -> Kernel:
    *lengths, signal, nugget = np.exp(logs).tolist()
    return Kernel(tuple(lengths), signal, nugget)


def _likeliest(
    unit: Numbers,
    scaled: Numbers,
    starts: list[Numbers],
    most: int,
    steps: int,
    generator: np.random.Generator,
) -> Numbers:
    """The likeliest logarithms of lengths, signal and nugget, given `most` of the points."""
    if len(unit) > most:
        drawn = generator.choice(len(unit), most, replace=False)
        unit, scaled = unit[drawn], scaled[drawn]
    squares = (unit[:, np.newaxis, :] - unit[np.newaxis, :, :]).transpose(2, 0, 1) ** 2
    limits = np.log([*[LENGTHS] * unit.shape[1], SIGNAL, NUGGET])
    minimize = scipy("optimize", "a variability map").minimize
    found = [
        minimize(
            _unlikeliness,
            np.clip(one, *limits.T),
            args=(squares, scaled),
            jac=True,
            method="L-BFGS-B",
            bounds=limits,
            options={"maxiter": steps, "ftol": 1e-6},
        )
        for one in starts
    ]
    best: Numbers = min(found, key=lambda result: float(result.fun)).x
    return best


def _unlikeliness(logs: Numbers, squares: Numbers, scaled: Numbers) -> tuple[float, Numbers]:
    """Minus the logarithm of the likelihood, and its slopes along the logarithms."""
    *lengths, signal, nugget = np.exp(logs)
    parts = squares / np.square(lengths)[:, np.newaxis, np.newaxis]
    distance = _ROOT * np.sqrt(parts.sum(axis=0))
    decay = np.exp(-distance)
    smooth = signal * (1 + distance + distance**2 / 3) * decay
    linalg = scipy("linalg", "a variability map")
    factor = linalg.cholesky(smooth + nugget * np.eye(len(scaled)), lower=True, check_finite=False)
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weights = inverse @ scaled
    value = 0.5 * float(scaled @ weights) + float(np.log(np.diag(factor)).sum())
    pull = inverse - np.outer(weights, weights)
    steep = pull * (signal * 5 / 3 * (1 + distance) * decay)
    slopes = [float(np.sum(steep * part)) for part in parts]
    slopes += [float(np.sum(pull * smooth)), float(nugget * np.trace(pull))]
    return value, 0.5 * np.array(slopes)


def _covariance(one: Numbers, other: Numbers, kernel: Kernel) -> Numbers:
    lengths = np.array(kernel.lengths)
    across = scipy("spatial.distance", "a variability map")
    distance = _ROOT * across.cdist(one / lengths, other / lengths)
    found: Numbers = kernel.signal * (1 + distance + distance**2 / 3) * np.exp(-distance)
    return found
