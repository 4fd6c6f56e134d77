"""Sources for files that hold many arrays: a list of entries, each with its own way of reading."""

from __future__ import annotations

import contextlib
import math
import re
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import Field, dtype_text, extract, fields_of, storage_dtype
from ciwrap.closing import closed_on_error
from ciwrap.errors import (
    CiwrapError,
    CorruptFileError,
    DuplicateVariableError,
    FileLimitError,
    PickledArrayError,
    UnsupportedDtypeError,
    one_line,
)
from ciwrap.late import numpy as np
from ciwrap.readers.base import FileRegion, Source, VariableInfo, reading
from ciwrap.readers.files import InputFile
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.readers.base import Labels

    ReadFlat = Callable[[int, int], NDArray[Any]]

MAX_VARIABLES = 1_000_000
MAX_ELEMENTS = 1 << 60
# Texts of variable length are read whole, to learn how wide they are.
MAX_TEXTS = 1 << 20
# What is not stored is filled in by most formats; lengths that lie then make a small file endless.
_LARGE_BYTES = 1 << 30
_MAX_RATIO = 10_000
_TEXT_STEP = 16
# Why a text is not compared: NumPy would take it for the text without its last character.
LOST_ZERO = "holds a text that ends with a zero character, which would be lost"
_WORD = re.compile(r"[A-Za-z]{3}")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Entry(Struct, frozen=True):
    """A variable, and how its elements are read: read(first element, count)."""

    info: VariableInfo
    read: ReadFlat


@contextlib.contextmanager
def guarded(path: Path, variable: str | None = None) -> Iterator[None]:
    """Turns whatever a format's library raises for a damaged file into CorruptFileError.

    Such libraries raise anything (KeyError, struct.error, RuntimeError, ...), so everything is
    taken; our own errors pass, and memory that runs out becomes FileLimitError.
    """
    try:
        with reading(path):
            yield
    except CiwrapError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno is None:
            # From a library (HDF5, zarr), not from the operating system.
            raise _corrupt(path, variable, cause) from cause
        raise
    except MemoryError as error:
        raise FileLimitError(
            "asks for more memory than there is", file=path, variable=variable
        ) from error
    except IndexError as error:
        raise _corrupt(path, variable, error) from error
    except Exception as error:
        raise _corrupt(path, variable, error) from error


def _corrupt(path: Path, variable: str | None, error: Exception) -> CorruptFileError:
    text = one_line(_COLOURS.sub("", str(error)))
    if not _WORD.search(text):  # such as the key of a KeyError
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return CorruptFileError(
        f"cannot be read: {text[:200]}",
        file=path,
        variable=variable,
        remedy="is it whole, and has the program finished writing it?",
    )


class EntrySource(Source):
    """A source made of entries. `finish` closes what the format's library opened."""

    def __init__(
        self, path: Path, entries: Sequence[Entry], finish: Callable[[], None] | None = None
    ) -> None:
        self.path = path
        self.variables = tuple(entry.info for entry in entries)
        self._read = {entry.info.name: entry.read for entry in entries}
        self._finish = finish

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        dtype = storage_dtype(info.dtype)
        if count == 0:
            return np.empty(0, dtype=dtype)
        with guarded(self.path, name), _blamed(self.path, name):
            found = self._read[name](first_element, count)
            if found.size != count or found.dtype != dtype:
                raise CorruptFileError(
                    f"holds {found.size} elements of {found.dtype} where {count} of {dtype} are"
                    " expected",
                    file=self.path,
                    variable=name,
                )
        return found

    def close(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            with guarded(self.path):
                finish()


def opened(path: Path, list_entries: Callable[[InputFile], Sequence[Entry]]) -> EntrySource:
    """A file whose entries read it in place; it stays open as long as the source."""
    file = InputFile(path)
    with closed_on_error(file.close):
        return EntrySource(path, list_entries(file), file.close)


@contextlib.contextmanager
def _blamed(path: Path, variable: str) -> Iterator[None]:
    """Names file and variable in the errors of what reads and knows neither."""
    try:
        yield
    except CiwrapError as error:
        error.blame(file=path, variable=variable)
        raise


def fault_text(error: CiwrapError) -> str:
    """Why a variable is not compared, with what to do about it besides leaving it out."""
    return one_line(f"{error.message}; {error.remedy}" if error.remedy else error.message)


class Listing:
    """Collects the entries of a file. `path` is for messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self._names: set[str] = set()

    @contextlib.contextmanager
    def one(self, name: str, **facts: Any) -> Iterator[None]:
        """Whatever goes wrong in the block makes this variable one that is not compared, and no
        other. facts: its place, as `add` takes it.
        """
        try:
            with guarded(self.path, name):
                yield
        except (CorruptFileError, UnsupportedDtypeError) as error:
            # What a library complains of need not be damage, which is what the remedy is for.
            is_ours = error.remedy and error.__cause__ is None
            self.add_fault(name, fault_text(error) if is_ours else error.message, **facts)

    def add(
        self,
        name: str,
        dtype: np.dtype[Any],
        shape: Sequence[int],
        read: ReadFlat,
        *,
        region: FileRegion | None = None,
        stored_bytes: int | None = None,
        called: str | None = None,
        iteration: int | None = None,
        rank: int | None = None,
        steps: Sequence[int] | None = None,
        labels: Labels = (),
    ) -> None:
        """An array of that dtype and shape; a record array gives one variable per field.

        region: where its bytes lie as they are. stored_bytes: how many the file really holds.
        steps: the iterations that its first axis goes through; it then gives one variable for each.
        labels: as in VariableInfo.
        What has no defined comparison is listed with its fault.
        """
        lengths = tuple(int(length) for length in shape)
        facts = {"called": called, "iteration": iteration, "rank": rank, "labels": labels}
        if math.prod(lengths) > MAX_ELEMENTS or any(length < 0 for length in lengths):
            self.add_fault(name, f"claims the shape {lengths}", **facts)
            return
        claimed = math.prod(lengths) * dtype.itemsize
        if stored_bytes is not None and claimed > max(_LARGE_BYTES, _MAX_RATIO * stored_bytes):
            self.add_fault(
                name, f"claims {claimed} bytes, of which the file stores {stored_bytes}", **facts
            )
            return
        try:
            fields = fields_of(name, dtype, file=self.path)
        except (UnsupportedDtypeError, PickledArrayError) as error:
            self.add_fault(name, error.message, **facts)
            return
        for field in fields:
            info = VariableInfo(
                field.name,
                field.dtype,
                (*lengths, *field.inner_shape),
                region if dtype.names is None else None,
                _called(called, name, field.name),
                iteration,
                rank,
                labels=labels,
            )
            self._add(info, _field_reader(read, dtype, field), steps)

    def add_array(self, name: str, array: Any, **facts: Any) -> None:
        """A small array that is in memory; texts of any length become fixed-width unicode."""
        found = np.asarray(array)
        if found.dtype.hasobject:
            found = _fixed_width(found)
        if found.dtype.kind in "SU" and found.dtype.itemsize == 0:
            found = found.astype(f"{found.dtype.kind}1")
        flat = np.ascontiguousarray(found).reshape(-1)
        self.add(
            name,
            found.dtype,
            found.shape,
            lambda first, count: flat[first : first + count],
            **facts,
        )

    def add_fault(self, name: str, fault: str, **facts: Any) -> None:
        """Something that is in the file and cannot be compared."""

        info = VariableInfo(name, "|V1", (1,), fault=one_line(fault), **facts)
        self.put(Entry(info, _nothing))

    def _add(self, info: VariableInfo, read: ReadFlat, steps: Sequence[int] | None) -> None:
        if not steps:  # a history that has not begun is seen by the variable as it is
            self.put(Entry(info, read))
            return
        if not info.shape or len(steps) != info.shape[0]:
            raise CorruptFileError(
                f"has {info.shape[:1]} rows where there are {len(steps)} iterations",
                file=self.path,
                variable=info.name,
            )
        shape = info.shape[1:]
        per_step = math.prod(shape)
        step_bytes = per_step * info.item_bytes
        for number, step in enumerate(steps):
            region = info.region
            if region is not None:
                offset = region.offset + number * step_bytes
                region = FileRegion(region.path, offset, step_bytes)
            one = replace(
                info,
                name=f"{info.name}[{number}]",
                shape=shape,
                region=region,
                called=info.called or info.name,
                iteration=step,
            )
            self.put(Entry(one, _shifted(read, number * per_step)))

    def put(self, entry: Entry) -> None:
        """Adds an entry as it is. Raises DuplicateVariableError, FileLimitError."""
        name = entry.info.name
        if name in self._names:
            raise DuplicateVariableError("is in the file twice", file=self.path, variable=name)
        if len(self.entries) >= MAX_VARIABLES:
            raise FileLimitError(f"holds more than {MAX_VARIABLES} variables", file=self.path)
        self._names.add(name)
        self.entries.append(entry)


def _nothing(*_: int) -> NDArray[Any]:
    """Reads what has no elements, or is refused before any is read."""
    return np.empty(0, dtype="V1")


def _called(called: str | None, name: str, field_name: str) -> str | None:
    """What a field is called: the same addition as to the array's own name."""
    return None if called is None else called + field_name[len(name) :]


def _shifted(read: ReadFlat, offset: int) -> ReadFlat:
    return lambda first, count: read(offset + first, count)


def _field_reader(read: ReadFlat, dtype: np.dtype[Any], field: Field) -> ReadFlat:
    if dtype.names is None:
        return read
    per_record = math.prod(field.inner_shape)

    def read_field(first: int, count: int) -> NDArray[Any]:
        if per_record == 0:
            return np.empty(0, dtype=field.dtype)
        record, within = divmod(first, per_record)
        records = (within + count + per_record - 1) // per_record
        plain = read(record, records)
        values: NDArray[Any] = extract(plain.view(f"V{dtype.itemsize}"), dtype, field)
        return values[within : within + count]

    return read_field


def _fixed_width(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Texts (str or bytes) of any length as fixed-width unicode. Raises as `array_of_texts`."""
    texts = []
    for value in array.reshape(-1).tolist():
        if isinstance(value, bytes):
            texts.append(value.decode("utf-8", "surrogateescape"))
        elif isinstance(value, str):
            texts.append(value)
        else:
            raise UnsupportedDtypeError(f"holds values of type {type(value).__name__}")
    found: np.ndarray[Any, Any] = array_of_texts(texts).reshape(array.shape)
    return found


def array_of_texts(texts: Sequence[str]) -> NDArray[np.str_]:
    """Texts of any length as fixed-width unicode, its width in steps so that one longer word does
    not make it another dtype.

    Raises UnsupportedDtypeError for one that ends with a zero, which would be lost.
    """
    if any(text.endswith("\0") for text in texts):
        raise UnsupportedDtypeError(LOST_ZERO)
    width = max(1, max(map(len, texts), default=1))
    width = -(-width // _TEXT_STEP) * _TEXT_STEP
    return np.array(texts, dtype=f"<U{width}")


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype can be compared as it is stored, without fields or conversions."""
    if dtype.names is not None or dtype.subdtype is not None:
        return False
    try:
        dtype_text(dtype)
    except UnsupportedDtypeError:
        return False
    return True
