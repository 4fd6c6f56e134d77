"""What tests found, on its way from the test through its report to the end of the session.

Reports are what pytest-xdist brings over from its workers, one by one; so nothing is lost when a
worker dies, and a test that is run again replaces what its first run said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_ATTRIBUTE = "ciwrap_records"


class Recorder(Protocol):
    """What the fixture leaves at its test."""

    def take_records(self) -> list[dict[str, Any]]:
        """What was found since the last call, as plain values that can be sent anywhere."""


RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one (pytest-xdist)."""
    return hasattr(config, "workerinput")


def hand_over(item: pytest.Item, report: pytest.TestReport) -> None:
    """Puts what the test found into its report."""
    recorder = item.stash.get(RECORDER, None)
    if recorder is not None:
        records = recorder.take_records()
        if records:
            setattr(report, _ATTRIBUTE, records)


class Results:
    """Everything reported so far, by test."""

    def __init__(self) -> None:
        self._by_test: dict[str, list[dict[str, Any]]] = {}
        self._passed: set[str] = set()

    def take(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        if report.when == "setup":
            # Also of a test that is run again: what its first run said counts no longer.
            self._by_test.pop(test, None)
            self._passed.discard(test)
        records = getattr(report, _ATTRIBUTE, None)
        if records:
            self._by_test.setdefault(test, []).extend(records)
        if report.when == "call" and report.passed:
            self._passed.add(test)

    @property
    def has_checks(self) -> bool:
        return bool(self._by_test)

    def records(self) -> Iterator[dict[str, Any]]:
        for test in sorted(self._by_test):
            yield from self._by_test[test]

    def has_passed(self, test: str) -> bool:
        """Whether the test ran to its end, so that it has made all the checks it makes."""
        return test in self._passed
