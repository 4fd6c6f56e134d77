"""Which files a run left, and which iteration, rank and variable each of them is."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.errors import (
    DuplicateVariableError,
    OutputMissingError,
    UnreadableFileError,
)
from ciwrap.model import VariableId
from ciwrap.patterns import PathMatch, PathPattern, file_glob
from ciwrap.readers.choice import Choice, Chosen

# Who looks for files gets these, so they are offered here, too.
from ciwrap.readers.output_file import FoundOutputs as FoundOutputs
from ciwrap.readers.output_file import OutputFile as OutputFile
from ciwrap.readers.output_file import name_fault as name_fault
from ciwrap.readers.registry import is_known_suffix, reader_for
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ciwrap.model.formats import FormatRule
    from ciwrap.readers.base import Source, VariableInfo

# What a folder is read by when nobody gave a layout.
DEFAULT_LAYOUTS = (
    "iter_{iteration:d}/rank_{rank:d}/{name}",
    "iter_{iteration:d}/{name}",
    "rank_{rank:d}/{name}",
    "iter_{iteration:d}",
    "rank_{rank:d}",
)
_NAME_HIDDEN = "name hidden files without wild cards, or a hidden folder in front of them"
_REMEDY = "run the program first, or say where it writes"


def find_outputs(
    root: Path,
    outputs: Sequence[str],
    *,
    layout: str | None = None,
    format_name: str | None = None,
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    formats: Sequence[FormatRule] = (),
) -> FoundOutputs:
    """The files that `outputs` (paths, folders, globs or templates, relative to root) mean.

    A variable's name must not change from run to run or from iteration to iteration, so it comes
    from `{name}`; without one, from the components that hold wild cards; without those, from what
    is written in the pattern. A folder is read by `layout`, else by the first of DEFAULT_LAYOUTS
    that fits a file, else files are named by their path in the folder. `layout` also serves globs
    without fields. include: the only files that count, as globs. formats: which reader opens which
    files, the first that fits; the others are opened by `format_name`, else as their suffix says,
    else as their content does.

    Raises OutputMissingError if a path, folder or pattern finds nothing, UnreadableFileError for
    what cannot be looked at, ConfigError, UnknownReaderError, ReaderPluginError.
    """
    choice = Choice(formats, format_name, options)
    search = _Search(root, layout, choice, exclude, include)
    try:
        for text in outputs:
            search.add(text)
    except PermissionError as error:  # a folder above it is closed to us
        why = f"cannot be read: {error.strerror or error}"
        raise UnreadableFileError(why, file=error.filename or root) from error
    return search.result()


def find_in(
    path: Path,
    *,
    outputs: Sequence[str] = (".",),
    layout: str | None = None,
    format_name: str | None = None,
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    formats: Sequence[FormatRule] = (),
    name: str | None = None,
) -> FoundOutputs:
    """The outputs of a file or folder given by itself (`ciwrap compare A B`).

    outputs: relative to the folder. name: what to call the array of a single .npy or raw file, so
    that `a.npy` and `b.npy` can be held against each other. Raises as `find_outputs` does.
    """
    choice = Choice(formats, format_name, options)
    if path.is_dir() and not choice.is_store(path, path.name):
        return find_outputs(
            path,
            outputs,
            layout=layout,
            format_name=format_name,
            options=options,
            exclude=exclude,
            include=include,
            formats=formats,
        )
    if not path.exists():
        raise OutputMissingError(
            "does not exist", file=path, remedy="fix the path, or run what writes it"
        )
    chosen = choice.of(path, path.name) or Chosen(reader_for(path), choice.options)
    label = "" if chosen.reader.names_inside or name is None else name
    return FoundOutputs((chosen.output(path, label=label),))


def outputs_within(
    runs: Sequence[Path], outputs: Sequence[str], exclude: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A check's outputs, and what it excludes, as they are called within the folders of runs.

    `out/*.npy` means the folder `out` of each run. Leading folders that no run has are dropped: a
    run may be the folder `out` itself, or a copy of it under another name.
    """
    found = []
    dropped: dict[str, None] = {}
    for text in map(_tidy, outputs):
        parts = text.split("/")
        fixed = PathPattern(text).fixed_folder.count("/") + PathPattern(text).is_literal
        for count in range(fixed + 1):
            inside = "/".join(parts[count:]) or "."
            pattern = PathPattern(inside)
            where = inside if pattern.is_literal else pattern.fixed_folder or "."
            if any((run / where).exists() for run in runs):
                found.append(inside)
                dropped["".join(f"{part}/" for part in parts[:count])] = None
                break
        else:
            found.append(text)
    longest = sorted(dropped, key=len, reverse=True)
    kept = (
        next((text.removeprefix(one) for one in longest if text.startswith(one)), text)
        for text in exclude
    )
    return tuple(found), tuple(kept)


def variables_of(file: OutputFile, source: Source) -> list[tuple[VariableId, VariableInfo]]:
    """The variables of an open output, with their identities in the check."""
    return [(file.variable_id(info), info) for info in source.variables]


def refuse_duplicates(found: Iterable[tuple[VariableId, Path]]) -> None:
    """Raises DuplicateVariableError if two files hold the same variable of the same checkpoint."""
    seen: dict[VariableId, Path] = {}
    for variable, path in found:
        if variable in seen:
            raise DuplicateVariableError(
                f"is also in {seen[variable]}",
                file=path,
                variable=variable.text,
                remedy="leave one of them out with 'exclude', or tell them apart with a layout",
            )
        seen[variable] = path


class _Search:
    """Collects the files of several patterns, each file once."""

    def __init__(
        self,
        root: Path,
        layout: str | None,
        choice: Choice,
        exclude: Sequence[str],
        include: Sequence[str],
    ) -> None:
        self._root = root
        self._layout = None if layout is None else PathPattern(layout, anywhere=True, key="layout")
        self._uses_layout = False
        self._choice = choice
        self._excluded = {text: file_glob(text, "exclude") for text in exclude}
        self._unused = dict.fromkeys(exclude)
        self._included = [file_glob(text, "include") for text in include]
        self._files: dict[Path, OutputFile] = {}
        self._unmatched: dict[Path, bool] = {}  # whether a reader knows it
        self._left_out: set[str] = set()

    def result(self) -> FoundOutputs:
        files = sorted(
            self._files.values(),
            key=lambda file: (
                *VariableId(file.label, file.iteration, file.rank).sort_key,
                file.path,
            ),
        )
        unmatched = sorted(path for path in self._unmatched if path not in self._files)
        off_layout = frozenset(path for path in unmatched if self._unmatched[path])
        excluded = tuple(sorted(self._left_out))
        unused = [("exclude", text) for text in self._unused]
        if self._layout is not None and not self._uses_layout:
            unused.append(("layout", self._layout.text))
        unused += [("formats", glob) for glob in self._choice.unused]
        return FoundOutputs(tuple(files), tuple(unmatched), excluded, off_layout, tuple(unused))

    def add(self, text: str) -> None:
        """Takes the files of one entry of `outputs`."""
        text = _tidy(text)
        is_store = self._choice.is_store(self._root / text, text)
        if (self._root / text).is_dir() and not is_store:
            base = "" if text == "." else f"{text}/"
            names = self._kept(base, self._root / text, None, "the folder holds no files")
            self._take([(name, self._in_folder(base, name)) for name in names])
        elif (self._root / text).exists():
            if self._choice.of(self._root / text, text) is None:
                reader_for(self._root / text)  # asked for by name, so it must be known
            self._take([(text, self._from_layout(text))])
        else:
            pattern = PathPattern(text)
            if pattern.is_literal:
                raise OutputMissingError("does not exist", file=self._root / text, remedy=_REMEDY)
            base = pattern.fixed_folder
            nothing = f"nothing matches {text!r}"
            names = self._kept(base, self._root / base, pattern, nothing)
            self._take([(name, self._by_pattern(pattern, name)) for name in names])

    def _kept(
        self, base: str, folder: Path, pattern: PathPattern | None, nothing: str
    ) -> list[str]:
        """Files below the folder that fit the pattern, relative to root, and are not excluded."""
        if not folder.is_dir():
            raise OutputMissingError(
                f"there is no such folder, so {nothing}", file=folder, remedy=_REMEDY
            )
        names = _walk(folder, base, self._choice)
        left_out = {name for name in names if self._is_left_out(name)}
        self._left_out |= left_out
        fitting = [name for name in names if pattern is None or pattern.match(name)]
        kept = [name for name in fitting if name not in left_out]
        if not kept:
            raise self._nothing(nothing, folder, pattern, is_left_out=bool(fitting))
        return kept

    def _nothing(
        self, nothing: str, folder: Path, pattern: PathPattern | None, *, is_left_out: bool
    ) -> OutputMissingError:
        """Why no file is left."""
        if is_left_out:
            keys = [(self._included, "'include'"), (self._excluded, "'exclude'")]
            words = " and ".join(key for given, key in keys if given)
            verb = "leave" if " " in words else "leaves"
            nothing, remedy = f"{nothing} but what {words} {verb} out", f"fix {words}"
        elif pattern is not None and pattern.wants_hidden:
            nothing, remedy = f"{nothing} (hidden files are passed over)", _NAME_HIDDEN
        else:
            remedy = _REMEDY
        return OutputMissingError(
            nothing, file=folder if pattern is None else self._root, remedy=remedy
        )

    def _take(self, places: list[tuple[str, _Place | None]]) -> None:
        """Takes files by their names relative to root; None: no layout fits the name."""
        found = []
        companions: set[Path] = set()
        for name, place in places:
            path = self._root / name
            chosen = self._choice.of(path, name)
            if chosen is not None:
                companions.update(chosen.reader.covered(path))
            found.append((path, place, chosen))
        for path, place, chosen in found:
            if path in companions or path in self._files:
                continue
            if place is None or chosen is None:
                self._unmatched[path] = chosen is not None
                continue
            label = place.label or ("" if chosen.reader.names_inside else place.fallback)
            self._files[path] = chosen.output(path, place.iteration, place.rank, label)

    def _is_left_out(self, name: str) -> bool:
        fitting = [text for text, glob in self._excluded.items() if glob.match(name)]
        for text in fitting:
            self._unused.pop(text, None)
        if fitting:
            return True
        return bool(self._included) and not any(one.match(name) for one in self._included)

    def _in_folder(self, base: str, name: str) -> _Place | None:
        if self._layout is not None:
            return self._from_layout(name)
        plain = _without_suffix(name.removeprefix(base))
        for text in DEFAULT_LAYOUTS:
            pattern = _default_pattern(text)
            match = pattern.match(plain)
            if match is not None:
                parts = [part for part in (match.wild, match.name) if part]
                return _Place(match.iteration, match.rank, "/".join(parts), pattern.stem)
        return _Place(None, None, plain, plain)

    def _from_layout(self, name: str) -> _Place | None:
        """The place of a file that is named without fields."""
        if self._layout is None:
            return _Place(None, None, "", "")
        self._uses_layout = True
        match = self._layout.match(name)
        return None if match is None else _place(self._layout, match)

    def _by_pattern(self, pattern: PathPattern, name: str) -> _Place | None:
        if self._layout is not None and not pattern.fields:
            return self._from_layout(name)
        match = pattern.match(name)
        return None if match is None else _place(pattern, match)


class _Place(Struct, frozen=True):
    """Where in the history a file stands. fallback: the name of an array that has no other."""

    iteration: int | None
    rank: int | None
    label: str
    fallback: str


@cache
def _default_pattern(text: str) -> PathPattern:
    return PathPattern(f"**/{text}")


def _place(pattern: PathPattern, match: PathMatch) -> _Place:
    label = match.name if match.name is not None else _without_suffix(match.wild)
    return _Place(match.iteration, match.rank, label, pattern.stem)


def _without_suffix(name: str) -> str:
    """The path without the suffix of a format, if its last component has one that a reader
    knows.
    """
    folder, slash, last = name.rpartition("/")
    stem, dot, suffix = last.rpartition(".")
    return folder + slash + stem if stem and is_known_suffix(dot + suffix) else name


def _tidy(text: str) -> str:
    while text.startswith("./"):
        text = text[2:]
    return text.rstrip("/") or "."


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """A link that cannot be followed counts as a file, and what opens it says why it cannot."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _walk(folder: Path, base: str, choice: Choice) -> list[str]:
    """All files below a folder, hidden ones left out, as sorted '/' paths that begin with base;
    folders that are one output (Zarr stores) among them.

    Links to folders are followed, for what lies behind them is meant, too; those that lead back to
    a folder above are not.
    """
    found: list[str] = []
    pending: list[tuple[Path, str, frozenset[tuple[int, int]]]] = [(folder, base, frozenset())]
    while pending:
        here, prefix, above = pending.pop()
        try:
            status = here.stat()
            inside = {*above, (status.st_dev, status.st_ino)}
            with os.scandir(here) as listed:
                entries = list(listed)
            if prefix != base and choice.is_store_of({entry.name for entry in entries}):
                found.append(prefix.removesuffix("/"))
                continue
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                name = prefix + entry.name
                path = Path(entry.path)
                if not _is_folder(entry) or choice.is_store(path, name, looks_inside=False):
                    found.append(name)
                    continue
                target = path.stat()
                if (target.st_dev, target.st_ino) not in inside:
                    pending.append((path, f"{name}/", frozenset(inside)))
        except OSError as error:
            raise UnreadableFileError(
                f"cannot be listed: {error.strerror or error}", file=error.filename or here
            ) from error
    return sorted(found)
