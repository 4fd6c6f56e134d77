"""Which side is which, where one run's capture is compared with the other run's data."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.history_runs import ATOL, ITERATIONS, RANKS, capture, change, ciwrap, path_of, write_run

from ciwrap.runs.capture_file import CaptureFile
from ciwrap.runs.capture_index import read_checkpoint, read_index
from ciwrap.runs.questions import TreeStage

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.runs.questions import Pair

BOUND = f"--atol={ATOL}"
CHANGED = (ITERATIONS[0], RANKS[0], "phi")


def add_noise(run: Path, share: float, *, name: str = "phi") -> None:
    rng = np.random.default_rng(7)
    for iteration in ITERATIONS:
        for rank in RANKS:
            path = path_of(run, iteration, rank, name)
            values = np.load(path)
            np.save(path, values + rng.choice([-1, 1], values.shape) * share * ATOL)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """phi differs in one element, and is a little off everywhere else."""
    write_run(tmp_path / "A")
    shutil.copytree(tmp_path / "A", tmp_path / "B")
    add_noise(tmp_path / "B", 0.25)
    change(path_of(tmp_path / "B", *CHANGED), (3, 4), by=7.0)
    return tmp_path


def lose_data(run: Path) -> None:
    """Its capture stays."""
    for folder in run.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)


def compared(pair: Path, a: str, b: str, code: int) -> dict[tuple[int, int, str], Any]:
    found, document = ciwrap(pair, "compare", pair / a, pair / b, BOUND)
    assert found == code, document
    (check,) = document["checks"]
    return {(one["iteration"], one["rank"], one["name"]): one for one in check["variables"]}


def roots(found: dict[tuple[int, int, str], Any]) -> dict[Any, tuple[str, str]]:
    return {key: (one["golden_root"], one["root"]) for key, one in found.items()}


@pytest.mark.parametrize("more", [(), ("--residues",)])
def test_roots_are_those_of_their_sides(pair: Path, more: tuple[str, ...]) -> None:
    for run in ("A", "B"):
        capture(pair, pair / run, BOUND)
    both = roots(compared(pair, "A", "B", 1))
    turned = roots(compared(pair, "B", "A", 1))
    assert turned == {key: (new, golden) for key, (golden, new) in both.items()}
    golden, new = both[CHANGED]
    assert golden != new
    for run, other in (("A", "B"), ("B", "A")):
        capture(pair, pair / run, BOUND, *more, "--rebuild")
        (pair / other / ".ciwrap.tree").unlink()
        found = roots(compared(pair, "A", "B", 1))
        if not more:
            assert found == both
        else:  # trees with residues have roots of their own
            golden, new = found[CHANGED]
            assert golden != new
        capture(pair, pair / other, BOUND)


@pytest.mark.parametrize("lost", ["A", "B"])
@pytest.mark.parametrize("both", [False, True])
def test_residues_of_either_side_settle_what_noise_leaves_open(
    pair: Path, lost: str, both: bool
) -> None:
    """both: whether the run that has its data has plain trees as well, which are tried first."""
    other = {"A": "B", "B": "A"}[lost]
    capture(pair, pair / lost, BOUND, "--residues")
    if both:
        capture(pair, pair / other, BOUND)
    lose_data(pair / lost)
    found = compared(pair, "A", "B", 1)
    bad = {key for key, one in found.items() if one["verdict"] != "match"}
    assert bad == {CHANGED}
    change(path_of(pair / other, *CHANGED), (3, 4), by=7.0 if other == "A" else -7.0)
    if both:
        capture(pair, pair / other, BOUND)
    found = compared(pair, "A", "B", 0)
    for key, one in found.items():
        assert one["golden_root"] == one["root"], key  # compared with residues, noise makes none
        assert (one.get("max_drift_share") or 0) <= 0.5, key


def test_one_tree_cannot_tell_noise_from_a_change(pair: Path) -> None:
    """Of a run without data and without residues: what differs in it is not known."""
    capture(pair, pair / "B", BOUND)
    lose_data(pair / "B")
    found = compared(pair, "A", "B", 3)
    assert {one["verdict"] for key, one in found.items() if key[2] == "x"} == {"match"}
    assert "match" not in {one["verdict"] for key, one in found.items() if key[2] == "phi"}


@pytest.fixture
def other_chunks(pair: Path) -> Path:
    """A without data; B without data, and A once more with its data, with larger chunks."""
    shutil.copytree(pair / "A", pair / "whole")
    capture(pair, pair / "A", BOUND)
    for run in ("B", "whole"):
        capture(pair, pair / run, BOUND, "--chunk-bytes=2048")
    for run in ("A", "B"):
        lose_data(pair / run)
    return pair


def test_chunks_of_another_size_are_told_with_the_capture(other_chunks: Path) -> None:
    for one in compared(other_chunks, "A", "B", 3).values():
        reason = one["reason"]
        assert "was made with blocks of 512 bytes, and the other side otherwise" in reason
        assert str(other_chunks / "A" / ".ciwrap.tree") in reason
        assert "residues" not in reason


def test_a_tree_like_the_other_one_is_made_where_there_are_data(other_chunks: Path) -> None:
    found = compared(other_chunks, "A", "whole", 0)
    assert {one["evidence"] for one in found.values()} == {"tree"}


def test_captures_with_other_chunks_hide_nothing_where_there_are_data(pair: Path) -> None:
    """Neither tree is compared with the other one: all is read."""
    capture(pair, pair / "A", BOUND)
    capture(pair, pair / "B", BOUND, "--chunk-bytes=2048")
    found = compared(pair, "A", "B", 1)
    assert {key for key, one in found.items() if one["verdict"] != "match"} == {CHANGED}
    assert len(found) == len(ITERATIONS) * len(RANKS) * 2
    assert {one["evidence"] for one in found.values()} == {"data"}


@pytest.mark.parametrize("lost", ["A", "B"])
def test_damaged_digests_of_a_run_without_data_decide_nothing(pair: Path, lost: str) -> None:
    """The other run has its data, and a capture; root and digests of the one do not fit."""
    for run in ("A", "B"):
        capture(pair, pair / run, BOUND)
    lose_data(pair / lost)
    path = pair / lost / ".ciwrap.tree"
    with CaptureFile(path) as opened:
        directory = read_index(opened).checkpoints[ITERATIONS[0], RANKS[0]]
        found = read_checkpoint(opened, directory).variables
        (phi,) = (one for one in found if one.identity.name == "phi")
    assert phi.plain is not None
    damaged = bytearray(path.read_bytes())
    damaged[phi.plain.digests.offset] ^= 1
    path.write_bytes(damaged)
    one = compared(pair, "A", "B", 3)[CHANGED]
    assert one["verdict"] == "not_comparable"


@pytest.mark.parametrize("captured", [False, True])
def test_what_nobody_compares_is_no_match(
    pair: Path, captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever defect of ours it is that loses a variable on its way."""
    if captured:
        for run in ("A", "B"):
            capture(pair, pair / run, BOUND)

    def forget(trees: TreeStage, one: Pair) -> None:
        if one.result.id.name == "x":
            compare(trees, one)

    compare = TreeStage.compare
    monkeypatch.setattr(TreeStage, "compare", forget)
    found = compared(pair, "A", "B", 3)
    assert {one["verdict"] for key, one in found.items() if key[2] == "x"} == {"match"}
    lost = [one for key, one in found.items() if key[2] == "phi"]
    assert len(lost) == len(ITERATIONS) * len(RANKS)
    assert {one["verdict"] for one in lost} == {"not_comparable"}
    assert all("a defect of ciwrap" in one["reason"] for one in lost)


def test_what_matches_by_trees_is_told_with_the_file_it_lies_in(pair: Path) -> None:
    """Of files that nobody opened."""
    for run in ("A", "B"):
        capture(pair, pair / run, BOUND)
    found = compared(pair, "A", "B", 1)
    for (iteration, rank, name), one in found.items():
        assert one["source_path"] == str(path_of(pair / "B", iteration, rank, name))
    assert sum(one["verdict"] == "match" for one in found.values()) > 2


def test_why_a_capture_is_passed_over_is_told_of_each_run(pair: Path) -> None:
    """The files of one run changed; the index of the other one is damaged for a checkpoint."""
    for run in ("A", "B"):
        capture(pair, pair / run, BOUND)
    before = path_of(pair / "A", ITERATIONS[0], RANKS[0], "phi")
    np.save(before, np.append(np.load(before), 0.0))
    with CaptureFile(pair / "B/.ciwrap.tree") as opened:
        section = read_index(opened).checkpoints[ITERATIONS[1], RANKS[0]].section
    data = bytearray((pair / "B/.ciwrap.tree").read_bytes())
    data[section.offset + 8] ^= 0xFF
    (pair / "B/.ciwrap.tree").write_bytes(data)
    found, document = ciwrap(pair, "compare", pair / "A", pair / "B", BOUND)
    assert found == 3  # another shape
    told = " ".join(one["text"] for one in document["checks"][0]["messages"])
    size = before.stat().st_size
    assert f"phi.npy had {size - 8} bytes, now {size}" in told
    assert f"the section at byte {section.offset} is damaged" in told
