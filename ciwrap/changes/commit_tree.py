"""The files of a repository as a commit holds them; the working tree is never touched."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.changes.file_trees import WorkingTree
from ciwrap.errors import UsageError
from ciwrap.golden.paths import ENSEMBLE_SUFFIX, MANIFEST_SUFFIX, SHARED_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.repository import Entry, Repository

_OF_GOLDENS = (MANIFEST_SUFFIX, SHARED_SUFFIX, ENSEMBLE_SUFFIX)


class CommitTree:
    """A FileTree. What only a link or a submodule tells of is refused: nothing says what it was."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository, self._commit = repository, commit

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """Raises UsageError for a link, and for what lies behind one or in a submodule."""
        for name in names:
            self._refuse_on_the_way(name)
        objects = {
            name: self._entries[name].object
            for name in names
            if name in self._entries and not self._entries[name].is_tree
        }
        found = self._repository.contents(list(objects.values()))
        return {name: found[one] for name, one in objects.items() if len(found[one]) <= most_bytes}

    def names_below(self, folder: str) -> list[str]:
        """Raises UsageError for a link in the folder, and for goldens in a submodule."""
        self._refuse_on_the_way(folder)
        inside = {
            name: entry
            for name, entry in self._entries.items()
            if not folder or name.startswith(f"{folder}/")
        }
        for name, entry in inside.items():
            if entry.is_link:
                raise _behind_a_link(name)
            if entry.is_submodule:
                self._refuse_goldens(name)
        return [name for name, one in inside.items() if not (one.is_tree or one.is_submodule)]

    def _refuse_on_the_way(self, name: str) -> None:
        """Raises UsageError for a name that is a link or a submodule, or lies behind one."""
        for place in (name, *map(str, PurePosixPath(name).parents)):
            entry = self._entries.get(place)
            if entry is not None and entry.is_link:
                raise _behind_a_link(place)
            if entry is not None and entry.is_submodule:
                raise _in_submodule(place)

    def _refuse_goldens(self, submodule: str) -> None:
        """Raises UsageError for a submodule in which goldens lie now."""
        names = WorkingTree(self._repository.top).names_below(submodule)
        if any(name.endswith(_OF_GOLDENS) for name in names):
            raise _in_submodule(submodule)

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        return self._repository.entries_at(self._commit)


def _behind_a_link(name: str) -> UsageError:
    return UsageError(
        "the commit has a link here, and nothing tells what it led to",
        file=name,
        remedy="keep configuration and goldens in the repository without links",
    )


def _in_submodule(name: str) -> UsageError:
    return UsageError(
        "what lies in a submodule is not part of the commit, so nothing tells what it was",
        file=name,
        remedy="keep configuration and goldens in the repository itself",
    )
