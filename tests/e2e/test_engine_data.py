"""What engines compare beside plain checkpoints: parts of large files, aligned rows, lists."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from command_line import call
from e2e.cli_project import environment
from e2e.engine_runs import ITERATIONS, comparable, compared, units_begun, write_runs

if TYPE_CHECKING:
    from pathlib import Path

SEED = 20261122


@pytest.mark.parametrize("engine", ["here", "process"])
def test_parts_of_a_large_file(tmp_path: Path, engine: str) -> None:
    """All is as if the file were compared at once; sums of parts are rounded in other places."""
    draw = np.random.default_rng(SEED)
    large = draw.normal(size=(300, 1000))
    other = large.copy()
    other[::7, 3] += 1
    other[299, 999] = np.nan
    for run, array in (("A", large), ("B", other)):
        (tmp_path / run).mkdir()
        np.save(tmp_path / run / "large.npy", array)
        np.save(tmp_path / run / "small.npy", array[:3])
        np.savez(tmp_path / run / "packed.npz", u=array, v=array[0])
    whole = compared(tmp_path, "here", "--atol=0.5")
    (tmp_path / "part-bytes").write_text("500000")
    cut = compared(tmp_path, engine, "--atol=0.5")
    assert whole[0] == cut[0] == 1
    assert comparable(compared(tmp_path, "here", "--atol=0.5")[1]) == comparable(cut[1])
    assert len(units_begun(tmp_path)) == 1 + 2 * 5
    both = [
        {one["name"]: one for one in document["checks"][0]["variables"]}
        for document in (whole[1], cut[1])
    ]
    assert both[0].keys() == both[1].keys() == {"large", "small", "packed/u", "packed/v"}
    for name, one in both[0].items():
        two = both[1][name]
        if name in ("large", "packed/u"):
            assert one["differing_count"] == 44, "of the oracle"
            difference = np.abs(other - large)[np.isfinite(other)]
            relative = (np.abs(other - large) / np.abs(large))[np.isfinite(other)]
            for mean, expected in (
                ("mean_abs_difference", difference.mean()),
                ("mean_rel_difference", relative.mean()),
            ):
                assert one.pop(mean) == pytest.approx(expected, rel=1e-12)
                assert two.pop(mean) == pytest.approx(expected, rel=1e-12)
        for drawn in ("details", "differing_box", "pattern", "pattern_value"):
            one.pop(drawn, None)
            two.pop(drawn, None)
        assert one == two


def test_a_lost_part_leaves_no_match(tmp_path: Path) -> None:
    for run in "AB":
        (tmp_path / run).mkdir()
        np.save(tmp_path / run / "large.npy", np.arange(300_000.0))
    (tmp_path / "part-bytes").write_text("500000")
    (tmp_path / "slow").write_text("0.5")
    (tmp_path / "die-at-2").touch()
    assert compared(tmp_path, "here", "--journal=j.jsonl")[0] == -signal.SIGKILL
    code, document, text = compared(tmp_path, "here", "--journal=j.jsonl", "--resume")
    assert code == 0, text
    code, document, text = compared(tmp_path, "process", "--silence=0.1")
    assert code == 3, text
    assert document["checks"], text
    assert document["checks"][0]["variables"] == []


def test_a_large_file_of_one_run_alone_counts_once(tmp_path: Path) -> None:
    for run in "AB":
        (tmp_path / run / "iter_1").mkdir(parents=True)
        np.save(tmp_path / run / "iter_1/x.npy", np.arange(3.0))
    (tmp_path / "A/iter_2").mkdir()
    np.save(tmp_path / "A/iter_2/x.npy", np.arange(300_000.0))
    (tmp_path / "part-bytes").write_text("500000")
    (tmp_path / "unit-bytes").write_text("500000")
    code, document, text = compared(tmp_path, "here")
    assert code == 3, text
    coverage = document["checks"][0]["coverage"]
    assert (coverage["missing"], coverage["compared_variables"]) == (1, 1)


@pytest.mark.parametrize("engine", ["here", "process"])
@pytest.mark.parametrize("part", [0, 1, 4])
def test_a_part_whose_file_cannot_be_opened_leaves_no_match(
    tmp_path: Path, engine: str, part: int
) -> None:
    """Its size and time can be asked on that node, so nothing but the part itself can tell."""
    for run in "AB":
        (tmp_path / run).mkdir()
        np.save(tmp_path / run / "large.npy", np.arange(300_000.0))
        np.save(tmp_path / run / "small.npy", np.arange(3.0))
    (tmp_path / "part-bytes").write_text("500000")
    assert compared(tmp_path, "here")[0] == 0
    (tmp_path / f"blind-at-{part}").write_text("B/large")
    code, document, text = compared(tmp_path, engine)
    assert code == 3, text
    [check] = document["checks"]
    assert {one["name"] for one in check["variables"] if one["verdict"] == "match"} <= {"small"}
    told = [one["text"] for one in check["messages"] if "ermission denied" in one["text"]]
    assert len(told) == 1


@pytest.mark.parametrize("engine", ["here", "process"])
def test_a_file_written_between_its_parts_is_no_match(tmp_path: Path, engine: str) -> None:
    """With the size and time that it had; each part is whole, and matches. Nodes may know a file by
    other numbers than the coordinator does, which says nothing.
    """
    for run in "AB":
        (tmp_path / run).mkdir()
        np.save(tmp_path / run / "large.npy", np.arange(300_000.0))
    (tmp_path / "part-bytes").write_text("500000")
    (tmp_path / "other-stamps").touch()
    code, _, text = compared(tmp_path, engine)
    assert code == 0, text
    assert len(units_begun(tmp_path)) == 5
    (tmp_path / "write-at-3").write_bytes((tmp_path / "A/large.npy").read_bytes())
    code, document, text = compared(tmp_path, engine)
    assert code == 3, text
    assert document["checks"], text
    assert document["checks"][0]["variables"] == []
    messages = [one["text"] for one in document["checks"][0]["messages"]]
    told = ["while its parts were being compared"]
    if engine == "process":  # others may look while it is written, and see another time
        told += ["sees other files there", "was written while it was being compared"]
    assert any(word in text for text in messages for word in told), messages


@pytest.mark.parametrize("engine", ["process"])
def test_aligned_rows_by_workers(tmp_path: Path, engine: str) -> None:
    """Rows move between ranks; the unit is the iteration."""
    (tmp_path / "unit-bytes").write_text("1")
    (tmp_path / "ciwrap.yaml").write_text(
        "version: 1\ndefaults: {align_by: id, across_ranks: true}\nchecks: {c: {outputs: A}}\n"
    )
    draw = np.random.default_rng(SEED)
    for iteration in range(4):
        values = draw.normal(size=100)
        for run in "AB":
            order = draw.permutation(100)
            if run == "B" and iteration == 2:
                values[5] += 1
            for rank, ids in enumerate(np.array_split(order, 3)):
                place = tmp_path / run / f"iter_{iteration}/rank_{rank}"
                place.mkdir(parents=True)
                np.save(place / "id.npy", ids)
                np.save(place / "x.npy", values[ids])
    code, alone, text = compared(tmp_path, "here", "--check=c")
    assert code == 1, text
    assert units_begun(tmp_path) == ["0", "1", "2", "3"]
    code, together, text = compared(tmp_path, engine, "--check=c")
    assert code == 1, text
    assert comparable(together) == comparable(alone)
    differing = [one for one in alone["checks"][0]["variables"] if one["verdict"] == "differ"]
    assert [(one["name"], one["iteration"]) for one in differing] == [("x", 2)]
    assert differing[0]["first_index"] == [5]
    listed = ["--check=c", "--list=all.csv"], ["--check=c", "--list=some.csv"]
    assert compared(tmp_path, "here", *listed[0])[0] == 1
    assert compared(tmp_path, engine, *listed[1])[0] == 1
    assert (tmp_path / "all.csv").read_text() == (tmp_path / "some.2.csv").read_text()
    assert (tmp_path / "all.csv").read_text().splitlines()[1].endswith(",5")


def test_other_iterations_by_workers(tmp_path: Path) -> None:
    """What only one run has is left out, and iterations are counted otherwise, for workers, too."""
    write_runs(tmp_path)
    more = "--offset=-3", "--common"
    code, alone, text = compared(tmp_path, "here", *more)
    assert code == 1, text
    iterations = {one["iteration"] for one in alone["checks"][0]["variables"]}
    assert iterations == set(range(3, ITERATIONS))
    again, together, text = compared(tmp_path, "process", *more)
    assert again == code, text
    assert comparable(together) == comparable(alone)


@pytest.mark.parametrize("engine", ["process"])
def test_every_unit_lists_its_differences(tmp_path: Path, engine: str) -> None:
    write_runs(tmp_path)
    assert compared(tmp_path, "here", "--list=all.csv")[0] == 1
    assert compared(tmp_path, engine, "--list=some.csv")[0] == 1
    listed = [path.read_text().splitlines() for path in sorted(tmp_path.glob("some.*.csv"))]
    assert len(listed) > 2
    rows = sorted(row for lines in listed for row in lines[1:])
    assert rows == sorted((tmp_path / "all.csv").read_text().splitlines()[1:])
    assert len(rows) == 6


def test_a_list_that_is_gone_is_written_again(tmp_path: Path) -> None:
    """A journal knows what a unit came to, but not each element that differs."""
    write_runs(tmp_path)
    words = ("here", "--list=some.csv", "--journal=j.jsonl")
    assert compared(tmp_path, *words)[0] == 1
    lists = {path: path.read_text() for path in tmp_path.glob("some.*.csv")}
    begun, gone = len(units_begun(tmp_path)), max(lists)
    gone.unlink()
    assert compared(tmp_path, *words, "--resume")[0] == 1
    assert {path: path.read_text() for path in tmp_path.glob("some.*.csv")} == lists
    assert len(units_begun(tmp_path)) == begun + 1


def test_captured_bounds_and_fingerprints_by_workers(tmp_path: Path) -> None:
    """The bound of a capture holds for workers, too; a journal goes on under no other one."""
    write_runs(tmp_path)
    capture = "capture", "A", "--settle=0", "--atol"
    assert call(*capture, "0.5", folder=tmp_path, environment=environment()).returncode == 0
    code, alone, text = compared(tmp_path, "here")
    assert code == 1, text
    assert alone["checks"][0]["bounds_from"] == "A's capture"
    code, together, text = compared(tmp_path, "process", "--journal=j.jsonl")
    assert code == 1, text
    assert comparable(together) == comparable(alone)
    rebuilt = call(*capture, "3", "--rebuild", folder=tmp_path, environment=environment())
    assert rebuilt.returncode == 0
    code, _, text = compared(tmp_path, "here", "--journal=j.jsonl", "--resume")
    assert code == 2
    assert "was made with other rules or options" in text
    # Now that the data of A are gone, its capture stands for it.
    (tmp_path / "A/.ciwrap.tree").rename(tmp_path / "C.tree")
    shutil.rmtree(tmp_path / "A")
    (tmp_path / "C.tree").rename(tmp_path / "A")
    code, alone, text = compared(tmp_path, "here", "--journal=k.jsonl")
    assert code == 3, text
    assert "holds digests and no data" in text
    assert "1 of 1 block is open" in text
    code, together, text = compared(tmp_path, "process")
    assert code == 3, text
    assert comparable(together) == comparable(alone)
    # A journal that goes on knows another fingerprint from this one.
    count = len(units_begun(tmp_path))
    os.utime(tmp_path / "A")
    assert compared(tmp_path, "here", "--journal=k.jsonl", "--resume")[0] == 3
    assert len(units_begun(tmp_path)) > count
    # And one that was written in place and given its old time.
    count = len(units_begun(tmp_path))
    kept = (tmp_path / "A").stat()
    (tmp_path / "A").write_bytes((tmp_path / "A").read_bytes())
    os.utime(tmp_path / "A", ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert compared(tmp_path, "here", "--journal=k.jsonl", "--resume")[0] == 3
    assert len(units_begun(tmp_path)) > count


def test_logs_by_workers(tmp_path: Path) -> None:
    """Rules of logs travel, and are the same rules when a journal goes on."""
    for run, last in (("A", 4.0), ("B", 4.5)):
        for iteration in range(3):
            place = tmp_path / run / f"iter_{iteration}"
            place.mkdir(parents=True)
            lines = [f"Energy = {step * 1.5:.6f} Ha in {step} cycles" for step in range(1, 4)]
            lines.append(f"Energy = {last if iteration == 1 else 4.0:.6f} Ha in 9 cycles")
            (place / "out.log").write_text("\n".join(lines) + "\n")
    (tmp_path / "ciwrap.yaml").write_text(
        "version: 1\nchecks:\n  c:\n    outputs: iter_{iteration:d}/out.log\n    format: log\n"
        "    values:\n      energy: 'Energy = {energy} {unit:text} in {cycles:int} cycles'\n"
        "    variables: {'*': {atol: 1e-6}}\n"
    )
    code, alone, text = compared(tmp_path, "here", "--check=c", "--journal=j.jsonl")
    assert code == 1, text
    differing = [one for one in alone["checks"][0]["variables"] if one["verdict"] == "differ"]
    assert [one["iteration"] for one in differing] == [1]
    assert differing[0]["series"]["first_differing"]["new"]["text"] == "4.500000"
    code, together, text = compared(tmp_path, "process", "--check=c")
    assert code == 1, text
    assert comparable(together) == comparable(alone)
    code, again, text = compared(tmp_path, "here", "--check=c", "--journal=j.jsonl", "--resume")
    assert code == 1, text
    assert comparable(again) == comparable(alone)


@pytest.mark.parametrize("more", [("--executor=process",), ("--journal=j", "--resume")])
def test_names_that_are_no_utf8(tmp_path: Path, more: tuple[str, ...]) -> None:
    """A file system has names of any bytes; what they are called is told by the layout."""
    write_runs(tmp_path)
    for run in "AB":
        for path in list((tmp_path / run).glob("*/*/x.npy")):
            path.rename(path.with_name(os.fsdecode(b"x-\xff.npy")))
    layout = "--layout=iter_{iteration:d}/rank_{rank:d}/{name}-{*}.npy"
    code, alone, text = compared(tmp_path, "here", layout)
    assert code == 1, text
    for _ in range(2):
        code, document, text = compared(tmp_path, "here", layout, *more)
        assert code == 1, text
        assert comparable(document) == comparable(alone)


@pytest.mark.parametrize(
    "words",
    [
        ("--journal=same", "--list=same"),
        ("--journal=./same", "--report=same"),
        ("--journal=same", "--json=A/../same"),
        ("--list=same", "--json=same", "--report=r.html"),
        ("--list=same.csv", "--journal=same.3.csv"),
    ],
)
def test_two_things_in_one_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The second would be written over the first."""
    write_runs(tmp_path)
    (tmp_path / "same").write_text("mine\n")
    done = call("compare", "A", "B", *words, folder=tmp_path, environment=environment())
    assert done.returncode == 2
    assert "would be written to the same file" in done.stderr
    assert (tmp_path / "same").read_text() == "mine\n"


@pytest.mark.parametrize("option", ["--json", "--report"])
@pytest.mark.parametrize(
    ("sides", "target"),
    [
        (("A", "B"), "B/x.npy"),
        (("A", "B"), "A/.ciwrap.tree"),
        (("A", "B"), "B.tree"),
        (("A", "B"), "other-name"),
        (("A/x.npy", "B/x.npy"), "A/x.npy"),
        (("A.tree", "B"), "A.tree"),
    ],
)
def test_what_is_compared_is_not_written_over(
    tmp_path: Path, option: str, sides: tuple[str, str], target: str
) -> None:
    for run in "AB":
        (tmp_path / run).mkdir()
        np.save(tmp_path / run / "x.npy", np.arange(3.0))
    for more in ("A", "A -o A.tree", "B -o B.tree"):
        words = ("capture", *more.split(), "--settle=0")
        assert call(*words, folder=tmp_path, environment=environment()).returncode == 0
    (tmp_path / "other-name").hardlink_to(tmp_path / "A/x.npy")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = call("compare", *sides, option, target, folder=tmp_path, environment=environment())
    assert done.returncode == 2
    assert f"{option} would be written over {target}, which is compared" in done.stderr
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
