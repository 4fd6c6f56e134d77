"""The header of .npy data, read without ever unpickling anything."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import Field, fields_of
from ciwrap.errors import (
    CorruptFileError,
    PickledArrayError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
)
from ciwrap.late import numpy as np
from ciwrap.readers.entries import guarded
from ciwrap.structs import Struct

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

# NumPy's own limit for text that goes through the Python parser.
MAX_HEADER_BYTES = 10_000
# With what stands before that text: magic bytes, version, and the length of the text.
MAGIC_PREFIX = b"\x93NUMPY"
MAX_HEAD_BYTES = len(MAGIC_PREFIX) + 2 + 4 + MAX_HEADER_BYTES
MAX_DIMENSIONS = 32
_REMEDY = "leave the file out with 'exclude' in ciwrap.yaml, or write it as another type"


class NpyHeader(Struct, frozen=True):
    """What a header says. data_offset: bytes before the data, from the start of the .npy."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    data_offset: int
    fields: tuple[Field, ...]

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """What elements are moved about as: plain values as they are, records as plain bytes."""
        is_record = self.dtype.names is not None
        return np.dtype((np.void, self.dtype.itemsize)) if is_record else self.dtype


def read_header(
    read: Callable[[int], bytes], *, name: str, file: str | os.PathLike[str]
) -> NpyHeader:
    """Parses a header; `read(n)` gives the next n bytes, or fewer at the end.

    name: what the array is called, for its fields and for messages.
    Raises CorruptFileError, UnsupportedFormatError, UnsupportedDtypeError, PickledArrayError,
    DuplicateVariableError.
    """

    def take(count: int) -> bytes:
        data = read(count)
        if len(data) != count:
            raise CorruptFileError("is empty or ends within its header", file=file, variable=name)
        return data

    magic = take(len(MAGIC_PREFIX) + 2)
    if not magic.startswith(MAGIC_PREFIX):
        raise CorruptFileError("is not .npy data (wrong first bytes)", file=file, variable=name)
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
    shape, fortran_order, dtype = _parsed(take(length), major, file, name)
    header = NpyHeader(
        dtype=dtype,
        shape=shape,
        # With one axis longer than 1 the two orders are the same.
        fortran_order=fortran_order and sum(length != 1 for length in shape) > 1,
        data_offset=len(magic) + length_bytes + length,
        fields=_fields(name, dtype, file),
    )
    if header.data_bytes >= 1 << 62:
        raise CorruptFileError(f"says its shape is {shape}", file=file, variable=name)
    return header


def _fields(name: str, dtype: np.dtype[Any], file: str | os.PathLike[str]) -> tuple[Field, ...]:
    try:
        return tuple(fields_of(name, dtype, file=file))
    except PickledArrayError:
        raise
    except UnsupportedDtypeError as error:
        # The file is opened as a whole, whatever of it is ignored.
        raise UnsupportedDtypeError(
            error.message, file=file, variable=error.variable, remedy=_REMEDY
        ) from None


def _parsed(
    text: bytes, version: int, file: str | os.PathLike[str], name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether the order is Fortran's, and dtype, as NumPy reads them."""
    from numpy.lib.format import read_array_header_2_0

    with guarded(Path(file), name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Version 3 is version 2 in UTF-8; escaped, NumPy takes its characters for what they are.
        plain = text.decode().encode("ascii", "backslashreplace") if version == 3 else text
        stream = io.BytesIO(len(plain).to_bytes(4, "little") + plain)
        shape, order, dtype = read_array_header_2_0(stream)
    if dtype.subdtype is not None or not all(type(n) is int and n >= 0 for n in shape):
        raise CorruptFileError("has a wrong descr or shape", file=file, variable=name)
    if len(shape) > MAX_DIMENSIONS:
        raise UnsupportedFormatError(
            f"has {len(shape)} dimensions, of which {MAX_DIMENSIONS} at most are read",
            file=file,
            variable=name,
            remedy="write it with fewer",
        )
    return shape, order, dtype
