"""The tutorial does what it says: its files are written, its commands run, its outputs compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from e2e.pages import ROOT, follow

TUTORIAL = ROOT / "docs" / "tutorial" / "ten-minutes.md"
FRONT = ROOT / "docs" / "index.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
PAGES += sorted(ROOT.glob("examples/**/*.md"))
PAGES += [ROOT / "licenses/README.md", ROOT / "tests/conformance/earlier/README.md"]


def at_a_desk(home: Path) -> dict[str, str]:
    """The environment of somebody who has ciwrap and git."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "GIT_AUTHOR_NAME": "Ada Example",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada Example",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
    }


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    environment = at_a_desk(tmp_path)
    assert follow(TUTORIAL, tmp_path, environment) > 15
    assert "1e-9" in (tmp_path / "heat/report.html").read_text(encoding="utf-8")
    left = subprocess.run(
        ["git", "status", "--porcelain"],
        cwd=tmp_path / "heat",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert left.stdout == "", "not committed: what a clone of the tutorial's repository would lack"


def test_the_front_page_comes_to_a_red_check(tmp_path: Path) -> None:
    assert follow(FRONT, tmp_path, at_a_desk(tmp_path)) > 5
    assert "sign" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_anchors_are_there(page: Path) -> None:
    """On GitHub and on the site, which make anchors of headings in two ways."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for link, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", text):
        target = (page.parent / link).resolve() if link else page
        if link.startswith("https://") or target.suffix != ".md":
            continue
        assert anchor in anchors_of(target, github=True), f"{link}#{anchor} on GitHub"
        if ROOT / "docs" in target.parents:
            assert anchor in anchors_of(target, github=False), f"{link}#{anchor} on the site"


_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors_of(page: Path, *, github: bool) -> set[str]:
    """What a page's headings can be linked to by. The site takes runs of blanks for one."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        if github:
            found.add(re.sub(r"[^\w\s-]", "", words).replace(" ", "-"))
        else:
            ascii_only = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
            found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip()))
    return found


def test_anchors_of_github_and_of_the_site(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `a & b`, *c*\n```\n# no heading\n```\n## [Up](x.md): 5 %\n")
    assert anchors_of(page, github=True) == {"a--b-c", "up-5-"}
    assert anchors_of(page, github=False) == {"a-b-c", "up-5"}
