"""Who listens to the lines of a log: one class for each kind of rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ciwrap.errors import CorruptFileError
from ciwrap.logs.found import Field, Found, Problem, fits, minus_apart, no_number
from ciwrap.logs.numbers import WHOLE, WORD, end_of_more, means_number
from ciwrap.logs.rules import STEP, STEP_SUFFIX
from ciwrap.logs.template import Template, TooManyAttemptsError
from ciwrap.model.forms import cut
from ciwrap.readers.log_series import Series, Steps
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.logs.found import Match
    from ciwrap.logs.rules import LinesRule, SectionRule, TableRule, ValueRule
    from ciwrap.readers.log_lines import Line
    from ciwrap.readers.log_regex import Regex

MOST_COLUMNS = 10_000
# As programs print what is no number, or has none: `NaN`, `nan(ind)`, `Infinity`.
_NO_DIGITS = re.compile(rb"(?:nan|inf|infinity)(?![a-z0-9_])", re.IGNORECASE)


class Listening:
    """Listens for lines that match a pattern. A subclass says what becomes of them."""

    follows = False

    def __init__(self, pattern: Template | Regex, path: Path) -> None:
        self.pattern = pattern
        self.literal = pattern.literal
        self._path = path

    def matched(self, line: Line, pattern: Template | Regex | None = None) -> Match:
        """What the pattern finds in a line; by default the one that is listened for."""
        pattern = pattern or self.pattern
        try:
            return pattern.match(line.data)
        except TooManyAttemptsError:
            raise CorruptFileError(
                f"line {line.number}: the template {cut(pattern.text)!r} begins there more"
                " often than can be tried",
                file=self._path,
                remedy="begin it with rarer words, or with ^",
            ) from None

    def hear(self, line: Line) -> None:
        if fits(line.data, self.matched(line)):
            self.take(line)

    def take(self, line: Line) -> None:
        """A line that matches."""

    def follow(self, line: Line) -> None:
        """A line after it, as long as `follows`."""


class Section(Struct):
    """Whether the lines that come are within a section."""

    is_open: bool = False


class Gate(Listening):
    """Opens a section, or closes it."""

    def __init__(self, pattern: Template, path: Path, section: Section, *, opens: bool) -> None:
        super().__init__(pattern, path)
        self._section = section
        self._opens = opens

    def take(self, line: Line) -> None:
        self._section.is_open = self._opens


class Counter(Listening):
    """Counts lines. first: the first one. takes_unlike: whether a line counts, too, that fits but
    for a word which is not a number.
    """

    def __init__(
        self, pattern: Template, path: Path, name: str, *, takes_unlike: bool = False
    ) -> None:
        super().__init__(pattern, path)
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

    def __init__(self, pattern: Template | Regex, path: Path, name: str, steps: Steps) -> None:
        super().__init__(pattern, path)
        self._name = name
        self._steps = steps

    def hear(self, line: Line) -> None:
        found = self.matched(line)
        if found is None:
            return
        if isinstance(found, Problem):
            word = len(line.data[: found.start].split()) + 1
            raise CorruptFileError(
                f"line {line.number}, word {word} {found.text}",
                file=self._path,
                variable=self._name,
            )
        step = _whole(line, found[0])
        if step is None:
            raise CorruptFileError(
                f"line {line.number} gives no step from 0 on", file=self._path, variable=self._name
            )
        self._steps.enter(step)


def _whole(line: Line, found: Found) -> int | None:
    text = line.data[found.start : found.end]
    return int(text) if WHOLE.fullmatch(text) and not text.startswith(b"-") else None


class ValueFinder(Listening):
    """Finds the values of a rule. series: by the name of the variable that each becomes."""

    def __init__(
        self,
        rule: ValueRule,
        pattern: Template | Regex,
        path: Path,
        steps: Steps | None,
        section: Section | None,
    ) -> None:
        super().__init__(pattern, path)
        self.rule = rule
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
            name = (
                rule.name
                if one.name == rule.name or len(fields) == 0
                else f"{rule.name}.{one.name}"
            )
            label = f"{name}{STEP_SUFFIX}" if is_labelled else None
            self.series[one.name] = Series(name, one.kind, steps=label)

    def hear(self, line: Line) -> None:
        if self._section is not None and not self._section.is_open:
            return
        found = self.matched(line)
        if found is None:
            return
        if self.rule.lines is not None:
            self._begin_lines(self.rule.lines)
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

    def _take_fields(self, line: Line, found: tuple[Found, ...]) -> None:
        step: int | None = None
        for one in found:
            if one.field.name == STEP:
                step = _whole(line, one)
                if step is None:
                    self._fail(line, one.start, "is not a step from 0 on")
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

    def _begin_lines(self, rule: LinesRule) -> None:
        self.follows = True
        self._skip = rule.skip
        self._left = rule.count

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

    def __init__(
        self, rule: TableRule, path: Path, section: Section | None, end: Template | None
    ) -> None:
        super().__init__(rule.header, path)
        self.rule = rule
        self.series: dict[str, Series] = {}
        self._section = section
        self._end = end
        self._columns: list[str] = []
        self.first: Line | None = None

    def hear(self, line: Line) -> None:
        if self._section is not None and not self._section.is_open:
            return
        if not isinstance(self.matched(line), tuple):
            return
        columns = [one.decode("utf-8", "replace") for one in line.data.split()]
        if not columns or len({*columns}) != len(columns) or len(columns) > MOST_COLUMNS:
            raise CorruptFileError(
                f"line {line.number}: the header of the table names a column twice, or too many",
                file=self._path,
                variable=self.rule.name,
            )
        label = self.rule.iteration
        if label is not None and label not in columns:
            raise CorruptFileError(
                f"line {line.number}: the header has no column {cut(label)!r}",
                file=self._path,
                variable=self.rule.name,
            )
        self.first = self.first or line
        self._columns = columns
        self.follows = True
        for column in columns:
            if column not in self.series:
                name = f"{self.rule.name}.{column}"
                steps = None if label is None else f"{self.rule.name}.{label}"
                kind = "int" if column == label else "number"
                self.series[column] = Series(name, kind, steps=steps)

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
            step = int(text) if WHOLE.fullmatch(text) and not text.startswith(b"-") else None
        for column, word in zip(self._columns, words, strict=True):
            series = self.series[column]
            if series.add(line, word.start(), word.end()) and series.steps is not None:
                if step is None:
                    series.fail(line, word.start(), "belongs to no step from 0 on")
                series.labels.append(0 if step is None else step)


def looks_like_number(word: bytes) -> bool:
    """Whether a row may begin with this word: a number, or one that its field was too small for."""
    is_like = word[:1] in b"0123456789+-.*" or means_number(word)
    return is_like or _NO_DIGITS.match(word) is not None


def section_gates(rule: SectionRule, path: Path) -> tuple[Section, list[Gate]]:
    """A section, and who opens and closes it."""
    section = Section()
    gates = [] if rule.end is None else [Gate(rule.end, path, section, opens=False)]
    return section, [*gates, Gate(rule.start, path, section, opens=True)]
