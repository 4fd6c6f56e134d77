"""Completion: click's scripts in real shells, and what they are answered."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call, call_apart
from e2e.cli_project import Project, environment

PROGRAMS = str(Path(sys.executable).parent)
# How a script's function is called in a shell that nobody types into, and what it offers.
ASK = {
    "bash": "COMP_WORDS=({words}); COMP_CWORD=$(({count} - 1)); _ciwrap_completion ciwrap;"
    ' printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": 'complete -C "{line}"',
}


def offered(project: Project, *words: str) -> list[str]:
    """What bash is answered for the last of the words, each with its type."""
    said = environment() | {
        "COMP_WORDS": "\n".join(("ciwrap", *words)),
        "COMP_CWORD": str(len(words)),
        "_CIWRAP_COMPLETE": "bash_complete",
    }
    done = call(folder=project.folder, environment=said)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed(tmp_path: Path, shell: str) -> None:
    said = environment() | {"_CIWRAP_COMPLETE": f"{shell}_source"}
    # As the script itself calls it, and with words that count for nothing.
    for words in ((), ("check",)):
        done = call_apart(*words, folder=tmp_path, environment=said)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"_CIWRAP_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)


@pytest.mark.parametrize("wrong", ["1", "bash", "tcsh_source", "bash_"])
def test_an_instruction_that_is_none(tmp_path: Path, wrong: str) -> None:
    said = environment() | {"_CIWRAP_COMPLETE": wrong}
    done = call("check", folder=tmp_path, environment=said)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: _CIWRAP_COMPLETE={wrong} is none of bash_source, zsh_source, fish_source\n"
    )


def test_what_is_offered(project: Project) -> None:
    assert offered(project, "ch") == ["plain,check", "plain,changes"]
    assert offered(project, "snapshot", "d") == ["plain,diff"]
    assert "plain,--config" in offered(project, "check", "--co")
    assert offered(project, "check", "--engine", "p") == ["plain,pread"]
    assert offered(project, "check", "m") == ["plain,mesh"]
    assert offered(project, "check", "--check", "") == ["plain,mesh"]
    # What only a shell knows, and what nobody knows.
    for words in (("compare", "out"), ("run", "--", "./si"), ("chek", "o"), ("report", "r")):
        assert offered(project, *words) == [f"file,{words[-1]}"], words


def test_without_a_configuration_no_check_is_offered(project: Project) -> None:
    (project.folder / ".git").mkdir()
    (project.folder / "ciwrap.yaml").write_text("checks: [")
    assert offered(project, "check", "m") == ["file,m"]
    (project.folder / "ciwrap.yaml").unlink()
    assert offered(project, "check", "m") == ["file,m"]


@pytest.mark.parametrize("shell", ASK)
def test_in_a_real_shell(project: Project, shell: str) -> None:
    if shutil.which(shell) is None:
        assert shell != "bash"
        return
    words = ("ciwrap", "compare", "--capture-")
    script = environment() | {"_CIWRAP_COMPLETE": f"{shell}_source"}
    source = call(folder=project.folder, environment=script).stdout
    ask = ASK[shell].format(words=shlex.join(words), count=len(words), line=" ".join(words))
    done = subprocess.run(
        [shell, "-c", f"{source}\n{ask}"],
        cwd=project.folder,
        env=environment() | {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.split("\t")[0] for line in done.stdout.split("\n") if line]
    assert (found, done.stderr) == (["--capture-a", "--capture-b"], "")
