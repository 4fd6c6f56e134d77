"""`ciwrap changes` where configuration or goldens lie behind links, or in a submodule."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.test_cli_changes import changes
from git_repository import GitRepository

from ciwrap.cli.main import run

CONFIG = "checks:\n  mesh: {outputs: x.csv, atol: 1e-6}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    repository = GitRepository.make(folder)
    Path("ciwrap.yaml").write_text(CONFIG)
    Path("x.csv").write_text("1\n2\n")
    assert run(["accept"]) == 0
    return repository


@pytest.mark.parametrize("name", ["golden", "ciwrap.yaml", "golden/mesh.golden.yaml"])
def test_a_link_of_the_commit_is_refused(
    project: GitRepository, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it leads, since what lay there was no part of the commit."""
    project.commit("plain", {})
    Path("real").mkdir()
    target = Path("real", Path(name).name)
    Path(name).rename(target)
    Path(name).symlink_to(target.absolute())
    assert changes() == []
    project.commit("linked", {})
    assert run(["changes", "--base", "HEAD"]) == 2
    assert f"{name}: the commit has a link here" in capsys.readouterr().err


@pytest.mark.parametrize("golden_dir", ["golden", "golden/arm", "."])
def test_goldens_in_a_submodule_are_refused(
    project: GitRepository, golden_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = GitRepository.make(project.folder / "golden")
    inner.commit("goldens", {})
    project.commit("with a submodule", {})
    assert project.git("ls-tree", "HEAD", "golden").startswith("160000")
    assert run(["changes", "--base", "HEAD", "--golden-dir", golden_dir]) == 2
    assert "golden: what lies in a submodule" in capsys.readouterr().err


def test_a_submodule_without_goldens_is_none_of_our_business(project: GitRepository) -> None:
    inner = GitRepository.make(project.folder / "golden/data")
    inner.commit("data", {"x.txt": "1"})
    project.commit("with a submodule", {})
    assert changes() == []
