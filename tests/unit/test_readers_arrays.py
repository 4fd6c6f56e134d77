"""HDF5, NetCDF and Zarr through the published suite, and what is special to each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.formats.hdf5 import Hdf5Reader
from ciwrap.formats.netcdf import NetcdfReader
from ciwrap.formats.zarr import ZarrReader
from ciwrap.testing import ReaderSuite
from ciwrap.testing.reader_suite import ALL_DTYPES, ALL_SHAPES

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

h5py = pytest.importorskip("h5py")
netcdf4 = pytest.importorskip("netCDF4")
zarr = pytest.importorskip("zarr")


class TestHdf5(ReaderSuite):
    suffix = ".h5"
    dtypes = tuple(dtype for dtype in ALL_DTYPES if "U" not in dtype)
    allows_tail = True
    slowly = 41

    def make_reader(self) -> Reader:
        return Hdf5Reader()

    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {}

    def write(self, path: Path, variables: Arrays) -> None:
        with h5py.File(path, "w") as file:
            for name, array in variables.items():
                file.create_dataset(name, data=array, **self.keywords(array))


class TestHdf5Chunked(TestHdf5):
    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        chunks = tuple(max(1, (length + 1) // 2) for length in array.shape)
        return {"chunks": chunks, "maxshape": (None,) * array.ndim} if array.shape else {}


class TestHdf5Compressed(TestHdf5):
    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        if not array.size or not array.shape:
            return {}
        return {"compression": "gzip", "shuffle": True, "fletcher32": True}


# Characters along the last axis are texts, so they are tried elsewhere. One whose values need no
# padding comes first: padding may be missing.
NETCDF3_DTYPES = (">f8", "|i1", ">i2", ">i4", ">f4")


class NetcdfSuite(ReaderSuite):
    suffix = ".nc"
    format: str

    def make_reader(self) -> Reader:
        return NetcdfReader()

    def write(self, path: Path, variables: Arrays) -> None:
        with netcdf4.Dataset(path, "w", format=self.format) as file:
            file.set_fill_off()
            for name, array in variables.items():
                dimensions = [f"{name}_{n}" for n in range(array.ndim)]
                for dimension, length in zip(dimensions, array.shape, strict=True):
                    file.createDimension(dimension, length)
                one = self.create(file, name, array, dimensions)
                one.set_auto_maskandscale(False)
                one.set_auto_chartostring(False)
                if array.size:
                    one[...] = array

    def create(
        self, file: Any, name: str, array: np.ndarray[Any, Any], dimensions: list[str]
    ) -> Any:
        return file.createVariable(name, array.dtype.newbyteorder("="), dimensions)


# The classic formats have no fixed dimension of length 0.
FULL_SHAPES = tuple(shape for shape in ALL_SHAPES if 0 not in shape)


class TestNetcdf3(NetcdfSuite):
    format = "NETCDF3_CLASSIC"
    dtypes = NETCDF3_DTYPES
    shapes = FULL_SHAPES


class TestNetcdf5(NetcdfSuite):
    format = "NETCDF3_64BIT_DATA"
    dtypes = (*NETCDF3_DTYPES, "|u1", ">u2", ">u4", ">i8", ">u8")
    shapes = FULL_SHAPES


class TestNetcdf4(NetcdfSuite):
    format = "NETCDF4"
    dtypes = ("|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
    shapes = FULL_SHAPES
    allows_tail = True
    slowly = 83


class TestNetcdf4Compressed(TestNetcdf4):
    def create(
        self, file: Any, name: str, array: np.ndarray[Any, Any], dimensions: list[str]
    ) -> Any:
        if not dimensions:
            return file.createVariable(name, array.dtype, dimensions)
        return file.createVariable(name, array.dtype, dimensions, zlib=True)


class ZarrSuite(ReaderSuite):
    suffix = ".zarr"
    version: int
    keeps_order = False
    allows_tail = True

    def make_reader(self) -> Reader:
        return ZarrReader()

    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {}

    @pytest.mark.filterwarnings("ignore")
    def test_every_dtype(self, tmp_path: Path) -> None:
        super().test_every_dtype(tmp_path)

    @pytest.mark.filterwarnings("ignore")
    def test_every_shape(self, tmp_path: Path) -> None:
        super().test_every_shape(tmp_path)

    def write(self, path: Path, variables: Arrays) -> None:
        group = zarr.open_group(str(path), mode="w", zarr_format=self.version)
        for name, array in variables.items():
            chunks = tuple(max(1, length) for length in array.shape)
            group.create_array(name, data=array, **{"chunks": chunks, **self.keywords(array)})

    def part(self, path: Path) -> Path:
        return path / "data" / ("0" if self.version == 2 else "c/0")


class TestZarr2(ZarrSuite):
    version = 2
    dtypes = tuple(dtype for dtype in ALL_DTYPES)


class TestZarr3(ZarrSuite):
    version = 3
    # The format does not tell byte orders apart.
    dtypes = tuple(dtype for dtype in ALL_DTYPES if not dtype.startswith(">"))


class TestZarr2Plain(TestZarr2):
    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"compressors": None}


class TestZarr3Plain(TestZarr3):
    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"compressors": None}


class TestZarr3InChunks(TestZarr3):
    def keywords(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"chunks": tuple(max(1, (length + 1) // 2) for length in array.shape)}


class TestZarrMetadata(ZarrSuite):
    """The description is what is damaged."""

    version = 3
    dtypes = ("<f8",)

    def part(self, path: Path) -> Path:
        return path / "data" / "zarr.json"


def attributes_in(reader: Reader, path: Path) -> dict[str, Any]:
    with reader.open(path) as source:
        assert [info.name for info in source.variables] == ["x"]
    with reader.open(path, options={"attributes": True}) as source:
        return {
            info.name: info.fault or source.read(info.name, 0, info.element_count).tolist()
            for info in source.variables
            if "@" in info.name
        }


def test_attributes_of_hdf5_and_netcdf(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1.0, 2.0]
        file["x"].attrs["units"] = "m"
        file.attrs["sizes"] = [1, 2]
    assert attributes_in(Hdf5Reader(), tmp_path / "a.h5") == {"@sizes": [1, 2], "x@units": ["m"]}
    for kind in ("NETCDF3_CLASSIC", "NETCDF4"):
        path = tmp_path / f"{kind}.nc"
        with netcdf4.Dataset(path, "w", format=kind) as file:
            file.createDimension("n", 2)
            file.createVariable("x", "f8", ("n",)).units = "m"
            file.version = 3
        assert attributes_in(NetcdfReader(), path) == {"@version": [3], "x@units": ["m"]}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_of_zarr(tmp_path: Path, zarr_format: int) -> None:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    group.attrs["is_done"] = True
    array = group.create_array("x", shape=(2,), dtype="f8")
    array.attrs.update({"units": "m", "deep": {"a": [1]}, "huge": 1 << 70})
    found = attributes_in(ZarrReader(), path)
    assert "neither number nor text" in found.pop("x@huge")
    assert found == {"@is_done": [True], "x@deep": ['{"a": [1]}'], "x@units": ["m"]}
