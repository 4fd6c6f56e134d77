"""The page that shows the way of a check names functions that are there, in the files it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explanation/how-a-check-happens.md").read_text(encoding="utf-8")
# `name` in `file`: in the rows of the table, and in the text below it. A method is `Class.method`.
NAMED = re.findall(r"`([A-Za-z_.]+)` in `([a-z_/]+\.py)`", PAGE)
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]


def names_of(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """What a module defines: its functions, its classes, and the methods of these."""
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(prefix + node.name)
        if isinstance(node, ast.ClassDef):
            found |= names_of(node.body, f"{prefix}{node.name}.")
    return found


def test_each_row_names_a_function() -> None:
    assert [int(row.split("|")[1]) for row in ROWS] == [*range(1, len(ROWS) + 1)]
    assert len(ROWS) > 5
    for row in ROWS:
        assert any(f"`{name}` in `{file}`" in row for name, file in NAMED), row


@pytest.mark.parametrize(("name", "file"), sorted(set(NAMED)))
def test_the_file_defines_it(name: str, file: str) -> None:
    text = (ROOT / "ciwrap" / file).read_text(encoding="utf-8")
    assert name in names_of(ast.parse(text).body)
