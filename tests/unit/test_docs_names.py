"""What pages name of this repository is there: files, tools, benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += [*sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/**/*.md"))]
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.{},-]+\.(?:py|cpp|hpp|h|f90|c|yml|j2|cff|in))`")
TOOL = re.compile(r"(?<![\w/.])(tools/[\w.-]+)(?<!\.)")
# Folders that pages about a part of the code count from.
FROM = (
    ".",
    "ciwrap",
    "csrc",
    "csrc/include",
    "tests",
    "examples",
    "golden",
    "docs",
    "csrc/record/include",
)
# Of other projects.
OF_OTHERS = {
    "obspy/conftest.py",
    "tests/test_flow.py",
    "tests/test_mesh.py",
    "tests/test_reader.py",
}


def unfolded(word: str) -> list[str]:
    before, brace, rest = word.partition("{")
    inner, _, after = rest.partition("}")
    return [f"{before}{one}{after}" for one in inner.split(",")] if brace else [word]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {one for word in FILE.findall(FENCED.sub("", text)) for one in unfolded(word)}
    named |= set(TOOL.findall(text))
    assert not [
        one
        for one in sorted(named - OF_OTHERS)
        if not any((ROOT / folder / one).exists() for folder in FROM)
    ]


def test_benchmarks_are_there() -> None:
    source = (ROOT / "benchmarks/__main__.py").read_text(encoding="utf-8")
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for section in re.findall(r"python -m benchmarks --only ([\w-]+)", text):
            assert f'"{section}"' in source, (page, section)
            found.add(section)
        for module in re.findall(r"python -m benchmarks\.(\w+)", text):
            assert (ROOT / f"benchmarks/{module}.py").exists(), (page, module)
    assert len(found) > 10
