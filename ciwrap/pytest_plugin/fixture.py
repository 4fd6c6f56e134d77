"""The fixture `ciwrap`: what a test calls."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from ciwrap.compare.outputs import arrangement_of
from ciwrap.config import Check
from ciwrap.errors import CiwrapError, GoldenMismatch, UsageError
from ciwrap.model import SETTINGS, SettingsLayer, Strictness, VariableId
from ciwrap.model.forms import DUPLICATES, read_arguments
from ciwrap.pytest_plugin.blocks import AllChecks, Blocks, ExpectedMismatch
from ciwrap.pytest_plugin.collected import shared_ids
from ciwrap.pytest_plugin.inputs import catalog_of, refuse_name, rules_of
from ciwrap.pytest_plugin.judge import Judge
from ciwrap.pytest_plugin.options import makes_all
from ciwrap.pytest_plugin.records import Records
from ciwrap.pytest_plugin.repeat import Repeats
from ciwrap.pytest_plugin.results import END_WRITING, FAILED, LATE, OPEN, RECORDER, is_worker
from ciwrap.pytest_plugin.telling import failure_text
from ciwrap.pytest_plugin.tested_project import find_project
from ciwrap.pytest_plugin.unmet import Unmet, UnmetCheck, after_the_end, in_forked
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Unpack

    from ciwrap.config import VariableRule
    from ciwrap.model import CheckResult, SettingArguments
    from ciwrap.statistics.pairs import PairedComparison

_JUDGE = pytest.StashKey[Judge]()
_OF_CHECK: tuple[str, ...] = ("strict", "duplicates")
_MARKER_KEYS = (*SETTINGS, "bounds", "ignore", *_OF_CHECK, "repeat")
# Those of check() that are no settings.
OTHER_KEYWORDS = (
    *("name", "bounds", "ignore", *_OF_CHECK),
    *("layout", "format", "options", "exclude"),
)


def make_fixture(request: pytest.FixtureRequest) -> CiwrapFixture:
    """The fixture's value for the test that asks for it."""
    config = request.config
    judge = config.stash.get(_JUDGE, None)
    if judge is None:
        judge = Judge(
            find_project(config), config.option.ciwrap_update, config.option.ciwrap_reason
        )
        judge.shared_ids = shared_ids(request.session.items)
        config.stash[_JUDGE] = judge
        config.stash[END_WRITING] = judge.close
        config.add_cleanup(judge.close)
    made = CiwrapFixture(request.node, judge)
    request.node.stash[RECORDER] = made
    config.stash[OPEN][request.node.nodeid] = made
    return made


class CiwrapFixture:
    """Compares what a test computes with goldens, or with its own first run (`repeat=N`).

    check_count: how many checks the test has made so far (of the run that is going on).
    """

    def __init__(self, item: pytest.Item, judge: Judge) -> None:
        self._item = item
        self._judge = judge
        self._process = os.getpid()
        judge.test_count += 1
        self._number = judge.test_count
        self._names: set[str | None] = set()
        self.check_count = 0
        self._records = Records(item)
        self._unmet = Unmet()
        self._lock = threading.Lock()
        self._blocks = Blocks(self._unmet)
        self._makes_all = makes_all(item.config)
        self._layers: list[SettingsLayer] = []
        self._rules: list[VariableRule] = []
        self._ignore: list[str] = []
        self._of_check: dict[str, Any] = {}
        self.repeats: Repeats | None = None
        for marker in reversed(list(item.iter_markers("ciwrap"))):
            self._add_defaults(marker)

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raises UsageError: a fixture like others would be called."""
        raise UsageError("the fixture is not a function", remedy="call ciwrap.check(...)")

    def _add_defaults(self, marker: pytest.Mark) -> None:
        options = dict(marker.kwargs)
        unknown = [key for key in options if key not in _MARKER_KEYS]
        if marker.args or unknown:
            what = f"has no {unknown[0]!r}" if unknown else "takes keywords only"
            raise UsageError(
                f"the marker ciwrap {what} (it knows {', '.join(_MARKER_KEYS)})",
                file=self._item.nodeid,
            )
        where = "the marker ciwrap"
        self._rules += rules_of(options.pop("bounds", None), where)
        self._ignore += _texts(options.pop("ignore", ()))
        said = {key: options.pop(key, None) for key in _OF_CHECK}
        self._of_check |= _of_check(said, where)
        count = options.pop("repeat", None)
        if count is not None:
            self.repeats = Repeats(count)
        self._layers.append(SettingsLayer.from_arguments(options, where))

    def check(
        self,
        value: Any,
        name: str | None = None,
        *,
        bounds: Mapping[str, Any] | None = None,
        ignore: Sequence[str] = (),
        strict: Mapping[str, bool | str] | None = None,
        duplicates: str | None = None,
        layout: str | None = None,
        format: str | None = None,  # noqa: A002 - as the configuration calls it
        options: Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        **settings: Unpack[SettingArguments],
    ) -> CheckResult:
        """Compares a value with its golden, and fails the test unless everything matches.

        value: an array (or anything NumPy takes for one), a mapping of arrays, a data frame, or the
        pathlib.Path of a file or folder. name: tells the checks of a test apart. settings: those of
        ciwrap.yaml for all variables, above all the error bound (atol and rtol, or ulps), which is
        0 if nobody says anything. bounds: other settings for some of the variables, by name or
        pattern: a number (atol), or a mapping such as {"rtol": 1e-6}. ignore: names or patterns of
        variables that are not compared. strict, duplicates: as in ciwrap.yaml; strict={"variables":
        "allow-new"} lets a test have more variables than its golden. The others are for files.

        Raises GoldenMismatch (an AssertionError) for anything but a match, also if there is no
        golden; UsageError (a ValueError) for arguments without a meaning. A test that goes on after
        either fails all the same: see `all` and `expect_mismatch`.
        """
        __tracebackhide__ = True
        of_check = {"strict": strict, "duplicates": duplicates}
        files = {"layout": layout, "format": format, "options": options, "exclude": exclude}
        title = self._title(name)
        if os.getpid() != self._process:
            self._judge.forked.note(self._number)
            raise in_forked(title)
        if not self._unmet.begin(title):
            error = after_the_end(f"{self._item.nodeid}, {title}")
            self._item.config.stash[LATE].append(str(error))
            raise error
        try:
            result, problem = self._check(value, name, settings, bounds, ignore, of_check, files)
            if problem is not None:
                kept = self._makes_all and self.repeats is None and self._blocks.is_free
                self._fail(UnmetCheck(title, problem, self._caller(), result, kept))
            return result
        except GoldenMismatch:
            raise
        except BaseException as error:
            self._records.add_refused(name, error)
            is_own = isinstance(error, CiwrapError)
            text = str(error) if is_own else f"{title}: {type(error).__name__}: {error}"
            self._unmet.add(UnmetCheck(title, text, self._caller(), raised=str(error)))
            if is_own:
                # The message says it all; where in here it was raised is of no use to who reads it.
                raise error.with_traceback(None) from None
            raise
        finally:
            self._unmet.end(title)

    def _caller(self) -> str:
        """Where the test called `check`, for a message that has no traceback."""
        frame = sys._getframe(2)
        return f"{self._judge.project.shown(Path(frame.f_code.co_filename))}:{frame.f_lineno}"

    def _title(self, name: str | None) -> str:
        return str(name) if name else self._item.name

    def _check(
        self,
        value: Any,
        name: str | None,
        settings: Mapping[str, Any],
        bounds: Mapping[str, Any] | None,
        ignore: Sequence[str],
        of_check: Mapping[str, Any],
        files: Mapping[str, Any],
    ) -> tuple[CheckResult, str | None]:
        """What was found, and what is wrong with it in words: None if nothing is."""
        layer = SettingsLayer.from_arguments(settings, "check()", OTHER_KEYWORDS)
        self._claim(name)
        self.check_count += 1
        test = self._judge.project.test_place(self._item, name)
        rules = rules_of(bounds, "check()")
        check = Check(
            test.check,
            self._judge.project.root,
            (),
            ignore=(*self._ignore, *_texts(ignore)),
            layers=(*self._layers, layer),
            rules=(*self._rules, *rules),
            **{**self._of_check, **_of_check(of_check, "check()")},
        )

        def is_ignored(variable: str) -> bool:
            return check.is_ignored(VariableId(variable))

        catalog = catalog_of(
            value,
            name or "array",
            **files,
            is_ignored=is_ignored,
            arrangement=arrangement_of(check),
        )
        expected = self._blocks.expected_here
        with catalog:
            catalog.refuse_misspelt(rules)
            check = catalog.kept_exact(check)
            if self.repeats is not None:
                result, problem = self.repeats.compare(check, catalog, self._item.nodeid)
                self._records.add_repeat(catalog.noted(result))
                return result, problem
            judge = self._judge.judge if expected is None else self._judge.compare
            outcome = judge(test, check, catalog, self._item.nodeid)
        outcome = replace(outcome, result=catalog.noted(outcome.result))
        if expected is not None:
            outcome = expected.judge(outcome)
        self._records.add_outcome(outcome, test.check)
        if not outcome.has_failed:
            return outcome.result, None
        return outcome.result, failure_text(self._title(name), outcome, self._judge.project)

    def _claim(self, name: str | None) -> None:
        if name is not None:
            refuse_name(name)
        if self.repeats is None and self._item.nodeid in self._judge.shared_ids:
            raise UsageError(
                "another test has the same id; they would share a golden",
                file=self._item.nodeid,
                remedy="give their parameters other ids: pytest.param(..., id='...')",
            )
        if self._blocks.expected_here is not None:
            return  # Its golden is that of another check, or there is none and it fails.
        with self._lock:
            is_new = name not in self._names
            self._names.add(name)
        if not is_new:
            which = f"is called {name!r}" if name else "has no name"
            raise UsageError(
                f"a second check of this test {which}; they would share a golden",
                remedy="give each check a name of its own: ciwrap.check(x, 'velocity')",
            )

    def _fail(self, check: UnmetCheck) -> None:
        """Raises GoldenMismatch, or keeps the check for the end of a block of several."""
        __tracebackhide__ = True
        blocks = self._blocks
        if blocks.all is not None:
            blocks.all.add(check)
            return
        if check.is_kept:
            self._unmet.add(check)
            return
        expected = blocks.expected_here
        if expected is None or not expected.is_for(check.result):
            self._unmet.add(check)
        raise GoldenMismatch(check.text, check.result)

    def time(
        self,
        a: Callable[[], object],
        b: Callable[[], object],
        name: str | None = None,
        *,
        pairs: int | None = None,
        margin: float | None = None,
        confidence: float | None = None,
        gate: bool | None = None,
        warm_up: int | None = None,
    ) -> PairedComparison:
        """Says whether b takes longer than a, from pairs of calls in random order.

        a, b: functions without arguments. name: tells several of a test apart. The others are as in
        the section `timing` of ciwrap.yaml, which holds where nothing is said; margin and
        confidence are shares. The verdict is told at the end of the session. It is no check, and
        fails nothing, but for gate=True: AssertionError if b takes longer, for sure and by the
        margin or more. Raises UsageError for arguments without a meaning and with `repeat=N`, and
        whatever the functions raise.
        """
        __tracebackhide__ = True
        from ciwrap.pytest_plugin.timing import compare_calls

        if self.repeats is not None:
            raise UsageError("time() makes runs of its own, so repeat=N has no meaning beside it")
        given = {
            "pairs": pairs,
            "margin": margin,
            "confidence": confidence,
            "gate": gate,
            "warm_up": warm_up,
        }
        config = self._judge.project.config
        found = compare_calls(a, b, config, given, is_shared=is_worker(self._item.config))
        self._records.add_timing(name, found.lines)
        if found.is_refused:
            raise AssertionError(f"{self._title(name)}: {'; '.join(found.lines)}")
        return found.comparison

    def all(self) -> AllChecks:
        """Makes all checks of a block before the test fails: `with ciwrap.all():`.

        A check that fails in it returns its result instead of raising; the end of the block raises
        one GoldenMismatch for all of them, whose `result` is that of the first.
        """
        return AllChecks(self._blocks)

    def expect_mismatch(self) -> ExpectedMismatch:
        """For a test that wants a check to fail: `with ciwrap.expect_mismatch() as caught:`.

        The block ends, as that of pytest.raises does, with the first check that does not match its
        golden; `caught.result` then is what was found. Its checks write no golden and let none
        wait, and may have the name of another check of the test, to use its golden. The test fails
        with GoldenMismatch if all of them match, if there is no golden or it cannot be read. Raises
        UsageError with `repeat=N`.
        """
        if self.repeats is not None:
            raise self._blocks.refused("expect_mismatch() needs a golden, and repeat=N has none")
        return ExpectedMismatch(self._blocks, self._item.name)

    def begin_run(self, number: int) -> None:
        """The test's body is about to run for the number-th time (from 0)."""
        assert self.repeats is not None
        self._names.clear()
        self.check_count = 0
        self.repeats.begin(number)

    def take_records(self) -> list[dict[str, Any]]:
        return self._records.take(are_repeated=self.repeats is not None)

    def take_timings(self) -> list[str]:
        return self._records.take_timings()

    def unreported(self) -> list[str]:
        failed = [one for one in self._records.take(are_repeated=False) if one["outcome"] in FAILED]
        return [
            f"{one['check']}: the check failed, and its test ended unreported" for one in failed
        ]

    def note_report(self, error: BaseException | None, report: pytest.TestReport) -> None:
        if report.failed or hasattr(report, "wasxfail"):
            _take_away_hint(error, report)
            if report.when == "setup":
                self._unmet.tell_all()
            else:
                self._unmet.tell(error)
            beside = self._unmet.take_beside()
            if beside is not None:
                report.sections.append(("ciwrap: checks that failed, too", beside))
        if report.when == "teardown":
            left = self._unmet.end_test()
            self._item.config.stash[LATE] += [f"{self._item.nodeid}, {one}" for one in left]

    def raise_untold(self, error: BaseException | None, when: str) -> None:
        __tracebackhide__ = True
        if self._judge.forked.take(self._number):
            missed = in_forked(self._item.name)
            self._records.add_refused(None, missed)
            self._unmet.add(UnmetCheck("a forked process", str(missed)))
        self._unmet.raise_untold(self._item, error, when)


def _take_away_hint(error: BaseException | None, report: pytest.TestReport) -> None:
    """Takes pytest's advice to use --full-trace from a failure that has no place in the test."""
    if isinstance(error, GoldenMismatch):
        traceback = getattr(report.longrepr, "reprtraceback", None)
        if traceback is not None:
            traceback.extraline = None


def _of_check(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is said of the whole check, as fields of Check; None says nothing."""
    found: dict[str, Any] = read_arguments(
        {"duplicates": said.get("duplicates")}, {"duplicates": DUPLICATES}, where
    )
    if said.get("strict") is not None:
        found["strict"] = Strictness.from_arguments(said["strict"], f"{where}, strict")
    return found


def _texts(patterns: Sequence[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)
