"""Loads ciwrap.yaml: parse, validate, and turn what the schema holds into plain settings."""

from __future__ import annotations

import difflib
from importlib import metadata
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ciwrap.config.nodes import Document, Location, parse_document, read_document
from ciwrap.config.scalars import plain_value
from ciwrap.config.schema import (
    OWN_FORMATS,
    BoundSection,
    CheckSection,
    ConfigSection,
    OptionsSection,
    RunSection,
)
from ciwrap.config.settings import (
    Check,
    CommandSettings,
    Config,
    SettingsLayer,
    Strictness,
    VariableRule,
)
from ciwrap.errors import ConfigError, ConfigMissingError
from ciwrap.model import ErrorBound, EvidencePolicy
from ciwrap.patterns import PathPattern

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

CONFIG_NAME = "ciwrap.yaml"
READER_GROUP = "ciwrap.readers"


def load(path: Path) -> Config:
    """See `ciwrap.config.load_config`."""
    return _config(read_document(path.absolute()))


def load_text(text: str, path: Path) -> Config:
    """A configuration from its text, as if it stood in `path`."""
    return _config(parse_document(text, path.absolute()))


def find(start: Path) -> Path:
    """See `ciwrap.config.find_config`."""
    here = start.resolve()
    for folder in (here, *here.parents):
        candidate = folder / CONFIG_NAME
        if candidate.is_file():
            return candidate
        if (folder / ".git").exists():
            break
    raise ConfigMissingError(
        f"there is no {CONFIG_NAME} here or above", file=start, remedy="'ciwrap init' writes one"
    )


def schema() -> dict[str, Any]:
    """See `ciwrap.config.json_schema`."""
    made = ConfigSection.model_json_schema()
    own_options = OptionsSection.model_json_schema()
    made["$defs"].update(own_options.pop("$defs", {}))
    made["$defs"]["OptionsSection"] = own_options
    options = {"anyOf": [{"$ref": "#/$defs/OptionsSection"}, {"type": "object"}]}
    for name in ("CheckSection", "NamedCheckSection"):
        made["$defs"][name]["properties"]["options"].update(options)
    words = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    short = [{"$ref": "#/$defs/RunSection"}, {"type": "string", "minLength": 1}, words]
    for section in (made, *(made["$defs"][name] for name in ("CheckSection", "NamedCheckSection"))):
        section["properties"]["run"]["anyOf"] = short
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _tidy(made)
    made["title"] = "ciwrap.yaml"
    return made


def _tidy(part: Any) -> None:
    """Takes out what only pydantic means: titles made of names, and null for what is not given."""
    if isinstance(part, list):
        for item in part:
            _tidy(item)
    if not isinstance(part, dict):
        return
    for inner in part.values():
        _tidy(inner)
    if isinstance(part.get("title"), str):
        del part["title"]
    if "default" in part and part["default"] is None:
        del part["default"]
        choices = [choice for choice in part.pop("anyOf") if choice != {"type": "null"}]
        part.update(choices[0] if len(choices) == 1 else {"anyOf": choices})


def _config(document: Document) -> Config:
    if document.value is None:
        raise document.error("is empty", remedy="'ciwrap init' writes a starter")
    try:
        section = ConfigSection.model_validate(document.value)
    except ValidationError as error:
        raise _first_error(document, error) from None
    root = document.path.parent
    defaults = SettingsLayer() if section.defaults is None else _layer(section.defaults)
    located: list[tuple[str, CheckSection, Location]]
    if isinstance(section.checks, tuple):
        located = [(check.name, check, ("checks", n)) for n, check in enumerate(section.checks)]
    else:
        located = [(name, check, ("checks", name)) for name, check in section.checks.items()]
    if not located:
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
        checks[name] = _check(document, root, name, check, location, defaults)
    return Config(
        path=document.path,
        root=root,
        golden_dir=root / section.golden_dir,
        checks=tuple(checks.values()),
        command=_command(root, section.run),
    )


def _check(
    document: Document,
    root: Path,
    name: str,
    section: CheckSection,
    location: Location,
    defaults: SettingsLayer,
) -> Check:
    if not section.outputs:
        raise document.error("names no outputs", (*location, "outputs"))
    _check_patterns(document, section, location)
    _check_format(document, section, location)
    strict = section.strict
    return Check(
        name=name,
        root=root,
        outputs=section.outputs,
        exclude=section.exclude,
        layout=section.layout,
        format=section.format,
        options=_options(document, section, location),
        command=_command(root, section.run),
        ignore=section.ignore,
        strict=Strictness()
        if strict is None
        else Strictness(strict.dtype, strict.shape, strict.variables),
        layers=(defaults, _layer(section)),
        rules=tuple(
            VariableRule(pattern, _layer(rule)) for pattern, rule in section.variables.items()
        ),
        config_path=document.path,
        line=document.line_of(location),
        duplicates=section.duplicates or "error",
    )


def _check_patterns(document: Document, section: CheckSection, location: Location) -> None:
    """A wrong field in a template is found here, where its line is known."""
    patterns = [("outputs", n, text) for n, text in enumerate(section.outputs)]
    patterns += [("exclude", n, text) for n, text in enumerate(section.exclude)]
    patterns += [] if section.layout is None else [("layout", 0, section.layout)]
    for key, number, text in patterns:
        here = (*location, key, number)
        _check_pattern(document, text, here if here in document.positions else here[:-1])


def _check_pattern(document: Document, text: str, location: Location) -> None:
    try:
        PathPattern(text)
    except ConfigError as error:
        raise document.error(error.message, location, remedy=error.remedy) from None


def _check_format(document: Document, section: CheckSection, location: Location) -> None:
    if section.format is None or section.format in OWN_FORMATS:
        return
    foreign = [entry.name for entry in metadata.entry_points(group=READER_GROUP)]
    names = [*OWN_FORMATS, *sorted({*foreign} - {*OWN_FORMATS})]
    if section.format not in names:
        near = difflib.get_close_matches(section.format, names, 1, 0.5)
        raise document.error(
            f"there is no reader {section.format!r} (there is: {', '.join(names)})",
            (*location, "format"),
            suggestion=near[0] if near else None,
        )


def _options(document: Document, section: CheckSection, location: Location) -> dict[str, Any]:
    if section.options is None:
        return {}
    if section.format is not None and section.format not in OWN_FORMATS:
        return {str(key): plain_value(value) for key, value in section.options.items()}
    try:
        own = OptionsSection.model_validate(section.options)
    except ValidationError as error:
        raise _first_error(document, error, (*location, "options")) from None
    return own.model_dump(exclude_none=True)


def _layer(section: BoundSection) -> SettingsLayer:
    has_bound = not (section.atol is None and section.rtol is None and section.ulps is None)
    return SettingsLayer(
        bound=ErrorBound(section.atol or 0.0, section.rtol or 0.0, section.ulps or 0)
        if has_bound
        else None,
        residue_levels=section.residue_levels,
        chunk_bytes=section.chunk_bytes,
        evidence=None if section.evidence is None else EvidencePolicy(section.evidence),
        data_budget_bytes=section.data_budget_bytes,
        residues_budget_bytes=section.residues_budget_bytes,
        equal_nan=section.equal_nan,
        fill_values=section.fill_values,
        mask=section.mask,
        align_by=section.align_by,
        across_ranks=section.across_ranks,
        period=section.period,
        mixed_precision=section.mixed_precision,
    )


def _command(root: Path, section: RunSection | None) -> CommandSettings | None:
    if section is None:
        return None
    return CommandSettings(
        words=section.command,
        working_dir=root / section.working_dir,
        timeout_seconds=section.timeout_seconds,
        env=dict(section.env),
    )


def _first_error(document: Document, error: ValidationError, prefix: Location = ()) -> Exception:
    """Our error for the one that stands first in the file."""
    located = [(_location(document, prefix, item), item) for item in error.errors()]
    location, item = min(located, key=lambda pair: document.line_of(pair[0]) or 0)
    context = item.get("ctx", {})
    keys = context.get("keys")
    if keys:
        location = (*location, *keys)
    message = str(context["message"]) if item["type"] == "ciwrap" else _words(item)
    other = context.get("other_key")
    if other is not None:
        line = document.line_of((*location[:-1], other))
        message += f", but {other} is given in line {line}"
    suggestion = context.get("suggestion")
    at_key = bool(keys) or bool(context.get("at_key"))
    return document.error(message, location, at_key=at_key, suggestion=suggestion)


def _words(item: ErrorDetails) -> str:
    if item["type"] == "missing":
        return "is required"
    if item["type"] in ("mapping_type", "dict_type"):
        return "must be a mapping of keys to values"
    if item["type"] in ("tuple_type", "list_type"):
        return "must be a list"
    return item["msg"][:1].lower() + item["msg"][1:]


def _location(document: Document, prefix: Location, item: ErrorDetails) -> Location:
    """Where an error belongs: pydantic's path without the steps that are no part of the file."""
    location = prefix
    for step in item["loc"]:
        if (*location, step) in document.positions:
            location = (*location, step)
    return (*location, item["loc"][-1]) if item["type"] == "missing" else location
