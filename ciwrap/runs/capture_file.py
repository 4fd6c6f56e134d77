"""The capture file: sections that are only ever appended, and two slots that say which count.

Its format: docs/reference/capture-format.md.

A commit writes its sections behind everything that counts, waits for the disk, and only then writes
one of the two slots, in turn. So whatever moment a crash comes at, one slot still describes a whole
file: the state before, or the state after.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import operator
import os
import struct
import zlib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ciwrap import _core
from ciwrap.base.errors import (
    CorruptCaptureError,
    LockBusyError,
    OutputMissingError,
    UnreadableFileError,
    UnsupportedFormatError,
    UsageError,
    WriteFailedError,
)
from ciwrap.base.processes import Closing
from ciwrap.formats.source_files import Digest, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ciwrap.base.errors import CiwrapError
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
    journals, which alone have notes, what is to be reported, faults, what it lacks of the run,
    repeated, second recordings that are not as the first ones, with their variables, and ended_in,
    the iteration in which the run diverged from what it was compared with and was ended for that.

    Raises OutputMissingError, UnreadableFileError, CorruptCaptureError, UnsupportedFormatError.
    """

    is_recording = False
    notes: tuple[str, ...] = ()
    faults: tuple[CiwrapError, ...] = ()
    repeated: Mapping[VariableId, VariableId] = MappingProxyType({})
    ended_in: int | None = None

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

    def summaries_section(self, section: Section) -> bytes:
        """The summaries of a tree's chunks, which captures keep compressed."""
        return self.packed_section(section)

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


_PIECE_BYTES = 1 << 20


def refuse_file_there(path: Path, magic: bytes) -> None:
    """Raises UsageError for a file that is there and is not a capture; OSError."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        refuse_other_file(file.fileno(), path, magic)


def refuse_other_file(descriptor: int, path: Path, magic: bytes) -> None:
    """Raises UsageError for a file that is not a capture, nor what a crash may leave of a new one;
    OSError.

    A power loss may leave zeros, and arrays of somebody begin with zeros, too: so all of it has to
    be zeros.
    """
    if magic.startswith(os.pread(descriptor, len(magic), 0)) or _holds_zeros_alone(descriptor):
        return
    raise UsageError(
        "already exists and is not a capture; it is left as it is",
        file=path,
        remedy="give another name with -o",
    )


def _holds_zeros_alone(descriptor: int) -> bool:
    offset = 0
    while piece := os.pread(descriptor, _PIECE_BYTES, offset):
        if piece.count(0) != len(piece):
            return False
        offset += len(piece)
    return True


class CaptureWriter(Closing):
    """The one writer of a capture; sections appended to it count from the next commit on.

    anew: what the file holds is dropped. Raises LockBusyError while somebody else writes it,
    WriteFailedError, and UsageError for a file that is there and is not a capture.
    """

    def __init__(self, path: Path, *, anew: bool = False) -> None:
        self.path = path
        self._dirty = False
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _not_written(path, error) from error
        try:
            self._lock()
            self._begin(anew=anew)
        except OSError as error:
            os.close(self._descriptor)
            if isinstance(error, (LockBusyError, WriteFailedError)):
                raise
            raise _not_written(path, error) from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # a file system without locks: the slots still keep every reader safe
            raise _busy(self.path) from None
        # Another process may have put its file there, or taken this one away, after we opened it.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._descriptor), self.path.stat()):
                return
        raise _busy(self.path)

    def _begin(self, *, anew: bool) -> None:
        head = os.pread(self._descriptor, HEAD_BYTES, 0)
        self._generation, self._end = 0, HEAD_BYTES
        refuse_other_file(self._descriptor, self.path, MAGIC)
        if not anew:
            with contextlib.suppress(CorruptCaptureError, UnsupportedFormatError):
                slot = newest_slot(head, self.path)
                self._generation, self._end = slot.generation, slot.file_bytes
                # What a crash left behind the last commit.
                os.ftruncate(self._descriptor, self._end)
                return
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, FILE_HEAD.pack(MAGIC, VERSION).ljust(HEAD_BYTES, b"\0"), 0)
        self._sync()  # a file that has more than zeros, and no head, is then none of ours

    def append(self, data: bytes | memoryview) -> Section:
        """Adds a section. Raises WriteFailedError."""
        view = memoryview(data).cast("B")
        section = Section(self._end, view.nbytes, _core.xxh3_128(view))
        self._write(view, self._end)
        self._end += view.nbytes
        self._dirty = True
        return section

    def append_packed(self, data: bytes) -> Section:
        return self.append(zlib.compress(data, 6))

    def commit(self, root: bytes) -> None:
        """Makes `root` (the index, uncompressed) and all it refers to count."""
        section = self.append_packed(root)
        self._sync()
        self._generation += 1
        slot = pack_slot(self._generation, section, self._end)
        self._write(memoryview(slot), SLOT_OFFSETS[self._generation % 2])
        self._sync()
        self._dirty = False

    def _write(self, view: memoryview, offset: int) -> None:
        try:
            while view.nbytes:
                count = os.pwrite(self._descriptor, view[: 1 << 30], offset)
                view = view[count:]
                offset += count
        except OSError as error:
            raise _not_written(self.path, error) from error

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _not_written(self.path, error) from error

    def close(self) -> None:
        """Lets go of the file; sections that no commit followed are cut off again."""
        if self._descriptor < 0:
            return
        try:
            if self._dirty:
                with contextlib.suppress(OSError, CorruptCaptureError):
                    slot = newest_slot(os.pread(self._descriptor, HEAD_BYTES, 0), self.path)
                    os.ftruncate(self._descriptor, slot.file_bytes)
        finally:  # also on an interrupt: the lock goes with the descriptor
            os.close(self._descriptor)
            self._descriptor = -1


@contextlib.contextmanager
def replaced_capture(target: Path) -> Iterator[CaptureWriter]:
    """A writer of a file beside `target`, which takes its place once the block has ended well.

    Until then `target` stays as it was; after an error nothing is left of the new file. Raises what
    CaptureWriter does, also for a `target` that is there and is not a capture.
    """
    try:
        refuse_file_there(target, MAGIC)
    except OSError as error:
        raise _not_written(target, error) from error
    work = target.with_name(f"{target.name}.new")
    # The lock is held until the file has its place, so nobody else begins to write it before.
    with CaptureWriter(work, anew=True) as writer:
        try:
            yield writer
            try:
                work.replace(target)
            except OSError as error:
                raise _not_written(target, error) from error
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                work.unlink()
            raise


def _busy(path: Path) -> LockBusyError:
    return LockBusyError(
        "another process is writing this capture",
        file=path,
        remedy="let it finish, then try again",
    )


def _not_written(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"cannot be written: {error.strerror or error}",
        file=path,
        remedy="give a writable place with -o",
    )


@contextlib.contextmanager
def file_in_memory() -> Iterator[Path]:
    """The name of a file that is gone once nobody has it open: in memory where the system can."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("ciwrap-capture", os.MFD_CLOEXEC)
        try:
            yield Path(f"/proc/self/fd/{memory}")
        finally:
            os.close(memory)
    else:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="ciwrap-capture-") as folder:
            yield Path(folder) / "capture"
