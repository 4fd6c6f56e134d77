"""The recorded session of the documentation: its commands run, its outputs compared.

`ciwrap review` is given a terminal, and the answers that the page shows.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from e2e.test_tutorial import MARK, ROOT, as_pattern, blocks_of, commands_of

if TYPE_CHECKING:
    from pathlib import Path

SESSION = ROOT / "docs" / "tutorial" / "tests-and-review.md"
PROMPT = re.compile(r"(?:\[q\]uit: |^why are the new numbers right(?: \[.*\])?: )(?P<answer>.+)$")
AT_A_TERMINAL = """
import pexpect, sys
command, *answers = sys.argv[1:]
child = pexpect.spawn("/bin/sh", ["-c", command], encoding="utf-8", timeout=60,
                      dimensions=(60, 200))
for answer in answers:
    child.expect(r"(\\[q\\]uit|right( \\[.*\\])?): $")
    sys.stdout.write(child.before + child.after)
    child.sendline(answer)
child.expect(pexpect.EOF)
sys.stdout.write(child.before)
"""


def script_line(command: str, expected: list[str]) -> str:
    answers = [match["answer"] for line in expected if (match := PROMPT.search(line))]
    if not answers:
        return command
    words = [sys.executable, "-c", AT_A_TERMINAL, command, *answers]
    return " ".join(shlex.quote(word) for word in words) + " | tr -d '\\r'"


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    script, expectations = [], []
    for language, block in blocks_of(SESSION):
        if language != "console":
            name = block.splitlines()[0].removeprefix("# ")
            script.append(f"cat > {name} <<'END_OF_FILE'\n{block}END_OF_FILE")
            continue
        for command, expected in commands_of(block):
            script.append(f"{script_line(command, expected)}\necho '{MARK}'")
            expectations.append((command, expected))
    assert len(expectations) > 9
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "GIT_"))
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env={
            **kept,
            "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}",  # noqa: PTH120
            "HOME": str(tmp_path),
            "COLUMNS": "200",
            "TERM": "dumb",
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "user.name",
            "GIT_CONFIG_VALUE_0": "Ada Example",
            "GIT_CONFIG_KEY_1": "user.email",
            "GIT_CONFIG_VALUE_1": "ada@example.org",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PAGER": "cat",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    printed = done.stdout.split(f"{MARK}\n")
    assert len(printed) == len(expectations) + 1, done.stdout
    for (command, expected), output in zip(expectations, printed, strict=False):
        if not re.fullmatch(as_pattern(expected), output):
            pytest.fail(
                f"$ {command}\nprinted\n{output}\nwhere the page has\n" + "\n".join(expected)
            )
