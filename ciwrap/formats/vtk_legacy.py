"""VTK's legacy files (.vtk): a text of lines, with numbers as text or in big-endian bytes.

A keyword that is not known is refused.
Source: "VTK File Formats" (legacy), versions 1.0 to 5.1.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import array_of_texts
from ciwrap.formats.reader import whole_file
from ciwrap.formats.vtk_arrays import (
    POLYHEDRON,
    Array,
    Grid,
    Piece,
    array_of,
    cells_of,
    labels_from,
    numbers,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels
    from ciwrap.formats.vtk_arrays import Extent

_TYPES = {
    "char": "i1", "signed_char": "i1", "unsigned_char": "u1", "short": "i2",
    "unsigned_short": "u2", "int": "i4", "unsigned_int": "u4", "long": "i8", "unsigned_long": "u8",
    "vtktypeint32": "i4", "vtktypeint64": "i8", "vtktypeuint64": "u8", "float": "f4",
    "double": "f8", "vtkidtype": "i4",  # as it is stored; it has 64 bits where it is used
}  # fmt: skip
_TEXTS = ("string", "utf8_string")
_SECTIONS = {"POINT_DATA": "point_data", "CELL_DATA": "cell_data", "ROW_DATA": "row_data"}
# Arrays of one kind by how many components each has.
_KINDS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9, "TENSORS6": 6, "GLOBAL_IDS": 1,
          "PEDIGREE_IDS": 1, "EDGE_FLAGS": 1}  # fmt: skip
_CELLS = {"VERTICES": "verts", "LINES": "lines", "POLYGONS": "polys", "TRIANGLE_STRIPS": "strips",
          "CELLS": "cells"}  # fmt: skip
_DATASETS = ("STRUCTURED_POINTS", "STRUCTURED_GRID", "RECTILINEAR_GRID", "UNSTRUCTURED_GRID",
             "POLYDATA", "TABLE", "FIELD")  # fmt: skip
_STRUCTURED = _DATASETS[:3]
_NEEDED = {"STRUCTURED_GRID": ("points",), "RECTILINEAR_GRID": ("x", "y", "z"),
           "UNSTRUCTURED_GRID": ("points",), "POLYDATA": ("points",)}  # fmt: skip
_HEAD = re.compile(rb"# vtk DataFile Version ([1-5])\.\d+\s*\Z", re.IGNORECASE)
_REMEDY = "have the program write XML (.vtu, .vti, ...), or is the file not whole?"
_LENGTH_BYTES = {3: 1, 2: 2, 1: 4, 0: 8}


def read_legacy(path: Path) -> Grid:
    """The one piece of a file. Raises CorruptFileError and what `InputFile` raises."""
    return _Legacy(bytes(whole_file(path))).grid()


class _Legacy:
    """A file while it is read: `_at` goes through its bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        version = _HEAD.match(self._raw_line())
        self._raw_line()  # the title
        form = self._raw_line().strip().upper()
        if version is None or form not in (b"ASCII", b"BINARY"):
            raise CorruptFileError("does not begin as a legacy file of VTK, version 1 to 5")
        self._is_text = form == b"ASCII"
        self._has_ends = version[1] == b"5"  # lists are given by their ends
        self._dataset, self._section, self._count = "FIELD", "field_data", 0
        self._arrays: dict[str, Array] = {}
        self._seen: set[str] = set()  # of what may be said once
        self._facts = {"origin": array_of(np.zeros(3)), "spacing": array_of(np.ones(3))}
        self._lengths: list[int] | None = None
        # The arrays that name a lookup table which has not come yet.
        self._wanting: dict[str, list[str]] = {}

    def grid(self) -> Grid:
        while words := self._line():
            cause: Exception | None = None
            try:
                is_known = self._geometry(words[0].upper(), words[1:]) or self._data_of(
                    words[0].upper(), words[1:]
                )
            except CorruptFileError as error:
                error.blame(variable=" ".join(words[:2]))
                raise
            except (LookupError, ValueError) as error:
                is_known, cause = False, error
            if not is_known:
                line = ascii(" ".join(words))[:60]
                raise CorruptFileError(
                    f"has a line that is not known, or not whole: {line}", remedy=_REMEDY
                ) from cause
        if self._wanting:
            raise CorruptFileError(f"holds no lookup table {sorted(self._wanting)}"[:100])
        return self._finished()

    # --- lines and numbers ------------------------------------------------------------------------

    def _raw_line(self) -> bytes:
        end = self._data.find(b"\n", self._at)
        end = len(self._data) if end < 0 else end
        line, self._at = self._data[self._at : end], end + 1
        return line.rstrip(b"\r")

    def _line(self) -> list[str]:
        """The words of the next line that has any; none at the end."""
        while self._at < len(self._data):
            if words := self._raw_line().split():
                return [word.decode("utf-8", "backslashreplace") for word in words]
        return []

    def _read_array(self, name: str, count: int, width: int, kind: str) -> None:
        """Reads an array of so many tuples, and adds it."""
        if min(count, width) < 0 or name in self._arrays:
            raise CorruptFileError(f"has two arrays named {ascii(name)[:60]}, or one of no length")
        if kind in _TEXTS:
            values: NDArray[Any] = array_of_texts([self._text() for _ in range(count * width)])
        else:
            values = self._numbers(count * width, kind)
            values = values.astype("<i8") if kind == "vtkidtype" else values
        self._arrays[name] = array_of(values if width == 1 else values.reshape(count, width))
        self._arrays[name] = replace(self._arrays[name], labels=self._metadata(width))

    def _metadata(self, width: int) -> Labels:
        """The unit and the names of components, where a block of lines says them."""
        before = self._at
        if self._line() != ["METADATA"]:
            self._at = before
            return ()
        names: list[str | None] = []
        unit, key = None, b""
        while line := self._raw_line().strip():
            if line == b"COMPONENT_NAMES":
                names = [unquote_to_bytes(self._raw_line()).decode() for _ in range(width)]
            elif line.startswith(b"DATA ") and b"UNITS_LABEL" in key.split():
                unit = unquote_to_bytes(line.removeprefix(b"DATA ")).decode()
            key = line
        return labels_from(unit, names)

    def _numbers(self, count: int, kind: str) -> NDArray[Any]:
        most = None
        if kind == "bit":
            if not self._is_text:
                return np.unpackbits(self._numbers(-(-count // 8), "unsigned_char"))[:count]
            kind, most = "unsigned_char", 1
        dtype = np.dtype(_TYPES[kind])
        if self._is_text:
            words = self._data[self._at :].split(None, count)
            rest = words.pop() if len(words) > count else b""
            self._at = len(self._data) - len(rest)
            found = numbers(words, np.dtype("<i8") if kind == "vtkidtype" else dtype, most)
        else:
            data = self._data[self._at : self._at + count * dtype.itemsize]
            self._at += len(data)
            whole = len(data) // dtype.itemsize * dtype.itemsize
            found = np.frombuffer(data[:whole], dtype.newbyteorder(">")).astype(dtype)
        if found.size != count:
            raise CorruptFileError(f"ends after {found.size} of {count} numbers of an array")
        return found

    def _text(self) -> str:
        """A text of an array: a line, or as many bytes as it says itself."""
        start = self._at
        if self._is_text and start < len(self._data):
            return unquote_to_bytes(self._raw_line()).decode("utf-8", "surrogateescape")
        # Its first two bits say how many bytes its length has.
        size = _LENGTH_BYTES[self._data[start] >> 6]
        head = int.from_bytes(self._data[start : start + size], "big")
        self._at = start + size + (head & ((1 << (8 * size - 2)) - 1))
        if self._at > len(self._data):
            raise CorruptFileError("ends within an array of texts")
        return self._data[start + size : self._at].decode("utf-8", "surrogateescape")

    # --- what the keywords say --------------------------------------------------------------------

    def _geometry(self, keyword: str, words: Sequence[str]) -> bool:
        """Reads what says where points and cells are; False for another keyword."""
        if keyword in self._seen:
            return False
        if keyword == "DATASET" and words[0].upper() in _DATASETS:
            self._dataset = words[0].upper()
        elif keyword == "DIMENSIONS":
            self._lengths = [int(words[axis]) for axis in range(3)]
            if min(self._lengths) < 0:
                raise ValueError(self._lengths)
        elif keyword in ("ORIGIN", "SPACING", "ASPECT_RATIO"):
            values = numbers([word.encode() for word in words], np.dtype("<f8"))
            name = "origin" if keyword == "ORIGIN" else "spacing"
            self._facts[name] = array_of(values.reshape(3))
        elif keyword in ("X_COORDINATES", "Y_COORDINATES", "Z_COORDINATES"):
            self._read_array(keyword[0].lower(), int(words[0]), 1, words[1].lower())
        elif keyword == "POINTS":
            self._read_array("points", int(words[0]), 3, words[1].lower())
        elif keyword in _CELLS:
            self._read_cells(_CELLS[keyword], int(words[0]), int(words[1]))
        elif keyword == "CELL_TYPES":
            types = types_of(self._numbers(int(words[0]), "int"))
            self._arrays["cells/types"] = array_of(types)
        else:
            return False
        self._seen.add(keyword)
        return True

    def _read_cells(self, kind: str, count: int, size: int) -> None:
        """Lists of points: each behind its length, or all behind where each ends."""
        if self._has_ends:
            parts = []
            for name, length in (("OFFSETS", count), ("CONNECTIVITY", size)):
                title, type_name = self._line()
                if title.upper() != name:
                    raise ValueError(name)
                parts.append(self._numbers(length, type_name.lower()))
            if count and parts[0][0] != 0:
                raise CorruptFileError(f"its {kind} do not begin at 0")
            ends, points = parts[0][1:], parts[1]
        else:
            stream, lengths, at = self._numbers(size, "int").astype("<i8"), list[int](), 0
            is_point = np.ones(size, bool)
            for _ in range(count):
                lengths.append(int(stream[at]))
                is_point[at] = False
                at += 1 + max(0, lengths[-1])
            if at != size:
                raise CorruptFileError(f"its {kind} have {at} numbers, not {size}")
            ends, points = np.cumsum(lengths, dtype="<i8"), stream[is_point]
        if ends.size:
            self._arrays.update(cells_of(kind, array_of(points), ends))

    def _data_of(self, keyword: str, words: Sequence[str]) -> bool:
        """Reads what is over points or cells, or belongs to all; False for another keyword."""
        if keyword in _SECTIONS:
            self._section, self._count = _SECTIONS[keyword], int(words[0])
            wanted = {"point_data": self._points(), "cell_data": sum(self._cells())}
            if self._count != wanted.get(self._section, self._count):
                raise CorruptFileError(f"says {keyword} {self._count}, not {wanted}")
        elif keyword == "FIELD":
            for _ in range(int(words[1])):
                called, length, count, kind = self._line()
                if self._section != "field_data" and int(count) != self._count:
                    raise CorruptFileError(f"its array {called[:40]!r} has {int(count)} tuples")
                self._read_array(self._name(called), int(count), int(length), kind.lower())
        elif keyword == "LOOKUP_TABLE":
            holders = self._wanting.pop(words[0])
            table = array_of(self._colours(int(words[1]), 4))
            self._arrays.update({f"{one}/lookup_table": table for one in holders})
        elif self._section == "field_data":
            return False
        elif keyword == "SCALARS":
            width = int(words[2]) if len(words) > 2 else 1
            title = self._line()
            if len(title) != 2 or title[0].upper() != "LOOKUP_TABLE":
                raise CorruptFileError(f"names no lookup table for {words[0][:40]!r}")
            name = self._name(words[0])
            if title[1].lower() != "default":
                self._wanting.setdefault(title[1], []).append(name)
            self._read_array(name, self._count, width, words[1].lower())
        elif keyword == "COLOR_SCALARS":
            name = self._name(words[0])
            if name in self._arrays:
                raise CorruptFileError(f"has two arrays named {ascii(name)[:60]}")
            self._arrays[name] = array_of(self._colours(self._count, int(words[1])))
        elif keyword == "TEXTURE_COORDINATES":
            self._read_array(self._name(words[0]), self._count, int(words[1]), words[2].lower())
        elif keyword in _KINDS:
            self._read_array(self._name(words[0]), self._count, _KINDS[keyword], words[1].lower())
        else:
            return False
        return True

    def _name(self, word: str) -> str:
        plain = unquote_to_bytes(word).decode("utf-8", "backslashreplace")
        return f"{self._section}/{plain}"

    def _colours(self, count: int, width: int) -> NDArray[Any]:
        """Parts of colours: bytes, or in a text numbers up to 1."""
        if not self._is_text:
            return self._numbers(count * width, "unsigned_char").reshape(count, width)
        values = self._numbers(count * width, "float")
        if values.size and not 0 <= values.min() <= values.max() <= 1:
            raise CorruptFileError("has colours that are not between 0 and 1")
        return (values * 255.0 + 0.5).astype("|u1").reshape(count, width)

    # --- all together -----------------------------------------------------------------------------

    def _points(self) -> int:
        if self._lengths is not None:
            return math.prod(self._lengths)
        return self._arrays["points"].shape[0] if "points" in self._arrays else 0

    def _cells(self) -> tuple[int, ...]:
        if self._lengths is not None:
            return (math.prod(max(1, one - 1) for one in self._lengths) if self._points() else 0,)
        return tuple(
            array.shape[0] - 1 for name, array in self._arrays.items() if name.endswith("/offsets")
        )

    def _finished(self) -> Grid:
        """The grid, once it is known that its parts fit together."""
        arrays, lengths = self._arrays, self._lengths
        if (lengths is not None) != (self._dataset in _STRUCTURED):
            raise CorruptFileError(f"is a {self._dataset} and does, or does not, say DIMENSIONS")
        wanted = dict(zip("xyz", lengths or (), strict=False))
        for name in _NEEDED.get(self._dataset, ()):
            count = arrays[name].shape[0] if name in arrays else -1
            if count != wanted.get(name, self._points()) and (count < 0 or self._points()):
                raise CorruptFileError(f"does not hold as many {name} as it says")
        types = arrays.get("cells/types", array_of(np.zeros(0, "|u1"))).values
        if self._dataset == "UNSTRUCTURED_GRID" and types.size != sum(self._cells()):
            raise CorruptFileError(f"has {types.size} types for {sum(self._cells())} cells")
        if POLYHEDRON in types:
            raise CorruptFileError(
                "holds polyhedra, which are not read from legacy files", remedy=_REMEDY
            )
        fields = {name: one for name, one in arrays.items() if name.startswith("field_data/")}
        others = {name: one for name, one in arrays.items() if name not in fields}
        extent: Extent | None = None
        if lengths is not None:
            x, y, z = lengths
            extent = (0, x - 1, 0, y - 1, 0, z - 1)
        facts = self._facts if self._dataset == "STRUCTURED_POINTS" else {}
        piece = Piece(others, self._points(), self._cells(), extent)
        has_extent = self._dataset in ("STRUCTURED_POINTS", "STRUCTURED_GRID")
        return Grid((piece,), {**fields, **facts}, extent, has_extent)
