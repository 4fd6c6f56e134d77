"""Lines with a few styles, on a terminal or in a log."""

from __future__ import annotations

import os
from typing import IO

# Parameters of the terminal's "select graphic rendition" (ECMA-48, 8.3.117).
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35}
_PLAIN_TERMINALS = frozenset({"", "dumb", "unknown"})


class Text:
    """A line whose parts have styles: words of `bold dim red green yellow magenta`, or none."""

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
    """Prints lines to a stream, and never interprets what they say. color: whether with styles."""

    def __init__(self, stream: IO[str], *, color: bool) -> None:
        self._stream = stream
        self._color = color

    @property
    def encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def print(self, line: str | Text = "", style: str = "") -> None:
        """Writes a line, at once. style: of all of it."""
        text = Text(line, style) if isinstance(line, str) else line
        self._stream.write(f"{text.styled if self._color else text.plain}\n")
        self._stream.flush()


def make_console(stream: IO[str], *, color: bool | None = None) -> Console:
    """A console that is plain unless the stream is a terminal.

    color: True or False overrides what the stream and the environment (NO_COLOR, FORCE_COLOR, TERM)
    say.
    """
    return Console(stream, color=_shows_styles(stream) if color is None else color)


def _shows_styles(stream: IO[str]) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "").lower() not in _PLAIN_TERMINALS
