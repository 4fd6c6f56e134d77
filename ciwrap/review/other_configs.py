"""Configurations of one repository that keep their goldens in one folder: each has checks there
that the others know nothing of.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.config.nodes import read_document
from ciwrap.config.settings import DEFAULT_GOLDEN_DIR
from ciwrap.errors import ConfigError
from ciwrap.repository import ask_git, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.review.project import Project

_SUFFIXES = (".yaml", ".yml")
_PATTERNS = tuple(f"*{suffix}" for suffix in _SUFFIXES)
# A file without such a line is no configuration, and is not read any further.
_HAS_CHECKS = re.compile(rb"^[\"']?checks[\"']?[ \t]*:", re.MULTILINE)
_MOST_BYTES = 4 << 20


def checks_of_others(project: Project) -> set[str]:
    """Names of checks whose goldens another configuration keeps in the project's golden folder.

    Looked at are the YAML files that git knows of or could be told of, and those in the folders
    above the golden folder, up to the repository's. A check counts whether or not its configuration
    could be used. Raises ConfigError for one of which nobody can tell, or that a sparse checkout
    leaves out.
    """
    folders = {project.golden_dir.resolve(), project.own_config.golden_dir.resolve()}
    names: set[str] = set()
    _refuse_left_out(project.root)
    for found in map(read_document, _candidates(project)):
        value = found.value
        if isinstance(value, dict) and any(_keeps_in(found.path, value, one) for one in folders):
            names |= _names_in(value.get("checks"))
    return names


def _keeps_in(path: Path, value: dict[str, object], folder: Path) -> bool:
    """Whether the golden folder of a configuration is this one, or one above it: with --golden-dir
    goldens of one kind of machine are kept in a folder below.
    """
    said = value.get("golden_dir", DEFAULT_GOLDEN_DIR)
    return isinstance(said, str) and folder.is_relative_to((path.parent / said).resolve())


def _names_in(checks: object) -> set[str]:
    if isinstance(checks, dict):
        return set(checks)
    rows = checks if isinstance(checks, list) else []
    return {str(row["name"]) for row in rows if isinstance(row, dict) and "name" in row}


def _candidates(project: Project) -> list[Path]:
    own = project.own_config.path.resolve()
    found = {path.resolve() for path in (*_known_to_git(project.root), *_above(project))}
    return sorted(path for path in found - {own} if _may_be_one(path))


def _known_to_git(root: Path) -> Iterator[Path]:
    top = ask_git(root, "rev-parse", "--show-toplevel")
    if top is None:
        return
    kinds = ("--cached", "--others", "--exclude-standard")
    listed = ask_git(Path(top), "ls-files", "-z", *kinds, "--", *_PATTERNS)
    for name in (listed or "").split("\0"):
        if name:
            yield Path(top, name)


def _refuse_left_out(root: Path) -> None:
    """Raises ConfigError where a sparse checkout leaves out what may be a configuration."""
    said = ask_git(root, "rev-parse", "--show-toplevel")
    top = root if said is None else Path(said)
    for name in left_out(top):
        if PurePosixPath(name).suffix in _SUFFIXES:
            raise ConfigError(
                "the sparse checkout leaves this file out, which may be a configuration",
                file=top / name,
                remedy="have it checked out: git sparse-checkout add",
            )


def _above(project: Project) -> Iterator[Path]:
    for folder in project.golden_dir.resolve().parents:
        for pattern in _PATTERNS:
            yield from folder.glob(pattern)
        if (folder / ".git").exists():
            break


def _may_be_one(path: Path) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return False
        return _HAS_CHECKS.search(path.read_bytes()) is not None
    except OSError:
        return True  # whoever reads it tells why it cannot be read
