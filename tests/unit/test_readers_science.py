"""safetensors, VELOC, DCD, Parquet, GROMACS, FITS, VTK and ADIOS2 through the published suite.

Those that need a large library are skipped where it is missing: see CONTRIBUTING.md for the
environment that has them all.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from ciwrap.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.readers.dcd import DcdReader
from ciwrap.readers.gromacs import GromacsReader
from ciwrap.readers.parquet import ParquetReader
from ciwrap.readers.safetensors import SafetensorsReader
from ciwrap.readers.veloc import VelocReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.readers import Reader
    from ciwrap.testing.reader_suite import Arrays

HEAVY = "in the extra formats-test only"


def needs(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is {HEAVY}")


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


def test_safetensors_as_its_own_library_writes_them(tmp_path: Path) -> None:
    numpy = needs("safetensors.numpy")
    arrays = {"w": np.arange(12, dtype="<f4").reshape(3, 4), "b": np.ones(3, "<f8")}
    numpy.save_file(arrays, str(tmp_path / "x.safetensors"))
    with SafetensorsReader().open(tmp_path / "x.safetensors") as source:
        for info in source.variables:
            found = source.read(info.name, 0, info.element_count).reshape(info.shape)
            assert np.array_equal(found, arrays[info.name])
        assert {info.name for info in source.variables} == set(arrays)


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
        ("[1]", b"", "no mapping"),
        ('{"x": 1, "x": 2}', b"", "twice"),
        ("[" * 100_000, b"", "no JSON"),
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


def dcd(path: Path, frames: Any, *, order: str = "<", cell: bool = True, first: int = 0) -> Path:
    """A trajectory as CHARMM lays it out."""

    def record(data: bytes) -> bytes:
        mark = struct.pack(f"{order}i", len(data))
        return mark + data + mark

    control = [len(frames), first, 10, *([0] * 7), int(cell), *([0] * 8), 24]
    data = record(b"CORD" + struct.pack(f"{order}20i", *control))
    data += record(struct.pack(f"{order}i", 1) + b"made by a test".ljust(80))
    data += record(struct.pack(f"{order}i", frames.shape[1]))
    for frame in frames:
        if cell:
            data += record(np.arange(6, dtype=f"{order}f8").tobytes())
        for axis in range(3):
            data += record(frame[:, axis].astype(f"{order}f4").tobytes())
    path.write_bytes(data)
    return path


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
        dcd(path, variables["data"][None], order=self.order, cell=False)

    def expected(self, variables: Arrays) -> Arrays:
        return {"positions[0]": variables["data"]}

    def test_several_variables(self, tmp_path: Path) -> None:
        frames = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("<f4")
        path = dcd(tmp_path / "x.dcd", frames, order=self.order, first=20)
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


class TestDcdBigEndian(TestDcd):
    order = ">"
    dtypes = (">f4",)


def test_dcd_as_others_write_it(tmp_path: Path) -> None:
    module = needs("MDAnalysis.lib.formats.libdcd")
    frames = np.random.default_rng(0).normal(size=(3, 9, 3)).astype("<f4")
    path = tmp_path / "x.dcd"
    with module.DCDFile(str(path), "w") as file:
        file.write_header(remarks="x", natoms=9, istart=5, nsavc=15, delta=0.002, is_periodic=1)
        for frame in frames:
            file.write(frame, [10, 10, 10, 90, 90, 90])
    with DcdReader().open(path) as source:
        found = [source.read(f"positions[{n}]", 0, 27).tolist() for n in range(3)]
        assert found == frames.reshape(3, 27).tolist()
        assert source.variables[-1].iteration == 35


# --- Parquet --------------------------------------------------------------------------------------


class TestParquet(ReaderSuite):
    suffix = ".parquet"
    dtypes = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
    shapes = ((0,), (1,), (7,), (1000,), (7, 3))
    keeps_order = True

    def make_reader(self) -> Reader:
        return ParquetReader()

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("pyarrow.parquet")

    def write(self, path: Path, variables: Arrays) -> None:
        arrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
        columns = {
            name: arrow.FixedSizeListArray.from_arrays(arrow.array(array.reshape(-1)), 3)
            if array.ndim == 2
            else arrow.array(array)
            for name, array in variables.items()
        }
        parquet.write_table(arrow.table(columns), path, row_group_size=300)


def test_parquet_nulls_texts_and_times(tmp_path: Path) -> None:
    arrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = arrow.table(
        {
            "x": arrow.array([1.0, None, float("nan"), 4.0]),
            "n": arrow.array([1, 2, None, 4]),
            "name": arrow.array(["a", None, "ccc", "dd"]),
            "kind": arrow.array(["a", "b", "a", "b"]).dictionary_encode(),
            "when": arrow.array([1, 2, 3, 4], arrow.timestamp("us")),
            "list": arrow.array([[1], [2, 3], [], [4]]),
        }
    )
    parquet.write_table(table, path, row_group_size=2)
    with ParquetReader().open(path) as source:
        faults = {info.name for info in source.variables if info.fault is not None}
        found = {
            info.name: source.read(info.name, 0, 4).tolist()
            for info in source.variables
            if info.name not in faults
        }
    assert faults == {"list"}
    assert found["x.is_null"] == [False, True, False, False]
    assert found["x"][0::3] == [1, 4]
    assert np.isnan(found["x"][2])
    assert found["x"][1] == 0
    assert found["n"] == [1, 2, 0, 4]
    assert found["n.is_null"] == [False, False, True, False]
    assert found["name"] == ["a", "", "ccc", "dd"]
    assert found["kind"] == ["a", "b", "a", "b"]
    assert found["when"] == [1, 2, 3, 4]


# --- GROMACS --------------------------------------------------------------------------------------


class GromacsSuite(ReaderSuite):
    dtypes = ("<f4",)
    shapes = ((7, 3), (1, 3), (1000, 3))
    fuzz_examples = 60
    slowly = 7
    test_several_variables = None  # type: ignore[assignment]

    def make_reader(self) -> Reader:
        return GromacsReader()

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("MDAnalysis.lib.formats.libmdaxdr")

    def example(self, folder: Path) -> tuple[Path, Arrays]:
        path = folder / f"example{self.suffix}"
        arrays = self.variables("<f4", (7, 3))
        self.write(path, arrays)
        return path, arrays

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        draw = np.random.default_rng(1)
        return {"data": draw.integers(-900, 900, shape).astype(dtype) / np.float32(8)}


class TestTrr(GromacsSuite):
    suffix = ".trr"

    def write(self, path: Path, variables: Arrays) -> None:
        module = needs("MDAnalysis.lib.formats.libmdaxdr")
        x = variables["data"]
        with module.TRRFile(str(path), "w") as file:
            for step in (0, 50):
                file.write(x, -x, None, np.eye(3, dtype="f4"), step, step * 0.5, 0, len(x))

    def expected(self, variables: Arrays) -> Arrays:
        x, found = variables["data"], {}
        for number, step in enumerate((0, 50)):
            found[f"positions[{number}]"] = x
            found[f"velocities[{number}]"] = -x
            found[f"box[{number}]"] = np.eye(3, dtype="f4")
            found[f"time[{number}]"] = np.array(step * 0.5)
        return found

    def test_steps(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        with self.open(path, arrays) as source:
            assert {info.iteration for info in source.variables} == {0, 50}
            assert source.variables[0].called == "positions"

    def test_double_precision_is_refused(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        data = bytearray(path.read_bytes())
        data[32:36] = (72).to_bytes(4, "big")
        path.write_bytes(bytes(data))
        with pytest.raises(UnsupportedFormatError, match="double precision"):
            self.open(path, arrays)


class TestXtc(GromacsSuite):
    suffix = ".xtc"

    def write(self, path: Path, variables: Arrays) -> None:
        module = needs("MDAnalysis.lib.formats.libmdaxdr")
        x = variables["data"]
        with module.XTCFile(str(path), "w") as file:
            file.write(x, np.eye(3, dtype="f4"), 10, 1.0, 1000.0)

    def expected(self, variables: Arrays) -> Arrays:
        module = needs("MDAnalysis.lib.formats.libmdaxdr")
        del module
        x = variables["data"]
        return {
            "positions[0]": x,
            "box[0]": np.eye(3, dtype="f4"),
            "time[0]": np.array(1.0),
        }
