"""NumPy's .npz archives: a zip file of .npy members, streamed member by member."""

from __future__ import annotations

import struct
import tempfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    DuplicateVariableError,
    FileLimitError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
    one_line,
)
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import fault_text
from ciwrap.formats.npy import NpyArray, NpyHeader, read_header
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo, reading
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

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
        """Opens a member; returns what is wrong with it, which is no fault of the others.

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
                "ends before its last value",
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
