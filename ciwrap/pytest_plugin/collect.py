"""Which tests were collected, and what their checks found, until the end of the session.

A golden is judged to be unused only if the whole file of its test was collected: not after `-k`,
`--lf`, or a test named on the command line. Findings travel in the tests' reports, which
pytest-xdist brings over one by one, so nothing is lost when a worker dies; a test that is run again
replaces what its first run found.
"""

from __future__ import annotations

import os
import time
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ciwrap.golden.places import TestPlace

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
        # The one leaves tests out before anybody hears of them, the other names no files.
        if self._config.getoption("lf", False) or (named and self._config.getoption("pyargs")):
            self._partial |= set(before)
        for item in self._left:
            self._tests.setdefault(str(item.path), {})[test_key(item)] = test_name(item)
        self._users |= {test_key(item) for item in self._left if makes_checks(item)}
        self._before, self._left, self._config = [], [], None

    def note_part(self, path: str) -> None:
        """A file that could not be collected, or of which a test is left out."""
        self._partial.add(path)

    def send(self, config: pytest.Config) -> None:
        """Hands this over, as plain values, to the process that this one works for."""
        tests = {
            path: {test: list(name) for test, name in found.items()}
            for path, found in self.tests.items()
        }
        sent = {"tests": tests, "partial": sorted(self.partial), "users": sorted(self.users)}
        config.workeroutput[_SENT] = sent  # type: ignore[attr-defined]  # pytest-xdist's

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
        only. A class of which no test was collected may inherit some.
        """
        try:
            with tokenize.open(self._path) as stream:
                tokens = list(tokenize.generate_tokens(stream.readline))
        except (OSError, SyntaxError, UnicodeDecodeError, tokenize.TokenError):
            return True
        # However they are defined: by a statement, an assignment or an import.
        names = {token.string for token in tokens if token.type == tokenize.NAME}
        *classes, function = test.split("::")
        if not names.issuperset(classes):
            return False
        behind = "".join(f"{name}::" for name in classes)
        is_collected = any(name.startswith(behind) for name, _ in self._ids)
        return function in names or not is_collected


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

    def raise_unreported(self, error: BaseException | None, when: str) -> None:
        """Raises GoldenMismatch if checks failed and the test does not: it ends with `error`."""

    def unreported(self) -> list[str]:
        """Failed checks that no report has named so far, in one line each."""


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


def raise_unreported(item: pytest.Item, error: BaseException | None, when: str) -> None:
    """Fails a test whose failed checks nothing else has reported."""
    __tracebackhide__ = True
    recorder = item.stash.get(RECORDER, None)
    if recorder is not None:
        recorder.raise_unreported(error, when)


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
            # What its first run said counts no longer.
            self._by_test.pop(test, None)
            self._timings.pop(test, None)
            for known in (self._passed, self._failed, self._told, self._users, self._reruns):
                known.discard(test)
            self._ended.discard(test)
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


def after_first_run(item: pytest.Item) -> None:
    """Runs the body again as often as `repeat` says; fails a test that checked nothing."""
    __tracebackhide__ = True
    if getattr(item, "_excinfo", None):
        return  # A unittest that failed; pytest tells of it later.
    recorder = item.stash.get(RECORDER, None)
    if recorder is None:
        _fail(item, "does not ask for the fixture 'ciwrap'")
    from ciwrap.pytest_plugin.fixture import CiwrapFixture

    assert isinstance(recorder, CiwrapFixture)
    if recorder.check_count == 0:
        _fail(item, "made no ciwrap.check()")
    if recorder.repeats is None:
        return
    for number in range(1, recorder.repeats.count):
        recorder.begin_run(number)
        item.runtest()
        if getattr(item, "_excinfo", None):
            return
        missing = recorder.repeats.missing()
        if missing:
            pytest.fail(
                f"run {number + 1} of {recorder.repeats.count} did not make the check {missing[0]},"
                " which the first run made",
                pytrace=False,
            )


def _fail(item: pytest.Item, what: str) -> None:
    __tracebackhide__ = True
    pytest.fail(
        f"{item.name} has the marker 'ciwrap', but {what}: nothing was compared", pytrace=False
    )
