"""The predictors that MOANA compares: functions of points and heights that give a surface.

Those on sigma itself are there for comparison; triangulation and MARS of log sigma may be chosen.
Beyond the measured points, those that use neighbours answer for the nearest point. Cameron et al.,
"MOANA: Modeling and Analyzing I/O Variability in Parallel System Experimental Design", IEEE TPDS
30(8), 2019.

The Gaussian process has a Matern covariance of smoothness 5/2, one length per axis, and a nugget;
all by maximum likelihood. Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006,
chapters 2 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ciwrap.base.errors import NotAvailableError
from ciwrap.base.late import numpy as np
from ciwrap.statistics.spread import scipy

if TYPE_CHECKING:
    from ciwrap.studies.variability.runs import Numbers, Places

    # Heights at places, a row for each.
    Surface = Callable[[Numbers], Numbers]

# A triangulation's size grows with the power of half the number of parameters.
MOST_PARAMETERS = 5
_INWARD = 1e-9
_REACH = 1.1

MOST_TERMS = 21
MOST_KNOTS = 20
DEGREE = 2
_PENALTY = 3.0
_LEAST_GAIN = 1e-3
_RIDGE = 1e-9

# A hinge: parameter, knot, +1 for max(0, x - knot) or -1 for max(0, knot - x). A term: a product.
Hinge = tuple[int, float, int]
Term = tuple[Hinge, ...]


def linear(points: Numbers, heights: Numbers) -> Surface:
    """The plane of least squares."""
    coefficients = np.linalg.lstsq(_with_one(points), heights, rcond=None)[0]
    return lambda places: np.asarray(_with_one(places) @ coefficients, np.float64)


def _with_one(columns: Numbers) -> Numbers:
    return np.column_stack([np.ones(len(columns)), columns])


def triangulate(points: Numbers, heights: Numbers) -> Surface:
    """Linear within each simplex of a Delaunay triangulation.

    Raises NotAvailableError if the points lie in a plane, or have too many parameters.
    """
    parameters = points.shape[1]
    if parameters == 1:
        order = np.argsort(points[:, 0])
        return lambda places: np.interp(places[:, 0], points[order, 0], heights[order])
    if parameters > MOST_PARAMETERS:
        raise NotAvailableError(f"takes too long with {parameters} parameters")
    spatial = scipy("spatial", "a variability map")
    interpolate = scipy("interpolate", "a variability map")
    try:
        inner = interpolate.LinearNDInterpolator(spatial.Delaunay(points), heights)
    except spatial.QhullError:
        raise NotAvailableError("the configurations lie in a plane in these units") from None
    nearest = interpolate.NearestNDInterpolator(points, heights)
    centre = points.mean(axis=0)

    def surface(places: Numbers) -> Numbers:
        # On the outermost faces, rounding decides what is inside: a step inwards settles that.
        found = inner(places + _INWARD * (centre - places))
        return np.asarray(np.where(np.isnan(found), nearest(places), found), np.float64)

    return surface


def shepard(points: Numbers, heights: Numbers) -> Surface:
    """Linear Shepard: planes through the points, each of which counts within a radius of its own;
    3 d / 2 neighbours decide each. Thacker et al., "Algorithm 905: SHEPPACK", ACM TOMS 37(3), 2010.
    """
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

    def surface(places: Numbers) -> Numbers:
        distances = _distances(places, points)
        planes = heights + np.einsum("pkd,kd->pk", places[:, np.newaxis, :] - points, slopes)
        weights = _weights(distances, radii[:, 0])
        # Beyond all radii, and on a point itself, the nearest point says it all.
        alone = ~np.any(weights, axis=1) | np.any(distances == 0, axis=1)
        weights[alone] = distances[alone] == distances[alone].min(axis=1, keepdims=True)
        return np.average(np.where(alone[:, np.newaxis], heights, planes), axis=1, weights=weights)

    return surface


def _distances(one: Numbers, other: Numbers) -> Numbers:
    found: Numbers = scipy("spatial.distance", "a variability map").cdist(one, other)
    return found


def _weights(distances: Numbers, radii: Numbers) -> Numbers:
    """((R - d) / (R d))^2 within the radius R, else 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.square((radii - distances) / (radii * distances))
    return np.where((distances > 0) & (distances < radii), weights, 0.0)


class Splines(Struct, frozen=True):
    """A sum of terms, each with its coefficient."""

    terms: tuple[Term, ...]
    coefficients: Numbers

    def __call__(self, places: Numbers) -> Numbers:
        found: Numbers = _columns(self.terms, places) @ self.coefficients
        return found


def fit_splines(points: Numbers, heights: Numbers) -> Splines:
    """Multivariate adaptive regression splines (MARS): sums of products of two hinges at most. A
    forward pass adds pairs of terms where they help most, up to 21; a backward pass drops terms by
    generalised cross validation. Friedman, The Annals of Statistics 19(1), 1991.
    """
    terms = _forward(points, heights)
    columns = _columns(terms, points)
    kept = _backward(columns, heights)
    coefficients = np.linalg.lstsq(columns[:, kept], heights, rcond=None)[0]
    return Splines(tuple(terms[one] for one in kept), coefficients.astype(np.float64))


def _columns(terms: tuple[Term, ...], points: Numbers) -> Numbers:
    columns = np.ones((len(points), len(terms)))
    for column, term in zip(columns.T, terms, strict=True):
        for parameter, knot, sign in term:
            column *= np.maximum(0.0, sign * (points[:, parameter] - knot))
    return columns


def _knots(values: Numbers) -> list[float]:
    """Levels at which a hinge may bend: all but the ends, or quantiles of many."""
    levels = np.unique(values)
    if len(levels) > MOST_KNOTS + 2:
        levels = np.unique(np.quantile(values, np.linspace(0, 1, MOST_KNOTS + 2)))
    return [float(one) for one in (levels[1:-1] if len(levels) > 2 else levels[:1])]


def _forward(points: Numbers, heights: Numbers) -> tuple[Term, ...]:
    hinges = [(number, knot) for number, column in enumerate(points.T) for knot in _knots(column)]
    terms: tuple[Term, ...] = ()
    fresh: tuple[Term, ...] = ((),)
    pairs: list[tuple[Term, Term]] = []
    # What the pairs, and the terms so far, leave unexplained.
    columns = np.empty((len(points), 0))
    left = heights - heights.mean()
    whole = float(left @ left)
    basis = np.full((len(points), 1), len(points) ** -0.5)
    while True:
        terms += fresh
        new: list[tuple[Term, Term]] = [
            ((*parent, (parameter, knot, 1)), (*parent, (parameter, knot, -1)))
            for parent in fresh
            if len(parent) < DEGREE
            for parameter, knot in hinges
            if all(parameter != used for used, _, _ in parent)
        ]
        if new:
            made = _scaled(_columns(tuple(term for pair in new for term in pair), points))
            columns = np.hstack([columns, made - basis @ (basis.T @ made)])
            pairs += new
        best, gain = _best_pair(columns, left)
        if len(terms) + 2 > MOST_TERMS or gain <= _LEAST_GAIN * whole:
            return terms
        fresh = pairs[best]
        more = _orthonormal(columns[:, 2 * best : 2 * best + 2])
        basis = np.hstack([basis, more])
        left = left - more @ (more.T @ left)
        columns = columns - more @ (more.T @ columns)


def _scaled(columns: Numbers) -> Numbers:
    lengths = np.linalg.norm(columns, axis=0)
    return columns / np.where(lengths > 0, lengths, 1.0)


def _best_pair(columns: Numbers, left: Numbers) -> tuple[int, float]:
    """Which couple of neighbouring columns explains most of what is left, and how much."""
    if not columns.size:
        return 0, 0.0
    one, other = columns[:, 0::2], columns[:, 1::2]
    # The ridge leaves one direction where a couple spans no more, and none where it is nothing.
    a, b = np.sum(one**2, axis=0) + _RIDGE, np.sum(other**2, axis=0) + _RIDGE
    between = np.sum(one * other, axis=0)
    u, v = left @ one, left @ other
    gains = (u**2 * b - 2 * u * v * between + v**2 * a) / (a * b - between**2)
    best = int(np.argmax(gains))
    return best, float(gains[best])


def _orthonormal(columns: Numbers) -> Numbers:
    left, scales, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, scales > 1e-4 * scales[0]]


def _backward(columns: Numbers, heights: Numbers) -> list[int]:
    """Drops the least useful column again and again; the best of all these sets by GCV stays."""
    # Of few rows, and every sum of squares of the columns is that of the same ones of the triangle.
    _, triangle = np.linalg.qr(np.column_stack([columns, heights]))

    def left(kept: list[int]) -> float:
        solved = np.linalg.lstsq(triangle[:, kept], triangle[:, -1], rcond=None)[0]
        return float(np.sum((triangle[:, -1] - triangle[:, kept] @ solved) ** 2))

    def gcv(kept: list[int]) -> float:
        spent = (len(kept) + _PENALTY * (len(kept) - 1) / 2) / len(heights)
        return left(kept) / (1 - spent) ** 2 if spent < 1 else math.inf

    sets = [list(range(columns.shape[1]))]
    while len(sets[0]) > 1:
        # The constant, which stands first, is never dropped.
        trials = [[one for one in sets[0] if one != gone] for gone in sets[0][1:]]
        sets.insert(0, min(trials, key=left))
    return min(sets, key=gcv)


MOST_FOR_LIKELIHOOD = 400
_FEW, _STEPS = 150, 8
# Beyond these, a longer length and a larger signal make the same surface.
LENGTHS = (0.03, 10.0)
SIGNAL = (0.05, 10.0)
NUGGET = (1e-6, 4.0)
_STARTS = (0.5, 2.0)
_ROOT = math.sqrt(5)


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """What a process takes for granted of its surface, whose points are scaled to variance 1.

    lengths: on each axis, over which the surface changes. signal: its variance. nugget: the
    variance of the points about it.
    """

    lengths: tuple[float, ...]
    signal: float
    nugget: float


class Process(Struct, frozen=True):
    """A surface. kernel: as fitted. mean, scale: of the points' heights."""

    kernel: Kernel
    unit: Numbers
    mean: float
    scale: float
    _factor: Any
    _weights: Numbers

    def heights(self, unit: Numbers) -> Numbers:
        """The surface at places in the unit cube."""
        across = _covariance(unit, self.unit, self.kernel)
        return np.asarray(self.mean + self.scale * across @ self._weights, np.float64)

    def variances(self, unit: Numbers) -> Numbers:
        """How unsure the surface is there, as a variance; without the noise of a measurement."""
        across = _covariance(unit, self.unit, self.kernel)
        solved = scipy("linalg", "a variability map").cho_solve(self._factor, across.T)
        known = np.sum(across * solved.T, axis=1)
        return np.asarray(self.scale**2 * np.maximum(self.kernel.signal - known, 0.0))

    def shares(self, unit: Numbers) -> Numbers:
        """By how much each point's height counts at these places: a row for each place."""
        across = _covariance(unit, self.unit, self.kernel)
        found: Numbers = scipy("linalg", "a variability map").cho_solve(self._factor, across.T).T
        return found


def fit_process(unit: Numbers, heights: Numbers, kernel: Kernel) -> Process:
    """The process through points of these heights."""
    mean, scale = float(heights.mean()), float(heights.std()) or 1.0
    scaled = (heights - mean) / scale
    covariance = _covariance(unit, unit, kernel) + kernel.nugget * np.eye(len(unit))
    linalg = scipy("linalg", "a variability map")
    factor = linalg.cho_factor(covariance, lower=True)
    return Process(kernel, unit, mean, scale, factor, linalg.cho_solve(factor, scaled))


def likeliest_kernel(
    unit: Numbers, heights: Numbers, start: Kernel | None = None, seed: int = 0
) -> Kernel:
    """The kernel under which points of these heights are likeliest, by L-BFGS-B.

    Few of the points, drawn at random, tell roughly, from two starts; then 400 at most tell more
    exactly. start: a kernel that fits nearly the same points, which few of them then mend.
    """
    generator = np.random.default_rng(seed)
    axes = unit.shape[1]
    scaled = (heights - heights.mean()) / (heights.std() or 1.0)
    if start is not None:
        logs = np.log([*start.lengths, start.signal, start.nugget])
        return _kernel(_likeliest(unit, scaled, [logs], _FEW, _STEPS, generator))
    starts = [np.log([*[length] * axes, 1.0, 0.05]) for length in _STARTS]
    rough = _likeliest(unit, scaled, starts, _FEW, 4 * _STEPS, generator)
    return _kernel(_likeliest(unit, scaled, [rough], MOST_FOR_LIKELIHOOD, _STEPS, generator))


def _kernel(logs: Numbers) -> Kernel:
    *lengths, signal, nugget = np.exp(logs).tolist()
    return Kernel(tuple(lengths), signal, nugget)


def _likeliest(
    unit: Numbers,
    scaled: Numbers,
    starts: list[Numbers],
    most: int,
    steps: int,
    generator: np.random.Generator,
) -> Numbers:
    """The likeliest logarithms of lengths, signal and nugget, given `most` of the points."""
    if len(unit) > most:
        drawn = generator.choice(len(unit), most, replace=False)
        unit, scaled = unit[drawn], scaled[drawn]
    squares = (unit[:, np.newaxis, :] - unit[np.newaxis, :, :]).transpose(2, 0, 1) ** 2
    limits = np.log([*[LENGTHS] * unit.shape[1], SIGNAL, NUGGET])
    minimize = scipy("optimize", "a variability map").minimize
    found = [
        minimize(
            _unlikeliness,
            np.clip(one, *limits.T),
            args=(squares, scaled),
            jac=True,
            method="L-BFGS-B",
            bounds=limits,
            options={"maxiter": steps, "ftol": 1e-6},
        )
        for one in starts
    ]
    best: Numbers = min(found, key=lambda result: float(result.fun)).x
    return best


def _unlikeliness(logs: Numbers, squares: Numbers, scaled: Numbers) -> tuple[float, Numbers]:
    """Minus the logarithm of the likelihood, and its slopes along the logarithms."""
    *lengths, signal, nugget = np.exp(logs)
    parts = squares / np.square(lengths)[:, np.newaxis, np.newaxis]
    distance = _ROOT * np.sqrt(parts.sum(axis=0))
    decay = np.exp(-distance)
    smooth = signal * (1 + distance + distance**2 / 3) * decay
    linalg = scipy("linalg", "a variability map")
    factor = linalg.cholesky(smooth + nugget * np.eye(len(scaled)), lower=True, check_finite=False)
    inverse, _ = linalg.lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weights = inverse @ scaled
    value = 0.5 * float(scaled @ weights) + float(np.log(np.diag(factor)).sum())
    pull = inverse - np.outer(weights, weights)
    steep = pull * (signal * 5 / 3 * (1 + distance) * decay)
    slopes = [float(np.sum(steep * part)) for part in parts]
    slopes += [float(np.sum(pull * smooth)), float(nugget * np.trace(pull))]
    return value, 0.5 * np.array(slopes)


def _covariance(one: Numbers, other: Numbers, kernel: Kernel) -> Numbers:
    lengths = np.array(kernel.lengths)
    across = scipy("spatial.distance", "a variability map")
    distance = _ROOT * across.cdist(one / lengths, other / lengths)
    found: Numbers = kernel.signal * (1 + distance + distance**2 / 3) * np.exp(-distance)
    return found


if TYPE_CHECKING:
    Method = Callable[[Numbers, Numbers], Surface]

GAUSSIAN_PROCESS = "Gaussian process"


class Predictor(Protocol):
    """A fitted predictor: configurations to standard deviations. These may come out negative where
    a method does not know better.
    """

    def __call__(self, places: Places, /) -> Numbers: ...


class Fit(Protocol):
    """Fits a predictor. warm: the kernel of an earlier fit to nearly the same points."""

    def __call__(self, places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor: ...


def _gaussian_process(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:
    logs = np.log(sigma)
    process = fit_process(places.unit, logs, likeliest_kernel(places.unit, logs, warm))
    return lambda at: np.exp(process.heights(at.unit))


def _constant(points: Numbers, heights: Numbers) -> Surface:  # noqa: ARG001
    return lambda places: np.full(len(places), heights.mean())


def _quadratic(points: Numbers, heights: Numbers) -> Surface:
    rows, columns = np.triu_indices(points.shape[1])

    def with_products(places: Numbers) -> Numbers:
        return np.column_stack([places, places[:, rows] * places[:, columns]])

    inner = linear(with_products(points), heights)
    return lambda places: inner(with_products(places))


def _on_raw(method: Method) -> Fit:
    """A method on sigma itself over the parameters in their own units, as MOANA uses it."""

    def fit(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
        surface = method(places.raw, sigma)
        return lambda at: surface(at.raw)

    return fit


def _on_logs(method: Method) -> Fit:
    """A method on log sigma over the unit cube. A slope that nothing bounds is never
    exponentiated: no further than what was measured allows.
    """

    def fit(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
        surface = method(places.unit, np.log(sigma))
        low, high = np.log(sigma.min()) - 1, np.log(sigma.max()) + 1
        return lambda at: np.exp(np.clip(surface(at.unit), low, high))

    return fit


PREDICTORS: Mapping[str, Fit] = {
    GAUSSIAN_PROCESS: _gaussian_process,
    "log-quadratic": _on_logs(_quadratic),
    "Delaunay log": _on_logs(triangulate),
    "Delaunay": _on_raw(triangulate),
    "LSP": _on_raw(shepard),
    "MARS log": _on_logs(fit_splines),
    "MARS": _on_raw(fit_splines),
    "linear regression": _on_raw(linear),
    "constant": _on_logs(_constant),
}
