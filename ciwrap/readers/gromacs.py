"""TRR and XTC trajectories of GROMACS, through MDAnalysis."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.closing import closed_on_error
from ciwrap.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.apart import SourceApart, bytes_below
from ciwrap.readers.base import Reader, Source
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile, check_is_file
from ciwrap.readers.optional import library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_HEADER_BYTES = 60
_DOUBLE_BOX_BYTES = 72
_FIELDS = (("x", "positions"), ("v", "velocities"), ("f", "forces"))


class GromacsReader(Reader):
    """Frames as iterations, numbered by their steps: positions, velocities, forces, box, time.

    XTC holds positions rounded to its precision. Numbers are in the file's own units.
    """

    name: ClassVar[str] = "gromacs"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["gromacs"].suffixes

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,  # noqa: ARG002 - what a trajectory holds has names
        options: Mapping[str, Any] | None = None,
    ) -> Source:
        self.check_options(options or {}, path)
        check_is_file(path)
        if _is_trr(path):
            _refuse_double(path)
        _library(path)
        return SourceApart(path, partial(_source, path), bytes_below(path))


def _is_trr(path: Path) -> bool:
    return path.suffix.lower() == ".trr"


def _library(path: Path) -> Any:
    return library("MDAnalysis.lib.formats.libmdaxdr", "md", file=path)


def _refuse_double(path: Path) -> None:
    """MDAnalysis would round double precision without a word."""
    file = InputFile(path)
    start = file.read_some(0, _HEADER_BYTES)
    file.close()
    # magic, length of the version, its length again, 12 characters; then sizes: ir, e, box
    if len(start) == _HEADER_BYTES and int.from_bytes(start[32:36], "big") == _DOUBLE_BOX_BYTES:
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
