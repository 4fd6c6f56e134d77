"""What lies between the measured configurations, and what beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy

if TYPE_CHECKING:
    from ciwrap.variability.space import Numbers

# How much a share that the weights' sum is off 1 counts beside a distance.
_SUM = 1e3
_INWARD = 1e-6


def is_inside(unit: Numbers, place: Numbers) -> bool:
    """Whether a place is a mean of the measured ones with some weights: a linear program."""
    equal = np.vstack([unit.T, np.ones(len(unit))])
    found = scipy("optimize", "a variability map").linprog(
        np.zeros(len(unit)), A_eq=equal, b_eq=np.append(place, 1.0), method="highs"
    )
    return bool(found.status == 0)


def nearest_inside(points: Numbers, place: Numbers) -> Numbers:
    """The nearest place between the points, drawn a millionth towards their centre so that rounding
    leaves it inside.
    """
    centre, scale = points.mean(axis=0), np.ptp(points, axis=0)
    scaled = (points - centre) / scale
    matrix = np.vstack([scaled.T, np.full(len(points), _SUM)])
    target = np.append((place - centre) / scale, _SUM)
    weights, _ = scipy("optimize", "a variability map").nnls(matrix, target)
    found: Numbers = centre + (1 - _INWARD) * (weights @ scaled / weights.sum()) * scale
    return found
