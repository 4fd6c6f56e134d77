"""Documents that somebody else wrote: bombs end in one line, soon, and in little memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from e2e.cli_project import BASE, Project, command, environment

from ciwrap.action.github import Inputs
from ciwrap.action.orders import take_pending
from ciwrap.base.errors import NotComparableError

if TYPE_CHECKING:
    from pathlib import Path

DEPTH = 60_000
# Of what the process takes when all is well; a megabyte is what two calls may differ by anyway.
MOST_GROWTH = 8 << 20
MOST_SECONDS = 60

NESTING = "zz: " + "[" * DEPTH + "]" * DEPTH
# Nine aliases of nine aliases, and so on, to 9^8 texts.
ALIASES = "zz:\n  a0: &a0 lol\n" + "\n".join(
    f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)
)
YAML_BOMBS = {"nesting": NESTING, "aliases": ALIASES}
JSON_BOMB = '{"format": 1, "zz": ' + "[" * DEPTH


def measured(project: Project, *arguments: str) -> tuple[int, str, int]:
    """Exit code, what was said, and the most memory that was taken, in bytes."""
    said = project.folder.parent / "said.txt"
    start = time.monotonic()
    with said.open("wb") as stream:
        child = subprocess.Popen(
            command(*arguments), cwd=project.folder, env=environment(), stdout=stream, stderr=stream
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert time.monotonic() - start < MOST_SECONDS
    return child.returncode, said.read_text(), usage.ru_maxrss << 10


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a golden, and another one that waits in .ciwrap/pending and in P."""
    project = Project(tmp_path_factory.mktemp("untrusted") / "p")
    project.accept()
    project.save("temperature", BASE + 1)
    assert project.run("check", "--pending").code == 1
    shutil.copytree(project.folder / ".ciwrap/pending", project.folder / "P")
    return project


@pytest.fixture(scope="module")
def usual_bytes(waiting: Project) -> int:
    code, _, byte_count = measured(waiting, "accept", "--dry-run", "--from", "P")
    assert code == 0
    return byte_count


def refused(project: Project, usual_bytes: int, *arguments: str, file: str) -> str:
    before = project.snapshot()
    code, said, byte_count = measured(project, *arguments)
    assert code == 3, said
    assert byte_count < usual_bytes + MOST_GROWTH
    errors = [line for line in said.splitlines() if "error: " in line]
    assert len(errors) == 1, said
    assert file in errors[0]
    assert len(said.splitlines()) < 10
    assert project.snapshot() == before
    return errors[0]


COMMANDS = {
    "check": (("check",), "golden/mesh.golden.yaml"),
    "accept": (("accept", "--pending", "-m", "x"), ".ciwrap/pending/mesh.golden.yaml"),
    "artifact": (("accept", "--from", "P", "-m", "x"), "mesh.golden.yaml"),
    "review": (("review",), ".ciwrap/pending/mesh.golden.yaml"),
}


@pytest.mark.parametrize(
    ("how", "bomb"), [*((how, "nesting") for how in COMMANDS), ("check", "aliases")]
)
def test_bombs_in_manifests(
    waiting: Project, usual_bytes: int, tmp_path: Path, how: str, bomb: str
) -> None:
    project = Project(tmp_path / "p", like=waiting)
    arguments, file = COMMANDS[how]
    folder = {"check": "golden", "artifact": "P"}.get(how, ".ciwrap/pending")
    path = project.folder / folder / "mesh.golden.yaml"
    path.write_text(f"{path.read_text()}{YAML_BOMBS[bomb]}\n")
    said = refused(project, usual_bytes, *arguments, file=file)
    words = {"nesting": "nested more than 8 levels", "aliases": "an anchor or an alias"}
    assert words[bomb] in said


@pytest.mark.parametrize("how", ["accept", "artifact", "review"])
def test_a_bomb_in_the_list_of_pending_goldens(
    waiting: Project, usual_bytes: int, tmp_path: Path, how: str
) -> None:
    project = Project(tmp_path / "p", like=waiting)
    folder = "P" if how == "artifact" else ".ciwrap/pending"
    (project.folder / folder / "pending.json").write_text(JSON_BOMB)
    assert "is nested too deeply" in refused(
        project, usual_bytes, *COMMANDS[how][0], file="pending.json"
    )


def test_a_bomb_in_a_recorded_result_is_no_result(
    waiting: Project, usual_bytes: int, tmp_path: Path
) -> None:
    """The result only tells how far values moved; without one, the golden itself has to."""
    project = Project(tmp_path / "p", like=waiting)
    (project.folder / "P/mesh.result.json").write_text(JSON_BOMB)
    code, said, byte_count = measured(project, "accept", "--from", "P", "-m", "x")
    assert code == 0, said
    assert byte_count < usual_bytes + MOST_GROWTH
    assert "600 of 600 values differ" in said


def test_a_bomb_given_to_report(waiting: Project, usual_bytes: int, tmp_path: Path) -> None:
    project = Project(tmp_path / "p", like=waiting)
    (project.folder / "r.json").write_text(JSON_BOMB)
    refused(project, usual_bytes, "report", "r.json", file="r.json")


@pytest.mark.parametrize("bomb", YAML_BOMBS)
def test_the_action_takes_no_bomb(
    waiting: Project, tmp_path: Path, bomb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path / "p", like=waiting)
    folder = tmp_path / "artifact"
    shutil.copytree(project.folder / "P", folder / "pending")
    meta = {"platform_key": "", "sha": "", "commit": ""}
    (folder / "meta.json").write_text(json.dumps(meta))
    path = folder / "pending/mesh.golden.yaml"
    path.write_text(f"{path.read_text()}{YAML_BOMBS[bomb]}\n")
    before = project.snapshot()
    with pytest.raises(NotComparableError, match=r"mesh.golden.yaml: .* \(line \d+\)"):
        take_pending([folder], project.folder, Inputs(), "x")
    assert project.snapshot() == before
    assert "Traceback" not in capfd.readouterr().out


def test_two_lists_of_variables(waiting: Project, usual_bytes: int, tmp_path: Path) -> None:
    """A reader of the text sees the first, ciwrap would use the last."""
    project = Project(tmp_path / "p", like=waiting)
    path = project.folder / "golden/mesh.golden.yaml"
    row = "{name: y}"
    path.write_text(path.read_text().replace("variables:", f"variables: [{row}]\nvariables:", 1))
    project.save("temperature", BASE)
    said = refused(project, usual_bytes, "check", file="golden/mesh.golden.yaml")
    assert "has the key 'variables' twice" in said


def test_a_bomb_under_a_test(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text(
        "import numpy as np\ndef test_a(ciwrap): ciwrap.check(np.arange(3.0))\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )

    assert run("--ciwrap-update=new", "--ciwrap-update-in-ci").returncode == 0
    path = tmp_path / "golden/test_a.goldens"
    path.write_text(f"{path.read_text()}{NESTING}\n")
    done = run()
    assert done.returncode == 1, done
    assert "test_a.goldens: line " in done.stdout
