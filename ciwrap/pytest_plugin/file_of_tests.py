"""One file of tests: which of them there are, and which goldens none of them uses."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ciwrap.golden.places import TestPlace
    from ciwrap.pytest_plugin.results import Results

_TestName = tuple[str, str | None]


class TestFile:
    """Its tests as they were collected here: classes and function, and parameters -> ids."""

    __test__ = False  # pytest takes classes called Test... for tests

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ids: dict[_TestName, list[str]] = {}
        self._is_partial = False

    def add(self, tests: Mapping[str, _TestName], *, is_partial: bool) -> None:
        self._is_partial |= is_partial
        for test_id, name in tests.items():
            self._ids.setdefault(name, []).append(test_id)

    def does_not_use(self, test: TestPlace, results: Results, *, is_for_us: bool) -> bool:
        """Whether a golden that no check asked for is known to be of no use.

        is_for_us: whether this kind of machine looks for the golden at all.
        """
        if self._is_partial:
            return False
        ids = self._ids.get((test.test, test.param))
        if ids is not None:
            # A test may make a check on some machines only.
            return is_for_us and all(map(results.has_passed, ids))
        others = [one for name, some in self._ids.items() if name[0] == test.test for one in some]
        if others:
            # With none that ran, another machine may have the parameters that are missing here.
            return any(map(results.has_passed, others))
        return self._defined is not None and not self._may_define(test.test)

    def _may_define(self, test: str) -> bool:
        """Whether the file defines a test, collected here or not: it may be for some machines only.

        One of a class that was not collected may be inherited.
        """
        assert self._defined is not None
        heir = f"{test.rpartition('::')[0]}{_HEIR}"
        if heir in self._defined:
            behind = heir.removesuffix(_HEIR) + "::"
            return (
                not any(name.startswith(behind) for name, _ in self._ids) or test in self._defined
            )
        return test in self._defined

    @cached_property
    def _defined(self) -> frozenset[str] | None:
        """The names that the file binds, each behind its classes, and classes that inherit, marked;
        None if that cannot be read.
        """
        try:
            tree = ast.parse(self._path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return None
        return frozenset(_names(tree.body, ""))


_HEIR = "(...)"


def _names(nodes: Iterable[ast.AST], classes: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield classes + node.name
        elif isinstance(node, ast.ClassDef):
            if node.bases:
                yield f"{classes}{node.name}{_HEIR}"
            yield from _names(node.body, f"{classes}{node.name}::")
        elif isinstance(node, ast.ImportFrom):
            yield from (classes + (one.asname or one.name) for one in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield classes + node.id
        else:
            # Below `if`, `try` and `with`, too.
            yield from _names(ast.iter_child_nodes(node), classes)
