"""Environment variables that stand for options: where and how, never what decides a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.cli_project import BASE, Project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def other(accepted: Project, tmp_path: Path) -> Project:
    """A project whose outputs are not those of its golden."""
    found = Project(tmp_path / "other", like=accepted)
    found.save("temperature", BASE + 1)
    return found


def test_the_configuration(accepted: Project, other: Project) -> None:
    named = str(other.folder / "ciwrap.yaml")
    assert accepted.run("check", CIWRAP_CONFIG=named).code == 1
    assert accepted.run("check", CIWRAP_CONFIG="").code == 0
    # What is given comes before it.
    assert accepted.run("check", "--config", "ciwrap.yaml", CIWRAP_CONFIG=named).code == 0
    # What is accepted is what was checked.
    assert accepted.run("accept", "--reason", "moved", CIWRAP_CONFIG=named).code == 0
    assert accepted.run("check", CIWRAP_CONFIG=named).code == 0
    # Two files need no configuration.
    assert accepted.run("compare", "out", "out", CIWRAP_CONFIG=named).code == 0
    assert accepted.run("compare", "out", "out", "--check=mesh", CIWRAP_CONFIG=named).code == 0


@pytest.mark.parametrize("words", [("check",), ("review",), ("doctor",)])
def test_a_configuration_that_there_is_not(accepted: Project, words: tuple[str, ...]) -> None:
    outcome = accepted.run(*words, json_too=False, CIWRAP_CONFIG="nowhere.yaml")
    said = "nowhere.yaml: CIWRAP_CONFIG names no file; name a ciwrap.yaml, or unset it"
    assert said in outcome.out + outcome.err, outcome


def test_where_and_how_to_compute(accepted: Project) -> None:
    assert accepted.run("check", CIWRAP_THREADS="1", CIWRAP_ENGINE="pread").code == 0
    outcome = accepted.run("check", CIWRAP_BACKEND="quantum")
    assert outcome.code == 2
    assert "quantum" in outcome.out + outcome.err
    assert accepted.run("check", "--backend=auto", CIWRAP_BACKEND="quantum").code == 0
    wrong = accepted.run("check", CIWRAP_THREADS="many", json_too=False)
    assert (wrong.code, "--threads" in wrong.err) == (2, True), wrong
    assert "CIWRAP_THREADS" in accepted.run("check", "--help", json_too=False).out


def test_none_decides_a_verdict(other: Project) -> None:
    names = ("ATOL", "RTOL", "IGNORE", "BOUND", "EXCLUDE", "FORCE", "REASON", "IN_CI", "PENDING")
    said = {
        f"CIWRAP_{command}{name}": "10"
        for command in ("", "COMPARE_", "CHECK_", "ACCEPT_")
        for name in names
    }
    before = other.snapshot()
    assert other.run("check", **said).code == 1
    other.save("other", BASE)
    assert other.run("compare", "out/temperature.npy", "out/other.npy", **said).code == 1
    assert other.run("accept", **said).code == 2
    assert other.snapshot() == before
