"""What tests found, on its way from the test through its report to the end of the session.

Reports are what pytest-xdist brings over from its workers, one by one; so nothing is lost when a
worker dies, and a test that is run again replaces what its first run said. Where several workers
run all tests, or two tests have one id, each of them counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from ciwrap.pytest_plugin.collected import makes_checks, test_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# pytest's own; a run that is followed by another one has another ("rerun").
_OUTCOMES = ("passed", "failed", "skipped")
_ATTRIBUTE = "ciwrap_records"
_TIMINGS = "ciwrap_timings"
_USES_CIWRAP = "ciwrap_used"
# Outcomes that no passing test may have.
FAILED = ("differ", "not_comparable", "new", "not_repeated", "refused")


class Recorder(Protocol):
    """What the fixture leaves at its test."""

    def take_records(self) -> list[dict[str, Any]]:
        """What was found since the last call, as plain values that can be sent anywhere."""

    def take_timings(self) -> list[str]:
        """What was timed since the last call, a line for each."""

    def note_report(self, error: BaseException | None, report: pytest.TestReport) -> None:
        """The test, or a part of it, ended with this exception and was reported like this."""

    def raise_untold(self, error: BaseException | None, when: str) -> None:
        """Raises GoldenMismatch if checks failed and the test does not: it ends with `error`."""

    def unreported(self) -> list[str]:
        """Failed checks that no report has told of so far, in one line each."""


RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
# Checks made after the end of their tests, in one line each.
LATE: pytest.StashKey[list[str]] = pytest.StashKey()
# Those of tests whose last report has not been made, by their ids: pytest.exit() ends with none.
OPEN: pytest.StashKey[dict[str, Recorder]] = pytest.StashKey()
# What ends the writing of goldens, in a process that has made a check.
END_WRITING: pytest.StashKey[Callable[[], None]] = pytest.StashKey()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one (pytest-xdist)."""
    return hasattr(config, "workerinput")


def raise_untold(item: pytest.Item, error: BaseException | None, when: str) -> None:
    """Fails a test whose failed checks nothing else has told of."""
    __tracebackhide__ = True
    recorder = item.stash.get(RECORDER, None)
    if recorder is not None:
        recorder.raise_untold(error, when)


def hand_over(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Puts what the test found into its report."""
    recorder = item.stash.get(RECORDER, None)
    # Without a recorder the test has not come to its checks; with one it may have asked late.
    if recorder is not None or makes_checks(item):
        setattr(report, _USES_CIWRAP, True)
    if recorder is not None:
        recorder.note_report(None if call.excinfo is None else call.excinfo.value, report)
        records = recorder.take_records()
        if records:
            setattr(report, _ATTRIBUTE, records)
        timings = recorder.take_timings()
        if timings:
            setattr(report, _TIMINGS, timings)
        if report.when == "teardown":
            item.config.stash[OPEN].pop(item.nodeid, None)


class Results:
    """Everything reported so far, by test."""

    def __init__(self) -> None:
        self._by_test: dict[str, list[dict[str, Any]]] = {}
        self._timings: dict[str, list[str]] = {}
        self._passed: set[str] = set()
        self._failed: set[str] = set()
        self._told: set[str] = set()
        self._users: set[str] = set()  # tests that make checks, if they come to them
        self._reruns: set[str] = set()
        self._ended: set[str] = set()

    def take(self, report: pytest.TestReport) -> None:
        test = test_key(report)
        if report.when == "setup" and test in self._reruns:
            self._forget(test)
        if report.outcome not in _OUTCOMES:
            self._reruns.add(test)
        records = getattr(report, _ATTRIBUTE, None)
        if records:
            self._by_test.setdefault(test, []).extend(records)
        timings = getattr(report, _TIMINGS, None)
        if timings:
            self._timings.setdefault(test, []).extend(timings)
        if report.failed or (report.skipped and hasattr(report, "wasxfail")):
            self._failed.add(test)
        if report.failed:
            self._told.add(test)
        # Of a test whose process has died (pytest-xdist's own report) nobody knows.
        if hasattr(report, _USES_CIWRAP) or report.when not in ("setup", "call", "teardown"):
            self._users.add(test)
        if report.when not in ("setup", "call"):
            self._ended.add(test)
        if report.when == "call":
            # Parts of a test (subtests) are reported before it.
            (self._passed.add if report.passed else self._passed.discard)(test)

    def _forget(self, test: str) -> None:
        """The test is run again: what its first run said counts no longer."""
        self._by_test.pop(test, None)
        self._timings.pop(test, None)
        for known in (self._passed, self._failed, self._told, self._users, self._reruns):
            known.discard(test)
        self._ended.discard(test)

    @property
    def has_any(self) -> bool:
        """Whether any test has checked or timed anything."""
        return bool(self._by_test or self._timings)

    def timings(self) -> list[str]:
        """What tests have timed, a line for each."""
        return [line for test in sorted(self._timings) for line in self._timings[test]]

    def records(self) -> Iterator[dict[str, Any]]:
        for test in sorted(self._by_test):
            yield from self._by_test[test]

    def has_passed(self, test: str) -> bool:
        """Whether the test ran to its end, so that it has made all the checks it makes."""
        return test in self._passed and test not in self._failed

    @property
    def has_told_of_failures(self) -> bool:
        """Whether a failed check has failed its test, so that the session has to fail."""
        return any(
            record["outcome"] in FAILED
            for test in self._told & self._by_test.keys()
            for record in self._by_test[test]
        )

    def cut_short(self) -> list[str]:
        """Tests that failed, though no check did: some of theirs may not have been made."""
        return [
            test
            for test in sorted(self._told & self._users)
            if not any(one["outcome"] in FAILED for one in self._by_test.get(test, ()))
        ]

    def not_run(self, users: Iterable[str]) -> list[str]:
        """Of tests that are to make checks, those that the session did not come to the end of."""
        return sorted(set(users) - self._ended)

    def untold(self) -> list[str]:
        """Failed checks of tests that were reported as neither failed nor failing as expected."""
        return [
            f"{record['check']}: the check failed, but its test was not reported as failed"
            for test in sorted(self._by_test.keys() - self._failed)
            for record in self._by_test[test]
            if record["outcome"] in FAILED
        ]
