"""TRR and XTC trajectories of GROMACS, through MDAnalysis."""

from __future__ import annotations

import struct
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.closing import closed_on_error
from ciwrap.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.apart import SourceApart, bytes_below
from ciwrap.readers.base import CheckedReader, Source
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile, check_is_file
from ciwrap.readers.optional import library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

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
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["gromacs"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        if _is_trr(path):
            _refuse_double(path)
        _library(path)
        return SourceApart(path, partial(_source, path), bytes_below(path))


def _is_trr(path: Path) -> bool:
    """As the file begins; as it is called where it begins as neither TRR nor XTC."""
    with closing(InputFile(path)) as file:
        start = file.read_some(0, len(_TRR))
    return start == _TRR or (start not in _XTC and path.suffix.lower() == ".trr")


def _library(path: Path) -> Any:
    return library("MDAnalysis.lib.formats.libmdaxdr", "md", file=path)


def _refuse_double(path: Path) -> None:
    """Raises UnsupportedFormatError for a TRR file in double precision, which MDAnalysis would
    round to single without a word.
    """
    with closing(InputFile(path)) as file:
        head = file.read_some(0, _SIZES.size)
    if len(head) < _SIZES.size:
        return  # MDAnalysis will say so
    sizes = _SIZES.unpack(head)
    doubles = (9 * 8, *(3 * 8 * sizes[_ATOMS],) * 3)
    if any(sizes[part] == size != 0 for part, size in zip(_PARTS, doubles, strict=True)):
        raise UnsupportedFormatError(
            "is written in double precision, which MDAnalysis rounds to single", file=path
        )


def _source(path: Path) -> Source:
    module = _library(path)
    kind = module.TRRFile if _is_trr(path) else module.XTCFile
    with guarded(path):
        file = kind(str(path))
    with closed_on_error(file.close), guarded(path):
        listing = _listing(file, path)
    return EntrySource(path, listing.entries, file.close)


def _listing(file: Any, path: Path) -> Listing:
    listing = Listing(path)
    frames = _Frames(file)
    count = len(file)
    for number in range(count):
        frame = frames.at(number)
        step = int(frame.step)
        if step < 0:
            raise CorruptFileError(f"frame {number} has the step {step}", file=path)
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
                frames.reader(number, field),
                called=called,
                iteration=step,
            )
    # Offsets end at the last whole frame, wherever the file does.
    if count == 0 or file._bytes_tell() != path.stat().st_size:  # the only way to know
        raise CorruptFileError(
            f"is cut off after {count} whole frames", file=path, remedy="write it again"
        )
    return listing


class _Frames:
    """The frame read last, since its variables are asked for one after another."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._number = -1
        self._frame: Any = None

    def at(self, number: int) -> Any:
        if number != self._number:
            if self._file.tell() != number:
                self._file.seek(number)
            self._frame = self._file.read()
            self._number = number
        return self._frame

    def reader(self, number: int, field: str) -> Callable[[int, int], NDArray[Any]]:
        def read(first: int, count: int) -> NDArray[Any]:
            flat = np.ascontiguousarray(getattr(self.at(number), field)).reshape(-1)
            return np.array(flat[first : first + count])

        return read
