"""Which reader opens which file of a run: as somebody said, by suffix, or by content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.patterns import file_glob
from ciwrap.readers.output_file import ChosenBy, OutputFile
from ciwrap.readers.registry import is_known_suffix, is_output_folder, reader_for, reader_named
from ciwrap.readers.sniff import ZARR_MARKERS, formats_of
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ciwrap.model.formats import FormatRule
    from ciwrap.readers.base import Reader


class Chosen(Struct, frozen=True):
    """A reader, its options, and what decided for it."""

    reader: Reader
    options: Mapping[str, Any]
    by: ChosenBy = ChosenBy.SUFFIX

    def output(
        self, path: Path, iteration: int | None = None, rank: int | None = None, label: str = ""
    ) -> OutputFile:
        """The file, to be opened in this way."""
        return OutputFile(path, self.reader, iteration, rank, label, self.options, self.by)


class Choice:
    """Chooses readers. formats: the first rule whose glob fits a file counts; format_name: of all
    files that no rule names; options: of readers for which no rule has any.

    Raises ConfigError for a glob that is none.
    """

    def __init__(
        self,
        formats: Sequence[FormatRule] = (),
        format_name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._rules = [(file_glob(rule.glob, "formats"), rule) for rule in formats]
        self._used: set[str] = set()
        self._format_name = format_name
        self.options = dict(options or {})

    def of(self, path: Path, name: str) -> Chosen | None:
        """How a file is read; None if nothing tells. name: relative to the run's folder.

        Raises UnknownReaderError and ReaderPluginError.
        """
        rule = self._rule_of(name)
        if rule is not None:
            options = self.options if rule.options is None else rule.options
            return Chosen(reader_named(rule.reader), options, ChosenBy.PERSON)
        if self._format_name is not None:
            return Chosen(reader_named(self._format_name), self.options, ChosenBy.PERSON)
        if is_known_suffix(path.suffix):
            return Chosen(reader_for(path), self.options)
        inside = formats_of(path)
        return Chosen(reader_named(inside[0]), self.options, ChosenBy.CONTENT) if inside else None

    def _rule_of(self, name: str) -> FormatRule | None:
        """The first rule that fits; all that fit are used, though only the first one counts."""
        found = None
        for pattern, rule in self._rules:
            if (found is None or rule.glob not in self._used) and pattern.match(name):
                self._used.add(rule.glob)
                found = found or rule
        return found

    @property
    def unused(self) -> list[str]:
        """The globs of rules that fitted no file so far."""
        return [rule.glob for _, rule in self._rules if rule.glob not in self._used]

    def is_store(self, path: Path, name: str, *, looks_inside: bool = True) -> bool:
        """Whether a folder is one output, as a Zarr store is. Raises as `of`.

        looks_inside: also by what the folder holds, where nothing else tells.
        """
        for pattern, rule in self._rules:
            if pattern.match(name):
                return path.is_dir() and reader_named(rule.reader).is_output(path)
        if is_output_folder(path, self._format_name):
            return True
        is_open = looks_inside and self._format_name is None
        return is_open and path.is_dir() and bool(formats_of(path))

    def is_store_of(self, names: Collection[str]) -> bool:
        """Whether a folder that holds these files is one output, if no name tells."""
        return self._format_name is None and any(name in names for name in ZARR_MARKERS)
