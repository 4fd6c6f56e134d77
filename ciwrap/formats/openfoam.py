"""Fields and dictionaries of OpenFOAM: a header `FoamFile`, then entries, or one list.

Source: "OpenFOAM User Guide", "Basic input/output file format", and the class List of its source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import EntrySource, Listing
from ciwrap.formats.openfoam_text import FoamText
from ciwrap.formats.reader import CheckedReader, Source, whole_file
from ciwrap.formats.tables import parse_float, parse_floats
from ciwrap.formats.words import numbers_in, telling_line

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# How many numbers an element has; those of more kinds than one stand in brackets of their own.
_TUPLES = {"vector": 3, "sphericalTensor": 1, "symmTensor": 6, "tensor": 9, "vector2D": 2}
_SINGLE = ("scalar", "label")
_END_OF_TUPLES = re.compile(rb"\)\s*\)")
_FIELD = re.compile(r"(?:vol|surface|point)\w+Field")
_LIST = re.compile(rf"({'|'.join((*_TUPLES, *_SINGLE))})(?:IO)?(?:Field|List)")


class OpenFoamReader(CheckedReader):
    """Every entry is a variable, `boundaryField/inlet/value`: numbers where it is a number, a tuple
    or a list of them, else the text as it stands, as is `class`. The file is held in memory.
    """

    name: ClassVar[str] = "openfoam"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        data = bytes(whole_file(path))
        foam = _Foam(data, Listing(path))
        with telling_line(data, lambda: foam.at):
            try:
                foam.read()
            except CorruptFileError as error:
                error.blame(variable=foam.entry or None)
                raise
        return EntrySource(path, foam.listing.entries)


class _Foam(FoamText):
    """A file while it is read: `entry` is the one that is read."""

    def __init__(self, data: bytes, listing: Listing) -> None:
        super().__init__(data)
        self.listing, self.entry = listing, ""

    def read(self) -> None:
        """Lists all entries. Raises CorruptFileError, UnsupportedFormatError."""
        head = self._head()
        kind = head.get("class", "")
        self.listing.add_array("class", np.array(kind, dtype=object))
        before = self.at
        is_list = (self._token() or "").isdigit()
        self.at = before
        if not is_list:
            self._dictionary("")
            names = {entry.info.name.split("/")[0] for entry in self.listing.entries}
            missing = {"internalField", "boundaryField"} - names
            if missing and _FIELD.fullmatch(kind):
                raise CorruptFileError(f"has no {sorted(missing)[0]}")
            return
        element = _LIST.fullmatch(kind)
        if element is None:
            raise UnsupportedFormatError(
                f"holds a {kind[:40]}, which is not read",
                remedy="compare it with '--format tokens'",
            )
        self.entry = "values"
        self._list(element[1])
        if self._token() is not None:
            raise CorruptFileError("has something after its list")

    def _dictionary(self, path: str) -> None:
        """The entries up to the end of the file, or to the bracket that ends one within it."""
        while True:
            key = self._needed() if path else self._token()
            if key is None or (key == "}" and path):
                return
            if key == ";":  # after a dictionary, where it may stand
                continue
            if key.startswith("#"):
                raise UnsupportedFormatError(
                    f"has a directive, {key[:40]}, whose result is not in the file",
                    remedy="compare it with '--format tokens'",
                )
            if key in "(){}[]":
                raise CorruptFileError(f"has {key} where the name of an entry is expected")
            self.entry = path + key.strip('"')
            self._entry(self.entry)

    def _entry(self, name: str) -> None:
        before = self.at
        first = self._needed()
        if first == "{":
            self._dictionary(f"{name}/")
            return
        if first == "nonuniform":
            kind = self._needed()
            if kind.isdigit():  # nonuniform 0()
                self.at -= len(kind)
                kind = "List<scalar>"
            self._list(kind.removeprefix("List<").removesuffix(">"))
            self._needed(";")
            return
        self.at = before
        value = self._value()
        tokens = value[1:] if value[:1] == ["uniform"] else value
        found: Any = parse_floats(tokens[1:-1]) if tokens[:1] + tokens[-1:] == ["(", ")"] else None
        if len(tokens) == 1 and parse_floats(tokens):
            found = parse_float(tokens[0])
        array = np.array(" ".join(value), object) if found is None else np.array(found, "<f8")
        self.listing.add_array(name, array)

    def _list(self, kind: str) -> None:
        """Adds `count ( ... )`, or `count { the same for all }`."""
        if kind not in _TUPLES and kind not in _SINGLE:
            raise CorruptFileError(f"has a list of {kind[:40]!r}, which is not read")
        word = self._needed()
        if not word.isdigit() or len(word) > 18:
            raise CorruptFileError(f"has {word[:40]!r} where the length of a list is expected")
        count, width = int(word), _TUPLES.get(kind, 1)
        shape = (count, width) if kind in _TUPLES else (count,)
        dtype = np.dtype(self._dtypes["label" if kind == "label" else "scalar"])
        before = self.at
        bracket = self._token()
        if bracket == "{":
            self._add_same(shape, width, dtype)
            return
        if bracket != "(":
            if count or not self._is_binary:  # where nothing follows a length of 0
                raise CorruptFileError("has no bracket before the values of a list")
            self.at = before
            values = np.empty(0, dtype)
        elif self._is_binary:
            end = self.at + count * width * dtype.itemsize
            if end > len(self._data):
                raise CorruptFileError(f"ends within a list of {count} values")
            values = np.frombuffer(self._data, dtype, count * width, self.at)
            self.at = end
            self._needed(")")
        else:
            values = self._in_brackets(kind, count, width, _in_text(dtype))
            self._needed(")")
        self.listing.add_array(self.entry, values.reshape(shape))

    def _add_same(self, shape: tuple[int, ...], width: int, dtype: np.dtype[Any]) -> None:
        """Adds a list all of whose elements are the one that stands in braces."""
        words = []
        while (token := self._needed()) != "}":
            words += [] if token in ("(", ")") else [token]
        one = numbers_in(words, _in_text(dtype)).astype(dtype)
        if one.size != width:
            raise CorruptFileError(f"has {one.size} numbers where {width} are expected")

        def read(first: int, count: int) -> NDArray[Any]:
            return np.resize(np.roll(one, -(first % width)), count)

        self.listing.add(self.entry, dtype, shape, read, stored_bytes=len(self._data))

    def _in_brackets(self, kind: str, count: int, width: int, dtype: str) -> NDArray[Any]:
        """The numbers of a list in text, up to its last bracket; `at` is behind its first one."""
        start = self.at
        if kind in _SINGLE or count == 0:
            end = self._data.find(b")", start)
        else:
            last = _END_OF_TUPLES.search(self._data, start)
            end = last.start() + 1 if last else -1
        if end < 0:
            raise CorruptFileError("ends within a list")
        text = self._data[start:end].decode("ascii", "replace")
        self.at = end
        values = numbers_in(text.replace("(", " ").replace(")", " ").split(), dtype)
        if values.size != count * width:
            raise CorruptFileError(f"holds {values.size} of the {count * width} numbers of a list")
        return values


def _in_text(dtype: np.dtype[Any]) -> str:
    """What numbers of a list are read as where they are text."""
    return "<i8" if dtype.kind == "i" else "<f8"
