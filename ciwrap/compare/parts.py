"""Pieces of a variable's result: index ranges, differing elements, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap import _core
from ciwrap.compare.convert import is_bfloat16, widen_bfloat16
from ciwrap.golden.values import DEFAULT_SLAB_BYTES, as_bytes
from ciwrap.model import ChunkRange, DifferingElement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap.golden.values import Values

MOST_RANGES = 20
MOST_ELEMENTS = 10
MOST_INDICES = 100


def to_index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An element's position in C order as its index in the variable's own dimensions."""
    index = []
    for size in reversed(shape):
        flat, position = divmod(int(flat), size)
        index.append(position)
    return tuple(reversed(index))


def chunk_elements(parameters: _core.TreeParameters) -> int:
    return max(1, parameters.chunk_scalars // parameters.scalars_per_element)


def runs_of(leaves: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending leaves as runs of neighbours: (first, last), both included."""
    if leaves.size == 0:
        return []
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


def value_text(elements: NDArray[Any], dtype: str) -> str:
    """One element as a text that reads back as the same value: `0.1`, `nan`, `b'ab'`."""
    if is_bfloat16(dtype):
        elements = widen_bfloat16(elements)
    element = elements.reshape(-1)[0]
    if elements.dtype.kind in "SU":
        return repr(element.item())
    return str(element)


def differing_elements(
    comparison: _core.Comparison,
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    read_golden: Callable[[int], NDArray[Any]],
    read_new: Callable[[int], NDArray[Any]],
) -> tuple[DifferingElement, ...]:
    """The first differing elements with both values; each judged by the core itself."""
    flats = comparison.indices[:MOST_ELEMENTS].tolist()
    pairs = [(read_golden(flat).reshape(-1), read_new(flat).reshape(-1)) for flat in flats]
    return judged_elements(flats, parameters, shape, pairs)


def judged_elements(
    flats: Sequence[int],
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    pairs: Sequence[tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[DifferingElement, ...]:
    """Elements by flat index, with both values (arrays of one) and how far the core sees them
    apart.
    """
    if not flats:
        return ()
    judged = _core.compare_each(
        parameters,
        b"".join(as_bytes(golden).tobytes() for golden, _ in pairs),
        b"".join(as_bytes(new).tobytes() for _, new in pairs),
    )
    return tuple(
        DifferingElement(
            index=to_index(flat, shape),
            golden=value_text(golden, parameters.dtype),
            new=value_text(new, parameters.dtype),
            abs_difference=difference,
            bound_share=share,
            rel_difference=relative,
            ulps=ulps,
        )
        for flat, (golden, new), (difference, share, relative, ulps) in zip(
            flats, pairs, judged, strict=True
        )
    )


def statistics(
    comparison: _core.Comparison,
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    *,
    all_compared: bool,
) -> dict[str, Any]:
    """A comparison's numbers as fields of VariableResult.

    all_compared: whether its elements are all there are. If not, means and histogram would speak
    of a part only and are left out, and so are maxima unless something differs: a largest
    difference beyond the bound lies among the elements compared, one within it perhaps elsewhere.
    """
    fields: dict[str, Any] = {
        "nan_mismatch_count": int(comparison.nan_mismatch_count),
        "inf_mismatch_count": int(comparison.inf_mismatch_count),
        "missing_mismatch_count": int(comparison.missing_mismatch_count),
    }
    is_number = parameters.dtype[1:2] not in ("S", "U")
    if all_compared or comparison.differing_count or parameters.kind == "exact":
        fields["max_bound_share"] = float(comparison.max_bound_share)
        if is_number:
            fields["max_abs_difference"] = float(comparison.max_abs_difference)
            fields["max_rel_difference"] = float(comparison.max_rel_difference)
            if comparison.max_abs_index >= 0:
                fields["max_abs_index"] = to_index(comparison.max_abs_index, shape)
            if comparison.max_rel_index >= 0:
                fields["max_rel_index"] = to_index(comparison.max_rel_index, shape)
    if all_compared:
        fields["bound_share_histogram"] = tuple(int(count) for count in comparison.histogram)
        if is_number:
            fields["mean_abs_difference"] = float(comparison.mean_abs_difference)
            fields["mean_rel_difference"] = float(comparison.mean_rel_difference)
    return fields
