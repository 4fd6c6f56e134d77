"""The temporary folder of a self-test, which goes away again whatever ends the process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.interrupts import later_interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "ciwrap-selftest-"
_LOCK = "lock"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, gone afterwards. What killed processes of this user left goes, too: a lock,
    which ends with its process, tells them from those that live.
    """
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        with later_interrupts():  # half of it, without the lock, would stay for good
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
