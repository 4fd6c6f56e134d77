"""Which tests there are, and of which files all of them are known.

A golden is judged to be unused only if the whole file of its test was collected: not after `-k`,
`--lf`, a test named on the command line, or whatever else leaves tests out.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

_SENT = "ciwrap_collected"
MODULE_DOCSTRING = ".__doc__"


class Collected:
    """Which tests there are, worked out when somebody asks: most sessions have no golden at all.

    tests: file (absolute path) -> `test_key` of a test -> the test's classes and function joined by
    '::', and its parameters' id or None. partial: files that are not wholly known. users: tests
    that are to make checks. began_ns: when no test file had been read yet.
    """

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        self._before: list[pytest.Item] = []
        self._left: list[pytest.Item] = []
        self._config: pytest.Config | None = None
        self._tests: dict[str, dict[str, tuple[str, str | None]]] = {}
        self._partial: set[str] = set()
        self._users: set[str] = set()
        self.is_known = False

    def before(self, items: list[pytest.Item]) -> None:
        """Tests as collected, before any of them are left out."""
        self._before = list(items)

    def after(self, items: list[pytest.Item], config: pytest.Config) -> None:
        self._left, self._config = list(items), config
        self.is_known = True

    @property
    def tests(self) -> dict[str, dict[str, tuple[str, str | None]]]:
        self._work_out()
        return self._tests

    @property
    def partial(self) -> set[str]:
        self._work_out()
        return self._partial

    @property
    def users(self) -> set[str]:
        self._work_out()
        return self._users

    def _work_out(self) -> None:
        """Takes in what was collected here since the last call."""
        if self._config is None:
            return
        before = Counter(str(item.path) for item in self._before)
        left = Counter(str(item.path) for item in self._left)
        self._partial |= {path for path, count in before.items() if left[path] < count}
        named = _named_in_part(self._config)
        self._partial |= named
        # The one leaves tests out before anybody is told of them, the other names no files.
        if self._config.getoption("lf", False) or (named and self._config.getoption("pyargs")):
            self._partial |= set(before)
        for item in self._left:
            self._tests.setdefault(str(item.path), {})[test_key(item)] = test_name(item)
        self._users |= {test_key(item) for item in self._left if makes_checks(item)}
        self._before, self._left, self._config = [], [], None

    def note_part(self, path: str) -> None:
        """A file that could not be collected, or of which a test is left out."""
        self._partial.add(path)

    def to_send(self) -> dict[str, Any]:
        """As plain values, for another process."""
        tests = {
            path: {test: list(name) for test, name in found.items()}
            for path, found in self.tests.items()
        }
        return {"tests": tests, "partial": sorted(self.partial), "users": sorted(self.users)}

    def send(self, config: pytest.Config) -> None:
        """Hands this over to the process that this one works for."""
        config.workeroutput[_SENT] = self.to_send()  # type: ignore[attr-defined]  # pytest-xdist's

    def take_from(self, node: Any) -> None:
        """Takes what a worker sent, if it lived to send it."""
        sent = getattr(node, "workeroutput", {}).get(_SENT)
        if sent is None:
            return
        for path, found in sent["tests"].items():
            names = self.tests.setdefault(path, {})
            names.update({test: (name[0], name[1]) for test, name in found.items()})
        self.partial.update(sent["partial"])
        self.users.update(sent["users"])
        self.is_known = True


def makes_checks(item: pytest.Item) -> bool:
    """Whether a test asks for the fixture, or has the marker: one that asks late is not known."""
    is_named = "ciwrap" in getattr(item, "fixturenames", ())
    return is_named or item.get_closest_marker("ciwrap") is not None


def test_key(test: pytest.Item | pytest.TestReport) -> str:
    """pytest's id of a test; the docstring of a module may share it with a function of its name."""
    where = test.location[2]
    return f"{test.nodeid} {where}" if where.startswith("[doctest]") else test.nodeid


def shared_ids(items: Iterable[pytest.Item]) -> set[str]:
    """Ids that several tests have: of parameters `a-b`, `c` and `a`, `b-c` say."""
    found: dict[str, object] = {}
    shared = set()
    for item in items:
        call = getattr(item, "callspec", None)
        which = None if call is None else call.indices
        # The same test may be named twice on the command line.
        if found.setdefault(item.nodeid, which) != which:
            shared.add(item.nodeid)
    return shared


def test_name(item: pytest.Item) -> tuple[str, str | None]:
    """A test's classes and function, and the id of its parameters."""
    call = getattr(item, "callspec", None)
    param = None if call is None else str(call.id)
    function = getattr(item, "originalname", None) or item.name
    if param is None and item.name.startswith(f"{function}["):
        # Made by a plugin, without pytest's parameters.
        param = item.name[len(function) + 1 :].removesuffix("]")
    if hasattr(item, "dtest") and "." not in function:
        # The docstring of a whole module is called as the module, and a function may be, too.
        function += MODULE_DOCSTRING
    names = [type_name(node) for node in item.listchain()[:-1]]
    return "::".join([*(name for name in names if name), function]), param


def type_name(node: Any) -> str | None:
    """The name of a class of tests; None for other nodes."""
    return str(node.name) if isinstance(getattr(node, "obj", None), type) else None


def _named_in_part(config: pytest.Config) -> set[str]:
    """Files of which the command line names single tests."""
    found = set()
    for argument in config.args:
        path, separator, _ = str(argument).partition("::")
        if separator:
            found.add(os.path.normpath(Path(config.invocation_params.dir, path)))
    return found
