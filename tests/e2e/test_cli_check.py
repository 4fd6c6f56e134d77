"""`ciwrap check` and `compare` on good input, as people and scripts use them."""

from __future__ import annotations

import json
import os
import shutil
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
    assert "1 of 600 elements differs beyond atol=1e-6 rtol=0" in outcome.out
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
    assert "first divergence: iter 20 / rank 1 / x" in outcome.out
    found = {
        (v["iteration"], v["rank"]): v["verdict"]
        for v in outcome.document["checks"][0]["variables"]
        if v["name"] == "x"
    }
    assert [key for key, verdict in found.items() if verdict == "differ"] == [(20, 1), (30, 1)]


def test_masks_ignored_and_relaxed_variables(project: Project) -> None:
    mask = np.zeros(BASE.shape, bool)
    mask[0] = True
    project.save("land", mask)
    project.configure(
        "    ignore: [wall*]\n    strict: {variables: false}\n"
        "    variables: {temperature: {mask: land}}\n"
    )
    project.save("wall_time", np.float64(1.0))
    project.accept()
    moved = BASE.copy()
    moved[0] = 1e9
    project.save("temperature", moved)
    project.save("wall_time", np.float64(2.0))
    project.save("extra", np.zeros(2))
    outcome = project.run("check")
    assert outcome.code == 0, outcome
    assert "not in the golden" in outcome.out
    assert outcome.document["checks"][0]["ignored_variables"] == [{"name": "wall_time"}]
    (project.folder / "out" / "land.npy").unlink()
    outcome = project.run("check")
    assert outcome.code == 3
    assert "mask 'land' is not among the outputs" in outcome.out


def test_a_mask_that_is_not_compared_hides_nothing(project: Project) -> None:
    """An element that only the new mask takes out would count as the golden's zero."""
    values = BASE.copy()
    values.flat[3] = 0
    masked = "    variables: {temperature: {mask: land}}\n"
    project.save("temperature", values)
    project.save("land", np.zeros(BASE.shape, bool))
    project.configure(f"    ignore: [land]\n{masked}")
    assert project.run("accept", json_too=False).code == 3
    project.configure("    ignore: [land]\n")
    project.accept()
    project.configure("    strict: {variables: false}\n" + masked)
    values.flat[3] = 1e9
    project.save("temperature", values)
    project.save("land", values == 1e9)
    outcome = project.run("check")
    assert outcome.code == 3
    assert "its mask 'land' is not compared itself" in outcome.out


def test_a_mask_for_all_variables_is_compared_itself(project: Project) -> None:
    """It would be false everywhere as its own mask, whatever it takes out of the others."""
    values = BASE.copy()
    values.flat[3] = 0
    project.save("temperature", values)
    project.save("land", np.zeros(BASE.shape, bool))
    project.configure("    mask: land\n    ignore: [ids, pressure]\n")
    project.accept()
    assert project.run("check").code == 0
    values.flat[3] = 1e9
    project.save("temperature", values)
    project.save("land", values == 1e9)
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.variable("land")["differing_count"] == 1
    assert "mask" not in outcome.variable("land")
    shutil.copytree(project.folder / "out", project.folder / "later")
    project.save("temperature", BASE)
    project.save("land", np.zeros(BASE.shape, bool))
    compared = project.run("compare", "out", "later", "--check", "mesh")
    assert compared.code == 1
    assert compared.variable("land")["verdict"] == "differ"


def test_a_mask_that_has_a_mask_hides_nothing(project: Project) -> None:
    project.save("land", np.zeros(BASE.shape, bool))
    project.save("sea", np.zeros(BASE.shape, bool))
    project.configure("    ignore: [nothing]\n")
    project.accept()
    masks = "    variables: {temperature: {mask: land}, land: {mask: sea}}\n"
    project.configure(masks)
    outcome = project.run("check")
    assert outcome.code == 3
    assert "its mask 'land' has a mask itself, 'sea'" in outcome.out
    assert project.run("accept", json_too=False).code == 3


@pytest.mark.parametrize("evidence", ["data", "tree"])
def test_what_combined_bounds_let_differ_is_not_kept(project: Project, evidence: str) -> None:
    """Their sum, which the golden was made with, lets it pass."""
    bounds = "atol: 1e-3\n    rtol: 1e-3\n    ignore: [ids]\n"
    project.configure(f"    {bounds}    evidence: {evidence}\n")
    project.save("temperature", np.ones(4))
    project.accept()
    project.configure(f"    {bounds}    combine: both\n    evidence: data\n")
    project.save("temperature", np.ones(4) + 1.5e-3)
    assert project.run("check").code == (1 if evidence == "data" else 3)
    outcome = project.accept("--reason", "they have to hold both")
    assert "replaced" in outcome.out
    assert project.run("check").code == 0


@pytest.mark.parametrize("more", ["", ", period: 10", ", combine: both, rtol: 1e-3"])
@pytest.mark.parametrize("kinds", [("<f4", "<f8"), ("<f8", "<f4"), ("<i4", "<f8")])
def test_masked_elements_of_another_type_are_counted(
    project: Project, kinds: tuple[str, str], more: str
) -> None:
    project.save("land", np.arange(5) < 2)
    strict = "    strict: {dtype: false}\n    ignore: [temperature, ids]\n"
    settings = "{mask: land, mixed_precision: true, atol: 1" + more + "}"
    project.configure(f"{strict}    variables: {{x: {settings}}}\n")
    project.save("x", np.arange(5, dtype=kinds[0]))
    project.accept()
    shutil.copytree(project.folder / "out", project.folder / "earlier")
    project.save("x", np.arange(5, dtype=kinds[1]))
    for words in (("check",), ("compare", "earlier", "out", "--check", "mesh")):
        outcome = project.run(*words)
        assert outcome.code == 0, outcome
        assert "compared 2 variables, 8 elements; not compared: 2 elements masked" in (
            outcome.out.replace("2 variables by ignore, ", "")
        )


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
@pytest.mark.parametrize("more", ["", ", period: 100", ", combine: both, rtol: 1e-3"])
def test_no_more_elements_differ_than_were_compared_where_masks_differ(
    project: Project, evidence: str, more: str
) -> None:
    """What one side alone masks is compared, as zero, so the mask did not take it out."""
    if more and evidence != "data":
        return  # both are of data
    project.save("land", np.zeros(5, bool))
    project.save("x", np.arange(1.0, 6.0))
    project.configure(
        f"    evidence: {evidence}\n    ignore: [temperature, ids]\n"
        f"    variables: {{x: {{mask: land, atol: 1e-6{more}}}}}\n"
    )
    project.accept()
    shutil.copytree(project.folder / "out", project.folder / "earlier")
    project.save("land", np.arange(5) < 4)
    project.save("x", np.arange(11.0, 16.0))
    for words in (("check",), ("compare", "earlier", "out", "--check", "mesh")):
        outcome = project.run(*words, "-v")
        assert outcome.code == 1, outcome
        assert "of 1 element" not in outcome.out
        assert "elements masked" not in outcome.out
        assert "1 variable in part by a mask" in outcome.out
        assert "masked_count" not in outcome.variable("x")


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
    assert "element 1 = 1e+300 is beyond the range of float32" in outcome.out
    project.save("x", np.array([1, np.inf], kinds[1]))
    assert project.run("check").code == (0 if kinds[0] == "<f4" else 3)


def test_combined_bounds_on_a_circle_are_refused(project: Project) -> None:
    """The smaller one of atol and no rtol is 0, which the circle did not know of."""
    settings = "    ignore: [ids]\n    atol: 1\n    evidence: data\n    period: 20\n"
    project.configure(settings)
    project.accept()
    project.save("temperature", BASE + 0.5)
    project.configure(f"{settings}    combine: both\n")
    for words in (("check",), ("accept", "--reason", "moved")):
        outcome = project.run(*words, json_too=False)
        assert (outcome.code, "'combine: both' is for atol and rtol" in outcome.err) == (2, True)


@pytest.mark.parametrize("kind", ["BF16", "BOOL"])
def test_combined_bounds_of_other_types_are_refused(project: Project, kind: str) -> None:
    size = {"BF16": 2, "BOOL": 1}[kind]
    header = json.dumps({"w": {"dtype": kind, "shape": [2], "data_offsets": [0, 2 * size]}})
    data = len(header).to_bytes(8, "little") + header.encode() + bytes(2 * size)
    for name in ("one", "two"):
        (project.folder / name).mkdir()
        (project.folder / name / "x.safetensors").write_bytes(data)
    (project.folder / "out" / "x.safetensors").write_bytes(data)
    project.configure("    combine: both\n    ignore: [temperature, ids]\n")
    for words in (("compare", "one", "two", "--check", "mesh"), ("accept",)):
        outcome = project.run(*words, json_too=False)
        assert (outcome.code, "'combine: both' is for atol and rtol" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("{period: [1, 2], atol: 1e-3}", "has 2 periods, one for each component"),
        ("{period: 10, rtol: 1e-3}", "rtol and ulps mean nothing modulo a period"),
        ("{mask: land}", "takes out all 600 elements"),
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
        "the pattern '*.tpm' under 'exclude' matches no file of the outputs",
        "the pattern '*.bni' under 'formats' matches no file of the outputs",
    ]
    outcome = project.accept()
    assert outcome.document["checks"][0]["misspelt"] == [f"{one}; is it misspelt?" for one in told]
    outcome = project.run("check")
    assert outcome.code == 0
    messages = outcome.document["checks"][0]["messages"]
    assert [one["text"] for one in messages] == [f"{one}; is it misspelt?" for one in told]
    assert {one["level"] for one in messages} == {"warning"}


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
    assert "is on the first side only" in outcome.out
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


@pytest.mark.parametrize(
    ("combine", "which", "whole"), [("both", "smaller", 0.0), ("either", "larger", 1.0)]
)
def test_a_combined_bound_is_told_as_it_is(
    project: Project, combine: str, which: str, whole: float
) -> None:
    """Of whole numbers one part is left, and nothing else is said to have been asked."""
    project.save("x", np.arange(1.0, 5.0))
    project.save("n", np.arange(1, 5))
    project.configure(
        f"    ignore: [temperature, ids]\n    atol: 1\n    rtol: 0.1\n    combine: {combine}\n"
    )
    project.accept()
    shutil.copytree(project.folder / "out", project.folder / "earlier")
    project.save("x", np.arange(3.0, 7.0))
    project.save("n", np.arange(3, 7))
    said = f"4 of 4 elements differ beyond atol=1 rtol=0.1 (the {which} counts)"
    for words in (("check",), ("compare", "earlier", "out", "--check", "mesh")):
        outcome = project.run(*words)
        assert outcome.code == 1, outcome
        assert f"x [data]: {said}\n" in outcome.out
        assert outcome.variable("x")["combine"] == combine
        assert outcome.variable("x")["max_abs_index"] == [0]
        n = outcome.variable("n")
        assert n["bound"] == {"atol": whole, "rtol": 0.0, "ulps": 0}
        assert "combine" not in n
        beyond = " beyond atol=1 rtol=0" if whole else ""
        assert f"n [data]: 4 of 4 elements differ{beyond}\n" in outcome.out


@pytest.mark.parametrize(("combine", "listed"), [("both", ["0", "2"]), ("either", ["2"])])
def test_the_list_holds_what_combined_bounds_let_differ(
    project: Project, tmp_path: Path, combine: str, listed: list[str]
) -> None:
    project.configure(f"    variables: {{'*': {{atol: 1e-3, rtol: 1e-3, combine: {combine}}}}}\n")
    for name, values in (("one", [0, 1, 3.0]), ("two", [1e-9, 1, 3.0035])):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "x.npy", np.array(values))
    sides = (str(tmp_path / "one"), str(tmp_path / "two"))
    target = tmp_path / "list.csv"
    outcome = project.run("compare", *sides, "--check", "mesh", "--list", str(target))
    assert outcome.code == 1
    rows = [line.split(",")[3] for line in target.read_text().splitlines()[1:]]
    assert sorted(rows) == listed
    assert outcome.variable("x")["differing_count"] == len(listed)


@pytest.mark.parametrize("combine", ["both", "either"])
def test_a_nan_is_told_once_where_bounds_are_combined(project: Project, combine: str) -> None:
    project.configure(
        "    exclude: [ids.npy]\n"
        f"    variables: {{'*': {{atol: 1, rtol: 1, combine: {combine}, equal_nan: false}}}}\n"
    )
    project.save("temperature", np.array([1.0, np.nan, 2.0, np.nan]))
    project.accept()
    outcome = project.run("check")
    assert outcome.code == 1
    found = outcome.variable("temperature")
    assert (found["differing_count"], found["nan_mismatch_count"]) == (2, 2)


def test_a_capture_takes_no_combined_bound_for_their_sum(project: Project) -> None:
    project.configure("    atol: 1e-3\n    rtol: 1e-9\n    combine: both\n")
    runs = [project.folder.parent / name for name in "ab"]
    for run, value in zip(runs, (1.0, 1.0005), strict=True):
        run.mkdir()
        np.save(run / "x.npy", np.full(4, value))
        assert project.run("capture", str(run), "--check", "mesh", json_too=False).code == 0
    for options in ((), ("--check", "mesh")):
        assert project.run("compare", *map(str, runs), *options).code == 1


@pytest.mark.parametrize("combine", ["both", "either"])
@pytest.mark.parametrize(("lost", "mean"), [(4.0, 0.1875), (np.nan, None)])
def test_a_mean_is_told_of_a_combined_bound_if_it_is_known(
    project: Project, combine: str, lost: float, mean: float | None
) -> None:
    project.configure(
        "    exclude: [ids.npy]\n"
        f"    variables: {{'*': {{atol: 0.01, rtol: 0.005, combine: {combine}}}}}\n"
    )
    project.save("temperature", np.array([1.0, 2.0, 3.0, 4.0]))
    project.accept()
    project.save("temperature", np.array([1.5, 2.25, 3.0, lost]))
    assert project.run("check").code == 1
    found = project.run("check").variable("temperature")
    assert found.get("mean_abs_difference") == mean
    histogram = found.get("bound_share_histogram")
    assert (histogram is None) == (mean is None)
    assert histogram is None or sum(histogram) == 4
