"""Arrays of VTK's XML files that are no text: how many bytes one holds, and which.

A header says how many bytes follow. Of a packed array it says how many blocks there are, how long
they are, and how long each is as it is stored. In base64 a packed array's header stands by itself;
another's may.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.optional import library
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray


# As a file may name them: whatever else it names is not to be called.
_PACKERS = frozenset(f"vtk{name}DataCompressor" for name in ("ZLib", "LZ4", "LZMA"))


class Stored(Struct, frozen=True):
    """An array as it is stored: its first byte is that of its header."""

    data: memoryview
    is_base64: bool

    def part(self, first: int, count: int) -> bytes:
        """Some of its bytes; in base64 of those that are encoded together from its first one."""
        if not self.is_base64:
            return bytes(self.data[first : first + count])
        group, within = divmod(first, 3)
        text = bytes(self.data[group * 4 : group * 4 + _encoded(within + count)])
        return base64.b64decode(text)[within : within + count]

    def behind(self, count: int) -> Stored:
        """What comes behind the first bytes, where these are encoded by themselves."""
        start = _encoded(count) if self.is_base64 else count
        return Stored(self.data[start:], self.is_base64)


class Blocks:
    """The arrays of a file that are no text. known: the attributes of its outermost element."""

    def __init__(self, data: bytearray, known: Mapping[bytes, bytes], path: Path) -> None:
        self._path = path
        self._order = ">" if known.get(b"byte_order") == b"BigEndian" else "<"
        self._word = np.dtype(f"{self._order}u{8 if known.get(b'header_type') == b'UInt64' else 4}")
        self._packer = known.get(b"compressor", b"").decode("utf-8", "replace")
        start = data.find(b"<AppendedData")
        tag_end = data.find(b">", start)
        self._is_base64 = b"base64" in data[start:tag_end]
        self._appended = memoryview(data)[data.find(b"_", tag_end) + 1 :] if start >= 0 else None

    def inline(self, text: bytes) -> Stored:
        """The array that stands in an element as base64."""
        return Stored(memoryview(b"".join(text.split())), is_base64=True)

    def appended(self, offset: bytes) -> Stored | None:
        """The array that is so far behind the beginning of the appended data."""
        if self._appended is None or not offset.strip().isdigit():
            return None
        return Stored(self._appended[int(offset) :], self._is_base64)

    def byte_count(self, array: Stored) -> int:
        """How many bytes its header says that it holds, once unpacked."""
        return sum(self._lengths(array)[0])

    def has_more(self, array: Stored) -> bool:
        """Whether text follows on that of which its header speaks."""
        return bool(array.data) and len(array.data) > self._text_length(array)

    def values(self, array: Stored, kind: bytes) -> NDArray[Any]:
        """Its numbers; kind: as VTK calls their type."""
        short = np.dtype(kind.decode().lower()).str[1:]
        dtype = np.dtype(f"{self._order}{short}")
        data = self._unpacked(array)
        return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)

    def _head(self, array: Stored, first: int, count: int) -> list[int]:
        """Words of its header."""
        size = self._word.itemsize
        found = array.part(first * size, count * size)
        if len(found) < count * size:
            raise CorruptFileError("ends within the header of an array", file=self._path)
        return [int(word) for word in np.frombuffer(found, self._word)]

    def _lengths(self, array: Stored) -> tuple[list[int], list[int]]:
        """The lengths of its blocks, unpacked and as they are stored."""
        if not array.data:
            return [], []
        first = self._head(array, 0, 1)[0]
        if not self._packer:
            return [first], [first]
        if first == 0:
            return [], []
        if first * self._word.itemsize > len(array.data):
            raise CorruptFileError("ends within the header of an array", file=self._path)
        whole, last, *stored = self._head(array, 1, 2 + first)
        return [whole] * (first - 1) + [last or whole], stored

    def _text_length(self, array: Stored) -> int:
        size, stored = self._word.itemsize, sum(self._lengths(array)[1])
        if self._packer:
            return _encoded(size * self._head_words(array)) + _encoded(stored)
        if self._is_apart(array):
            return _encoded(size) + _encoded(stored)
        return _encoded(size + stored)

    def _head_words(self, array: Stored) -> int:
        return 3 + self._head(array, 0, 1)[0]

    def _is_apart(self, array: Stored) -> bool:
        """Whether the header of an array that is not packed is encoded by itself."""
        end = _encoded(self._word.itemsize)
        return array.is_base64 and bytes(array.data[end - 1 : end]) == b"="

    def _unpacked(self, array: Stored) -> bytes:
        size, (lengths, stored) = self._word.itemsize, self._lengths(array)
        if not self._packer:
            if self._is_apart(array):
                return array.behind(size).part(0, stored[0])
            return array.part(size, stored[0])
        if self._packer not in _PACKERS:
            raise CorruptFileError("names a compressor that VTK does not have", file=self._path)
        packer = getattr(library("vtkmodules.vtkIOCore", "vtk", file=self._path), self._packer)()
        data, found, start = array.behind(size * self._head_words(array)), [], 0
        for length, packed in zip(lengths, stored, strict=True):
            block = bytearray(length)
            text = data.part(start, packed)
            if packer.Uncompress(text, packed, block, length) != length:
                raise CorruptFileError("has an array that cannot be unpacked", file=self._path)
            found.append(block)
            start += packed
        return b"".join(found)


def _encoded(byte_count: int) -> int:
    """How many characters of base64 so many bytes have."""
    return -(-byte_count // 3) * 4
