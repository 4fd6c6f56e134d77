"""JSON as plain values, and these as typed records.

Records are msgspec's Structs and dataclasses; only here msgspec's errors become ours.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import cache
from numbers import Real
from typing import Any, Literal, NoReturn, TypeVar, cast

import msgspec
import msgspec.inspect

from ciwrap.base.late import json

Step = str | int
_T = TypeVar("_T")

# JSON has no NaN and no infinities: documents write them as these texts.
NOT_FINITE = frozenset({"nan", "inf", "-inf"})

_PLACE = re.compile(r"(?P<message>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_OUT_OF_RANGE = "Number out of range"
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<number>\d+)\]|(?P<any>\[\.\.\.\])")
_EXPECTED = re.compile(
    r"Expected (?P<wanted>`[^`]*`)(?P<limits>.*?)(?:, got (?P<found>`[^`]*`|\d+))?"
)
_FIELD = re.compile(
    r"Object (?P<how>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL
)
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


class _Head(msgspec.Struct):
    """What every version of a document begins with."""

    format: int


class DocumentHead(msgspec.Struct, frozen=True):
    """What every document begins with that a command writes with `--json`; its kind follows."""

    schema_version: Literal[1]


class DocumentError(ValueError):
    """What is wrong with a document, in one line without its file.

    message: what is wrong. path: the keys and positions that lead to it, () for the whole document.
    """

    def __init__(self, message: str, path: tuple[Step, ...] = ()) -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"`{path_text(self.path)}` {self.message}" if self.path else f"it {self.message}"


class NewerFormatError(DocumentError):
    """A document of a later release: nothing says that it is damaged."""


def path_text(path: tuple[Step, ...]) -> str:
    """`variables[0].shape`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


def to_record(
    value: object, kind: type[_T], more: Mapping[type, Callable[[Any], Any]] | None = None
) -> _T:
    """The record of type `kind` that plain values state.

    Types are not converted, but for an integer where a float is asked for. A field of type
    `numbers.Real` is a float that may also be written as "nan", "inf" or "-inf". more: how values
    of further types are read. Raises DocumentError.
    """
    made = more or {}

    def decode(kind: type, value: object) -> object:
        return made[kind](value) if kind in made else decode_custom(kind, value)

    try:
        return msgspec.convert(value, kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise _located(error) from None
    except UnicodeEncodeError:
        # Half a surrogate pair in a key or an enumeration's word, which msgspec looks up as UTF-8.
        raise DocumentError("holds text that is not Unicode") from None


def to_versioned_record(value: object, kind: type[_T], newest: int) -> _T:
    """As `to_record`, for documents with a number `format` that says how they are to be read.

    newest: the newest format that this release reads; they begin with 1. Raises NewerFormatError.
    """
    version = to_record(value, _Head).format
    if version > newest:
        raise NewerFormatError(
            f"has format {version}, this ciwrap reads up to {newest}; update ciwrap"
        )
    if version < 1:
        raise DocumentError(f"has format {version}, which does not exist")
    return to_record(value, kind)


def decode_custom(kind: type, value: object) -> object:
    """What msgspec calls for types it does not know."""
    if kind is not Real:
        raise NotImplementedError(f"documents hold no {kind.__name__}")
    if isinstance(value, str) and value in NOT_FINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("Expected `float`")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(_OUT_OF_RANGE) from None


def _located(error: msgspec.ValidationError) -> DocumentError:
    message, path, is_key = _parts(str(error))
    field = _FIELD.fullmatch(message)
    if field is not None:
        words = "is missing" if field["how"].startswith("missing") else "is not known here"
        return DocumentError(words, (*path, field["name"]))
    if is_key:
        return DocumentError("has a key that is not text", path)
    return DocumentError(_in_our_words(message), path)


def _parts(text: str) -> tuple[str, tuple[Step, ...], bool]:
    """The message, the path, and whether the fault is in a key.

    A step of the path is `*` where msgspec does not tell which of a mapping's values it means.
    """
    found = _PLACE.fullmatch(text)
    assert found is not None
    steps = tuple(
        step["name"] or (int(step["number"]) if step["number"] else "*")
        for step in _STEP.finditer(found["path"] or "")
    )
    return found["message"], steps, found["key"] is not None


def _in_our_words(message: str) -> str:
    enum = re.fullmatch(r"Invalid enum value (.*)", message, re.DOTALL)
    if enum is not None:
        return f"cannot be {enum[1]}"
    found = _EXPECTED.fullmatch(message)
    if message == _OUT_OF_RANGE or message == "Integer value out of range":
        return "is out of range"
    if found is None:
        # What a record said when it was made of values of the right types.
        return f"does not hold together: {message}"
    kinds = [_WORDS.get(kind, kind) for kind in found["wanted"].strip("`").split(" | ")]
    got = found["found"]
    if got is None or not got.startswith("`"):
        tail = "" if got is None else f", not {got}"
    else:
        tail = f", not {_WORDS.get(got.strip('`'), got)}"
    wanted = " or ".join(kind for kind in kinds if kind != "null") or "null"
    return f"must be {wanted}{found['limits']}{tail}"


_PLAIN_TYPES = frozenset({str, int, bool, type(None)})


def to_plain(
    value: Any,
    always: Mapping[type, frozenset[str]],
    more: Mapping[type, Callable[[Any], Any]] | None = None,
) -> Any:
    """Any tree of records, enums, tuples and numbers as strict JSON values.

    Fields at their default are left out, but for those named in `always` by the record's type.
    more: what values of further types are turned into first.
    """
    # Nearly all are one of these, and a check's result has a hundred of them.
    kind = type(value)
    if kind in _PLAIN_TYPES:
        return value
    if kind is list or kind is tuple:
        return [to_plain(item, always, more) for item in value]
    if isinstance(value, msgspec.Struct):
        return _record_to_plain(value, always, more)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_plain(item, always, more) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, always, more) for key, item in value.items()}
    for known, turn in (more or {}).items():
        if isinstance(value, known):
            return to_plain(turn(value), always, more)
    return _record_to_plain(value, always, more)


def _record_to_plain(
    value: Any,
    always: Mapping[type, frozenset[str]],
    more: Mapping[type, Callable[[Any], Any]] | None,
) -> dict[str, Any]:
    kept = always.get(type(value), frozenset())
    return {
        name: content if type(content) in _PLAIN_TYPES else to_plain(content, always, more)
        for name, default in _defaults(cast("Hashable", type(value)))
        if (content := getattr(value, name)) != default or name in kept
    }


@cache
def _defaults(kind: type) -> tuple[tuple[str, object], ...]:
    """The fields of a record's type in their order, each with its default."""
    info = msgspec.inspect.type_info(kind)
    if not isinstance(info, (msgspec.inspect.DataclassType, msgspec.inspect.StructType)):
        raise TypeError(f"{kind.__name__} has no form in a document")
    return tuple(
        (
            item.name,
            item.default if item.default_factory is msgspec.NODEFAULT else item.default_factory(),
        )
        for item in info.fields
    )


_SHOWN = 40
_IS_NO_ZERO = re.compile(r"[+-]?[0._]*[1-9]")


def double_of(text: str) -> float:
    """The double nearest to a decimal number. Raises DocumentError for one that is so large that it
    would be infinite, or so small that it would be zero.
    """
    value = float(text)
    if not math.isfinite(value):
        raise DocumentError(f"holds a number that is too large: {text[:_SHOWN]}")
    if value == 0 and _IS_NO_ZERO.match(text):
        raise DocumentError(f"holds a number that is too small: {text[:_SHOWN]}")
    return value


# 2^63 has 19 digits; a float needs no more than 17, and exponents.
MOST_DIGITS = 40
# A value takes some 70 bytes of memory, however few it takes in the text.
MOST_VALUES = 4_000_000


def load_json(data: bytes, *, most_values: int = MOST_VALUES, takes_constants: bool = False) -> Any:
    """The plain values of a document.

    Refuses keys given twice, NaN and infinities, numbers beyond a double's range or of more than 40
    characters, and nesting beyond what Python's stack takes. The caller limits the bytes.
    takes_constants: whether NaN, Infinity and -Infinity are numbers, as Python's own writer has
    them. Raises DocumentError.
    """
    if data.count(b",") + data.count(b"[") + data.count(b"{") > most_values:
        raise DocumentError(f"holds more than {most_values} values")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=double_of,
            parse_constant=float if takes_constants else _constant,
        )
    except UnicodeDecodeError:
        raise DocumentError("is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"is not JSON: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise DocumentError("is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        name, _ = times.most_common(1)[0]
        raise DocumentError(f"has the key {name[:100]!r} twice")
    return found


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise DocumentError("holds a number that is too long")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise DocumentError(f"holds {text}, which JSON does not know")
