"""What a run's values have in common with a golden that keeps no values, but their residues.

A residue says where in its cell a golden value lay. A guess is undone on the new values, and they
are rounded as the golden's were: if it is right, nearly all residues agree. Wrong guesses make them
agree as often as chance does, so a few hundred values leave no doubt.
"""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import chunk_elements
from ciwrap.explain.difference import MOST_OF_THEM
from ciwrap.explain.hypotheses import exact_factors
from ciwrap.explain.moved import MOST_ROWS
from ciwrap.model.variable_result import Cause, Explanation, IndexBox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# So many values of the blocks that may differ are looked at first, and so many at least are needed.
_SAMPLE, _FEWEST = 2048, 40
# Of what is moved, so many values at least have a place that they come from.
_LEAST_INSIDE = 0.7
# The odds of agreeing by chance, below which a guess is told.
_CHANCE = 1e-12
# Residues of values elsewhere: how often these agree is what chance does in this array.
_ELSEWHERE = (1, 7, 61, 257)
_MOST_COMPONENTS = 3


class _Guess(Struct, frozen=True):
    """told: without its counts. undone: the new values with the guess undone, as the golden would
    have them. shift: (axis, rows) that values are moved by, so that some come from nowhere.
    """

    told: Explanation
    undone: NDArray[Any]
    shift: tuple[int, int] | None = None


def by_residues(
    tree: _core.Tree, new: NDArray[Any], leaves: NDArray[np.int64]
) -> Explanation | None:
    """The first guess that nearly all residues of the suspect chunks agree with; None if there is
    none, or if the tree has no residues.

    new: all values, in their shape, of the tree's own dtype. leaves: the suspect chunks.
    """
    parameters = tree.parameters
    if tree.residues is None or parameters.scalars_per_element > 1 or not new.shape:
        return None
    per_chunk = chunk_elements(parameters)
    at = np.concatenate(
        [np.arange(leaf * per_chunk, min((leaf + 1) * per_chunk, new.size)) for leaf in leaves]
    )
    kept = np.concatenate([tree.leaf_residues(leaf) for leaf in leaves.tolist()])
    residues = _Residues(parameters, kept)
    indices = np.unravel_index(at, new.shape)
    step = max(1, at.size // _SAMPLE)
    for guess in _guesses(new):
        inside = _inside(guess, indices)
        if np.count_nonzero(inside) < _LEAST_INSIDE * at.size:
            continue
        # NumPy gives some results in the machine's byte order.
        flat = guess.undone.reshape(-1).astype(new.dtype, copy=False)
        some = np.flatnonzero(inside)[::step]
        if not residues.agree(some, flat[at[some]]):
            continue
        held = residues.agree(np.flatnonzero(inside), flat[at[inside]])
        if held >= MOST_OF_THEM * np.count_nonzero(inside):
            return replace(guess.told, held_count=held, differing_count=int(at.size))
    return None


def nan_box(tree: _core.Tree, new: NDArray[Any], leaves: NDArray[np.int64]) -> str:
    """Where the NaN of the suspect chunks are: `[20:30, 5:25]`; '' if there are none."""
    if new.dtype.kind != "f" or not new.shape:
        return ""
    at = np.flatnonzero(np.isnan(new))
    # In a chunk that matches, the golden is NaN as well.
    at = at[np.isin(at // chunk_elements(tree.parameters), leaves)]
    if not at.size:
        return ""
    indices = np.unravel_index(at, new.shape)
    ends = [(int(axis.min()), int(axis.max())) for axis in indices]
    box = IndexBox(tuple(low for low, _ in ends), tuple(high for _, high in ends))
    return box.as_slices(new.shape)


class _Residues:
    """Those of the golden's values in the suspect chunks."""

    def __init__(self, parameters: _core.TreeParameters, kept: NDArray[np.uint8]) -> None:
        self._parameters, self._kept = parameters, kept.astype(np.int64)
        self._levels = parameters.residue_levels
        # Noise within some half of the bound leaves a residue in its place.
        self._near = (self._levels - 1) // 4

    def agree(self, places: NDArray[np.int64], values: NDArray[Any]) -> int:
        """How many values agree with the residues at these places; 0 if these are too few, or as
        many as chance, or any other place, makes agree.
        """
        if values.size < _FEWEST:
            return 0
        _, found = _core.cell_codes(self._parameters, as_bytes(values))
        if found is None:
            return 0
        own = found.astype(np.int64)
        share = self._share(own, self._kept[places])
        by_chance = max(self._share(own, np.roll(self._kept[places], by)) for by in _ELSEWHERE)
        by_chance = max(by_chance, (2 * self._near + 1) / self._levels)
        if share < MOST_OF_THEM or by_chance >= 0.9:
            return 0
        is_sure = values.size * _information(share, by_chance) > -math.log(_CHANCE)
        return round(share * values.size) if is_sure else 0

    def _share(self, own: NDArray[np.int64], golden: NDArray[np.int64]) -> float:
        apart = (own - golden) % self._levels
        return float(np.mean(np.minimum(apart, self._levels - apart) <= self._near))


def _information(share: float, by_chance: float) -> float:
    """How unlikely a share is for each value (the logarithm of the odds) that chance makes."""
    rest = 1 - share
    lost = rest * math.log(rest / (1 - by_chance)) if rest else 0.0
    return share * math.log(share / by_chance) + lost


def _guesses(new: NDArray[Any]) -> Iterator[_Guess]:
    shape = new.shape
    if new.dtype.kind == "f":
        with np.errstate(all="ignore"):
            yield _Guess(_told(Cause.SIGN_FLIPPED), -new)
            for factor, words in exact_factors():
                undone = (new / factor).astype(new.dtype)
                told = replace(_told(Cause.CONSTANT_FACTOR), values=(factor,), words=words)
                yield _Guess(told, undone)
    if new.dtype.itemsize > 1:
        yield _Guess(_told(Cause.BYTE_ORDER), new.byteswap())
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    for one, other in combinations(wide, 2):
        if shape[one] == shape[other]:
            yield _Guess(_told(Cause.TRANSPOSED, one, other), new.swapaxes(one, other))
    if len(wide) > 1:
        yield _Guess(_told(Cause.COLUMNS_FIRST), new.reshape(-1).reshape(shape, order="F"))
    for axis in wide:
        yield from _exchanged(new, axis)
        for rows in range(1, min(MOST_ROWS, shape[axis] - 1) + 1):
            for by in (rows, -rows):
                told = replace(_told(Cause.SHIFTED, axis), values=(float(by),))
                yield _Guess(told, np.roll(new, -by, axis=axis), (axis, by))


def _exchanged(new: NDArray[Any], axis: int) -> Iterator[_Guess]:
    """Two or three components of an axis in each other's place."""
    count = new.shape[axis]
    if count > _MOST_COMPONENTS:
        return
    for order in permutations(range(count)):
        moved = [at for at, one in enumerate(order) if at != one]
        if moved:
            come = tuple(float(order[at]) for at in moved)
            told = replace(_told(Cause.EXCHANGED, axis), values=come)
            yield _Guess(told, np.take(new, np.argsort(order), axis=axis))


def _told(cause: Cause, *axes: int) -> Explanation:
    return Explanation(cause, 0, 0, axes=axes, of_residues=True)


def _inside(guess: _Guess, indices: tuple[NDArray[np.int64], ...]) -> NDArray[np.bool_]:
    """Which of the golden's values are somewhere in the new ones, if the guess is right."""
    if guess.shift is None:
        return np.ones(indices[0].size, dtype=np.bool_)
    axis, by = guess.shift
    rows = indices[axis] + by
    found: NDArray[np.bool_] = (rows >= 0) & (rows < guess.undone.shape[axis])
    return found
