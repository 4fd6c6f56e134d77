"""Bounds of which the smaller or the larger part counts, as people and scripts use them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import BASE, Project

if TYPE_CHECKING:
    from pathlib import Path


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
    said = f"4 of 4 values differ by more than the bound (atol=1 rtol=0.1, the {which} counts)"
    for words in (("check",), ("compare", "earlier", "out", "--check", "mesh")):
        outcome = project.run(*words)
        assert outcome.code == 1, outcome
        assert f"x [data]: {said}\n" in outcome.out
        assert outcome.variable("x")["combine"] == combine
        assert outcome.variable("x")["max_abs_index"] == [0]
        n = outcome.variable("n")
        assert n["bound"] == {"atol": whole, "rtol": 0.0, "ulps": 0}
        assert "combine" not in n
        beyond = " by more than the bound (atol=1)" if whole else ""
        assert f"n [data]: 4 of 4 values differ{beyond}\n" in outcome.out


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
