"""The files of a repository at one moment, and those that lie in its working tree now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.golden.files import read_regular
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class FileTree(Protocol):
    """Files by their names from the top of the repository, with '/'. Links are followed, as a check
    follows them.
    """

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
        found = _files_below(self.top / folder, frozenset())
        return sorted(path.relative_to(self.top).as_posix() for path in found)


def _files_below(folder: Path, around: frozenset[Path]) -> Iterator[Path]:
    """Files in a folder and below, behind links, too. around: the folders that it was reached
    through; a link back to one of these is not followed.
    """
    real = folder.resolve()
    if real in around or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir():
            yield from _files_below(path, around | {real})
        elif path.is_file():
            yield path
