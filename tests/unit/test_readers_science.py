"""safetensors, VELOC and DCD, which need no library, through the published suite."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from trajectories import write_dcd

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.safetensors import SafetensorsReader
from ciwrap.formats.trajectories import DcdReader
from ciwrap.formats.veloc import VelocReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

# --- safetensors ----------------------------------------------------------------------------------

SAFE = {
    "|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<i2": "I16", "<u2": "U16", "<i4": "I32",
    "<u4": "U32", "<i8": "I64", "<u8": "U64", "<f2": "F16", "<f4": "F32", "<f8": "F64",
    "<c8": "C64",
}  # fmt: skip


class TestSafetensors(ReaderSuite):
    suffix = ".safetensors"
    dtypes = tuple(SAFE)

    def make_reader(self) -> Reader:
        return SafetensorsReader()

    def write(self, path: Path, variables: Arrays) -> None:
        header, at = {}, 0
        for name, array in variables.items():
            header[name] = {
                "dtype": SAFE[array.dtype.str],
                "shape": list(array.shape),
                "data_offsets": [at, at + array.nbytes],
            }
            at += array.nbytes
        text = json.dumps({**header, "__metadata__": {"made": "today"}}).encode()
        data = b"".join(array.tobytes() for array in variables.values())
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def safe(path: Path, header: Any, data: bytes = b"") -> Path:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize(
    ("header", "data", "words"),
    [
        ({"x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}, b"8" * 8, "offsets"),
        ({"x": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}, b"8" * 16, "gap"),
        ({"x": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}}, b"8" * 8, "described"),
        ({"x": {"dtype": "F64", "shape": [True], "data_offsets": [0, 8]}}, b"8" * 8, "described"),
        ({"x": 3}, b"", "described"),
        ("[1]", b"", "not a mapping"),
        ('{"x": 1, "x": 2}', b"", "twice"),
        ("[" * 100_000, b"", "not JSON"),
    ],
)
def test_hostile_safetensors(tmp_path: Path, header: Any, data: bytes, words: str) -> None:
    path = safe(tmp_path / "x.safetensors", header, data)
    with pytest.raises(CorruptFileError, match=words):
        SafetensorsReader().open(path)


def test_a_type_of_safetensors_that_is_not_compared(tmp_path: Path) -> None:
    header = {"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}
    with SafetensorsReader().open(safe(tmp_path / "x.safetensors", header, b"ab")) as source:
        assert "F8_E4M3" in str(source.variables[0].fault)


# --- VELOC ----------------------------------------------------------------------------------------


class TestVeloc(ReaderSuite):
    suffix = ".veloc"

    def make_reader(self) -> Reader:
        return VelocReader()

    def write(self, path: Path, variables: Arrays) -> None:
        data = struct.pack("<Q", len(variables))
        for number, array in enumerate(variables.values()):
            data += struct.pack("<iQ", number, array.nbytes)
        path.write_bytes(data + b"".join(array.tobytes() for array in variables.values()))

    def options(self, variables: Arrays) -> Mapping[str, Any]:
        return {
            "regions": {
                str(number): {
                    "name": name,
                    "dtype": array.dtype.str.replace("|", ""),
                    "shape": list(array.shape),
                }
                for number, (name, array) in enumerate(variables.items())
            }
        }


def test_veloc_regions_without_a_dtype(tmp_path: Path) -> None:
    path = tmp_path / "heat-0-10.dat"
    path.write_bytes(struct.pack("<QiQiQ", 2, 7, 16, -3, 4) + np.arange(2.0).tobytes() + b"abcd")
    with VelocReader().open(path, options={"regions": {"7": "float64"}}) as source:
        first, second = source.variables
        assert (first.name, first.shape) == ("region_7", (2,))
        assert source.read("region_7", 0, 2).tolist() == [0, 1]
        assert second.name == "region_-3"
        assert "nothing says which dtype" in str(second.fault)


# --- DCD ------------------------------------------------------------------------------------------


class TestDcd(ReaderSuite):
    suffix = ".dcd"
    dtypes = ("<f4",)
    shapes = ((7, 3), (1, 3), (1000, 3))
    order: ClassVar[str] = "<"

    def make_reader(self) -> Reader:
        return DcdReader()

    def example(self, folder: Path) -> tuple[Path, Arrays]:
        path = folder / "example.dcd"
        arrays = self.variables(self.dtypes[0], (7, 3))
        self.write(path, arrays)
        return path, arrays

    def write(self, path: Path, variables: Arrays) -> None:
        write_dcd(path, variables["data"][None], order=self.order, cell=False)

    def expected(self, variables: Arrays) -> Arrays:
        return {"positions[0]": variables["data"]}

    def test_several_variables(self, tmp_path: Path) -> None:
        frames = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("<f4")
        path = write_dcd(tmp_path / "x.dcd", frames, order=self.order, first=20)
        with DcdReader().open(path) as source:
            assert [info.iteration for info in source.variables] == [20, 20, 30, 30, 40, 40, 50, 50]
            assert [info.called for info in source.variables[:2]] == ["unit_cell", "positions"]
            for number in range(4):
                found = source.read(f"positions[{number}]", 0, 15)
                assert found.tolist() == frames[number].reshape(-1).tolist()
                assert source.read(f"unit_cell[{number}]", 1, 3).tolist() == [1, 2, 3]
            region = source.variables[2].region
            assert region is not None
            raw = path.read_bytes()[region.offset : region.offset + region.byte_count]
            assert np.frombuffer(raw, f"{self.order}f8").tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("behind", [False, True])
def test_a_damaged_mark_of_a_unit_cell(tmp_path: Path, behind: bool) -> None:
    path = write_dcd(tmp_path / "x.dcd", np.zeros((2, 5, 3), "<f4"))
    with DcdReader().open(path) as source:
        region = source.variables[2].region
    assert region is not None
    data = bytearray(path.read_bytes())
    data[region.offset + (region.byte_count if behind else -4)] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match=r"record 1 is .* by the mark at byte"):
        DcdReader().open(path)


class TestDcdBigEndian(TestDcd):
    order = ">"
    dtypes = (">f4",)
