"""How well each predictor does on configurations that it has not seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.errors import NotAvailableError
from ciwrap.late import numpy as np
from ciwrap.statistics.repeats import bootstrapped_sigmas
from ciwrap.structs import Struct
from ciwrap.variability.gaussian_process import Kernel, likeliest_kernel
from ciwrap.variability.predictors import GAUSSIAN_PROCESS, PREDICTORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.variability.measured import Measured
    from ciwrap.variability.space import Numbers

FOLDS = 5
ROUNDS = 10
FEW_CONFIGURATIONS = 200
_FLOOR_DRAWS = 100


class Score(Struct, frozen=True):
    """One predictor. error: the mean of |predicted - measured| / measured over unseen
    configurations; None where it cannot be had. deviation: the standard error of that mean.
    reason: why it cannot be had.
    """

    predictor: str
    error: float | None = None
    deviation: float | None = None
    reason: str | None = None


class Validation(Struct, frozen=True):
    """All predictors, the best first. floor: by estimate, the error that a perfect map would have,
    since sigma from so many runs is itself uncertain. chosen: whose map is used. predictions:
    of the chosen one, a row for each round and a column for each configuration.
    """

    scores: tuple[Score, ...]
    floor: float
    chosen: str
    predictions: Numbers

    @property
    def error(self) -> float:
        return next(
            one.error
            for one in self.scores
            if one.predictor == self.chosen and one.error is not None
        )


def cross_validate(
    measured: Measured,
    *,
    seed: int,
    rounds: int = ROUNDS,
    only: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Validation:
    """Five folds, ten times. only: the predictor to use, whatever the others do.

    Raises NotAvailableError if that one cannot be had.
    """
    warm = likeliest_kernel(measured.places.unit, np.log(measured.sigma))
    folds = list(_folds(len(measured), rounds, np.random.default_rng(seed)))
    scores: list[Score] = []
    found: dict[str, Numbers] = {}
    for name in PREDICTORS:
        tell(f"cross-validating {name}")
        try:
            found[name] = _predictions(name, measured, folds, rounds, warm)
        except NotAvailableError as error:
            scores.append(Score(name, reason=error.message))
            continue
        scores.append(_score(name, found[name], measured.sigma))
    scores.sort(key=lambda one: math.inf if one.error is None else one.error)
    chosen = _choice(scores) if only is None else only
    if chosen not in found:
        reason = next(one.reason for one in scores if one.predictor == chosen)
        raise NotAvailableError(f"{chosen}: {reason}", remedy="take another predictor")
    return Validation(tuple(scores), noise_floor(measured, seed), chosen, found[chosen])


def _folds(
    count: int, rounds: int, generator: np.random.Generator
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Round and rows of every fold."""
    for number in range(rounds):
        for rows in np.array_split(generator.permutation(count), FOLDS):
            yield number, rows


def _predictions(
    name: str,
    measured: Measured,
    folds: Sequence[tuple[int, NDArray[np.intp]]],
    rounds: int,
    warm: Kernel,
) -> Numbers:
    predictions = np.empty((rounds, len(measured)))
    everything = np.arange(len(measured))
    for number, rows in folds:
        known = np.setdiff1d(everything, rows)
        predict = PREDICTORS[name](measured.places[known], measured.sigma[known], warm)
        predictions[number, rows] = predict(measured.places[rows])
    return predictions


def _score(name: str, predictions: Numbers, sigma: Numbers) -> Score:
    errors = np.mean(np.abs(predictions - sigma) / sigma, axis=0)
    deviation = float(errors.std(ddof=1) / math.sqrt(errors.size))
    return Score(name, float(errors.mean()), deviation)


def _choice(scores: Sequence[Score]) -> str:
    """The smallest error; the Gaussian process where it is within one standard error of that."""
    best = scores[0]
    assert best.error is not None
    assert best.deviation is not None
    smooth = next(one for one in scores if one.predictor == GAUSSIAN_PROCESS)
    if smooth.error is not None and smooth.error <= best.error + best.deviation:
        return GAUSSIAN_PROCESS
    return best.predictor


def noise_floor(measured: Measured, seed: int) -> float:
    """The mean of |s* / s - 1|, s* being the standard deviation of runs drawn with replacement."""
    generator = np.random.default_rng(seed)
    total = 0.0
    for runs, sigma in zip(measured.runs, measured.sigma, strict=True):
        drawn = bootstrapped_sigmas(runs, runs.size, _FLOOR_DRAWS, generator)
        total += float(np.mean(np.abs(drawn / sigma - 1)))
    return total / len(measured)


def bounded(predictions: Numbers, sigma: Numbers) -> Numbers:
    """Predictions that are at least half the smallest sigma that was measured: some methods give
    negative ones.
    """
    return np.maximum(predictions, 0.5 * float(sigma.min()))


def sorted_residuals(predictions: Numbers, sigma: Numbers) -> Numbers:
    """|log predicted - log measured| of unseen configurations, sorted: one for each configuration,
    though every round of the cross-validation (a row of predictions) has its own.
    """
    residuals = np.abs(np.log(bounded(predictions, sigma)) - np.log(sigma))
    rounds = residuals.shape[0]
    pooled: Numbers = np.sort(residuals, axis=None)[rounds - 1 :: rounds]
    return pooled


def conformal_factor(residuals: Sequence[float] | Numbers, confidence: float) -> float | None:
    """By which factor a prediction must be divided and multiplied to hold the measured sigma of an
    unseen configuration with this confidence; None with too few configurations for it.

    The ceil(confidence (n + 1))-th smallest of n sorted residuals. Lei et al., JASA 113, 2018.
    """
    rank = math.ceil(confidence * (len(residuals) + 1) - 1e-9)
    return math.exp(residuals[rank - 1]) if 0 < rank <= len(residuals) else None
