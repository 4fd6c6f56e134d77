"""Logs: named numbers out of text that programs print, every match with its line and column.

Regular expressions are RE2's, which take linear time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import CUT_LABEL, PlaceInText, SeriesFacts
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    NotComparableError,
    one_line,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.patterns import steps_of
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.log_lines import Line, Series, Steps, as_text, blocks_of, hand_out
from ciwrap.formats.log_rules import KEYS, STEP, STEP_SUFFIX, LogRules, RegexRule, make_rules
from ciwrap.formats.log_template import (
    EXPONENT,
    WHOLE,
    WORD,
    Field,
    FieldPlace,
    Problem,
    Template,
    TooManyAttemptsError,
    end_of_more,
    fits,
    means_number,
    minus_apart,
    no_number,
)
from ciwrap.formats.reader import InputFile, Reader, Source, VariableInfo, guarded, library
from ciwrap.model.settings import FormError, cut

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.formats.log_rules import LinesRule, SectionRule, TableRule, ValueRule
    from ciwrap.formats.log_template import Match

MOST_COLUMNS = 10_000
LAST_LINE = (1 << 63) - 1
_NO_STEP = "no whole number of steps from 0 on ('iteration_step' says what one adds to a time)"
_PAIR = re.compile(rb"([^ \t=]+)[ \t]*=[ \t]*([^ \t=]+)[ \t]*")
_PAIRS = re.compile(rb"[ \t]*(?:%b)+" % _PAIR.pattern)
# As programs print what is no number, or has none: `NaN`, `nan(ind)`, `Infinity`.
_NO_DIGITS = re.compile(rb"(?:nan|inf|infinity)(?![a-z0-9_])", re.IGNORECASE)


class Listening:
    """Listens for lines that match a pattern. A subclass says what becomes of them."""

    follows = False

    def __init__(self, pattern: Template | Regex) -> None:
        self.pattern = pattern
        self.literal = pattern.literal

    def matched(self, line: Line, pattern: Template | Regex | None = None) -> Match:
        """What the pattern finds in a line; by default the one that is listened for."""
        pattern = pattern or self.pattern
        try:
            return pattern.match(line.data)
        except TooManyAttemptsError:
            raise CorruptFileError(
                f"line {line.number}: the template {cut(pattern.text)!r} begins there more"
                " often than can be tried",
                remedy="begin it with rarer words, or with ^",
            ) from None

    def step_in(self, line: Line, name: str, step_size: float) -> tuple[int, FieldPlace] | None:
        """The step that a line gives, of what has that name; None if it does not match. Raises
        CorruptFileError for one that gives none.
        """
        found = self.matched(line)
        if found is None:
            return None
        if isinstance(found, Problem):
            word = len(line.data[: found.start].split()) + 1
            raise CorruptFileError(f"line {line.number}, word {word} {found.text}", variable=name)
        step = _step_of(line, found[0], step_size)
        if step is None:
            raise CorruptFileError(f"line {line.number} gives {_NO_STEP}", variable=name)
        return step, found[0]

    def hear(self, line: Line) -> None:
        if fits(line.data, self.matched(line)):
            self.take(line)

    def take(self, line: Line) -> None:
        """A line that matches."""

    def follow(self, line: Line) -> None:
        """A line after it, as long as `follows`."""


class Section:
    """The lines of a text from one that opens a section on, up to one that closes it."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        self._first = 1
        self._closed: list[tuple[int, int]] = []

    def mark(self, line: int, *, opens: bool) -> None:
        """A line that opens the section, or closes it: if it is so already, nothing changes."""
        if opens and not self.is_open:
            self._first = line
        elif self.is_open and not opens:
            self._closed.append((self._first, line - 1))
        self.is_open = opens

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The lines so far, counted from 1: the first and the last of each time that it opens."""
        return [*self._closed, (self._first, LAST_LINE)] if self.is_open else self._closed

    def gates(self, start: Template, end: Template | None) -> list[Gate]:
        """Who listens for the lines of this section; one that matches both opens it again."""
        ends = [] if end is None else [Gate(end, self, opens=False)]
        return [*ends, Gate(start, self, opens=True)]


class Gate(Listening):
    """Opens a section, or closes it."""

    def __init__(self, pattern: Template, section: Section, *, opens: bool) -> None:
        super().__init__(pattern)
        self._section = section
        self._opens = opens

    def take(self, line: Line) -> None:
        self._section.mark(line.number, opens=self._opens)


class Counter(Listening):
    """Counts lines. first: the first one. takes_unlike: whether a line counts, too, that fits but
    for a word which is not a number.
    """

    def __init__(self, pattern: Template, name: str, *, takes_unlike: bool = False) -> None:
        super().__init__(pattern)
        self.name = name
        self.count = 0
        self.first: Line | None = None
        self._takes_unlike = takes_unlike

    def hear(self, line: Line) -> None:
        found = self.matched(line)
        if isinstance(found, tuple) or (found is not None and self._takes_unlike):
            self.take(line)

    def take(self, line: Line) -> None:
        self.count += 1
        self.first = self.first or line


class StepTeller(Listening):
    """Tells what step the program is at."""

    def __init__(
        self, pattern: Template | Regex, name: str, steps: Steps, step_size: float
    ) -> None:
        super().__init__(pattern)
        self._name = name
        self._steps = steps
        self._step_size = step_size

    def hear(self, line: Line) -> None:
        found = self.step_in(line, self._name, self._step_size)
        if found is not None:
            self._steps.enter(found[0])


def _step_of(line: Line, found: FieldPlace, step_size: float) -> int | None:
    """The step that a field gives, whole or as a time; None if it gives none from 0 on."""
    text = line.data[found.start : found.end]
    return _whole(text) if found.field.kind == "int" else steps_of(as_text(text), step_size)


def _whole(text: bytes) -> int | None:
    return int(text) if WHOLE.fullmatch(text) and not text.startswith(b"-") else None


class ValueFinder(Listening):
    """Finds the values of a rule. series: by the name of the variable that each becomes."""

    def __init__(
        self,
        rule: ValueRule,
        pattern: Template | Regex,
        steps: Steps | None,
        section: Section,
        step_size: float,
    ) -> None:
        super().__init__(pattern)
        self.rule = rule
        self._step_size = step_size
        self._steps = steps
        self._section = section
        fields = pattern.fields
        self._has_own_step = any(one.name == STEP for one in fields)
        is_labelled = steps is not None or self._has_own_step
        data = [one for one in fields if is_data(one, rule.name)]
        if rule.column is not None or rule.lines is not None:
            data = [Field(rule.name)]
        self.series: dict[str, Series] = {}
        for one in data:
            name = rule.name if one.name == rule.name else f"{rule.name}.{one.name}"
            label = f"{name}{STEP_SUFFIX}" if is_labelled else None
            self.series[one.name] = Series(name, one.kind, steps=label)

    def hear(self, line: Line) -> None:
        if not self._section.is_open:
            return
        found = self.matched(line)
        if found is None:
            return
        if self.rule.lines is not None:
            self.follows = True
            self._skip, self._left = self.rule.lines.skip, self.rule.lines.count
        elif isinstance(found, Problem):
            self._fail(line, found.start, found.text)
        elif self.rule.column is not None:
            self._take_column(line, self.rule.column)
        else:
            self._take_fields(line, found)

    def _fail(self, line: Line, at: int, problem: str) -> None:
        for series in self.series.values():
            series.fail(line, at, problem)

    def _take_column(self, line: Line, column: int) -> None:
        (series,) = self.series.values()
        words = list(WORD.finditer(line.data))
        if not -len(words) <= column <= len(words):
            series.fault = series.fault or (
                f"line {line.number} has {len(words)} words, and no word {column}"
            )
            return
        word = words[column - 1 if column > 0 else column]
        more = end_of_more(line.data, word.end())
        says_minus = isinstance(self.pattern, Template) and self.pattern.words[-1] == "-"
        problem = None if says_minus else minus_apart(line.data, word.start())
        if problem is None and more is not None:
            problem = no_number(line.data, word.start(), more)
        if problem is not None:
            series.fail(line, problem.start, problem.text)
            return
        self._add(series, line, word.start(), word.end(), None)

    def _take_fields(self, line: Line, found: tuple[FieldPlace, ...]) -> None:
        step: int | None = None
        for one in found:
            if one.field.name == STEP:
                step = _step_of(line, one, self._step_size)
                if step is None:
                    self._fail(line, one.start, f"is {_NO_STEP}")
                    return
        if self._has_own_step and step is None:
            # A group of a regular expression that was passed over.
            self._fail(line, found[0].start if found else 0, "belongs to no step")
            return
        if not any(one.field.name in self.series for one in found):
            # Of a regular expression, too: a choice of which the number is no part.
            for series in self.series.values():
                series.fault = series.fault or (
                    f"line {line.number} matches, but the group around the number takes no part"
                )
        for one in found:
            if one.field.name in self.series:
                self._add(self.series[one.field.name], line, one.start, one.end, step)
            elif one.field.name != STEP:
                text = line.data[one.start : one.end].decode("utf-8", "replace")
                for series in self.series.values():
                    series.note_unit(line, one.field.name, text)

    def _add(self, series: Series, line: Line, start: int, end: int, step: int | None) -> None:
        if not series.add(line, start, end, is_absolute=self.rule.is_absolute):
            return
        if step is not None:
            series.labels.append(step)
        elif self._steps is not None:
            self._steps.label(series.labels)

    # --- numbers of the lines after a match ------------------------------------------------------

    def follow(self, line: Line) -> None:
        assert self.rule.lines is not None
        if self._skip > 0:
            self._skip -= 1
            return
        words = list(WORD.finditer(line.data))
        if self._left is not None:
            self._left -= 1
            self.follows = self._left > 0
        elif self._is_end(self.rule.lines, line, words):
            self.follows = False
            return
        (series,) = self.series.values()
        for word in words:
            series.add(line, word.start(), word.end(), is_absolute=self.rule.is_absolute)

    def _is_end(self, rule: LinesRule, line: Line, words: list[re.Match[bytes]]) -> bool:
        """Whether a line no longer belongs to what stands after a match."""
        if rule.until_words:
            return bool(words) and not looks_like_number(words[0][0])
        return not words if rule.until is None else fits(line.data, self.matched(line, rule.until))


def is_data(field: Field, value: str) -> bool:
    """Whether a field becomes a variable; other words stand for units."""
    return field.name != STEP and (field.kind != "text" or field.name == value)


class TableFinder(Listening):
    """Finds the rows of a table. series: by column."""

    def __init__(self, rule: TableRule, section: Section, step_size: float) -> None:
        super().__init__(rule.header)
        self.step_size = step_size
        self._has_times = step_size != 1.0
        self.rule = rule
        self.series: dict[str, Series] = {}
        self.section = section
        self._end = rule.end
        self._columns: list[str] = []
        self.first: Line | None = None

    def hear(self, line: Line) -> None:
        if not self.section.is_open:
            return
        is_pairs = self.rule.blocks is not None and _PAIRS.fullmatch(line.data)
        if is_pairs or not isinstance(self.matched(line), tuple):
            return
        columns = [one.decode("utf-8", "replace") for one in line.data.split()]
        if not columns or len({*columns}) != len(columns) or len(columns) > MOST_COLUMNS:
            raise CorruptFileError(
                f"line {line.number}: the header of the table names a column twice, or too many",
                variable=self.rule.name,
            )
        label = self.rule.iteration
        if label is not None and label not in columns:
            raise CorruptFileError(
                f"line {line.number}: the header has no column {cut(label)!r}",
                variable=self.rule.name,
            )
        self.first = self.first or line
        self._columns = columns
        self.follows = True
        for column in columns:
            self.column(column)

    def column(self, name: str) -> Series:
        """The series of a column, which is a new one where the column is."""
        if name not in self.series:
            label = self.rule.iteration
            steps = None if label is None else f"{self.rule.name}.{label}"
            if steps is not None and self._has_times:
                steps += STEP_SUFFIX
            kind = "int" if name == label and not self._has_times else "number"
            self.series[name] = Series(f"{self.rule.name}.{name}", kind, steps=steps)
        return self.series[name]

    def follow(self, line: Line) -> None:
        words = list(WORD.finditer(line.data))
        is_end = self._end is not None and fits(line.data, self.matched(line, self._end))
        is_row = bool(words) and looks_like_number(words[0][0])
        if is_end or (self._end is None and not is_row):
            self.follows = False
        elif is_row:
            self._take_row(line, words)

    def _take_row(self, line: Line, words: list[Any]) -> None:
        if len(words) != len(self._columns):
            for one in self.series.values():
                one.fault = one.fault or (
                    f"line {line.number} has {len(words)} words where the table has"
                    f" {len(self._columns)} columns"
                )
            return
        label = self.rule.iteration
        step: int | None = None
        if label is not None:
            text = words[self._columns.index(label)][0]
            step = steps_of(as_text(text), self.step_size) if self._has_times else _whole(text)
        for column, word in zip(self._columns, words, strict=True):
            series = self.series[column]
            if series.add(line, word.start(), word.end()) and series.steps is not None:
                if step is None:
                    series.fail(line, word.start(), f"belongs to {_NO_STEP}")
                series.labels.append(0 if step is None else step)


class BlockFinder(Listening):
    """Finds the rows of a table that are printed as blocks of lines, `NAME = NUMBER` for each
    column.
    """

    def __init__(self, table: TableFinder, blocks: Template, label: str) -> None:
        super().__init__(blocks)
        self._table, self._label = table, label
        self._step = 0

    def hear(self, line: Line) -> None:
        if not self._table.section.is_open:
            return
        found = self.step_in(line, self._table.rule.name, self._table.step_size)
        if found is None:
            return
        self._step, place = found
        self._table.first = self._table.first or line
        self._add(self._label, line, place.start, place.end)
        self.follows = True

    def follow(self, line: Line) -> None:
        self.follows = _PAIRS.fullmatch(line.data) is not None
        for pair in _PAIR.finditer(line.data) if self.follows else ():
            name = as_text(pair[1])
            if name != self._label:  # which the first line has told
                self._add(name, line, *pair.span(2))

    def _add(self, column: str, line: Line, start: int, end: int) -> None:
        series = self._table.column(column)
        if series.add(line, start, end):
            series.labels.append(self._step)


def looks_like_number(word: bytes) -> bool:
    """Whether a row may begin with this word: a number, or one that its field was too small for."""
    is_like = word[:1] in b"0123456789+-.*" or means_number(word)
    return is_like or _NO_DIGITS.match(word) is not None


_UNIT = "unit"
_MOST_MEMORY = 16 << 20
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


class Regex:
    """A compiled expression. fields: of its groups: `iteration`, `unit` (a word), numbers.

    Without named groups the first group is the value. Raises ReaderPluginError without RE2,
    ConfigError for what is no expression.
    """

    literal = None

    def __init__(self, text: str, value: str, path: Path, *, needs_group: bool) -> None:
        re2 = library("re2", file=path)
        self.text = text
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MOST_MEMORY
        options.encoding = re2.Options.Encoding.LATIN1
        try:
            self._pattern: Any = re2.compile(b"(?m)" + text.encode(), options)
        except re2.error as error:
            lookaround = next((one for one in _LOOKAROUND if one in text), None)
            problem = error.args[0] if error.args else error
            if isinstance(problem, bytes):
                problem = problem.decode("utf-8", "replace")
            why = f"RE2 knows no {lookaround}...)" if lookaround else one_line(problem)
            raise ConfigError(
                f"{text[:60]!r} is not a regular expression of RE2: {why}",
                key=f"values.{value}.regex",
            ) from None
        named = {
            number: name.decode() if isinstance(name, bytes) else name
            for name, number in self._pattern.groupindex.items()
        }
        if named and not needs_group:
            raise ConfigError(
                "has named groups, which 'column' or 'lines' would leave unread",
                key=f"values.{value}.regex",
            )
        groups = named or ({1: value} if self._pattern.groups and needs_group else {})
        is_data = [name not in (STEP, _UNIT) for name in groups.values()]
        if needs_group and not (any(is_data) if value != STEP else groups):
            raise ConfigError("has no group (...) around the number", key=f"values.{value}.regex")
        kinds = {_UNIT: "text"}
        self._groups = [
            (number, Field(name, kinds.get(name, "number")))
            for number, name in sorted(groups.items())
        ]
        self.fields = tuple(field for _, field in self._groups)

    def match(self, line: bytes) -> Match:
        """The groups of a line; None if it does not match. A number at the end of all that matches
        may not have its exponent behind it.
        """
        found = self._pattern.search(line)
        if found is None:
            return None
        spans = [(field, *found.span(number)) for number, field in self._groups]
        for field, start, end in spans:
            more = EXPONENT.match(line, end) if end == found.end() else None
            if start >= 0 and field.kind != "text" and more is not None:
                return no_number(line, start, more.end())
        return tuple(FieldPlace(field, start, end) for field, start, end in spans if start >= 0)


# Looking for it is to take no time that anybody notices.
_MOST_BYTES = 8 << 20
_LONGEST_WORD = 100
_MOST_WORDS = 20
_ENOUGH = 0.5


def nearest_line(file: InputFile, words: tuple[str, ...]) -> Line | None:
    """The first line that holds the most of the words, in any case; None unless it holds half."""
    wanted = [one.lower().encode()[:_LONGEST_WORD] for one in words if len(one) > 2][:_MOST_WORDS]
    best: Line | None = None
    most = len(wanted) * _ENOUGH
    if not wanted:
        return None
    for block in blocks_of(file):
        offset = block.offset
        for position, line in enumerate(block.data.split(b"\n")):
            lower = line.lower()
            count = sum(one in lower for one in wanted)
            if count and (count > most or (best is None and count == most)):
                best, most = Line(line.rstrip(b"\r"), block.first_line + position, offset), count
            offset += len(line) + 1
        if block.offset + len(block.data) > _MOST_BYTES:
            break
    return best


class LogReader(Reader):
    """Text of any program, with rules that name the numbers in it (`values`, `tables`, ...)."""

    name: ClassVar[str] = "log"
    option_names: ClassVar[tuple[str, ...]] = (*KEYS, "iteration_step")

    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> LogSource:
        given = dict(options or {})
        self.check_options(given, path)
        with guarded(path):
            return LogSource(path, _rules(given), float(given.get("iteration_step", 1.0)))


def _rules(options: Mapping[str, Any]) -> LogRules:
    """The rules that options give. Raises ConfigError."""
    try:
        rules = make_rules(options)
    except FormError as error:
        key = ".".join(map(str, error.path))
        raise ConfigError(error.message, key=f"options.{key}") from None
    if rules == LogRules():
        raise ConfigError(
            "a log needs rules that say what is looked for in it",
            remedy="give the check 'values', 'tables', 'counts' or 'use'"
            " (`ciwrap init --logs` proposes some)",
        )
    return rules


class LogSource(Source):
    """An open log, read through once. series: all that was found, by variable; counts: of lines.
    step_size: what a step adds to the times that label it.
    """

    may_be_empty = True

    def __init__(self, path: Path, rules: LogRules, step_size: float = 1.0) -> None:
        self.path = path
        self._step_size = step_size
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
                self._pattern(rule.pattern, STEP),
                rule.name,
                steps[rule.name],
                self._step_size,
            )
            # What stands in one line with a step is of that step.
            (listeners if rule.is_after else last).append(teller)
        finders = [self._value_finder(rule, steps, listeners) for rule in rules.values]
        tables = [
            TableFinder(rule, self._section(rule.section, listeners), self._step_size)
            for rule in rules.tables
        ]
        blocks = [
            BlockFinder(one, one.rule.blocks, one.rule.iteration)
            for one in tables
            if one.rule.blocks is not None and one.rule.iteration is not None
        ]
        self.counters = [Counter(pattern, name) for name, pattern in rules.counts]
        required = [Counter(pattern, pattern.text) for pattern in rules.require]
        forbidden = [Counter(pattern, pattern.text, takes_unlike=True) for pattern in rules.forbid]
        listeners += [*finders, *tables, *blocks, *self.counters, *required, *forbidden, *last]
        is_utf8 = hand_out(self._file, listeners)
        if not is_utf8:
            self.notes = (f"{self.path} is not UTF-8 and was read as Latin-1",)
        self._take_values(finders)
        self._take_tables(tables)
        self.faults = tuple(self._violations(required, forbidden))

    def _pattern(
        self, pattern: Template | RegexRule, value: str, *, needs_group: bool = True
    ) -> Any:
        if isinstance(pattern, Template):
            return pattern
        return Regex(pattern.text, value, self.path, needs_group=needs_group)

    def _section(self, rule: SectionRule | None, listeners: list[Listening]) -> Section:
        """Without a rule all of the text."""
        section = Section(is_open=rule is None)
        if rule is not None:
            listeners += section.gates(rule.start, rule.end)
        return section

    def _value_finder(
        self, rule: ValueRule, steps: Mapping[str, Steps], listeners: list[Listening]
    ) -> ValueFinder:
        needs_group = rule.column is None and rule.lines is None
        pattern = self._pattern(rule.pattern, rule.name, needs_group=needs_group)
        section = self._section(rule.section, listeners)
        own = None if rule.step is None else steps[rule.step]
        return ValueFinder(rule, pattern, own, section, self._step_size)

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
            raise ConfigError(f"two rules give the variable {name!r}", key="values")

    def _nothing(self, key: str, pattern: Template | Regex) -> str:
        words = pattern.words if isinstance(pattern, Template) else ()
        near = nearest_line(self._file, words)
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
