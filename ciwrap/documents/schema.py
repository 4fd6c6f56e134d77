"""The JSON Schema of documents, made of the types that their records have.

Texts come from the records' docstrings, where `name: what it is.` tells of a field.
"""

from __future__ import annotations

import inspect
import re
from numbers import Real
from typing import TYPE_CHECKING, Any

import msgspec.inspect as types

from ciwrap.documents.records import NOT_FINITE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NUMBER = {
    "description": "JSON has no NaN and no infinities; they are these strings",
    "anyOf": [{"type": "number"}, {"enum": sorted(NOT_FINITE)}],
}
_PLAIN = {
    types.AnyType: {},
    types.NoneType: {"type": "null"},
    types.BoolType: {"type": "boolean"},
    types.FloatType: {"type": "number"},
}


class Schema:
    """Definitions of records, each made when it is first referred to.

    always: fields that are written although they are at their default. beside: records whose fields
    stand beside those of another one, in the same object. names: what a field of that name is held
    to besides its type. conditions: what a record is held to beyond its fields.
    """

    def __init__(
        self,
        always: Mapping[type, frozenset[str]],
        beside: Mapping[type, type],
        names: Mapping[str, Mapping[str, Any]],
        conditions: Mapping[type, Mapping[str, Any]],
    ) -> None:
        self._always = always
        self._beside = beside
        self._names = names
        self._conditions = conditions
        self.definitions: dict[str, Any] = {}

    def reference(self, kind: type) -> dict[str, Any]:
        """A reference to a record's definition."""
        name = kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # keeps its place: what it refers to comes after it
            self.definitions[name] = self._definition(kind)
        return {"$ref": f"#/$defs/{name}"}

    def _definition(self, kind: type) -> dict[str, Any]:
        text, _ = _texts_of(kind)
        properties: dict[str, Any] = {}
        required: list[str] = []
        for part in (self._beside.get(kind), kind):
            if part is not None:
                self._add_fields(part, properties, required)
        return {
            "description": text,
            "type": "object",
            "additionalProperties": False,
            "required": required,
            "properties": properties,
            **self._conditions.get(kind, {}),
        }

    def _add_fields(self, kind: type, properties: dict[str, Any], required: list[str]) -> None:
        always = self._always.get(kind, frozenset())
        _, texts = _texts_of(kind)
        for item in _fields_of(kind):
            is_written = item.required or item.name in always
            made = self._of(item.type, may_be_null=is_written)
            made = _with(made, self._names.get(item.name, {}))
            words = texts.get(item.name)
            properties[item.name] = made if words is None else {**made, "description": words}
            if is_written:
                required.append(item.name)

    def _of(self, kind: types.Type, *, may_be_null: bool = True) -> dict[str, Any]:
        if type(kind) in _PLAIN:
            return dict(_PLAIN[type(kind)])
        if isinstance(kind, types.IntType):
            return {"type": "integer", "minimum": 0 if kind.ge is None else kind.ge}
        if isinstance(kind, types.StrType):
            return {"type": "string"} | ({} if kind.pattern is None else {"pattern": kind.pattern})
        if isinstance(kind, types.LiteralType):
            return _one_of(kind.values)
        if isinstance(kind, types.EnumType):
            return _one_of([one.value for one in kind.cls])
        if isinstance(kind, types.VarTupleType):
            return {"type": "array", "items": self._of(kind.item_type)}
        if isinstance(kind, types.TupleType):
            items = [self._of(item) for item in kind.item_types]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if isinstance(kind, types.DictType):
            return {"type": "object", "additionalProperties": self._of(kind.value_type)}
        if isinstance(kind, types.Metadata):
            return self._of(kind.type, may_be_null=may_be_null)
        if isinstance(kind, types.UnionType):
            return self._union(kind, may_be_null)
        if isinstance(kind, types.CustomType) and kind.cls is Real:
            self.definitions["number"] = _NUMBER
            return {"$ref": "#/$defs/number"}
        assert isinstance(kind, (types.DataclassType, types.StructType)), kind
        return self.reference(kind.cls)

    def _union(self, kind: types.UnionType, may_be_null: bool) -> dict[str, Any]:
        """A union; without null where a field that is null is left out."""
        parts = [
            self._of(part)
            for part in kind.types
            if may_be_null or not isinstance(part, types.NoneType)
        ]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _one_of(values: Iterable[Any]) -> dict[str, Any]:
    found = list(values)
    return {"const": found[0]} if len(found) == 1 else {"enum": found}


def _with(made: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema allows, held to something more: in each of its parts but null."""
    if "enum" in made or "const" in made:
        return made
    if "anyOf" in made:
        null = {"type": "null"}
        return {"anyOf": [part if part == null else {**part, **more} for part in made["anyOf"]]}
    return {**made, **more}


def _fields_of(kind: type) -> tuple[types.Field, ...]:
    info = types.type_info(kind)
    assert isinstance(info, (types.DataclassType, types.StructType)), kind
    return info.fields


def _texts_of(kind: type) -> tuple[str, dict[str, str]]:
    """What a docstring says of a record, and of its fields."""
    whole = " ".join((inspect.getdoc(kind) or "").split()).partition(" Raises ")[0]
    whole = re.sub(r"\bNone\b", "null", whole)
    names = "|".join(item.name for item in _fields_of(kind))
    # `first, second: what both are.`, at the beginning of a sentence.
    found = list(re.finditer(rf"(?:^|(?<=[.:)] ))((?:(?:{names}), )*(?:{names})): ", whole))
    ends = [*(match.start() for match in found), len(whole)]
    texts = {
        name: whole[match.end() : end].strip().rstrip(".")
        for match, end in zip(found, ends[1:], strict=True)
        for name in match[1].split(", ")
    }
    return whole[: ends[0]].strip(), texts
