"""One file of tests: which of them there are, and which goldens none of them uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
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
        return not self._may_define(test.test)

    def _may_define(self, test: str) -> bool:
        """Whether the file may define a test, collected here or not: it may be for some machines
        only. What its words do not name it does not define; but a class of which no test was
        collected may inherit some.
        """
        try:
            words = set(re.findall(r"\w+", self._path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):
            return True
        *classes, function = test.split("::")
        if not words.issuperset(classes):
            return False
        behind = "".join(f"{name}::" for name in classes)
        is_collected = any(name.startswith(behind) for name, _ in self._ids)
        return function in words or not is_collected
