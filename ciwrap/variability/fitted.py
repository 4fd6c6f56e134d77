"""A map that can be asked."""

from __future__ import annotations

import difflib
from functools import cached_property
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.late import numpy as np
from ciwrap.report.text import short_number
from ciwrap.variability.document import Prediction
from ciwrap.variability.gaussian_process import Process, fit_process
from ciwrap.variability.measured import Measured
from ciwrap.variability.predictors import GAUSSIAN_PROCESS, PREDICTORS
from ciwrap.variability.space import Space, is_inside
from ciwrap.variability.validation import FEW_CONFIGURATIONS, bounded, conformal_factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.variability.map_file import MapFile, StoredMap
    from ciwrap.variability.predictors import Predictor
    from ciwrap.variability.space import Numbers


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
        return fit_process(
            self.measured.places.unit, np.log(self.measured.sigma), self.stored.kernel
        )

    @cached_property
    def _predictor(self) -> Predictor:
        if self.stored.predictor == GAUSSIAN_PROCESS:
            return lambda at: np.exp(self.process.heights(at.unit))
        return PREDICTORS[self.stored.predictor](self.measured.places, self.measured.sigma)

    @cached_property
    def _means(self) -> Process | None:
        if self.stored.mean_kernel is None:
            return None
        return fit_process(
            self.measured.places.unit,
            np.log(self.measured.means),
            self.stored.mean_kernel,
        )

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
        """See `ciwrap.variability.validation.conformal_factor`."""
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
