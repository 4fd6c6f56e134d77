"""The terminal: a line that says how far the work is, and questions answered by a key."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

import click

from ciwrap.base.late import shutil
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.report.text import bytes_text, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.base.progress import Progress

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
    """A line if stderr is a terminal, unless --quiet is given; otherwise nothing at all."""
    context = click.get_current_context(silent=True)
    is_quiet = context is not None and getattr(context.obj, "quiet", False)
    if is_quiet or not sys.stderr.isatty():
        yield NO_PROGRESS
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.end()


_LONGEST = 32
_END_OF_INPUT = "\x04"


def has_keys() -> bool:
    """Whether single keys can be read: from a terminal that is more than a typewriter."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") != "dumb"


def ask_key(question: str) -> str:
    """Prints a question and waits for a key; "\\n" for Enter, "" for one that is no character.

    What was typed before the question counts for nothing: it was of something else. Raises
    click.Abort at the end of input; KeyboardInterrupt.
    """
    # Not every system has them.
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSAFLUSH)
        click.echo(f"{question}: ", nl=False)
        data = os.read(descriptor, _LONGEST)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    key = data.decode("utf-8", "replace").replace("\r", "\n")
    # An arrow is several bytes, and so is what was pasted.
    key = key if len(key) == 1 else ""
    click.echo(key if key.isprintable() else "")
    if not data or key == _END_OF_INPUT:
        raise click.Abort
    return key
