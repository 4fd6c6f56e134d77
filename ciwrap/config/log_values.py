"""What a check says of logs: its own rules over those it includes over those of a preset."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.config.log_schema import LOG_KEYS, LOG_VALUES, PATTERNS, SOURCE_KEYS
from ciwrap.config.nodes import Document, Location, parse_document, read_document
from ciwrap.config.settings import Expectation, VariableRule
from ciwrap.model import SETTINGS, SettingsLayer
from ciwrap.model.forms import FormError, nearest
from ciwrap.model.variable_settings import BOUND_PARTS
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ciwrap.errors import ConfigError
    from ciwrap.logs.rules import LogRules

    Refuse = Callable[[Document, FormError, Location], ConfigError]

_PRESETS = Path(__file__).parent / "presets"
_GROUPS = ("values", "tables", "steps", "counts")
_WHOLES = (BOUND_PARTS, ("expect", "range"))
_LISTS = ("require", "forbid")


class LogCheck(Struct):
    """What rules of logs mean for a check: options of the reader, and fields of the check."""

    options: dict[str, Any] = field(default_factory=dict)
    rules: tuple[VariableRule, ...] = ()
    exact_names: frozenset[str] = frozenset()
    expected: dict[str, Expectation] = field(default_factory=dict)


def log_check(
    document: Document, section: Mapping[str, Any], location: Location, refuse: Refuse
) -> LogCheck:
    """What the section of a check says. Raises ConfigError, also for files that it includes."""
    given = [key for key in (*LOG_KEYS, *SOURCE_KEYS) if section[key]]
    if section["format"] != "log":
        if given:
            raise document.error(
                f"{given[0]} needs 'format: log'",
                (*location, given[0]),
                at_key=True,
                remedy="add 'format: log' to the check",
            )
        return LogCheck()
    from ciwrap.logs.rules import make_rules

    parts: list[Mapping[str, Any]] = []
    if section["use"] is not None:
        parts.append(preset(section["use"], refuse))
    for number, name in enumerate(section["include"] or ()):
        part = _included(document, document.path.parent / name, refuse)
        if part is None:
            here = (*location, "include", number)
            raise document.error(f"there is no file {name!r} to include", here)
        parts.append(part)
    patterns = {name: one for part in parts for name, one in (part[PATTERNS] or {}).items()}
    try:
        parts = [_alike(part, patterns) for part in (*parts, section)]
        _refuse_lost_references(parts, make_rules(_options(parts)))
    except FormError as error:
        raise refuse(document, error, location) from None
    return _made_of(parts)


def _refuse_lost_references(parts: list[Mapping[str, Any]], rules: LogRules) -> None:
    """Raises FormError where what a value has to be is of a name that no variable will have."""
    from ciwrap.logs.template import Template

    expected = _made_of(parts).expected
    for rule in rules.values:
        if rule.name not in expected or rule.column is not None or rule.lines is not None:
            continue
        # Which groups a regular expression has is known where it is compiled.
        fields = rule.pattern.fields if isinstance(rule.pattern, Template) else ()
        if fields and rule.name not in [one.name for one in fields]:
            raise FormError(
                f"what {rule.name} has to be is said, but its template has no such field; write"
                f" {{{rule.name}}} for the number that is meant",
                ("values", rule.name),
            )


def _alike(part: Mapping[str, Any], patterns: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part, its values that are like a pattern with what that says. Raises FormError."""
    values = {}
    for name, value in (part["values"] or {}).items():
        like = value["like"]
        if like is not None and like not in patterns:
            raise FormError(
                f"no included file has the pattern {like!r}",
                ("values", name, "like"),
                suggestion=nearest(like, list(patterns)),
            )
        base = {} if like is None else patterns[like]
        own = {key: said for key, said in value.items() if said is not None or key not in base}
        values[name] = {**_without_what_is_said_anew(base, own), **own, "like": None}
    return {**part, "values": values}


def _without_what_is_said_anew(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The pattern's rule without its bound or its reference where the value has one: each of them
    is one thing, of which no part is left over.
    """
    gone = {key for one in _WHOLES if any(own.get(key) is not None for key in one) for key in one}
    return {key: None if key in gone else said for key, said in base.items()}


def _included(document: Document, path: Path, refuse: Refuse) -> Mapping[str, Any] | None:
    """The rules of a file that the document includes; None if there is none."""
    if document.beside is None:
        return _read(path, refuse) if path.is_file() else None
    text = document.beside(path)
    return None if text is None else _rules_in(parse_document(text, path), refuse)


def preset(name: str, refuse: Refuse) -> Mapping[str, Any]:
    """The rules that are shipped for a code."""
    return _read(_PRESETS / f"{name}.yaml", refuse)


def rules_of_preset(name: str, refuse: Refuse) -> dict[str, Any]:
    """The reader's options of a preset alone."""
    return _made_of([preset(name, refuse)]).options


def _read(path: Path, refuse: Refuse) -> Mapping[str, Any]:
    """The rules of a file, read once as long as it stays what it is."""
    path = path.resolve()
    status = path.stat()
    return _read_once(
        path, (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino), refuse
    )


@lru_cache(maxsize=16)
def _read_once(path: Path, _: tuple[int, ...], refuse: Refuse) -> Mapping[str, Any]:
    return _rules_in(read_document(path.absolute()), refuse)


def _rules_in(document: Document, refuse: Refuse) -> Mapping[str, Any]:
    from ciwrap.logs.rules import make_rules

    if document.value is None:
        raise document.error("holds no values")
    try:
        section = LOG_VALUES.from_text(document.value)
    except FormError as error:
        raise refuse(document, error, ()) from None
    # Steps may be those of whoever includes the file, and patterns say what is not looked for.
    plain = {key: value for key, value in _options([section]).items() if key != "values"}
    try:
        make_rules(plain)
    except FormError as error:
        raise refuse(document, error, ()) from None
    return section


def _options(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The reader's options; what stands in a later part goes before what has its name."""
    found: dict[str, Any] = {}
    for key in _GROUPS:
        merged: dict[str, Any] = {}
        for part in parts:
            for name, rule in (part[key] or {}).items():
                merged[name] = _plain(rule) if isinstance(rule, dict) else rule
        if merged:
            found[key] = merged
    for key in _LISTS:
        texts = tuple(text for part in parts for text in part[key] or ())
        if texts:
            found[key] = texts
    return found


def _plain(rule: Mapping[str, Any]) -> dict[str, Any]:
    """What the reader wants to know of a rule: bounds are no concern of it."""
    return {
        name: _plain(value) if isinstance(value, dict) else value
        for name, value in rule.items()
        if value is not None and name not in SETTINGS and name not in ("expect", "range")
    }


def _made_of(parts: list[Mapping[str, Any]]) -> LogCheck:
    from ciwrap.logs.rules import make_rules

    options = _options(parts)
    rules: dict[str, VariableRule] = {}
    expected: dict[str, Expectation] = {}
    for part in parts:
        for name, value in (part["values"] or {}).items():
            expected.pop(name, None)
            if (one := _expectation(value)) is not None:
                expected[name] = one
            rules[name] = VariableRule(name, _said(value))
        for name, count in (part["counts"] or {}).items():
            expected.pop(name, None)
            if (one := _expectation(count)) is not None:
                expected[name] = one
        for name, table in (part["tables"] or {}).items():
            rules[name] = VariableRule(name, _said(table))
    exact = {*make_rules(options).label_names, *options.get("counts", {})}
    return LogCheck(
        options,
        tuple(rule for rule in rules.values() if rule.settings.said),
        frozenset(exact),
        expected,
    )


def _expectation(rule: Mapping[str, Any]) -> Expectation | None:
    if rule["expect"] is not None:
        said = rule["expect"]
        is_each = isinstance(said, tuple)
        return Expectation(tuple(map(float, said)) if is_each else (said,), is_each=is_each)
    return None if rule["range"] is None else Expectation(None, *rule["range"])


def _said(section: Mapping[str, Any]) -> SettingsLayer:
    return SettingsLayer.of({n: section[n] for n in SETTINGS if section[n] is not None})
