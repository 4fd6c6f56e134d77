"""Regular expressions over logs by RE2, which takes linear time whatever the expression is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.errors import ConfigError, one_line
from ciwrap.logs.found import Field, Found, no_number
from ciwrap.logs.numbers import EXPONENT
from ciwrap.logs.rules import STEP
from ciwrap.readers.optional import library

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.logs.found import Match

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
        re2 = library("re2", "log", file=path)
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
                file=path,
                key=f"values.{value}.regex",
            ) from None
        named = {number: name for name, number in self._pattern.groupindex.items()}
        if named and not needs_group:
            raise ConfigError(
                "has named groups, which 'column' or 'lines' would leave unread",
                file=path,
                key=f"values.{value}.regex",
            )
        groups = named or ({1: value} if self._pattern.groups and needs_group else {})
        is_data = [_as_text(name) not in (STEP, _UNIT) for name in groups.values()]
        if needs_group and not (any(is_data) if value != STEP else groups):
            raise ConfigError(
                "has no group (...) around the number", file=path, key=f"values.{value}.regex"
            )
        kinds = {STEP: "int", _UNIT: "text"}
        self._groups = [
            (number, Field(_as_text(name), kinds.get(_as_text(name), "number")))
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
        return tuple(Found(field, start, end) for field, start, end in spans if start >= 0)


def _as_text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
