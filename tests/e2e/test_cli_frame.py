"""What all commands have in common: help, output that is piped, colours, names, our own faults."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import numpy as np
from e2e.cli_project import BASE, Project, command, environment


def test_help_and_version_are_quick_to_load() -> None:
    code = (
        "import sys; from ciwrap.cli.main import run; code = run(['--help']);"
        "heavy = {'numpy', 'yaml', 'ciwrap._core'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("init", "run", "check", "compare", "accept", "show", "doctor", "demo"):
        assert f"  {name} " in done.stdout


def test_without_a_command_there_is_help_and_no_success(project: Project) -> None:
    outcome = project.run(json_too=False)
    assert outcome.code == 2
    assert outcome.err.startswith("Usage: ciwrap [OPTIONS] COMMAND")
    assert re.search(r"\n  check +Compare the outputs", outcome.err)


def test_a_reader_of_our_output_may_leave(project: Project) -> None:
    project.accept()
    project.save("temperature", BASE + 1)
    done = subprocess.run(
        ["bash", "-c", '"$@" check -v | true; echo ${PIPESTATUS[0]}', "-", *command()],
        cwd=project.folder,
        env=environment(PYTHONUNBUFFERED="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
    assert done.stderr == ""


def test_colour_on_a_terminal_only(project: Project) -> None:
    project.accept()
    assert "\x1b" not in project.run("check").out
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command("check"),
        cwd=project.folder,
        env=environment(TERM="xterm-256color"),
        stdout=follower,
        stderr=follower,
        stdin=follower,
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    assert process.wait() == 0
    assert b"\x1b[" in seen
    assert b"match" in seen


def test_a_plain_locale(project: Project) -> None:
    project.save("größe", BASE)
    project.accept()
    project.save("größe", BASE + 1)
    outcome = project.run("check", "-v", apart=True, PYTHONIOENCODING="ascii")
    assert outcome.code == 1, outcome
    assert "gr\\xf6\\xdfe" in outcome.out


def test_hostile_names_do_not_reach_the_terminal(project: Project) -> None:
    name = "x\x1b[2J\u202e"
    np.save(project.folder / "out" / f"{name}.npy", BASE)
    outcome = project.run("accept")
    assert outcome.code in (2, 3)
    assert "\x1b" not in outcome.out + outcome.err
    assert len(outcome.error_lines) == 1


def test_a_fault_of_our_own_is_no_verdict() -> None:
    code = (
        "import ciwrap.cli.main as m, sys\n"
        "def broken(*a, **k): raise ZeroDivisionError('oh')\n"
        "m.group.main = broken\n"
        "sys.exit(m.run(['check']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    assert "internal error" in done.stderr
    assert "ZeroDivisionError" in done.stderr
