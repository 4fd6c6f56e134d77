"""YAML to plain values, keeping where everything stands and what was literally written.

YAML 1.1 guesses types: `1e-6` is a text, `no` a boolean, `010` is eight. Here every scalar stays
the text that was written, and the schema, which knows what a key wants, reads it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from ciwrap.errors import ConfigError, ConfigMissingError
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
            "there is no such file", file=path, remedy="'ciwrap init' writes one"
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
