"""`ciwrap bisect`: what it says rests on what it looked at, and nobody's files are lost."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from e2e.test_cli_bisect import BOUND, FAILS, Told, wait_for

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path / "p")


def test_nothing_moved_where_no_commit_can_be_compared(told: Told) -> None:
    for number in (1, 2, 3):
        told.commit(number, 0.0, FAILS)
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == 3
    assert "moved a number" not in outcome.out + outcome.err
    assert "error: BAD (" in outcome.err
    assert "cannot be compared: the command" in outcome.err
    assert told.repository.state() == before


@pytest.mark.parametrize("by", [0.0, 5 * BOUND])
def test_ends_are_looked_at_where_all_between_cannot_be_compared(told: Told, by: float) -> None:
    names = [told.commit(n, 0.0, FAILS) for n in (1, 2)]
    last = told.commit(3, by)
    outcome = told.run("bisect", told.good, "HEAD")
    looked_at = [step["commit"]["name"] for step in outcome.document.get("steps", ())]
    if by:
        assert outcome.code == 3, outcome
        assert {*looked_at} == {told.good, *names, last}
        assert "not found: one of these 3 commits moved a number" in outcome.out
    else:
        assert outcome.code == 2, outcome
        assert "BAD (" in outcome.err
        assert "matches the goldens" in outcome.err


def test_runs_that_repeat_has_kept_stay(told: Told) -> None:
    told.commit(1)
    told.commit(2, 5 * BOUND)
    assert told.run("repeat", "-n", "2", "--keep", json_too=False).code == 0
    kept = {path: path.read_bytes() for path in (told.folder / ".ciwrap/repeat").rglob("*.npy")}
    assert len(kept) == 4
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == 0, outcome
    after = {path: path.read_bytes() for path in (told.folder / ".ciwrap/repeat").rglob("*.npy")}
    assert after == kept


@pytest.mark.parametrize(
    ("tracked", "mine", "is_lost"),
    [
        ("notes.log", "notes.log", True),
        ("notes.log", "notes.log/mine", True),
        ("notes.log/theirs", "notes.log", True),
        ("other.log", "notes.log", False),
        ("logs/theirs.log", "logs/mine.log", False),
        ("out/density.npy", "out/density.npy", False),  # set aside, and back in the end
    ],
)
def test_files_that_git_would_write_over(
    told: Told, tracked: str, mine: str, is_lost: bool
) -> None:
    """A commit between has what is ignored now: git takes such files for nobody's."""
    told.repository.commit("Ignore", {".gitignore": "out/\n*-result.json\n*.log\n"})
    path = told.folder / tracked
    path.parent.mkdir(exist_ok=True)
    path.write_text("theirs")
    told.repository.git("add", "--force", tracked)
    told.repository.git("commit", "-q", "-m", "Track it")
    told.commit(1)
    told.repository.git("rm", "-q", "--force", tracked)
    told.repository.git("commit", "-q", "-m", "Track it no longer")
    told.commit(2, 5 * BOUND)
    path = told.folder / mine
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    before = told.repository.state()
    outcome = told.run("bisect", told.good, "HEAD")
    assert outcome.code == (2 if is_lost else 0), outcome
    assert (f"git does not track {mine} here" in outcome.err) is is_lost
    assert path.read_text() == "mine"
    assert told.repository.state() == before


def test_a_second_interrupt_waits_until_all_is_as_it_was(told: Told) -> None:
    for n in (1, 2, 3):
        told.commit(n, 5 * BOUND if n >= 3 else 0.0)
    before = told.repository.state()
    mark = told.folder.parent / "started"
    process = told.begin("bisect", told.good, "main", "--", f"touch {mark}; sleep 60")
    wait_for(mark)
    # It comes with the checkout that puts back what was there.
    hook = told.folder / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nkill -s INT {process.pid}\n")
    hook.chmod(0o755)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    hook.unlink()
    assert process.returncode == 130, error
    assert told.repository.state() == before
    assert told.run("bisect", told.good, "main").document["found"]["title"] == "Change 3"
