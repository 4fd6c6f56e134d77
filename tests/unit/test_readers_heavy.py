"""Parquet, GROMACS, FITS, VTK, XDMF and ADIOS2, whose libraries are large.

They are in the extra `formats-test`: pip install '.[test,formats-test]', then
pytest tests/unit/test_readers_heavy.py
"""

from __future__ import annotations

import random
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from ciwrap.errors import CiwrapError, CorruptFileError, UnsupportedFormatError
from ciwrap.readers import apart
from ciwrap.readers.adios2 import Adios2Reader
from ciwrap.readers.dcd import DcdReader
from ciwrap.readers.fits import FitsReader
from ciwrap.readers.gromacs import GromacsReader
from ciwrap.readers.layout import find_outputs
from ciwrap.readers.parquet import ParquetReader
from ciwrap.readers.safetensors import SafetensorsReader
from ciwrap.readers.vtk import VtkReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.readers import Reader
    from ciwrap.testing.reader_suite import Arrays

HEAVY = "the extra formats-test is not installed"


def needs(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=HEAVY)


for library in ("pyarrow", "safetensors", "MDAnalysis", "astropy", "vtkmodules", "adios2"):
    needs(library)


# --- what other libraries wrote -------------------------------------------------------------------


def test_safetensors_as_its_own_library_writes_them(tmp_path: Path) -> None:
    numpy = needs("safetensors.numpy")
    arrays = {"w": np.arange(12, dtype="<f4").reshape(3, 4), "b": np.ones(3, "<f8")}
    numpy.save_file(arrays, str(tmp_path / "x.safetensors"))
    with SafetensorsReader().open(tmp_path / "x.safetensors") as source:
        for info in source.variables:
            found = source.read(info.name, 0, info.element_count).reshape(info.shape)
            assert np.array_equal(found, arrays[info.name])
        assert {info.name for info in source.variables} == set(arrays)


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

        with module.XTCFile(str(path)) as file:
            self.decoded = file.read().x
        # Rounded to thousandths; the step back to float32 is each library version's own.
        steps = np.rint(x.astype("f8") * 1000) / 1000
        assert np.abs(self.decoded - steps).max() <= np.spacing(np.float32(1000))

    def expected(self, variables: Arrays) -> Arrays:
        return {
            "positions[0]": self.decoded,
            "box[0]": np.eye(3, dtype="f4"),
            "time[0]": np.array(1.0),
        }


# --- FITS -----------------------------------------------------------------------------------------


class TestFitsImages(ReaderSuite):
    suffix = ".fits"
    dtypes = (">f8", "|u1", ">i2", ">i4", ">i8", ">f4", ">u2", ">u4", ">u8", "|i1")
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4), (1, 1, 1), (5, 1, 7))
    fuzz_examples = 60
    slowly = 401

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("astropy.io.fits")

    def make_reader(self) -> Reader:
        return FitsReader()

    def hdu(self, fits: Any, array: Any, name: str) -> Any:
        return fits.ImageHDU(array, name=name)

    def write(self, path: Path, variables: Arrays) -> None:
        fits = needs("astropy.io.fits")
        hdus = [self.hdu(fits, array, name.upper()) for name, array in variables.items()]
        fits.HDUList([fits.PrimaryHDU(), *hdus]).writeto(path, overwrite=True)

    def expected(self, variables: Arrays) -> Arrays:
        return {name.upper(): array for name, array in variables.items()}

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        return {"data": np.random.default_rng(3).integers(0, 100, shape).astype(dtype)}


class TestFitsTables(TestFitsImages):
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4))
    dtypes = (">f8", "|u1", ">i2", ">i4", ">i8", ">f4", ">u2", ">u4", ">c8", ">c16", "|S5")

    def hdu(self, fits: Any, array: Any, name: str) -> Any:
        record = np.zeros(len(array), [("before", ">i2"), ("x", array.dtype, array.shape[1:])])
        record["x"] = array
        return fits.BinTableHDU(record, name=name)

    def expected(self, variables: Arrays) -> Arrays:
        found: Arrays = {}
        for name, array in variables.items():
            found[f"{name.upper()}.before"] = np.zeros(len(array), ">i2")
            found[f"{name.upper()}.x"] = array
        return found


class TestFitsPackedImages(TestFitsImages):
    dtypes = (">i2", ">i4")
    shapes = ((3, 5), (60, 40))
    fixed_size = False

    def hdu(self, fits: Any, array: Any, name: str) -> Any:
        return fits.CompImageHDU(array, name=name, compression_type="RICE_1")

    def test_several_variables(self, tmp_path: Path) -> None:
        self.check(tmp_path / "x.fits", {"a": self.variables(">i4", (3, 5))["data"]})

    def expected(self, variables: Arrays) -> Arrays:
        return {
            name.upper(): array.astype(array.dtype.newbyteorder(self.order))
            for name, array in variables.items()
        }

    order: ClassVar[str] = "<"


def test_fits_scaled_and_odd_columns(tmp_path: Path) -> None:
    fits = needs("astropy.io.fits")
    path = tmp_path / "x.fits"
    image = fits.ImageHDU(np.arange(6, dtype=">i2").reshape(2, 3), name="SKY")
    image.header["BSCALE"], image.header["BZERO"], image.header["BLANK"] = 0.5, 10.0, 3
    table = fits.BinTableHDU.from_columns(
        [
            fits.Column("flag", "L", array=[True, False]),
            fits.Column("many", "PJ()", array=np.array([[1], [2, 3]], dtype=object)),
        ],
        name="T",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits.HDUList([fits.PrimaryHDU(), image, table]).writeto(path)
    with FitsReader().open(path, options={"attributes": True}) as source:
        found = {info.name: info for info in source.variables}
        assert source.read("SKY", 0, 6)[[0, 1, 5]].tolist() == [10, 10.5, 12.5]
        assert np.isnan(source.read("SKY", 3, 1)[0])
        assert source.read("T.flag", 0, 2).tolist() == [ord("T"), ord("F")]
        assert "format PJ" in str(found["T.many"].fault)
        assert "SKY@BSCALE" in found


# --- VTK ------------------------------------------------------------------------------------------


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


XDMF = """<?xml version="1.0" ?>
<Xdmf Version="2.0"><Domain><Grid GridType="Collection" CollectionType="Temporal">
{steps}
</Grid></Domain></Xdmf>
"""
STEP = """<Grid Name="g"><Time Value="{time}"/>
<Topology TopologyType="2DCoRectMesh" Dimensions="3 4"/>
<Geometry GeometryType="ORIGIN_DXDY"><DataItem Dimensions="2" Format="XML">0 0</DataItem>
<DataItem Dimensions="2" Format="XML">1 1</DataItem></Geometry>
<Attribute Name="p" Center="Node">
<DataItem Dimensions="3 4" NumberType="Float" Precision="8" Format="HDF">heavy.h5:/p{n}</DataItem>
</Attribute></Grid>
"""


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
    # The heavy data belong to it and are not compared once more.
    found = find_outputs(tmp_path, ["."])
    assert [one.path.name for one in found.files] == ["run.xdmf"]


# --- ADIOS2 ---------------------------------------------------------------------------------------


class TestAdios2(ReaderSuite):
    suffix = ".bp"
    dtypes = ("<f8", "<f4", "<i4", "<i8", "|i1", "|u1", "<u2", "<c16")
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4))
    keeps_order = False
    fixed_size = False
    fuzz_examples = 30  # waiting for data takes IDLE_SECONDS each time
    slowly = 301
    engine: ClassVar[str] = "BP5"

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("adios2")

    def make_reader(self) -> Reader:
        return Adios2Reader()

    def write(self, path: Path, variables: Arrays) -> None:
        adios2 = needs("adios2")
        io = adios2.Adios().declare_io("test")
        io.set_engine(self.engine)
        with adios2.Stream(io, str(path), "w") as file:
            for _ in file.steps(2):
                for name, array in variables.items():
                    shape = list(array.shape)
                    file.write(name, array, shape, [0] * len(shape), shape)

    damaged: ClassVar[str] = "data.0"

    def part(self, path: Path) -> Path:
        return path / self.damaged

    @pytest.fixture(autouse=True)
    def _impatience(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """ADIOS2 waits for data that a file promises and does not hold: not for long here."""
        monkeypatch.setattr(apart, "IDLE_SECONDS", 0.2)

    def test_garbage(self, tmp_path: Path) -> None:
        """Data have no checksum: garbage that is long enough is other data."""
        path, arrays = self.example(tmp_path)
        for size in (1, 1000, (path / "data.0").stat().st_size):
            self.part(path).write_bytes(random.Random(size).randbytes(size))
            self.read_or_refused(path, arrays)

    def test_truncated_data_are_refused(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        data = path / "data.0"
        data.write_bytes(data.read_bytes()[:-9])
        (path / "md.0").write_bytes((path / "md.0").read_bytes()[:-9])
        self.refused(path, arrays, CorruptFileError)

    def expected(self, variables: Arrays) -> Arrays:
        return {f"{name}[{n}]": array for name, array in variables.items() for n in range(2)}


class TestAdios2Bp4(TestAdios2):
    engine = "BP4"


class Adios2Damage(TestAdios2):
    """Damage to the metadata."""

    test_every_dtype = test_every_shape = None  # type: ignore[assignment]

    def test_garbage(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        for size in range(1, 900, 100):
            self.part(path).write_bytes(random.Random(size).randbytes(size))
            self.refused(path, arrays, (CorruptFileError, UnsupportedFormatError))


class TestAdios2Metadata(Adios2Damage):
    damaged = "md.0"


class TestAdios2MetaMetadata(Adios2Damage):
    damaged = "mmd.0"


class TestAdios2Index(Adios2Damage):
    damaged = "md.idx"


class TestAdios2Bp4Metadata(Adios2Damage):
    engine = "BP4"
    damaged = "md.0"


class TestAdios2Bp4Index(Adios2Damage):
    engine = "BP4"
    damaged = "md.idx"


def adios2_file(path: Path, engine: str, write: Any) -> Path:
    """What `write(file, number of the step)` writes in four steps."""
    adios2 = needs("adios2")
    io = adios2.Adios().declare_io("test")
    io.set_engine(engine)
    with adios2.Stream(io, str(path), "w") as file:
        for step in file.steps(4):
            write(file, step.current_step())
    return path


@pytest.mark.parametrize("engine", ["BP5", "BP4"])
def test_adios2_shapes_and_steps_of_each_variable(engine: str, tmp_path: Path) -> None:
    """Arrays that grow, and some that are not in every step; a reader with access to all steps at
    once would take them all for as long as the first, or the last.
    """

    def write(file: Any, step: int) -> None:
        file.write("grows", np.arange(5.0 + step), [5 + step], [0], [5 + step])
        file.write("bytes", np.array([-128, 127], "i1"), [2], [0], [2])
        if step % 2:
            file.write("odd", np.full(3, float(step)), [3], [0], [3])
            file.write("mine", np.arange(step + 2.0), [], [], [step + 2])

    with Adios2Reader().open(adios2_file(tmp_path / "x.bp", engine, write)) as source:
        found = {
            (i.called, i.iteration): source.read(i.name, 0, i.element_count).tolist()
            for i in source.variables
        }
        assert {i.rank for i in source.variables if i.called == "mine"} == {0}
        assert source.read("mine[1]/0", 3, 2).tolist() == [3, 4]
    for step in range(4):
        assert found.pop(("grows", step)) == list(range(5 + step))
        assert found.pop(("bytes", step)) == [-128, 127]
    assert found == {
        ("odd", 1): [1, 1, 1],
        ("odd", 3): [3, 3, 3],
        ("mine", 1): [0, 1, 2],
        ("mine", 3): [0, 1, 2, 3, 4],
    }


@pytest.mark.parametrize("engine", ["BP5", "BP4"])
def test_adios2_elements_that_nobody_wrote(engine: str, tmp_path: Path) -> None:
    """ADIOS2 gives zeros, or what happens to be in memory, where a writer wrote nothing."""

    def write(file: Any, step: int) -> None:
        file.write("x", np.ones((2, 4)), [3, 4], [0, 0], [2, 4])
        if step == 2:
            file.write("x", np.ones((1, 4)), [3, 4], [2, 0], [1, 4])

    with Adios2Reader().open(adios2_file(tmp_path / "x.bp", engine, write)) as source:
        faults = {info.iteration: info.fault for info in source.variables}
        assert source.read("x[2]", 0, 12).tolist() == [1] * 12
    assert faults[2] is None
    assert faults[1] == "has 12 elements, of which 8 were written"


def test_an_adios2_output_that_is_still_written(tmp_path: Path) -> None:
    adios2 = needs("adios2")
    path = tmp_path / "x.bp"
    file = adios2.Stream(str(path), "w")
    file.begin_step()
    file.write("x", np.ones(4), [4], [0], [4])
    file.end_step()
    with pytest.raises(CiwrapError, match="finished writing"):
        Adios2Reader().open(path)
    file.close()
    Adios2Reader().open(path).close()


def test_adios2_steps_and_scalars(tmp_path: Path) -> None:
    adios2 = needs("adios2")
    path = tmp_path / "x.bp"
    with adios2.Stream(str(path), "w") as file:
        for number in file.steps(3):
            file.write("step", np.array(10 * number.current_step()))
            file.write("x", np.arange(4.0) + number.current_step(), [4], [0], [4])
            file.write("local", np.full(3, 7.0), [], [], [3])
    with Adios2Reader().open(path, options={"iteration_variable": "step"}) as source:
        places = {(i.called, i.iteration, i.rank) for i in source.variables}
        assert ("x", 20, None) in places
        assert ("local", 10, 0) in places
        assert source.read("x[2]", 1, 2).tolist() == [3, 4]
    found = find_outputs(tmp_path, ["."])
    assert [one.path.name for one in found.files] == ["x.bp"]
    with pytest.raises(CiwrapError, match="no variable 'nothing'"):
        Adios2Reader().open(path, options={"iteration_variable": "nothing"})
    (path / "md.idx").unlink()
    with pytest.raises(CorruptFileError, match=r"md\.idx"):
        Adios2Reader().open(path)
