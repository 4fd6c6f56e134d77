"""Logs: named numbers out of text that programs print, every match with its line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.series import PlaceInText, SeriesFacts
from ciwrap.arrays.values import CUT_LABEL
from ciwrap.closing import closed_on_error
from ciwrap.errors import CiwrapError, ConfigError, NotComparableError
from ciwrap.late import numpy as np
from ciwrap.logs.rules import KEYS, LogRules, RegexRule, make_rules
from ciwrap.logs.template import Template
from ciwrap.model.forms import FormError, cut
from ciwrap.readers.base import Reader, Source, VariableInfo
from ciwrap.readers.files import InputFile
from ciwrap.readers.log_lines import as_text, hand_out
from ciwrap.readers.log_listeners import (
    Counter,
    Listening,
    Section,
    StepTeller,
    TableFinder,
    ValueFinder,
    section_gates,
)
from ciwrap.readers.log_nearest import nearest_line
from ciwrap.readers.log_regex import Regex
from ciwrap.readers.log_series import Series, Steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.logs.rules import SectionRule, ValueRule


class LogReader(Reader):
    """Text of any program, with rules that name the numbers in it (`values`, `tables`, ...)."""

    name: ClassVar[str] = "log"
    suffixes: ClassVar[tuple[str, ...]] = ()
    option_names: ClassVar[tuple[str, ...]] = KEYS

    def open(
        self,
        path: Path,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> LogSource:
        given = dict(options or {})
        self.check_options(given, path)
        try:
            rules = make_rules(given)
        except FormError as error:
            key = ".".join(map(str, error.path))
            raise ConfigError(error.message, file=path, key=f"options.{key}") from None
        if rules == LogRules():
            raise ConfigError(
                "a log needs rules that say what is looked for in it",
                file=path,
                remedy="give the check 'values', 'tables', 'counts' or 'use'"
                " (`ciwrap init --logs` proposes some)",
            )
        return LogSource(path, rules)


class LogSource(Source):
    """An open log, read through once. series: all that was found, by variable; counts: of lines."""

    may_be_empty = True

    def __init__(self, path: Path, rules: LogRules) -> None:
        self.path = path
        self._file = InputFile(path)
        self.series: dict[str, Series] = {}
        self.counters: list[Counter] = []
        with closed_on_error(self.close):
            self._scan(rules)
            self._arrays = {name: one.elements() for name, one in self.series.items()}
            self._add_steps()
            for one in self.counters:
                self._arrays[one.name] = np.array([one.count], dtype="<i8")
            self.variables = tuple(self._infos())

    def _scan(self, rules: LogRules) -> None:
        listeners: list[Listening] = []
        steps: dict[str, Steps] = {}
        last: list[Listening] = []
        for rule in rules.steps:
            steps[rule.name] = Steps(rule.is_after)
            teller = StepTeller(
                self._pattern(rule.pattern, "iteration"), self.path, rule.name, steps[rule.name]
            )
            # What stands in one line with a step is of that step.
            (listeners if rule.is_after else last).append(teller)
        finders = [self._value_finder(rule, steps, listeners) for rule in rules.values]
        tables = [
            TableFinder(rule, self.path, self._section(rule.section, listeners), rule.end)
            for rule in rules.tables
        ]
        self.counters = [Counter(pattern, self.path, name) for name, pattern in rules.counts]
        required = [Counter(pattern, self.path, pattern.text) for pattern in rules.require]
        forbidden = [
            Counter(pattern, self.path, pattern.text, takes_unlike=True) for pattern in rules.forbid
        ]
        listeners += [*finders, *tables, *self.counters, *required, *forbidden, *last]
        is_utf8 = hand_out(self._file, self.path, listeners)
        if not is_utf8:
            self.notes = (f"{self.path} is not UTF-8 and was read as Latin-1",)
        self._take_values(finders)
        self._take_tables(tables)
        self.faults = tuple(self._violations(required, forbidden))

    def _pattern(self, pattern: Template | RegexRule, value: str, *, plain: bool = False) -> Any:
        if isinstance(pattern, Template):
            return pattern
        return Regex(pattern.text, value, self.path, needs_group=not plain)

    def _section(self, rule: SectionRule | None, listeners: list[Listening]) -> Section | None:
        if rule is None:
            return None
        section, gates = section_gates(rule, self.path)
        listeners += gates
        return section

    def _value_finder(
        self, rule: ValueRule, steps: Mapping[str, Steps], listeners: list[Listening]
    ) -> ValueFinder:
        plain = rule.column is not None or rule.lines is not None
        pattern = self._pattern(rule.pattern, rule.name, plain=plain)
        section = self._section(rule.section, listeners)
        own = None if rule.step is None else steps[rule.step]
        return ValueFinder(rule, pattern, self.path, own, section)

    def _take_values(self, finders: list[ValueFinder]) -> None:
        for finder in finders:
            rule = finder.rule
            for one in finder.series.values():
                if not one.count and one.fault is None:
                    if rule.is_optional:
                        continue
                    one.fault = self._nothing(f"values.{rule.name}", finder.pattern)
                one.finish(rule.take, rule.duplicates)
                self._put(one)
                self._note_repeated(one.name, one.repeated, rule.duplicates)

    def _take_tables(self, finders: list[TableFinder]) -> None:
        for finder in finders:
            rule = finder.rule
            if finder.first is None and not rule.is_optional:
                empty = Series(rule.name, "number")
                empty.fault = self._nothing(f"tables.{rule.name}", rule.header)
                self._put(empty)
            label = None if rule.iteration is None else finder.series.get(rule.iteration)
            for one in finder.series.values():
                if not one.count and one.fault is None:
                    one.fault = "the table has no rows"
                if label is not None and one.labels != label.labels:
                    one.steps = f"{one.name}.step"  # of some of several tables
            for one in finder.series.values():
                one.finish("all", rule.duplicates)
                self._put(one)
            repeated = max((one.repeated for one in finder.series.values()), default=0)
            self._note_repeated(rule.name, repeated, rule.duplicates)

    def _put(self, series: Series) -> None:
        self._refuse_taken(series.name)
        self.series[series.name] = series

    def _note_repeated(self, name: str, count: int, which: str) -> None:
        if count and which != "error":  # which refuses them
            where = f"{self.path}: where {name!r} has a step more than once"
            self.notes += (f"{where}, the {which} one alone counts ({count} left out)",)

    def _refuse_taken(self, name: str) -> None:
        """Raises ConfigError if a variable that has been found has this name."""
        if name in self.series or any(one.name == name for one in self.counters):
            raise ConfigError(f"two rules give the variable {name!r}", file=self.path, key="values")

    def _nothing(self, key: str, pattern: Template | Regex) -> str:
        words = pattern.words if isinstance(pattern, Template) else ()
        near = nearest_line(self._file, self.path, words)
        if near is None:
            return f"{key} finds nothing"
        return f"{key} finds nothing; nearest, line {near.number}: {cut(near.text.strip())!r}"

    def _violations(self, required: list[Counter], forbidden: list[Counter]) -> list[CiwrapError]:
        found: list[CiwrapError] = [
            NotComparableError(
                f"no line matches {one.name!r}, which 'require' asks for",
                file=self.path,
                remedy="did the program end as it should?",
            )
            for one in required
            if not one.count
        ]
        found += [
            NotComparableError(
                f"line {one.first.number} matches {one.name!r}, which 'forbid' rules out:"
                f" {cut(one.first.text.strip())!r}",
                file=self.path,
            )
            for one in forbidden
            if one.first is not None
        ]
        return found

    def _add_steps(self) -> None:
        """Labels become variables of their own, so that goldens keep them."""
        self._labelled: dict[str, Series] = {}
        for one in self.series.values():
            labels = one.step_labels()
            if labels is None or one.steps is None:
                continue
            namesake = self.series.get(one.steps)
            if namesake is not None and namesake.steps == one.steps:
                continue  # a column of the table
            self._refuse_taken(one.steps)
            self._arrays[one.steps] = labels
            self._labelled[one.steps] = one

    def _infos(self) -> list[VariableInfo]:
        infos = []
        for name, array in self._arrays.items():
            one = self.series.get(name)
            if one is None:
                is_count = any(counter.name == name for counter in self.counters)
                shape = () if is_count else array.shape
                infos.append(VariableInfo(name, array.dtype.str, shape, in_text=not is_count))
                continue
            found = [(key, text) for key, (text, _) in one.units.items()]
            if one.end == self._file.byte_count:
                found.append(CUT_LABEL)
            labels = tuple(sorted(found))
            shape = () if one.is_single and array.size == 1 else array.shape
            infos.append(
                VariableInfo(
                    name, array.dtype.str, shape, fault=one.fault, labels=labels, in_text=True
                )
            )
        return infos

    def elements_of(self, name: str) -> NDArray[Any]:
        """All values of a variable."""
        return self._arrays[name]

    def facts(self, name: str) -> SeriesFacts | None:
        one = self.series.get(name) or self._labelled.get(name)
        return None if one is None else _Facts(self, one)

    def text_at(self, offset: int, byte_count: int) -> str:
        """What is printed there. Raises CorruptFileError."""
        return as_text(bytes(self._file.read_at(offset, byte_count)))

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        found: NDArray[Any] = self._arrays[name][first_element : first_element + count]
        return found

    def close(self) -> None:
        self._file.close()


class _Facts(SeriesFacts):
    """Of a series of an open log."""

    def __init__(self, source: LogSource, series: Series) -> None:
        self._source = source
        self._series = series
        self.steps = series.step_labels()
        self.steps_name = series.steps
        self.printed_digits = series.printed_digits
        self.printed_exponent = series.printed_exponent

    def place(self, element: int) -> PlaceInText | None:
        place, offset = self._series.place(element)
        text = self._source.text_at(offset, place.byte_count)
        return PlaceInText(place.line, place.column, text, place.byte_count)
