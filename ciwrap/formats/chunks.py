"""Chunks of HDF5 datasets, unpacked by several threads; HDF5 unpacks one after the other.

Only what is packed by deflate, with or without shuffle, is unpacked here. HDF5 reads everything
else: other filters, and chunks that were never written.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any

import deflate

from ciwrap import _core
from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import thread_count
from ciwrap.formats.entries import box_reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ciwrap.formats.entries import Lengths


def chunk_reader(
    h5py: Any, dataset: Any, dtype: np.dtype[Any]
) -> Callable[[Lengths, Lengths], NDArray[Any]] | None:
    """Reads boxes of a dataset whose values are stored as `dtype` has them; None if HDF5 has to
    unpack it.
    """
    layout = dataset.id.get_create_plist()
    filters = [layout.get_filter(number) for number in range(layout.get_nfilters())]
    codes = [code for code, *_ in filters]
    if dataset.chunks is None or codes not in ([h5py.h5z.FILTER_DEFLATE], _shuffled(h5py)):
        return None
    is_shuffled = len(codes) > 1
    if is_shuffled and filters[0][2][:1] != (dtype.itemsize,):
        return None
    return _Chunks(dataset, dtype, is_shuffled=is_shuffled).read


def _shuffled(h5py: Any) -> list[int]:
    return [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE]


class _OfHdf5Error(Exception):
    """A chunk that HDF5 has to read."""


class _Chunks:
    def __init__(self, dataset: Any, dtype: np.dtype[Any], *, is_shuffled: bool) -> None:
        self._dataset = dataset
        self._dtype = dtype
        self._lengths: Lengths = tuple(dataset.chunks)
        self._byte_count = math.prod(self._lengths) * dtype.itemsize
        self._is_shuffled = is_shuffled
        self._read_by_hdf5 = box_reader(dataset)

    def read(self, start: Lengths, lengths: Lengths) -> NDArray[Any]:
        """A box. Raises CorruptFileError for a chunk with fewer bytes than it should have, and what
        h5py raises.
        """
        places = list(product(*map(_chunks_along, start, lengths, self._lengths)))
        box = np.empty(lengths, self._dtype)

        def take(place: Lengths, packed: bytes) -> None:
            source, target = [], []
            for at, chunk, first, length in zip(place, self._lengths, start, lengths, strict=True):
                begin, end = max(at, first), min(at + chunk, first + length)
                source.append(slice(begin - at, end - at))
                target.append(slice(begin - first, end - first))
            box[tuple(target)] = self._unpacked(packed)[tuple(source)]

        try:
            packed = [self._packed(place) for place in places]
            count = min(thread_count(), len(places))
            if count == 1:
                list(map(take, places, packed))
            else:
                with ThreadPoolExecutor(count) as pool:
                    list(pool.map(take, places, packed))
        except _OfHdf5Error:
            return self._read_by_hdf5(start, lengths)
        return box

    def _packed(self, place: Lengths) -> bytes:
        try:
            mask, packed = self._dataset.id.read_direct_chunk(place)
        except (OSError, RuntimeError, ValueError) as error:
            raise _OfHdf5Error from error
        if mask:  # a filter that was left out
            raise _OfHdf5Error
        return bytes(packed)

    def _unpacked(self, packed: bytes) -> NDArray[Any]:
        try:
            data = deflate.zlib_decompress(packed, self._byte_count)
        except deflate.DeflateError as error:
            raise self._wrong("it is damaged, or has more") from error
        if len(data) != self._byte_count:
            raise self._wrong(f"it has {len(data)}")
        values = (
            _core.joined_planes(data, self._dtype.itemsize)
            if self._is_shuffled
            else np.frombuffer(data, np.uint8)
        )
        return values.view(self._dtype).reshape(self._lengths)

    def _wrong(self, what: str) -> CorruptFileError:
        return CorruptFileError(
            f"a block should unpack to {self._byte_count} bytes: {what}",
            remedy="is it whole, and has the program finished writing it?",
        )


def _chunks_along(first: int, length: int, chunk: int) -> range:
    """Where the chunks begin that an interval of an axis touches."""
    return range(first - first % chunk, first + length, chunk)
