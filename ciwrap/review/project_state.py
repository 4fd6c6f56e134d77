"""The state of a project, which decides whether an earlier list of unused goldens still holds.

It is what tests are made of: all Python files and configurations, tracked or not, and all else that
git tracks but the goldens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.base.late import hashlib
from ciwrap.base.repository import ask_git, left_out
from ciwrap.golden.show import ProjectState

if TYPE_CHECKING:
    from ciwrap.review.project import Project

_CONFIGURATIONS = frozenset(
    {
        *("ciwrap.yaml", "pyproject.toml", "setup.cfg", "tox.ini"),
        *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
    }
)
_NO_CODE = frozenset({"__pycache__", "node_modules"})
_AT_ONCE = 500  # paths that one command line takes, however long they are


def state_of(project: Project) -> ProjectState:
    root = project.root.resolve()
    golden_dir = project.golden_dir_text
    commit = ask_git(root, "rev-parse", "HEAD")
    tracked = _tracked(root)
    if tracked is None:
        return ProjectState(str(root), golden_dir, commit, "")
    seen = tracked | {path: _digest(root / path) for path in _code(root, golden_dir)}
    digest = hashlib.sha256()
    for path, content in sorted(seen.items()):
        if not _is_in(path, golden_dir):
            digest.update(f"{path}\0{content}\0".encode("utf-8", "surrogateescape"))
    return ProjectState(str(root), golden_dir, commit, digest.hexdigest())


def touched_since(project: Project, time_ns: int) -> str | None:
    """A file of Python or of configuration that has changed since, from the project's folder."""
    root = project.root.resolve()
    for path in _code(root, project.golden_dir_text):
        try:
            # Nobody can set this time, unlike that of the last change of its content.
            changed = (root / path).stat().st_ctime_ns
        except OSError:
            return path
        if changed > time_ns:
            return path
    return None


def lacking_files(project: Project) -> list[str]:
    """Files of the project that a sparse checkout has left out, from the project's folder."""
    return left_out(project.root)


def other_state_words(then: ProjectState, now: ProjectState) -> str | None:
    """How the project is another one than when its tests ran; None if it is the same."""
    if then.folder != now.folder:
        return f"that was found in {then.folder}"
    if then.golden_dir != now.golden_dir:
        return f"that was found of the golden folder {then.golden_dir}"
    if not (then.digest and now.digest):
        return "git did not say which files the project has"
    if then.digest == now.digest:
        return None
    if then.commit != now.commit:
        before = "without git" if then.commit is None else then.commit[:10]
        return f"another commit is checked out now than when the tests ran ({before})"
    return "files of the project have changed since the tests ran"


def _code(root: Path, golden_dir: str) -> Iterator[str]:
    """Python files and configurations, relative to the project's folder, in order."""
    for here, folders, names in os.walk(root):
        place = "" if here == str(root) else f"{os.path.relpath(here, root)}{os.sep}"
        folders[:] = sorted(
            name for name in folders if _may_hold_code(Path(here, name), place + name, golden_dir)
        )
        for name in sorted(names):
            if name in _CONFIGURATIONS or (name.endswith(".py") and not name.startswith(".")):
                yield place + name


def _may_hold_code(folder: Path, place: str, golden_dir: str) -> bool:
    """Whether tests may lie there: not in an environment, nor in a tool's own folder."""
    name = folder.name
    return not (
        name.startswith(".")
        or name in _NO_CODE
        or _is_in(place, golden_dir)
        or (folder / "pyvenv.cfg").exists()
    )


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _tracked(root: Path) -> dict[str, str] | None:
    """Files that git tracks, with what is in them as git names it; none without git, and None where
    git does not say.

    A file has one name for its content, committed or not, so that a commit changes nothing.
    """
    if ask_git(root, "rev-parse", "--git-dir") is None:
        return {}
    listed = ask_git(root, "ls-files", "--stage", "-z")
    changed = ask_git(root, "diff-files", "--name-only", "--relative", "-z")
    if listed is None or changed is None:
        return None
    found = {}
    for row in filter(None, listed.split("\0")):
        words, _, path = row.partition("\t")
        found[path] = words.split(" ")[1]
    differing = [path for path in changed.split("\0") if path]
    return found | dict.fromkeys(differing, "gone") | _hashed(root, differing)


def _hashed(root: Path, paths: list[str]) -> dict[str, str]:
    """Files as git would name what is in them now."""
    there = [path for path in paths if (root / path).is_file()]
    found: dict[str, str] = {}
    for first in range(0, len(there), _AT_ONCE):
        some = there[first : first + _AT_ONCE]
        named = (ask_git(root, "hash-object", "--", *some) or "").split("\n")
        if len(named) != len(some):
            named = [_digest(root / path) for path in some]
        found.update(zip(some, named, strict=True))
    return found
