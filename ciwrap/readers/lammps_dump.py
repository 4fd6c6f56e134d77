"""Text dumps of LAMMPS: `ITEM:` lines, then a row for every atom (or bond, or pair)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, Source
from ciwrap.readers.entries import Entry, Listing, array_of_texts, opened
from ciwrap.readers.frames import MOST_COLUMNS, TEXT_DTYPE, Column, Frame, Lines, frame_entries
from ciwrap.readers.labels import labels_of
from ciwrap.readers.text_cells import parse_floats

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.readers.base import Labels
    from ciwrap.readers.files import InputFile

_ITEM = "ITEM: "
_USUAL = "ATOMS"
# Columns of whole numbers and of words (LAMMPS manual, "dump custom"); all others are numbers.
_WHOLE = frozenset({"id", "mol", "proc", "procp1", "type", "ix", "iy", "iz"})
_WORDS = frozenset({"element", "typelabel"})


class LammpsReader(CheckedReader):
    """Frames as iterations, by their time step: `box.xlo` and so on, and every column by its name,
    such as `id`, which `align_by` takes.
    """

    name: ClassVar[str] = "lammps"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["lammps"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, partial(_entries, path))


def _entries(path: Path, file: InputFile) -> list[Entry]:
    lines = Lines(file)
    steps: list[int] = []
    frames: list[Frame] = []
    while not lines.is_done:
        step, frame = _frame(file, lines)
        steps.append(step)
        frames.append(frame)
    if not frames:
        raise CorruptFileError("holds no frames", file=path)
    return frame_entries(Listing(path), file, frames, steps)


def _frame(file: InputFile, lines: Lines) -> tuple[int, Frame]:
    step: int | None = None
    count: int | None = None
    kind = ""
    seen: set[str] = set()
    facts: dict[str, tuple[Any, Labels]] = {}
    while True:
        line = lines.next()
        if not line.startswith(_ITEM):
            raise lines.error(f"is {line[:40]!r} where {_ITEM!r} is expected")
        item = line.removeprefix(_ITEM).strip()
        what = " ".join(item.split()[:2])
        if what in seen:
            # A frame that was broken off, and another one, or two of its parts.
            raise lines.error(f"is a second {what[:40]!r} of one frame")
        seen.add(what)
        if item == "TIMESTEP":
            step = lines.whole(lines.next(), 1 << 60)
        elif item.startswith("NUMBER OF "):
            kind = item.removeprefix("NUMBER OF ").strip()
            count = lines.whole(lines.next(), file.byte_count)
        elif item.startswith("BOX BOUNDS"):
            boundary = ("boundary", item.removeprefix("BOX BOUNDS").strip())
            for name, value in _box(lines):
                facts[name] = value, (boundary,)
        elif item == "TIME":
            time = _numbers(lines)
            if len(time) > 1:
                raise lines.error("holds more than the one number of a time")
            facts["time"] = time[0], ()
        elif item == "UNITS":
            facts["units"] = array_of_texts([lines.next().strip()]).reshape(()), ()
        elif item == "DIMENSION" or item.startswith("GRID SIZE"):
            raise UnsupportedFormatError("is a dump of a grid, which is not read", file=file.path)
        else:
            break
    names = item.split()[1:]
    if step is None or count is None or not 0 < len(names) <= MOST_COLUMNS:
        raise lines.error("begins rows without a step, a number of rows or names of columns")
    if item.split()[0] != kind:
        raise lines.error(f"begins rows of {item.split()[0][:40]!r}, and not {kind[:40]!r}")
    if len({*names, *facts}) != len(names) + len(facts):
        raise lines.error("names a column twice")
    columns = tuple(Column(name, _dtype(name)) for name in names)
    at, number = lines.at, lines.number
    lines.skip(count)
    # What the rows are of, unless it is what most dumps hold.
    labels = () if kind == _USUAL else labels_of(None, {"rows": kind})
    return step, Frame(count, columns, at, lines.at, number, facts, labels)


def _box(lines: Lines) -> Iterator[tuple[str, float]]:
    """Single numbers, since rows are those of atoms: `align_by` would put others in order."""
    for axis, tilt, vector in zip("xyz", ("xy", "xz", "yz"), "abc", strict=True):
        row = _numbers(lines)
        if len(row) in (2, 3):
            names = [f"{axis}lo", f"{axis}hi", tilt]
        else:
            names = [f"{vector}{number}" for number in range(len(row))]
        for name, value in zip(names, row, strict=False):
            yield f"box.{name}", value


def _numbers(lines: Lines) -> list[float]:
    words = lines.next().split()
    numbers = parse_floats(words) if len(words) < 10 else None
    if not numbers:
        raise lines.error("does not hold numbers, as it should")
    return numbers


def _dtype(name: str) -> str:
    if name in _WORDS:
        return TEXT_DTYPE
    return "<i8" if name in _WHOLE or name.startswith("i_") else "<f8"
