"""VTK's XML and legacy files, and XDMF.

VTK is in the extra `formats-test`: pip install '.[test,formats-test]'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from optional_libraries import needs
from vtk_xml import STEP, XDMF

from ciwrap.errors import CiwrapError
from ciwrap.readers.layout import find_outputs
from ciwrap.readers.vtk import VtkReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.readers import Reader
    from ciwrap.testing.reader_suite import Arrays

needs("vtkmodules")


class TestVti(ReaderSuite):
    suffix = ".vti"
    dtypes = ("<f8", "<f4", "<i4", "<i8", "|u1")
    shapes = ((24,),)
    fuzz_examples = 60
    slowly = 31
    fixed_size = False
    compressed: ClassVar[bool] = True

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("vtkmodules.vtkIOXML")

    def make_reader(self) -> Reader:
        return VtkReader()

    def write(self, path: Path, variables: Arrays) -> None:
        model, xml = needs("vtkmodules.vtkCommonDataModel"), needs("vtkmodules.vtkIOXML")
        support = needs("vtkmodules.util.numpy_support")
        image = model.vtkImageData()
        image.SetDimensions(4, 3, 2)
        for name, array in variables.items():
            one = support.numpy_to_vtk(array, deep=True)
            one.SetName(name)
            image.GetPointData().AddArray(one)
        writer = xml.vtkXMLImageDataWriter()
        writer.SetFileName(str(path))
        writer.SetInputData(image)
        if not self.compressed:
            writer.SetCompressorTypeToNone()
            writer.EncodeAppendedDataOff()
        writer.Write()

    def expected(self, variables: Arrays) -> Arrays:
        return {
            **{f"point_data/{name}": array for name, array in variables.items()},
            "origin": np.zeros(3),
            "spacing": np.ones(3),
            "extent": np.array([0, 3, 0, 2, 0, 1]),
        }


class TestVtiPlain(TestVti):
    compressed = False


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


def test_xdmf_with_time_steps(tmp_path: Path) -> None:
    needs("vtkmodules.vtkIOXdmf2")
    import h5py

    with h5py.File(tmp_path / "heavy.h5", "w") as file:
        for number in range(3):
            file[f"p{number}"] = np.arange(12.0).reshape(3, 4) + number
    steps = "".join(STEP.format(time=number / 2, n=number) for number in range(3))
    path = tmp_path / "run.xdmf"
    path.write_text(XDMF.format(steps=steps))
    with VtkReader().open(path) as source:
        places = [(i.called, i.iteration) for i in source.variables if i.called == "point_data/p"]
        assert places == [("point_data/p", n) for n in range(3)]
        assert source.read("point_data/p[2]", 0, 12).tolist() == list(range(2, 14))
        assert [source.read(f"time[{n}]", 0, 1).item() for n in range(3)] == [0.0, 0.5, 1.0]
    # The heavy data belong to it and are not compared once more.
    found = find_outputs(tmp_path, ["."])
    assert [one.path.name for one in found.files] == ["run.xdmf"]


def test_heavy_data_that_nothing_names_are_compared_by_themselves(tmp_path: Path) -> None:
    """No other file would tell of them."""
    needs("vtkmodules.vtkIOXdmf2")
    import h5py

    for name in ("heavy.h5", "results.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["p0"] = file["q"] = np.arange(12.0).reshape(3, 4)
    text = XDMF.format(steps=STEP.format(time=0, n=0))
    path = tmp_path / "run.xdmf"

    def listed() -> list[str]:
        return [one.path.name for one in find_outputs(tmp_path, ["."]).files]

    path.write_text(text.replace("<Xdmf ", "<!-- results.h5:/p0 results.h5:/q --><Xdmf "))
    assert listed() == ["heavy.h5", "results.h5", "run.xdmf"]
    with h5py.File(tmp_path / "heavy.h5", "r+") as file:
        del file["q"]
    assert listed() == ["results.h5", "run.xdmf"]
    path.write_text(text.replace("<Attribute", "<!-- --><Attribute ItemType='HyperSlab'"))
    assert listed() == ["heavy.h5", "results.h5", "run.xdmf"]
    (tmp_path / "heavy.h5").write_bytes(b"damaged")
    path.write_text(text)
    assert listed() == ["heavy.h5", "results.h5", "run.xdmf"]


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


def test_a_graph_is_not_compared(tmp_path: Path) -> None:
    """Its edges are in none of its arrays."""
    model, legacy = needs("vtkmodules.vtkCommonDataModel"), needs("vtkmodules.vtkIOLegacy")
    graph = model.vtkMutableDirectedGraph()
    for _ in range(3):
        graph.AddVertex()
    graph.AddEdge(0, 1)
    writer = legacy.vtkGraphWriter()
    writer.SetFileName(str(tmp_path / "x.vtk"))
    writer.SetInputData(graph)
    writer.Write()
    with VtkReader().open(tmp_path / "x.vtk") as source:
        faults = [info.fault for info in source.variables if info.name == "geometry"]
    assert faults == ["is a vtkDirectedGraph, which is not compared"]
