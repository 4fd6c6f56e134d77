"""Files as programs leave them: what is storage is no difference, what is missing is no number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.cli.main import run

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
        assert f"1 element missing ({name}) on one side only" in found["text"]
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
