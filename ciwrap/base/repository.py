"""git, as far as ciwrap uses it: the commit that is checked out, and other revisions in folders."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ciwrap.base.errors import RepositoryError, UsageError, one_line
from ciwrap.base.files import WORK_DIR, keep_out_of_git
from ciwrap.base.late import getpass, shutil
from ciwrap.base.processes import is_running, later_interrupts

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

_ASK_SECONDS = 10.0
# Behind a commit: tracked files differed from it.
DIRTY = "-dirty"
_SKIPPED = "S "  # before a file of `git ls-files -t` that is not to be in the working tree
# Set where git itself started this process (a hook, an alias): they name another folder.
_OF_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


def ask_git(folder: Path, *arguments: str) -> str | None:
    """What git answers to a question that changes nothing; None where it has no answer."""
    import subprocess

    where = folder if folder.is_dir() else Path.cwd()
    try:
        done = _run(where, arguments, optional_locks=False, timeout=_ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def git_commit(folder: Path) -> str | None:
    """The commit checked out around `folder`, with `-dirty` if tracked files differ; None without
    git.
    """
    head = ask_git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    changes = ask_git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{head}{DIRTY}" if changes else head


def left_out(folder: Path) -> list[str]:
    """Files below a folder that git tracks and that a sparse checkout has not put there, relative
    to it: they are neither deleted nor known to this working tree.
    """
    listed = ask_git(folder, "ls-files", "-t", "-z") if folder.is_dir() else None
    rows = (listed or "").split("\0")
    names = [row.removeprefix(_SKIPPED) for row in rows if row.startswith(_SKIPPED)]
    return [name for name in names if not os.path.lexists(folder / name)]


def git_user(folder: Path) -> str:
    """Who accepts: git's own answer, else the login name."""
    name = ask_git(folder, "config", "user.name")
    email = ask_git(folder, "config", "user.email")
    if name and email:
        return f"{name} <{email}>"
    if name or email:
        return name or email or ""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


class Entry(Struct, frozen=True):
    """What a commit holds under a name. object: its hash."""

    mode: str
    object: str

    @property
    def is_tree(self) -> bool:
        return self.mode == "040000"

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        return self.mode == "160000"


def place_below(path: Path, top: Path) -> str | None:
    """Where a path is from a folder, with '/': links as they are, else followed; None outside."""
    for here, root in ((path.absolute(), top), (path.resolve(), top.resolve())):
        if here.is_relative_to(root) and ".." not in here.parts:
            return here.relative_to(root).as_posix()
    return None


class Repository(Struct, frozen=True):
    """A git repository with a working tree. top: the folder of the working tree."""

    top: Path

    @staticmethod
    def around(folder: Path) -> Repository:
        """The repository that a folder belongs to. Raises UsageError without git or one."""
        top = ask_git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise UsageError(
                "this is not in a git work tree", file=folder, remedy="run it in a clone"
            )
        return Repository(Path(top))

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Runs git to its end; Ctrl-C takes effect after it. stdin: what it reads.

        Raises RepositoryError.
        """
        return self._answer(arguments, stdin).decode("utf-8", "replace").rstrip("\n")

    def _answer(self, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
        """What git prints. stdin: what it reads."""
        try:
            with later_interrupts():
                done = _run(self.top, arguments, stdin=stdin)
        except OSError as error:
            raise RepositoryError(f"git cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            why = one_line((done.stderr or done.stdout).decode("utf-8", "replace"))[-500:]
            raise RepositoryError(f"git {arguments[0]} failed: {why}", file=str(self.top))
        return done.stdout

    def commit(self, reference: str) -> str:
        """The full name of a commit. Raises UsageError if there is none of that name."""
        if not reference.startswith("-"):
            found = ask_git(self.top, "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
            if found is not None:
                return found
        raise UsageError(
            f"there is no commit {reference!r} in this repository",
            remedy="fetch it first: a shallow clone lacks most of them",
        )

    def common_commit(self, commit: str) -> str:
        """The newest commit that this one and HEAD both come from; the commit itself where none is
        known, in a shallow clone say.
        """
        return ask_git(self.top, "merge-base", commit, "HEAD") or commit

    def base_name(self, reference: str) -> str:
        """The name as this clone has it: one of CI has other branches as `origin/NAME` alone."""
        for name in (reference, f"origin/{reference}"):
            if ask_git(self.top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
                return name
        return reference

    def base_commit(self, reference: str) -> str:
        """What people mean by a base: of a branch the commit where HEAD left it, of anything else
        the commit that it names. Raises UsageError if there is none of that name.
        """
        commit = self.commit(reference)
        name = ask_git(self.top, "rev-parse", "--symbolic-full-name", reference) or ""
        is_branch = name.startswith(("refs/heads/", "refs/remotes/"))
        return self.common_commit(commit) if is_branch else commit

    def changed_files(self) -> list[str]:
        """Tracked files that are not as they were committed."""
        said = self.git("diff", "--name-only", "--no-renames", "-z", "HEAD", "--")
        return [name for name in said.split("\0") if name]

    def entries_at(self, commit: str) -> dict[str, Entry]:
        """All that a commit holds, by its name from the top, with '/'. Raises RepositoryError."""
        lines = self.git("ls-tree", "-r", "-t", "-z", "--full-tree", commit).split("\0")
        return dict(_entry(line) for line in lines if line)

    def contents(self, objects: Sequence[str]) -> dict[str, bytes]:
        """What files hold, by their objects, as it was committed: no filter is run.

        Raises RepositoryError.
        """
        said = "".join(f"{one}\n" for one in objects).encode()
        return _batch(objects, self._answer(("cat-file", "--batch"), said))

    @contextlib.contextmanager
    def checked_out(self, commit: str, folder: Path, *, is_empty: bool = False) -> Iterator[Path]:
        """A working tree of its own with a commit, for as long as the block lasts.

        folder: where it is made; it must not exist. is_empty: whether no file is checked out.
        Raises RepositoryError.
        """
        how = ("--no-checkout",) if is_empty else ()
        try:
            self.git("worktree", "add", "--quiet", "--detach", *how, str(folder), commit)
            yield folder
        finally:
            self.remove_worktree(folder)

    def remove_worktree(self, folder: Path) -> None:
        """Removes a working tree, whatever was made in it; no harm if there is none."""
        with later_interrupts():
            shutil.rmtree(folder, ignore_errors=True)
            _run(self.top, ("worktree", "remove", "--force", "--force", str(folder)))


def _run(
    folder: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    optional_locks: bool = True,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    import subprocess

    environment = _environment()
    if not optional_locks:
        environment["GIT_OPTIONAL_LOCKS"] = "0"
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
        env=environment,
        # Ctrl-C at a terminal reaches the whole group: git is to finish what it began.
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_CALLER}
    return environment | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def _entry(line: str) -> tuple[str, Entry]:
    """Of a line `MODE KIND OBJECT<tab>NAME`."""
    about, _, name = line.partition("\t")
    mode, _, found = about.split(" ")
    return name, Entry(mode, found)


def _batch(objects: Sequence[str], data: bytes) -> dict[str, bytes]:
    """What `git cat-file --batch` answers: a line `OBJECT KIND SIZE` before each object's bytes.

    Raises RepositoryError for one that the clone lacks.
    """
    found: dict[str, bytes] = {}
    position = 0
    for one in objects:
        end = data.index(b"\n", position)
        words = data[position:end].split(b" ")
        if len(words) != 3:
            raise RepositoryError(f"git has no object {one} in this clone")
        position, size = end + 1, int(words[-1])
        found[one] = data[position : position + size]
        position += size + 1
    return found


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
