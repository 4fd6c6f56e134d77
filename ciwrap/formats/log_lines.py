"""Lines of text, block by block, and the numbers in them, in their order."""

from __future__ import annotations

from array import array
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from ciwrap.arrays.values import NO_STEP, PlaceInText
from ciwrap.base.errors import CorruptFileError, FileLimitError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import array_of_texts
from ciwrap.formats.log_template import printed_digits
from ciwrap.formats.tables import LOST_MINUS, loses_minus, parse_float
from ciwrap.model.settings import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.formats.reader import InputFile

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


def blocks_of(file: InputFile) -> Iterator[Block]:
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
        _refuse_long_lines(whole or data, file.path, line)
        if len(rest) > MOST_LINE_BYTES + 1:
            _refuse_long_lines(rest, file.path, line + whole.count(b"\n"))
        if whole:
            _refuse_zeros(whole, file.path, line)
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


def hand_out(file: InputFile, listeners: Sequence[Listener]) -> bool:
    """Hands every line to those who look for it, in the listeners' order. Whether all of the text
    was UTF-8.

    Raises as `blocks_of` does, and what the listeners raise.
    """
    is_utf8 = True
    for block in blocks_of(file):
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


_MOST_PRINTED = 1000


class Steps(Struct):
    """The step that a program is at, by its own lines. is_after: these stand before what is of
    them. open: places in series that wait for the next such line.
    """

    is_after: bool
    current: int = NO_STEP
    open: list[tuple[array[int], int]] = field(default_factory=list)

    def enter(self, step: int) -> None:
        self.current = step
        for labels, at in self.open:
            labels[at] = step
        self.open.clear()

    def label(self, labels: array[int]) -> None:
        """Appends the label of an element that was found now."""
        labels.append(self.current if self.is_after else NO_STEP)
        if not self.is_after:
            self.open.append((labels, len(labels) - 1))


class Series:
    """One value of a log as it grows.

    fault: why it cannot be compared; the first reason counts. units: what fields of text beside it
    say. kind: "number", "int" or "text". steps: the name of its label variable, None where its
    elements are counted. is_single: whether one element was taken, which then is not an array.
    repeated: how many were left out, since their step came again.
    """

    def __init__(self, name: str, kind: str, *, steps: str | None = None) -> None:
        self.name = name
        self.kind = kind
        self.steps = steps
        self.fault: str | None = None
        self.is_single = False
        self.repeated = 0
        self.units: dict[str, tuple[str, int]] = {}
        self.values: Any = array("q") if kind == "int" else array("d") if kind == "number" else []
        self.labels: array[int] = array("q")
        self._lines: array[int] = array("q")
        self._offsets: array[int] = array("q")
        self._columns: array[int] = array("i")
        self._lengths: array[int] = array("i")
        self.printed_digits = 0
        self.printed_exponent: int | None = None
        self._chosen: NDArray[np.int64] | None = None

    @property
    def found_count(self) -> int:
        """How many there are, whether or not they count."""
        return len(self.values)

    @property
    def count(self) -> int:
        """How many count."""
        return len(self.values) if self._chosen is None else int(self._chosen.size)

    def fail(self, line: Line, at: int, problem: str) -> None:
        """Notes what keeps the series from being compared, and where."""
        if self.fault is None:
            word = len(line.data[:at].split()) + 1
            self.fault = f"line {line.number}, word {word} {problem}"

    def add(self, line: Line, start: int, end: int, *, is_absolute: bool = False) -> bool:
        """Takes the bytes from start to before end as the next element; whether that was one."""
        text = as_text(line.data[start:end])
        if self.kind == "text":
            value: Any = text
        else:
            value = self._number(line, start, text)
            if value is None:
                return False
            if is_absolute:
                value = abs(value)
        self.values.append(value)
        self._lines.append(line.number)
        self._offsets.append(line.offset + start)
        self._columns.append(line.skipped + start + 1)
        self._lengths.append(end - start)
        if len(self.values) <= _MOST_PRINTED and self.kind == "number":
            digits, exponent = printed_digits(text)
            if digits:
                self.printed_digits = max(self.printed_digits, digits)
                known = self.printed_exponent
                self.printed_exponent = exponent if known is None else min(known, exponent)
        return True

    def _number(self, line: Line, start: int, text: str) -> float | int | None:
        stars = bool(text) and not text.strip("*")
        whole = "whole " if self.kind == "int" else ""
        problem = ": the number was too long for its field" if stars else f", not a {whole}number"
        try:
            value = int(text) if self.kind == "int" else parse_float(text)
            if self.kind == "int" and loses_minus(text):
                raise OverflowError(LOST_MINUS)
        except ValueError:
            value = None
        except OverflowError as error:
            value, problem = None, f", which {error}"
        if value is None:
            self.fail(line, start, f"is {cut(text)!r}{problem}")
        return value

    def note_unit(self, line: Line, name: str, text: str) -> None:
        """A word beside the value; another one in another line makes it not comparable."""
        known = self.units.setdefault(name, (text, line.number))
        if known[0] != text and self.fault is None:
            before = f"{name} is {cut(known[0])!r} in line {known[1]}"
            self.fault = f"{before}, {cut(text)!r} in line {line.number}"

    def finish(self, take: str, duplicates: str) -> None:
        """Chooses what counts, once all is read."""
        chosen = np.arange(len(self.values), dtype=np.int64)
        if self.steps is not None and duplicates != "all":
            chosen = self._without_duplicates(chosen, duplicates)
            self.repeated = len(self.values) - chosen.size
        if take != "all":
            self.is_single = True
            chosen = chosen[:1] if take == "first" else chosen[-1:]
        if chosen.size != len(self.values):
            self._chosen = chosen

    def _without_duplicates(self, chosen: NDArray[np.int64], duplicates: str) -> NDArray[np.int64]:
        labels = np.asarray(self.labels, dtype=np.int64)
        _, first, counts = np.unique(labels, return_index=True, return_counts=True)
        if first.size == labels.size:
            return chosen
        if duplicates == "last":
            _, last = np.unique(labels[::-1], return_index=True)
            first = labels.size - 1 - last
        elif duplicates == "error" and self.fault is None:
            at = int(first[np.flatnonzero(counts > 1)[0]])
            again = int(np.flatnonzero(labels == labels[at])[1])
            step = int(labels[at])
            shown = "a value before the first step" if step == NO_STEP else f"step {step}"
            self.fault = (
                f"{shown} occurs twice, in lines {self._lines[at]} and"
                f" {self._lines[again]}; 'duplicates: first', 'last' or 'all' says which count"
            )
        return np.sort(first)

    def elements(self) -> NDArray[Any]:
        """All values that count."""
        if self.kind == "text":
            found: NDArray[Any] = array_of_texts(self.values)
        else:
            found = np.asarray(self.values, dtype="<i8" if self.kind == "int" else "<f8")
        return found if self._chosen is None else found[self._chosen]

    def step_labels(self) -> NDArray[np.int64] | None:
        """The steps of all values that count; None where these are counted."""
        if self.steps is None:
            return None
        labels = np.asarray(self.labels, dtype="<i8")
        return labels if self._chosen is None else labels[self._chosen]

    @property
    def end(self) -> int:
        """Where the last element that counts ends in the file; 0 without one."""
        if not self.count:
            return 0
        place, offset = self.place(self.count - 1)
        return offset + place.byte_count

    def place(self, element: int) -> tuple[PlaceInText, int]:
        """Where an element stands, without its text, and its offset in the file."""
        at = element if self._chosen is None else int(self._chosen[element])
        place = PlaceInText(self._lines[at], self._columns[at], "", self._lengths[at])
        return place, self._offsets[at]
