"""VTK's legacy files, as text and as bytes, of old versions and of new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.vtk import VtkReader

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "# vtk DataFile Version {}\ntitle\n{}\n"
POINTS = np.arange(12.0).reshape(4, 3)


def held(path: Path) -> dict[str, Any]:
    with VtkReader().open(path) as source:
        return {
            info.name: (info.dtype, source.read(info.name, 0, info.element_count).tolist())
            for info in source.variables
        }


def grid(path: Path, *, is_new: bool, is_text: bool, more: str = "") -> Path:
    """A triangle and a line, with a number over each point."""

    def values(array: Any, kind: str) -> bytes:
        if is_text:
            return " ".join(map(str, np.ravel(array).tolist())).encode() + b"\n"
        return np.asarray(array, kind).tobytes() + b"\n"

    data = HEAD.format("5.1" if is_new else "3.0", "ASCII" if is_text else "BINARY").encode()
    data += b"DATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n" + values(POINTS, ">f8")
    if is_new:
        data += b"CELLS 3 5\nOFFSETS vtktypeint64\n" + values([0, 3, 5], ">i8")
        data += b"CONNECTIVITY vtktypeint64\n" + values([0, 1, 2, 2, 3], ">i8")
    else:
        data += b"CELLS 2 7\n" + values([3, 0, 1, 2, 2, 2, 3], ">i4")
    data += b"CELL_TYPES 2\n" + values([5, 3], ">i4") + b"POINT_DATA 4\n"
    data += b"SCALARS a%20b float\nLOOKUP_TABLE default\n" + values([0.5, 1, 2, 3], ">f4")
    data += b"GLOBAL_IDS id vtkIdType\n" + values([7, 8, 9, 10], ">i4")
    path.write_bytes(data + more.encode())
    return path


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("is_text", [True, False])
def test_an_unstructured_grid(tmp_path: Path, is_new: bool, is_text: bool) -> None:
    assert held(grid(tmp_path / "x.vtk", is_new=is_new, is_text=is_text)) == {
        "point_data/a b": ("<f4", [0.5, 1, 2, 3]),
        "point_data/id": ("<i8", [7, 8, 9, 10]),
        "points": ("<f8", list(range(12))),
        "cells/connectivity": ("<i8", [0, 1, 2, 2, 3]),
        "cells/offsets": ("<i8", [0, 3, 5]),
        "cells/types": ("|u1", [5, 3]),
    }


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("CELL_DATA 3\n", "says CELL_DATA 3"),
        ("SCALARS s float\n1 2 3 4\n", "names no lookup table"),
        ("SCALARS s float\nLOOKUP_TABLE t\n1 2 3 4\n", "holds no lookup table"),
        ("VECTORS v float\n1 2 3\n", "ends after 3 of 12 numbers"),
        ("VECTORS v quaternion\n1 2 3\n", "not known, or not whole: 'VECTORS v quaternion'"),
        ("FIELD f 1\nf 1 3 float\n1 2 3\n", "has 3 tuples"),
        ("DATASET POLYDATA\n", "not known, or not whole: 'DATASET POLYDATA'"),
        ("CELL_TYPES 2\n5 3\n", "not known, or not whole: 'CELL_TYPES 2'"),
        ("17\n", "not known, or not whole: '17'"),
        ("COLOR_SCALARS c 1\n0 0 0 255\n", "not between 0 and 1"),
    ],
)
def test_what_does_not_belong_there_is_refused(tmp_path: Path, more: str, says: str) -> None:
    path = grid(tmp_path / "x.vtk", is_new=False, is_text=True, more=more)
    with pytest.raises(CorruptFileError, match=f"x.vtk: .*{says}"):
        held(path)


def test_polyhedra_are_refused(tmp_path: Path) -> None:
    path = grid(tmp_path / "x.vtk", is_new=False, is_text=True)
    path.write_text(path.read_text().replace("5 3\nPOINT", "42 3\nPOINT"))
    with pytest.raises(CorruptFileError, match="polyhedra, which are not read from legacy files"):
        held(path)


def test_kinds_of_grids(tmp_path: Path) -> None:
    path = tmp_path / "x.vtk"
    head = HEAD.format("3.0", "ASCII")
    axes = "".join(
        f"{axis}_COORDINATES {n} int\n{'1 ' * n}\n"
        for axis, n in zip("XYZ", (2, 3, 1), strict=True)
    )
    path.write_text(f"{head}DATASET RECTILINEAR_GRID\nDIMENSIONS 2 3 1\n{axes}")
    assert held(path) == {"x": ("<i4", [1, 1]), "y": ("<i4", [1] * 3), "z": ("<i4", [1])}
    path.write_text(path.read_text().replace("DIMENSIONS 2 3", "DIMENSIONS 3 3"))
    with pytest.raises(CorruptFileError, match="does not hold as many x"):
        held(path)
    lists = "VERTICES 1 2\n1 0\nPOLYGONS 1 4\n3 0 1 2\n"
    path.write_text(f"{head}DATASET POLYDATA\nPOINTS 3 float\n{'1 ' * 9}\n{lists}CELL_DATA 2\n")
    assert held(path)["polys/connectivity"] == ("<i8", [0, 1, 2])
    path.write_text(f"{head}DATASET TABLE\nROW_DATA 2\nFIELD f 1\nt 1 2 string\na%20b\n\n")
    assert held(path)["row_data/t"] == ("<U16", ["a b", ""])
    text = b"\xc3" + b"abc" + b"\x40\x00\x00\x01" + b"x" * 1
    data = HEAD.format("3.0", "BINARY").encode() + b"FIELD f 1\nt 1 2 string\n" + text + b"\n"
    path.write_bytes(data)
    assert held(path)["field_data/t"] == ("<U16", ["abc", "x"])
