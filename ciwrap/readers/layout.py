"""Which files a run left, and which iteration, rank and variable each of them is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from ciwrap.errors import (
    ConfigError,
    CorruptFileError,
    DuplicateVariableError,
    OutputMissingError,
    UnreadableFileError,
)
from ciwrap.model import VariableId
from ciwrap.patterns import PathMatch, PathPattern
from ciwrap.readers.registry import is_known_suffix, is_output_folder, reader_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ciwrap.readers.base import Reader, Source, VariableInfo

# What a folder is read by when nobody gave a layout.
DEFAULT_LAYOUTS = (
    "iter_{iteration:d}/rank_{rank:d}/{name}",
    "iter_{iteration:d}/{name}",
    "rank_{rank:d}/{name}",
    "iter_{iteration:d}",
    "rank_{rank:d}",
)
MAX_NAME_BYTES = 4096
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_REMEDY = "run the program first, or say where it writes"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file to read. label: what its variables' names begin with; '' for nothing."""

    path: Path
    reader: Reader
    iteration: int | None = None
    rank: int | None = None
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self) -> Source:
        """Opens the file. Raises as `Reader.open` does, and CorruptFileError for variables whose
        names could not be stored or shown.
        """
        self.reader.check_options(self.options, self.path)
        options = self.options
        if self.iteration is not None and "iterations" in self.reader.option_names:
            # The path has said which iteration the whole file is of.
            if options.get("iterations", "none") != "none":
                raise ConfigError(
                    "the path already says which iteration the file is of",
                    file=self.path,
                    key="options.iterations",
                )
            options = {**options, "iterations": "none"}
            options.pop("iteration_variable", None)
        source = self.reader.open(self.path, name=self.label or None, options=options)
        for info in source.variables:
            fault = name_fault(self.variable_id(info).name)
            if fault is not None:
                source.close()
                raise CorruptFileError(
                    f"the name of a variable {fault}: {ascii(info.name)[:60]}",
                    file=self.path,
                    remedy="rename it, or leave the file out with 'exclude'",
                )
        return source

    def variable_id(self, info: VariableInfo) -> VariableId:
        """The identity of one of the file's variables within the check."""
        name = info.name if info.called is None else info.called
        if self.reader.names_inside and self.label:
            name = f"{self.label}/{name}"
        iteration = info.iteration if self.iteration is None else self.iteration
        return VariableId(name, iteration, info.rank if self.rank is None else self.rank)


def name_fault(name: str) -> str | None:
    """Why a variable cannot be called this, None if it can.

    Control characters, and those that change the direction of writing, could disguise the report
    that they are printed in.
    """
    if not name:
        return "is empty"
    if any(category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _DIRECTIONS for char in name):
        return "holds a control character, or one that is no UTF-8"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    return None


@dataclass(frozen=True, slots=True)
class FoundOutputs:
    """The files of a check in the order of their iteration, rank and label.

    unmatched: files that were meant by the pattern or lie in the folder, but that no layout or
    reader knows. They were not compared, so somebody has to hear of them. excluded: files that
    `exclude` took out, relative to the root.
    """

    files: tuple[OutputFile, ...]
    unmatched: tuple[Path, ...] = ()
    excluded: tuple[str, ...] = ()


def find_outputs(
    root: Path,
    outputs: Sequence[str],
    *,
    layout: str | None = None,
    format_name: str | None = None,
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
) -> FoundOutputs:
    """The files that `outputs` (paths, folders, globs or templates, relative to root) mean.

    A variable's name must not change from run to run or from iteration to iteration, so it comes
    from `{name}`; without one, from the components that hold wild cards; without those, from what
    is written in the pattern. A folder is read by `layout`, else by the first of DEFAULT_LAYOUTS
    that fits a file, else files are named by their path in the folder. `layout` also serves globs
    without fields.

    Raises OutputMissingError if a path, folder or pattern finds nothing, UnreadableFileError for a
    folder that cannot be listed, ConfigError, UnknownReaderError, ReaderPluginError.
    """
    search = _Search(root, layout, format_name, dict(options or {}), exclude)
    for text in outputs:
        search.add(text)
    return search.result()


def find_in(
    path: Path,
    *,
    layout: str | None = None,
    format_name: str | None = None,
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    name: str | None = None,
) -> FoundOutputs:
    """The outputs of a file or folder given by itself (`ciwrap compare A B`).

    name: what to call the array of a single .npy or raw file, so that `a.npy` and `b.npy` can be
    held against each other. Raises as `find_outputs` does.
    """
    if path.is_dir() and not is_output_folder(path, format_name):
        return find_outputs(
            path,
            ["."],
            layout=layout,
            format_name=format_name,
            options=options,
            exclude=exclude,
        )
    if not path.exists():
        raise OutputMissingError("does not exist", file=path)
    reader = reader_for(path, format_name)
    label = "" if reader.names_inside or name is None else name
    return FoundOutputs((OutputFile(path, reader, label=label, options=dict(options or {})),))


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
        format_name: str | None,
        options: Mapping[str, Any],
        exclude: Sequence[str],
    ) -> None:
        self._root = root
        self._layout = None if layout is None else PathPattern(layout, anywhere=True, key="layout")
        self._format_name = format_name
        self._options = options
        self._excluded = [_exclusion(text) for text in exclude]
        self._files: dict[Path, OutputFile] = {}
        self._unmatched: dict[Path, None] = {}
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
        return FoundOutputs(tuple(files), tuple(unmatched), tuple(sorted(self._left_out)))

    def add(self, text: str) -> None:
        """Takes the files of one entry of `outputs`."""
        text = _tidy(text)
        is_store = is_output_folder(self._root / text, self._format_name)
        if (self._root / text).is_dir() and not is_store:
            base = "" if text == "." else f"{text}/"
            names = self._kept(base, self._root / text, "the folder holds no files")
            self._take([(name, self._in_folder(base, name)) for name in names])
        elif (self._root / text).exists():
            reader_for(
                self._root / text, self._format_name
            )  # asked for by name, so it must be known
            self._take([(text, self._from_layout(text))])
        else:
            pattern = PathPattern(text)
            if pattern.is_literal:
                raise OutputMissingError("does not exist", file=self._root / text, remedy=_REMEDY)
            base = pattern.fixed_folder
            nothing = f"nothing matches {text!r}"
            names = [n for n in self._kept(base, self._root / base, nothing) if pattern.match(n)]
            if not names:
                raise OutputMissingError(nothing, file=self._root, remedy=_REMEDY)
            self._take([(name, self._by_pattern(pattern, name)) for name in names])

    def _kept(self, base: str, folder: Path, nothing: str) -> list[str]:
        """Files below the folder, relative to root, that are not excluded."""
        if not folder.is_dir():
            raise OutputMissingError(
                f"there is no such folder, so {nothing}", file=folder, remedy=_REMEDY
            )
        names = [base + name for name in _walk(folder, self._format_name)]
        if self._excluded:
            left_out = {name for name in names if any(one.match(name) for one in self._excluded)}
            self._left_out |= left_out
            names = [name for name in names if name not in left_out]
        if not names:
            raise OutputMissingError(nothing, file=folder, remedy=_REMEDY)
        return names

    def _take(self, places: list[tuple[str, _Place | None]]) -> None:
        """Takes files by their names relative to root; None: no layout fits the name."""
        found = []
        companions: set[Path] = set()
        for name, place in places:
            path = self._root / name
            is_known = self._format_name is not None or is_known_suffix(path.suffix)
            reader = reader_for(path, self._format_name) if is_known else None
            if reader is not None:
                companions.update(reader.companions(path))
            found.append((path, place, reader))
        for path, place, reader in found:
            if path in companions or path in self._files:
                continue
            if place is None or reader is None:
                self._unmatched[path] = None
                continue
            label = place.label or ("" if reader.names_inside else place.fallback)
            self._files[path] = OutputFile(
                path, reader, place.iteration, place.rank, label, self._options
            )

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
        match = self._layout.match(name)
        return None if match is None else _place(self._layout, match)

    def _by_pattern(self, pattern: PathPattern, name: str) -> _Place | None:
        if self._layout is not None and not pattern.fields:
            return self._from_layout(name)
        match = pattern.match(name)
        return None if match is None else _place(pattern, match)


@dataclass(frozen=True, slots=True)
class _Place:
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


def _exclusion(text: str) -> PathPattern:
    text = text + "**" if text.endswith("/") else text
    return PathPattern(text, anywhere="/" not in text.removesuffix("/**"), key="exclude")


def _tidy(text: str) -> str:
    while text.startswith("./"):
        text = text[2:]
    return text.rstrip("/") or "."


def _walk(folder: Path, format_name: str | None) -> list[str]:
    """All files below a folder, hidden ones left out, as sorted relative '/' paths; folders that
    are one output (Zarr stores) among them.

    Links to folders are followed, for what lies behind them is meant, too; those that lead back to
    a folder above are not.
    """
    found: list[str] = []
    pending: list[tuple[Path, str, frozenset[tuple[int, int]]]] = [(folder, "", frozenset())]
    while pending:
        here, prefix, above = pending.pop()
        try:
            status = here.stat()
            inside = {*above, (status.st_dev, status.st_ino)}
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    is_file = not entry.is_dir()
                    if is_file or is_output_folder(Path(entry.path), format_name):
                        found.append(prefix + entry.name)
                        continue
                    target = Path(entry.path).stat()
                    if (target.st_dev, target.st_ino) not in inside:
                        deeper = (Path(entry.path), f"{prefix}{entry.name}/", frozenset(inside))
                        pending.append(deeper)
        except OSError as error:
            raise UnreadableFileError(
                f"cannot be listed: {error.strerror or error}", file=error.filename or here
            ) from error
    return sorted(found)
