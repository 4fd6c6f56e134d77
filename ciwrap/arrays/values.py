"""One variable's values as a stream, wherever they lie: in a file, in memory, masked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import item_bytes
from ciwrap.errors import MaskError
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.series import SeriesFacts

DEFAULT_SLAB_BYTES = 4 << 20
_MEND_MASK = "fix 'mask', or have the program write truth values of the variable's shape"


class FileRegion(Struct, frozen=True):
    """Where a variable's bytes lie in a file, back to back in C order."""

    path: str
    offset: int
    byte_count: int


Labels = tuple[tuple[str, str], ...]
# The label of a text that is compared token by token; its bytes are no elements by themselves.
TEXT_LABEL = ("compared", "token by token")
# The label of numbers in a text of which the last one ends where the file does, without a line
# break: digits of it may be missing.
CUT_LABEL = ("text ends", "with its last number")
# What `ignore` may name, as the core has it (`_core.ignored_text_sets`).
TEXT_SETS = ("dates", "times", "paths", "hosts", "pids", "memory")


class TextRules(Struct, frozen=True):
    """What is left out when a text is compared token by token.

    ignore: names of sets of words and numbers, of `TEXT_SETS`. ignore_lines: whole
    lines; `*` stands for any text.
    """

    ignore: tuple[str, ...] = ()
    ignore_lines: tuple[str, ...] = ()


class Shaped:
    """What has a dtype and a shape, whether or not any of its values are at hand."""

    __slots__ = ()
    dtype: str
    shape: tuple[int, ...]
    labels: Labels

    @property
    def signature(self) -> Signature:
        return Signature(self.dtype, tuple(self.shape), self.labels)

    @property
    def element_count(self) -> int:
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        return item_bytes(self.dtype)

    @property
    def byte_count(self) -> int:
        return self.element_count * self.item_bytes

    @property
    def is_text(self) -> bool:
        """Whether this is a text that is compared token by token."""
        return TEXT_LABEL in self.labels


class Signature(Shaped, Struct, frozen=True):
    """What a variable is, whatever its values: two that are compared have one signature.

    dtype, shape: as in `Values`. labels: what its file says of it besides, as (key, text) pairs in
    the order of the keys, such as ("dims", "x y") and ("units", "m"); () where it says nothing.
    """

    dtype: str
    shape: tuple[int, ...]
    labels: Labels = ()


class HeldOnDevice(Shaped):
    """An array in a device's memory, and the core's backend that computes there."""

    def __init__(self, array: _core.DeviceArray, backend: str) -> None:
        self.array = array
        self.backend = backend
        self.dtype = array.dtype
        self.shape = tuple(array.shape)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        """A copy of some elements on the host. Raises NotAvailableError."""
        copied = self.array.read(first_element, count, backend=self.backend)
        is_bfloat16 = self.dtype[1:] == "bf2"
        return copied.view("<u2" if is_bfloat16 else self.dtype)


class Values(Shaped, ABC):
    """dtype: array-protocol string with byte order, or "<bf2". shape: () for a single number.

    labels: as in `Signature`.
    """

    labels: Labels = ()

    @property
    def masked_count(self) -> int:
        """How many elements a mask has taken out."""
        return 0

    @property
    def mask(self) -> Values | None:
        """Which elements a mask has taken out, as booleans; None where there is no mask."""
        return None

    @property
    def text(self) -> TextRules | None:
        """How the bytes are compared if they are a text; None if they are elements."""
        return None

    @property
    def series(self) -> SeriesFacts | None:
        """Steps and places of the elements, where they were found one by one in a text."""
        return None

    @property
    def region(self) -> FileRegion | None:
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


class ArrayValues(Values):
    """An array in memory; copied only if it is not C-contiguous. dtype: as for `Values`."""

    def __init__(self, array: NDArray[Any], dtype: str | None = None) -> None:
        self.dtype = array.dtype.str if dtype is None else dtype
        self.shape = array.shape
        self._flat = np.ascontiguousarray(array).reshape(-1)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._flat[first_element : first_element + count]


class DeviceValues(Values):
    """An array in a device's memory, which stays there; `read` copies what it is asked for."""

    def __init__(self, held: HeldOnDevice) -> None:
        self._held = held
        self.dtype = held.dtype
        self.shape = held.shape

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
            raise MaskError(
                f"the mask {mask_name!r} must be boolean, it is {mask.dtype}", remedy=_MEND_MASK
            )
        if mask.shape != values.shape:
            raise MaskError(
                f"the mask {mask_name!r} has shape {mask.shape}, the variable has {values.shape}",
                remedy=_MEND_MASK,
            )
        self._values = values
        self._mask = mask
        self.dtype = values.dtype
        self.shape = values.shape
        self.labels = values.labels
        self._masked_count: int | None = None

    @property
    def masked_count(self) -> int:
        """Reads the mask, once."""
        if self._masked_count is None:
            counts = (int(np.count_nonzero(slab)) for _, slab in self._mask.slabs())
            self._masked_count = sum(counts)
        return self._masked_count

    @property
    def mask(self) -> Values | None:
        return self._mask

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
