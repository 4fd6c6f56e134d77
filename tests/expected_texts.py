"""The words of the output, each text in a file of `tests/expected` that one test owns.

A test that takes the fixture `expected_text` calls it with a text: that text has to stand in the
file of the test. `tools/refresh-expected` has all of these tests write their files anew.
"""

from __future__ import annotations

import difflib
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).resolve().parent / "expected"
IS_REFRESH = os.environ.get("CIWRAP_REFRESH_EXPECTED") == "1"
# Between two texts of one test.
RULE = f"\n{'-' * 80}\n"
# The last digits of what a sine gives are the processor's.
MANY_DIGITS = re.compile(r"(\d\.\d{9})\d{3,}")


def file_of(node_id: str, folder: Path = FOLDER) -> Path:
    """Where the texts of a test stand: `tests/e2e/test_logs.py::test_a` is `e2e/logs/a.txt`."""
    path, _, test = node_id.partition("::")
    *rooms, module = Path(path).with_suffix("").parts[1:]
    name = re.sub(r"[^\w.]+", "-", test.removeprefix("test_")).strip("-")
    return folder.joinpath(*rooms, module.removeprefix("test_"), f"{name}.txt")


class Expected:
    """Compares the texts of one test with those in its file, in the order of the calls.

    file: where they stand. made_in: the folder of temporary files, which no text may name.
    """

    def __init__(self, file: Path, made_in: Path, *, is_refresh: bool = IS_REFRESH) -> None:
        self._file, self._is_refresh = file, is_refresh
        self._temporary = re.compile(re.escape(str(made_in)) + r"(/[\w.-]+)?")
        self._said: list[str] = []
        self._kept = file.read_text("utf-8")[:-1].split(RULE) if file.exists() else []

    def __call__(self, text: str | Iterable[str]) -> None:
        """text: it, or its lines."""
        __tracebackhide__ = True
        if not isinstance(text, str):
            text = "\n".join(text)
        same = MANY_DIGITS.sub(r"\1...", self._temporary.sub("/tmp", text))
        told = "\n".join(line.rstrip() for line in same.strip("\n").split("\n"))
        at = len(self._said)
        self._said.append(told)
        kept = self._kept[at] if at < len(self._kept) else ""
        if told != kept and not self._is_refresh:
            names = f"{self._file.name}, text {at + 1}", "what was said now"
            lines = difflib.unified_diff(kept.split("\n"), told.split("\n"), *names, lineterm="")
            pytest.fail("\n".join([*lines, "if it is right: tools/refresh-expected"]))

    def end(self) -> None:
        """Writes the file anew, if that is wanted; else no text may be left in it."""
        if self._is_refresh and self._said:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(RULE.join(self._said) + "\n", "utf-8")
        elif not self._is_refresh:
            left = len(self._kept) - len(self._said)
            assert not left, f"{self._file.name}: {left} more texts than were said"


class _PageText(HTMLParser):
    """The words of a page, a line for each block; of a table its first rows."""

    HIDDEN = frozenset({"script", "style", "svg", "time", "button"})
    BLOCKS = frozenset({"p", "h1", "h2", "h3", "h4", "li", "dl", "tr", "figure", "summary", "pre"})
    CELLS = frozenset({"td", "th", "dd"})
    MOST_ROWS = 3

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._hidden = self._rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self.HIDDEN
        self._rows += tag == "tr"
        if tag in self.BLOCKS or tag == "dt":
            self.text += "\n"
        elif tag in self.CELLS:
            self.handle_data(" | ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self.HIDDEN
        if tag == "table":
            self._rows = 0
        if tag in self.BLOCKS:
            self.text += "\n"

    def handle_data(self, data: str) -> None:
        if not self._hidden and self._rows <= self.MOST_ROWS:
            self.text += re.sub(r"\s+", " ", data)


def page_text(page: str) -> str:
    """What a reader of a report reads: from its first heading to the last of its findings."""
    begin, ends = page.index("<h1"), ('<section id="environment"', '<section aria-labelledby="h-ba')
    end = min((at for at in map(page.find, ends) if at > 0), default=len(page))
    parser = _PageText()
    parser.feed(page[begin:end])
    lines = (re.sub(" +", " ", line).strip(" ") for line in parser.text.split("\n"))
    return "\n".join(line for line in lines if line)
