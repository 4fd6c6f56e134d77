"""Data of Tecplot as text: zones of values over points and cells.

Source: "Tecplot 360 Data Format Guide", "ASCII Data".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.find_outputs import TECPLOT_BINARY
from ciwrap.formats.reader import CheckedReader, Source, first_bytes
from ciwrap.formats.words import HeldLines, numbers_in, text_lines

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_RECORD = re.compile(r"(TITLE|FILETYPE|VARIABLES|ZONE|\w+AUXDATA|TEXT|GEOMETRY)\b", re.IGNORECASE)
# Where a record begins behind another one on its line, but for what stands in quotes.
_BEHIND = re.compile(r'"[^"]*"|\s(?=(?:(?:TITLE|VARIABLES)\s*=|ZONE\s+\w+\s*=))', re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\.?\d|nan|inf)", re.IGNORECASE)
_NAME = re.compile(r'"([^"]*)"|([^\s,"]+)')
_AUXILIARY = re.compile(r'AUXDATA\s+[\w.]+\s*=\s*"[^"]*"', re.IGNORECASE)
_KEY = re.compile(r'(\w+)\s*=\s*("[^"]*"|\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^]]*\]|[^\s,"]+)')
_LIST = re.compile(r"\[([^]]*)\](?:\s*=\s*(\w+))?")
_RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?")
_OLD = {"N": "NODES", "E": "ELEMENTS", "F": "DATAPACKING", "ET": "ZONETYPE"}
_KNOWN = {
    *("T", "I", "J", "K", "NODES", "ELEMENTS", "DATAPACKING", "ZONETYPE", "STRANDID", "DT", "C"),
    *("SOLUTIONTIME", "VARLOCATION", "VARSHARELIST", "PASSIVEVARLIST", "CONNECTIVITYSHAREZONE"),
}
_NODES_OF_TYPE = {"LINESEG": 2, "TRIANGLE": 3, "QUADRILATERAL": 4, "TETRAHEDRON": 4, "BRICK": 8}


class TecplotReader(CheckedReader):
    """The variables of each zone, of the shape K, J, I, and the nodes of its `elements`. Zones with
    a SOLUTIONTIME are iterations, counted from 0 as their times come. Of several zones at one time,
    a name begins with that of its zone. Held in memory; titles and auxiliary data are not compared.
    """

    name: ClassVar[str] = "tecplot"
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        listing = Listing(path, options)
        if first_bytes(path, max(map(len, TECPLOT_BINARY))).startswith(TECPLOT_BINARY):
            raise UnsupportedFormatError("is a binary file of Tecplot", remedy="write it as text")
        _list_zones(_File(path).zones(), listing)
        return EntrySource(path, listing.entries)


class _Zone:
    """A zone: what its head says, by upper-case key, and its variables. Raises CorruptFileError."""

    def __init__(self, head: str) -> None:
        head = _AUXILIARY.sub(" ", head)
        found: dict[str, str] = {key.upper(): value for key, value in _KEY.findall(head)}
        self.keys = {_OLD.get(key, key): value.strip('"') for key, value in found.items()}
        rest = _KEY.sub(" ", head).replace(",", " ").split()
        strange = [*rest, *(self.keys.keys() - _KNOWN)]
        if strange:
            raise CorruptFileError(f"a zone says {strange[0][:40]!a}, which is not known")
        self.type = self.says("ZONETYPE").removeprefix("FE") or "ORDERED"
        self.arrays: list[tuple[str, Any]] = []

    def says(self, key: str) -> str:
        return self.keys.get(key, "").upper()

    def shapes(self) -> tuple[list[int], list[int]]:
        """Of what is over points (empty if nothing says it), and over cells."""
        if self.type == "ORDERED" and "NODES" not in self.keys:
            points = self._wholes(*(key for key in "KJI" if key in self.keys))
            return points, [max(1, one - 1) for one in points]
        if self.type not in _NODES_OF_TYPE:
            raise UnsupportedFormatError(f"has a zone of {self.type[:40]!a}, which is not read")
        return self._wholes("NODES"), self._wholes("ELEMENTS")

    def _wholes(self, *keys: str) -> list[int]:
        return list(map(int, numbers_in(list(map(self.says, keys)), "<i8")))

    def listed(self, key: str, place: str = "") -> set[int]:
        """The numbers of variables that a key lists, `([1-3,5]=place)`; '': in any place."""
        lists = _LIST.findall(self.says(key))
        if self.says(key) and not lists:
            raise CorruptFileError(f"a zone has a {key} without numbers in brackets")
        ranges = _RANGE.findall(",".join(one for one, named in lists if place in ("", named)))
        return {n for first, last in ranges for n in range(int(first), int(last or first) + 1)}


class _File:
    """The lines of a file while they are read, but for those that are blank or comments."""

    def __init__(self, path: Path) -> None:
        self._lines = HeldLines(
            (number, one.strip())
            for number, line in text_lines(path)
            if not line.startswith("#")
            for one in (_one_record_each(line) if "=" in line else (line,))
        )
        self._names: list[str] = []

    def zones(self) -> list[_Zone]:
        """All zones. Raises CorruptFileError, UnsupportedFormatError."""
        found: list[_Zone] = []
        while line := self._lines.next:
            begins = _RECORD.match(line)
            if begins is None:
                raise self._lines.error(f"is not part of a record: {line[:40]!a}")
            kind, text = begins[1].upper(), self._record(begins)
            if kind == "VARIABLES":
                names = _NAME.findall(text.partition("=")[2])
                self._names = [quoted or bare for quoted, bare in names]
            elif kind == "ZONE":
                found.append(_Zone(text))
                self._read(found[-1])
            elif kind in ("TEXT", "GEOMETRY"):
                raise UnsupportedFormatError(f"holds {kind}, which is not read")
        if not found:
            raise CorruptFileError("holds no zone")
        return found

    def _record(self, begins: re.Match[str]) -> str:
        """All of the record that begins with the next line, but for its first word."""
        text = self._lines.take()[begins.end() :]
        while (line := self._lines.next) and not (_NUMBER.match(line) or _RECORD.match(line)):
            text += f" {self._lines.take()}"
        return text

    def _read(self, zone: _Zone) -> None:
        """Takes the numbers of a zone, and the elements behind them."""
        points, cells = zone.shapes()
        at_cells = zone.listed("VARLOCATION", "CELLCENTERED")
        elsewhere = zone.listed("VARSHARELIST") | zone.listed("PASSIVEVARLIST")
        here = [one for one in range(1, len(self._names) + 1) if one not in elsewhere]
        is_block = zone.says("DATAPACKING").endswith("BLOCK")
        if not self._names or (at_cells and not is_block):
            raise self._lines.error(
                "begins a zone without VARIABLES, or values of cells in no BLOCK"
            )
        shapes = [cells if one in at_cells else points for one in here]
        values = self._numbers(sum(map(math.prod, shapes)) if points else None, "<f8")
        if not points and here:  # as many as there are
            shapes = [[len(values) // len(here)]] * len(here)
        if here and not is_block:
            values = values.reshape(-1, len(here)).T.reshape(-1)
        ends = np.cumsum(list(map(math.prod, shapes)))
        for number, shape, part in zip(here, shapes, np.split(values, ends), strict=False):
            zone.arrays.append((self._names[number - 1], part.reshape(shape)))
        nodes = _NODES_OF_TYPE.get(zone.type, 0)
        if nodes and "CONNECTIVITYSHAREZONE" not in zone.keys:
            table = self._numbers(cells[0] * nodes, "<i8").reshape(-1, nodes)
            zone.arrays.append(("elements", table))

    def _numbers(self, count: int | None, dtype: str) -> NDArray[Any]:
        """So many numbers, up to the end of a line; None: all up to the next record."""
        words: list[str] = []
        while (count is None or len(words) < count) and _NUMBER.match(self._lines.next):
            words += self._lines.take().replace(",", " ").split()
        if len(words) != (len(words) if count is None else count):
            raise self._lines.error(f"comes after {len(words)} numbers where {count} are expected")
        return numbers_in(words, dtype)


def _one_record_each(line: str) -> list[str]:
    return _BEHIND.sub(lambda found: found[0].strip() or "\n", line).split("\n")


def _list_zones(zones: list[_Zone], listing: Listing) -> None:
    times = [zone.says("SOLUTIONTIME") for zone in zones]
    has_steps = listing.has_steps and all(times)
    places = times if has_steps else [""] * len(zones)
    steps = {time: step for step, time in enumerate(dict.fromkeys(places))}
    often, known = Counter(places), Counter[str]()
    for zone, place, time in zip(zones, places, times, strict=True):
        end = f"[{steps[place]}]" if has_steps else ""
        title = zone.keys.get("T", "zone")
        known[title + end] += 1
        title += f"[{known[title + end]}]" if known[title + end] > 1 else ""
        begin = f"{title}/" if often[place] > 1 else ""
        if time:
            zone.arrays.append(("solution_time", numbers_in([time])[0]))
        for name, values in zone.arrays:
            if has_steps:
                listing.add_at_step(begin + name, steps[place], values)
            else:
                listing.add_array(begin + name, values)
