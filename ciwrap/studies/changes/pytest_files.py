"""What pytest's configuration says to ciwrap: by the files, order and rules of pytest itself.

Files are parsed as pytest parses them, so a comment, another section or a text of several lines
says nothing.
"""

from __future__ import annotations

import configparser
import posixpath
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Protocol

from msgspec import Struct, field

from ciwrap.base.errors import UsageError
from ciwrap.project.schema import MAX_BYTES

_GOLDEN_DIR = "ciwrap_golden_dir"
_OVERRIDES = ("-o", "--override-ini")


class Reads(Protocol):
    """What reads files: a FileTree of `state`."""

    def read(self, names: list[str], most_bytes: int) -> dict[str, bytes]: ...


class PytestFile(Struct, frozen=True):
    """What one file says. name: of the file, from the top of the repository; None for no file.
    golden_dir: where goldens of tests lie, from the top; None where it does not say. said: all
    else that is ciwrap's, by the name of the setting or option.
    """

    name: str | None = None
    golden_dir: str | None = None
    said: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.name or "")

    @property
    def says_anything(self) -> bool:
        return bool(self.said) or self.golden_dir is not None


def file_that_counts(tree: Reads, start: str) -> PytestFile:
    """The configuration of a pytest that is started in a folder."""
    folder = PurePosixPath(start)
    return next(_files(tree, [one.as_posix() for one in (folder, *folder.parents)]), PytestFile())


def files_within(tree: Reads, folders: Iterable[str], above: str) -> list[PytestFile]:
    """Those that count where pytest is started for some of the tests alone: in the folders of
    tests, and between these and the folder `above`.
    """
    inside = {
        one.as_posix()
        for folder in folders
        for one in (PurePosixPath(folder), *PurePosixPath(folder).parents)
        if one.as_posix() != "." and one.is_relative_to(above or ".") and one.as_posix() != above
    }
    return list(_files(tree, sorted(inside)))


def _files(tree: Reads, folders: list[str]) -> Iterator[PytestFile]:
    """The first file of each folder that has a configuration of pytest, in this order."""
    names = {one: [(PurePosixPath(one) / name).as_posix() for name in _PARSERS] for one in folders}
    read = tree.read([name for some in names.values() for name in some], MAX_BYTES)
    for folder in folders:
        for name in names[folder]:
            options = _options(name, read[name]) if name in read else None
            if options is not None:
                yield _said_in(name, options)
                break


def _options(name: str, data: bytes) -> Mapping[str, Any] | None:
    """What pytest takes out of a file; None for one that is not of pytest. One that cannot be
    parsed says nothing: pytest does not run with it.
    """
    try:
        return _PARSERS[posixpath.basename(name)](data.decode("utf-8-sig"))
    except (configparser.Error, ValueError, TypeError, AttributeError):
        return {}


def _ini(section: str, *, is_pytests: bool = False) -> Callable[[str], Mapping[str, Any] | None]:
    def parse(text: str) -> Mapping[str, Any] | None:
        parser = configparser.RawConfigParser(
            delimiters=("=", ":"),
            comment_prefixes=("#", ";"),
            default_section="\0",
            allow_no_value=True,
        )
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(text)
        if parser.has_section(section):
            return dict(parser.items(section))
        return {} if is_pytests else None

    return parse


def _toml(text: str) -> dict[str, Any]:
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        module: Any = import_module(name)
    except ImportError:
        raise UsageError(
            f"pytest's configuration cannot be read without the package {name}",
            remedy="pip install tomli",
        ) from None
    found: dict[str, Any] = module.loads(text)
    return found


def _pyproject(text: str) -> Mapping[str, Any] | None:
    table = dict(_toml(text).get("tool", {}).get("pytest", {}))
    older = table.pop("ini_options", None)
    return older if older is not None else (table or None)


_PARSERS: dict[str, Callable[[str], Mapping[str, Any] | None]] = {
    # In the order in which pytest looks for them.
    "pytest.toml": lambda text: _toml(text).get("pytest", {}),
    ".pytest.toml": lambda text: _toml(text).get("pytest", {}),
    "pytest.ini": _ini("pytest", is_pytests=True),
    ".pytest.ini": _ini("pytest", is_pytests=True),
    "pyproject.toml": _pyproject,
    "tox.ini": _ini("pytest"),
    "setup.cfg": _ini("tool:pytest"),
}


def _said_in(name: str, options: Mapping[str, Any]) -> PytestFile:
    said = {key: str(one) for key, one in options.items() if key.startswith("ciwrap_")}
    said |= dict(_in_words(options.get("addopts") or ""))
    named = said.pop(_GOLDEN_DIR, "").strip()
    folder = posixpath.normpath(posixpath.join(posixpath.dirname(name), named)) if named else None
    return PytestFile(name, "" if folder == "." else folder, said)


def _in_words(added: str | list[Any]) -> Iterator[tuple[str, str]]:
    """What options say that pytest adds to its command line; they go before keys of the file."""
    try:
        words = shlex.split(added) if isinstance(added, str) else list(map(str, added))
    except ValueError:
        return
    for word, following in pairwise([*words, ""]):
        option, has_value, value = word.partition("=")
        if option in _OVERRIDES:
            key, _, text = (value if has_value else following).partition("=")
            if key.startswith("ciwrap_"):
                yield key, text
        elif word.startswith("-ociwrap_"):
            key, _, text = word[2:].partition("=")
            yield key, text
        elif word.startswith("--ciwrap"):
            yield option, value if has_value else ("" if following.startswith("-") else following)


_UNUSED = ("ciwrap_unused", "--ciwrap-unused")
_LEVELS = {"": 0, "ignore": 0, "warn": 1, "fail": 2, "delete": 2}
_OF_OUTPUT = ("ciwrap_all", "--ciwrap-all", "--ciwrap-json", "--ciwrap-report", "--ciwrap-reason")


def setting_changes(old: PytestFile, new: PytestFile) -> Iterator[tuple[str, bool | None]]:
    """What is set otherwise, in words, and whether less is checked; None where nothing tells."""
    for key in sorted({*old.said, *new.said}):
        was, now = old.said.get(key), new.said.get(key)
        if was != now:
            text = f"pytest's setting {key}: {_word(was)} -> {_word(now)}"
            yield text, _is_wider(key, was, now)


def _word(said: str | None) -> str:
    return "not set" if said is None else said or "set"


def _is_wider(key: str, was: str | None, now: str | None) -> bool | None:
    if key in _UNUSED:
        levels = [_LEVELS.get((one or "").strip(), 0) for one in (was, now)]
        return levels[1] < levels[0]
    if key.startswith("--ciwrap-update"):
        return now is not None
    return False if key in _OF_OUTPUT else None
