"""The fixture `ciwrap`: checks, blocks of checks, repeats and times, as a test calls them."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.intake import parts_of
from ciwrap.arrays.part import OneArray, Part
from ciwrap.arrays.values import fields_of
from ciwrap.base.errors import CiwrapError, DuplicateVariableError, GoldenMismatch, UsageError
from ciwrap.base.late import numpy as np
from ciwrap.formats.catalog import Arrangement, Catalog, Rules
from ciwrap.formats.find_outputs import find_in, name_fault
from ciwrap.formats.memory import found_arrays
from ciwrap.golden.scale import refuse_number
from ciwrap.model import (
    SETTINGS,
    CheckResult,
    ErrorBound,
    Message,
    MessageLevel,
    SettingArguments,
    SettingsLayer,
    Strictness,
    VariableId,
    Verdict,
    severity,
)
from ciwrap.model.settings import DUPLICATES, Form, read_arguments
from ciwrap.project.outputs import arrangement_of
from ciwrap.project.schema import TIMING
from ciwrap.project.settings import EXACT, Check, Config, VariableRule, name_matches
from ciwrap.pytest_plugin.collect import (
    END_WRITING,
    FAILED,
    LATE,
    OPEN,
    RECORDER,
    is_worker,
    shared_ids,
)
from ciwrap.pytest_plugin.one_check import (
    EXPECTED,
    MATCHED,
    Checker,
    Records,
    TestOutcome,
    failure_text,
    find_project,
    resources_for,
)
from ciwrap.pytest_plugin.options import makes_all
from ciwrap.pytest_plugin.unmet import Unmet, UnmetCheck, after_the_end, in_forked, joined
from ciwrap.report.failure import failure_lines
from ciwrap.statistics.spread import PairedComparison, TimingVerdict, compare_pairs
from ciwrap.studies.repeat.bounds import bound_text
from ciwrap.studies.repeat.measure import Measurer, RunOutputs, compare_runs, held_run
from ciwrap.studies.repeat.summary import names_that_vary, summarise
from ciwrap.studies.timing import chosen_timing, time_calls
from ciwrap.studies.timing_words import explanation, headline

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ciwrap.golden.trees import Resources

_MOST_NAMES = 8


def rules_of(bounds: Mapping[str, Any] | None, where: str) -> tuple[VariableRule, ...]:
    """Bounds by name or pattern: a number (atol), an ErrorBound, or a mapping of settings."""
    rules = []
    for pattern, said in (bounds or {}).items():
        here = f"{where}, bounds[{pattern!r}]"
        if isinstance(said, ErrorBound):
            layer = SettingsLayer({"bound": said, "scale": None})
        elif isinstance(said, Mapping):
            layer = SettingsLayer.from_arguments(said, here)
        else:
            layer = SettingsLayer.from_arguments({"atol": said}, here)
        rules.append(VariableRule(str(pattern), layer))
    return tuple(rules)


class ValueCatalog(Catalog):
    """The variables of what was handed over. says_more: whether that has attributes besides, which
    are not compared. exact: names of those that no general bound is meant for.
    """

    says_more = False
    exact: tuple[str, ...] = ()

    def kept_exact(self, check: Check) -> Check:
        """The check, for which an index and what else is of that kind has no bound but one that a
        rule of the check gives it.
        """
        rules = (VariableRule(name, EXACT) for name in self.exact)
        return replace(check, value_rules=(*check.value_rules, *rules))

    def refuse_misspelt(self, rules: Sequence[VariableRule]) -> None:
        """Raises UsageError for a rule whose name, without wild cards, is that of no variable."""
        for rule in rules:
            if rule.is_exact and not any(name_matches(rule.pattern, one) for one in self.entries):
                names = sorted({one.name for one in self.entries})
                near = get_close_matches(rule.pattern, names, 1)
                known = f"did you mean {near[0]!r}?" if near else f"there is {_listed(names)}"
                raise UsageError(
                    f"bounds names {rule.pattern!r}, but no variable has that name", remedy=known
                )

    def refuse_numbers(self, layer: SettingsLayer, rules: Sequence[VariableRule]) -> None:
        """Raises UsageError for a number as the bound of durations: of a rule that names them, or
        where there is nothing else.
        """
        for identity, entry in self.entries.items():
            given = [rule.settings for rule in rules if rule.pattern == identity.name]
            given += [layer] if len(self.entries) == 1 else []
            for one in given:
                refuse_number(entry.info.labels, one.given.get("bound"), identity.name)

    def noted(self, result: CheckResult) -> CheckResult:
        """The result, with what was not compared said in it."""
        return replace(result, attributes="none") if self.says_more else result


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more


def catalog_of(
    value: Any,
    name: str,
    *,
    layout: str | None = None,
    format: str | None = None,  # noqa: A002 - as the configuration calls it
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    is_ignored: Callable[[str], bool] = lambda _: False,
    arrangement: Arrangement | None = None,
) -> ValueCatalog:
    """The variables of whatever was handed over. Raises UsageError, UnsupportedDtypeError,
    DuplicateVariableError, and the errors of finding files.

    name: what a single array is called. is_ignored: whether a variable is not to be compared, so
    that it need not be an array. arrangement: how rows are aligned.
    """
    if isinstance(value, os.PathLike):
        return ValueCatalog(
            find_in(
                Path(os.fspath(value)),
                layout=layout,
                format_name=format,
                options=options,
                exclude=exclude,
                name=name,
            ),
            arrangement,
        )
    if layout or format or options or exclude:
        raise UsageError("layout, format, options and exclude are for files and folders")
    if isinstance(value, (str, bytes)):
        raise UsageError(
            "a string could be a path or a value",
            remedy="give a pathlib.Path for a file, or {'x': text} for text",
        )
    parts = list(parts_of(value, name))
    arrays = _convert(parts, is_ignored)
    catalog = ValueCatalog(found_arrays(arrays), arrangement)
    catalog.says_more = any(isinstance(one, OneArray) and one.left_out for one in arrays.values())
    catalog.exact = tuple(part.name for part in parts if part.is_exact)
    return catalog


def _with_its_like(name: str) -> str:
    """The name, or the pattern of all items of the list that it is of."""
    of, _, item = name.rpartition("/")
    return f"{of}/*" if of and item.isdecimal() else name


def _convert(
    parts: Sequence[Part], is_ignored: Callable[[str], bool]
) -> dict[str, OneArray | CiwrapError]:
    """Arrays by name, and the errors of those that are ignored and cannot be arrays."""
    arrays: dict[str, OneArray | CiwrapError] = {}
    taken: set[str] = set()
    for part in parts:
        fault = name_fault(part.name)
        if fault is not None:
            raise UsageError(f"a key {fault}: {ascii(part.name)[:60]}")
        found: OneArray | CiwrapError
        try:
            found = part.convert()
        except CiwrapError as error:
            if not is_ignored(part.name):
                if len(parts) > 1:
                    leave_out = f"leave it out: ignore=[{_with_its_like(part.name)!r}]"
                    error.remedy = f"{error.remedy}, or {leave_out}" if error.remedy else leave_out
                raise
            found = error
        for name in _variables_in(part.name, found):
            if name in taken:
                raise DuplicateVariableError(
                    "comes from two keys",
                    variable=name,
                    remedy="rename one of them (1 and '1' are the same name, {'a': {'b'}} and"
                    " {'a/b'} too)",
                )
            taken.add(name)
        arrays[part.name] = found
    return arrays


def _variables_in(name: str, found: OneArray | CiwrapError) -> list[str]:
    """Names of the variables that a part gives: an array of records has one for each field."""
    array = None if isinstance(found, CiwrapError) else found.array
    if not isinstance(array, np.ndarray) or array.dtype.names is None:
        return [name]
    return [field.name for field in fields_of(name, array.dtype)]


class Blocks:
    """Which block of a test is open: one at most, since a check has to know what it is for."""

    def __init__(self, unmet: Unmet) -> None:
        self.unmet = unmet
        self.all: AllChecks | None = None
        self.expected: ExpectedMismatch | None = None

    @property
    def expected_here(self) -> ExpectedMismatch | None:
        """The block that this thread has opened: another thread's mismatch is not the one meant."""
        block = self.expected
        return block if block is not None and block.thread == threading.get_ident() else None

    @property
    def is_free(self) -> bool:
        return self.all is None and self.expected is None

    def refuse_another(self) -> None:
        if not self.is_free:
            raise self.refused("ciwrap.all() and ciwrap.expect_mismatch() cannot be nested")

    def refused(self, text: str) -> UsageError:
        """The error for a block that cannot begin: its checks will not be made."""
        self.unmet.add(UnmetCheck("a block of checks", text))
        return UsageError(text)


class AllChecks:
    """What `with ciwrap.all():` is."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._failed: list[UnmetCheck] = []

    def __enter__(self) -> None:
        self._blocks.refuse_another()
        self._blocks.all = self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        __tracebackhide__ = True
        self._blocks.all = None
        if not self._failed:
            return
        failure = joined(self._failed)
        self._blocks.unmet.add(UnmetCheck("all", str(failure), result=failure.result))
        if error is None:
            raise failure

    def add(self, check: UnmetCheck) -> None:
        self._failed.append(check)


class ExpectedMismatch:
    """What `with ciwrap.expect_mismatch() as caught:` gives.

    result: of the check that did not match its golden; None before there is one.
    """

    def __init__(self, blocks: Blocks, title: str) -> None:
        self.result: CheckResult | None = None
        self._blocks = blocks
        self._title = title
        self._matched_count = 0
        self.thread = threading.get_ident()

    def __enter__(self) -> ExpectedMismatch:
        self._blocks.refuse_another()
        self._blocks.expected = self
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        __tracebackhide__ = True
        self._blocks.expected = None
        if isinstance(error, GoldenMismatch) and self.is_for(error.result):
            return True
        if error is None and self.result is None:
            found = "all of them match" if self._matched_count else "none was made"
            text = f"{self._title}: a check was expected to differ from its golden, but {found}"
            self._blocks.unmet.add(UnmetCheck(self._title, text))
            raise GoldenMismatch(text)
        return False

    def apply_to(self, outcome: TestOutcome) -> TestOutcome:
        """The outcome of a check in the block, as expected if it has compared and does not match.

        A golden that is missing or damaged was not compared with anything: that is not expected.
        """
        if outcome.word == MATCHED:
            self._matched_count += 1
            return outcome
        if not outcome.result.variables:
            return outcome
        self.result = outcome.result
        return replace(outcome, word=EXPECTED)

    def is_for(self, result: CheckResult | None) -> bool:
        """Whether this is the result of the expected mismatch."""
        return result is not None and result is self.result


_FIRST = "run 1"


class _Series(Struct):
    """One check over all runs. worst: the result of the run that moved most."""

    measurer: Measurer
    rules: Rules
    worst: CheckResult | None = None


class Repeats:
    """The runs of one test. count: how many, at least 2. Raises UsageError for anything else."""

    def __init__(self, count: object) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 2:
            raise UsageError(f"repeat={count!r}: at least 2 runs are needed")
        self.count = count
        self._number = 0
        self._series: dict[str, _Series] = {}
        self._seen: set[str] = set()

    def begin(self, number: int) -> None:
        """The number-th run begins, from 0. Raises AssertionError if the last one made fewer checks
        than the first.
        """
        self._number = number
        self._seen = set()

    def missing(self) -> list[str]:
        """Checks that the first run made and this one did not."""
        return [name for name in self._series if name not in self._seen]

    def compare(
        self, check: Check, catalog: Catalog, test_id: str
    ) -> tuple[CheckResult, str | None]:
        """Takes the first run's values, compares later ones with them; the result (the worst one so
        far), and what is wrong with it, in words.
        """
        self._seen.add(check.name)
        name = f"run {self._number + 1}"
        if self._number == 0:
            self._series[check.name] = _series(check, resources_for(catalog))
        series = self._series.get(check.name)
        if series is None:
            result = _failed(check.name, f"{name} makes this check, {_FIRST} did not")
        else:
            outputs = held_run(name, catalog, check.is_ignored)
            result = _compared(series, self._number + 1, outputs, resources_for(catalog))
        result = replace(result, golden_path=None, source_path=None, test_id=test_id)
        title = f"{name} of {self.count}"
        if result.verdict is not Verdict.MATCH:
            return _told_of(result, f"{title} does not match the first run", name)
        assert series is not None
        if series.worst is None or _severity(result) >= _severity(series.worst):
            series.worst = result
        text = f"{title} compared with {_FIRST}; the worst is shown{_bounds_that_hold(series)}"
        note = Message(MessageLevel.NOTE, text)
        return replace(series.worst, messages=(*series.worst.messages, note)), None


def _series(check: Check, resources: Resources) -> _Series:
    rules = Rules(
        check.settings_for, check.is_ignored, check.strict.variables, arrangement_of(check)
    )
    return _Series(Measurer(check.name, rules, resources=resources), rules)


def _compared(
    series: _Series, number: int, outputs: RunOutputs, resources: Resources
) -> CheckResult:
    measurer = series.measurer
    problem = measurer.add(number, outputs)
    if number == 1 and problem is None:
        # With itself, so that what cannot be compared shows at once.
        return compare_runs(measurer.name, outputs, outputs, series.rules, resources=resources)
    if measurer.last is None:
        return _failed(measurer.name, problem or f"{outputs.place} was not compared")
    return measurer.last


def _told_of(result: CheckResult, title: str, name: str) -> tuple[CheckResult, str]:
    lines = failure_lines(title, result, (), sides=(_FIRST, name))
    if not lines[0].startswith(title):
        lines[0] = f"{title}: {lines[0]}"
    note = Message(MessageLevel.NOTE, title)
    return replace(result, messages=(*result.messages, note)), "\n".join(lines)


def _bounds_that_hold(series: _Series) -> str:
    """What bounds the runs so far suggest, where something varies: `; x: atol: 2e-6 would hold`."""
    measured = series.measurer.measured
    series.measurer.look_for_zeros(names_that_vary(measured))
    runs = [1, *measured.compared]
    found = [
        f"{one.name}: {bound_text(one.suggested_bound)}"
        for one in summarise(series.measurer.name, measured, runs, has_digits=False)
        if one.suggested_bound is not None
    ]
    return f"; {', '.join(found)} would hold" if found else ""


def _severity(result: CheckResult) -> tuple[float, ...]:
    return max(map(severity, result.variables), default=(0,))


def _failed(name: str, text: str) -> CheckResult:
    return CheckResult(name, Verdict.NOT_COMPARABLE, messages=(Message(MessageLevel.ERROR, text),))


_CHECKER = pytest.StashKey[Checker]()
_OF_CHECK: tuple[str, ...] = ("strict", "duplicates")
_MARKER_KEYS = (*SETTINGS, "bounds", "ignore", *_OF_CHECK, "repeat")
# Those of check() that are no settings.
OTHER_KEYWORDS = (
    *("name", "bounds", "ignore", *_OF_CHECK),
    *("layout", "format", "options", "exclude"),
)


def make_fixture(request: pytest.FixtureRequest) -> CiwrapFixture:
    """The fixture's value for the test that asks for it. Raises UsageError for one that Hypothesis
    calls, again and again.
    """
    if getattr(getattr(request.node, "function", None), "is_hypothesis_test", False):
        raise UsageError(
            "a test with @given is called with many values, and a golden is of one",
            file=request.node.nodeid,
            remedy="check fixed values in a test of its own (@pytest.mark.parametrize)",
        )
    config = request.config
    checker = config.stash.get(_CHECKER, None)
    if checker is None:
        checker = Checker(
            find_project(config), config.option.ciwrap_update, config.option.ciwrap_reason
        )
        checker.shared_ids = shared_ids(request.session.items)
        config.stash[_CHECKER] = checker
        config.stash[END_WRITING] = checker.close
        config.add_cleanup(checker.close)
    made = CiwrapFixture(request.node, checker)
    request.node.stash[RECORDER] = made
    config.stash[OPEN][request.node.nodeid] = made
    return made


class CiwrapFixture:
    """Compares what a test computes with goldens, or with its own first run (`repeat=N`).

    check_count: how many checks the test has made so far (of the run that is going on).
    """

    def __init__(self, item: pytest.Item, checker: Checker) -> None:
        self._item = item
        self._checker = checker
        self._process = os.getpid()
        checker.test_count += 1
        self._number = checker.test_count
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

        value: an array, a mapping of arrays, a data frame or any other value of a known type
        (docs/reference/values.md), or the pathlib.Path of a file or folder. name: tells the checks
        of a test apart. settings: those of ciwrap.yaml for all variables, above all the error bound
        (atol and rtol, or ulps), which is 0 if nobody says anything. bounds: other settings for
        some of the variables, by name or pattern: a number (atol), or a mapping such as {"rtol":
        1e-6}. ignore: names or patterns of variables that are not compared. strict, duplicates: as
        in ciwrap.yaml; strict={"variables": "allow-new"} lets a test have more variables than its
        golden. The others are for files.

        Raises GoldenMismatch (an AssertionError) for anything but a match, also if there is no
        golden; UsageError (a ValueError) for arguments without a meaning. A test that goes on after
        either fails all the same: see `all` and `expect_mismatch`.
        """
        __tracebackhide__ = True
        of_check = {"strict": strict, "duplicates": duplicates}
        files = {"layout": layout, "format": format, "options": options, "exclude": exclude}
        title = self._title(name)
        if os.getpid() != self._process:
            self._checker.forked.note(self._number)
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
        return f"{self._checker.project.shown(Path(frame.f_code.co_filename))}:{frame.f_lineno}"

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
        test = self._checker.project.test_place(self._item, name)
        rules = rules_of(bounds, "check()")
        check = Check(
            test.check,
            self._checker.project.root,
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
            catalog.refuse_numbers(layer, rules)
            check = catalog.kept_exact(check)
            if self.repeats is not None:
                result, problem = self.repeats.compare(check, catalog, self._item.nodeid)
                self._records.add_repeat(catalog.noted(result))
                return result, problem
            compare = self._checker.check if expected is None else self._checker.compare
            outcome = compare(test, check, catalog, self._item.nodeid)
        outcome = replace(outcome, result=catalog.noted(outcome.result))
        if expected is not None:
            outcome = expected.apply_to(outcome)
        self._records.add_outcome(outcome, test.check)
        if not outcome.has_failed:
            return outcome.result, None
        return outcome.result, failure_text(self._title(name), outcome, self._checker.project)

    def _claim(self, name: str | None) -> None:
        given: object = name
        fault = name_fault(given) if isinstance(given, str) else "is not text"
        if fault is not None and given is not None:
            raise UsageError(f"the name of a check {fault}: {ascii(given)[:60]}")
        if self.repeats is None and self._item.nodeid in self._checker.shared_ids:
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
        confidence are shares. The verdict is shown at the end of the session. It is no check, and
        fails nothing, but for gate=True: AssertionError if b takes longer, for sure and by the
        margin or more. Raises UsageError for arguments without a meaning and with `repeat=N`, and
        whatever the functions raise.
        """
        __tracebackhide__ = True

        if self.repeats is not None:
            raise UsageError("time() makes runs of its own, so repeat=N cannot be used with it")
        given = {
            "pairs": pairs,
            "margin": margin,
            "confidence": confidence,
            "gate": gate,
            "warm_up": warm_up,
        }
        config = self._checker.project.config
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
            traceback = getattr(report.longrepr, "reprtraceback", None)
            if isinstance(error, GoldenMismatch) and traceback is not None:
                # Its failure has no place in the test, whatever pytest's --full-trace would show.
                traceback.extraline = None
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

    def raise_unreported(self, error: BaseException | None, when: str) -> None:
        __tracebackhide__ = True
        if self._checker.forked.take(self._number):
            missed = in_forked(self._item.name)
            self._records.add_refused(None, missed)
            self._unmet.add(UnmetCheck("a forked process", str(missed)))
        self._unmet.raise_unreported(self._item, error, when)


def _of_check(keywords: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What is said of the whole check, as fields of Check; None says nothing."""
    found: dict[str, Any] = read_arguments(
        {"duplicates": keywords.get("duplicates")}, {"duplicates": DUPLICATES}, where
    )
    if keywords.get("strict") is not None:
        found["strict"] = Strictness.from_arguments(keywords["strict"], f"{where}, strict")
    return found


def _texts(patterns: Sequence[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)


_WHERE = "time()"
KEYWORDS = ("pairs", "margin", "confidence", "gate", "warm_up")


class TimedCalls(Struct, frozen=True):
    """What two calls' times came to. lines: in words, the verdict first. is_refused: whether the
    second takes longer and the gate was asked for.
    """

    comparison: PairedComparison
    lines: tuple[str, ...]
    is_refused: bool


def compare_calls(
    a: Callable[[], object],
    b: Callable[[], object],
    config: Config | None,
    given: Mapping[str, Any],
    *,
    is_shared: bool,
) -> TimedCalls:
    """Calls both in pairs. given: of KEYWORDS, None for what the configuration says. is_shared:
    whether other tests may run at the same time. Raises UsageError, and what the calls raise.
    """
    for call in (a, b):
        if not callable(call):
            raise UsageError(
                f"time() takes two functions without arguments, not {type(call).__name__}",
                remedy="ciwrap.time(lambda: old(x), lambda: new(x))",
            )
    forms = {name: form for name in KEYWORDS if isinstance(form := TIMING.keys[name].kind, Form)}
    settings = chosen_timing(config, read_arguments(given, forms, _WHERE))
    assert settings.confidence is not None
    first, second = time_calls(
        a, b, pairs=settings.pairs, warm_up=settings.warm_up, seed=secrets.randbelow(1 << 32)
    )
    found = compare_pairs(first, second, margin=settings.margin, confidence=settings.confidence)
    lines = [headline(found), *explanation(found, is_call=True)]
    if is_shared:
        lines.append("other tests may have run at the same time, in other processes")
    is_slower = found.verdict is TimingVerdict.CHANGED and found.change > 0
    return TimedCalls(found, tuple(lines), settings.gate and is_slower)
