"""Factors that are switched on and off: which runs to make, and what they say of each factor.

A cell is a choice of on or off for each factor. Designs as in Box, Hunter and Hunter, "Statistics
for Experimenters", 2005.
"""

from __future__ import annotations

from itertools import combinations, compress
from typing import TYPE_CHECKING, Any, Literal

from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Design = Literal["full", "fractional", "one-at-a-time"]
Cell = tuple[bool, ...]
LEAST_RUNS_PER_CELL = 2
# Generators of fractions of resolution IV: no factor is mixed up with another one, nor with any
# interaction of two. The columns beyond the base are products of three base columns.
_BASE = {5: 4, 6: 4, 7: 4, 8: 4}
_GENERATORS = ((0, 1, 2), (1, 2, 3), (0, 2, 3), (0, 1, 3))
_PERMUTATIONS = 999
_TRIALS = 200
_SMALLEST = 1e-300  # a distance of 0 has no logarithm
_ROUNDING = 1e-9


def cells_of(design: Design, factors: int) -> list[Cell]:
    """The cells of a design, each once; the first one has all factors off.

    Raises ValueError for a fraction of less than 5 or more than 8 factors.
    """
    if design == "one-at-a-time":
        off = (False,) * factors
        return [off, *(tuple(n == one for n in range(factors)) for one in range(factors))]
    if design == "full":
        return [_cell(number, factors) for number in range(2**factors)]
    if factors not in _BASE:
        raise ValueError(f"a fraction of resolution IV is for 5 to 8 factors, not {factors}")
    base = _BASE[factors]
    generators = _GENERATORS[: factors - base]
    return [
        (*cell, *(_parity(cell, one) for one in generators))
        for cell in (_cell(number, base) for number in range(2**base))
    ]


def _cell(number: int, factors: int) -> Cell:
    return tuple(bool(number >> position & 1) for position in range(factors))


def _parity(cell: Cell, columns: Sequence[int]) -> bool:
    return sum(cell[one] for one in columns) % 2 == 1


class DifferingShare(Struct, frozen=True):
    """Pairs of runs, and how many of them have different results.

    factor: the position of the only factor in which the two runs differ; None for pairs of runs of
    one cell.
    """

    factor: int | None
    pairs: int
    differing: int

    @property
    def share(self) -> float | None:
        return self.differing / self.pairs if self.pairs else None


def differing_shares(cells: Sequence[Cell], classes: Sequence[int]) -> list[DifferingShare]:
    """For pairs of one cell, then for each factor, how often results differ.

    cells: of each run; classes: equal numbers for equal results of a run.
    """
    width = len(cells[0]) if cells else 0
    counts = {one: [0, 0] for one in (None, *range(width))}
    for one, other in combinations(range(len(cells)), 2):
        changed = [n for n in range(width) if cells[one][n] != cells[other][n]]
        if len(changed) > 1:
            continue
        count = counts[changed[0] if changed else None]
        count[0] += 1
        count[1] += classes[one] != classes[other]
    return [DifferingShare(factor, *count) for factor, count in counts.items()]


def what_factors_do(cells: Sequence[Cell], classes: Sequence[int]) -> dict[int, bool]:
    """Whether each factor changes the result, where runs of one cell are all equal; a factor that
    nothing is known of is missing.

    Where pairs differ in one factor only, these decide. In a fraction no pair does: a factor is
    cleared there by two equal runs that differ in it, and found guilty by two unequal runs that
    differ in it and in cleared ones alone; that holds where factors act each by itself. Runs of one
    cell that are not all equal say nothing here.
    """
    shares = differing_shares(cells, classes)
    if shares[0].differing:
        return {}
    alone = {one.factor for one in shares if one.factor is not None and one.pairs}
    guilty = {one.factor for one in shares if one.factor is not None and one.differing}
    pairs = [
        ({n for n, (a, b) in enumerate(zip(cells[i], cells[j], strict=True)) if a != b}, i, j)
        for i, j in combinations(range(len(cells)), 2)
    ]
    cleared = alone - guilty
    for changed, i, j in pairs:
        if classes[i] == classes[j]:
            cleared |= changed - guilty
    left = [changed - cleared for changed, i, j in pairs if classes[i] != classes[j]]
    guilty |= {factor for one in left if len(one) == 1 for factor in one}
    return dict.fromkeys(cleared, False) | dict.fromkeys(guilty, True)


class Effect(Struct, frozen=True):
    """What switching a factor does to a response.

    factor: its position. size: the mean response with it on, less that with it off. p: how often so
    large an effect comes by chance, corrected for the number of effects looked at.
    """

    factor: int
    size: float
    p: float


def spread_response(values: NDArray[Any], cells: Sequence[Cell]) -> NDArray[np.float64]:
    """ln |x - median of its cell|: how far each run lies from the middle of its own cell.

    The run that is nearest to the middle says nothing, NaN: of an odd number it is the median, of
    an even one its distance is that of its neighbour once more, and to count it twice is to find
    effects where there are none.
    """
    values = np.asarray(values, float)
    labels = np.array([_number(cell) for cell in cells])
    response = np.empty(values.size)
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        response[inside] = np.abs(values[inside] - np.median(values[inside]))
        response[inside[np.argmin(response[inside])]] = np.nan
    # Equal runs have no spread, of which there is no logarithm.
    smallest = np.min(response[response > 0], initial=np.inf)
    floor = smallest if np.isfinite(smallest) else _SMALLEST
    return np.log(np.maximum(response, floor))


def effects(
    response: NDArray[Any],
    cells: Sequence[Cell],
    *,
    seed: int = 0,
    permutations: int = _PERMUTATIONS,
) -> list[Effect]:
    """Effects of all factors, by least squares on contrasts of -1 and +1.

    p by permuting the runs over the cells; the largest of all effects is what each one is held
    against (Westfall and Young), so that many effects are no cause of alarm. Factors that the cells
    cannot tell from others are left out, and so are runs whose response is NaN.
    """
    response = np.asarray(response, float)
    told = np.isfinite(response)
    response = response[told]
    contrasts, factors = _contrasts(list(compress(cells, told)))
    if not factors:
        return []
    centred = response - response.mean()
    solve = np.linalg.pinv(contrasts)
    sizes = 2 * (solve @ centred)
    generator = np.random.default_rng(seed)
    shuffled = generator.permuted(np.tile(centred, (permutations, 1)), axis=1)
    largest = np.abs(2 * (shuffled @ solve.T)).max(axis=1)
    # An order that makes the same effect counts, though its sum is rounded in another way.
    least = np.abs(sizes) * (1 - _ROUNDING)
    return [
        Effect(factor, float(size), float((1 + np.sum(largest >= one)) / (permutations + 1)))
        for factor, size, one in zip(factors, sizes, least, strict=True)
    ]


def power(cells: Sequence[Cell], *, seed: int = 0) -> float:
    """The chance to find, at a level of 5 %, that one cell spreads five times as much as the
    others, by 200 simulations.

    The cell is the one with the most factors on; cells: of each run. What spreads are distances
    from a reference that is as quiet as the others, as those of repeated runs are: they tell less
    than the values themselves. 0 if there is but one cell.
    """
    generator = np.random.default_rng(seed)
    loud = max(set(cells), key=lambda cell: (sum(cell), cell))
    scale = np.array([5.0 if cell == loud else 1.0 for cell in cells])
    found = 0
    for trial in range(_TRIALS):
        values = np.abs(generator.normal(0, scale) - generator.normal())
        response = spread_response(values, cells)
        tested = effects(response, cells, seed=seed + trial, permutations=199)
        found += any(one.p <= 0.05 for one in tested)
    return found / _TRIALS


def _contrasts(cells: Sequence[Cell]) -> tuple[NDArray[np.float64], list[int]]:
    """Columns of -1 and +1 of the factors that are not combinations of others."""
    signs = np.where(np.array(cells, dtype=bool), 1.0, -1.0)
    width = signs.shape[1] if signs.ndim == 2 else 0
    factors: list[int] = []
    kept = np.ones((len(cells), 1))
    for factor in range(width):
        more = np.column_stack([kept, signs[:, factor]])
        if np.linalg.matrix_rank(more) > kept.shape[1]:
            kept = more
            factors.append(factor)
    columns = kept[:, 1:]
    return columns - columns.mean(axis=0), factors


def _number(cell: Cell) -> int:
    return sum(1 << position for position, is_on in enumerate(cell) if is_on)
