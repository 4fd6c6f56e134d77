"""What ciwrap.yaml may hold: the one place that names its keys, but for the settings of variables
(ciwrap.model.settings). The help ends up in the JSON Schema, which editors show.

YAML 1.1 guesses types: `1e-6` is a text, `no` a boolean, `010` is eight. Here every scalar stays
the text that was written, and the schema, which knows what a key wants, reads it. Everything that
can be read has `from_text`, which raises FormError with the path to what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ciwrap.arrays.values import SectionPlace
from ciwrap.base.errors import ConfigError, ConfigMissingError
from ciwrap.base.late import yaml
from ciwrap.base.words import nearest
from ciwrap.model import SETTINGS, STRICT_KEYS
from ciwrap.model.settings import (
    DUPLICATES,
    FALSE_WORDS,
    FLAG,
    NUMBER,
    TEXT,
    TRUE_WORDS,
    Form,
    FormError,
    byte_size,
    cut,
    one_of,
    parse_number,
    read_at,
    read_each,
    shown,
    whole,
)

_EMPTY = "is empty; fill it in or remove it"


class Key(Struct, frozen=True):
    """One key of a section. default: what it has if it is not given, where that can be written."""

    kind: Form | Section | MappingOf | MappingOrList
    help: str
    default: Any = None
    is_required: bool = False


class Section(Struct, frozen=True):
    """A mapping with known keys; anything else is an error that offers the nearest one.

    short: makes a mapping of one key of a section that is written shorter; short_schema: what JSON
    Schema says of these. check: refuses values that contradict each other.
    """

    name: str
    help: str
    keys: Mapping[str, Key]
    short: Callable[[Any], Any] | None = None
    short_schema: tuple[Mapping[str, Any], ...] = ()
    check: Callable[[Mapping[str, Any]], None] | None = None

    def from_text(self, value: Any) -> dict[str, Any]:
        """The values of all keys; those that are not given have their defaults, or are None."""
        found = {name: key.default for name, key in self.keys.items()}
        if self.short is not None and (long := self.short(value)) is not value:
            ((name, inner),) = long.items()  # a key that is not written: no step of a path
            return {**found, name: self.keys[name].kind.from_text(inner)}
        if value is None:
            raise FormError(_EMPTY, at_key=True)
        for name, inner in refuse_other_than_mapping(value).items():
            if name not in self.keys:
                raise self._unknown(name)
            if inner is None:
                raise FormError(_EMPTY, (name,), at_key=True)
        for name, key in self.keys.items():
            if key.is_required and name not in value:
                raise FormError("is required", (name,))
        for name, inner in value.items():
            found[name] = read_at(name, self.keys[name].kind.from_text, inner)
        if self.check is not None:
            self.check(found)
        return found

    def _unknown(self, name: str) -> FormError:
        near = nearest(name, list(self.keys))
        known = "" if near else f" (known here: {', '.join(self.keys)})"
        return FormError(f"unknown key{known}", (name,), at_key=True, suggestion=near)


class MappingOf(Struct, frozen=True):
    """A mapping whose keys are names of the user's own. names: what they have to be."""

    kind: Form | Section
    names: Form | None = None

    def from_text(self, value: Any) -> dict[str, Any]:
        read = self.kind.from_text
        given = refuse_other_than_mapping(value)
        if self.names is not None:
            for name in given:
                read_at(name, self.names.from_text, name)
        return {str(name): read_at(name, read, inner) for name, inner in given.items()}


class MappingOrList(Struct, frozen=True):
    """Sections by name, or a list of sections that have their names in them."""

    by_name: MappingOf
    listed: Section

    def from_text(self, value: Any) -> dict[str, Any] | list[Any]:
        if not isinstance(value, list):
            return self.by_name.from_text(value)
        return list(read_each(value, self.listed.from_text))


ANY_MAPPING = Form(lambda value: refuse_other_than_mapping(value), dict, schema={"type": "object"})


def refuse_other_than_mapping(value: Any) -> Any:
    """The value. Raises FormError unless it is a mapping."""
    if not isinstance(value, dict):
        raise FormError(f"must be a mapping of keys to values, not {shown(value)}")
    return value


Location = tuple["str | int", ...]

# A configuration is written by hand; anything beyond this is a mistake or an attack with aliases.
MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 50

_NULLS = {"", "~", "null", "Null", "NULL"}
# What a person writes; `!!binary` and the like would make a text mean something else.
_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in (
        *("str", "int", "float", "bool", "null", "timestamp"),
        *("merge", "value", "seq", "map"),
    )
}
# Escapes in quotes can write these. Halves of pairs are let through where they are Python's
# notation for the bytes of a file name that are no UTF-8.
_NO_TEXT = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")


class Quoted(str):
    """A YAML scalar that stood in quotes or in a block."""


class Document(Struct):
    """A parsed file. positions: line and column, from 1, of each value and of each mapping's
    key. beside: gives the text of a file that this one includes, None if there is none; without it
    they are read from the disk.
    """

    path: Path
    value: Any
    beside: Callable[[Path], str | None] | None = None
    positions: dict[Location, tuple[int, int]] = field(default_factory=dict)
    key_positions: dict[Location, tuple[int, int]] = field(default_factory=dict)

    def error(
        self,
        message: str,
        location: Location = (),
        *,
        at_key: bool = False,
        suggestion: str | None = None,
        remedy: str | None = None,
    ) -> ConfigError:
        """A ConfigError pointing at the location, or at the nearest thing around it that exists."""
        known = location
        while known and known not in self.positions:
            known = known[:-1]
        place = (self.key_positions if at_key else self.positions).get(known)
        line, column = place or self.positions.get(known) or (None, None)
        return ConfigError(
            message,
            file=self.path,
            line=line,
            column=column,
            key=".".join(map(str, location)) or None,
            suggestion=suggestion,
            remedy=remedy,
        )

    def line_of(self, location: Location) -> int | None:
        place = self.key_positions.get(location) or self.positions.get(location)
        return place[0] if place else None


def read_document(path: Path) -> Document:
    """Reads and parses a YAML file.

    Raises ConfigMissingError if there is none, ConfigError if it cannot be read, is not UTF-8 or no
    YAML, has a key twice, or is unreasonably large.
    """
    return parse_document(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of a YAML file, its line breaks as they are. Raises as `read_document` does."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigMissingError(
            "there is no such file", file=path, remedy="fix the path"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(data) > MAX_BYTES:
        raise ConfigError("is larger than 4 MiB", file=path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 text", file=path, line=line) from None


def parse_document(
    text: str, path: Path, beside: Callable[[Path], str | None] | None = None
) -> Document:
    """Parses YAML text; `path` is for messages. beside: as of a Document. Raises as `read_document`
    does.
    """
    document = Document(path, None, beside)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, path, text) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"has a character that YAML does not allow (U+{error.character:04X})",
            file=path,
            line=line,
        ) from None
    except RecursionError:
        raise ConfigError("is nested too deeply", file=path) from None
    if node is not None:
        document.value = _value_of(node, (), document)
    return document


def _syntax_error(error: yaml.MarkedYAMLError, path: Path, text: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    column = None if mark is None else mark.column + 1
    problem = error.problem or "is not valid YAML"
    is_alias = "alias" in (error.context or "") or "alias" in problem
    remedy = None
    lines = text.splitlines()
    around = lines[max(0, line - 2) : line] if line else []
    if "'\\t'" in problem or any("\t" in part[: len(part) - len(part.lstrip())] for part in around):
        remedy = "indent with spaces, not tabs"
    elif is_alias:
        remedy = "a pattern that begins with * must stand in quotes"
    elif "mapping values are not allowed" in problem:
        remedy = "look for a missing line break, indentation or quote"
    return ConfigError(problem, file=path, line=line, column=column, remedy=remedy)


def _value_of(node: yaml.Node, location: Location, document: Document) -> Any:
    """A node as dictionaries, lists, texts and None; the document learns where all of it stands."""
    document.positions[location] = _place_of(node)
    if len(document.positions) > MAX_NODES or len(location) > MAX_DEPTH:
        raise document.error("unfolds to more than a configuration may hold", location[:1])
    if node.tag not in _TAGS:
        raise document.error(f"the tag {node.tag!r} means nothing here", location)
    if isinstance(node, yaml.MappingNode):
        return _mapping_of(node, location, document)
    if isinstance(node, yaml.SequenceNode):
        inner = enumerate(node.value)
        return [_value_of(item, (*location, number), document) for number, item in inner]
    assert isinstance(node, yaml.ScalarNode)
    _refuse_no_text(node.value, location, document)
    if node.style is not None:
        return Quoted(node.value)
    return None if node.value in _NULLS else node.value


def _place_of(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _mapping_of(node: yaml.MappingNode, location: Location, document: Document) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = key_node.value
        is_text = isinstance(key_node, yaml.ScalarNode)
        if not is_text or key in found or (key == "<<" and key_node.style is None):
            raise _refused_key(key_node, location, document)
        here = (*location, key)
        document.positions[here] = document.key_positions[here] = _place_of(key_node)
        _refuse_no_text(key, here, document)
        found[key] = _value_of(value_node, here, document)
    return found


def _refuse_no_text(text: str, location: Location, document: Document) -> None:
    """Raises ConfigError for a text that neither the system nor a golden has a place for."""
    found = _NO_TEXT.search(text)
    if found is not None:
        what = f"has a character that no name, path or command can have (U+{ord(found[0]):04X})"
        raise document.error(what, location)


def _refused_key(node: yaml.Node, location: Location, document: Document) -> ConfigError:
    """What is wrong with a key that no mapping may have."""
    here = (*location, node.value if isinstance(node, yaml.ScalarNode) else "?")
    first = document.line_of(here)
    document.positions[here] = document.key_positions[here] = _place_of(node)
    if not isinstance(node, yaml.ScalarNode):
        return document.error("a key must be plain text", here)
    if first is not None:
        return document.error(f"is given twice (first in line {first})", here, at_key=True)
    return document.error(
        "merge keys are not supported", here, remedy="use 'defaults' for what is shared"
    )


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
_PLACE = Section(
    "TextPlace",
    "A place in a section of a text.",
    {
        "place": Key(TEXT, "a line with `{}` for a number that is left out, `#` for any other"),
        "section": Key(SECTION, "look in these lines only", is_required=True),
    },
)


def _place(value: Any) -> str | SectionPlace:
    if not isinstance(value, dict):
        return str(TEXT.from_text(value))
    found = _PLACE.from_text(value)
    section = found["section"]
    return SectionPlace(found["place"] or "", section["start"], section["end"])


def _places(value: Any) -> tuple[str | SectionPlace, ...]:
    """Places of all lines, and those of sections. Raises FormError."""
    return read_each(value if isinstance(value, list) else [value], _place)


_ONE_PLACE = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["section"],
            "properties": {
                "place": {"type": "string"},
                "section": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["start"],
                    "properties": {"start": {"type": "string"}, "end": {"type": "string"}},
                },
            },
        },
    ]
}
PLACES = Form(
    _places,
    _places,
    schema={"anyOf": [*_ONE_PLACE["anyOf"], {"type": "array", "items": _ONE_PLACE}]},
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
        "blocks": Key(
            TEXT,
            "template with {iteration:int} of the lines that lines of `NAME = NUMBER` follow,"
            " which is how some programs print a row",
        ),
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
        "match": Key(TEXT, "template with {iteration:int}, or {iteration} for a time"),
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


ENVIRONMENT = Key(MappingOf(ANY_TEXT, VARIABLE_NAME), "environment variables to set")

BOUND = Section(
    "BoundSection", "Settings that apply to values.", _SETTINGS, check=refuse_two_bounds
)

RUN = Section(
    "RunSection",
    "A command to run before checking.",
    {
        "command": Key(
            COMMAND, "a text for the shell, or a list of words without one", is_required=True
        ),
        "working_dir": Key(TEXT, "where it runs, from the configuration's folder", "."),
        "timeout_seconds": Key(SECONDS, "end it after so many seconds"),
        "env": ENVIRONMENT,
    },
    short=lambda value: {"command": value} if isinstance(value, (str, list)) else value,
    short_schema=SHORT_COMMANDS,
)

MOST_RUNS = 2000

LEVEL = Section(
    "LevelSection",
    "What is different while a factor is off, or on.",
    {
        "env": ENVIRONMENT,
        "command": Key(COMMAND, "the command to run in place of the configured one"),
        "reserve_core": Key(FLAG, "whether one core is left to the system"),
    },
)

FACTOR = Section(
    "FactorSection",
    "Something that may change results, switched off and on.",
    {
        "off": Key(LEVEL, "while it is off; nothing is different if this is not given"),
        "on": Key(LEVEL, "while it is on", is_required=True),
    },
)

PERTURB = Section(
    "PerturbSection",
    "Input files whose numbers `ciwrap repeat --perturb` changes by a hair for each run.",
    {
        "files": Key(TEXTS, "input files (.npy, HDF5, NetCDF-4), as globs", is_required=True),
        "relative": Key(
            STEP_SIZE, "by how much at most; default: 1e-14 for doubles, 1e-6 for shorter types"
        ),
    },
)

REPEAT = Section(
    "RepeatSection",
    "How `ciwrap repeat` runs the command.",
    {
        "runs": Key(whole(2, MOST_RUNS), "how many runs", 10),
        "reference": Key(
            one_of("first", "golden"), "what runs are compared with: the first one, or the golden"
        ),
        "factors": Key(MappingOf(FACTOR), "what `--vary` can switch, by name"),
        "design": Key(
            one_of("full", "fractional", "one-at-a-time"),
            "which combinations of factors are run: all (up to 4 factors), a fraction of resolution"
            " IV (5 to 8), or each factor alone",
        ),
        "perturb": Key(PERTURB, "input files that `--perturb` changes by a hair"),
    },
)

TIMING = Section(
    "TimingSection",
    "How `ciwrap time` takes run times.",
    {
        "command": Key(COMMAND, "what is timed, instead of the command of `run`"),
        "build": Key(COMMAND, "builds a revision in its working tree, before it is timed"),
        "pairs": Key(whole(1, 1000), "how many pairs of runs; of one command, how many runs", 10),
        "until_decided": Key(
            whole(2, 1000),
            "take more pairs, twice as many each time, until it is decided: up to so many",
        ),
        "decides": Key(
            one_of("time", "cpu"),
            "what the verdict is of: `time` on the clock, or `cpu`, processor time",
            "time",
        ),
        "margin": Key(
            MARGIN,
            "the smallest change that matters, as more time of the slower side; 0.05: 5 %",
            0.05,
        ),
        "confidence": Key(
            CONFIDENCE, "how sure interval and verdict are; 0.95, or 0.99 where the verdict gates"
        ),
        "gate": Key(FLAG, "exit code 1 where B takes longer, by the margin or more", False),
        "warm_up": Key(whole(0, 100), "runs of either side before those that count", 1),
        "reserve_core": Key(FLAG, "leave one core to the operating system", False),
        "duet": Key(
            FLAG, "run both sides of a pair at the same time, each on half of the cores", False
        ),
        "timeout_seconds": Key(SECONDS, "end a run after so many seconds"),
        "max_seconds": Key(SECONDS, "exit code 1 if the median of B is longer"),
        "max_memory": Key(
            byte_size(1, 1 << 50),
            "exit code 1 where a run of B takes more memory at its peak (`2 GiB`)",
        ),
    },
)

SNAPSHOT = Section(
    "SnapshotSection",
    "What snapshots of the environment hold (docs/how-to/snapshots.md).",
    {
        "objects": Key(
            FLAG,
            "look at the command's processes while it runs, for the libraries that they load",
            True,
        ),
        "keep_files": Key(
            FLAG, "`ciwrap snapshot save` keeps the libraries themselves, too", False
        ),
    },
)

STRICT = Section(
    "StrictSection",
    "Which mismatches make a check not comparable.",
    {name: Key(form, text) for name, (form, text) in STRICT_KEYS.items()},
)

_REGION = Section(
    "RegionSection",
    "A region of a VELOC checkpoint.",
    {
        "dtype": Key(TEXT, "such as float64", is_required=True),
        "shape": Key(LENGTHS, "lengths; one may be -1"),
        "name": Key(TEXT, "what the variable is called"),
    },
    short=lambda value: {"dtype": value} if isinstance(value, str) else value,
    short_schema=({"type": "string"},),
)

OPTIONS = Section(
    "OptionsSection",
    "Options of ciwrap's own readers.",
    {
        "dtype": Key(TEXT, "raw: such as float32, '>f8', bfloat16"),
        "shape": Key(LENGTHS, "raw: lengths; one may be -1 (as the file's size says)"),
        "offset": Key(OFFSET, "raw: bytes before the array"),
        "byte_order": Key(BYTE_ORDER, "raw: little (default) or big; fortran: what fits"),
        "records": Key(
            RECORDS, "fortran: for each record names and dtype, or of each variable its dtype"
        ),
        "first_records": Key(RECORDS, "fortran: records that come once, before 'records'"),
        "mark_bytes": Key(MARK_BYTES, "fortran: length of a record's marks; what fits"),
        "delimiter": Key(ANY_TEXT, "text: between columns; 'space' for blanks"),
        "header": Key(HEADER_WORD, "text: whether the first line names columns"),
        "comment": Key(MARKS, "text: what comment lines begin with, or a list of such marks"),
        "widths": Key(LENGTHS, "text: widths of columns that may touch, as `[5, 12, 12]`"),
        "skip_rows": Key(whole(0, 1 << 31), "text: lines at the start that are no part of it"),
        "iteration": Key(TEXT, "text: the column whose whole numbers are the steps of the rows"),
        "types": Key(MappingOf(COLUMN_TYPE), "text: types of columns"),
        "empty_is_nan": Key(FLAG, "text: whether empty cells of numbers are NaN (true), or errors"),
        "final_newline": Key(FLAG, "text: whether a last line without a line break is an error"),
        "ignore": Key(
            TEXTS, "tokens: what is not compared (dates, times, paths, hosts, pids, memory)"
        ),
        "ignore_lines": Key(TEXTS, "tokens: lines that are left out; `*` stands for any text"),
        "ignore_places": Key(
            PLACES,
            "tokens: lines with `{}` for a number that is left out, `#` for any other; or a mapping"
            " with `section`, and `place` unless all of its lines are left out",
        ),
        "iterations": Key(
            TEXT, "files with a history: 'auto', 'none', or the dimension that is time"
        ),
        "iteration_variable": Key(
            TEXT, "files with a history: the variable whose values number the iterations"
        ),
        "iteration_step": Key(
            STEP_SIZE,
            "what one iteration adds to that variable, or to the times in paths and logs"
            " (`{iteration}`)",
        ),
        "attributes": Key(
            FLAG_OR_TEXTS,
            "names of attributes that belong to a variable as its dtype does (units, calendar,"
            " _FillValue, scale_factor and others); true: compare all others, too; false: none",
        ),
        "regions": Key(
            MappingOf(_REGION), "veloc: dtype, and name and shape, of each region by its id"
        ),
    },
)

FORMAT_RULE = Section(
    "FormatSection",
    "The reader of some files.",
    {
        "format": Key(TEXT, "the reader", is_required=True),
        "options": Key(ANY_MAPPING, "options of that reader, in place of those of the check"),
    },
    short=lambda value: {"format": value} if isinstance(value, str) else value,
    short_schema=({"type": "string"},),
)

_CHECK_KEYS = {
    **_SETTINGS,
    "outputs": Key(
        TEXTS,
        "files, folders, globs, or templates such as out/iter_{iteration:d}/{name}.npy",
        is_required=True,
    ),
    "exclude": Key(TEXTS, "files to leave out, as globs", ()),
    "layout": Key(TEXT, "where iteration, rank and name are in a path, if 'outputs' does not say"),
    "format": Key(TEXT, "the reader, if the suffix does not tell"),
    "formats": Key(
        MappingOf(FORMAT_RULE),
        'readers of the files that a glob means, such as `"*.e": netcdf`; of several globs that'
        " fit, the first counts",
    ),
    # Foreign readers have options of their own; see `loading`.
    "options": Key(ANY_MAPPING, "options of the reader"),
    **SOURCE_KEYS,
    **LOG_KEYS,
    "run": Key(RUN, "a command of this check's own"),
    "ignore": Key(TEXTS, "variables to leave out, as names or globs", ()),
    "until_iteration": Key(
        whole(0, 1 << 53), "the last iteration to compare; later ones count as ignored"
    ),
    "ensemble": Key(
        TEXTS,
        "folders of runs, as globs; each holds these outputs of one run, and their statistics are"
        " compared with an ensemble",
    ),
    "duplicates": Key(
        DUPLICATES, "which counts of what was written twice: an error, the first, the last"
    ),
    "strict": Key(STRICT, "which mismatches are errors"),
    "variables": Key(
        MappingOf(BOUND),
        "settings by name or glob; of several that match, the last counts, and a name before any"
        " glob",
    ),
}

CHECK = Section("CheckSection", "One check.", _CHECK_KEYS, check=refuse_two_bounds)

NAMED_CHECK = Section(
    "NamedCheckSection",
    "One check of a list.",
    {**_CHECK_KEYS, "name": Key(TEXT, "the check's name", is_required=True)},
    check=refuse_two_bounds,
)

CONFIG = Section(
    "ConfigSection",
    "ciwrap.yaml",
    {
        "version": Key(FORMAT_VERSION, "version of this format", 1),
        "golden_dir": Key(TEXT, "folder of the goldens", "golden"),
        "defaults": Key(BOUND, "settings for all checks"),
        "run": Key(RUN, "the command that makes the outputs"),
        "repeat": Key(REPEAT, "what `ciwrap repeat` does"),
        "timing": Key(TIMING, "what `ciwrap time` does"),
        "snapshot": Key(SNAPSHOT, "what snapshots of the environment hold"),
        "checks": Key(MappingOrList(MappingOf(CHECK), NAMED_CHECK), "the checks, by name"),
    },
)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ciwrap.yaml, for editors; stable between releases of one version."""
    defs: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ciwrap.yaml",
        **_mapping(CONFIG, defs),
        "$defs": defs,
    }


def _mapping(section: Section, defs: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "additionalProperties": False,
        "description": section.help,
        "properties": {name: _property(key, defs) for name, key in section.keys.items()},
        "type": "object",
    }
    required = [name for name, key in section.keys.items() if key.is_required]
    return {**made, "required": required} if required else made


def _property(key: Key, defs: dict[str, Any]) -> dict[str, Any]:
    made = {**_schema_of(key.kind, defs), "description": key.help}
    if key.default is not None:
        made["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    return made


def _schema_of(kind: Form | Section | MappingOf | MappingOrList, defs: dict[str, Any]) -> Any:
    if kind is ANY_MAPPING:  # our own readers know what their options are
        return {"anyOf": [_reference(OPTIONS, defs), {"type": "object"}]}
    if isinstance(kind, Form):
        return dict(kind.schema)
    if isinstance(kind, MappingOf):
        return {"additionalProperties": _schema_of(kind.kind, defs), "type": "object"}
    if isinstance(kind, MappingOrList):
        listed = {"items": _reference(kind.listed, defs), "type": "array"}
        return {"oneOf": [_schema_of(kind.by_name, defs), listed]}
    made = _reference(kind, defs)
    return {"anyOf": [made, *kind.short_schema]} if kind.short_schema else made


def _reference(section: Section, defs: dict[str, Any]) -> dict[str, Any]:
    if section.name not in defs:
        defs[section.name] = {}  # keeps its place: what it refers to comes after it
        defs[section.name] = _mapping(section, defs)
    return {"$ref": f"#/$defs/{section.name}"}
