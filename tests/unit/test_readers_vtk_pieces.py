"""VTK's files in pieces: nothing that no piece holds is read, since it would be anything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from vtk_xml import ENCODINGS, XmlFile, over_cells, over_points, parallel

from ciwrap.base.errors import CiwrapError, CorruptFileError
from ciwrap.formats.vtk import VtkReader
from ciwrap.formats.vtk_arrays import Piece, is_covered
from ciwrap.testing.reader_suite import filled_memory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STRUCTURED = ("vti", "vtr", "vts")
WHOLE = (0, 40, 0, 40, 0, 0)
LEFT, RIGHT = (0, 20, 0, 40, 0, 0), (20, 40, 0, 40, 0, 0)
CORNER = (10, 30, 5, 40, 0, 0)


def everything(path: Path) -> Any:
    """Names, lengths and values (or why there are none), or the error."""
    try:
        with VtkReader().open(path) as source:
            return {
                info.name: info.fault
                or (info.shape, source.read(info.name, 0, info.element_count).tolist())
                for info in source.variables
            }
    except CiwrapError as error:
        return str(error)


def same_twice(path: Path) -> Any:
    """What a file holds, the same with memory full of one thing or another."""
    found = []
    for byte in (17, 99):
        with filled_memory(byte):
            found.append(everything(path))
    assert found[0] == found[1]
    return found[0]


def structured(
    path: Path, extents: Sequence[Sequence[int]], encoding: str = "ascii", whole: Any = WHOLE
) -> Path:
    file = XmlFile(path.suffix[1:], encoding, whole)
    for number, extent in enumerate(extents):
        points = {"t": over_points(extent, 1000.0 * number)}
        file.structured(extent, points, {"c": over_cells(extent)})
    return file.write(path)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", STRUCTURED)
def test_a_piece_smaller_than_the_whole(tmp_path: Path, kind: str, encoding: str) -> None:
    found = same_twice(structured(tmp_path / f"x.{kind}", [CORNER], encoding))
    assert found["point_data/t"] == ((756,), over_points(CORNER).tolist())
    assert found["cell_data/c"] == ((700,), over_cells(CORNER).tolist())
    # What the file says of the rest is compared, too.
    assert found["whole_extent"] == ((6,), list(WHOLE))
    if kind == "vti":
        assert found["extent"] == ((6,), list(CORNER))
    elif kind == "vtr":
        assert found["x"] == ((21,), np.arange(10.0, 31.0).tolist())
    else:
        assert found["points"][0] == (756, 3)
        assert found["points"][1][0] == [10, 5, 0][0]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", STRUCTURED)
def test_pieces_that_make_up_the_whole(tmp_path: Path, kind: str, encoding: str) -> None:
    found = same_twice(structured(tmp_path / f"x.{kind}", [LEFT, RIGHT], encoding))
    assert found["point_data/t"][0] == (41 * 41,)
    assert "whole_extent" not in found
    # The later one of two pieces gives the points between them.
    assert found["point_data/t"][1][:22] == [*range(20), 1000, 1001]


@pytest.mark.parametrize("kind", STRUCTURED)
def test_pieces_with_a_gap_are_read_one_by_one(tmp_path: Path, kind: str) -> None:
    # All points are there; the cells between x = 20 and 21 are in no piece.
    far = (21, 40, 0, 40, 0, 0)
    found = same_twice(structured(tmp_path / f"x.{kind}", [far, LEFT]))
    assert found["0/point_data/t"] == ((861,), over_points(LEFT, 1000).tolist())
    assert found["1/cell_data/c"] == ((760,), over_cells(far).tolist())


def test_a_piece_beyond_the_whole_is_refused(tmp_path: Path) -> None:
    text = same_twice(structured(tmp_path / "x.vti", [(30, 50, 0, 40, 0, 0)]))
    assert "x.vti" in text
    assert "0x" not in text


def test_empty_pieces_hold_nothing(tmp_path: Path) -> None:
    for is_first in (False, True):
        file = XmlFile("vti", "ascii", WHOLE)
        pieces = [(WHOLE, {"t": over_points(WHOLE)}), ((0, -1, 0, -1, 0, -1), {})]
        for extent, points in pieces[::-1] if is_first else pieces:
            file.structured(extent, points, {})
        found = same_twice(file.write(tmp_path / "x.vti"))
        assert found["point_data/t"] == ((1681,), over_points(WHOLE).tolist())


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", ["vti", "vtr", "vts", "vtu", "vtp"])
def test_an_array_that_only_one_piece_has(tmp_path: Path, kind: str, which: int) -> None:
    """It is told, and all other arrays are compared."""
    is_scattered = kind in ("vtu", "vtp")
    file = XmlFile(kind, "ascii", () if is_scattered else WHOLE)
    for number, extent in enumerate((LEFT, RIGHT)):
        t = over_points(extent)
        points = {"t": t, **({"u": t} if number == which else {})}
        if is_scattered:
            file.scattered(points, {}, t.size)
        else:
            file.structured(extent, points, {})
    found = same_twice(file.write(tmp_path / f"x.{kind}"))
    assert "some pieces" in found["point_data/u"]
    assert found["point_data/t"][0] == ((2 * 861,) if is_scattered else (1681,))


def test_a_piece_without_points_needs_no_arrays(tmp_path: Path) -> None:
    for is_first in (False, True):
        file = XmlFile("vtu")
        for count in (0, 300) if is_first else (300, 0):
            file.scattered({"t": np.arange(300.0)} if count else {}, {}, count)
        found = same_twice(file.write(tmp_path / "x.vtu"))
        assert found["point_data/t"] == ((300,), np.arange(300.0).tolist())


@pytest.mark.parametrize("kind", ["vti", "vtr", "vts", "vtu", "vtp"])
def test_any_element_may_be_missing(tmp_path: Path, kind: str) -> None:
    """Whatever a file leaves out, memory does not fill in."""
    path = tmp_path / f"x.{kind}"
    if kind in ("vtu", "vtp"):
        file = XmlFile(kind)
        for start in (0.0, 1000.0):
            file.scattered({"t": np.arange(start, start + 300)}, {"c": np.ones(300)}, 300)
        file.write(path)
    else:
        structured(path, [LEFT, RIGHT])
    whole = path.read_text()
    whole_found = same_twice(path)
    tags = re.findall(r"<(\w+)[ >]", whole)
    assert len(tags) >= 10
    for number, tag in enumerate(tags[1:], 1):
        start = [match.start() for match in re.finditer(r"<\w", whole)][number]
        end = whole.index(f"</{tag}>", start) + len(tag) + 3
        path.write_text(whole[:start] + whole[end:])
        assert same_twice(path) != whole_found


def test_an_array_shorter_than_its_piece(tmp_path: Path) -> None:
    path = structured(tmp_path / "x.vti", [WHOLE])
    path.write_text(path.read_text().replace("1678.0 1679.0 1680.0", ""))
    assert "x.vti: t: holds 1678 numbers or texts where 1681 belong" in same_twice(path)


# --- parallel files -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STRUCTURED)
def test_parallel_files(tmp_path: Path, kind: str) -> None:
    for name, extent in (("a", LEFT), ("b", RIGHT)):
        structured(tmp_path / f"{name}.{kind}", [extent])
    pieces = {f"a.{kind}": LEFT, f"b.{kind}": RIGHT}
    index = parallel(tmp_path / f"x.p{kind}", WHOLE, pieces)
    found = same_twice(index)
    assert found["point_data/t"][0] == (1681,)
    # An array that the index does not name is in the pieces, and is not passed over.
    assert found["cell_data/c"][0] == (1600,)
    # A piece holds less than the index says of it.
    structured(tmp_path / f"b.{kind}", [(20, 35, 0, 40, 0, 0)])
    assert f"x.p{kind}: says that 'b.{kind}' holds more than it does" in same_twice(index)
    # The index leaves out a part.
    parallel(index, WHOLE, {f"a.{kind}": LEFT})
    assert "leave out a part of its WholeExtent" in same_twice(index)
    parallel(index, WHOLE, {f"a.{kind}": LEFT, f"gone.{kind}": RIGHT})
    assert f"x.p{kind}: names 'gone.{kind}', which does not exist" in same_twice(index)


@pytest.mark.parametrize("kind", ["vtu", "vtp"])
def test_parallel_files_of_points(tmp_path: Path, kind: str) -> None:
    for name in ("a", "b"):
        file = XmlFile(kind)
        file.scattered({"t": np.full(300, ord(name), "f8"), "u": np.ones(300)}, {}, 300)
        file.write(tmp_path / f"{name}.{kind}")
    empty = XmlFile(kind)
    empty.scattered({"t": np.ones(0)}, {}, 0)
    empty.write(tmp_path / f"none.{kind}")
    pieces: dict[str, Any] = {f"{name}.{kind}": () for name in ("none", "a", "b")}
    found = same_twice(parallel(tmp_path / f"x.p{kind}", (), pieces))
    assert found["point_data/t"] == ((600,), [97.0] * 300 + [98.0] * 300)
    assert found["point_data/u"] == ((600,), [1.0] * 600)


# --- which cells the pieces hold ------------------------------------------------------------------


def covers(whole: Any, pieces: Any) -> bool:
    return is_covered(whole, [Piece({}, 1, (1,), extent) for extent in pieces])


def test_covered_extents() -> None:
    cube = (0, 4, 0, 4, 0, 4)
    assert covers(cube, [cube])
    assert covers(cube, [(-1, 9, -1, 9, -1, 9)])
    assert covers(cube, [(0, 2, 0, 4, 0, 4), (2, 4, 0, 3, 0, 4), (1, 4, 3, 4, 0, 4)])
    assert not covers(cube, [(0, 2, 0, 4, 0, 4), (2, 4, 0, 3, 0, 4), (3, 4, 3, 4, 0, 4)])
    assert not covers(cube, [(0, 1, 0, 4, 0, 4), (2, 4, 0, 4, 0, 4)])
    assert not covers(cube, [(0, 4, 0, 4, 0, 0)])
    assert not covers(cube, [])
    # Flat along an axis; and a single point.
    assert covers((0, 4, 7, 7, 0, 0), [(0, 4, 7, 7, 0, 0)])
    assert not covers((0, 4, 7, 7, 0, 0), [(0, 4, 6, 6, 0, 0)])
    assert covers((3, 3, 3, 3, 3, 3), [(3, 3, 3, 3, 3, 3)])


def test_covered_extents_against_counting() -> None:
    order = np.random.default_rng(3)
    whole = (0, 5, 0, 4, 0, 3)
    seen = set()
    for _ in range(400):
        pieces = []
        counted = np.zeros((5, 4, 3), bool)
        for _ in range(order.integers(1, 6)):
            ends = [sorted(order.integers(0, n + 1, 2).tolist()) for n in (5, 4, 3)]
            if order.random() < 0.5:
                axis = int(order.integers(3))
                ends = [ends[a] if a == axis else [0, n] for a, n in enumerate((5, 4, 3))]
            pieces.append(tuple(end for pair in ends for end in pair))
            counted[tuple(slice(a, b) for a, b in ends)] = True
        assert covers(whole, pieces) == counted.all()
        seen.add(bool(counted.all()))
    assert seen == {True, False}


def test_too_many_extents_to_tell() -> None:
    pieces = [(n, n + 1, 2 * n, 2 * n + 1, 3 * n, 3 * n + 1) for n in range(2000)]
    with pytest.raises(CorruptFileError, match="too many pieces"):
        covers((0, 9000, 0, 9000, 0, 9000), pieces)
