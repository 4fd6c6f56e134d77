"""Run-to-run reproducibility: every run of a test's body against its first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.catalog.rules import Rules
from ciwrap.compare.outputs import arrangement_of
from ciwrap.errors import UsageError
from ciwrap.model import CheckResult, Message, MessageLevel, Verdict, severity
from ciwrap.pytest_plugin.judge import resources_for
from ciwrap.repeat.held import held_run
from ciwrap.repeat.measure import Measurer, compare_runs
from ciwrap.repeat.summary import names_that_vary, summarise
from ciwrap.report.failure import failure_lines
from ciwrap.report.repeat_words import bound_text
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.config import Check
    from ciwrap.repeat.measure import RunOutputs
    from ciwrap.trees.build import Resources

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
