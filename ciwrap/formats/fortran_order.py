"""Arrays that are stored in Fortran's order, read in pieces in C order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# Runs of fewer bytes cost more as single reads than the bytes between them cost in one long read.
_SHORT_RUN_BYTES = 512
_STRETCH_BYTES = 4 * 1024 * 1024
# Turned around at a time. An array of n times this size is read up to n times over, which is why it
# is large against what is asked for.
BUFFER_BYTES = 128 * 1024 * 1024
_FEW_ELEMENTS = 4096


class FortranOrder:
    """The elements of an array in Fortran order.

    read_at(offset, count) gives bytes of the stored array. Elements are counted in C order of
    `shape`. Memory is at most twice BUFFER_BYTES (or twice the array, if that is smaller) and a few
    MiB, besides what is asked for. It is good at reading on from where the last piece ended.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        read_at: Callable[[int, int], bytes | bytearray],
    ) -> None:
        self._shape = shape
        self._dtype = dtype
        self._read_at = read_at
        self._buffer: NDArray[Any] = np.empty(0, dtype=dtype)
        self._buffer_first = 0
        self._last_end = 0

    def read(self, first: int, count: int) -> NDArray[Any]:
        """Elements first .. first + count - 1 as a one-dimensional array."""
        is_stray = first != self._last_end and count <= _FEW_ELEMENTS
        self._last_end = first + count
        out = np.empty(count, dtype=self._dtype)
        done = 0
        while done < count:
            position = first + done
            if not 0 <= position - self._buffer_first < self._buffer.size:
                if is_stray:
                    piece = self._piece(position, count - done)
                    out[done : done + piece.size] = piece
                    done += piece.size
                    continue
                self._fill(position)
            start = position - self._buffer_first
            piece = self._buffer[start : start + count - done]
            out[done : done + piece.size] = piece
            done += piece.size
        return out

    def _fill(self, position: int) -> None:
        """Turns around the block that holds an element: as many whole rows as the buffer may
        have.
        """
        self._buffer = np.empty(0, dtype=self._dtype)
        most = max(1, BUFFER_BYTES // self._dtype.itemsize)
        axis, inner = 0, math.prod(self._shape[1:])
        while inner > most:
            axis += 1
            inner //= self._shape[axis]
        first = position - position % inner
        row = first // inner % self._shape[axis]
        self._buffer = self._read_block(first, axis, min(most // inner, self._shape[axis] - row))
        self._buffer_first = first

    def _piece(self, first: int, count: int) -> NDArray[Any]:
        """Up to `count` elements from `first` on: the whole rows, along some axis, that begin
        there.
        """
        for axis in range(len(self._shape)):
            inner = math.prod(self._shape[axis + 1 :])
            if first % inner == 0 and count >= inner:
                row = first // inner % self._shape[axis]
                return self._read_block(first, axis, min(count // inner, self._shape[axis] - row))
        raise AssertionError("the last axis has rows of one value")

    def _read_block(self, first: int, axis: int, block: int) -> NDArray[Any]:
        """`block` rows along `axis`, whose first element is `first`, in C order."""
        shape = self._shape
        index = np.unravel_index(first, shape)
        # In the file: stride of `axis` is `below`; the axes after it follow in steps of `step`.
        below = math.prod(shape[:axis])
        step = below * shape[axis]
        base = sum(int(index[n]) * math.prod(shape[:n]) for n in range(axis))
        start = int(index[axis])
        inner_shape = shape[axis + 1 :]
        inner = math.prod(inner_shape)
        found = np.empty((inner, block), dtype=self._dtype)
        item = self._dtype.itemsize
        span = ((block - 1) * below + 1) * item
        first_of_row = start * below + base
        if step * item <= _STRETCH_BYTES and (span < _SHORT_RUN_BYTES or span * 2 > step * item):
            group = _STRETCH_BYTES // (step * item)
            for row in range(0, inner, group):
                rows = min(group, inner - row)
                length = (rows - 1) * step + (block - 1) * below + 1
                found[row : row + rows] = np.ndarray(
                    (rows, block),
                    dtype=self._dtype,
                    buffer=self._read(row * step + first_of_row, length),
                    strides=(step * item, below * item),
                )
        else:
            part = max(1, _STRETCH_BYTES // (below * item))
            for row in range(inner):
                for column in range(0, block, part):
                    columns = min(part, block - column)
                    offset = row * step + first_of_row + column * below
                    stretch = self._read(offset, (columns - 1) * below + 1)
                    found[row, column : column + columns] = np.ndarray(
                        (columns,), dtype=self._dtype, buffer=stretch, strides=(below * item,)
                    )
        axes = found.reshape((*reversed(inner_shape), block))
        return np.ascontiguousarray(axes.transpose()).reshape(-1)

    def _read(self, first: int, count: int) -> bytes | bytearray:
        """Bytes of `count` elements as they are stored, from number `first` on."""
        item = self._dtype.itemsize
        return self._read_at(first * item, count * item)
