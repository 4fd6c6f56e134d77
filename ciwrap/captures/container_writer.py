"""The one writer of a capture file (docs/reference/capture-format.md).

A commit writes its sections behind everything that counts, waits for the disk, and only then writes
one of the two slots, in turn. So whatever moment a crash comes at, one slot still describes a whole
file: the state before, or the state after.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import zlib
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.captures.container import (
    FILE_HEAD,
    HEAD_BYTES,
    MAGIC,
    SLOT_OFFSETS,
    VERSION,
    Section,
    newest_slot,
    pack_slot,
)
from ciwrap.captures.other_file import refuse_file_there, refuse_other_file
from ciwrap.closing import Closing
from ciwrap.errors import (
    CorruptCaptureError,
    LockBusyError,
    UnsupportedFormatError,
    WriteFailedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
