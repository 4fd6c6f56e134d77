"""Tests see nothing of the settings of whoever runs them: they have a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import NO_OTHER_PLUGINS

TESTS = Path(__file__).parents[1]
# Every commit would be signed, run a hook that fails, and store files by a filter that is missing.
HOSTILE = """\
[user]
    name = Somebody Else
[commit]
    gpgsign = true
[gpg]
    program = false
[core]
    autocrlf = true
    hooksPath = {hooks}
    attributesFile = {attributes}
[init]
    defaultBranch = trunk
[filter "lfs"]
    clean = no-such-command clean
    smudge = no-such-command smudge
    process = no-such-command process
    required = true
"""
WITH_GIT = (
    "unit/test_repository.py::test_commits_by_any_name_and_nothing_else",
    "plugin/test_goldens_to_mend.py::test_line_ends_are_mended_as_the_message_says",
)


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody with such settings."""
    hook = tmp_path / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    attributes = tmp_path / "attributes"
    attributes.write_text("* filter=lfs\n")
    config = tmp_path / ".gitconfig"
    config.write_text(HOSTILE.format(hooks=hook.parent, attributes=attributes))
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "PYTEST_", "CIWRAP_TESTS_"))
    }
    of_git = {"GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_SYSTEM": str(config)}
    return {**kept, **of_git, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}


def test_these_settings_break_a_commit(tmp_path: Path, hostile: dict[str, str]) -> None:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], env=hostile, check=True)
    (folder / "a.txt").write_text("1\n")
    for words in (["add", "a.txt"], ["commit", "--allow-empty", "-m", "x"]):
        done = subprocess.run(
            ["git", "-C", str(folder), "-c", "user.email=a@example.org", *words],
            env=hostile,
            capture_output=True,
            check=False,
        )
        assert done.returncode != 0, words


def test_they_reach_no_test(hostile: dict[str, str]) -> None:
    pytest_command = Path(sys.executable).parent / "pytest"
    done = subprocess.run(
        [pytest_command, "-q", "-p", "no:cacheprovider", *NO_OTHER_PLUGINS, *WITH_GIT],
        cwd=TESTS,
        env=hostile,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
