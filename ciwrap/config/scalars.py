"""The kinds of value a configuration holds, each read from what was literally written."""

from __future__ import annotations

import copy
import difflib
import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError

from ciwrap.config.nodes import Scalar

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d{1,30}")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)\s*([A-Za-z]*)")
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_UNITS |= {"kb": 1000, "mb": 1000**2, "gb": 1000**3}
_TRUE = {"true", "yes", "on"}
_FALSE = {"false", "no", "off"}
_SPECIAL = {".nan": math.nan, "nan": math.nan, ".inf": math.inf, "inf": math.inf}
_SPECIAL |= {"+.inf": math.inf, "+inf": math.inf, "-.inf": -math.inf, "-inf": -math.inf}


def refusal(message: str, **context: Any) -> PydanticCustomError:
    """A validation error in our own words; `suggestion` and `keys` in the context are used as
    such.
    """
    # A template would give braces in the message a meaning, so it is handed over as a value.
    return PydanticCustomError("ciwrap", "{message}", {"message": message, **context})


def shown(value: Any) -> str:
    """What was written, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(cut(value))


def cut(value: Any) -> str:
    """What was written, short enough for a line."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise refusal(f"must be text, not {shown(value)}")
    if not value:
        raise refusal("must not be empty")
    return str(value)


def _any_text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise refusal(f"must be text, not {shown(value)}")
    return str(value)


def parse_number(value: Any) -> float | int:
    """A decimal number, an infinity or NaN, in quotes or not."""
    text = value.strip() if isinstance(value, str) else ""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise refusal(f"{cut(text)} is beyond the range of a double")
        return number
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    raise refusal(f"must be a number, not {shown(value)}")


def _bound_part(value: Any) -> float:
    number = parse_number(value)
    if not math.isfinite(number) or number < 0:
        raise refusal(f"must be finite and not negative, not {cut(value)}")
    try:
        return float(number) + 0.0
    except OverflowError:
        raise refusal(f"{cut(value)} is beyond the range of a double") from None


def _positive(value: Any) -> float:
    number = parse_number(value)
    if not 0 < number < 1e9:
        raise refusal(f"must be a positive number of seconds, not {cut(value)}")
    return float(number)


def _step_size(value: Any) -> float:
    number = parse_number(value)
    if not 0 < number < math.inf:
        raise refusal(f"must be a number above 0, not {cut(value)}")
    return float(number)


def _whole(low: int, high: int) -> Any:
    def parse(value: Any) -> int:
        text = value.strip() if isinstance(value, str) else ""
        if not _WHOLE.fullmatch(text):
            raise refusal(f"must be a whole number, not {shown(value)}")
        number = int(text)
        if not low <= number <= high:
            raise refusal(f"must be from {low} to {high}, not {number}")
        return number

    return parse


def _bool(value: Any) -> bool:
    text = value.lower() if isinstance(value, str) else ""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise refusal(f"must be true or false, not {shown(value)}")


def _byte_size(low: int, high: int) -> Any:
    def parse(value: Any) -> int:
        text = value.strip() if isinstance(value, str) else ""
        found = _SIZE.fullmatch(text)
        unit = None if found is None else _UNITS.get(found[2].lower())
        if found is None or unit is None:
            raise refusal(f"must be a number of bytes such as 4096 or '4 KiB', not {shown(value)}")
        size = float(found[1]) * unit if "." in found[1] else int(found[1]) * unit
        if size != int(size):
            raise refusal(f"{text} is no whole number of bytes")
        if not low <= size <= high:
            raise refusal(f"must be from {low} to {high} bytes, not {cut(text)}")
        return int(size)

    return parse


def _residue_levels(value: Any) -> int:
    number: int = _whole(1, 255)(value)
    if number % 2 == 0:
        raise refusal(f"must be 1 or an odd number from 3 to 255, not {number}")
    return number


def one_of(*words: str) -> Any:
    """A validator for one of some words, naming the nearest one otherwise."""

    def parse(value: Any) -> str:
        text = str(value) if isinstance(value, str) else ""
        if text not in words:
            near = difflib.get_close_matches(text.lower(), words, 1, 0.4)
            raise refusal(
                f"must be one of {', '.join(words)}, not {shown(value)}",
                suggestion=near[0] if near else None,
            )
        return text

    return parse


def _header_word(value: Any) -> str:
    """YAML's other spellings of yes and no mean the same."""
    text = value.lower() if isinstance(value, str) else ""
    if text in _TRUE | _FALSE:
        return "yes" if text in _TRUE else "no"
    word: str = one_of("auto", "yes", "no")(value)
    return word


def as_list(value: Any) -> Any:
    """A single text as a list of one."""
    return [value] if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    value = as_list(value)
    if not isinstance(value, list):
        raise refusal(f"must be a text or a list of texts, not {shown(value)}")
    return tuple(value)


def command_words(value: Any) -> str | tuple[str, ...]:
    """A command: one text, or a list of words."""
    if isinstance(value, list):
        if not value:
            raise refusal("must hold at least one word")
        return tuple(_any_text(item) for item in value)
    return _text(value)


def format_version(value: Any) -> int:
    """The version of the configuration's format."""
    if isinstance(value, str) and value.isdecimal():
        if int(value[:9]) == 1 and len(value) < 10:
            return 1
        raise refusal(
            f"version {cut(value)} is not known to this release (it knows 1); update ciwrap"
        )
    raise refusal(f"must be 1, not {shown(value)}")


def lengths(value: Any) -> Any:
    """A shape; a single length means one axis."""
    return tuple(as_list(value)) if isinstance(value, (str, list)) else value


def _numbers(value: Any) -> Any:
    value = as_list(value)
    if not isinstance(value, list):
        raise refusal(f"must be a number or a list of numbers, not {shown(value)}")
    if len(value) > 16:
        raise refusal("may hold 16 values at most")
    return tuple(parse_number(item) for item in value)


def _periods(value: Any) -> Any:
    value = as_list(value)
    if not isinstance(value, list) or not 1 <= len(value) <= 16:
        raise refusal(f"must be a number, or a list of 1 to 16 numbers, not {shown(value)}")
    found = tuple(_bound_part(item) for item in value)
    if not any(found):
        raise refusal("must hold a number above 0")
    return found


def plain_value(value: Any) -> Any:
    """A value as YAML would type it, `1e-6` included; for options that only their reader knows."""
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if not isinstance(value, Scalar) or value.is_quoted:
        return None if value is None else str(value)
    if value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    if _WHOLE.fullmatch(value):
        return int(value)
    if _NUMBER.fullmatch(value):
        return float(value)
    return str(value)


class JsonForm:
    """What the JSON Schema says of a type."""

    def __init__(self, **keys: Any) -> None:
        self._keys = keys

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        del core_schema, handler
        # A fresh one each time: what is handed out is filled in with the defaults of its field.
        return copy.deepcopy(self._keys)


_TEXT_OR_LIST = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_SIZE_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}

Text = Annotated[str, BeforeValidator(_text), JsonForm(type="string", minLength=1)]
AnyText = Annotated[str, BeforeValidator(_any_text), JsonForm(type=["string", "number", "boolean"])]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed), JsonForm(**_TEXT_OR_LIST)]
BoundPart = Annotated[
    float, BeforeValidator(_bound_part), JsonForm(type=["number", "string"], minimum=0)
]
Ulps = Annotated[
    int, BeforeValidator(_whole(0, (1 << 62) - 1)), JsonForm(type="integer", minimum=0)
]
Offset = Annotated[int, BeforeValidator(_whole(0, 1 << 62)), JsonForm(type="integer", minimum=0)]
Length = Annotated[int, BeforeValidator(_whole(-1, 1 << 62)), JsonForm(type="integer", minimum=-1)]
Seconds = Annotated[float, BeforeValidator(_positive), JsonForm(type="number", exclusiveMinimum=0)]
StepSize = Annotated[
    float, BeforeValidator(_step_size), JsonForm(type="number", exclusiveMinimum=0)
]
Flag = Annotated[bool, BeforeValidator(_bool), JsonForm(type="boolean")]
ChunkBytes = Annotated[int, BeforeValidator(_byte_size(64, 16 << 20)), JsonForm(**_SIZE_SCHEMA)]
Budget = Annotated[int, BeforeValidator(_byte_size(0, 1 << 40)), JsonForm(**_SIZE_SCHEMA)]
ResidueLevels = Annotated[
    int, BeforeValidator(_residue_levels), JsonForm(type="integer", minimum=1, maximum=255)
]
FillValues = Annotated[
    tuple[float | int, ...],
    BeforeValidator(_numbers),
    JsonForm(
        anyOf=[
            {"type": ["number", "string"]},
            {"type": "array", "items": {"type": ["number", "string"]}, "maxItems": 16},
        ]
    ),
]
Periods = Annotated[
    tuple[float, ...],
    BeforeValidator(_periods),
    JsonForm(
        anyOf=[
            {"type": ["number", "string"]},
            {"type": "array", "items": {"type": ["number", "string"]}, "maxItems": 16},
        ]
    ),
]
DuplicatesWord = Annotated[
    Literal["error", "first", "last"],
    BeforeValidator(one_of("error", "first", "last")),
    JsonForm(type="string", enum=["error", "first", "last"]),
]
EvidenceWord = Annotated[
    Literal["auto", "data", "residues", "tree"],
    BeforeValidator(one_of("auto", "data", "residues", "tree")),
    JsonForm(type="string", enum=["auto", "data", "residues", "tree"]),
]
ByteOrder = Annotated[
    Literal["little", "big"],
    BeforeValidator(one_of("little", "big")),
    JsonForm(type="string", enum=["little", "big"]),
]
HeaderWord = Annotated[Literal["auto", "yes", "no"], BeforeValidator(one_of("auto", "yes", "no"))]
ColumnType = Annotated[
    Literal["int", "float", "text"],
    BeforeValidator(one_of("int", "float", "text")),
    JsonForm(type="string", enum=["int", "float", "text"]),
]
FormatVersion = Annotated[
    Literal[1], BeforeValidator(format_version), JsonForm(type="integer", const=1)
]
