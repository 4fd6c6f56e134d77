"""README's commands in their order, and the first command of each how-to, as they stand there.

What they need is made beforehand: a project whose program is `./simulate`, in git, with goldens,
runs and results under the names that the pages use. The tutorial's commands and what they print are
in `test_tutorial.py`.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import call
from e2e.cli_project import ROOT, environment
from e2e.pages import commands_below, first_command
from git_repository import GitRepository

# Without NumPy, since it is started a hundred times.
SIMULATE = f"""\
#!{sys.executable} -S
import math, os, random, struct, sys
folder = sys.argv[sys.argv.index("--output") + 1] if "--output" in sys.argv else "out"
os.makedirs(folder, exist_ok=True)
values = [math.sin(n) + SHIFT + random.gauss(0, 1e-9) for n in range(600)]
head = "{{'descr': '<f8', 'fortran_order': False, 'shape': (600,), }}".ljust(117) + "\\n"
with open(os.path.join(folder, "eig.npy"), "wb") as stream:
    stream.write(b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(head)) + head.encode())
    stream.write(struct.pack("<600d", *values))
print("energy: 1.5")
"""
SOLVER = f"""\
#!{sys.executable}
import numpy as np
import ciwrap
with ciwrap.Recorder("heat") as recorder:
    for step in range(3):
        recorder.record(step, temperature=np.arange(9.0) + step)
"""
# What a command of README ends with, where that is not 0. `run` after another program is in
# test_first_commands.py.
README_CODES: dict[str, int] = {}
README_BEFORE = {
    "compare": "with_folders",
    "time": "on_a_branch",
    "bisect": "with_two_versions",
    "record": "with_a_recorded_run",
}
# How-tos whose first command cannot run alone, and why.
EXCEPTIONS = {
    "gitlab-and-shell": "wants the artifact of a job",
    "logs": "wants the rules that stand above it, and the log; test_docs_logs.py has both",
    "pytest": "wants tests with goldens that wait",
    "record-a-program": "wants MPI and 64 processes",
    "snapshots": "wants a program that runs long enough for its libraries to be seen",
    "variability": "wants a table of measured times",
}
# How-tos whose first command ends otherwise than with 0.
CODES: dict[str, int] = {}
BEFORE = {
    "bisect": "with_two_versions",
    "compare-revisions": "on_a_branch",
}
# 60 runs.
LONG = {"ensembles"}
HOW_TOS = {
    page.stem: command
    for page in sorted((ROOT / "docs/how-to").glob("*.md"))
    if (command := first_command(page, ("ciwrap",))) is not None
}


class Prepared:
    """The project, and what may be asked of it before a command."""

    def __init__(self, folder: Path, *, is_new: bool = True) -> None:
        self.folder = folder
        self.git = GitRepository(folder)
        if is_new:
            self._make()

    def _make(self) -> None:
        folder = self.folder
        GitRepository.make(folder)
        self.program(0.0)
        shutil.copy(folder / "simulate", folder / "solve")
        solver = folder / "solver"
        solver.write_text(SOLVER)
        solver.chmod(0o755)
        (folder / "Makefile").write_text("all:\n")
        ignored = ("out", "old", "new", "a", "b", "*.json", "*.log", "*.html", "report*")
        (folder / ".gitignore").write_text("\n".join((*ignored, "run_*", "RUN_*", "A", "B")) + "\n")

    def with_folders(self) -> None:
        """Two runs, under all names that pages give them."""
        folder = self.folder
        for name in ("old", "new", "run_1", "run_2", "run_A", "run_B", "RUN_A", "RUN_B", "A", "B"):
            (folder / name).mkdir(exist_ok=True)
            np.save(folder / name / "x.npy", np.arange(9.0))
            np.save(folder / name / "id.npy", np.arange(9))
        for name in ("a.log", "b.log"):
            (folder / name).write_text("step 1 energy 2.5\n")

    def program(self, shift: float) -> None:
        path = self.folder / "simulate"
        path.write_text(SIMULATE.replace("SHIFT", repr(shift)))
        path.chmod(0o755)

    def simulate(self) -> None:
        subprocess.run(["./simulate"], cwd=self.folder, check=True, capture_output=True)

    def run(self, command: str) -> tuple[int, str]:
        """A command line as a shell would take it; its exit code and what it printed."""
        program, *words = shlex.split(command, comments=True)
        assert program == "ciwrap", command
        found = [one for word in words for one in self._expanded(word)]
        done = call(*found, folder=self.folder, environment=environment(CI=""))
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout + done.stderr

    def _expanded(self, word: str) -> list[str]:
        if "*" not in word or word == "run_*" or "=" in word:  # which the pages quote
            return [word]
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.glob(word))

    def on_a_branch(self) -> None:
        self.git.commit("as it is", {})
        self.git.git("checkout", "--quiet", "-b", "work")

    def with_two_versions(self) -> None:
        for tag in ("v1.0", "v1.4"):
            self.git.commit("good", {})
            self.git.git("tag", tag)
        self.program(1e-3)
        self.git.commit("moved", {})

    def with_a_recorded_run(self) -> None:
        code, said = self.run("ciwrap record -o a -- ./solver")
        assert code == 0, said


def test_readme_in_its_order(tmp_path: Path) -> None:
    """`./simulate` has run once; each command finds what those before it left."""
    prepared = Prepared(tmp_path / "project")
    commands = commands_below(ROOT / "README.md", "Use")
    assert len(commands) >= 5
    # A fresh project: nothing but the program and what it wrote.
    prepared.simulate()
    for command in commands:
        name = shlex.split(command, comments=True)[1]
        if name in README_BEFORE:
            getattr(prepared, README_BEFORE[name])()
        code, said = prepared.run(command)
        assert code == README_CODES.get(command, 0), f"$ {command}\n{said}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a configuration, goldens, a run, results and two versions."""
    prepared = Prepared(tmp_path_factory.mktemp("pages") / "project")
    prepared.simulate()
    for command in (
        "ciwrap init out -- ./simulate",
        "ciwrap repeat --write-bounds -n 4",
        "ciwrap accept",
        "ciwrap run --json results/a.json",
    ):
        (prepared.folder / "results").mkdir(exist_ok=True)
        code, said = prepared.run(command)
        assert code == 0, said
    prepared.with_folders()
    return prepared.folder


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in LONG))
        for name in sorted(HOW_TOS.keys() - EXCEPTIONS.keys())
    ],
)
def test_the_first_command_of_a_how_to(template: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "project"
    shutil.copytree(template, folder, symlinks=True)
    prepared = Prepared(folder, is_new=False)
    if name in BEFORE:
        getattr(prepared, BEFORE[name])()
    command = HOW_TOS[name]
    code, said = prepared.run(command)
    assert code == CODES.get(name, 0), f"$ {command}\n{said}"


def test_exceptions_are_of_pages_that_there_are() -> None:
    assert EXCEPTIONS.keys() | CODES.keys() <= HOW_TOS.keys()
    assert len(HOW_TOS) > 15
