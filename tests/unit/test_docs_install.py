"""The page on installing names every extra that there is, and so does every message."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
PAGE = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
TABLE = dict(re.findall(r"^\| (`.*?`) \| (.*) \|$", PAGE, re.MULTILINE))
FOR_WORK = r"Other extras are for work on ciwrap itself: (.*)\."


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`([a-z0-9-]+)`", text))


def test_the_page_names_every_extra() -> None:
    for_work = re.search(FOR_WORK, PAGE)
    assert for_work is not None
    assert quoted(" ".join(TABLE)) | quoted(for_work[1]) == set(EXTRAS)
    assert not quoted(" ".join(TABLE)) & quoted(for_work[1])


@pytest.mark.parametrize("extra", ["formats", "all"])
def test_the_page_says_what_an_extra_of_others_brings(extra: str) -> None:
    wanted = {one for name in quoted(TABLE[f"`{extra}`"]) for one in requirements(name)}
    assert wanted == requirements(extra)


def requirements(extra: str) -> set[str]:
    """What an extra brings in the end, also through others."""
    found = set()
    for one in EXTRAS[extra]:
        inner = re.fullmatch(r"ciwrap\[(.*)\]", one)
        found |= (
            {one}
            if inner is None
            else {two for n in inner[1].split(",") for two in requirements(n)}
        )
    return found


def test_messages_and_pages_name_extras_that_exist() -> None:
    """`pip install 'ciwrap[NAME]'`, in the program and on its pages."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    named = {
        extra
        for path in [*files, *ROOT.glob("ciwrap/**/*.py")]
        for extras in re.findall(
            r"pip install [^\n]*?(?:ciwrap|\.)\[([a-z0-9,-]+)\]", path.read_text(encoding="utf-8")
        )
        for extra in extras.split(",")
    }
    assert {"stats", "mpi", "dask", "hdf5"} <= named
    # Whatever an index has under this name is somebody else's.
    assert not any("install 'ciwrap" in path.read_text() for path in ROOT.glob("ciwrap/**/*.py"))
    assert named <= set(EXTRAS)


def test_every_library_of_a_reader_has_its_extra() -> None:
    from ciwrap.formats.reader import NEEDED

    assert {extra for extra, _ in NEEDED.values()} <= quoted(" ".join(TABLE))
