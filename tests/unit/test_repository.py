"""git, as ciwrap asks it; in repositories made for each test."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from git_repository import GitRepository

from ciwrap.base.errors import RepositoryError, UsageError
from ciwrap.base.repository import Repository, git_commit, revision_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> GitRepository:
    made = GitRepository.make(tmp_path / "p")
    made.commit("One", {"a.txt": "1", "folder/b.txt": "1"})
    return made


def test_what_git_itself_was_started_with_is_not_asked(
    made: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As within a hook of another repository."""
    other = GitRepository.make(tmp_path / "other")
    other.commit("Other", {"x": ""})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    head = subprocess.run(
        ["git", "--git-dir", made.folder / ".git", "rev-parse", "HEAD"],
        capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]},
    ).stdout.strip()  # fmt: skip
    repository = Repository.around(made.folder / "folder")
    assert repository.top == made.folder.resolve()
    assert repository.commit("HEAD") == head == git_commit(made.folder)


def test_commits_by_any_name_and_nothing_else(made: GitRepository) -> None:
    repository = Repository.around(made.folder)
    head = made.git("rev-parse", "HEAD")
    made.git("tag", "-a", "v1", "-m", "annotated")
    for name in ("HEAD", "main", "v1", head, head[:8]):
        assert repository.commit(name) == head
    for name in ("v2", "HEAD~5", "--all", "", "HEAD:a.txt", "a.txt"):
        with pytest.raises(UsageError, match="there is no commit"):
            repository.commit(name)


def test_changed_files_are_tracked_ones(made: GitRepository) -> None:
    repository = Repository.around(made.folder)
    (made.folder / "new.txt").write_text("")
    assert repository.changed_files() == []
    odd = made.folder / 'odd "na\nme".txt'
    odd.write_text("1")
    made.git("add", odd.name)
    made.git("mv", "a.txt", "moved.txt")
    (made.folder / "folder/b.txt").unlink()
    assert set(repository.changed_files()) == {odd.name, "a.txt", "moved.txt", "folder/b.txt"}


def test_a_folder_that_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in a git work tree"):
        Repository.around(tmp_path)


def test_git_says_what_went_wrong(made: GitRepository) -> None:
    with pytest.raises(RepositoryError, match=r"git checkout failed: .*nowhere"):
        Repository.around(made.folder).git("checkout", "nowhere")


def test_revisions_come_and_go(made: GitRepository) -> None:
    second = made.commit("Two", {"a.txt": "2"})
    repository = Repository.around(made.folder)
    before = made.state()
    first = repository.commit("HEAD~1")
    with revision_folder(repository, first) as one, revision_folder(repository, first) as same:
        assert one != same
        assert (one / "a.txt").read_text() == "1"
        (one / "a.txt").write_text("changed")
        (one / "built").mkdir()
        with revision_folder(repository, second, is_empty=True) as bare:
            assert [path.name for path in bare.iterdir()] == [".git"]
    assert made.state() == before
    assert not (made.folder / ".ciwrap/revisions").exists()
    with pytest.raises(ValueError, match="within"), revision_folder(repository, first):
        raise ValueError("within")
    assert made.state() == before


def test_git_finishes_what_it_began_before_an_interrupt(made: GitRepository) -> None:
    """An alias that sends Ctrl-C to us, and goes on working."""
    repository = Repository.around(made.folder)
    made.git("config", "alias.slow", f"!kill -INT {os.getpid()}; sleep 0.2; echo done > finished")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        repository.git("slow")
    assert (made.folder / "finished").read_text() == "done\n"
    assert signal.getsignal(signal.SIGINT) is before
