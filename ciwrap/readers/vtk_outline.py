"""What an XML file of VTK says it holds: pieces, their extents, the arrays in each of them.

VTK makes arrays for the whole extent, or for the points of all pieces, and fills in what the pieces
hold. The rest is whatever was in memory, without a word. Here it is found out first what nobody
wrote, so that it is never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError
from ciwrap.readers.boxes import are_filled
from ciwrap.readers.vtk_numbers import refuse_other_numbers
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ciwrap.readers.vtk_library import Element, VtkLibrary

    # First and last index along x, y and z.
    Extent = tuple[int, int, int, int, int, int]
    # The names of arrays by section, for the sections of which a piece has elements.
    Held = Mapping[str, frozenset[str]]

# The suffixes of files that are made of pieces.
HAVE_PIECES = (
    *(".vti", ".vtr", ".vts", ".vtu", ".vtp"),
    *(".pvti", ".pvtr", ".pvts", ".pvtu", ".pvtp"),
)
_STRUCTURED = ("vti", "vtr", "vts")
_POINTS, _CELLS = "point_data", "cell_data"
_CELL_COUNTS = (
    *("NumberOfCells", "NumberOfVerts", "NumberOfLines", "NumberOfStrips", "NumberOfPolys"),
)
_CELL_SECTIONS = ("Cells", "Verts", "Lines", "Strips", "Polys")
_CELL_ARRAYS = (
    *("connectivity", "offsets", "types", "faces", "faceoffsets"),
    *("face_connectivity", "face_offsets", "polyhedron_to_faces", "polyhedron_offsets"),
)
# VTK reads all arrays of these, or says that it does not.
_READ_WHOLE = ("PointData", "CellData", "Points", "Coordinates")
_MOST_DIGITS = 11


class Outline(Struct, frozen=True):
    """What a file says of itself.

    whole: its WholeExtent, None for unstructured grids. pieces: the extents of those of its pieces
    that are not empty. held: the arrays of each piece. sources: the files that a parallel file is
    made of, with the extent of each; it then says itself which arrays they have in common.
    unread: the arrays that stand where VTK looks for none.
    """

    whole: Extent | None = None
    pieces: tuple[Extent, ...] = ()
    held: tuple[Held, ...] = ()
    sources: tuple[tuple[str, Extent | None], ...] = ()
    unread: frozenset[str] = frozenset()


def outline_of(vtk: VtkLibrary, path: Path) -> Outline:
    """The outline of a file with pieces. Raises CorruptFileError."""
    root = vtk.xml(path)
    grids = [one for one in root.inner if one.all("Piece")]
    if not grids:
        return Outline()
    if len(grids) > 1:
        raise CorruptFileError("holds several grids", file=path)
    grid, pieces = grids[0], grids[0].all("Piece")
    kind = path.suffix.lower().removeprefix(".")
    is_structured = kind.removeprefix("p") in _STRUCTURED
    whole = _extent(grid, "WholeExtent", path) if is_structured else None
    extents = [_extent(one, "Extent", path) if is_structured else None for one in pieces]
    filled = tuple(one for one in extents if one is not None and _cells(one, one))
    if kind.startswith("p"):
        named = {_POINTS: _names(grid, "PPointData"), _CELLS: _names(grid, "PCellData")}
        sources = zip((one.attributes.get("Source", "") for one in pieces), extents, strict=True)
        return Outline(whole, filled, (named,), tuple(sources))
    refuse_other_numbers(path)
    held = [_held(one, extent, whole) for one, extent in zip(pieces, extents, strict=True)]
    return Outline(whole, filled, tuple(held), unread=frozenset(_unread(root, grid)))


def _unread(root: Element, grid: Element) -> Iterator[str]:
    """The arrays that VTK passes over, as where they stand and what they are called."""
    sections = [("", one) for one in root.inner if one is not grid]
    sections += [("", one) for one in grid.inner if one.name not in ("Piece", "FieldData")]
    sections += [("", one) for one in grid.all("FieldData")[1:]]
    for one in (part for piece in grid.all("Piece") for part in piece.inner):
        if one.name not in _READ_WHOLE:
            sections.append(("Piece/", one))
            if one.name in _CELL_SECTIONS:
                kept = {array.attributes.get("Name"): array for array in reversed(one.inner)}
                own = [kept[name] for name in _CELL_ARRAYS if name in kept]
                sections[-1] = ("Piece/", replace(one, inner=_without(one.inner, own)))
    for above, section in sections:
        yield from (f"{above}{where}" for where in _arrays_in(section))


def _without(elements: Iterable[Element], others: Sequence[Element]) -> tuple[Element, ...]:
    return tuple(one for one in elements if not any(one is other for other in others))


def _arrays_in(element: Element) -> Iterator[str]:
    for one in element.inner:
        if one.name in ("DataArray", "Array"):
            yield f"{element.name}/{one.attributes.get('Name', '')}"
        else:
            yield from (f"{element.name}/{where}" for where in _arrays_in(one))


def common_arrays(held: Iterable[Held]) -> tuple[set[str], set[str]]:
    """The arrays that every piece has, and those that only some of them have ("point_data/t").

    A piece without points counts for no array over points.
    """
    everywhere: set[str] = set()
    somewhere: set[str] = set()
    found = list(held)
    for section in (_POINTS, _CELLS):
        sets = [one[section] for one in found if section in one]
        some = frozenset[str]().union(*sets)
        every = frozenset(some).intersection(*sets)
        everywhere.update(f"{section}/{name}" for name in every)
        somewhere.update(f"{section}/{name}" for name in some - every)
    return everywhere, somewhere


def is_covered(whole: Extent, pieces: Sequence[Extent]) -> bool:
    """Whether the pieces hold every cell of the extent, and so every point.

    Raises CorruptFileError if there are too many pieces of too many extents to tell.
    """
    boxes = [box for piece in pieces if (box := _cells(piece, whole)) is not None]
    wanted = _cells(whole, whole)
    if wanted is None:
        return True
    return are_filled(wanted, boxes)


def _cells(extent: Extent, whole: Extent) -> list[tuple[int, int]] | None:
    """The cells of an extent as first and end along each axis, None if it has none.

    An axis along which the whole extent is flat has one cell.
    """
    found = []
    for axis in range(3):
        first, last = extent[2 * axis], extent[2 * axis + 1]
        is_flat = whole[2 * axis] == whole[2 * axis + 1]
        found.append((first, last + 1 if is_flat else last))
    return found if all(first < end for first, end in found) else None


def _held(piece: Element, extent: Extent | None, whole: Extent | None) -> Held:
    if extent is None or whole is None:
        has_points = _count(piece, "NumberOfPoints") > 0
        has_cells = any(_count(piece, name) > 0 for name in _CELL_COUNTS)
    else:
        has_points = _cells(extent, extent) is not None
        has_cells = _cells(extent, whole) is not None
    found = {}
    if has_points:
        found[_POINTS] = _names(piece, "PointData")
    if has_cells:
        found[_CELLS] = _names(piece, "CellData")
    return found


def _count(piece: Element, name: str) -> int:
    text = piece.attributes.get(name, "0").strip()
    # What is no number is VTK's to refuse.
    return int(text) if text.isdecimal() else 1


def _names(element: Element, section: str) -> frozenset[str]:
    arrays = [array for one in element.all(section) for array in one.inner]
    return frozenset(
        array.attributes.get("Name", f"Array {number}") for number, array in enumerate(arrays)
    )


def _extent(element: Element, name: str, path: Path) -> Extent:
    words = element.attributes.get(name, "").split()
    if any(len(word) > _MOST_DIGITS for word in words):
        raise CorruptFileError(f"its {element.name} has a {name} that is too large", file=path)
    try:
        first_x, last_x, first_y, last_y, first_z, last_z = (int(word) for word in words)
    except ValueError:
        raise CorruptFileError(
            f"its {element.name} has no {name} of six whole numbers", file=path
        ) from None
    return first_x, last_x, first_y, last_y, first_z, last_z
