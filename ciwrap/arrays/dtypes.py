"""Dtypes as the readers state them: array-protocol strings, and "<bf2" for bfloat16.

NumPy has no bfloat16 of its own; its bytes travel as unsigned 16-bit integers (`storage_dtype`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ciwrap.errors import (
    CorruptFileError,
    DuplicateVariableError,
    PickledArrayError,
    UnsupportedDtypeError,
)
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    import os

_FLOATS = {2, 4, 8}
_COMPLEXES = {8, 16}
# Of the common dtypes, without NumPy.
_ORDERS = frozenset("<>|")
_ITEM_BYTES = {
    **{f"{kind}{size}": size for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"f{size}": size for size in sorted(_FLOATS)},
    **{f"c{size}": size for size in sorted(_COMPLEXES)},
    "b1": 1,
    "bf2": 2,
}
_IGNORE = "leave it out with 'ignore' in ciwrap.yaml, or write it as another type"


@lru_cache(maxsize=256)
def storage_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype in which arrays of this dtype are handed over."""
    if dtype[1:] == "bf2":
        return np.dtype(dtype[0] + "u2")
    return np.dtype(dtype)


def item_bytes(dtype: str) -> int:
    """How many bytes an element takes. Raises TypeError for what is not a dtype."""
    if dtype[:1] in _ORDERS and dtype[1:] in _ITEM_BYTES:
        return _ITEM_BYTES[dtype[1:]]
    return storage_dtype(dtype).itemsize


def dtype_text(
    dtype: np.dtype[Any], *, file: str | os.PathLike[str] | None = None, variable: str | None = None
) -> str:
    """The array-protocol string of a dtype that can be compared.

    Raises PickledArrayError for object arrays and UnsupportedDtypeError for other kinds without a
    defined comparison: dates, durations, long double, untyped bytes, strings of width 0.
    """
    kind, size = dtype.kind, dtype.itemsize
    if dtype.hasobject:
        raise PickledArrayError(
            "holds Python objects; unpickling them could run code, so they are refused",
            file=file,
            variable=variable,
            remedy="write numbers or fixed-width strings",
        )
    if (
        kind in "biu"
        or (kind == "f" and size in _FLOATS)
        or (kind == "c" and size in _COMPLEXES)
        or (kind in "SU" and size > 0)
    ):
        return str(dtype.str)
    if kind in "SU":
        what = "strings of width 0 have nothing to compare"
    elif kind == "V" and dtype.names is None:
        what = f"untyped bytes ({dtype.str}) have no defined comparison"
    else:
        what = f"values of type {dtype} have no defined comparison"
    raise UnsupportedDtypeError(what, file=file, variable=variable, remedy=_IGNORE)


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in this machine's byte order, in which NumPy has a name for it: float128."""
    return dtype.newbyteorder("=")


class Field(Struct, frozen=True):
    """One plain variable within a (structured) element.

    name: the variable's own name, with the field names after dots. inner_shape: of a subarray
    field. byte_offset: of the field in the element.
    """

    name: str
    dtype: str
    inner_shape: tuple[int, ...]
    byte_offset: int


def fields_of(
    name: str, dtype: np.dtype[Any], *, file: str | os.PathLike[str] | None = None
) -> list[Field]:
    """The variables that an array of this dtype holds: itself, or one per (nested) field.

    Raises UnsupportedDtypeError, PickledArrayError, DuplicateVariableError.
    """
    found: list[Field] = []
    _collect(name, dtype, (), 0, found, file)
    if not found:
        raise UnsupportedDtypeError("a record without fields", file=file, variable=name)
    names = [field.name for field in found]
    if len(set(names)) != len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DuplicateVariableError("two fields share this name", file=file, variable=twice)
    return found


def _collect(
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    offset: int,
    found: list[Field],
    file: str | os.PathLike[str] | None,
) -> None:
    if dtype.subdtype is not None:
        base, inner = dtype.subdtype
        if base.names is not None and inner:
            raise UnsupportedDtypeError(
                "an array of records within a record has no defined comparison",
                file=file,
                variable=name,
                remedy=_IGNORE,
            )
        _collect(name, base, shape + inner, offset, found, file)
    elif dtype.names is not None and dtype.fields is not None:
        for field_name in dtype.names:
            entry = dtype.fields[field_name]
            _collect(f"{name}.{field_name}", entry[0], shape, offset + entry[1], found, file)
    else:
        text = dtype_text(dtype, file=file, variable=name)
        found.append(Field(name, text, shape, offset))


def extract(elements: np.ndarray[Any, Any], dtype: np.dtype[Any], field: Field) -> Any:
    """The field's values of a one-dimensional array of elements, one-dimensional and contiguous.

    Records are elements of as many plain bytes as `dtype` has.
    """
    if dtype.names is None:
        return elements
    inner = storage_dtype(field.dtype)
    view = np.ndarray(
        (elements.size, *field.inner_shape),
        dtype=inner,
        buffer=elements.view(np.uint8),
        offset=field.byte_offset,
        strides=(dtype.itemsize, *_c_strides(field.inner_shape, inner.itemsize)),
    )
    return np.ascontiguousarray(view).reshape(-1)


def _c_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    strides: list[int] = []
    step = item_bytes
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


_NAMES = {
    "half": "f2",
    "float": "f8",
    "single": "f4",
    "double": "f8",
    "bfloat16": "bf2",
    "bf2": "bf2",
    "bool": "b1",
    "int": "i8",
    "byte": "i1",
}


def parse_dtype(text: str, *, big_endian: bool | None = None) -> str:
    """The dtype that a person wrote: "float32", "f4", ">i8", "bfloat16", "S12".

    big_endian: the byte order where the text has none (None: little). Raises CorruptFileError if
    the text is not a dtype or contradicts big_endian, UnsupportedDtypeError if it cannot be
    compared.
    """
    body = text.strip()
    order = body[:1] if body[:1] in "<>" else ""
    body = body[1:] if body[:1] in "<>|=" else body
    if order and big_endian is not None and (order == ">") != big_endian:
        raise CorruptFileError(f"dtype {text!r} contradicts its byte_order")
    order = order or (">" if big_endian else "<")
    body = _NAMES.get(body, body)
    if body == "bf2":
        return f"{order}bf2"
    try:
        dtype = np.dtype(body)
    except (TypeError, ValueError, SyntaxError) as error:
        raise CorruptFileError(f"{text!r} is not a dtype") from error
    if dtype.names is not None or dtype.subdtype is not None:
        raise UnsupportedDtypeError(f"dtype {text!r} must be a plain one")
    return dtype_text(dtype.newbyteorder(">" if order == ">" else "<"))
