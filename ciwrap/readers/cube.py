"""Cube files of Gaussian, CP2K, PySCF and others: atoms, and a field on a grid."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, Source
from ciwrap.readers.entries import Listing, opened
from ciwrap.readers.frames import BLOCK_BYTES, Lines
from ciwrap.readers.text_cells import CellError, as_floats, parse_floats

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.readers.files import InputFile

_MOST_ATOMS = 1_000_000


class CubeReader(CheckedReader):
    """`data` on the grid (x, y, z, and the number of the orbital if there are several), `origin`,
    `axes`, and the atoms: `numbers`, `charges`, `positions`. The field is held in memory.
    """

    name: ClassVar[str] = "cube"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["cube"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, partial(_entries, path))


def _entries(path: Path, file: InputFile) -> Any:
    lines = Lines(file)
    lines.skip(2)
    count, *rest = _row(lines, (4, 5))
    atoms = abs(_whole(lines, count, _MOST_ATOMS))
    grid = [_row(lines, (4,)) for _ in range(3)]
    lengths = [_whole(lines, row[0], file.byte_count) for row in grid]
    rows = np.array([_row(lines, (5,)) for _ in range(atoms)]).reshape(atoms, 5)
    per_point = _whole(lines, rest[3], file.byte_count) if len(rest) == 4 else 1
    listing = Listing(path)
    if count < 0:
        head = _row(lines, None)
        per_point = _whole(lines, head[0], 10_000)
        while len(head) <= per_point:
            head += _row(lines, None)
        if len(head) > per_point + 1:
            raise lines.error("has more numbers of orbitals than it says")
        listing.add_array("orbitals", np.array(head[1:]))
    if min(lengths) < 0 <= lengths[0]:
        raise lines.error("follows three numbers of points, some of them below 0 and not the first")
    # A negative length says that lengths are in angstrom, not in bohr.
    unit = (("units", "angstrom" if lengths[0] < 0 else "bohr"),)
    shape = tuple(abs(length) for length in lengths) + ((per_point,) if per_point != 1 else ())
    if any(length <= 0 for length in shape) or 2 * math.prod(shape) > file.byte_count:
        raise lines.error(f"claims a field of {'x'.join(map(str, shape))}, which the file has not")
    listing.add_array("origin", np.array(rest[:3]), labels=unit)
    listing.add_array("axes", np.array([row[1:] for row in grid]), labels=unit)
    listing.add_array("numbers", rows[:, 0])
    listing.add_array("charges", rows[:, 1])
    listing.add_array("positions", rows[:, 2:], labels=unit)
    field = _Field(file, lines, math.prod(shape))
    listing.add("data", np.dtype("<f8"), shape, field.read)
    return listing.entries


class _Field:
    """The numbers to the end of a file, read when the first of them is asked for."""

    def __init__(self, file: InputFile, lines: Lines, count: int) -> None:
        self._file = file
        self._at = lines.at
        self._line = lines.number
        self._count = count
        self._values: NDArray[np.float64] | None = None

    def read(self, first: int, count: int) -> NDArray[np.float64]:
        values = self._values
        if values is None:
            values = self._values = self._read_all()
        return np.array(values[first : first + count])

    def _read_all(self) -> NDArray[np.float64]:
        found = np.empty(self._count, dtype="<f8")
        done, at, pending = 0, self._at, b""
        size = self._file.byte_count
        if self._file.read_some(size - 1, 1) != b"\n":
            raise self._error("its last line has no line break, as of a file cut off")
        while at < size:
            block = self._file.read_some(at, BLOCK_BYTES)
            at += len(block)
            block = pending + block
            end = block.rfind(b"\n") + 1
            pending = block[end:]
            try:
                words = block[:end].decode("ascii").split()
                values = as_floats(words, is_simple=b"_" not in block, empty_is_nan=False)
            except UnicodeDecodeError:
                raise self._error("its field is not text of numbers") from None
            except CellError as error:
                raise self._error(f"{error.cell[:40]!r} {error.problem}") from None
            if done + values.size > self._count:
                raise self._error(f"holds more than the {self._count} numbers of its field")
            found[done : done + values.size] = values
            done += values.size
        if done != self._count:
            raise self._error(f"holds {done} of the {self._count} numbers of its field")
        return found

    def _error(self, problem: str) -> CorruptFileError:
        return CorruptFileError(
            f"{problem} (from line {self._line} on)",
            file=self._file.path,
            remedy="is the program still writing it?",
        )


def _row(lines: Lines, widths: tuple[int, ...] | None) -> list[float]:
    """The numbers of a line. Raises CorruptFileError for another number of them, or none."""
    found = parse_floats(lines.next().split())
    if not found or (widths and len(found) not in widths):
        said = " or ".join(map(str, widths)) if widths else "some"
        raise lines.error(f"should hold {said} numbers")
    return found


def _whole(lines: Lines, value: float, most: int) -> int:
    if not math.isfinite(value) or value != round(value) or abs(value) > most:
        raise lines.error(f"holds {value!r} where a number of things should be")
    return round(value)
