"""A repository with a program and goldens, and the folders of a runner that checks it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from action.act_runs import git
from action.test_steps import parse_outputs

from ciwrap.action.github import Runner, read_inputs
from ciwrap.action.orders import run_check
from ciwrap.cli.main import run as ciwrap

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = "import numpy as np\nnp.savez('o.npz', energy=np.arange(4.), t=np.arange(4.))\n"
CONFIG = f"version: 1\nrun: {sys.executable} p.py\nchecks:\n  x: {{outputs: o.npz, atol: 1e-9}}\n"


class Project:
    """A repository with a program, a configuration and goldens, and the folders of a runner."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder, self.temporary = folder, temporary
        temporary.mkdir()
        (folder / "p.py").write_text(PROGRAM)
        (folder / "ciwrap.yaml").write_text(CONFIG)
        (folder / ".gitignore").write_text("o.npz\n.ciwrap/\n")
        self.make_outputs()
        git(folder, "init", "-q", "-b", "main")
        assert ciwrap(["accept"]) == 0
        self.commit()

    def make_outputs(self, shift: float = 0.0) -> None:
        np.savez(self.folder / "o.npz", energy=np.arange(4.0) + shift, t=np.arange(4.0))

    def commit(self) -> str:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", "x")
        return git(self.folder, "rev-parse", "HEAD")

    def replace(self, old: str, new: str, file: str = "ciwrap.yaml") -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def runner(self, event: dict[str, Any] | None = None, name: str = "push") -> Runner:
        for file in ("output", "summary"):
            (self.temporary / file).write_text("")
        (self.temporary / "event.json").write_text(json.dumps(event or {}))
        return Runner(
            {
                "PATH": "/usr/bin:/bin",
                "GITHUB_WORKSPACE": str(self.folder),
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_EVENT_NAME": name,
                "GITHUB_EVENT_PATH": str(self.temporary / "event.json"),
                "GITHUB_SHA": git(self.folder, "rev-parse", "HEAD"),
                "GITHUB_OUTPUT": str(self.temporary / "output"),
                "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            }
        )

    def check(self, runner: Runner | None = None, **given: str) -> dict[str, str]:
        """The step `check`: its outputs, with the summary as `summary`."""
        inputs = read_inputs({f"CIWRAP_INPUT_{name.upper()}": v for name, v in given.items()})
        run_check(inputs, runner or self.runner())
        told = parse_outputs((self.temporary / "output").read_text())
        return {**told, "summary": (self.temporary / "summary").read_text()}

    @property
    def stage(self) -> Path:
        return self.temporary / "ciwrap-results/ciwrap"
