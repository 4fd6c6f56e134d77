"""What a reader is: a small class that opens one file format and streams its variables.

A reader of your own subclasses `Reader` and `Source`, registers in the entry-point group
`ciwrap.readers`, and runs `ciwrap.testing.ReaderSuite` (docs/how-to/write-a-reader.md). Files are
read plainly, never by mmap: a file that is truncated while it is mapped ends the process. Labels
(dimensions, units) belong to a variable's identity, as its dtype does, and are short texts.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from abc import ABC, abstractmethod
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ciwrap.arrays.values import (
    DEFAULT_SLAB_BYTES,
    FileRegion,
    HeldOnDevice,
    Labels,
    Shaped,
    TextRules,
    Values,
    storage_dtype,
)
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    FileLimitError,
    OutputMissingError,
    ReaderPluginError,
    UnreadableFileError,
    UnsupportedDtypeError,
    VariableMissingError,
    one_line,
)
from ciwrap.base.late import hashlib
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import Closing
from ciwrap.model.fill_values import FILL_LABELS
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.values import SeriesFacts
    from ciwrap.formats.entries import Listing, Packing, Place

# FileRegion and Labels are part of what readers are written against, so they are offered here, too.


class VariableInfo(Shaped, Struct, frozen=True, omit_defaults=True):
    """One variable of a file, before any of it is read.

    dtype: array-protocol string with byte order as stored ("<f4", ">i8", "|b1", "|S12"), or "<bf2".
    shape: () for a single number; lengths may be 0. region: None unless the file holds the
    variable's bytes contiguously and uncompressed.

    A file that holds a history lists a variable once per iteration: `name` then is unique in the
    file ("step_10/x", "x[3]"), and `called` is what it is called in every iteration ("x").
    iteration and rank are None where the file says nothing of them. fault: why this variable
    cannot be read although the rest of the file can; reading it raises UnsupportedDtypeError with
    this text, unless the configuration ignores it. device: an array on a GPU that is the variable
    (`ciwrap.arrays.values.HeldOnDevice`), None for all that is read.

    labels: what the file says about the variable that belongs to its identity as its dtype and its
    shape do, as (key, text) pairs in the order of their keys (`labels_of` makes them): "dims" names
    the dimensions ("x y"), with that of the iterations; other keys are attributes ("units"). A file
    that does not say it has no such key. text: how a text is compared whose bytes are the variable;
    None for elements. in_text: whether its elements were found one by one in a text
    (`Source.facts`). is_written: as in `Values`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    region: FileRegion | None = None
    called: str | None = None
    iteration: int | None = None
    rank: int | None = None
    fault: str | None = None
    device: HeldOnDevice | None = None
    labels: Labels = ()
    text: TextRules | None = None
    in_text: bool = False
    is_written: bool = False


class Source(Closing):
    """An open file and its variables. A context manager; not for use by several threads at once."""

    path: Path
    variables: tuple[VariableInfo, ...]  # in the file's own order, names unique
    # What to tell of the file besides, and what makes it not comparable although it can be read.
    notes: tuple[str, ...] = ()
    faults: tuple[CiwrapError, ...] = ()
    # How many of its attributes nobody has asked for, and were not listed.
    attributes_left_out: int = 0
    # Whether somebody has named what counts of the file, so that nothing of it need be there.
    may_be_empty: bool = False

    @abstractmethod
    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        """Elements first_element .. first_element + count - 1, counted in C order of the shape.

        Returns a C-contiguous array of shape (count,) in `storage_dtype(info.dtype)`. Memory in
        proportion to `count`, not to the variable. Raises CorruptFileError or UnreadableFileError,
        VariableMissingError for an unknown name, IndexError for a range outside the variable.
        """

    def slabs(self, name: str, slab_bytes: int = DEFAULT_SLAB_BYTES) -> Iterator[NDArray[Any]]:
        """The whole variable in order, in pieces of at most slab_bytes (but at least one element).

        A variable without elements yields nothing. Raises as `read` does.
        """
        info = self.info(name)
        step = max(1, slab_bytes // max(1, info.item_bytes))
        for first in range(0, info.element_count, step):
            yield self.read(name, first, min(step, info.element_count - first))

    def info(self, name: str) -> VariableInfo:
        """The variable of that name; raises VariableMissingError."""
        by_name = self.__dict__.get("_by_name")
        if by_name is None:
            by_name = self.__dict__["_by_name"] = {info.name: info for info in self.variables}
        found: VariableInfo | None = by_name.get(name)
        if found is None:
            raise VariableMissingError("there is no such variable", file=self.path, variable=name)
        return found

    def region(self, info: VariableInfo) -> FileRegion | None:
        """Where a variable's bytes lie as long as this is open."""
        return info.region

    def held(self, info: VariableInfo) -> memoryview | None:
        """The bytes of a variable's region, if opening the file has read all of it; they stay valid
        when it is closed.
        """
        return None

    def facts(self, name: str) -> SeriesFacts | None:
        """Steps and places of a variable's elements in a text; None where they are no text."""
        return None

    def checked_range(self, name: str, first_element: int, count: int) -> VariableInfo:
        """The variable of that name, once it is known that the range of it can be read.

        Raises VariableMissingError, IndexError, and UnsupportedDtypeError for one with a fault.
        """
        info = self.info(name)
        if info.fault is not None:
            raise UnsupportedDtypeError(info.fault, file=self.path, variable=name)
        if first_element < 0 or count < 0 or first_element + count > info.element_count:
            raise IndexError(
                f"values {first_element} to {first_element + count} of {info.element_count}"
            )
        return info

    def close(self) -> None:
        """Gives up the file; harmless when repeated. Default: there is nothing to give up."""


class SourceValues(Values):
    """A variable of an open file; the file has to stay open as long as this is used.

    name_in_check: what the check calls the file's variable of a name.
    """

    def __init__(
        self, source: Source, info: VariableInfo, name_in_check: Callable[[str], str]
    ) -> None:
        self._source = source
        self._info = info
        self._name_in_check = name_in_check
        self.dtype = info.dtype
        self.shape = info.shape
        self.labels = info.labels
        self.device = info.device
        self.is_written = info.is_written

    @property
    def text(self) -> TextRules | None:
        return self._info.text

    @property
    def region(self) -> FileRegion | None:
        return self._source.region(self._info)

    @property
    def series(self) -> SeriesFacts | None:
        facts = self._source.facts(self._info.name)
        if facts is None or facts.steps_name is None:
            return facts
        found = copy(facts)
        found.steps_name = self._name_in_check(facts.steps_name)
        return found

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        return self._source.read(self._info.name, first_element, count)


class Reader(ABC):
    """Opens files of one format. Instances carry no state.

    name: what `format:` in ciwrap.yaml calls it. suffixes: lower case, with the dot; of a format of
    ours they stand in `OWN_FORMATS`. names_inside:
    whether the file names its variables (.npz, tables) or they are named after the file (.npy,
    raw). option_names: the keys that `options:` may hold. is_folder: whether an output of this
    format is a folder with many files in it (Zarr, ADIOS2), to be opened as one. has_mark: whether
    every file begins with a mark of the format, so that no other file is taken for one.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    names_inside: ClassVar[bool] = True
    option_names: ClassVar[tuple[str, ...]] = ()
    is_folder: ClassVar[bool] = False
    has_mark: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        name = vars(cls).get("name")
        if name in OWN_FORMATS and "suffixes" not in vars(cls):
            cls.suffixes = OWN_FORMATS[name].suffixes

    @abstractmethod
    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Source:
        """Opens the file and reads as much as is needed to list its variables.

        name: what to call the file's array where the format gives no name; default: the file's
        stem. options: as in ciwrap.yaml; unknown keys have been refused. Raises OutputMissingError,
        UnreadableFileError, CorruptFileError, UnsupportedFormatError, UnsupportedDtypeError or
        ConfigError, and nothing else, whatever the bytes are.
        """

    def why_other(self, path: Path) -> str | None:
        """Why a file is not of this format although its suffix says so; None if it is, or if only
        opening it tells. For suffixes that other files have, too.
        """
        return None

    def is_output(self, path: Path) -> bool:
        """Whether a folder is an output of this format, if that `is_folder`."""
        return self.is_folder and path.suffix.lower() in self.suffixes

    def companions(self, path: Path) -> tuple[Path, ...]:
        """Further files that are read with this one (sidecars), whether or not they exist."""
        return ()

    def check_options(self, options: Mapping[str, Any], path: Path) -> None:
        """Raises ConfigError for an option this reader does not know."""
        for key in options:
            if key not in self.option_names:
                known = ", ".join(self.option_names) or "none"
                raise ConfigError(
                    f"the reader {self.name!r} has no option {key!r} (it has: {known})",
                    file=path,
                    key=f"options.{key}",
                )


class CheckedReader(Reader):
    """A reader whose options have been looked at by the time a file is opened, and whose errors are
    given the name of the file here: `open_file` says what is wrong, and may raise anything.
    """

    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Source:
        given = dict(options or {})
        self.check_options(given, path)
        with guarded(path):
            return self.open_file(path, name or path.stem, given)

    @abstractmethod
    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        """As `open`. name: what to call the file's array if the format gives no name."""


def not_there(path: Path) -> OutputMissingError:
    """The error of a file that does not exist, which may be an output or what somebody named."""
    return OutputMissingError(
        "does not exist", file=path, remedy="run the program first, or fix the name"
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an OSError of the block into UnreadableFileError naming the file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, CiwrapError):
            raise
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> UnreadableFileError:
    return UnreadableFileError(f"cannot be read: {error.strerror or error}", file=path)


def as_elements(data: bytes | bytearray | memoryview, dtype: str) -> NDArray[Any]:
    """Bytes as a one-dimensional array of that dtype, without a copy."""
    return np.frombuffer(data, dtype=storage_dtype(dtype))


# What to do about a damaged file, where nothing better is known.
IS_WHOLE = "is it whole, and has the program finished writing it?"
_MOST_PER_CALL = 1 << 30
_WORD = re.compile(r"[A-Za-z]{3}")
# Colours, and what ADIOS2 puts before its errors: the date, and that it is one.
_DECORATION = re.compile(r"\x1b\[[0-9;]*m|\[[^]]*:\d\d \d{4}\] *|\[ADIOS2 EXCEPTION\] *")


@contextlib.contextmanager
def guarded(path: Path, variable: str | None = None) -> Iterator[None]:
    """Turns whatever a format's library raises for a damaged file into CorruptFileError.

    Such libraries raise anything (KeyError, struct.error, RuntimeError, ...), so everything is
    taken; our own errors pass, with the file and the variable where they name none, and a remedy
    for damage that has none. Memory that runs out becomes FileLimitError.
    """
    try:
        with reading(path):
            yield
    except CiwrapError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno is None:
            # From a library (HDF5, zarr), not from the operating system.
            raise _corrupt(path, variable, cause) from cause
        error.blame(file=path, variable=variable)
        if type(error) is CorruptFileError:
            error.remedy = error.remedy or IS_WHOLE
        raise
    except MemoryError as error:
        raise FileLimitError(
            "asks for more memory than there is", file=path, variable=variable
        ) from error
    except Exception as error:
        raise _corrupt(path, variable, error) from error


def _corrupt(path: Path, variable: str | None, error: Exception) -> CorruptFileError:
    text = one_line(_DECORATION.sub("", str(error)))
    if not _WORD.search(text):  # such as the key of a KeyError
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return CorruptFileError(
        f"cannot be read: {text[:200]}", file=path, variable=variable, remedy=IS_WHOLE
    )


def _read_into(descriptor: int, part: memoryview, offset: int) -> int:
    """Reads up to as many bytes as `part` takes, and says how many."""
    if hasattr(os, "preadv"):  # macOS from 11 on
        return os.preadv(descriptor, [part], offset)
    data = os.pread(descriptor, len(part), offset)
    part[: len(data)] = data
    return len(data)


# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_OPENED = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class InputFile:
    """A regular file open for reading at given offsets, until it is closed or forgotten.

    held_bytes: a file of at most so many is read as it is opened, and closed. Raises
    OutputMissingError if there is none, UnreadableFileError for folders, pipes and devices and for
    whatever the operating system refuses, CorruptFileError for one that shrinks while it is read.
    """

    def __init__(self, path: Path, *, held_bytes: int = -1) -> None:
        self.path = path
        self._descriptor = -1
        self._held: bytearray | None = None
        try:
            self._descriptor = os.open(path, _OPENED)
            status = os.fstat(self._descriptor)
        except FileNotFoundError:
            if path.is_symlink():
                raise OutputMissingError(
                    "is a broken link", file=path, remedy="fix the link"
                ) from None
            raise not_there(path) from None
        except OSError as error:
            raise _unreadable(path, error) from error
        except ValueError as error:
            raise UnreadableFileError(f"is not a valid path: {error}", file=ascii(path)) from None
        if not stat.S_ISREG(status.st_mode):
            self.close()
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise UnreadableFileError(f"is {what}", file=path, remedy="give a file")
        self.byte_count = status.st_size
        if self.byte_count <= held_bytes:
            self._held = self._read(0, self.byte_count)
            self.close()

    def held(self, offset: int, count: int) -> memoryview | None:
        """Bytes of a file that is held in memory, as it was when it was opened; None of others."""
        return None if self._held is None else memoryview(self._held)[offset : offset + count]

    def read_at(self, offset: int, count: int) -> bytearray:
        """Exactly `count` bytes from `offset`. Raises CorruptFileError if the file ends before."""
        if self._held is None:
            return self._read(offset, count)
        data = self._held[offset : offset + count]
        if len(data) < count:
            raise self._ends(min(offset, len(self._held)) + len(data), offset + count)
        return data

    def _read(self, offset: int, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        done = 0
        with reading(self.path):
            while done < count:
                part = view[done : done + _MOST_PER_CALL]
                got = _read_into(self._descriptor, part, offset + done)
                if got == 0:
                    # It may have become shorter than where this began to read.
                    end = min(offset + done, os.fstat(self._descriptor).st_size)
                    raise self._ends(end, offset + count)
                done += got
        return data

    def _ends(self, end: int, expected: int) -> CorruptFileError:
        return CorruptFileError(
            f"ends after {end} bytes, but {expected} are expected",
            file=self.path,
            remedy=IS_WHOLE,
        )

    def elements(self, offset: int, dtype: str) -> Callable[[int, int], NDArray[Any]]:
        """Reads elements first .. first + count - 1 of those that lie back to back from offset."""
        item = storage_dtype(dtype).itemsize
        return lambda first, count: as_elements(
            self.read_at(offset + first * item, count * item), dtype
        )

    def read_some(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset`; fewer only at the end of the file."""
        count = min(count, self.byte_count - offset)
        return bytes(self.read_at(offset, count)) if count > 0 else b""

    def end_after_line(self, most_bytes: int) -> None:
        """Has a longer file end after its last line break within so many bytes, or there."""
        if self.byte_count > most_bytes:
            head = self.read_at(0, most_bytes)
            self.byte_count = head.rfind(b"\n") + 1 or most_bytes

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


def whole_file(path: Path) -> bytearray:
    """All bytes of a file that is held in memory anyway. Raises as `InputFile` does."""
    file = InputFile(path)
    return file.read_at(0, file.byte_count)


def first_bytes(path: Path, count: int) -> bytes:
    """Up to so many bytes that a file begins with. Raises as `InputFile` does."""
    return InputFile(path).read_some(0, count)


def check_is_file(path: Path) -> None:
    """Raises for what is not a regular file that can be read, and for an empty one."""
    if InputFile(path).byte_count == 0:
        raise CorruptFileError("is empty", file=path, remedy=IS_WHOLE)


# What is read with which packages, and the extra that brings them to a clone.
NEEDED = {
    "hdf5": ("hdf5", ("h5py",)),
    "netcdf 4": ("netcdf", ("h5py",)),
    "zarr": ("zarr", ("zarr",)),
    "parquet": ("parquet", ("pyarrow",)),
    "gromacs": ("md", ("MDAnalysis",)),
    "fits": ("fits", ("astropy",)),
    "vtk packed by LZ4": ("vtk", ("lz4",)),
    "mat 5": ("scipy", ("scipy",)),
    "torch": ("torch", ("torch",)),
    "adios2": ("adios2", ("adios2",)),
    "regular expressions in logs": ("log", ("re2",)),
    "packed by zstd": ("zst", ("zstandard",)),
}
# Packages that are installed under another name than they are imported by.
_DISTRIBUTIONS = {"re2": "google-re2"}


def lacking() -> dict[str, str]:
    """What cannot be read for want of packages, and these as pip knows them; loads none."""
    found = {}
    for what, (_, packages) in NEEDED.items():
        missing = [_distribution(one) for one in packages if find_spec(one) is None]
        if missing:
            found[what] = " ".join(missing)
    return found


def _distribution(package: str) -> str:
    return _DISTRIBUTIONS.get(package, package)


def library(name: str, *, file: str | os.PathLike[str]) -> Any:
    """The module of that name. Raises ReaderPluginError if it is not installed or cannot be loaded;
    the remedy names the library itself, since no package index has ciwrap under its name.
    """
    package = name.split(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = package if error.name is None else error.name.split(".")[0]
        if missing != package:
            problem = f"{package} is installed, but what it needs is not: {one_line(error)}"
        else:
            problem = f"is read with {package}, which is not installed"
        raise ReaderPluginError(
            problem, file=file, remedy=f"pip install {_distribution(missing)}"
        ) from error
    except (ImportError, OSError) as error:
        raise ReaderPluginError(
            f"{name} cannot be loaded: {one_line(error)}",
            file=file,
            remedy=f"pip install --force-reinstall {_distribution(package)}",
        ) from error


# The label that names the dimensions; all others are named as the attributes they come from.
DIMS = "dims"
MOST_CHARACTERS = 200
_DIGEST_CHARACTERS = 32
# By NetCDF's conventions of the variable's own type: 1e20 as that type holds it, so that it is the
# same of a variable in another precision.
_OF_THE_TYPE = {
    *("_FillValue", "flag_masks", "flag_values", "missing_value"),
    *("valid_max", "valid_min", "valid_range"),
}


def labels_of(
    dimensions: Sequence[str | None] | None, attributes: Mapping[str, Any] | None = None
) -> Labels:
    """The labels of a variable.

    dimensions: their names, None for one without a name; None where the format names none.
    attributes: the values of those attributes that count (numbers, texts, arrays of them).
    """
    found = {
        name: text_of(value, is_of_the_type=name in _OF_THE_TYPE)
        for name, value in (attributes or {}).items()
    }
    if dimensions and any(dimensions):
        found[DIMS] = names_as_text(dimensions)
    return tuple(sorted(found.items()))


def names_as_text(names: Sequence[str | None]) -> str:
    """Several names as the text of a label, None for what has none; other names give another."""
    return _cut(" ".join(_name(one) for one in names))


def plain_name(name: str | bytes) -> str:
    """A name of HDF5, which h5py gives as bytes where they are not UTF-8; these are escaped."""
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def text_of(value: Any, *, is_of_the_type: bool = False) -> str:
    """A value as text: equal numbers of one kind give one text, other numbers another one, and a
    text and its bytes the same.

    Floats of any width have as many digits as tell doubles apart, so that the float32 next to 0.1
    is not 0.1; those of the variable's own type have as many as tell numbers of that type apart.
    Characters that cannot be printed are escaped, as are backslashes, and blanks within
    one of several texts; of a long text the beginning and a digest are left. Raises
    UnsupportedDtypeError for what is neither number nor text.
    """
    if getattr(value, "shape", ()) is None:  # an attribute of HDF5 without a value
        return ""
    array = np.asarray(value)
    parts = [_escaped(_scalar_text(one, is_of_the_type)) for one in array.reshape(-1)]
    if len(parts) > 1:
        parts = [_in_one_word(part) for part in parts]
    return _cut(" ".join(parts))


def _scalar_text(value: Any, is_of_the_type: bool) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, (str, bool, int, float, np.number, np.bool_)):
        raise UnsupportedDtypeError("has an attribute that is neither number nor text")
    is_short = isinstance(value, (np.float16, np.float32)) and not is_of_the_type
    return repr(float(value)) if is_short else str(value)


def _name(dimension: str | None) -> str:
    """A name among others; `-` stands for one without a name."""
    if not dimension:
        return "-"
    return "\\-" if dimension == "-" else _in_one_word(_escaped(dimension))


def _in_one_word(escaped: str) -> str:
    """Texts are joined by blanks, so a blank within one is marked."""
    return escaped.replace(" ", "\\ ")


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() and c != "\\" else ascii(c)[1:-1] for c in text)


def _cut(plain: str) -> str:
    if len(plain) <= MOST_CHARACTERS:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: MOST_CHARACTERS - _DIGEST_CHARACTERS - 8]}... ({digest})"


# What numbers mean: a variable with another one of these is another variable.
MEANING = (
    *("_FillValue", "_Unsigned", "add_offset", "calendar", "flag_masks", "flag_meanings"),
    *("flag_values", "missing_value", "positive", "scale_factor", "unitDimension", "unitSI"),
    *("units", "valid_max", "valid_min", "valid_range"),
)
# The values of an unpacked variable already tell of these.
PACKING = ("_FillValue", "add_offset", "missing_value", "scale_factor")
# These are as stored, so that they say something else of each packing.
LIMITS = ("valid_max", "valid_min", "valid_range")
# So many missing values of one attribute are a label that is not cut.
_MOST_MISSING = 8
# And of this one their type.
TYPE = ("_Unsigned",)


class AttributeRule(Struct, frozen=True):
    """names: attributes that are labels of their variable. has_all: whether every attribute, also
    those of groups and of the file, is a variable `path@name` besides. is_chosen: whether somebody
    has said so; if not, those that are left out are counted.
    """

    names: tuple[str, ...] = MEANING
    has_all: bool = False
    is_chosen: bool = False

    @staticmethod
    def of(options: Mapping[str, Any]) -> AttributeRule:
        """The rule that the option `attributes` gives: true, false, or a list of names.

        Raises ConfigError for anything else.
        """
        if "attributes" not in options:
            return AttributeRule()
        given = options["attributes"]
        if isinstance(given, bool):
            return AttributeRule(MEANING if given else (), has_all=given, is_chosen=True)
        if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
            raise ConfigError("must be true, false or a list of names", key="options.attributes")
        return AttributeRule(tuple(given), is_chosen=True)

    def labels(
        self,
        dimensions: Sequence[str | None] | None,
        attributes: Mapping[str, Any],
        packing: Packing | None = None,
    ) -> Labels:
        """The labels of a variable. attributes: all that it has; only those that count are read.

        packing: how its values are unpacked, if they are. Raises UnsupportedDtypeError for
        an attribute that is neither number nor text.
        """
        names = self.names
        if packing is not None and names == MEANING:
            told = (*PACKING, *LIMITS, *TYPE) if packing.is_scaled else TYPE
            names = tuple(name for name in names if name not in told)
        found = {name: attributes[name] for name in names if name in attributes}
        for name in found.keys() & set(FILL_LABELS):
            if packing is not None and packing.is_scaled:
                del found[name]  # the values are NaN there
            else:
                found[name] = _missing(name, found[name], packing)
        return labels_of(dimensions, found)


def _missing(name: str, given: Any, packing: Packing | None) -> Any:
    """What an attribute declares as missing, as the values are. Raises UnsupportedDtypeError."""
    if np.size(given) > _MOST_MISSING:
        raise UnsupportedDtypeError(
            f"its attribute {name} holds more than {_MOST_MISSING} missing values"
        )
    unsigned = None if packing is None else packing.as_unsigned
    if unsigned is None:
        return given
    # 255 where the signed -1 is stored.
    return np.asarray(given).astype(unsigned.str.replace("u", "i")).view(unsigned)


# What HDF5 and NetCDF write themselves to tell which dimensions belong to what.
_BOOKKEEPING = frozenset(
    {"DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_Netcdf4Coordinates", "_Netcdf4Dimid"}
)
_OF_A_SCALE = frozenset({"CLASS", "NAME"})


def add_attributes(
    listing: Listing,
    attributes: Mapping[str, Any],
    path: tuple[str, ...],
    place: Callable[[tuple[str, ...], str], Place],
    rule: AttributeRule,
) -> None:
    """Lists attributes as small variables `path@name`, or counts those that are left out, as the
    rule has it; without what HDF5 keeps in attributes for itself.
    """
    names = [name for name in attributes if name not in _BOOKKEEPING]
    if "REFERENCE_LIST" in attributes or "_Netcdf4Dimid" in attributes:
        names = [name for name in names if name not in _OF_A_SCALE]
    if not rule.has_all:
        listing.left_out += 0 if rule.is_chosen else len({*names} - {*rule.names})
        return
    above, last = path[:-1], path[-1] if path else ""
    for name in names:
        called = f"{last}@{plain_name(name)}"
        key = "/".join([*above, called])
        facts = place(above, called).facts
        with listing.one(key, **facts):
            value = attributes[name]
            if getattr(value, "shape", ()) is None:  # a null dataspace
                value = np.empty(0, value.dtype)
            array = np.asarray(value)
            if array.dtype.hasobject and not all(
                isinstance(one, (str, bytes)) for one in array.reshape(-1).tolist()
            ):
                listing.add_fault(key, "is an attribute that is neither number nor text", **facts)
            else:
                listing.add_array(key, array, **facts)
