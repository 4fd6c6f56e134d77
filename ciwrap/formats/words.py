"""Texts that are held in memory: their lines, and numbers in them by the grammar of tables."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.reader import whole_file
from ciwrap.formats.tables import CellError, as_floats, as_ints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


def numbers_in(words: Sequence[str], dtype: str = "<f8") -> NDArray[Any]:
    """The numbers that ASCII words are, "<f8" or "<i8". Raises CorruptFileError if one is none, or
    one that such a number cannot hold.
    """
    is_simple = "_" not in "".join(words)
    try:
        if dtype == "<i8":
            return as_ints(words, is_simple=is_simple)
        return as_floats(words, is_simple=is_simple, empty_is_nan=False)
    except CellError as error:
        raise CorruptFileError(f"holds {error.cell[:40]!a}, which {error.problem}") from None


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, without the white space around them, each with its
    number, counted from 1. Raises as `InputFile` does.
    """
    text = whole_file(path).decode("utf-8", "backslashreplace")
    for number, line in enumerate(text.split("\n"), 1):
        if stripped := line.strip():
            yield number, stripped


class HeldLines:
    """Numbered lines, taken one after the other. Raises CorruptFileError if there is none."""

    def __init__(self, lines: Iterable[tuple[int, str]]) -> None:
        self._lines = list(lines)
        self._at = 0
        if not self._lines:
            raise CorruptFileError("holds no line")

    @property
    def next(self) -> str:
        """The line that comes next; '' at the end."""
        return self._lines[self._at][1] if self._at < len(self._lines) else ""

    def take(self) -> str:
        """The next line, which then is behind. Raises CorruptFileError at the end."""
        line = self.next
        if not line:
            raise self.error("is the last one, where more are expected")
        self._at += 1
        return line

    def expect(self, line: str) -> None:
        """Takes the next line. Raises CorruptFileError for another one."""
        if self.next != line:
            raise self.error(f"is where {line[:40]!a} is expected")
        self._at += 1

    def error(self, problem: str) -> CorruptFileError:
        """An error that tells the line that comes next, or the last one."""
        number, _ = self._lines[min(self._at, len(self._lines) - 1)]
        return CorruptFileError(f"line {number} {problem}")


@contextlib.contextmanager
def telling_line(data: bytes, at: Callable[[], int]) -> Iterator[None]:
    """Errors of the block tell the line, counted from 1. at: the byte that was read last."""
    try:
        yield
    except CorruptFileError as error:
        line = data.count(b"\n", 0, at()) + 1
        error.message = f"line {line}: {error.message}"
        raise
