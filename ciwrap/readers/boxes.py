"""Pieces of a flat C order, out of storage that hands out boxes (hyperslabs) of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

Lengths = tuple[int, ...]
# A row of chunks is unpacked once and kept if it is no larger than this; each of its chunks would
# otherwise be unpacked once for every piece that touches it.
MOST_KEPT_BYTES = 64 << 20

# The first index along each axis, and the one behind the last.
Edges = Sequence[tuple[int, int]]
_MOST_PARTS = 1 << 26


def are_filled(whole: Edges, boxes: Sequence[Edges]) -> bool:
    """Whether boxes, which may overlap, leave out nothing of a whole.

    Raises CorruptFileError if there are too many of too many different edges to tell.
    """
    # Between the edges of any two neighbouring boxes all is in the same boxes.
    edges = [
        np.unique([edge for box in (*boxes, whole) for edge in box[axis]])
        for axis in range(len(whole))
    ]
    lengths = [len(one) - 1 for one in edges]
    if math.prod(lengths) > _MOST_PARTS:
        raise CorruptFileError("has too many pieces of too many different extents")
    is_held = np.zeros(lengths, dtype=bool)
    for box in boxes:
        is_held[_between(edges, box)] = True
    return bool(is_held[_between(edges, whole)].all())


def _between(edges: Sequence[NDArray[Any]], box: Edges) -> tuple[slice, ...]:
    return tuple(
        slice(*np.searchsorted(along, ends).tolist())
        for along, ends in zip(edges, box, strict=True)
    )


def boxes_of(shape: Lengths, first: int, count: int) -> Iterator[tuple[Lengths, Lengths]]:
    """Boxes (start, lengths) that hold elements first .. first + count - 1, in C order.

    At most two for each dimension and one.
    """
    while count > 0:
        for axis in range(len(shape)):
            inner = math.prod(shape[axis + 1 :])
            if first % inner == 0 and count >= inner:
                break
        else:  # a single number
            yield (), ()
            return
        index = tuple(int(n) for n in np.unravel_index(first, shape))
        rows = min(count // inner, shape[axis] - index[axis])
        yield index, (*(1,) * axis, rows, *shape[axis + 1 :])
        first += rows * inner
        count -= rows * inner


def box_reader(array: Any) -> Callable[[Lengths, Lengths], NDArray[Any]]:
    """Boxes of an array that takes slices, such as a dataset of h5py; a single number as it is."""

    def read(start: Lengths, lengths: Lengths) -> NDArray[Any]:
        box = tuple(slice(at, at + length) for at, length in zip(start, lengths, strict=True))
        return np.asarray(array[box] if box else array[...])

    return read


def joined(parts: Iterator[NDArray[Any]], count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Pieces one after another, in a byte order that np.concatenate would not keep."""
    first = next(parts)
    if first.size == count:
        return first
    found = np.empty(count, dtype=dtype)
    done = first.size
    found[:done] = first
    for part in parts:
        found[done : done + part.size] = part
        done += part.size
    if done != count:
        raise ValueError(f"{done} elements where {count} were asked for")
    return found


class FlatReader:
    """Elements of an array in C order.

    read_box(start, lengths) gives a box of it, of any shape with so many elements.
    chunk_rows: how many rows of the first axis are stored in one chunk; 0 if it is not chunked.
    Memory is bounded by what is asked for and MOST_KEPT_BYTES.
    """

    def __init__(
        self,
        shape: Lengths,
        dtype: np.dtype[Any],
        read_box: Callable[[Lengths, Lengths], Any],
        chunk_rows: int = 0,
    ) -> None:
        self._shape = shape
        self._dtype = dtype
        self._read_box = read_box
        self._row = math.prod(shape[1:])
        row_bytes = max(1, self._row * dtype.itemsize)
        fits = chunk_rows > 0 and chunk_rows * row_bytes <= MOST_KEPT_BYTES
        self._kept_rows = min(chunk_rows, shape[0]) if fits and shape else 0
        self._kept: NDArray[Any] | None = None
        self._kept_first = 0

    def read(self, first: int, count: int) -> NDArray[Any]:
        """Elements first .. first + count - 1 as a contiguous one-dimensional array."""
        if count == 0:
            return np.empty(0, dtype=self._dtype)
        return joined(self._parts(first, count), count, self._dtype)

    def _parts(self, first: int, count: int) -> Iterator[NDArray[Any]]:
        if not self._kept_rows:
            for start, lengths in boxes_of(self._shape, first, count):
                yield self._box(start, lengths)
            return
        end = first + count
        while first < end:
            row = first // self._row
            block = row - row % self._kept_rows
            if self._kept is None or self._kept_first != block * self._row:
                rows = min(self._kept_rows, self._shape[0] - block)
                start = (block, *(0,) * (len(self._shape) - 1))
                self._kept = None
                self._kept = self._box(start, (rows, *self._shape[1:]))
                self._kept_first = block * self._row
            within = first - self._kept_first
            piece = self._kept[within : within + end - first]
            yield piece.copy()
            first += piece.size

    def _box(self, start: Lengths, lengths: Lengths) -> NDArray[Any]:
        found = np.asarray(self._read_box(start, lengths))
        flat: NDArray[Any] = np.ascontiguousarray(found, dtype=self._dtype).reshape(-1)
        if flat.size != math.prod(lengths):
            raise ValueError(f"{flat.size} elements where {math.prod(lengths)} were asked for")
        return flat
