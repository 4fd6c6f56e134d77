"""The documentation as a site: it builds without a warning and loads nothing from elsewhere; what
is generated in it is up to date.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
import yaml

from ciwrap.cli.commands import COMMANDS, group
from ciwrap.project.config import load_text

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = (ROOT / "docs/reference/cli-options.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_the_generated_reference(name: str) -> None:
    section = re.search(rf"^## ciwrap {name}$(.*?)(?=^## |\Z)", OPTIONS, re.MULTILINE | re.DOTALL)
    assert section is not None, "run tools/generate-cli-reference"
    command = group.get_command(click.Context(group), name)
    assert command is not None
    # Versions of click break lines in different places, so words are compared.
    stated = section[1].split()
    for parameter in command.params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert option in section[1], f"{option}: run tools/generate-cli-reference"
        text = (getattr(parameter, "help", None) or "").split()
        assert set(text) - {"\b"} <= set(stated), f"{text}: run tools/generate-cli-reference"
    assert set((command.help or "").split()) - {"\b"} <= set(stated), name


def options_of(command: click.Command, name: str) -> dict[str, set[str]]:
    """The options of a command, or of each that it is a group of, by what is typed."""
    if isinstance(command, click.Group):
        inner = [
            options_of(one, f"{name} {word}".strip())
            for word in command.list_commands(click.Context(command))
            if (one := command.get_command(click.Context(command), word)) is not None
        ]
        return {key: found for one in inner for key, found in one.items()}
    return {name: {option for one in command.params for option in one.opts}}


def test_the_page_of_commands_says_who_takes_json_and_report() -> None:
    text = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    options = options_of(group, "")
    without = re.search(r"Every command but (.*?) takes `--json FILE`", text)
    with_report = re.search(r"([^.]*) take `--report FILE`", text)
    assert without is not None
    assert with_report is not None
    for stated, there in (
        (without[1], [name for name, found in options.items() if "--json" not in found]),
        (with_report[1], [name for name, found in options.items() if "--report" in found]),
    ):
        assert sorted(re.findall(r"`([a-z ]+)`", stated)) == sorted(there)


def commands_on(page: Path) -> list[list[str]]:
    """The words of each `ciwrap` command that a page shows or names, up to a command of its own; of
    what stands in quotes a Q.
    """
    text = page.read_text("utf-8")
    blocks = re.findall(r"^ *```(?:console|sh|yaml|groovy)\n(.*?)^ *```", text, re.M | re.S)
    quoted = r"'[^'\n]*'|\"[^\"\n]*\""
    lines = [re.sub(quoted, "Q", line) for block in blocks for line in block.splitlines()]
    typed = [one for line in lines for one in re.findall(r"(?<![\w./-])ciwrap ([^|>&;#`]*)", line)]
    typed += re.findall(r"`ciwrap ([^`]*)`", re.sub(quoted, "Q", text))
    return [re.split(r" --(?: |$)", one)[0].split() for one in typed]


def test_pages_show_options_that_there_are() -> None:
    options = options_of(group, "")
    count = 0
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]:
        if page.name == "CHANGELOG.md":
            continue
        for words in commands_on(page):
            names = (" ".join(words[:2]), words[0] if words else "")
            known = next((options[name] for name in names if name in options), None)
            if known is None:  # `ciwrap COMMAND`, a sentence
                continue
            shown = {re.split("[=)'\"]", word)[0] for word in words if word.startswith("--")}
            assert shown <= known | {"--help"}, (page.name, words)
            count += len(shown)
    assert count > 150


def test_configurations_in_the_how_tos_load() -> None:
    found = []
    for page in sorted((ROOT / "docs/how-to").glob("*.md")):
        for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
            if re.search("^checks:", block, re.M):
                assert load_text(block, Path("/project/ciwrap.yaml")).checks, page
                found.append(page.name)
    assert "choose-bounds.md" in found


def test_how_tos_begin_with_what_to_type() -> None:
    for page in (ROOT / "docs/how-to").glob("*.md"):
        if page.stem not in ("release", "write-a-reader"):
            assert re.match("# .*\n\n```", page.read_text("utf-8")), page.name


def test_the_odds_in_choose_bounds() -> None:
    """Runs that agree: how often a run may differ all the same, with 95 % confidence."""
    text = (ROOT / "docs/how-to/choose-bounds.md").read_text(encoding="utf-8")
    assert "ten runs that agree say that fewer than about one run in four" in text
    assert f"0.05^(1/9) = {100 * (1 - 0.05 ** (1 / 9)):.0f} %" in text
    assert pytest.approx(0.1, abs=0.005) == 1 - 0.05 ** (1 / 29)


def pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    items = nav.values() if isinstance(nav, dict) else nav
    assert isinstance(nav, dict | list)
    return [page for item in items for page in pages(item)]


def test_every_page_can_be_found() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = pages(yaml.safe_load(text)["nav"])
    there = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert sorted(listed) == sorted(there)


def test_files_of_the_repository_are_named_or_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "://" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    rewrite = runpy.run_path(str(ROOT / "tools/docs_hooks.py"))["on_page_markdown"]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="how-to/install.md"))
    text = "[README](../../README.md#use), [how](../index.md)"
    monkeypatch.delenv("CIWRAP_SOURCE_URL", raising=False)
    assert rewrite(text, page=page) == "README (`README.md`), [how](../index.md)"
    monkeypatch.setenv("CIWRAP_SOURCE_URL", "https://example.org/x")
    linked = "[README](https://example.org/x/README.md#use), [how](../index.md)"
    assert rewrite(text, page=page) == linked
    with pytest.raises(ValueError, match="is not in the repository"):
        rewrite("[no](../../no-such-file)", page=page)


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    if find_spec("mkdocs") is None or find_spec("material") is None:
        pytest.skip("MkDocs is not installed (extra dev)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        # No way out: what wants to fetch something fails.
        env={**os.environ, "http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1",
             "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sources = re.compile(
        r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'> ]+)"""
    )
    for page in tmp_path.rglob("*.html"):
        found = sources.findall(page.read_text(encoding="utf-8"))
        assert [one for one in found if "canonical" not in one] == [], page
