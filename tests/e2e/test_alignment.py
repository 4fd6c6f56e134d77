"""Rows by id and frames by iteration, through the command line.

Each case is laid out as a real program writes it; what must be found is known beforehand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from e2e.paired_runs import ATOL, BOX, particles, save_ranks, shuffled, wrapped


def test_shuffled_rows(case: Any) -> None:
    it = case("    align_by: id\n")
    rows = particles(1)
    other = shuffled(rows, 2)
    for name in rows:
        it.save("a", f"{name}.npy", rows[name])
        it.save("b", f"{name}.npy", other[name])
    found = it.compare(0)
    assert set(found) == set(rows)
    assert all(one["aligned_by"] == "id" for one in found.values())

    # One particle is moved; it stands in another row of every file.
    at = int(np.flatnonzero(other["id"] == 700)[0])
    other["x"][at, 1] += 0.5
    it.save("b", "x.npy", other["x"])
    found = it.compare(1)
    assert found["x"]["differing_count"] == 1
    assert found["x"]["first_index"] == [100, 1]  # the 101st id in order is 700
    assert [one["verdict"] for name, one in found.items() if name != "x"] == ["match"] * 3


def test_without_alignment_the_same_runs_differ(case: Any) -> None:
    it = case("")
    rows = particles(1)
    for name, array in rows.items():
        it.save("a", f"{name}.npy", array)
        it.save("b", f"{name}.npy", shuffled(rows, 2)[name])
    assert it.compare(1)["x"]["verdict"] == "differ"


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_migrated_rows_and_other_rank_counts(case: Any, ranks: int) -> None:
    it = case(
        "    align_by: id\n    across_ranks: true\n"
        "    variables: {x: {atol: 1e-3, period: [10, 10, 10]}}\n"
    )
    rows = particles(3)
    save_ranks(it, "a", rows, 2)
    moved = shuffled(rows, 4)
    moved["x"] = (moved["x"] + 1e-4 * np.random.default_rng(5).normal(size=(500, 3))) % BOX
    save_ranks(it, "b", moved, ranks)
    found = it.compare(0)
    assert set(found) == {f"5 / {name}" for name in rows}
    assert found["5 / x"]["element_count"] == 1500

    moved["x"][moved["id"] == 70] += [0, 0, 2 * ATOL]
    save_ranks(it, "b", moved, ranks)
    found = it.compare(1)
    truth = wrapped(rows["x"][np.argsort(rows["id"])], moved["x"][np.argsort(moved["id"])])
    assert found["5 / x"]["differing_count"] == int((truth > ATOL).sum()) > 0
    first = np.argwhere(truth > ATOL)[0].tolist()
    assert found["5 / x"]["first_index"] == first


def test_a_mask_that_one_rank_lacks(case: Any) -> None:
    it = case("    align_by: id\n    across_ranks: true\n    variables: {x: {mask: land}}\n")
    for run in "ab":
        for rank in range(2):
            it.save(run, f"rank_{rank}/id.npy", np.arange(3) + 3 * rank)
            it.save(run, f"rank_{rank}/x.npy", np.arange(3.0))
        it.save(run, "rank_0/land.npy", np.zeros(3, bool))
    found = it.compare(3)
    assert "mask 'land' is not among the outputs of rank 1" in found["x"]["reason"]
    for run in "ab":
        it.save(run, "rank_1/land.npy", np.ones(3, bool))
    assert it.compare(0)["x"]["masked_count"] == 3


def test_a_lost_row_is_never_a_match(case: Any) -> None:
    it = case("    align_by: id\n")
    rows = particles(1)
    for name, array in rows.items():
        it.save("a", f"{name}.npy", array)
        it.save("b", f"{name}.npy", array[rows["id"] != 21])
    found = it.compare(3)
    assert "1 only in A (21)" in found["x"]["reason"]
    assert all(one["verdict"] == "not_comparable" for one in found.values())


def test_ids_that_come_twice(case: Any) -> None:
    table = {"step": np.array([0, 10, 20, 20, 30]), "energy": np.array([1.0, 2.0, 3.0, 3.5, 4.0])}
    plain = {"step": np.array([0, 10, 20, 30]), "energy": np.array([1.0, 2.0, 3.5, 4.0])}
    for keys, code, words in (
        ("    align_by: step\n", 3, "comes more than once"),
        ("    align_by: step\n    duplicates: last\n", 0, None),
        ("    align_by: step\n    duplicates: first\n", 1, None),
    ):
        it = case(keys)
        for name in table:
            it.save("a", f"{name}.npy", plain[name])
            it.save("b", f"{name}.npy", table[name])
        found = it.compare(code)
        assert words is None or words in found["energy"]["reason"]
        left_out = [text for text in it.messages if "come more than once in 'step'" in text]
        assert len(left_out) == (words is None)
        if code == 1:
            assert found["energy"]["first_index"] == [2]
    it.accept("a")
    it.use("b")
    it.check(1)
    assert len([text for text in it.messages if "but for the first one of each" in text]) == 1


def test_rows_that_are_not_those_of_the_ids(case: Any) -> None:
    it = case("    align_by: id\n")
    for run_name in "ab":
        it.save(run_name, "id.npy", np.arange(5))
        it.save(run_name, "x.npy", np.zeros(5))
        it.save(run_name, "total.npy", np.zeros(4))
        it.save(run_name, "time.npy", np.float64(3))
    found = it.compare(3)
    assert "has shape (4,), but 'id' has 5 rows" in found["total"]["reason"]
    assert found["time"]["verdict"] == "match"  # a single number has no rows
    it = case("    align_by: id\n    variables: {total: {align_by: none}}\n")
    assert {one["verdict"] for one in it.compare(0).values()} == {"match"}


def test_a_missing_id_variable(case: Any) -> None:
    it = case("    align_by: id\n")
    for run_name in "ab":
        it.save(run_name, "x.npy", np.zeros(5))
    assert "'id' is not among the outputs" in it.compare(3)["x"]["reason"]


def test_goldens_of_aligned_rows(case: Any) -> None:
    for evidence in ("data", "residues", "tree"):
        it = case(f"    align_by: id\n    across_ranks: true\n    evidence: {evidence}\n")
        rows = particles(6)
        save_ranks(it, "a", rows, 2)
        save_ranks(it, "b", shuffled(rows, 7), 3)
        it.accept("a")
        it.use("b")
        assert {one["verdict"] for one in it.check(0).values()} == {"match"}

        changed = shuffled(rows, 8)
        changed["mass"][changed["id"] == 7 * 13] += 1
        save_ranks(it, "c", changed, 2)
        it.use("c")
        found = it.check(1)
        assert {n for n, one in found.items() if one["verdict"] != "match"} == {"5 / mass"}
        if evidence == "data":
            assert found["5 / mass"]["first_index"] == [13]

        changed["id"][changed["id"] == 7 * 20] = 3
        save_ranks(it, "d", changed, 2)
        it.use("d")
        found = it.check(3)
        assert found["5 / id"]["verdict"] == "differ"
        assert found["5 / x"]["verdict"] == "not_comparable"
        assert "cannot be paired by 'id'" in found["5 / x"]["reason"]
        if evidence == "data":
            assert "1 only in the golden (140)" in found["5 / x"]["reason"]


@pytest.mark.parametrize("evidence", ["data", "tree"])
def test_ids_that_mean_missing_are_told_apart(case: Any, evidence: str) -> None:
    """To a tree all fill values are one; rows of other ids are other rows."""
    it = case(f"    align_by: id\n    evidence: {evidence}\n    fill_values: [3, 8]\n")
    for run_name, last in (("a", 3), ("b", 8)):
        it.save(run_name, "id.npy", np.array([last, 1, 2]))
        it.save(run_name, "x.npy", np.array([0.5, 1.5, 2.5]))
    it.accept("a")
    assert it.check(0 if evidence == "data" else 3)["id"]["verdict"] == "match"
    it.use("b")
    assert "cannot be paired by 'id'" in it.check(3)["x"]["reason"]
    for run_name in "ab":
        it.save(run_name, "id.npy", np.array([5, 1, 2]))
    it.accept("a")
    it.use("b")
    assert it.check(0)["x"]["verdict"] == "match"


def test_a_golden_made_without_alignment(case: Any) -> None:
    it = case("")
    rows = particles(6)
    for name, array in rows.items():
        it.save("a", f"{name}.npy", array)
    it.accept("a")
    case("    align_by: id\n")
    assert "made without 'align_by'" in it.check(3)["x"]["reason"]


def test_one_frame_only(case: Any) -> None:
    """Different in the middle, equal again afterwards: a look at the end tells a wrong story."""
    it = case("")
    for step in range(8):
        field = np.full((20, 20), float(step))
        it.save("a", f"iter_{step}/rank_0/p.npy", field)
        if step == 5:
            field[3, 4] += 1
        it.save("b", f"iter_{step}/rank_0/p.npy", field)
    found = it.compare(1)
    assert [n for n, one in found.items() if one["verdict"] != "match"] == ["5 / 0 / p"]
    assert found["5 / 0 / p"]["first_index"] == [3, 4]


def test_a_restart_writes_its_first_iteration_again(case: Any) -> None:
    """part1 ends with iteration 2, part2 begins with it, and the copies are not the same."""
    layout = "    layout: iter_{iteration:d}/{name}.npy\n"
    for duplicates, code in (("error", 3), ("last", 0), ("first", 1)):
        it = case(f"{layout}    duplicates: {duplicates}\n")
        for step in range(4):
            it.save("a", f"iter_{step}/x.npy", np.full(10, float(step)))
            it.save("b", f"part{1 + step // 2}/iter_{step}/x.npy", np.full(10, float(step)))
        it.save("b", "part1/iter_2/x.npy", np.full(10, 2.5))
        found = it.compare(code)
        if code == 3:
            assert any("is also in" in text for text in it.messages)
        else:
            assert any("written more than once" in text for text in it.messages)
        if code == 1:
            assert [n for n, one in found.items() if one["verdict"] == "differ"] == ["2 / x"]


def test_structured_and_complex_rows(case: Any) -> None:
    it = case("    align_by: p.id\n")
    rows = np.zeros(50, [("id", "<i4"), ("z", "<c16"), ("v", "<f4", (3,))])
    draw = np.random.default_rng(2)
    rows["id"] = draw.permutation(50)
    rows["z"] = draw.normal(size=50) + 1j * draw.normal(size=50)
    rows["v"] = draw.normal(size=(50, 3))
    other = rows[draw.permutation(50)]
    it.save("a", "p.npy", rows)
    it.save("b", "p.npy", other)
    assert set(it.compare(0)) == {"p.id", "p.z", "p.v"}
    other["z"][other["id"] == 9] += 1j
    it.save("b", "p.npy", other)
    assert it.compare(1)["p.z"]["first_index"] == [9]
