"""The files of a repository at one moment: as they lie here, or as a commit holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.golden.files import read_regular
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ciwrap.repository import Repository


class FileTree(Protocol):
    """Files by their names from the top of the repository, with '/'."""

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The files that are there. Raises FileLimitError, UnreadableFileError."""

    def names_below(self, folder: str) -> list[str]:
        """The names of all files in a folder ('' for the top) and below it."""


class WorkingTree(Struct, frozen=True):
    """Files as they lie in a folder now, committed or not."""

    top: Path

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        paths = {name: self.top / name for name in names}
        return {
            name: read_regular(path, most_bytes) for name, path in paths.items() if path.is_file()
        }

    def names_below(self, folder: str) -> list[str]:
        return sorted(
            path.relative_to(self.top).as_posix()
            for path in (self.top / folder).rglob("*")
            if path.is_file()
        )


class CommitTree(Struct, frozen=True):
    """Files as a commit holds them; the working tree is never touched."""

    repository: Repository
    commit: str

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        found = self.repository.read_at(self.commit, names)
        return {name: data for name, data in found.items() if len(data) <= most_bytes}

    def names_below(self, folder: str) -> list[str]:
        return self.repository.files_at(self.commit, folder)
