"""What the first difference of a run has in common: told on the terminal, too, with and without a
document, and over iterations and ranks.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from command_line import call
from e2e.cli_project import environment

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ITERATIONS, RANKS = (1, 2, 3, 4), (0, 1, 2)


def write(run: Path, shape: tuple[int, ...], change: Callable[[int, int, np.ndarray], Any]) -> None:
    for iteration in ITERATIONS:
        for rank in RANKS:
            folder = run / f"iter_{iteration:04d}" / f"rank_{rank}"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / "x.npy", change(iteration, rank, field(shape, iteration, rank)))


def field(shape: tuple[int, ...], iteration: int, rank: int) -> np.ndarray:
    return np.random.default_rng((iteration, rank)).normal(3.0, 2.0, shape)


def same(_iteration: int, _rank: int, array: np.ndarray) -> np.ndarray:
    return array


def both(tmp_path: Path, shape: tuple[int, ...], change: Callable[..., Any]) -> tuple[Path, Path]:
    write(tmp_path / "a", shape, same)
    write(tmp_path / "b", shape, change)
    return tmp_path / "a", tmp_path / "b"


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert run_cli([str(one) for one in arguments]) == 1
    return capsys.readouterr().out


SHAPES = ((30,), (8, 9), (4, 5, 6))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_terminal_names_the_cause_of_the_first_divergence(
    tmp_path: Path, shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def change(iteration: int, _rank: int, array: np.ndarray) -> np.ndarray:
        return -array if iteration >= 3 else array

    a, b = both(tmp_path, shape, change)
    plain = told(capsys, "compare", a, b, "--atol=1e-6")
    assert "first difference: iter 3 / rank 0 / x" in plain
    assert re.search("in all [0-9,]+ values that differ, the sign is flipped: B = -A", plain)
    target = tmp_path / "result.json"
    assert told(capsys, "compare", a, b, "--atol=1e-6", "--json", target) == plain
    (check,) = json.loads(target.read_text())["checks"]
    first = min(
        (one for one in check["variables"] if one["verdict"] == "differ"),
        key=lambda one: (one["iteration"], one["rank"]),
    )
    assert first["explanations"][0]["cause"] == "sign_flipped"
    summary = tmp_path / "summary.md"
    assert run_cli(["report", str(target), "--markdown", str(summary)]) == 0
    assert "the sign is flipped" in summary.read_text()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("by", [1, -1])
def test_numbers_of_another_iteration_are_found(
    tmp_path: Path, shape: tuple[int, ...], by: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(iteration: int, rank: int, array: np.ndarray) -> np.ndarray:
        other = iteration - by
        return field(shape, other, rank) if iteration >= 2 and other in ITERATIONS else array

    a, b = both(tmp_path, shape, change)
    shown = told(capsys, "compare", a, b, "--atol=1e-6")
    assert f"      B is A of iteration {2 - by}" in shown


@pytest.mark.parametrize("evidence", ["data", "residues"])
def test_a_check_finds_them_too(
    tmp_path: Path,
    evidence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"version: 1\nchecks:\n  all: {{outputs: run, atol: 1e-6, evidence: {evidence}}}\n"
    (tmp_path / "ciwrap.yaml").write_text(text)
    write(tmp_path / "run", (20, 30), same)
    assert run_cli(["accept"]) == 0
    write(tmp_path / "run", (20, 30), lambda i, r, _: field((20, 30), max(1, i - 1), r))
    report = tmp_path / "r.html"
    shown = told(capsys, "check", "--report", report)
    assert "      new is golden of iteration 1" in shown
    assert "new is golden of iteration 1" in report.read_text().lower()


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_swapped_variables_are_named_whatever_the_golden_keeps(
    tmp_path: Path,
    evidence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f"version: 1\nchecks:\n  all: {{outputs: run, atol: 1e-6, evidence: {evidence}}}\n"
    (tmp_path / "ciwrap.yaml").write_text(text)
    run = tmp_path / "run"
    run.mkdir()
    fields = {name: field((30, 50), at, 0) for at, name in enumerate(("u", "v", "w"))}

    def write(**changed: np.ndarray) -> None:
        for name, array in {**fields, **changed}.items():
            np.save(run / f"{name}.npy", array)

    write()
    assert run_cli(["accept"]) == 0
    # Of cells alone, noise may step over their borders.
    noise = 0.0 if evidence == "tree" else 1e-7
    write(u=fields["w"] + noise, w=fields["u"] + noise)
    shown = told(capsys, "check")
    assert shown.count("`u` and `w` are swapped: new `u` = golden `w`") == 1
    write(u=fields["w"])
    assert "are swapped" not in told(capsys, "check")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_rank_is_named(
    tmp_path: Path, shape: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def change(iteration: int, rank: int, array: np.ndarray) -> np.ndarray:
        return array + 0.1 * field(shape, 9, 9) if rank == 1 and iteration > 1 else array

    a, b = both(tmp_path, shape, change)
    assert "of 3 ranks only rank 1 differs" in told(capsys, "compare", a, b, "--atol=1e-6")
    write(b, shape, lambda i, r, x: x + 0.1 * field(shape, 9, 9) if r > 0 and i > 1 else x)
    assert "only rank" not in told(capsys, "compare", a, b, "--atol=1e-6")


def test_what_was_reordered_is_no_other_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = both(tmp_path, (40,), lambda i, _, x: x + 0.5 * (i > 2) * np.arange(40))
    assert "of iteration" not in told(capsys, "compare", a, b, "--atol=1e-6")


def deal(run: Path, parts: Callable[[int], list[np.ndarray]]) -> None:
    for iteration in ITERATIONS:
        for rank, part in enumerate(parts(iteration)):
            folder = run / f"iter_{iteration:04d}" / f"rank_{rank}"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / "x.npy", part)


def whole(iteration: int) -> np.ndarray:
    return np.random.default_rng(iteration).normal(size=(24, 20))


def moved_rows(iteration: int) -> list[np.ndarray]:
    rows = np.random.default_rng(99 + iteration).permutation(whole(iteration))
    return np.array_split(rows, 4)


DECOMPOSITIONS: dict[str, tuple[Callable[[int], list[np.ndarray]], str]] = {
    "particles": (moved_rows, "together, the 4 ranks of {new} and {golden} hold the same rows"),
    "slabs": (
        lambda iteration: np.array_split(whole(iteration), 3),
        "the 3 ranks of {new} hold the rows of the 4 of {golden}",
    ),
    "columns": (
        lambda iteration: np.array_split(whole(iteration), 4, axis=1),
        "together, the 4 ranks of {new} and {golden} hold the same array",
    ),
}


@pytest.mark.parametrize("layout", DECOMPOSITIONS)
def test_another_decomposition_is_named_everywhere(
    tmp_path: Path, layout: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, words = DECOMPOSITIONS[layout]
    words += ", dealt out in another way"
    deal(tmp_path / "a", lambda iteration: np.array_split(whole(iteration), 4))
    deal(tmp_path / "b", parts)
    a, b, page = tmp_path / "a", tmp_path / "b", tmp_path / "page.html"
    target = tmp_path / "result.json"
    code = run_cli(["compare", str(a), str(b), "--json", str(target), "--report", str(page)])
    assert code == (1 if layout == "particles" else 3)
    said = words.format(golden="A", new="B")
    assert said in " ".join(capsys.readouterr().out.split())
    assert said.capitalize() in page.read_text() or said in page.read_text()
    found = [
        one["explanations"][0]
        for one in json.loads(target.read_text())["checks"][0]["variables"]
        if one.get("explanations")
    ]
    assert [one["cause"] for one in found if one["cause"] != "wider_bound"] == ["across_ranks"]
    # Against a golden that keeps its data.
    (tmp_path / "ciwrap.yaml").write_text(
        "version: 1\nchecks:\n  x: {outputs: run, evidence: data}\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    a.rename(tmp_path / "run")
    assert run_cli(["accept"]) == 0
    (tmp_path / "run").rename(tmp_path / "old")
    b.rename(tmp_path / "run")
    capsys.readouterr()
    assert run_cli(["check"]) == code
    said = words.format(golden="golden", new="new")
    assert said in " ".join(capsys.readouterr().out.split())


def test_rows_that_are_said_to_have_moved_match_by_their_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line of configuration that is told helps."""
    for name, seed in (("a", 1), ("b", 2)):
        for iteration in ITERATIONS:
            order = np.random.default_rng((seed, iteration)).permutation(24)
            for rank, rows in enumerate(np.array_split(order, 3)):
                folder = tmp_path / name / f"iter_{iteration:04d}" / f"rank_{rank}"
                folder.mkdir(parents=True)
                np.save(folder / "x.npy", whole(iteration)[rows])
                np.save(folder / "id.npy", rows)
    a, b = tmp_path / "a", tmp_path / "b"
    assert "across_ranks: true" in told(capsys, "compare", a, b)
    assert run_cli(["compare", str(a), str(b), "--align-by=id", "--across-ranks"]) == 0


def test_one_checkpoint_of_many_ranks_tells_of_them_in_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.sin(np.arange(24.0))
    for name, seed in (("a", 1), ("b", 2)):
        rows = np.random.default_rng(seed).permutation(24)
        for rank, mine in enumerate(np.array_split(rows, 3)):
            folder = tmp_path / name / f"rank_{rank}"
            folder.mkdir(parents=True)
            np.save(folder / "x.npy", values[mine])
    said = told(capsys, "compare", tmp_path / "a", tmp_path / "b")
    assert "x: cut among the ranks in another way; on all 3 ranks" in said


def test_a_cause_is_found_whichever_checkpoint_has_the_variable(tmp_path: Path) -> None:
    """A file of all iterations lies beside those of each: with its variables, one checkpoint less
    than their iterations tell.
    """
    for run in ("A", "B"):
        for iteration in range(4):
            place = tmp_path / run / f"iter_{iteration}"
            place.mkdir(parents=True)
            np.save(place / "x.npy", np.arange(9.0))
        with h5py.File(tmp_path / run / "log.h5", "w") as file:
            for iteration in range(4):
                energy = np.arange(10.0) * iteration
                file[f"iter_{iteration}/energy"] = energy + (run == "B" and iteration == 2)
    told = [
        call("compare", "A", "B", *more, folder=tmp_path, environment=environment()).stdout
        for more in ((), ("--journal=j",))
    ]
    assert "values that differ, B = A + 1" in told[0]
    assert told[0] == told[1]


def test_the_worst_of_each_variable_of_a_large_run_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the first difference; of all others a second look would read all of the data again. The
    worst variable comes first, as long as there is room.
    """
    size = 2 * 24 * 30 * 8
    first, worst = (2, "x"), (3, "y")
    for room, wanted in (
        (1, {first}),
        (size, {first, worst}),
        (2 * size, {first, worst, (3, "x")}),
    ):
        monkeypatch.setattr("ciwrap.runs.compare_runs._MOST_DETAILED_BYTES", room)
        pair = tmp_path / str(room) / "A", tmp_path / str(room) / "B"
        for run in pair:
            for iteration in range(4):
                place = run / f"iter_{iteration}"
                place.mkdir(parents=True)
                for name, by in (("x", 1.0), ("y", 10.0)):
                    moved = by * iteration if run.name == "B" and iteration >= 2 else 0.0
                    values = np.random.default_rng(iteration).normal(size=(24, 30))
                    np.save(place / f"{name}.npy", values + moved)
        report, listed = tmp_path / "r.html", tmp_path / "r.json"
        told(capsys, "compare", *pair, "--report", report, "--json", listed)
        found = json.loads(listed.read_text())["checks"][0]["variables"]
        drawn = {(one["iteration"], one["name"]) for one in found if one.get("details")}
        assert drawn == wanted
        assert "data:image/png" in report.read_text()
