"""The settings of one variable, the forms that values have, and the file formats: each stated once.

A field of VariableSettings gives a setting's name, type and default; its statement, how values are
read, what people read about it, and what it means for trees. The configuration's keys, its JSON
Schema, the keywords of pytest's check() and of the Python API, and the table in
docs/reference/configuration.md are made of these statements. SettingArguments repeats the names
for type checkers; a test holds the two together.

What a person wrote is text (`1e-6`, `4 KiB`, `no`); what a program hands over is a Python value,
and text is no number there. Both have the same limits. Formats are listed without being imported.
"""

from __future__ import annotations

import datetime
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Any, NamedTuple, TypedDict, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from ciwrap.base.errors import InvalidBoundError, UsageError
from ciwrap.base.words import nearest

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
    """What `read` makes of a part of some value; a fault in it is reported at `step`."""
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
    if getattr(getattr(value, "dtype", None), "kind", "") == "m":  # to NumPy a whole number
        raise FormError(f"must be a number, not the duration {value}")
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


# Statistics of a field that an absolute bound may be a multiple of, with what they are called.
SCALES: Mapping[str, str] = {
    "max": "largest magnitude",
    "range": "range",
    "std": "standard deviation",
    "rms": "root mean square",
    "mean": "mean magnitude",
}


# Units of durations, in attoseconds.
TIME_UNITS: Mapping[str, int] = {
    "as": 1,
    "fs": 10**3,
    "ps": 10**6,
    "ns": 10**9,
    "us": 10**12,
    "ms": 10**15,
    "s": 10**18,
    "m": 60 * 10**18,
    "h": 3600 * 10**18,
    "D": 86400 * 10**18,
    "W": 604800 * 10**18,
}
# As NumPy calls the type of durations in a unit, or in some of it.
DURATION = re.compile(r"(?:<|>)?(?:m8|timedelta64)\[(\d*)(\w+)\]")
_DURATION_TEXT = re.compile(r"(\S+)\s+(as|fs|ps|ns|us|ms|s|m|h|D|W)")


class ScaledAtol(Struct, frozen=True):
    """An absolute bound in the scale of a field: a factor times one of SCALES of the golden; or a
    duration: a factor times one of TIME_UNITS.
    """

    factor: float
    statistic: str

    @property
    def is_duration(self) -> bool:
        return self.statistic in TIME_UNITS

    @property
    def text(self) -> str:
        """`1e-12*max` or `2 ms`, which reads back."""
        if self.is_duration:
            return f"{number_text(self.factor)} {self.statistic}"
        return f"{number_text(self.factor)}*{self.statistic}"


def _scaled(text: str) -> ScaledAtol:
    factor, _, statistic = (part.strip() for part in text.partition("*"))
    if statistic not in SCALES:
        raise FormError(
            f"must be a number, or a number times one of {', '.join(SCALES)}, not {shown(text)}",
            suggestion=nearest(statistic.lower(), list(SCALES), 0.4),
        )
    return ScaledAtol(_not_negative(parse_number(factor), factor), statistic)


def _in_words(text: str) -> ScaledAtol | None:
    """A bound that a text says beside its number; None for a number alone."""
    if "*" in text:
        return _scaled(text)
    found = _DURATION_TEXT.fullmatch(text.strip())
    return None if found is None else _duration(parse_number(found[1]), found[2], text)


def _duration(factor: float, unit: str, given: object) -> ScaledAtol:
    if unit not in TIME_UNITS:
        raise FormError(f"must be a duration in one of {', '.join(TIME_UNITS)}, not {cut(given)}")
    return ScaledAtol(_not_negative(factor, given), unit)


def _parse_atol(value: object) -> float | int | ScaledAtol:
    found = _in_words(value) if isinstance(value, str) else None
    return parse_number(value) if found is None else found


def _accept_atol(value: object) -> float | int | ScaledAtol:
    if isinstance(value, str):
        found = _in_words(value)
        return accept_number(value) if found is None else found
    numpy_type = DURATION.fullmatch(str(getattr(getattr(value, "dtype", None), "str", "")))
    if numpy_type is not None and getattr(value, "shape", None) == ():
        count: Any = value
        return _duration(int(count.astype("i8")) * int(numpy_type[1] or 1), numpy_type[2], value)
    if isinstance(value, datetime.timedelta):
        return _duration(value // datetime.timedelta(microseconds=1), "us", value)
    return accept_number(value)


def _check_atol(value: Any, given: object) -> float | ScaledAtol:
    return value if isinstance(value, ScaledAtol) else _not_negative(value, given)


NUMBER = Form(parse_number, accept_number)
BOUND_PART = Form(
    parse_number,
    accept_number,
    _not_negative,
    {"type": ["number", "string"], "minimum": 0},
    InvalidBoundError,
)
ATOL = replace(BOUND_PART, parse=_parse_atol, accept=_accept_atol, check=_check_atol)
FLAG = Form(parse_flag, accept_flag, schema={"type": "boolean"})
TEXT = Form(take_text, take_text, schema={"type": "string", "minLength": 1})
_MOST_ULPS = (1 << 63) - 1
ULPS = replace(whole(0, _MOST_ULPS, "2^63 - 1"), error=InvalidBoundError)
CHUNK_BYTES = byte_size(64, 16 << 20)
BUDGET = byte_size(0, 1 << 40)
RESIDUE_LEVELS = Form(
    parse_whole, accept_whole, _odd, {"type": "integer", "minimum": 1, "maximum": 255}
)
FILL_VALUES = several(NUMBER, "number", 0)
# Which counts of a variable, or of a row's id, that is there twice.
DUPLICATES = one_of("error", "first", "last")
PERIODS = several(BOUND_PART, "number", 1, _some_above_zero)


def number_text(value: float) -> str:
    """The shortest decimal that reads back as the same double: `1e-6`, `0`, `0.25`, `inf`."""
    text = repr(float(value))
    if "e" not in text:
        return text.removesuffix(".0")
    return re.sub(r"e(-?)\+?0*(?=\d)", r"e\1", text).removesuffix(".0")


def two_digits_above(value: float) -> float:
    """A number of two digits above a positive one, which may be rounded itself; inf where no double
    is above it.
    """
    from decimal import ROUND_CEILING, Context, Decimal

    above = math.nextafter(value, math.inf)
    if math.isinf(above):
        return above
    exact = Decimal(above)
    step = Decimal((0, (1,), exact.adjusted() - 1))
    # A context of our own: the caller's may round to fewer digits, or raise.
    return float(exact.quantize(step, ROUND_CEILING, Context(prec=28)))


class ErrorBound(Struct, frozen=True):
    """v differs from g unless |v - g| <= atol + rtol |g|, or they are at most `ulps` floats apart.

    (0, 0, 0) asks for equal numbers. ulps excludes atol and rtol. Raises InvalidBoundError for
    anything negative, NaN, infinite or not a number.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        parts = (self.atol, self.rtol)
        is_plain = [*map(type, parts), type(self.ulps)] == [float, float, int]
        # What settings, goldens and captures hold is in form already; -0.0 is not.
        is_sound = is_plain and all(
            math.isfinite(one) and math.copysign(1.0, one) > 0 for one in parts
        )
        if not is_sound or not 0 <= self.ulps <= _MOST_ULPS:
            self._take_forms()
        if self.ulps and (self.atol or self.rtol):
            raise InvalidBoundError("ulps excludes atol and rtol; give one or the other")

    def _take_forms(self) -> None:
        name = ""
        try:
            for name, form in (("atol", BOUND_PART), ("rtol", BOUND_PART), ("ulps", ULPS)):
                force_setattr(self, name, form.from_python(getattr(self, name)))
        except FormError as error:
            raise InvalidBoundError(f"{name} {error.message}") from None

    @property
    def is_exact(self) -> bool:
        return not (self.atol or self.rtol or self.ulps)

    def is_wider_than(self, other: ErrorBound) -> bool:
        """Whether this bound lets something pass that the other one does not."""
        if self.is_exact or other.is_exact:
            return other.is_exact and not self.is_exact
        if bool(self.ulps) != bool(other.ulps):
            return True
        return self.ulps > other.ulps or self.atol > other.atol or self.rtol > other.rtol

    @property
    def text(self) -> str:
        """`atol=1e-6 rtol=0`, or `ulps=4`."""
        return _text_of(self)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> ErrorBound:
        """The bound of a text form; parts in any order, missing ones are 0. Raises
        InvalidBoundError.
        """
        found: dict[str, float | int] = {}
        for part in text.split():
            name, sign, value = part.partition("=")
            if name not in ("atol", "rtol", "ulps") or not sign or name in found:
                raise InvalidBoundError(
                    f"{text!r} is not an error bound", remedy="write 'atol=1e-6'"
                )
            try:
                found[name] = int(value) if name == "ulps" else float(value)
            except ValueError:
                raise InvalidBoundError(f"{value!r} in {text!r} is not a number") from None
        return cls(found.get("atol", 0.0), found.get("rtol", 0.0), int(found.get("ulps", 0)))


# Many variables have one bound.
@lru_cache(maxsize=1024)
def _text_of(bound: ErrorBound) -> str:
    if bound.ulps:
        return f"ulps={bound.ulps}"
    return f"atol={number_text(bound.atol)} rtol={number_text(bound.rtol)}"


@total_ordering
class VariableId(Struct, frozen=True):
    """One variable of one checkpoint. Ordered as a history is read: iteration, rank, name; None
    first.
    """

    name: str
    iteration: int | None = None
    rank: int | None = None

    @property
    def sort_key(self) -> tuple[int, int, str]:
        return (
            -1 if self.iteration is None else self.iteration,
            -1 if self.rank is None else self.rank,
            self.name,
        )

    @property
    def time_key(self) -> tuple[bool, int, int, str]:
        """Orders variables by when they were written: what has no iteration, as a table of totals,
        is written at the end.
        """
        return self.iteration is None, *self.sort_key

    @property
    def text(self) -> str:
        """`iter 10 / rank 0 / x`, without the parts that are None."""
        parts = [] if self.iteration is None else [f"iter {self.iteration}"]
        parts += [] if self.rank is None else [f"rank {self.rank}"]
        return " / ".join([*parts, self.name])

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, VariableId):
            return NotImplemented
        return self.sort_key < other.sort_key


class Evidence(str, Enum):
    """What a golden holds of a variable, and so what a verdict rests on."""

    DATA = "data"
    RESIDUES = "residues"
    TREE = "tree"

    def __str__(self) -> str:
        return self.value


class EvidencePolicy(str, Enum):
    """What a golden is asked to hold; AUTO takes the best evidence that fits its budget."""

    AUTO = "auto"
    DATA = "data"
    RESIDUES = "residues"
    TREE = "tree"

    def __str__(self) -> str:
        return self.value


# What `align_by` says of a variable whose rows stay in the file's order.
NO_ALIGNMENT = "none"
# The label by which a golden names the mask of a variable.
MASK_LABEL = "mask"
# The label by which a golden without data keeps the statistics of its numbers.
SCALE_LABEL = "scale of the bound"
_BOUND = "bound"


class OnTrees(str, Enum):
    """What a setting means for a variable's trees.

    DECIDES: trees made with another value have other digests. NOTHING: trees tell whatever it is.
    BEYOND: where it is set, the comparison looks at more than the variable's own numbers, and no
    tree tells how it ends.
    """

    DECIDES = "decides"
    NOTHING = "nothing"
    BEYOND = "beyond"


class Setting(Struct, frozen=True):
    """One setting, as people give it.

    form: of its values. help: what it does, in one line of Markdown. in_api: whether it means
    something for one array against another. option: what the option of `ciwrap compare` and
    `capture` is said to be; None without one. part_of: the field of VariableSettings that it is
    a part of; None for a field of its own name.
    """

    name: str
    form: Form
    help: str
    on_trees: OnTrees
    in_api: bool = False
    option: str | None = None
    part_of: str | None = None

    @property
    def field(self) -> str:
        """Of VariableSettings."""
        return self.part_of or self.name

    @property
    def default(self) -> Any:
        """What counts if nobody says anything."""
        return getattr(_PLAIN if self.part_of is None else _PLAIN.bound, self.name)

    @property
    def default_text(self) -> str:
        """The default as one would write it; `none` where there is nothing to write."""
        if self.default is None or self.default == ():
            return "none"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if self.form in (CHUNK_BYTES, BUDGET):
            return size_text(self.default)
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


class StrictDtype(str, Enum):
    """Which dtypes make a check not comparable. OTHER: another one than the golden's, but for how
    values of it are stored. STORED: that, too. NONE: none that has an exact conversion.
    """

    OTHER = "true"
    STORED = "as-stored"
    NONE = "false"


class VariableSettings(Struct, frozen=True):
    """How one variable is captured and compared, with all defaults filled in.

    scale: what atol is a multiple of, until the golden's numbers are known; atol is 0 as long.
    align_by: None also where the configuration says `none`. strict_dtype, strict_shape: whether
    another dtype or shape is an error at once (a relaxed dtype is compared after an exact
    conversion only); strict_count: whether series of a text need the same number of elements; these
    are a check's.
    """

    bound: ErrorBound = ErrorBound()
    scale: ScaledAtol | None = None
    residue_levels: int = 15
    chunk_bytes: int = 4096
    evidence: EvidencePolicy = EvidencePolicy.AUTO
    # The data themselves are the best evidence: exact counts and indices. Within this budget a
    # golden of some dozen variables still is a small commit.
    data_budget_bytes: int = 256 * 1024
    # Residues decide as surely as the data (a tree alone cannot tell noise from a change) at an
    # eighth of float32 and a sixteenth of float64 data, so more may be spent before a tree alone is
    # all that is kept: this holds the residues of some 60 MB of float32, or of 10 million float64.
    residues_budget_bytes: int = 8 * 1024 * 1024
    equal_nan: bool = True
    fill_values: tuple[float | int, ...] = ()
    mask: str | None = None
    align_by: str | None = None
    across_ranks: bool = False
    period: tuple[float, ...] = ()
    mixed_precision: bool = False
    combine: str = "sum"
    up_to_sign: str = "none"
    strict_dtype: StrictDtype = StrictDtype.OTHER
    strict_shape: bool = True
    strict_count: bool = True

    @classmethod
    def of(cls, *layers: SettingsLayer, **more: Any) -> VariableSettings:
        """The settings that layers of them make, a later one over an earlier one.

        more: fields that no layer can say.
        """
        for layer in layers:
            more |= layer.given
        return cls(**more)

    def with_bound(self, bound: ErrorBound) -> VariableSettings:
        """The settings with another bound, whatever their own was a multiple of."""
        return replace(self, bound=bound, scale=None)

    @property
    def is_plain(self) -> bool:
        """Whether the bound is their sum, and numbers are compared as they are."""
        has_way = self.period or self.mixed_precision or self.combine != "sum"
        return not has_way and self.up_to_sign == "none"

    @property
    def has_own_trees(self) -> bool:
        """Whether the variable is compared number by number with its namesake, so that trees tell;
        not with a mask, nor with a bound in the scale of the field, nor in any other way that looks
        beyond the variable itself.
        """
        is_plain = all(getattr(self, name) == getattr(_PLAIN, name) for name in _BEYOND_TREES)
        return is_plain and self.scale is None


_PLAIN = VariableSettings()
_EVIDENCE_WORDS = tuple(policy.value for policy in EvidencePolicy)
# One field holds the bound: whoever sets one of its parts sets all.
_STATED = (
    Setting(
        "atol",
        ATOL,
        "the bound: v matches its golden g if abs(v - g) <= atol + rtol * abs(g). `1e-12*max` is in"
        " the scale of the golden: also `range`, `std`, `rms` or `mean`. `2 ms` is for durations",
        OnTrees.DECIDES,
        in_api=True,
        option="Absolute error bound; `1e-12*max`: in the scale of A.",
        part_of=_BOUND,
    ),
    Setting(
        "rtol",
        BOUND_PART,
        "its part that grows with the golden value",
        OnTrees.DECIDES,
        in_api=True,
        option="Relative error bound (of the values in A).",
        part_of=_BOUND,
    ),
    Setting(
        "ulps",
        ULPS,
        "at most this many representable values apart, in place of `atol` and `rtol`",
        OnTrees.DECIDES,
        in_api=True,
        option="Bound in units in the last place; excludes others.",
        part_of=_BOUND,
    ),
    Setting(
        "residue_levels",
        RESIDUE_LEVELS,
        "1, or odd from 3 to 255: how finely a golden's residues tell; 15 costs 4 bits a value"
        " and lets up to 87 % of the bound pass for certain",
        OnTrees.DECIDES,
        in_api=True,
    ),
    Setting(
        "chunk_bytes",
        CHUNK_BYTES,
        "bytes per leaf of the tree, 64 bytes to 16 MiB",
        OnTrees.DECIDES,
        in_api=True,
    ),
    Setting(
        "evidence",
        one_of(*_EVIDENCE_WORDS, meaning=EvidencePolicy),
        "what a golden keeps: `data`, `residues`, `tree`, or the first of them that fits its"
        " budget",
        OnTrees.NOTHING,
        in_api=True,
    ),
    Setting(
        "data_budget_bytes",
        BUDGET,
        "compressed size up to which `auto` keeps a variable's data",
        OnTrees.NOTHING,
    ),
    Setting(
        "residues_budget_bytes",
        BUDGET,
        "compressed size up to which `auto` keeps its residues",
        OnTrees.NOTHING,
    ),
    Setting(
        "equal_nan",
        FLAG,
        "whether NaN equals NaN",
        OnTrees.DECIDES,
        in_api=True,
        option="Whether NaN equals NaN (it does).",
    ),
    Setting(
        "fill_values",
        FILL_VALUES,
        'up to 16 numbers that mean "missing"; missing equals missing only. They are rounded to'
        " the variable's type; NaN may be among them",
        OnTrees.DECIDES,
        in_api=True,
        option='What means "missing": a number, or several as [-999, 1e20].',
    ),
    Setting(
        "mask",
        TEXT,
        "name of a boolean variable of the same shape, iteration and rank, whose true values"
        " count as zero on both sides; it is itself compared",
        OnTrees.BEYOND,
        option="Boolean variable whose true values are left out on both sides.",
    ),
    Setting(
        "align_by",
        TEXT,
        "id variable that orders the rows on both sides, or the coordinates by which they are"
        " paired; `none` for a variable that has no such rows",
        OnTrees.BEYOND,
        option="Id or coordinates by which the rows of both sides are paired.",
    ),
    Setting(
        "across_ranks",
        FLAG,
        "whether the rows of all ranks are aligned together; the result then has no rank",
        OnTrees.NOTHING,  # by itself: what it changes, align_by has begun
        option="Align the rows of all ranks together.",
    ),
    Setting(
        "period",
        PERIODS,
        "differences are modulo this: a number, or a list with one for each component of the"
        " last axis (0: none); goes with `atol` alone",
        OnTrees.BEYOND,
        in_api=True,
        option="Differences are modulo this number, or [one, for, each] component.",
    ),
    Setting(
        "mixed_precision",
        FLAG,
        "float32 on one side and float64 on the other: both are rounded to float32, and the"
        " bound holds there",
        OnTrees.NOTHING,  # trees are compared with each other within one dtype only
        in_api=True,
        option="Compare float32 with float64, both as float32.",
    ),
    Setting(
        "combine",
        one_of("sum", "both", "either"),
        "how `atol` and `rtol` make one bound: their `sum`; the smaller one, so that `both`"
        " have to hold; or the larger one, so that `either` is enough. Goldens need their data"
        " for the latter two",
        OnTrees.BEYOND,
        option="How atol and rtol make one bound: sum, both or either.",
    ),
    Setting(
        "up_to_sign",
        one_of("none", "whole", "rows", "columns"),
        "vectors that mean the same with either sign, as eigenvectors: the `whole` variable is one,"
        " or each of its `rows` (first axis) or `columns` (last axis). Goldens need their data",
        OnTrees.BEYOND,
        in_api=True,
        option="What may have the other sign: whole, rows or columns.",
    ),
)
# In the order in which they are stated, by name.
SETTINGS: Mapping[str, Setting] = {one.name: one for one in _STATED}
BOUND_PARTS = tuple(one.name for one in _STATED if one.part_of == _BOUND)
_BEYOND_TREES = tuple(one.name for one in _STATED if one.on_trees is OnTrees.BEYOND)


class SettingArguments(TypedDict, total=False):
    """The settings as keywords, for those who check types; None says nothing."""

    atol: float | str | None
    rtol: float | None
    ulps: int | None
    residue_levels: int | None
    chunk_bytes: int | None
    evidence: str | None
    data_budget_bytes: int | None
    residues_budget_bytes: int | None
    equal_nan: bool | None
    fill_values: float | Sequence[float] | None
    mask: str | None
    align_by: str | None
    across_ranks: bool | None
    period: float | Sequence[float] | None
    mixed_precision: bool | None
    combine: str | None
    up_to_sign: str | None


class SettingsLayer(Struct, frozen=True):
    """What one place says of a variable's settings, by field of VariableSettings."""

    given: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SettingsLayer:
        """A layer of settings by name, whose values have their forms. Raises InvalidBoundError."""
        given = dict(values)
        parts = {name: given.pop(name) for name in BOUND_PARTS if name in given}
        if parts:
            given |= cls.of_bound(**parts).given
        if given.get("align_by") == NO_ALIGNMENT:
            given["align_by"] = None
        return cls(given)

    @classmethod
    def of_bound(cls, atol: float | ScaledAtol = 0.0, **others: Any) -> SettingsLayer:
        """A layer of the bound alone. others: the bound's other parts."""
        if not isinstance(atol, ScaledAtol):
            return cls({_BOUND: ErrorBound(atol, **others), "scale": None})
        ErrorBound(atol.factor, **others)  # which refuses what excludes an atol
        return cls({_BOUND: ErrorBound(**others), "scale": atol})

    @classmethod
    def from_arguments(
        cls, arguments: Mapping[str, Any], where: str, beside: Iterable[str] = ()
    ) -> SettingsLayer:
        """A layer of keyword arguments; those that are None say nothing.

        where, beside, and what is raised: as in `ciwrap.model.settings.read_arguments`.
        """
        forms = {name: one.form for name, one in SETTINGS.items()}
        return cls.of(read_arguments(arguments, forms, where, beside))

    def over(self, settings: VariableSettings) -> VariableSettings:
        """The settings with what this layer says put over them."""
        return replace(settings, **self.given) if self.given else settings


class StrictVariables(str, Enum):
    """Which variables on one side only make a check not comparable.

    BOTH: all. ALLOW_NEW: those that the run lost; new ones are noted. NONE: no variable, and each
    is reported. There is no word for the reverse: what a run may lose is named under `ignore`.
    """

    BOTH = "true"
    ALLOW_NEW = "allow-new"
    NONE = "false"

    @property
    def refuses_missing(self) -> bool:
        return self is not StrictVariables.NONE

    @property
    def refuses_extra(self) -> bool:
        return self is StrictVariables.BOTH


_Word = TypeVar("_Word", bound=Enum)


def _words_or_flag(kind: type[_Word], flags: Mapping[bool, _Word]) -> Form:
    """True, false, or a word of an enumeration beside these."""
    (word,) = (one.value for one in kind if one not in flags.values())

    def refused(value: object) -> FormError:
        near = nearest(value, [word, "new-allowed"]) if isinstance(value, str) else None
        return FormError(
            f"must be true, false or {word}, not {shown(value)}",
            suggestion=None if near is None else word,
        )

    def parse(value: object) -> _Word:
        text = value.lower() if isinstance(value, str) else ""
        if text == word:
            return kind(word)
        if text not in TRUE_WORDS | FALSE_WORDS:
            raise refused(value)
        return flags[text in TRUE_WORDS]

    def accept(value: object) -> _Word:
        if isinstance(value, str) and value == word:
            return kind(word)
        try:
            return flags[accept_flag(value)]
        except FormError:
            raise refused(value) from None

    schema = {"anyOf": [{"type": "boolean"}, {"const": word}]}
    return Form(parse, accept, schema=schema)


class Strictness(Struct, frozen=True):
    """Which mismatches make a check not comparable. shape: false where another one may do.

    A relaxed dtype is compared after an exact conversion; a relaxed shape, element by element; with
    a relaxed count, series of a log are compared at the steps that both have.
    """

    dtype: StrictDtype = StrictDtype.OTHER
    shape: bool = True
    count: bool = True
    variables: StrictVariables = StrictVariables.BOTH

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any] | None, where: str) -> Strictness:
        """As a program says it. Raises UsageError."""
        if arguments is not None and not hasattr(arguments, "items"):
            raise UsageError(f"{where} must be a mapping, not {shown(arguments)}")
        forms = {name: form for name, (form, _) in STRICT_KEYS.items()}
        return cls(**read_arguments(arguments or {}, forms, where))


# By name, what each key of `strict` takes and means.
STRICT_KEYS: Mapping[str, tuple[Form, str]] = {
    "dtype": (
        _words_or_flag(StrictDtype, {True: StrictDtype.OTHER, False: StrictDtype.NONE}),
        "whether another dtype is an error (true); `as-stored`: another byte order, too",
    ),
    "shape": (FLAG, "whether another shape is an error (true)"),
    "count": (FLAG, "whether series of a log need the same steps (true)"),
    "variables": (
        _words_or_flag(StrictVariables, {True: StrictVariables.BOTH, False: StrictVariables.NONE}),
        "whether variables on one side only are errors (true); `allow-new`: those the run lost",
    ),
}


class OwnFormat(NamedTuple):
    """reader: where its class is, MODULE:CLASS. suffixes: lower case, with the dot."""

    reader: str
    suffixes: tuple[str, ...]


# By the name that `format:` in ciwrap.yaml gives. The order is that of messages and documents.
OWN_FORMATS = {
    "npy": OwnFormat("ciwrap.formats.npy:NpyReader", (".npy",)),
    "npz": OwnFormat("ciwrap.formats.npz:NpzReader", (".npz",)),
    "raw": OwnFormat("ciwrap.formats.raw:RawReader", (".bin", ".raw")),
    "spice": OwnFormat("ciwrap.formats.spice:SpiceReader", (".raw",)),
    "text": OwnFormat("ciwrap.formats.tables:TextReader", (".csv", ".tsv", ".txt", ".dat")),
    "tokens": OwnFormat("ciwrap.formats.values_file:TokensReader", ()),
    "bytes": OwnFormat("ciwrap.formats.whole_file:BytesReader", ()),
    "hdf5": OwnFormat("ciwrap.formats.hdf5:Hdf5Reader", (".h5", ".hdf5", ".he5", ".hdf")),
    "netcdf": OwnFormat("ciwrap.formats.netcdf:NetcdfReader", (".nc", ".nc4", ".cdf", ".netcdf")),
    "zarr": OwnFormat("ciwrap.formats.zarr:ZarrReader", (".zarr",)),
    "parquet": OwnFormat("ciwrap.formats.parquet:ParquetReader", (".parquet", ".pq")),
    "safetensors": OwnFormat("ciwrap.formats.safetensors:SafetensorsReader", (".safetensors",)),
    "dcd": OwnFormat("ciwrap.formats.trajectories:DcdReader", (".dcd",)),
    "gromacs": OwnFormat("ciwrap.formats.trajectories:GromacsReader", (".trr", ".xtc")),
    "fits": OwnFormat("ciwrap.formats.fits:FitsReader", (".fits", ".fit", ".fts")),
    "vtk": OwnFormat(
        "ciwrap.formats.vtk:VtkReader",
        (
            *(".vtk", ".vti", ".vtp", ".vtr", ".vts", ".vtu"),
            *(".pvti", ".pvtp", ".pvtr", ".pvts", ".pvtu", ".vtm", ".pvd"),
        ),
    ),
    "xdmf": OwnFormat("ciwrap.formats.xdmf:XdmfReader", (".xdmf", ".xmf")),
    "adios2": OwnFormat("ciwrap.formats.adios2:Adios2Reader", (".bp", ".bp4", ".bp5")),
    "fortran": OwnFormat("ciwrap.formats.fortran:FortranReader", ()),
    "gmsh": OwnFormat("ciwrap.formats.gmsh:GmshReader", (".msh",)),
    "frd": OwnFormat("ciwrap.formats.frd:FrdReader", (".frd",)),
    "su2": OwnFormat("ciwrap.formats.su2:Su2Reader", (".su2",)),
    "tecplot": OwnFormat("ciwrap.formats.tecplot:TecplotReader", (".dat",)),
    "amrex": OwnFormat("ciwrap.formats.amrex:AmrexReader", ()),
    "ulm": OwnFormat("ciwrap.formats.ulm:UlmReader", (".traj", ".gpw")),
    "xyz": OwnFormat("ciwrap.formats.trajectories:XyzReader", (".xyz", ".extxyz")),
    "lammps": OwnFormat("ciwrap.formats.trajectories:LammpsReader", (".lammpstrj",)),
    "cube": OwnFormat("ciwrap.formats.trajectories:CubeReader", (".cube", ".cub")),
    "json": OwnFormat("ciwrap.formats.values_file:JsonReader", ()),
    "toml": OwnFormat("ciwrap.formats.values_file:TomlReader", ()),
    "yaml": OwnFormat("ciwrap.formats.values_file:YamlReader", ()),
    "mat": OwnFormat("ciwrap.formats.mat:MatReader", (".mat",)),
    "torch": OwnFormat("ciwrap.formats.pickles:TorchReader", (".pt", ".pth")),
    "pickle": OwnFormat("ciwrap.formats.pickles:PickleReader", (".pkl", ".pickle", ".joblib")),
    "log": OwnFormat("ciwrap.formats.log:LogReader", ()),
    "openfoam": OwnFormat("ciwrap.formats.openfoam:OpenFoamReader", ()),
    "veloc": OwnFormat("ciwrap.formats.veloc:VelocReader", (".veloc",)),
}


class FormatRule(Struct, frozen=True):
    """`*.e` is read by netcdf. options: of the reader; None for those of the check."""

    glob: str
    reader: str
    options: Mapping[str, Any] | None = None


# The newest version of the file that `ciwrap variability fit` writes and the others read.
VARIABILITY_MAP_VERSION = 1
