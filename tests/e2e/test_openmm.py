"""The OpenMM example end to end: real noise from a real program, judged by the command line."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call
from e2e.cli_project import environment

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "openmm"
BOUNDS = {"positions": 5e-5, "velocities": 2e-3, "forces": 2.0}
EARLY = range(0, 91, 15)
ALL = range(0, 301, 15)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("openmm") is None,
        reason="OpenMM is not installed (pip install openmm==8.6.1)",
    ),
]


class Workspace:
    """The example's folder with runs a and b (two threads), c and d (one thread, deterministic)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ciwrap(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Runs a command; its exit code and JSON document."""
        target = self.folder / "result.json"
        target.unlink(missing_ok=True)
        more = ("--json", str(target))
        done = call(*arguments, *more, folder=self.folder, environment=environment())
        assert target.exists(), done.stdout + done.stderr
        return done.returncode, json.loads(target.read_text())

    def output(self, name: str) -> None:
        """Makes run `name` the output that the configuration speaks of."""
        link = self.folder / "run"
        link.unlink(missing_ok=True)
        link.symlink_to(name)

    def configure(self, evidence: str) -> None:
        text = (EXAMPLE / "ciwrap.yaml").read_text()
        assert "evidence: residues" in text
        text = text.replace("evidence: residues", f"evidence: {evidence}")
        (self.folder / "ciwrap.yaml").write_text(text)
        shutil.rmtree(self.folder / "golden", ignore_errors=True)

    def array(self, run: str, frame: int, name: str) -> np.ndarray:
        return np.load(self.folder / run / f"iter_{frame:04d}" / "rank_0" / f"{name}.npy")

    def check_against(self, golden: str, new: str, check: str) -> tuple[int, dict[str, Any]]:
        self.output(golden)
        code, _ = self.ciwrap("accept", check)
        assert code == 0
        self.output(new)
        return self.ciwrap("check", check)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("openmm")

    def program(*arguments: str) -> None:
        command = [sys.executable, str(EXAMPLE / "water_box.py"), *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)

    program("prepare", "input")
    for name in ("a", "b"):
        program("run", "input", name, "--threads", "2")
    for name in ("c", "d"):
        program("run", "input", name, "--threads", "1", "--deterministic")
    return Workspace(folder)


def arrays_of(document: dict[str, Any]) -> dict[tuple[int, str], dict[str, Any]]:
    (check,) = document["checks"]
    return {
        (variable["iteration"], variable["name"]): variable
        for variable in check["variables"]
        if variable["name"] in BOUNDS
    }


def differing(workspace: Workspace, frame: int, name: str, bound: float) -> np.ndarray:
    a, b = workspace.array("a", frame, name), workspace.array("b", frame, name)
    return ~((a == b) | (np.abs(b - a) <= bound))


def test_deterministic_runs_match_at_bound_zero(workspace: Workspace) -> None:
    code, document = workspace.ciwrap("compare", "c", "d")
    assert (code, document["verdict"]) == (0, "match")
    variables = arrays_of(document)
    assert set(variables) == {(frame, name) for frame in ALL for name in BOUNDS}
    assert all(variable["bound"]["atol"] == 0 for variable in variables.values())


@pytest.mark.parametrize("bounds", ["exact", "configured"])
def test_threaded_runs_differ_exactly_where_numpy_says(workspace: Workspace, bounds: str) -> None:
    workspace.configure("residues")
    options = [] if bounds == "exact" else ["--check", "history"]
    code, document = workspace.ciwrap("compare", "a", "b", *options)
    variables = arrays_of(document)
    assert len(variables) == len(ALL) * len(BOUNDS)
    total = 0
    for (frame, name), variable in variables.items():
        bound = 0.0 if bounds == "exact" else BOUNDS[name]
        expected = differing(workspace, frame, name, bound)
        total += int(expected.sum())
        assert variable["element_count"] == expected.size
        assert variable["differing_count"] == expected.sum(), (frame, name)
        assert variable["verdict"] == ("differ" if expected.any() else "match")
        first = None if not expected.any() else [int(i) for i in np.argwhere(expected)[0]]
        assert variable["first_index"] == first
        if expected.any():
            a, b = workspace.array("a", frame, name), workspace.array("b", frame, name)
            assert variable["max_abs_difference"] == np.abs(b - a).max()
    if bounds == "exact":
        # Positions and velocities start equal; the forces are already summed in another order.
        assert (code, document["verdict"]) == (1, "differ")
        assert total > 0.9 * sum(v["element_count"] for (f, _), v in variables.items() if f)
    else:
        assert code == (1 if document["verdict"] == "differ" else 0)


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_the_golden_of_a_deterministic_run_accepts_its_repetition(
    workspace: Workspace, evidence: str
) -> None:
    workspace.configure(evidence)
    code, document = workspace.check_against("c", "d", "history")
    assert (code, document["verdict"]) == (0, "match")
    assert {v["evidence"] for v in arrays_of(document).values()} == {evidence}


def test_residues_accept_noise_without_golden_data(workspace: Workspace) -> None:
    workspace.configure("residues")
    code, document = workspace.check_against("a", "b", "early")
    assert (code, document["verdict"]) == (0, "match")
    variables = arrays_of(document)
    assert set(variables) == {(frame, name) for frame in EARLY for name in BOUNDS}
    for (frame, name), variable in variables.items():
        assert variable["evidence"] == "residues"
        assert variable["differing_count"] == 0
        assert not differing(workspace, frame, name, BOUNDS[name]).any()
        # The drift is the true share of the bound, to within one fine step (1/8 at k = 15).
        a, b = workspace.array("a", frame, name), workspace.array("b", frame, name)
        share = np.abs(b - a).max() / BOUNDS[name]
        assert abs(variable["max_drift_share"] - share) <= 1 / 8 + 1e-9


def test_a_plain_tree_raises_false_alarms_on_the_same_runs(workspace: Workspace) -> None:
    workspace.configure("tree")
    code, document = workspace.check_against("a", "b", "early")
    assert (code, document["verdict"]) == (1, "undecided")
    variables = arrays_of(document)
    alarms = [variable for variable in variables.values() if variable["verdict"] == "undecided"]
    # Nothing exceeds its bound (the test above), yet most variables are suspected.
    assert len(alarms) > len(variables) / 3
    assert all(variable["differing_count"] is None for variable in alarms)


def test_golden_with_data_settles_what_its_tree_suspects(workspace: Workspace) -> None:
    workspace.configure("data")
    code, document = workspace.check_against("a", "b", "history")
    for (frame, name), variable in arrays_of(document).items():
        expected = differing(workspace, frame, name, BOUNDS[name])
        assert variable["evidence"] == "data"
        assert variable["differing_count"] == expected.sum()
    assert code == (1 if document["verdict"] == "differ" else 0)
