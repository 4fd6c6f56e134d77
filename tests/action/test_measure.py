"""Modes repeat, time and trend of the action: outputs, summary, annotations, the gate."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from action.test_steps import parse_outputs
from command_line import call
from e2e.cli_project import environment

from ciwrap.action import steps as measure
from ciwrap.action.github import FailOn, Runner, read_inputs
from ciwrap.action.orders import Call
from ciwrap.action.steps import gate
from ciwrap.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
import os, sys
import numpy as np
os.makedirs("out", exist_ok=True)
drift = float(open("drift").read()) if os.path.exists("drift") else 0.0
np.save("out/x.npy", np.linspace(1, 2, 50) + drift + 1e-9 * np.random.default_rng().normal(size=50))
"""


class Job:
    """A job's workspace with a noisy program, and the files that a runner gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        (self.folder / "noisy.py").write_text(PROGRAM)
        self.configure("1e-6")
        self.output, self.summary = folder / "output", folder / "summary"
        for path in (self.output, self.summary):
            path.touch()
        self.runner = Runner(
            {
                "GITHUB_WORKSPACE": str(self.folder),
                "RUNNER_TEMP": str(folder / "temp"),
                "GITHUB_OUTPUT": str(self.output),
                "GITHUB_STEP_SUMMARY": str(self.summary),
            }
        )

    def configure(self, atol: str) -> None:
        command = json.dumps([sys.executable, "noisy.py"])
        (self.folder / "ciwrap.yaml").write_text(
            f"run: {command}\nchecks:\n  mesh: {{outputs: out, atol: {atol}, evidence: data}}\n"
        )

    def run(self, **inputs: str) -> dict[str, str]:
        """A step; its outputs."""
        self.output.write_text("")
        given = {f"CIWRAP_INPUT_{name.upper()}": value for name, value in inputs.items()}
        measure.run_measure(read_inputs(given), self.runner)
        return parse_outputs(self.output.read_text())


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    def call_here(arguments: list[str], runner: Runner, result_path: Path) -> Call:
        words = (*arguments, "--json", str(result_path))
        done = call(*words, folder=runner.workspace, environment=environment())
        return Call(done.returncode, result_path)

    monkeypatch.setattr(measure, "call_cli", call_here)
    return Job(tmp_path)


@pytest.mark.parametrize(
    ("atol", "arguments", "status", "is_failed"),
    [("1e-6", "-n 4 --check", "done", 0), ("1e-12", "-n 4 --check", "differ", 1),
     ("1e-12", "-n 4", "done", 0)],
)  # fmt: skip
def test_repeat_tells_what_varies(
    job: Job, atol: str, arguments: str, status: str, is_failed: int
) -> None:
    job.configure(atol)
    outputs = job.run(mode="repeat", arguments=arguments, report="noise.html")
    assert outputs["status"] == status
    assert gate(status, FailOn.DIFFER, {}) == is_failed
    text = job.summary.read_text()
    assert "## ciwrap repeat: 4 runs" in text
    assert "1 of 1 variable varies" in text
    assert "| mesh: x | noise |" in text
    assert "<title>" in (job.folder / "noise.html").read_text()
    for name in ("result-path", "summary-path", "report-path", "artifact-path"):
        assert outputs[name]
    assert json.loads((job.runner.stage / "ciwrap/result.json").read_text())["kind"] == "repeat"


def test_a_run_that_fails_is_not_comparable(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    (job.folder / "noisy.py").write_text(
        f"{PROGRAM}\nif os.path.exists('.second'): sys.exit(1)\nopen('.second', 'w').close()\n"
    )
    assert job.run(mode="repeat", arguments="-n 3")["status"] == "not-comparable"
    assert "::error title=ciwrap repeat::run 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"mode": "repeat", "arguments": "-n 4 'open"}, "the input arguments cannot be read"),
        ({"mode": "trend"}, "needs the input source"),
        ({"mode": "trend", "source": "nowhere"}, "holds no results"),
    ],
)
def test_inputs_without_a_meaning(job: Job, inputs: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        job.run(**inputs)


def test_what_the_command_refuses_is_an_error(job: Job) -> None:
    outputs = job.run(mode="repeat", arguments="--no-such-option")
    assert outputs["status"] == "error"
    assert gate("error", FailOn.ERROR, {}) == 1
    (job.folder / "ciwrap.yaml").unlink()
    assert job.run(mode="repeat")["status"] == "error"


def test_a_drift_is_warned_of_before_the_bound_is_reached(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten nights; each night the numbers are further from the golden, and every check matches."""
    pytest.importorskip("scipy", reason="SciPy is not installed")
    results = job.folder / "results"
    results.mkdir()

    def ciwrap(*words: str) -> int:
        return call(*words, folder=job.folder, environment=environment()).returncode

    ciwrap("run")
    assert ciwrap("accept") == 0
    for night in range(10):
        (job.folder / "drift").write_text(str(6e-8 * night))
        assert ciwrap("run", "--json", f"results/{night}.json") == 0
    outputs = job.run(mode="trend", source="results")
    assert outputs["status"] == "done"
    text = job.summary.read_text()
    assert "ciwrap trend: 1 warning in 10 results" in text
    assert "of its bound and grows by" in text
    assert "::warning title=ciwrap trend::mesh: x uses" in capsys.readouterr().out


def test_results_of_artifacts_that_lie_elsewhere(job: Job) -> None:
    """As actions/download-artifact puts them, outside of the workspace."""
    pytest.importorskip("scipy", reason="SciPy is not installed")
    assert call("run", "--json", "r.json", folder=job.folder, environment=environment()).returncode
    elsewhere = job.folder.parent / "temp"
    for number in range(2):
        folder = elsewhere / f"numbers-{number}"
        folder.mkdir(parents=True)
        text = (job.folder / "r.json").read_text().replace('"seconds"', f'{" " * number}"seconds"')
        (folder / "result.json").write_text(text)
        for beside in ("meta.json", "changes.json"):
            (folder / beside).write_text("{}")
        (folder / "pending").mkdir()
        (folder / "pending/pending.json").write_text("{}")
    outputs = job.run(mode="trend", source=str(elsewhere))
    assert outputs["status"] == "done"
    assert "in 2 results" in job.summary.read_text()


def test_time_says_whether_b_is_slower(job: Job) -> None:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    shutil.rmtree(job.folder / "out", ignore_errors=True)
    slow = f"{sys.executable} -c 'import time; time.sleep(0.3)'"
    arguments = f'true "{slow}" --pairs 8 --gate --warm-up 0'
    outputs = job.run(mode="time", arguments=arguments)
    assert outputs["status"] == "slower"
    assert gate("slower", FailOn.DIFFER, {}) == 1
    assert "## ciwrap time: changed: B takes" in job.summary.read_text()
