"""YAML as plain values: mappings with texts for keys, lists and scalars alone, without anchors,
aliases, tags or repeated keys; its depth is counted before it is followed.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ciwrap.base.documents import MOST_DIGITS, DocumentError, double_of

MOST_DEPTH = 8
MOST_NODES = 4_000_000

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"([-+]?)(?:\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")

# libyaml, from 0.2.6 on, looks for the end of a key before it tells of the lists that begin it.
_TOO_DEEP = "exceeded maximum nesting depth"

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
        return _build(_LOADER(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None and getattr(error, "problem", None) == _TOO_DEEP:
            raise _nested(mark) from None
        where = f" in line {mark.line + 1}" if mark is not None else ""
        why = " (a merge conflict was left in it)" if "<<<<<<<" in text else ""
        raise DocumentError(f"is not valid YAML{where}{why}") from None


def _build(loader: Any) -> Any:
    """Builds values from events, one after the other and without recursion."""
    opened: list[Any] = []  # the lists and dictionaries that are open, the innermost last
    keys: list[str | None] = []  # for each dictionary among them the key whose value comes next
    root: Any = None
    nodes = documents = 0
    get_event = loader.get_event
    while (event := get_event()) is not None:
        kind = type(event)
        if kind in _ENDS:
            opened.pop()
            keys.pop()
            continue
        if kind not in _NODES:
            if kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise _refused("is more than one document", event)
            continue
        nodes += 1
        if nodes > MOST_NODES:
            raise DocumentError(f"holds more than {MOST_NODES} values")
        # An alias has an anchor, too.
        if event.anchor is not None:
            raise _refused("uses an anchor or an alias", event)
        if event.tag is not None:
            raise _refused("uses a tag", event)
        holder = opened[-1] if opened else None
        if type(holder) is dict and keys[-1] is None:
            keys[-1] = _key_of(event, holder)
            continue
        value = _value_of(event) if kind is yaml.ScalarEvent else _EMPTY[kind]()
        if holder is None:
            root = value
        elif type(holder) is list:
            holder.append(value)
        else:
            holder[keys[-1]] = value
            keys[-1] = None
        if kind is not yaml.ScalarEvent:
            if len(opened) == MOST_DEPTH:
                raise _nested(event.start_mark)
            opened.append(value)
            keys.append(None)
    return root


_ENDS = frozenset({yaml.SequenceEndEvent, yaml.MappingEndEvent})
_EMPTY = {yaml.SequenceStartEvent: list, yaml.MappingStartEvent: dict}
_NODES = frozenset({yaml.ScalarEvent, yaml.AliasEvent, *_EMPTY})


def _key_of(event: Any, holder: dict[str, Any]) -> str:
    if type(event) is not yaml.ScalarEvent:
        raise _refused("has a key that is not text", event)
    if event.value in holder:
        raise _refused(f"has the key {event.value[:100]!r} twice", event)
    key: str = event.value
    return key


def _value_of(event: Any) -> Any:
    """A scalar's value, by the core schema of YAML 1.2."""
    text: str = event.value
    if not event.implicit[0]:  # it stood in quotes or in a block
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    is_integer = _INTEGER.fullmatch(text) is not None
    if is_integer or _FLOAT.fullmatch(text):
        if len(text) > MOST_DIGITS:
            raise _refused("holds a number that is too long", event)
        return int(text) if is_integer else double_of(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _nested(mark: yaml.Mark) -> DocumentError:
    return DocumentError(f"is nested more than {MOST_DEPTH} levels deep (line {mark.line + 1})")


def _refused(what: str, event: yaml.Event) -> DocumentError:
    assert event.start_mark is not None
    return DocumentError(f"{what} (line {event.start_mark.line + 1})")
