"""Measured configurations: where they lie, and their runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ciwrap.errors import NotComparableError
from ciwrap.late import numpy as np
from ciwrap.report.text import plural, short_number
from ciwrap.statistics.repeats import kurtosis_of
from ciwrap.structs import Struct, field
from ciwrap.variability.space import Space, axis_of, merged_levels, space_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.variability.space import Numbers, Places

LEAST_CONFIGURATIONS = 10
MOST_CONFIGURATIONS = 1000
# Runs that differ by less count as equal: squares of squares of that are no numbers any more.
_LEAST_RANGE = 1e-70


class Measured(Struct, frozen=True, dict=True):
    """Configurations of one map. space: of the parameters that vary. points: a row for each
    configuration, in the order of the space's axes. runs: its measured values. seconds: how long
    each run took, () where that is not known. fixed: parameters with one value only.
    """

    space: Space
    points: Numbers
    runs: tuple[Numbers, ...]
    seconds: tuple[Numbers, ...] = ()
    fixed: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.runs)

    @cached_property
    def places(self) -> Places:
        return self.space.places(self.points)

    @cached_property
    def sigma(self) -> Numbers:
        return np.array([one.std(ddof=1) for one in self.runs])

    @cached_property
    def means(self) -> Numbers:
        return np.array([one.mean() for one in self.runs])

    @cached_property
    def counts(self) -> Numbers:
        return np.array([float(one.size) for one in self.runs])

    @cached_property
    def kurtosis(self) -> float:
        """The median over the configurations; 3 where runs are too few to tell."""
        known = [one for one in map(kurtosis_of, self.runs) if one is not None]
        return float(np.median(known)) if known else 3.0

    def only(self, rows: Sequence[int]) -> Measured:
        """Some of the configurations, in the same space."""
        return Measured(
            self.space,
            self.points[list(rows)],
            tuple(self.runs[row] for row in rows),
            tuple(self.seconds[row] for row in rows) if self.seconds else (),
            self.fixed,
        )

    def row_of(self, point: Numbers) -> int | None:
        """The row of a configuration that was measured."""
        same = np.flatnonzero(np.all(np.isclose(self.points, point, rtol=1e-9, atol=0), axis=1))
        return int(same[0]) if same.size else None


class Prepared(Struct, frozen=True):
    """Configurations that a map can be fitted to, and what was done to make them so."""

    measured: Measured
    notes: tuple[str, ...]


def prepare(
    names: Sequence[str],
    points: Numbers,
    runs: Sequence[Numbers],
    seconds: Sequence[Numbers],
    *,
    where: str,
    seed: int,
) -> Prepared:
    """Leaves out parameters that never change and configurations that never vary, merges levels
    that are nearly the same, and draws 1000 configurations where there are more.

    where: the file and the category, for messages. Raises NotComparableError where too little is
    left.
    """
    notes: list[str] = []
    varied, fixed = _varying(names, points, notes)
    if not varied:
        raise NotComparableError(
            f"has one configuration, and a map takes {LEAST_CONFIGURATIONS}",
            file=where,
            remedy="measure others, too",
        )
    measured = Measured(
        space_of([names[one] for one in varied], points[:, varied]),
        points[:, varied],
        tuple(runs),
        tuple(seconds),
        fixed,
    )
    measured = _without_equal_runs(measured, notes, where)
    measured = _with_merged_levels(measured, notes)
    if len(measured) < LEAST_CONFIGURATIONS:
        raise NotComparableError(
            f"has {plural(len(measured), 'configuration')} that vary, and a map takes"
            f" {LEAST_CONFIGURATIONS}",
            file=where,
            remedy="measure more",
        )
    if len(measured) > MOST_CONFIGURATIONS:
        notes.append(
            f"of {len(measured)} configurations, {MOST_CONFIGURATIONS} drawn at random are used"
        )
        drawn = np.random.default_rng(seed).choice(
            len(measured), MOST_CONFIGURATIONS, replace=False
        )
        measured = measured.only(np.sort(drawn).tolist())
    return Prepared(measured, tuple(notes))


def _varying(
    names: Sequence[str], points: Numbers, notes: list[str]
) -> tuple[list[int], dict[str, float]]:
    varied = [column for column in range(len(names)) if np.ptp(points[:, column]) > 0]
    fixed = {
        name: float(points[0, column]) for column, name in enumerate(names) if column not in varied
    }
    if varied:
        notes += [
            f"{name} is {short_number(value)} in every row, so the map says nothing of other values"
            for name, value in fixed.items()
        ]
    return varied, fixed


def _without_equal_runs(measured: Measured, notes: list[str], where: str) -> Measured:
    differ = np.array([np.ptp(one) > _LEAST_RANGE for one in measured.runs])
    kept = np.flatnonzero(differ)
    gone = len(measured) - len(kept)
    if not gone:
        return measured
    if not len(kept):
        raise NotComparableError(
            "all runs of every configuration are equal, so nothing varies",
            file=where,
            remedy="is --value the column that was measured?",
        )
    equal = plural(gone, "configuration")
    notes.append(f"all runs of {equal} are equal, which no logarithm can show; left out")
    return _respaced(measured.only(kept.tolist()))


def _respaced(measured: Measured) -> Measured:
    """The same in the space that is left. A parameter may have one value now: its axis stays."""
    axes = tuple(
        axis_of(axis.name, column) if np.ptp(column) > 0 else axis
        for axis, column in zip(measured.space.axes, measured.points.T, strict=True)
    )
    return Measured(Space(axes), measured.points, measured.runs, measured.seconds, measured.fixed)


def _with_merged_levels(measured: Measured, notes: list[str]) -> Measured:
    points = measured.points.copy()
    merged = False
    for column, axis in enumerate(measured.space.axes):
        for group in merged_levels(axis, points[:, column]):
            level = _usual(points[:, column], group)
            texts = ", ".join(f"{one:.6g}" for one in group)
            notes.append(f"{axis.name}: {texts} are nearly the same and count as {level:.6g}")
            points[np.isin(points[:, column], group), column] = level
            merged = True
    if not merged:
        return measured
    return _respaced(_joined(measured, points))


def _usual(values: Numbers, group: tuple[float, ...]) -> float:
    """The level of a group that most configurations have."""
    return max(group, key=lambda level: int(np.sum(values == level)))


def _joined(measured: Measured, points: Numbers) -> Measured:
    """Configurations that now are the same become one. Its runs keep their own deviations, about
    the common mean, so that a difference of the two is not taken for noise.
    """
    unique, numbers = np.unique(points, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    runs, seconds = [], []
    for number in range(len(unique)):
        rows = np.flatnonzero(numbers == number)
        mean = float(np.mean(measured.means[rows]))
        runs.append(
            np.concatenate([measured.runs[row] - measured.means[row] for row in rows]) + mean
        )
        if measured.seconds:
            seconds.append(np.concatenate([measured.seconds[row] for row in rows]))
    return Measured(measured.space, unique, tuple(runs), tuple(seconds), measured.fixed)
