"""DCD trajectories (CHARMM, NAMD, OpenMM, LAMMPS), read as they are laid out.

A frame is three Fortran records, x, y and z, after one for the unit cell. No library is needed, and
a file that was cut off is noticed, which counting whole frames would not.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, FileRegion, Source, VariableInfo, as_elements
from ciwrap.readers.entries import Entry, Listing, opened

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.readers.files import InputFile

_CELL_BYTES = 48
_MAX_TITLE_BYTES = 1 << 20


class DcdReader(CheckedReader):
    """Frames as iterations: `positions` (atoms, 3) and `unit_cell` (6 numbers as stored).

    Iterations are the steps that the header tells of (first step, steps between frames).
    """

    name: ClassVar[str] = "dcd"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["dcd"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, lambda file: _Dcd(path, file).entries())


class _Dcd:
    def __init__(self, path: Path, file: InputFile) -> None:
        self._path = path
        self._file = file
        self._read_header()

    def _read_header(self) -> None:
        start = bytes(self._file.read_at(0, 8))
        for order in "<>":
            if start == struct.pack(f"{order}i", 84) + b"CORD":
                self._order = order
                break
        else:
            raise CorruptFileError("does not begin as a DCD trajectory", file=self._path)
        control, at = self._record(0, 84, 84)
        numbers = struct.unpack(f"{self._order}20i", control[4:])
        title, at = self._record(at, 4, _MAX_TITLE_BYTES)
        atoms, at = self._record(at, 4, 4)
        del title
        self._atoms = struct.unpack(f"{self._order}i", atoms)[0]
        frames, first, every = numbers[0], numbers[1], numbers[2]
        is_charmm = numbers[19] != 0
        self._has_cell = is_charmm and numbers[10] != 0
        if numbers[8] != 0 or (is_charmm and numbers[11] != 0):
            raise UnsupportedFormatError(
                "has fixed atoms or a fourth dimension, which are not read", file=self._path
            )
        if self._atoms <= 0 or first < 0 or every < 0:
            raise CorruptFileError("has a header that makes no sense", file=self._path)
        self._begin = at
        self._axis_bytes = 4 * self._atoms + 8
        self._frame_bytes = 3 * self._axis_bytes + (_CELL_BYTES + 8 if self._has_cell else 0)
        rest = self._file.byte_count - at
        self._frames = rest // self._frame_bytes
        if rest % self._frame_bytes or (frames > 0 and frames != self._frames):
            raise CorruptFileError(
                f"holds {rest / self._frame_bytes:.6g} frames, its header says {frames}",
                file=self._path,
                remedy="is the program still writing it?",
            )
        # Some programs leave the step out; then frames are counted.
        self._steps = [first + (every or 1) * number for number in range(self._frames)]

    def _record(self, at: int, fewest: int, most: int) -> tuple[bytes, int]:
        """A Fortran record of the header, and where the next one begins."""
        length = self._mark(at)
        if not fewest <= length <= most:
            raise CorruptFileError("has a damaged header", file=self._path)
        data = bytes(self._file.read_at(at + 4, length))
        if self._mark(at + 4 + length) != length:
            raise CorruptFileError("has a damaged header", file=self._path)
        return data, at + 8 + length

    def _mark(self, at: int) -> int:
        return int(struct.unpack(f"{self._order}i", bytes(self._file.read_at(at, 4)))[0])

    def entries(self) -> list[Entry]:
        listing = Listing(self._path)
        for number, step in enumerate(self._steps):
            at = self._begin + number * self._frame_bytes
            if self._has_cell:
                # The core reads the cell where it lies, and looks at no mark.
                self._check_marks(at, _CELL_BYTES)
                cell = f"{self._order}f8"
                region = FileRegion(str(self._path), at + 4, _CELL_BYTES)
                info = VariableInfo(f"unit_cell[{number}]", cell, (6,), region, "unit_cell", step)
                listing.put(Entry(info, self._file.elements(at + 4, cell)))
                at += _CELL_BYTES + 8
            name, dtype, shape = f"positions[{number}]", f"{self._order}f4", (self._atoms, 3)
            info = VariableInfo(name, dtype, shape, None, "positions", step)
            listing.put(Entry(info, self._frame_reader(at)))
        return listing.entries

    def _frame_reader(self, at: int) -> Any:
        dtype = f"{self._order}f4"

        def read(first: int, count: int) -> NDArray[Any]:
            row, end = first // 3, (first + count + 2) // 3
            rows = np.empty((end - row, 3), dtype=dtype)
            for axis in range(3):
                begin = at + axis * self._axis_bytes
                self._check_marks(begin, 4 * self._atoms)
                data = self._file.read_at(begin + 4 + 4 * row, 4 * (end - row))
                rows[:, axis] = as_elements(data, dtype)
            return rows.reshape(-1)[first - 3 * row : first - 3 * row + count]

        return read

    def _check_marks(self, at: int, length: int) -> None:
        if self._mark(at) != length or self._mark(at + 4 + length) != length:
            raise CorruptFileError("has a damaged frame", file=self._path)
