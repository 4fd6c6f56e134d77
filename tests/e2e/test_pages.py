"""Sections of how-tos whose commands need a project: they are run in one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, environment
from e2e.pages import ROOT, commands_below

CLI = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
REFRESH = ROOT / "docs/how-to/refresh-goldens.md"
SIMULATE = """\
import numpy as np, os
os.makedirs("out", exist_ok=True)
PUSH = 1.0
# so far apart that git merges a change of both
#
#
BOUNDARY = 1.0
np.save("out/x.npy", np.arange(100.0) * PUSH + BOUNDARY)
"""
CONFIG = "run: python sim.py\nchecks:\n  mesh: {outputs: out}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sim.py").write_text(SIMULATE)
    (tmp_path / "ciwrap.yaml").write_text(CONFIG)
    (tmp_path / ".gitignore").write_text("out/\n")
    return tmp_path


def shell(folder: Path, *commands: str) -> tuple[int, str]:
    """The exit code of the last one, and what all said."""
    done = subprocess.run(
        ["bash", "-c", "\n".join(commands)],
        cwd=folder,
        env=environment(
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            HOME=str(folder),
            GIT_AUTHOR_NAME="Ada",
            GIT_AUTHOR_EMAIL="ada@example.org",
            GIT_COMMITTER_NAME="Ada",
            GIT_COMMITTER_EMAIL="ada@example.org",
            GIT_EDITOR="true",
            GIT_PAGER="cat",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def change(name: str, value: str) -> str:
    return f"sed -i 's/^{name} = .*/{name} = {value}/' sim.py; ciwrap run; ciwrap accept --reason x"


def test_after_a_merge_conflict(folder: Path) -> None:
    code, said = shell(
        folder,
        "git init -q -b main && ciwrap run; ciwrap accept && git add . && git commit -qm one",
        f"git checkout -qb push; {change('PUSH', '2.0')} && git add . && git commit -qm two",
        f"git checkout -q main; {change('BOUNDARY', '3.0')} && git add . && git commit -qm three",
        "git merge push",
    )
    assert code == 1, said
    assert "CONFLICT" in said
    code, said = shell(folder, *commands_below(REFRESH, "After a merge conflict"))
    assert code == 0, said
    assert "replaced  mesh" in said
    code, said = shell(folder, "ciwrap check && git status --porcelain | grep -v ' ciwrap.yaml'")
    assert said.splitlines()[0].startswith("match"), said
    assert "golden" not in said.splitlines()[-1], said


def test_readable_diffs(folder: Path) -> None:
    """The golden folder brings what git has to know; one command for each clone does the rest."""
    (by_hand,) = commands_below(REFRESH, "Set up readable diffs, once for each clone")
    code, said = shell(folder, "git init -q; ciwrap run; ciwrap accept --reason first", by_hand)
    assert code == 0, said
    code, said = shell(
        folder, "git check-attr diff -- golden/mesh.golden; git add -A; git diff --cached"
    )
    assert said.startswith("golden/mesh.golden: diff: ciwrap\n")
    assert "\n+golden with " in said


def test_the_example_of_selftest(tmp_path: Path) -> None:
    """In a copy of what this repository checks of itself."""
    shutil.copy(ROOT / "ciwrap.yaml", tmp_path)
    shutil.copytree(ROOT / "golden", tmp_path / "golden")
    page = (ROOT / "docs/how-to/selftest.md").read_text(encoding="utf-8")
    shown = re.search(r"^\$ ciwrap selftest\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shell(tmp_path, "ciwrap run")[0] == 0
    assert shell(tmp_path, "ciwrap selftest") == (0, shown[1])


@pytest.mark.parametrize(
    ("row", "evidence", "atol", "by", "verdict"),
    [
        ("data", "data", "1e-6", 1.0, "differ"),
        ("residues", "residues", "1e-6", 1.2e-6, "undecided"),
        ("residues", "residues", "1e-6", 1.0, "differ"),
        ("tree, bound 0", "tree", "0", 1e-6, "differ"),
        ("tree, other bounds", "tree", "1e-6", 1.2e-6, "undecided"),
        ("tree, other bounds", "tree", "1e-6", 1.0, "differ"),
    ],
)
def test_verdicts_by_evidence(
    project: Project, row: str, evidence: str, atol: str, by: float, verdict: str
) -> None:
    """The table of the page on the command line, with more than two elements that moved."""
    (stated,) = re.findall(rf"^\| {row} \| .* \| (.*) \|$", CLI, re.MULTILINE)
    assert evidence == "data" or f"`{verdict}`" in stated
    project.configure(bound=f"atol: {atol}, evidence: {evidence}")
    project.accept()
    signs = np.where(np.arange(BASE.size) % 2, 1, -1).reshape(BASE.shape)
    project.save("temperature", BASE + by * signs)
    outcome = project.run("check")
    assert (outcome.code, outcome.variable("temperature")["verdict"]) == (1, verdict)
