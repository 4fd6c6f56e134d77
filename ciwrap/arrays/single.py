"""Python's own objects, and lists of them, as arrays that are compared exactly.

What NumPy has no type for becomes text with a label, so that None is no match for the text 'None'.
Lists are not left to NumPy, which makes floats of large integers and text of numbers beside text:
values that differ would then be equal, or be compared without their bound.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from ciwrap.base.errors import UnsupportedDtypeError, UsageError
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

TYPE = "type"
_AS_TEXT: dict[type, str] = {
    datetime.datetime: "datetime",
    datetime.date: "date",
    datetime.time: "time",
    datetime.timedelta: "timedelta",
    decimal.Decimal: "decimal",
    fractions.Fraction: "fraction",
    uuid.UUID: "uuid",
}
_OF_LIBRARIES = {
    "pandas.Timestamp": "datetime",
    "pandas.Timedelta": "timedelta",
    "pandas.NaTType": "datetime",
    "pandas.Period": "period",
    "pandas.Interval": "interval",
}


def library_name(kind: type) -> str:
    """A class as its library's users call it, wherever it is defined there: "pandas.Series"."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def kind_of_object(value: Any) -> str | None:
    """What an object is that has an exact text: "str", "bytes", "date", ...; None for others.

    One of a class derived from these that carries more is none of them.
    """
    kind = type(value)
    if kind is str or kind is np.str_:
        return "str"
    if kind is bytes or kind is np.bytes_:
        return "bytes"
    if isinstance(value, enum.Enum):
        return "enum"
    if kind in _AS_TEXT:
        return _AS_TEXT[kind]
    library = library_name(kind)
    if library.startswith("cftime."):
        year = ", with a year 0" if value.has_year_zero else ""
        return f"datetime, {value.calendar or 'no'} calendar{year}"
    return _OF_LIBRARIES.get(library) or _kind_of_derived(value)


def _kind_of_derived(value: Any) -> str | None:
    """Of an object whose class derives from one of these, and that carries nothing else."""
    for base, word in _AS_TEXT.items():
        if isinstance(value, base):
            return None if own_attributes(value).keys() - vars(base).keys() else word
    return None


def is_nothing(value: Any) -> bool:
    """Whether this stands for a missing value: None, pandas' NA."""
    return value is None or library_name(type(value)) == "pandas.NAType"


def text_of_object(value: Any, name: str | None) -> str | bytes:
    """The exact text of an object that has a kind. Raises UnsupportedDtypeError for a text that
    ends with a zero.
    """
    if isinstance(value, enum.Enum):
        return _text_of_member(value)
    if isinstance(value, (str, bytes)):
        refuse_zero_at_end(value, name)
        return value
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text + _zone_of(value)
    frequency = getattr(value, "freqstr", None)  # of pandas: a year that ends in March is another
    return str(value) if frequency is None else f"{value} {frequency}"


def _zone_of(value: Any) -> str:
    """The name of a time's zone, unless the zone is no more than the offset that its text has."""
    zone = getattr(value, "tzinfo", None)
    if zone is None or isinstance(zone, datetime.timezone):
        return ""
    # A name of the time zone database: of zoneinfo, of pytz; else what it calls itself at the time.
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return f"[{name or zone.tzname(value if isinstance(value, datetime.datetime) else None)}]"


def refuse_zero_at_end(text: str | bytes, name: str | None) -> None:
    if text[-1:] in ("\0", b"\0"):
        raise UnsupportedDtypeError(
            "holds text that ends with a zero, which NumPy would drop",
            variable=name,
            remedy="write the text without it",
        )


def _text_of_member(value: enum.Enum) -> str:
    kind, name = type(value).__name__, getattr(value, "name", None)
    if name is None:  # a combination of flags may have none
        return f"{kind}({value.value!r})"
    # One that is a number is computed with; another one is known by its name.
    number = f" = {value.value!r}" if isinstance(value, (int, float, complex)) else ""
    return f"{kind}.{name}{number}"


def array_of_object(value: Any, name: str | None) -> tuple[Any, tuple[tuple[str, str], ...]] | None:
    """An object as an array of one element, and its labels; None if it is none of these kinds.

    Raises what `text_of_object` raises.
    """
    if is_nothing(value):
        return np.asarray(False), ((TYPE, "None"),)
    kind = kind_of_object(value)
    if kind is None:
        return None
    labels = () if kind in ("str", "bytes") else ((TYPE, kind),)
    return np.asarray(text_of_object(value, name)), labels


def array_of_objects(
    values: list[Any], name: str | None
) -> tuple[Any, tuple[tuple[str, str], ...]] | None:
    """Objects of one kind as an array of their texts, and its labels; None if they are not.

    Raises what `text_of_object` raises.
    """
    kinds = {kind_of_object(one) for one in values}
    if len(kinds) != 1 or None in kinds:
        return None
    kind = str(kinds.pop())
    labels = () if kind in ("str", "bytes") else ((TYPE, kind),)
    return np.asarray([text_of_object(one, name) for one in values]), labels


def fields_of_object(value: Any) -> tuple[dict[str, Any], bool] | None:
    """The fields of an object that is no more than its fields: a data class, a named tuple, a
    SimpleNamespace, or one of attrs, msgspec or pydantic; and whether it carries more under private
    names, which are not compared. None for others, for classes, and for what derives from a list,
    a float, an array or the like: that is more than its fields.

    What else it carries under a public name is something to compare as well: SciPy's named tuples
    have results there. A field without a value is none.
    """
    kind = type(value)
    if isinstance(value, type) or _holds_more_than_names(value):
        return None
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, types.SimpleNamespace):
        names = list(vars(value))
    elif isinstance(value, tuple) and hasattr(kind, "_fields"):
        names = list(kind._fields)
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    elif hasattr(kind, "__struct_fields__"):
        names = list(kind.__struct_fields__)
    elif isinstance(getattr(kind, "model_fields", None), dict):
        names = list(kind.model_fields)
    else:
        return None
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    rest = {key: one for key, one in own_attributes(value).items() if key not in found}
    extra = {key: one for key, one in rest.items() if not key.startswith("_")}
    more = getattr(value, "__pydantic_extra__", None) or {}
    hidden = [
        key
        for key, one in rest.items()
        if key.startswith("_") and one is not None and key not in _OF_PYDANTIC
    ]
    return {**extra, **more, **found}, bool(hidden)


def _holds_more_than_names(value: Any) -> bool:
    """Whether an object has room for more than what its `__dict__` and its slots name, as the items
    of a list, the number of a float, or whatever a class written in C keeps.
    """
    kind = type(value)
    if isinstance(value, tuple):
        return len(value) != len(getattr(kind, "_fields", ()))
    if isinstance(value, types.SimpleNamespace):
        return False
    members = {
        member
        for base in kind.__mro__
        if "__slots__" in vars(base)
        for member in vars(base).values()
        if isinstance(member, types.MemberDescriptorType)
    }
    # An offset below zero lies outside of what is counted as the object's size.
    count = len(members) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > object.__basicsize__ + count * _POINTER


_POINTER = tuple.__itemsize__

# What it allows beside its fields, which is compared, and which of them were given.
_OF_PYDANTIC = frozenset({"__pydantic_extra__", "__pydantic_fields_set__"})


# What their instances have is known, whatever their class calls a member.
_KNOWN_BASES = frozenset(
    {object, dict, OrderedDict, defaultdict, Counter, deque, list, tuple, int, float, complex}
)


def own_attributes(value: Any) -> dict[str, Any]:
    """What an object carries by itself, in its `__dict__` and in slots, by name; but for what its
    class works out of that, and keeps (`functools.cached_property`).
    """
    bases = [one for one in type(value).__mro__ if one not in _KNOWN_BASES]
    found = {
        key: one
        for key, one in getattr(value, "__dict__", {}).items()
        if not any(isinstance(vars(base).get(key), functools.cached_property) for base in bases)
    }
    for base in bases:
        for key, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType) and hasattr(value, key):
                found[key] = getattr(value, key)
    return found


if TYPE_CHECKING:
    ArrayOf = Callable[[Any, str | None], NDArray[Any]]

_MOST_DIMENSIONS = 64
# Older versions of NumPy have arrays of 32 dimensions.
_MOST_TOGETHER = 32
_NUMBERS = frozenset({float, int, bool, complex})
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
        if carries_more(value):
            return None
        kinds = set(map(type, value))
        if kinds <= _NUMBERS:
            return _of_numbers(len(value), kinds)
        inner = {_shape_and_kind(one, depth + 1) for one in value}
        found = inner.pop()
        return None if inner or found is None else ((len(value), *found[0]), found[1])
    kind = kind_of_object(value)
    if kind is not None:
        return ((), {"str": "text"}.get(kind, kind)) if kind in ("str", "bytes") else None
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return _of_array(value)
    if isinstance(value, (int, float, complex)) and not carries_more(value):
        return (), "bool" if isinstance(value, bool) else "number"
    return None


def carries_more(value: Any) -> bool:
    """Whether an object of a class derived from one of Python's has attributes of its own."""
    return type(value).__module__ != "builtins" and bool(own_attributes(value))


def _of_numbers(count: int, kinds: set[type]) -> tuple[tuple[int, ...], str] | None:
    """bool is a kind of its own: NumPy would make numbers of it, for which a bound is meant."""
    if bool not in kinds:
        return (count,), "number" if kinds else ""
    return ((count,), "bool") if len(kinds) == 1 else None


def _of_array(value: Any) -> tuple[tuple[int, ...], str] | None:
    kind = value.dtype.kind
    if kind in "OVT":
        return None
    if kind in "mM":
        return value.shape, str(value.dtype)
    return value.shape, {"U": "text", "S": "bytes", "b": "bool"}.get(kind, "number")


class _ListKinds:
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
    found = _ListKinds()
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
    values: Sequence[Any], found: _ListKinds, name: str | None, array_of: ArrayOf, depth: int
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
            found.kinds.add("S" if issubclass(kind, bytes) else "U")
            for one in some:
                refuse_zero_at_end(one, name)
        elif issubclass(kind, (bool, np.bool_)):
            found.kinds.add("b")
        elif issubclass(kind, (int, np.integer)):
            found.add_integers(some)
        elif issubclass(kind, (float, complex, np.inexact)):
            found.kinds.add("f")
        else:
            for array in [array_of(one, name) for one in some]:
                of_array = "i" if array.dtype.kind == "u" else array.dtype.kind
                found.kinds.add(of_array)
                if of_array == "i" and array.size:
                    found.add_integers([int(array.max()), int(array.min())])


def _called(name: str | None) -> str:
    return repr(name) if name else "the list"
