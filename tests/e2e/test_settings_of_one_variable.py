"""A setting of one variable (`period`, `mixed_precision`) changes nothing for the others."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciwrap.cli.main import run

LAYOUT = "iter_{iteration:d}/{name}.npy"
ITERATIONS = (1, 2)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def configure(variables: str) -> None:
    Path("ciwrap.yaml").write_text(
        f"checks:\n  c: {{outputs: 'A/{LAYOUT}', atol: 1e-6, variables: {variables}}}\n"
    )


def save(name: str, golden: Any, new: Any) -> None:
    for run_name, array in (("A", golden), ("B", new)):
        for iteration in ITERATIONS:
            path = Path(f"{run_name}/iter_{iteration}/{name}.npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, array)


def compare(*more: str) -> tuple[int, dict[str, Any]]:
    code = run(["compare", "A", "B", "--check", "c", "--layout", LAYOUT, "--json", "r.json", *more])
    return code, json.loads(Path("r.json").read_text())["checks"][0]


def capture_both(*more: str) -> None:
    for name in "AB":
        arguments = ["capture", name, "--check", "c", "--layout", LAYOUT, "--settle", "0", *more]
        assert run(arguments) == 0


def listed(path: str = "d.csv") -> list[tuple[str, str, str]]:
    with Path(path).open(newline="") as file:
        return [(row["iteration"], row["variable"], row["index"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("rule", ["period: 1.0", "mixed_precision: true"])
def test_captures_and_lists_serve_the_other_variables(rule: str) -> None:
    """There is no `angle` here; x, which has no such setting, is listed and captured."""
    configure(f"{{angle: {{atol: 1e-6, {rule}}}}}")
    x = np.linspace(0, 1, 5000)
    y = x.copy()
    y[17] += 0.5
    save("x", x, y)
    code, _ = compare("--list", "d.csv")
    assert code == 1
    assert listed() == [("1", "x", "17"), ("2", "x", "17")]
    capture_both("--checksums")
    code, check = compare("--verify-checksums", "--capture-a", "A/.ciwrap.tree")
    assert code == 1
    assert [one["chunk_count"] for one in check["variables"]] == [1, 1]

    save("x", x, x)
    capture_both()
    code, check = compare()
    assert code == 0
    assert {one["evidence"] for one in check["variables"]} == {"tree"}


def test_variables_with_a_period_are_listed_by_their_nearest_image() -> None:
    configure("{angle: {atol: 1e-3, period: 360}}")
    save("angle", np.array([359.9999, 10.0, 20.0]), np.array([0.0, 10.0, 20.5]))
    save("x", np.zeros(3), np.zeros(3))
    code, check = compare("--list", "d.csv")
    assert code == 1
    assert {one["name"]: one["differing_count"] for one in check["variables"]} == {
        "angle": 1,
        "x": 0,
    }
    assert listed() == [("1", "angle", "2"), ("2", "angle", "2")]


def test_variables_of_two_precisions_are_listed_as_they_are_compared() -> None:
    configure("{m: {atol: 0, mixed_precision: true}}")
    values = np.random.default_rng(1).normal(size=200)
    moved = values.copy()
    moved[5] = np.nextafter(np.float32(values[5]), np.float32(9))
    save("m", values.astype("<f4"), moved)
    code, check = compare("--list", "d.csv")
    assert code == 1
    assert [one["differing_count"] for one in check["variables"]] == [1, 1]
    assert listed() == [("1", "m", "5"), ("2", "m", "5")]


@pytest.mark.parametrize("is_captured", [False, True])
@pytest.mark.parametrize("evidence", ["elements", "digests"])
def test_the_bound_that_is_told_is_the_one_that_held(is_captured: bool, evidence: str) -> None:
    """Integers have no rtol, whoever asked for one."""
    Path("ciwrap.yaml").write_text(f"checks:\n  c: {{outputs: 'A/{LAYOUT}', rtol: 0.5}}\n")
    numbers = np.arange(50)
    save("n", numbers, numbers + (numbers == 7) if evidence == "elements" else numbers)
    if is_captured:
        capture_both()
    code, check = compare()
    assert code == (1 if evidence == "elements" else 0)
    assert {(one["bound"]["atol"], one["bound"]["rtol"]) for one in check["variables"]} == {(0, 0)}


def test_ids_are_aligned_by_themselves_whichever_variable_asks() -> None:
    """Only `x` says align_by; the id variable is put in order all the same, `other` is not."""
    configure("{x: {align_by: id}}")
    rows = np.arange(20)
    moved = np.random.default_rng(1).permutation(20)
    save("id", rows, moved)
    save("x", rows / 20, moved / 20)
    save("other", rows, rows)
    code, check = compare()
    assert code == 0, check
    assert {one["name"]: one.get("aligned_by") for one in check["variables"]} == {
        "id": "id",
        "x": "id",
        "other": None,
    }
    save("other", rows, moved)
    code, check = compare()
    assert code == 1
    assert {one["name"] for one in check["variables"] if one["verdict"] == "differ"} == {"other"}


@pytest.mark.parametrize(
    ("variables", "code"),
    [("{'*': {atol: 1}}", 0), ("{'*': {atol: 1}, '*indices': {atol: 0}}", 1)],
)
def test_a_bound_for_all_holds_for_indices_unless_they_are_taken_out(
    variables: str, code: int
) -> None:
    """As `docs/how-to/choose-bounds.md` says."""
    configure(variables)
    save("k.data", np.arange(3.0), np.arange(3.0) + 0.5)
    save("k.indices", np.array([0, 2, 3]), np.array([0, 2, 4]))
    found, check = compare()
    assert found == code
    differing = {one["name"] for one in check["variables"] if one["verdict"] == "differ"}
    assert differing == ({"k.indices"} if code else set())


@pytest.mark.parametrize("how", ["plain", "captured", "fault"])
def test_results_say_by_what_they_were_compared(how: str) -> None:
    """Also of what could not be compared, and of what trees alone have settled."""
    configure(
        "{x: {atol: 0.5, fill_values: [-1]}, angle: {atol: 0.25, period: 360},"
        " temperature: {atol: 0.125, mask: land}}"
    )
    land = np.zeros(6, bool)
    land[1] = True
    arrays = {"x": np.arange(6.0), "angle": np.arange(6.0), "temperature": np.arange(6.0)}
    for name, array in {**arrays, "land": land}.items():
        save(name, array, array[:5] if how == "fault" and name != "land" else array)
    if how == "captured":
        capture_both()
    code, check = compare()
    assert code == (3 if how == "fault" else 0)
    said = {
        one["name"]: (
            (one.get("bound") or {}).get("atol"),
            one.get("mask"),
            one.get("period"),
            bool(one.get("has_fill_values")),
        )
        for one in check["variables"]
        if one["iteration"] == 1
    }
    assert said == {
        "x": (0.5, None, None, True),
        "angle": (0.25, None, [360.0], False),
        "temperature": (0.125, "land", None, False),
        "land": (0.0, None, None, False),
    }
    paths = {one["source_path"] for one in check["variables"] if one["name"] == "x"}
    assert paths == {f"B/iter_{iteration}/x.npy" for iteration in ITERATIONS}
