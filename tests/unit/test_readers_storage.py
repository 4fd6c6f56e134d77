"""Where HDF5 and NetCDF 4 keep numbers, and what is read where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from optional_libraries import needs
from told_by_readers import reader_for

if TYPE_CHECKING:
    from pathlib import Path

UNWRITTEN = "has values that were never written, and no fill value"


def fault_of(path: Path) -> str | None:
    with reader_for(path).open(path) as source:
        return source.info("x").fault


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("suffix", [".h5", ".nc"])
def test_data_in_other_files(tmp_path: Path, suffix: str, is_packed: bool) -> None:
    """Without the other file the library reads fill values, packed numbers or not."""
    h5py = needs("h5py")
    path = tmp_path / f"x{suffix}"
    with h5py.File(path, "w") as file:
        layout = h5py.VirtualLayout((3,), "i2")
        layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "y", (3,))
        file.create_virtual_dataset("x", layout)
        if is_packed:
            file["x"].attrs["scale_factor"] = 0.5
    assert "is a virtual dataset" in str(fault_of(path))


@pytest.mark.parametrize("chunks", [None, (2,)])
@pytest.mark.parametrize("written", [0, 2, 5])
def test_elements_that_nothing_fills(tmp_path: Path, chunks: Any, written: int) -> None:
    """The library leaves them as memory is."""
    h5py = needs("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        one = file.create_dataset("x", (5,), "f8", chunks=chunks, fill_time="never")
        if written:
            one[:written] = 1.0
    # What is written in part has room for all in a file without chunks.
    is_whole = written == 5 or (written and not chunks)
    assert fault_of(tmp_path / "x.h5") == (None if is_whole else UNWRITTEN)


@pytest.mark.parametrize("fill_time", ["alloc", "ifset"])
@pytest.mark.parametrize("chunks", [None, (2,)])
def test_elements_that_are_filled(tmp_path: Path, fill_time: str, chunks: Any) -> None:
    h5py = needs("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (5,), "f8", chunks=chunks, fillvalue=2.5, fill_time=fill_time)
    with reader_for(tmp_path / "x.h5").open(tmp_path / "x.h5") as source:
        assert source.read("x", 0, 5).tolist() == [2.5] * 5


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("chunks", [None, (3,)])
@pytest.mark.parametrize("kind", ["f8", "S3", "bool", "(2,)i2", "text", "record"])
def test_elements_of_all_sizes_are_whole(
    tmp_path: Path, libver: str, chunks: Any, kind: str
) -> None:
    h5py = needs("h5py")
    kinds = {"text": h5py.string_dtype(), "record": [("n", "i4"), ("s", h5py.string_dtype())]}
    with h5py.File(tmp_path / "x.h5", "w", libver=libver) as file:
        one = file.create_dataset("x", (8,), np.dtype(kinds.get(kind, kind)), chunks=chunks)
        one[0] = one[1]
    with reader_for(tmp_path / "x.h5").open(tmp_path / "x.h5") as source:
        assert [info.fault for info in source.variables] == [None] * (1 + (kind == "record"))


@pytest.mark.parametrize("is_packed", [False, True])
def test_netcdf_without_filling(tmp_path: Path, is_packed: bool) -> None:
    netcdf4 = needs("netCDF4")
    with netcdf4.Dataset(tmp_path / "x.nc", "w") as file:
        file.set_fill_off()
        file.createDimension("n", 50)
        one = file.createVariable("x", "i2", ("n",), chunksizes=(10,))
        if is_packed:
            one.scale_factor = 0.5
        one[:10] = np.arange(10)
    assert fault_of(tmp_path / "x.nc") == UNWRITTEN
