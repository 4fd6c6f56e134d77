"""Plain reading of regular files, with errors that name them. Never mmap: a file that is truncated
while it is mapped ends the process instead of raising an error.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.errors import CorruptFileError, OutputMissingError, UnreadableFileError
from ciwrap.readers.base import as_elements, not_there, reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

_MOST_PER_CALL = 1 << 30


class InputFile:
    """A regular file open for reading at given offsets.

    Raises OutputMissingError if there is none, UnreadableFileError for folders, pipes and devices
    and for whatever the operating system refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        try:
            with reading(path):
                # Without O_NONBLOCK, opening a named pipe would wait for a writer.
                self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
                status = os.fstat(self._descriptor)
        except UnreadableFileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                if path.is_symlink():
                    raise OutputMissingError(
                        "is a broken link", file=path, remedy="fix the link"
                    ) from None
                raise not_there(path) from None
            raise
        except ValueError as error:
            raise UnreadableFileError(f"is not a valid path: {error}", file=ascii(path)) from None
        if not stat.S_ISREG(status.st_mode):
            self.close()
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise UnreadableFileError(f"is {what}", file=path, remedy="give a file")
        self.byte_count = status.st_size

    def read_at(self, offset: int, count: int) -> bytearray:
        """Exactly `count` bytes from `offset`. Raises CorruptFileError if the file ends before."""
        data = bytearray(count)
        view = memoryview(data)
        done = 0
        with reading(self.path):
            while done < count:
                part = view[done : done + _MOST_PER_CALL]
                got = _read_into(self._descriptor, part, offset + done)
                if got == 0:
                    # It may have become shorter than where this began to read.
                    end = min(offset + done, os.fstat(self._descriptor).st_size)
                    raise CorruptFileError(
                        f"ends after {end} bytes, but {offset + count} are expected",
                        file=self.path,
                        remedy="is the program still writing it?",
                    )
                done += got
        return data

    def elements(self, offset: int, dtype: str) -> Callable[[int, int], NDArray[Any]]:
        """Reads elements first .. first + count - 1 of those that lie back to back from offset."""
        item = storage_dtype(dtype).itemsize
        return lambda first, count: as_elements(
            self.read_at(offset + first * item, count * item), dtype
        )

    def read_some(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset`; fewer only at the end of the file."""
        count = min(count, self.byte_count - offset)
        return bytes(self.read_at(offset, count)) if count > 0 else b""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def _read_into(descriptor: int, part: memoryview, offset: int) -> int:
    """Reads up to as many bytes as `part` takes, and says how many."""
    if hasattr(os, "preadv"):  # macOS from 11 on
        return os.preadv(descriptor, [part], offset)
    data = os.pread(descriptor, len(part), offset)
    part[: len(data)] = data
    return len(data)


def whole_file(path: Path) -> bytearray:
    """All bytes of a file that is held in memory anyway. Raises as `InputFile` does."""
    file = InputFile(path)
    data = file.read_at(0, file.byte_count)
    file.close()
    return data


def check_is_file(path: Path) -> None:
    """Raises for what is not a regular file that can be read, and for an empty one."""
    file = InputFile(path)
    size = file.byte_count
    file.close()
    if size == 0:
        raise CorruptFileError("is empty", file=path, remedy="is the program still writing it?")
