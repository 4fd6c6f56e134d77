"""The forms of values that only ciwrap.yaml holds; those of settings are in ciwrap.model.forms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.config.nodes import Quoted
from ciwrap.model.forms import (
    FALSE_WORDS,
    FLAG,
    TEXT,
    TRUE_WORDS,
    Form,
    FormError,
    cut,
    one_of,
    parse_number,
    read_each,
    shown,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _any_text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FormError(f"must be text, not {shown(value)}")
    return str(value)


def _number(is_meant: Callable[[float], bool], words: str, schema: Mapping[str, Any]) -> Form:
    """Numbers of a range. words: what they must be."""

    def read(value: Any) -> float:
        number = parse_number(value)
        if not is_meant(number):
            raise FormError(f"must be {words}, not {cut(value)}")
        return float(number)

    return Form(read, read, schema=schema)


def _header_word(value: Any) -> str:
    """YAML's other spellings of yes and no mean the same."""
    text = value.lower() if isinstance(value, str) else ""
    if text in TRUE_WORDS | FALSE_WORDS:
        return "yes" if text in TRUE_WORDS else "no"
    word: str = one_of("auto", "yes", "no").from_text(value)
    return word


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (TEXT.from_text(value),)
    if not isinstance(value, list):
        raise FormError(f"must be a text or a list of texts, not {shown(value)}")
    return read_each(value, TEXT.from_text)


def _marks(value: Any) -> str | tuple[str, ...]:
    """One text, which may be empty, or several."""
    if isinstance(value, list):
        return _texts(value)
    return _any_text(value)


def _flag_or_texts(value: Any) -> bool | tuple[str, ...]:
    """Yes, no, or which ones."""
    if isinstance(value, list):
        return _texts(value)
    flag: bool = FLAG.from_text(value)
    return flag


def _command_words(value: Any) -> str | tuple[str, ...]:
    if not isinstance(value, list):
        text: str = TEXT.from_text(value)
        return text
    if not value:
        raise FormError("must hold at least one word")
    return read_each(value, _word)


def _word(value: Any) -> str:
    """A word of a command. An unquoted `null` or `~` is nothing in YAML, and would be no word."""
    if value is None:
        raise FormError("must be text, not nothing; put it in quotes")
    return _any_text(value)


def _variable_name(value: Any) -> str:
    """What an environment can have; whoever starts a command would refuse anything else."""
    if not value or "=" in value:
        raise FormError("is not a variable name", at_key=True)
    return str(value)


def _lengths(value: Any) -> tuple[int, ...]:
    """A shape; a single length means one axis."""
    if isinstance(value, str):
        return (_LENGTH.from_text(value),)
    if not isinstance(value, list):
        raise FormError(f"must be a list, not {shown(value)}")
    return read_each(value, _LENGTH.from_text)


def _format_version(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal():
        if int(value[:9]) == 1 and len(value) < 10:
            return 1
        raise FormError(
            f"version {cut(value)} is not known to this release (it knows 1); update ciwrap"
        )
    raise FormError(f"must be 1, not {shown(value)}")


def plain_value(value: Any) -> Any:
    """A value as YAML would type it, `1e-6` included; for options that only their reader knows."""
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if not isinstance(value, str) or isinstance(value, Quoted):
        return None if value is None else str(value)
    if value.lower() in TRUE_WORDS | FALSE_WORDS:
        return value.lower() in TRUE_WORDS
    try:
        return parse_number(value) if value.strip("+-").lower() not in _WORDS else str(value)
    except FormError:
        return str(value)


def _records(value: Any) -> list[Any]:
    """Descriptions of records; what they may say, their reader knows."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise FormError(f"must be a list of mappings, not {shown(value)}")
    return [plain_value(one) for one in value]


_WORDS = frozenset({".nan", "nan", ".inf", "inf"})
_LENGTH = whole(-1, 1 << 62)
_MANY_TEXTS = {"type": "array", "items": {"type": "string"}}

MARKS = Form(
    _marks, _marks, schema={"anyOf": [{"type": ["string", "number", "boolean"]}, _MANY_TEXTS]}
)
ANY_TEXT = Form(_any_text, _any_text, schema={"type": ["string", "number", "boolean"]})
VARIABLE_NAME = Form(_variable_name, _variable_name)
TEXTS = Form(_texts, _texts, schema={"anyOf": [{"type": "string"}, _MANY_TEXTS]})
FLAG_OR_TEXTS = Form(
    _flag_or_texts, _flag_or_texts, schema={"anyOf": [dict(FLAG.schema), _MANY_TEXTS]}
)
SHORT_COMMANDS = ({"type": "string", "minLength": 1}, {**_MANY_TEXTS, "minItems": 1})
COMMAND = Form(_command_words, _command_words, schema={"anyOf": list(SHORT_COMMANDS)})
RECORDS = Form(_records, _records, schema={"type": "array", "items": {"type": "object"}})
MARK_BYTES = whole(4, 8)
OFFSET = whole(0, 1 << 62)
LENGTHS = Form(
    _lengths,
    _lengths,
    schema={"anyOf": [dict(_LENGTH.schema), {"type": "array", "items": dict(_LENGTH.schema)}]},
)
_ABOVE_ZERO = {"type": "number", "exclusiveMinimum": 0}
SECONDS = _number(lambda one: 0 < one < 1e9, "a positive number of seconds", _ABOVE_ZERO)
STEP_SIZE = _number(lambda one: 0 < one < math.inf, "a number above 0", _ABOVE_ZERO)
MARGIN = STEP_SIZE
CONFIDENCE = _number(
    lambda one: 0.5 <= one < 1,
    "from 0.5 to below 1",
    {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1},
)
BYTE_ORDER = one_of("little", "big")
HEADER_WORD = Form(
    _header_word, _header_word, schema={"type": "string", "enum": ["auto", "yes", "no"]}
)
COLUMN_TYPE = one_of("int", "float", "text")
FORMAT_VERSION = Form(_format_version, _format_version, schema={"type": "integer", "const": 1})
