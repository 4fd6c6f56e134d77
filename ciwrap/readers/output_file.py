"""A run's files as they were found: how each is read, and what of them nobody can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # noqa: TC003 - for `help`
from enum import Enum
from pathlib import Path  # noqa: TC003
from typing import TYPE_CHECKING, Any

from ciwrap.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    UnreadFileError,
    UnsupportedFormatError,
)
from ciwrap.model import VariableId
from ciwrap.readers.base import Reader  # noqa: TC001
from ciwrap.structs import Struct, field, replace

if TYPE_CHECKING:
    from ciwrap.readers.base import Source, VariableInfo

MAX_NAME_BYTES = 4096
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class ChosenBy(Enum):
    """What says how a file is read."""

    SUFFIX = "suffix"
    CONTENT = "content"
    PERSON = "person"  # `format`, `formats` or an option


class OutputFile(Struct, frozen=True):
    """One file to read. label: what its variables' names begin with; '' for nothing. chosen_by:
    what says that this reader opens it. later: added to iterations that the
    file tells.
    """

    path: Path
    reader: Reader
    iteration: int | None = None
    rank: int | None = None
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    chosen_by: ChosenBy = ChosenBy.SUFFIX
    later: int = 0

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
        try:
            source = self.reader.open(self.path, name=self.label or None, options=options)
        except CiwrapError as error:
            raise self._misnamed() or error from None
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

    def _misnamed(self) -> CiwrapError | None:
        """The error if suffix and content say different things; None if they do not."""
        from ciwrap.readers.sniff import formats_of

        if self.chosen_by is not ChosenBy.SUFFIX:
            return None
        inside = formats_of(self.path)
        if not inside or self.reader.name in inside:
            return None
        suffix = self.path.suffix
        return UnsupportedFormatError(
            f"its suffix {suffix} says {self.reader.name}, by content it is {inside[0]}",
            file=self.path,
            remedy=f"rename it, or say --format '*{suffix}={inside[0]}' (ciwrap.yaml: 'formats')",
        )

    def variable_id(self, info: VariableInfo) -> VariableId:
        """The identity of one of the file's variables within the check."""
        name = self.name_in_check(info.name if info.called is None else info.called)
        iteration = self.iteration
        if iteration is None and info.iteration is not None:
            iteration = info.iteration + self.later
        return VariableId(name, iteration, info.rank if self.rank is None else self.rank)

    def name_in_check(self, name: str) -> str:
        """What the check calls the file's variable of this name."""
        return f"{self.label}/{name}" if self.reader.names_inside and self.label else name


def name_fault(name: str) -> str | None:
    """Why a variable cannot be called this, None if it can.

    Control characters, and those that change the direction of writing, could disguise the report
    that they are printed in.
    """
    from unicodedata import category

    if not name:
        return "is empty"
    if any(category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _DIRECTIONS for char in name):
        return "holds a control character, or one that is not UTF-8"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    return None


class FoundOutputs(Struct, frozen=True):
    """The files of a check in the order of their iteration, rank and label.

    unmatched: files that were meant by the pattern or lie in the folder, but that no layout or
    reader knows. They were not compared, so somebody has to hear of them. off_layout: those of them
    that a reader knows. excluded: files that `exclude` took out, or `include` did not name,
    relative to the root. unused: patterns of `exclude` and `formats` that no file fits, and the
    key that each stands under.
    """

    files: tuple[OutputFile, ...]
    unmatched: tuple[Path, ...] = ()
    excluded: tuple[str, ...] = ()
    off_layout: frozenset[Path] = frozenset()
    unused: tuple[tuple[str, str], ...] = ()

    def later(self, count: int) -> FoundOutputs:
        """The same files, every iteration greater by count."""
        files = (
            replace(
                file,
                iteration=None if file.iteration is None else file.iteration + count,
                later=count,
            )
            for file in self.files
        )
        return replace(self, files=tuple(files))

    @property
    def unread(self) -> list[CiwrapError]:
        """Of the unmatched files, an error for each."""
        return [_unread(path, is_known=path in self.off_layout) for path in self.unmatched]

    @property
    def notes(self) -> list[str]:
        """What was read by its content alone, in words."""
        kinds = Counter(
            f"{kind_of(file.path)} as {file.reader.name}"
            for file in self.files
            if file.chosen_by is ChosenBy.CONTENT
        )
        if not kinds:
            return []
        said = ", ".join(f"{kind} ({kinds[kind]})" for kind in sorted(kinds))
        return [f"read by content, since no suffix says how: {said}"]


def kind_of(path: Path) -> str:
    """What files of one kind have in common, for people: their suffix."""
    return path.suffix or "without a suffix"


def _unread(path: Path, *, is_known: bool) -> UnreadFileError:
    from ciwrap.readers.fortran_records import looks_like_fortran

    if path.is_symlink() and not path.exists():
        return UnreadFileError(
            "is a broken link",
            file=path,
            remedy="fix the link, or leave it out with 'exclude'",
        )
    if is_known:
        return UnreadFileError(
            "no layout fits its path",
            file=path,
            remedy="fix 'layout', or leave it out with 'exclude'",
        )
    if looks_like_fortran(path):
        return UnreadFileError(
            "no reader knows its suffix or its content, which looks like records of unformatted"
            " Fortran",
            file=path,
            remedy="leave it out with 'exclude', or describe it with 'formats' and the reader"
            " 'fortran' (options: records)",
        )
    return UnreadFileError(
        "no reader knows its suffix or its content",
        file=path,
        remedy="leave it out with 'exclude', or say what reads it with 'formats' (as options of"
        " `ciwrap compare`: --exclude and --format 'GLOB=READER')",
    )
