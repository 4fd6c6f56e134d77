"""Messages, help and pages for users call one thing by one name (docs/reference/glossary.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
import yaml

from ciwrap.cli.commands import group

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
# What is no longer said, and what is said instead.
RETIRED = {
    r"(held|holds?|holding)\b[^.|]{0,40}\bagainst": "compared with",
    r"told": "reported, said, known",
    r"suspect(s|ed)?": "may differ, undecided",
    r"cleared": "matches",
    r"divergences?": "difference",
    r"drift(s|ed)?": "change within the bound",
    r"chunks?": "block",
    r"elements?": "value",
}
WORDS = re.compile(rf"(?<![\w/.-])({'|'.join(RETIRED)})(?![\w/-])", re.IGNORECASE)
# Readers speak of cells of meshes, and of parts of files, as the formats do.
OF_FORMATS = {"adios2", "frd", "gmsh", "spice", "su2", "trajectories", "vtk_xml", "zarr"}
CPP_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def retired_in(text: str) -> list[str]:
    return [text[max(0, m.start() - 40) : m.end() + 20] for m in WORDS.finditer(text)]


def messages(path: Path) -> Iterator[str]:
    """The texts of a module but its docstrings; what is one word is a key."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    stated = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in stated:
            continue
        if isinstance(node.value, str) and " " in node.value.strip():
            yield node.value


def core_messages(path: Path) -> Iterator[str]:
    """The texts of a C++ file, as `messages` gives those of a module, line by line."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith(("#include", "//")):
            continue
        yield from (text for text in CPP_TEXT.findall(line) if " " in text)


def help_texts(command: click.Command) -> Iterator[str]:
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from help_texts(inner)


def pages_of(nav: object) -> Iterator[str]:
    """Those for users: all but what is for contributors."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for title, inner in nav.items():
            if title != "For contributors":
                yield from pages_of(inner)
    elif isinstance(nav, list):
        for inner in nav:
            yield from pages_of(inner)


NAV = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
PAGES = [ROOT / "README.md", *(ROOT / "docs" / page for page in pages_of(NAV))]


def test_messages() -> None:
    modules = [one for one in ROOT.glob("ciwrap/**/*.py") if one.stem not in OF_FORMATS]
    found = {
        str(path.relative_to(ROOT)): words
        for path in modules
        if (words := [one for text in messages(path) for one in retired_in(text)])
    }
    assert len(modules) > 100
    assert found == {}, RETIRED


def test_messages_of_the_core() -> None:
    files = [one for one in (ROOT / "csrc").rglob("*") if one.suffix in (".cpp", ".hpp", ".h")]
    texts = [(path, text) for path in files for text in core_messages(path)]
    found = [f"{path}: {words}" for path, text in texts if (words := retired_in(text))]
    assert len(texts) > 300
    assert found == [], RETIRED


def test_help() -> None:
    texts = list(help_texts(group))
    assert len(texts) > 300
    assert [one for text in texts for one in retired_in(text)] == [], RETIRED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_for_users(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    assert retired_in(text) == [], RETIRED


def test_there_are_few_pages_for_users() -> None:
    generated = {"cli-options", "configuration", "values", "result-schema"}
    pages = [page for page in PAGES[1:] if page.stem not in generated]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert len(pages) <= 35
    assert words <= 50_000
