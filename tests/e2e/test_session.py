"""The recorded session of the documentation: its commands run, its outputs compared.

`ciwrap review` is given a terminal, and the answers that the page shows.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from command_line import NO_OTHER_PLUGINS
from e2e.pages import ROOT, follow

SESSION = ROOT / "docs" / "tutorial" / "tests-and-review.md"
PROMPT = re.compile(r"(?:\[q\]uit: |^why are the new numbers right(?: \[.*\])?: )(?P<answer>.+)$")
AT_A_TERMINAL = """
import os, pexpect, sys
command, *answers = sys.argv[1:]
del os.environ["COLUMNS"]  # that of files
child = pexpect.spawn("/bin/sh", ["-c", command], encoding="utf-8", timeout=60,
                      dimensions=(30, 80))
for answer in answers:
    child.expect(r"(\\[q\\]uit|right( \\[.*\\])?): $")
    sys.stdout.write((child.before + child.after).replace("\\x1b[2J\\x1b[1;1H", ""))
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
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
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
        "PYTEST_ADDOPTS": "-p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning "
        + " ".join(NO_OTHER_PLUGINS),
    }
    assert follow(SESSION, tmp_path, environment, script_line) > 9
