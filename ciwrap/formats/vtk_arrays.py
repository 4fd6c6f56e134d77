"""The arrays of VTK's files by name, and how those of several pieces are joined."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ciwrap.arrays.values import dtype_text
from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import are_filled
from ciwrap.formats.reader import InputFile, labels_of, names_as_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import FileRegion, Labels

    # First and last index along x, y and z.
    Extent = tuple[int, int, int, int, int, int]
    Box = list[tuple[int, int]]
    # A text says why an array is not compared.
    NamedArrays = dict[str, "Array | str"]

POLYHEDRON = 42
_UNEVEN = "is in only some pieces of the file"
_UNLIKE = "has another type or name in other pieces of the file"


class Array(Struct, frozen=True):
    """An array: in memory, or where it lies in a file that holds its bytes as they are."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    elements: NDArray[Any] | None = None
    region: FileRegion | None = None
    labels: Labels = ()

    @property
    def values(self) -> NDArray[Any]:
        return self.read(0, math.prod(self.shape)).reshape(self.shape)

    def read(self, first: int, count: int) -> NDArray[Any]:
        """Some of its values, counted in C order."""
        if self.elements is not None:
            return self.elements.reshape(-1)[first : first + count].copy()
        assert self.region is not None
        file = InputFile(Path(self.region.path))
        return file.elements(self.region.offset, dtype_text(self.dtype))(first, count)


def array_of(values: Any, labels: Labels = ()) -> Array:
    found = np.asarray(values)
    return Array(found.dtype, found.shape, found, labels=labels)


class Piece(Struct, frozen=True):
    """A piece of a grid, or all of it.

    cells: how many there are of each kind, in the order of the arrays over cells. extent: of a
    structured grid.
    """

    arrays: Mapping[str, Array]
    points: int
    cells: tuple[int, ...]
    extent: Extent | None = None

    def lacks(self, name: str) -> bool:
        """Whether there is no such array over points or cells, though it has these."""
        section = name.partition("/")[0]
        count = {"point_data": self.points, "cell_data": sum(self.cells)}.get(section, 0)
        return count > 0 and name not in self.arrays


class Grid(Struct, frozen=True):
    """What a file holds: pieces, and what is said of all of them.

    common: field data, origin and spacing. whole: None where points are listed one by one.
    has_extent: whether it is a variable.
    """

    pieces: Sequence[Piece]
    common: Mapping[str, Array]
    whole: Extent | None = None
    has_extent: bool = False


def arrays_of(grid: Grid) -> NamedArrays:
    """The arrays of a grid: of all pieces together, or of each by itself where the pieces of a
    structured grid leave something out.

    Raises CorruptFileError.
    """
    pieces = [one for one in grid.pieces if one.points or any(one.cells)]
    whole = grid.whole
    if whole is None or not pieces or is_covered(whole, pieces):
        return _listed(grid, _joined(whole, pieces or grid.pieces[:1]), whole)
    found: NamedArrays = {}
    for number, piece in enumerate(sorted(pieces, key=lambda one: one.extent or ())):
        prefix = f"{number}/" if len(pieces) > 1 else ""
        arrays = _listed(grid, piece.arrays, piece.extent)
        found.update({f"{prefix}{name}": one for name, one in arrays.items()})
    found["whole_extent"] = array_of(np.array(whole, dtype="<i8"))
    return found


def _listed(grid: Grid, arrays: Mapping[str, Array | str], extent: Extent | None) -> NamedArrays:
    """Arrays over points and cells first, the geometry last."""
    found: NamedArrays = {name: one for name, one in arrays.items() if "_data/" in name}
    found |= {**grid.common, **arrays}
    if grid.has_extent:
        found["extent"] = array_of(np.array(extent, dtype="<i8"))
    return found


def is_covered(whole: Extent, pieces: Sequence[Piece]) -> bool:
    """Whether the pieces hold every cell of the extent, and so every point.

    Raises CorruptFileError if there are too many pieces of too many extents to tell.
    """
    boxes = [_cells(one.extent, whole) for one in pieces if one.extent is not None]
    wanted = _cells(whole, whole)
    return not _is_filled(wanted) or are_filled(wanted, [box for box in boxes if _is_filled(box)])


def _points(extent: Extent) -> Box:
    return [(extent[axis], extent[axis + 1] + 1) for axis in (0, 2, 4)]


def _cells(extent: Extent, whole: Extent) -> Box:
    """First and end along each axis; one along which the whole is flat has one cell."""
    return [
        (extent[axis], extent[axis + 1] + (whole[axis] == whole[axis + 1])) for axis in (0, 2, 4)
    ]


def _is_filled(box: Box) -> bool:
    return all(first < end for first, end in box)


def _joined(whole: Extent | None, pieces: Sequence[Piece]) -> Mapping[str, Array | str]:
    """The arrays of all pieces, each as one. Where pieces overlap, the later one counts."""
    if len(pieces) == 1 and pieces[0].extent == whole:
        return pieces[0].arrays
    found: NamedArrays = {}
    for name in dict.fromkeys(name for one in pieces for name in one.arrays):
        holders = [one for one in pieces if name in one.arrays]
        parts = [one.arrays[name] for one in holders]
        if any(one.lacks(name) for one in pieces):
            found[name] = _UNEVEN
        elif len({(one.dtype, one.shape[1:], one.labels) for one in parts}) > 1:
            found[name] = _UNLIKE
        elif whole is not None:
            found[name] = array_of(_placed(name, whole, holders), parts[0].labels)
        elif name.endswith(("s/connectivity", "s/offsets", "s/faces")) and "_data/" not in name:
            found[name] = array_of(_counted_on(name, pieces))
        else:
            found[name] = array_of(_in_order(name, holders), parts[0].labels)
    return found


def _in_order(name: str, pieces: Sequence[Piece]) -> NDArray[Any]:
    """An array over points or cells: of all cells of one kind first, then of the next."""
    if not name.startswith("cell_data/"):
        return np.concatenate([one.arrays[name].values for one in pieces])
    parts = [np.split(one.arrays[name].values, np.cumsum(one.cells)[:-1]) for one in pieces]
    return np.concatenate([part for kind in zip(*parts, strict=True) for part in kind])


def _counted_on(name: str, pieces: Sequence[Piece]) -> NDArray[Any]:
    """Numbers of points, or ends of lists, which count on from piece to piece."""
    parts: list[NDArray[Any]] = []
    points = end = 0
    for piece in pieces:
        if name in piece.arrays:
            values = piece.arrays[name].values.copy()
            if name.endswith("/faces"):
                values[faces_in(values)[0]] += values.dtype.type(points)
            elif name.endswith("/offsets"):
                values = values[1 if parts else 0 :] + values.dtype.type(end)
                end = int(values[-1])
            else:
                values += values.dtype.type(points)
            parts.append(values)
        points += piece.points
    return np.concatenate(parts)


def _placed(name: str, whole: Extent, pieces: Sequence[Piece]) -> NDArray[Any]:
    """An array of a structured grid: what each piece holds, put where it belongs."""

    def box_of(extent: Extent) -> Box:
        box = _cells(extent, whole) if name.startswith("cell_data/") else _points(extent)
        return box["xyz".index(name) :][:1] if name in ("x", "y", "z") else box[::-1]

    first, outer = pieces[0].arrays[name], box_of(whole)
    inner = first.shape[1:]
    found = np.empty((*(end - start for start, end in outer), *inner), dtype=first.dtype)
    for piece in pieces:
        assert piece.extent is not None
        array, box = piece.arrays[name], box_of(piece.extent)
        lengths = [end - start for start, end in box]
        if math.prod(lengths) != array.shape[0]:
            raise CorruptFileError(f"has a piece {piece.extent} that is flat where others are not")
        pairs = zip(box, outer, strict=True)
        where = tuple(slice(start - low, end - low) for (start, end), (low, _) in pairs)
        found[where] = array.values.reshape((*lengths, *inner))
    return found.reshape(-1, *inner)


def faces_in(stream: NDArray[Any]) -> tuple[NDArray[np.bool_], list[int]]:
    """Which of the faces of polyhedra are numbers of points, and where each polyhedron ends.

    It says how many faces it has, and of each how many points and which. Raises CorruptFileError.
    """
    is_point, ends, at = np.zeros(stream.size, bool), list[int](), 0
    numbers_left = stream.tolist()
    while at < stream.size:
        faces, at = numbers_left[at], at + 1
        for _ in range(faces):
            count = numbers_left[at] if at < stream.size else -1
            if not 0 <= count < stream.size - at:
                raise CorruptFileError("has a polyhedron whose faces do not end where it does")
            is_point[at + 1 : at + 1 + count] = True
            at += 1 + count
        ends.append(at)
    return is_point, ends


def cells_of(kind: str, points: Array, ends: NDArray[Any]) -> dict[str, Array]:
    """Lists of points by where each ends: numbers of 32 bits if both are, else of 64."""
    if points.dtype.kind not in "iu" or ends.dtype.kind not in "iu":
        raise CorruptFileError(f"has {kind} that are not whole numbers")
    dtype = np.dtype("<i4" if points.dtype == ends.dtype == np.dtype("<i4") else "<i8")
    found = np.concatenate([np.zeros(1, dtype), ends.astype(dtype)])
    if (np.diff(found) < 0).any() or points.shape != (found[-1],):
        raise CorruptFileError(f"has {kind} that end at {found[-1]}, not at {points.shape}")
    if points.dtype != dtype:
        points = array_of(points.values.astype(dtype))
    return {f"{kind}/connectivity": points, f"{kind}/offsets": array_of(found)}


def types_of(values: NDArray[Any]) -> NDArray[np.uint8]:
    """The types of cells."""
    if values.dtype.kind not in "iu" or (values.size and not 0 <= min(values) <= max(values) < 256):
        raise CorruptFileError("has cell types that are not numbers from 0 to 255")
    return values.astype("|u1")


def labels_from(unit: str | None, components: Sequence[str | None]) -> Labels:
    """The unit of an array and the names of its components."""
    labels = labels_of(None, {} if unit is None else {"units": unit})
    if any(components):
        labels = tuple(sorted((*labels, ("components", names_as_text(components)))))
    return labels


def numbers(words: Sequence[bytes], dtype: np.dtype[Any], most: int | None = None) -> NDArray[Any]:
    """Numbers out of a text. Raises CorruptFileError for what is none, or not of that type.

    most: the largest whole number that there may be.
    """
    try:
        if any(b"_" in word for word in words):  # which Python takes
            raise ValueError("a number that contains an underscore")
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                found = np.array([float(word) for word in words]).astype(dtype)
            if np.isinf(found).sum() != sum(b"inf" in word.lower() for word in words):
                raise ValueError("a number beyond its range")
            return found
        whole, limits = [int(word) for word in words], np.iinfo(dtype)
        if whole and not limits.min <= min(whole) <= max(whole) <= (most or limits.max):
            raise ValueError(f"numbers from {min(whole)} to {max(whole)}")
        return np.array(whole, dtype=dtype)
    except ValueError as error:
        raise CorruptFileError(
            f"has values that are not of type {dtype.name}: {str(error)[:80]}",
            remedy="have the program write numbers of the type that it says",
        ) from error
