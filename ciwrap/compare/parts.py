"""Pieces of a variable's result: index ranges, differing elements, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ciwrap import _core
from ciwrap.arrays.convert import is_bfloat16, widen_bfloat16
from ciwrap.arrays.shown import text_literals
from ciwrap.arrays.values import DEFAULT_SLAB_BYTES, as_bytes
from ciwrap.late import numpy as np
from ciwrap.model import ChunkRange, DifferingElement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

MOST_RANGES = 20
MOST_ELEMENTS = 10
MOST_INDICES = 100
# Up to about so many, a loop is faster than several calls of NumPy.
_FEW = 64

# Both sides' elements from a flat index on, and so many: one-dimensional arrays.
ReadBoth: TypeAlias = "Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]]"
# Both sides' elements at these flat indices.
ReadElements: TypeAlias = "Callable[[Sequence[int]], tuple[NDArray[Any], NDArray[Any]]]"


def to_index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An element's position in C order as its index in the variable's own dimensions."""
    if len(shape) == 1:
        return (int(flat),)
    index = []
    for size in reversed(shape):
        flat, position = divmod(int(flat), size)
        index.append(position)
    return tuple(reversed(index))


def chunk_elements(parameters: _core.TreeParameters) -> int:
    return max(1, parameters.chunk_scalars // parameters.scalars_per_element)


def runs_of(leaves: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending leaves as runs of neighbours: (first, last), both included."""
    if leaves.size < _FEW:
        runs: list[tuple[int, int]] = []
        for leaf in leaves.tolist():
            if runs and leaf == runs[-1][1] + 1:
                runs[-1] = (runs[-1][0], leaf)
            else:
                runs.append((leaf, leaf))
        return runs
    breaks = np.flatnonzero(np.diff(leaves) != 1)
    firsts = leaves[np.concatenate(([0], breaks + 1))]
    lasts = leaves[np.concatenate((breaks, [leaves.size - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def suspect_pieces(
    parameters: _core.TreeParameters,
    values: Values,
    leaves: NDArray[np.int64] | None,
    slab_bytes: int = DEFAULT_SLAB_BYTES,
) -> Iterator[tuple[int, int]]:
    """(first element, count) of the chunks in `leaves` (None: all), of at most a slab each."""
    step = max(1, slab_bytes // max(1, values.item_bytes))
    if leaves is None:
        ranges = [(0, values.element_count)]
    else:
        per_chunk = chunk_elements(parameters)
        ranges = [
            (first * per_chunk, min((last + 1) * per_chunk, values.element_count))
            for first, last in runs_of(leaves)
        ]
    for begin, end in ranges:
        for first in range(begin, end, step):
            yield first, min(step, end - first)


def suspect_ranges(
    suspects: NDArray[np.int64],
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    count: int,
) -> tuple[tuple[ChunkRange, ...], int, int]:
    """Suspect leaves (ascending) as ranges of elements.

    Returns the first few ranges, how many there are, and how many elements lie in all of them.
    """
    if suspects.size == 0:
        return (), 0, 0
    per_chunk = chunk_elements(parameters)
    runs = runs_of(suspects)
    ranges = []
    for first_leaf, last_leaf in runs[:MOST_RANGES]:
        first = first_leaf * per_chunk
        last = min((last_leaf + 1) * per_chunk, count) - 1
        ranges.append(
            ChunkRange(
                first_element=first,
                last_element=last,
                first_index=to_index(first, shape),
                last_index=to_index(last, shape),
                chunk_count=last_leaf - first_leaf + 1,
            )
        )
    short = (int(suspects[-1]) + 1) * per_chunk - count
    total = int(suspects.size) * per_chunk - max(0, short)
    return tuple(ranges), len(runs), total


def value_texts(elements: NDArray[Any], dtype: str) -> list[str]:
    """Each element as a text that reads back as the same value: `0.1`, `nan`, `b'ab'`."""
    if is_bfloat16(dtype):
        elements = widen_bfloat16(elements)
    if elements.dtype.kind in "SU":
        return text_literals(elements)
    return [str(element) for element in elements]


def read_each(read: ReadBoth, flats: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Elements here and there, by a function that reads some in a row."""
    golden, new = zip(*(read(flat, 1) for flat in flats), strict=True)
    return _joined(golden), _joined(new)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    # np.concatenate would turn the bytes of arrays that are stored in the other order.
    data = b"".join(as_bytes(part).tobytes() for part in parts)
    return np.frombuffer(data, dtype=parts[0].dtype)


def judged_elements(
    flats: Sequence[int],
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    read: ReadElements,
) -> tuple[DifferingElement, ...]:
    """Elements by flat index, with both values and how far the core sees them apart."""
    if not flats:
        return ()
    golden, new = read(flats)
    rows = zip(
        flats,
        value_texts(golden, parameters.dtype),
        value_texts(new, parameters.dtype),
        _core.compare_each(parameters, as_bytes(golden), as_bytes(new)),
        strict=True,
    )
    return tuple(
        DifferingElement(
            index=to_index(flat, shape),
            golden=one,
            new=two,
            abs_difference=difference,
            bound_share=share,
            rel_difference=relative,
            ulps=ulps,
        )
        for flat, one, two, (difference, share, relative, ulps) in rows
    )
