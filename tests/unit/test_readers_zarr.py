"""Zarr stores, and what they share with NetCDF: packed numbers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from optional_libraries import needs
from told_by_readers import reader_for, told

from ciwrap.base.errors import UnsupportedDtypeError

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Source


def test_a_zarr_store_is_what_its_arrays_say(tmp_path: Path) -> None:
    """Not what was consolidated before an array was added, and another one's unit changed."""
    zarr = needs("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = tmp_path / "x.zarr"
        zarr.open_group(path, mode="w", zarr_format=2)["x"] = np.arange(3.0)
        zarr.consolidate_metadata(path)
        zarr.open_group(path, mode="r+", use_consolidated=False)["y"] = np.arange(4.0)
    (path / "x" / ".zattrs").write_text('{"units": "km"}')
    found = told(path)
    assert sorted(found) == ["x", "y"]
    assert found["x"][2] == (("units", "km"),)


@pytest.mark.parametrize("kind", [2, 3])
def test_folders_that_nothing_describes_are_told_of(tmp_path: Path, kind: Any) -> None:
    """What lies in a group without its description was passed over."""
    zarr = needs("zarr")
    store = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=kind)
    store.create_array("x", data=np.arange(3.0))
    store.create_group("g").create_array("y", data=np.arange(3.0))
    (tmp_path / "x.zarr" / "empty").mkdir()
    for name in (".zgroup", "zarr.json"):
        (tmp_path / "x.zarr" / "g" / name).unlink(missing_ok=True)
    with reader_for(tmp_path / "x.zarr").open(tmp_path / "x.zarr") as source:
        faults = {info.name: info.fault for info in source.variables}
    assert faults["x"] is None
    assert set(faults) == {"x", "g"}
    assert "is a folder in which no zarr.json" in str(faults["g"])


@pytest.mark.parametrize("attributes", [{}, {"scale_factor": 0.5}])
def test_missing_values_as_xarray_writes_them_in_format_2(
    tmp_path: Path, attributes: dict[str, float]
) -> None:
    """It has them in the description of the array, where another one was overlooked."""
    zarr = needs("zarr")
    store = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    one = store.create_array("t", data=np.array([1, 3], "i2"), fill_value=3)
    one.attrs.update({"_ARRAY_DIMENSIONS": ["x"], **attributes})
    with reader_for(tmp_path / "x.zarr").open(tmp_path / "x.zarr") as source:
        values, labels = source.read("t", 0, 2), dict(source.info("t").labels)
    if attributes:
        assert values[0] == 0.5
        assert np.isnan(values[1])
    else:
        assert labels == {"_FillValue": "3", "dims": "x"}


def test_links_in_a_zarr_store_that_lead_in_circles(tmp_path: Path) -> None:
    """With two of them there are more ways through the store than anybody can go."""
    zarr = needs("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
        group["a/x"] = np.arange(3.0)
        group["b/x"] = np.arange(2.0)
    (tmp_path / "x.zarr" / "a" / "up").symlink_to("..")
    (tmp_path / "x.zarr" / "b" / "self").symlink_to(".")
    (tmp_path / "x.zarr" / "b" / "alias").symlink_to("x")
    found = {name: one[3] for name, one in told(tmp_path / "x.zarr").items()}
    assert found == {
        "a/up": ["link to /"],
        "a/x": [0.0, 1.0, 2.0],
        "b/alias": [0.0, 1.0],
        "b/self": ["link to /b"],
        "b/x": [0.0, 1.0],
    }


def test_a_missing_value_that_the_stored_type_cannot_hold(tmp_path: Path) -> None:
    """1e20 as a short integer would be 0, and each 0 be missing."""
    zarr = needs("zarr")
    attributes = {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -9, "missing_value": 1e20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
        one = group.create_array("x", shape=(3,), dtype="i2")
        one[:] = [0, -9, 2]
        one.attrs.update(attributes)
    assert repr(told(tmp_path / "x.zarr")["x"][3]) == "[10.0, nan, 11.0]"


@pytest.mark.parametrize(
    ("dtype", "numbers", "scale", "offset"),
    [
        ("i8", [2**53, 2**53 + 1, 2**53 + 2], 1.0, 0.0),
        ("u8", [2**64 - 2, 2**64 - 1], 1.0, 0.0),
        ("i4", [1, 2, 3], 1e-9, 1e10),
        ("i2", [20000, 30000], 1e305, 0.0),
    ],
)
def test_packed_integers_that_would_become_one_number(
    tmp_path: Path, dtype: str, numbers: list[int], scale: float, offset: float
) -> None:
    """Two files that differ in them would match."""
    source = packed(tmp_path, dtype, numbers, scale_factor=scale, add_offset=offset)
    with source, pytest.raises(UnsupportedDtypeError, match=r"x\.zarr: x: .* not keep apart"):
        source.read("x", 0, len(numbers))


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan])
def test_scale_factors_that_make_all_numbers_equal(tmp_path: Path, scale: float) -> None:
    with packed(tmp_path, "i2", [1, 2], scale_factor=float(scale)) as source:
        assert "its attribute scale_factor is " in str(source.info("x").fault)


def test_packed_integers_stay_apart(tmp_path: Path) -> None:
    """In float64 where the float32 of the attributes would make one number of two."""
    near = {"scale_factor": np.float32(0.01), "add_offset": np.float32(273.15)}
    far = {"scale_factor": np.float32(0.01), "add_offset": np.float32(1e6)}
    missing = {"scale_factor": 1.0, "_FillValue": np.int64(-(2**63) + 2)}
    for attributes, dtype, numbers, wanted in (
        (near, "i2", [1, 2], "<f4"),
        (far, "i2", [1, 2], "<f8"),
        (missing, "i8", [2**50, 2**50 + 1, -(2**63) + 2], "<f8"),
    ):
        path = tmp_path / "x.nc"
        with needs("netCDF4").Dataset(path, "w") as file:
            file.createDimension("d", len(numbers))
            one = file.createVariable(
                "x", dtype, ("d",), fill_value=attributes.pop("_FillValue", None)
            )
            one.set_auto_maskandscale(False)
            one.setncatts(attributes)
            one[:] = numbers
        found = told(path)["x"]
        assert found[0] == wanted
        assert found[3][0] != found[3][1]


def packed(folder: Path, dtype: str, numbers: list[int], **attributes: float) -> Source:
    """An open Zarr store of one packed array, x."""
    zarr = needs("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(folder / "x.zarr", mode="w", zarr_format=2)
        one = group.create_array("x", shape=(len(numbers),), dtype=dtype)
        one[:] = np.array(numbers, dtype=dtype)
        one.attrs.update(attributes)
    return reader_for(folder / "x.zarr").open(folder / "x.zarr")


@pytest.mark.parametrize("storage", ["plain", "chunks"])
def test_a_variable_of_netcdf_named_as_a_dimension_of_others(tmp_path: Path, storage: str) -> None:
    """The file keeps the dimension under the name, which holds no numbers."""
    netcdf4, h5py = needs("netCDF4"), needs("h5py")
    path = tmp_path / "x.nc"
    with netcdf4.Dataset(path, "w") as file:
        for where in (file, file.createGroup("g")):
            for name in "xy":
                where.createDimension(name, 3)
            chunks = (3,) if storage == "chunks" else None
            one = where.createVariable("x", "f4", ("y",), chunksizes=chunks)
            one[:] = [1, 2, 3]
    with h5py.File(path) as stored:
        assert "_nc4_non_coord_x" in stored
    found = told(path)
    assert set(found) == {"x", "g/x"}
    for one in found.values():
        assert one[3] == [1.0, 2.0, 3.0]
