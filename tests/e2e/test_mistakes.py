"""Mistakes that people make at the command line: each answer says what is known, then what to do.

The answers stand in `tests/expected`, a table to read from top to bottom.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from command_line import call
from e2e.cli_project import environment

if TYPE_CHECKING:
    from e2e.cli_project import Project
    from expected_texts import Expected

# What is typed; `name=text;` before it writes a file first, and `-name;` takes one away.
TYPED = """
ciwrap chek
ciwrap list
ciwrap test
ciwrap diff a b
ciwrap update
ciwrap status
ciwrap help
ciwrap check nope
ciwrap check mash
ciwrap check out
ciwrap check --tol 1e-6
ciwrap check --atol 1e-6
ciwrap check --update
ciwrap check --config nowhere.yaml
ciwrap check --json
ciwrap check --threads many
ciwrap accept
ciwrap accept mesh mesh
ciwrap accept nope
ciwrap run
ciwrap run simulate
ciwrap compare out
ciwrap compare out nowhere
ciwrap compare out out/ids.npy
ciwrap compare out out --atol 1e-6 --ulps 4
ciwrap compare out out --atol=-1
ciwrap compare out out --bound temperature
ciwrap compare out out --bound nope:atol=1e-3
ciwrap compare out out --bound temperature=1e-3
ciwrap compare out out --abs 1e-6
ciwrap compare a.npy b.npy c.npy
ciwrap show nowhere.golden
ciwrap report ciwrap.yaml
ciwrap time
ciwrap time --base main
ciwrap trend
ciwrap trend out/ids.npy
ciwrap trend --store ciwrap-results
ciwrap bisect v1 HEAD
ciwrap repeat -n 1
ciwrap record
ciwrap init
ciwrap review
ciwrap reject
ciwrap snapshot diff last
"""
CONFIGURATIONS = (
    ("chekcs: {}", "a key of the file"),
    ("checks: {mesh: {outputs: out, tolerance: 1e-6}}", "a setting"),
    ("checks:\n\tmesh: {outputs: out}", "a tab"),
    ("checks: {mesh: {outputs: nowhere}}", "a folder that is not there"),
    ("checks: {mesh: {outputs: [out}}", "a bracket"),
    ("checks: {mesh: {}}", "a key that is needed"),
    ("run: ./nowhere\nchecks: {mesh: {outputs: out}}", "a program that is not there"),
)


def answer(project: Project, line: str) -> str:
    program, *words = shlex.split(line)
    assert program == "ciwrap"
    done = call(*words, folder=project.folder, environment=environment(CI="", COLUMNS="80"))
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2, 3) or not done.stderr, line
    return f"$ {line}\n{done.stdout}{done.stderr}exit {done.returncode}\n"


def test_at_the_command_line(accepted: Project, expected_text: Expected) -> None:
    said = [answer(accepted, line) for line in TYPED.split("\n") if line]
    assert len(said) >= 30
    expected_text("\n".join(said))


def test_in_the_configuration(accepted: Project, expected_text: Expected) -> None:
    said = []
    for text, what in CONFIGURATIONS:
        (accepted.folder / "ciwrap.yaml").write_text(f"{text}\n")
        words = "run" if text.startswith("run") else "check"
        said.append(f"# {what}: {text!r}\n{answer(accepted, f'ciwrap {words}')}")
    (accepted.folder / "ciwrap.yaml").rename(accepted.folder / "ciwrap.yml")
    said.append(f"# another name of the file\n{answer(accepted, 'ciwrap check')}")
    expected_text("\n".join(said))
