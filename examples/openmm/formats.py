"""The same runs in five formats: what ciwrap finds in each, beside NumPy.

    python formats.py             runs, writes, compares, prints a table; exit code 1 if any two
                                  of them disagree
    python formats.py --work DIR  keeps everything in DIR

From one start: `base` and `again` (one thread, deterministic), `noise` (two threads that sum forces
in changing order), and `other` (as base, but from step 45 on with steps of 2.02 fs instead of 2).
Each is written as .npy, HDF5, NetCDF, Zarr and DCD by that format's own library, and each of the
last three is compared with `base`: once from the data, once with captures.

A DCD holds positions in angstrom as float32 and nothing else. For that comparison to be one of the
same numbers, the other formats also hold a variable `trajectory`: exactly these float32 numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from openmm import Vec3, app, unit
from water_box import BOX_NM, STEP_PS, checkpoints, prepare

from ciwrap.cli.main import run as ciwrap_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    History = dict[int, dict[str, np.ndarray]]

HERE = Path(__file__).resolve().parent
STEPS, EVERY = 90, 15
BOUNDS = {"positions": 5e-5, "velocities": 2e-3, "forces": 2.0, "trajectory": 5e-4}
RUNS: dict[str, dict[str, Any]] = {
    "base": {"threads": 1, "deterministic": True},
    "again": {"threads": 1, "deterministic": True},
    "noise": {"threads": 2, "deterministic": False},
    "other": {"threads": 1, "deterministic": True, "other_step": (45, 1.01 * STEP_PS)},
}


@dataclass(frozen=True)
class Finding:
    """What is said of one variable over all checkpoints. counts (of elements beyond the bound) and
    maxima (of |difference|): one a checkpoint; a maximum is None where trees said "match" before
    any number was read.

    first: (step, index, both values as texts) of the first element beyond the bound.
    """

    verdict: str
    counts: tuple[int, ...]
    maxima: tuple[float | None, ...]
    first: tuple[int, tuple[int, ...], str, str] | None

    def agrees(self, truth: Finding) -> bool:
        known = zip(self.maxima, truth.maxima, strict=True)
        maxima = tuple(theirs if ours is None else ours for ours, theirs in known)
        return replace(self, maxima=maxima) == truth


def simulate(start: Path, **how: Any) -> History:
    history = {}
    for step, arrays, _ in checkpoints(start, steps=STEPS, every=EVERY, **how):
        # As OpenMM's DCDFile does it: from nm to angstrom in double precision, then rounded.
        history[step] = {**arrays, "trajectory": (10 * arrays["positions"]).astype("<f4")}
    return history


# --- one writer for each format -------------------------------------------------------------------


def write_npy(folder: Path, history: History) -> None:
    for step, arrays in history.items():
        place = folder / f"iter_{step:04d}"
        place.mkdir()
        for name, array in arrays.items():
            np.save(place / f"{name}.npy", array)


def write_hdf5(folder: Path, history: History) -> None:
    import h5py

    with h5py.File(folder / "run.h5", "w") as file:
        for step, arrays in history.items():
            for name, array in arrays.items():
                packed = {"chunks": (500, 3), "compression": "gzip"} if name == "forces" else {}
                file.create_dataset(f"iter_{step:04d}/{name}", data=array, **packed)


def write_netcdf(folder: Path, history: History) -> None:
    import netCDF4

    with netCDF4.Dataset(folder / "run.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("atom", len(history[0]["positions"]))
        file.createDimension("xyz", 3)
        file.createVariable("step", "i8", ("time",))[:] = list(history)
        for name, array in history[0].items():
            variable = file.createVariable(name, array.dtype, ("time", "atom", "xyz"))
            variable[:] = np.stack([arrays[name] for arrays in history.values()])


def write_zarr(folder: Path, history: History) -> None:
    import zarr

    group = zarr.create_group(str(folder / "run.zarr"))
    group.create_array("step", data=np.array(list(history)), dimension_names=["time"])
    for name, array in history[0].items():
        group.create_array(
            name,
            data=np.stack([arrays[name] for arrays in history.values()]),
            chunks=(1, 1000, 3),
            dimension_names=["time", *("atom", "xyz")[: array.ndim]],
        )


def write_dcd(folder: Path, history: History) -> None:
    topology = app.Topology()
    residue = topology.addResidue("all", topology.addChain())
    for _ in history[0]["positions"]:
        topology.addAtom("X", None, residue)
    topology.setUnitCellDimensions(Vec3(BOX_NM, BOX_NM, BOX_NM) * unit.nanometer)
    with (folder / "run.dcd").open("w+b") as file:
        dcd = app.DCDFile(file, topology, STEP_PS * unit.picosecond, 0, EVERY)
        for arrays in history.values():
            dcd.writeModel(arrays["positions"] * unit.nanometer)


# format: (its library, what writes it)
FORMATS: dict[str, tuple[str, Callable[[Path, History], None]]] = {
    "npy": ("numpy", write_npy),
    "hdf5": ("h5py", write_hdf5),
    "netcdf": ("netCDF4", write_netcdf),
    "zarr": ("zarr", write_zarr),
    "dcd": ("openmm", write_dcd),
}


# --- what ciwrap and NumPy find -------------------------------------------------------------------


def ciwrap(work: Path, *arguments: object) -> dict[str, Any]:
    """Runs a command and returns its JSON document; a verdict of any kind is fine.

    In this process: to start Python fifty times would take longer than all the rest.
    """
    target = work / "result.json"
    target.unlink(missing_ok=True)
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = ciwrap_command([*map(str, arguments), "--json", str(target)])
    if code not in (0, 1):
        sys.exit(told.getvalue())
    document = json.loads(target.read_text())
    assert document["exit_code"] == code
    return document


def compared(work: Path, format_name: str, run: str) -> dict[str, Finding]:
    """What `ciwrap compare` finds, by variable. Positions of a DCD are called trajectory."""
    (check,) = ciwrap(
        work,
        *("compare", work / "base" / format_name, work / run / format_name),
        *("--check", format_name, "--config", HERE / "formats.yaml"),
    )["checks"]
    variables: dict[str, list[dict[str, Any]]] = {}
    for one in check["variables"]:
        is_renamed = format_name == "dcd" and one["name"] == "positions"
        variables.setdefault("trajectory" if is_renamed else one["name"], []).append(one)
    found = {
        name: _finding(sorted(variables[name], key=_step)) for name in BOUNDS if name in variables
    }
    _hold_against_history(check, found)
    return found


def _step(variable: dict[str, Any]) -> int:
    return int(variable["iteration"])


def _finding(checkpoints: list[dict[str, Any]]) -> Finding:
    assert [_step(one) for one in checkpoints] == list(range(0, STEPS + 1, EVERY))
    verdicts = {one["verdict"] for one in checkpoints}
    first = None
    for one in checkpoints:
        if one["verdict"] == "differ" and first is None:
            element = one["first_differences"][0]
            index = tuple(element["index"])
            first = (_step(one), index, element["golden"], element["new"])
    return Finding(
        verdicts.pop() if len(verdicts) == 1 else "differ" if "differ" in verdicts else "?",
        tuple(one["differing_count"] for one in checkpoints),
        tuple(_largest(one) for one in checkpoints),
        first,
    )


def _largest(variable: dict[str, Any]) -> float | None:
    largest = variable["max_abs_difference"]
    is_settled_by_trees = variable["verdict"] == "match" and variable["evidence"] != "data"
    assert is_settled_by_trees or largest is not None
    return largest


def _hold_against_history(check: dict[str, Any], found: dict[str, Finding]) -> None:
    """The first divergence of the whole comparison is the earliest of those of its variables."""
    told = check.get("first_numeric_divergence")
    firsts = [(one.first[0], name, one.first[1]) for name, one in found.items() if one.first]
    if told is None:
        assert not firsts
    else:
        name = "trajectory" if len(found) == 1 else told["name"]
        assert (told["iteration"], name, tuple(told["element"]["index"])) == min(firsts)


def by_numpy(base: History, new: History) -> dict[str, Finding]:
    return {name: _by_numpy(base, new, name) for name in BOUNDS}


def _by_numpy(base: History, new: History, name: str) -> Finding:
    counts, maxima, first = [], [], None
    for step in base:
        golden, other = base[step][name], new[step][name]
        difference = np.abs(other.astype("f8") - golden.astype("f8"))
        beyond = difference > BOUNDS[name]
        counts.append(int(beyond.sum()))
        maxima.append(float(difference.max()))
        if beyond.any() and first is None:
            index = tuple(int(n) for n in np.argwhere(beyond)[0])
            first = (step, index, str(golden[index]), str(other[index]))
    return Finding("differ" if first else "match", tuple(counts), tuple(maxima), first)


# --- the whole ------------------------------------------------------------------------------------


def make(work: Path, formats: list[str]) -> dict[str, History]:
    """Runs and writes everything; folders run/format."""
    if not (work / "input").is_dir():
        prepare(work / "input")
    histories = {}
    for run, how in RUNS.items():
        histories[run] = simulate(work / "input", **how)
        for name in formats:
            (work / run / name).mkdir(parents=True)
            FORMATS[name][1](work / run / name, histories[run])
    return histories


def findings(work: Path, formats: list[str]) -> Iterator[tuple[str, str, str, Finding]]:
    """(run, format, how, finding by variable) of every comparison with base."""
    for name in formats:
        for run in list(RUNS)[1:]:
            for variable, found in compared(work, name, run).items():
                yield run, variable, name, found
        options = ["--check", name, "--config", HERE / "formats.yaml", "--settle", "0"]
        ciwrap(work, "capture", work / "base" / name, *options, "--residues")
        for run in list(RUNS)[1:]:
            against = ["--against", work / "base" / name / ".ciwrap.tree"]
            ciwrap(work, "capture", work / run / name, *options, *against)
            for variable, found in compared(work, name, run).items():
                yield run, variable, f"{name}, captured", found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, help="an empty or new folder to keep everything in")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all findings there")
    options = parser.parse_args()
    formats = [name for name, (module, _) in FORMATS.items() if importlib.util.find_spec(module)]
    for name in FORMATS.keys() - set(formats):
        print(f"without {name}: {FORMATS[name][0]} is not installed", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        histories = make(work, formats)
        found: dict[tuple[str, str], dict[str, Finding]] = {}
        for run, variable, how, finding in findings(work, formats):
            found.setdefault((run, variable), {})[how] = finding
    print_table(found, histories, formats)
    if options.json:
        text = [
            {"run": run, "variable": variable, "how": how, **asdict(finding)}
            for (run, variable), by_format in found.items()
            for how, finding in by_format.items()
        ]
        options.json.write_text(json.dumps(text, indent=1))
    truth = {run: by_numpy(histories["base"], histories[run]) for run in list(RUNS)[1:]}
    wrong = [
        f"{run}, {variable}, {how}: {finding}; NumPy: {truth[run][variable]}"
        for (run, variable), by_format in found.items()
        for how, finding in by_format.items()
        if not finding.agrees(truth[run][variable])
    ]
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


def print_table(found: Any, histories: dict[str, History], formats: list[str]) -> None:
    count = sum(map(len, found.values()))
    print(f"| base and | variable | NumPy | {' | '.join(formats)} | largest | first beyond |")
    print("|" + "---|" * (5 + len(formats)))
    for run in list(RUNS)[1:]:
        for variable, truth in by_numpy(histories["base"], histories[run]).items():
            by_format = found[run, variable]
            cells = [
                f"{by_format[name].verdict} {sum(by_format[name].counts)}"
                if name in by_format
                else ""
                for name in formats
            ]
            first = "" if truth.first is None else f"step {truth.first[0]}, {list(truth.first[1])}"
            print(
                f"| {run} | {variable} | {truth.verdict} {sum(truth.counts)} | {' | '.join(cells)}"
                f" | {max(truth.maxima):.3g} | {first} |"
            )
    print(f"\n{count} findings, half of them with captures")


if __name__ == "__main__":
    sys.exit(main())
