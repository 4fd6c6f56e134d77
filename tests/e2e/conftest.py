from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from e2e.cli_project import Project
from e2e.history_runs import write_run
from e2e.online_runs import write_program
from e2e.paired_runs import Case

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "p")


@pytest.fixture(scope="session")
def accepted_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("accepted") / "p")
    project.accept()
    return project


@pytest.fixture
def accepted(accepted_once: Project, tmp_path: Path) -> Project:
    """A copy of a project whose outputs have been accepted."""
    return Project(tmp_path / "p", like=accepted_once)


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Two equal runs."""
    a = write_run(tmp_path / "A")
    shutil.copytree(a, tmp_path / "B")
    return a, tmp_path / "B"


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda keys: Case(tmp_path, monkeypatch, keys)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that start a program that records, in the working folder of the test."""
    monkeypatch.chdir(tmp_path)
    return write_program()
