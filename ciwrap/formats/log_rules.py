"""The rules of a log: which of its lines hold values, tables, steps and marks.

They are made of plain mappings, as ciwrap.yaml and its presets have them, or as a program hands
them over; whatever is wrong with these is a FormError with the path to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from ciwrap.formats.log_template import Field, Template
from ciwrap.model.settings import FormError, cut, read_at, shown

# What the options of the reader are called; each is a key of a check, too.
KEYS = ("values", "tables", "steps", "counts", "require", "forbid")
STEP = "iteration"
# The variable that labels the elements of another one.
STEP_SUFFIX = ".step"
MOST_CHARACTERS = 2000
NAME = re.compile(r"[^\s*?\[\]{}/]+")


class RegexRule(Struct, frozen=True):
    """A regular expression in RE2's syntax; the reader compiles it."""

    text: str


Pattern: TypeAlias = "Template | RegexRule"


class SectionRule(Struct, frozen=True):
    """Lines from one that matches `start` on, up to one that matches `end` (None: to the end)."""

    start: Template
    end: Template | None


class LinesRule(Struct, frozen=True):
    """Lines after a match: `skip` are passed over, then `count` are read, or all up to one that
    matches `until` (None: up to a blank one, or, `until_words`, up to one that begins with no
    number).
    """

    skip: int
    count: int | None
    until: Template | None
    until_words: bool = False


class ValueRule(Struct, frozen=True):
    """A value, wherever it stands. column: of words, from 1, from -1 backwards. step: the name of
    the StepRule that labels its matches. take, duplicates: as in ciwrap.yaml. is_optional: whether
    a log may be without it. is_absolute: whether its sign says nothing.
    """

    name: str
    pattern: Pattern
    column: int | None = None
    take: str = "all"
    step: str | None = None
    lines: LinesRule | None = None
    section: SectionRule | None = None
    duplicates: str = "error"
    is_optional: bool = False
    is_absolute: bool = False


class TableRule(Struct, frozen=True):
    """A table: a line of names that matches `header`, then rows of as many numbers; or, for each
    row, lines of `NAME = NUMBER` behind one that matches `blocks` and tells the step.
    """

    name: str
    header: Template
    end: Template | None
    iteration: str | None = None
    section: SectionRule | None = None
    duplicates: str = "error"
    is_optional: bool = False
    blocks: Template | None = None


class StepRule(Struct, frozen=True):
    """Lines that say which step a program is at. is_after: whether what follows them is of it."""

    name: str
    pattern: Pattern
    is_after: bool


class LogRules(Struct, frozen=True):
    """All that is looked for in a log."""

    values: tuple[ValueRule, ...] = ()
    tables: tuple[TableRule, ...] = ()
    steps: tuple[StepRule, ...] = ()
    counts: tuple[tuple[str, Template], ...] = ()
    require: tuple[Template, ...] = ()
    forbid: tuple[Template, ...] = ()

    @property
    def label_names(self) -> frozenset[str]:
        """Names that the variables may have that label the elements of others."""
        found = {f"{one.name}{STEP_SUFFIX}" for one in self.values}
        for label in (f"{one.name}.{one.iteration}" for one in self.tables if one.iteration):
            found |= {label, f"{label}{STEP_SUFFIX}"}
        for one in self.values:
            if isinstance(one.pattern, Template):
                found |= {f"{one.name}.{field.name}{STEP_SUFFIX}" for field in one.pattern.fields}
        return frozenset(found)


def make_rules(given: Mapping[str, Any]) -> LogRules:
    """The rules that options hold. Raises FormError."""
    steps = _each(given, "steps", _step)
    names = [one.name for one in steps]

    def value(name: str, written: Any) -> ValueRule:
        found = _value(name, written)
        if found.step is not None and found.step not in names:
            known = ", ".join(names) or "none"
            raise FormError(f"there are no steps {cut(found.step)!r} (known: {known})", ("step",))
        return found

    rules = LogRules(
        _each(given, "values", value),
        _each(given, "tables", _table),
        steps,
        _each(
            given,
            "counts",
            lambda name, said: (name, _template(_mapping(said, "match").get("match"))),
        ),
        _templates(given, "require"),
        _templates(given, "forbid"),
    )
    seen: set[str] = set()
    for key, group in (
        ("values", [one.name for one in rules.values]),
        ("tables", [one.name for one in rules.tables]),
        ("counts", [name for name, _ in rules.counts]),
    ):
        for name in group:
            if name in seen:
                raise FormError("another value, table or count has this name", (key, name))
            seen.add(name)
    return rules


def _each(given: Mapping[str, Any], key: str, make: Any) -> tuple[Any, ...]:
    mapping = given.get(key) or {}
    if not isinstance(mapping, dict):
        raise FormError(f"must be a mapping of names, not {shown(mapping)}", (key,))

    def one(name: Any) -> Any:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise FormError(f"{cut(name)!r} is no name: it holds white space or one of */?[]{{}}")
        return make(name, mapping[name])

    return tuple(read_at(key, lambda name: read_at(name, one, name), name) for name in mapping)


def _templates(given: Mapping[str, Any], key: str) -> tuple[Template, ...]:
    texts = given.get(key) or ()
    texts = (texts,) if isinstance(texts, str) else texts
    if not isinstance(texts, (list, tuple)):
        raise FormError(f"must be a list of templates, not {shown(texts)}", (key,))
    return tuple(read_at(key, _template, text) for text in texts)


def _template(text: Any) -> Template:
    if not isinstance(text, str) or not text.strip():
        raise FormError(f"must be a template, not {shown(text)}")
    return Template(str(text))


def _at(given: Mapping[str, Any], key: str) -> Template | None:
    return None if given.get(key) is None else read_at(key, _template, given[key])


def _pattern(written: Mapping[str, Any], keys: tuple[str, ...]) -> Pattern:
    there = [key for key in keys if written.get(key) is not None]
    if len(there) != 1:
        raise FormError(f"needs one of {', '.join(keys)}" + (", not more" if there else ""))
    key = there[0]
    if key != "regex":
        template: Template = read_at(key, _template, written[key])
        return template
    text = written[key]
    if not isinstance(text, str) or not text or len(text) > MOST_CHARACTERS:
        raise FormError(
            f"must be a regular expression of at most {MOST_CHARACTERS} characters", (key,)
        )
    return RegexRule(str(text))


def _mapping(written: Any, short: str) -> dict[str, Any]:
    if isinstance(written, str):
        return {short: written}
    if not isinstance(written, dict):
        raise FormError(f"must be a template or a mapping, not {shown(written)}")
    return written


def _value(name: str, written: Any) -> ValueRule:
    given = _mapping(written, "match")
    pattern = _pattern(given, ("match", "regex", "line"))
    column, lines = given.get("column"), given.get("lines")
    fields = pattern.fields if isinstance(pattern, Template) else ()
    if given.get("line") is not None:
        if column is None:
            raise FormError("needs a 'column': the number of a word", ("line",))
        if fields:
            raise FormError("holds a field; 'column' says which word is the value", ("line",))
    if column == 0:
        raise FormError("counts from 1, or from -1 backwards", ("column",))
    if column is not None and lines is not None:
        raise FormError("cannot be used with 'lines'", ("column",))
    has_data = any(
        field.kind != "text" or field.name == name for field in fields if field.name != STEP
    )
    is_regex = isinstance(pattern, RegexRule)
    if not (column or lines is not None or has_data or is_regex):
        raise FormError(f"holds no number such as {{{name}}}", ("match",))
    if lines is not None and fields:
        raise FormError(
            "holds a field; the numbers of the lines after it are the value. Write {*}", ("match",)
        )
    if column is not None and given.get("match") is not None:
        raise FormError("cannot be used with 'match'; write 'line'", ("column",))
    _refuse_other_step(pattern, given)
    return ValueRule(
        name,
        pattern,
        column,
        given.get("take") or "all",
        given.get("step"),
        None if lines is None else read_at("lines", _lines, lines),
        _section(given),
        given.get("duplicates") or "error",
        bool(given.get("optional")),
        bool(given.get("absolute")),
    )


def _refuse_other_step(pattern: Pattern, given: Mapping[str, Any]) -> None:
    has_own = isinstance(pattern, Template) and any(one.name == STEP for one in pattern.fields)
    if has_own and given.get("step") is not None:
        raise FormError(f"cannot be used with {{{STEP}:int}} in the template", ("step",))
    if given.get("lines") is not None and (has_own or given.get("step") is not None):
        raise FormError("cannot be labelled by steps; their numbers are counted", ("lines",))
    _refuse_text_as_step(pattern)


def _refuse_text_as_step(pattern: Pattern) -> None:
    if isinstance(pattern, Template) and Field(STEP, "text") in pattern.fields:
        raise FormError(f"write {{{STEP}:int}}, or {{{STEP}}} for a time", ("match",))


def _lines(written: Any) -> LinesRule:
    if not isinstance(written, dict):
        raise FormError(f"must be a mapping with 'skip', 'count', 'until', not {shown(written)}")
    until = written.get("until")
    count = written.get("count")
    if count is not None and until is not None:
        raise FormError("cannot be used with 'until'", ("count",))
    is_plain = until is None or until in ("blank", "words")
    template = None if is_plain else read_at("until", _template, until)
    return LinesRule(int(written.get("skip") or 0), count, template, until == "words")


def _section(given: Mapping[str, Any]) -> SectionRule | None:
    said = given.get("section")
    if said is None:
        return None
    start = read_at("section", lambda one: _at(one, "start"), said)
    if start is None:
        raise FormError("needs 'start'", ("section",))
    return SectionRule(start, read_at("section", lambda one: _at(one, "end"), said))


def _table(name: str, written: Any) -> TableRule:
    given = _mapping(written, "header")
    text = given.get("header")
    if not isinstance(text, str) or not text.strip():
        raise FormError("needs a 'header': the line that names the columns", ("header",))
    # A bare star at the end means what {*} means elsewhere: whatever other columns there are.
    header = read_at(
        "header", lambda one: _template("^" + one.lstrip("^ ")), text.rstrip().removesuffix(" *")
    )
    blocks = _at(given, "blocks")
    if blocks is not None:
        read_at("blocks", _refuse_no_step, blocks)
        if given.get("iteration") is None:
            raise FormError("needs 'iteration': what the steps are called", ("blocks",))
    return TableRule(
        name,
        header,
        _at(given, "end"),
        given.get("iteration"),
        _section(given),
        given.get("duplicates") or "error",
        bool(given.get("optional")),
        blocks,
    )


def _refuse_no_step(pattern: Template) -> None:
    if [one.name for one in pattern.fields] != [STEP]:
        raise FormError(f"needs {{{STEP}:int}} (or {{{STEP}}} for a time), and no other field")


def _step(name: str, written: Any) -> StepRule:
    given = _mapping(written, "match")
    pattern = _pattern(given, ("match", "regex"))
    _refuse_text_as_step(pattern)
    if isinstance(pattern, Template):
        read_at("match", _refuse_no_step, pattern)
    return StepRule(name, pattern, (given.get("covers") or "after") == "after")
