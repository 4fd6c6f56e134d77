"""What outputs look like before a command runs, to tell what it wrote from what lay there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ciwrap.compare.outputs import files_of
from ciwrap.model import Message, MessageLevel

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.config import Check

# File times come from a clock that ticks every few milliseconds; some file systems count 2 s.
_TICK_SECONDS = 0.02
_MOST_STALE = 5

_Stamp = tuple[int, int, int, int]


class Stamps:
    """What every output looked like before the command ran.

    A file counts as written again if its times, size or inode changed. Nothing is compared with
    this machine's clock, so a file server with another one does no harm.
    """

    def __init__(self, checks: Iterable[Check]) -> None:
        self._before: dict[Path, _Stamp] = {}
        youngest = 0.0
        for check in checks:
            for path in files_of(check):
                status = path.stat()
                self._before[path] = _stamp(status)
                youngest = max(youngest, status.st_mtime, status.st_ctime)
        # A file written again within the same tick would look untouched.
        if abs(time.time() - youngest) < _TICK_SECONDS:
            time.sleep(_TICK_SECONDS)

    def stale_files(self, check: Check) -> list[Path]:
        """The outputs of a check that were there before and have not been written since."""
        return [path for path in files_of(check) if self._before.get(path) == _stamp(path.stat())]

    def stale_messages(self, check: Check) -> tuple[Message, ...]:
        """An error for each output of a check that was there before and has not been written
        since.
        """
        stale = self.stale_files(check)
        messages = [
            Message(
                MessageLevel.ERROR,
                f"{path}: was not written by this run, but left from an earlier one;"
                " have the command write it, remove it, or leave it out with 'exclude'",
                slug="not-comparable",
                file=str(path),
            )
            for path in stale[:_MOST_STALE]
        ]
        if len(stale) > _MOST_STALE:
            messages.append(
                Message(MessageLevel.ERROR, f"... and {len(stale) - _MOST_STALE} more files")
            )
        return tuple(messages)


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
