"""Pages of the documentation as programs: their files written, their commands run and compared."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "<<< end of command"


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Language and text of a page's code blocks."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def _commands_of(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines it should print."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def commands_below(page: Path, heading: str) -> list[str]:
    """The commands of the console blocks of a section."""
    _, mark, rest = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert mark, heading
    blocks = _BLOCK.findall(rest.partition("\n## ")[0])
    return [
        command
        for language, block in blocks
        if language == "console"
        for command, _ in _commands_of(block)
    ]


def first_command(page: Path, programs: Sequence[str]) -> str | None:
    """The first command of a page that calls one of the programs; None if it has none."""
    for language, block in blocks_of(page):
        for command, _ in _commands_of(block) if language == "console" else ():
            if command.split()[0] in programs:
                return command
    return None


def _as_pattern(expected: list[str]) -> str:
    """Lines, of which `...` stands for any number, and ` ...` at the end of one for its rest."""
    parts = []
    for line in expected:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        elif line.endswith(" ..."):
            parts.append(re.escape(line[:-3]) + r".*\n")
        else:
            parts.append(re.escape(line) + r"\n")
    return "".join(parts)


def follow(
    page: Path,
    folder: Path,
    environment: Mapping[str, str],
    script_line: Callable[[str, list[str]], str] = lambda command, expected: command,
) -> int:
    """Does what the page says, in one shell, and holds what each command prints against it.

    script_line: how a command that should print certain lines is typed. Returns how many commands
    there were.
    """
    script, expectations = [], []
    for language, block in blocks_of(page):
        if language == "text":  # to be read
            continue
        if language != "console":
            name = block.splitlines()[0].removeprefix("# ")
            script.append(f"cat > {name} <<'END_OF_FILE'\n{block}END_OF_FILE")
            continue
        for command, expected in _commands_of(block):
            line = script_line(command, expected)
            # The mark keeps the exit code, which a page may ask for with `echo $?`.
            script.append(f"{line}\n__code=$?; echo '{_MARK}'; (exit $__code)")
            expectations.append((command, expected))
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    printed = done.stdout.split(f"{_MARK}\n")
    assert len(printed) == len(expectations) + 1, done.stdout
    for (command, expected), output in zip(expectations, printed, strict=False):
        if not re.fullmatch(_as_pattern(expected), output):
            pytest.fail(
                f"$ {command}\nprinted\n{output}\nwhere the page has\n" + "\n".join(expected)
            )
    return len(expectations)
