"""The files of a repository as a commit holds them; the working tree is never touched."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ciwrap.changes.file_trees import WorkingTree
from ciwrap.errors import UsageError
from ciwrap.golden.paths import ENSEMBLE_SUFFIX, MANIFEST_SUFFIX, SHARED_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ciwrap.repository import Entry, Repository

_OF_GOLDENS = (MANIFEST_SUFFIX, SHARED_SUFFIX, ENSEMBLE_SUFFIX)
# As Linux does.
_MOST_LINKS = 40


class CommitTree:
    """A FileTree. What only a link or a submodule tells of is refused: nothing says what it was."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository, self._commit = repository, commit

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """Raises UsageError for a link to what the commit does not hold."""
        places = {name: self._behind_links(name) for name in names}
        objects = {
            name: self._entries[place].object
            for name, place in places.items()
            if place is not None and self._is_file(place)
        }
        found = self._repository.contents(list(objects.values()))
        return {name: found[one] for name, one in objects.items() if len(found[one]) <= most_bytes}

    def names_below(self, folder: str) -> list[str]:
        """Raises UsageError for a link to what the commit does not hold, and for goldens in a
        submodule.
        """
        real = self._behind_links(folder)
        if real is not None and self._is_submodule(real):
            raise _in_submodule(folder)
        return sorted(self._files_below(folder, frozenset()))

    def _files_below(self, folder: str, around: frozenset[str]) -> Iterator[str]:
        """As the function of that name in file_trees."""
        real = self._behind_links(folder)
        if real is None or real in around:
            return
        for name in self._names_in.get(real, ()):
            path = f"{folder}/{name}" if folder else name
            place = self._behind_links(path)
            if place is None:
                continue
            if self._is_submodule(place):
                self._refuse_goldens(path)
            elif self._is_file(place):
                yield path
            else:
                yield from self._files_below(path, around | {real})

    def _is_file(self, place: str) -> bool:
        entry = self._entries.get(place)  # there is none for the top
        return entry is not None and not (entry.is_tree or entry.is_submodule)

    def _is_submodule(self, place: str) -> bool:
        entry = self._entries.get(place)
        return entry is not None and entry.is_submodule

    def _refuse_goldens(self, submodule: str) -> None:
        """Raises UsageError for a submodule in which goldens lie now."""
        names = WorkingTree(self._repository.top).names_below(submodule)
        if any(name.endswith(_OF_GOLDENS) for name in names):
            raise _in_submodule(submodule)

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        return self._repository.entries_at(self._commit)

    @cached_property
    def _names_in(self) -> Mapping[str, list[str]]:
        """What each folder holds, links of the folder not followed."""
        found: dict[str, list[str]] = {}
        for path in self._entries:
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, []).append(name)
        return found

    @cached_property
    def _targets(self) -> Mapping[str, str]:
        """Where links lead, by their names."""
        links = {name: one.object for name, one in self._entries.items() if one.is_link}
        texts = self._repository.contents(list(links.values()))
        return {name: texts[one].decode("utf-8", "replace") for name, one in links.items()}

    def _behind_links(self, name: str) -> str | None:
        """Where a name leads: a file, a folder or a submodule; None for nothing.

        Raises UsageError for a link to what the commit does not hold, and for what lies in a
        submodule.
        """
        found: list[str] = []
        waiting = _parts(name)
        after_link = -1  # how many parts wait behind the target of the last link; -1: no link yet
        for_links = _MOST_LINKS
        while waiting:
            part = waiting.pop(0)
            if part == "..":
                if not found:
                    raise _leads_away(name)
                found.pop()
                continue
            path = "/".join([*found, part])
            entry = self._entries.get(path)
            if entry is None:
                if len(waiting) < after_link or after_link < 0:
                    return None
                raise _leads_away(name)
            if entry.is_link:
                for_links -= 1
                after_link = len(waiting)
                target = self._targets[path]
                if target.startswith("/") or not for_links:
                    raise _leads_away(name)
                waiting[:0] = _parts(target)
                continue
            if entry.is_submodule and waiting:
                raise _in_submodule(path)
            found.append(part)
        return "/".join(found)


def _parts(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in ("", ".")]


def _leads_away(name: str) -> UsageError:
    return UsageError(
        "the commit has a link here, but not what it leads to, so nothing tells what it was",
        file=name,
        remedy="commit what it leads to, within the repository",
    )


def _in_submodule(name: str) -> UsageError:
    return UsageError(
        "what lies in a submodule is not part of the commit, so nothing tells what it was",
        file=name,
        remedy="keep configuration and goldens in the repository itself",
    )
