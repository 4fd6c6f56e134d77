"""Finds the files of a run, and which iteration, rank, variable and reader each of them has.

A reader is chosen by `format:`, by suffix, or by content; what no reader knows is compared token by
token if it is a text, and by its bytes else. Our own readers come first and cannot be
replaced; others register in the entry-point group `ciwrap.readers` (entry name = reader name) and
are loaded when asked for, or when no reader of ours knows a suffix. A magic number is long or odd
enough that neither text nor random bytes are taken for the format.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    OutputMissingError,
    ReaderPluginError,
    UnknownReaderError,
    UnreadableFileError,
    UnreadFileError,
    UnsupportedFormatError,
    one_line,
)
from ciwrap.base.files import LFS_POINTER, inner_name, inner_path, is_packed, suffixes_of
from ciwrap.base.patterns import PathMatch, PathPattern, file_glob, steps_of
from ciwrap.formats.reader import Reader, first_bytes
from ciwrap.formats.source_files import inode_of
from ciwrap.model import VariableId
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from importlib.metadata import EntryPoint
    from typing import BinaryIO

    from ciwrap.formats.reader import Source, VariableInfo
    from ciwrap.model.settings import FormatRule

MAX_NAME_BYTES = 4096
_MOST_LOGS = 20  # that are looked at for their program
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class ChosenBy(Enum):
    """What says how a file is read."""

    SUFFIX = "suffix"
    CONTENT = "content"
    PERSON = "person"  # `format`, `formats` or an option


class OutputFile(Struct, frozen=True, gc=False):
    """One file to read. path_text: where it is, as a text, since a Path takes four times as much
    and a history has very many files. label: what its variables' names begin with; '' for nothing.
    chosen_by: what says that this reader opens it. why: why it is not of the format that its suffix
    says. later: added to iterations that the file tells.
    """

    path_text: str
    reader: Reader
    iteration: int | None = None
    rank: int | None = None
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    chosen_by: ChosenBy = ChosenBy.SUFFIX
    why: str | None = None
    later: int = 0

    @property
    def path(self) -> Path:
        """Made anew for each one who asks."""
        return Path(self.path_text)

    @property
    def companions(self) -> tuple[Path, ...]:
        """As `Reader.companions`; no Path is made for readers that have none."""
        has_none = type(self.reader).companions is Reader.companions
        return () if has_none else self.reader.companions(self.path)

    def open(self) -> Source:
        """Opens the file. Raises as `Reader.open` does, and CorruptFileError for variables whose
        names could not be stored or shown.
        """
        reader = self.reader
        options = self._options_of_reader() if self.options or reader.option_names else {}
        if not reader.has_mark:
            _refuse_pointer(self.path)
        try:
            source = reader.open(self.path, name=self.label or None, options=options)
        except CiwrapError as error:
            _refuse_pointer(self.path)
            raise self._misnamed() or error from None
        for info in source.variables:
            called = info.name if info.called is None else info.called
            fault = name_fault(self.name_in_check(called))
            if fault is not None:
                source.close()
                raise CorruptFileError(
                    f"the name of a variable {fault}: {ascii(info.name)[:60]}",
                    file=self.path,
                    remedy="rename it, or leave the file out with 'exclude'",
                )
        return source

    def _options_of_reader(self) -> dict[str, Any]:
        """Raises ConfigError for those that it does not know, or that contradict the path."""
        options = dict(self.options)
        if self.iteration is not None and "iteration_step" not in self.reader.option_names:
            options.pop("iteration_step", None)  # of times in paths
        self.reader.check_options(options, self.path)
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
        return options

    def _misnamed(self) -> CiwrapError | None:
        """The error if suffix and content say different things; None if they do not."""
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


@lru_cache(maxsize=1024)
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


_MOST_POINTER_BYTES = 1024


def _refuse_pointer(path: Path) -> None:
    """Raises UnsupportedFormatError for what stands for a file that Git LFS has not fetched."""
    start = b""
    with contextlib.suppress(OSError):  # of which opening it tells
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_POINTER_BYTES:
            with path.open("rb") as file:
                start = file.read(len(LFS_POINTER))
    if start == LFS_POINTER:
        raise UnsupportedFormatError(
            "is a pointer of Git LFS, not the file itself", file=path, remedy="run `git lfs pull`"
        )


# The file that arrays of tests are in.
MEMORY = Path("<memory>")


class FoundOutputs(Struct, frozen=True):
    """The files of a check in the order of their iteration, rank and label.

    unmatched: files that were meant by the pattern or lie in the folder, but that no layout
    knows. They were not compared, so somebody has to hear of them. excluded:
    files that `exclude` took out, or `include` did not name, relative to the root. unused: patterns
    of `exclude` and `formats` that no file fits, and the key that each stands under.
    """

    files: tuple[OutputFile, ...]
    unmatched: tuple[Path, ...] = ()
    excluded: tuple[str, ...] = ()
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
        remedy = "fix 'layout', or leave it out with 'exclude'"
        return [
            UnreadFileError("no layout fits its path", file=path, remedy=remedy)
            for path in self.unmatched
        ]

    @property
    def notes(self) -> list[str]:
        """How files were read of which no suffix says it, in words."""
        seen = [file for file in self.files if file.chosen_by is ChosenBy.CONTENT]
        texts = [file for file in seen if file.reader.name == "tokens"]
        digests = [file for file in seen if file.reader.name == "bytes"]
        others = [file for file in seen if file.reader.name not in ("tokens", "bytes")]
        told = []
        if others:
            kinds = _counted(f"{kind_of(file.path)} as {file.reader.name}" for file in others)
            told.append(f"read by content, since no suffix says how: {kinds}")
        if texts:
            told.append(_as_texts(texts))
        if digests:
            kinds = kinds_text(digests)
            told.append(f"compared by their bytes alone, since no reader knows them: {kinds}")
        return told


def _as_texts(found: Sequence[OutputFile]) -> str:
    text = f"compared token by token, as texts that no reader knows: {kinds_text(found)}"
    empty = sum(file.path.exists() and file.path.stat().st_size == 0 for file in found)
    text += f", {empty} of them empty" if empty else ""
    other = next((file for file in found if file.why is not None), None)
    if other is not None:
        has_suffix = other.label.endswith(inner_path(other.path).suffix)
        name = other.label if has_suffix else other.path.name
        text += f"; {name} is no table: {other.why}"
    return "; ".join((text, *_known_logs(found)))


def _known_logs(files: Sequence[OutputFile]) -> Iterator[str]:
    """Of logs that rules are shipped for, how they are compared by these."""
    from ciwrap.formats.known_logs import preset_of, program_of

    found: dict[str, dict[str, str]] = {}  # by program, a file for each glob
    for file in files[:_MOST_LOGS]:
        preset = preset_of(file.path)
        if preset is not None:
            found.setdefault(preset, {}).setdefault(glob_of(file.path), file.path.name)
    for preset, names in found.items():
        options = " ".join(f"--format '{glob}={preset}'" for glob in names)
        yield (
            f"{next(iter(names.values()))} is a log of {program_of(preset)}: {options}"
            f" (ciwrap.yaml: format: log, use: {preset}) compares its values by name, and no other"
            " number"
        )


def glob_of(path: Path) -> str:
    """A glob that means the files of one kind."""
    return f"*{suffixes_of(path)}" if path.suffix else path.name


def kinds_text(files: Sequence[OutputFile]) -> str:
    """`.out (2), without a suffix (1)`."""
    return _counted(kind_of(file.path) for file in files)


def _counted(kinds: Iterable[str]) -> str:
    return ", ".join(f"{kind} ({count})" for kind, count in sorted(Counter(kinds).items()))


def kind_of(path: Path) -> str:
    """What files of one kind have in common, for people: their suffix."""
    return suffixes_of(path) or "without a suffix"


ENTRY_POINT_GROUP = "ciwrap.readers"

_OWN_SUFFIXES: dict[str, tuple[str, ...]] = {
    suffix: tuple(name for name, other in OWN_FORMATS.items() if suffix in other.suffixes)
    for one in OWN_FORMATS.values()
    for suffix in one.suffixes
}


def reader_of_suffix(suffix: str) -> Reader | None:
    """The reader of files with this suffix (with its dot, or ''); None if nobody reads them.

    Raises ReaderPluginError if one that is registered cannot be loaded.
    """
    suffix = suffix.lower()
    if suffix in _OWN_SUFFIXES:
        return _own_reader(_OWN_SUFFIXES[suffix][0])
    broken: list[ReaderPluginError] = []
    for name in _entry_points():
        try:
            reader = reader_named(name)
        except ReaderPluginError as error:
            broken.append(error)
            continue
        if suffix in reader.suffixes:
            return reader
    if broken:
        raise broken[0]
    return None


def reader_of(path: Path) -> Reader | None:
    """The reader of a file's suffix; of several that have it, the one whose content the file has.
    Raises as `reader_of_suffix` does.
    """
    suffix = path.suffix
    names = _OWN_SUFFIXES.get(suffix.lower(), ())
    if len(names) > 1:
        inside = formats_of(path)
        for name in names:
            if name in inside:
                return _own_reader(name)
    return reader_of_suffix(suffix)


def reader_named(name: str, *, file: str | os.PathLike[str] | None = None) -> Reader:
    """The reader of that name.

    Raises UnknownReaderError (a ConfigError) if there is none, ReaderPluginError if it is
    registered but cannot be loaded.
    """
    import difflib

    if name in OWN_FORMATS:
        return _own_reader(name)
    entry = _entry_points().get(name)
    if entry is None:
        names = reader_names()
        near = difflib.get_close_matches(name, names, 1, 0.5)
        raise UnknownReaderError(
            f"there is no reader {name!r} (known: {', '.join(names)})",
            file=file,
            key="format",
            suggestion=near[0] if near else None,
        )
    return _plugin_reader(name, entry)


def reader_names() -> list[str]:
    """Names of all readers, ours first; nothing is imported for it."""
    return [*OWN_FORMATS, *_entry_points()]


@cache
def _own_reader(name: str) -> Reader:
    module, _, attribute = OWN_FORMATS[name].reader.partition(":")
    reader = getattr(import_module(module), attribute)()
    assert isinstance(reader, Reader)
    return reader


@cache
def _entry_points() -> dict[str, EntryPoint]:
    from importlib import metadata

    found = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    return {name: found[name] for name in sorted(found) if name not in OWN_FORMATS}


_loaded: dict[str, Reader] = {}


def _plugin_reader(name: str, entry: EntryPoint) -> Reader:
    if name in _loaded:
        return _loaded[name]
    try:
        kind = entry.load()
        reader = kind()
    # Somebody else's module runs here, and any way it fails means the same to the user.
    except Exception as error:
        raise ReaderPluginError(
            f"the reader {name!r} ({entry.value}) cannot be loaded: "
            f"{type(error).__name__}: {one_line(error)}",
            remedy="reinstall or remove the package that registers it",
        ) from error
    if not isinstance(reader, Reader):
        raise ReaderPluginError(
            f"the reader {name!r} ({entry.value}) is not a ciwrap.formats.reader.Reader",
            remedy="report this to the package that registers it",
        )
    _loaded[name] = reader
    return reader


_HEAD_BYTES = 2048
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_HEAD_BYTES = 1 << 16
_PARQUET = b"PAR1"
_MOST_USER_BLOCK = 1 << 20  # HDF5 lets 512, 1024, 2048, ... bytes of others stand before it
ZARR_MARKERS = ("zarr.json", ".zgroup", ".zarray")
# Of a folder that AMReX writes, which may be a checkpoint, too: its header begins otherwise.
_MARKS_OF_PLOTFILES = {"Header", "Level_0"}
_PLOTFILE = re.compile(rb"[\w-]+-V\d+\.\d+\n\d+\n")
_MARKS = {*ZARR_MARKERS, *_MARKS_OF_PLOTFILES}


def formats_of(path: Path) -> tuple[str, ...]:
    """Names of the readers that the content is for, the likeliest first; () if it tells none.

    Files that cannot be read tell none: whoever opens them says why.
    """
    with contextlib.suppress(OSError):
        if path.is_dir():
            return _formats_of_folder(path, {one for one in _MARKS if (path / one).exists()})
        # Pipes and devices must not be opened: a pipe waits for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            return ()
        with path.open("rb") as file:
            return _formats_in(file)
    return ()


def _formats_of_folder(folder: Path, names: set[str]) -> tuple[str, ...]:
    """As `formats_of`, for a folder that holds these names. Raises OSError."""
    if any(one in names for one in ZARR_MARKERS):
        return ("zarr",)
    if names >= _MARKS_OF_PLOTFILES:
        with (folder / "Header").open("rb") as file:
            return ("amrex",) if _PLOTFILE.match(file.read(_HEAD_BYTES)) else ()
    return ()


# As much as tells a text from what is none; the comparison looks at all of it.
SNIFFED_BYTES = 64 << 10
# Beside white space: the bell, the backspace and the escape of programs that draw on terminals.
_TEXT_BYTES = frozenset(b"\a\b\t\n\v\f\r\x1b") | frozenset(range(0x20, 0x7F))
_MOST_OTHER_BYTES = 0.25  # of a text that is not UTF-8, such as Latin-1


def looks_like_text(path: Path) -> bool:
    """Whether a file begins as texts do: without control characters, in UTF-8 or nearly ASCII.

    Raises as `InputFile` does.
    """
    head = first_bytes(path, SNIFFED_BYTES)
    high = sum(byte > 0x7F for byte in head) if not head.isascii() else 0
    if head.translate(None, bytes((*_TEXT_BYTES, *range(0x80, 0x100)))):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return high <= _MOST_OTHER_BYTES * len(head)
    return True


def reader_by_content(path: Path) -> Reader:
    """The reader for a file of which neither a person nor its suffix says how it is read."""
    inside = formats_of(path)
    if inside:
        return reader_named(inside[0])
    try:
        is_text = looks_like_text(path)
    except CiwrapError:
        is_text = False  # whoever opens it says why
    return reader_named("tokens") if is_text else _unknown_reader()


@cache
def _unknown_reader() -> Reader:
    from ciwrap.formats.whole_file import UnknownReader

    return UnknownReader()


def _formats_in(file: BinaryIO) -> tuple[str, ...]:
    head = file.read(_HEAD_BYTES)
    for name, matches in _MAGIC.items():
        if matches(head):
            return (name,)
    byte_count = os.fstat(file.fileno()).st_size
    if head.startswith(_PARQUET) and byte_count > len(_PARQUET):
        file.seek(-len(_PARQUET), os.SEEK_END)
        return ("parquet",) if file.read(len(_PARQUET)) == _PARQUET else ()
    for offset in _user_blocks(byte_count):
        file.seek(offset)
        start = file.read(_HDF5_HEAD_BYTES)
        if start.startswith(_HDF5):
            # Its attribute, which NetCDF libraries write: NetCDF-4 is HDF5 with rules of its own.
            # Libraries that could tell for certain are not let near an unknown file here.
            return ("netcdf", "hdf5") if b"_NCProperties" in start else ("hdf5", "netcdf")
    return ()


def _is_npz(head: bytes) -> bool:
    """A zip file whose first member is an array."""
    length = int.from_bytes(head[26:28], "little")
    return head.startswith(b"PK\x03\x04") and head[30 : 30 + length].endswith(b".npy")


def _is_fits(head: bytes) -> bool:
    """The first card says that the file follows the standard: T in column 30."""
    return head.startswith(b"SIMPLE  =") and head[9:29].strip() == b"" and head[29:30] == b"T"


def _is_dcd(head: bytes) -> bool:
    """A Fortran record of 84 bytes that begins with CORD."""
    return head[4:8] == b"CORD" and head[:4] in (b"\x54\0\0\0", b"\0\0\0\x54")


def _is_gromacs(head: bytes) -> bool:
    """TRR says its version; XTC, of old and of many atoms, says the number of atoms twice."""
    if head.startswith(b"\0\0\x07\xc9"):
        return b"GMX_trn_file" in head[:32]
    atoms = head[52:56]
    is_xtc = head[:4] in (b"\0\0\x07\xcb", b"\0\0\x07\xe7")
    return is_xtc and len(atoms) == 4 and atoms == head[4:8] != bytes(4)


# Fields and lists of a mesh; other files of OpenFOAM are settings. A banner may stand before it.
_OPENFOAM = re.compile(
    rb"\A\s*(?:/\*.*?\*/\s*|//[^\n]*\n\s*)*FoamFile\s*\{[^}]*\bclass\s+(?:"
    rb"(?:vol|surface|point|uniformDimensioned)\w+Field(?:::Internal)?|"
    rb"(?:label|scalar|vector|sphericalTensor|symmTensor|tensor)(?:IO)?(?:List|Field)"
    rb")\s*;",
    re.DOTALL,
)


TECPLOT_BINARY = (b"#!TDV", b"#!SZPLT")
_TECPLOT = re.compile(
    rb'(?:\s*#[^\n]*\n|\s+)*(?:TITLE\s*=\s*"[^"]*"\s*)?(?:FILETYPE\s*=\s*\w+\s*)?VARIABLES\s*=',
    re.IGNORECASE,
)


_MAGIC: dict[str, Callable[[bytes], bool]] = {
    "npy": lambda head: head.startswith(b"\x93NUMPY"),
    "npz": _is_npz,
    "netcdf": lambda head: head[:4] in (b"CDF\x01", b"CDF\x02", b"CDF\x05"),
    "fits": _is_fits,
    "vtk": lambda head: head.startswith(b"# vtk DataFile Version"),
    "dcd": _is_dcd,
    "gromacs": _is_gromacs,
    "spice": lambda head: re.match(rb"Title:[^\n]*\nDate:[^\n]*\nPlotname:", head) is not None,
    "su2": lambda head: head.startswith(b"\xec\x2b\x08\0"),
    "ulm": lambda head: head.startswith((b"- of Ulm", b"AFFormat")),
    "openfoam": lambda head: _OPENFOAM.match(head) is not None,
    "gmsh": lambda head: head.startswith(b"$MeshFormat"),
    "tecplot": lambda head: head.startswith(TECPLOT_BINARY) or _TECPLOT.match(head) is not None,
    "lammps": lambda head: head.startswith((b"ITEM: TIMESTEP", b"ITEM: UNITS")),
}


def _user_blocks(byte_count: int) -> list[int]:
    found, offset = [0], 512
    while offset < min(byte_count, _MOST_USER_BLOCK):
        found.append(offset)
        offset *= 2
    return found


class Choice:
    """Chooses readers. formats: the first rule whose glob fits a file counts; format_name: of all
    files that no rule names; options: of readers for which no rule has any; shared_options: of
    those readers alone that have them, over all others.

    Raises ConfigError for a glob that is none.
    """

    def __init__(
        self,
        formats: Sequence[FormatRule] = (),
        format_name: str | None = None,
        options: Mapping[str, Any] | None = None,
        shared_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._rules = [(file_glob(rule.glob, "formats"), rule) for rule in formats]
        # The globs of rules that fitted no file so far.
        self.unused = dict.fromkeys(rule.glob for rule in formats)
        self._format_name = format_name
        self.options: Mapping[str, Any] = dict(options or {})
        self._shared: Mapping[str, Any] = dict(shared_options or {})

    def of(self, path: Path, name: str, *, is_named: bool = False) -> OutputFile:
        """The file, to be read as the choice is. name: relative to the run's folder. is_named:
        whether somebody means files of this suffix, so that it holds what the suffix says.

        Raises UnknownReaderError and ReaderPluginError.
        """
        options, chosen_by, why = self.options, ChosenBy.PERSON, None
        has_packing = is_packed(path)
        fitting = [rule for pattern, rule in self._rules if pattern.match(name)]
        for rule in fitting:  # all of them are used, though only the first one counts
            self.unused.pop(rule.glob, None)
        if fitting:
            reader = reader_named(fitting[0].reader)
            options = self.options if fitting[0].options is None else fitting[0].options
        elif self._format_name is not None:
            reader = reader_named(self._format_name)
        else:
            # Options are of somebody who knows what the file is.
            is_named = is_named or bool(options)
            if has_packing and path.is_file():
                from ciwrap.formats.packed import unpacked_beginning

                with unpacked_beginning(path) as seen:
                    reader, chosen_by, why = self._by_look(seen, is_named=is_named)
            else:
                reader, chosen_by, why = self._by_look(path, is_named=is_named)
        if options and chosen_by is ChosenBy.CONTENT:
            # Nobody has named this reader, so they may be of others.
            options = {key: options[key] for key in options if key in reader.option_names}
        if self._shared:
            options = {**options, **self._shared_of(reader)}
        if has_packing:
            from ciwrap.formats.packed import UnpackingReader

            reader = UnpackingReader(reader)
        return OutputFile(str(path), reader, options=options, chosen_by=chosen_by, why=why)

    def _by_look(self, path: Path, *, is_named: bool) -> tuple[Reader, ChosenBy, str | None]:
        """The reader of a file that nobody has chosen one for, what says so, and why it is not that
        of its suffix.
        """
        by_suffix = reader_of(path)
        why = None
        if by_suffix is not None and not (is_named or self._shared_of(by_suffix)):
            why = by_suffix.why_other(path)
        if by_suffix is not None and why is None:
            return by_suffix, ChosenBy.SUFFIX, None
        return reader_by_content(path), ChosenBy.CONTENT, why

    def iteration_at(self, time: str, path: Path) -> int:
        """The iteration that a path has as a time. Raises ConfigError."""
        step = {**self.options, **self._shared}.get("iteration_step", 1.0)
        found = steps_of(time, float(step))
        if found is None:
            raise ConfigError(
                f"the time {time} in its path is not a whole number of iterations",
                file=path,
                key="options.iteration_step",
                remedy="say what one adds to a time: 'options: {iteration_step: 0.5}', or --option"
                " iteration_step=0.5",
            )
        return found

    def _shared_of(self, reader: Reader) -> dict[str, Any]:
        return {key: self._shared[key] for key in self._shared if key in reader.option_names}

    def is_store(self, path: Path, name: str, *, looks_inside: bool = True) -> bool:
        """Whether a folder is one output, as a Zarr store is. Raises as `of`.

        looks_inside: also by what the folder holds, where nothing else tells.
        """
        fitting = (rule.reader for pattern, rule in self._rules if pattern.match(name))
        named = next(fitting, self._format_name)
        if named is not None:
            return path.is_dir() and reader_named(named).is_output(path)
        if not (looks_inside or path.suffix) or not path.is_dir():
            return False
        reader = reader_of_suffix(path.suffix) if path.suffix else None
        if reader is not None and reader.is_output(path):
            return True
        return looks_inside and bool(formats_of(path))

    def is_store_of(self, folder: Path, names: set[str]) -> bool:
        """Whether a folder that holds these names is one output, if its own does not tell."""
        return self._format_name is None and bool(_formats_of_folder(folder, names))


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
    formats: Sequence[FormatRule] = (),
    trusts_suffixes: bool = True,
) -> FoundOutputs:
    """The files that `outputs` (paths, folders, globs or templates, relative to root) mean.

    A variable's name must not change from run to run or from iteration to iteration, so it comes
    from `{name}`; without one, from the components that hold wild cards; without those, from what
    is written in the pattern. A folder is read by `layout`, else by the first of DEFAULT_LAYOUTS
    that fits a file, else files are named by their path in the folder. `layout` also serves globs
    without fields. formats: which reader opens which files, the first that fits; the others are
    opened by `format_name`, else as their suffix says, else as their content does. trusts_suffixes:
    whether what is named in `outputs`, and not found in a folder, holds what its suffix says.

    Raises OutputMissingError if a path, folder or pattern finds nothing, UnreadableFileError for
    what cannot be looked at, ConfigError, UnknownReaderError, ReaderPluginError.
    """
    choice = Choice(formats, format_name, options)
    search = _Search(root, layout, choice, exclude, trusts_suffixes=trusts_suffixes)
    return search.found(outputs)


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
    shared_options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> FoundOutputs:
    """The outputs of a file or folder given by itself (`ciwrap compare A B`).

    outputs: relative to the folder. include: the only files that count, as globs. shared_options:
    as of `Choice`. name: what to call the array of a single .npy or raw file, so
    that `a.npy` and `b.npy` can be compared with each other. Raises as `find_outputs` does.
    """
    choice = Choice(formats, format_name, options, shared_options)
    if path.is_dir() and not choice.is_store(path, path.name):
        return _Search(path, layout, choice, exclude, include).found(outputs)
    if not path.exists():
        raise OutputMissingError(
            "does not exist", file=path, remedy="fix the path, or run what writes it"
        )
    file = choice.of(path, path.name)
    if name is not None and not file.reader.names_inside:
        file = replace(file, label=name)
    return FoundOutputs((file,))


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


class _Search:
    """Collects the files of several patterns, each file once."""

    def __init__(
        self,
        root: Path,
        layout: str | None,
        choice: Choice,
        exclude: Sequence[str],
        include: Sequence[str] = (),
        *,
        trusts_suffixes: bool = True,
    ) -> None:
        self._root = root
        self._trusts_suffixes = trusts_suffixes
        self._layout = None if layout is None else PathPattern(layout, anywhere=True, key="layout")
        self._uses_layout = False
        self._default_layouts = [PathPattern(f"**/{text}") for text in DEFAULT_LAYOUTS]
        self._choice = choice
        self._excluded = {text: file_glob(text, "exclude") for text in exclude}
        self._unused = dict.fromkeys(exclude)
        self._included = [file_glob(text, "include") for text in include]
        self._files: dict[str, OutputFile] = {}  # by their paths
        self._unmatched: set[Path] = set()
        self._left_out: set[str] = set()

    def found(self, outputs: Sequence[str]) -> FoundOutputs:
        """What these find, all together. Raises as `find_outputs` does."""
        try:
            for text in outputs:
                self._add(text)
        except PermissionError as error:  # a folder above it is closed to us
            why = f"cannot be read: {error.strerror or error}"
            raise UnreadableFileError(why, file=error.filename or self._root) from error
        order = {
            path: (*VariableId(file.label, file.iteration, file.rank).sort_key, path.split("/"))
            for path, file in self._files.items()
        }
        files = [self._files[path] for path in sorted(order, key=order.__getitem__)]
        unmatched = sorted(path for path in self._unmatched if str(path) not in self._files)
        excluded = tuple(sorted(self._left_out))
        unused = [("exclude", text) for text in self._unused]
        if self._layout is not None and not self._uses_layout:
            unused.append(("layout", self._layout.text))
        unused += [("formats", glob) for glob in self._choice.unused]
        return FoundOutputs(tuple(files), tuple(unmatched), excluded, tuple(unused))

    def _add(self, text: str) -> None:
        """Takes the files of one entry of `outputs`."""
        text = _tidy(text)
        is_store = self._choice.is_store(self._root / text, text)
        if (self._root / text).is_dir() and not is_store:
            base = "" if text == "." else f"{text}/"
            names = self._kept(base, self._root / text, None, "the folder holds no files")
            self._take([(name, self._in_folder(base, name)) for name in names], is_named=False)
        elif (self._root / text).exists():
            self._take([(text, self._from_layout(text))], is_named=self._trusts_suffixes)
        else:
            pattern = PathPattern(text)
            if pattern.is_literal:
                raise OutputMissingError("does not exist", file=self._root / text, remedy=_REMEDY)
            base = pattern.fixed_folder
            nothing = f"nothing matches {text!r}"
            names = self._kept(base, self._root / base, pattern, nothing)
            is_named = self._trusts_suffixes and bool(Path(text).suffix)
            self._take(
                [(name, self._by_pattern(pattern, name)) for name in names], is_named=is_named
            )

    def _kept(
        self, base: str, folder: Path, pattern: PathPattern | None, nothing: str
    ) -> list[str]:
        """Files below the folder that fit the pattern, relative to root, and are not excluded."""
        if not folder.is_dir():
            raise OutputMissingError(
                f"there is no such folder, so {nothing}", file=folder, remedy=_REMEDY
            )
        names = _walk(folder, base, self._choice)
        has_rules = bool(self._excluded or self._included)
        left_out = {name for name in names if has_rules and self._is_left_out(name)}
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

    def _take(self, places: list[tuple[str, _Place | None]], *, is_named: bool) -> None:
        """Takes files by their names relative to root; None: no layout fits the name. is_named: as
        of `Choice.of`.
        """
        found = []
        companions: set[Path] = set()
        for name, place in places:
            path = self._root / name
            chosen = self._choice.of(path, name, is_named=is_named)
            companions.update(chosen.reader.companions(path))
            found.append((place, chosen))
        for place, chosen in found:
            if (companions and chosen.path in companions) or chosen.path_text in self._files:
                continue
            if place is None:
                self._unmatched.add(chosen.path)
                continue
            label = place.label or ("" if chosen.reader.names_inside else place.fallback)
            if chosen.why is not None:  # a table may lie beside it that is called the same
                label += inner_path(chosen.path).suffix
            self._files[chosen.path_text] = replace(
                chosen, iteration=place.iteration, rank=place.rank, label=label
            )

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
        for pattern in self._default_layouts:
            match = pattern.match(plain)
            if match is not None:
                label = "/".join([part for part in (match.wild, match.name) if part])
                return self._place(pattern, match, name, label)
        return _Place(None, None, plain, plain)

    def _from_layout(self, name: str) -> _Place | None:
        """The place of a file that is named without fields."""
        if self._layout is None:
            return _Place(None, None, "", "")
        self._uses_layout = True
        match = self._layout.match(name)
        return None if match is None else self._place(self._layout, match, name)

    def _by_pattern(self, pattern: PathPattern, name: str) -> _Place | None:
        if self._layout is not None and not pattern.fields:
            return self._from_layout(name)
        match = pattern.match(name)
        return None if match is None else self._place(pattern, match, name)

    def _place(
        self, pattern: PathPattern, match: PathMatch, name: str, label: str | None = None
    ) -> _Place:
        """label: None for what the pattern tells."""
        iteration = match.iteration
        if isinstance(iteration, str):
            iteration = self._choice.iteration_at(iteration, self._root / name)
        if label is None:
            label = match.name if match.name is not None else _without_suffix(match.wild)
        return _Place(iteration, match.rank, label, pattern.stem)


class _Place(Struct, frozen=True):
    """Where in the history a file stands. fallback: the name of an array that has no other."""

    iteration: int | None
    rank: int | None
    label: str
    fallback: str


def _without_suffix(name: str) -> str:
    """The path without the suffix of a format, if its last component has one that a reader
    knows.
    """
    folder, slash, last = name.rpartition("/")
    last = inner_name(last)
    stem, dot, suffix = last.rpartition(".")
    return folder + slash + (stem if stem and reader_of_suffix(dot + suffix) else last)


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
    here = folder
    try:
        # Folders to look into, with themselves and those above.
        pending = [(folder, base, frozenset((inode_of(folder),)))]
        while pending:
            here, prefix, above = pending.pop()
            with os.scandir(here) as listed:
                entries = list(listed)
            if prefix != base and choice.is_store_of(here, {entry.name for entry in entries}):
                found.append(prefix.removesuffix("/"))
                continue
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                name = prefix + entry.name
                if not _is_folder(entry):
                    found.append(name)
                    continue
                path = Path(entry.path)
                if choice.is_store(path, name, looks_inside=False):
                    found.append(name)
                    continue
                place = inode_of(path)
                if place not in above:
                    pending.append((path, f"{name}/", above | {place}))
    except OSError as error:
        raise UnreadableFileError(
            f"cannot be listed: {error.strerror or error}", file=error.filename or here
        ) from error
    return sorted(found)
