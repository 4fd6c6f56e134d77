"""Projects whose program is run several times: what it does may depend on how often it ran.

A program that only computes is run here, in advance, and what the project runs instead writes what
it wrote: that takes a tenth of the time, most of which goes into loading NumPy.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cli_project import Project

_HEAD = """\
import os, pathlib, sys, time
import numpy as np
counter = pathlib.Path("count")
run = int(counter.read_text()) + 1 if counter.exists() else 1
# Renamed into place, since runs at the same time read it.
(mine := pathlib.Path(f"count_{os.getpid()}")).write_text(str(run))
mine.replace(counter)
noise = np.random.default_rng(run)
x = np.linspace(1.0, 2.0, 500)
"""
# What a program does with these is seen by nobody who runs it in advance.
_LIVE = re.compile(r"\b(os|time|argv|import|open|print)\b")
_MOST_RUNS = 40
_REPLAY = """\
import os, sys
run = int(open("count").read()) + 1 if os.path.exists("count") else 1
with open("count", "w") as file:
    file.write(str(run))
here = os.path.join({recorded!r}, str(run))
if not os.path.isdir(here):
    sys.exit("only {most} runs were recorded")
for folder, _, names in os.walk(here + "/out"):
    there = os.path.relpath(folder, here)
    if there != "out":
        os.mkdir(there)
    for name in names:
        with open(f"{{folder}}/{{name}}", "rb") as file:
            data = file.read()
        with open(f"{{there}}/{{name}}", "wb") as file:
            file.write(data)
if os.path.exists(here + "/exit"):
    with open(here + "/exit") as file:
        sys.exit(eval(file.read()))
"""


def with_program(
    project: Project,
    code: str,
    *,
    command: str = "[{python}, program.py]",
    check: str = "outputs: out",
    run: str = "",
    more: str = "",
    in_advance: bool = True,
) -> None:
    """A project with that program; `run` counts its runs from 1, `noise` is seeded by it, `x` is an
    array. The outputs of before are gone. in_advance: what it computes depends on nothing else.
    """
    for path in (project.folder / "out").iterdir():
        path.unlink()
    code = textwrap.dedent(code)
    is_live = _LIVE.search(code) or not in_advance
    program = _HEAD + code if is_live else _recorded(project, code)
    (project.folder / "program.py").write_text(program)
    words = command.format(python=json.dumps(sys.executable), run="{run}", seed="{seed}")
    (project.folder / "ciwrap.yaml").write_text(
        f"run:\n  command: {words}\n{run}{more}checks:\n  mesh: {{{check}}}\n"
    )


def _recorded(project: Project, code: str) -> str:
    """A program that does what the code, which writes arrays into `out`, does in each run."""
    root = project.folder.parent / f"{project.folder.name}-recorded"
    shutil.rmtree(root, ignore_errors=True)
    compiled = compile(code, "program.py", "exec")
    for run in range(1, _MOST_RUNS + 1):
        folder = root / str(run)
        (folder / "out").mkdir(parents=True)
        noise, x = np.random.default_rng(run), np.linspace(1.0, 2.0, 500)
        names = {"np": np, "run": run, "noise": noise, "x": x, "sys": sys, "pathlib": pathlib}
        before = os.getcwd()  # noqa: PTH109
        os.chdir(folder)
        try:
            exec(compiled, names)
        except SystemExit as end:
            (folder / "exit").write_text(repr(end.code))
        finally:
            os.chdir(before)
        assert {path.name for path in folder.iterdir()} <= {"out", "exit"}, "use in_advance=False"
    assert len(list(root.iterdir())) == _MOST_RUNS, "use in_advance=False"
    return _REPLAY.format(recorded=str(root), most=_MOST_RUNS)


def runs_made(project: Project) -> int:
    path = project.folder / "count"
    return int(path.read_text() or 0) if path.exists() else 0  # it may be about to be written


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
