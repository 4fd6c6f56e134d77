"""NumPy's .npz archives: a zip file of .npy members, streamed member by member."""

from __future__ import annotations

import contextlib
import struct
import tempfile
import zipfile
import zlib
from functools import partial
from typing import IO, TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    FileLimitError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
    one_line,
)
from ciwrap.formats.entries import Entry, EntrySource, Listing, fault_text
from ciwrap.formats.npy import NpyArray, NpyHeader, read_header
from ciwrap.formats.reader import CheckedReader, InputFile, Source, guarded

if TYPE_CHECKING:
    from pathlib import Path

# Deflate cannot do better than about 1032 to 1, so a larger ratio is a length that lies.
_MAX_RATIO = 1040
_SKIP_BYTES = 1 << 20
_END_RECORD_BYTES = 22
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class NpzReader(CheckedReader):
    """The arrays of an archive, named as in it; record arrays give one variable per field.

    Stored (uncompressed) members can be read at any place, compressed ones best in order: going
    back means unpacking the member from its beginning.
    """

    name: ClassVar[str] = "npz"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        with contextlib.ExitStack() as opened:
            file = InputFile(path)
            opened.callback(file.close)
            archive = opened.enter_context(zipfile.ZipFile(path))
            end = file.byte_count - _END_RECORD_BYTES - len(archive.comment)
            if file.read_some(max(0, end), 4) != b"PK\x05\x06":
                raise CorruptFileError("has bytes left over after the archive's end")
            listing = Listing(path)
            members = [_Member(archive, entry, file) for entry in archive.infolist()]
            faults: list[CiwrapError] = []
            for member in members:
                opened.callback(member.close)
                fault = _fault_in(member, listing)
                faults += [] if fault is None else [fault]
            if faults and len(faults) == len(members):  # no part of the file can be read
                raise faults[0]
            return EntrySource(path, listing.entries, opened.pop_all().close)


def _fault_in(member: _Member, listing: Listing) -> CiwrapError | None:
    """Lists a member; returns what is wrong with it, which is no fault of the others.

    Raises FileLimitError for one that claims more than there can be.
    """
    try:
        with guarded(listing.path, member.name):
            member.add_to(listing)
    except FileLimitError:
        raise
    except (CorruptFileError, UnsupportedFormatError, UnsupportedDtypeError) as error:
        # What to do about a type is to leave out a whole file, which is not needed here.
        is_of_type = type(error) is UnsupportedDtypeError
        fault = one_line(error.message) if is_of_type else fault_text(error)
        listing.add_fault(member.name, fault)
        return error
    return None


class _Member:
    """One .npy of an archive."""

    def __init__(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, file: InputFile) -> None:
        self.name = entry.filename.removesuffix(".npy")
        self._archive = archive
        self._entry = entry
        self._file = file
        self._stream: IO[bytes] | None = None
        self._position = 0  # of the stream, from the start of the member
        self._unpacked: IO[bytes] | None = None

    def add_to(self, listing: Listing) -> None:
        """Reads the header, and lists what it tells of."""
        entry, file = self._entry, self._file
        self._check_entry()
        self._header: NpyHeader = read_header(self._take, name=self.name, file=file.path)
        wanted = self._header.data_offset + self._header.data_bytes
        if entry.file_size != wanted:
            raise CorruptFileError(f"has {entry.file_size} bytes, its header says {wanted}")
        self._stored_at = self._data_offset() if entry.compress_type == 0 else None
        if self._stored_at is not None:
            self._check_sum(self._stored_at)
        array = NpyArray(self._header, self._read_at)
        begin = None if self._stored_at is None else self._stored_at + self._header.data_offset
        for number, info in enumerate(array.infos(file.path, begin)):
            listing.put(Entry(info, partial(array.read, number)))

    def _check_entry(self) -> None:
        entry = self._entry
        if not entry.filename.endswith(".npy") or not self.name:
            raise UnsupportedFormatError("a member is not a .npy array")
        if entry.flag_bits & 0x1:
            raise UnsupportedFormatError("is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnsupportedFormatError(
                f"is packed with method {entry.compress_type}; stored and deflate are known"
            )
        if entry.file_size > entry.compress_size * _MAX_RATIO + 1024:
            raise FileLimitError(
                f"claims to unpack from {entry.compress_size} to {entry.file_size} bytes"
            )

    def _data_offset(self) -> int:
        """Where a stored member's bytes begin in the file."""
        start = self._entry.header_offset
        data = bytes(self._file.read_at(start, _LOCAL_HEADER.size))
        signature, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(data)
        offset = int(start + _LOCAL_HEADER.size + name_bytes + extra_bytes)
        if signature != b"PK\x03\x04" or offset + self._entry.file_size > self._file.byte_count:
            raise CorruptFileError("has a damaged local header")
        return offset

    def _check_sum(self, start: int) -> None:
        """What is read in place would pass by the archive's own check."""
        found = 0
        for at in range(0, self._entry.file_size, _SKIP_BYTES):
            count = min(_SKIP_BYTES, self._entry.file_size - at)
            found = zlib.crc32(self._file.read_at(start + at, count), found)
        if found != self._entry.CRC:
            raise CorruptFileError("does not have the checksum that the archive states")

    def _take(self, count: int) -> bytes:
        """The next bytes of the unpacked member, fewer only at its end."""
        if self._stream is None:
            self._stream = self._archive.open(self._entry)
            self._position = 0
        # It gives all that were asked for, unless the member ends.
        data = self._stream.read(count) if count > 0 else b""
        self._position += len(data)
        return data

    def _read_at(self, offset: int, count: int) -> bytes | bytearray:
        """Bytes of the array's data."""
        if self._stored_at is not None:
            return self._file.read_at(self._stored_at + self._header.data_offset + offset, count)
        if self._header.fortran_order:
            return self._read_unpacked(offset, count)
        target = self._header.data_offset + offset
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
            self._take(self._header.data_offset)
            # Lives as long as the source, which closes it.
            spool = tempfile.SpooledTemporaryFile(max_size=64 << 20)  # noqa: SIM115
            while data := self._take(_SKIP_BYTES):
                spool.write(data)
            self._unpacked = spool
        self._unpacked.seek(offset)
        return self._whole(self._unpacked.read(count), count)

    def _whole(self, data: bytes, count: int) -> bytes:
        if len(data) != count:
            raise CorruptFileError("ends before its last value")
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
