"""Every command and exit code as a process of its own: the same as in the process of the tests.

Nearly all other tests call the command line in their own process (`command_line.call`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import call, call_apart, refuse_what_is_read_at_start
from e2e.cli_project import BASE, Project, environment

if TYPE_CHECKING:
    from pathlib import Path

CALLS = {
    "help": (2, ()),
    "version": (0, ("--version",)),
    "unknown": (2, ("chekc",)),
    "init": (0, ("init", "out")),
    "init over a file": (2, ("init", "out")),
    "accept": (0, ("accept", "--reason", "why", "--json", "result.json")),
    "accept without a reason": (2, ("accept",)),
    "check": (1, ("check", "--json", "result.json", "--report", "report.html")),
    "check of what is as it was": (0, ("check", "ids", "-v")),
    "check without a golden": (3, ("check", "--golden-dir", "nowhere")),
    "check by a wrong name": (2, ("check", "nothing", "--json", "-")),
    "run": (0, ("run", "ids")),
    "compare": (1, ("compare", "out", "before", "--atol", "1e-9")),
    "capture": (0, ("capture", "out", "--settle=0", "-o", "out.tree")),
    "report": (3, ("report", "nowhere.json")),
    "show": (0, ("show", "ids")),
    "review": (0, ("review",)),
    "reject": (2, ("reject",)),
    "prune": (0, ("prune",)),
    "doctor": (0, ("doctor",)),
}
CONFIG = """\
version: 1
run: ["true"]
defaults: {atol: 1e-6}
checks:
  ids: {outputs: out/ids.npy, run: ["touch", "out/ids.npy"]}
  temperature: {outputs: out/temperature.npy}
"""


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of two checks, of which one differs from its golden."""
    project = Project(tmp_path_factory.mktemp("moved") / "p")
    (project.folder / "ciwrap.yaml").write_text(CONFIG)
    project.accept()
    shutil.copytree(project.folder / "out", project.folder / "before")
    project.save("temperature", BASE + 1)
    return project


def plain(text: str, folder: Path) -> str:
    """The text without what is never twice the same: the folder, and how long it took, and when;
    and the size of a capture, which is larger if it was saved in between.
    """
    text = text.replace(str(folder), "<folder>")
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|min)\b", "<time>", text)
    text = re.sub(r"\b[\d.]+ KiB, identity", "<size>, identity", text)
    return re.sub(r"\d{4}-\d\d-\d\d[T ][\d:+.Z]+", "<date>", text)


@pytest.mark.slow(but=9)
@pytest.mark.parametrize("name", CALLS)
def test_a_process_says_and_does_what_a_call_does(
    moved: Project, tmp_path: Path, name: str
) -> None:
    code, arguments = CALLS[name]
    said, written = [], []
    for how in (call, call_apart):
        folder = tmp_path / how.__name__ / "p"
        shutil.copytree(moved.folder, folder)
        if name == "init":
            (folder / "ciwrap.yaml").unlink()
        done = how(*arguments, folder=folder, environment=environment())
        assert done.returncode == code, done
        said.append([plain(text, folder) for text in (done.stdout, done.stderr)])
        names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
        # Called by what they hold, and some objects of a short program may be missed.
        written.append(
            sorted(re.sub(r"snapshots/[0-9a-f]{32}", "snapshots/<>", one) for one in names)
        )
    assert said[0] == said[1]
    assert written[0] == written[1]
    assert "".join(said[0])


def test_a_call_leaves_everything_as_it_was(moved: Project) -> None:
    # Named one by one: what a call of ours may have changed, and a process takes with it.
    def state() -> tuple[object, ...]:
        files = {path: path.stat().st_mtime_ns for path in moved.folder.rglob("*")}
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return os.getcwd(), dict(os.environ), sys.argv, streams, files  # noqa: PTH109

    before = state()
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    done = call("check", folder=moved.folder, environment=environment(SOMETHING="else"))
    assert done.returncode == 1
    assert state() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208


def test_output_of_child_processes_is_caught(moved: Project, tmp_path: Path) -> None:
    folder = shutil.copytree(moved.folder, tmp_path / "p")
    text = (folder / "ciwrap.yaml").read_text()
    (folder / "ciwrap.yaml").write_text(text.replace('["true"]', '["sh", "-c", "echo said >&2"]'))
    assert "said" in call("run", folder=folder, environment=environment()).stderr


def test_what_only_a_new_process_reads_is_refused() -> None:
    refuse_what_is_read_at_start(environment())
    with pytest.raises(AssertionError, match="OMP_NUM_THREADS=3 needs a process of its own"):
        refuse_what_is_read_at_start(environment(OMP_NUM_THREADS="3"))


def test_the_console_script_is_there() -> None:
    done = subprocess.run(
        [shutil.which("ciwrap") or "ciwrap", "--version"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("ciwrap ")
