"""Whole runs through the real command line, against what plain NumPy says of the same files."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.history_runs import (
    ATOL,
    ITERATIONS,
    NAMES,
    RANKS,
    SHAPE,
    capture,
    change,
    ciwrap,
    counts_in,
    oracle,
    path_of,
    write_run,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.cli.main import run as run_cli

if TYPE_CHECKING:
    from pathlib import Path


def test_equal_runs_are_told_by_their_captures_alone(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    a, b = runs
    roots = [capture(tmp_path, run, f"--atol={ATOL}")["identity"] for run in runs]
    assert roots[0] == roots[1]
    code, document = ciwrap(tmp_path, "compare", a, b)
    check = document["checks"][0]
    assert code == 0
    assert {one["evidence"] for one in check["variables"]} == {"tree"}
    assert len(check["variables"]) == 12
    assert check["bytes_read"] < 2 * 64 * 1024


@pytest.mark.parametrize(
    "captured", [(), ("A",), ("B",), ("A", "B"), ("A+",), ("A+", "B"), ("A+", "B:A")]
)
def test_every_way_to_compare_gives_what_numpy_gives(
    tmp_path: Path, runs: tuple[Path, Path], captured: tuple[str, ...]
) -> None:
    a, b = runs
    change(path_of(b, 10, 1, "x"), (3, 4), (39, 49), by=0.5)
    change(path_of(b, 20, 0, "phi"), (0, 0), by=np.nan)
    change(path_of(b, 20, 1, "phi"), *((row, 7) for row in range(40)), by=2 * ATOL)
    change(path_of(b, 5, 0, "phi"), *((row, 1) for row in range(40)), by=0.2 * ATOL)
    for which in captured:
        more = {
            "A+": ["--residues"],
            "B:A": ["--against", a / ".ciwrap.tree"],
        }.get(which, [])
        capture(tmp_path, tmp_path / which[0], f"--atol={ATOL}", *more)
    code, document = ciwrap(tmp_path, "compare", a, b, f"--atol={ATOL}")
    assert code == 1
    assert counts_in(document) == oracle(a, b)
    check = document["checks"][0]
    bad = {
        (one["iteration"], one["rank"], one["name"]): one
        for one in check["variables"]
        if one["verdict"] == "differ"
    }
    first = bad[10, 1, "x"]["first_differences"]
    assert [one["index"] for one in first] == [[3, 4], [39, 49]]
    for one in first:
        place = (10, 1, "x")
        assert one["golden"] == str(np.load(path_of(a, *place))[tuple(one["index"])])
        assert one["new"] == str(np.load(path_of(b, *place))[tuple(one["index"])])
    if captured == ("A+", "B:A"):
        noisy = next(
            one
            for one in check["variables"]
            if (one["iteration"], one["rank"], one["name"]) == (5, 0, "phi")
        )
        assert noisy["evidence"] == "residues"
        assert 0.19 <= noisy["max_drift_share"] <= 0.3


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_any_change_is_found_whatever_was_captured(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Random changes of random size; captures of either side, before or after; every engine."""
    folder = tmp_path_factory.mktemp("runs")
    a = write_run(folder / "A")
    b = folder / "B"
    shutil.copytree(a, b)
    atol = data.draw(st.sampled_from([0.0, 1e-6, ATOL]))
    if data.draw(st.booleans()):
        capture(folder, a, f"--atol={atol}", *data.draw(st.sampled_from([[], ["--residues"]])))
    early = data.draw(st.booleans())
    if early:
        capture(folder, b, f"--atol={atol}")
    for _ in range(data.draw(st.integers(0, 4))):
        place = (
            data.draw(st.sampled_from(ITERATIONS)),
            data.draw(st.sampled_from(RANKS)),
            data.draw(st.sampled_from(NAMES)),
        )
        index = (data.draw(st.integers(0, SHAPE[0] - 1)), data.draw(st.integers(0, SHAPE[1] - 1)))
        change(path_of(b, *place), index, by=data.draw(st.sampled_from([1.0, 1e-5, 5e-7, np.inf])))
        os.utime(path_of(b, *place), ns=(1, data.draw(st.integers(1, 1 << 60))))
    if not early and data.draw(st.booleans()):
        capture(folder, b, f"--atol={atol}")
    engine = data.draw(st.sampled_from(["auto", "pread"]))
    memory = data.draw(st.sampled_from(["1M", "256M"]))
    code, document = ciwrap(
        folder, "compare", a, b, f"--atol={atol}", f"--engine={engine}", f"--memory={memory}"
    )
    wanted = oracle(a, b, atol)
    assert counts_in(document) == wanted
    assert code == (1 if any(wanted.values()) else 0)
    shutil.rmtree(folder)


def test_noise_within_the_bound_costs_no_reads_against_residues(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    a, b = runs
    rng = np.random.default_rng(5)
    for path in b.rglob("phi.npy"):
        array = np.load(path)
        np.save(path, array + rng.uniform(-0.1, 0.1, size=array.shape) * ATOL)
    plain = []
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}", "--residues")
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 0
    plain = [v for v in document["checks"][0]["variables"] if v["name"] == "phi"]
    assert {one["evidence"] for one in plain} == {"data"}  # false alarms, and so the data
    capture(tmp_path, b, f"--atol={ATOL}", "--against", a / ".ciwrap.tree")
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 0
    fine = document["checks"][0]["variables"]
    assert {one["evidence"] for one in fine if one["name"] == "phi"} == {"residues"}
    assert document["checks"][0]["bytes_read"] < 64 * 1024


def test_one_side_only_is_named(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    shutil.rmtree(b / "iter_0020" / "rank_1")
    path_of(b, 5, 0, "x").rename(path_of(b, 5, 0, "y"))
    for captured in (False, True):
        if captured:
            for run in runs:
                capture(tmp_path, run)
        code, document = ciwrap(tmp_path, "compare", a, b)
        check = document["checks"][0]
        assert code == 3
        assert [(v["iteration"], v["rank"], v["name"]) for v in check["missing_variables"]] == [
            (5, 0, "x"),
            (20, 1, "phi"),
            (20, 1, "x"),
        ]
        assert [v["name"] for v in check["extra_variables"]] == ["y"]


def test_a_truncated_file_is_not_a_match(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    path = path_of(b, 10, 0, "x")
    path.write_bytes(path.read_bytes()[:-4])
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 3
    assert any("truncated" in one["text"] for one in document["checks"][0]["messages"])


def test_usage(tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = runs
    capture(tmp_path, a, f"--atol={ATOL}")
    assert run_cli(["capture", str(b), "--against", str(a / ".ciwrap.tree")]) == 2
    assert "--residues" in capsys.readouterr().err
    assert run_cli(["capture", str(tmp_path / "nothing")]) == 3
    assert run_cli(["compare", str(a), str(b), "--memory", "12X"]) == 2
    file = path_of(a, 5, 0, "x")
    assert run_cli(["compare", str(file), str(file), "--no-captures"]) == 2
    assert run_cli(["capture", str(file)]) == 2


def test_iterations_in_paths_against_iterations_in_files(tmp_path: Path) -> None:
    """Two layouts of one run are paired by variable."""
    h5py = pytest.importorskip("h5py")
    a, b = write_run(tmp_path / "A"), tmp_path / "B"
    b.mkdir()
    for rank in RANKS:
        with h5py.File(b / f"rank_{rank}.h5", "w") as file:
            for iteration in ITERATIONS:
                for name in NAMES:
                    file[f"step_{iteration}/{name}"] = np.load(path_of(a, iteration, rank, name))
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 0, document["checks"][0]["messages"]
    assert len(document["checks"][0]["variables"]) == 12
    change(path_of(a, 10, 1, "x"), (3, 4), (39, 49), by=0.5)
    code, _ = ciwrap(tmp_path, "compare", a, b, "--list", tmp_path / "list.csv")
    assert code == 1
    rows = (tmp_path / "list.csv").read_text().splitlines()[1:]
    assert [row.split(",")[:4] for row in rows] == [
        ["10", "1", "x", "3 4"],
        ["10", "1", "x", "39 49"],
    ]


@pytest.mark.parametrize("captured", [False, True])
def test_compressed_files_are_compared_chunk_by_suspect_chunk(
    tmp_path: Path, captured: bool
) -> None:
    """What no stretch of a file holds is read through its reader, and no more of it than needed."""
    h5py = pytest.importorskip("h5py")
    for run in ("A", "B"):
        for iteration in ITERATIONS:
            folder = tmp_path / run / f"iter_{iteration}"
            folder.mkdir(parents=True)
            array = np.random.default_rng(iteration).normal(size=(100, 400))
            if run == "B" and iteration == 20:
                array[7, 9] += 1
            with h5py.File(folder / "state.h5", "w") as file:
                file.create_dataset("x", data=array, chunks=(10, 400), compression="gzip")
        if captured:
            capture(tmp_path, tmp_path / run, f"--atol={ATOL}")
    target = tmp_path / "all.csv"
    code, document = ciwrap(
        tmp_path, "compare", tmp_path / "A", tmp_path / "B", f"--atol={ATOL}", "--list", target
    )
    assert code == 1
    first = document["checks"][0]["first_divergence"]
    assert (first["iteration"], first["element"]["index"]) == (20, [7, 9])
    assert len(target.read_text().splitlines()) == 2
    by_captures = document["checks"][0]["history"].get("by_captures", 0)
    assert by_captures == (2 if captured else 0)


@pytest.mark.parametrize("width", [999, 20_000])
def test_texts_of_any_width(tmp_path: Path, width: int) -> None:
    """An odd width, and one of which few would fit in a buffer of the stream."""
    for run in ("A", "B"):
        folder = tmp_path / run / "iter_1"
        folder.mkdir(parents=True)
        names = np.full((2 << 20) // width, "abc", dtype=f"<U{width}" if width > 999 else "S999")
        if run == "B":
            names[7] = "abd"
        np.save(folder / "names.npy", names)
    code, document = ciwrap(tmp_path, "compare", tmp_path / "A", tmp_path / "B", "--memory=1M")
    assert code == 1
    (one,) = document["checks"][0]["variables"]
    assert (one["differing_count"], one["first_index"]) == (1, [7])
    file = "iter_1/names.npy"
    code, document = ciwrap(tmp_path, "compare", tmp_path / "A" / file, tmp_path / "B" / file)
    assert (code, document["checks"][0]["variables"][0]["first_index"]) == (1, [7])
