"""Numbers in XML files of VTK: as many, and of that type, as the file says."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.vtk import VtkReader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GRID = """<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid"><UnstructuredGrid>
<FieldData><DataArray type="Float64" Name="t" NumberOfTuples="1" format="ascii">{field}</DataArray>
</FieldData><Piece NumberOfPoints="4" NumberOfCells="1">
<PointData>{data}</PointData><CellData/>
<Points><DataArray type="Float64" NumberOfComponents="3" format="ascii">{points}
</DataArray></Points>
<Cells><DataArray type="Int64" Name="connectivity" format="ascii">0 1 2 3</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">{offsets}</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">10</DataArray></Cells>
</Piece></UnstructuredGrid>{end}</VTKFile>
"""
POINTS = "0 0 0 1 0 0 0 1 0 0 0 1"


def refuse(path: Path) -> None:
    """Reads a file. Raises CorruptFileError."""
    with VtkReader().open(path) as source:
        assert all(info.fault is None for info in source.variables)


def check(
    path: Path, data: str = "", field: str = "0.5", points: str = POINTS, offsets: str = "4"
) -> None:
    end = '<AppendedData encoding="raw">_\4\0\0\0\1\2\3\4\n</AppendedData>'
    text = GRID.format(data=data, field=field, points=points, offsets=offsets, end=end)
    path.write_text(text)
    refuse(path)


def array(kind: str, text: str, **more: object) -> str:
    rest = "".join(f' {key}="{value}"' for key, value in more.items())
    return f'<DataArray type="{kind}" Name="p" format="ascii"{rest}>\n{text}\n</DataArray>'


@pytest.mark.parametrize(
    "data",
    [
        array("Float64", "1 -2.5e-3 .5 4."),
        array("Float32", "1 2 3 4 5 6 7 8", NumberOfComponents=2),
        array("UInt8", "0 255 +1 007"),
        array("Int8", "-128 127 0 0"),
        array("UInt64", "0 18446744073709551615 0 0"),
        array("Int32", "1 2 3 4") + array("Float64", "1 2 3 4").replace('"p"', '"r"'),
        '<DataArray type="UInt8" Name="q" format="appended" offset="0"/>'
        + array("Int8", "1 2 3 4"),
        '<DataArray type="UInt8" Name="q" format="binary">BAAAAA==AQIDBA==</DataArray>',
        '<DataArray type="Bit" Name="q" format="binary">AQAAAFA=</DataArray>',
        array("Bit", "0 1 0 1"),
        '<DataArray type="UInt8" Name="q" format="binary">BAAAAAECAwQ=</DataArray>',
        '<Array type="String" Name="s" format="ascii">97 0 -61 188 0 99 0 100 0</Array>',
        '<Array type="String" Name="s" format="binary">CAAAAGEAYgBjAGQA</Array>',
        array("Float64", "1 nan -inf NaN"),
        array("Float64", "1 2 3 4<InformationKey name='UNITS_LABEL'>m 5</InformationKey>"),
        "<!-- " + array("UInt8", "300") + " -->",
    ],
)
def test_numbers_that_vtk_takes_as_they_are(tmp_path: Path, data: str) -> None:
    check(tmp_path / "x.vtu", data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (array("Float64", "1 2 3 4 5"), "holds 5 numbers or texts where 4 belong"),
        (
            array("Float64", "1 2 3 4 5", NumberOfTuples=5),
            "holds 5 numbers or texts where 4 belong",
        ),
        (array("Float64", "1 2 3 4x"), "has values that are not of type float64: .*4x"),
        (array("Float64", "1 2 3 1_0"), "has values that are not of type float64"),
        (array("Float64", "1 2 3 1e999"), "has values that are not of type float64: .* beyond"),
        (array("Float32", "1 2 3 1e39"), "has values that are not of type float32: .* beyond"),
        (array("Int32", "1 2 3 4.7"), r"has values that are not of type int32: .*4\.7"),
        (array("UInt8", "1 260 3 4"), "not of type uint8: numbers from 1 to 260"),
        (array("Int8", "1 2 3 -129"), "not of type int8: numbers from -129 to 3"),
        (array("UInt32", "1 2 3 -1"), "not of type uint32: numbers from -1 to 3"),
        (array("Bit", "1 0 1 1 0"), "holds 5 numbers or texts where 4 belong"),
        (array("Bit", "1 0 2 1"), "not of type uint8: numbers from 0 to 2"),
        (array("Float64", "1 2 3 4 5").replace("ascii", "appended"), "no format that is known"),
        (array("Float64", "1-2 3-4"), "has values that are not of type float64: .*1-2"),
        (array("UInt8", "1 2 3+4"), r"has values that are not of type uint8: .*3\+4"),
        (array("Float64", "1 2 3 4", offset=0), "in two places"),
        (array("UInt8", "", offset="x").replace("ascii", "appended"), "or the offset 'x'"),
        (array("Float64", "1 2 3 4<a/>5"), "holds something besides its numbers"),
        (
            array("UInt8", "1 2 3 4 5").replace("DataArray", "Array"),
            "holds 5 numbers or texts where 4",
        ),
        (array("String", "97 0 0 0 355 0"), "numbers from 0 to 355"),
        (array("String", "97 0 0 0 0 x"), "has values that are not of type int16: .*x"),
        (array("String", "97 0 0 0 0 98"), "ends within a text"),
        (array("String", "97 0 0 0 0 0"), "holds 5 numbers or texts where 4 belong"),
        (array("String", "97 0 0 0"), "holds 3 numbers or texts where 4 belong"),
        (array("String", "CAAAAGEAYgBjAGRk").replace("ascii", "binary"), "ends within a text"),
        (array("String", "CAAAAGEAYgBjAGQAAAAA").replace("ascii", "binary"), "or more after"),
    ],
)
def test_numbers_that_do_not_belong_there(tmp_path: Path, data: str, says: str) -> None:
    with pytest.raises(CorruptFileError, match=f"x.vtu: p: .*{says}"):
        check(tmp_path / "x.vtu", data)


def test_more_points_offsets_and_fields_than_there_are(tmp_path: Path) -> None:
    for wrong in ({"points": POINTS + " 5"}, {"offsets": "4 8"}, {"field": "0.5 0.6"}):
        with pytest.raises(CorruptFileError, match=r"numbers or texts where \d+ belong"):
            check(tmp_path / "x.vtu", "", **wrong)


def test_extents_tell_how_many_numbers_there_are(tmp_path: Path) -> None:
    path = tmp_path / "x.vti"
    text = (
        '<VTKFile type="ImageData"><ImageData WholeExtent="0 3 0 2 5 5">'
        '<Piece Extent="0 3 0 2 5 5"><PointData>{}'
        "</PointData><CellData>{}</CellData></Piece></ImageData></VTKFile>"
    )
    path.write_text(text.format(array("Int8", "1 " * 12), array("Int8", "1 " * 6)))
    refuse(path)
    for points, cells in ((13, 6), (12, 7)):
        path.write_text(text.format(array("Int8", "1 " * points), array("Int8", "1 " * cells)))
        with pytest.raises(CorruptFileError, match="numbers or texts where"):
            refuse(path)


def numbers(values: Sequence[int], kind: str = "<i8", *, apart: bool = False) -> str:
    """Numbers in base64, their length by itself or not."""
    data = np.array(values, kind).tobytes()
    head = struct.pack("<I", len(data))
    if apart:
        return base64.b64encode(head).decode() + base64.b64encode(data).decode()
    return base64.b64encode(head + data).decode()


LISTS = """<VTKFile type="UnstructuredGrid"><UnstructuredGrid>
<Piece NumberOfPoints="4" NumberOfCells="{cells}"><Points>
<DataArray type="Float64" NumberOfComponents="3" format="ascii">0 0 0 0 0 0 0 0 0 0 0 0</DataArray>
</Points><Cells>{arrays}</Cells></Piece></UnstructuredGrid></VTKFile>"""


def look_at_lists(path: Path, lists: dict[str, Sequence[int]], form: str, cells: int = 2) -> None:
    text = ""
    for name, values in lists.items():
        if form == "ascii":
            inner = " ".join(map(str, values))
        else:
            inner = numbers(values, apart=form == "apart")
        how = "ascii" if form == "ascii" else "binary"
        text += f'<DataArray type="Int64" Name="{name}" format="{how}">{inner}</DataArray>'
    if cells:
        types = "42 42" if "faces" in text or "poly" in text else "5 5"
        text += f'<DataArray type="UInt8" Name="types" format="ascii">{types}</DataArray>'
    path.write_text(LISTS.format(arrays=text, cells=cells))
    refuse(path)


CELLS = {"connectivity": [0, 1, 2, 3, 0], "offsets": [3, 5]}
FACES = {
    "face_connectivity": [0, 1, 2, 1, 2, 3],
    "face_offsets": [3, 6],
    "polyhedron_to_faces": [0, 1],
    "polyhedron_offsets": [1, 2],
}
OLD_FACES = {"faces": [1, 3, 0, 1, 2, 1, 3, 1, 2, 3], "faceoffsets": [5, 10]}


@pytest.mark.parametrize("form", ["ascii", "binary", "apart"])
@pytest.mark.parametrize(
    ("lists", "longer"),
    [
        (CELLS, "connectivity"),
        (CELLS | FACES, "connectivity"),
        (CELLS | FACES, "face_connectivity"),
        (CELLS | FACES, "face_offsets"),
        (CELLS | FACES, "polyhedron_to_faces"),
        (CELLS | OLD_FACES, "faces"),
    ],
)
def test_lists_are_as_long_as_their_ends_say(
    tmp_path: Path, form: str, lists: dict[str, list[int]], longer: str
) -> None:
    path = tmp_path / "x.vtu"
    look_at_lists(path, lists, form)
    with VtkReader().open(path) as source:
        names = [info.name for info in source.variables]
        if "cells/faces" in names:
            assert source.read("cells/faces", 0, 10).tolist() == OLD_FACES["faces"]
    assert ("cells/faces" in names) == (lists is not CELLS)
    with pytest.raises(CorruptFileError, match=r"that end at 5, not at|faces"):
        look_at_lists(path, {**lists, longer: [*lists[longer], 2]}, form)


@pytest.mark.parametrize("form", ["ascii", "binary"])
def test_cells_that_are_not_there_have_no_points(tmp_path: Path, form: str) -> None:
    look_at_lists(tmp_path / "x.vtu", {"connectivity": [], "offsets": []}, form, 0)
    with pytest.raises(CorruptFileError, match="of which it says that there are none"):
        look_at_lists(tmp_path / "x.vtu", {"connectivity": [1], "offsets": []}, form, 0)


@pytest.mark.parametrize("apart", [True, False])
def test_more_bytes_than_there_are_points(tmp_path: Path, apart: bool) -> None:
    def binary(text: str) -> str:
        return f'<DataArray type="Float64" Name="p" format="binary">\n{text}\n</DataArray>'

    path = tmp_path / "x.vtu"
    right = numbers([1, 2, 3, 4], "<f8", apart=apart)
    check(path, binary(right))
    with pytest.raises(CorruptFileError, match="p: holds 40 bytes where 32 belong"):
        check(path, binary(numbers([1, 2, 3, 4, 5], "<f8", apart=apart)))
    with pytest.raises(CorruptFileError, match=r"p: .* or more after"):
        check(path, binary(right + "AAAA"))


def test_more_coordinates_than_there_are_points_along_an_axis(tmp_path: Path) -> None:
    path = tmp_path / "x.vtr"
    text = (
        '<VTKFile type="RectilinearGrid"><RectilinearGrid WholeExtent="0 1 0 2 0 0">'
        '<Piece Extent="0 1 0 2 0 0">'
        "<Coordinates>{}</Coordinates></Piece></RectilinearGrid></VTKFile>"
    )
    axes = [array("Float32", "0 1"), array("Float32", "0 1 2"), array("Float32", "0")]
    path.write_text(text.format("".join(axes)))
    refuse(path)
    axes[1] = array("Float32", "0 1 2 3")
    path.write_text(text.format("".join(axes)))
    with pytest.raises(CorruptFileError, match="holds 4 numbers or texts where 3"):
        refuse(path)
