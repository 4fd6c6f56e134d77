"""A line of progress for whatever takes more than a second, on terminals only."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from typing import TYPE_CHECKING

from ciwrap.progress import NO_PROGRESS
from ciwrap.report.text import bytes_text, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.progress import Progress

_PATIENCE_SECONDS = 1.0
_FRAME_SECONDS = 0.1
_ERASED_LINE = "\r\x1b[K"


class ProgressLine:
    """Begins silent; the line appears on stderr once a piece of work has lasted a second."""

    def __init__(self) -> None:
        self._label = ""
        self._total: int | None = None
        self._done = 0
        self._due = 0.0
        self._is_shown = False

    def begin(self, label: str, total_bytes: int | None) -> None:
        self._label, self._total, self._done = label, total_bytes, 0
        self._due = time.monotonic() + _PATIENCE_SECONDS

    def expect(self, total_bytes: int) -> None:
        self._total = total_bytes

    def advance(self, byte_count: int) -> None:
        self._done += byte_count
        now = time.monotonic()
        if now >= self._due and self._is_unfinished():
            self._due = now + _FRAME_SECONDS
            self._is_shown = True
            self._write(_ERASED_LINE + self._text())

    def end(self) -> None:
        if self._is_shown:
            self._write(_ERASED_LINE)
        self._is_shown = False

    def _is_unfinished(self) -> bool:
        """A full count says nothing of what still takes its time."""
        return self._total is None or self._done < self._total

    def _text(self) -> str:
        counts = bytes_text(self._done)
        if self._total:
            share = 100 * self._done // self._total
            counts = f"{counts} of {bytes_text(self._total)}, {share} %"
        width = shutil.get_terminal_size().columns - len(counts) - 3
        return f"{safe_name(self._label, max(4, min(width, 40)))}: {counts}"

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone
            sys.stderr.write(text)
            sys.stderr.flush()


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """A line if stderr is a terminal; otherwise nothing at all."""
    if not sys.stderr.isatty():
        yield NO_PROGRESS
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.end()
