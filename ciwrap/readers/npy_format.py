"""The header of .npy data, read without ever unpickling anything."""

from __future__ import annotations

import ast
import math
import re
import warnings
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.dtypes import Field, fields_of
from ciwrap.errors import (
    CorruptFileError,
    PickledArrayError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
)
from ciwrap.late import numpy as np
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
# A length written by Python 2.
_LONG = re.compile(r"(?<=\d)L(?=\s*[,)])")


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
    text = take(length).decode("utf-8" if major == 3 else "latin-1", "replace")
    descr, fortran_order, shape = _parse(text, file, name)
    dtype = _dtype(descr, file, name)
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


def _parse(text: str, file: str | os.PathLike[str], name: str) -> tuple[Any, bool, tuple[int, ...]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(_LONG.sub("", text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise CorruptFileError(
            "has a header that is not a dictionary", file=file, variable=name
        ) from None
    if not isinstance(value, dict) or set(value) != {"descr", "fortran_order", "shape"}:
        raise CorruptFileError(
            "has a header without exactly descr, fortran_order and shape", file=file, variable=name
        )
    shape, order = value["shape"], value["fortran_order"]
    if not isinstance(order, bool):
        raise CorruptFileError("has a header with a wrong fortran_order", file=file, variable=name)
    is_shape = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape:
        raise CorruptFileError("has a header with a wrong shape", file=file, variable=name)
    if len(shape) > MAX_DIMENSIONS:
        raise UnsupportedFormatError(
            f"has {len(shape)} dimensions, of which {MAX_DIMENSIONS} at most are read",
            file=file,
            variable=name,
            remedy="write it with fewer",
        )
    return value["descr"], order, shape


def _dtype(descr: Any, file: str | os.PathLike[str], name: str) -> np.dtype[Any]:
    from numpy.lib.format import descr_to_dtype

    if isinstance(descr, str) and descr[-1:] == "O":
        raise PickledArrayError(
            "holds Python objects; unpickling them could run code, so they are refused",
            file=file,
            variable=name,
            remedy="write numbers or fixed-width strings",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dtype = descr_to_dtype(descr)
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        SyntaxError,
        MemoryError,
        RecursionError,
    ):
        dtype = None
    if dtype is None or dtype.subdtype is not None:
        raise CorruptFileError("has a header with a wrong descr", file=file, variable=name)
    return dtype
