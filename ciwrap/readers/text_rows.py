"""Rows of text tables, block by block, with their line numbers."""

from __future__ import annotations

import codecs
import csv
import re
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.readers.files import InputFile

BLOCK_BYTES = 1 << 18
MAX_LINE_CHARACTERS = 16 << 20
_GAPS = re.compile(r"\t| {2,}")
_WORDS = re.compile(r'"((?:[^"]|"")*)"(?!\S)|([^"\s]\S*)|(\S)')


class Dialect(Struct, frozen=True):
    """How a table is written. delimiter None: white space. comments: what their lines begin with.
    skipped: so many lines at the start are no part of it.
    """

    delimiter: str | None
    comments: tuple[str, ...] = ("#",)
    final_newline: bool = True
    skipped: int = 0

    def is_blank(self, text: str) -> bool:
        """Whether there is no row in it. A tab that parts cells makes one of empty cells, as a
        comma does.
        """
        return not text.strip() and (self.delimiter is None or self.delimiter not in text)

    def comment_of(self, line: str) -> str | None:
        """The text of a comment line, without what marks it; None for any other line."""
        mark = next((mark for mark in self.comments if line.startswith(mark)), None)
        return None if mark is None else line[len(mark) :]


class Block(Struct):
    """Consecutive rows. lines: where each begins. comments: (line, text) of comment lines among
    them.

    is_simple: nothing but ASCII, and no underscores. first_text: the first row as it is written.
    has_quotes: whether a cell stands in quotes.
    """

    rows: list[list[str]]
    lines: list[int]
    comments: list[tuple[int, str]]
    is_simple: bool
    first_text: str = ""
    has_quotes: bool = False


class RowReader:
    """Splits a file into rows. Raises CorruptFileError for what is not text or no such table.

    if_binary: what the user can do about a file that is not text.
    """

    def __init__(
        self,
        file: InputFile,
        dialect: Dialect,
        *,
        if_binary: str = "if it is raw binary, set 'format: raw'",
    ) -> None:
        self._file = file
        self._dialect = dialect
        self._if_binary = if_binary

    def blocks(self) -> Iterator[Block]:
        """All rows in order; blank lines and comments are no rows."""
        pending = ""
        line = 1
        for text in self._texts():
            pending += text
            if "\n" not in text and len(pending) > MAX_LINE_CHARACTERS:
                raise self._error("is longer than a table's line may be", line)
            end = pending.rfind("\n") + 1
            lines, pending = pending[:end].split("\n")[:-1], pending[end:]
            if not lines:
                continue
            taken, block = self._block(lines, line)
            yield block
            # Lines of a quoted cell that goes on in the next block.
            pending = "".join(part + "\n" for part in lines[taken:]) + pending
            line += taken
        if not self._dialect.is_blank(pending):
            if self._dialect.final_newline and not pending.endswith("\n"):
                raise self._error(
                    "the last line has no line break, as of a file cut off"
                    " (set 'final_newline: false' if that is how it is written)",
                    line + pending.count("\n"),
                )
            lines = pending.removesuffix("\n").split("\n")
            taken, block = self._block(lines, line)
            if taken < len(lines):
                raise self._error("has a quote that is never closed", line + taken)
            yield block

    def first_line(self) -> str:
        """The first line that is neither blank nor a comment, '' if there is none."""
        pending = ""
        number = 0
        for text in self._texts():
            *lines, pending = (pending + text).split("\n")
            for line in map(str.strip, lines):
                number += 1
                if number <= self._dialect.skipped:
                    continue
                if line and self._dialect.comment_of(line) is None:
                    return line
            if len(pending) > MAX_LINE_CHARACTERS:
                break
        return pending

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        size = self._file.byte_count
        offset = 0
        while offset < size:
            data = bytes(self._file.read_at(offset, min(BLOCK_BYTES, size - offset)))
            if b"\0" in data:
                raise CorruptFileError(
                    "is not text (it holds NUL bytes)",
                    file=self._file.path,
                    remedy=self._if_binary,
                )
            offset += len(data)
            try:
                text = decoder.decode(data, final=offset >= size)
            except UnicodeDecodeError:
                raise CorruptFileError("is not UTF-8 text", file=self._file.path) from None
            yield text

    def _block(self, lines: list[str], first_line: int) -> tuple[int, Block]:
        """The rows of these lines, and how many lines they take."""
        delimiter, skipped = self._dialect.delimiter, self._dialect.skipped
        rows: list[list[str]] = []
        numbers: list[int] = []
        comments: list[tuple[int, str]] = []
        is_simple = True
        first_text = ""
        has_quotes = False
        position = 0
        while position < len(lines):
            number = first_line + position
            text = lines[position].removesuffix("\r")
            position += 1
            stripped = text.strip()
            if self._dialect.is_blank(text) or number <= skipped:
                continue
            comment = self._dialect.comment_of(stripped)
            if comment is not None:
                comments.append((number, comment))
                continue
            if not rows:
                first_text = stripped
            if '"' in text:
                start = position - 1
                while text.count('"') % 2 and position < len(lines):
                    text += "\n" + lines[position].removesuffix("\r")
                    position += 1
                if text.count('"') % 2:
                    if len(text) > MAX_LINE_CHARACTERS:
                        raise self._error("has a quote that is never closed", number)
                    return start, Block(rows, numbers, comments, is_simple, first_text, has_quotes)
                has_quotes = True
                rows.append(self._quoted(text, number))
            else:
                rows.append(text.split(delimiter))
            numbers.append(number)
            is_simple = is_simple and text.isascii() and "_" not in text
        return position, Block(rows, numbers, comments, is_simple, first_text, has_quotes)

    def _quoted(self, text: str, line: int) -> list[str]:
        delimiter = self._dialect.delimiter
        if delimiter is None:
            cells: list[str] = []
            for quoted, bare, stray in _WORDS.findall(text):
                if stray:
                    raise self._error("has a quote within a cell", line)
                cells.append(bare or quoted.replace('""', '"'))
            return cells
        try:
            (row,) = csv.reader([text], delimiter=delimiter, strict=True)
        except (csv.Error, ValueError) as error:
            raise self._error(f"is not such a table: {error}", line) from None
        return row

    def split_names(self, text: str, count: int) -> list[str]:
        """The names of `count` columns, as a line has them: as rows are split, else at two blanks,
        since a name may be of two words (`Step Nr.`); [] if there are not as many.
        """
        delimiter = self._dialect.delimiter
        names = [cell.strip() for cell in text.strip().split(delimiter)]
        if delimiter is None and len(names) != count:
            names = _GAPS.split(text.strip())
        return names if len(names) == count else []

    def _error(self, problem: str, line: int) -> CorruptFileError:
        return CorruptFileError(f"line {line}: {problem}", file=self._file.path)
