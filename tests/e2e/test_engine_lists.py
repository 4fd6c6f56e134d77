"""Lists of differences of units: each belongs to the comparison that it lies there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.engine_runs import array_of, compared, units_begun, write_runs

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "iteration,rank,variable,index,golden,new,difference,id\n"


def rows_of(folder: Path) -> list[str]:
    """The rows of all lists of units, in any order."""
    found = [path.read_text().splitlines() for path in folder.glob("some.*.csv")]
    return sorted(row for lines in found for row in lines[1:])


def rows_of_one(folder: Path) -> list[str]:
    """The rows of a comparison by one process, without a journal."""
    assert compared(folder, "here", "--list=all.csv")[0] == 1
    return sorted((folder / "all.csv").read_text().splitlines()[1:])


@pytest.mark.parametrize("engine", ["here", "process"])
def test_units_that_move_keep_their_lists(tmp_path: Path, engine: str) -> None:
    """A checkpoint that comes first moves all others on by a unit, and so the names of lists."""
    write_runs(tmp_path, unit_bytes=1)
    for run in "AB":
        (tmp_path / run / "iter_0").rename(tmp_path / f"{run}-later")
    words = (engine, "--list=some.csv", "--journal=j.jsonl")
    assert compared(tmp_path, *words)[0] == 1
    for run in "AB":
        (tmp_path / f"{run}-later").rename(tmp_path / run / "iter_0")
    np.save(tmp_path / "B/iter_0/rank_0/x.npy", array_of(0, 0) + 1)
    assert compared(tmp_path, *words, "--resume")[0] == 1
    assert rows_of(tmp_path) == rows_of_one(tmp_path)
    count = len(units_begun(tmp_path))
    assert compared(tmp_path, *words, "--resume")[0] == 1
    assert len(units_begun(tmp_path)) == count, "nothing is left to do"


def test_lists_that_another_comparison_wrote_meanwhile(tmp_path: Path) -> None:
    write_runs(tmp_path)
    words = ("here", "--list=some.csv", "--journal=j.jsonl")
    assert compared(tmp_path, *words)[0] == 1
    rows = rows_of(tmp_path)
    for path in tmp_path.glob("some.*.csv"):
        path.write_text(HEADER + "0,0,other,0,1,2,1,\n")
    assert compared(tmp_path, *words, "--resume")[0] == 1
    assert rows_of(tmp_path) == rows


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_lists_of_an_earlier_comparison_are_replaced(tmp_path: Path, suffix: str) -> None:
    """What looks like a list of this comparison is one of it; no other file is touched."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    write_runs(tmp_path, unit_bytes=1)
    assert compared(tmp_path, "here", f"--list=some.{suffix}")[0] == 1
    several = ("here", f"--list=some.{suffix}", "--executor=process")
    assert compared(tmp_path, *several)[0] == 1
    assert not (tmp_path / f"some.{suffix}").exists(), "the earlier comparison's"
    assert len(list(tmp_path.glob(f"some.*.{suffix}"))) == 20
    others = [tmp_path / f"some.{name}.{suffix}" for name in ("99", "mine", "3-x")]
    for path in others:
        path.write_text("mine\n")
    (tmp_path / f"some.77.{suffix}").mkdir()
    (tmp_path / "unit-bytes").write_text("100000")
    assert compared(tmp_path, *several)[0] == 1
    left = {path.name for path in tmp_path.glob(f"some.*{suffix}")}
    kept = {f"some.{name}.{suffix}" for name in (*range(5), "99", "mine", "3-x", "77")}
    assert left == kept
    assert compared(tmp_path, "here", f"--list=some.{suffix}")[0] == 1
    left = {path.name for path in tmp_path.glob(f"some*{suffix}")}
    assert left == {f"some.{name}{suffix}" for name in ("", "99.", "mine.", "3-x.", "77.")}
    assert all(path.read_text() == "mine\n" for path in others)


def test_a_unit_that_is_taken_apart_is_listed_once(tmp_path: Path) -> None:
    """Its first worker left a list and died before it answered."""
    write_runs(tmp_path)
    (tmp_path / "some.3.csv").write_text(HEADER + "0,0,x,0,1,2,1,\n")
    (tmp_path / "die-at-3").touch()
    (tmp_path / "poison-7-1").touch()
    code, document, text = compared(tmp_path, "process", "--list=some.csv")
    assert code == 3, text
    listed = {
        (one["iteration"], one["rank"])
        for one in document["checks"][0]["variables"]
        if one["verdict"] == "differ"
    }
    rows = [row.split(",")[:2] for row in rows_of(tmp_path)]
    assert sorted(map(tuple, rows)) == sorted((str(i), str(r)) for i, r in listed)


def test_a_former_list_that_stays_keeps_no_result_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runs(tmp_path)
    former = tmp_path / "some.99.csv"
    former.write_text(HEADER)

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self.name == former.name:
            raise PermissionError(1, "Operation not permitted", str(self))
        unlink(self, missing_ok=missing_ok)

    unlink = type(former).unlink
    monkeypatch.setattr(type(former), "unlink", refuse)
    code, document, text = compared(tmp_path, "here", "--list=some.csv")
    assert code == 3
    assert document["exit_code"] == 3
    assert text.startswith("DIFFER")
    assert "some.99.csv: a list of an earlier comparison cannot be removed: Operation" in text


@pytest.mark.parametrize("more", [(), ("--journal=j.jsonl",)])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_parts_of_a_packed_variable_are_listed_once(
    tmp_path: Path, suffix: str, more: tuple[str, ...]
) -> None:
    """No stream reads it: each part lists what differs in its own chunks, and no part the rest."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    changed = [5, 50_000, 150_000]
    for run in "AB":
        (tmp_path / run).mkdir()
        array = np.random.default_rng(1).normal(size=200_000)
        array[changed] += run == "B"
        np.savez_compressed(tmp_path / run / "packed.npz", u=array)
    (tmp_path / "part-bytes").write_text("500000")
    assert compared(tmp_path, "here", f"--list=some.{suffix}", *more)[0] == 1
    assert len(units_begun(tmp_path)) == 3 + 1
    found = []
    for path in tmp_path.glob(f"some*.{suffix}"):
        if suffix == "csv":
            rows = path.read_text().splitlines()[1:]
            found += [int(row.split(",")[3]) for row in rows]
        else:
            read = pytest.importorskip("pyarrow.parquet").read_table(path)
            found += [index for (index,) in read["index"].to_pylist()]
    assert sorted(found) == changed
