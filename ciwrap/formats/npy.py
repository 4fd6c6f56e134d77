"""NumPy's .npy files, a variable for each field, and .npz archives of them; never unpickled."""

from __future__ import annotations

import io
import math
import struct
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ciwrap.arrays.values import Field, FileRegion, extract, fields_of
from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    DuplicateVariableError,
    FileLimitError,
    PickledArrayError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
    one_line,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import fault_text, guarded
from ciwrap.formats.fortran import FortranOrder
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo, reading
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray


class NpyReader(CheckedReader):
    """One array per file, named after the file; a record array gives one variable per field."""

    name: ClassVar[str] = "npy"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["npy"].suffixes
    names_inside: ClassVar[bool] = False

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return NpySource(path, name)


class NpySource(Source):
    """An open .npy file. Raises as `Reader.open` does."""

    def __init__(self, path: Path, name: str) -> None:
        # A reader is asked what it is called where no file is opened.

        self.path = path
        self._file = InputFile(path)
        with closed_on_error(self.close):
            head = self._file.read_at(0, min(MAX_HEAD_BYTES, self._file.byte_count))
            header = read_header(io.BytesIO(head).read, name=name, file=path)
            expected = header.data_offset + header.data_bytes
            if self._file.byte_count != expected:
                raise self._other_size(expected)
        self._array = NpyArray(header, self._file.read_at, header.data_offset)
        self.variables = self._array.infos(path, header.data_offset)

    def _other_size(self, expected: int) -> CorruptFileError:
        what = "is truncated" if self._file.byte_count < expected else "has bytes left over"
        return CorruptFileError(
            f"{what}: it has {self._file.byte_count} bytes, its header says {expected}",
            file=self.path,
            remedy="write it again",
        )

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        return self._array.read(self.variables.index(info), first_element, count)

    def close(self) -> None:
        self._file.close()


__all__ = ["NpyReader", "VariableInfo"]


class NpyArray:
    """Reads elements of the array's variables. read_at(offset, count) gives bytes of what holds the
    data, which begin at `start` there.
    """

    def __init__(
        self, header: NpyHeader, read_at: Callable[[int, int], bytes | bytearray], start: int = 0
    ) -> None:
        self._header = header
        self._read_at = read_at
        self._start = start
        self._fortran = None
        if header.fortran_order:
            self._fortran = FortranOrder(
                header.shape,
                header.stored_dtype,
                lambda offset, count: read_at(start + offset, count),
            )

    def infos(self, path: Path, start: int | None) -> tuple[VariableInfo, ...]:
        """One per field. start: where the array's bytes begin in the file; None if it is packed."""
        header, region = self._header, None
        if start is not None and header.dtype.names is None and not header.fortran_order:
            region = FileRegion(str(path), start, header.data_bytes)
        return tuple(
            VariableInfo(field.name, field.dtype, (*header.shape, *field.inner_shape), region)
            for field in header.fields
        )

    def read(self, field_number: int, first: int, count: int) -> NDArray[Any]:
        """Elements of one variable, counted in C order of its own shape."""
        field = self._header.fields[field_number]
        per_record = math.prod(field.inner_shape)
        if count == 0 or per_record == 0:
            return np.empty(0, dtype=field.dtype)
        record, within = divmod(first, per_record)
        record_count = (within + count + per_record - 1) // per_record
        if self._fortran is not None:
            records = self._fortran.read(record, record_count)
        else:
            item = self._header.dtype.itemsize
            data = self._read_at(self._start + record * item, record_count * item)
            records = np.frombuffer(data, self._header.stored_dtype)
        values: NDArray[Any] = extract(records, self._header.dtype, field)
        return values[within : within + count]


# NumPy's own limit for text that goes through the Python parser.
MAX_HEADER_BYTES = 10_000
# With what stands before that text: magic bytes, version, and the length of the text.
MAGIC_PREFIX = b"\x93NUMPY"
MAX_HEAD_BYTES = len(MAGIC_PREFIX) + 2 + 4 + MAX_HEADER_BYTES
MAX_DIMENSIONS = 32
_REMEDY = "leave the file out with 'exclude' in ciwrap.yaml, or write it as another type"


class NpyHeader(Struct, frozen=True):
    """What a header says. data_offset: bytes before the data, from the start of the .npy."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    data_offset: int
    fields: tuple[Field, ...]

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """What elements are moved about as: plain values as they are, records as plain bytes."""
        is_record = self.dtype.names is not None
        return np.dtype((np.void, self.dtype.itemsize)) if is_record else self.dtype


def read_header(
    read: Callable[[int], bytes], *, name: str, file: str | os.PathLike[str]
) -> NpyHeader:
    """Parses a header; `read(n)` gives the next n bytes, or fewer at the end.

    name: what the array is called, for its fields and for messages.
    Raises CorruptFileError, UnsupportedFormatError, UnsupportedDtypeError, PickledArrayError,
    DuplicateVariableError.
    """

    def take(count: int) -> bytes:
        data = read(count)
        if len(data) != count:
            raise CorruptFileError("is empty or ends within its header", file=file, variable=name)
        return data

    magic = take(len(MAGIC_PREFIX) + 2)
    if not magic.startswith(MAGIC_PREFIX):
        raise CorruptFileError("is not .npy data (wrong first bytes)", file=file, variable=name)
    major, minor = magic[-2], magic[-1]
    if (major, minor) not in ((1, 0), (2, 0), (3, 0)):
        raise UnsupportedFormatError(
            f".npy version {major}.{minor} is not known", file=file, variable=name
        )
    length_bytes = 2 if major == 1 else 4
    length = int.from_bytes(take(length_bytes), "little")
    if length > MAX_HEADER_BYTES:
        raise CorruptFileError(
            f"says its header has {length} bytes (limit {MAX_HEADER_BYTES})",
            file=file,
            variable=name,
        )
    shape, fortran_order, dtype = _parsed(take(length), major, file, name)
    header = NpyHeader(
        dtype=dtype,
        shape=shape,
        # With one axis longer than 1 the two orders are the same.
        fortran_order=fortran_order and sum(length != 1 for length in shape) > 1,
        data_offset=len(magic) + length_bytes + length,
        fields=_fields(name, dtype, file),
    )
    if header.data_bytes >= 1 << 62:
        raise CorruptFileError(f"says its shape is {shape}", file=file, variable=name)
    return header


def _fields(name: str, dtype: np.dtype[Any], file: str | os.PathLike[str]) -> tuple[Field, ...]:
    try:
        return tuple(fields_of(name, dtype, file=file))
    except PickledArrayError:
        raise
    except UnsupportedDtypeError as error:
        # The file is opened as a whole, whatever of it is ignored.
        raise UnsupportedDtypeError(
            error.message, file=file, variable=error.variable, remedy=_REMEDY
        ) from None


def _parsed(
    text: bytes, version: int, file: str | os.PathLike[str], name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and dtype, as NumPy reads them."""
    from numpy.lib.format import read_array_header_2_0

    with guarded(Path(file), name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Version 3 is version 2 in UTF-8; escaped, NumPy takes its characters for what they are.
        plain = text.decode().encode("ascii", "backslashreplace") if version == 3 else text
        stream = io.BytesIO(len(plain).to_bytes(4, "little") + plain)
        shape, order, dtype = read_array_header_2_0(stream)
    if dtype.subdtype is not None or not all(type(n) is int and n >= 0 for n in shape):
        raise CorruptFileError("has a wrong descr or shape", file=file, variable=name)
    if len(shape) > MAX_DIMENSIONS:
        raise UnsupportedFormatError(
            f"has {len(shape)} dimensions, of which {MAX_DIMENSIONS} at most are read",
            file=file,
            variable=name,
            remedy="write it with fewer",
        )
    return shape, order, dtype


MAX_MEMBERS = 100_000
# Deflate cannot do better than about 1032 to 1, so a larger ratio is a length that lies.
_MAX_RATIO = 1040
_SKIP_BYTES = 1 << 20
_END_RECORD_BYTES = 22
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class NpzReader(CheckedReader):
    """The arrays of an archive, named as in it; record arrays give one variable per field."""

    name: ClassVar[str] = "npz"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["npz"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return NpzSource(path)


class NpzSource(Source):
    """An open archive. Raises as `Reader.open` does.

    Stored (uncompressed) members can be read at any place, compressed ones best in order: going
    back means unpacking the member from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = InputFile(path)
        self._archive: zipfile.ZipFile | None = None
        self._members: list[_Member] = []
        with closed_on_error(self.close):
            self._open()

    def _open(self) -> None:
        try:
            with reading(self.path):
                self._archive = zipfile.ZipFile(self.path)
        except _ZIP_ERRORS as error:
            raise _corrupt(self.path, error) from error
        end = self._file.byte_count - _END_RECORD_BYTES - len(self._archive.comment)
        if self._file.read_some(max(0, end), 4) != b"PK\x05\x06":
            raise CorruptFileError("has bytes left over after the archive's end", file=self.path)
        entries = self._archive.infolist()
        if len(entries) > MAX_MEMBERS:
            raise FileLimitError(f"has more than {MAX_MEMBERS} members", file=self.path)
        infos: list[VariableInfo] = []
        faults: list[CiwrapError] = []
        self._where: dict[str, tuple[_Member, int]] = {}
        for entry in entries:
            member = _Member(self._archive, entry, self._file)
            self._members.append(member)  # before it is opened, so that it is closed in any case
            fault = self._fault_of(member, entry)
            faults += [] if fault is None else [fault]
            for number, info in enumerate(member.infos):
                if info.name in self._where:
                    raise DuplicateVariableError(
                        "is in the archive twice", file=self.path, variable=info.name
                    )
                self._where[info.name] = (member, number)
                infos.append(info)
        if faults and len(faults) == len(entries):  # no part of the file can be read
            raise faults[0]
        self.variables = tuple(infos)

    def _fault_of(self, member: _Member, entry: zipfile.ZipInfo) -> CiwrapError | None:
        """Opens a member; what is wrong with it alone.

        Raises FileLimitError for one that claims more than there can be.
        """
        try:
            self._check_entry(entry)
            member.open()
        except FileLimitError:
            raise
        except (CorruptFileError, UnsupportedFormatError, UnsupportedDtypeError) as error:
            name = entry.filename.removesuffix(".npy")
            # What to do about a type is to leave out a whole file, which is not needed here.
            is_of_type = type(error) is UnsupportedDtypeError
            fault = one_line(error.message) if is_of_type else fault_text(error)
            member.infos = (VariableInfo(name, "|V1", (1,), fault=fault),)
            return error
        return None

    def _check_entry(self, entry: zipfile.ZipInfo) -> None:
        name = entry.filename
        if not name.endswith(".npy") or name == ".npy":
            raise UnsupportedFormatError(
                "a member is not a .npy array", file=self.path, variable=name
            )
        if entry.flag_bits & 0x1:
            raise UnsupportedFormatError("is encrypted", file=self.path, variable=name)
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnsupportedFormatError(
                f"is packed with method {entry.compress_type}; stored and deflate are known",
                file=self.path,
                variable=name,
            )
        if entry.file_size > entry.compress_size * _MAX_RATIO + 1024:
            raise FileLimitError(
                f"claims to unpack from {entry.compress_size} to {entry.file_size} bytes",
                file=self.path,
                variable=name,
            )

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        member, number = self._where[name]
        return member.array.read(number, first_element, count)

    def info(self, name: str) -> VariableInfo:
        if name in self._where:
            member, number = self._where[name]
            return member.infos[number]
        return super().info(name)

    def close(self) -> None:
        for member in self._members:
            member.close()
        if self._archive is not None:
            self._archive.close()
        self._file.close()


class _Member:
    """One .npy of an archive."""

    def __init__(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, file: InputFile) -> None:
        self._archive = archive
        self._entry = entry
        self._file = file
        self._stream: IO[bytes] | None = None
        self._position = 0  # of the stream, from the start of the member
        self._unpacked: IO[bytes] | None = None
        self.infos: tuple[VariableInfo, ...] = ()

    def open(self) -> None:
        """Reads the header."""
        entry, file = self._entry, self._file
        name = entry.filename.removesuffix(".npy")
        self.header: NpyHeader = read_header(self._take, name=name, file=file.path)
        if entry.file_size != self.header.data_offset + self.header.data_bytes:
            raise CorruptFileError(
                f"has {entry.file_size} bytes, its header says"
                f" {self.header.data_offset + self.header.data_bytes}",
                file=file.path,
                variable=name,
            )
        self._stored_at = self._data_offset() if entry.compress_type == 0 else None
        if self._stored_at is not None:
            self._check_sum(self._stored_at)
        self.array = NpyArray(self.header, self._read_at)
        begin = None if self._stored_at is None else self._stored_at + self.header.data_offset
        self.infos = self.array.infos(file.path, begin)

    def _data_offset(self) -> int:
        """Where a stored member's bytes begin in the file."""
        start = self._entry.header_offset
        data = bytes(self._file.read_at(start, _LOCAL_HEADER.size))
        signature, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(data)
        offset = int(start + _LOCAL_HEADER.size + name_bytes + extra_bytes)
        if signature != b"PK\x03\x04" or offset + self._entry.file_size > self._file.byte_count:
            raise CorruptFileError(
                "has a damaged local header", file=self._file.path, variable=self._entry.filename
            )
        return offset

    def _check_sum(self, start: int) -> None:
        """What is read in place would pass by the archive's own check."""
        found = 0
        for at in range(0, self._entry.file_size, _SKIP_BYTES):
            count = min(_SKIP_BYTES, self._entry.file_size - at)
            found = zlib.crc32(self._file.read_at(start + at, count), found)
        if found != self._entry.CRC:
            raise CorruptFileError(
                "does not have the checksum that the archive states",
                file=self._file.path,
                variable=self._entry.filename.removesuffix(".npy"),
                remedy="write it again",
            )

    def _take(self, count: int) -> bytes:
        """The next bytes of the unpacked member, fewer only at its end."""
        parts: list[bytes] = []
        try:
            with reading(self._file.path):
                if self._stream is None:
                    self._stream = self._archive.open(self._entry)
                    self._position = 0
                while count > 0:
                    part = self._stream.read(count)
                    if not part:
                        break
                    parts.append(part)
                    count -= len(part)
                    self._position += len(part)
        except _ZIP_ERRORS as error:
            raise _corrupt(self._file.path, error, self._entry.filename) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_at(self, offset: int, count: int) -> bytes | bytearray:
        """Bytes of the array's data."""
        if self._stored_at is not None:
            return self._file.read_at(self._stored_at + self.header.data_offset + offset, count)
        if self.header.fortran_order:
            return self._read_unpacked(offset, count)
        target = self.header.data_offset + offset
        if target < self._position:
            self._rewind()
        while self._position < target:
            if not self._take(min(_SKIP_BYTES, target - self._position)):
                break
        return self._whole(self._take(count), count)

    def _read_unpacked(self, offset: int, count: int) -> bytes:
        """For access in any order: the member is unpacked once, to disk when it is large."""
        if self._unpacked is None:
            self._rewind()
            self._take(self.header.data_offset)
            with reading(self._file.path):
                # Lives as long as the source, which closes it.
                spool = tempfile.SpooledTemporaryFile(max_size=64 << 20)  # noqa: SIM115
                while data := self._take(_SKIP_BYTES):
                    spool.write(data)
            self._unpacked = spool
        self._unpacked.seek(offset)
        return self._whole(self._unpacked.read(count), count)

    def _whole(self, data: bytes, count: int) -> bytes:
        if len(data) != count:
            raise CorruptFileError(
                "ends before its last element",
                file=self._file.path,
                variable=self._entry.filename,
            )
        return data

    def _rewind(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._position = 0

    def close(self) -> None:
        self._rewind()
        if self._unpacked is not None:
            self._unpacked.close()
            self._unpacked = None


# What zipfile raises for damaged archives; NotImplementedError for features it does not know.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    struct.error,
    KeyError,
    IndexError,
    UnicodeDecodeError,
)


def _corrupt(path: Path, error: Exception, member: str | None = None) -> CorruptFileError:
    return CorruptFileError(
        f"is a damaged archive: {error}", file=path, variable=member, remedy="write it again"
    )
