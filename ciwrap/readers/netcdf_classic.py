"""The classic NetCDF formats (CDF-1, CDF-2, CDF-5), read as their specification lays them out.

No library is needed for them, and every variable, or record of one, lies in one stretch of the
file, which the core can then read itself.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.base import FileRegion, as_elements
from ciwrap.readers.boxes import joined
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ciwrap.readers.files import InputFile

MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_TYPES = {
    1: "|i1", 2: "|S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8",
    7: "|u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8",
}  # fmt: skip
_NEWER_TYPES = 7  # from here on CDF-5 only
_MAX_HEADER_BYTES = 256 << 20
_STEP_BYTES = 64 << 10
_TAIL_BYTES = 3  # what may follow the last value


class ClassicVariable(Struct, frozen=True):
    """A variable of the header. dtype: NumPy's text. begin: of its first value in the file."""

    name: str
    dtype: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    is_record: bool
    begin: int
    attributes: dict[str, Any]

    @property
    def record_bytes(self) -> int:
        """Bytes of one record, or of the whole variable if it has none."""
        lengths = self.shape[1:] if self.is_record else self.shape
        return math.prod(lengths) * np.dtype(self.dtype).itemsize


class ClassicHeader(Struct):
    """What a file holds. record_step: bytes from one record to the next."""

    record_count: int = 0
    dimensions: dict[str, int] = field(default_factory=dict)
    unlimited: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    variables: list[ClassicVariable] = field(default_factory=list)
    record_step: int = 0


class ClassicFile:
    """A classic file, open for reading. Raises CorruptFileError for whatever does not add up."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self.header = _HeaderParser(file).parse()
        self._check_size()

    def _check_size(self) -> None:
        header = self.header
        end = 0
        for one in header.variables:
            if one.is_record and header.record_count == 0:
                continue
            last = (header.record_count - 1) * header.record_step if one.is_record else 0
            end = max(end, one.begin + last + one.record_bytes)
        size = self._file.byte_count
        if size < end:
            raise CorruptFileError(
                f"is truncated: it has {size} bytes, its header says {end}",
                file=self._file.path,
                remedy="is the program still writing it?",
            )
        if header.variables and size > end + _TAIL_BYTES + self._padding():
            raise CorruptFileError(
                f"has {size - end} bytes after its last value: records that its header does not"
                " count",
                file=self._file.path,
                remedy="let the program close the file",
            )

    def _padding(self) -> int:
        """A record ends with the last variable's padding, which may be there or not."""
        records = [one.record_bytes for one in self.header.variables if one.is_record]
        return max(0, self.header.record_step - sum(records)) if records else 0

    def reader(self, one: ClassicVariable) -> Callable[[int, int], NDArray[Any]]:
        """Reads elements first .. first + count - 1 of a variable."""
        item = np.dtype(one.dtype).itemsize
        if not one.is_record:
            return self._file.elements(one.begin, one.dtype)
        per_record = math.prod(one.shape[1:])

        def parts(first: int, count: int) -> Iterator[NDArray[Any]]:
            while count > 0:
                record, within = divmod(first, per_record)
                take = min(count, per_record - within)
                offset = one.begin + record * self.header.record_step + within * item
                yield as_elements(self._file.read_at(offset, take * item), one.dtype)
                first, count = first + take, count - take

        return lambda first, count: joined(parts(first, count), count, np.dtype(one.dtype))

    def region(self, one: ClassicVariable) -> FileRegion | None:
        """Where a variable without records lies."""
        if one.is_record:
            return None
        return FileRegion(str(self._file.path), one.begin, one.record_bytes)

    def record_region(self, one: ClassicVariable, record: int) -> FileRegion:
        """Where one record of a variable lies."""
        offset = one.begin + record * self.header.record_step
        return FileRegion(str(self._file.path), offset, one.record_bytes)


class _HeaderParser:
    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._data = b""
        self._at = 0

    def parse(self) -> ClassicHeader:
        magic = self._take(4)
        if magic not in MAGIC:
            raise self._error("does not begin as a classic NetCDF file")
        self._version = magic[3]
        self._count_format = ">q" if self._version == 5 else ">i"
        header = ClassicHeader()
        records = self._take(8 if self._version == 5 else 4)
        is_streaming = set(records) == {0xFF}
        header.record_count = 0 if is_streaming else int.from_bytes(records, "big", signed=True)
        if header.record_count < 0:
            raise self._error("claims a negative number of records")
        self._dimensions(header)
        header.attributes = self._attributes()
        self._variables(header, is_streaming=is_streaming)
        return header

    def _dimensions(self, header: ClassicHeader) -> None:
        names: list[str] = []
        for _ in range(self._list(0x0A)):
            name, length = self._name(), self._count()
            if name in header.dimensions:
                raise self._error(f"has two dimensions named {ascii(name)[:60]}")
            if length == 0 and header.unlimited is None:
                header.unlimited = name
            header.dimensions[name] = length
            names.append(name)
        self._names = names

    def _variables(self, header: ClassicHeader, *, is_streaming: bool) -> None:
        found: list[tuple[str, list[int], dict[str, Any], str, int]] = []
        for _ in range(self._list(0x0B)):
            name = self._name()
            rank = self._count()
            if rank > 1024:
                raise self._error(f"claims {rank} dimensions for one variable")
            ids = [self._count() for _ in range(rank)]
            if any(number >= len(self._names) for number in ids):
                raise self._error("names a dimension that it does not have")
            attributes = self._attributes()
            dtype = self._type()
            self._count()  # the size, which is too small a field for large variables
            begin = self._int(">i" if self._version == 1 else ">q")
            if begin < 0:
                raise self._error("has a variable that begins before the file")
            found.append((name, ids, attributes, dtype, begin))
        sizes = []
        for _, ids, _, dtype, _ in found:
            if self._is_record(ids, header):
                lengths = [header.dimensions[self._names[number]] for number in ids[1:]]
                sizes.append(math.prod(lengths) * np.dtype(dtype).itemsize)
        # A lone record variable is not padded.
        padded = [size if len(sizes) == 1 else size + -size % 4 for size in sizes]
        header.record_step = sum(padded)
        if is_streaming:
            firsts = [begin for _, ids, _, _, begin in found if self._is_record(ids, header)]
            rest = self._file.byte_count - min(firsts, default=self._file.byte_count)
            header.record_count = max(0, rest) // header.record_step if header.record_step else 0
        if header.unlimited is not None:
            header.dimensions[header.unlimited] = header.record_count
        for name, ids, attributes, dtype, begin in found:
            dimensions = tuple(self._names[number] for number in ids)
            shape = tuple(header.dimensions[dimension] for dimension in dimensions)
            is_record = self._is_record(ids, header)
            if header.unlimited in dimensions[1:]:
                raise self._error("uses its record dimension other than first")
            header.variables.append(
                ClassicVariable(name, dtype, dimensions, shape, is_record, begin, attributes)
            )

    def _is_record(self, ids: list[int], header: ClassicHeader) -> bool:
        return bool(ids) and self._names[ids[0]] == header.unlimited

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self._list(0x0C)):
            name = self._name()
            dtype = np.dtype(self._type())
            count = self._count()
            data = self._take(count * dtype.itemsize)
            self._take(-len(data) % 4)
            if dtype.kind == "S":
                found[name] = data.rstrip(b"\0").decode("utf-8", "surrogateescape")
            else:
                found[name] = np.frombuffer(data, dtype=dtype)
        return found

    def _list(self, tag: int) -> int:
        given = self._int(">i")
        count = self._count()
        if given not in (0, tag) or (given == 0 and count != 0):
            raise self._error("has a damaged header")
        # Every item takes 4 bytes at the least.
        if count * 4 > self._file.byte_count:
            raise self._error("claims more than the file can hold")
        return count

    def _type(self) -> str:
        code = self._int(">i")
        if code not in _TYPES or (code >= _NEWER_TYPES and self._version != 5):
            raise self._error(f"has a variable of the unknown type {code}")
        return _TYPES[code]

    def _name(self) -> str:
        length = self._count()
        data = self._take(length)
        self._take(-length % 4)
        return data.decode("utf-8", "surrogateescape")

    def _count(self) -> int:
        value = self._int(self._count_format)
        if value < 0:
            raise self._error("has a negative length")
        return value

    def _int(self, code: str) -> int:
        return int(struct.unpack(code, self._take(struct.calcsize(code)))[0])

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > min(self._file.byte_count, _MAX_HEADER_BYTES):
            raise self._error("ends within its header")
        while len(self._data) < end:
            self._data += self._file.read_some(len(self._data), max(_STEP_BYTES, len(self._data)))
        found = self._data[self._at : end]
        self._at = end
        return found

    def _error(self, problem: str) -> CorruptFileError:
        return CorruptFileError(
            problem, file=self._file.path, remedy="is it whole, and is it NetCDF?"
        )
