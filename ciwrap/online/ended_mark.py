"""A program of several processes, of which the recording library has ended one."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from ciwrap.errors import WriteFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOOK_SECONDS = 0.25
# Launchers that end the others do so within a second.
_GRACE_SECONDS = 10.0


@contextlib.contextmanager
def set_after_end(mark: Path) -> Iterator[threading.Event]:
    """An event that is set some seconds after a process was ended for what does not match, of which
    the file `mark` tells: what is left of the program then waits for that process in vain.

    The file is deleted before and after. Raises WriteFailedError.
    """
    is_over, is_set = threading.Event(), threading.Event()

    def look() -> None:
        while not mark.exists():
            if is_over.wait(_LOOK_SECONDS):
                return
        if not is_over.wait(_GRACE_SECONDS):
            is_set.set()

    _delete(mark)  # of a command that was killed
    thread = threading.Thread(target=look, name="ciwrap-ended-mark", daemon=True)
    thread.start()
    try:
        yield is_set
    finally:
        is_over.set()
        thread.join()
        _delete(mark)


def _delete(mark: Path) -> None:
    try:
        mark.unlink(missing_ok=True)
    except OSError as error:
        raise WriteFailedError(error.strerror or str(error), file=mark) from error
