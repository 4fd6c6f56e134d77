"""Frames of text: a head that says how many rows follow, and of which columns. Frames are
iterations; one of them is held at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.base import VariableInfo
from ciwrap.readers.entries import Entry, Listing
from ciwrap.readers.text_cells import CellError, as_floats, as_ints, as_texts
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ciwrap.readers.base import Labels
    from ciwrap.readers.files import InputFile

BLOCK_BYTES = 1 << 18
MOST_LINE_BYTES = 1 << 20
MOST_COLUMNS = 10_000
TEXT_DTYPE = "<U16"
_LOGICAL = {"T": True, "F": False, "True": True, "False": False}


class Column(Struct, frozen=True):
    """A variable of the rows. dtype: "<f8", "<i8", "|b1" or TEXT_DTYPE. width: how many words of a
    row it takes; None: one, and it has no second axis.
    """

    name: str
    dtype: str
    width: int | None = None


class Frame(Struct, frozen=True):
    """One frame. at: where its rows begin in the file, and end; line: the number of the first row.
    facts: what its head says, with labels. labels: of all columns.
    """

    row_count: int
    columns: tuple[Column, ...]
    at: int
    end: int
    line: int
    facts: dict[str, tuple[Any, Labels]]
    labels: Labels = ()


class Lines:
    """The lines of a file, one after the other. number: of the line that comes next."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._block = b""
        self._within = 0
        self.at = 0
        self.number = 1

    @property
    def is_done(self) -> bool:
        return self.at >= self._file.byte_count

    def next(self) -> str:
        """The next line without its end. Raises CorruptFileError where the file ends before one."""
        data = self._take()
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error("is not UTF-8 text", self.number - 1) from None

    def skip(self, count: int) -> None:
        """Passes so many lines. Raises CorruptFileError where the file ends before."""
        for _ in range(count):
            self._take()

    def _take(self) -> bytes:
        end = self._block.find(b"\n", self._within)
        while end < 0:
            rest = self._block[self._within :]
            more = self._file.read_some(self.at + len(rest), BLOCK_BYTES)
            if not more or len(rest) > MOST_LINE_BYTES:
                what = "is too long" if more else "is where the file ends, before it should"
                raise self.error(what, self.number)
            self._block, self._within = rest + more, 0
            end = self._block.find(b"\n", len(rest))
        data = self._block[self._within : end]
        self._within = end + 1
        self.at += len(data) + 1
        self.number += 1
        return data.removesuffix(b"\r")

    def error(self, problem: str, number: int | None = None) -> CorruptFileError:
        """An error that tells the line; by default the one that was taken last."""
        return CorruptFileError(
            f"line {self.number - 1 if number is None else number} {problem}",
            file=self._file.path,
            remedy="is the program still writing it?",
        )

    def whole(self, text: str, most: int) -> int:
        """The only number of a line, from 0 to `most`. Raises CorruptFileError."""
        word = text.strip()
        if not (word.isascii() and word.isdecimal()) or len(word) > 18 or int(word) > most:
            raise self.error(f"is {word[:40]!r} where a number of rows or a step should be")
        return int(word)


class FrameRows:
    """The rows of frames, of which the last one that was asked for is kept."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._frame: Frame | None = None
        self._values: dict[str, NDArray[Any]] = {}

    def read(self, frame: Frame, name: str) -> NDArray[Any]:
        """All elements of a column. Raises CorruptFileError that names line and word."""
        if self._frame is not frame:
            self._values = {}
            self._values = self._parsed(frame)
            self._frame = frame
        return self._values[name]

    def _parsed(self, frame: Frame) -> dict[str, NDArray[Any]]:
        data = bytes(self._file.read_at(frame.at, frame.end - frame.at))
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            self._fail(frame, 0, "is not UTF-8 text")
        rows = [line.split() for line in text.split("\n")[:-1]]
        width = sum(column.width or 1 for column in frame.columns)
        for number, row in enumerate(rows):
            if len(row) != width:
                self._fail(frame, number, f"has {len(row)} words where {width} are expected")
        is_simple = text.isascii() and "_" not in text
        words = list(zip(*rows, strict=True)) if rows else [()] * width
        found: dict[str, NDArray[Any]] = {}
        at = 0
        for column in frame.columns:
            count = column.width or 1
            try:
                parts = [_values(one, column.dtype, is_simple) for one in words[at : at + count]]
            except CellError as error:
                self._fail(frame, error.row, f"holds {error.cell[:40]!r}, which {error.problem}")
            found[column.name] = np.stack(parts, axis=1).reshape(-1) if count > 1 else parts[0]
            at += count
        return found

    def _fail(self, frame: Frame, row: int, problem: str) -> NoReturn:
        raise CorruptFileError(f"line {frame.line + row} {problem}", file=self._file.path)


def _values(cells: Sequence[str], dtype: str, is_simple: bool) -> NDArray[Any]:
    """Raises CellError."""
    if dtype == "<f8":
        return as_floats(cells, is_simple=is_simple, empty_is_nan=False)
    if dtype == "<i8":
        return as_ints(cells, is_simple=is_simple)
    if dtype == "|b1":
        for row, cell in enumerate(cells):
            if cell not in _LOGICAL:
                raise CellError(row, cell, "is neither T nor F")
        return np.array([_LOGICAL[cell] for cell in cells], dtype="|b1")
    width = np.dtype(dtype).itemsize // 4
    for row, cell in enumerate(cells):
        if len(cell) > width:
            raise CellError(row, cell, f"has more than the {width} characters that are read")
    return as_texts(cells, width)


def frame_entries(
    listing: Listing, file: InputFile, frames: Sequence[Frame], steps: Sequence[int]
) -> list[Entry]:
    """The variables of all frames: what their heads say, then their columns."""
    rows = FrameRows(file)
    for number, (frame, step) in enumerate(zip(frames, steps, strict=True)):
        for name, (value, labels) in frame.facts.items():
            listing.add_array(
                f"{name}[{number}]", value, called=name, iteration=step, labels=labels
            )
        for column in frame.columns:
            shape = (frame.row_count, *(() if column.width is None else (column.width,)))
            info = VariableInfo(
                f"{column.name}[{number}]",
                column.dtype,
                shape,
                called=column.name,
                iteration=step,
                labels=frame.labels,
            )
            listing.put(Entry(info, _reader(rows, frame, column.name)))
    return listing.entries


def _reader(rows: FrameRows, frame: Frame, name: str) -> Any:
    def read(first: int, count: int) -> NDArray[Any]:
        # A copy: what is handed out must not keep a whole frame alive.
        return np.array(rows.read(frame, name)[first : first + count])

    return read
