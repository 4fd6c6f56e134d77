"""Python's own objects as arrays that are compared exactly: text, None, dates, decimals, enums.

NumPy has no type for most of them. They become text, and a label says what they were, so that None
is no match for the text 'None'.
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
from typing import Any

from ciwrap.errors import UnsupportedDtypeError
from ciwrap.late import numpy as np

TYPE = "type"
_AS_TEXT: dict[type, str] = {
    enum.Enum: "enum",
    datetime.datetime: "datetime",
    datetime.date: "date",
    datetime.time: "time",
    datetime.timedelta: "timedelta",
    decimal.Decimal: "decimal",
    fractions.Fraction: "fraction",
    uuid.UUID: "uuid",
}


def kind_of_object(value: Any) -> str | None:
    """What an object is that has an exact text: "str", "bytes", "date", ...; None for others."""
    if type(value) is str or type(value) is np.str_:
        return "str"
    if type(value) is bytes or type(value) is np.bytes_:
        return "bytes"
    for kind, word in _AS_TEXT.items():
        if isinstance(value, kind):
            return word
    return None


def is_nothing(value: Any) -> bool:
    """Whether this stands for a missing value: None, pandas' NA."""
    return value is None or type(value).__name__ == "NAType"


def text_of_object(value: Any, name: str | None) -> str | bytes:
    """The exact text of an object that has a kind. Raises UnsupportedDtypeError for a text that
    ends with a zero.
    """
    if isinstance(value, enum.Enum):
        return _text_of_member(value)
    if isinstance(value, (str, bytes)):
        refuse_zero_at_end(value, name)
        return value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


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


def fields_of_object(value: Any) -> dict[str, Any] | None:
    """The fields of an object that is no more than its fields: a data class, a named tuple, a
    SimpleNamespace, or one of attrs, msgspec or pydantic. None for others, and for classes.

    What else it carries under a public name is something to compare as well: SciPy's named tuples
    have results there.
    """
    kind = type(value)
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, types.SimpleNamespace):
        return dict(vars(value))
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
    found = {name: getattr(value, name) for name in names}
    extra = {key: one for key, one in own_attributes(value).items() if not key.startswith("_")}
    return {**extra, **(getattr(value, "__pydantic_extra__", None) or {}), **found}


def own_attributes(value: Any) -> dict[str, Any]:
    """What an object carries by itself, in its `__dict__` and in slots, by name; but for what its
    class works out of that, and keeps (`functools.cached_property`).
    """
    bases = type(value).__mro__
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
