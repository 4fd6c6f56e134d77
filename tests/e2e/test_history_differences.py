"""Where two runs first diverge, how each variable goes on, and the list of all differences."""

from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from e2e.history_runs import ATOL, SHAPE, capture, change, ciwrap, oracle, path_of

from ciwrap.cli.main import run as run_cli
from ciwrap.formats.npy import NpyReader

if TYPE_CHECKING:
    from pathlib import Path


def timeline_of(document: Any, name: str) -> Any:
    (found,) = [one for one in document["checks"][0]["history"]["timelines"] if one["name"] == name]
    return found


def states(document: Any, name: str, rank: int) -> list[str]:
    return [
        point["state"] for point in timeline_of(document, name)["points"] if point["rank"] == rank
    ]


@pytest.mark.parametrize("captured", [False, True])
def test_first_divergence_and_timelines(
    tmp_path: Path, runs: tuple[Path, Path], captured: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = runs
    change(path_of(b, 5, 1, "x"), (0, 3), by=0.5 * ATOL)
    change(path_of(b, 10, 1, "x"), (2, 3), (2, 4), by=4 * ATOL)
    change(path_of(b, 20, 0, "phi"), (0, 1), by=7.0)
    shutil.rmtree(b / "iter_0020" / "rank_1")
    if captured:
        for run in runs:
            capture(tmp_path, run, f"--atol={ATOL}")
    code, document = ciwrap(tmp_path, "compare", a, b, f"--atol={ATOL}")
    assert code == 3
    (check,) = document["checks"]
    first = check["first_divergence"]
    assert check["first_numeric_divergence"] == first
    assert (first["iteration"], first["rank"], first["name"]) == (10, 1, "x")
    assert first["element"]["index"] == [2, 3]
    assert first["element"]["golden"] == str(np.load(path_of(a, 10, 1, "x"))[2, 3])
    assert first["element"]["new"] == str(np.load(path_of(b, 10, 1, "x"))[2, 3])
    assert first["element"]["bound_share"] == pytest.approx(4, rel=1e-2)
    assert states(document, "x", 1) == ["within", "beyond", "first_only"]
    assert states(document, "phi", 0) == ["match", "match", "beyond"]
    assert timeline_of(document, "phi")["trend"] == "jumps"
    assert timeline_of(document, "x")["trend"] == "comes_and_goes"
    shown = capsys.readouterr().out
    assert "first difference: iter 10 / rank 1 / x\n" in shown
    assert "      [2, 3]: A " in shown
    assert "..#" in shown


def test_what_is_printed_does_not_depend_on_a_document(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the first difference is looked at once more for its cause, others for a document."""
    a, b = runs
    change(path_of(b, 10, 1, "x"), (2, 3), (3, 3), (4, 3), by=40 * ATOL)
    change(path_of(b, 20, 1, "phi"), (2, 3), by=4 * ATOL)
    capture(tmp_path, a, f"--atol={ATOL}")
    capture(tmp_path, b, f"--atol={ATOL}")
    capsys.readouterr()
    target = tmp_path / "result.json"
    told, read = [], []
    for more in ((), ("--json", str(target)), ()):
        assert run_cli(["compare", str(a), str(b), "--verbose", *more]) == 1
        lines = capsys.readouterr().out.splitlines()
        (costs,) = (line for line in lines if ", read " in line)
        read.append(costs.partition(", read ")[2].partition(",")[0])
        told.append([line for line in lines if not line.lstrip().startswith("took ")])
    assert told[0] == told[1] == told[2]
    assert any("values that differ, B = A + 0.004" in line for line in told[0])
    assert read[0] == read[2] != read[1]
    variables = json.loads(target.read_text())["checks"][0]["variables"]
    differing = [one for one in variables if one["verdict"] == "differ"]
    assert len(differing) == 2
    assert all(one["details"]["worst_elements"] for one in differing)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("captured", [False, True])
def test_every_difference_is_listed(
    tmp_path: Path, runs: tuple[Path, Path], suffix: str, captured: bool
) -> None:
    a, b = runs
    rng = np.random.default_rng(0)
    for iteration, rank, name in ((5, 0, "x"), (10, 1, "phi"), (20, 1, "x")):
        array = np.load(path_of(b, iteration, rank, name))
        array[rng.random(SHAPE) < 0.3] += 2.5
        array[0, 0] = np.nan
        # Column-major: not a stretch of the file, so it goes another way.
        np.save(path_of(b, iteration, rank, name), np.asfortranarray(array))
    change(path_of(b, 10, 0, "x"), (1, 2), (3, 4))
    if captured:
        for run in runs:
            capture(tmp_path, run, f"--atol={ATOL}")
    target = tmp_path / f"list.{suffix}"
    code, _ = ciwrap(tmp_path, "compare", a, b, f"--atol={ATOL}", "--list", target)
    assert code == 1
    if suffix == "csv":
        with target.open(newline="") as stream:
            rows = [
                {
                    **row,
                    "iteration": int(row["iteration"]),
                    "rank": int(row["rank"]),
                    "index": tuple(map(int, row["index"].split())),
                    "difference": float(row["difference"]) if row["difference"] else None,
                }
                for row in csv.DictReader(stream)
            ]
    else:
        rows = [{**row, "index": tuple(row["index"])} for row in pq.read_table(target).to_pylist()]
    found = {(row["iteration"], row["rank"], row["variable"], *row["index"]): row for row in rows}
    assert len(found) == len(rows) == sum(oracle(a, b).values())
    for (iteration, rank, name, *index), row in found.items():
        one = np.load(path_of(a, iteration, rank, name))[tuple(index)]
        two = np.load(path_of(b, iteration, rank, name))[tuple(index)]
        assert (row["golden"], row["new"]) == (str(one), str(two))
        if np.isnan(two):
            assert row["difference"] is None
        else:
            assert row["difference"] == float(two) - float(one)


def test_a_list_that_cannot_be_written(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    assert run_cli(["compare", str(a), str(b), "--list", str(tmp_path / "no" / "x.csv")]) == 3
    assert run_cli(["compare", str(a), str(b), "--list", str(tmp_path / "x.txt")]) == 2
    assert run_cli(["compare", str(a), str(b), "--list", str(b / "x.csv")]) == 2
    assert not list(b.glob("*.csv"))
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("captured", [False, True])
def test_files_are_opened_a_few_times_however_many_differ(
    tmp_path: Path, captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, most_opened = 30, 4  # to capture or compare each, and to look at what differs
    runs = [tmp_path / name for name in "AB"]
    for number, run in enumerate(runs):
        (run / "iter_1").mkdir(parents=True)
        for position in range(count):
            np.save(run / "iter_1" / f"v{position}.npy", np.arange(50.0) + number)
        if captured:
            capture(tmp_path, run, "--atol=0.5")
    opened: list[Path] = []
    wrapped = NpyReader.open

    def opening(reader: NpyReader, path: Path, **options: Any) -> Any:
        opened.append(path)
        return wrapped(reader, path, **options)

    monkeypatch.setattr(NpyReader, "open", opening)
    code, document = ciwrap(tmp_path, "compare", *runs, "--atol=0.5")
    assert code == 1
    variables = document["checks"][0]["variables"]
    assert len(variables) == count
    assert all(one["details"] is not None for one in variables)
    assert len(opened) <= most_opened * count


@pytest.mark.parametrize("bound", ["--atol=1e-6", "--rtol=1e-6", "--ulps=1000000"])
def test_the_largest_difference_is_that_of_the_whole_array_or_is_not_told(
    tmp_path: Path, bound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Large numbers within their bound may be further off than a small one beyond its own, and lie
    in chunks that captures settle. Small ones may be off by more of what they are.
    """
    large, small = np.full(2000, 1e9), np.full(2000, 1e-9)
    golden = np.concatenate([large, np.ones(2000), small])
    new = np.concatenate([large + (bound != "--atol=1e-6") * 0.01, np.ones(2000), small])
    new[4000:] += 2e-9 * (bound == "--atol=1e-6")
    new[3000] += 1e-3
    sides = [tmp_path / "a", tmp_path / "b"]
    for side, array in zip(sides, (golden, new), strict=True):
        side.mkdir()
        np.save(side / "x.npy", array)
    capture(tmp_path, sides[0], bound, "--residues")
    capture(tmp_path, sides[1], bound, "--against", sides[0] / ".ciwrap.tree")
    capsys.readouterr()
    code, document = ciwrap(tmp_path, "compare", *sides, "-v")
    (one,) = document["checks"][0]["variables"]
    assert (code, one["differing_count"], one["suspect_chunks"]) == (1, 1, 1)
    moved = np.abs(new - golden)
    told = [one.get("max_abs_difference"), one.get("max_rel_difference")]
    assert told[0] in (None, moved.max())
    assert told[1] in (None, (moved / np.abs(golden)).max())
    known = (told[0] is not None, told[1] is not None)
    assert known == (bound == "--atol=1e-6", bound == "--rtol=1e-6")
    said = capsys.readouterr().out
    assert ("largest |difference|" in said, "largest relative" in said) == known
    assert f"up to {'1,000' if bound != '--ulps=1000000' else '4.5e6'} x the bound" in said
