"""All predictors of a standard deviation by name, each fitted to measured configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.late import numpy as np
from ciwrap.variability.gaussian_process import Kernel, fit_process, likeliest_kernel
from ciwrap.variability.local import shepard, triangulate
from ciwrap.variability.splines import fit_splines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ciwrap.variability.space import Numbers, Places

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
    scaled = (logs - logs.mean()) / (logs.std() or 1.0)
    kernel = likeliest_kernel(places.unit, scaled, warm)
    process = fit_process(places.unit, logs, kernel)
    return lambda at: np.exp(process.heights(at.unit))


def _constant(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
    middle = float(np.exp(np.log(sigma).mean()))
    return lambda at: np.full(len(at), middle)


def _linear(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
    coefficients = np.linalg.lstsq(_with_one(places.raw), sigma, rcond=None)[0]
    return lambda at: _with_one(at.raw) @ coefficients


def _log_quadratic(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
    coefficients = np.linalg.lstsq(_quadratic(places.unit), np.log(sigma), rcond=None)[0]
    # An unbounded slope is never exponentiated: no further than what was measured allows.
    low, high = np.log(sigma.min()) - 1, np.log(sigma.max()) + 1
    return lambda at: np.exp(np.clip(_quadratic(at.unit) @ coefficients, low, high))


def _on_raw(
    method: Callable[[Numbers, Numbers], Callable[[Numbers], Numbers]],
) -> Fit:
    """A method on sigma itself over the parameters in their own units, as MOANA uses it."""

    def fit(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
        inner = method(places.raw, sigma)
        return lambda at: inner(at.raw)

    return fit


def _on_logs(
    method: Callable[[Numbers, Numbers], Callable[[Numbers], Numbers]],
) -> Fit:
    """A method on log sigma over the unit cube."""

    def fit(places: Places, sigma: Numbers, warm: Kernel | None = None) -> Predictor:  # noqa: ARG001
        inner = method(places.unit, np.log(sigma))
        low, high = np.log(sigma.min()) - 1, np.log(sigma.max()) + 1
        return lambda at: np.exp(np.clip(inner(at.unit), low, high))

    return fit


PREDICTORS: Mapping[str, Fit] = {
    GAUSSIAN_PROCESS: _gaussian_process,
    "log-quadratic": _log_quadratic,
    "Delaunay log": _on_logs(triangulate),
    "Delaunay": _on_raw(triangulate),
    "LSP": _on_raw(shepard),
    "MARS log": _on_logs(fit_splines),
    "MARS": _on_raw(fit_splines),
    "linear regression": _linear,
    "constant": _constant,
}


def _with_one(columns: Numbers) -> Numbers:
    return np.column_stack([np.ones(len(columns)), columns])


def _quadratic(unit: Numbers) -> Numbers:
    """1, every coordinate, and every product of two."""
    rows, columns = np.triu_indices(unit.shape[1])
    return np.column_stack([_with_one(unit), unit[:, rows] * unit[:, columns]])
