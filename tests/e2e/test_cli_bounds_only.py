"""`accept --bounds-only`: other bounds for the values that a golden has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, check_fails

from ciwrap.golden.store import GoldenStore

WHY = ("--reason", "measured")


def configure(project: Project, evidence: str, bound: str) -> None:
    project.configure(bound=f"{bound}, evidence: {evidence}")


def with_golden(folder: Path, evidence: str) -> Project:
    project = Project(folder / "project")
    configure(project, evidence, "atol: 1e-3")
    project.accept()
    return project


def variable_of(project: Project) -> object:
    golden = GoldenStore(project.folder / "golden").read("mesh")
    return next(one for one in golden.variables if one.name == "temperature")


def test_data_stay_to_the_byte(tmp_path: Path) -> None:
    """Whatever the outputs are by now, and though they would not match."""
    project = with_golden(tmp_path, "data")
    before = variable_of(project)
    project.save("temperature", BASE + 7)
    configure(project, "data", "atol: 1e-6")
    done = project.accept("--bounds-only", *WHY)
    assert "bound atol=0.001 rtol=0 -> atol=1e-6 rtol=0" in done.out
    after = variable_of(project)
    assert after.data == before.data
    assert (before.tree.parameters.atol, after.tree.parameters.atol) == (1e-3, 1e-6)
    assert project.run("check").code == 1
    project.save("temperature", BASE)
    outcome = project.run("check")
    assert (outcome.code, "golden_bound" in outcome.variable("temperature")) == (0, False)
    log = GoldenStore(project.folder / "golden").read("mesh").manifest.accepted
    assert log[-1].bounds == ("temperature: atol=0.001 rtol=0 -> atol=1e-6 rtol=0",)
    assert [one.why for one in log] == ["first golden", "measured"]


@pytest.mark.parametrize("evidence", ["residues", "tree"])
def test_without_data_outputs_that_match_take_their_place(tmp_path: Path, evidence: str) -> None:
    project = with_golden(tmp_path, evidence)
    configure(project, evidence, "atol: 1e-2")
    project.accept("--bounds-only", *WHY)
    after = variable_of(project)
    assert (after.evidence, after.tree.parameters.atol) == (evidence, 1e-2)
    project.save("temperature", BASE + 5e-4)
    configure(project, evidence, "atol: 1e-6")
    before = project.snapshot()
    outcome = project.run("accept", "--bounds-only", *WHY, json_too=False)
    assert outcome.code == 3
    assert "temperature: the golden keeps no data of it, and by the bound that is" in outcome.err
    assert project.snapshot() == before


@pytest.mark.parametrize("evidence", ["residues", "tree"])
def test_it_is_refused_where_it_would_hide_a_difference(tmp_path: Path, evidence: str) -> None:
    """A wider bound must not take in outputs that the old one refuses."""
    project = with_golden(tmp_path, evidence)
    project.save("temperature", BASE + 0.5)
    configure(project, evidence, "atol: 1")
    command = ("accept", "--bounds-only", *WHY)
    check_fails(project, 3, "by its own bound the outputs are not a match", command=command)
    (project.folder / "out/temperature.npy").unlink()
    check_fails(project, 3, "the outputs do not have it", command=command)


def test_nothing_to_do_is_said_and_needs_no_reason(tmp_path: Path) -> None:
    project = with_golden(tmp_path, "data")
    before = project.snapshot()
    done = project.accept("--bounds-only")
    assert "identical to the existing golden" in done.out
    assert project.snapshot() == before


def test_what_it_cannot_be_combined_with(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    check_fails(project, 2, "has no golden", command=("accept", "--bounds-only"))
    project.accept()
    for word in ("--force", "--pending"):
        check_fails(project, 2, "--bounds-only", command=("accept", "--bounds-only", word))


def test_bounds_that_change_while_values_change(tmp_path: Path) -> None:
    """Any order of new values, other bounds, checks and both ways of accepting: a check matches if
    and only if the values are within the bound of those that were accepted last.
    """
    rng = np.random.default_rng(3)
    project = Project(tmp_path / "project")
    accepted, shift, bound = 0.0, 0.0, 1e-3
    configure(project, "data", f"atol: {bound}")
    project.accept()
    for _ in range(40):
        match rng.integers(4):
            case 0:
                shift = float(rng.choice([0.0, 3e-6, 4e-4, 0.03]))
                project.save("temperature", BASE + shift)
            case 1:
                bound = float(rng.choice([1e-6, 1e-3, 0.1]))
                configure(project, "data", f"atol: {bound}")
            case 2:
                project.accept("--bounds-only", *WHY)
            case _:
                project.accept("--force", *WHY)
                accepted = shift
        is_within = abs(accepted - shift) <= bound
        outcome = project.run("check")
        assert outcome.code == (0 if is_within else 1), (accepted, shift, bound)
