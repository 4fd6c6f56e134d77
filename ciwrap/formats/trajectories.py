"""Trajectories and grids of particles: XYZ, LAMMPS dumps, DCD, TRR, XTC, and cube files.

Frames are iterations; of text files one frame is held at a time. A DCD frame is three Fortran
records, x, y and z, after one for the unit cell; it is read as laid out, so that a file that was
cut off is noticed. TRR and XTC are read through MDAnalysis.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from msgspec import Struct

from ciwrap.arrays.values import Labels
from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.apart import SourceApart, bytes_below
from ciwrap.formats.entries import (
    Entry,
    EntrySource,
    IterationRule,
    Listing,
    array_of_texts,
    opened,
    stored_entry,
)
from ciwrap.formats.fortran import Marks, RecordScan
from ciwrap.formats.reader import (
    CheckedReader,
    InputFile,
    Source,
    VariableInfo,
    as_elements,
    check_is_file,
    first_bytes,
    guarded,
    labels_of,
    library,
)
from ciwrap.formats.tables import CellError, as_floats, as_ints, as_texts, parse_floats

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        return CorruptFileError(f"line {self.number - 1 if number is None else number} {problem}")

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

    def read(self, frame: Frame, name: str, first: int, count: int) -> NDArray[Any]:
        """Elements of a column. Raises CorruptFileError that names line and word."""
        if self._frame is not frame:
            self._values = {}
            self._values = self._parsed(frame)
            self._frame = frame
        # A copy: what is handed out must not keep a whole frame alive.
        return np.array(self._values[name][first : first + count])

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
        raise CorruptFileError(f"line {frame.line + row} {problem}")


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


def _frame_entries(file: InputFile, frames: Sequence[Frame], steps: Sequence[int]) -> list[Entry]:
    """The variables of all frames: what their heads say, then their columns."""
    listing, rows = Listing(file.path), FrameRows(file)
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
            listing.put(Entry(info, partial(rows.read, frame, column.name)))
    return listing.entries


_MOST_BRACKETS = 6


def _nested(opening: str, closing: str) -> str:
    """A pattern of what stands between brackets, which may hold such brackets again."""
    begin, end = re.escape(opening), re.escape(closing)
    other = f"[^{begin}{end}]"
    pattern = f"{begin}{other}*{end}"
    for _ in range(_MOST_BRACKETS):
        pattern = f"{begin}(?:{other}|{pattern})*{end}"
    return pattern


_KEY = r"[^\W\d][\w.\-()\[\]/^%]*"
_QUOTED = r"\"((?:[^\"\\]|\\.)*)\""
# A comma within a word ends it only before another key: `1,5` is no 1.
_COMMA = rf",(?=[^\s,])(?!{_KEY}\s*[=:])"
# A sign apart from its digits, and an exponent apart from them, as of what was filled up between.
_PARTED = r"(?<=[=:\s][+\-\u2212])\s+(?=\.?\d)|(?<=\d)\s+(?=[eEdDqQ][+\-]\d+(?:[\s,]|$))"
_VALUE = (
    rf"(?:(?:{_QUOTED}|'([^']*)'|({_nested('{', '}')})|({_nested('[', ']')}))(?![^\s,])"
    # Whatever comes behind what has no end, or goes on behind it, belongs to it.
    r"|([\"{\[].*)"
    rf"|((?:[^\s,\"{{}}]|{_COMMA})(?:[^\s,]|{_COMMA}|{_PARTED})*))"
)
# `energy=-1.5`, `Lattice="1 0 0 ..."`, CP2K's `i = 3, time = 1.5`, LAMMPS's `Timestep: 50`,
# `virial=[[1, 2], [3, 4]]`, ASE's `"my key"=5` and `info="_JSON {\"a\": 1}"`.
_FACT = re.compile(rf"(?:(?<=[\s,])|^)(?:{_QUOTED}\s*=|({_KEY})\s*[=:])\s*{_VALUE}")
# What else says something of a key, such as `k+1=5`.
_OTHER = re.compile(rf"(?<!\S)[^\s=]*\s{{0,9}}=\s{{0,9}}{_VALUE}?")
_OTHER_NAME = "comment"
_BRACKETS = re.compile(r"[\[\],\s]+")
_TYPES = {"R": "<f8", "I": "<i8", "L": "|b1", "S": TEXT_DTYPE}
_PLAIN = (Column("species", TEXT_DTYPE), Column("pos", "<f8", 3))


class XyzReader(CheckedReader):
    """Frames as iterations: `species` and `pos` (atoms, 3), or the columns that `Properties` of
    extended XYZ names; and every `key=value` of the line of comment.
    """

    name: ClassVar[str] = "xyz"
    option_names: ClassVar[tuple[str, ...]] = ("iteration_variable", "iteration_step")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        rule = IterationRule.of(options)

        def entries(file: InputFile) -> list[Entry]:
            frames = _frames(file)
            return _frame_entries(file, frames, _steps(frames, rule))

        return opened(path, entries)


def _frames(file: InputFile) -> list[Frame]:
    lines = Lines(file)
    found: list[Frame] = []
    while not lines.is_done:
        head = lines.next()
        if found and not head.strip():
            continue  # some programs end their files with blank lines
        count = lines.whole(head, file.byte_count)
        comment = lines.next()
        facts = _facts(comment)
        properties = facts.pop("Properties", None)
        at, number = lines.at, lines.number
        columns = None if properties is None else _columns(lines, str(properties))
        if count and columns is None:
            width = len(lines.next().split())
            if not 4 <= width <= MOST_COLUMNS:
                raise lines.error(f"has {width} words where an atom and x, y, z are expected")
            more = (Column("more", "<f8", width - 4),) if width > 4 else ()
            columns = (*_PLAIN, *more)
            lines.skip(count - 1)
        else:
            lines.skip(count)
        taken = {column.name for column in columns or _PLAIN}
        # A key that is called like a column is told apart from it.
        arrays: dict[str, tuple[Any, Labels]] = {
            f"{name}=" if name in taken else name: (value, ()) for name, value in facts.items()
        }
        found.append(Frame(count, columns or _PLAIN, at, lines.at, number, arrays))
    if not found:
        raise CorruptFileError("holds no frames")
    return found


def _facts(comment: str) -> dict[str, Any]:
    """What a line of comment says as `key=value`: numbers, arrays of them, or texts. A key that
    comes again is told apart: `E`, `E.2`.
    """
    found: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for quoted, plain, *values in _FACT.findall(comment):
        key = quoted or plain
        times[key] += 1
        name = key if times[key] == 1 else f"{key}.{times[key]}"
        text = next(filter(None, values), "")
        found[name] = text if name == "Properties" else _fact(text)
    others = " ".join(one[0].strip() for one in _OTHER.finditer(_FACT.sub(" ", comment)))
    if others:
        times[_OTHER_NAME] += 1
        count = times[_OTHER_NAME]
        found[_OTHER_NAME if count == 1 else f"{_OTHER_NAME}.{count}"] = _text(others)
    return found


def _fact(text: str) -> Any:
    """A number, an array of them, or a text."""
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    words = _BRACKETS.split(text.strip("[] ")) if text.startswith("[") else text.split()
    numbers = parse_floats(words)
    if not numbers:
        return _text(text)
    array = np.array(numbers, dtype=np.float64)
    return array if len(numbers) > 1 else array[0]


def _text(text: str) -> Any:
    return array_of_texts([text]).reshape(())


def _columns(lines: Lines, properties: str) -> tuple[Column, ...]:
    """The columns that `species:S:1:pos:R:3` names. Raises CorruptFileError."""
    words = properties.split(":")
    found: list[Column] = []
    for name, kind, width in zip(words[::3], words[1::3], words[2::3], strict=False):
        count = int(width) if width.isascii() and width.isdecimal() and len(width) < 6 else 0
        if not name or kind not in _TYPES or not 0 < count <= MOST_COLUMNS:
            raise lines.error(
                f"has Properties {name[:40]}:{kind[:8]}:{width[:8]}, which are not valid"
            )
        found.append(Column(name, _TYPES[kind], count if count > 1 else None))
    if len(words) % 3 or len({column.name for column in found}) != len(found):
        raise lines.error("has Properties that are not names, types and numbers of columns")
    return tuple(found)


def _steps(frames: list[Frame], rule: IterationRule) -> list[int]:
    def values_of(name: str) -> NDArray[Any] | None:
        values = [frame.facts.get(name, (None, ()))[0] for frame in frames]
        is_said = not any(value is None or np.ndim(value) for value in values)
        return np.array(values) if is_said else None

    return rule.along("frames", len(frames), values_of, kind="key")


_ITEM = "ITEM: "
_USUAL = "ATOMS"
# Columns of whole numbers and of words (LAMMPS manual, "dump custom"); all others are numbers.
_WHOLE = frozenset({"id", "mol", "proc", "procp1", "type", "ix", "iy", "iz"})
_WORDS = frozenset({"element", "typelabel"})


class LammpsReader(CheckedReader):
    """Frames as iterations, by their time step: `box.xlo` and so on, and every column by its name,
    such as `id`, which `align_by` takes.
    """

    name: ClassVar[str] = "lammps"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, _dump_entries)


def _dump_entries(file: InputFile) -> list[Entry]:
    lines = Lines(file)
    steps: list[int] = []
    frames: list[Frame] = []
    while not lines.is_done:
        step, frame = _frame(file, lines)
        steps.append(step)
        frames.append(frame)
    if not frames:
        raise CorruptFileError("holds no frames")
    return _frame_entries(file, frames, steps)


def _frame(file: InputFile, lines: Lines) -> tuple[int, Frame]:
    step: int | None = None
    count: int | None = None
    kind = ""
    seen: set[str] = set()
    facts: dict[str, tuple[Any, Labels]] = {}
    while True:
        line = lines.next()
        if not line.startswith(_ITEM):
            raise lines.error(f"is {line[:40]!r} where {_ITEM!r} is expected")
        item = line.removeprefix(_ITEM).strip()
        what = " ".join(item.split()[:2])
        if what in seen:
            # A frame that was broken off, and another one, or two of its parts.
            raise lines.error(f"is a second {what[:40]!r} of one frame")
        seen.add(what)
        if item == "TIMESTEP":
            step = lines.whole(lines.next(), 1 << 60)
        elif item.startswith("NUMBER OF "):
            kind = item.removeprefix("NUMBER OF ").strip()
            count = lines.whole(lines.next(), file.byte_count)
        elif item.startswith("BOX BOUNDS"):
            boundary = ("boundary", item.removeprefix("BOX BOUNDS").strip())
            for name, value in _box(lines):
                facts[name] = value, (boundary,)
        elif item == "TIME":
            facts["time"] = _row(lines, (1,))[0], ()
        elif item == "UNITS":
            facts["units"] = _text(lines.next().strip()), ()
        elif item == "DIMENSION" or item.startswith("GRID SIZE"):
            raise UnsupportedFormatError("is a dump of a grid, which is not read")
        else:
            break
    names = item.split()[1:]
    if step is None or count is None or not 0 < len(names) <= MOST_COLUMNS:
        raise lines.error("begins rows without a step, a number of rows or names of columns")
    if item.split()[0] != kind:
        raise lines.error(f"begins rows of {item.split()[0][:40]!r}, and not {kind[:40]!r}")
    if len({*names, *facts}) != len(names) + len(facts):
        raise lines.error("names a column twice")
    columns = tuple(Column(name, _dtype(name)) for name in names)
    at, number = lines.at, lines.number
    lines.skip(count)
    # What the rows are of, unless it is what most dumps hold.
    labels = () if kind == _USUAL else labels_of(None, {"rows": kind})
    return step, Frame(count, columns, at, lines.at, number, facts, labels)


def _box(lines: Lines) -> Iterator[tuple[str, float]]:
    """Single numbers, since rows are those of atoms: `align_by` would put others in order."""
    for axis, tilt, vector in zip("xyz", ("xy", "xz", "yz"), "abc", strict=True):
        row = _row(lines, (2, 3, 4))
        if len(row) in (2, 3):
            names = [f"{axis}lo", f"{axis}hi", tilt]
        else:
            names = [f"{vector}{number}" for number in range(len(row))]
        for name, value in zip(names, row, strict=False):
            yield f"box.{name}", value


def _dtype(name: str) -> str:
    if name in _WORDS:
        return TEXT_DTYPE
    return "<i8" if name in _WHOLE or name.startswith("i_") else "<f8"


_CELL_BYTES = 48


class DcdReader(CheckedReader):
    """Frames as iterations: `positions` (atoms, 3) and `unit_cell` (6 numbers as stored).

    Iterations are the steps that the header tells of (first step, steps between frames).
    """

    name: ClassVar[str] = "dcd"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, lambda file: _Dcd(file).entries())


class _Dcd:
    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._read_header()

    def _read_header(self) -> None:
        start = bytes(self._file.read_at(0, 8))
        begins = {struct.pack(f"{order}i", 84) + b"CORD": order for order in "<>"}
        if start not in begins:
            raise CorruptFileError("does not begin as a DCD trajectory")
        self._order = order = begins[start]
        self._marks = Marks(4, "little" if order == "<" else "big")
        scan = RecordScan(self._file, self._marks)
        control, _, atoms = (scan.next() for _ in range(3))
        numbers = struct.unpack(f"{order}20i", control.read(self._file, 4, 80))
        (self._atoms,) = struct.unpack(f"{order}i", atoms.read(self._file, 0, atoms.byte_count))
        frames, first, every = numbers[0], numbers[1], numbers[2]
        is_charmm = numbers[19] != 0
        self._has_cell = is_charmm and numbers[10] != 0
        if numbers[8] != 0 or (is_charmm and numbers[11] != 0):
            raise UnsupportedFormatError(
                "has fixed atoms or a fourth dimension, which are not read"
            )
        if self._atoms <= 0 or first < 0 or every < 0:
            raise CorruptFileError("has a header without atoms, or with a negative step")
        self._begin = scan.at
        self._axis_bytes = 4 * self._atoms + 8
        self._frame_bytes = 3 * self._axis_bytes + (_CELL_BYTES + 8 if self._has_cell else 0)
        rest = self._file.byte_count - scan.at
        self._frames = rest // self._frame_bytes
        if rest % self._frame_bytes or (frames > 0 and frames != self._frames):
            raise CorruptFileError(
                f"holds {rest / self._frame_bytes:.6g} frames, its header says {frames}"
            )
        # Some programs leave the step out; then frames are counted.
        self._steps = [first + (every or 1) * number for number in range(self._frames)]

    def entries(self) -> list[Entry]:
        listing = Listing(self._file.path)
        for number, step in enumerate(self._steps):
            at = self._begin + number * self._frame_bytes
            if self._has_cell:
                # The core reads the cell where it lies, and looks at no mark.
                self._check_marks(at, _CELL_BYTES)
                name, dtype = f"unit_cell[{number}]", f"{self._order}f8"
                facts = {"called": "unit_cell", "iteration": step}
                listing.put(stored_entry(self._file, name, dtype, (6,), at + 4, **facts))
                at += _CELL_BYTES + 8
            name, dtype, shape = f"positions[{number}]", f"{self._order}f4", (self._atoms, 3)
            info = VariableInfo(name, dtype, shape, None, "positions", step)
            listing.put(Entry(info, partial(self._positions, at)))
        return listing.entries

    def _positions(self, at: int, first: int, count: int) -> NDArray[Any]:
        """Some of the positions of the frame whose axes begin at that byte."""
        dtype = f"{self._order}f4"
        row, end = first // 3, (first + count + 2) // 3
        rows = np.empty((end - row, 3), dtype=dtype)
        for axis in range(3):
            begin = at + axis * self._axis_bytes
            self._check_marks(begin, 4 * self._atoms)
            data = self._file.read_at(begin + 4 + 4 * row, 4 * (end - row))
            rows[:, axis] = as_elements(data, dtype)
        return rows.reshape(-1)[first - 3 * row : first - 3 * row + count]

    def _check_marks(self, at: int, length: int) -> None:
        scan = RecordScan(self._file, self._marks)
        scan.at = at
        if scan.next().byte_count != length:
            raise CorruptFileError("has a damaged frame")


# A frame of TRR begins with a number, the length of a version, that length again, 12 characters,
# and 13 whole numbers: the bytes of ten parts, which follow time and lambda, then atoms and step.
_SIZES = struct.Struct(">24x13i")
# Of these, that of the box, positions, velocities and forces.
_PARTS = (2, 7, 8, 9)
_ATOMS = 10
_TRR = b"\0\0\x07\xc9"
_XTC = (b"\0\0\x07\xcb", b"\0\0\x07\xe7")
_FIELDS = (("x", "positions"), ("v", "velocities"), ("f", "forces"))


class GromacsReader(CheckedReader):
    """Frames as iterations, numbered by their steps: positions, velocities, forces, box, time.

    XTC holds positions rounded to its precision. Numbers are in the file's own units.
    """

    name: ClassVar[str] = "gromacs"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        if _is_trr(path):
            _refuse_double(path)
        _library(path)
        return SourceApart(path, partial(_source, path), bytes_below(path))


def _is_trr(path: Path) -> bool:
    """As the file begins; as it is called where it begins as neither TRR nor XTC."""
    start = first_bytes(path, len(_TRR))
    return start == _TRR or (start not in _XTC and path.suffix.lower() == ".trr")


def _library(path: Path) -> Any:
    return library("MDAnalysis.lib.formats.libmdaxdr", file=path)


def _refuse_double(path: Path) -> None:
    """Raises UnsupportedFormatError for a TRR file in double precision, which MDAnalysis would
    round to single without a word.
    """
    head = first_bytes(path, _SIZES.size)
    if len(head) < _SIZES.size:
        return  # MDAnalysis will say so
    sizes = _SIZES.unpack(head)
    doubles = (9 * 8, *(3 * 8 * sizes[_ATOMS],) * 3)
    if any(sizes[part] == size != 0 for part, size in zip(_PARTS, doubles, strict=True)):
        raise UnsupportedFormatError(
            "is written in double precision, which MDAnalysis rounds to single"
        )


def _source(path: Path) -> Source:
    module = _library(path)
    kind = module.TRRFile if _is_trr(path) else module.XTCFile
    with guarded(path):
        file = kind(str(path))
        with closed_on_error(file.close):
            listing = _listing(file, path)
    return EntrySource(path, listing.entries, file.close)


def _listing(file: Any, path: Path) -> Listing:
    listing = Listing(path)
    at = lru_cache(maxsize=1)(partial(_frame_at, file))  # its variables are asked for in turn
    count = len(file)
    for number in range(count):
        frame = at(number)
        step = int(frame.step)
        if step < 0:
            raise CorruptFileError(f"frame {number} has the step {step}")
        held = [
            (field, called)
            for field, called in _FIELDS
            if getattr(frame, f"has{field}", field == "x")
        ]
        for field, called in (*held, ("box", "box"), ("time", "time")):
            array = np.asarray(getattr(frame, field))
            listing.add(
                f"{called}[{number}]",
                array.dtype,
                array.shape,
                partial(_elements, at, number, field),
                called=called,
                iteration=step,
            )
    # Offsets end at the last whole frame, wherever the file does.
    if count == 0 or file._bytes_tell() != path.stat().st_size:  # the only way to know
        raise CorruptFileError(f"is cut off after {count} whole frames")
    return listing


def _frame_at(file: Any, number: int) -> Any:
    if file.tell() != number:
        file.seek(number)
    return file.read()


def _elements(
    at: Callable[[int], Any], number: int, field: str, first: int, count: int
) -> NDArray[Any]:
    flat = np.ascontiguousarray(getattr(at(number), field)).reshape(-1)
    return np.array(flat[first : first + count])


_MOST_ATOMS = 1_000_000
# Of a cube file without a last line break: where numbers are looked at, and how many there must be.
_TAIL_BYTES = 1024
_FEWEST_ALIKE = 20
_DIGITS = re.compile(rb"[0-9]+")


class CubeReader(CheckedReader):
    """`data` on the grid (x, y, z, and the number of the orbital if there are several), `origin`,
    `axes`, and the atoms: `numbers`, `charges`, `positions`. The field is held in memory.
    """

    name: ClassVar[str] = "cube"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, _cube_entries)


def _cube_entries(file: InputFile) -> list[Entry]:
    lines = Lines(file)
    lines.skip(2)
    count, *rest = _row(lines, (4, 5))
    atoms = abs(_whole(lines, count, _MOST_ATOMS))
    grid = [_row(lines, (4,)) for _ in range(3)]
    lengths = [_whole(lines, row[0], file.byte_count) for row in grid]
    rows = np.array([_row(lines, (5,)) for _ in range(atoms)]).reshape(atoms, 5)
    per_point = _whole(lines, rest[3], file.byte_count) if len(rest) == 4 else 1
    listing = Listing(file.path)
    if count < 0:
        head = _row(lines, None)
        per_point = _whole(lines, head[0], 10_000)
        while len(head) <= per_point:
            head += _row(lines, None)
        if len(head) > per_point + 1:
            raise lines.error("has more numbers of orbitals than it says")
        listing.add_array("orbitals", np.array(head[1:]))
    if min(lengths) < 0 <= lengths[0]:
        raise lines.error("follows three numbers of points, some of them below 0 and not the first")
    # A negative length says that lengths are in angstrom, not in bohr.
    unit = (("units", "angstrom" if lengths[0] < 0 else "bohr"),)
    shape = tuple(abs(length) for length in lengths) + ((per_point,) if per_point != 1 else ())
    if any(length <= 0 for length in shape) or 2 * math.prod(shape) > file.byte_count:
        raise lines.error(f"claims a field of {'x'.join(map(str, shape))}, which the file has not")
    listing.add_array("origin", np.array(rest[:3]), labels=unit)
    listing.add_array("axes", np.array([row[1:] for row in grid]), labels=unit)
    listing.add_array("numbers", rows[:, 0])
    listing.add_array("charges", rows[:, 1])
    listing.add_array("positions", rows[:, 2:], labels=unit)
    field = _Field(file, lines, math.prod(shape))
    listing.add("data", np.dtype("<f8"), shape, field.read)
    return listing.entries


class _Field:
    """The numbers to the end of a file, read when the first of them is asked for."""

    def __init__(self, file: InputFile, lines: Lines, count: int) -> None:
        self._file = file
        self._at = lines.at
        self._line = lines.number
        self._count = count

    def read(self, first: int, count: int) -> NDArray[np.float64]:
        return np.array(self._values[first : first + count])

    @cached_property
    def _values(self) -> NDArray[np.float64]:
        found = np.empty(self._count, dtype="<f8")
        done, at, pending = 0, self._at, b""
        size = self._file.byte_count
        if not self._ends_whole():
            raise self._error("its last line has no line break, as of a file cut off")
        while at < size:
            block = self._file.read_some(at, BLOCK_BYTES)
            at += len(block)
            block = pending + block
            end = len(block) if at == size else block.rfind(b"\n") + 1
            pending = block[end:]
            try:
                words = block[:end].decode("ascii").split()
                values = as_floats(words, is_simple=b"_" not in block, empty_is_nan=False)
            except UnicodeDecodeError:
                raise self._error("its field is not text of numbers") from None
            except CellError as error:
                raise self._error(f"{error.cell[:40]!r} {error.problem}") from None
            if done + values.size > self._count:
                raise self._error(f"holds more than the {self._count} numbers of its field")
            found[done : done + values.size] = values
            done += values.size
        if done != self._count:
            raise self._error(f"holds {done} of the {self._count} numbers of its field")
        return found

    def _ends_whole(self) -> bool:
        """Whether the file ends with a line break or, as ASE writes it, with a number that has as
        many digits as each of those before it, so that none are cut off.
        """
        first = max(self._at, self._file.byte_count - _TAIL_BYTES)
        tail = self._file.read_some(first, self._file.byte_count - first)
        if tail.endswith(b"\n"):
            return True
        words = tail.split()[1:]
        lengths = {tuple(map(len, _DIGITS.findall(word)[1:])) for word in words}
        return len(words) >= _FEWEST_ALIKE and len(lengths) == 1 and lengths != {()}

    def _error(self, problem: str) -> CorruptFileError:
        return CorruptFileError(f"{problem} (from line {self._line} on)")


def _row(lines: Lines, widths: tuple[int, ...] | None) -> list[float]:
    """The numbers of a line. Raises CorruptFileError for another number of them, or none."""
    found = parse_floats(lines.next().split())
    if not found or (widths and len(found) not in widths):
        said = f" ({' or '.join(map(str, widths))} of them)" if widths else ""
        raise lines.error(f"should hold numbers{said}")
    return found


def _whole(lines: Lines, value: float, most: int) -> int:
    if not math.isfinite(value) or value != round(value) or abs(value) > most:
        raise lines.error(f"holds {value!r} where a number of things should be")
    return round(value)
