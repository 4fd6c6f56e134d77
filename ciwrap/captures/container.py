"""The capture file as a container: sections that are only ever appended, and two slots that say
which of them count (docs/reference/capture-format.md). Written by `container_writer`.
"""

from __future__ import annotations

import contextlib
import operator
import os
import struct
import zlib
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ciwrap import _core
from ciwrap.catalog.files import Digest, Whole
from ciwrap.closing import Closing
from ciwrap.errors import (
    CorruptCaptureError,
    OutputMissingError,
    UnreadableFileError,
    UnsupportedFormatError,
)
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from ciwrap.errors import CiwrapError
    from ciwrap.model import VariableId

MAGIC = b"\x89CWCAP\r\n"
VERSION = 5
SLOT_OFFSETS = (64, 4096 + 64)
HEAD_BYTES = 8192
FILE_HEAD = struct.Struct("<8sI52x")  # magic, version, zeros up to the first slot
_SLOT = struct.Struct("<QQQQ16s")  # generation, root offset, root bytes, file bytes, root checksum
_SLOT_BYTES = _SLOT.size + 16
# An index of more than this, unpacked, is taken for an attack.
MOST_INDEX_BYTES = 1 << 30
# Parts that lie no further apart are fetched in one go.
_NEAR_BYTES = 16 << 10
# macOS has no such call.
_HAS_ADVICE = hasattr(os, "posix_fadvise")


class Section(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where some bytes lie in the file, and their XXH3-128."""

    offset: Whole
    byte_count: Whole
    checksum: Digest


class _Slot(Struct, frozen=True):
    generation: int
    root: Section
    file_bytes: int


def pack_slot(generation: int, root: Section, file_bytes: int) -> bytes:
    body = _SLOT.pack(generation, root.offset, root.byte_count, file_bytes, root.checksum)
    return body + _core.xxh3_128(body)


def newest_slot(head: bytes, path: Path) -> _Slot:
    """The slot that counts. Raises CorruptCaptureError, UnsupportedFormatError."""
    if len(head) < FILE_HEAD.size or head[:8] != MAGIC:
        raise CorruptCaptureError(
            "is not a capture of a run", file=path, remedy="give a file that `ciwrap capture` wrote"
        )
    version = FILE_HEAD.unpack_from(head)[1]
    if version != VERSION:
        raise UnsupportedFormatError(
            f"is a capture of format {version}, this release reads {VERSION}",
            file=path,
            remedy="capture the run again",
        )
    slots = []
    for offset in SLOT_OFFSETS:
        raw = head[offset : offset + _SLOT_BYTES]
        body, checksum = raw[: _SLOT.size], raw[_SLOT.size :]
        if len(raw) == _SLOT_BYTES and _core.xxh3_128(body) == checksum:
            generation, at, count, file_bytes, root_checksum = _SLOT.unpack(body)
            slots.append(_Slot(generation, Section(at, count, root_checksum), file_bytes))
    if not slots:
        raise CorruptCaptureError(
            "holds nothing that was ever completed", file=path, remedy="capture the run again"
        )
    return max(slots, key=operator.attrgetter("generation"))


def was_completed(path: Path) -> bool:
    """Whether a capture is there that somebody finished, be it damaged or of another format."""
    try:
        with path.open("rb") as file:
            newest_slot(file.read(HEAD_BYTES), path)
    except (CorruptCaptureError, FileNotFoundError):
        return False
    except UnsupportedFormatError:
        return True
    return True


def stamp_of_file(status: os.stat_result) -> tuple[int, ...]:
    """With the time of change, which tells of a file that was written in place and given its old
    time back.
    """
    times = status.st_mtime_ns, status.st_ctime_ns
    return status.st_size, *times, status.st_dev, status.st_ino


class CaptureFile(Closing):
    """A capture open for reading.

    bytes_read counts what was asked of the file. stamps: sizes, times and inodes of the files that
    it is, from before they were read. is_recording: whether it is made of a recorded run's
    journals, which alone have notes, what is to be told of it, faults, what it lacks of the run,
    and repeated, second recordings that are not as the first ones, with the variables that they are
    of.

    Raises OutputMissingError, UnreadableFileError, CorruptCaptureError, UnsupportedFormatError.
    """

    is_recording = False
    notes: tuple[str, ...] = ()
    faults: tuple[CiwrapError, ...] = ()
    repeated: Mapping[VariableId, VariableId] = MappingProxyType({})

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_read = 0
        self.stamps: tuple[tuple[int, ...], ...] = ()
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            # The head, and one or two sections: reading ahead would cost more than it gives.
            if _HAS_ADVICE:
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            status = os.fstat(self._descriptor)
            self._size, self.stamps = status.st_size, (stamp_of_file(status),)
            slot = newest_slot(self._pread(0, HEAD_BYTES), path)
        except FileNotFoundError:
            raise OutputMissingError(
                "does not exist", file=path, remedy="capture the run first"
            ) from None
        except OSError as error:
            self.close()
            if isinstance(error, UnreadableFileError):
                raise
            raise UnreadableFileError(error.strerror or str(error), file=path) from error
        except BaseException:
            self.close()
            raise
        self.root = slot.root
        self.generation = slot.generation
        self.committed_bytes = slot.file_bytes
        if slot.file_bytes > self._size:
            self.close()
            raise CorruptCaptureError(
                f"has {self._size} of its {slot.file_bytes} bytes; is it truncated?",
                file=path,
                remedy="capture the run again",
            )

    def leaves_out(self, identity: VariableId, is_ignored: Callable[[VariableId], bool]) -> bool:
        """Whether a variable is ignored: a second recording is what the first one is."""
        return is_ignored(identity) or is_ignored(self.repeated.get(identity, identity))

    def _pread(self, offset: int, count: int) -> bytes:
        parts = []
        while count > 0:
            part = os.pread(self._descriptor, count, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            count -= len(part)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self.bytes_read += len(data)
        return data

    def read(self, offset: int, count: int) -> bytes:
        """Bytes of the committed part. Raises CorruptCaptureError outside of it."""
        if offset < HEAD_BYTES or count < 0 or offset + count > self.committed_bytes:
            raise CorruptCaptureError(
                f"refers to {count} bytes from byte {offset} on, which it does not have",
                file=self.path,
                remedy="capture the run again",
            )
        try:
            data = self._pread(offset, count)
        except OSError as error:
            raise UnreadableFileError(error.strerror or str(error), file=self.path) from error
        if len(data) != count:
            raise CorruptCaptureError(
                "is truncated", file=self.path, remedy="capture the run again"
            )
        return data

    def samples_of(self, identity: VariableId) -> dict[int, bytes]:  # noqa: ARG002
        """Elements of a variable by chunk: none in a file."""
        return {}

    def prefetch(self, parts: Iterable[tuple[int, int]]) -> None:
        """Has the system fetch these (offset, byte count) while others are looked at.

        Reading them one by one would take the disk's latency every time. Only a hint.
        """
        stretches: list[tuple[int, int]] = []
        for offset, count in sorted(part for part in parts if part[1]):
            begin, end = stretches.pop() if stretches else (offset, offset)
            if offset > end + _NEAR_BYTES:
                stretches.append((begin, end))
                begin = offset
            stretches.append((begin, max(end, offset + count)))
        if _HAS_ADVICE:
            with contextlib.suppress(OSError):
                for begin, end in stretches:
                    os.posix_fadvise(self._descriptor, begin, end - begin, os.POSIX_FADV_WILLNEED)

    def section(self, section: Section) -> bytes:
        """A whole section, its checksum verified."""
        data = self.read(section.offset, section.byte_count)
        if _core.xxh3_128(data) != section.checksum:
            raise CorruptCaptureError(
                f"the section at byte {section.offset} is damaged (checksum)",
                file=self.path,
                remedy="capture the run again",
            )
        return data

    def packed_section(self, section: Section) -> bytes:
        """A whole section that was compressed; refuses what unfolds without measure."""
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(self.section(section), MOST_INDEX_BYTES)
        except zlib.error as error:
            raise CorruptCaptureError(f"cannot be unpacked: {error}", file=self.path) from error
        if not unpacker.eof or unpacker.unused_data:
            raise CorruptCaptureError(
                f"the section at byte {section.offset} does not end where it should",
                file=self.path,
            )
        return data

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
