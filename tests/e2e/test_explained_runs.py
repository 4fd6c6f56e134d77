"""What the first difference of a run has in common: told on the terminal, too, with and without a
document, and over iterations and ranks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

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
    assert "first divergence: iter 3 / rank 0 / x" in plain
    assert "in each of them the sign is flipped: B = -A" in plain
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
    assert f"in each of them B is A of iteration {2 - by}" in shown


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
    assert "in each of them new is golden of iteration 1" in shown
    assert "in each of them new is golden of iteration 1" in report.read_text().lower()


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
