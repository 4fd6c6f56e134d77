"""Lines with styles, and where they are printed: a terminal, a log, a list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import IO

from ciwrap.base.late import shutil

# Parameters of the terminal's "select graphic rendition" (ECMA-48, 8.3.117).
_CODES = {"bold": 1, "dim": 2, "underline": 4, "red": 31, "green": 32, "yellow": 33, "magenta": 35}
_PLAIN_TERMINALS = frozenset({"", "dumb", "unknown"})


class Text:
    """A line whose parts have styles: words of `_CODES` (bold, dim, ...), or none."""

    __slots__ = ("_parts",)

    def __init__(self, text: str = "", style: str = "") -> None:
        self._parts = [(text, style)]

    def append(self, text: str | Text, style: str = "") -> Text:
        """Adds to the end of the line, and returns the line."""
        self._parts += text._parts if isinstance(text, Text) else [(text, style)]
        return self

    @property
    def plain(self) -> str:
        """The line without its styles."""
        return "".join(text for text, _ in self._parts)

    def part(self, start: int, end: int | None = None) -> Text:
        """The characters from `start` on, up to `end`, as they are styled."""
        found, at = Text(), 0
        for text, style in self._parts:
            last = len(text) if end is None else max(end - at, 0)
            found.append(text[max(start - at, 0) : last], style)
            at += len(text)
        return found

    @property
    def styled(self) -> str:
        """The line with the terminal's escapes for its styles."""
        return "".join(_styled(text, style) for text, style in self._parts)


def _styled(text: str, style: str) -> str:
    if not (text and style):
        return text
    codes = ";".join(str(_CODES[word]) for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m"


class Console:
    """Prints lines to a stream, and never interprets what they say. color: whether with styles.

    Lines are broken between words on a terminal, what follows indented; never in logs and files.
    """

    def __init__(self, stream: IO[str], *, color: bool) -> None:
        self._stream = stream
        self._color = color

    def print(self, line: str | Text = "", style: str = "") -> None:
        """Writes a line, or several, at once. style: of all of it."""
        text = Text(line, style) if isinstance(line, str) else line
        width = terminal_width() if self._stream.isatty() else None
        for one in _lines(text):
            for part in [one] if width is None else _wrapped(one, width):
                self._stream.write(f"{part.styled if self._color else part.plain}\n")
        self._stream.flush()


class Lines(Console):
    """Keeps lines instead of printing them, to be printed elsewhere."""

    def __init__(self) -> None:
        self.found: list[Text] = []

    def print(self, line: str | Text = "", style: str = "") -> None:
        text = Text(line, style) if isinstance(line, str) else line
        self.found += _lines(text)

    def on_screen(self) -> list[Text]:
        """The lines as this terminal shows them: broken where they are wider."""
        width = terminal_width()
        return [part for line in self.found for part in _wrapped(line, width)]


def terminal_width() -> int:
    """In characters. Python 3.10 says 0 of a terminal that does not know."""
    return shutil.get_terminal_size().columns or 80


def terminal_height() -> int:
    """In lines."""
    return shutil.get_terminal_size().lines or 24


def _lines(text: Text) -> Iterator[Text]:
    start = 0
    for found in re.finditer("\n", text.plain):
        yield text.part(start, found.start())
        start = found.end()
    yield text.part(start) if start else text


def _wrapped(line: Text, width: int) -> Iterator[Text]:
    """The line in pieces of at most so many characters, broken at spaces where there are any."""
    plain = line.plain
    if len(plain) <= width:
        yield line
        return
    indent = len(plain) - len(plain.lstrip(" "))
    room = max(width - indent - 2, 20)
    start, end, is_first = 0, 0, True
    for word in re.finditer(r"\S+", plain):
        limit = width if is_first else room
        if end > start and word.end() - start > limit and end > indent:
            yield _piece(line, start, end, 0 if is_first else indent + 2)
            start, is_first = word.start(), False
        end = word.end()
    yield _piece(line, start, None, 0 if is_first else indent + 2)


def _piece(line: Text, start: int, end: int | None, indent: int) -> Text:
    return Text(" " * indent).append(line.part(start, end))


def make_console(stream: IO[str], *, color: bool | None = None) -> Console:
    """A console that is plain unless the stream is a terminal.

    color: True or False overrides what the stream and the environment (NO_COLOR, FORCE_COLOR, TERM)
    say.
    """
    if color is None and os.environ.get("NO_COLOR"):
        color = False
    elif color is None and os.environ.get("FORCE_COLOR"):
        color = True
    elif color is None:
        color = stream.isatty() and os.environ.get("TERM", "").lower() not in _PLAIN_TERMINALS
    return Console(stream, color=color)
