"""The files of expected texts: each belongs to a test, and refreshing them changes nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from expected_texts import FOLDER, Expected, file_of, page_text

TESTS = FOLDER.parent


def with_texts(module: Path) -> set[Path]:
    """The files of a module's tests, without what names the cases of a test."""
    found = (
        one.name
        for one in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(one, ast.FunctionDef) and "expected_text" in [a.arg for a in one.args.args]
    )
    path = module.relative_to(TESTS.parent).as_posix()
    return {file_of(f"{path}::{name}").with_suffix("") for name in found}


def test_each_file_belongs_to_a_test_and_each_test_has_one() -> None:
    owners = {one for module in TESTS.rglob("test_*.py") for one in with_texts(module)}
    files = list(FOLDER.rglob("*.txt"))
    owned = {file.with_name(file.stem.partition("-")[0]) for file in files}
    assert owned == owners
    assert [one for one in FOLDER.rglob("*") if one.is_file() and one not in files] == []


def test_a_text_is_kept_and_another_one_is_shown_beside_it(tmp_path: Path) -> None:
    file = file_of("tests/e2e/test_it.py::test_this[a b]", tmp_path / "kept")
    assert file == tmp_path / "kept/e2e/it/this-a-b.txt"
    made_in = tmp_path / "made"

    def say(*texts: str, is_refresh: bool = False) -> bytes:
        expected = Expected(file, made_in, is_refresh=is_refresh)
        for text in texts:
            expected(text)
        expected.end()
        return file.read_bytes()

    first = say(f"one\n\nin {made_in}/test_this0/x\n", "1.12345678901234", is_refresh=True)
    assert first.decode().splitlines()[::4] == ["one", "1.123456789..."]
    said = ("one\n\nin /tmp/x", "1.1234567890999")
    assert say(*said) == say(*said, is_refresh=True) == first
    with pytest.raises(pytest.fail.Exception, match=r"(?s)-one\n.*\n\+two\n.*refresh"):
        say("two", said[1])
    with pytest.raises(pytest.fail.Exception, match="text 3"):
        say(*said, "three")
    with pytest.raises(AssertionError, match="1 more"):
        say(said[0])


def test_of_a_page_only_words_are_kept() -> None:
    rows = "".join(f"<tr><td>{n}</td><td>b</td></tr>" for n in range(9))
    page = f"""<style>p</style><h1>So <b>it</b>
        is</h1><dl><dt>What</dt><dd>a &lt; b</dd></dl><svg><text>no</text></svg>
        <table>{rows}</table><p>end</p><section id="environment">host</section>"""
    told = ["So it is", "What | a < b", "| 0 | b", "| 1 | b", "| 2 | b", "end"]
    assert page_text(page).splitlines() == told
