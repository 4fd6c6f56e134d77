"""Two configurations with one golden folder: neither takes the other's goldens for unused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import Project
from git_repository import GitRepository

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "version: 1\n{more}checks:\n  {name}: {{outputs: {outputs}}}\n"


def config_text(name: str, outputs: str = "out", more: str = "") -> str:
    return CONFIG.format(name=name, outputs=outputs, more=more)


@pytest.fixture
def two(tmp_path: Path) -> Project:
    """A check of each of two configurations in one folder, and a golden that is of none."""
    project = Project(tmp_path / "project")
    for name in ("gone", "nightly"):
        (project.folder / "nightly.yaml").write_text(config_text(name))
        project.accept("--config", "nightly.yaml")
    project.accept()
    return project


def goldens(project: Project) -> list[str]:
    return sorted(path.stem for path in (project.folder / "golden").glob("*.golden"))


def unused(project: Project, *options: str) -> list[str]:
    """Of which checks `check` says that no configuration has them."""
    outcome = project.run("check", *options)
    assert outcome.code == 0, outcome
    texts = [one["text"] for one in outcome.document["messages"] if one["level"] == "warning"]
    assert all("belongs to no check of the configuration" in text for text in texts)
    return [text.split("'")[1] for text in texts]


@pytest.mark.parametrize("with_git", [False, True])
@pytest.mark.parametrize("options", [(), ("--config", "nightly.yaml")])
def test_the_other_ones_goldens_stay(
    two: Project, with_git: bool, options: tuple[str, ...]
) -> None:
    if with_git:
        GitRepository.make(two.folder)
    assert unused(two, *options) == ["gone"]
    outcome = two.run("prune", "--yes", *options)
    assert outcome.code == 0, outcome
    assert outcome.document["deleted"] == ["golden/gone.golden"]
    assert goldens(two) == ["mesh", "nightly"]
    for config in ((), ("--config", "nightly.yaml")):
        assert two.run("check", *config).code == 0


def test_a_configuration_above(two: Project) -> None:
    """Its golden folder lies in the project below, which has one of its own."""
    inner = two.folder / "sub"
    (inner / "out").mkdir(parents=True)
    np.save(inner / "out/x.npy", np.ones(3))
    (inner / "ciwrap.yaml").write_text(config_text("inner"))
    (two.folder / "above.yml").write_text(config_text("above", more="golden_dir: sub/golden\n"))
    two.accept("--config", "above.yml")
    two.accept("--config", "sub/ciwrap.yaml")
    for options in (("--config", "above.yml"), ("--config", "sub/ciwrap.yaml")):
        assert unused(two, *options) == []
        assert "no unused golden was found" in two.run("prune", "--yes", *options).out
    assert sorted(path.stem for path in (inner / "golden").glob("*.golden")) == ["above", "inner"]


def test_folders_of_platforms(two: Project) -> None:
    options = ("--golden-dir", "golden/arm")
    two.accept(*options)
    two.accept(*options, "--config", "nightly.yaml")
    assert unused(two, *options) == []
    two.run("prune", "--yes", *options)
    assert len(list((two.folder / "golden/arm").glob("*.golden"))) == 2


def test_a_configuration_that_is_no_yaml(two: Project) -> None:
    """Which goldens it uses nobody can tell."""
    path = two.folder / "nightly.yaml"
    path.write_text(path.read_text() + "  broken: [\n")
    outcome = two.run("check")
    assert outcome.code == 0
    (message,) = outcome.document["messages"]
    assert "nobody can tell which goldens another configuration uses" in message["text"]
    outcome = two.run("prune", "--yes")
    assert outcome.code == 0
    assert "goldens of checks stay" in outcome.out
    assert "nightly.yaml" in outcome.out
    assert goldens(two) == ["gone", "mesh", "nightly"]


def test_a_configuration_that_cannot_be_read(two: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("ciwrap.review.project.Path.read_bytes", refused)
    found = two.run("prune", "--yes", json_too=False)
    assert "nightly" in goldens(two), found


def test_files_that_are_no_configuration_are_passed_over(two: Project) -> None:
    (two.folder / "nightly.yaml").unlink()
    (two.folder / "list.yaml").write_text("- checks\n- gone\n")
    (two.folder / "workflow.yml").write_text("permissions:\n  checks: write\n  broken: [\n")
    (two.folder / "elsewhere.yaml").write_text(config_text("gone", more="golden_dir: other\n"))
    (two.folder / "odd.yaml").write_text("checks: 3\n")
    assert unused(two) == ["gone", "nightly"]


def test_a_configuration_that_a_sparse_checkout_leaves_out(two: Project) -> None:
    repository = GitRepository.make(two.folder)
    repository.commit("both", {})
    repository.git("sparse-checkout", "set", "--no-cone", "/*", "!/nightly.yaml")
    assert not (two.folder / "nightly.yaml").exists()
    pruned = two.run("prune", "--yes")
    assert "the sparse checkout leaves this file out" in pruned.out
    assert pruned.document["deleted"] == []
    assert goldens(two) == ["gone", "mesh", "nightly"]
