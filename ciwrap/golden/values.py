"""One variable's values as a stream, wherever they lie: in a file, in memory, masked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ciwrap.core_errors import from_core_error
from ciwrap.errors import MaskError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ciwrap import _core

DEFAULT_SLAB_BYTES = 4 << 20


class RegionLike(Protocol):
    """Where bytes lie in a file, back to back in C order (`ciwrap.readers.base.FileRegion`)."""

    @property
    def path(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def byte_count(self) -> int: ...


class HeldOnDevice:
    """An array in a device's memory, and the core's backend that computes there."""

    def __init__(self, array: _core.DeviceArray, backend: str) -> None:
        self.array = array
        self.backend = backend
        self.dtype = array.dtype
        self.shape = tuple(array.shape)
        self.item_bytes = 2 if array.dtype[1:] == "bf2" else np.dtype(array.dtype).itemsize

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        """A copy of some elements on the host. Raises NotAvailableError."""
        from ciwrap import _core

        try:
            copied = self.array.read(first_element, count, backend=self.backend)
        except _core.CoreError as error:
            raise from_core_error(error) from error
        is_bfloat16 = self.dtype[1:] == "bf2"
        return copied.view("<u2" if is_bfloat16 else self.dtype)


class InfoLike(Protocol):
    """A variable before any of it is read (`ciwrap.readers.base.VariableInfo`)."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def region(self) -> RegionLike | None: ...
    @property
    def device(self) -> Any: ...
    @property
    def item_bytes(self) -> int: ...


class SourceLike(Protocol):
    """An open file (`ciwrap.readers.base.Source`)."""

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]: ...


class Values(ABC):
    """dtype: array-protocol string with byte order, or "<bf2". shape: () for a single number."""

    dtype: str
    shape: tuple[int, ...]
    item_bytes: int

    @property
    def element_count(self) -> int:
        return math.prod(self.shape)

    @property
    def byte_count(self) -> int:
        return self.element_count * self.item_bytes

    @property
    def region(self) -> RegionLike | None:
        """Where the bytes lie as they are; None if they have to be read through `read`."""
        return None

    @property
    def device(self) -> HeldOnDevice | None:
        """The array on a device that these values are; `read` then copies."""
        return None

    @abstractmethod
    def read(self, first_element: int, count: int) -> NDArray[Any]:
        """`count` elements in C order from `first_element` on:

        a contiguous array of shape (count,).
        """

    def slabs(self, slab_bytes: int = DEFAULT_SLAB_BYTES) -> Iterator[tuple[int, NDArray[Any]]]:
        """All values in order: (index of the first element, elements)."""
        step = max(1, slab_bytes // max(1, self.item_bytes))
        for first in range(0, self.element_count, step):
            yield first, self.read(first, min(step, self.element_count - first))

    def read_all(self) -> bytes:
        return b"".join(slab.tobytes() for _, slab in self.slabs())


class SourceValues(Values):
    """A variable of an open file; the file has to stay open as long as this is used."""

    def __init__(self, source: SourceLike, info: InfoLike) -> None:
        self._source = source
        self._info = info
        self.dtype = info.dtype
        self.shape = info.shape
        self.item_bytes = info.item_bytes

    @property
    def region(self) -> RegionLike | None:
        return self._info.region

    @property
    def device(self) -> HeldOnDevice | None:
        found: HeldOnDevice | None = self._info.device
        return found

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._source.read(self._info.name, first_element, count)


class ArrayValues(Values):
    """An array in memory; copied only if it is not C-contiguous. dtype: as for `Values`."""

    def __init__(self, array: NDArray[Any], dtype: str | None = None) -> None:
        self.dtype = array.dtype.str if dtype is None else dtype
        self.shape = array.shape
        self.item_bytes = array.dtype.itemsize
        self._flat = np.ascontiguousarray(array).reshape(-1)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._flat[first_element : first_element + count]


class DeviceValues(Values):
    """An array in a device's memory, which stays there; `read` copies what it is asked for."""

    def __init__(self, held: HeldOnDevice) -> None:
        self._held = held
        self.dtype = held.dtype
        self.shape = held.shape
        self.item_bytes = held.item_bytes

    @property
    def device(self) -> HeldOnDevice | None:
        return self._held

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._held.read(first_element, count)


class MaskedValues(Values):
    """Values that are zero (or empty) where a boolean variable of the same shape is true.

    Raises MaskError if the mask is of another type or shape.
    """

    def __init__(self, values: Values, mask: Values, mask_name: str) -> None:
        if mask.dtype != "|b1":
            raise MaskError(f"the mask {mask_name!r} must be boolean, it is {mask.dtype}")
        if mask.shape != values.shape:
            raise MaskError(
                f"the mask {mask_name!r} has shape {mask.shape}, the variable has {values.shape}"
            )
        self._values = values
        self._mask = mask
        self.dtype = values.dtype
        self.shape = values.shape
        self.item_bytes = values.item_bytes

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        elements: NDArray[Any] = self._values.read(first_element, count).copy()
        elements[self._mask.read(first_element, count)] = np.zeros((), dtype=elements.dtype)
        return elements


def as_bytes(elements: NDArray[Any]) -> NDArray[np.uint8]:
    """A contiguous array's bytes without a copy: one format for the core, whatever the dtype."""
    if elements.size == 0:
        return np.empty(0, dtype=np.uint8)
    flat: NDArray[np.uint8] = elements.reshape(-1).view(np.uint8)
    return flat
