"""Files that other programs look for: their forms, and that they say what is so."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import yaml

import ciwrap
from ciwrap.base.files import SCHEMA_NAME, WORK_DIR, keep_out_of_git
from ciwrap.cli.commands import COMMANDS
from ciwrap.project.schema import json_schema
from ciwrap.project.starter import make_starter

ROOT = Path(__file__).resolve().parents[2]


def test_the_program_and_the_citation_name_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    said = re.search(r'^version = "(.+)"$', project, re.MULTILINE)[1]
    assert ciwrap.__version__ == cited["version"] == said
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    # Nobody owns an address of ours yet.
    assert "http" not in str(cited)


def test_hooks_call_commands_that_there_are() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [one["id"] for one in hooks] == ["ciwrap-config", "ciwrap-check"]
    for one in hooks:
        program, command, *_ = shlex.split(one["entry"])
        assert (program, command in COMMANDS) == ("ciwrap", True)
        assert one["pass_filenames"] is False


def test_the_first_line_of_a_configuration_names_its_schema(tmp_path: Path) -> None:
    """Where commands that write to the folder put it, anew if it is that of another release."""
    first = make_starter(()).text.splitlines()[0]
    assert first == f"# yaml-language-server: $schema={WORK_DIR}/{SCHEMA_NAME}"
    work = tmp_path / WORK_DIR
    copy = work / SCHEMA_NAME
    keep_out_of_git(work)
    assert not copy.exists()  # nobody has a use for it
    (tmp_path / "ciwrap.yaml").touch()
    for _ in range(2):
        keep_out_of_git(work)
        assert sorted(one.name for one in work.iterdir()) == [".gitignore", SCHEMA_NAME]
        assert json_schema() == json.loads(copy.read_text())
        copy.write_text("{}")
