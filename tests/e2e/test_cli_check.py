"""`ciwrap check` and `compare` on good input, as people and scripts use them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, command, environment, validator

if TYPE_CHECKING:
    from pathlib import Path


def test_check_match_then_differ(project: Project) -> None:
    project.accept()
    outcome = project.run("check")
    assert outcome.code == 0
    assert outcome.out.startswith("match  all 2 variables")
    assert outcome.err == ""
    moved = BASE.copy()
    moved[3, 7] += 1e-3
    project.save("temperature", moved)
    outcome = project.run("check")
    assert outcome.code == 1
    assert "1 of 600 values differs by more than the bound (atol=1e-6)" in outcome.out
    assert "first at [3, 7]" in outcome.out
    assert "ciwrap accept mesh --reason" in outcome.out
    variable = outcome.variable("temperature")
    assert variable["verdict"] == "differ"
    assert variable["first_index"] == [3, 7]
    assert variable["max_abs_difference"] == pytest.approx(1e-3)
    assert outcome.document["environment"]["cpu"]
    assert outcome.document["checks"][0]["backend"] in ("serial", "openmp")
    assert outcome.document["checks"][0]["golden_path"] == "golden/mesh.golden"
    assert variable["source_path"] == "out/temperature.npy"


def test_nothing_is_relative_to_zero(project: Project) -> None:
    project.save("temperature", np.zeros(30))
    project.accept()
    project.save("temperature", np.ones(30))
    outcome = project.run("check")
    assert "largest |difference| 1 at [0]" in outcome.out
    assert "relative" not in outcome.out


def test_check_works_on_a_read_only_project(project: Project) -> None:
    """Nothing but the JSON result is written, so a checkout may be read-only."""
    project.accept()
    before = project.snapshot()
    stamps = {path: path.stat().st_mtime_ns for path in project.folder.rglob("*")}
    assert project.run("check", "-v").code == 0
    assert project.snapshot() == before
    assert {path: path.stat().st_mtime_ns for path in project.folder.rglob("*")} == stamps


def test_json_on_stdout_is_json_alone(project: Project) -> None:
    project.accept()
    outcome = project.run("check", "--json", "-", json_too=False)
    document = json.loads(outcome.out)
    validator().validate(document)
    assert document["verdict"] == "match"
    assert outcome.err.startswith("match")


def test_several_checks_and_an_orphan(project: Project) -> None:
    (project.folder / "ciwrap.yaml").write_text(
        "checks:\n  a: {outputs: out/ids.npy}\n  b: {outputs: out/temperature.npy}\n"
    )
    project.accept()
    assert project.run("check", "a").code == 0
    project.save("ids", np.arange(1, 101, dtype=np.int32))
    assert project.run("check", "--check", "b").code == 0
    outcome = project.run("check")
    assert outcome.code == 1
    assert [check["verdict"] for check in outcome.document["checks"]] == ["differ", "match"]
    (project.folder / "out" / "temperature.npy").unlink()
    # What could not be compared weighs more than what differs.
    assert project.run("check").code == 3
    (project.folder / "ciwrap.yaml").write_text("checks:\n  a: {outputs: out/ids.npy}\n")
    outcome = project.run("check")
    assert "the golden of 'b' belongs to no check" in outcome.out


def test_history_by_iteration_and_rank(project: Project) -> None:
    for iteration in (10, 20, 30):
        for rank in (0, 1):
            folder = project.folder / "out" / f"iter_{iteration:04d}" / f"rank_{rank}"
            folder.mkdir(parents=True)
            np.save(folder / "x.npy", BASE + iteration)
    project.accept()
    for iteration in (20, 30):
        path = project.folder / f"out/iter_{iteration:04d}/rank_1/x.npy"
        np.save(path, np.load(path) + 1)
    outcome = project.run("check")
    assert outcome.code == 1
    assert "first difference: iter 20 / rank 1 / x" in outcome.out
    found = {
        (v["iteration"], v["rank"]): v["verdict"]
        for v in outcome.document["checks"][0]["variables"]
        if v["name"] == "x"
    }
    assert [key for key, verdict in found.items() if verdict == "differ"] == [(20, 1), (30, 1)]


@pytest.mark.parametrize("kinds", [("<f4", "<f8"), ("<f8", "<f4")])
def test_an_overflow_in_single_precision_is_no_match(
    project: Project, kinds: tuple[str, str]
) -> None:
    large = {"<f4": np.inf, "<f8": 1e300}
    project.configure("    mixed_precision: true\n    ignore: [temperature, ids]\n")
    project.save("x", np.array([1, large[kinds[0]]], kinds[0]))
    project.accept()
    project.save("x", np.array([1, large[kinds[1]]], kinds[1]))
    outcome = project.run("check")
    assert outcome.code == 3
    assert "value 1 = 1e+300 is beyond the range of float32" in outcome.out
    project.save("x", np.array([1, np.inf], kinds[1]))
    assert project.run("check").code == (0 if kinds[0] == "<f4" else 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("{period: [1, 2], atol: 1e-3}", "has 2 periods, one for each component"),
        ("{period: 10, rtol: 1e-3}", "rtol and ulps mean nothing modulo a period"),
        ("{mask: land}", "takes out all 600 values"),
    ],
)
def test_what_no_check_could_compare_is_not_accepted(
    project: Project, settings: str, words: str
) -> None:
    project.save("land", np.ones(BASE.shape, bool))
    project.configure(f"    variables: {{temperature: {settings}}}\n")
    outcome = project.run("accept", json_too=False)
    said = outcome.out + outcome.err
    assert (outcome.code, words in said, "temperature: " in said) == (3, True, True)
    assert not project.golden.exists()


def test_captures_keep_fill_values_that_doubles_do_not_hold(project: Project) -> None:
    fill = 2**53 + 1
    project.configure(f"    fill_values: [{fill}]\n", bound="atol: 2")
    for name, value in (("one", fill), ("two", fill + 1), ("three", fill)):
        (project.folder / name).mkdir()
        np.save(project.folder / name / "x.npy", np.array([1, value]))
        done = project.run("capture", name, "--check", "mesh", "--settle=0", json_too=False)
        assert (done.code, f"fill_values=({fill})" in done.out) == (0, True)
    for other, code in (("two", 1), ("three", 0)):
        outcome = project.run("compare", "one", other)
        assert outcome.code == code, outcome
    assert outcome.variable("x")["evidence"] == "tree"


def test_a_misspelt_pattern_is_told_of(project: Project) -> None:
    project.accept()
    project.configure("    variables: {temprature: {atol: 1e-3}}\n")
    outcome = project.run("check")
    assert outcome.code == 0
    assert "'temprature'" in outcome.out


def test_what_of_the_configuration_has_no_effect_is_told_of(project: Project) -> None:
    """A typo is not without effect in silence, and no other exit code either."""
    np.savez(project.folder / "out" / "more.npz", t=np.arange(3.0))
    settings = (
        "    exclude: ['*.tpm', '*.txt']\n    formats: {'*.bni': raw, '*.npz': npz}\n"
        "    ignore: [wall_tmie]\n"
    )
    (project.folder / "out" / "notes.txt").write_text("it is left out")
    project.configure(settings)
    told = [
        "the pattern 'wall_tmie' under 'variables' or 'ignore' matches no variable",
        "the pattern '*.tpm' under 'exclude' leaves out no file of the outputs",
        "the pattern '*.bni' under 'formats' matches no file of the outputs",
    ]
    outcome = project.accept()
    assert outcome.document["checks"][0]["misspelt"] == [f"{one}; is it misspelt?" for one in told]
    outcome = project.run("check")
    assert outcome.code == 0
    messages = outcome.document["checks"][0]["messages"]
    assert [one["text"] for one in messages] == [f"{one}; is it misspelt?" for one in told]
    assert {one["level"] for one in messages} == {"warning"}


def test_settings_that_have_no_effect_are_told_of(project: Project) -> None:
    project.configure("    until_iteration: 3\n    across_ranks: true\n    layout: '{name}'\n")
    path = project.folder / "ciwrap.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub("outputs: .*", "outputs: 'out/{name}.npy'", text), encoding="utf-8")
    assert project.accept().document["checks"][0]["misspelt"] == [
        "'until_iteration: 3' has no effect, since no variable has an iteration",
        "'across_ranks' has no effect, since no variable has 'align_by'",
        "'layout' has no effect, since 'outputs' says where all of it stands",
    ]


def test_an_iteration_variable_that_has_no_effect_is_told_of(project: Project) -> None:
    io = pytest.importorskip("scipy.io")

    def write(dimension: str) -> None:
        with io.netcdf_file(project.folder / "out" / "run.nc", "w") as file:
            file.createDimension(dimension, 3)
            file.createVariable(dimension, "f8", (dimension,))[:] = np.arange(3.0)
            file.createVariable("u", "f8", (dimension,))[:] = np.arange(3.0)

    for path in (project.folder / "out").glob("*.npy"):
        path.unlink()
    words = "has no effect, since no file has iterations of its own"
    for dimension, name in (("rows", "tmie"), ("time", "time")):
        write(dimension)
        project.configure(f"    options: {{iteration_variable: {name}}}\n")
        project.accept("--reason", "why")
        outcome = project.run("check")
        told = f"warning: 'iteration_variable: {name}' {words}" in outcome.out
        assert (outcome.code, told) == (0, dimension == "rows"), outcome.out


# --- compare ----


def test_compare_two_files(project: Project) -> None:
    a = project.save("a", BASE)
    b = project.save("b", BASE + 1e-9)
    assert project.run("compare", str(a), str(a)).code == 0
    assert project.run("compare", str(a), str(b)).code == 1
    assert project.run("compare", str(a), str(b), "--atol", "1e-8").code == 0
    outcome = project.run("compare", str(a), str(b), "--rtol", "1e-12")
    assert outcome.code == 1
    expected = np.count_nonzero(abs(np.load(b) - BASE) > 1e-12 * abs(BASE))
    assert outcome.variable("a")["differing_count"] == expected


def test_compare_two_folders(project: Project, tmp_path: Path) -> None:
    sides = []
    for name in ("one", "two"):
        folder = tmp_path / name / "iter_0001" / "rank_0"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", BASE)
        np.save(folder / "y.npy", BASE)
        sides.append(tmp_path / name)
    one, two = map(str, sides)
    assert project.run("compare", one, two).code == 0
    np.save(sides[1] / "iter_0001/rank_0/x.npy", BASE + 1)
    outcome = project.run("compare", one, two)
    assert outcome.code == 1
    assert outcome.variable("x")["iteration"] == 1
    (sides[1] / "iter_0001/rank_0/y.npy").unlink()
    outcome = project.run("compare", one, two)
    assert outcome.code == 3
    assert "only in A, not in B" in outcome.out
    assert project.run("compare", one, two, "--ignore", "y", "--atol", "2").code == 0
    (sides[0] / "run.log").write_text("x")
    assert project.run("compare", one, two, "--ignore", "y", "--atol", "2").code == 3
    code = project.run(
        "compare", one, two, "--ignore", "y", "--atol", "2", "--exclude", "*.log"
    ).code
    assert code == 0


def test_compare_by_the_bounds_of_a_check(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    np.save(other / "temperature.npy", BASE + 5e-7)
    np.save(other / "ids.npy", np.arange(100, dtype=np.int32))
    assert project.run("compare", "out", str(other)).code == 1
    assert project.run("compare", "out", str(other), "--check", "mesh").code == 0
    assert project.run("compare", "out", str(other), "--check", "mesh", "--atol", "1e-9").code == 1


# --- large files ----


def sparse_npy(path: Path, byte_count: int) -> None:
    """A .npy file of zeros that takes no room on the disk."""
    with path.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": (byte_count // 8,)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + byte_count)


PEAK = (
    "import resource, subprocess, sys\n"
    "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
    "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(project: Project) -> None:
    big, other = project.folder / "out" / "big.npy", project.folder / "other.npy"
    for path in (big, other):
        sparse_npy(path, 1 << 29)
    with other.open("r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        stream.write(np.float64(1).tobytes())
    calls = (
        (("accept",), 0),
        (("check",), 0),
        (("compare", "out/big.npy", "other.npy", "--atol", "1e-3"), 1),
    )
    for arguments, expected in calls:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *command(*arguments)],
            cwd=project.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        code, peak_mib = map(int, done.stdout.split())
        assert code == expected, done.stderr
        assert peak_mib < 300, (arguments, peak_mib)


def test_what_was_found_is_shown_where_nothing_can_be_kept(project: Project) -> None:
    project.accept()
    project.save("temperature", BASE + 1)
    (project.folder / ".ciwrap").write_text("a file in the place of the folder")
    outcome = project.run("check", "--pending")
    assert outcome.code == 3
    assert "600 of 600 values differ by more than the bound (atol=1e-6)" in outcome.out
    assert outcome.err.count("error: ") == 1
