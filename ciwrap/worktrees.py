"""Other revisions of a repository, each in a folder of its own, for as long as they are needed."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ciwrap.processes import is_running
from ciwrap.work_folder import WORK_DIR, keep_out_of_git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.repository import Repository

_FOLDER = "revisions"


@contextlib.contextmanager
def revision_folder(
    repository: Repository, commit: str, *, is_empty: bool = False
) -> Iterator[Path]:
    """A working tree with a commit, in .ciwrap/revisions: on the disk that the repository is on.

    is_empty: whether no file is checked out yet. Raises RepositoryError, WriteFailedError.
    """
    keep_out_of_git(repository.top / WORK_DIR)
    parent = repository.top / WORK_DIR / _FOLDER
    parent.mkdir(exist_ok=True)
    _remove_left(repository, parent)
    folder = _free_folder(parent, commit)
    try:
        with repository.checked_out(commit, folder, is_empty=is_empty):
            yield folder
    finally:
        with contextlib.suppress(OSError):
            parent.rmdir()  # if no other process has one


def _free_folder(parent: Path, commit: str) -> Path:
    """One that is not there yet: both sides of a comparison may be of one commit."""
    name = f"{os.getpid()}-{commit[:10]}"
    taken = {path.name for path in parent.iterdir()}
    number = 1
    while f"{name}-{number}" in taken:
        number += 1
    return parent / f"{name}-{number}"


def _remove_left(repository: Repository, parent: Path) -> None:
    """Removes what a process left that was killed."""
    for left in parent.iterdir():
        owner = left.name.partition("-")[0]
        if owner.isdecimal() and not is_running(int(owner)):
            repository.remove_worktree(left)
