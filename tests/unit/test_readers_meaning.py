"""What the formats say of a variable besides its numbers: names of dimensions, units, fill values.

And that one variable that cannot be read does not keep the others from being compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import ConfigError
from ciwrap.formats.adios2 import Adios2Reader
from ciwrap.formats.hdf5 import Hdf5Reader
from ciwrap.formats.netcdf import NetcdfReader
from ciwrap.formats.zarr import ZarrReader

h5py = pytest.importorskip("h5py")
netcdf4 = pytest.importorskip("netCDF4")
zarr = pytest.importorskip("zarr")

from hdf5_odd import (  # noqa: E402
    QUAD_FAULT,
    QUAD_IS_READ,
    add_new_reference,
    add_quad,
    add_quad_attribute,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader

CLASSIC = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA")
NETCDF = (*CLASSIC, "NETCDF4")


def labels(reader: Reader, path: Path, name: str = "t", **options: Any) -> dict[str, str]:
    with reader.open(path, options=options) as source:
        return dict(source.info(name).labels)


def faults(reader: Reader, path: Path, **options: Any) -> dict[str, str | None]:
    with reader.open(path, options=options) as source:
        return {info.name: info.fault for info in source.variables}


# --- NetCDF ---------------------------------------------------------------------------------------


def netcdf(path: Path, kind: str, dimensions: str, **attributes: Any) -> Path:
    """A variable t, packed if it has a scale_factor."""
    with netcdf4.Dataset(path, "w", format=kind) as file:
        file.createDimension("time", None)
        for name in "xy":
            file.createDimension(name, 3)
        fill = attributes.pop("_FillValue", None)
        dtype = "i2" if "scale_factor" in attributes else "f4"
        one = file.createVariable("t", dtype, dimensions.split(), fill_value=fill)
        one.setncatts(attributes)
        one.set_auto_maskandscale(False)
        one[0 : (2 if "time" in dimensions else 3)] = 1
    return path


@pytest.mark.parametrize("kind", NETCDF)
def test_names_of_dimensions_in_netcdf(tmp_path: Path, kind: str) -> None:
    for dimensions in ("x y", "y x"):
        path = netcdf(tmp_path / "x.nc", kind, dimensions)
        assert labels(NetcdfReader(), path) == {"dims": dimensions}
    # Also the one that goes through time, of which an iteration is one place.
    path = netcdf(tmp_path / "x.nc", kind, "time y x")
    assert labels(NetcdfReader(), path, "t[1]") == {"dims": "time y x"}
    assert labels(NetcdfReader(), path, iterations="none") == {"dims": "time y x"}
    path = netcdf(tmp_path / "x.nc", kind, "time")
    assert labels(NetcdfReader(), path, "t[1]") == {"dims": "time"}


@pytest.mark.parametrize("kind", NETCDF)
def test_what_else_says_what_numbers_mean(tmp_path: Path, kind: str) -> None:
    """Of these a file with other ones matched."""
    said = {
        "missing_value": np.float32(3),
        "valid_range": np.array([0, 5], "f4"),
        "flag_values": np.array([0, 1], "f4"),
        "flag_meanings": "good bad",
        "positive": "up",
        "unitSI": 1.5,
    }
    path = netcdf(tmp_path / "x.nc", kind, "x", **said)
    assert labels(NetcdfReader(), path) == {
        "dims": "x", "missing_value": "3.0", "valid_range": "0.0 5.0", "flag_values": "0.0 1.0",
        "flag_meanings": "good bad", "positive": "up", "unitSI": "1.5",
    }  # fmt: skip
    # Limits are those of the stored numbers, which are others where they are packed otherwise.
    packed = {"scale_factor": 0.5, "missing_value": np.int16(3)}
    limits = {"valid_min": np.int16(0), "valid_max": np.int16(9)}
    for said in (limits, {"valid_range": np.array([0, 9], "i2")}):
        path = netcdf(tmp_path / "x.nc", kind, "x", **packed, **said)
        assert labels(NetcdfReader(), path) == {"dims": "x"}


@pytest.mark.parametrize("kind", NETCDF)
def test_units_and_fill_values_in_netcdf(tmp_path: Path, kind: str) -> None:
    attributes = {"units": "K", "long_name": "temperature", "_FillValue": np.float32(9.96921e36)}
    path = netcdf(tmp_path / "x.nc", kind, "x", **attributes)
    wanted = {"dims": "x", "units": "K", "_FillValue": "9.96921e+36"}
    assert labels(NetcdfReader(), path) == wanted
    assert labels(NetcdfReader(), path, attributes=True) == wanted
    assert labels(NetcdfReader(), path, attributes=False) == {"dims": "x"}
    chosen = labels(NetcdfReader(), path, attributes=["long_name"])
    assert chosen == {"dims": "x", "long_name": "temperature"}
    for wrong in ("units", 1, [1], {"units": True}):
        with pytest.raises(ConfigError, match="true, false or a list of names"):
            NetcdfReader().open(path, options={"attributes": wrong})


@pytest.mark.parametrize("kind", NETCDF)
def test_what_the_values_tell_already_is_no_label(tmp_path: Path, kind: str) -> None:
    """Programs choose scale factors by the numbers; unpacked values have them in them."""
    attributes = {"units": "K", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": np.int16(-9)}
    path = netcdf(tmp_path / "x.nc", kind, "x", **attributes)
    assert labels(NetcdfReader(), path) == {"dims": "x", "units": "K"}
    with NetcdfReader().open(path) as source:
        assert source.read("t", 0, 3).tolist() == [1.5, 1.5, 1.5]
    named = labels(NetcdfReader(), path, attributes=["scale_factor", "_FillValue"])
    assert named == {"dims": "x", "scale_factor": "0.5"}  # what is missing is NaN


@pytest.mark.parametrize("kind", NETCDF)
def test_times_of_another_calendar_are_other_times(tmp_path: Path, kind: str) -> None:
    meaning = {"units": "days since 2000-01-01", "calendar": "360_day"}
    path = netcdf(tmp_path / "x.nc", kind, "x", **meaning)
    assert labels(NetcdfReader(), path) == {"dims": "x", **meaning}


@pytest.mark.parametrize("packing", [{}, {"scale_factor": 0.5, "_FillValue": np.int8(-2)}])
@pytest.mark.parametrize("kind", NETCDF)
@pytest.mark.parametrize("told", ["true", "false", None])
def test_signed_integers_that_are_unsigned(
    tmp_path: Path, kind: str, packing: dict[str, Any], told: str | None
) -> None:
    """The attribute of the NetCDF Users Guide; netCDF4 follows it, too."""
    path = tmp_path / "x.nc"
    with netcdf4.Dataset(path, "w", format=kind) as file:
        file.createDimension("x", 4)
        one = file.createVariable("t", "i1", ("x",), fill_value=packing.get("_FillValue"))
        one.set_auto_maskandscale(False)
        one.setncatts({key: value for key, value in packing.items() if key != "_FillValue"})
        if told is not None:
            one.setncattr("_Unsigned", told)
        one[:] = np.array([0, 127, -128, -1], dtype="i1")
    with netcdf4.Dataset(path) as file:
        wanted = np.ma.filled(file["t"][:].astype("f8"), np.nan)
    with NetcdfReader().open(path) as source:
        info = source.info("t")
        found = source.read("t", 0, 4)
    np.testing.assert_array_equal(found.astype("f8"), wanted)
    assert found.dtype.str == info.dtype
    if not packing:
        assert info.dtype == ("|u1" if told == "true" else "|i1")


@pytest.mark.parametrize("kind", CLASSIC)
def test_an_odd_variable_of_classic_netcdf(tmp_path: Path, kind: str) -> None:
    path = netcdf(tmp_path / "x.nc", kind, "x", scale_factor="half")
    with netcdf4.Dataset(path, "a") as file:
        file.createVariable("u", "f4", ("x",))[:] = 1
    found = faults(NetcdfReader(), path)
    assert "its attribute scale_factor is not a single number" in str(found.pop("t"))
    assert found == {"u": None}


def test_odd_objects_of_netcdf(tmp_path: Path) -> None:
    path = netcdf(tmp_path / "x.nc", "NETCDF4", "x")
    with netcdf4.Dataset(path, "a") as file:
        for name in ("u", "v"):
            file.createVariable(name, "f8", ("x",))[:] = 1
        file.createGroup("nothing")
    with h5py.File(path, "a") as file:
        add_quad(file, "quad")
        add_new_reference(file, "reference")
        add_quad_attribute(file["u"], "units")
        add_quad_attribute(file["v"], "odd")
        file["alias"] = h5py.SoftLink("/t")
    found = faults(NetcdfReader(), path)
    assert sorted(found) == ["alias", "nothing/", "quad", "reference", "t", "u", "v"]
    unread = {"quad", "reference"} if QUAD_IS_READ else {"quad", "reference", "u"}
    assert {name for name, fault in found.items() if fault} == unread
    # Only the file says what dimensions are called.
    assert labels(NetcdfReader(), path, "t") == labels(NetcdfReader(), path, "alias")
    found = faults(NetcdfReader(), path, attributes=True)
    assert QUAD_FAULT in str(found["v@odd"])
    assert found["v"] is None


def test_a_dataset_without_dimensions_in_netcdf(tmp_path: Path) -> None:
    path = netcdf(tmp_path / "x.nc", "NETCDF4", "x")
    with h5py.File(path, "a") as file:
        file["bare"] = np.ones(3)
    assert labels(NetcdfReader(), path, "bare") == {}


@pytest.mark.parametrize("kind", NETCDF)
@pytest.mark.parametrize("packing", [{}, {"scale_factor": 0.5}])
def test_a_history_of_netcdf_that_has_not_begun(
    tmp_path: Path, kind: str, packing: dict[str, float]
) -> None:
    """A file without the variable is another one."""
    with netcdf4.Dataset(tmp_path / "x.nc", "w", format=kind) as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("t", "i2", ("time", "x")).setncatts(packing)
        file.createVariable("u", "f4", ())[...] = 1
    with NetcdfReader().open(tmp_path / "x.nc") as source:
        assert {info.name: info.shape for info in source.variables} == {"t": (0, 3), "u": ()}
        assert source.read("t", 0, 0).size == 0


def test_characters_that_were_never_written_in_netcdf(tmp_path: Path) -> None:
    """One variable has more records than another."""
    with netcdf4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("length", 4)
        file.createVariable("i", "i4", ("time",))[:2] = [1, 2]
        file.createVariable("c", "S1", ("time", "length"))[0] = np.array([*"abcd"], dtype="S1")
        file.createVariable("x", "f4", ("time",))[:3] = 1
    found = faults(NetcdfReader(), tmp_path / "x.nc", iterations="none")
    assert found == {"c": "holds texts in records that were never written", "i": None, "x": None}
    with NetcdfReader().open(tmp_path / "x.nc") as source:
        assert source.read("i[2]", 0, 1).tolist() == [-(2**31) + 1]


def test_a_link_that_leads_nowhere_in_netcdf(tmp_path: Path) -> None:
    path = netcdf(tmp_path / "x.nc", "NETCDF4", "x")
    with h5py.File(path, "a") as file:
        file["deep/gone"] = h5py.SoftLink("/no")
    found = faults(NetcdfReader(), path)
    assert found.pop("deep/gone") == "is a broken link to /no"
    assert {*found.values()} == {None}


# --- Zarr -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_labels_of_zarr(tmp_path: Path, version: int) -> None:
    root = zarr.open_group(str(tmp_path / "x.zarr"), mode="w", zarr_format=version)
    for name, dimensions in (("t", ["x", "y"]), ("u", ["y", "x"]), ("h", ["time", "x"])):
        keywords = {} if version == 2 else {"dimension_names": dimensions}
        one = root.create_array(name, shape=(3, 3), dtype="f4", **keywords)
        one[...] = 1
        if version == 2:
            one.attrs["_ARRAY_DIMENSIONS"] = dimensions
    root["t"].attrs["units"] = "K"
    root.create_array("bare", shape=(3,), dtype="f4")[...] = 1
    root.create_group("nothing")
    found = {
        name: labels(ZarrReader(), tmp_path / "x.zarr", name)
        for name in ("t", "u", "h[2]", "bare", "nothing/")
    }
    # What zarr-python takes for elements without a chunk, xarray reads as missing in format 2.
    filled = {"_FillValue": "0.0"} if version == 2 else {}
    assert found == {
        "t": {"dims": "x y", "units": "K", **filled},
        "u": {"dims": "y x", **filled},
        "h[2]": {"dims": "time x", **filled},
        "bare": {},
        "nothing/": {},
    }


@pytest.mark.parametrize("version", [2, 3])
def test_an_odd_array_of_zarr(tmp_path: Path, version: int) -> None:
    root = zarr.open_group(str(tmp_path / "x.zarr"), mode="w", zarr_format=version)
    for name in ("fine", "odd"):
        root.create_array(name, shape=(3,), dtype="f4")[...] = 1
    described = tmp_path / "x.zarr/odd" / ("zarr.json" if version == 3 else ".zarray")
    described.write_text(described.read_text().replace("float32", "f128").replace("<f4", "<q4"))
    found = faults(ZarrReader(), tmp_path / "x.zarr")
    assert found.pop("fine") is None
    assert "cannot be read" in str(found.pop("odd"))
    assert found == {}


# --- ADIOS2 ---------------------------------------------------------------------------------------


def test_labels_of_adios2(tmp_path: Path) -> None:
    adios2 = pytest.importorskip("adios2")
    with adios2.Stream(str(tmp_path / "x.bp"), "w") as file:
        for _ in file.steps(2):
            file.write("t", np.ones(3), [3], [0], [3])
            file.write("u", np.ones(3), [3], [0], [3])
            file.write_attribute("units", "K", "t")
            file.write_attribute("made", "today")
    assert labels(Adios2Reader(), tmp_path / "x.bp", "t[1]") == {"units": "K"}
    assert labels(Adios2Reader(), tmp_path / "x.bp", "u[1]") == {}
    names = faults(Adios2Reader(), tmp_path / "x.bp", attributes=True)
    assert {name for name in names if "@" in name} == {"@made", "@t/units"}


def test_components_of_openpmd(tmp_path: Path) -> None:
    """A component that is the same everywhere is a group without members: its value was in
    nothing that was compared. What scales a quantity may stand at its group.
    """
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["openPMD"] = "1.1.0"
        mass = file.create_group("data/100/particles/e/mass")
        mass.attrs.update({"value": 2.5, "shape": np.array([10], "u8"), "unitSI": 9.0})
        field = file.create_dataset("data/100/meshes/E/x", data=np.zeros(3))
        field.attrs["unitSI"] = 3.0
        field.parent.attrs["unitDimension"] = np.array([1.0, 0.0])
    with Hdf5Reader().open(tmp_path / "x.h5") as source:
        found = {info.called: info for info in source.variables}
        mass = found["data/particles/e/mass"]
        assert (mass.iteration, mass.shape) == (100, ())
        assert dict(mass.labels) == {"shape": "10", "unitSI": "9.0"}
        assert source.read(mass.name, 0, 1).tolist() == [2.5]
        assert dict(found["data/meshes/E/x"].labels) == {
            "unitDimension": "1.0 0.0",
            "unitSI": "3.0",
        }


@pytest.mark.parametrize("iterations", ["auto", "none"])
def test_times_of_openpmd(tmp_path: Path, iterations: str) -> None:
    """They are attributes of the iterations' groups."""
    told = {"time": 1.5, "dt": np.float32(0.5), "timeUnitSI": 1e-9}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["openPMD"] = "1.1.0"
        file["data/100/fields/E"] = np.zeros(3)
        file["data/100"].attrs.update({**told, "closed": 1})
        file["data/100/fields"].attrs["time"] = 7.0
    with Hdf5Reader().open(tmp_path / "x.h5", options={"iterations": iterations}) as source:
        found = {i.name: source.read(i.name, 0, i.element_count).tolist() for i in source.variables}
        places = {(info.called, info.iteration) for info in source.variables}
    assert found.pop("data/100/fields/E") == [0, 0, 0]
    assert found == {f"data/100/{name}": [value] for name, value in told.items()}
    where = ("data/time", 100) if iterations == "auto" else ("data/100/time", None)
    assert where in places


@pytest.mark.parametrize("engine", ["BP4", "BP5"])
def test_openpmd_in_adios2(tmp_path: Path, engine: str) -> None:
    """Times and constant components are attributes alone, so nothing of them was compared."""
    adios2 = pytest.importorskip("adios2")

    def write(path: Path, **more: str) -> dict[str, Any]:
        io = adios2.Adios().declare_io("w")
        io.set_engine(engine)
        with adios2.Stream(io, str(path), "w") as file:
            for step in file.steps(2):
                for name, value in more.items():
                    file.write_attribute(name, value)
                mass = f"/data/{step.current_step()}/particles/e/mass"
                file.write("/data/meshes/E/x", np.ones(3), [3], [0], [3])
                file.write_attribute(f"{mass}/x/value", 2.5 + step.current_step())
                file.write_attribute(f"{mass}/x/shape", np.array([10], "u8"))
                file.write_attribute(f"{mass}/x/unitSI", 9.0)
                file.write_attribute(f"{mass}/unitDimension", np.array([1.0, 0.0]))
                file.write_attribute(f"/data/{step.current_step()}/time", 1.5)
                file.write_attribute("/data/meshes/time", 7.0)
                file.write_attribute("/else/value", 7.0)
        with Adios2Reader().open(path) as source:
            return {
                info.name: (source.read(info.name, 0, 1).tolist(), dict(info.labels))
                for info in source.variables
                if info.shape == ()
            }

    labels = {"shape": "10", "unitSI": "9.0", "unitDimension": "1.0 0.0"}
    assert write(tmp_path / "x.bp", openPMD="1.1.0") == {
        **{f"/data/{n}/time": ([1.5], {}) for n in range(2)},
        **{f"/data/{n}/particles/e/mass/x": ([2.5 + n], labels) for n in range(2)},
    }
    assert write(tmp_path / "y.bp") == {}
