"""Fits maps to the runs of a table, judges, keeps and asks them; plans what to measure next.

Fitted maps are one versioned JSON file with all that was measured.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ciwrap.base.documents import DocumentError, to_versioned_record
from ciwrap.base.errors import CorruptFileError, OutputMissingError, UnreadableFileError, UsageError
from ciwrap.base.late import numpy as np
from ciwrap.model.settings import VARIABILITY_MAP_VERSION
from ciwrap.report.document import digest_of, load_document, plain, write_text
from ciwrap.report.text import plural, safe_name, short_number
from ciwrap.statistics.spread import (
    kurtosis_of,
    repeats_for_mean,
    repeats_for_sigma,
    sigma_half_width,
)
from ciwrap.studies.variability.predictors import (
    GAUSSIAN_PROCESS,
    PREDICTORS,
    Kernel,
    Predictor,
    Process,
    fit_process,
    likeliest_kernel,
)
from ciwrap.studies.variability.quality import (
    FEW_CONFIGURATIONS,
    Candidate,
    MapPoint,
    MapSummary,
    Parameter,
    Prediction,
    Repeats,
    Slice,
    Validation,
    bounded,
    conformal_factor,
    cross_validate,
    curve_of_prediction,
    curve_of_runs,
    influences,
    sorted_residuals,
)
from ciwrap.studies.variability.runs import (
    MOST_HULL_DIMENSIONS,
    Axis,
    Group,
    Measured,
    Prepared,
    Runs,
    Space,
    are_inside,
    is_inside,
    prepare,
)

if TYPE_CHECKING:
    from ciwrap.studies.variability.runs import Numbers


class StoredMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The map of one category.

    points: a row for each configuration, in the order of the axes. runs: its measured values.
    seconds: how long its runs took; empty where that is not known. residuals: |log predicted - log
    measured| of unseen configurations, sorted; they give the intervals. kernel: of the process over
    log sigma. mean_kernel: of that over the logarithms of the means.
    """

    category: dict[str, str]
    axes: tuple[Axis, ...]
    fixed: dict[str, float]
    points: tuple[tuple[float, ...], ...]
    runs: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    predictor: str
    error: float
    floor: float
    residuals: tuple[float, ...]
    kernel: Kernel
    mean_kernel: Kernel | None
    notes: tuple[str, ...]


class MapFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All maps of a table. value: the column that was measured. digest: of all the rest, to tell
    damage.
    """

    format: int
    kind: str
    value: str
    seed: int
    maps: tuple[StoredMap, ...]
    made: str
    ciwrap_version: str
    digest: str = ""


KIND = "variability-map"
_REMEDY = "`ciwrap variability fit` makes one"


def write_map(maps: MapFile, target: str) -> None:
    """Writes maps, whole or not at all. Raises WriteFailedError."""
    document = plain(maps)
    document["digest"] = digest_of(document)
    write_text(json.dumps(document, allow_nan=False) + "\n", target, "the map")


def read_map(path: Path) -> MapFile:
    """Reads maps. Raises OutputMissingError, UnreadableFileError, CorruptFileError."""
    try:
        maps = to_versioned_record(load_document(path), MapFile, VARIABILITY_MAP_VERSION)
    except FileNotFoundError as error:
        raise OutputMissingError("there is no map", file=path, remedy=_REMEDY) from error
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error), file=path) from error
    except DocumentError as error:
        text = f"is not a map of variability: {error}"
        raise CorruptFileError(text, file=path, remedy=_REMEDY) from error
    if maps.digest != digest_of(plain(maps)):
        raise CorruptFileError(
            "the map is damaged, or somebody has edited it", file=path, remedy="fit it again"
        )
    unknown = {one.predictor for one in maps.maps}.difference(PREDICTORS)
    if unknown:
        raise CorruptFileError(
            f"is a map of {', '.join(unknown)}, which nothing here predicts with",
            file=path,
            remedy="fit it again",
        )
    return maps


class FittedMap:
    """The map of one category, made of what its file holds."""

    def __init__(self, stored: StoredMap) -> None:
        self.stored = stored
        self.measured = Measured(
            Space(stored.axes),
            np.array(stored.points, dtype=np.float64),
            tuple(np.array(one, dtype=np.float64) for one in stored.runs),
            tuple(np.array(one, dtype=np.float64) for one in stored.seconds),
            stored.fixed,
        )

    @cached_property
    def process(self) -> Process:
        """Over log sigma; its variance says what to measure next, whatever predicts."""
        heights = np.log(self.measured.sigma)
        return fit_process(self.measured.places.unit, heights, self.stored.kernel)

    @cached_property
    def _predictor(self) -> Predictor:
        if self.stored.predictor == GAUSSIAN_PROCESS:
            return lambda at: np.exp(self.process.heights(at.unit))
        return PREDICTORS[self.stored.predictor](self.measured.places, self.measured.sigma)

    @cached_property
    def _means(self) -> Process | None:
        if self.stored.mean_kernel is None:
            return None
        heights = np.log(self.measured.means)
        return fit_process(self.measured.places.unit, heights, self.stored.mean_kernel)

    def sigma(self, points: Numbers) -> Numbers:
        """The predicted standard deviation of each row of points; above 0."""
        return bounded(self._predictor(self.measured.space.places(points)), self.measured.sigma)

    def means(self, points: Numbers) -> Numbers | None:
        """The predicted mean of each, where the means that were measured are above 0."""
        if self._means is None:
            return None
        return np.exp(self._means.heights(self.measured.space.places(points).unit))

    def seconds(self, point: Numbers) -> float | None:
        """How long a run probably takes: the mean of the nearest configurations' runs, weighted."""
        if not self.measured.seconds:
            return None
        times = np.array([one.mean() for one in self.measured.seconds])
        place = self.measured.space.places(point[np.newaxis, :]).unit
        distances = np.sum((self.measured.places.unit - place) ** 2, axis=1)
        near = np.argsort(distances)[: 2 * len(point) + 1]
        weights = 1 / (distances[near] + 1e-6)
        return float(np.sum(weights * times[near]) / weights.sum())

    def factor(self, confidence: float) -> float | None:
        """See `ciwrap.studies.variability.quality.conformal_factor`."""
        return conformal_factor(self.stored.residuals, confidence)

    def point(self, configuration: Mapping[str, float]) -> Numbers:
        """A configuration's values in the order of the axes. Raises UsageError for a parameter that
        is missing, unknown, or has another value than the only one that was measured.
        """
        axes = self.measured.space.axes
        names = [axis.name for axis in axes]
        for name, value in configuration.items():
            self._check_known(name, value, names)
        missing = [name for name in names if name not in configuration]
        if missing:
            raise UsageError(
                f"the configuration lacks {', '.join(missing)}", remedy=f"give {missing[0]}=NUMBER"
            )
        for axis in axes:
            if axis.is_log and configuration[axis.name] <= 0:
                raise UsageError(f"{axis.name} counts by its logarithm and must be above 0")
        return np.array([configuration[name] for name in names], dtype=np.float64)

    def _check_known(self, name: str, value: float, names: list[str]) -> None:
        fixed = self.measured.fixed
        if name in names or fixed.get(name) == value:
            return
        if name in fixed:
            raise UsageError(
                f"{name} was {short_number(fixed[name])} in every run, so the map says nothing of"
                f" {short_number(value)}",
                remedy="measure other values of it, too",
            )
        near = difflib.get_close_matches(name, names, 1)
        raise UsageError(
            f"the map has no parameter {name!r}",
            remedy=f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}",
        )

    def configuration(self, point: Numbers) -> dict[str, float]:
        """The point's values by name."""
        axes = self.measured.space.axes
        return {axis.name: float(value) for axis, value in zip(axes, point, strict=True)}

    def is_inside(self, point: Numbers) -> bool:
        """Whether the point lies between those that were measured."""
        unit = self.measured.space.places(point[np.newaxis, :]).unit[0]
        return is_inside(self.measured.places.unit, unit)

    def predict(self, point: Numbers, confidence: float) -> Prediction:
        """What the map says of a configuration."""
        rows = point[np.newaxis, :]
        sigma = float(self.sigma(rows)[0])
        factor = self.factor(confidence)
        means = self.means(rows)
        row = self.measured.row_of(point)
        return Prediction(
            configuration=self.configuration(point),
            category=self.stored.category,
            sigma=sigma,
            confidence=confidence,
            extrapolated=not self.is_inside(point),
            predictor=self.stored.predictor,
            error=self.stored.error,
            few=len(self.measured) < FEW_CONFIGURATIONS,
            lower=None if factor is None else sigma / factor,
            upper=None if factor is None else sigma * factor,
            mean=None if means is None else float(means[0]),
            seconds=self.seconds(point),
            measured_sigma=None if row is None else float(self.measured.sigma[row]),
            measured_runs=None if row is None else int(self.measured.counts[row]),
        )


def map_of(maps: MapFile, category: Mapping[str, str]) -> FittedMap:
    """The map of a category. Raises UsageError if these texts do not name exactly one."""
    known = list(dict.fromkeys(name for one in maps.maps for name in one.category))
    for name in category:
        if name not in known:
            raise UsageError(f"the maps have no category {name!r}", remedy=_choices(maps))
    found = [
        one
        for one in maps.maps
        if all(one.category.get(name) == text for name, text in category.items())
    ]
    if len(found) != 1:
        many = f"{len(found)} maps are" if found else "no map is"
        raise UsageError(f"{many} of this category", remedy=_choices(maps))
    return FittedMap(found[0])


def _choices(maps: MapFile) -> str:
    texts = [" ".join(f"{name}={text}" for name, text in one.category.items()) for one in maps.maps]
    return f"give one of: {'; '.join(texts[:10])}" if any(texts) else "the map has no categories"


COLUMNS, ROWS = 40, 28


def slices_of(fitted: FittedMap, order: Sequence[str]) -> tuple[Slice, ...]:
    """Slices along the two parameters that matter most, at three levels of the third one.

    order: names of parameters, the most important first. All others stay at their middle level. A
    map of one parameter is a slice of one row.
    """
    axes = fitted.measured.space.axes
    names = [*order, *(axis.name for axis in axes if axis.name not in order)]
    columns = [next(n for n, axis in enumerate(axes) if axis.name == name) for name in names]
    middle = np.array([_level(column, 0.5) for column in fitted.measured.points.T])
    if len(columns) == 1:
        return (_slice(fitted, columns[0], None, middle),)
    if len(columns) == 2:
        return (_slice(fitted, columns[0], columns[1], middle),)
    third = columns[2]
    found = []
    levels = [_level(fitted.measured.points[:, third], part) for part in (0.0, 0.5, 1.0)]
    for level in dict.fromkeys(levels):
        held = middle.copy()
        held[third] = level
        found.append(_slice(fitted, columns[0], columns[1], held))
    return tuple(found)


def _level(values: Numbers, part: float) -> float:
    """The level that lies this part of the way from the first to the last one."""
    levels = np.unique(values)
    return float(levels[round(part * (len(levels) - 1))])


def _slice(fitted: FittedMap, x: int, y: int | None, held: Numbers) -> Slice:
    axes = fitted.measured.space.axes
    x_values = [axes[x].value(part) for part in np.linspace(0, 1, COLUMNS)]
    y_values = [0.0] if y is None else [axes[y].value(part) for part in np.linspace(0, 1, ROWS)]
    points = np.tile(held, (len(x_values) * len(y_values), 1))
    points[:, x] = np.tile(x_values, len(y_values))
    if y is not None:
        points[:, y] = np.repeat(y_values, len(x_values))
    sigma = fitted.sigma(points).reshape(len(y_values), len(x_values))
    return Slice(
        x=axes[x].name,
        y="" if y is None else axes[y].name,
        held={
            axis.name: float(value)
            for number, (axis, value) in enumerate(zip(axes, held, strict=True))
            if number not in (x, y)
        },
        x_values=tuple(x_values),
        y_values=tuple(y_values),
        sigma=tuple(tuple(row) for row in sigma.tolist()),
    )


CONFIDENCE = 0.9
_LEAST_RUNS = 2
_FEW_RUNS = 5
_OUTLYING = 6.0


class Fitted(Struct, frozen=True):
    """Maps as they are kept, and what is shown of each."""

    file: MapFile
    summaries: tuple[MapSummary, ...]


def fit_maps(
    runs: Runs,
    *,
    seed: int,
    only: str | None,
    made: str,
    ciwrap_version: str,
    tell: Callable[[str], None] = lambda _: None,
) -> Fitted:
    """A map for each category. only: the predictor to use; by default, the best is chosen.

    Raises CorruptFileError for a configuration with one run, NotComparableError for too few
    configurations, NotAvailableError without SciPy or where `only` cannot be had.
    """
    stored, summaries = [], []
    for group in runs.groups:
        one, summary = _fit(runs, group, seed, only, tell)
        stored.append(one)
        summaries.append(summary)
    file = MapFile(
        format=VARIABILITY_MAP_VERSION,
        kind=KIND,
        value=runs.value,
        seed=seed,
        maps=tuple(stored),
        made=made,
        ciwrap_version=ciwrap_version,
    )
    return Fitted(file, tuple(summaries))


def _fit(
    runs: Runs, group: Group, seed: int, only: str | None, tell: Callable[[str], None]
) -> tuple[StoredMap, MapSummary]:
    prepared = _prepared(runs, group, seed)
    measured = prepared.measured
    validation = cross_validate(measured, seed=seed, only=only, tell=tell)
    stored = _stored(group, prepared, validation, seed)
    fitted = FittedMap(stored)
    factor = fitted.factor(CONFIDENCE)
    found = influences(measured)
    order = [one.parameters[0] for one in found.terms if len(one.parameters) == 1] if found else []
    summary = MapSummary(
        category=group.category,
        configurations=len(measured),
        runs=int(measured.counts.sum()),
        predictor=validation.chosen,
        error=validation.error,
        floor=validation.floor,
        few=len(measured) < FEW_CONFIGURATIONS,
        factor=factor,
        kurtosis=measured.kurtosis,
        scores=validation.scores,
        parameters=tuple(
            Parameter(axis.name, axis.low, axis.high, len(np.unique(column)), axis.is_log)
            for axis, column in zip(measured.space.axes, measured.points.T, strict=True)
        ),
        fixed=measured.fixed,
        notes=prepared.notes,
        influences=found,
        points=_points(measured, validation),
        slices=slices_of(fitted, order),
    )
    return stored, summary


def _prepared(runs: Runs, group: Group, seed: int) -> Prepared:
    _check_repeats(runs, group)
    words = " ".join(f"{name}={safe_name(text, 60)}" for name, text in group.category.items())
    prepared = prepare(
        runs.parameters,
        group.points,
        [np.array(one) for one in group.runs.values()],
        [np.array(group.seconds[point]) for point in group.runs] if runs.has_seconds else [],
        where=f"{runs.file} ({words})" if words else runs.file,
        seed=seed,
    )
    notes = [f"the column {name} numbers the runs and is left out" for name in runs.ignored]
    least = min(len(one) for one in group.runs.values())
    if least < _FEW_RUNS:
        notes.append(
            f"some configurations have {plural(least, 'run')} only, which hardly tell their sigma"
        )
    kurtosis = prepared.measured.kurtosis
    if kurtosis > _OUTLYING:
        notes.append(
            f"the runs have far outliers (kurtosis {kurtosis:.2g}, where normal noise has 3),"
            " so sigma rests on a few of them"
        )
    return Prepared(prepared.measured, (*notes, *prepared.notes))


def _check_repeats(runs: Runs, group: Group) -> None:
    for point, values in group.runs.items():
        if len(values) < _LEAST_RUNS:
            words = ", ".join(
                f"{name} {short_number(value)}"
                for name, value in zip(runs.parameters, point, strict=True)
            )
            raise CorruptFileError(
                f"the configuration {words} has one run, which has no standard deviation",
                file=group.rows[point],
                remedy="repeat it, leave it out, or --ignore a column that differs in every run",
            )


def _stored(group: Group, prepared: Prepared, validation: Validation, seed: int) -> StoredMap:
    measured = prepared.measured
    unit = measured.places.unit
    has_means = bool(np.all(measured.means > 0))
    return StoredMap(
        category=group.category,
        axes=measured.space.axes,
        fixed=measured.fixed,
        points=tuple(tuple(row) for row in measured.points.tolist()),
        runs=tuple(tuple(one.tolist()) for one in measured.runs),
        seconds=tuple(tuple(one.tolist()) for one in measured.seconds),
        predictor=validation.chosen,
        error=validation.error,
        floor=validation.floor,
        residuals=tuple(sorted_residuals(validation.predictions, measured.sigma).tolist()),
        kernel=likeliest_kernel(unit, np.log(measured.sigma), seed=seed),
        mean_kernel=(
            likeliest_kernel(unit, np.log(measured.means), seed=seed) if has_means else None
        ),
        notes=prepared.notes,
    )


def _points(measured: Measured, validation: Validation) -> tuple[MapPoint, ...]:
    logs = np.log(bounded(validation.predictions, measured.sigma)).mean(axis=0)
    return tuple(
        MapPoint(tuple(values), runs.size, float(sigma), float(predicted))
        for values, runs, sigma, predicted in zip(
            measured.points.tolist(), measured.runs, measured.sigma, np.exp(logs), strict=True
        )
    )


# From so few runs, their own kurtosis says less than that of the whole map.
LEAST_FOR_KURTOSIS = 20
_MOST_LEVELS = 12
_MOST_PLACES = 20_000
# Each takes a linear program where there are many parameters.
_MOST_WITHOUT_HULL = 500
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
    """Configurations of the levels that were not measured, between those that were: some of what
    lies beyond may be impossible, such as records larger than their file, and none of it can be
    predicted. Where all were measured, the middles between levels.
    """
    measured = fitted.measured
    columns = [_levels(column) for column in measured.points.T]
    places = _inside(fitted, _unmeasured(fitted, columns, seed))
    if len(places):
        return places
    axes = measured.space.axes
    halves = [_halves(axis, levels) for axis, levels in zip(axes, columns, strict=True)]
    between = [
        _unmeasured(fitted, [*columns[:n], halves[n], *columns[n + 1 :]], seed)
        for n in range(len(columns))
        if len(halves[n])
    ]
    return _inside(fitted, np.vstack(between)) if between else np.empty((0, len(columns)))


def _inside(fitted: FittedMap, places: Numbers) -> Numbers:
    if not len(places):
        return places
    if places.shape[1] > MOST_HULL_DIMENSIONS:
        places = places[:: -(-len(places) // _MOST_WITHOUT_HULL)]
    units = fitted.measured.space.places(places).unit
    found: Numbers = places[are_inside(fitted.measured.places.unit, units)]
    return found


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
