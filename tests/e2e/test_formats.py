"""One history in every format: the same verdicts and counts, which are those of plain NumPy.

The history is laid out as the OpenMM example of this repository writes it: positions, velocities
and forces of a water box every 15 steps, two runs that agree at first and drift apart (chaos).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from trajectories import write_dcd

from ciwrap.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable

    History = dict[int, dict[str, np.ndarray[Any, Any]]]

ATOMS, STEPS, EVERY, ATOL = 240, 8, 15, 1e-4


def histories() -> tuple[History, History]:
    """Two runs; positions in float32, since trajectories hold no more."""
    draw = np.random.default_rng(42)
    runs: tuple[History, History] = ({}, {})
    base = draw.uniform(0, 30, (ATOMS, 3))
    for number in range(STEPS):
        base = base + draw.normal(size=base.shape) * 0.05
        forces = draw.normal(size=base.shape) * 100
        away = np.where(draw.random(base.shape) < 0.05, 10.0 ** (number - 7), 1e-9)
        for one, sign in zip(runs, (0, 1), strict=True):
            one[number * EVERY] = {
                "positions": (base + sign * away).astype("<f4"),
                "velocities": base / 7 + sign * away,
                "forces": forces + sign * away * 10,
            }
    return runs


def truth(runs: tuple[History, History], names: tuple[str, ...]) -> dict[tuple[int, str], int]:
    return {
        (step, name): int(
            (
                np.abs(runs[1][step][name].astype("f8") - runs[0][step][name].astype("f8")) > ATOL
            ).sum()
        )
        for step in runs[0]
        for name in names
    }


def write_npy(path: Path, history: History) -> None:
    for step, arrays in history.items():
        folder = path / f"iter_{step:04d}/rank_0"
        folder.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)


def write_hdf5(path: Path, history: History) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.attrs["created"] = str(path)  # no difference unless asked
        for step, arrays in history.items():
            for name, array in arrays.items():
                file.create_dataset(f"iter_{step:04d}/{name}", data=array)


def write_hdf5_packed(path: Path, history: History) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for step, arrays in history.items():
            for name, array in arrays.items():
                file.create_dataset(
                    f"step#{step}/{name}", data=array, chunks=(100, 2), compression="gzip"
                )


def write_netcdf(path: Path, history: History, kind: str) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path, "w", format=kind) as file:
        file.createDimension("time", None)
        file.createDimension("atom", ATOMS)
        file.createDimension("xyz", 3)
        file.createVariable("time", "f8", ("time",))[:] = [step * 0.002 for step in history]
        file.history = f"made as {path}"
        for name in next(iter(history.values())):
            arrays = np.stack([one[name] for one in history.values()])
            file.createVariable(name, arrays.dtype, ("time", "atom", "xyz"))[:] = arrays


def write_zarr(path: Path, history: History, version: int) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    dimensions = ["time", "atom", "xyz"]
    arrays = {
        name: np.stack([one[name] for one in history.values()])
        for name in next(iter(history.values()))
    }
    arrays["time"] = np.array([step * 0.002 for step in history])
    for name, array in arrays.items():
        named = dimensions[: array.ndim]
        more = {"dimension_names": named} if version == 3 else {}
        one = group.create_array(name, data=array, chunks=(2, *array.shape[1:]), **more)
        if version == 2:
            one.attrs["_ARRAY_DIMENSIONS"] = named


def write_trajectory(path: Path, history: History) -> None:
    write_dcd(path, np.stack([one["positions"] for one in history.values()]), every=EVERY)


ALL = ("positions", "velocities", "forces")
TIME = "{iteration_variable: time, iteration_step: 0.002}"
FORMATS: dict[str, tuple[Callable[[Path, History], None], str, tuple[str, ...], str]] = {
    "npy": (write_npy, "run", ALL, "{}"),
    "hdf5": (write_hdf5, "run.h5", ALL, "{}"),
    "hdf5-packed": (write_hdf5_packed, "run.h5", ALL, "{}"),
    "netcdf3": (lambda p, h: write_netcdf(p, h, "NETCDF3_64BIT_OFFSET"), "run.nc", ALL, TIME),
    "netcdf4": (lambda p, h: write_netcdf(p, h, "NETCDF4"), "run.nc", ALL, TIME),
    "zarr2": (lambda p, h: write_zarr(p, h, 2), "run.zarr", ALL, TIME),
    "zarr3": (lambda p, h: write_zarr(p, h, 3), "run.zarr", ALL, TIME),
    "dcd": (write_trajectory, "run.dcd", ("positions",), "{}"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_counts_are_those_of_numpy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, file_name, variables, options = FORMATS[name]
    runs = histories()
    for folder, history in zip("ab", runs, strict=True):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / file_name, history)
    monkeypatch.chdir(tmp_path)
    given = "" if options == "{}" else f"    options: {options}\n"
    Path("ciwrap.yaml").write_text(
        f"checks:\n  md:\n    outputs: a/{file_name}\n    atol: {ATOL}\n{given}"
    )
    code = run(
        ["compare", f"a/{file_name}", f"b/{file_name}", "--check", "md", "--json", "result.json"]
    )
    document = json.loads(Path("result.json").read_text())
    assert code == 1, document
    found = {
        (one["iteration"], one["name"]): one["differing_count"]
        for one in document["checks"][0]["variables"]
        if one["name"] in ALL
    }
    wanted = truth(runs, variables)
    assert found == wanted
    assert 0 in wanted.values()
    assert max(wanted.values()) > 20

    # The golden of one run says the same of the other.
    assert run(["accept"]) == 0
    Path("a").rename("aa")
    Path("b").rename("a")
    assert run(["check", "--json", "result.json"]) == 1
    document = json.loads(Path("result.json").read_text())
    checked = {
        (one["iteration"], one["name"]): one["differing_count"]
        for one in document["checks"][0]["variables"]
        if one["name"] in ALL
    }
    assert checked == wanted
