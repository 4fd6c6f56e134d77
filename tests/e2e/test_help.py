"""Help: commands in groups, options in sections, an example, 80 columns; --quiet and --color."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
import pytest
from e2e.cli_project import Project

from ciwrap.cli.commands import COMMANDS, GROUPS, Command, group

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands() -> Iterator[tuple[str, Command]]:
    context = group.make_context("ciwrap", [], resilient_parsing=True)
    for name in COMMANDS:
        found = group.get_command(context, name)
        inner = found.commands.items() if isinstance(found, click.Group) else [("", found)]
        for word, one in inner:
            assert isinstance(one, Command), name
            yield f"ciwrap {name} {word}".rstrip(), one


EACH = [pytest.param(path, one, id=path) for path, one in commands()]


def help_of(one: click.Command, path: str) -> str:
    return one.get_help(
        click.Context(one, info_name=path, terminal_width=80, **group.context_settings)
    )


def test_help_shows_every_command_in_its_group() -> None:
    text = help_of(group, "ciwrap")
    assert max(map(len, text.splitlines())) <= 80
    at = 0
    for title, names in GROUPS.items():
        at = text.index(f"\n{title}:\n", at)
        for name, (_, line) in names.items():
            at = text.index(f"\n  {name} ", at)
            assert text[at:].splitlines()[1].endswith(line)
    assert len(COMMANDS) == sum(map(len, GROUPS.values()))


@pytest.mark.parametrize(("path", "one"), EACH)
def test_help_fits_80_columns_and_ends_with_an_example(path: str, one: Command) -> None:
    lines = help_of(one, path).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == f"  Example: {one.example}"
    words = shlex.split(one.example)
    assert " ".join(words).startswith(path)
    one.make_context(path, words[len(path.split()) :], obj=None)


def test_many_options_are_shown_in_sections() -> None:
    texts = {path: help_of(one, path) for path, one in commands()}
    assert "\nCaptures:\n  --capture-a PATH " in texts["ciwrap compare"]
    assert "\nOutput:\n  --json FILE " in texts["ciwrap compare"]
    assert texts["ciwrap compare"].index("Bounds and") < texts["ciwrap compare"].index("Output:")
    assert "\nOutput:\n" not in texts["ciwrap doctor"]
    assert all(text.count("  -h, --help ") == 1 for text in texts.values())


def test_short_forms(accepted: Project) -> None:
    for words in (("-h",), ("check", "-h"), ("snapshot", "-h"), ("snapshot", "diff", "-h")):
        outcome = accepted.run(*words, json_too=False)
        assert (outcome.code, outcome.out.startswith("Usage: ciwrap")) == (0, True), words
    version = accepted.run("--version", json_too=False)
    assert accepted.run("-V", json_too=False).out == version.out


@pytest.mark.parametrize("words", [("check", "--quiet"), ("-q", "check")])
def test_quiet_prints_nothing_if_all_is_well(accepted: Project, words: tuple[str, ...]) -> None:
    outcome = accepted.run(*words, json_too=False)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    accepted.configure(bound="atol: 0")
    path = next((accepted.folder / "golden").glob("*.golden"))
    path.unlink()
    loud = accepted.run("check", json_too=False)
    outcome = accepted.run(*words, json_too=False)
    assert loud.code == 3
    assert (outcome.code, outcome.out) == (loud.code, loud.out)


def test_quiet_is_refused_where_printing_is_all_there_is(accepted: Project) -> None:
    outcome = accepted.run("-q", "doctor", json_too=False)
    assert outcome.code == 2
    assert outcome.error_lines == [
        "error: ciwrap doctor takes no --quiet; see `ciwrap doctor --help`"
    ]


def test_colours_when_asked_for(accepted: Project) -> None:
    for words in (("--color", "always", "check"), ("check", "--color=always")):
        assert "\x1b[" in accepted.run(*words, json_too=False).out
    for words in (("check",), ("--color=always", "check", "--color=never")):
        assert "\x1b[" not in accepted.run(*words, json_too=False).out
