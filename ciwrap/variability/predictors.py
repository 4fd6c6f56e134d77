"""All predictors of a standard deviation by name, each fitted to measured configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.late import numpy as np
from ciwrap.variability.gaussian_process import Kernel, fit_process, likeliest_kernel
from ciwrap.variability.published import fit_splines, linear, shepard, triangulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ciwrap.variability.published import Surface
    from ciwrap.variability.space import Numbers, Places

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
