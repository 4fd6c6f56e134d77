"""git's bisection: which commit is to be looked at next, and which one was found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ciwrap.closing import Closing
from ciwrap.errors import RepositoryError, UsageError
from ciwrap.interrupts import later_interrupts
from ciwrap.model import Verdict
from ciwrap.report.text import plural
from ciwrap.repository import ask_git
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from ciwrap.repository import Repository

# What git's log of a bisection says once it is at an end; never translated.
_FOUND = re.compile(r"^# first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]{40,64})\]", re.MULTILINE)
_MOST_FILES = 3


def refuse_unless_ready(repository: Repository, good: str, bad: str) -> None:
    """Raises UsageError unless the working tree can be taken from commit to commit and back, and
    there is something between `good` and `bad`, both full names.
    """
    changed = repository.changed_files()
    if changed:
        names = ", ".join(changed[:_MOST_FILES]) + (", ..." if len(changed) > _MOST_FILES else "")
        raise UsageError(
            f"the working tree has changes that are not committed ({names})",
            file=repository.top,
            remedy="commit or stash them",
        )
    if (repository.top / repository.git("rev-parse", "--git-path", "BISECT_START")).exists():
        raise UsageError(
            "a bisection is under way in this working tree",
            file=repository.top,
            remedy="end it with `git bisect reset` in that folder",
        )
    if good == bad:
        raise UsageError("GOOD and BAD are one and the same commit")
    if ask_git(repository.top, "merge-base", "--is-ancestor", good, bad) is None:
        raise UsageError(
            f"{good[:10]} is not an ancestor of {bad[:10]}",
            remedy="name the commit that was good first, and one that came after it",
        )


def refuse_files_in_the_way(repository: Repository, good: str, bad: str) -> None:
    """Raises UsageError for files that git does not track here, but in a commit to look at.

    To check that commit out, git writes over them where they are ignored, and leaves none behind.
    """
    here = [name for name in repository.git("ls-files", "--others", "-z").split("\0") if name]
    ever = {name for name, one in repository.entries_at(bad).items() if not one.is_tree}
    changed = repository.git(
        "log", "-m", "--name-only", "--no-renames", "--format=", "-z", f"{good}..{bad}"
    )
    ever.update(name for name in changed.split("\0") if name)
    folders = {above for name in ever for above in _folders_above(name)}
    lost = [
        name
        for name in here
        if name in ever or name in folders or not ever.isdisjoint(_folders_above(name))
    ]
    if lost:
        more = f" and {plural(len(lost) - 1, 'other file')}" if len(lost) > 1 else ""
        raise UsageError(
            f"git does not track {lost[0]}{more} here, but in a commit between GOOD and BAD, which"
            " would be written over it",
            file=repository.top,
            remedy="move it away",
        )


def _folders_above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


class Search(Closing):
    """A bisection under way in the working tree; closing it checks out what was there before.

    Changes of tracked files that runs make are thrown away, and so is what they make in the place
    of one: there were none before. Raises RepositoryError.
    """

    def __init__(self, repository: Repository, good: str, bad: str) -> None:
        self.repository, self.good, self.bad = repository, good, bad
        self._has_begun = False
        self._before = ""  # the branch, or the commit, that was checked out

    def begin(self) -> None:
        """Checks out the first commit to look at, if there is one between `good` and `bad`."""
        branch = ask_git(self.repository.top, "symbolic-ref", "--quiet", "--short", "HEAD")
        self._before = branch or self.here
        self._has_begun = True
        self._bisect("start", self.bad, self.good)

    @property
    def here(self) -> str:
        """The commit that is checked out."""
        return self.repository.commit("HEAD")

    @property
    def found(self) -> str | None:
        """The first bad commit, once it is known."""
        match = _FOUND.search(self._log())
        return match[1] if match else None

    @property
    def possible(self) -> tuple[str, ...]:
        """The commits that the first bad one is among, where the rest could not be looked at."""
        return tuple(_POSSIBLE.findall(self._log()))

    @property
    def is_over(self) -> bool:
        return self.found is not None or bool(self.possible)

    def mark(self, verdict: Verdict) -> None:
        """Says what became of the commit here, and checks out the next one to look at."""
        self.throw_changes_away()
        if verdict is Verdict.NOT_COMPARABLE:  # which says nothing about a commit
            self._bisect("skip")
        else:
            self._bisect("good" if verdict.is_good else "bad")

    def look_at(self, commit: str) -> None:
        """Checks out a commit that the bisection itself does not ask for."""
        self.throw_changes_away()
        self.repository.git("checkout", "--quiet", "--detach", commit)

    def throw_changes_away(self) -> None:
        """Puts tracked files back to what the commit here has."""
        if self.repository.changed_files():
            self.repository.git("reset", "--quiet", "--hard")

    def close(self) -> None:
        if not self._has_begun:
            return
        with later_interrupts():  # a second Ctrl-C, of one who does not want to wait
            self._has_begun = False
            # An interrupt may have come before git had written all files of a commit.
            self.throw_changes_away()
            # What lies in the place of a tracked file has come since: git would not go back over it
            # by itself.
            self.repository.git("checkout", "--quiet", "--force", self._before, "--")
            self.repository.git("bisect", "reset")

    def _log(self) -> str:
        return self.repository.git("bisect", "log")

    def _bisect(self, *arguments: str) -> None:
        try:
            self.repository.git("bisect", *arguments)
        except RepositoryError:
            # git also fails where nothing but skipped commits is left, and says so in its log.
            if not self.is_over:
                raise


class Commit(Struct, frozen=True):
    """A commit as people know it. when: ISO 8601."""

    name: str
    title: str
    author: str
    when: str


def describe_commit(repository: Repository, name: str) -> Commit:
    """Raises RepositoryError for a commit that is not there."""
    said = repository.git("show", "--no-patch", "--format=%an%x00%aI%x00%s", name)
    author, when, title = said.split("\0", 2)
    return Commit(name, title, author, when)
