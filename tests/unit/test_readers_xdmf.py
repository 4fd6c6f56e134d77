"""XDMF, through the published suite and as dolfinx, FEniCS and meshio write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.find_outputs import find_in, reader_named
from ciwrap.formats.look import survey
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

KINDS = {"f": "Float", "i": "Int", "u": "UInt"}
GRID = '<Xdmf Version="3.0"><Domain><Grid Name="g">{}</Grid></Domain></Xdmf>\n'


def item(values: Any, form: str, text: str) -> str:
    kind = f'NumberType="{KINDS[values.dtype.kind]}" Precision="{values.dtype.itemsize}"'
    order = "Big" if values.dtype.str[0] == ">" else "Little"
    shape = " ".join(map(str, values.shape))
    says = f'Dimensions="{shape}" Format="{form}" Endian="{order}" {kind}'
    return f"<DataItem {says}>{text}</DataItem>"


class TestInline(ReaderSuite):
    suffix = ".xdmf"
    dtypes: tuple[str, ...] = ("<f8", "<i8")
    shapes = ((1,), (7, 3), (300, 1))
    slowly = 7
    form = "XML"

    def make_reader(self) -> Reader:
        return reader_named("xdmf")

    def data(self, path: Path, name: str, array: Any) -> str:
        """What an item says where its data are, once they are there."""
        return " ".join(map(repr, array.reshape(-1).tolist()))

    def write(self, path: Path, variables: Arrays) -> None:
        text = "".join(
            f'<Attribute Name="{name}" Center="Cell">'
            f"{item(array, self.form, self.data(path, name, array))}</Attribute>"
            for name, array in variables.items()
        )
        path.write_text(GRID.format(text).rstrip())

    def expected(self, variables: Arrays) -> Arrays:
        return {f"cell_data/{name}": array for name, array in variables.items()}


class TestHdf5(TestInline):
    dtypes = ("<f8", "<f4", ">f4", "<i4", "<u8")
    form = "HDF"
    fuzz_examples = 60

    def data(self, path: Path, name: str, array: Any) -> str:
        heavy = path.with_suffix(".h5")
        with h5py.File(heavy, "a") as file:
            if name in file:
                del file[name]
            file[name] = array
        return f"{heavy.name}:/{name}"

    def write(self, path: Path, variables: Arrays) -> None:
        path.with_suffix(".h5").unlink(missing_ok=True)
        super().write(path, variables)


class TestBinary(TestInline):
    dtypes = ("<f8", "<f4", ">f4", "<i4", "<u8")
    form = "Binary"

    def data(self, path: Path, name: str, array: Any) -> str:
        heavy = path.with_suffix(f".{name}.bin")
        heavy.write_bytes(array.tobytes())
        return heavy.name


# As dolfinx 0.5 writes a mesh and two functions of time, with fewer numbers.
DOLFINX = """\
<?xml version="1.0"?>
<!DOCTYPE Xdmf SYSTEM "Xdmf.dtd" []>
<Xdmf Version="3.0" xmlns:xi="http://www.w3.org/2001/XInclude">
  <Domain>
    <Grid Name="mesh" GridType="Uniform">
      <Topology TopologyType="Triangle" NumberOfElements="1" NodesPerElement="3">
        <DataItem Dimensions="1 3" NumberType="Int" Format="HDF">u.h5:/Mesh/mesh/topology</DataItem>
      </Topology>
      <Geometry GeometryType="XY">
        <DataItem Dimensions="3 2" Format="HDF">u.h5:/Mesh/mesh/geometry</DataItem>
      </Geometry>
    </Grid>
    <Grid Name="u" GridType="Collection" CollectionType="Temporal">
      <Grid Name="u" GridType="Uniform">
        <xi:include xpointer="xpointer(/Xdmf/Domain/Grid[@GridType='Uniform'][1]/*)" />
        <Time Value="0" />
        <Attribute Name="u" AttributeType="Scalar" Center="Node">
          <DataItem Dimensions="3 1" Format="HDF">u.h5:/Function/u/0</DataItem>
        </Attribute>
      </Grid>
      <Grid Name="u" GridType="Uniform">
        <xi:include xpointer="xpointer(/Xdmf/Domain/Grid[@GridType='Uniform'][1]/*)" />
        <Time Value="0.5" />
        <Attribute Name="u" AttributeType="Scalar" Center="Node">
          <DataItem Dimensions="3 1" Format="HDF">u.h5:/Function/u/0_5</DataItem>
        </Attribute>
      </Grid>
    </Grid>
  </Domain>
</Xdmf>
"""
SPATIAL = """\
<Xdmf><Domain><Grid Name="all" GridType="Collection" CollectionType="Spatial">
<Grid><Topology TopologyType="3DCoRectMesh" Dimensions="2 2 3"/>
<Geometry GeometryType="ORIGIN_DXDYDZ"><DataItem Dimensions="3">0 0 0</DataItem>
<DataItem Dimensions="3">1 1 0.5</DataItem></Geometry>
<Attribute Name="p"><DataItem Dimensions="2">1.5 2</DataItem></Attribute></Grid>
<Grid><Attribute Name="p" Center="Grid"><DataItem Dimensions="1">7</DataItem></Attribute></Grid>
</Grid></Domain></Xdmf>
"""


def write_run(folder: Path, late: float = 2.5) -> Path:
    folder.mkdir()
    with h5py.File(folder / "u.h5", "w") as file:
        file["Mesh/mesh/topology"] = np.array([[0, 1, 2]])
        file["Mesh/mesh/geometry"] = np.arange(6.0).reshape(3, 2)
        file["Function/u/0"] = np.arange(3.0).reshape(3, 1)
        file["Function/u/0_5"] = np.array([[0.5], [1.5], [late]])
        file["beside"] = np.array([9.0])
    (folder / "u.xdmf").write_text(DOLFINX)
    return folder / "u.xdmf"


def test_a_run_of_dolfinx(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    found = {name: (one[1], one[3]) for name, one in told(path).items()}
    assert found == {
        "mesh/cells": ((1, 3), [0, 1, 2]),
        "mesh/points": ((3, 2), [0, 1, 2, 3, 4, 5]),
        "u/time[0]": ((), [0]),
        "u/point_data/u[0]": ((3, 1), [0, 1, 2]),
        "u/time[1]": ((), [0.5]),
        "u/point_data/u[1]": ((3, 1), [0.5, 1.5, 2.5]),
        "u.h5/beside": ((1,), [9]),
    }
    with reader_named("xdmf").open(path) as source:
        places = {(one.called, one.iteration) for one in source.variables}
    assert {("u/point_data/u", 0), ("u/point_data/u", 1), (None, None)} <= places
    with reader_named("xdmf").open(path, options={"iterations": "none"}) as source:
        assert {one.iteration for one in source.variables} == {None}


def test_the_files_with_the_data_belong_to_it(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    assert [one.path.name for one in find_in(path.parent).files] == ["u.xdmf"]
    assert [one.path.name for one in survey(path.parent).candidates] == ["u.xdmf"]
    path.write_text("<Xdmf>")  # then they are compared by themselves
    assert [one.path.name for one in find_in(path.parent).files] == ["u.h5", "u.xdmf"]


def test_grids_in_space_and_regular_meshes(tmp_path: Path) -> None:
    path = tmp_path / "t.xmf"
    path.write_text(SPATIAL)
    assert {name: (one[2], one[3]) for name, one in told(path).items()} == {
        "0/cells": ((("type", "3DCoRectMesh"),), [2, 2, 3]),
        "0/points/0": ((("type", "ORIGIN_DXDYDZ"),), [0, 0, 0]),
        "0/points/1": ((("type", "ORIGIN_DXDYDZ"),), [1, 1, 0.5]),
        "0/point_data/p": ((), [1.5, 2]),
        "1/grid_data/p": ((), [7]),
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("u/0_5", "u/0_6", r"u\[?.*'Function/u/0_6', which u.h5 lacks"),
        ("u.h5:/Function/u/0<", "v.h5:/Function/u/0<", "v.h5: .*does not exist"),
        ('"3 1"', '"4 1"', r"has 3 values, where \(4, 1\) are described"),
        ("</Domain>", "", "is not complete XML"),
        ("Xdmf", "VTKFile", "XML of another kind: 'VTKFile'"),
        ("<Grid", "<Domains", "is not complete XML"),
        ('<Time Value="0" />', '<Time TimeType="List"/>', "holds a 'Time' that is not read"),
        ('<Time Value="0" />', "<Set/>", "holds a 'Set' that is not read"),
        ("xpointer=", 'href="a.xdmf" xpointer=', "include' that is not read"),
        ('Format="HDF">u.h5:/Function', 'Format="TIFF">u.h5:/Function', "in the format 'TIFF'"),
        ("<DataItem", '<DataItem ItemType="HyperSlab"', "a DataItem made of others"),
        (
            '"Uniform">\n        <xi',
            '"Collection" CollectionType="Temporal"><xi',
            "within a history",
        ),
    ],
)
def test_what_does_not_follow_the_format(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_run(tmp_path / "run")
    assert old in DOLFINX
    path.write_text(DOLFINX.replace(old, new))
    with pytest.raises(CiwrapError, match=message):
        told(path)
