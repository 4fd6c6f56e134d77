"""Lists and tuples as arrays, where NumPy takes every value over as it is.

It makes floats of integers that no integer type holds together, and text of numbers beside text;
values that differ would then be equal, or be compared without their bound.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.objects import refuse_zero_at_end
from ciwrap.errors import UnsupportedDtypeError, UsageError
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    ArrayOf = Callable[[Any, str | None], NDArray[Any]]

_MOST_DIMENSIONS = 64
# Older versions of NumPy have arrays of 32 dimensions.
_MOST_TOGETHER = 32
_NUMBERS = frozenset({float, int, bool, complex})
# What a value has that says more than its elements.
_CARRY = ("unit", "units", "mask", "dims", "iloc", "coords", "colnames", "column_names")
# Integers up to here are exact in float64.
_LARGEST_EXACT = 1 << 53
_ONE_BY_ONE = "compare its parts one by one, each by its name"


def is_one_array(values: Sequence[Any]) -> bool:
    """Whether all items, and items of items, are of one kind (numbers, bool, text) and shape.

    A list of other things, quantities or None say, is more than one array has room for.
    """
    return _shape_and_kind(values, 0) is not None


def _shape_and_kind(value: Any, depth: int) -> tuple[tuple[int, ...], str] | None:
    """None if there is no one shape, or no one kind (text, bool, number; '' for nothing at all)."""
    if isinstance(value, (list, tuple)):
        if depth >= _MOST_TOGETHER:
            return None
        if depth and hasattr(type(value), "_fields"):
            return None
        kinds = set(map(type, value))
        if kinds <= _NUMBERS:
            return _of_numbers(len(value), kinds)
        inner = {_shape_and_kind(one, depth + 1) for one in value}
        found = inner.pop()
        return None if inner or found is None else ((len(value), *found[0]), found[1])
    if isinstance(value, (str, bytes)):
        return (), "text" if isinstance(value, str) else "bytes"
    if isinstance(value, Enum):
        return None
    if isinstance(value, (int, float, complex)):
        return (), "bool" if isinstance(value, bool) else "number"
    is_plain = type(value) is np.ndarray or isinstance(value, np.generic)
    if is_plain or (
        hasattr(type(value), "__array__") and not any(hasattr(value, key) for key in _CARRY)
    ):
        return _of_array(value)
    return None


def _of_numbers(count: int, kinds: set[type]) -> tuple[tuple[int, ...], str] | None:
    """bool is a kind of its own: NumPy would make numbers of it, for which a bound is meant."""
    if bool not in kinds:
        return (count,), "number" if kinds else ""
    return ((count,), "bool") if len(kinds) == 1 else None


def _of_array(value: Any) -> tuple[tuple[int, ...], str] | None:
    dtype = getattr(value, "dtype", None)
    kind = getattr(dtype, "kind", "f")
    if kind in "OV":
        return None
    if kind in "mM":
        return tuple(value.shape), str(dtype)
    word = {"U": "text", "S": "bytes", "b": "bool"}.get(kind, "number")
    return tuple(getattr(value, "shape", ())), word


class _Found:
    """Which kinds of values a list holds. integers: one of them all that are large."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.largest = 0

    def add_integers(self, values: Sequence[Any]) -> None:
        self.kinds.add("i")
        self.largest = max(self.largest, int(max(values)), -int(min(values)))


def array_of_list(values: Sequence[Any], name: str | None, array_of: ArrayOf) -> NDArray[Any]:
    """An array of the same values; an object array where there is none.

    array_of: makes arrays of what is neither a number, text nor a list. Raises UsageError if parts
    have different shapes or numbers stand beside text, UnsupportedDtypeError if integers would be
    rounded.
    """
    found = _Found()
    _look_through(values, found, name, array_of, 0)
    is_text = bool(found.kinds & {"U", "S"})
    if is_text and len(found.kinds) > 1:
        raise UsageError(
            f"{_called(name)} holds text beside other values, and NumPy would make text of all",
            remedy="give numbers and text as two arrays",
        )
    if "b" in found.kinds and len(found.kinds) > 1:
        raise UsageError(
            f"{_called(name)} holds bools beside numbers, and NumPy would make numbers of all",
            remedy="give numbers and bools as two arrays",
        )
    if "i" in found.kinds and found.kinds & {"f", "c"} and found.largest > _LARGEST_EXACT:
        raise UnsupportedDtypeError(
            "holds floats and an integer beyond 2^53, which float64 would round",
            variable=name,
            remedy="give integers and floats as two arrays",
        )
    try:
        array = np.asarray(values)
    except (OverflowError, ValueError):
        raise UsageError(
            f"{_called(name)} is not an array: its parts have different lengths or shapes",
            remedy=_ONE_BY_ONE,
        ) from None
    if array.dtype.hasobject and found.kinds <= {"i", "b"} and found.kinds:
        raise UnsupportedDtypeError(
            "holds an integer beyond 64 bits, which has no defined comparison",
            variable=name,
            remedy="give smaller integers, or text",
        )
    if array.dtype.kind in "fc" and found.kinds <= {"i", "b"} and "i" in found.kinds:
        raise UnsupportedDtypeError(
            "holds integers that no integer type of NumPy holds together; float64 would round them",
            variable=name,
            remedy="give numpy.array(values, dtype='uint64'), or smaller numbers",
        )
    return array


def _look_through(
    values: Sequence[Any], found: _Found, name: str | None, array_of: ArrayOf, depth: int
) -> None:
    if depth > _MOST_DIMENSIONS:
        raise UsageError(
            f"{_called(name)} is nested deeper than an array can be", remedy=_ONE_BY_ONE
        )
    kinds = set(map(type, values))
    for kind in kinds:
        if kind is float:
            found.kinds.add("f")
            continue
        some: Sequence[Any] = (
            values if len(kinds) == 1 else [one for one in values if type(one) is kind]
        )
        if issubclass(kind, (list, tuple)):
            for one in some:
                _look_through(one, found, name, array_of, depth + 1)
        elif issubclass(kind, (str, bytes)):
            _look_at_text(some, found, name)
        elif issubclass(kind, (bool, np.bool_)):
            found.kinds.add("b")
        elif issubclass(kind, (int, np.integer)):
            found.add_integers(some)
        elif issubclass(kind, (float, complex, np.inexact)):
            found.kinds.add("f")
        else:
            _look_at_arrays([array_of(one, name) for one in some], found)


def _look_at_text(values: Sequence[Any], found: _Found, name: str | None) -> None:
    found.kinds.add("S" if isinstance(values[0], bytes) else "U")
    for one in values:
        refuse_zero_at_end(one, name)


def _look_at_arrays(arrays: Sequence[NDArray[Any]], found: _Found) -> None:
    for array in arrays:
        kind = "i" if array.dtype.kind == "u" else array.dtype.kind
        found.kinds.add(kind)
        if kind == "i" and array.size:
            found.add_integers([int(array.max()), int(array.min())])


def _called(name: str | None) -> str:
    return repr(name) if name else "the list"
