"""Files as the golden store needs them: whole, regular, and on the disk when we say so."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from ciwrap.errors import FileLimitError, UnreadableFileError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_PIECE = 1 << 20


def read_regular(path: Path, limit: int) -> bytes:
    """A regular file's bytes. Raises FileNotFoundError, UnreadableFileError, FileLimitError."""
    data = b""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
            with path.open("rb") as stream:
                data = read_at_most(stream, limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableFileError(error.strerror or "the file cannot be read", file=path) from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFileError("this is not a regular file", file=path)
    # It may have grown since.
    byte_count = max(status.st_size, len(data))
    if byte_count > limit:
        raise FileLimitError(
            f"its {byte_count} bytes are more than the {limit} that are taken", file=path
        )
    return data


def read_at_most(stream: BinaryIO, limit: int) -> bytes:
    """What a file still has from where it stands, `limit` bytes at most.

    Python takes memory for as many bytes as are asked for before it reads. Where a process may not
    have that much (`ulimit -v`), a small file could not be read under a large limit.
    """
    expected = os.fstat(stream.fileno()).st_size - stream.tell()
    pieces = [stream.read(min(limit, max(expected, 0) + 1))]
    left = limit - len(pieces[0])
    while left > 0 and pieces[-1]:
        pieces.append(stream.read(min(left, _PIECE)))  # it has grown since
        left -= len(pieces[-1])
    return b"".join(pieces)


def write_text(path: Path, text: str) -> None:
    """Writes a file as UTF-8 and waits until the disk has it. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def flush(path: Path) -> None:
    """Waits until the disk has a file that somebody else wrote. Raises OSError."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def flush_folder(folder: Path) -> None:
    """Waits until the disk has a folder's names, after a rename in it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems know no fsync of folders; their renames are synchronous.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Removes a file, if it is there. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
