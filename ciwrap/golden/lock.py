"""One writer at a time: an advisory lock on a golden folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING

from ciwrap.errors import LockBusyError, WriteFailedError
from ciwrap.golden.paths import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEFAULT_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05
_MOST_SAID = 200


@contextlib.contextmanager
def writer_lock(
    folder: Path,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    *,
    doing: str = "writing goldens",
    is_needed: bool = True,
) -> Iterator[None]:
    """Holds the folder's lock for the block.

    doing: what those who have this lock do, for those who cannot get it. is_needed: whether nothing
    is to be done on a file system that knows no locks.

    The kernel gives the lock up when its holder ends, however it ends; a lock file left behind by a
    killed process is therefore harmless. Raises LockBusyError after `wait_seconds`,
    WriteFailedError if the folder cannot be written, or a lock that is needed cannot be had.
    """
    path = folder / LOCK_NAME
    descriptor = None
    try:
        descriptor = _acquire(path, wait_seconds, doing, is_needed=is_needed)
        _say(descriptor, f"process {os.getpid()}".encode())
        yield
    finally:
        if descriptor is None:
            remove_lock_file(folder)
        else:
            # Unlinked while still held: whoever waits on this inode sees in `_acquire` that it is
            # no longer the current one, and starts over.
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)


def _say(descriptor: int, said: bytes) -> None:
    """Writes down who holds the lock, for those who wait; a full disk keeps nobody from it."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, said, 0)


def _acquire(path: Path, wait_seconds: float, doing: str, *, is_needed: bool) -> int:
    """The descriptor that holds the lock; raises as `writer_lock` does."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            descriptor = _open(path)
        except FileNotFoundError as error:
            # Another process has just cleared the folder away, as it does with empty ones.
            if time.monotonic() >= deadline:
                raise _no_lock(path, error) from error
            _make_folder(path.parent)
            continue
        except OSError as error:
            raise _no_lock(path, error) from error
        try:
            if _try_lock(descriptor, is_needed=is_needed) and _is_current(descriptor, path):
                return descriptor
            said = os.pread(descriptor, _MOST_SAID, 0).decode("utf-8", "replace")
            holder = " ".join(said.split()[:2])
        except OSError as error:
            os.close(descriptor)
            raise _no_lock(path, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise LockBusyError(
                f"{holder or 'another process'} is {doing} in this folder"
                f" (waited {wait_seconds:g} s)",
                file=path.parent,
                remedy="let it finish, then try again",
            )
        time.sleep(_POLL_SECONDS)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def remove_lock_file(folder: Path) -> None:
    """Removes a lock file that nobody holds: one that an interrupted attempt left."""
    path = folder / LOCK_NAME
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if _try_lock(descriptor) and _is_current(descriptor, path):
                path.unlink()
        finally:
            os.close(descriptor)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_lock(folder, error) from error


def _no_lock(path: Path, error: OSError) -> WriteFailedError:
    return WriteFailedError(
        f"cannot lock the folder: {error.strerror}",
        file=path,
        remedy="make the folder writable",
    )


def _try_lock(descriptor: int, *, is_needed: bool = True) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if is_needed:
            raise
    return True


def _is_current(descriptor: int, path: Path) -> bool:
    held = os.fstat(descriptor)
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino)
