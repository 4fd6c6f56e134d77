"""Numbers that are right and stand elsewhere, or on another rank; differences at faces."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

from ciwrap.base.late import numpy as np
from ciwrap.check.solve import as_numbers
from ciwrap.explain.difference import MOST_OF_THEM
from ciwrap.model.variable_result import Cause, Explanation, layers_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.explain.difference import Difference
    from ciwrap.model import ErrorBound, VariableId

MOST_ROWS = 4
_MOST_LAYERS = 3
_MANY = 0.2
# Of the differing elements of what is moved, so many at least have a source.
_LEAST_INSIDE = 0.7
_SAMPLE = 512
# Of an axis that counts components.
_MOST_COMPONENTS = 16
_FEWEST_STRIPE_ROWS = 4
# Of the rows of a thread, so much at least differs.
_MOST_OF_ROWS = 0.9
_THREADS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# Of all stretches of about the same length, the share that threads are dealt, above which chance
# explains one of them as well; and what is about the same length.
_MOST_DEALT = 0.005
_ABOUT = 2**0.5
# The odds of lying at a face, or of finding the same numbers elsewhere, by chance, below which it
# is reported.
_CHANCE = 1e-6
_PAIRS = 256


MOVES = (
    Cause.TRANSPOSED,
    Cause.COLUMNS_FIRST,
    Cause.EXCHANGED,
    Cause.SHIFTED,
    Cause.OTHER_ORDER,
)


def moved_places(difference: Difference) -> list[Explanation]:
    """The first hypothesis that holds of numbers that stand elsewhere."""
    return [one for one in _moves(difference) if one is not None][:1]


def _moves(difference: Difference) -> Iterator[Explanation | None]:
    shape = difference.golden.shape
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]
    for one, other in combinations(wide, 2):
        if shape[one] == shape[other]:
            source = difference.golden.swapaxes(one, other)
            told = Explanation(Cause.TRANSPOSED, 0, 0, axes=(one, other))
            yield _if_from(difference, source, told)
    if len(wide) > 1:
        source = difference.golden.reshape(-1, order="F").reshape(shape)
        yield _if_from(difference, source, Explanation(Cause.COLUMNS_FIRST, 0, 0))
    for axis in wide:
        if shape[axis] <= _MOST_COMPONENTS:
            yield from _exchanged(difference, axis)
    for axis in wide:
        for rows in range(1, min(MOST_ROWS, shape[axis] - 1) + 1):
            for by in (rows, -rows):
                yield _shifted(difference, axis, by)
    yield _other_order(difference)


def _is_same(difference: Difference, source: NDArray[Any], new: NDArray[Any]) -> NDArray[np.bool_]:
    wide = np.complex128 if source.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = source.astype(wide), new.astype(wide)
        near = np.abs(one - other) <= difference.slack(source)
        same: NDArray[np.bool_] = near | (one == other) | (np.isnan(one) & np.isnan(other))
        return same


def _if_from(
    difference: Difference,
    source: NDArray[Any],
    hypothesis: Explanation,
    inside: NDArray[np.bool_] | None = None,
) -> Explanation | None:
    """The explanation, if most differing elements hold what stands in `source` at their place.

    inside: the differing elements that have a source; the others are counted as not explained.
    """
    inside = np.ones(difference.count, dtype=np.bool_) if inside is None else inside
    at = difference.positions[inside]
    if at.size < _LEAST_INSIDE * difference.count:
        return None
    flat, new = source.reshape(-1), difference.new.reshape(-1)
    some = at[:: max(1, at.size // _SAMPLE)]
    if np.count_nonzero(_is_same(difference, flat[some], new[some])) < 0.9 * some.size:
        return None
    held = _is_same(difference, flat[at], new[at])
    if not difference.is_most(held) or _is_by_chance(difference, flat, int(held.sum())):
        return None
    every = inside.copy()
    every[inside] = held
    facts = {"values": hypothesis.values, "axes": hypothesis.axes}
    return difference.explained(hypothesis.cause, every, **facts)


def _is_by_chance(difference: Difference, values: NDArray[Any], count: int) -> bool:
    """Whether so many numbers may well be those of any other place: of few values, as flags and
    materials have, many are equal wherever one looks.
    """
    some = values[:: max(1, values.size // _PAIRS)][:_PAIRS]
    equal = _is_same(difference, some[:, None], some[None, :])
    # Of each number with itself nothing is to be learnt; one pair more, so that none is impossible.
    pairs = some.size * (some.size - 1)
    share = (int(np.count_nonzero(equal)) - some.size + 1) / max(pairs, 1)
    return bool(count * np.log(min(max(share, 1e-300), 1.0)) > np.log(_CHANCE))


def _exchanged(difference: Difference, axis: int) -> Iterator[Explanation | None]:
    """Whether two or three components of an axis stand in each other's place."""
    index = np.unravel_index(difference.positions, difference.golden.shape)[axis]
    rows = [int(row) for row in np.unique(index)]
    if len(rows) not in (2, 3):
        return
    for by in range(1, len(rows)):
        order = np.arange(difference.golden.shape[axis])
        order[rows] = np.roll(rows, by)
        source = np.take(difference.golden, order, axis=axis)
        come = tuple(map(float, order[rows]))
        told = Explanation(Cause.EXCHANGED, 0, 0, values=come, axes=(axis,))
        yield _if_from(difference, source, told)


def _shifted(difference: Difference, axis: int, by: int) -> Explanation | None:
    """Whether new[i] = golden[i - by] along an axis."""
    shape = difference.golden.shape
    row = np.unravel_index(difference.positions, shape)[axis] - by
    inside = (row >= 0) & (row < shape[axis])
    source = np.roll(difference.golden, by, axis=axis)
    told = Explanation(Cause.SHIFTED, 0, 0, values=(by,), axes=(axis,))
    return _if_from(difference, source, told, inside)


def _other_order(difference: Difference) -> Explanation | None:
    """Whether the rows that differ are the same ones in another order, to the last bit."""
    golden, new = difference.golden, difference.new
    if not golden.shape:
        return None
    rows = np.unique(np.unravel_index(difference.positions, golden.shape)[0])
    if rows.size < 3:
        return None
    (one, ours), (other, theirs) = (
        np.unique(_row_keys(side[rows]), return_counts=True) for side in (golden, new)
    )
    _, mine, yours = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    share = int(np.minimum(ours[mine], theirs[yours]).sum()) / rows.size
    # Of few different rows, any may be taken for the others in another order.
    if share < MOST_OF_THEM or one.size <= 0.5 * rows.size:
        return None
    return Explanation(
        Cause.OTHER_ORDER,
        int(share * difference.count),
        difference.count,
        axes=(0,),
        remedy="align_by: ID",
    )


def _row_keys(rows: NDArray[Any]) -> NDArray[Any]:
    """A key of bytes for each row."""
    # Of a rank without rows, too: its keys stand beside those of the others.
    flat = np.ascontiguousarray(rows).reshape(len(rows), math.prod(rows.shape[1:]))
    # Bytes are sorted by their values as text is.
    return flat.view(np.dtype(("S", flat.dtype.itemsize * flat.shape[1]))).reshape(-1)


def in_a_stripe(difference: Difference) -> list[Explanation]:
    """Whether the rows that differ are those that one of several threads is dealt, all of them."""
    shape = difference.golden.shape
    for axis in range(min(2, len(shape))):
        rows = np.unique(np.unravel_index(difference.positions, shape)[axis])
        first, stop, count = int(rows[0]), int(rows[-1]) + 1, shape[axis]
        whole = rows.size * (difference.golden.size // count)
        is_dense = rows.size == stop - first and difference.count >= _MOST_OF_ROWS * whole
        if not is_dense or stop - first < _FEWEST_STRIPE_ROWS or stop - first > count // 2:
            continue
        dealt = _dealt_threads(count, (first, stop))
        if dealt is None or _dealt_share(count, stop - first) > _MOST_DEALT:
            continue
        told = Explanation(
            Cause.STRIPE,
            difference.count,
            difference.count,
            values=tuple(map(float, dealt)),
            axes=(axis,),
        )
        return [told]
    return []


def _dealt_threads(count: int, rows: tuple[int, int]) -> tuple[int, int] | None:
    """The thread that is dealt just these rows, and of how many threads; None if none is."""
    for threads in _THREADS:
        for thread, dealt in _dealt(count, threads):
            if dealt == rows:
                return thread, threads
    return None


def _dealt_share(count: int, length: int) -> float:
    """Of all stretches of rows of about this length, how many a thread may be dealt."""
    least, most = math.ceil(length / _ABOUT), min(count, math.floor(length * _ABOUT))
    every = sum(count - one + 1 for one in range(least, most + 1))
    dealt = {
        rows
        for threads in _THREADS
        for _, rows in _dealt(count, threads)
        if least <= rows[1] - rows[0] <= most
    }
    return len(dealt) / every


def _dealt(count: int, threads: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each thread, and the rows it is dealt by OpenMP's static schedule: as evenly as can be."""
    each, more = divmod(count, threads)
    start = 0
    for thread in range(threads):
        stop = start + each + (thread < more)
        yield thread, (start, stop)
        start = stop


def at_faces(difference: Difference) -> list[Explanation]:
    """Whether all lie within a few layers of the faces of the array."""
    shape = difference.golden.shape
    indices = np.unravel_index(difference.positions, shape) if shape else ()
    wide = [axis for axis, extent in enumerate(shape) if extent > 4 * _MOST_LAYERS]
    if not wide:
        return []
    depth = np.min(
        [np.minimum(indices[axis], shape[axis] - 1 - indices[axis]) for axis in wide], axis=0
    )
    layers = int(depth.max()) + 1
    inner = np.prod([(shape[axis] - 2 * layers) / shape[axis] for axis in wide])
    by_chance = difference.count * np.log(max(1 - float(inner), 1e-300))
    if layers > _MOST_LAYERS or by_chance > np.log(_CHANCE):
        return []
    return [
        Explanation(
            Cause.BOUNDARY,
            difference.count,
            difference.count,
            values=(float(layers),),
            axes=_touched(difference, wide, layers),
            words=_one_face(difference, wide, layers),
        )
    ]


def _one_face(difference: Difference, wide: list[int], layers: int) -> str | None:
    """What the face is called where all lie at the same one: `the last 2 columns`."""
    shape = difference.golden.shape
    indices = np.unravel_index(difference.positions, shape)
    for axis in wide:
        for is_last in (False, True):
            at = indices[axis]
            if np.all(at >= shape[axis] - layers if is_last else at < layers):
                which = "last" if is_last else "first"
                return f"the {which} {layers_text(axis, len(shape), layers)}"
    return None


def _touched(difference: Difference, wide: list[int], layers: int) -> tuple[int, ...]:
    """The axes at whose faces the elements lie: as few as there are none left without, and those at
    which many of them lie besides.
    """
    shape = difference.golden.shape
    indices = np.unravel_index(difference.positions, shape)
    near = {
        axis: np.minimum(indices[axis], shape[axis] - 1 - indices[axis]) < layers for axis in wide
    }
    left = np.ones(difference.count, dtype=np.bool_)
    found = []
    for axis in sorted(wide, key=lambda axis: -int(np.count_nonzero(near[axis]))):
        if np.any(near[axis] & left) or np.count_nonzero(near[axis]) > _MANY * difference.count:
            found.append(axis)
            left &= ~near[axis]
    return tuple(sorted(found))


if TYPE_CHECKING:
    Parts = Sequence[NDArray[Any]]

# Of so few rows some are equal by chance.
_FEWEST_EQUAL_ROWS = 3
# Ranks are put together in grids of two axes, which are many ways for many ranks.
_MOST_RANKS = 256


def arrays_of_ranks(
    parts: Iterable[tuple[VariableId, Values]], most_bytes: int
) -> list[NDArray[Any]]:
    """The arrays of all ranks, in the order of the ranks; none if they are too large together."""
    found: dict[int, NDArray[Any]] = {}
    size = 0
    for identity, values in parts:
        size += values.byte_count
        if size > most_bytes or identity.rank is None:
            return []
        numbers = as_numbers(values.read(0, values.element_count), values.dtype)
        if numbers is None:
            return []
        found[identity.rank] = numbers.reshape(values.shape)
    return [found[rank] for rank in sorted(found)]


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
    sides = [[np.sort(_row_keys(part)) for part in parts] for parts in (golden, new)]
    if len(golden) == len(new) and all(map(np.array_equal, *sides)):
        return 0
    (ours, our_counts), (theirs, their_counts) = (
        np.unique(np.concatenate(keys), return_counts=True) for keys in sides
    )
    _, mine, other = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    common = int(np.minimum(our_counts[mine], their_counts[other]).sum())
    total = int(our_counts.sum())
    # Of few different rows, any may be taken for the others elsewhere.
    if total < _FEWEST_EQUAL_ROWS or ours.size <= 0.5 * total:
        return 0
    return common * (sum(part.size for part in golden) // total)


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
