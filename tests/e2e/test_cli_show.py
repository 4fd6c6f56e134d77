"""`ciwrap show`, `doctor` and `init`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, environment

if TYPE_CHECKING:
    from pathlib import Path


def git(project: Project, *arguments: str, env: dict[str, str] | None = None) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=project.folder,
        env=env or environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_show_is_stable_and_readable(project: Project) -> None:
    project.accept()
    first = project.run("show", "golden/mesh.golden")
    assert first.code == 0
    assert "variable temperature" in first.out
    assert f"[3, 4]  {BASE[3, 4]}" in first.out
    assert project.run("show", "mesh").out == first.out
    assert project.run("show", "golden/mesh.golden.yaml").out == first.out
    copy = project.folder.parent / "blob_x1y2"
    copy.write_bytes(project.golden.read_bytes())
    assert project.run("show", str(copy)).out == first.out
    assert first.document["variables"][1]["atol"] == 1e-6


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_show_any_evidence(project: Project, evidence: str) -> None:
    project.configure(bound=f"atol: 1e-6, evidence: {evidence}")
    project.save("large", np.random.default_rng(1).normal(size=(300, 1000)).astype("f4"))
    project.save("text", np.array(["a", "bc\x1b[2J"]))
    project.save("half", np.array([1.5], "f2"))
    project.accept()
    outcome = project.run("show", "mesh")
    assert outcome.code == 0
    assert f"evidence {evidence}" in outcome.out
    assert all(line.isprintable() for line in outcome.out.splitlines())
    assert len(outcome.out.splitlines()) < 1200


def test_show_of_what_is_no_golden(project: Project) -> None:
    for name in ("ciwrap.yaml", "nowhere.golden", "nothing"):
        outcome = project.run("show", name)
        assert outcome.code == 3
        assert len(outcome.error_lines) == 1


def test_git_diff_of_a_golden_is_readable(project: Project, tmp_path: Path) -> None:
    git(project, "init", "-q")
    (project.folder / "ciwrap.yaml").unlink()
    script = tmp_path / "bin" / "ciwrap"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ciwrap "$@"\n')
    script.chmod(0o755)
    outcome = project.run("init", "--git")
    assert outcome.code == 0, outcome
    project.accept()
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first golden")
    moved = BASE.copy()
    moved[3, 7] = 42.5
    project.save("temperature", moved)
    project.accept("--reason", "the answer, nearly")
    env = environment(PATH=f"{script.parent}:{os.environ['PATH']}")
    diff = git(project, "diff", "golden/out.golden", env=env)
    changed = [
        line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert any("42.5" in line and line.startswith("+") for line in changed), diff
    assert any(str(BASE[3, 7]) in line and line.startswith("-") for line in changed)
    assert len(changed) <= 8, changed
    manifest = git(project, "diff", "golden/out.golden.yaml")
    assert '+  why: "the answer, nearly"' in manifest
    assert "*.golden.next" in (project.folder / ".gitignore").read_text().splitlines()


def test_doctor(project: Project) -> None:
    outcome = project.run("doctor")
    assert outcome.code == 0, outcome
    document = outcome.document
    assert {backend["name"] for backend in document["backends"]} >= {"serial", "openmp"}
    assert {engine["name"] for engine in document["io_engines"]} == {"io_uring", "pread"}
    assert sum(level["active"] for level in document["cpu_levels"]) == 1
    assert document["config"]["checks"] == [{"name": "mesh", "has_golden": False}]
    assert "kokkos" in outcome.out
    assert "no golden yet for mesh" in outcome.out
    project.configure(bound="atol: -1")
    outcome = project.run("doctor")
    assert outcome.code == 3
    assert "ciwrap.yaml:2" in outcome.out


def test_init_writes_a_configuration_that_works(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "notes.txt").write_text("not an output")
    (project.folder / "out" / "run.log").write_text("nor this")
    outcome = project.run("init")
    assert outcome.code == 0, outcome
    assert "check out: 2 files, 2 variables" in outcome.out
    text = (project.folder / "ciwrap.yaml").read_text()
    assert "temperature: {atol: 1e-6}  # <f8, 20x30" in text
    project.accept()
    assert project.run("check").code == 0
    again = project.run("init")
    assert again.code == 2
    assert (project.folder / "ciwrap.yaml").read_text() == text


def test_init_tells_what_it_left_out(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    (project.folder / "notes.txt").write_text("hello world\n")
    outcome = project.run("init")
    assert outcome.code == 0, outcome
    assert "  left out: cut.npy: is empty or ends within its header" in outcome.out
    assert "notes.txt" not in outcome.out
    # Also where whoever edits the configuration sees it, which is as it was otherwise.
    text = (project.folder / "ciwrap.yaml").read_text()
    assert "\n# Not compared so far:\n#   cut.npy: is empty or ends within its header" in text
    assert project.run("accept").code == 0


def test_init_of_a_folder_leaves_out_what_cannot_be_read(project: Project) -> None:
    """As it does below the working folder; files that are named by themselves have to be read."""
    (project.folder / "ciwrap.yaml").unlink()
    output = next((project.folder / "out").glob("*.npy"))
    (project.folder / "elsewhere.npy").write_bytes(output.read_bytes())
    (project.folder / "out" / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    outcome = project.run("init", "out")
    assert outcome.code == 0, outcome
    assert "left out: out/cut.npy: is empty or ends within its header" in outcome.out
    assert "elsewhere" not in (project.folder / "ciwrap.yaml").read_text()
    (project.folder / "ciwrap.yaml").unlink()
    outcome = project.run("init", "out", "out/cut.npy")
    assert outcome.code == 3
    assert "out/cut.npy" in outcome.err
    assert not (project.folder / "ciwrap.yaml").exists()


def test_init_writes_a_check_of_raw_numbers_to_fill_in(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "out" / "field.bin").write_bytes(bytes(80))
    (project.folder / "out" / "odd.raw").write_bytes(bytes(7))
    assert project.run("init").code == 0
    path = project.folder / "ciwrap.yaml"
    stub = "field: {outputs: out/field.bin, options: {dtype: f8, shape: [10]}}"
    assert f"\n  # {stub}\n" in path.read_text()
    assert "# odd:" not in path.read_text()
    path.write_text(path.read_text().replace(f"# {stub}", stub))
    assert project.run("accept").code == 0
    assert project.run("check", "field").out.startswith("match")


def test_init_tells_of_texts_and_of_what_no_reader_knows(project: Project) -> None:
    """With checks of the texts to uncomment."""
    (project.folder / "ciwrap.yaml").unlink()
    for name in ("a.log", "b.log", "restart"):
        (project.folder / "out" / name).write_text("E = 1\n")
    (project.folder / "out" / "x.chk").write_bytes(bytes(9))
    outcome = project.run("init")
    assert outcome.code == 0, outcome
    texts = [line for line in outcome.out.splitlines() if "left out: " in line and "text" in line]
    assert "left out: 1 file that no reader knows: .chk (1);" in outcome.out
    path = project.folder / "ciwrap.yaml"
    for name in ("a.log", "b.log", "restart"):
        stub = f"{name}: {{outputs: out/{name}, format: tokens}}"
        assert f"\n  # {stub}\n" in path.read_text(), texts
        path.write_text(path.read_text().replace(f"# {stub}", stub))
    assert project.run("accept").code == 0
    assert project.run("check", "a.log").code == 0


def test_init_looks_into_files_whose_suffix_says_nothing(project: Project) -> None:
    """As comparisons do: by their first bytes."""
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "out" / "ids.npy").rename(project.folder / "out" / "state.part")
    outcome = project.run("init")
    assert "  check state: 1 file, 1 variable\n" in outcome.out, outcome
    assert project.run("accept", "--reason", "x").code == 0
    assert project.run("check", "state").code == 0


def test_init_names_variables_of_frames_as_rules_do(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    for path in (project.folder / "ciwrap.yaml", *(project.folder / "out").iterdir()):
        path.unlink()
    frames = "".join(f"1\nstep={i}\nH {i}.0 0.0 0.0\n" for i in range(3))
    (project.folder / "md.xyz").write_text(frames)
    assert project.run("init").code == 0
    path = project.folder / "ciwrap.yaml"
    text = path.read_text()
    assert "    #   pos: {atol: 1e-6}" in text
    assert "pos[" not in text
    text = text.replace("    # variables:", "    variables:").replace("    #   pos:", "      pos:")
    path.write_text(text)
    project.accept()
    (project.folder / "md.xyz").write_text(frames.replace("H 1.0", "H 1.0000005"))
    assert project.run("check").code == 0, "the rule means the positions"


def test_init_names_the_reason_why_there_is_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    for path in (project.folder / "ciwrap.yaml", *(project.folder / "out").iterdir()):
        path.unlink()
    (project.folder / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    outcome = project.run("init")
    assert outcome.code == 3
    assert "nothing here or below that ciwrap can read (cut.npy: is empty" in outcome.err


def test_init_git_outside_of_a_repository(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    outcome = project.run("init", "--git", GIT_CEILING_DIRECTORIES=str(project.folder.parent))
    assert outcome.code == 2
    assert "is not a git repository; run `git init` first" in outcome.err
    assert not (project.folder / "ciwrap.yaml").exists()
    assert not (project.folder / ".gitignore").exists()


def test_init_of_named_outputs_and_of_nothing(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "table.csv").write_text("t,x\n0,1.5\n1,2.5\n")
    outcome = project.run("init", "table.csv", "--dry-run")
    assert outcome.code == 0
    assert "table.csv" in outcome.out
    assert not (project.folder / "ciwrap.yaml").exists()
    for path in [project.folder / "table.csv", *(project.folder / "out").iterdir()]:
        path.unlink()
    outcome = project.run("init")
    assert outcome.code == 3
    assert "run the program first" in outcome.err
