"""YAML of which nothing is trusted, as plain values.

Only what a document of ours needs is let through: mappings with texts for keys, lists and scalars,
nested a few levels deep. Anchors, aliases, tags and keys given twice are refused. Nodes are taken
from libyaml one event after the other, so no nesting is followed before it is counted.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ciwrap.documents.records import DocumentError

MOST_DEPTH = 8
MOST_NODES = 4_000_000

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"([-+]?)(?:\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")
# 2^63 has 19 digits; a float needs no more than 17, and exponents.
_MOST_DIGITS = 40

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(data: bytes) -> Any:
    """The plain values of a document; of no document at all, None.

    Plain scalars are null, true, false, numbers or texts, as in the core schema of YAML 1.2. The
    caller limits the bytes. Raises DocumentError.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise DocumentError("is not UTF-8 text") from None
    try:
        return _Builder().build(_LOADER(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        why = " (a merge conflict was left in it)" if "<<<<<<<" in text else ""
        raise DocumentError(f"is not valid YAML{where}{why}") from None


class _Builder:
    """Builds values from events without recursion. Each open collection is a list or a dictionary
    and, for a dictionary, the key whose value comes next.
    """

    def __init__(self) -> None:
        self._open: list[tuple[Any, list[str]]] = []
        self._value: Any = None
        self._nodes = 0

    def build(self, loader: Any) -> Any:
        documents = 0
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.NodeEvent):
                self._nodes += 1
                if self._nodes > MOST_NODES:
                    raise DocumentError(f"holds more than {MOST_NODES} values")
                # An alias has an anchor, too.
                if event.anchor is not None:
                    raise _refused("uses an anchor or an alias", event)
                if getattr(event, "tag", None) is not None:
                    raise _refused("uses a tag", event)
                self._add(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _refused("is more than one document", event)
        return self._value

    def _add(self, event: yaml.NodeEvent) -> None:
        """Puts a node where it belongs: into the innermost open collection, or as its next key."""
        holder, key = self._open[-1] if self._open else (None, [])
        if isinstance(holder, dict) and not key:
            if not isinstance(event, yaml.ScalarEvent):
                raise _refused("has a key that is not text", event)
            if event.value in holder:
                raise _refused(f"has the key {event.value[:100]!r} twice", event)
            key.append(event.value)
            return
        value = _value_of(event)
        if holder is None:
            self._value = value
        elif isinstance(holder, list):
            holder.append(value)
        else:
            holder[key.pop()] = value
        if isinstance(value, (dict, list)):
            if len(self._open) == MOST_DEPTH:
                raise _refused(f"is nested more than {MOST_DEPTH} levels deep", event)
            self._open.append((value, []))


def _value_of(event: yaml.NodeEvent) -> Any:
    """A scalar's value, or an empty collection that is yet to be filled."""
    if not isinstance(event, yaml.ScalarEvent):
        return {} if isinstance(event, yaml.MappingStartEvent) else []
    text: str = event.value
    if not event.implicit[0]:  # it stood in quotes or in a block
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    is_integer = _INTEGER.fullmatch(text) is not None
    if is_integer or _FLOAT.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise _refused("holds a number that is too long", event)
        return int(text) if is_integer else float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _refused(what: str, event: yaml.Event) -> DocumentError:
    assert event.start_mark is not None
    return DocumentError(f"{what} (line {event.start_mark.line + 1})")
