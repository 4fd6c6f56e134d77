"""Text in lines, block by block, with those handed out alone that somebody looks for."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Protocol

from ciwrap.errors import CorruptFileError, FileLimitError
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ciwrap.readers.files import InputFile

MOST_LINE_BYTES = 64 << 10
_BLOCK_BYTES = 4 << 20


class Line(Struct, frozen=True):
    """A line without its line break, or a piece of one. number: from 1. offset: where it begins in
    the file. skipped: how many bytes of the line stand before.
    """

    data: bytes
    number: int
    offset: int
    skipped: int = 0

    @property
    def text(self) -> str:
        return as_text(self.data)

    def pieces(self) -> Iterator[Line]:
        """What stands between carriage returns: lines that a terminal writes over one another."""
        begin = 0
        for data in self.data.split(b"\r"):
            yield Line(data, self.number, self.offset + begin, begin)
            begin += len(data) + 1


def as_text(data: bytes) -> str:
    """Bytes of a log as text: UTF-8, or Latin-1 where they are none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


class Listener(Protocol):
    """Who looks for lines. literal: bytes that all of them hold; None: any line may be one.

    follows: whether the lines after this one are wanted, whatever they hold.
    """

    literal: bytes | None
    follows: bool

    def hear(self, line: Line) -> None:
        """A line that holds the literal."""

    def follow(self, line: Line) -> None:
        """A line after one that was heard, as long as `follows` says so."""


class Block(Struct, frozen=True):
    """Whole lines of a file. offset, first_line: where they begin."""

    data: bytes
    offset: int
    first_line: int


def blocks_of(file: InputFile, path: Path) -> Iterator[Block]:
    """A file in pieces of whole lines, without the mark of UTF-8 that some programs write first.

    Raises FileLimitError for a line of more than 64 KiB, CorruptFileError for bytes that are no
    text.
    """
    offset, line, rest = 0, 1, b""
    while True:
        piece = file.read_some(offset + len(rest), _BLOCK_BYTES)
        data = rest + piece
        if not data:
            return
        end = len(data) if not piece else data.rfind(b"\n") + 1
        whole, rest = data[:end], data[end:]
        _refuse_long_lines(whole or data, path, line)
        if len(rest) > MOST_LINE_BYTES + 1:
            _refuse_long_lines(rest, path, line + whole.count(b"\n"))
        if whole:
            _refuse_zeros(whole, path, line)
            mark = len(BOM_UTF8) if not offset and whole.startswith(BOM_UTF8) else 0
            yield Block(whole[mark:], offset + mark, line)
            line += whole.count(b"\n")
        offset += end


def _refuse_long_lines(data: bytes, path: Path, first_line: int) -> None:
    at = 0
    while len(data) - at > MOST_LINE_BYTES:
        end = data.rfind(b"\n", at, at + MOST_LINE_BYTES + 1)
        if end < 0:
            raise FileLimitError(
                f"line {first_line + data.count(bytes([10]), 0, at)} is longer than 64 KiB",
                file=path,
                remedy="is it a log? Name its format with 'format'",
            )
        at = end + 1


def _refuse_zeros(data: bytes, path: Path, first_line: int) -> None:
    at = data.find(b"\0")
    if at >= 0:
        raise CorruptFileError(
            f"line {first_line + data.count(bytes([10]), 0, at)} holds a zero byte: it is not text",
            file=path,
            remedy="name its format with 'format', or leave it out with 'exclude'",
        )


def hand_out(file: InputFile, path: Path, listeners: Sequence[Listener]) -> bool:
    """Hands every line to those who look for it, in the listeners' order. Whether all of the text
    was UTF-8.

    Raises as `blocks_of` does, and what the listeners raise.
    """
    is_utf8 = True
    for block in blocks_of(file, path):
        if is_utf8 and not block.data.isascii():
            try:
                block.data.decode()
            except UnicodeDecodeError:
                is_utf8 = False
        _hand_out_block(block, listeners)
    return is_utf8


def _hand_out_block(block: Block, listeners: Sequence[Listener]) -> None:
    data = block.data
    wanted = [
        (begin, rank)
        for rank, listener in enumerate(listeners)
        for begin in _line_starts(data, listener.literal)
    ]
    wanted.sort()
    # Lines are counted from the last one that was handed out.
    number, counted = block.first_line, 0
    position, begin = 0, 0
    while begin < len(data):
        following = [one for one in listeners if one.follows]
        if not following:
            if position == len(wanted):
                return
            begin = wanted[position][0]
        number += data.count(b"\n", counted, begin)
        counted = begin
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        stop = end - 1 if data.endswith(b"\r", begin, end) else end
        line = Line(data[begin:stop], number, block.offset + begin)
        for one in following:
            one.follow(line)
        first = position
        while position < len(wanted) and wanted[position][0] == begin:
            position += 1
        for piece in line.pieces() if b"\r" in line.data else (line,):
            for _, rank in wanted[first:position]:
                listeners[rank].hear(piece)
        begin = end + 1


def _line_starts(data: bytes, literal: bytes | None) -> Iterator[int]:
    """Where the lines begin that hold the literal; all of them without one."""
    at = 0 if literal is None else data.find(literal)
    while 0 <= at < len(data):
        yield data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        if end < 0:
            return
        at = end + 1 if literal is None else data.find(literal, end)
