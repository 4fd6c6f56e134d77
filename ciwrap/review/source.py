"""The source of a test, for who has to decide about its numbers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ciwrap.errors import UnreadableFileError, UsageError
from ciwrap.files import read_regular
from ciwrap.golden.places import TestPlace

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.golden.places import Place

_MOST_BYTES = 4 << 20
_Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def source_of(place: Place, root: Path) -> str:
    """The function that makes a check, as its file has it, decorators and all.

    root: of the project. Raises UsageError for a check of no test, UnreadableFileError where its
    file or the function is not there any more.
    """
    test = TestPlace.of(place)
    if test is None:
        raise UsageError(f"{place.check!r} is not a check of a test, so there is no source to show")
    path = root / test.module
    try:
        text = read_regular(path, _MOST_BYTES).decode()
        nodes: list[ast.AST] = [ast.parse(text)]
    except (FileNotFoundError, SyntaxError, ValueError):
        raise UnreadableFileError("is not there, or is not Python", file=path) from None
    for name in test.test.split("::"):
        nodes = [one for node in nodes for one in _children(node) if one.name == name]
    if not nodes:
        raise UnreadableFileError(f"has no {test.test}; it may be inherited", file=path)
    node = nodes[-1]
    assert isinstance(node, _Node)
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def _children(node: ast.AST) -> list[_Node]:
    return [one for one in ast.iter_child_nodes(node) if isinstance(one, _Node)]
