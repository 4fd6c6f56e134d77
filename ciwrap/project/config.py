"""Loads ciwrap.yaml: parses and validates it, and makes plain settings of what the schema holds.

A check's own rules for logs count before those that it includes, and these before a preset's.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ciwrap.base.errors import ConfigError, ConfigMissingError, UsageError
from ciwrap.base.patterns import PathPattern
from ciwrap.base.words import nearest
from ciwrap.model import SETTINGS, SettingsLayer, Strictness
from ciwrap.model.settings import (
    BOUND_PARTS,
    OWN_FORMATS,
    STRICT_KEYS,
    FormatRule,
    FormError,
)
from ciwrap.project.schema import (
    BOUND,
    CONFIG,
    LOG_KEYS,
    LOG_VALUES,
    OPTIONS,
    PATTERNS,
    PRESETS,
    SOURCE_KEYS,
    TIMING,
    Document,
    Location,
    parse_document,
    plain_value,
    read_document,
)
from ciwrap.project.settings import (
    CONFIG_NAME,
    Check,
    CommandSettings,
    Config,
    Expectation,
    FactorSettings,
    LevelSettings,
    PerturbSettings,
    RepeatSettings,
    RunPlace,
    SnapshotSettings,
    TimingSettings,
    VariableRule,
    placeholders_in,
    stands_for_itself,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ciwrap.formats.log_rules import LogRules

if TYPE_CHECKING:
    Refuse = Callable[[Document, FormError, Location], ConfigError]

_NEAR_NAMES = ("ciwrap.yml", ".ciwrap.yaml", ".ciwrap.yml")
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
    from ciwrap.formats.log_rules import make_rules

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
        _refuse_lost_references(parts, make_rules(_merged_rules(parts)))
    except FormError as error:
        raise refuse(document, error, location) from None
    return _made_of(parts)


def _refuse_lost_references(parts: list[Mapping[str, Any]], rules: LogRules) -> None:
    """Raises FormError where what a value has to be is of a name that no variable will have."""
    from ciwrap.formats.log_template import Template

    expected = _made_of(parts).expected
    for rule in rules.values:
        if rule.name not in expected or rule.column is not None or rule.lines is not None:
            continue
        # Which groups a regular expression has is known where it is compiled.
        fields = rule.pattern.fields if isinstance(rule.pattern, Template) else ()
        if fields and rule.name not in [one.name for one in fields]:
            raise FormError(
                f"there is a rule for {rule.name}, but its template has no such field; write"
                f" {{{rule.name}}} where that number stands",
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
    from ciwrap.formats.log_rules import make_rules

    if document.value is None:
        raise document.error("holds no values")
    try:
        section = LOG_VALUES.from_text(document.value)
    except FormError as error:
        raise refuse(document, error, ()) from None
    # Steps may be those of whoever includes the file, and patterns say what is not looked for.
    plain = {key: value for key, value in _merged_rules([section]).items() if key != "values"}
    try:
        make_rules(plain)
    except FormError as error:
        raise refuse(document, error, ()) from None
    return section


def _merged_rules(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
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
    from ciwrap.formats.log_rules import make_rules

    options = _merged_rules(parts)
    rules: dict[str, VariableRule] = {}
    expected: dict[str, Expectation] = {}
    for part in parts:
        for name, value in (part["values"] or {}).items():
            expected.pop(name, None)
            if (one := _expectation(value)) is not None:
                expected[name] = one
            rules[name] = VariableRule(name, _layer(value))
        for name, count in (part["counts"] or {}).items():
            expected.pop(name, None)
            if (one := _expectation(count)) is not None:
                expected[name] = one
        for name, table in (part["tables"] or {}).items():
            rules[name] = VariableRule(name, _layer(table))
    exact = {*make_rules(options).label_names, *options.get("counts", {})}
    return LogCheck(
        options,
        tuple(rule for rule in rules.values() if rule.settings.given),
        frozenset(exact),
        expected,
    )


def _expectation(rule: Mapping[str, Any]) -> Expectation | None:
    if rule["expect"] is not None:
        said = rule["expect"]
        is_each = isinstance(said, tuple)
        return Expectation(tuple(map(float, said)) if is_each else (said,), is_each=is_each)
    return None if rule["range"] is None else Expectation(None, *rule["range"])


READER_GROUP = "ciwrap.readers"


_ONE_RUN = RunPlace()


def load_config(path: Path, *, needs_checks: bool = True) -> Config:
    """Reads and validates a configuration file. needs_checks: whether one without any is refused.

    Raises ConfigMissingError, or ConfigError with the line and key at fault.
    """
    return _config(read_document(path.absolute()), needs_checks=needs_checks)


def load_runs(path: Path) -> Callable[[RunPlace], Config]:
    """What a configuration, read once, says of each of several runs. Raises as `load_config`; so
    may the function that is returned.
    """
    document = read_document(path.absolute())
    return lambda place: _config(document, place)


def load_text(text: str, path: Path, beside: Callable[[Path], str | None] | None = None) -> Config:
    """A configuration from its text, as if it stood in `path`. beside: as of a Document."""
    return _config(parse_document(text, path.absolute(), beside))


def options_of_preset(name: str) -> dict[str, Any]:
    """The rules that are shipped for a code, as options of the reader of logs.

    Raises UsageError for a code that there are none for.
    """
    if name not in PRESETS:
        raise UsageError(
            f"there are no rules for {name!r} (there are for: {', '.join(PRESETS)})",
        )
    return rules_of_preset(name, _refused)


def find_config(start: Path) -> Path:
    """The ciwrap.yaml of `start` or of the nearest folder above it.

    The search ends at the top of a git work tree. Raises ConfigMissingError.
    """
    here = start.resolve()
    for folder in (here, *here.parents):
        candidate = folder / CONFIG_NAME
        if candidate.is_file():
            return candidate
        for name in _NEAR_NAMES:
            if (folder / name).is_file():
                raise ConfigMissingError(
                    f"is not called {CONFIG_NAME}", file=folder / name, remedy="rename it"
                )
        _refuse_table(folder / "pyproject.toml")
        if (folder / ".git").exists():
            break
    raise ConfigMissingError(
        f"there is no {CONFIG_NAME} here or above", file=start, remedy="'ciwrap init' writes one"
    )


def _refuse_table(path: Path) -> None:
    """Raises ConfigMissingError for a table that is meant for ciwrap, which does not read it."""
    if path.is_file() and re.search(rb"^\[tool\.ciwrap[.\]]", path.read_bytes(), re.MULTILINE):
        raise ConfigMissingError(
            "[tool.ciwrap] is not read", file=path, remedy=f"write its keys to {CONFIG_NAME}"
        )


def find_config_here() -> Path:
    """The configuration of a command that is given none: the one that CIWRAP_CONFIG names, else the
    nearest. Raises UsageError, ConfigMissingError.
    """
    named = os.environ.get("CIWRAP_CONFIG")
    if not named:
        return find_config(Path.cwd())
    if not Path(named).is_file():
        raise UsageError(
            "CIWRAP_CONFIG names no file", file=named, remedy="name a ciwrap.yaml, or unset it"
        )
    return Path(named)


def _config(document: Document, place: RunPlace = _ONE_RUN, *, needs_checks: bool = True) -> Config:
    if document.value is None:
        raise document.error("is empty", remedy="'ciwrap init' writes a starter")
    try:
        section = CONFIG.from_text(document.value)
    except FormError as error:
        raise _refused(document, error) from None
    root = document.path.parent
    defaults = SettingsLayer() if section["defaults"] is None else _layer(section["defaults"])
    located: list[tuple[str, dict[str, Any], Location]]
    if section["checks"] is None and needs_checks:
        raise document.error("checks: is required")
    if section["checks"] is None:
        located = []
    elif isinstance(section["checks"], list):
        located = [(one["name"], one, ("checks", n)) for n, one in enumerate(section["checks"])]
    else:
        located = [(name, one, ("checks", name)) for name, one in section["checks"].items()]
    if not located and section["checks"] is not None:
        raise document.error("holds no check", ("checks",))
    checks: dict[str, Check] = {}
    for name, check, location in located:
        if not name.strip():
            raise document.error("a check needs a name", location)
        if name in checks:
            first = checks[name].line
            raise document.error(
                f"is the second check named {name!r} (first in line {first})", location
            )
        checks[name] = _check(document, root, name, check, location, defaults, place)
    repeat = section["repeat"]
    runs = [section["run"], *(one["run"] for _, one, _ in located)]
    runs += [] if repeat is None else _levels(repeat)
    return Config(
        path=document.path,
        root=root,
        golden_dir=root / section["golden_dir"],
        checks=tuple(checks.values()),
        timing=timing_settings()
        if section["timing"] is None
        else _timing(section["timing"], place),
        command=None if section["run"] is None else _command(root, section["run"], place),
        repeat=RepeatSettings() if repeat is None else _repeat(repeat, place),
        snapshot=SnapshotSettings(**(section["snapshot"] or {})),
        placeholders=placeholders_in(
            *(text for one in runs if one is not None for text in _command_texts(one))
        ),
        output_placeholders=placeholders_in(
            *(text for _, one, _ in located for text in one["outputs"])
        ),
    )


def _check(
    document: Document,
    root: Path,
    name: str,
    section: Mapping[str, Any],
    location: Location,
    defaults: SettingsLayer,
    place: RunPlace,
) -> Check:
    if not section["outputs"]:
        raise document.error("names no outputs", (*location, "outputs"))
    if section["ensemble"] == ():
        raise document.error("names no folders", (*location, "ensemble"))
    # A wrong field in a template is found here, where its line is known.
    for key in ("outputs", "exclude"):
        for number, text in enumerate(section[key]):
            _check_pattern(document, text, (*location, key, number))
    if section["layout"] is not None:
        _check_pattern(document, section["layout"], (*location, "layout"))
    if section["format"] not in (None, *OWN_FORMATS):
        _check_format(document, section["format"], (*location, "format"))
    rules = section["variables"] or {}
    log = log_check(document, section, location, _refused)
    options, strict, run = section["options"], section["strict"], section["run"]
    return Check(
        name=name,
        root=root,
        outputs=tuple(map(place.filled, section["outputs"])),
        exclude=tuple(map(place.filled, section["exclude"])),
        layout=section["layout"],
        format=section["format"],
        formats=tuple(_format_rules(document, section["formats"] or {}, (*location, "formats"))),
        options={
            **({} if options is None else _reader_options(document, section, location)),
            **log.options,
        },
        command=None if run is None else _command(root, run, place),
        ignore=section["ignore"],
        strict=Strictness() if strict is None else Strictness(**_given(strict)),
        layers=(defaults, _layer(section)),
        rules=tuple(VariableRule(pattern, _layer(rule)) for pattern, rule in rules.items()),
        config_path=document.path,
        line=document.line_of(location),
        duplicates=section["duplicates"] or "error",
        until_iteration=section["until_iteration"],
        value_rules=log.rules,
        exact_names=log.exact_names,
        expected=log.expected,
        ensemble=tuple(map(place.filled, section["ensemble"] or ())),
    )


def _check_pattern(document: Document, text: str, location: Location) -> None:
    try:
        PathPattern(_ONE_RUN.filled(text))
    except ConfigError as error:
        here = location if location in document.positions else location[:-1]
        raise document.error(error.message, here, remedy=error.remedy) from None


def _check_format(document: Document, name: str, location: Location) -> None:
    """Raises ConfigError unless another package has a reader of that name."""
    from importlib import metadata

    foreign = [entry.name for entry in metadata.entry_points(group=READER_GROUP)]
    names = [*OWN_FORMATS, *sorted({*foreign} - {*OWN_FORMATS})]
    if name not in names:
        raise document.error(
            f"there is no reader {name!r} (known: {', '.join(names)})",
            location,
            suggestion=nearest(name, names),
        )


def _format_rules(
    document: Document, section: Mapping[str, Any], location: Location
) -> Iterator[FormatRule]:
    for glob, one in section.items():
        here = (*location, glob)
        _check_pattern(document, glob, here)
        if one["format"] not in OWN_FORMATS:
            is_short = (*here, "format") not in document.positions
            _check_format(document, one["format"], here if is_short else (*here, "format"))
        options = None if one["options"] is None else _reader_options(document, one, here)
        yield FormatRule(glob, one["format"], options)


def _reader_options(
    document: Document, section: Mapping[str, Any], location: Location
) -> dict[str, Any]:
    written = section["options"]
    if section["format"] not in (None, *OWN_FORMATS):
        return {str(key): plain_value(value) for key, value in written.items()}
    try:
        return _given(OPTIONS.from_text(written))
    except FormError as error:
        raise _refused(document, error, (*location, "options")) from None


def options_in_words(said: Sequence[str]) -> dict[str, Any]:
    """Options of readers, each as NAME=VALUE, the value as ciwrap.yaml has it.

    Those of our own readers have their forms; of others, a value is what YAML makes of it. Raises
    UsageError.
    """
    written = {name: value_in_words(name, text) for name, text in _pairs(said, "option")}
    own = {name: value for name, value in written.items() if name in OPTIONS.keys}
    try:
        return {**{k: plain_value(v) for k, v in written.items()}, **_given(OPTIONS.from_text(own))}
    except FormError as error:
        raise UsageError(f"--option {'.'.join(map(str, error.path))}: {error.message}") from None


def rules_in_words(said: Sequence[str]) -> tuple[VariableRule, ...]:
    """Settings of single variables, each as PATTERN=NAME=VALUE,... with the settings' own names.

    Raises UsageError and InvalidBoundError.
    """
    rules = []
    for pattern, text in _pairs(said, "bound"):
        words = _pairs(
            re.split(r"[\s,]+(?=[a-z_]+=)", text.strip()), "bound", of=f"{pattern}={text}"
        )
        written = {name: value_in_words(name, value) for name, value in words}
        try:
            rules.append(VariableRule(pattern, _layer(BOUND.from_text(written))))
        except FormError as error:
            raise UsageError(f"--bound {pattern}: {error.message}") from None
    return tuple(rules)


def strictness_in_words(said: Sequence[str]) -> dict[str, Any]:
    """What of `strict` is said, each as NAME=VALUE, by name. Raises UsageError."""
    found = {}
    for name, text in _pairs(said, "strict"):
        if name not in STRICT_KEYS:
            raise UsageError(f"--strict knows no {name!r} (it knows {', '.join(STRICT_KEYS)})")
        try:
            found[name] = STRICT_KEYS[name][0].from_text(text)
        except FormError as error:
            raise UsageError(f"--strict {name}: {error.message}") from None
    return found


def _pairs(said: Sequence[str], option: str, of: str = "") -> Iterator[tuple[str, str]]:
    """of: what was typed, where `said` is what it consists of."""
    for one in said:
        name, sign, text = one.partition("=")
        if not (sign and name.strip() and text.strip()):
            raise UsageError(f"--{option} {of or one!r} lacks a part", remedy=_HOW[option])
        yield name.strip(), text.strip()


_HOW = {
    "option": "write 'empty_is_nan=true'",
    "bound": "write 'NAME=atol=1e-6,rtol=1e-9'",
    "strict": "write 'dtype=false'",
}


def value_in_words(name: str, text: str) -> Any:
    """A value of the command line as the nodes of ciwrap.yaml have it: lists, mappings and quotes
    are YAML's, all else stands for itself. Raises UsageError.
    """
    if stands_for_itself(text):
        return text
    try:
        return parse_document(text, Path(name)).value
    except ConfigError as error:
        raise UsageError(f"{name}={text}: {error.message}") from None


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what nobody gave, in mappings within, too."""
    return {
        key: _given(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }


def _layer(section: Mapping[str, Any]) -> SettingsLayer:
    return SettingsLayer.of({n: section[n] for n in SETTINGS if section[n] is not None})


def _command(root: Path, section: Mapping[str, Any], place: RunPlace) -> CommandSettings:
    return CommandSettings(
        words=_words(section["command"], place),
        working_dir=root / place.filled(section["working_dir"]),
        timeout_seconds=section["timeout_seconds"],
        env=_filled_env(section, place),
    )


def _words(words: str | tuple[str, ...], place: RunPlace) -> str | tuple[str, ...]:
    return place.filled(words) if isinstance(words, str) else tuple(map(place.filled, words))


def _filled_env(section: Mapping[str, Any], place: RunPlace) -> dict[str, str]:
    return {name: place.filled(value) for name, value in (section["env"] or {}).items()}


def _command_texts(section: Mapping[str, Any]) -> tuple[str, ...]:
    """All texts of a command's section in which placeholders may stand."""
    words = section["command"] or ()
    texts = (words,) if isinstance(words, str) else words
    return (*texts, section.get("working_dir") or "", *(section["env"] or {}).values())


def timing_settings() -> TimingSettings:
    """How run times are taken where no configuration says so."""
    return TimingSettings(**TIMING.from_text({}))


def _timing(section: Mapping[str, Any], place: RunPlace) -> TimingSettings:
    words = {
        name: _words(section[name], place)
        for name in ("command", "build")
        if section[name] is not None
    }
    return TimingSettings(**{**section, **words})


def _repeat(section: Mapping[str, Any], place: RunPlace) -> RepeatSettings:
    """The settings of `ciwrap repeat`; those that are not given have their defaults."""
    given = {name: section[name] for name in ("runs", "reference", "design") if section.get(name)}
    factors = tuple(
        FactorSettings(name, _level(one["off"], place), _level(one["on"], place))
        for name, one in (section.get("factors") or {}).items()
    )
    perturb = section.get("perturb")
    return RepeatSettings(
        factors=factors, perturb=None if perturb is None else PerturbSettings(**perturb), **given
    )


def _level(section: Mapping[str, Any] | None, place: RunPlace) -> LevelSettings:
    if section is None:
        return LevelSettings()
    words = section["command"]
    return LevelSettings(
        env=_filled_env(section, place),
        words=None if words is None else _words(words, place),
        reserves_core=bool(section["reserve_core"]),
    )


def _levels(section: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for factor in (section.get("factors") or {}).values():
        yield from (factor[state] for state in ("off", "on") if factor[state] is not None)


def _refused(document: Document, error: FormError, prefix: Location = ()) -> ConfigError:
    """The error with its place in the file."""
    location = (*prefix, *error.path)
    message = error.message
    if error.other_key is not None:
        line = document.line_of((*location[:-1], error.other_key))
        message += f", but {error.other_key} is given in line {line}"
    return document.error(message, location, at_key=error.at_key, suggestion=error.suggestion)
