"""What a map is planned with: repeats of a configuration, and what to measure next."""

from __future__ import annotations

import math
from itertools import islice, product
from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.repeats import (
    kurtosis_of,
    repeats_for_mean,
    repeats_for_sigma,
    sigma_half_width,
)
from ciwrap.variability.curve import curve_of_prediction, curve_of_runs
from ciwrap.variability.document import Candidate, Repeats
from ciwrap.variability.gaussian_process import fit_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.variability.fitted import FittedMap
    from ciwrap.variability.space import Axis, Numbers

# From so few runs, their own kurtosis says less than that of the whole map.
LEAST_FOR_KURTOSIS = 20
_MOST_LEVELS = 12
_MOST_PLACES = 20_000
_UNCERTAINTY_Z = 1.645


def plan_repeats(
    fitted: FittedMap, point: Numbers, *, error: float, confidence: float, seed: int
) -> Repeats:
    """How many repeats a configuration takes, measured or not, and what they cost.

    Raises UsageError for an error or a confidence without a meaning.
    """
    row = fitted.measured.row_of(point)
    if row is None:
        sigma, mean, kurtosis, known = _predicted(fitted, point)
        unit = fitted.measured.space.places(point[np.newaxis, :]).unit[0]
        curve = curve_of_prediction(
            fitted.measured, fitted.process, unit, confidence=confidence, seed=seed
        )
    else:
        runs = fitted.measured.runs[row]
        sigma, mean, known = float(runs.std(ddof=1)), float(runs.mean()), int(runs.size)
        own = kurtosis_of(runs) if known >= LEAST_FOR_KURTOSIS else None
        kurtosis = fitted.measured.kurtosis if own is None else own
        curve = curve_of_runs(runs, confidence=confidence, seed=seed)
    for_sigma = repeats_for_sigma(error, confidence, kurtosis)
    for_mean = repeats_for_mean(error, confidence, sigma / mean) if mean else None
    seconds = fitted.seconds(point)
    return Repeats(
        configuration=fitted.configuration(point),
        category=fitted.stored.category,
        error=error,
        confidence=confidence,
        sigma=sigma,
        is_measured=row is not None,
        extrapolated=not fitted.is_inside(point),
        kurtosis=kurtosis,
        for_sigma=for_sigma,
        more_for_sigma=max(for_sigma - known, 0),
        curve=curve,
        half_width=sigma_half_width(known, confidence, kurtosis) if known else None,
        for_mean=for_mean,
        more_for_mean=None if for_mean is None else max(for_mean - known, 0),
        seconds_per_run=seconds,
        seconds_for_sigma=_cost(for_sigma - known, seconds),
        seconds_for_mean=None if for_mean is None else _cost(for_mean - known, seconds),
    )


def _predicted(fitted: FittedMap, point: Numbers) -> tuple[float, float | None, float, int]:
    """Sigma, mean, kurtosis and runs of a configuration that was not measured."""
    rows = point[np.newaxis, :]
    means = fitted.means(rows)
    mean = None if means is None else float(means[0])
    return float(fitted.sigma(rows)[0]), mean, fitted.measured.kurtosis, 0


def _cost(repeats: int, seconds: float | None) -> float | None:
    return None if seconds is None else max(repeats, 0) * seconds


def plan_next(
    fitted: FittedMap, count: int, *, error: float, confidence: float, seed: int
) -> list[Candidate]:
    """The configurations that the map knows least of: the largest variance of the surface, each as
    if those before it had been measured.
    """
    places = _places(fitted, seed)
    if not len(places):
        return []
    repeats = repeats_for_sigma(error, confidence, fitted.measured.kurtosis)
    units = fitted.measured.space.places(places).unit
    known = fitted.measured.places.unit
    heights = np.log(fitted.measured.sigma)
    kernel = fitted.process.kernel
    found = []
    for _ in range(min(count, len(places))):
        # The variance does not depend on the heights, but for their scale.
        process = fit_process(known, heights, kernel)
        variances = process.variances(units)
        best = int(np.argmax(variances))
        point = places[best]
        seconds = fitted.seconds(point)
        found.append(
            Candidate(
                configuration=fitted.configuration(point),
                category=fitted.stored.category,
                sigma=float(fitted.sigma(point[np.newaxis, :])[0]),
                uncertainty=math.exp(_UNCERTAINTY_Z * math.sqrt(variances[best])),
                repeats=repeats,
                seconds=_cost(repeats, seconds),
            )
        )
        known = np.vstack([known, units[best]])
        heights = np.append(heights, process.heights(units[best : best + 1]))
        places, units = np.delete(places, best, axis=0), np.delete(units, best, axis=0)
    return found


def _places(fitted: FittedMap, seed: int) -> Numbers:
    """Configurations of the levels that were not measured; where all were, the middles between
    levels.
    """
    measured = fitted.measured
    columns = [_levels(column) for column in measured.points.T]
    places = _unmeasured(fitted, columns, seed)
    if len(places):
        return places
    axes = measured.space.axes
    halves = [_halves(axis, levels) for axis, levels in zip(axes, columns, strict=True)]
    between = [
        _unmeasured(fitted, [*columns[:n], halves[n], *columns[n + 1 :]], seed)
        for n in range(len(columns))
        if len(halves[n])
    ]
    return np.vstack(between) if between else np.empty((0, len(columns)))


def _levels(values: Numbers) -> Numbers:
    levels = np.unique(values)
    if len(levels) <= _MOST_LEVELS:
        return levels
    chosen = np.unique(np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int))
    some: Numbers = levels[chosen]
    return some


def _halves(axis: Axis, levels: Numbers) -> Numbers:
    """Halfway between neighbouring levels; whole numbers where all levels are."""
    units = axis.unit(levels)
    halves = np.array([axis.value(float(one)) for one in (units[1:] + units[:-1]) / 2])
    if np.all(levels == np.round(levels)):
        halves = np.setdiff1d(np.round(halves), levels)
    return halves


def _unmeasured(fitted: FittedMap, columns: list[Numbers], seed: int) -> Numbers:
    known = {tuple(row) for row in fitted.measured.points.tolist()}
    size = math.prod(len(one) for one in columns)
    every: Iterator[tuple[float, ...]]
    if size <= _MOST_PLACES:
        every = product(*(one.tolist() for one in columns))
    else:
        generator = np.random.default_rng(seed)
        every = zip(*(generator.choice(one, _MOST_PLACES).tolist() for one in columns), strict=True)
    fresh = dict.fromkeys(one for one in islice(every, _MOST_PLACES) if one not in known)
    return np.array(list(fresh), dtype=np.float64).reshape(-1, len(columns))
