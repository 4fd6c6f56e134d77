"""A comparison that is told to end tells what it has found: Ctrl-C, SIGTERM, SIGHUP."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ciwrap.progress import Progress


class EndedEarlyError(Exception):
    """The comparison was told to end. No CiwrapError: it is the fault of no variable."""


def ended_words(signal_name: str) -> str:
    """Why something was not compared, if a signal ended the comparison."""
    return f"{signal_name} ended the comparison first"


class Ending:
    """Whether a signal has come. signal_name: of the first one, None while none has come.

    Given to `endings_call`, signals end the work at its next step (see EndableProgress), and then
    nothing more: a result is made of what was found.
    """

    def __init__(self) -> None:
        self.signal_name: str | None = None

    def tell(self, number: int) -> None:
        """Takes a signal; raises KeyboardInterrupt for a second one."""
        if self.signal_name is not None:
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(number).name


class EndableProgress:
    """Passes progress on, and raises EndedEarlyError at the first step after a signal has come.

    It does so once only, for what has been found is put in order then.
    Steps are where nothing is left half done.
    """

    def __init__(self, progress: Progress, ending: Ending) -> None:
        self.begin, self.expect, self.end = progress.begin, progress.expect, progress.end
        self._progress = progress
        self._has_raised = False
        self._ending = ending

    def advance(self, byte_count: int) -> None:
        if self._ending.signal_name is not None and not self._has_raised:
            self._has_raised = True
            raise EndedEarlyError(self._ending.signal_name)
        self._progress.advance(byte_count)
