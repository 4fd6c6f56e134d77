"""VTK's XML and legacy files, ParaView's series of them, and XDMF, through VTK's own readers."""

from __future__ import annotations

import html
import re
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.errors import CiwrapError, ConfigError, CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.apart import SourceApart, bytes_below
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile, check_is_file
from ciwrap.readers.history import OPTION_NAMES, HistoryReader
from ciwrap.readers.registry import reader_named
from ciwrap.readers.vtk_files import TIME, open_data
from ciwrap.readers.vtk_library import VtkLibrary
from ciwrap.readers.vtk_twice import XDMF

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.readers.attributes import AttributeRule
    from ciwrap.readers.base import Source
    from ciwrap.readers.history import IterationRule
    from ciwrap.readers.vtk_arrays import Found
    from ciwrap.readers.vtk_files import DataFile

_INDEXES = (".vtm", ".pvd", ".pvti", ".pvtr", ".pvts", ".pvtu", ".pvtp")
_DATASET = re.compile(rb"([^\s<>:\"]{1,500}\.(?:h5|hdf5|hdf))\s*:\s*/?([^\s<>\"]{1,500})")
_DESCRIBED_BY_XDMF = (".bin", ".raw")
_TAKES_PARTS = (b"HyperSlab", b"Coordinates")
_MOST_INDEX_BYTES = 64 << 20
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_PARTS = re.compile(rb"(?:Source|file)\s*=\s*[\"']([^\"'<>|:*?]{1,500})[\"']")
_HEAVY = re.compile(rb"([^\s<>:\"]{1,500}\.(?:h5|hdf5|hdf|bin|raw))\s*[:<]")


class VtkReader(HistoryReader):
    """Points, cells, and the arrays over them: `point_data/NAME`, `cell_data/NAME`,
    `field_data/NAME`. Time steps of XDMF and of ParaView's series are iterations, their times the
    variable `time`; the parts of a series are ranks. A time step is held in memory.
    """

    name: ClassVar[str] = "vtk"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["vtk"].suffixes
    option_names: ClassVar[tuple[str, ...]] = OPTION_NAMES

    def open_history(
        self,
        path: Path,
        rule: IterationRule,
        attributes: AttributeRule,  # noqa: ARG002 - the format has none
    ) -> Source:
        check_is_file(path)
        if rule.axis not in ("auto", "none", TIME):
            raise ConfigError(
                f"there is no dimension {rule.axis!r} (known: {TIME})",
                file=path,
                key="options.iterations",
            )
        parts = self.companions(path)
        VtkLibrary(path, parts)  # loaded here, so that it is known to be there, and a copy has it
        return SourceApart(path, partial(_source, path, rule, parts), bytes_below(path, *parts))

    def companions(self, path: Path) -> tuple[Path, ...]:
        """The pieces of a parallel file, the files of a series and their pieces, the heavy data of
        an XDMF file.
        """
        found: dict[Path, None] = {}
        waiting = [path]
        while waiting:
            for part in _named_in(waiting.pop()):
                if part not in found and part != path:
                    found[part] = None
                    waiting.append(part)
        return tuple(sorted(found))

    def covered(self, path: Path) -> tuple[Path, ...]:
        found = self.companions(path)
        if path.suffix.lower() not in XDMF:
            return found
        return tuple(one for one in found if _names_all_of(path, one))


def _names_all_of(path: Path, heavy: Path) -> bool:
    """Whether an XDMF file names, and not only in part, every dataset of an HDF5 file; of other
    files it alone says what is in them.
    """
    if heavy.suffix.lower() in _DESCRIBED_BY_XDMF:
        return True
    text = _text_of(path)
    if any(word in text for word in _TAKES_PARTS):
        return False
    named = {
        _plain(dataset)
        for name, dataset in _DATASET.findall(text)
        if path.parent / _plain(name) == heavy
    }
    try:
        with reader_named("hdf5").open(heavy) as source:
            return all(info.name in named for info in source.variables)
    except CiwrapError:
        return False  # whoever opens it by itself is told why it cannot be read


def _text_of(path: Path) -> bytes:
    """What an index says, without comments."""
    file = InputFile(path)
    start = file.read_some(0, _MOST_INDEX_BYTES)
    file.close()
    return _COMMENT.sub(b"", start)


def _named_in(path: Path) -> list[Path]:
    """The files that a file names."""
    suffix = path.suffix.lower()
    if suffix not in (*_INDEXES, *XDMF) or not path.is_file():
        return []
    names = (_HEAVY if suffix in XDMF else _PARTS).findall(_text_of(path))
    return [path.parent / _plain(name) for name in set(names)]


def _plain(name: bytes) -> str:
    """A name as it is meant, out of XML."""
    return html.unescape(name.decode("utf-8", "replace"))


def _source(path: Path, rule: IterationRule, parts: tuple[Path, ...]) -> Source:
    vtk = VtkLibrary(path, parts)
    with guarded(path):
        data = open_data(vtk, path)
        held = _Held(data)
        steps = list(data.times)
        iterations = rule.along(
            TIME, len(steps), lambda name: steps if name == TIME else None, path
        )
        listing = Listing(path)
        for number in range(max(1, len(steps))):
            iteration = iterations[number] if steps and rule.is_on else None
            for rank in data.ranks(number):
                _list_step(listing, held, number, rank, iteration)
            if steps:
                place: dict[str, Any] = {
                    "called": TIME if rule.is_on else None,
                    "iteration": iteration,
                }
                listing.add_array(f"{TIME}[{number}]", np.float64(steps[number]), **place)
    if not listing.entries:
        raise CorruptFileError("holds no data", file=path)
    return EntrySource(path, listing.entries)


def _list_step(
    listing: Listing, held: _Held, number: int, rank: int | None, iteration: int | None
) -> None:
    """Lists the arrays of one part of a time step."""
    for name, array in held.arrays(number, rank).items():
        part = "" if rank is None else f"{rank}/"
        key = f"{part}{name}" if not held.is_history else f"{part}{name}[{number}]"
        called = None if iteration is None and rank is None else name
        facts: dict[str, Any] = {"called": called, "iteration": iteration, "rank": rank}
        if isinstance(array, str):
            listing.add_fault(key, array, **facts)
        else:
            read = held.reader(number, rank, name)
            values, labels = array.values, array.labels
            listing.add(key, values.dtype, values.shape, read, labels=labels, **facts)


class _Held:
    """The arrays of what was read last."""

    def __init__(self, data: DataFile) -> None:
        self._data = data
        self._place: tuple[int, int | None] | None = None
        self._arrays: Found = {}

    @property
    def is_history(self) -> bool:
        return bool(self._data.times)

    def arrays(self, number: int, rank: int | None) -> Found:
        """The arrays of one part of a time step."""
        if (number, rank) != self._place:
            self._place = None
            self._arrays = {}  # before the next ones take memory
            self._arrays = self._data.read(number, rank)
            self._place = number, rank
        return self._arrays

    def reader(
        self, number: int, rank: int | None, name: str
    ) -> Callable[[int, int], NDArray[Any]]:
        def read(first: int, count: int) -> NDArray[Any]:
            array = self.arrays(number, rank)[name]
            assert not isinstance(array, str)  # such a variable is never read
            return np.array(array.values.reshape(-1)[first : first + count])

        return read
