"""Projects whose program is run several times: what it does may depend on how often it ran."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cli_project import Project

_HEAD = """\
import os, pathlib, sys, time
import numpy as np
counter = pathlib.Path("count")
run = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(run))
noise = np.random.default_rng(run)
x = np.linspace(1.0, 2.0, 500)
"""


def with_program(
    project: Project,
    code: str,
    *,
    command: str = "[{python}, program.py]",
    check: str = "outputs: out",
    run: str = "",
    more: str = "",
) -> None:
    """A project with that program; `run` counts its runs from 1, `noise` is seeded by it, `x` is an
    array. The outputs of before are gone.
    """
    for path in (project.folder / "out").iterdir():
        path.unlink()
    (project.folder / "program.py").write_text(_HEAD + textwrap.dedent(code))
    words = command.format(python=json.dumps(sys.executable), run="{run}", seed="{seed}")
    (project.folder / "ciwrap.yaml").write_text(
        f"run:\n  command: {words}\n{run}{more}checks:\n  mesh: {{{check}}}\n"
    )


def runs_made(project: Project) -> int:
    path = project.folder / "count"
    return int(path.read_text() or 0) if path.exists() else 0  # it may be about to be written


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
