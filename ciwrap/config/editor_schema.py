"""The JSON Schema of ciwrap.yaml, for editors: made of the same sections that read it."""

from __future__ import annotations

from typing import Any

from ciwrap.config.schema import CONFIG, OPTIONS
from ciwrap.config.sections import ANY_MAPPING, Key, MappingOf, MappingOrList, Section
from ciwrap.model.forms import Form


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
