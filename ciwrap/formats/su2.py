"""Files of SU2: meshes as text (.su2), and restart files in binary.

Sources: SU2's documentation, "Mesh File" (version 7); `CSU2BinaryFileWriter` of SU2 for restarts.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import Entry, EntrySource, Listing, opened
from ciwrap.formats.reader import (
    CheckedReader,
    InputFile,
    Source,
    as_elements,
    first_bytes,
)
from ciwrap.formats.words import numbers_in, text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

MAGIC = struct.pack("<i", 535532)
# Fields, points, and how many whole numbers and doubles follow the table.
_HEADER = struct.Struct("<4s4i")
_NAME_BYTES = 33
_NODES_OF_TYPE = {"3": 2, "5": 3, "9": 4, "10": 4, "12": 8, "13": 6, "14": 5}
_ELEMENTS = {"NELEM", "MARKER_ELEMS"}
_COUNTED = _ELEMENTS | {"NPOIN", *(f"FFD_{one}_POINTS" for one in ("CORNER", "CONTROL", "SURFACE"))}
_TAGS = ("MARKER_TAG", "FFD_TAG")
_NEEDED = ("NDIME", "NELEM", "NPOIN", "NMARK")
_KEY = re.compile(r"([A-Z_]+)\s*=\s*(.*)")
_WHOLE = re.compile(r"[+-]?[0-9]+")


class Su2Reader(CheckedReader):
    """Of a mesh every key, `NPOIN`, with the rows behind it, `NPOIN/rows`, by marker,
    `inlet/MARKER_ELEMS/nodes`; of a restart file its fields. A mesh is held in memory.
    """

    name: ClassVar[str] = "su2"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        if first_bytes(path, len(MAGIC)) == MAGIC:
            return opened(path, _fields)
        listing = Listing(path)
        _Mesh(listing).read(_sections(text_lines(path)))
        return EntrySource(path, listing.entries)


# --- restart files --------------------------------------------------------------------------------


def _fields(file: InputFile) -> list[Entry]:
    """The fields of a restart file, whose points are its rows, and the numbers behind them."""
    listing = Listing(file.path)
    wanted = at = _HEADER.size
    if file.byte_count >= wanted:
        _, width, points, wholes, doubles = _HEADER.unpack(file.read_at(0, at))
        if min(width, points, wholes, doubles) >= 0:
            at += _NAME_BYTES * width
            wanted = at + 8 * width * points + 4 * wholes + 8 * doubles
    if file.byte_count != wanted or at == _HEADER.size:
        raise CorruptFileError(f"has {file.byte_count} bytes where {wanted} are expected")
    names = bytes(file.read_at(_HEADER.size, _NAME_BYTES * width))
    for column in range(width):
        name = names[_NAME_BYTES * column :][:_NAME_BYTES].split(b"\0")[0].decode()
        read = partial(_column, file, at, width, column)
        listing.add(name, np.dtype("<f8"), (points,), read)
    behind = at + 8 * width * points
    for name, dtype, count in (("metadata/whole", "<i4", wholes), ("metadata", "<f8", doubles)):
        if count:
            listing.add(name, np.dtype(dtype), (count,), file.elements(behind, dtype))
        behind += np.dtype(dtype).itemsize * count
    return listing.entries


def _column(
    file: InputFile, at: int, width: int, column: int, first: int, count: int
) -> NDArray[Any]:
    rows = as_elements(file.read_at(at + 8 * width * first, 8 * width * count), "<f8")
    return np.ascontiguousarray(rows[column::width])


# --- meshes ---------------------------------------------------------------------------------------


def _sections(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Every key with its value, and the words of the lines behind it."""
    key, value, rows = "", "", list[list[str]]()
    for number, line in lines:
        text = line.partition("%")[0].strip()
        found = _KEY.fullmatch(text)
        if found is not None:
            if key:
                yield key, value, rows
            key, value, rows = found[1], found[2].strip(), []
        elif text and not key:
            raise CorruptFileError(f"line {number} comes before any key: {text[:40]!a}")
        elif text:
            rows.append(text.split())
    if key:
        yield key, value, rows


class _Mesh:
    """Adds the sections of a mesh to a listing. Raises CorruptFileError."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._tags: dict[str, str] = {}  # of MARKER and of FFD
        self._often: Counter[str] = Counter()
        self._counts: dict[str, int] = {}

    def read(self, sections: Iterator[tuple[str, str, list[list[str]]]]) -> None:
        for key, value, rows in sections:
            if key == "NZONE" and value != "1":
                raise UnsupportedFormatError("has several zones", remedy="write one file for each")
            self._section(key, value, rows)
        lost = [f"{key}=" for key in _NEEDED if key not in self._counts]
        if not lost and self._often["MARKER_ELEMS"] != self._counts["NMARK"]:
            lost = ["as many markers as it says"]
        if lost:
            raise CorruptFileError(f"does not have {lost[0]}")

    def _section(self, key: str, value: str, rows: list[list[str]]) -> None:
        family = key.partition("_")[0]
        if key in _TAGS:
            self._tags[family] = f"{value}/"
        name = self._tags.get(family, "") + key
        self._often.update({key, name})
        name += f"[{self._often[name]}]" if self._often[name] > 1 else ""
        words = value.split()
        if words and all(map(_WHOLE.fullmatch, words)):
            self._counts[key] = count = int(words[0])
            self._listing.add_array(name, numbers_in(words, "<i8"))
            if key in _COUNTED and len(rows) != count:
                what = f"{name} says {count} rows, but has {len(rows)}"
                raise CorruptFileError(what)
        else:
            self._listing.add_array(name, np.array(value, object))
        if key in _ELEMENTS:
            self._elements(name, rows)
        elif rows:
            self._rows(name, rows, self._counts.get("NDIME", 0) if key == "NPOIN" else 0)

    def _elements(self, name: str, rows: list[list[str]]) -> None:
        types: list[str] = []
        nodes: list[str] = []
        rest: list[str] = []
        for row in rows:
            end = 1 + _NODES_OF_TYPE.get(row[0], len(row))
            if end > len(row):
                raise CorruptFileError(f"{name}: {' '.join(row)[:40]!a} is no element")
            types.append(row[0])
            nodes += row[1:end]
            rest += row[end:]
        for what, words in (("types", types), ("nodes", nodes), ("numbers", rest)):
            if words or what == "nodes":
                self._listing.add_array(f"{name}/{what}", numbers_in(words, "<i8"))

    def _rows(self, name: str, rows: list[list[str]], decimals: int) -> None:
        """Adds a table. decimals: of how many columns it is known that they hold decimals."""
        if len({len(row) for row in rows}) > 1:
            raise CorruptFileError(f"{name} has rows of several lengths")
        columns = list(zip(*rows, strict=True))
        floats: list[Sequence[str]] = []
        wholes: list[Sequence[str]] = []
        texts: list[Sequence[str]] = []
        for number, column in enumerate(columns):
            if number >= decimals and all(map(_WHOLE.fullmatch, column)):
                wholes.append(column)
            else:
                is_text = number >= decimals and column[0][0].isalpha()
                (texts if is_text else floats).append(column)
        for what, found, dtype in (("rows", floats, "<f8"), ("numbers", wholes, "<i8")):
            if found:
                table = np.array([numbers_in(column, dtype) for column in found]).T
                self._listing.add_array(f"{name}/{what}", table)
        if texts:
            self._listing.add_array(f"{name}/names", np.array(texts, object).T)
