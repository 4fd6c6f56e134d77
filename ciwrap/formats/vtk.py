"""VTK's XML and legacy files, parallel files, files of blocks, and ParaView's series of them."""

from __future__ import annotations

import html
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ciwrap.base.errors import ConfigError, CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import OPTION_NAMES, EntrySource, HistoryReader, Listing, array_of_texts
from ciwrap.formats.reader import check_is_file, first_bytes, guarded
from ciwrap.formats.vtk_arrays import Grid, array_of, arrays_of, is_covered
from ciwrap.formats.vtk_legacy import read_legacy
from ciwrap.formats.vtk_xml import (
    GRIDS,
    XmlFile,
    bad,
    children,
    extent_of,
    facts_of,
    is_within,
    read_grid,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from ciwrap.formats.entries import IterationRule
    from ciwrap.formats.reader import AttributeRule, Source
    from ciwrap.formats.vtk_arrays import Array, NamedArrays, Piece

# What the times of a history are called, as an axis and as a variable.
TIME = "time"
# What a block is called; beside its arrays, each of which is in a section.
_BLOCK_NAME = "name"
_PARALLEL = tuple(suffix.replace(".", ".p") for suffix in GRIDS)
_INDEXES = (".vtm", ".pvd", *_PARALLEL)
_MOST_LEVELS = 4
_TIME = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?"
_MOST_INDEX_BYTES = 64 << 20
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_PARTS = re.compile(rb"(?:Source|file)\s*=\s*[\"']([^\"'<>|:*?]{1,500})[\"']")


class VtkReader(HistoryReader):
    """Points, cells, and the arrays over them: `point_data/NAME`, `cell_data/NAME`,
    `field_data/NAME`. Time steps of ParaView's series are iterations, their times the variable
    `time`; the parts of a series are ranks. What is packed or a text is held in memory, one time
    step at once.
    """

    name: ClassVar[str] = "vtk"
    option_names: ClassVar[tuple[str, ...]] = OPTION_NAMES

    def open_history(
        self,
        path: Path,
        rule: IterationRule,
        attributes: AttributeRule,
    ) -> Source:
        check_is_file(path)
        if rule.axis not in ("auto", "none", TIME):
            raise ConfigError(
                f"there is no dimension {rule.axis!r} (known: {TIME})", key="options.iterations"
            )
        return _source(path, rule)

    def companions(self, path: Path) -> tuple[Path, ...]:
        """The pieces of a parallel file, the files of a series and their pieces."""
        found: dict[Path, None] = {}
        waiting = [path]
        while waiting:
            for part in _named_in(waiting.pop()):
                if part not in found and part != path:
                    found[part] = None
                    waiting.append(part)
        return tuple(sorted(found))


def _named_in(path: Path) -> list[Path]:
    """The files that a file names, outside of comments."""
    if path.suffix.lower() not in _INDEXES or not path.is_file():
        return []
    text = _COMMENT.sub(b"", first_bytes(path, _MOST_INDEX_BYTES))
    names = {html.unescape(name.decode("utf-8", "replace")) for name in _PARTS.findall(text)}
    return [path.parent / name for name in names]


def _source(path: Path, rule: IterationRule) -> Source:
    steps = steps_of(path)
    times = sorted({one.time for one in steps if one.time is not None})
    iterations = rule.along(TIME, len(times), lambda name: times if name == TIME else None)
    number_of: dict[float | None, int] = {}
    if rule.is_on:
        number_of.update(zip(times, iterations, strict=True))
    listing = Listing(path)
    load = lru_cache(maxsize=1)(lambda step: step.load())  # the step that was read last is held
    for step in steps:
        iteration = number_of.get(step.time)
        end = "" if step.time is None else f"[{times.index(step.time)}]"
        for name, array in load(step).items():
            called = None if iteration is None and step.rank is None else name
            facts: dict[str, Any] = {
                "called": called,
                "iteration": iteration,
                "rank": step.rank,
            }
            key = f"{name}{end}" if step.rank is None else f"{step.rank}/{name}{end}"
            if isinstance(array, str):
                listing.add_fault(key, array, **facts)
            else:
                read = partial(_read, load, step, name) if array.region is None else array.read
                facts |= {"region": array.region, "labels": array.labels}
                listing.add(key, array.dtype, array.shape, read, **facts)
    for number, time in enumerate(times):
        where = {"called": TIME if rule.is_on else None, "iteration": number_of.get(time)}
        listing.add_array(f"{TIME}[{number}]", np.float64(time), **where)
    if not listing.entries:
        raise CorruptFileError("holds no data")
    return EntrySource(path, listing.entries)


def _read(
    load: Callable[[Step], dict[str, Any]], step: Step, name: str, first: int, count: int
) -> Any:
    return load(step)[name].read(first, count)


class Step(Struct, frozen=True):
    """One time step of a file, or a part of it. rank: of that part, None if it has no number.

    load: its arrays. Raises CorruptFileError, UnreadableFileError.
    """

    time: float | None
    rank: int | None
    load: Callable[[], NamedArrays]


def steps_of(path: Path, level: int = 0) -> list[Step]:
    """The time steps of a file and all that it refers to, in order; one for what is no history.

    level: how many files it is below the one that was asked for. Raises CorruptFileError,
    UnreadableFileError.
    """
    if level > _MOST_LEVELS:
        raise bad("is part of too many files, or of itself")
    suffix = path.suffix.lower()
    if suffix == ".pvd":
        return _series(path, level)
    if suffix == ".vtm":
        return [Step(None, None, partial(_blocks, path, level))]
    return [Step(None, None, partial(_parallel if suffix in _PARALLEL else _alone, path))]


def part_of(path: Path, name: str) -> Path:
    """The file that another one names. Raises CorruptFileError if there is none."""
    part = path.parent / name
    if not name or not part.is_file():
        raise CorruptFileError(
            f"names {name[:200]!r}, which does not exist",
            remedy="has the program finished writing it, and are all its files here?",
        )
    return part


def _alone(path: Path) -> NamedArrays:
    return arrays_of(_grid(path))


def _grid(path: Path) -> Grid:
    """A file that is no index; a legacy file where the suffix says nothing else."""
    with guarded(path):
        return read_grid(path) if path.suffix.lower() in GRIDS else read_legacy(path)


def _parallel(path: Path) -> NamedArrays:
    """The arrays of the pieces that a parallel file names, as of one grid."""
    file = XmlFile(path)
    tag, place, kinds = GRIDS[path.suffix.lower().replace(".p", ".")]
    element = file.only(f"P{tag}")
    known = ("FieldData", "PFieldData", "PPointData", "PCellData", f"P{place}")
    inner = children(element, known, "Piece")
    whole = None if kinds else extent_of(element, "WholeExtent")
    given: dict[str, Mapping[str, Array]] = {"index": file.fields_in(inner.get("FieldData"))}
    pieces: list[Piece] = []
    has_extent = False
    for number, one in enumerate(element.findall("Piece")):
        name = one.get("Source", "")
        grid = _grid(part_of(path, name))
        pieces += grid.pieces
        has_extent, given[str(number)] = grid.has_extent, grid.common
        if whole is not None:
            extent = extent_of(one, "Extent")
            own = [one.extent for one in grid.pieces if one.extent and one.points]
            pairs = [(extent, whole), *((part, extent) for part in own)]
            if own and not all(is_within(part, wider) for part, wider in pairs):
                raise bad(f"names {extent} for {name[:200]!r}, which holds something else")
            if not is_covered(extent, grid.pieces):
                raise bad(f"says that {name[:200]!r} holds more than it does")
    if whole is not None and not is_covered(whole, pieces):
        raise bad("its pieces leave out a part of its WholeExtent")
    # The last one counts, as in VTK; of an image the index says where it is.
    said = {key: one for each in given.values() for key, one in each.items()} | facts_of(element)
    for holder, each in given.items():
        others = {key: one for key, one in each.items() if not _is_same(one, said[key])}
        said |= {f"{holder}/{key}": one for key, one in others.items()}
    found: NamedArrays = {}
    for section, title in (("point_data", "PPointData"), ("cell_data", "PCellData")):
        for one in inner.get(title, ()):
            found[f"{section}/{one.get('Name')}"] = "is named, but is in none of the pieces"
    found.update(arrays_of(Grid(tuple(pieces), said, whole, has_extent)))
    return found


def _is_same(one: Array, other: Array) -> bool:
    is_alike = (one.dtype, one.shape, one.labels) == (other.dtype, other.shape, other.labels)
    return is_alike and one.values.tobytes() == other.values.tobytes()


def _blocks(path: Path, level: int) -> NamedArrays:
    """The arrays of the files of a multi-block file, by the numbers of the blocks that they are."""
    found: NamedArrays = {}
    file = XmlFile(path)
    grid = file.only("vtkMultiBlockDataSet", "FieldData")
    for data in (*file.root.findall("FieldData"), *grid.findall("FieldData")):
        found.update(file.fields_in(data))
    for place, one in _blocks_in(grid, ""):
        if one.get("name"):
            found[f"{place}/{_BLOCK_NAME}"] = _text(one.get("name", ""))
        if one.tag == "DataSet" and (name := one.get("file")) is not None:
            arrays = {f"{place}/{key}": array for key, array in _static(path, name, level).items()}
            if set(arrays) & set(found):
                raise bad(f"names two files for its block {place}")
            found.update(arrays)
    return found


def _static(path: Path, name: str, level: int) -> NamedArrays:
    """The arrays of a file that is part of one time step."""
    part = part_of(path, name)
    with guarded(part):
        steps = steps_of(part, level + 1)
        if len(steps) == 1 and (steps[0].time, steps[0].rank) == (None, None):
            return steps[0].load()
    raise bad(f"names {name[:200]!r}, which holds several times or a series of parts")


def _text(text: str) -> Array:
    return array_of(array_of_texts([text]).reshape(()))


def _blocks_in(element: Element, prefix: str) -> Iterator[tuple[str, Element]]:
    """The blocks, pieces and files of a multi-block file, each with its place ("0/2")."""
    for one in element:
        if one.tag == "FieldData" and not prefix:
            continue
        if one.tag not in ("DataSet", "Block", "Piece"):
            raise bad(f"holds {one.tag[:40]!r} where a block belongs")
        # Files of before 2007 give the block as group and dataset.
        number = one.get("index") or f"{one.get('group', 0)}/{one.get('dataset', 0)}"
        yield f"{prefix}{number}", one
        yield from _blocks_in(one, f"{prefix}{number}/")


def _series(path: Path, level: int) -> list[Step]:
    """The files of a ParaView series, by their time and part."""
    collection = XmlFile(path).only("Collection")
    children(collection, (), "DataSet")
    files: dict[tuple[float | None, int], dict[str, Element]] = {}
    for one in collection:
        time = float(_number(one, "timestep", _TIME)) if "timestep" in one.attrib else None
        place, group = (time, int(_number(one, "part", r"\d{1,9}"))), one.get("group", "")
        if group in files.setdefault(place, {}):
            raise bad(f"names two files for time {place[0]} and part {place[1]}")
        files[place][group] = one
    if len({time is None for time, _ in files}) > 1:
        raise bad("gives a timestep to only some of its files")
    has_parts = len({part for _, part in files}) > 1
    return [
        Step(time, part if has_parts else None, partial(_groups, path, files[time, part], level))
        for time, part in sorted(files, key=lambda place: (place[0] or 0.0, place[1]))
    ]


def _groups(path: Path, files: Mapping[str, Element], level: int) -> NamedArrays:
    """The arrays of the files of one time and part; the group is the beginning of their names."""
    found: NamedArrays = {}
    for group, element in files.items():
        prefix = f"{group}/" if group else ""
        if element.get("name"):
            found[f"{prefix}{_BLOCK_NAME}"] = _text(element.get("name", ""))
        arrays = _static(path, element.get("file", ""), level)
        found.update({f"{prefix}{key}": array for key, array in arrays.items()})
    return found


def _number(element: Element, name: str, pattern: str) -> str:
    text = element.get(name) or "0"
    if not re.fullmatch(pattern, text.strip()):
        raise bad(f"has a {name} that is not a number: {ascii(text)[:60]}")
    return text
