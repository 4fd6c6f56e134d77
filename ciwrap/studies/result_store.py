"""Where `ciwrap trend` keeps results: a folder, or a branch of git that no working tree shows.

Both hold `results/COMMIT.json`, a small file for each commit (and label), and `README.md`, what
`trend` says of all of them. Each file of results is written once and read as a whole; a commit that
is tried again replaces its own.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import RepositoryError, UsageError
from ciwrap.base.files import read_regular, remove, write_atomically, writing
from ciwrap.base.repository import Entry, Repository, ask_git
from ciwrap.golden.places import writer_lock
from ciwrap.report.document import MOST_BYTES
from ciwrap.studies.observed import Observed, observed_text, read_observed, updated

_RESULTS, _README, _SUFFIX = "results", "README.md", ".json"
_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})(-dirty)?")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
# Each time that somebody else was faster they are done, so many writers come to an end.
_ATTEMPTS, _ATTEMPTS_AT_ONE_TIP = 100, 5
_LONGEST_WAIT = 0.2
_NOBODY = ("-c", "user.name=ciwrap", "-c", "user.email=ciwrap@localhost")

# What README.md is to say of all results.
Page = Callable[[list[Observed]], str]


def labelled(results: Iterable[Observed], label: str | None) -> list[Observed]:
    """The results with what they are of. Raises UsageError for a label that is no name of a file"""
    if label is None:
        return list(results)
    if not _LABEL.fullmatch(label):
        raise UsageError(
            f"--label {label!r} is no label", remedy="use up to 60 letters, digits, '-' and '_'"
        )
    return [replace(one, label=label) for one in results]


def _file_of(one: Observed) -> str:
    """`COMMIT.json` or `COMMIT.LABEL.json`; without a commit it is named after when it began."""
    commit = _COMMIT.fullmatch(one.moment.commit or "")
    stem = commit[1] if commit else re.sub(r"\D", "", one.moment.when)[:14]
    return f"{stem}.{one.label}{_SUFFIX}" if one.label else f"{stem}{_SUFFIX}"


def _merged(old: Mapping[str, Observed], new: Iterable[Observed], keep: int) -> dict[str, Observed]:
    """The newest `keep` of the results, by their files, oldest first."""
    found = dict(old)
    for one in sorted(new, key=lambda one: one.moment.when):
        name = _file_of(one)
        told = replace(one, moment=replace(one.moment, file=name))
        found[name] = updated(found[name], told) if name in found else told
    order = sorted(found, key=lambda name: (found[name].moment.when, name))
    return {name: found[name] for name in order[-keep:]}


class FolderStore(Struct, frozen=True):
    """A folder. Writers wait for each other; each file is whole at any time."""

    folder: Path

    def read(self) -> list[Observed]:
        """All results. Raises UsageError for none, UnreadableFileError, InvalidResultError."""
        found = self._read()
        if not found:
            raise UsageError(
                "holds no results yet", file=self.folder, remedy="give results to begin with"
            )
        return list(found.values())

    def _read(self) -> dict[str, Observed]:
        found = {}
        for path in sorted((self.folder / _RESULTS).glob(f"*{_SUFFIX}")):
            try:
                data = read_regular(path, MOST_BYTES)
            except FileNotFoundError:
                continue  # one that a writer has just taken out
            found[path.name] = read_observed(data, path)
        return found

    def add(self, new: Iterable[Observed], keep: int, page: Page) -> None:
        """Adds results, leaves the newest `keep` of all, and writes the page over them.

        Raises what `read` does, LockBusyError, WriteFailedError.
        """
        with writer_lock(self.folder, doing="keeping results"):
            old = self._read()
            found = _merged(old, new, keep)
            text = page(list(found.values()))
            results = self.folder / _RESULTS
            with writing(results):
                results.mkdir(exist_ok=True)
                for name, one in found.items():
                    if one is not old.get(name):
                        write_atomically(results / name, observed_text(one))
                write_atomically(self.folder / _README, text)
                for name in old.keys() - found.keys():
                    remove(results / name)


class BranchStore(Struct, frozen=True):
    """A branch. Its commits are made beside the working tree, which stays as it is; each one
    follows the one before, and the branch moves only if nobody has moved it since: else all is
    done again on what they have left.

    remote: whose branch is read and pushed to; None for the branch here.
    """

    repository: Repository
    branch: str
    remote: str | None = None

    def read(self) -> list[Observed]:
        """All results. Raises UsageError, RepositoryError, InvalidResultError."""
        tip = self._tip()
        if tip is None:
            raise UsageError(
                f"there is no branch {self.branch!r} yet",
                remedy="fetch it, or give results to begin with",
            )
        return list(self._read(self._entries(tip)).values())

    def add(self, new: Iterable[Observed], keep: int, page: Page) -> None:
        """As of a folder. Raises UsageError for a branch that holds something else or is checked
        out, RepositoryError.
        """
        self._refuse_checked_out()
        listed = list(new)
        before, at_one_tip = None, 0
        for _ in range(_ATTEMPTS):
            tip = self._tip()
            at_one_tip = at_one_tip + 1 if tip == before else 1
            before = tip
            commit = self._commit(tip, listed, keep, page)
            try:
                if commit is not None:
                    self._move(commit, tip)
                return
            except RepositoryError:
                if at_one_tip == _ATTEMPTS_AT_ONE_TIP:
                    raise
            # Two that wait equally long meet again.
            time.sleep(random.uniform(0, _LONGEST_WAIT))
        raise RepositoryError(
            f"the branch {self.branch!r} was moved by others {_ATTEMPTS} times", remedy="try again"
        )

    @property
    def _ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def _tip(self) -> str | None:
        """The newest commit: of the remote, or else of the branch here, or as it was fetched."""
        git = self.repository
        if self.remote is None:
            return self._local_tip() or ask_git(
                git.top, "rev-parse", "--verify", "--quiet", f"refs/remotes/origin/{self.branch}"
            )
        listed = git.git("ls-remote", "--", self.remote, self._ref).split()
        if not listed:
            return None
        if ask_git(git.top, "cat-file", "-e", listed[0]) is None:
            # A shallow clone stays as small as it is, and a whole one does not become shallow.
            is_shallow = ask_git(git.top, "rev-parse", "--is-shallow-repository") == "true"
            depth = ("--depth=1",) if is_shallow else ()
            git.git("fetch", "--quiet", "--no-tags", *depth, "--", self.remote, self._ref)
        return listed[0]

    def _local_tip(self) -> str | None:
        return ask_git(self.repository.top, "rev-parse", "--verify", "--quiet", self._ref)

    def _entries(self, tip: str | None) -> dict[str, Entry]:
        """The files of the store, by their paths. Raises UsageError for a branch of another use"""
        if tip is None:
            return {}
        entries = self.repository.entries_at(tip)
        files = {name: one for name, one in entries.items() if not one.is_tree}
        if not all(name == _README or _is_result(name) for name in files):
            raise UsageError(
                f"the branch {self.branch!r} holds other files than results",
                remedy="give the results a branch of their own, such as ciwrap-results",
            )
        return files

    def _read(self, entries: Mapping[str, Entry]) -> dict[str, Observed]:
        files = {name: one for name, one in entries.items() if name != _README}
        data = self.repository.contents([one.object for one in files.values()])
        return {
            Path(name).name: read_observed(data[one.object], Path(f"{self.branch}:{name}"))
            for name, one in files.items()
        }

    def _commit(self, tip: str | None, new: list[Observed], keep: int, page: Page) -> str | None:
        """The commit that follows a tip; None if it would hold the same."""
        entries = self._entries(tip)
        old = self._read(entries)
        found = _merged(old, new, keep)
        objects = {name: entries[f"{_RESULTS}/{name}"].object for name in old}
        for name, one in found.items():
            if one is not old.get(name):
                objects[name] = self._put(observed_text(one))
        results = self._tree(("100644", "blob", objects[name], name) for name in found)
        readme = self._put(page(list(found.values())))
        tree = self._tree(
            (("040000", "tree", results, _RESULTS), ("100644", "blob", readme, _README))
        )
        if tip is not None and tree == self.repository.git("rev-parse", f"{tip}^{{tree}}"):
            return None
        who = ask_git(self.repository.top, "var", "GIT_COMMITTER_IDENT")
        parents = () if tip is None else ("-p", tip)
        words = ("commit-tree", tree, *parents, "-m", "Keep results of ciwrap")
        return self.repository.git(*(() if who else _NOBODY), *words)

    def _put(self, text: str) -> str:
        return self.repository.git("hash-object", "-w", "--stdin", stdin=text.encode())

    def _tree(self, rows: Iterable[tuple[str, str, str, str]]) -> str:
        lines = (f"{mode} {kind} {one}\t{name}\0" for mode, kind, one, name in rows)
        return self.repository.git("mktree", "-z", stdin="".join(lines).encode())

    def _move(self, commit: str, tip: str | None) -> None:
        """Raises RepositoryError, above all where somebody has moved the branch since."""
        if self.remote is not None:
            self.repository.git("push", "--quiet", "--", self.remote, f"{commit}:{self._ref}")
            return
        # Nothing but zeros: it must not be there.
        old = tip if self._local_tip() is not None else "0" * len(commit)
        self.repository.git("update-ref", self._ref, commit, str(old))

    def _refuse_checked_out(self) -> None:
        """A working tree would be left behind by its branch."""
        trees = self.repository.git("worktree", "list", "--porcelain").splitlines()
        if self.remote is None and f"branch {self._ref}" in trees:
            raise UsageError(
                f"the branch {self.branch!r} is checked out",
                remedy="check out another one, or give its folder instead",
            )


def _is_result(name: str) -> bool:
    folder, _, file = name.partition("/")
    return folder == _RESULTS and file.endswith(_SUFFIX) and "/" not in file


def store_at(place: str, *, is_pushed: bool) -> FolderStore | BranchStore:
    """A folder if there is one of that name, or if it is written as a path (`results/`, `./x`); a
    branch of the repository here otherwise. Raises UsageError.
    """
    is_path = place.startswith(("/", "./", "../", "~")) or place.endswith("/")
    if is_path or Path(place).is_dir():
        if is_pushed:
            raise UsageError(f"--push is for a branch, and {place} is a folder")
        return FolderStore(Path(place).expanduser())
    if ask_git(Path.cwd(), "rev-parse", "--show-toplevel") is None:
        raise UsageError(
            f"--store {place} is a branch, and this is not in a git work tree",
            remedy="for a folder, end it with '/'",
        )
    repository = Repository.around(Path.cwd())
    if ask_git(repository.top, "check-ref-format", "--branch", place) != place:
        raise UsageError(
            f"--store {place!r} is no name of a branch", remedy="for a folder, end it with '/'"
        )
    return BranchStore(repository, place, "origin" if is_pushed else None)
