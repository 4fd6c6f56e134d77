"""Files of Exodus: variables by the names that the file gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import netCDF4
import numpy as np
import pytest

from ciwrap.formats.find_outputs import reader_named

if TYPE_CHECKING:
    from pathlib import Path

STEPS, NODES, CELLS = 3, 5, 4
NAMES = {"nod": ["u", "disp_x"], "elem": ["stress"], "glo": ["energy", "dt", "steps"]}
kinds = pytest.mark.parametrize("kind", ["NETCDF3_64BIT_OFFSET", "NETCDF4"])


def write(path: Path, kind: str, names: dict[str, list[str]]) -> dict[str, Any]:
    """The arrays of the file by the names that they should have, over all steps."""
    expected = {}
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("time_step", None)
        file.createDimension("len_name", 33)
        sizes = {"nod": ("num_nodes", NODES), "elem": ("num_el_in_blk1", CELLS), "glo": None}
        for number, (kind_of, given) in enumerate(names.items()):
            file.createDimension(f"num_{kind_of}_var", len(given))
            text = file.createVariable(
                f"name_{kind_of}_var", "S1", (f"num_{kind_of}_var", "len_name")
            )
            text[:] = np.array([list(name.ljust(33, "\0")) for name in given], "S1")
            size = sizes[kind_of]
            values = np.arange(STEPS * len(given) * (size[1] if size else 1)) + 1000.0 * number
            if size is None:
                values = values.reshape(STEPS, len(given))
                dims = ("time_step", "num_glo_var")
                file.createVariable("vals_glo_var", "f8", dims)[:] = values
                expected |= {f"glo/{name}": values[:, n] for n, name in enumerate(given)}
                continue
            file.createDimension(*size)
            end = "eb1" if kind_of == "elem" else ""
            for n, name in enumerate(given):
                one = values.reshape(len(given), STEPS, size[1])[n]
                called = f"vals_{kind_of}_var{n + 1}{end}"
                file.createVariable(called, "f8", ("time_step", size[0]))[:] = one
                expected["/".join(filter(None, (kind_of, name, end)))] = one
    return expected


def read(path: Path, **options: Any) -> dict[str, dict[int | None, Any]]:
    found: dict[str, dict[int | None, Any]] = {}
    with reader_named("netcdf").open(path, options=options) as source:
        for info in source.variables:
            values = source.read(info.name, 0, info.element_count).reshape(info.shape)
            found.setdefault(info.called or info.name, {})[info.iteration] = values
            if info.region is not None:
                data = path.read_bytes()[info.region.offset :][: info.region.byte_count]
                assert data == values.tobytes()
    return found


@kinds
def test_variables_have_their_names(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out.nc"
    expected = write(path, kind, NAMES)
    found = read(path)
    for name, values in expected.items():
        assert {step: one.tolist() for step, one in found.pop(name).items()} == {
            step: one.tolist() for step, one in enumerate(values)
        }
    assert sorted(found) == ["name_elem_var", "name_glo_var", "name_nod_var"]


@kinds
def test_without_iterations_what_has_one_name_has_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out.nc"
    expected = write(path, kind, NAMES)
    found = read(path, iterations="none")
    assert found["nod/u"][None].tolist() == expected["nod/u"].tolist()
    assert found["vals_glo_var"][None].shape == (STEPS, 3)


@kinds
@pytest.mark.parametrize("names", [["u", "u"], ["u", ""], ["u", "a\nb"]])
def test_names_that_are_none(tmp_path: Path, kind: str, names: list[str]) -> None:
    path = tmp_path / "out.nc"
    write(path, kind, {**NAMES, "nod": names})
    assert {"vals_nod_var1", "vals_nod_var2", "vals_elem_var1eb1"} <= read(path).keys()


@kinds
def test_other_files_keep_their_names(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out.nc"
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("x", 2)
        file.createVariable("vals_nod_var1", "f8", ("x",))[:] = [1, 2]
        file.createVariable("name_nod_var", "f8", ("x",))[:] = [1, 2]
    assert sorted(read(path)) == ["name_nod_var", "vals_nod_var1"]
