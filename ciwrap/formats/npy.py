"""NumPy's .npy files, a variable for each field; never unpickled."""

from __future__ import annotations

import io
import math
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ciwrap.arrays.values import Field, FileRegion, extract, fields_of
from ciwrap.base.errors import (
    CorruptFileError,
    PickledArrayError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.fortran_order import FortranOrder
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo, guarded
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray


# Files up to this size are read once: opening one takes longer than reading so much of it.
_HELD_BYTES = 64 << 10


class NpyReader(CheckedReader):
    """One array per file, named after the file; a record array gives one variable per field."""

    name: ClassVar[str] = "npy"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["npy"].suffixes
    names_inside: ClassVar[bool] = False
    has_mark: ClassVar[bool] = True

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return NpySource(path, name)


class NpySource(Source):
    """An open .npy file. Raises as `Reader.open` does."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._file = InputFile(path, held_bytes=_HELD_BYTES)
        with closed_on_error(self.close):
            head = self._file.read_at(0, min(MAX_HEAD_BYTES, self._file.byte_count))
            header = read_header(io.BytesIO(head).read, name=name, file=path)
            expected = header.data_offset + header.data_bytes
            if self._file.byte_count != expected:
                raise self._other_size(expected)
        self._array = NpyArray(header, self._file.read_at, header.data_offset)
        self.variables = self._array.infos(path, header.data_offset)

    def _other_size(self, expected: int) -> CorruptFileError:
        what = "is truncated" if self._file.byte_count < expected else "has bytes left over"
        return CorruptFileError(
            f"{what}: it has {self._file.byte_count} bytes, its header says {expected}",
            file=self.path,
            remedy="write it again",
        )

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        return self._array.read(self.variables.index(info), first_element, count)

    def held(self, info: VariableInfo) -> memoryview | None:
        region = info.region
        return None if region is None else self._file.held(region.offset, region.byte_count)

    def close(self) -> None:
        self._file.close()


class NpyArray:
    """Reads elements of the array's variables. read_at(offset, count) gives bytes of what holds the
    data, which begin at `start` there.
    """

    def __init__(
        self, header: NpyHeader, read_at: Callable[[int, int], bytes | bytearray], start: int = 0
    ) -> None:
        self._header = header
        self._read_at = read_at
        self._start = start
        # What elements are moved about as: plain values as they are, records as plain bytes.
        is_record = header.dtype.names is not None
        self._stored = np.dtype((np.void, header.dtype.itemsize)) if is_record else header.dtype
        self._fortran = None
        if header.fortran_order:
            self._fortran = FortranOrder(
                header.shape,
                self._stored,
                lambda offset, count: read_at(start + offset, count),
            )

    def infos(self, path: Path, start: int | None) -> tuple[VariableInfo, ...]:
        """One per field. start: where the array's bytes begin in the file; None if it is packed."""
        header, region = self._header, None
        if start is not None and header.dtype.names is None and not header.fortran_order:
            region = FileRegion(str(path), start, header.data_bytes)
        return tuple(
            [
                VariableInfo(field.name, field.dtype, header.shape + field.inner_shape, region)
                for field in header.fields
            ]
        )

    def read(self, field_number: int, first: int, count: int) -> NDArray[Any]:
        """Elements of one variable, counted in C order of its own shape."""
        field = self._header.fields[field_number]
        per_record = math.prod(field.inner_shape)
        if count == 0 or per_record == 0:
            return np.empty(0, dtype=field.dtype)
        record, within = divmod(first, per_record)
        record_count = (within + count + per_record - 1) // per_record
        if self._fortran is not None:
            records = self._fortran.read(record, record_count)
        else:
            item = self._header.dtype.itemsize
            data = self._read_at(self._start + record * item, record_count * item)
            records = np.frombuffer(data, self._stored)
        values: NDArray[Any] = extract(records, self._header.dtype, field)
        return values[within : within + count]


# NumPy's own limit for text that goes through the Python parser.
MAX_HEADER_BYTES = 10_000
# With what stands before that text: magic bytes, version, and the length of the text.
MAGIC_PREFIX = b"\x93NUMPY"
MAX_HEAD_BYTES = len(MAGIC_PREFIX) + 2 + 4 + MAX_HEADER_BYTES
MAX_DIMENSIONS = 32
_REMEDY = "leave the file out with 'exclude' in ciwrap.yaml, or write it as another type"


class NpyHeader(Struct, frozen=True):
    """What a header says.

    data_offset, data_bytes: how many stand before the data, from the start of the .npy, and how
    many they are.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    data_offset: int
    data_bytes: int
    fields: tuple[Field, ...]


def read_header(
    read: Callable[[int], bytes], *, name: str, file: str | os.PathLike[str]
) -> NpyHeader:
    """Parses a header; `read(n)` gives the next n bytes, or fewer at the end.

    name: what the array is called, for its fields and for messages. Raises CorruptFileError,
    UnsupportedFormatError, UnsupportedDtypeError, PickledArrayError, DuplicateVariableError.
    """

    def take(count: int, begins: bytes = b"") -> bytes:
        data = read(count)
        if not data.startswith(begins[: len(data)]):
            raise CorruptFileError("is not .npy data (wrong first bytes)", file=file, variable=name)
        if len(data) != count:
            raise CorruptFileError("is empty or ends within its header", file=file, variable=name)
        return data

    magic = take(len(MAGIC_PREFIX) + 2, MAGIC_PREFIX)
    major, minor = magic[-2], magic[-1]
    if (major, minor) not in ((1, 0), (2, 0), (3, 0)):
        raise UnsupportedFormatError(
            f".npy version {major}.{minor} is not known", file=file, variable=name
        )
    length_bytes = 2 if major == 1 else 4
    length = int.from_bytes(take(length_bytes), "little")
    if length > MAX_HEADER_BYTES:
        raise CorruptFileError(
            f"says its header has {length} bytes (limit {MAX_HEADER_BYTES})",
            file=file,
            variable=name,
        )
    text = take(length)
    try:
        return _header(text, major, name)
    except Exception:  # a guard costs more than a header that is known, as nearly all are
        with guarded(Path(file), name):
            raise


# The files of a history have few different headers, and few names.
@lru_cache(maxsize=256)
def _header(text: bytes, version: int, name: str) -> NpyHeader:
    """What a header's text says. Raises as `read_header` does, without the file, and whatever NumPy
    raises for what is no header.
    """
    shape, fortran_order, dtype = _parsed(text, version, name)
    try:
        fields = fields_of(name, dtype)
    except PickledArrayError:
        raise
    except UnsupportedDtypeError as error:
        # The file is opened as a whole, whatever of it is ignored.
        raise UnsupportedDtypeError(
            error.message, variable=error.variable, remedy=_REMEDY
        ) from None
    data_bytes = math.prod(shape) * dtype.itemsize
    if data_bytes >= 1 << 62:
        raise CorruptFileError(f"says its shape is {shape}", variable=name)
    return NpyHeader(
        dtype=dtype,
        shape=shape,
        # With one axis longer than 1 the two orders are the same.
        fortran_order=fortran_order and sum(length != 1 for length in shape) > 1,
        data_offset=len(MAGIC_PREFIX) + 2 + (2 if version == 1 else 4) + len(text),
        data_bytes=data_bytes,
        fields=tuple(fields),
    )


# Whatever they are called: it takes Python's parser to read one.
@lru_cache(maxsize=64)
def _as_numpy_reads(text: bytes, version: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Raises whatever NumPy raises for what is no header."""
    from numpy.lib.format import read_array_header_2_0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Version 3 is version 2 in UTF-8; escaped, NumPy takes its characters for what they are.
        plain = text.decode().encode("ascii", "backslashreplace") if version == 3 else text
        return read_array_header_2_0(io.BytesIO(len(plain).to_bytes(4, "little") + plain))


def _parsed(text: bytes, version: int, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and dtype, as NumPy reads them."""
    shape, order, dtype = _as_numpy_reads(text, version)
    if dtype.subdtype is not None or not all(type(n) is int and n >= 0 for n in shape):
        raise CorruptFileError("has a wrong descr or shape", variable=name)
    if len(shape) > MAX_DIMENSIONS:
        raise UnsupportedFormatError(
            f"has {len(shape)} dimensions, of which {MAX_DIMENSIONS} at most are read",
            variable=name,
            remedy="write it with fewer",
        )
    return shape, order, dtype
