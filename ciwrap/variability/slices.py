"""Slices through a map, to be drawn: two parameters vary, the others are held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.variability.document import Slice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.variability.fitted import FittedMap
    from ciwrap.variability.space import Numbers

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
