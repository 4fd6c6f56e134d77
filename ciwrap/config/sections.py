"""Sections of ciwrap.yaml: mappings with known keys, and how they are read.

Everything that can be read has `from_text`, which takes what was written (see
`ciwrap.config.nodes`) and raises FormError with the path to what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.model.forms import Form, FormError, nearest, read_at, read_each, shown
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
