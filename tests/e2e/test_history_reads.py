"""How much is read of two runs: no more than may differ, and as much as the result says."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from e2e.history_runs import ATOL, ITERATIONS, RANKS, capture, ciwrap, path_of, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

CHUNK_BYTES = 512
# Of each checkpoint 2,000 numbers of 8 bytes and 2,000 of 4.
RUN_BYTES = len(ITERATIONS) * len(RANKS) * 2000 * 12


def compared(tmp_path: Path, verdict: str, *more: str) -> dict[str, Any]:
    sides = (tmp_path / "A", tmp_path / "B")
    _, document = ciwrap(tmp_path, "compare", *sides, f"--atol={ATOL}", *more)
    (check,) = document["checks"]
    assert check["verdict"] == verdict
    found: dict[str, Any] = check
    return found


def tree_bytes(tmp_path: Path, *runs: str) -> int:
    return sum((tmp_path / run / ".ciwrap.tree").stat().st_size for run in runs)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    write_run(tmp_path / "A")
    shutil.copytree(tmp_path / "A", tmp_path / "B")
    return tmp_path


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Two runs of two variables that are compressed, so that the core does not read them."""
    x = np.random.default_rng(1).normal(size=2000)
    for run in "AB":
        (tmp_path / run).mkdir()
        write_packed(tmp_path / run, x, np.arange(300.0))
    return tmp_path


def write_packed(run: Path, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    with h5py.File(run / "iter_1.h5", "w") as file:
        for name, values in (("x", x), ("y", y)):
            file.create_dataset(name, data=values, chunks=(100,), compression="gzip")


def test_without_captures_both_sides_are_read_once(pair: Path) -> None:
    found = compared(pair, "match")
    assert found["bytes_read"] == 2 * RUN_BYTES
    assert "engine" not in found  # such small files are read as they are opened


def test_of_a_captured_run_its_trees_are_read_and_of_the_other_one_its_data(pair: Path) -> None:
    for run, other in (("A", "B"), ("B", "A")):
        capture(pair, pair / run, f"--atol={ATOL}")
        found = compared(pair, "match")
        assert 0 < found["bytes_read"] - RUN_BYTES <= tree_bytes(pair, run)
        assert found["engine"]
        (pair / run / ".ciwrap.tree").rename(pair / f"of-{run}.tree")
        assert not (pair / other / ".ciwrap.tree").exists()


def test_of_two_captured_runs_that_are_equal_no_data_are_read(pair: Path) -> None:
    for run in "AB":
        capture(pair, pair / run, f"--atol={ATOL}")
    found = compared(pair, "match")
    assert 0 < found["bytes_read"] < tree_bytes(pair, "A", "B") / 2
    assert "engine" not in found


@pytest.mark.parametrize("run", ["A", "B"])
def test_one_suspect_chunk_is_read_and_no_other(pair: Path, run: str) -> None:
    """An element moved by less than its bound, into another cell."""
    path = path_of(pair / run, 10, 1, "phi")
    values = np.load(path)
    values[7, 7] += 0.9 * ATOL
    np.save(path, values)
    for one in "AB":
        capture(pair, pair / one, f"--atol={ATOL}")
    found = compared(pair, "match")
    # What lies between two chunks may be read with them.
    assert found["bytes_read"] > 2 * CHUNK_BYTES
    assert found["bytes_read"] < tree_bytes(pair, "A", "B") + 20 * CHUNK_BYTES
    (moved,) = (one for one in found["variables"] if one["evidence"] == "data")
    assert (moved["iteration"], moved["rank"], moved["name"]) == (10, 1, "phi")
    assert (moved["suspect_chunks"], moved["chunk_count"]) == (1, 32)


def test_of_compressed_files_as_much_is_counted_as_was_compared(packed: Path) -> None:
    whole = (2000 + 300) * 8
    assert compared(packed, "match")["bytes_read"] == 2 * whole
    for run in "AB":
        capture(packed, packed / run, f"--atol={ATOL}")
    equal = compared(packed, "match")["bytes_read"]
    x = np.random.default_rng(1).normal(size=2000)
    x[700] -= 0.9 * ATOL  # into another cell
    write_packed(packed / "B", x, np.arange(300.0))
    capture(packed, packed / "B", f"--atol={ATOL}")
    # The rest are digests, 16 bytes each, of 32 chunks and of the nodes above them.
    beyond = compared(packed, "match")["bytes_read"] - equal
    assert 2 * CHUNK_BYTES <= beyond <= 2 * CHUNK_BYTES + 2 * 16 * 64


def test_variables_with_masks_count_with_all_of_both_sides(packed: Path) -> None:
    for run in "AB":
        with h5py.File(packed / run / "iter_1.h5", "a") as file:
            file["wet"] = np.arange(2000) % 3 > 0
    config = packed / "ciwrap.yaml"
    config.write_text(
        f"checks: {{c: {{outputs: A, atol: {ATOL}, variables: {{x: {{mask: wet}}}}}}}}\n"
    )
    found = compared(packed, "match", "--config", str(config), "--check", "c")
    assert found["bytes_read"] == 2 * ((2000 + 300) * 8 + 2000)
