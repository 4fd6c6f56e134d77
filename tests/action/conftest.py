from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from action.act_runs import Act, commit, make_repository, missing_tool
from action.gate_project import Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIMULATE = """\
import json, pathlib, struct, sys
values = [i / 7 for i in range(600)]
values[17] += float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
out = pathlib.Path("out")
out.mkdir(exist_ok=True)
header = "{'descr': '<f8', 'fortran_order': False, 'shape': (600,), }".ljust(117) + "\\n"
for name in ("temperature", "pressure"):
    data = b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(header)) + header.encode()
    (out / f"{name}.npy").write_bytes(data + struct.pack("<600d", *values))
"""
CONFIG = """\
version: 1
run: python3 simulate.py
defaults: {atol: 1e-6}
checks:
  mesh:
    outputs: out
"""


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Act:
    """act with the action installed; skips where act cannot run."""
    if missing_tool():
        pytest.skip(missing_tool())
    act = Act(tmp_path_factory.mktemp("machine"))
    act.seed_environment()
    return act


@pytest.fixture
def act(machine: Act) -> Act:
    """The machine, with no artifacts of earlier tests."""
    shutil.rmtree(machine.artifacts)
    machine.artifacts.mkdir()
    return machine


@pytest.fixture(scope="session")
def golden_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The goldens of the project below, made once."""
    folder = tmp_path_factory.mktemp("golden-files")
    (folder / "simulate.py").write_text(SIMULATE)
    (folder / "ciwrap.yaml").write_text(CONFIG)
    subprocess.run([sys.executable, "simulate.py"], cwd=folder, check=True)
    subprocess.run([sys.executable, "-m", "ciwrap", "accept"], cwd=folder, check=True)
    return {p.name: p.read_bytes() for p in (folder / "golden").iterdir() if p.is_file()}


@pytest.fixture
def project(tmp_path: Path, golden_files: dict[str, bytes]) -> Callable[..., Path]:
    """Makes a user's repository: a simulation, ciwrap.yaml, goldens, one workflow."""

    def make(workflow: str, *, goldens: bool = True, **files: str) -> Path:
        folder = tmp_path / "project"
        make_repository(
            folder,
            {"ciwrap.yml": workflow},
            {"simulate.py": SIMULATE, "ciwrap.yaml": CONFIG, ".gitignore": "out/\n", **files},
        )
        if goldens:
            (folder / "golden").mkdir(exist_ok=True)
            for name, data in golden_files.items():
                (folder / "golden" / name).write_bytes(data)
        commit(folder)
        return folder

    return make


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository with goldens, which is the working folder."""
    folder = tmp_path / "r"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return Project(folder, tmp_path / "runner")
