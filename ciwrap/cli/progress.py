"""A progress bar for whatever takes more than a second, on terminals only."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from ciwrap.progress import NO_PROGRESS
from ciwrap.report.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from ciwrap.progress import Progress

_PATIENCE_SECONDS = 1.0
# A terminal of fewer columns has no room for the speed and the time that is left.
_NARROW = 80
_COUNTS_WIDTH = 30


class ProgressBar:
    """Begins silent; the bar appears on stderr once a piece of work has lasted a second."""

    def __init__(self) -> None:
        self._label = ""
        self._total: int | None = None
        self._done = 0
        self._started = 0.0
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def begin(self, label: str, total_bytes: int | None) -> None:
        self._label, self._total, self._done = safe_name(label, 40), total_bytes, 0
        self._started = time.monotonic()

    def expect(self, total_bytes: int) -> None:
        self._total = total_bytes
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=total_bytes)

    def advance(self, byte_count: int) -> None:
        self._done += byte_count
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)
        elif time.monotonic() - self._started >= _PATIENCE_SECONDS and self._is_unfinished():
            self._show()

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None

    def _is_unfinished(self) -> bool:
        """A bar that is full in its first frame says nothing of what still takes its time."""
        return self._total is None or self._done < self._total

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        console = Console(file=sys.stderr)
        speed = [TransferSpeedColumn(), TimeRemainingColumn()]
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None if console.width < _NARROW else 40),
            DownloadColumn(binary_units=True),
            *(speed if console.width >= _NARROW else ()),
            console=console,
            transient=True,
        )
        label = self._label
        if console.width < _NARROW:
            label = safe_name(label, max(4, console.width - _COUNTS_WIDTH))
        self._task = self._bar.add_task(label, total=self._total, completed=self._done)
        self._bar.start()


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar if stderr is a terminal; otherwise nothing at all."""
    if not sys.stderr.isatty():
        yield NO_PROGRESS
        return
    bar = ProgressBar()
    try:
        yield bar
    finally:
        bar.end()
