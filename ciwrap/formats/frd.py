"""Results of CalculiX (.frd): nodes, elements and results over nodes, in columns of fixed width.

Source: "CalculiX GraphiX User's Manual", "Result Format".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.reader import CheckedReader, InputFile, Source, names_as_text
from ciwrap.formats.tables import parse_floats
from ciwrap.formats.trajectories import Lines
from ciwrap.formats.words import numbers_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Widths of a number in a text, and of the mark that begins a line.
_VALUE, _MARK = 12, 3
_MOST_PER_LINE = 6
# Format of a block: how wide the number of a node or an element is.
_WIDTHS = {"0": 5, "1": 10}
_NODES_OF_TYPE = {1: 8, 2: 6, 3: 4, 4: 20, 5: 15, 6: 10, 7: 3, 8: 6, 9: 4, 10: 8, 11: 2, 12: 3}


class FrdReader(CheckedReader):
    """`nodes`, `elements/...` and every result, `DISP`, whose iteration is the step that the file
    counts, with its time or frequency, `DISP/value`. What is over nodes has a row for each; the
    names of its components are a label. The file is held in memory.

    Not compared are what users and the program say of the run (1C and 1U records).
    """

    name: ClassVar[str] = "frd"
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        listing = Listing(path, options)
        _Frd(Lines(InputFile(path)), listing).read()
        return EntrySource(path, listing.entries)


class _Frd:
    """A file while it is read, line by line."""

    def __init__(self, lines: Lines, listing: Listing) -> None:
        self._lines, self._listing = lines, listing
        self._nodes: list[int] = []
        self._parameters: dict[str, list[str]] = {}

    def read(self) -> None:
        """Lists all blocks. Raises CorruptFileError, UnsupportedFormatError."""
        if not self._lines.next().startswith("    1C"):
            raise self._lines.error("is not '    1C', with which a file of CalculiX begins")
        while (key := (line := self._lines.next())[:6].strip()) != "9999":
            if key == "1U":
                continue
            if key == "1P":
                called, *words = line[6:].split() or [""]
                self._parameters[called] = words
            elif key == "2C":
                self._read_nodes(line)
            elif key == "3C":
                self._read_elements(line)
            elif key == "100C":
                self._read_result(line)
            else:
                raise self._lines.error(f"is not known: {line[:40]!r}")
        if not self._lines.is_done:
            raise self._lines.error("should be the last one")

    def _width(self, line: str) -> int:
        """How wide numbers of nodes are in the block that this line begins."""
        form = line[73:75].strip()
        if form in ("2", "3"):
            raise UnsupportedFormatError(
                "is a binary file of CalculiX, which is not read",
                remedy="have CalculiX write text: *NODE FILE, not *NODE OUTPUT",
            )
        if form not in _WIDTHS:
            raise self._lines.error(f"begins a block of the format {form!r}, which is not known")
        return _WIDTHS[form]

    def _whole(self, text: str) -> int:
        words = parse_floats([text])
        if not words or words[0] != int(words[0]):
            raise self._lines.error(f"has {text[:20]!r} where a whole number should be")
        return int(words[0])

    def _cells(self, line: str, first: int, width: int) -> list[str]:
        """What stands in columns of that width, from that character on."""
        text = line[first:].rstrip()
        if len(text) % width:
            raise self._lines.error(f"is not in columns of {width} characters")
        return [text[at : at + width] for at in range(0, len(text), width)]

    def _rows(self, width: int, count: int, values: int) -> tuple[list[int], Any]:
        """Numbers and values of a block of so many nodes, up to the line -3."""
        nodes: list[int] = []
        cells: list[str] = []
        start = _MARK + width
        for _ in range(count):
            line = self._lines.next()
            if line[:_MARK] != " -1":
                raise self._lines.error(f"should be one of {count} that begin with -1")
            nodes.append(self._whole(line[_MARK:start]))
            row = self._cells(line, start, _VALUE)
            while len(row) < values and len(row) % _MOST_PER_LINE == 0:
                line = self._lines.next()
                if line[:_MARK] != " -2":
                    raise self._lines.error("should go on with the values of a node")
                row += self._cells(line, start, _VALUE)
            if len(row) != values:
                raise self._lines.error(f"has {len(row)} values where {values} are expected")
            cells += row
        self._end()
        return nodes, self._numbers(cells).reshape(count, values)

    def _numbers(self, cells: Sequence[str], dtype: str = "<f8") -> Any:
        try:
            return numbers_in(cells, dtype)
        except CorruptFileError as error:
            raise self._lines.error(f"ends a block that {error.message}") from None

    def _end(self) -> None:
        if self._lines.next().rstrip() != " -3":
            raise self._lines.error("should be -3, the end of a block")

    def _read_nodes(self, line: str) -> None:
        width, count = self._width(line), self._whole(line[24:36])
        self._nodes, values = self._rows(width, count, 3)
        self._listing.add_array("nodes", values)
        self._listing.add_array("nodes/numbers", np.array(self._nodes, "<i8"))

    def _read_elements(self, line: str) -> None:
        width, count = self._width(line), self._whole(line[24:36])
        heads: list[list[str]] = []
        points: list[str] = []
        for _ in range(count):
            line = self._lines.next()
            if line[:_MARK] != " -1":
                raise self._lines.error(f"should be one of {count} that begin with -1")
            heads.append([line[_MARK : _MARK + width], *self._cells(line, _MARK + width, 5)])
            kind = self._whole(heads[-1][1]) if len(heads[-1]) == 4 else 0
            if kind not in _NODES_OF_TYPE:
                raise self._lines.error("is no element of a known type")
            wanted = len(points) + _NODES_OF_TYPE[kind]
            while len(points) < wanted:
                line = self._lines.next()
                found = self._cells(line, _MARK, width)
                if line[:_MARK] != " -2" or not found or len(points) + len(found) > wanted:
                    raise self._lines.error("should hold the nodes of an element")
                points += found
        self._end()
        table = self._numbers([cell for head in heads for cell in head], "<i8").reshape(count, 4)
        for column, name in enumerate(("numbers", "types", "groups", "materials")):
            self._listing.add_array(f"elements/{name}", table[:, column])
        self._listing.add_array("elements/nodes", self._numbers(points, "<i8"))

    def _read_result(self, line: str) -> None:
        width, count, step = self._width(line), self._whole(line[24:36]), self._whole(line[58:63])
        value = self._numbers([line[12:24]])[0]
        analysis = f"{line[56:58].strip()} {line[63:73].strip()}".strip()
        head = self._lines.next()
        name = head[5:13].strip()
        if head[:_MARK] != " -4" or not name or head[18:23].strip() != "1":
            raise self._lines.error("should name results over nodes")
        names = []
        for _ in range(self._whole(head[13:18])):
            line = self._lines.next()
            if line[:_MARK] != " -5":
                raise self._lines.error(f"should name a component of {name}")
            if line[33:38].strip() in ("", "0"):  # others are calculated by who shows them
                names.append(line[5:13].strip())
        nodes, values = self._rows(width, count, len(names))
        add = self._listing.add_at_step
        components = (("analysis", analysis), ("components", names_as_text(names)))
        add(name, step, values, labels=components)
        add(f"{name}/value", step, value)
        if nodes != self._nodes:
            add(f"{name}/nodes", step, np.array(nodes, "<i8"))
        for called, words in self._parameters.items():
            found = parse_floats(words)
            array = np.array(" ".join(words), object) if found is None else np.array(found)
            add(f"{name}/{called}", step, array)
        self._parameters = {}
