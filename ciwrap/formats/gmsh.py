"""Meshes of Gmsh and data over them (.msh), as text in version 2.2 or 4.1.

Source: "Gmsh Reference Manual", "MSH file format" and "MSH file format version 2".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing, takes_steps
from ciwrap.formats.find_outputs import formats_of
from ciwrap.formats.reader import CheckedReader, Source, guarded, labels_of, whole_file
from ciwrap.formats.words import CUT_OFF, numbers_in
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# Sections that mix tags, which no bound may apply to, with numbers.
_TEXTS = {
    *("PhysicalNames", "Entities", "PartitionedEntities", "Periodic", "GhostElements"),
    "Parametrizations",
}
_DATA = {"NodeData", "ElementData", "ElementNodeData"}
_QUOTED = re.compile(r'"(.*)"')


class GmshReader(CheckedReader):
    """`nodes`, `elements/...`, `NodeData/NAME` and so on, whose iteration is the step that the file
    says; the lines of other sections as texts. The file is held in memory.
    """

    name: ClassVar[str] = "gmsh"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["gmsh"].suffixes
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        has_steps = takes_steps(options, path)
        listing = Listing(path)
        data = whole_file(path)
        mesh = _Mesh(listing, has_steps=has_steps)
        with guarded(path):
            for section, lines in _sections(data):
                mesh.add(section, lines)
            if not listing.entries:
                raise CorruptFileError("holds neither a mesh nor data", remedy=CUT_OFF)
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
                raise CorruptFileError(f"has no $End{name[:40]}", remedy=CUT_OFF) from None
            yield name, [line for line in lines[at + 1 : end] if line]
            at = end
        at += 1


class _Rows:
    """The words of a section, line by line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = iter(lines)

    def next(self, least: int = 0) -> list[str]:
        words = next(self._lines, "").split()
        if not words or len(words) < least:
            raise CorruptFileError("ends too early, or has a line that is too short")
        return words

    def whole(self, count: int) -> list[int]:
        """The whole numbers of a line, of which there are so many."""
        found: list[int] = numbers_in(self.next(), "<i8").tolist()
        if len(found) != count:
            raise CorruptFileError(f"has a line of {len(found)} numbers where {count} are expected")
        return found

    def text(self) -> str:
        found = _QUOTED.fullmatch(next(self._lines, ""))
        if found is None:
            raise CorruptFileError("has no text in quotes where a name should be")
        return found[1]

    def refuse_more(self) -> None:
        if next(self._lines, None) is not None:
            raise CorruptFileError("has more lines than it says")


def _table(rows: Sequence[Sequence[str]], width: int, dtype: str = "<f8") -> NDArray[Any]:
    if any(len(row) != width for row in rows):
        raise CorruptFileError(f"has rows that do not hold {width} numbers")
    return numbers_in([word for row in rows for word in row], dtype).reshape(len(rows), width)


class _Mesh:
    """Adds the sections of a file to a listing."""

    def __init__(self, listing: Listing, *, has_steps: bool) -> None:
        self._listing, self._has_steps = listing, has_steps
        self._is_new = False
        self._numbers: dict[str, list[int]] = {}  # of nodes and of elements

    def add(self, section: str, lines: list[str]) -> None:
        """Adds what a section holds. Raises CorruptFileError, UnsupportedFormatError."""
        with guarded(self._listing.path, f"${section}"):
            self._add(section, lines)

    def _add(self, section: str, lines: list[str]) -> None:
        rows = _Rows(lines)
        if section == "MeshFormat":
            self._format(lines)
        elif section in _TEXTS:
            self._listing.add_array(section, np.array(lines, object))
        elif section in ("Nodes", "Elements"):
            read = self._nodes if section == "Nodes" else self._elements
            read(rows)
            rows.refuse_more()
        elif section in _DATA:
            self._data(section, rows)
            rows.refuse_more()
        elif section == "InterpolationScheme":
            name = rows.text()
            self._listing.add_array(f"{section}/{name}", numbers_in(" ".join(lines[1:]).split()))
        elif section != "Comments":
            raise CorruptFileError("is a section that is not known")

    def _format(self, lines: list[str]) -> None:
        words = " ".join(lines).split()
        if len(words) < 3 or words[0] not in ("2.2", "4.1") or words[1] != "0":
            what = f"of version {words[0]}, {'text' if words[1:2] == ['0'] else 'binary'}"
            raise UnsupportedFormatError(
                f"is a mesh {what}; read are 2.2 and 4.1 as text",
                file=self._listing.path,
                remedy="write it again: gmsh FILE -save -format msh41",
            )
        self._is_new = words[0] == "4.1"

    def _blocks(self, rows: _Rows) -> Iterator[tuple[int, int, int, int]]:
        """The four numbers at the head of each block; there are as many items as is said."""
        if not self._is_new:
            yield 0, 0, 0, rows.whole(1)[0]
            return
        blocks, count, *_ = rows.whole(4)
        for _ in range(blocks):
            dimension, tag, kind, many = rows.whole(4)
            count -= many
            yield dimension, tag, kind, many
        if count:
            raise CorruptFileError("holds more or fewer items than it says")

    def _nodes(self, rows: _Rows) -> None:
        numbers: list[str] = []
        places: list[list[str]] = []
        entities, parameters = [], list[str]()
        for dimension, tag, has_parameters, count in self._blocks(rows):
            if self._is_new:
                numbers += [rows.next()[0] for _ in range(count)]
                found = [rows.next(3) for _ in range(count)]
                entities += [(dimension, tag)] * count
            else:
                found = [rows.next(4) for _ in range(count)]
                numbers += [row.pop(0) for row in found]
            if not has_parameters and any(len(row) != 3 for row in found):
                raise CorruptFileError("has nodes without 3 coordinates")
            places += [row[:3] for row in found]
            parameters += [word for row in found for word in row[3:]]
        self._listing.add_array("nodes", _table(places, 3))
        self._add_items("nodes", numbers, entities)
        if parameters:
            self._listing.add_array("nodes/parameters", numbers_in(parameters))

    def _elements(self, rows: _Rows) -> None:
        numbers, types, tags, counts, points = [list[str]() for _ in range(5)]
        entities = []
        widths: dict[str, int] = {}
        for dimension, tag, kind, count in self._blocks(rows):
            entities += [(dimension, tag)] * (count if self._is_new else 0)
            for _ in range(count):
                number, *row = rows.next(2 if self._is_new else 4)
                if self._is_new:
                    types.append(str(kind))
                else:
                    types.append(row[0])
                    counts.append(row[1])
                    (many,) = numbers_in(row[1:2], "<i8").tolist()
                    tags += row[2 : 2 + max(0, many)]
                    row = row[2 + max(0, many) :]
                if len(row) != widths.setdefault(types[-1], len(row)):
                    raise CorruptFileError(f"element {number[:20]} has another number of nodes")
                numbers.append(number)
                points += row
        self._listing.add_array("elements/nodes", numbers_in(points, "<i8"))
        self._add_items("elements", numbers, entities)
        for name, words in (("types", types), ("tag_counts", counts), ("tags", tags)):
            if words:
                self._listing.add_array(f"elements/{name}", numbers_in(words, "<i8"))

    def _add_items(self, kind: str, words: list[str], entities: list[tuple[int, int]]) -> None:
        """Adds the numbers of nodes or elements, and of the entities that they are on."""
        numbers = numbers_in(words, "<i8")
        self._numbers[kind] = numbers.tolist()
        self._listing.add_array(f"{kind}/numbers", numbers)
        if self._is_new:
            table = np.array(entities, "<i8").reshape(-1, 2)
            self._listing.add_array(f"{kind}/entities", table)

    def _data(self, section: str, rows: _Rows) -> None:
        """A result at a step: its texts, its reals (the time), its whole numbers, its rows."""
        texts = [rows.text() for _ in range(rows.whole(1)[0])]
        reals = [numbers_in(rows.next())[0] for _ in range(rows.whole(1)[0])]
        step, width, count, *rest = (rows.whole(1)[0] for _ in range(rows.whole(1)[0]))
        if not texts or len(rest) > 1 or min(step, width, count) < 0:
            raise CorruptFileError("has no name, or no step, components and number of rows")
        name = f"{section}/{texts[0]}"
        facts: dict[str, Any] = {"rank": rest[0]} if rest and rest[0] else {}
        numbers, values = [], []
        for _ in range(count):
            number, *row = rows.next(2)
            numbers.append(number)
            values.append(row)
        if section == "ElementNodeData":  # each row begins with how many nodes it is for
            points = numbers_in([row.pop(0) for row in values], "<i8")
            if points.tolist() != [len(row) / max(1, width) for row in values]:
                raise CorruptFileError("has rows of another length than they say")
            self._put(f"{name}/counts", step, points, facts)
            values = [[word] for row in values for word in row]
            width = 1
        scheme = labels_of(None, {"interpolation": texts[1]} if texts[1:] else {})
        self._put(name, step, _table(values, width), facts | {"labels": scheme})
        found = numbers_in(numbers, "<i8")
        if found.tolist() != self._numbers.get("nodes" if section == "NodeData" else "elements"):
            self._put(f"{name}/numbers", step, found, facts)
        if reals:
            self._put(f"{name}/time", step, np.array(reals), facts)

    def _put(self, name: str, step: int, values: Any, facts: dict[str, Any]) -> None:
        part = f"[{facts['rank']}]" if "rank" in facts else ""
        if self._has_steps:
            facts = facts | {"called": name, "iteration": step}
        self._listing.add_array(f"{name}[{step}]{part}", values, **facts)
