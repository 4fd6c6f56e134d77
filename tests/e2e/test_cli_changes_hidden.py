"""`ciwrap changes` on what could hide a change: files beside the golden, and commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from e2e.test_cli_changes import changes, edit
from git_repository import GitRepository

from ciwrap.cli.main import run

CONFIG = """\
run: {command: ./simulate, env: {THREADS: "1", API_TOKEN: "abcdefgh"}}
checks:
  mesh: {outputs: x.csv, atol: 1e-6, run: {command: ./mesh, working_dir: sub}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("ciwrap.yaml").write_text(CONFIG)
    Path("sub").mkdir()
    Path("x.csv").write_text("1\n2\n")
    assert run(["accept"]) == 0
    repository.commit("base", {})
    return tmp_path


def test_a_copy_of_the_old_manifest_hides_nothing(project: Path) -> None:
    """Its check is that of another file, so no check reads it."""
    edit(("atol: 1e-6", "atol: 10"))()
    Path("x.csv").write_text("3\n2\n")
    for name in ("zzz", "aaa"):
        shutil.copy("golden/mesh.golden.yaml", f"golden/{name}.golden.yaml")
    assert run(["accept", "--reason", "cleanup"]) == 0
    found = {(one["check"], one["what"], one["wider"]) for one in changes()}
    assert {("mesh", "bound", True), ("mesh", "values", False)} <= found
    texts = {one["check"]: one["text"] for one in changes() if one["what"] == "check"}
    assert texts == dict.fromkeys(("aaa", "zzz"), "the manifest of its golden cannot be read")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('THREADS: "1"', 'THREADS: "2"', (None, "environment of the command: THREADS: 1 -> 2")),
        ('THREADS: "1", ', "", (None, "environment of the command: THREADS: 1 -> none")),
        ("{THREADS", '{NEW: "", THREADS', (None, "environment of the command: NEW: none -> ''")),
        ("abcdefgh", "ijklmnop",
         (None, "environment of the command: API_TOKEN: (hidden) -> (hidden)")),
        ("working_dir: sub", "working_dir: .", ("mesh", "folder of the command: sub -> .")),
        ("./mesh", "./fast", ("mesh", "command: ./mesh -> ./fast")),
    ],
)  # fmt: skip
def test_what_is_run_otherwise(project: Path, old: str, new: str, told: tuple[str, str]) -> None:
    edit((old, new))()
    assert [(one["check"], one["text"]) for one in changes()] == [told]
