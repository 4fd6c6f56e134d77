"""The tutorial does what it says: its files are written, its commands run, its outputs compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial" / "ten-minutes.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
PAGES += sorted(ROOT.glob("examples/**/*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "<<< end of command"


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Language and text of a page's code blocks."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines it should print."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def as_pattern(expected: list[str]) -> str:
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


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    script, expectations = [], []
    for language, block in blocks_of(TUTORIAL):
        if language != "console":
            name = block.splitlines()[0].removeprefix("# ")
            script.append(f"cat > {name} <<'END_OF_FILE'\n{block}END_OF_FILE")
            continue
        for command, expected in commands_of(block):
            # The mark keeps the exit code, which the page asks for with `echo $?`.
            script.append(f"{command}\n__code=$?; echo '{MARK}'; (exit $__code)")
            expectations.append((command, expected))
    assert len(expectations) > 15
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "Ada Example",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada Example",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=environment,
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_readmes_python_runs(tmp_path: Path) -> None:
    (program,) = [block for language, block in blocks_of(README) if language == "python"]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "match 0.25\n"), done.stderr
    assert (tmp_path / "x.golden").stat().st_size < 0.6e6
