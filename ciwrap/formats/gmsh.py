"""Meshes of Gmsh and data over them (.msh), as text in version 2.2 or 4.1.

Source: "Gmsh Reference Manual", "MSH file format" and "MSH file format version 2".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.find_outputs import formats_of
from ciwrap.formats.reader import CheckedReader, Source, guarded, labels_of
from ciwrap.formats.words import HeldLines, numbers_in, text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# Sections that mix tags, which no bound may apply to, with numbers.
_TEXTS = {
    *("$PhysicalNames", "$Entities", "$PartitionedEntities", "$Periodic", "$GhostElements"),
    *("$Parametrizations", "$InterpolationScheme"),
}
_DATA = {"$NodeData", "$ElementData", "$ElementNodeData"}
_FORMAT = re.compile(r"(?:2\.2|4\.1)\s+0\s+\d+")
_QUOTED = re.compile(r'"(.*)"')


class GmshReader(CheckedReader):
    """`nodes`, `elements/...`, `NodeData/NAME` and so on, whose iteration is the step that the file
    says; the lines of other sections as texts. The file is held in memory.
    """

    name: ClassVar[str] = "gmsh"
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        listing = Listing(path, options)
        _Mesh(HeldLines(text_lines(path)), listing).read()
        if not listing.entries:
            raise CorruptFileError("holds neither a mesh nor data")
        return EntrySource(path, listing.entries)

    def why_other(self, path: Path) -> str | None:
        """Fluent's meshes have this suffix, too."""
        return None if self.name in formats_of(path) else "does not begin with $MeshFormat"


def _table(rows: Sequence[Sequence[str]], width: int) -> NDArray[Any]:
    if any(len(row) != width for row in rows):
        raise CorruptFileError(f"has rows that do not hold {width} numbers")
    return numbers_in([word for row in rows for word in row]).reshape(len(rows), width)


class _Mesh:
    """Adds the sections of a file to a listing. Raises CorruptFileError, UnsupportedFormatError."""

    def __init__(self, lines: HeldLines, listing: Listing) -> None:
        self._lines, self._listing = lines, listing
        self._is_new = False
        self._numbers: dict[str, list[str]] = {}  # of nodes and of elements

    def read(self) -> None:
        self._lines.expect("$MeshFormat")
        line = self._lines.take()
        if not _FORMAT.fullmatch(line):
            raise UnsupportedFormatError(
                f"is a mesh of the format {line[:40]!a}; read are 2.2 and 4.1 as text (4.1 0 8)",
                remedy="write it again: gmsh FILE -save -format msh41",
            )
        self._is_new = line.startswith("4.1")
        self._lines.expect("$EndMeshFormat")
        while section := self._lines.next:
            with guarded(self._listing.path, section[:40]):
                self._add(section, f"$End{section[1:]}")

    def _add(self, section: str, end: str) -> None:
        """Adds the section that begins with the next line, up to the line that ends it."""
        self._lines.take()
        if section in ("$Nodes", "$ParametricNodes"):
            self._nodes(has_parameters=section == "$ParametricNodes")
        elif section == "$Elements":
            self._elements()
        elif section in _DATA:
            self._data(section[1:])
        elif section in _TEXTS or section == "$Comments":
            texts = []
            while self._lines.next not in ("", end):
                texts.append(self._lines.take())
            if section in _TEXTS:
                self._listing.add_array(section[1:], np.array(texts, object))
        else:
            raise CorruptFileError("begins no section that is known")
        self._lines.expect(end)

    def _rows(self, count: int) -> list[list[str]]:
        """The words of so many lines."""
        if count < 0:
            raise CorruptFileError(f"says that it has {count} rows")
        return [self._lines.take().split() for _ in range(count)]

    def _wholes(self) -> list[int]:
        """The whole numbers of the next line."""
        return list(numbers_in(self._lines.take().split(), "<i8").tolist())

    def _counted(self) -> list[str]:
        """As many lines as the line before them says."""
        (count,) = self._wholes()
        return [self._lines.take() for _ in range(count)]

    def _blocks(self, kind: str) -> Iterator[list[int]]:
        """The four numbers at the head of each block, the last one of which says of how many items
        it is; before version 4 there is but one.
        """
        if not self._is_new:
            yield [0, 0, 0, *self._wholes()]
            return
        count, said, _, _ = self._wholes()
        heads = []
        for _ in range(count):
            heads.append(self._wholes())
            yield heads[-1]
        if sum(head[3] for head in heads) != said:
            raise CorruptFileError("holds more or fewer items than it says")
        self._listing.add_array(f"{kind}/blocks", np.array(heads, "<i8").reshape(-1, 4))

    def _nodes(self, *, has_parameters: bool) -> None:
        numbers, parameters = list[str](), list[str]()
        places: list[list[str]] = []
        for _, _, is_parametric, count in self._blocks("nodes"):
            numbered = self._rows(count)
            numbers += [row.pop(0) for row in numbered]
            found = self._rows(count) if self._is_new else numbered
            if has_parameters or is_parametric:
                parameters += [word for row in found for word in row[3:]]
                found = [row[:3] for row in found]
            places += found
        self._listing.add_array("nodes", _table(places, 3))
        self._listing.add_array("nodes/numbers", numbers_in(numbers, "<i8"))
        self._numbers["nodes"] = numbers
        if parameters:
            self._listing.add_array("nodes/parameters", numbers_in(parameters))

    def _elements(self) -> None:
        found = {name: list[str]() for name in ("nodes", "numbers", "types", "tag_counts", "tags")}
        widths: dict[Any, int] = {}
        for _, _, kind, count in self._blocks("elements"):
            for number, *row in self._rows(count):
                called: Any = kind
                if not self._is_new:
                    called, many, *row = row
                    end = max(0, *numbers_in([many], "<i8").tolist())
                    found["types"].append(called)
                    found["tag_counts"].append(many)
                    found["tags"] += row[:end]
                    row = row[end:]
                if not row or len(row) != widths.setdefault(called, len(row)):
                    raise CorruptFileError(f"element {number[:20]} has another number of nodes")
                found["numbers"].append(number)
                found["nodes"] += row
        self._numbers["elements"] = found["numbers"]
        for name in ("nodes", "numbers") if self._is_new else found:
            self._listing.add_array(f"elements/{name}", numbers_in(found[name], "<i8"))

    def _data(self, section: str) -> None:
        """A result at a step: its texts, its reals (the time), its whole numbers, its rows."""
        texts = [_QUOTED.fullmatch(line) for line in self._counted()]
        reals = numbers_in(self._counted())
        step, width, count, *rest = numbers_in(self._counted(), "<i8").tolist()
        names = [found[1] for found in texts if found]
        if not names or len(names) < len(texts) or len(rest) > 1 or min(step, width, count) < 0:
            raise CorruptFileError("has no name in quotes, or no step, components and rows")
        values = self._rows(count)
        name = f"{section}/{names[0]}"
        rank = rest[0] if rest and rest[0] else None
        numbers = [row.pop(0) for row in values]
        if section == "ElementNodeData":  # each row begins with how many nodes it is for
            counts = numbers_in([row.pop(0) for row in values], "<i8")
            if (counts * max(1, width)).tolist() != [len(row) for row in values]:
                raise CorruptFileError("has rows of another length than they say")
            self._put(f"{name}/counts", step, rank, counts)
            values, width = [[word] for row in values for word in row], 1
        scheme = labels_of(None, {"interpolation": names[1]} if names[1:] else {})
        self._put(name, step, rank, _table(values, width), labels=scheme)
        over = "nodes" if section == "NodeData" else "elements"
        if numbers != self._numbers.get(over):
            self._put(f"{name}/numbers", step, rank, numbers_in(numbers, "<i8"))
        if reals.size:
            self._put(f"{name}/time", step, rank, reals)

    def _put(self, name: str, step: int, rank: int | None, values: Any, **facts: Any) -> None:
        key, place = self._listing.at_step(name, step)
        key += "" if rank is None else f"[{rank}]"
        self._listing.add_array(key, values, rank=rank, **facts, **place)
