"""The tutorial does what it says: its files are written, its commands run, its outputs compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.pages import ROOT, blocks_of, follow

README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial" / "ten-minutes.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
PAGES += sorted(ROOT.glob("examples/**/*.md"))


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
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
    assert follow(TUTORIAL, tmp_path, environment) > 15


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
