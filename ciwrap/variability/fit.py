"""Fits maps to the runs of a table, judges them, and keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.model.formats import VARIABILITY_MAP_VERSION
from ciwrap.report.text import plural, safe_name, short_number
from ciwrap.structs import Struct
from ciwrap.variability.document import MapPoint, MapSummary, Parameter
from ciwrap.variability.fitted import FittedMap
from ciwrap.variability.gaussian_process import likeliest_kernel
from ciwrap.variability.influence import influences
from ciwrap.variability.map_file import KIND, MapFile, StoredMap
from ciwrap.variability.measured import Prepared, prepare
from ciwrap.variability.slices import slices_of
from ciwrap.variability.validation import (
    FEW_CONFIGURATIONS,
    Validation,
    bounded,
    cross_validate,
    sorted_residuals,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.variability.measured import Measured
    from ciwrap.variability.table import Group, Runs

CONFIDENCE = 0.9
_LEAST_RUNS = 2
_FEW_RUNS = 5
_OUTLYING = 6.0


class Fitted(Struct, frozen=True):
    """Maps as they are kept, and what is told of each."""

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
