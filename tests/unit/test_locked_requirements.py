"""The lists of hashes that jobs on GitHub install from, against pyproject.toml; no network."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TOOLS = PROJECT["tool"]["scikit-build"]
WANTED = {
    "run": PROJECT["project"]["dependencies"],
    "build": [
        *PROJECT["build-system"]["requires"],
        f"cmake{TOOLS['cmake']['version']}",
        f"ninja{TOOLS['ninja']['version']}",
    ],
    "stats": PROJECT["project"]["optional-dependencies"]["stats"],
}


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """The requirements of a list, each with its hashes."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8").replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            words, *hashes = re.split(r"\s+--hash=", line.strip())
            found.append((Requirement(words), hashes))
    return found


def for_python(name: str, python: str) -> dict[str, Requirement]:
    """What pip takes for one Python: each name once."""
    found: dict[str, Requirement] = {}
    surroundings = {"python_version": python, "python_full_version": f"{python}.1"}
    for one, _ in locked(name):
        if one.marker is None or one.marker.evaluate(surroundings):
            assert canonicalize_name(one.name) not in found, (one.name, python)
            found[canonicalize_name(one.name)] = one
    return found


@pytest.mark.parametrize("name", ["run", "build", "stats", "cibuildwheel"])
def test_every_file_has_its_hash_and_every_name_one_version(name: str) -> None:
    for one, hashes in locked(name):
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(one.specifier)), one
        assert hashes, one
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), one


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", list(WANTED))
def test_the_lists_allow_what_pyproject_asks_for(name: str, python: str) -> None:
    there = for_python(name, python)
    for text in WANTED[name]:
        wanted = Requirement(text)
        (pin,) = there[canonicalize_name(wanted.name)].specifier
        assert wanted.specifier.contains(pin.version), (text, pin)


@pytest.mark.parametrize("name", list(WANTED))
def test_nothing_that_they_need_is_missing(name: str) -> None:
    """As far as the packages are installed here, and not in an older release: pip refuses a list
    that is not whole.
    """
    if name == "build":
        pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    there = for_python(name, python)
    looked = 0
    for one in there.values():
        try:
            needs = importlib.metadata.requires(one.name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        (locked,) = (Version(said.version) for said in one.specifier)
        if Version(importlib.metadata.version(one.name)) < locked:
            continue
        looked += 1
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in there, (one.name, need.name)
    assert looked >= (2 if name != "stats" else 1)


def test_the_wheels_are_built_by_what_is_locked() -> None:
    workflow = (ROOT / ".github/workflows/wheels.yml").read_text("utf-8")
    assert "--require-hashes" in workflow
    assert "requirements/cibuildwheel.txt" in workflow
    assert "pipx" not in workflow


def test_one_list_after_the_other_installs_each_name_once() -> None:
    """A job that needs both takes NumPy from either: it is the same one."""
    for python in PYTHONS:
        one, other = (for_python(name, python) for name in ("run", "stats"))
        assert all(one[name].specifier == other[name].specifier for name in one.keys() & other)
