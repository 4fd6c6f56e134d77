"""What a check with `format: log` may hold, and a file of values that several checks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.config.scalars import TEXTS
from ciwrap.config.sections import Key, MappingOf, Section
from ciwrap.model import SETTINGS
from ciwrap.model.forms import FLAG, NUMBER, TEXT, Form, FormError, one_of, read_each, shown, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

PRESETS = ("cp2k", "lammps", "pyscf", "qe")
_SETTINGS = {name: Key(one.form, one.help) for name, one in SETTINGS.items()}
_DUPLICATES = Key(
    one_of("error", "first", "last", "all"),
    "which values count of a step that is there twice: an error, the first, the last, or all in"
    " their order",
)
_OPTIONAL = Key(FLAG, "whether a log may be without it (false)")


def _numbers(value: Any) -> float | tuple[float, ...]:
    """One number, or a list with one for each match."""
    if isinstance(value, list):
        if not value:
            raise FormError("must hold at least one number")
        return read_each(value, NUMBER.from_text)
    return float(NUMBER.from_text(value))


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise FormError(
            f"must be a list of two numbers, of which one may be null, not {shown(value)}"
        )
    low = float("-inf") if value[0] is None else float(NUMBER.from_text(value[0]))
    high = float("inf") if value[1] is None else float(NUMBER.from_text(value[1]))
    if not low <= high or low == high in (float("inf"), float("-inf")):
        raise FormError("must begin with its smaller end")
    if (low, high) == (float("-inf"), float("inf")):
        raise FormError("has no end, so nothing could be outside of it")
    return low, high


_ONE = dict(NUMBER.schema) or {"type": ["number", "string"]}
_EXPECT = Form(
    _numbers, _numbers, schema={"anyOf": [_ONE, {"type": "array", "items": _ONE, "minItems": 1}]}
)
_RANGE = Form(
    _range,
    _range,
    schema={
        "type": "array",
        "items": {"anyOf": [_ONE, {"type": "null"}]},
        "minItems": 2,
        "maxItems": 2,
    },
)
_TEXT_ONLY = ({"type": "string", "minLength": 1},)

SECTION = Section(
    "LogSection",
    "Lines of a log that alone are looked at.",
    {
        "start": Key(TEXT, "template of the line that it begins with", is_required=True),
        "end": Key(TEXT, "template of the line that ends it; without one, the end of the log"),
    },
)
LINES = Section(
    "LogLines",
    "Lines after a match, whose numbers are the values.",
    {
        "skip": Key(whole(0, 1 << 31), "how many lines are passed over first (0)"),
        "count": Key(whole(1, 1 << 31), "how many lines are read"),
        "until": Key(
            TEXT,
            "`blank`, `words` (a line that begins with no number), or the template of the line that"
            " ends them (`blank`)",
        ),
    },
)


def _refuse_two_references(values: Mapping[str, Any]) -> None:
    if values["expect"] is not None and values["range"] is not None:
        raise FormError("expect excludes range", ("expect",), at_key=True, other_key="range")
    refuse_two_bounds(values)


def refuse_two_bounds(values: Mapping[str, Any]) -> None:
    """Raises FormError where a bound is given in two ways."""
    for name in ("atol", "rtol"):
        if values["ulps"] and values[name]:
            raise FormError("ulps excludes atol and rtol", ("ulps",), at_key=True, other_key=name)


VALUE = Section(
    "LogValue",
    "A named value in a log.",
    {
        "like": Key(TEXT, "one of the `patterns` of an included file, in place of a template"),
        "match": Key(TEXT, "template of its lines: literal text with {name}, {name:int}, {*}"),
        "regex": Key(TEXT, "regular expression of RE2 in place of a template (extra `log`)"),
        "line": Key(TEXT, "template without fields, of lines of which `column` is taken"),
        "column": Key(whole(-10000, 10000), "number of the word, from 1; from -1 backwards"),
        "take": Key(one_of("all", "first", "last"), "which matches count (`all`)"),
        "step": Key(TEXT, "which of `steps` labels the matches"),
        "lines": Key(LINES, "take the numbers of the lines after a match"),
        "section": Key(SECTION, "look in these lines only"),
        "duplicates": _DUPLICATES,
        "optional": _OPTIONAL,
        "absolute": Key(FLAG, "whether the sign is dropped (false)"),
        "expect": Key(_EXPECT, "what it has to be, in place of a golden"),
        "range": Key(_RANGE, "between which numbers it has to lie, in place of a golden"),
        **_SETTINGS,
    },
    short=lambda value: {"match": value} if isinstance(value, str) else value,
    short_schema=_TEXT_ONLY,
    check=_refuse_two_references,
)
TABLE = Section(
    "LogTable",
    "A table in a log: a line that names columns, then rows of numbers.",
    {
        "header": Key(TEXT, "how its first line begins; a star at the end: other columns"),
        "end": Key(
            TEXT, "template of the line after the last row; else the first that is not a row"
        ),
        "iteration": Key(TEXT, "the column that labels the rows"),
        "section": Key(SECTION, "look in these lines only"),
        "duplicates": _DUPLICATES,
        "optional": _OPTIONAL,
        **_SETTINGS,
    },
    short=lambda value: {"header": value} if isinstance(value, str) else value,
    short_schema=_TEXT_ONLY,
    check=refuse_two_bounds,
)
STEP = Section(
    "LogStep",
    "Lines that say which step a program is at.",
    {
        "match": Key(TEXT, "template with {iteration:int}"),
        "regex": Key(TEXT, "regular expression with a group `iteration`"),
        "covers": Key(one_of("after", "before"), "which lines are of that step (`after`)"),
    },
    short=lambda value: {"match": value} if isinstance(value, str) else value,
    short_schema=_TEXT_ONLY,
)

COUNT = Section(
    "LogCount",
    "How many lines match.",
    {
        "match": Key(TEXT, "template of the lines", is_required=True),
        "expect": Key(_EXPECT, "how many there have to be, in place of a golden"),
        "range": Key(_RANGE, "how many there have to be at least and at most"),
    },
    short=lambda value: {"match": value} if isinstance(value, str) else value,
    short_schema=_TEXT_ONLY,
)

LOG_KEYS = {
    "values": Key(MappingOf(VALUE), "log: named values by template"),
    "tables": Key(MappingOf(TABLE), "log: tables, whose columns become NAME.COLUMN"),
    "steps": Key(MappingOf(STEP), "log: lines that say which step a program is at"),
    "counts": Key(MappingOf(COUNT), "log: how many lines match a template, exactly"),
    "require": Key(TEXTS, "log: templates that some line has to match"),
    "forbid": Key(TEXTS, "log: templates that no line may match"),
}
SOURCE_KEYS = {
    "use": Key(one_of(*PRESETS), "log: values of a well-known code"),
    "include": Key(TEXTS, "log: files of such values, from the configuration's folder"),
}

PATTERNS = "patterns"
LOG_VALUES = Section(
    "LogValues",
    "A file of values that checks include.",
    {
        **LOG_KEYS,
        PATTERNS: Key(MappingOf(VALUE), "values that are looked for where one is `like` them"),
    },
)
