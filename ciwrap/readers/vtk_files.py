"""Reads the files of VTK, alone or as part of others: arrays by name, time step by time step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.entries import array_of_texts
from ciwrap.readers.vtk_arrays import BLOCK_NAME, Array, collect
from ciwrap.readers.vtk_legacy_numbers import refuse_wrapped
from ciwrap.readers.vtk_library import READERS
from ciwrap.readers.vtk_outline import (
    HAVE_PIECES,
    Outline,
    common_arrays,
    is_covered,
    outline_of,
)
from ciwrap.readers.vtk_twice import XDMF, refuse_twice
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ciwrap.readers.vtk_arrays import Found
    from ciwrap.readers.vtk_library import Element, VtkLibrary
    from ciwrap.readers.vtk_outline import Extent, Held

# What the times of a history are called, as an axis and as a variable.
TIME = "time"
_OWN_TIME = "file/time"
_MOST_LEVELS = 4
_MOST_PART_DIGITS = 9
_UNEVEN = "is in some pieces of the file only"
_ELSEWHERE = "is in the file, but VTK does not read it: it stands where VTK looks for no array"
_UNREAD = "is in the file, but VTK does not read it: its first piece does not have it"


class DataFile(ABC):
    """One file and all that it refers to.

    times: of its time steps; empty if it is no history.
    """

    times: Sequence[float] = ()

    def ranks(self, number: int) -> Sequence[int | None]:  # noqa: ARG002 - most have one part
        """The parts of a time step (0 where there are none), None for one that has no number."""
        return (None,)

    @abstractmethod
    def read(self, number: int, rank: int | None = None) -> Found:
        """The arrays of one part of a time step. Raises CorruptFileError, UnreadableFileError."""


def open_data(vtk: VtkLibrary, path: Path, level: int = 0) -> DataFile:
    """Opens a file by its suffix. level: how many files it is below the one that was asked for.

    Raises CorruptFileError, UnreadableFileError.
    """
    if level > _MOST_LEVELS:
        raise CorruptFileError("is part of too many files, or of itself", file=path)
    if path.suffix.lower() == ".vtm":
        return _Blocks(vtk, path, level)
    if path.suffix.lower() == ".pvd":
        return _Series(vtk, path, level)
    return _Grid(vtk, path)


def part_of(path: Path, name: str) -> Path:
    """The file that another one names. Raises CorruptFileError if there is none."""
    part = path.parent / name
    if not name or not part.is_file():
        raise CorruptFileError(
            f"names {name[:200]!r}, which does not exist",
            file=path,
            remedy="has the program finished writing it, and are all its files here?",
        )
    return part


class _Region(Struct, frozen=True):
    """What is read in one go: everything (None), or the extent of one piece."""

    prefix: str
    extent: Extent | None


class _Grid(DataFile):
    """A file that one of VTK's readers reads; of its pieces only what somebody wrote."""

    def __init__(self, vtk: VtkLibrary, path: Path) -> None:
        self._vtk = vtk
        self._path = path
        self._regions = [_Region("", None)]
        self._whole: Extent | None = None
        self._expected: set[str] = set()
        self._uneven: set[str] = set()
        self._unread: frozenset[str] = frozenset()
        self._time: float | None = None
        self._reader = vtk.reader(path)
        vtk.checked(self._reader.UpdateInformation, path)
        refuse_twice(vtk, path)
        if path.suffix.lower() == ".vtk" or path.suffix.lower() not in READERS:
            refuse_wrapped(path)
        if path.suffix.lower() in HAVE_PIECES:
            outline = _with_sources(vtk, path)
            self._whole = outline.whole
            self._unread = outline.unread
            self._regions = _regions(outline, path)
            self._leave_out_uneven(outline.held)
        information = self._reader.GetOutputInformation(0)
        key = vtk.execution.vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        if information.Has(key):
            times = [information.Get(key, n) for n in range(information.Length(key))]
            # A single time is no history. Legacy readers make one up, and XML files have it in
            # their field data.
            self.times = times if len(times) > 1 else []
            self._time = times[0] if len(times) == 1 and path.suffix.lower() in XDMF else None

    def _leave_out_uneven(self, held: Sequence[Held]) -> None:
        self._expected, self._uneven = common_arrays(held)
        selections = {
            "point_data": self._reader.GetPointDataArraySelection(),
            "cell_data": self._reader.GetCellDataArraySelection(),
        }
        for name in self._uneven:
            section, _, array = name.partition("/")
            selections[section].DisableArray(array)

    def read(self, number: int, rank: int | None = None) -> Found:  # noqa: ARG002
        found: Found = dict.fromkeys(sorted(self._uneven), _UNEVEN)
        found.update(dict.fromkeys(sorted(self._unread), _ELSEWHERE))
        for region in self._regions:
            self._update(number, region.extent)
            item = self._reader.GetOutputDataObject(0)
            if region.extent is not None and tuple(item.GetExtent()) != region.extent:
                raise CorruptFileError(f"its piece {region.extent} cannot be had", file=self._path)
            collect(self._vtk, item, region.prefix, found)
            for name in sorted(self._expected):
                found.setdefault(f"{region.prefix}{name}", _UNREAD)
        if self._regions[0].extent is not None:
            found["whole_extent"] = Array(np.array(self._whole, dtype="<i8"))
        if self._time is not None:
            found[TIME] = Array(np.array(self._time))
        return found

    def _update(self, number: int, extent: Extent | None) -> None:
        update = self._reader.Update
        if self.times:
            where = () if extent is None else (extent,)
            update = partial(self._reader.UpdateTimeStep, self.times[number], -1, 1, 0, *where)
        elif extent is not None:
            update = partial(self._reader.UpdateExtent, extent)
        self._vtk.checked(update, self._path)


def _with_sources(vtk: VtkLibrary, path: Path) -> Outline:
    """The outline of a file, which holds for what the files that it is made of really hold."""
    outline = outline_of(vtk, path)
    held, unread = list(outline.held), outline.unread
    for name, extent in outline.sources:
        part = part_of(path, name)
        inner = outline_of(vtk, part)
        held += inner.held
        unread |= inner.unread
        if extent is not None and not is_covered(extent, inner.pieces):
            raise CorruptFileError(f"says that {name[:200]!r} holds more than it does", file=path)
    return Outline(outline.whole, outline.pieces, tuple(held), outline.sources, unread)


def _regions(outline: Outline, path: Path) -> list[_Region]:
    """How to read a file so that all of it has been written: at once where its pieces leave nothing
    out, else piece by piece.
    """
    whole, pieces = outline.whole, outline.pieces
    if whole is None or not pieces or is_covered(whole, pieces):
        return [_Region("", None)]
    if outline.sources:
        raise CorruptFileError("its pieces leave out a part of its WholeExtent", file=path)
    if len(pieces) == 1:
        return [_Region("", pieces[0])]
    return [_Region(f"{number}/", piece) for number, piece in enumerate(sorted(pieces))]


class _Blocks(DataFile):
    """The files of a multi-block file, by the numbers of the blocks that they are."""

    def __init__(self, vtk: VtkLibrary, path: Path, level: int) -> None:
        self._vtk = vtk
        self._path = path
        self._files: dict[str, DataFile] = {}
        root = vtk.xml(path)
        self._fields = _field_names(root)
        self._names = dict(_block_names(root, ""))
        for place, name in _block_files(root, ""):
            data = _static(vtk, path, name, level)
            if place in self._files:
                raise CorruptFileError(f"names two files for its block {place}", file=path)
            self._files[place] = data

    def read(self, number: int, rank: int | None = None) -> Found:  # noqa: ARG002 - has one
        found: Found = dict.fromkeys(
            sorted(self._fields), "is field data of a file of blocks; not read"
        )
        for place, name in self._names.items():
            found[f"{place}/{BLOCK_NAME}"] = _text(name)
        for place, data in self._files.items():
            found.update({f"{place}/{name}": array for name, array in data.read(0).items()})
        return found


def _static(vtk: VtkLibrary, path: Path, name: str, level: int) -> DataFile:
    """A file that is part of one time step."""
    data = open_data(vtk, part_of(path, name), level + 1)
    if data.times:
        raise CorruptFileError(f"names {name[:200]!r}, which holds several times", file=path)
    return data


def _field_names(root: Element) -> set[str]:
    """The field data that a file of blocks holds itself."""
    holders = [root, *root.inner]
    arrays = [array for one in holders for data in one.all("FieldData") for array in data.inner]
    return {f"field_data/{array.attributes.get('Name', '')}" for array in arrays}


def _text(text: str) -> Array:
    return Array(array_of_texts([text]).reshape(()))


def _block_names(element: Element, prefix: str) -> Iterator[tuple[str, str]]:
    """Every block and piece that has a name, whether or not it has a file."""
    for one in element.inner:
        known = one.attributes
        is_block = one.name in ("DataSet", "Block", "Piece") and "index" in known
        place = f"{prefix}{known['index']}" if is_block else prefix.rstrip("/")
        if is_block and known.get("name"):
            yield place, known["name"]
        yield from _block_names(one, f"{place}/" if place else "")


def _block_files(element: Element, prefix: str) -> Iterator[tuple[str, str]]:
    """The block ("0/2") and name of every file that a multi-block file names."""
    for one in element.inner:
        known = one.attributes
        if one.name == "DataSet" and "file" in known:
            # Files of before 2007 give the block as group and dataset.
            number = known.get("index") or f"{known.get('group', 0)}/{known.get('dataset', 0)}"
            yield f"{prefix}{number}", known["file"]
        elif one.name in ("Block", "Piece") and "index" in known:
            yield from _block_files(one, f"{prefix}{known['index']}/")
        else:
            yield from _block_files(one, prefix)


class _Series(DataFile):
    """The files of a ParaView series, by their time and part."""

    def __init__(self, vtk: VtkLibrary, path: Path, level: int) -> None:
        self._vtk = vtk
        self._path = path
        self._level = level
        named = [one for data in vtk.xml(path).all("Collection") for one in data.all("DataSet")]
        times = [_time(one, path) for one in named]
        if len({time is None for time in times}) > 1:
            raise CorruptFileError("gives a timestep to some of its files only", file=path)
        self.times = sorted({time for time in times if time is not None})
        self._files: dict[tuple[int, int], dict[str, Element]] = {}
        for one, time in zip(named, times, strict=True):
            number = 0 if time is None else self.times.index(time)
            place = (number, _part(one, path))
            group = one.attributes.get("group", "")
            files = self._files.setdefault(place, {})
            if group in files:
                raise CorruptFileError(
                    f"names two files for time {time} and part {place[1]}", file=path
                )
            files[group] = one
        self._has_parts = len({part for _, part in self._files}) > 1

    def ranks(self, number: int) -> Sequence[int | None]:
        parts = sorted(part for step, part in self._files if step == number)
        return parts if self._has_parts else [None for _ in parts]

    def read(self, number: int, rank: int | None = None) -> Found:
        files = next(
            files
            for (step, part), files in self._files.items()
            if step == number and rank in (None, part)
        )
        found: Found = {}
        for group, element in files.items():
            name = element.attributes.get("file", "")
            data = _static(self._vtk, self._path, name, self._level)
            if tuple(data.ranks(0)) != (None,):
                raise CorruptFileError(f"names {name[:200]!r}, a series of parts", file=self._path)
            prefix = f"{group}/" if group else ""
            if element.attributes.get("name"):
                found[f"{prefix}{BLOCK_NAME}"] = _text(element.attributes["name"])
            for key, array in data.read(0).items():
                # The series says which time it is, perhaps another one than the file does.
                found[f"{prefix}{_OWN_TIME if key == TIME else key}"] = array
        return found


def _time(element: Element, path: Path) -> float | None:
    text = element.attributes.get("timestep")
    if text is None:
        return None
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not math.isfinite(time):
        raise CorruptFileError(
            f"has a timestep that is not a number: {ascii(text)[:60]}", file=path
        )
    return time


def _part(element: Element, path: Path) -> int:
    text = element.attributes.get("part") or "0"
    if not text.isdecimal() or len(text) > _MOST_PART_DIGITS:
        raise CorruptFileError(f"has a part that is not a number: {ascii(text)[:60]}", file=path)
    return int(text)
