"""Bounds in the scale of a field: `atol: 1e-12*max` is a multiple of a statistic of the golden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, check_fails
from msgspec.structs import replace

import ciwrap
from ciwrap.check.two_sides import kept_statistics
from ciwrap.golden.store import GoldenStore
from ciwrap.model import VariableId

WHY = ("--reason", "measured")
EVIDENCE = ["data", "residues", "tree"]
STATISTICS = {
    "max": float(np.abs(BASE).max()),
    "range": float(np.ptp(BASE)),
    "std": float(BASE.std()),
    "rms": float(np.sqrt((BASE**2).mean())),
    "mean": float(np.abs(BASE).mean()),
}


def configure(project: Project, evidence: str, bound: str) -> None:
    project.configure(bound=f"{bound}, evidence: {evidence}")


def with_golden(folder: Path, evidence: str, bound: str) -> Project:
    project = Project(folder / "project")
    configure(project, evidence, bound)
    project.accept()
    return project


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_bound_is_a_multiple_of_the_goldens_statistic(
    tmp_path: Path, evidence: str, statistic: str
) -> None:
    """Half of it matches, six times it differs, and the output shows it as a number."""
    project = with_golden(tmp_path, evidence, f"atol: 1e-3*{statistic}")
    bound = 1e-3 * STATISTICS[statistic]
    project.save("temperature", BASE + bound / 2)
    outcome = project.run("check")
    found = outcome.variable("temperature")
    if evidence != "tree":  # which may be unsure of a value within its bound
        assert (outcome.code, found["verdict"]) == (0, "match")
    assert found["bound"]["atol"] == pytest.approx(bound, rel=0.005)
    assert found["bound_scale"] == f"0.001*{statistic}"
    project.save("temperature", BASE + 6 * bound)
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.variable("temperature")["verdict"] == "differ"


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_an_error_cannot_widen_its_own_bound(tmp_path: Path, evidence: str, statistic: str) -> None:
    """A new run a million times as large has the golden's bound, not one of its own."""
    project = with_golden(tmp_path, evidence, f"atol: 0.5*{statistic}")
    project.save("temperature", BASE * 1e6)
    outcome = project.run("check")
    found = outcome.variable("temperature")
    assert (outcome.code, found["verdict"]) == (1, "differ")
    assert found["bound"]["atol"] == pytest.approx(0.5 * STATISTICS[statistic], rel=0.005)
    result = ciwrap.compare_arrays(BASE, BASE * 1e6, atol=f"0.5*{statistic}")
    assert result.verdict == "differ"
    assert result.bound.atol == found["bound"]["atol"]


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_another_factor_and_statistic_need_no_new_golden(tmp_path: Path, evidence: str) -> None:
    project = with_golden(tmp_path, evidence, "atol: 1e-3*max")
    for bound, factor, statistic in (("1e-2*std", 1e-2, "std"), ("0.1*range", 0.1, "range")):
        configure(project, evidence, f"atol: {bound}")
        outcome = project.run("check")
        found = outcome.variable("temperature")
        assert found["bound"]["atol"] == pytest.approx(factor * STATISTICS[statistic], rel=0.005)
        assert outcome.code == 0
    done = project.accept("--bounds-only", *WHY)
    assert "WIDER" in done.out
    golden = GoldenStore(project.folder / "golden").read("mesh")
    labels = dict(golden.manifest.labels or {}).get(VariableId("temperature"), ())
    kept = kept_statistics(labels)
    assert (kept is None) == (evidence == "data")
    assert project.run("check").code == 0


@pytest.mark.parametrize("evidence", ["residues", "tree"])
def test_a_golden_made_without_it_says_so(tmp_path: Path, evidence: str) -> None:
    project = with_golden(tmp_path, evidence, "atol: 1e-3")
    configure(project, evidence, "atol: 1e-3*std")
    check_fails(project, 3, "without the statistics of its numbers", command=("check",))
    project.accept(*WHY)
    assert project.run("check").code == 0


def test_runs_are_compared_in_the_scale_of_the_first(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    for name, factor in (("a", 1.0), ("b", 1e3)):
        (project.folder / name).mkdir()
        np.save(project.folder / name / "x.npy", BASE * factor)
    assert project.run("compare", "a", "b", "--atol", "1*max").code == 1
    assert project.run("compare", "b", "a", "--atol", "1*max").code == 0
    listed = project.folder / "differences.csv"
    command = ("compare", "a", "b", "--atol", "2*mean", "--list", str(listed))
    outcome = project.run(*command)
    differing = int((np.abs(BASE * 999) > 2 * float(f"{STATISTICS['mean']:.3g}")).sum())
    assert outcome.variable("x")["differing_count"] == differing
    assert len(listed.read_text().splitlines()) == differing + 1


@pytest.mark.parametrize(
    ("bound", "says"),
    [
        ("atol: 1e-3*median", "max, range, std, rms, mean"),
        ("atol: -1*max", "not negative"),
        ("atol: x*max", "must be a number"),
        ("atol: 1e-3*max, ulps: 2", "ulps excludes atol"),
        ("rtol: 1e-3*max", "must be a number"),
    ],
)
def test_what_is_no_such_bound_is_refused(tmp_path: Path, bound: str, says: str) -> None:
    project = Project(tmp_path / "project")
    project.configure(bound=bound)
    check_fails(project, 2, says, command=("check",))


def test_changes_tells_another_scale_as_wider(tmp_path: Path) -> None:
    """Whichever of two statistics is larger depends on the field."""
    from ciwrap.golden.trees import is_wider

    was = "atol=1e-6*max rtol=0"
    assert not is_wider(was, was)
    assert not is_wider(was, "atol=1e-7*max rtol=0")
    assert is_wider(was, "atol=1e-5*max rtol=0")
    assert is_wider(was, "atol=1e-7*std rtol=0")
    assert is_wider(was, "atol=1e-9 rtol=0")
    assert not is_wider(was, "exact")


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, -7, 2], dtype=np.int16),
        np.array([1 + 2j, -3j], dtype=np.complex64),
        np.array([1.5, np.nan, -np.inf, 2.5, 1e20], dtype=np.float32),
        np.zeros((0,)),
    ],
    ids=["whole", "complex", "gaps", "empty"],
)
def test_statistics_are_of_all_ordinary_numbers(values: Any) -> None:
    """NumPy is the judge."""
    from ciwrap.arrays.values import ArrayValues
    from ciwrap.golden.scale import statistics_of
    from ciwrap.model import VariableSettings

    settings = replace(VariableSettings(), fill_values=(float(np.float32(1e20)),))
    parts = values.view(values.real.dtype) if values.dtype.kind == "c" else values
    plain = parts[np.isfinite(parts) & (parts != np.float32(1e20))].astype(float)
    found = statistics_of(ArrayValues(values), settings, VariableId("x"))
    if not plain.size:
        assert set(found.values()) == {0.0}
        return
    assert found == {
        "max": pytest.approx(np.abs(plain).max(), rel=0.005),
        "range": pytest.approx(np.ptp(plain), rel=0.005),
        "std": pytest.approx(plain.std(), rel=0.005),
        "rms": pytest.approx(np.sqrt((plain**2).mean()), rel=0.005),
        "mean": pytest.approx(np.abs(plain).mean(), rel=0.005),
    }
