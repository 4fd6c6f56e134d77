"""Meshes of Gmsh and data over them (.msh), as text in version 2.2 or 4.1.

Source: "Gmsh Reference Manual", "MSH file format" and "MSH file format version 2".
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.find_outputs import formats_of
from ciwrap.formats.reader import CheckedReader, Source, guarded, labels_of, whole_file
from ciwrap.formats.words import numbers_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels

# Sections that mix tags, which no bound may apply to, with numbers.
_TEXTS = {
    *("PhysicalNames", "Entities", "PartitionedEntities", "Periodic", "GhostElements"),
    *("Parametrizations", "InterpolationScheme"),
}
_DATA = {"NodeData", "ElementData", "ElementNodeData"}
_QUOTED = re.compile(r'"(.*)"')


class GmshReader(CheckedReader):
    """`nodes`, `elements/...`, `NodeData/NAME` and so on, whose iteration is the step that the file
    says; the lines of other sections as texts. The file is held in memory.
    """

    name: ClassVar[str] = "gmsh"
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        listing = Listing(path, options)
        data = whole_file(path)
        mesh = _Mesh(listing)
        for section, lines in _sections(data):
            with guarded(path, f"${section}"):
                mesh.add(section, lines)
        if not listing.entries:
            raise CorruptFileError("holds neither a mesh nor data")
        return EntrySource(path, listing.entries)

    def why_other(self, path: Path) -> str | None:
        """Fluent's meshes have this suffix, too."""
        return None if self.name in formats_of(path) else "does not begin with $MeshFormat"


def _sections(data: bytearray) -> Iterator[tuple[str, list[str]]]:
    """The name of each section, and its lines that are not blank."""
    lines = [line.strip() for line in data.decode("utf-8", "backslashreplace").split("\n")]
    at = 0
    if not lines[0].startswith("$MeshFormat"):
        raise CorruptFileError("does not begin with $MeshFormat", remedy="is it a mesh of Gmsh?")
    while at < len(lines):
        name = lines[at].removeprefix("$")
        if name:
            if not lines[at].startswith("$"):
                raise CorruptFileError(f"line {at + 1} is in no section: {lines[at][:40]!a}")
            try:
                end = lines.index(f"$End{name}", at)
            except ValueError:
                raise CorruptFileError(f"has no $End{name[:40]}") from None
            yield name, [line for line in lines[at + 1 : end] if line]
            at = end
        at += 1


class _Rows:
    """The lines of a section, of which each is taken once. Raises CorruptFileError."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = iter(lines)

    def take(self, count: int, least: int = 1) -> list[list[str]]:
        """The words of so many lines, of which each has at least so many."""
        found = [line.split() for line in islice(self._lines, max(0, count))]
        if len(found) != count or any(len(row) < least for row in found):
            raise CorruptFileError("ends too early, or has a line that is too short")
        return found

    def wholes(self, count: int) -> list[int]:
        """The whole numbers of a line, of which there are so many."""
        (row,) = _table(self.take(1), count, "<i8").tolist()
        return list(row)

    def whole(self) -> int:
        return self.wholes(1)[0]

    def text(self) -> str:
        found = _QUOTED.fullmatch(next(self._lines, ""))
        if found is None:
            raise CorruptFileError("has no text in quotes where a name should be")
        return found[1]

    def end(self) -> None:
        if next(self._lines, None) is not None:
            raise CorruptFileError("has more lines than it says")


def _table(rows: Sequence[Sequence[str]], width: int, dtype: str = "<f8") -> NDArray[Any]:
    if any(len(row) != width for row in rows):
        raise CorruptFileError(f"has rows that do not hold {width} numbers")
    return numbers_in([word for row in rows for word in row], dtype).reshape(len(rows), width)


class _Mesh:
    """Adds the sections of a file to a listing. Raises CorruptFileError, UnsupportedFormatError."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._is_new = False
        self._numbers: dict[str, list[int]] = {}  # of nodes and of elements

    def add(self, section: str, lines: list[str]) -> None:
        rows = _Rows(lines)
        if section == "MeshFormat":
            self._format(lines)
        elif section in _TEXTS:
            self._listing.add_array(section, np.array(lines, object))
        elif section in ("Nodes", "ParametricNodes"):
            self._nodes(rows, has_parameters=section == "ParametricNodes")
        elif section == "Elements":
            self._elements(rows)
        elif section in _DATA:
            self._data(section, rows)
        elif section != "Comments":
            raise CorruptFileError("is a section that is not known")

    def _format(self, lines: list[str]) -> None:
        words = " ".join(lines).split()
        if len(words) < 3 or words[0] not in ("2.2", "4.1") or words[1] != "0":
            what = f"of version {words[0]}, {'text' if words[1:2] == ['0'] else 'binary'}"
            raise UnsupportedFormatError(
                f"is a mesh {what}; read are 2.2 and 4.1 as text",
                remedy="write it again: gmsh FILE -save -format msh41",
            )
        self._is_new = words[0] == "4.1"

    def _blocks(self, kind: str, rows: _Rows) -> Iterator[list[int]]:
        """The four numbers at the head of each block, the last one of which says of how many items
        it is; before version 4 there is but one.
        """
        if not self._is_new:
            yield [0, 0, 0, rows.whole()]
        else:
            count, said, *_ = rows.wholes(4)
            heads = []
            for _ in range(count):
                heads.append(rows.wholes(4))
                yield heads[-1]
            if sum(head[3] for head in heads) != said:
                raise CorruptFileError("holds more or fewer items than it says")
            table = np.array(heads, "<i8").reshape(-1, 4)
            self._listing.add_array(f"{kind}/blocks", table)
        rows.end()

    def _add_numbers(self, kind: str, words: list[str]) -> None:
        numbers = numbers_in(words, "<i8")
        self._numbers[kind] = numbers.tolist()
        self._listing.add_array(f"{kind}/numbers", numbers)

    def _nodes(self, rows: _Rows, *, has_parameters: bool) -> None:
        numbers, parameters = list[str](), list[str]()
        places: list[list[str]] = []
        for _, _, is_parametric, count in self._blocks("nodes", rows):
            numbered = rows.take(count, 1 if self._is_new else 4)
            numbers += [row.pop(0) for row in numbered]
            found = rows.take(count, 3) if self._is_new else numbered
            if not (has_parameters or is_parametric) and any(len(row) != 3 for row in found):
                raise CorruptFileError("has nodes without 3 coordinates")
            places += [row[:3] for row in found]
            parameters += [word for row in found for word in row[3:]]
        self._listing.add_array("nodes", _table(places, 3))
        self._add_numbers("nodes", numbers)
        if parameters:
            self._listing.add_array("nodes/parameters", numbers_in(parameters))

    def _elements(self, rows: _Rows) -> None:
        numbers, heads, tags, nodes = [list[str]() for _ in range(4)]
        widths: dict[Any, int] = {}
        for _, _, kind, count in self._blocks("elements", rows):
            for number, *row in rows.take(count, 2 if self._is_new else 4):
                called: Any = kind
                if not self._is_new:
                    called, many = row[0], int(numbers_in(row[1:2], "<i8")[0])
                    end = 2 + max(0, many)
                    heads += row[:2]
                    tags += row[2:end]
                    row = row[end:]
                if len(row) != widths.setdefault(called, len(row)):
                    raise CorruptFileError(f"element {number[:20]} has another number of nodes")
                numbers.append(number)
                nodes += row
        self._listing.add_array("elements/nodes", numbers_in(nodes, "<i8"))
        self._add_numbers("elements", numbers)
        if heads:
            types = numbers_in(heads, "<i8").reshape(-1, 2)
            self._listing.add_array("elements/types", types[:, 0])
            self._listing.add_array("elements/tag_counts", types[:, 1])
            self._listing.add_array("elements/tags", numbers_in(tags, "<i8"))

    def _data(self, section: str, rows: _Rows) -> None:
        """A result at a step: its texts, its reals (the time), its whole numbers, its rows."""
        texts = [rows.text() for _ in range(rows.whole())]
        reals = [_table(rows.take(1), 1)[0, 0] for _ in range(rows.whole())]
        step, width, count, *rest = (rows.whole() for _ in range(rows.whole()))
        if not texts or len(rest) > 1 or min(step, width, count) < 0:
            raise CorruptFileError("has no name, or no step, components and number of rows")
        values = rows.take(count, 2)
        rows.end()
        name = f"{section}/{texts[0]}"
        rank = rest[0] if rest and rest[0] else None
        numbers = numbers_in([row.pop(0) for row in values], "<i8")
        if section == "ElementNodeData":  # each row begins with how many nodes it is for
            counts = numbers_in([row.pop(0) for row in values], "<i8")
            if (counts * max(1, width)).tolist() != [len(row) for row in values]:
                raise CorruptFileError("has rows of another length than they say")
            self._put(f"{name}/counts", step, rank, counts)
            values, width = [[word] for row in values for word in row], 1
        scheme = labels_of(None, {"interpolation": texts[1]} if texts[1:] else {})
        self._put(name, step, rank, _table(values, width), scheme)
        over = "nodes" if section == "NodeData" else "elements"
        if numbers.tolist() != self._numbers.get(over):
            self._put(f"{name}/numbers", step, rank, numbers)
        if reals:
            self._put(f"{name}/time", step, rank, np.array(reals))

    def _put(
        self, name: str, step: int, rank: int | None, values: Any, labels: Labels = ()
    ) -> None:
        key, place = self._listing.at_step(name, step)
        key += "" if rank is None else f"[{rank}]"
        self._listing.add_array(key, values, rank=rank, labels=labels, **place)
