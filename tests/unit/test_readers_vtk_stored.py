"""Arrays of VTK's XML files as VTK stores them: nothing of them is left unread.

In one test VTK writes them, of the extra `formats-test`: pip install '.[test,formats-test]'
"""

from __future__ import annotations

import struct
import sys
import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from optional_libraries import needs

from ciwrap.base.errors import CorruptFileError, ReaderPluginError
from ciwrap.formats.vtk import VtkReader

if TYPE_CHECKING:
    from pathlib import Path

FILE = """<VTKFile type="UnstructuredGrid" byte_order="BigEndian" header_type="UInt64" {packer}>
<UnstructuredGrid><FieldData>{field}</FieldData>
<Piece NumberOfPoints="4" NumberOfCells="1"><PointData>{points_data}</PointData>
<Points>{points}</Points><Cells>{cells}</Cells></Piece></UnstructuredGrid>{appended}</VTKFile>"""
KINDS = {">f8": "Float64", ">i8": "Int64", "|u1": "UInt8"}
PACKER = 'compressor="vtkZLibDataCompressor"'
WAYS = ("inline", "packed inline", "base64", "packed base64", "raw", "packed raw")


def stored(data: bytes, *, packed: bool, as_text: bool) -> bytes:
    encode = b64encode if as_text else bytes
    if not packed:
        return encode(struct.pack(">Q", len(data)) + data)
    half = 8 * max(1, len(data) // 16)
    parts = [data[at : at + half] for at in range(0, len(data), half)]
    blocks = [zlib.compress(part) for part in parts]
    last = len(parts[-1]) % half
    head = struct.pack(f">{3 + len(parts)}Q", len(parts), half, last, *map(len, blocks))
    return encode(head) + encode(b"".join(blocks))


def grid(path: Path, way: str, more: dict[str, float]) -> Path:
    """A tetrahedron; more: a number behind the last of an array."""
    arrays = {
        "t": np.array([0.5], ">f8"),
        "p": np.arange(4, dtype=">f8"),
        "points": np.arange(12, dtype=">f8"),
        "connectivity": np.arange(4, dtype=">i8"),
        "offsets": np.array([4], ">i8"),
        "types": np.array([10], "|u1"),
    }
    facts = {"t": "NumberOfTuples='1'", "points": "NumberOfComponents='3'"}
    appended, tags = b"", {}
    for name, values in arrays.items():
        whole = np.append(values, more[name]).astype(values.dtype) if name in more else values
        data = stored(whole.tobytes(), packed="packed" in way, as_text="raw" not in way)
        tag = f'<DataArray type="{KINDS[values.dtype.str]}" Name="{name}" {facts.get(name, "")} '
        if "inline" in way:
            tags[name] = f'{tag} format="binary">{data.decode()}</DataArray>'
        else:
            tags[name] = f'{tag} format="appended" offset="{len(appended)}"/>'
            appended += data
    end = b""
    if appended:
        how = b"raw" if "raw" in way else b"base64"
        end = b'<AppendedData encoding="' + how + b'">_' + appended + b"</AppendedData>"
    text = FILE.format(
        packer=PACKER if "packed" in way else "",
        field=tags["t"],
        points_data=tags["p"],
        points=tags["points"],
        cells=tags["connectivity"] + tags["offsets"] + tags["types"],
        appended="@",
    )
    path.write_bytes(text.encode().replace(b"@", end))
    return path


def values(path: Path) -> dict[str, Any]:
    with VtkReader().open(path) as source:
        return {
            info.name: info.fault or source.read(info.name, 0, info.element_count).tolist()
            for info in source.variables
        }


@pytest.mark.parametrize("way", WAYS)
def test_numbers_behind_the_last_one_are_refused(tmp_path: Path, way: str) -> None:
    found = values(grid(tmp_path / "right.vtu", way, {}))
    assert found["point_data/p"] == [0, 1, 2, 3]
    assert found["cells/connectivity"] == [0, 1, 2, 3]
    for name in ("t", "p", "points", "connectivity", "offsets", "types"):
        words = rf"{name}: holds \d+ bytes where|has cells that end at"
        with pytest.raises(CorruptFileError, match=words):
            values(grid(tmp_path / "more.vtu", way, {name: 7}))


@pytest.mark.parametrize("packer", ["None", "ZLib", "LZ4", "LZMA"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_what_vtk_writes_is_read(tmp_path: Path, packer: str, pieces: int) -> None:
    needs("vtkmodules")
    from vtkmodules.vtkCommonCore import vtkBitArray, vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkUnstructuredGrid
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridWriter

    model, points, bits = vtkUnstructuredGrid(), vtkPoints(), vtkBitArray()
    bits.SetName("bits")
    for number in range(30):
        points.InsertNextPoint(number, number**2, 1 / (1 + number))
        bits.InsertNextValue(number % 2)
    model.SetPoints(points)
    for number in range(20):
        model.InsertNextCell(10, 4, [number, number + 1, number + 2, number + 3])
    model.GetPointData().AddArray(bits)
    writer = vtkXMLUnstructuredGridWriter()
    writer.SetInputData(model)
    writer.SetFileName(str(tmp_path / "x.vtu"))
    writer.SetBlockSize(64)
    writer.SetNumberOfPieces(pieces)
    getattr(writer, f"SetCompressorTypeTo{packer}")()
    for mode in ("Ascii", "Binary", "Appended"):
        getattr(writer, f"SetDataModeTo{mode}")()
        for order in ("LittleEndian", "BigEndian"):
            getattr(writer, f"SetByteOrderTo{order}")()
            assert writer.Write()
            found = values(tmp_path / "x.vtu")["cells/connectivity"]
            assert len(found) == 80 * pieces  # VTK writes all of them into each


@pytest.mark.parametrize("before", ["<Cells>", "</Points>", "</FieldData>", "<Piece", "</Piece>"])
def test_an_array_where_none_is_known_is_refused(tmp_path: Path, before: str) -> None:
    path = grid(tmp_path / "x.vtu", "inline", {})
    array = '<DataArray type="Float64" Name="z" NumberOfTuples="1" format="ascii">2</DataArray>'
    text = path.read_text()
    path.write_text(text.replace(before, before + array if before == "<Cells>" else array + before))
    if before == "</FieldData>":
        assert values(path)["field_data/z"] == [2]
    else:
        with pytest.raises(CorruptFileError, match=r"not known|one array"):
            values(path)


@pytest.mark.parametrize("called", [b"vtkStringArray", b"__loader__", b""])
def test_nothing_but_a_compressor_is_called_by_the_name_that_a_file_gives(
    tmp_path: Path, called: bytes
) -> None:
    path = grid(tmp_path / "x.vtu", "packed inline", {})
    path.write_bytes(path.read_bytes().replace(b"vtkZLibDataCompressor", called))
    with pytest.raises(CorruptFileError):
        values(path)


def test_what_is_packed_by_lz4_needs_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    path = grid(tmp_path / "x.vtu", "packed inline", {})
    path.write_bytes(path.read_bytes().replace(b"vtkZLibData", b"vtkLZ4Data"))
    with pytest.raises(ReaderPluginError, match=r"read with lz4, .*; pip install lz4"):
        values(path)


def test_ends_of_a_type_that_there_is_not(tmp_path: Path) -> None:
    path = grid(tmp_path / "x.vtu", "inline", {})
    data = path.read_bytes().replace(b'Int64" Name="offsets"', b'Int128" Name="offsets"')
    assert b"Int128" in data
    path.write_bytes(data)
    with pytest.raises(CorruptFileError):
        values(path)
