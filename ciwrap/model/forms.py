"""Forms of values: how a value is read, whether somebody wrote it or a program hands it over.

What was written is text, or lists and mappings of texts: `1e-6`, `4 KiB`, `no`. What a program
hands over is a Python value, and text is not a number there. Both are held against the same limits.
"""

from __future__ import annotations

import math
import numbers
import re
from typing import TYPE_CHECKING, Any

from ciwrap.errors import InvalidBoundError, UsageError
from ciwrap.structs import Struct, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_ZERO = re.compile(r"[^eE]*[1-9]")
_WHOLE = re.compile(r"[+-]?\d{1,30}")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)\s*([A-Za-z]*)")
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_UNITS |= {"kb": 1000, "mb": 1000**2, "gb": 1000**3}
TRUE_WORDS = frozenset({"true", "yes", "on"})
FALSE_WORDS = frozenset({"false", "no", "off"})
_SPECIAL = {".nan": math.nan, "nan": math.nan, ".inf": math.inf, "inf": math.inf}
_SPECIAL |= {"+.inf": math.inf, "+inf": math.inf, "-.inf": -math.inf, "-inf": -math.inf}
_MOST_VALUES = 16
_MOST_BITS = 4096


class FormError(ValueError):
    """A value is not of the form that is asked for.

    path: where the fault lies within the value. at_key: whether the key is at fault, not its value.
    suggestion: what may have been meant. other_key: a key beside it that contradicts.
    """

    def __init__(
        self,
        message: str,
        path: tuple[str | int, ...] = (),
        *,
        at_key: bool = False,
        suggestion: str | None = None,
        other_key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.at_key = at_key
        self.suggestion = suggestion
        self.other_key = other_key


class Form(Struct, frozen=True):
    """A kind of value.

    parse: takes what was written; accept: takes a Python value; both raise FormError for another
    kind. check: takes the value and how it was given, and returns what it means; raises FormError
    for a value out of range; None: the value is what it means. schema: what JSON Schema says of it.
    error: for a program that hands over something else.
    """

    parse: Callable[[Any], Any]
    accept: Callable[[Any], Any]
    check: Callable[[Any, Any], Any] | None = None
    schema: Mapping[str, Any] = field(default_factory=dict)
    error: type[UsageError] = UsageError

    def from_text(self, value: Any) -> Any:
        """The value that texts as written mean. Raises FormError."""
        parsed = self.parse(value)
        return parsed if self.check is None else self.check(parsed, value)

    def from_python(self, value: Any) -> Any:
        """The value that a program handed over, as plain Python has it. Raises FormError."""
        accepted = self.accept(value)
        return accepted if self.check is None else self.check(accepted, value)


def read_at(step: str | int, read: Callable[[Any], Any], value: Any) -> Any:
    """What `read` makes of a part of some value; a fault in it is told to be at `step`."""
    try:
        return read(value)
    except FormError as error:
        error.path = (step, *error.path)
        raise


def read_each(values: list[Any], read: Callable[[Any], Any]) -> tuple[Any, ...]:
    """What `read` makes of each value of a list."""
    return tuple(read_at(position, read, value) for position, value in enumerate(values))


def read_arguments(
    arguments: Mapping[str, Any],
    forms: Mapping[str, Form],
    where: str,
    beside: Iterable[str] = (),
) -> dict[str, Any]:
    """The values of keyword arguments by name; those that are None are left out.

    where: they were given, and beside: which others are taken there, for messages. Raises
    UsageError for an unknown name or a value without a meaning.
    """
    for name in arguments:
        if name not in forms:
            known = [*forms, *beside]
            raise UsageError(
                f"{where} knows no {name!r} (it knows {', '.join(known)})",
                remedy=_perhaps(nearest(str(name), known)),
            )
    given = {name: value for name, value in arguments.items() if value is not None}
    return {name: _argument(name, forms[name], given[name], where) for name in given}


def _argument(name: str, form: Form, value: Any, where: str) -> Any:
    try:
        return form.from_python(value)
    except FormError as error:
        at = "".join(f"[{step}]" for step in error.path)
        raise form.error(
            f"{where}: {name}{at} {error.message}", remedy=_perhaps(error.suggestion)
        ) from None


def _perhaps(word: str | None) -> str | None:
    return None if word is None else f"did you mean {word!r}?"


def nearest(word: str, words: list[str], cutoff: float = 0.5) -> str | None:
    """The one of the words that may have been meant."""
    import difflib

    return next(iter(difflib.get_close_matches(word, words, 1, cutoff)), None)


def cut(value: object) -> str:
    """A value as text, short enough for a line."""
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write it out
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def shown(value: object) -> str:
    """A value of a wrong kind, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(cut(value)) if isinstance(value, str) else cut(repr(value))


# --- what was written -----------------------------------------------------------------------------


def parse_number(value: object) -> float | int:
    """A decimal number, an infinity or NaN, in quotes or not."""
    text = value.strip() if isinstance(value, str) else ""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise FormError(f"{cut(text)} is beyond the range of a double")
        if number == 0 and _NOT_ZERO.match(text):
            raise FormError(f"{cut(text)} is too close to 0 for a double")
        return number
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    raise FormError(f"must be a number, not {shown(value)}")


def parse_whole(value: object) -> int:
    """A whole number of at most 30 digits."""
    text = value.strip() if isinstance(value, str) else ""
    if not _WHOLE.fullmatch(text):
        raise FormError(f"must be a whole number, not {shown(value)}")
    return int(text)


def parse_flag(value: object) -> bool:
    """A truth value in any of YAML's words."""
    text = value.lower() if isinstance(value, str) else ""
    if text not in TRUE_WORDS | FALSE_WORDS:
        raise FormError(f"must be true or false, not {shown(value)}")
    return text in TRUE_WORDS


def parse_size(value: object) -> int:
    """A number of bytes, perhaps with a unit."""
    text = value.strip() if isinstance(value, str) else ""
    found = _SIZE.fullmatch(text)
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise FormError(f"must be a number of bytes such as 4096 or '4 KiB', not {shown(value)}")
    size = float(found[1]) * unit if "." in found[1] else int(found[1]) * unit
    if size != int(size):
        raise FormError(f"{text} is not a whole number of bytes")
    return int(size)


def size_text(value: int) -> str:
    """`4 KiB`, `256 KiB`, `100`: the shortest of the texts that `parse_size` reads back."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value and value % size == 0:
            return f"{value // size} {unit}"
    return str(value)


# --- what a program hands over --------------------------------------------------------------------


def accept_number(value: object) -> float | int:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise FormError(f"must be a number, not {shown(value)}")
    try:
        plain = float(value)
    except OverflowError:
        raise FormError(f"{cut(value)} is beyond the range of a double") from None
    return int(value) if isinstance(value, numbers.Integral) else plain


def accept_whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise FormError(f"must be a whole number, not {shown(value)}")
    return int(value)


def accept_flag(value: object) -> bool:
    is_numpy = getattr(value, "shape", None) == () and str(getattr(value, "dtype", "")) == "bool"
    if isinstance(value, bool) or is_numpy:
        return bool(value)
    raise FormError(f"must be true or false, not {shown(value)}")


def take_text(value: object) -> str:
    """A text, written or handed over; never an empty one."""
    if not isinstance(value, str):
        raise FormError(f"must be text, not {shown(value)}")
    if not value:
        raise FormError("must not be empty")
    return str.__str__(value)


# --- limits ---------------------------------------------------------------------------------------


def _not_negative(number: float, given: object) -> float:
    try:
        plain = float(number) + 0.0  # -0.0 becomes 0.0
    except OverflowError:
        raise FormError(f"{cut(given)} is beyond the range of a double") from None
    if not math.isfinite(plain) or plain < 0:
        raise FormError(f"must be finite and not negative, not {cut(given)}")
    return plain


def _odd(number: int, given: object) -> int:
    del given
    if not 1 <= number <= 255:
        raise FormError(f"must be from 1 to 255, not {cut(number)}")
    if number % 2 == 0:
        raise FormError(f"must be 1 or an odd number from 3 to 255, not {number}")
    return number


def _some_above_zero(values: tuple[float, ...], given: object) -> tuple[float, ...]:
    del given
    if not any(values):
        raise FormError("must hold a number above 0")
    return values


# --- forms ----------------------------------------------------------------------------------------


def whole(low: int, high: int, high_text: str | None = None) -> Form:
    """Whole numbers of a range."""

    def check(number: int, given: object) -> int:
        del given
        if not low <= number <= high:
            raise FormError(f"must be from {low} to {high_text or high}, not {cut(number)}")
        return number

    return Form(parse_whole, accept_whole, check, {"type": "integer", "minimum": low})


def byte_size(low: int, high: int) -> Form:
    """Numbers of bytes, written with or without a unit."""

    def check(size: int, given: object) -> int:
        if not low <= size <= high:
            raise FormError(f"must be from {low} to {high} bytes, not {cut(given)}")
        return size

    schema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
    return Form(parse_size, accept_whole, check, schema)


def one_of(*words: str, meaning: Callable[[str], Any] = str) -> Form:
    """One of some words. meaning: what a word stands for."""

    def check(word: str, given: object) -> Any:
        if word not in words:
            raise FormError(
                f"must be one of {', '.join(words)}, not {shown(given)}",
                suggestion=nearest(word.lower(), list(words), 0.4),
            )
        return meaning(word)

    def take(value: object) -> str:
        return str.__str__(value) if isinstance(value, str) else ""

    return Form(take, take, check, {"type": "string", "enum": list(words)})


def several(
    element: Form, what: str, least: int, check: Callable[[Any, Any], Any] | None = None
) -> Form:
    """Up to 16 values of a form, as a tuple; one may stand alone. what: they are, in messages."""
    limits = f"a list of {what}s" if not least else f"a list of {least} to {_MOST_VALUES} {what}s"

    def refuse(value: object) -> FormError:
        return FormError(f"must be a {what} or {limits}, not {shown(value)}")

    def read(values: list[Any], read_one: Callable[[Any], Any]) -> tuple[Any, ...]:
        if len(values) > _MOST_VALUES:
            raise FormError(f"may hold {_MOST_VALUES} values at most")
        if len(values) < least:
            raise refuse(values)
        return read_each(values, read_one)

    def parse(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            return (element.from_text(value),)
        if not isinstance(value, list):
            raise refuse(value)
        return read(value, element.from_text)

    def accept(value: Any) -> tuple[Any, ...]:
        try:
            values = None if isinstance(value, (str, bytes)) else list(value)
        except TypeError:  # also for an array without an axis
            values = None
        if values is None:
            return (element.from_python(value),)
        return read(values, element.from_python)

    one = {"type": ["number", "string"]}
    schema = {"anyOf": [one, {"type": "array", "items": one, "maxItems": _MOST_VALUES}]}
    return Form(parse, accept, check, schema)


NUMBER = Form(parse_number, accept_number)
BOUND_PART = Form(
    parse_number,
    accept_number,
    _not_negative,
    {"type": ["number", "string"], "minimum": 0},
    InvalidBoundError,
)
FLAG = Form(parse_flag, accept_flag, schema={"type": "boolean"})
TEXT = Form(take_text, take_text, schema={"type": "string", "minLength": 1})
ULPS = replace(whole(0, (1 << 63) - 1, "2^63 - 1"), error=InvalidBoundError)
CHUNK_BYTES = byte_size(64, 16 << 20)
BUDGET = byte_size(0, 1 << 40)
RESIDUE_LEVELS = Form(
    parse_whole, accept_whole, _odd, {"type": "integer", "minimum": 1, "maximum": 255}
)
FILL_VALUES = several(NUMBER, "number", 0)
# Which counts of a variable, or of a row's id, that is there twice.
DUPLICATES = one_of("error", "first", "last")
PERIODS = several(BOUND_PART, "number", 1, _some_above_zero)
