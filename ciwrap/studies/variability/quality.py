"""How well predictors do on configurations they have not seen, and which parameters matter.

The analysis of variance of log sigma has levels of parameters as classes, main effects and
interactions of two, and sums of squares of type II, so that tables with missing configurations are
judged fairly: Box, Hunter and Hunter, "Statistics for Experimenters", 2005. As in figure 9 of
MOANA, intervals are said to shrink 75 % and 90 % of the way from 10 runs to 40.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from ciwrap.base.documents import DocumentHead
from ciwrap.base.errors import NotAvailableError
from ciwrap.base.late import numpy as np
from ciwrap.statistics.spread import bootstrapped_sigmas, scipy
from ciwrap.studies.variability.predictors import (
    GAUSSIAN_PROCESS,
    PREDICTORS,
    Kernel,
    Process,
    likeliest_kernel,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.studies.variability.runs import Measured, Numbers

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
        found = [one.error for one in self.scores if one.predictor == self.chosen]
        assert found[0] is not None
        return found[0]


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
    generator = np.random.default_rng(seed)
    folds = [
        (number, rows)
        for number in range(rounds)
        for rows in np.array_split(generator.permutation(len(measured)), FOLDS)
    ]
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


if TYPE_CHECKING:
    Classes = NDArray[np.intp]

_STEPS = (20, 15, 12, 10, 8, 6, 5, 4, 3, 2)
_LEFT_SHARE = 0.4


class Influence(Struct, frozen=True):
    """One parameter, or two that act together.

    share: of the variance of log sigma that it explains. p: how often chance alone explains as
    much. factor: the largest mean sigma of its levels over the smallest one; for two parameters,
    what remains of that when the effect of each alone is taken away.
    """

    parameters: tuple[str, ...]
    share: float
    degrees: int
    p: float
    factor: float


class Influences(Struct, frozen=True):
    """terms: the largest share first. left: the share that no term explains. degrees_left: degrees
    of freedom that are left for it. grouped: parameters of whose many levels several are one class.
    with_pairs: whether interactions could be looked at.
    """

    terms: tuple[Influence, ...]
    left: float
    degrees_left: int
    grouped: tuple[str, ...]
    with_pairs: bool


def influences(measured: Measured) -> Influences | None:
    """The analysis, or None where there are too few configurations for main effects.

    Levels are grouped until two fifths of the degrees of freedom are left for noise.
    """
    response = np.log(measured.sigma)
    names = [axis.name for axis in measured.space.axes]
    for with_pairs in (True, False):
        for most in _STEPS:
            classes = [_classes(column, most) for column in measured.places.unit.T]
            if _degrees(classes, with_pairs) <= (1 - _LEFT_SHARE) * (len(response) - 1):
                grouped = tuple(
                    name
                    for name, column in zip(names, measured.points.T, strict=True)
                    if len(np.unique(column)) > most
                )
                return _analysis(names, classes, response, grouped, with_pairs)
    return None


def _classes(unit: Numbers, most: int) -> Classes:
    """A class for each level; neighbours share one where there are more levels than `most`."""
    levels, numbers = np.unique(unit, return_inverse=True)
    numbers = numbers.reshape(-1)
    if len(levels) > most:
        numbers = numbers * most // len(levels)
    return numbers


def _degrees(classes: list[Classes], with_pairs: bool) -> int:
    widths = [len(np.unique(one)) - 1 for one in classes]
    pairs = sum(a * b for a, b in combinations(widths, 2)) if with_pairs else 0
    return sum(widths) + pairs


def _analysis(
    names: list[str],
    classes: list[Classes],
    response: Numbers,
    grouped: tuple[str, ...],
    with_pairs: bool,
) -> Influences:
    contrasts: dict[tuple[int, ...], Numbers] = {
        (n,): _contrasts(one) for n, one in enumerate(classes)
    }
    if with_pairs:
        for one, other in combinations(range(len(names)), 2):
            a, b = contrasts[one,], contrasts[other,]
            contrasts[one, other] = (a[:, :, None] * b[:, None, :]).reshape(len(response), -1)
    centred = response - response.mean()
    whole = float(centred @ centred)
    everything, rank = _unexplained(list(contrasts.values()), centred)
    degrees_left = len(response) - 1 - rank
    terms = [
        _influence(term, names, classes, contrasts, centred, everything, degrees_left)
        for term in contrasts
    ]
    terms.sort(key=lambda one: -one.share)
    return Influences(tuple(terms), everything / whole, degrees_left, grouped, with_pairs)


def _influence(
    term: tuple[int, ...],
    names: list[str],
    classes: list[Classes],
    contrasts: dict[tuple[int, ...], Numbers],
    centred: Numbers,
    everything: float,
    degrees_left: int,
) -> Influence:
    # All terms that do not contain this one, and the same with it.
    others = [columns for key, columns in contrasts.items() if not set(term) <= set(key)]
    without, rank_without = _unexplained(others, centred)
    with_it, rank_with = _unexplained([*others, contrasts[term]], centred)
    degrees = rank_with - rank_without
    explained = max(without - with_it, 0.0)
    whole = float(centred @ centred)
    p = 1.0
    if degrees and degrees_left and everything > 0:
        f = (explained / degrees) / (everything / degrees_left)
        p = float(scipy("stats", "an analysis of variance").f.sf(f, degrees, degrees_left))
    elif degrees and explained > 0:
        p = 0.0
    return Influence(
        tuple(names[one] for one in term),
        explained / whole,
        degrees,
        p,
        _factor([classes[one] for one in term], centred),
    )


def _contrasts(numbers: Classes) -> Numbers:
    """Columns that tell the classes from their mean: 1 for a class, -1 for the last one."""
    levels = np.unique(numbers)
    columns: Numbers = (numbers[:, None] == levels[None, :-1]).astype(np.float64)
    columns[numbers == levels[-1]] = -1.0
    return columns


def _unexplained(parts: list[Numbers], centred: Numbers) -> tuple[float, int]:
    """The squares that these columns leave, and how many of them are independent."""
    columns = np.hstack([np.empty((len(centred), 0)), *parts])
    if not columns.shape[1]:
        return float(centred @ centred), 0
    columns = columns - columns.mean(axis=0)
    scales, turned = np.linalg.eigh(columns.T @ columns)
    usable = scales > 1e-10 * scales[-1]
    along = turned[:, usable].T @ (columns.T @ centred)
    left = float(centred @ centred) - float(np.sum(along**2 / scales[usable]))
    return max(left, 0.0), int(np.sum(usable))


def _factor(classes: list[Classes], centred: Numbers) -> float:
    """The range of the means of the classes, as a factor of sigma."""
    if len(classes) == 1:
        means = [float(centred[classes[0] == one].mean()) for one in np.unique(classes[0])]
        return float(np.exp(max(means) - min(means)))
    one, other = classes
    means = []
    for a in np.unique(one):
        for b in np.unique(other):
            cell = centred[(one == a) & (other == b)]
            if cell.size:
                alone = centred[one == a].mean() + centred[other == b].mean()
                means.append(float(cell.mean() - alone))
    return float(np.exp(max(means) - min(means)))


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


class Parameter(msgspec.Struct, frozen=True):
    """A parameter that varies. levels: how many different values. is_log: whether it counts by its
    logarithm.
    """

    name: str
    low: float
    high: float
    levels: int
    is_log: bool


class MapPoint(msgspec.Struct, frozen=True):
    """A measured configuration, values in the order of the parameters.

    sigma: the standard deviation of its runs. predicted: of the map when it had not seen this
    configuration, the geometric mean over the rounds of the cross-validation.
    """

    values: tuple[float, ...]
    runs: int
    sigma: float
    predicted: float


class Slice(msgspec.Struct, frozen=True):
    """The map over two parameters while the others are held.

    x, y: names. held: values of the others. x_values, y_values: where sigma is predicted, a row for
    each y.
    """

    x: str
    y: str
    held: dict[str, float]
    x_values: tuple[float, ...]
    y_values: tuple[float, ...]
    sigma: tuple[tuple[float, ...], ...]


class MapSummary(msgspec.Struct, frozen=True):
    """One map. category: which one it is. predictor: whose map it is. error: its mean of |predicted
    - measured| / measured over unseen configurations. floor: by estimate, the error that a
    perfect map would have. few: whether there are so few configurations that the error is probably
    optimistic. factor: a prediction divided and multiplied by it holds 90 % of unseen
    configurations. scores: all predictors, the best first. kurtosis: of the runs, the median.
    fixed: parameters with one value.
    """

    category: dict[str, str]
    configurations: int
    runs: int
    predictor: str
    error: float
    floor: float
    few: bool
    factor: float | None
    kurtosis: float
    scores: tuple[Score, ...]
    parameters: tuple[Parameter, ...]
    fixed: dict[str, float]
    notes: tuple[str, ...]
    influences: Influences | None
    points: tuple[MapPoint, ...]
    slices: tuple[Slice, ...]


class Prediction(msgspec.Struct, frozen=True):
    """The variability of one configuration.

    sigma: as predicted. lower, upper: hold it with this confidence; null with too few
    configurations to tell. extrapolated: whether it lies beyond what was measured. mean: the
    predicted mean, null where means are not all above 0. measured_sigma, measured_runs: of this
    configuration, where it was measured.
    """

    configuration: dict[str, float]
    category: dict[str, str]
    sigma: float
    confidence: float
    extrapolated: bool
    predictor: str
    error: float
    few: bool
    lower: float | None = None
    upper: float | None = None
    mean: float | None = None
    seconds: float | None = None
    measured_sigma: float | None = None
    measured_runs: int | None = None


class Repeats(msgspec.Struct, frozen=True):
    """How many repeats of a configuration a wanted precision takes.

    error: to within which share, with this confidence. for_sigma, for_mean: repeats in all.
    more_for_sigma, more_for_mean: those that are not there yet. kurtosis: what the number for sigma
    rests on. half_width: to within which share sigma is known after the repeats that are there.
    seconds_per_run, seconds_for_sigma, seconds_for_mean: what these repeats cost.
    """

    configuration: dict[str, float]
    category: dict[str, str]
    error: float
    confidence: float
    sigma: float
    is_measured: bool
    extrapolated: bool
    kurtosis: float
    for_sigma: int
    more_for_sigma: int
    curve: Curve
    half_width: float | None = None
    for_mean: int | None = None
    more_for_mean: int | None = None
    seconds_per_run: float | None = None
    seconds_for_sigma: float | None = None
    seconds_for_mean: float | None = None


class Candidate(msgspec.Struct, frozen=True):
    """A configuration to measure next. uncertainty: the factor within which the map knows its
    sigma, with 90 % confidence. repeats: for sigma to the wanted precision. seconds: what these
    cost.
    """

    configuration: dict[str, float]
    category: dict[str, str]
    sigma: float
    uncertainty: float
    repeats: int
    seconds: float | None = None


class VariabilityDocument(DocumentHead, frozen=True):
    """What a map of variability is, says, or is planned with. did: which command. file: of the
    table, or of the map. value: what was measured.
    """

    kind: Literal["variability"]
    did: Literal["fit", "predict", "plan"]
    file: str
    value: str
    seed: int
    maps: tuple[MapSummary, ...]
    predictions: tuple[Prediction, ...]
    repeats: tuple[Repeats, ...]
    candidates: tuple[Candidate, ...]
    environment: dict[str, str]
    ciwrap_version: str
    started_at: str
    seconds: float
    map_file: str | None = None
