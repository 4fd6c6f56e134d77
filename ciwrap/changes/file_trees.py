"""The files of a repository at one moment, and those that lie in its working tree now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.files import read_regular
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class FileTree(Protocol):
    """Files by their names from the top of the repository, with '/'."""

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The files that are there. Raises FileLimitError, UnreadableFileError."""

    def names_below(self, folder: str) -> list[str]:
        """The names of all files in a folder ('' for the top) and below it."""


class WorkingTree(Struct, frozen=True):
    """Files as they lie in a folder now, committed or not. Links to folders within are not
    followed, so what a commit had there is told to be gone.
    """

    top: Path

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        paths = {name: self.top / name for name in names}
        return {
            name: read_regular(path, most_bytes) for name, path in paths.items() if path.is_file()
        }

    def names_below(self, folder: str) -> list[str]:
        inside = (self.top / folder).rglob("*")
        return sorted(one.relative_to(self.top).as_posix() for one in inside if one.is_file())
