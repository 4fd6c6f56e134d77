"""Which parameters drive the variability: an analysis of variance of log sigma.

Main effects and interactions of two, with the levels of each parameter as classes. Sums of squares
are of type II: what a term explains beyond all others that do not contain it, so that tables with
missing configurations are judged fairly. Box, Hunter and Hunter, "Statistics for Experimenters",
2005.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.variability.measured import Measured
    from ciwrap.variability.space import Numbers

    Classes = NDArray[np.intp]

_STEPS = (20, 15, 12, 10, 8, 6, 5, 4, 3, 2)
_LEFT_SHARE = 0.4


class Influence(Struct, frozen=True):
    """One parameter, or two that act together.

    share: of the variance of log sigma that it explains. p: how often chance alone explains as
    much. factor: the largest mean sigma of its levels over the smallest one; for two parameters,
    what remains of that when the effect of each alone is taken away.
    """

    parameters: tuple[str, ...]
    share: float
    degrees: int
    p: float
    factor: float


class Influences(Struct, frozen=True):
    """terms: the largest share first. left: the share that no term explains. degrees_left: degrees
    of freedom that are left for it. grouped: parameters of whose many levels several are one class.
    with_pairs: whether interactions could be looked at.
    """

    terms: tuple[Influence, ...]
    left: float
    degrees_left: int
    grouped: tuple[str, ...]
    with_pairs: bool


def influences(measured: Measured) -> Influences | None:
    """The analysis, or None where there are too few configurations for main effects.

    Levels are grouped until two fifths of the degrees of freedom are left for noise.
    """
    response = np.log(measured.sigma)
    names = [axis.name for axis in measured.space.axes]
    for with_pairs in (True, False):
        for most in _STEPS:
            classes = [_classes(column, most) for column in measured.places.unit.T]
            if _degrees(classes, with_pairs) <= (1 - _LEFT_SHARE) * (len(response) - 1):
                grouped = tuple(
                    name
                    for name, column in zip(names, measured.points.T, strict=True)
                    if len(np.unique(column)) > most
                )
                return _analysis(names, classes, response, grouped, with_pairs)
    return None


def _classes(unit: Numbers, most: int) -> Classes:
    """A class for each level; neighbours share one where there are more levels than `most`."""
    levels, numbers = np.unique(unit, return_inverse=True)
    numbers = numbers.reshape(-1)
    if len(levels) > most:
        numbers = numbers * most // len(levels)
    return numbers


def _degrees(classes: list[Classes], with_pairs: bool) -> int:
    widths = [len(np.unique(one)) - 1 for one in classes]
    pairs = sum(a * b for a, b in combinations(widths, 2)) if with_pairs else 0
    return sum(widths) + pairs


def _analysis(
    names: list[str],
    classes: list[Classes],
    response: Numbers,
    grouped: tuple[str, ...],
    with_pairs: bool,
) -> Influences:
    contrasts: dict[tuple[int, ...], Numbers] = {
        (n,): _contrasts(one) for n, one in enumerate(classes)
    }
    if with_pairs:
        for one, other in combinations(range(len(names)), 2):
            a, b = contrasts[one,], contrasts[other,]
            contrasts[one, other] = (a[:, :, None] * b[:, None, :]).reshape(len(response), -1)
    centred = response - response.mean()
    whole = float(centred @ centred)
    everything, rank = _unexplained(list(contrasts.values()), centred)
    degrees_left = len(response) - 1 - rank
    terms = [
        _influence(term, names, classes, contrasts, centred, everything, degrees_left)
        for term in contrasts
    ]
    terms.sort(key=lambda one: -one.share)
    return Influences(tuple(terms), everything / whole, degrees_left, grouped, with_pairs)


def _influence(
    term: tuple[int, ...],
    names: list[str],
    classes: list[Classes],
    contrasts: dict[tuple[int, ...], Numbers],
    centred: Numbers,
    everything: float,
    degrees_left: int,
) -> Influence:
    # All terms that do not contain this one, and the same with it.
    others = [columns for key, columns in contrasts.items() if not set(term) <= set(key)]
    without, rank_without = _unexplained(others, centred)
    with_it, rank_with = _unexplained([*others, contrasts[term]], centred)
    degrees = rank_with - rank_without
    explained = max(without - with_it, 0.0)
    whole = float(centred @ centred)
    p = 1.0
    if degrees and degrees_left and everything > 0:
        f = (explained / degrees) / (everything / degrees_left)
        p = float(scipy("stats", "an analysis of variance").f.sf(f, degrees, degrees_left))
    elif degrees and explained > 0:
        p = 0.0
    return Influence(
        tuple(names[one] for one in term),
        explained / whole,
        degrees,
        p,
        _factor([classes[one] for one in term], centred),
    )


def _contrasts(numbers: Classes) -> Numbers:
    """Columns that tell the classes from their mean: 1 for a class, -1 for the last one."""
    levels = np.unique(numbers)
    columns: Numbers = (numbers[:, None] == levels[None, :-1]).astype(np.float64)
    columns[numbers == levels[-1]] = -1.0
    return columns


def _unexplained(parts: list[Numbers], centred: Numbers) -> tuple[float, int]:
    """The squares that these columns leave, and how many of them are independent."""
    columns = np.hstack([np.empty((len(centred), 0)), *parts])
    if not columns.shape[1]:
        return float(centred @ centred), 0
    columns = columns - columns.mean(axis=0)
    scales, turned = np.linalg.eigh(columns.T @ columns)
    usable = scales > 1e-10 * scales[-1]
    along = turned[:, usable].T @ (columns.T @ centred)
    left = float(centred @ centred) - float(np.sum(along**2 / scales[usable]))
    return max(left, 0.0), int(np.sum(usable))


def _factor(classes: list[Classes], centred: Numbers) -> float:
    """The range of the means of the classes, as a factor of sigma."""
    if len(classes) == 1:
        means = [float(centred[classes[0] == one].mean()) for one in np.unique(classes[0])]
        return float(np.exp(max(means) - min(means)))
    one, other = classes
    means = []
    for a in np.unique(one):
        for b in np.unique(other):
            cell = centred[(one == a) & (other == b)]
            if cell.size:
                alone = centred[one == a].mean() + centred[other == b].mean()
                means.append(float(cell.mean() - alone))
    return float(np.exp(max(means) - min(means)))
