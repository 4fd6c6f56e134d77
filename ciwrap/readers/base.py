"""What a reader is: a small class that opens one file format and streams its variables.

A reader of your own subclasses `Reader` and `Source`, registers in the entry-point group
`ciwrap.readers`, and runs `ciwrap.testing.ReaderSuite` (docs/how-to/write-a-reader.md).
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.dtypes import storage_dtype

# FileRegion and Labels are part of what readers are written against, so they are offered here, too.
from ciwrap.arrays.values import DEFAULT_SLAB_BYTES, HeldOnDevice, Shaped, TextRules, Values
from ciwrap.arrays.values import FileRegion as FileRegion
from ciwrap.arrays.values import Labels as Labels
from ciwrap.closing import Closing
from ciwrap.errors import (
    CiwrapError,
    ConfigError,
    OutputMissingError,
    UnreadableFileError,
    UnsupportedDtypeError,
    VariableMissingError,
)
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.series import SeriesFacts


class VariableInfo(Shaped, Struct, frozen=True):
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
    (`Source.facts`).
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


class Source(Closing):
    """An open file and its variables. A context manager; not for use by several threads at once."""

    path: Path
    variables: tuple[VariableInfo, ...]  # in the file's own order, names unique
    # What to tell of the file besides, and what makes it not comparable although it can be read.
    notes: tuple[str, ...] = ()
    faults: tuple[CiwrapError, ...] = ()
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
                f"elements {first_element} to {first_element + count} of {info.element_count}"
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

    @property
    def text(self) -> TextRules | None:
        return self._info.text

    @property
    def region(self) -> FileRegion | None:
        return self._info.region

    @property
    def device(self) -> HeldOnDevice | None:
        return self._info.device

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

    name: what `format:` in ciwrap.yaml calls it. suffixes: lower case, with the dot. names_inside:
    whether the file names its variables (.npz, tables) or they are named after the file (.npy,
    raw). option_names: the keys that `options:` may hold. is_folder: whether an output of this
    format is a folder with many files in it (Zarr, ADIOS2), to be opened as one.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    names_inside: ClassVar[bool] = True
    option_names: ClassVar[tuple[str, ...]] = ()
    is_folder: ClassVar[bool] = False

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

    def is_output(self, path: Path) -> bool:
        """Whether a folder is an output of this format, if that `is_folder`."""
        return self.is_folder and path.suffix.lower() in self.suffixes

    def companions(self, path: Path) -> tuple[Path, ...]:
        """Further files that belong to this one (sidecars), whether or not they exist."""
        return ()

    def covered(self, path: Path) -> tuple[Path, ...]:
        """Companions all of which is read with this file, so that nobody reads them again."""
        return self.companions(path)

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
    """A reader whose options have been looked at by the time a file is opened."""

    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Source:
        given = dict(options or {})
        self.check_options(given, path)
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
        raise UnreadableFileError(
            f"cannot be read: {error.strerror or error}", file=path
        ) from error


def as_elements(data: bytes | bytearray | memoryview, dtype: str) -> NDArray[Any]:
    """Bytes as a one-dimensional array of that dtype, without a copy."""
    return np.frombuffer(data, dtype=storage_dtype(dtype))
