"""`ciwrap repeat --runs`: runs that are there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.cli_project import BASE

if TYPE_CHECKING:
    from e2e.cli_project import Outcome, Project


def with_runs(project: Project, count: int) -> list[Any]:
    """Folders run_1, ... as a program would leave them, and their noise. Seed 7."""
    generator = np.random.default_rng(7)
    noise = [1e-9 * generator.uniform(-1, 1, BASE.shape) for _ in range(count)]
    for number in range(1, count + 1):
        folder = project.folder / f"run_{number}"
        folder.mkdir()
        np.save(folder / "temperature.npy", BASE + noise[number - 1])
    return noise


def variable(outcome: Outcome, name: str = "temperature") -> Any:
    (found,) = [one for one in outcome.document["variables"] if one["name"] == name]
    return found


@pytest.mark.parametrize("has_config", [True, False])
def test_runs_that_are_there_are_measured(project: Project, has_config: bool) -> None:
    noise = with_runs(project, 11)
    if not has_config:
        (project.folder / "ciwrap.yaml").unlink()
    before = project.snapshot()
    outcome = project.run("repeat", "--runs", "run_*")
    assert outcome.code == 0, outcome
    runs = [np.load(project.folder / run["folder"] / "temperature.npy")
            for run in outcome.document["runs"]]  # fmt: skip
    assert [run["folder"] for run in outcome.document["runs"]] == [
        f"run_{number}" for number in range(1, 12)
    ]
    assert variable(outcome)["max_abs"] == max(np.abs(one - runs[0]).max() for one in runs)
    assert variable(outcome)["suggested_bound"]["comparisons"] == 10
    assert variable(outcome)["present_bound"]["atol"] == (1e-6 if has_config else 0)
    assert project.snapshot() == before
    assert len(noise) == 11


def test_runs_that_hold_the_outputs_folder(project: Project) -> None:
    for number in (1, 2, 3, 4):
        folder = project.folder / f"copy_{number}" / "out"
        folder.mkdir(parents=True)
        np.save(folder / "temperature.npy", BASE + 1e-9 * number)
        (folder.parent / "notes.xyz").write_text("of no concern")
    outcome = project.run("repeat", "--runs", "copy_?")
    assert outcome.code == 0, outcome
    assert variable(outcome)["distinct_results"] == 4


def test_one_folder_twice_is_not_compared_with_itself(project: Project) -> None:
    with_runs(project, 2)
    (project.folder / "run_3").symlink_to("run_1")
    outcome = project.run("repeat", "--runs", "run_*")
    assert outcome.code == 3
    assert "run 3: run_3: has files of the first run" in outcome.out
    assert variable(outcome)["classes"] == [1, 2, 0]


def test_a_damaged_run_is_told_of(project: Project) -> None:
    with_runs(project, 4)
    path = project.folder / "run_2/temperature.npy"
    path.write_bytes(path.read_bytes()[:-100])
    outcome = project.run("repeat", "--runs", "run_*")
    assert outcome.code == 3
    assert outcome.document["variables"][0]["classes"] == [1, 0, 2, 3]
    assert "run 2" in outcome.out


def test_an_empty_run(project: Project) -> None:
    with_runs(project, 3)
    (project.folder / "run_2/temperature.npy").unlink()
    outcome = project.run("repeat", "--runs", "run_*")
    assert outcome.code == 3
    assert "run 2: run_2: the folder holds no files" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--runs", "nothing_*"), "names 0 runs; name at least two"),
        (("--runs", "out"), "names 1 run;"),
        (("--runs", "12"), "to run the program that many times: -n 12"),
        (("--runs", "out", "--keep"), "--keep cannot be used with --runs"),
        (("--runs", "out", "-n", "4"), "--count cannot be used with --runs"),
        (("--runs", "out", "--seed", "0"), "--seed cannot be used with --runs"),
        (("--runs", "out", "--concurrent", "2"), "--concurrent cannot be used with --runs"),
        (("--runs", "out", "--vary", "threads"), "--vary cannot be used with --runs"),
    ],
)
def test_what_has_no_meaning(project: Project, arguments: tuple[str, ...], words: str) -> None:
    outcome = project.run("repeat", *arguments)
    assert outcome.code == 2
    assert words in outcome.err


def test_bounds_of_runs_that_are_there_are_written(project: Project) -> None:
    with_runs(project, 11)
    project.configure(bound="atol: 1")
    outcome = project.run("repeat", "--runs", "run_*", "--write-bounds")
    assert outcome.code == 0, outcome
    assert (
        "temperature: {atol: 1e-8}  # 3 x largest of 10 differences"
        in (project.folder / "ciwrap.yaml").read_text()
    )
    (project.folder / "ciwrap.yaml").unlink()
    refused = project.run("repeat", "--runs", "run_*", "--write-bounds")
    assert refused.code == 2
    assert "there is no ciwrap.yaml to write to" in refused.err


def test_the_golden_as_the_reference(project: Project) -> None:
    project.configure("    exclude: [ids.npy]\n    evidence: data\n")
    project.accept()
    noise = with_runs(project, 4)
    outcome = project.run("repeat", "--runs", "run_*", "--reference", "golden")
    assert outcome.code == 0, outcome
    assert variable(outcome)["max_abs"] == pytest.approx(
        max(np.abs(one).max() for one in noise), rel=1e-6
    )


def test_runs_that_were_there_have_no_order_of_ours(project: Project) -> None:
    with_runs(project, 3)
    outcome = project.run("repeat", "--runs", "run_*", "--report", "page.html", "-v")
    assert outcome.code == 0, outcome
    assert "seed" not in outcome.out
    assert "order of the runs was drawn" not in (project.folder / "page.html").read_text()


def test_a_dry_run_of_nothing_is_refused(project: Project) -> None:
    with_runs(project, 4)
    outcome = project.run("repeat", "--runs", "run_*", "--dry-run", json_too=False)
    assert outcome.code == 2
    assert "--dry-run cannot be used with --runs" in outcome.err
    shown = project.run("repeat", "--runs", "run_*", "--dry-run", "--write-bounds")
    assert shown.code == 0, shown
