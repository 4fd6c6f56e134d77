"""Options, bounds and configurations without meaning: one clear line, and nothing written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from e2e.cli_project import Project, check_fails

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "option",
    [
        ("--atol", "-1"),
        ("--atol", "nan"),
        ("--rtol", "inf"),
        ("--ulps", "-3"),
        ("--atol", "x"),
        ("--atol=1", "--ulps=2"),
        ("--frobnicate",),
    ],
)
def test_bounds_and_options_without_meaning(project: Project, option: tuple[str, ...]) -> None:
    outcome = check_fails(project, 2, command=("compare", "out/ids.npy", "out/ids.npy", *option))
    assert len(outcome.error_lines) == 1
    assert outcome.error_lines[0].startswith("error: ")


@pytest.mark.parametrize("bound", ["atol: -1", "atol: .nan", "rtol: .inf", "ulps: -1", "atol: x"])
def test_bounds_without_meaning_in_the_configuration(project: Project, bound: str) -> None:
    project.configure(bound=bound)
    outcome = check_fails(project, 2, "ciwrap.yaml:2", bound[:4])
    assert len(outcome.error_lines) == 1


def test_unknown_keys_name_the_line_and_the_nearest(project: Project) -> None:
    project.configure("    toleranse: 1\n")
    check_fails(project, 2, "ciwrap.yaml:6", "toleranse")
    project.configure("    ignor: [x]\n")
    check_fails(project, 2, "ciwrap.yaml:6", "'ignore'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "mehs"), ("no check 'mehs'", "mesh")),
        (("chekc",), ("no command 'chekc'", "check")),
        (("diff",), ("no command 'diff'", "did you mean 'compare'")),
        (("update",), ("no command 'update'", "did you mean 'accept'")),
        (("compare", "a", "b", "--tolerance=1"), ("no option '--tolerance'", "'--atol'?")),
        (("compare", "a", "b", "--rel", "1"), ("no option '--rel'", "did you mean '--rtol'?")),
        (("compare", "a", "b", "--capture_a", "1"), ("did you mean '--capture-a'?",)),
        (("check", "--rel-tol", "1"), ("no option '--rel-tol'", "from ciwrap.yaml ('rtol:')")),
        (("check", "--atol", "1"), ("no option '--atol'", "from ciwrap.yaml ('atol:')")),
        (("check", "--update"), ("no option '--update'", "by `ciwrap accept`")),
        (("check", "--pendin"), ("no option '--pendin'", "did you mean '--pending'?")),
        (("check", "--config", "nowhere.yaml"), ("nowhere.yaml",)),
        (("run",), ("no command",)),
        (("accept", "--reason", "  "), ("--reason",)),
        (("compare", "out", "out/ids.npy"), ("folder",)),
        (("compare", "out/ids.npy"), ("B is missing",)),
        (
            ("compare", "out", "out", "--no-captures", "--capture-b=x.tree"),
            ("--capture-b", "--no-"),
        ),
        (("compare", "out", "out", "--no-captures", "--verify-checksums"), ("--verify-", "--no-")),
        (("capture", "out", "--settle=0", "--chunk-bytes=0"), ("chunk_bytes", "64")),
        (("check", "--threads", "-1"), ("--threads",)),
        (("check", "--engine", "mmap"), ("--engine",)),
        (("snapshot", "show", ""), ("'' names no snapshot",)),
    ],
)
def test_wrong_usage(project: Project, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    before = project.snapshot()
    outcome = project.run(*arguments)
    assert outcome.code == 2, outcome
    assert len(outcome.error_lines) == 1
    assert all(word in outcome.err for word in words), outcome.err
    assert project.snapshot() == before


@pytest.mark.parametrize("group", ["snapshot", "variability"])
def test_half_of_a_command(project: Project, group: str) -> None:
    outcome = project.run(group, json_too=False)
    assert outcome.code == 2
    assert outcome.error_lines == [f"error: Missing command; see `ciwrap {group} --help`"]


def test_an_option_without_its_value(project: Project) -> None:
    outcome = project.run("check", "--config", json_too=False)
    assert outcome.code == 2
    assert outcome.error_lines == ["error: --config wants a value; see `ciwrap check --help`"]


def test_no_configuration(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    (project.folder / ".git").mkdir()
    (project.folder / "ciwrap.yaml").unlink()
    outcome = project.run("check")
    assert outcome.code == 2
    assert "ciwrap init" in outcome.err


def test_an_unknown_backend_is_an_error_not_another_one(accepted: Project) -> None:
    outcome = accepted.run("check", "--backend", "quantum")
    assert outcome.code == 2, outcome
    assert outcome.document["verdict"] == "not_comparable"
    assert "quantum" in outcome.out + outcome.err


def test_everything_ignored_is_no_match(accepted: Project) -> None:
    accepted.configure("    ignore: ['*']\n")
    check_fails(accepted, 3, "the configuration ignores it")
    check_fails(accepted, 3, "no variables", command=("accept", "--reason", "x"))


def test_missing_sides_of_compare(project: Project) -> None:
    for sides in (("out/no.npy", "out/ids.npy"), ("out/ids.npy", "out/no.npy")):
        check_fails(project, 3, "no.npy", command=("compare", *sides))


@pytest.mark.parametrize("option", ["--json", "--report"])
def test_a_result_that_cannot_be_written_has_been_shown(accepted: Project, option: str) -> None:
    outcome = accepted.run("check", option, "/nowhere/x", json_too=False)
    assert outcome.code == 3
    assert len(outcome.error_lines) == 1
    assert "/nowhere/x: the " in outcome.err
    assert "could not be written" in outcome.err
    assert outcome.out.startswith("match")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("capture", "loop"), 3, "loop: does not exist"),
        (("check", "--json", "loop"), 3, "could not be written"),
        (("check", "--report", "loop"), 3, "could not be written"),
        (
            ("record", "-o", "r", "--against", "loop", "--", "true"),
            3,
            "a capture or a recorded run",
        ),
        (("record", "-o", "r", "--against", ".", "--", "true"), 3, "a capture or a recorded run"),
        (("record", "-o", "r", "--against", "", "--", "true"), 3, "a capture or a recorded run"),
    ],
)
def test_links_without_an_end_and_names_of_nothing(
    project: Project, arguments: tuple[str, ...], code: int, said: str
) -> None:
    link = project.folder / "loop"
    link.symlink_to("loop")
    outcome = project.run(*arguments, json_too=False)
    assert outcome.code == code, outcome
    assert said in outcome.err
    assert link.is_symlink()


@pytest.mark.linux
def test_a_project_in_a_folder_whose_name_is_no_utf8(project: Project, tmp_path: Path) -> None:
    other = tmp_path / os.fsdecode(b"x\xff")
    Project(other, like=project).accept()
    config = str(other / "ciwrap.yaml")
    assert project.run("check", "--config", config, json_too=False).code == 0
    golden = other / "golden/mesh.golden"
    golden.write_bytes(golden.read_bytes()[:-20])
    outcome = project.run("check", "--config", config, json_too=False)
    assert outcome.code == 3
    assert "x\\udcff/golden/mesh.golden" in outcome.out


def test_a_configuration_in_pyproject_is_named(project: Project) -> None:
    """It would be ignored in silence; other tables of the file are nobody's business here."""
    (project.folder / ".git").mkdir()
    table = project.folder / "pyproject.toml"
    table.write_text("[tool.ciwrap]\nchecks = []\n")
    assert project.run("check").code == 3  # beside a ciwrap.yaml: no golden yet
    (project.folder / "ciwrap.yaml").unlink()
    outcome = project.run("check")
    assert outcome.code == 2
    said = "pyproject.toml: [tool.ciwrap] is not read; write its keys to ciwrap.yaml"
    assert said in outcome.err, outcome
    table.write_text("[tool.other]\n")
    assert "there is no ciwrap.yaml here" in project.run("check").err
