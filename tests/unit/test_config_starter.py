"""The starter of `ciwrap init`: it loads, and it means the files that were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import yaml

from ciwrap.formats.find_outputs import find_outputs
from ciwrap.formats.look import MAX_FILES, survey
from ciwrap.model import VariableId
from ciwrap.project.config import load_text
from ciwrap.project.starter import FoundFile, FoundVariable, make_starter

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def starter_config(found: list[FoundFile], command: str | None = None) -> str:
    return make_starter(found, command=command).text


def found_in(folder: Path) -> list[FoundFile]:
    return [
        FoundFile(
            candidate.path.as_posix(),
            tuple(FoundVariable(v.name, v.dtype, v.shape) for v in candidate.variables),
        )
        for candidate in survey(folder).candidates
    ]


def make_project(folder: Path) -> None:
    for iteration in (0, 10):
        for rank in (0, 1):
            here = folder / f"out/iter_{iteration:04d}/rank_{rank}"
            here.mkdir(parents=True)
            np.save(here / "x.npy", np.zeros((3, 2)))
            np.save(here / "id.npy", np.arange(3))
    np.savez(folder / "all.npz", a=np.zeros(2), b=np.float32(1))
    (folder / "tables").mkdir()
    (folder / "tables/one.csv").write_text("t,e\n1,2.5\n")
    (folder / "tables/two.csv").write_text("t,e\n1,2.5\n")
    (folder / "notes.txt").write_text("hello world\n")
    (folder / "requirements.txt").write_text("numpy\nscipy\n")
    (folder / "odd.bin").write_bytes(b"1234")
    for hidden in (".cache", "golden", "venv", "env1"):
        (folder / hidden).mkdir()
        np.save(folder / hidden / "h.npy", np.zeros(1))
    (folder / "env1/pyvenv.cfg").write_text("")


def test_survey_finds_outputs_and_says_what_it_could_not_open(tmp_path: Path) -> None:
    make_project(tmp_path)
    result = survey(tmp_path)
    names = [f"rank_{rank}/{name}.npy" for rank in (0, 1) for name in ("x", "id")]
    assert {str(c.path) for c in result.candidates} == {
        "all.npz",
        "tables/one.csv",
        "tables/two.csv",
        *(f"out/iter_{i}/{name}" for i in ("0000", "0010") for name in names),
    }
    assert "odd.bin" in {str(path) for path, _ in result.skipped}
    assert {str(path) for path in result.texts} == {"notes.txt", "requirements.txt"}
    assert not result.unopened


def test_survey_passes_over_folders_that_it_may_not_look_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "closed").mkdir()

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "exists", refuse)
    assert [str(one.path) for one in survey(tmp_path).candidates] == ["x.npy"]


def test_survey_ends(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / f"{number}.bin").touch()
    assert len(survey(tmp_path).unopened) == 1


def test_starter_means_what_was_found(tmp_path: Path) -> None:
    make_project(tmp_path)
    text = starter_config(found_in(tmp_path), command='python sim.py --label "a: b"')
    config = load_text(text, tmp_path / "ciwrap.yaml")
    assert config.command is not None
    assert config.command.words == 'python sim.py --label "a: b"'
    variables: dict[str, list[VariableId]] = {}
    for check in config.checks:
        found = find_outputs(check.root, check.outputs, layout=check.layout)
        assert found.unmatched == ()
        for file in found.files:
            with file.open() as source:
                variables.setdefault(check.name, []).extend(
                    file.variable_id(info) for info in source.variables
                )
    assert variables["out"] == [
        VariableId(name, iteration, rank)
        for iteration in (0, 10)
        for rank in (0, 1)
        for name in ("id", "x")
    ]
    assert variables["all"] == [VariableId("a"), VariableId("b")]
    assert variables["tables"] == [
        VariableId(f"{file}/{column}") for file in ("one", "two") for column in ("t", "e")
    ]
    for line in (
        "id: {atol: 0}  # <i8, 3",
        "x: {atol: 1e-6}  # <f8, 3x2",
        "b: {atol: 1e-6}  # <f4, one number",
    ):
        assert line in text


def test_commented_variables_can_be_uncommented(tmp_path: Path) -> None:
    make_project(tmp_path)
    text = starter_config(found_in(tmp_path))
    marks = ("    # variables", "    #   ")
    lines = [
        line.replace("# ", "", 1) if line.startswith(marks) else line for line in text.split("\n")
    ]
    config = load_text("\n".join(lines), tmp_path / "ciwrap.yaml")
    assert config.check("out").settings_for(VariableId("x", 0, 0)).bound.atol == 1e-6


def test_starter_without_outputs_loads(tmp_path: Path) -> None:
    config = load_text(starter_config([]), tmp_path / "ciwrap.yaml")
    assert [check.outputs for check in config.checks] == [("out",)]


def test_odd_names_are_quoted(tmp_path: Path) -> None:
    names = ["no.npy", "a b.npy", "x: y.npy", "#c.npy", "*d.npy", "ä.npy", "-.npy"]
    found = [
        FoundFile(f"dir{number}/{name}", (FoundVariable(name[:-4], "<f8", (2,)),))
        for number, name in enumerate(names)
    ]
    text = starter_config(found)
    config = load_text(text, tmp_path / "ciwrap.yaml")
    assert [check.outputs[0] for check in config.checks] == [file.path for file in found]
    assert len({check.name for check in config.checks}) == len(found)
    assert yaml.safe_load(text)["version"] == 1


def test_many_variables_are_not_all_listed() -> None:
    variables = tuple(FoundVariable(f"v{n}", "<f8", (2,)) for n in range(40))
    text = starter_config([FoundFile("a.npz", variables)])
    assert "(and 28 more)" in text


def test_checks_are_told(tmp_path: Path) -> None:
    make_project(tmp_path)
    checks = make_starter(found_in(tmp_path)).checks
    assert [(c.name, c.file_count, c.array_count, c.variable_count) for c in checks] == [
        ("out", 8, 8, 2),
        ("tables", 2, 4, 4),
        ("all", 1, 2, 2),
    ]
    assert checks[0].outputs == ("out/iter_{iteration:d}/rank_{rank:d}/{name}.npy",)


def test_plotfiles_are_a_history() -> None:
    density = (FoundVariable("Level_0/density", "<f8", (8, 8)),)
    found = [FoundFile(f"out/plt{step:05d}", density) for step in (0, 10)]
    (check,) = make_starter(found).checks
    assert check.outputs == ("out/plt{iteration:d}",)


def test_checks_have_the_shortest_name_that_no_other_could_have() -> None:
    paths = ["a/x.csv", "a/x.npz", "b/x.csv", "c d/z.csv", "c_d/z.csv"]
    found = [FoundFile(path, (FoundVariable("v", "<f8", (2,)),)) for path in paths]
    names = [one.name for one in make_starter(found).checks]
    assert names == ["a_x.csv", "x.npz", "b_x.csv", "c_d_z.csv", "c_d_z.csv_2"]


def test_many_places_are_not_all_listed(tmp_path: Path) -> None:
    found = [FoundFile(f"d{n}/x.npy", (FoundVariable("x", "<f8", (2,)),)) for n in range(40)]
    starter = make_starter(found)
    assert len(starter.checks) == len(load_text(starter.text, tmp_path / "c.yaml").checks) == 30
    assert starter.unlisted == 10


def test_files_that_nobody_has_looked_into_belong_to_their_neighbours(tmp_path: Path) -> None:
    found = [FoundFile(f"d/{n}.csv", (FoundVariable("x", "<f8", (2,)),)) for n in "ab"]
    starter = make_starter(found, unopened=["d/c.csv", "e/c.csv", "d/c.h5"])
    assert [(one.file_count, one.variable_count) for one in starter.checks] == [(3, 2)]
    assert "# 3 files now" in starter.text
    assert starter.left_out == 2
