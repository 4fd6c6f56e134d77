"""Files of ASE and GPAW (.traj, .gpw): arrays in binary, everything else as JSON, item by item.

Source: the documentation of ASE's module `ase.io.ulm`, "File layout" and "Versions".
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from ciwrap.arrays.values import FileRegion
from ciwrap.base.documents import DocumentError, load_json
from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import Entry, Listing, opened
from ciwrap.formats.reader import CheckedReader, InputFile, Source
from ciwrap.formats.values_file import add_values

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = (b"- of Ulm", b"AFFormat")
_HEADER = struct.Struct("<8s16sqqq")
_TRAJECTORY = b"ASE-Trajectory"
_NEWEST = 3
# The list of items begins in the header, and grows by this factor behind an item.
_FIRST_LIST = 48
_LIST_GROWS = 42
# They say which program wrote, and how.
_LEFT_OUT = ("ase_version", "version", "_little_endian")
_KINDS = "biufc"


class UlmReader(CheckedReader):
    """Every value by the keys that lead to it, `calculator.energy`; items of a trajectory, and of
    any file with several, are its iterations. Not compared are the versions of format and program.
    """

    name: ClassVar[str] = "ulm"
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, lambda file: _Ulm(file).entries(name, options))


class _Ulm:
    """An open file. Raises CorruptFileError, UnsupportedFormatError."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        magic, tag, version, count, place = _HEADER.unpack(self._take(0, _HEADER.size))
        if magic not in MAGIC:
            raise CorruptFileError("does not begin as files of ASE and GPAW do")
        if not 1 <= version <= _NEWEST:
            raise UnsupportedFormatError(f"is of the unknown version {version}")
        if count < 1:
            raise CorruptFileError("holds no items")
        self._places = struct.unpack(f"<{count}q", self._take(place, 8 * count))
        self._is_trajectory = tag.rstrip() == _TRAJECTORY or count > 1
        self._list_end = place + 8 * self._room(place, count)

    def _room(self, place: int, count: int) -> int:
        """How many items the list has room for."""
        room = 1
        while room < count or (place != _FIRST_LIST and room == 1):
            room *= _LIST_GROWS
        return room

    def entries(self, name: str, options: dict[str, Any]) -> list[Entry]:
        """What all items hold. name: of the file."""
        found: list[Entry] = []
        end = self._list_end
        for number, place in enumerate(self._places):
            listing = Listing(self._file.path, options)
            (length,) = struct.unpack("<q", self._take(place, 8))
            end = max(end, place + 8 + length)
            try:
                value = load_json(self._take(place + 8, length), takes_constants=True)
            except DocumentError as error:
                raise CorruptFileError(f"item {number} {error}") from None
            if not isinstance(value, dict):
                raise CorruptFileError(f"item {number} is no mapping")
            order = ">" if value.get("_little_endian") is False else "<"
            kept = {key: one for key, one in value.items() if key not in _LEFT_OUT}
            self._add(listing, kept, (), name, order)
            for one in listing.entries:
                info = one.info
                if self._is_trajectory:
                    key, history = listing.at_step(info.name, number)
                    info = replace(info, name=key, **history)
                found.append(Entry(info, one.read))
        if self._file.byte_count > end:
            raise CorruptFileError("ends with an item that was not finished")
        return found

    def _add(
        self, listing: Listing, value: dict[str, Any], path: tuple[str, ...], root: str, order: str
    ) -> None:
        """Adds what is at `path`. order: of the bytes in arrays, as NumPy has it."""
        for key, one in value.items():
            if not (key.endswith(".") and isinstance(one, dict)):
                add_values(listing, one, (*path, key), root)
            elif "ndarray" in one:
                self._add_array(listing, ".".join((*path, key[:-1])), one["ndarray"], order)
            else:
                self._add(listing, one, (*path, key[:-1]), root, order)

    def _add_array(self, listing: Listing, name: str, told: Any, order: str) -> None:
        """told: lengths, type and place in the file."""
        lengths, kind, place = told
        dtype = np.dtype(kind).newbyteorder(order)
        if dtype.kind not in _KINDS or not all(isinstance(one, int) for one in (*lengths, place)):
            raise CorruptFileError(f"holds an array {name} of a kind that is not known")
        byte_count = math.prod(lengths) * dtype.itemsize
        if min((*lengths, place)) < 0 or place + byte_count > self._file.byte_count:
            raise CorruptFileError(f"ends before its array {name} does")
        listing.add(
            name,
            dtype,
            lengths,
            self._file.elements(place, dtype.str),
            region=FileRegion(str(self._file.path), place, byte_count),
        )

    def _take(self, place: int, count: int) -> bytes:
        if place < 0 or not 0 <= count <= self._file.byte_count - place:
            raise CorruptFileError("ends too early")
        return bytes(self._file.read_at(place, count))
