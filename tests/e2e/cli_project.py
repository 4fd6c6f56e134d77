"""A small project to run the real command line in, and what each call left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from command_line import call, call_apart, command
from result_schema import validator

ROOT = Path(__file__).resolve().parents[2]
BASE = np.arange(600.0).reshape(20, 30) / 7


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str
    document: Any

    @property
    def error_lines(self) -> list[str]:
        return [line for line in self.err.splitlines() if line]

    def variable(self, name: str, check: int = 0) -> Any:
        found = [v for v in self.document["checks"][check]["variables"] if v["name"] == name]
        assert len(found) == 1, found
        return found[0]


def environment(**more: str) -> dict[str, str]:
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FORCE_COLOR", "NO_COLOR", "CIWRAP_"))
    }
    return {**keep, "COLUMNS": "200", **more}


class Project:
    """A folder with outputs in `out/` and a ciwrap.yaml; every JSON document is validated."""

    def __init__(self, folder: Path, *, like: Project | None = None) -> None:
        self.folder = folder
        if like is not None:
            shutil.copytree(like.folder, folder)
            return
        (folder / "out").mkdir(parents=True)
        self.save("temperature", BASE)
        self.save("ids", np.arange(100, dtype=np.int32))
        self.configure()

    def configure(self, text: str = "", *, bound: str = "atol: 1e-6") -> None:
        (self.folder / "ciwrap.yaml").write_text(
            f"version: 1\ndefaults: {{{bound}}}\nchecks:\n  mesh:\n    outputs: out\n{text}"
        )

    def save(self, name: str, array: Any) -> Path:
        path = self.folder / "out" / f"{name}.npy"
        np.save(path, array, allow_pickle=True)
        return path

    def run(
        self, *arguments: str, json_too: bool = True, apart: bool = False, **env: str
    ) -> Outcome:
        """Runs a command line. apart: in a process of its own."""
        target = self.folder.parent / f"{self.folder.name}-result.json"
        target.unlink(missing_ok=True)
        extra = ("--json", str(target)) if json_too else ()
        done = (call_apart if apart else call)(
            *arguments, *extra, folder=self.folder, environment=environment(**env)
        )
        document = None
        if target.exists():
            document = json.loads(target.read_text(encoding="utf-8"))
            validator().validate(document)
        assert "Traceback" not in done.stderr, done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr, document)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command, to be interrupted."""
        return subprocess.Popen(
            command(*arguments),
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background inherits that SIGINT is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def accept(self, *arguments: str) -> Outcome:
        outcome = self.run("accept", *arguments)
        assert outcome.code == 0, outcome
        return outcome

    @property
    def golden(self) -> Path:
        return self.folder / "golden" / "mesh.golden"

    def snapshot(self) -> dict[str, bytes]:
        """Everything there is but the outputs, to see that nothing was written."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "out" not in path.relative_to(self.folder).parts
        }


def check_fails(
    project: Project, code: int, *words: str, command: tuple[str, ...] = ("check",)
) -> Outcome:
    """Runs a command that must fail with that code, name every word, and write nothing."""
    before = project.snapshot()
    outcome = project.run(*command)
    assert outcome.code == code, outcome
    said = outcome.out + outcome.err
    for word in words:
        assert word in said, said
    assert project.snapshot() == before
    assert outcome.document["verdict"] == "not_comparable"
    assert outcome.document["exit_code"] == code
    return outcome


def manifest_of(project: Project) -> dict:
    return yaml.safe_load((project.folder / "golden" / "mesh.golden.yaml").read_text())


def litter(project: Project) -> list[str]:
    """What lies beside goldens, and is neither one nor a whole snapshot."""
    names = {path.name for path in (project.folder / "golden").iterdir()}
    snapshots = {path.name for path in (project.folder / "golden/.snapshots").glob("*")}
    named = re.compile(r"[0-9a-f]{32}\.json\.(zst|z)")
    parts = [name for name in snapshots if not named.fullmatch(name)]
    return sorted([*names - {"mesh.golden", "mesh.golden.yaml", ".snapshots"}, *parts])
