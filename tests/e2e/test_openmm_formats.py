"""The OpenMM example in five formats: what examples/openmm/formats.py says, compared with NumPy and
against the formats' own libraries.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.cli_project import environment

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from collections.abc import Iterator

    Arrays = dict[tuple[int, str], np.ndarray[Any, Any]]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "openmm"
STEPS = range(0, 91, 15)
BOUNDS = {"positions": 5e-5, "velocities": 2e-3, "forces": 2.0, "trajectory": 5e-4}
FORMATS = {"npy", "hdf5", "netcdf", "dcd"} | ({"zarr"} if sys.version_info >= (3, 11) else set())

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("openmm") is None,
        reason="OpenMM is not installed (pip install openmm==8.6.1)",
    ),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    # As users run it: with the modules beside it.
    unsafe = {name: value for name, value in environment().items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [
            *(sys.executable, str(EXAMPLE / "formats.py"), "--work", str(folder)),
            *("--json", str(folder / "findings.json")),
        ],
        env=unsafe,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| other | positions | differ" in done.stdout
    return folder


def arrays(work: Path, run: str) -> Arrays:
    return {
        (step, name): np.load(work / run / "npy" / f"iter_{step:04d}" / f"{name}.npy")
        for step in STEPS
        for name in BOUNDS
    }


def test_every_format_says_what_numpy_says(work: Path) -> None:
    base = arrays(work, "base")
    findings = json.loads((work / "findings.json").read_text())
    seen = set()
    for one in findings:
        new, name = arrays(work, one["run"]), one["variable"]
        seen.add((one["run"], name, *one["how"].split(", ")))
        away = {s: np.abs(new[s, name].astype("f8") - base[s, name].astype("f8")) for s in STEPS}
        beyond = {step: away[step] > BOUNDS[name] for step in STEPS}
        assert one["counts"] == [beyond[step].sum() for step in STEPS], one
        assert one["verdict"] == ("differ" if any(one["counts"]) else "match")
        for step, largest in zip(STEPS, one["maxima"], strict=True):
            assert largest == away[step].max() or (
                largest is None and "captured" in one["how"] and not beyond[step].any()
            )
        first = next((step for step in STEPS if beyond[step].any()), None)
        assert (one["first"] is None) == (first is None)
        if first is not None:
            index = tuple(np.argwhere(beyond[first])[0].tolist())
            values = [str(side[first, name][index]) for side in (base, new)]
            assert one["first"] == [first, list(index), *values]
    assert seen == {
        (run, name, form, *how)
        for run in ("again", "noise", "other")
        for form in FORMATS
        for name in (["trajectory"] if form == "dcd" else BOUNDS)
        for how in ((), ("captured",))
    }


def test_the_three_pairs_are_what_they_are_called(work: Path) -> None:
    """Else all of this could hold of runs that say nothing."""
    base = arrays(work, "base")
    equal = {
        run: [np.array_equal(base[key], array) for key, array in arrays(work, run).items()]
        for run in ("again", "noise", "other")
    }
    assert all(equal["again"])
    assert sum(equal["noise"]) <= 4  # the first positions, velocities and little else
    found = {
        (one["run"], one["variable"]): one
        for one in json.loads((work / "findings.json").read_text())
    }
    assert {one["verdict"] for (run, _), one in found.items() if run == "noise"} == {"match"}
    for name in BOUNDS:
        assert found["other", name]["first"][0] == 60  # the step length is another from 45 on
        assert found["other", name]["counts"][:4] == [0, 0, 0, 0]
        assert min(found["other", name]["counts"][4:]) > 1000


def in_hdf5(folder: Path) -> Iterator[tuple[int, str, Any]]:
    import h5py

    with h5py.File(folder / "run.h5") as file:
        for step in STEPS:
            yield from ((step, name, file[f"iter_{step:04d}/{name}"][()]) for name in BOUNDS)


def in_netcdf(folder: Path) -> Iterator[tuple[int, str, Any]]:
    import netCDF4

    with netCDF4.Dataset(folder / "run.nc") as file:
        for number, step in enumerate(file["step"][:].tolist()):
            yield from ((step, name, file[name][number].data) for name in BOUNDS)


def in_zarr(folder: Path) -> Iterator[tuple[int, str, Any]]:
    import zarr

    group = zarr.open_group(str(folder / "run.zarr"), mode="r")
    for number, step in enumerate(group["step"][:].tolist()):
        yield from ((step, name, group[name][number]) for name in BOUNDS)


def in_dcd(folder: Path) -> Iterator[tuple[int, str, Any]]:
    """By hand: a header of 276 bytes; then for each frame the cell, x, y and z, each between two
    marks that say how long it is.
    """
    data = (folder / "run.dcd").read_bytes()
    atoms = int(np.frombuffer(data, "<i4", 1, 268)[0])
    frame = np.dtype(
        [
            ("cell", "V56"),
            *((axis, [("m", "<i4"), ("x", "<f4", atoms), ("n", "<i4")]) for axis in "xyz"),
        ]
    )
    for step, one in zip(STEPS, np.frombuffer(data, frame, offset=276), strict=True):
        assert one["y"]["m"] == one["z"]["n"] == 4 * atoms
        yield step, "trajectory", np.stack([one[axis]["x"] for axis in "xyz"], axis=1)


@pytest.mark.parametrize("form", ["hdf5", "netcdf", "zarr", "dcd"])
def test_the_files_hold_the_same_numbers(work: Path, form: str) -> None:
    if form not in FORMATS:
        return
    read = {"hdf5": in_hdf5, "netcdf": in_netcdf, "zarr": in_zarr, "dcd": in_dcd}[form]
    for run in ("base", "other"):
        wanted, found = arrays(work, run), set()
        for step, name, array in read(work / run / form):
            assert array.dtype == wanted[step, name].dtype
            assert np.array_equal(array, wanted[step, name]), (run, step, name)
            found.add((step, name))
        assert len(found) == len(STEPS) * (1 if form == "dcd" else len(BOUNDS))


def test_one_number_more_is_one_difference_more(work: Path, tmp_path: Path) -> None:
    """A count that were not of these very files would not move."""
    import h5py

    with h5py.File(work / "noise/hdf5/run.h5", "a") as file:
        file["iter_0030/velocities"][7, 1] += 0.1
    target = tmp_path / "result.json"
    options = ["--check", "hdf5", "--config", str(EXAMPLE / "formats.yaml"), "--json", str(target)]
    assert run_cli(["compare", str(work / "base/hdf5"), str(work / "noise/hdf5"), *options]) == 1
    (check,) = json.loads(target.read_text())["checks"]
    assert sum(one["differing_count"] for one in check["variables"]) == 1
    first = check["first_divergence"]
    assert (first["iteration"], first["name"]) == (30, "velocities")
    assert first["element"]["index"] == [7, 1]
