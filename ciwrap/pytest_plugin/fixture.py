"""The fixture `ciwrap`: what a test calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.compare.check import arrangement_of
from ciwrap.config import Check
from ciwrap.errors import CiwrapError, GoldenMismatch, UsageError
from ciwrap.model import SETTINGS, SettingsLayer, Strictness
from ciwrap.model.forms import DUPLICATES, read_arguments
from ciwrap.pytest_plugin.inputs import catalog_of, rules_of
from ciwrap.pytest_plugin.judge import Judge
from ciwrap.pytest_plugin.project import find_project
from ciwrap.pytest_plugin.repeat import Repeats
from ciwrap.pytest_plugin.results import RECORDER
from ciwrap.pytest_plugin.telling import failure_text, property_of
from ciwrap.readers.layout import name_fault
from ciwrap.report.document import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Unpack

    from ciwrap.config import VariableRule
    from ciwrap.model import CheckResult, SettingArguments
    from ciwrap.pytest_plugin.judge import Outcome

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
        config.stash[_JUDGE] = judge
    made = CiwrapFixture(request.node, judge)
    request.node.stash[RECORDER] = made
    return made


class CiwrapFixture:
    """Compares what a test computes with goldens, or with its own first run (`repeat=N`)."""

    def __init__(self, item: pytest.Item, judge: Judge) -> None:
        self._item = item
        self._judge = judge
        self._names: set[str | None] = set()
        self._records: list[dict[str, Any]] = []
        self._layers: list[SettingsLayer] = []
        self._rules: list[VariableRule] = []
        self._ignore: list[str] = []
        self._of_check: dict[str, Any] = {}
        self.repeats: Repeats | None = None
        for marker in reversed(list(item.iter_markers("ciwrap"))):
            self._add_defaults(marker)

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

    @property
    def check_count(self) -> int:
        """How many checks the test has made so far (of the run that is going on)."""
        return len(self._names)

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
        golden; UsageError (a ValueError) for arguments without a meaning.
        """
        __tracebackhide__ = True
        try:
            return self._check(
                value,
                name,
                settings,
                bounds,
                ignore,
                {"strict": strict, "duplicates": duplicates},
                {"layout": layout, "format": format, "options": options, "exclude": exclude},
            )
        except (CiwrapError, GoldenMismatch) as error:
            # The message says it all; where in here it was raised is of no use to who reads it.
            raise error.with_traceback(None) from None

    def _check(
        self,
        value: Any,
        name: str | None,
        settings: Mapping[str, Any],
        bounds: Mapping[str, Any] | None,
        ignore: Sequence[str],
        of_check: Mapping[str, Any],
        files: Mapping[str, Any],
    ) -> CheckResult:
        layer = SettingsLayer.from_arguments(settings, "check()", OTHER_KEYWORDS)
        self._claim(name)
        test = self._judge.project.test_place(self._item, name)
        check = Check(
            test.check,
            self._judge.project.root,
            (),
            ignore=(*self._ignore, *_texts(ignore)),
            layers=(*self._layers, layer),
            rules=(*self._rules, *rules_of(bounds, "check()")),
            **{**self._of_check, **_of_check(of_check, "check()")},
        )
        catalog = catalog_of(value, name or "array", arrangement=arrangement_of(check), **files)
        with catalog:
            if self.repeats is not None:
                result, problem = self.repeats.compare(check, catalog, self._item.nodeid)
                self._record_repeat(result)
                if problem is not None:
                    raise GoldenMismatch(problem, result)
                return result
            outcome = self._judge.judge(test, check, catalog, self._item.nodeid)
        self._record(outcome, test.check)
        if outcome.has_failed:
            text = failure_text(name or self._item.name, outcome, self._judge.project)
            raise GoldenMismatch(text, outcome.result)
        return outcome.result

    def _claim(self, name: str | None) -> None:
        if name is not None:
            fault = name_fault(name)
            if fault is not None:
                raise UsageError(f"the name of a check {fault}: {ascii(name)[:60]}")
        if name in self._names:
            which = f"is called {name!r}" if name else "has no name"
            raise UsageError(
                f"a second check of this test {which}; they would share a golden",
                remedy="give each check a name of its own: ciwrap.check(x, 'velocity')",
            )
        self._names.add(name)

    def begin_run(self, number: int) -> None:
        """The test's body is about to run for the number-th time (from 0)."""
        assert self.repeats is not None
        self._names.clear()
        self.repeats.begin(number)

    def _record(self, outcome: Outcome, check: str) -> None:
        self._records.append(
            {
                "test": self._item.nodeid,
                "check": check,
                "module": str(self._item.path),
                "place": [outcome.place.folder, outcome.place.name],
                "outcome": outcome.word,
                "written": outcome.written,
                "pending": outcome.pending,
                "result": plain(outcome.result),
            }
        )
        self._item.user_properties.append(property_of(check, outcome.word, outcome.result))

    def _record_repeat(self, result: CheckResult) -> None:
        word = "repeated" if result.verdict.exit_code == 0 else "not_repeated"
        self._records = [one for one in self._records if one["check"] != result.name]
        self._records.append(
            {
                "test": self._item.nodeid,
                "check": result.name,
                "module": str(self._item.path),
                "place": None,
                "outcome": word,
                "written": None,
                "pending": False,
                "result": plain(result),
            }
        )

    def take_records(self) -> list[dict[str, Any]]:
        """What was found since the last call, as plain values."""
        taken, self._records = self._records, []
        if self.repeats is not None:
            for record in taken:
                self._item.user_properties.append((f"ciwrap {record['check']}", record["outcome"]))
        return taken


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
