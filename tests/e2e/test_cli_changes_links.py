"""`ciwrap changes` where configuration or goldens lie behind links, or in a submodule."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.test_cli_changes import changes
from git_repository import GitRepository

from ciwrap.cli.main import run

CONFIG = "checks:\n  mesh: {outputs: x.csv, atol: 1e-6}\n"
WIDER = ("mesh", "bound", True)


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


def found(*options: str) -> set[tuple[str, str, bool]]:
    return {(one["check"], one["what"], one["wider"]) for one in changes(*options)}


@pytest.mark.parametrize("name", ["golden", "ciwrap.yaml"])
def test_what_lies_behind_a_link_is_what_counted(project: GitRepository, name: str) -> None:
    project.commit("plain", {})
    Path("real").mkdir()
    Path(name).rename(f"real/{name}")
    Path(name).symlink_to(f"real/{name}")
    assert changes() == []
    project.commit("linked", {})
    assert changes() == []
    Path("ciwrap.yaml").write_text(CONFIG.replace("1e-6", "10"))
    Path("x.csv").write_text("3\n2\n")
    assert run(["accept", "--reason", "cleanup"]) == 0
    assert found() == {WIDER, ("mesh", "values", False)}
    assert not any("first golden" in one["text"] for one in changes())


def test_goldens_in_folders_and_files_behind_links(project: GitRepository) -> None:
    """Those of a platform, and a manifest alone; a link back ends."""
    Path("golden").rename("other")
    Path("golden").mkdir()
    Path("golden/arm").symlink_to("../other")
    for name in ("mesh.golden", "mesh.golden.yaml"):
        Path("golden", name).symlink_to(f"../other/{name}")
    Path("other/back").symlink_to(".")
    Path("golden/top").symlink_to("../golden")
    project.commit("linked", {})
    assert changes() == []
    Path("ciwrap.yaml").write_text(CONFIG.replace("1e-6", "10"))
    Path("x.csv").write_text("3\n2\n")
    assert run(["accept", "--reason", "cleanup", "--golden-dir", "other"]) == 0
    names = {one["check"] for one in changes() if one["wider"]}
    assert names == {"mesh", "arm/mesh"}
    assert found("--golden-dir", "golden/arm") == {WIDER, ("mesh", "values", False)}


@pytest.mark.parametrize("name", ["golden", "ciwrap.yaml"])
def test_a_link_that_leads_out_of_the_repository_is_refused(
    project: GitRepository, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).rename(f"../{name}")
    Path(name).symlink_to(f"../{name}")
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
