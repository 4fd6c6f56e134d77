"""What VTK's files say besides their numbers: times, units, names of components and of blocks.

Some are written by VTK, which is in the extra `formats-test`: pip install '.[test,formats-test]'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from optional_libraries import needs
from vtk_xml import EXTENT, XmlFile, blocks, over_points, piece, series

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.vtk import VtkReader

if TYPE_CHECKING:
    from pathlib import Path

LEGACY = """# vtk DataFile Version 3.0
title
ASCII
DATASET STRUCTURED_POINTS
DIMENSIONS 3 1 1
ORIGIN 0 0 0
SPACING 1 1 1
"""


def held(path: Path) -> dict[str, Any]:
    with VtkReader().open(path) as source:
        return {i.name: source.read(i.name, 0, i.element_count).tolist() for i in source.variables}


def test_texts_that_are_not_utf8(tmp_path: Path) -> None:
    def texts(given: str) -> Any:
        path = tmp_path / "x.vtk"
        text = f"{LEGACY}FIELD FieldData 1\ns 1 2 string\n{given}\n"
        path.write_bytes(text.encode("latin-1"))
        return held(path)["field_data/s"]

    assert texts("m\xfc\nb") == ["m\udcfc", "b"]
    assert texts("m\xf6\nb") == ["m\udcf6", "b"]


def test_colours_of_numbers(tmp_path: Path) -> None:
    text = LEGACY + "POINT_DATA 3\nSCALARS s float\nLOOKUP_TABLE t\n1 2 3\nLOOKUP_TABLE t 2\n"
    (tmp_path / "x.vtk").write_text(text + "0 0 0 1\n1 1 0 1\n")
    found = held(tmp_path / "x.vtk")
    assert found["point_data/s"] == [1, 2, 3]
    assert found["point_data/s/lookup_table"] == [0, 0, 0, 255, 255, 255, 0, 255]


# --- components and units -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [".vti", ".vtk"])
def test_names_of_components_and_units(tmp_path: Path, kind: str) -> None:
    core, model = needs("vtkmodules.vtkCommonCore"), needs("vtkmodules.vtkCommonDataModel")
    xml, legacy = needs("vtkmodules.vtkIOXML"), needs("vtkmodules.vtkIOLegacy")
    image = model.vtkImageData()
    image.SetDimensions(2, 1, 1)
    for name, components, unit in (
        ("v", "yxz", "m/s"),
        ("s", ["a b", None, ""], ""),
        ("w", "", ""),
    ):
        array = (core.vtkStringArray if name == "s" else core.vtkDoubleArray)()
        array.SetName(name)
        array.SetNumberOfComponents(3)
        for number, one in enumerate(components):
            if one:
                array.SetComponentName(number, one)
        array.SetNumberOfTuples(2)
        for number in range(6):
            array.SetValue(number, "x" if name == "s" else number)
        if unit:
            array.GetInformation().Set(core.vtkDataArray.UNITS_LABEL(), unit)
        image.GetPointData().AddArray(array)
    writer = xml.vtkXMLImageDataWriter() if kind == ".vti" else legacy.vtkStructuredPointsWriter()
    writer.SetFileName(str(tmp_path / f"x{kind}"))
    writer.SetInputData(image)
    writer.Write()
    with VtkReader().open(tmp_path / f"x{kind}") as source:
        found = {info.name: dict(info.labels) for info in source.variables}
    assert found["point_data/v"] == {"components": "y x z", "units": "m/s"}
    assert found["point_data/s"]["components"].startswith("a\\ b -")
    assert found["point_data/w"] == found["origin"] == {}


# --- names of blocks ------------------------------------------------------------------------------


def test_names_of_blocks(tmp_path: Path) -> None:
    """Files that take each other's place would match."""
    one, two = (piece(tmp_path / f"{name}.vti", 0.0) for name in "ab")
    inner = (
        f'<Block index="0" name="fluid"><DataSet index="0" name="inlet" file="{one}"/>'
        '<DataSet index="1" name="nothing"/></Block>'
        f'<Block index="1"><Piece index="0" name="wall" file=""><DataSet index="0" file="{two}"/>'
        "</Piece></Block>"
    )
    found = held(blocks(tmp_path / "x.vtm", inner))
    assert {name: value for name, value in found.items() if name.endswith("/name")} == {
        "0/name": ["fluid"],
        "0/0/name": ["inlet"],
        "0/1/name": ["nothing"],
        "1/0/name": ["wall"],
    }
    assert "1/0/0/point_data/t" in found
    named = [(f'timestep="{n}" name="fluid"', one) for n in range(2)]
    found = held(series(tmp_path / "x.pvd", named))
    assert (found["name[0]"], found["name[1]"]) == (["fluid"], ["fluid"])


# --- what lies behind the end ---------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "base64", "raw"])
def test_what_follows_the_end_of_an_xml_file(tmp_path: Path, encoding: str) -> None:
    file = XmlFile("vti", encoding, EXTENT)
    file.structured(EXTENT, {"t": over_points(EXTENT, 0.0)}, {})
    path = file.write(tmp_path / "x.vti")
    whole = path.read_bytes()
    wanted = held(path)
    for harmless in (b"\n\n", b"<!-- made by me -->\n"):
        path.write_bytes(whole + harmless)
        assert held(path) == wanted
    for damage in (whole + b"garbage", whole + b"\0", whole + whole, whole.rstrip()[:-1]):
        path.write_bytes(damage)
        with pytest.raises(
            CorruptFileError, match=r"</VTKFile>|not complete XML|belong to no array"
        ):
            held(path)


# --- arrays that are there twice ------------------------------------------------------------------

SCALARS = "SCALARS {} double\nLOOKUP_TABLE default\n1 2 3\n"
FIELD = "FIELD f {}\n"
ARRAY = "{} 1 3 double\n1 2 3\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (SCALARS.format("t") * 2, "t"),
        (SCALARS.format("t") + "VECTORS t float\n1 2 3 4 5 6 7 8 9\n", "t"),
        (FIELD.format(2) + ARRAY.format("a%20b") * 2, "a b"),
        (SCALARS.format("t") + FIELD.format(1) + ARRAY.format("t"), "t"),
        (SCALARS.format("t").lower() * 2, "t"),
        (SCALARS.format("t") + "COLOR_SCALARS t 1\n1 0.5 0.1\n", "t"),
        (SCALARS.format("t") + "TEXTURE_COORDINATES t 2 float\n1 2 3 4 5 6\n", "t"),
    ],
)
@pytest.mark.parametrize("suffix", [".vtk", ".dat"])
def test_an_array_that_a_legacy_file_has_twice(
    tmp_path: Path, text: str, name: str, suffix: str
) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_text(f"{LEGACY}POINT_DATA 3\n{text}")
    with pytest.raises(CorruptFileError, match=f"has two arrays named 'point_data/{name}'"):
        held(path)


@pytest.mark.parametrize(
    "text",
    [
        FIELD.format(1) + ARRAY.format("t") + "POINT_DATA 3\n" + SCALARS.format("t"),
        "POINT_DATA 3\n" + SCALARS.format("t") + "CELL_DATA 2\nSCALARS t double\n"
        "LOOKUP_TABLE default\n1 2\n",
        # Arrays that are called as words of the format are.
        "POINT_DATA 3\n" + SCALARS.format("normals") + SCALARS.format("tensors"),
        "POINT_DATA 3\n" + FIELD.format(2) + ARRAY.format("normals") + ARRAY.format("vectors"),
        "POINT_DATA 3\n" + FIELD.format(2) + ARRAY.format("float") + ARRAY.format("3"),
    ],
)
def test_arrays_that_a_legacy_file_has_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.vtk"
    path.write_text(LEGACY + text)
    assert sum("_data/" in name for name in held(path)) == 2


def test_an_array_that_an_xml_file_has_twice(tmp_path: Path) -> None:
    file = XmlFile("vti", "ascii", EXTENT)
    file.structured(EXTENT, {name: over_points(EXTENT, 0.0) for name in "tu"}, {})
    path = file.write(tmp_path / "x.vti")
    path.write_text(path.read_text().replace('Name="u"', 'Name="t"'))
    with pytest.raises(CorruptFileError, match="has two arrays named 'point_data/t'"):
        held(path)
