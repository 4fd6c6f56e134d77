"""Multivariate adaptive regression splines (MARS): sums of products of hinges.

Friedman, "Multivariate Adaptive Regression Splines", The Annals of Statistics 19(1), 1991. A
forward pass adds pairs of hinges where they help most; a backward pass drops terms by generalised
cross validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from ciwrap.variability.space import Numbers

MOST_TERMS = 21
MOST_KNOTS = 20
DEGREE = 2
_PENALTY = 3.0
_LEAST_GAIN = 1e-3
_TINY = 1e-10

# A hinge: parameter, knot, +1 for max(0, x - knot) or -1 for max(0, knot - x). A term: a product.
Hinge = tuple[int, float, int]
Term = tuple[Hinge, ...]


class Splines(Struct, frozen=True):
    """A sum of terms, each with its coefficient."""

    terms: tuple[Term, ...]
    coefficients: Numbers

    def __call__(self, places: Numbers) -> Numbers:
        found: Numbers = _columns(self.terms, places) @ self.coefficients
        return found


def fit_splines(points: Numbers, heights: Numbers) -> Splines:
    """Splines of degree 2 at most, with 21 terms at most before some are dropped."""
    forward = _forward(points, heights)
    terms = _backward(forward, points, heights)
    columns = _columns(terms, points)
    coefficients = np.linalg.lstsq(columns, heights, rcond=None)[0]
    return Splines(terms, coefficients.astype(np.float64))


def _columns(terms: tuple[Term, ...], points: Numbers) -> Numbers:
    columns = [np.ones(len(points)) for _ in terms]
    for column, term in zip(columns, terms, strict=True):
        for parameter, knot, sign in term:
            column *= np.maximum(0.0, sign * (points[:, parameter] - knot))
    return np.column_stack(columns)


def _knots(values: Numbers) -> Numbers:
    """Levels at which a hinge may bend: all but the ends, or quantiles of many."""
    levels = np.unique(values)
    if len(levels) > MOST_KNOTS + 2:
        levels = np.quantile(values, np.linspace(0, 1, MOST_KNOTS + 2))
    inner = levels[1:-1] if len(levels) > 2 else levels[:1]
    return np.unique(inner)


def _forward(points: Numbers, heights: Numbers) -> tuple[Term, ...]:
    """Terms in pairs, each the pair that explains most of what is left."""
    hinges = [
        (parameter, float(knot))
        for parameter in range(points.shape[1])
        for knot in _knots(points[:, parameter])
    ]
    terms: list[Term] = [()]
    basis = np.ones((len(points), 1)) / np.sqrt(len(points))
    left = heights - heights.mean()
    whole = float(left @ left)
    pairs: list[tuple[Term, Term]] = []
    columns = np.empty((len(points), 0))
    fresh: list[Term] = [()]
    while len(terms) + 2 <= MOST_TERMS and whole > 0:
        new = _pairs(fresh, hinges)
        if new:
            made = _columns(tuple(term for pair in new for term in pair), points)
            columns = np.hstack([columns, made - basis @ (basis.T @ made)])
            pairs += new
        best, gain = _best_pair(columns, left)
        if gain < _LEAST_GAIN * whole:
            break
        chosen = columns[:, 2 * best : 2 * best + 2]
        more = _orthonormal(chosen)
        fresh = list(pairs[best])
        terms += fresh
        basis = np.hstack([basis, more])
        left = left - more @ (more.T @ left)
        columns = columns - more @ (more.T @ columns)
    return tuple(terms)


def _pairs(parents: list[Term], hinges: list[tuple[int, float]]) -> list[tuple[Term, Term]]:
    return [
        ((*parent, (parameter, knot, 1)), (*parent, (parameter, knot, -1)))
        for parent in parents
        if len(parent) < DEGREE
        for parameter, knot in hinges
        if all(parameter != used for used, _, _ in parent)
    ]


def _best_pair(columns: Numbers, left: Numbers) -> tuple[int, float]:
    """Which couple of neighbouring columns explains most of what is left, and how much."""
    if not columns.shape[1]:
        return 0, 0.0
    one, other = columns[:, 0::2], columns[:, 1::2]
    lengths = np.sum(columns**2, axis=0)
    floor = _TINY * max(float(lengths.max()), 1e-300)
    a, b = lengths[0::2], lengths[1::2]
    between = np.sum(one * other, axis=0)
    u, v = left @ one, left @ other
    area = a * b - between**2
    with np.errstate(divide="ignore", invalid="ignore"):
        both = (u**2 * b - 2 * u * v * between + v**2 * a) / area
        single = np.maximum(np.where(a > floor, u**2 / a, 0), np.where(b > floor, v**2 / b, 0))
    usable = (a > floor) & (b > floor) & (area > 1e-6 * a * b)
    gains = np.where(usable, both, single)
    best = int(np.argmax(gains))
    return best, float(gains[best])


def _orthonormal(columns: Numbers) -> Numbers:
    left, scales, _ = np.linalg.svd(columns, full_matrices=False)
    kept: Numbers = left[:, scales > 1e-4 * max(float(scales[0]), 1e-300)]
    return kept


def _backward(terms: tuple[Term, ...], points: Numbers, heights: Numbers) -> tuple[Term, ...]:
    """Drops the least useful term again and again; the best of all these sets by GCV stays."""
    columns = _columns(terms, points)
    lengths = np.sqrt(np.sum(columns**2, axis=0))
    columns = columns / np.where(lengths > 0, lengths, 1.0)
    gram, right = columns.T @ columns, columns.T @ heights
    total, count = float(heights @ heights), len(points)
    kept = list(range(len(terms)))
    best, lowest = kept, _gcv(_left(gram, right, total, kept), count, len(kept))
    while len(kept) > 1:
        # The constant is never dropped.
        trials = [[one for one in kept if one != gone] for gone in kept if gone != 0]
        lefts = [_left(gram, right, total, trial) for trial in trials]
        kept = trials[int(np.argmin(lefts))]
        score = _gcv(min(lefts), count, len(kept))
        if score <= lowest:
            best, lowest = kept, score
    return tuple(terms[one] for one in best)


def _left(gram: Numbers, right: Numbers, total: float, kept: list[int]) -> float:
    """The sum of squares that these columns leave."""
    inner = gram[np.ix_(kept, kept)] + 1e-12 * np.eye(len(kept))
    return max(total - float(right[kept] @ np.linalg.solve(inner, right[kept])), 0.0)


def _gcv(left: float, count: int, terms: int) -> float:
    spent = terms + _PENALTY * (terms - 1) / 2
    return left / (1 - spent / count) ** 2 if spent < count else float("inf")
