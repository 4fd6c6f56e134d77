"""VTK's XML and legacy files.

Some are written by VTK, which is in the extra `formats-test`: pip install '.[test,formats-test]'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from optional_libraries import needs
from vtk_xml import XmlFile

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.vtk import VtkReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


class TestVti(ReaderSuite):
    suffix = ".vti"
    dtypes = ("<f8", "<f4", "<i4", "<i8", "|u1")
    shapes = ((24,),)
    fuzz_examples = 60
    slowly = 31
    fixed_size = False
    encoding: ClassVar[str] = "packed"

    def make_reader(self) -> Reader:
        return VtkReader()

    def write(self, path: Path, variables: Arrays) -> None:
        extent = (0, 3, 0, 2, 0, 1)
        file = XmlFile("vti", self.encoding, extent)
        file.structured(extent, variables, {})
        file.write(path)

    def expected(self, variables: Arrays) -> Arrays:
        return {
            **{f"point_data/{name}": array for name, array in variables.items()},
            "origin": np.zeros(3),
            "spacing": np.ones(3),
            "extent": np.array([0, 3, 0, 2, 0, 1]),
        }


class TestVtiRaw(TestVti):
    encoding = "raw"


class TestVtiBase64(TestVti):
    encoding = "base64"


class TestVtk(TestVti):
    suffix = ".vtk"
    dtypes = ("<f8", "<f4", "<i4", "<i8", "|u1", "|i1", "<u4")
    kinds: ClassVar[dict[str, str]] = {
        "<f8": "double",
        "<f4": "float",
        "<i4": "int",
        "<i8": "long",
        "|u1": "unsigned_char",
        "|i1": "char",
        "<u4": "unsigned_int",
    }

    def write(self, path: Path, variables: Arrays) -> None:
        head = "DATASET STRUCTURED_POINTS\nDIMENSIONS 4 3 2\nORIGIN 0 0 0\nSPACING 1 1 1\n"
        text = f"# vtk DataFile Version 3.0\nx\nBINARY\n{head}POINT_DATA 24\n"
        data = text.encode() + f"FIELD f {len(variables)}\n".encode()
        for name, array in variables.items():
            data += f"{name} 1 24 {self.kinds[array.dtype.str]}\n".encode()
            data += array.astype(array.dtype.newbyteorder(">")).tobytes() + b"\n"
        path.write_bytes(data)


def grid(tmp_path: Path, kind: str) -> Path:
    """Two tetrahedra with data on points and cells, by one of VTK's writers."""
    core, model = needs("vtkmodules.vtkCommonCore"), needs("vtkmodules.vtkCommonDataModel")
    xml, legacy = needs("vtkmodules.vtkIOXML"), needs("vtkmodules.vtkIOLegacy")
    support = needs("vtkmodules.util.numpy_support")
    points = core.vtkPoints()
    for place in [*np.eye(3).tolist(), [0, 0, 0], [1, 1, 1]]:
        points.InsertNextPoint(place)
    mesh = model.vtkUnstructuredGrid()
    mesh.SetPoints(points)
    for ids in ([0, 1, 2, 3], [0, 1, 2, 4]):
        tetra = model.vtkTetra()
        for number, one in enumerate(ids):
            tetra.GetPointIds().SetId(number, one)
        mesh.InsertNextCell(tetra.GetCellType(), tetra.GetPointIds())
    for data, values, name in (
        (mesh.GetPointData(), np.arange(15.0).reshape(5, 3), "velocity"),
        (mesh.GetCellData(), np.array([1.5, 2.5], "f4"), "pressure"),
    ):
        array = support.numpy_to_vtk(values, deep=True)
        array.SetName(name)
        data.AddArray(array)
    path = tmp_path / f"mesh{kind}"
    writer = xml.vtkXMLUnstructuredGridWriter() if kind == ".vtu" else None
    writer = writer or legacy.vtkUnstructuredGridWriter()
    writer.SetFileName(str(path))
    writer.SetInputData(mesh)
    writer.Write()
    return path


@pytest.mark.parametrize("kind", [".vtu", ".vtk"])
def test_vtk_grids(tmp_path: Path, kind: str) -> None:
    with VtkReader().open(grid(tmp_path, kind)) as source:
        found = {i.name: source.read(i.name, 0, i.element_count) for i in source.variables}
        shapes = {info.name: info.shape for info in source.variables}
    assert found["point_data/velocity"].tolist() == list(range(15))
    assert shapes["point_data/velocity"] == (5, 3)
    assert found["cell_data/pressure"].tolist() == [1.5, 2.5]
    assert found["cells/connectivity"].tolist() == [0, 1, 2, 3, 0, 1, 2, 4]
    assert found["cells/types"].tolist() == [10, 10]
    assert shapes["points"] == (5, 3)


def test_truncated_vtk_is_refused(tmp_path: Path) -> None:
    for kind in (".vtu", ".vtk"):
        path = grid(tmp_path, kind)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(CiwrapError) as caught:
            VtkReader().open(path)
        assert str(caught.value).isprintable()


def written(path: Path, item: Any, writer: str) -> dict[str, Any]:
    """What a reader tells of a data object that VTK has written."""
    one = getattr(needs("vtkmodules.vtkIOXML"), writer)()
    one.SetFileName(str(path))
    one.SetInputData(item)
    one.Write()
    with VtkReader().open(path) as source:
        return {
            info.name: (info.shape, source.read(info.name, 0, info.element_count).tolist())
            for info in source.variables
        }


def test_a_turned_image_is_another_one(tmp_path: Path) -> None:
    model = needs("vtkmodules.vtkCommonDataModel")
    found = []
    for turn in ((1, 0, 0, 0, 1, 0, 0, 0, 1), (1, 0, 0, 0, 0, -1, 0, 1, 0)):
        image = model.vtkImageData()
        image.SetDimensions(2, 2, 2)
        image.SetDirectionMatrix(*turn)
        found.append(written(tmp_path / "x.vti", image, "vtkXMLImageDataWriter"))
    assert "direction" not in found[0]
    assert found[1].pop("direction") == ((3, 3), [1, 0, 0, 0, 0, -1, 0, 1, 0])
    assert found[0] == found[1]


def test_points_of_a_grid_that_lie_otherwise(tmp_path: Path) -> None:
    model, core = needs("vtkmodules.vtkCommonDataModel"), needs("vtkmodules.vtkCommonCore")
    found = []
    for lengths in ((2, 6, 1), (3, 4, 1)):
        points = core.vtkPoints()
        for number in range(12):
            points.InsertNextPoint(number, 0, 0)
        grid = model.vtkStructuredGrid()
        grid.SetDimensions(*lengths)
        grid.SetPoints(points)
        found.append(written(tmp_path / "x.vts", grid, "vtkXMLStructuredGridWriter"))
    assert [one["extent"][1] for one in found] == [[0, 1, 0, 5, 0, 0], [0, 2, 0, 3, 0, 0]]


def test_faces_of_polyhedra(tmp_path: Path) -> None:
    model, core = needs("vtkmodules.vtkCommonDataModel"), needs("vtkmodules.vtkCommonCore")
    points = core.vtkPoints()
    for corner in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)):
        points.InsertNextPoint(*corner)
    for faces in (
        [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]],
        [[0, 2, 1], [0, 1, 3], [0, 2, 3], [1, 2, 3]],
    ):
        stream = [len(faces), *(number for face in faces for number in (len(face), *face))]
        ids = core.vtkIdList()
        for number in stream:
            ids.InsertNextId(number)
        grid = model.vtkUnstructuredGrid()
        grid.SetPoints(points)
        grid.InsertNextCell(42, ids)
        found = written(tmp_path / "x.vtu", grid, "vtkXMLUnstructuredGridWriter")
        assert found["cells/faces"][1] == stream


@pytest.mark.parametrize("kind", ["DIRECTED_GRAPH", "MULTIBLOCK", "UNKNOWN"])
def test_other_legacy_files_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.vtk"
    path.write_text(f"# vtk DataFile Version 5.1\nx\nASCII\nDATASET {kind}\n")
    with pytest.raises(CiwrapError, match=f"x.vtk: has a line that is not known.*{kind}"):
        VtkReader().open(path)
