"""Whole runs through the real command line, against what plain NumPy says of the same files."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
from e2e.cli_project import ROOT, command, environment
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciwrap.cli.main import run as run_cli
from ciwrap.history.container import CaptureFile
from ciwrap.history.index_codec import read_checkpoint, read_index

if TYPE_CHECKING:
    from pathlib import Path

ITERATIONS = (5, 10, 20)
RANKS = (0, 1)
NAMES = ("phi", "x")
SHAPE = (40, 50)
ATOL = 1e-4
SMALL = "--chunk-bytes=512"


def path_of(run: Path, iteration: int, rank: int, name: str) -> Path:
    return run / f"iter_{iteration:04d}" / f"rank_{rank}" / f"{name}.npy"


def write_run(run: Path, *, iterations: tuple[int, ...] = ITERATIONS) -> Path:
    for iteration in iterations:
        for rank in RANKS:
            for name in NAMES:
                path = path_of(run, iteration, rank, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                seed = [iteration, rank, len(name)]
                dtype = np.float32 if name == "x" else np.float64
                np.save(path, np.random.default_rng(seed).normal(size=SHAPE).astype(dtype))
    return run


def change(path: Path, *places: tuple[int, ...], by: float = 1.0) -> None:
    array = np.load(path)
    for place in places:
        array[place] += by
    np.save(path, array)


def oracle(a: Path, b: Path, atol: float = ATOL) -> dict[tuple[int, int, str], int]:
    counts = {}
    for iteration in ITERATIONS:
        for rank in RANKS:
            for name in NAMES:
                one = np.load(path_of(a, iteration, rank, name)).astype(np.float64)
                two = np.load(path_of(b, iteration, rank, name)).astype(np.float64)
                counts[iteration, rank, name] = int((~(np.abs(one - two) <= atol)).sum())
    return counts


def ciwrap(tmp_path: Path, *arguments: object) -> tuple[int, Any]:
    target = tmp_path / "result.json"
    target.unlink(missing_ok=True)
    code = run_cli([*map(str, arguments), "--json", str(target)])
    document = json.loads(target.read_text()) if target.exists() else None
    if document is not None and document["kind"] != "capture":
        schema = json.loads((ROOT / "docs/reference/result.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(document)
    return code, document


def counts_in(document: Any) -> dict[tuple[int, int, str], int]:
    return {
        (one["iteration"], one["rank"], one["name"]): one["differing_count"]
        for one in document["checks"][0]["variables"]
    }


def capture(tmp_path: Path, run: Path, *more: object, code: int = 0) -> Any:
    found, document = ciwrap(tmp_path, "capture", run, SMALL, "--settle=0", *more)
    assert found == code, document
    return document


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    a = write_run(tmp_path / "A")
    shutil.copytree(a, tmp_path / "B")
    return a, tmp_path / "B"


def test_equal_runs_are_told_by_their_captures_alone(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    a, b = runs
    roots = [capture(tmp_path, run, f"--atol={ATOL}")["root"] for run in runs]
    assert roots[0] == roots[1]
    for run in runs:
        for path in run.rglob("*.npy"):
            path.chmod(0)  # nobody may look (but root may)
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
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


def test_a_capture_grows_and_keeps_what_is_there(tmp_path: Path) -> None:
    run = write_run(tmp_path / "A", iterations=(5, 10))
    first = capture(tmp_path, run)
    assert (len(first["captured"]), len(first["kept"])) == (4, 0)
    write_run(run, iterations=(20,))
    second = capture(tmp_path, run)
    assert (len(second["captured"]), len(second["kept"])) == (2, 4)
    assert second["bytes_read"] == first["bytes_read"] / 2
    assert capture(tmp_path, run)["captured"] == []
    change(path_of(run, 10, 1, "x"), (0, 0))
    assert capture(tmp_path, run)["captured"] == [[10, 1]]
    shutil.rmtree(run / "iter_0005")
    assert capture(tmp_path, run)["dropped"] == [[5, 0], [5, 1]]
    # Another bound is another capture.
    assert len(capture(tmp_path, run, "--atol=1")["captured"]) == 4
    root = capture(tmp_path, run, "--atol=1")["root"]
    anew = capture(tmp_path, run, "--atol=1", "--rebuild")
    assert anew["root"] == root
    assert len(anew["captured"]) == 4


def test_a_stale_capture_is_not_believed(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}")
    change(path_of(b, 10, 0, "x"), (1, 1))
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 1
    assert counts_in(document) == oracle(a, b)
    assert any("stale" in one["text"] for one in document["checks"][0]["messages"])


def test_checksums_see_what_times_do_not(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}", "--checksums")
    path = path_of(b, 10, 0, "x")
    times = path.stat()
    change(path, (1, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ciwrap(tmp_path, "compare", a, b)[0] == 0  # fooled, as every tool that trusts times
    code, document = ciwrap(tmp_path, "compare", a, b, "--verify-checksums")
    assert (code, counts_in(document)) == (1, oracle(a, b))


def test_a_copy_with_other_times_is_known_by_its_checksums(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    a, b = runs
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}", "--checksums")
    for path in b.rglob("*.npy"):
        os.utime(path, ns=(7, 7))
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 0
    assert {one["evidence"] for one in document["checks"][0]["variables"]} == {"tree"}


def test_a_checkpoint_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "A")
    path = path_of(run, 20, 1, "x")
    data = path.read_bytes()
    path.write_bytes(data[:-100])  # cut: the program is in the middle of it
    document = capture(tmp_path, run, code=3)
    assert [20, 1] not in document["captured"]
    assert len(document["captured"]) == 5
    assert any(str(path) in one["text"] for one in document["left_alone"])
    path.write_bytes(data)
    assert capture(tmp_path, run)["captured"] == [[20, 1]]


def test_a_file_that_grows_while_it_is_watched_is_left_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "A")
    path = path_of(run, 20, 1, "x")
    writer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import sys, time\n"
                "for _ in range(200):\n"
                "    open(sys.argv[1], 'r+b').write(b'\\x93')\n"
                "    time.sleep(0.02)\n"
            ),
            str(path),
        ]
    )
    try:
        found, document = ciwrap(tmp_path, "capture", run, "--settle=0.3")
    finally:
        writer.terminate()
        writer.wait()
    assert found == 3
    assert [one["slug"] for one in document["left_alone"]] == ["still-written"]
    assert len(document["captured"]) == 5


def test_killed_at_any_moment_the_capture_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "A"
    write_run(run, iterations=tuple(range(40)))
    target = tmp_path / "A.tree"
    arguments = ["capture", str(run), "-o", str(target), "--residues", SMALL, "--settle=0"]
    whole = tmp_path / "whole.tree"
    assert run_cli(["capture", str(run), "-o", str(whole), "--residues", SMALL]) == 0
    for delay in (0.2, 0.3, 0.45):
        process = subprocess.Popen(
            command(*arguments), env=environment(), stdout=subprocess.DEVNULL
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert run_cli(arguments) == 0
    with CaptureFile(target) as found, CaptureFile(whole) as wanted:
        assert read_index(found).root == read_index(wanted).root


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


def test_a_damaged_capture_is_told_of_and_not_used(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}")
    path = b / ".ciwrap.tree"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 0
    assert any("not used" in one["text"] for one in document["checks"][0]["messages"])
    # Asked for by name it has to be sound.
    assert ciwrap(tmp_path, "compare", a, b, "--capture-b", path)[0] == 3


def test_a_damaged_tree_hides_nothing(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    change(path_of(b, 10, 1, "x"), (3, 4), (30, 7))
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}")
    path = b / ".ciwrap.tree"
    data = bytearray(path.read_bytes())
    with CaptureFile(path) as opened:
        index = read_index(opened)
        (found,) = [
            one
            for one in read_checkpoint(opened, index.checkpoints[10, 1]).variables
            if one.identity.name == "x"
        ]
    assert found.plain is not None
    data[found.plain.digests.offset + found.plain.digests.byte_count - 5] ^= 1
    path.write_bytes(data)
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 1
    assert counts_in(document) == oracle(a, b)
    assert any("not used" in one["text"] for one in document["checks"][0]["messages"])


def test_usage(tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = runs
    capture(tmp_path, a)
    assert run_cli(["capture", str(b), "--against", str(a / ".ciwrap.tree")]) == 2
    assert "--residues" in capsys.readouterr().err
    assert run_cli(["capture", str(tmp_path / "nothing")]) == 3
    assert run_cli(["compare", str(a), str(b), "--memory", "12X"]) == 2
    file = path_of(a, 5, 0, "x")
    assert run_cli(["compare", str(file), str(file), "--no-captures"]) == 2
    assert run_cli(["capture", str(file)]) == 2


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
    history = document["checks"][0]["history"]
    first = history["first_divergence"]
    assert (first["iteration"], first["rank"], first["name"]) == (10, 1, "x")
    assert first["index"] == [2, 3]
    assert first["golden"] == str(np.load(path_of(a, 10, 1, "x"))[2, 3])
    assert first["new"] == str(np.load(path_of(b, 10, 1, "x"))[2, 3])
    assert first["bound_share"] == pytest.approx(4, rel=1e-2)
    assert states(document, "x", 1) == ["within", "beyond", "first_only"]
    assert states(document, "phi", 0) == ["match", "match", "beyond"]
    assert timeline_of(document, "phi")["trend"] == "jumps"
    assert timeline_of(document, "x")["trend"] == "comes_and_goes"
    shown = capsys.readouterr().out
    assert "first divergence: iter 10 / rank 1 / x [2, 3]: " in shown
    assert "..#" in shown


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
    assert not list(tmp_path.glob("*.csv"))


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
    # Nothing is listed in this way of comparing: so no list is promised, and none written.
    code, _ = ciwrap(tmp_path, "compare", a, b, "--list", tmp_path / "list.csv")
    assert code == 2
    assert not (tmp_path / "list.csv").exists()


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
    first = document["checks"][0]["history"]["first_divergence"]
    assert (first["iteration"], first["index"]) == (20, [7, 9])
    assert len(target.read_text().splitlines()) == 2
    by_captures = document["checks"][0]["history"].get("by_captures", 0)
    assert by_captures == (2 if captured else 0)
