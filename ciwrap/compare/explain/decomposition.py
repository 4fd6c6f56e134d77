"""Whether the ranks of two runs hold the same numbers, dealt out in another way."""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ciwrap.compare.explain.difference import MOST_OF_THEM
from ciwrap.details import Cause, Explanation
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.model import ErrorBound

    Parts = Sequence[NDArray[Any]]

# Of so few rows some are equal by chance.
_FEWEST_ROWS = 3
# Ranks are put together in grids of two axes, which are many ways for many ranks.
_MOST_RANKS = 256


def other_decomposition(golden: Parts, new: Parts, bound: ErrorBound | None) -> Explanation | None:
    """The explanation, if one array was cut among the ranks in two ways: first its rows, wherever
    each of them went, then blocks of one or two axes.

    golden, new: the arrays of one variable, in the order of their ranks.
    """
    count = sum(part.size for part in golden)
    every = (*golden, *new)
    is_possible = count == sum(part.size for part in new) and len(every) > 2
    is_possible &= len({part.ndim for part in every}) == 1 and golden[0].ndim > 0
    is_possible &= len({part.dtype for part in every}) == 1 and golden[0].dtype.kind in "iufcb"
    if not is_possible or max(len(golden), len(new)) > _MOST_RANKS:
        return None
    flat = np.concatenate([part.reshape(-1) for part in golden])
    if not flat.size or bool(np.all(flat == flat[0])):
        return None
    # What is equal where it is needs no explanation.
    differing = count - _equal_in_place(golden, new, bound)
    ranks = (float(len(golden)), float(len(new)))
    for held, words, remedy in (
        (_same_rows(golden, new), "rows", "across_ranks: true"),
        (_same_whole(golden, new, bound), "array", None),
    ):
        told = differing - (count - held)
        if held and told >= MOST_OF_THEM * differing and told > 0:
            return Explanation(
                Cause.ACROSS_RANKS, told, differing, values=ranks, words=words, remedy=remedy
            )
    return None


def _equal_in_place(golden: Parts, new: Parts, bound: ErrorBound | None) -> int:
    """How many elements are equal within the bound where they are; 0 for ranks of other shapes."""
    if [part.shape for part in golden] != [part.shape for part in new]:
        return 0
    return sum(_equal_count(one, other, bound) for one, other in zip(golden, new, strict=True))


def _equal_count(one: NDArray[Any], other: NDArray[Any], bound: ErrorBound | None) -> int:
    atol, rtol = (0.0, 0.0) if bound is None else (bound.atol, bound.rtol)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        golden, new = one.astype(wide), other.astype(wide)
        near = np.abs(new - golden) <= atol + rtol * np.abs(golden)
        return int(np.count_nonzero(near | (golden == new)))


def _same_rows(golden: Parts, new: Parts) -> int:
    """How many elements are in rows that both sides have, to the last bit; 0 if there are few rows,
    or if each rank has its own rows still.
    """
    if len({part.shape[1:] for part in (*golden, *new)}) > 1:
        return 0
    sides = [[_row_keys(part) for part in parts] for parts in (golden, new)]
    if len(golden) == len(new) and all(map(_is_same_set, *sides)):
        return 0
    (ours, our_counts), (theirs, their_counts) = (
        np.unique(np.concatenate(keys), return_counts=True) for keys in sides
    )
    _, mine, other = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    common = int(np.minimum(our_counts[mine], their_counts[other]).sum())
    total = int(our_counts.sum())
    # Of few different rows, any may be taken for the others elsewhere.
    if total < _FEWEST_ROWS or ours.size <= 0.5 * total:
        return 0
    return common * (sum(part.size for part in golden) // total)


def _row_keys(part: NDArray[Any]) -> NDArray[Any]:
    """A key of bytes for each row."""
    # Of a rank without rows, too: its keys stand beside those of the others.
    flat = np.ascontiguousarray(part).reshape(len(part), math.prod(part.shape[1:]))
    # Bytes are sorted by their values as text is.
    return flat.view(np.dtype(("S", flat.dtype.itemsize * flat.shape[1]))).reshape(-1)


def _is_same_set(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    return ours.size == theirs.size and bool(np.all(np.sort(ours) == np.sort(theirs)))


def _same_whole(golden: Parts, new: Parts, bound: ErrorBound | None) -> int:
    """How many elements are equal within the bound, in the way of putting both sides together in
    which most are; 0 if none fits.
    """
    wholes = list(_wholes(new))
    best = 0
    for one in _wholes(golden):
        for other in wholes:
            if one.shape == other.shape:
                best = max(best, _equal_count(one, other, bound))
    return best


def _wholes(parts: Parts) -> Iterator[NDArray[Any]]:
    """The array that the parts may have been cut from, in each way in which they fit: in a row
    along one axis, or in a grid of two axes, of which the second one is counted through first.
    """
    wide = np.complex128 if parts[0].dtype.kind == "c" else np.float64
    blocks = [part.astype(wide) for part in parts]
    axes = range(parts[0].ndim)
    for axis in axes:
        yield from _joined([blocks], axis, axis)
    for rows in range(2, len(blocks)):
        columns, rest = divmod(len(blocks), rows)
        if rest or columns < 2:
            continue
        grid = [blocks[row * columns : (row + 1) * columns] for row in range(rows)]
        for outer, inner in permutations(axes, 2):
            yield from _joined(grid, outer, inner)


def _joined(grid: list[list[NDArray[Any]]], outer: int, inner: int) -> Iterator[NDArray[Any]]:
    """The blocks of a grid as one array; nothing where they do not fit."""
    try:
        lines = [np.concatenate(blocks, axis=inner) for blocks in grid]
        yield lines[0] if len(lines) == 1 else np.concatenate(lines, axis=outer)
    except ValueError:
        return
