"""Predictors that look at neighbours: a Delaunay triangulation, and Shepard's method with planes.

Both know nothing beyond the measured configurations and answer there for the nearest place between
them. Thacker et al., "Algorithm 905: SHEPPACK", ACM TOMS 37(3), 2010.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.errors import NotAvailableError
from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.structs import Struct
from ciwrap.variability.hull import nearest_inside

if TYPE_CHECKING:
    from ciwrap.variability.space import Numbers

# A triangulation's size grows with the power of half the number of parameters.
MOST_PARAMETERS = 5
_REACH = 1.1
_INWARD = 1e-9


class Triangulation(Struct, frozen=True):
    """Heights, linear within each simplex of a Delaunay triangulation."""

    points: Numbers
    heights: Numbers
    _inner: Any

    def __call__(self, places: Numbers) -> Numbers:
        if self._inner is None:
            column = self.points[:, 0]
            order = np.argsort(column)
            return np.interp(places[:, 0], column[order], self.heights[order])
        found: Numbers = self._inner(places)
        # On the outermost faces, rounding decides what is inside: a step inwards settles that.
        edge = np.isnan(found)
        centre = self.points.mean(axis=0)
        found[edge] = self._inner(places[edge] + _INWARD * (centre - places[edge]))
        for row in np.flatnonzero(np.isnan(found)):
            found[row] = self._inner(nearest_inside(self.points, places[row]))[0]
            if np.isnan(found[row]):
                nearest = np.argmin(np.sum((self.points - places[row]) ** 2, axis=1))
                found[row] = self.heights[nearest]
        return found


def triangulate(points: Numbers, heights: Numbers) -> Triangulation:
    """The triangulation of the points. Raises NotAvailableError if they lie in a plane, or have too
    many parameters.
    """
    parameters = points.shape[1]
    if parameters == 1:
        return Triangulation(points, heights, None)
    if parameters > MOST_PARAMETERS:
        raise NotAvailableError(f"takes too long with {parameters} parameters")
    spatial = scipy("spatial", "a variability map")
    try:
        inner = spatial.Delaunay(points)
    except spatial.QhullError:
        raise NotAvailableError("the configurations lie in a plane") from None
    interpolate = scipy("interpolate", "a variability map")
    return Triangulation(points, heights, interpolate.LinearNDInterpolator(inner, heights))


class Shepard(Struct, frozen=True):
    """Planes through the points, each of which counts within a radius of its own."""

    points: Numbers
    heights: Numbers
    slopes: Numbers
    radii: Numbers

    def __call__(self, places: Numbers) -> Numbers:
        distances = _distances(places, self.points)
        steps = places[:, np.newaxis, :] - self.points[np.newaxis, :, :]
        planes = self.heights + np.einsum("pkd,kd->pk", steps, self.slopes)
        weights = _weights(distances, self.radii[np.newaxis, :])
        total = weights.sum(axis=1)
        nearest = np.argmin(distances, axis=1)
        # Beyond all radii, and on a point itself, the nearest point says it all.
        alone = (total <= 0) | (distances[np.arange(len(places)), nearest] == 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.sum(weights * planes, axis=1) / total
        found: Numbers = np.where(alone, self.heights[nearest], means)
        return found


def shepard(points: Numbers, heights: Numbers) -> Shepard:
    """The linear Shepard predictor of the points: 3 d / 2 neighbours decide each plane."""
    count, parameters = points.shape
    near = min(count - 1, math.ceil(3 * parameters / 2))
    distances = _distances(points, points)
    order = np.argsort(distances, axis=1, kind="stable")[:, 1 : near + 1]
    radii = _REACH * np.take_along_axis(distances, order[:, -1:], axis=1)
    weights = np.sqrt(_weights(np.take_along_axis(distances, order, axis=1), radii))
    steps = (points[order] - points[:, np.newaxis, :]) * weights[:, :, np.newaxis]
    rises = (heights[order] - heights[:, np.newaxis]) * weights
    # The smallest slopes that fit, where neighbours do not span every direction.
    slopes = np.einsum("kdn,kn->kd", np.linalg.pinv(steps, rcond=1e-9), rises)
    return Shepard(points, heights, slopes, radii[:, 0])


def _distances(one: Numbers, other: Numbers) -> Numbers:
    found: Numbers = scipy("spatial.distance", "a variability map").cdist(one, other)
    return found


def _weights(distances: Numbers, radii: Numbers) -> Numbers:
    """((R - d) / (R d))^2 within the radius R, else 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Numbers = np.where(
            (distances > 0) & (distances < radii),
            np.square((radii - distances) / (radii * distances)),
            0.0,
        )
    return found
