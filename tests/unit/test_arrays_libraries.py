"""Quantities, series, datasets and tables of the libraries themselves: nothing of them is dropped.

A value that differs in its numbers, unit, coordinates, names of dimensions, index or mask is
refused, or does not match: as one run of a test against another, and through the Python API.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciwrap.api import compare_arrays
from ciwrap.base.errors import CiwrapError
from ciwrap.model import Verdict
from ciwrap.project.settings import Check
from ciwrap.pytest_plugin.fixture import Repeats, catalog_of

X = np.array([1.0, 2.0, 3.0])
REFUSED = "refused"


def needs(name: str) -> Any:
    """The module, or a skip."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason="the extra arrays-test is not installed")


def of_plugin(golden: Any, new: Any) -> str:
    """What a test's check says of a second run."""
    check = Check("x", Path(), ())
    repeats = Repeats(2)
    for number, value in enumerate((golden, new)):
        repeats.begin(number)
        try:
            with catalog_of(value, "x") as catalog:
                result, _ = repeats.compare(check, catalog, "test")
        except CiwrapError as error:
            return _refusal(error)
    return result.verdict.value


def of_api(golden: Any, new: Any) -> str:
    try:
        return compare_arrays(golden, new).verdict.value
    except CiwrapError as error:
        return _refusal(error)


def _refusal(error: CiwrapError) -> str:
    assert error.remedy
    assert "\n" not in str(error)
    return REFUSED


def assert_told_apart(golden: Any, others: dict[str, Any], *, is_refused: bool = False) -> None:
    assert of_plugin(golden, golden) == (REFUSED if is_refused else Verdict.MATCH.value)
    for what, other in others.items():
        for one, two in ((golden, other), (other, golden)):
            assert of_plugin(one, two) != Verdict.MATCH.value, what
            assert of_api(one, two) != Verdict.MATCH.value, what


def test_astropy_quantities() -> None:
    u = needs("astropy.units")
    masked = needs("astropy.utils.masked").Masked
    others = {"unit": X * u.m, "none": X, "other": X * u.s, "numbers": (X + 1) * u.km}
    others["mask"] = masked(X * u.km, mask=[False, True, False])
    assert_told_apart(X * u.km, others)
    assert_told_apart(3.0 * u.km, {"unit": 3.0 * u.m, "number": 3.0})
    assert_told_apart({"a": X * u.km}, {"unit": {"a": X * u.m}})
    assert_told_apart([1.0 * u.km, 2.0 * u.km], {"unit": [1.0 * u.m, 2.0 * u.m]})
    assert_told_apart([X * u.km, X * u.km], {"unit": [X * u.m, X * u.m]})
    assert of_api(X * u.km, X * u.km) == "match"
    ratio = (X * u.km / u.km).to(u.dimensionless_unscaled)
    assert (of_plugin(ratio, X), of_api(ratio, X)) == ("match", "match")


def test_astropy_tables() -> None:
    t, u = needs("astropy.table"), needs("astropy.units")

    def masked(*mask: bool) -> Any:
        return t.Table({"a": t.MaskedColumn(X, mask=list(mask)), "b": X})

    assert_told_apart(
        t.Table({"a": X * u.km, "b": X}),
        {
            "unit": t.Table({"a": X * u.m, "b": X}),
            "no unit": t.Table({"a": X, "b": X}),
            "names": t.Table({"a": X * u.km, "c": X}),
            "numbers": t.Table({"a": X * u.km, "b": X + 1}),
        },
    )
    assert_told_apart(t.QTable({"a": X * u.km}), {"unit": t.QTable({"a": X * u.m})})
    assert_told_apart(masked(False, False, False), {"mask": masked(False, True, False)})
    assert_told_apart(masked(False, True, False), {"mask": masked(False, False, True)})
    assert of_plugin(masked(False, False, False), t.Table({"a": X, "b": X})) == "match"
    one, other = t.Table({"a": X * u.km}), t.Table({"a": X * u.m})
    assert_told_apart(one[0], {"unit": other[0]}, is_refused=True)
    assert_told_apart(one["a"], {"unit": other["a"]})


def test_tables_in_fits() -> None:
    fits = needs("astropy.io.fits")

    def data(
        keywords: dict[str, Any], lengths: tuple[int, ...] = (1, 2, 3), last: float = 1.0
    ) -> Any:
        arrays = np.array([np.full(one, last) for one in lengths], dtype=object)
        columns = [
            fits.Column(name="a", format="I", array=np.array([1, 2, 3], "i2")),
            fits.Column(name="v", format="PD()", array=arrays),
        ]
        table = fits.BinTableHDU.from_columns(columns)
        table.header.update(keywords)
        file = io.BytesIO()
        table.writeto(file)
        return fits.open(io.BytesIO(file.getvalue()))[1].data

    # What the array itself holds is the same in all of them.
    others = {
        "scale": data({"TSCAL1": 0.5}),
        "zero": data({"TZERO1": 3.0}),
        "unit": data({"TUNIT1": "km"}),
        "behind the table": data({}, last=2.0),
    }
    assert_told_apart(data({}), others)
    numbers = fits.FITS_rec.from_columns([fits.Column(name="a", array=X, unit="km", format="D")])
    assert_told_apart(numbers[0], {"number": numbers[1]}, is_refused=True)


@pytest.mark.parametrize("library", ["pint", "unyt"])
def test_other_quantities(library: str) -> None:
    module = needs(library)
    km, m = (
        (module.km, module.m)
        if library == "unyt"
        else (lambda registry: (registry.km, registry.m))(module.UnitRegistry())
    )
    assert_told_apart(X * km, {"unit": X * m, "none": X, "numbers": (X + 1) * km})
    assert_told_apart(3.0 * km, {"unit": 3.0 * m, "none": 3.0})
    assert_told_apart([X * km, X * km], {"unit": [X * m, X * m]})
    assert (of_plugin(X * km / km, X), of_api(X * km / km, X)) == ("match", "match")


def test_a_unit_of_a_simulation_is_as_long_as_its_registry_says() -> None:
    unyt = needs("unyt")

    def length(metres: float) -> Any:
        registry = unyt.UnitRegistry()
        registry.add("code_length", metres, unyt.dimensions.length)
        return unyt.unyt_array(X, "code_length", registry=registry)

    assert_told_apart(length(1.0), {"another": length(1000.0)})


def test_a_quantity_of_pint_needs_no_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Dask, a quantity cannot say whether it is lazy."""
    pint = needs("pint")
    monkeypatch.setattr("pint.facets.dask.dask_array", None)
    assert_told_apart(pint.Quantity(X, "m"), {"unit": pint.Quantity(X, "km")})


def test_pandas() -> None:
    pd = needs("pandas")
    golden = pd.Series(X, index=["p", "q", "r"])
    others = {"index": pd.Series(X, index=["p", "q", "Z"]), "none": pd.Series(X), "array": X}
    others["index of numbers"] = pd.Series(X, index=[0, 1, 3])
    others["name of the index"] = pd.Series(X, index=pd.Index(["p", "q", "r"], name="n"))
    others["numbers"] = pd.Series(X + 1, index=["p", "q", "r"])
    assert_told_apart(golden, others)
    assert of_plugin(golden, golden.copy()) == "match"
    frame = pd.DataFrame({"a": X})
    assert of_plugin(frame, frame.copy()) == "match"
    others = {"column": pd.DataFrame({"b": X}), "index": pd.DataFrame({"a": X}, index=[0, 1, 3])}
    assert_told_apart(frame, others)
    assert_told_apart({"k": frame}, {what: {"k": other} for what, other in others.items()})
    assert_told_apart([golden, golden], {"index": [others["index"]["a"]] * 2})
    missing = pd.Series([1, None, 3], dtype="Int64")
    assert_told_apart(missing, {"none": pd.Series([1, 2, 3], dtype="Int64")})
    assert_told_apart(pd.Index([1, 2], name="a"), {"name": pd.Index([1, 2], name="b")})


def test_xarray() -> None:
    xr = needs("xarray")

    def data(*, dims: Any = ("x", "y"), x: Any = (10, 20), attrs: Any = None, plus: int = 0) -> Any:
        return xr.DataArray(np.eye(2) + plus, dims=dims, coords={dims[0]: list(x)}, attrs=attrs)

    others = {
        "names of dimensions": data(dims=("y", "x")),
        "coordinate": data(x=(10, 99)),
        "no coordinate": data().drop_vars("x"),
        "text of a coordinate": data(x=("a", "b")),
        "unit": data(attrs={"units": "K"}),
        "numbers": data(plus=1),
        "array": np.eye(2),
    }
    assert_told_apart(data(), others)
    assert_told_apart(
        xr.Dataset({"t": data()}),
        {w: xr.Dataset({"t": o}) for w, o in others.items() if w != "array"},
    )
    assert_told_apart({"t": data()}, {what: {"t": other} for what, other in others.items()})
    assert_told_apart([data(), data()], {what: [other, other] for what, other in others.items()})
    trees = {
        what: xr.DataTree.from_dict({"/a": xr.Dataset({"t": o})})
        for what, o in others.items()
        if what != "array"
    }
    assert_told_apart(xr.DataTree.from_dict({"/a": xr.Dataset({"t": data()})}), trees)
    time = xr.Dataset({"t": ("time", [1.0])}, coords={"time": np.array(["2020"], "M8[ns]")})
    assert_told_apart(time, {"time": time.assign_coords(time=np.array(["2021"], "M8[ns]"))})


def test_arrow() -> None:
    pa = needs("pyarrow")
    golden = pa.table({"a": X, "b": X + 1})
    assert of_plugin(golden, golden) == "match"
    others = {"names": pa.table({"b": X, "a": X + 1}), "numbers": pa.table({"a": X, "b": X})}
    others["null"] = pa.table({"a": [1.0, 2.0, None], "b": X + 1})
    assert_told_apart(golden, others)
    assert_told_apart(pa.array([1.0, None]), {"null": pa.array([1.0, float("nan")])})
    assert_told_apart(pa.array([{"a": 1}]), {"name": pa.array([{"b": 1}])})


def test_open_files(tmp_path: Path) -> None:
    """Variables of open HDF5 and NetCDF files are arrays to NumPy, and more."""
    h5py, netcdf = needs("h5py"), needs("netCDF4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, unit, dim in (("a", "K", "t"), ("b", "C", "t"), ("c", "K", "z"), ("d", None, "")):
            file[name] = X
            file[name].dims[0].label = dim
            if unit:
                file[name].attrs["units"] = unit
        others = {name: file[name] for name in "bcd"}
        assert_told_apart(file["a"], others)
        assert of_plugin(file["d"], X) == "match"
    with netcdf.Dataset(tmp_path / "a.nc", "w") as file:
        for dim in ("t", "z"):
            file.createDimension(dim, 3)
        for name, unit, dim in (("a", "K", "t"), ("b", "C", "t"), ("c", "K", "z"), ("d", "K", "t")):
            variable = file.createVariable(name, "f8", (dim,))
            variable[:] = X if name != "d" else np.ma.array(X, mask=[False, True, False])
            variable.units = unit
        assert_told_apart(file["a"], {name: file[name] for name in "bcd"})
