"""`ciwrap demo` and this repository's own golden."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import call, call_apart

from ciwrap.check.check import check_outputs
from ciwrap.golden.store import GoldenStore
from ciwrap.model import Evidence, Verdict
from ciwrap.project.config import load_config
from ciwrap.project.settings import CONFIG_NAME
from ciwrap.studies.demo import CHECK, copy_project, run_demo
from ciwrap.studies.simulation import Settings, run_simulation

if TYPE_CHECKING:
    import subprocess

    from ciwrap.model import CheckResult, RunResult


def ciwrap(
    *arguments: str, folder: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return call(*arguments, folder=folder, environment=environment or os.environ)


def check_run(folder: Path, settings: Settings) -> CheckResult:
    """A run with these settings against the committed golden."""
    copy_project(folder)
    run_simulation(folder / "build" / "demo", settings)
    config = load_config(folder / CONFIG_NAME)
    return check_outputs(config.check(CHECK), GoldenStore(config.golden_dir))


def test_demo_tells_its_story_and_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    arguments = ("demo", "--json", str(target))
    done = call_apart(*arguments, folder=tmp_path, environment=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(target.read_text())
    assert document["as_expected"] is True
    assert document["good"]["verdict"] == "match"
    assert document["good"]["verdict_counts"]["match"] == 4 * 2 * 7
    assert document["defective"]["verdict"] == "differ"
    assert "first difference: iter 30 / rank 1 / vy" in done.stdout
    assert list(tmp_path.iterdir()) == [target]


def test_the_defect_is_found_where_it_was_planted(tmp_path: Path) -> None:
    results: list[RunResult] = []
    demonstration = run_demo(tmp_path / "demo", say=lambda _: None, show=results.append)
    assert demonstration.is_as_expected
    assert [result.verdict for result in results] == [Verdict.MATCH, Verdict.DIFFER]
    (check,) = demonstration.defective.checks
    bad = {
        (variable.iteration, variable.rank, variable.name): variable
        for variable in check.variables
        if variable.verdict is not Verdict.MATCH
    }
    # Whatever truly differs is known to, whether the golden keeps its data or not.
    assert {variable.verdict for variable in bad.values()} == {Verdict.DIFFER}
    early = [key for key in bad if key[0] is not None and key[0] < 40]
    assert sorted(early) == [(30, 1, "vy"), (30, 1, "y")]
    velocity, height = bad[30, 1, "vy"], bad[30, 1, "y"]
    # vy keeps its data, so the count is exact; y keeps residues, so the chunks are known.
    assert velocity.evidence is Evidence.DATA
    assert velocity.differing_count is not None
    assert 300 < velocity.differing_count < 600
    assert height.evidence is Evidence.RESIDUES
    assert height.chunk_count == 20
    assert height.suspect_chunks is not None
    assert 1 <= height.suspect_chunks <= 4
    assert height.suspect_ranges[0].first_element > 8000  # particles that began near the wall
    assert not any(name == "id" for _, _, name in bad)


def test_golden_of_one_thread_is_met_to_the_bit(tmp_path: Path) -> None:
    """The golden was made with one thread, so every IEEE machine has to come to the same bits."""
    result = check_run(tmp_path, Settings(threads=1))
    assert result.verdict is Verdict.MATCH
    for variable in result.variables:
        assert variable.root == variable.golden_root, variable.id
        assert variable.max_drift_share in (None, 0.0)


def test_golden_holds_every_kind_of_evidence(tmp_path: Path) -> None:
    result = check_run(tmp_path, Settings(threads=2))
    assert result.verdict is Verdict.MATCH
    kinds = {variable.name: variable.evidence for variable in result.variables}
    assert kinds == {
        "id": Evidence.TREE,
        "x": Evidence.RESIDUES,
        "y": Evidence.RESIDUES,
        "vx": Evidence.RESIDUES,
        "vy": Evidence.DATA,
        "density": Evidence.DATA,
        "potential": Evidence.RESIDUES,
    }
    assert result.golden_bytes is not None
    data_bytes = sum(path.stat().st_size for path in tmp_path.rglob("*.npy"))
    assert result.golden_bytes < data_bytes / 4


@pytest.mark.parametrize("threads", [2, 8])
def test_noise_uses_up_little_of_the_bounds(tmp_path: Path, threads: int) -> None:
    result = check_run(tmp_path, Settings(threads=threads))
    assert result.verdict is Verdict.MATCH
    assert result.max_drift_share is not None
    assert result.max_drift_share < 0.5


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    result = check_run(tmp_path, Settings(threads=1, seed=2))
    assert result.verdict is Verdict.DIFFER
    verdicts = {variable.name: variable.verdict for variable in result.variables}
    assert verdicts["id"] is Verdict.MATCH
    others = {v for name, v in verdicts.items() if name != "id"}
    assert others == {Verdict.DIFFER}


def test_a_nan_in_one_element_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    assert check_run(folder, Settings(threads=1)).verdict is Verdict.MATCH
    path = folder / "build" / "demo" / "iter_0020" / "rank_0" / "x.npy"
    array = np.load(path)
    array[1234] = np.nan
    np.save(path, array)
    config = load_config(folder / CONFIG_NAME)
    result = check_outputs(config.check(CHECK), GoldenStore(config.golden_dir))
    assert result.verdict is Verdict.DIFFER
    assert [v.id.text for v in result.variables if v.verdict is not Verdict.MATCH] == [
        "iter 20 / rank 0 / x"
    ]


def test_configured_command_runs_and_matches(tmp_path: Path) -> None:
    """What CI does at the root of this repository."""
    copy_project(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = ciwrap("run", folder=tmp_path, environment={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "build" / "demo").rglob("*.npy"))) == 4 * 2 * 7


def test_keep_leaves_a_project_to_play_with(tmp_path: Path) -> None:
    done = ciwrap("demo", "--keep", "play", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    checked = ciwrap("check", folder=tmp_path / "play")
    assert checked.returncode == 1
    assert "first difference: iter 30 / rank 1 / vy" in checked.stdout
    again = ciwrap("demo", "--keep", "play", folder=tmp_path)
    assert again.returncode == 2
    assert "not empty" in again.stderr
