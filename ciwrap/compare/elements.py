"""The one place that feeds the core's element comparison from values; files take the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.compare.parts import MOST_INDICES, suspect_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.compare.work import Work

# The core cuts what it is given into waves, two of which are under way at a time.
_DEVICE_SLAB_BYTES = 1 << 30


def compare_elements(
    work: Work,
    parameters: _core.TreeParameters,
    reference: Values,
    new: Values,
    leaves: NDArray[np.int64] | None = None,
    *,
    reference_trees: Sequence[_core.TreeBuilder] = (),
    new_trees: Sequence[_core.TreeBuilder] = (),
) -> _core.Comparison:
    """Compares the elements of two variables of one dtype and shape, reading each once.

    leaves: the chunks to compare, ascending; None: all. reference_trees, new_trees: builders that
    take all of a side's values on the way, where all chunks are compared. Where one side lies on a
    device, that compares, and what of the other is on the host goes there. Memory: some MiB of each
    side. Raises CiwrapError for what cannot be read.
    """
    device = reference.device or new.device
    comparer = _core.ElementComparer(
        parameters,
        max_indices=MOST_INDICES,
        backend=work.resources.backend if device is None else device.backend,
        threads=work.resources.threads,
    )
    if device is not None:
        _feed_whole(reference, reference_trees)
        _feed_whole(new, new_trees)
        for first, count in suspect_pieces(parameters, reference, leaves, _DEVICE_SLAB_BYTES):
            comparer.update_device(
                _on_device(reference, first, count),
                _on_device(new, first, count),
                first_element=first,
                element_count=count,
            )
        return comparer.finish()
    for first, count in suspect_pieces(parameters, reference, leaves):
        ours, theirs = as_bytes(reference.read(first, count)), as_bytes(new.read(first, count))
        for builder in reference_trees:
            builder.update(ours)
        for builder in new_trees:
            builder.update(theirs)
        comparer.update(ours, theirs, first_element=first)
        work.progress.advance(theirs.nbytes)
    return comparer.finish()


def _feed_whole(values: Values, builders: Sequence[_core.TreeBuilder]) -> None:
    for builder in builders:
        if values.device is not None:
            builder.update_device(values.device.array)
        else:
            for _, slab in values.slabs():
                builder.update(as_bytes(slab))


def _on_device(values: Values, first: int, count: int) -> Any:
    """An array on a device as a whole, or the bytes of some elements."""
    if values.device is not None:
        return values.device.array
    return as_bytes(values.read(first, count))
