"""What the README shows is what happens; the commands of all pages exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest
from command_line import NO_OTHER_PLUGINS
from e2e.cli_project import command, environment
from e2e.pages import ROOT, blocks_of

from ciwrap.base.errors import ExitCode
from ciwrap.cli.commands import group

if TYPE_CHECKING:
    from pathlib import Path

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = blocks_of(README)
NUMBER = r"[\d,]*\d(?:\.\d+)?(?:e-?\d+)?"


def as_pattern(line: str) -> str:
    """The line with any numbers in it: noise is another one every time."""
    # How many chunks are suspect, and where, changes with the noise as well, and so does whether
    # and where any drift is seen.
    line = re.sub(r"(blocks may differ:|in values|tree\],) .*", r"\1 ...", line)
    # So does which of the marks `.` and `~` an iteration has.
    line = re.sub(r"^(      \w+ +)[.~#!]+$", r"\1 ...", line)
    parts = [re.escape(part) for part in re.split(NUMBER, line)]
    return NUMBER.join(parts).replace(r"\ \.\.\.", ".*") + r"\n"


def test_the_demonstration(tmp_path: Path) -> None:
    block = next(text for _, text in BLOCKS if text.startswith("$ ciwrap demo\n"))
    lines = block.splitlines()[1:]
    done = subprocess.run(
        command("demo"),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # One part after the other, so that a failure names what is not there.
    at, may_skip = 0, False
    for line in lines:
        if line.strip() == "...":
            may_skip = True
            continue
        pattern = re.compile(as_pattern(line), re.MULTILINE)
        found = pattern.search(done.stdout, at) if may_skip else pattern.match(done.stdout, at)
        assert found, f"the demonstration does not print\n{line}\nbut\n{done.stdout[at:]}"
        at, may_skip = found.end(), False


def commands_of(page: Path) -> list[list[str]]:
    """The words of every call of ciwrap on a page, up to a pipe or the like."""
    found = []
    for _, block in blocks_of(page):
        for line in re.findall(r"^\$ (?:\w+=\S+ )*ciwrap (.*)$", block, re.MULTILINE):
            words = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
            words.whitespace_split = True
            found.append(list(takewhile(lambda word: not set(word) <= set("|;&<>"), words)))
    return [words for words in found if words]


COMMANDS = [
    pytest.param(words, id=f"{page.name}: {' '.join(words)}")
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
    for words in commands_of(page)
]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_documented_command_and_option_exists(words: list[str]) -> None:
    name, *arguments = words
    found = group.get_command(group.make_context("ciwrap", [], resilient_parsing=True), name)
    assert found is not None
    found.make_context(name, arguments, obj=None)


def test_documented_commands_are_found() -> None:
    assert len(COMMANDS) > 40
    for tool in re.findall(r"^\$ (tools/\S+)", TEXT, re.MULTILINE):
        assert os.access(ROOT / tool, os.X_OK), tool


def test_the_exit_codes() -> None:
    rows = re.findall(r"^\| (\d) \| (.*) \|$", TEXT, re.MULTILINE)
    assert [int(code) for code, _ in rows] == [int(code) for code in ExitCode]
    words = " ".join(f"{code} {meaning}," for code, meaning in rows)
    assert words.rstrip(",") in str(group.epilog)


def test_the_test(tmp_path: Path) -> None:
    (test,) = [text for language, text in BLOCKS if language == "py"]
    setting = "import numpy as np\nparticles = np.ones(100)\ndef push(p): return p * START\n"
    (tmp_path / "test_it.py").write_text(setting.replace("START", "2.0") + test)

    def pytest(*more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *NO_OTHER_PLUGINS, *more],
            cwd=tmp_path,
            env=environment(CI=""),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout

    assert "1 new" in pytest()
    assert "1 written" in pytest("--ciwrap-update=new")
    assert "1 matched" in pytest()
    (tmp_path / "test_it.py").write_text(setting.replace("START", "2.001") + test)
    said = pytest()
    assert "1 differ" in said
    assert "ciwrap review" in said
