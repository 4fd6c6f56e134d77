"""Files as programs leave them: what is storage is no difference, what is missing is no number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import InvalidBoundError
from ciwrap.cli.main import run
from ciwrap.formats.entries import IterationRule
from ciwrap.formats.netcdf import _netcdf4
from ciwrap.formats.reader import AttributeRule
from ciwrap.model import ErrorBound

if TYPE_CHECKING:
    from collections.abc import Callable

    Compare = Callable[..., dict[str, Any]]

MATCH, DIFFER, NOT_COMPARABLE = 0, 1, 3


@pytest.fixture
def compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Compare:
    """Compares two files of the working folder; gives the check's document with `code` and `text`,
    what the terminal shows.
    """
    monkeypatch.chdir(tmp_path)

    def call(one: str, other: str, *options: str) -> dict[str, Any]:
        code = run(["compare", one, other, "--json", "found.json", *options])
        check: dict[str, Any] = json.loads(Path("found.json").read_text())["checks"][0]
        return {**check, "code": code, "text": capsys.readouterr().out}

    return call


def netcdf(path: str, values: Any, dtype: str, **facts: Any) -> None:
    """A file with a variable v. facts: its attributes, and the kind of the file."""
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path, "w", format=facts.pop("kind", "NETCDF4")) as file:
        file.createDimension("x", len(values))
        fill = facts.pop("_FillValue", None)
        variable = file.createVariable("v", dtype, ("x",), fill_value=fill)
        variable.set_auto_maskandscale(False)
        variable.setncatts(facts)
        variable[:] = values


# --- missing values -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
@pytest.mark.parametrize("name", ["_FillValue", "missing_value"])
@pytest.mark.parametrize(
    ("dtype", "missing", "value"), [("i4", -1, 0), ("f4", 9e20, 12.0), ("f4", 0.0, 1e-9)]
)
def test_declared_missing_values_equal_missing_values_only(
    compare: Compare, kind: str, name: str, dtype: str, missing: float, value: float
) -> None:
    facts = {"kind": kind, name: np.array(missing, dtype)}
    netcdf("a.nc", [missing, 300, missing], dtype, **facts)
    netcdf("b.nc", [value, 300, missing], dtype, **facts)
    for options in ((), ("--atol", "1e30"), ("--rtol", "1e30")):
        found = compare("a.nc", "b.nc", *options)
        assert found["code"] == DIFFER
        assert found["variables"][0]["missing_mismatch_count"] == 1
        assert f"1 value missing ({name}) on one side only" in found["text"]
        assert "would match with" not in found["text"]
    assert compare("a.nc", "a.nc")["code"] == MATCH


def test_missing_values_of_unsigned_integers_in_classic_files(compare: Compare) -> None:
    """They are stored, and declared, as signed ones."""
    facts = {"kind": "NETCDF3_CLASSIC", "_FillValue": np.int8(-1), "_Unsigned": "true"}
    for name, values in (("a.nc", [3, -1]), ("b.nc", [3, -2])):
        netcdf(name, np.array(values, "i1"), "i1", **facts)
    assert compare("a.nc", "b.nc", "--atol", "2")["code"] == DIFFER


def test_not_a_number_declared_as_missing_stays_what_it_is(compare: Compare) -> None:
    netcdf("a.nc", [1, np.nan], "f8", _FillValue=np.nan)
    found = compare("a.nc", "a.nc")
    assert found["code"] == MATCH
    assert "fill values" not in found["text"]


def test_more_missing_values_than_can_be_told_are_refused(compare: Compare) -> None:
    netcdf("a.nc", [1.0, 2.0], "f8", missing_value=np.arange(9.0))
    found = compare("a.nc", "a.nc")
    assert found["code"] == NOT_COMPARABLE
    assert "missing_value holds more than 8 missing values" in found["text"]


# --- tables ---------------------------------------------------------------------------------------

PADDED = '"Iter",    "rms[Rho]"   ,    "CD"   \n 0, -1.72, {} \n 1, -1.81, {} \n'


def test_blanks_beside_quotes_are_no_part_of_a_name(compare: Compare) -> None:
    Path("a.csv").write_text(PADDED.format(0.31, 0.31))
    Path("b.csv").write_text(PADDED.format(0.32, 0.31))
    Path("c.csv").write_text(PADDED.replace("    ", "").replace("   ", "").format(0.31, 0.31))
    check = "checks: {h: {outputs: a.csv, rtol: 0.1, variables: {CD: {rtol: 1e-6}}}}"
    Path("ciwrap.yaml").write_text(f"version: 1\n{check}\n")
    assert compare("a.csv", "b.csv", "--check", "h")["code"] == DIFFER
    assert compare("a.csv", "b.csv", "--rtol", "1e-6", "--ignore", "CD")["code"] == MATCH
    assert compare("a.csv", "c.csv")["code"] == MATCH


def test_compare_warns_of_patterns_that_match_no_variable(compare: Compare) -> None:
    Path("a.csv").write_text("t,CD\n0,1\n")
    Path("ciwrap.yaml").write_text(
        "version: 1\nchecks: {h: {outputs: a.csv, variables: {Cd: {rtol: 1e-6}}}}\n"
    )
    told = compare("a.csv", "a.csv", "--check", "h", "--ignore", "cd", "--ignore", "t")["text"]
    assert "'Cd' under 'variables' or 'ignore' matches no variable" in told
    assert "'cd' of --ignore matches no variable" in told
    assert "'t'" not in told


# --- many variables -------------------------------------------------------------------------------


def test_dimensions_of_netcdf_in_groups(tmp_path: Path) -> None:
    """Groups have dimensions of the groups that they are in, and may have others of one name."""
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, length in (("time", None), ("x", 2), ("y", 2)):
            file.createDimension(name, length)
        file.createVariable("x", "f8", ("x",))[:] = [1, 2]
        inner, other = file.createGroup("g"), file.createGroup("h")
        other.createDimension("x", 3)
        for place, length in ((file, 2), (inner, 2), (other, 3)):
            place.createVariable("v", "f8", ("time", "y", "x"))[:] = np.ones((3, 2, length))
    with _netcdf4(tmp_path / "a.nc", IterationRule(), AttributeRule()) as source:
        found = {(one.name, one.shape, dict(one.labels)["dims"]) for one in source.variables}
    lengths = {"": 2, "g/": 2, "h/": 3}
    steps = {
        (f"{place}v[{n}]", (2, length), "time y x")
        for place, length in lengths.items()
        for n in range(3)
    }
    assert found == {("x", (2,), "x"), *steps}


def test_variables_of_netcdf_that_are_called_as_dimensions_are(tmp_path: Path) -> None:
    """Of several dimensions, one of which no other variable has, or of none."""
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 2)
        file.createDimension("length", None)
        file.createVariable("x", "f8", ("x", "length"))[:] = np.arange(6.0).reshape(2, 3)
        file.createGroup("g").createVariable("x", "f8", ())[:] = 7.0
    with _netcdf4(tmp_path / "a.nc", IterationRule(), AttributeRule()) as source:
        found = {one.name: (one.shape, dict(one.labels)) for one in source.variables}
        assert source.read("x", 0, 6).tolist() == [0, 1, 2, 3, 4, 5]
        assert source.read("g/x", 0, 1).tolist() == [7]
    assert found == {"x": ((2, 3), {"dims": "x length"}), "g/x": ((), {})}


def test_each_variable_of_netcdf_is_opened_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once to learn what it is, and once to list it."""
    h5py = pytest.importorskip("h5py")
    netcdf4 = pytest.importorskip("netCDF4")
    opened: list[Any] = []
    plain = h5py.Dataset.__init__
    monkeypatch.setattr(
        h5py.Dataset,
        "__init__",
        lambda *given, **how: (opened.append(given), plain(*given, **how))[1],
    )
    counts = []
    for count in (10, 30):
        path = tmp_path / f"{count}.nc"
        with netcdf4.Dataset(path, "w") as file:
            file.createDimension("x", 2)
            for number in range(count):
                variable = file.createVariable(f"v{number}", "f8", ("x",))
                variable.units, variable[:] = "m", [1, 2]
        opened.clear()
        with _netcdf4(path, IterationRule(), AttributeRule()) as source:
            assert len(source.variables) == count
        counts.append(len(opened))
    assert counts[1] - counts[0] == 2 * 20


# --- storage --------------------------------------------------------------------------------------


def in_both_orders(values: Any) -> tuple[str, str]:
    for name, order in (("a.npy", "<"), ("b.npy", ">")):
        array = np.asarray(values)
        np.save(name, array.astype(array.dtype.newbyteorder(order)))
    return "a.npy", "b.npy"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i2", "u8", "U3"])
def test_the_byte_order_is_no_difference(compare: Compare, dtype: str) -> None:
    values = np.array([1, 2, 3]).astype(dtype)
    found = compare(*in_both_orders(values))
    assert found["code"] == MATCH
    assert "stored in another byte order" in found["text"]
    moved = values.copy()
    moved[1] = moved[2]
    np.save("b.npy", moved.astype(values.dtype.newbyteorder(">")))
    found = compare("a.npy", "b.npy")
    assert found["code"] == DIFFER
    assert found["variables"][0]["differing_count"] == 1


def test_netcdf_of_two_generations_is_the_same(compare: Compare) -> None:
    netcdf("a.nc", [1.5, 2.5], "f4")
    netcdf("b.nc", [1.5, 2.5], "f4", kind="NETCDF3_CLASSIC")
    assert compare("a.nc", "b.nc")["code"] == MATCH
    Path("ciwrap.yaml").write_text(
        "version: 1\nchecks: {c: {outputs: a.nc, strict: {dtype: as-stored}}}\n"
    )
    found = compare("a.nc", "b.nc", "--check", "c")
    assert found["code"] == NOT_COMPARABLE
    assert "dtype float32 (<f4) in A, float32 (>f4) in B" in found["text"]


LONG = "stopped: the residual did not fall"


def test_texts_of_other_lengths_differ_and_are_shown(compare: Compare) -> None:
    Path("a.csv").write_text("case,status\n1,ok\n2,ok\n")
    Path("b.csv").write_text(f"case,status\n1,ok\n2,{LONG}\n")
    np.save("a.npy", np.array([b"ok"]))
    np.save("b.npy", np.array([LONG.encode()]))
    for suffix in ("csv", "npy"):
        found = compare(f"a.{suffix}", f"b.{suffix}")
        assert found["code"] == DIFFER
        assert f"'{LONG}'" in found["text"]
        assert compare(f"b.{suffix}", f"a.{suffix}")["code"] == DIFFER


def test_a_text_with_a_longer_word_elsewhere_is_the_same(compare: Compare) -> None:
    np.save("a.npy", np.array([b"ok"]))
    np.save("b.npy", np.array([b"ok"], dtype="S9"))
    found = compare("a.npy", "b.npy")
    assert found["code"] == MATCH
    assert "texts of another fixed length" in found["text"]


def test_numbers_written_out_may_be_whole_on_one_side(compare: Compare) -> None:
    Path("a.csv").write_text("step,residual\n0,0\n1,0\n")
    Path("b.csv").write_text("step,residual\n0,0\n1,4.1e-17\n")
    for sides in (("a.csv", "b.csv"), ("b.csv", "a.csv")):
        found = compare(*sides, "--atol", "1e-6")
        assert found["code"] == MATCH
        assert "whole numbers on one side only, compared as float64" in found["text"]
        assert compare(*sides)["code"] == DIFFER
    Path("a.csv").write_text(f"step,residual\n0,0\n1,{(1 << 53) + 1}\n")
    assert compare("a.csv", "b.csv", "--atol", "1e-6")["code"] == NOT_COMPARABLE
    np.save("a.npy", np.array([0, 1]))
    np.save("b.npy", np.array([0.0, 1.0]))
    assert compare("a.npy", "b.npy")["code"] == NOT_COMPARABLE


@pytest.mark.parametrize("evidence", ["data", "tree"])
def test_a_golden_of_the_other_storage(compare: Compare, evidence: str) -> None:
    del compare
    Path("ciwrap.yaml").write_text(
        "version: 1\nchecks:\n"
        f"  n: {{outputs: a.npy, evidence: {evidence}, atol: 1e-6}}\n"
        f"  t: {{outputs: a.csv, evidence: {evidence}, atol: 1e-6}}\n"
    )
    in_both_orders(np.array([1.0, 2.0]))
    Path("a.csv").write_text("status,residual\nok,1.5\n")
    assert run(["accept"]) == MATCH
    Path("b.npy").rename("a.npy")
    Path("a.csv").write_text("status,residual\nok,1.5\n")
    assert run(["check"]) == MATCH
    Path("a.csv").write_text("status,residual\nok,2\n")
    assert run(["check"]) == DIFFER
    Path("a.csv").write_text(f"status,residual\n{LONG},1.5\n")
    assert run(["check"]) == (DIFFER if evidence == "data" else NOT_COMPARABLE)


# --- what was not compared ------------------------------------------------------------------------


def test_attributes_that_are_left_out_are_counted(compare: Compare) -> None:
    h5py = pytest.importorskip("h5py")
    for name, redshift in (("a.h5", 0.5), ("b.h5", 0.0)):
        with h5py.File(name, "w") as file:
            header = file.create_group("Header")
            header.attrs["Redshift"] = redshift
            header.attrs["MassTable"] = [0.0, redshift]
            file["x"] = np.arange(9.0)
            file["x"].attrs["units"] = "m"  # is compared
    found = compare("a.h5", "b.h5")
    assert found["code"] == MATCH
    assert "2 attributes were not compared; --option attributes=true" in found["text"]
    for value, code, is_told in (("true", DIFFER, False), ("[units]", MATCH, False)):
        Path("ciwrap.yaml").write_text(
            f"version: 1\nchecks: {{c: {{outputs: a.h5, options: {{attributes: {value}}}}}}}\n"
        )
        found = compare("a.h5", "b.h5", "--check", "c")
        assert found["code"] == code
        assert ("attributes were not compared" in found["text"]) == is_told


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_attributes_of_netcdf_are_counted(compare: Compare, kind: str) -> None:
    netcdf("a.nc", [1.0], "f8", kind=kind, units="m", long_name="a length")
    found = compare("a.nc", "a.nc")
    assert "1 attribute was not compared" in found["text"]


def test_what_hdf5_keeps_in_attributes_for_itself_is_no_attribute(compare: Compare) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        scale = file.create_dataset("x", data=[1.0, 2.0])
        scale.make_scale("x")
        file.create_dataset("u", data=[1.0, 2.0]).dims[0].attach_scale(scale)
    Path("ciwrap.yaml").write_text(
        "version: 1\nchecks: {c: {outputs: a.h5, options: {attributes: true}}}\n"
    )
    found = compare("a.h5", "a.h5", "--check", "c")
    assert (found["code"], len(found["variables"])) == (MATCH, 2)
    assert "attribute" not in compare("a.h5", "a.h5")["text"]


def test_nothing_compared_is_no_match(compare: Compare) -> None:
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("t,x\n")
    found = compare("a.csv", "b.csv")
    assert found["code"] == NOT_COMPARABLE
    assert "nothing was compared: 2 variables without values" in found["text"]
    Path("ciwrap.yaml").write_text("version: 1\nchecks: {c: {outputs: '*.csv'}}\n")
    assert run(["accept"]) == NOT_COMPARABLE
    Path("b.csv").write_text("u\n1\n")
    assert run(["accept"]) == MATCH
    assert run(["check"]) == MATCH


def test_what_is_no_number_on_both_sides_is_told(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("a.npy", [1, np.nan, np.inf, np.nan])
    np.save("b.npy", [1, np.nan, np.inf, np.nan])
    found = compare("a.npy", "b.npy")
    assert (found["code"], found["variables"][0]["not_finite_count"]) == (MATCH, 3)
    assert "3 values are NaN or infinite on both sides" in found["text"]
    np.save("b.npy", [1, np.nan, 2.0, np.nan])
    assert compare("a.npy", "b.npy")["variables"][0]["not_finite_count"] == 2
    np.save("a.npy", [np.nan, np.nan])
    Path("ciwrap.yaml").write_text("version: 1\nchecks: {c: {outputs: a.npy}}\n")
    assert run(["accept"]) == MATCH
    assert "a is NaN everywhere" in "".join(capsys.readouterr())


# --- what is said of bounds -----------------------------------------------------------------------


def test_a_relative_bound_of_whole_numbers_is_said_to_be_none(compare: Compare) -> None:
    Path("a.csv").write_text("case,iterations\n1,120\n")
    Path("b.csv").write_text("case,iterations\n1,123\n")
    found = compare("a.csv", "b.csv", "--rtol", "0.1")
    assert found["code"] == DIFFER
    assert "iterations: whole numbers, to which rtol and ulps do not apply; --atol" in found["text"]
    assert "as given" not in found["text"]
    assert compare("a.csv", "b.csv", "--atol", "3")["code"] == MATCH


@pytest.mark.parametrize(
    ("golden", "new", "options"),
    [
        ([1e7, 310.0], [1e7, 320.0], ["--rtol", "5.5e-6"]),
        ([1e6, 0.8753, 2e6], [1e6, 0.8754, 2e6], ["--rtol", "1e-12"]),
        ([1.0, 2.0, 1e4], [17.0, 18.0, 1e4 + 16], []),
        ([1.0, 500.0, 62100.0], [62100.0, 500.0, 1.0], []),
        ([0.0, 1.0, 2.0, 3.0], [1e-2, 1.0, 2.0, 3.0], []),
    ],
)
def test_no_bound_is_offered_that_hides_what_moved(
    compare: Compare, golden: list[float], new: list[float], options: list[str]
) -> None:
    np.save("a.npy", golden)
    np.save("b.npy", new)
    found = compare("a.npy", "b.npy", *options)
    assert found["code"] == DIFFER
    assert "would match with atol" not in found["text"]


def test_values_next_to_zero_are_so_beside_the_bound(compare: Compare) -> None:
    np.save("a.npy", [1.0, 1e-17, 2.0, 3.0])
    np.save("b.npy", [1.0, 4e-17, 2.0, 3.0])
    text = compare("a.npy", "b.npy", "--rtol", "1e-9")["text"]
    assert "A is next to zero; all of this variable would match with atol=3e-17" in text


# --- dimensions that can grow ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
@pytest.mark.parametrize(
    ("dimension", "count"), [("obs", 1), ("nlocs", 1), ("z_t", 1), ("ocean_time", 3), ("Time", 3)]
)
def test_a_dimension_may_grow_in_one_file_and_not_in_the_other(
    compare: Compare, kind: str, dimension: str, count: int
) -> None:
    """Only time gives iterations."""
    netcdf4 = pytest.importorskip("netCDF4")
    for name, length in (("a.nc", None), ("b.nc", 3)):
        with netcdf4.Dataset(name, "w", format=kind) as file:
            file.createDimension(dimension, length)
            file.createVariable("u", "f8", (dimension,))[:] = np.arange(3.0)
    found = compare("a.nc", "b.nc")
    assert (found["code"], len(found["variables"])) == (MATCH, count)


def test_tables_as_pandas_writes_them(compare: Compare) -> None:
    """NaN as an empty cell, and as other programs do, no line break at the end."""
    Path("a.csv").write_text("t,n,p,q\n0,1,1.5,\n1,,,\n2,3,2.5,")
    Path("b.csv").write_text("t,n,p,q\n0,1,1.5,\n1,,,\n2,3,2.5,\n")
    Path("c.csv").write_text("t,n,p,q\n0,1,1.5,\n1,2,,\n2,3,2.5,\n")
    for name in ("a.csv", "b.csv"):
        Path("copy.csv").write_text(Path(name).read_text())
        found = compare(name, "copy.csv")
        assert found["code"] == MATCH
        assert "5 values are NaN" in found["text"]
    found = compare("b.csv", "c.csv")
    assert (found["code"], found["coverage"]["not_comparable"]) == (DIFFER, 0)
    assert "1 value NaN without a match" in found["text"]
    found = compare("a.csv", "b.csv")
    assert found["code"] == NOT_COMPARABLE
    assert "in A the text ends with its last number" in found["text"]


# --- what is no file ------------------------------------------------------------------------------


def test_a_pointer_of_git_lfs_is_called_so(compare: Compare) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n"
    for name in ("a", "b"):
        for suffix in ("log", "csv", "nc"):
            Path(f"{name}.{suffix}").write_text(pointer.format(name * 64))
    for suffix in ("log", "csv", "nc"):
        found = compare(f"a.{suffix}", f"b.{suffix}")
        assert found["code"] == NOT_COMPARABLE
        assert "is a pointer of Git LFS, not the file itself" in found["text"]
        assert "run `git lfs pull`" in found["text"]


def test_a_duration_is_no_bound() -> None:
    for length in (np.timedelta64(2, "ms"), np.array(2, "m8[ms]")):
        with pytest.raises(InvalidBoundError, match="must be a number, not the duration 2 milli"):
            ErrorBound(atol=length)


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_characters_of_netcdf_are_texts(compare: Compare, kind: str) -> None:
    """However many characters there is room for."""
    netcdf4 = pytest.importorskip("netCDF4")
    for name, word, length in (("a.nc", "beta", 8), ("b.nc", "betb", 8), ("c.nc", "beta", 9)):
        with netcdf4.Dataset(name, "w", format=kind) as file:
            file.createDimension("time", None)
            file.createDimension("n", 2)
            file.createDimension("length", length)
            texts = np.array([["alpha", word]] * 3, f"S{length}")
            names = file.createVariable("names", "S1", ("time", "n", "length"))
            names[:] = netcdf4.stringtochar(texts)
            file.createVariable("x", "f8", ("n",))[:] = [1, 2]
            file.createVariable("flags", "S1", ("time",))[:] = np.array([b"a", b"b", b"c"])
    found = compare("a.nc", "b.nc")
    assert (found["code"], len(found["variables"])) == (DIFFER, 7)
    told = next(one for one in found["variables"] if one["name"] == "names")
    assert told["first_differences"] == [{"golden": "b'beta'", "index": [1], "new": "b'betb'"}]
    assert compare("a.nc", "c.nc")["code"] == MATCH
