"""From nothing to written bounds, with real programs: do further runs pass, does a defect fail?

Each program is an example of this repository, with a configuration that names its command and
outputs and no bound. The commands are those that a user types: `repeat --write-bounds`, `accept`,
and `run` for each further run. A defect is one element that is off by three times its bound.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_BEYOND = 3


@dataclass(frozen=True)
class Program:
    """name: of its folder in examples. needs: what has to be installed."""

    name: str
    needs: str
    command: str
    outputs: str
    prepare: tuple[str, ...] = ()


PROGRAMS = (
    Program("mpi", "mpi4py", "mpiexec -n 3 {python} heat.py out", "out"),
    Program(
        "openmm",
        "openmm",
        "{python} water_box.py run input out --threads 2 --steps 60 --overwrite",
        "out",
        ("water_box.py", "prepare", "input"),
    ),
)


def run(*, runs: int, further: int, names: tuple[str, ...] = ()) -> dict[str, Any]:
    """The programs that can be run here, or those of these names."""
    wanted = [one for one in PROGRAMS if not names or one.name in names]
    return {
        "runs": runs,
        "further": further,
        "programs": [
            _measure(one, runs, further)
            if importlib.util.find_spec(one.needs)
            else {"name": one.name, "lacking": one.needs}
            for one in wanted
        ],
    }


def _measure(program: Program, runs: int, further: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in (EXAMPLES / program.name).glob("*.py"):
            shutil.copy(path, folder)
        if program.prepare:
            _call(folder, sys.executable, *program.prepare)
        command = program.command.format(python=sys.executable)
        (folder / "ciwrap.yaml").write_text(_as_yaml(command, program))
        code, repeated = ciwrap(folder, "repeat", "-n", str(runs), "--write-bounds")
        if code:
            return {"name": program.name, "headline": repeated["headline"], "codes": [code]}
        ciwrap(folder, "run")  # there is no golden yet
        ciwrap(folder, "accept")
        codes = [ciwrap(folder, "run")[0] for _ in range(further)]
        varying = [one for one in repeated["variables"] if one["suggested_bound"] is not None]
        return {
            "name": program.name,
            "headline": repeated["headline"],
            "config": (folder / "ciwrap.yaml").read_text(),
            "codes": codes,
            "found": {
                one["name"]: _finds_defect(folder, one, files)
                for one in varying
                if (files := _files(folder, one))
            },
        }


def _as_yaml(command: str, program: Program) -> str:
    return (
        f"run: {json.dumps(command)}\nchecks:\n  {program.name}:\n    outputs: {program.outputs}\n"
    )


def _files(folder: Path, variable: dict[str, Any]) -> list[Path]:
    """The .npy files of a variable, up to the iteration that its bound is for; none of a column of
    a table.
    """
    until = variable["suggested_bound"].get("until_iteration")
    return [
        path
        for path in sorted((folder / "out").glob(f"iter_*/*/{variable['name']}.npy"))
        if until is None or int(path.parents[1].name.removeprefix("iter_")) <= until
    ]


def _finds_defect(folder: Path, variable: dict[str, Any], files: list[Path]) -> bool:
    """Whether an element that is off by three bounds is found, in a run that is good otherwise."""
    bound = variable["suggested_bound"]
    while ciwrap(folder, "run")[0]:
        pass
    array = np.load(files[-1])
    flat = array.reshape(-1)
    at = flat.size // 2
    flat[at] += _BEYOND * (bound["atol"] + bound["rtol"] * abs(flat[at])) * (1 + 1 / _BEYOND)
    np.save(files[-1], array)
    code, result = ciwrap(folder, "check")
    differing = [
        one["name"]
        for check in result["checks"]
        for one in check["variables"]
        if one["verdict"] == "differ"
    ]
    return code == 1 and differing == [variable["name"]]


def ciwrap(folder: Path, *arguments: str) -> tuple[int, Any]:
    """The exit code and the JSON result of a command."""
    target = folder / ".ciwrap-result.json"
    target.unlink(missing_ok=True)
    words = [sys.executable, "-m", "ciwrap", *arguments, "--json", str(target)]
    # The programs' own commands are found beside this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words, cwd=folder, capture_output=True, timeout=7200, check=False,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    if not target.exists():
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.decode()[-2000:]}")
    return done.returncode, json.loads(target.read_text())


def _call(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=600)


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["program", f"after {result['runs']} runs", "further runs", "of them pass", "defects"]]
    for one in result["programs"]:
        if "lacking" in one:
            rows.append([one["name"], f"{one['lacking']} is not installed", "", "", ""])
            continue
        found = one.get("found", {})
        rows.append(
            [
                one["name"],
                one["headline"],
                str(len(one["codes"])),
                str(sum(code == 0 for code in one["codes"])),
                f"{sum(found.values())} of {len(found)} found",
            ]
        )
    return rows
