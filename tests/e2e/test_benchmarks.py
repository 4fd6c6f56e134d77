"""The benchmarks run, and what they measure besides time is what the documentation promises."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import NO_OTHER_PLUGINS
from recorded_runs import need_library

from ciwrap.cli.main import run as run_cli
from ciwrap.formats.find_outputs import find_in

ROOT = Path(__file__).resolve().parents[2]
# Appended, so that an installed ciwrap comes before the source tree.
PROGRAM = """
import runpy, sys
sys.path.append(sys.argv[1])
module = sys.argv[2]
del sys.argv[1:3]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def run_module(module: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT), module, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_benchmarks(folder: Path, *arguments: str, module: str = "benchmarks") -> dict[str, Any]:
    target = folder / "results.json"
    done = run_module(module, folder, f"--json={target}", *arguments)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(target.read_text())
    return document


@pytest.mark.slow
def test_bounds_of_eight_noises_hold_or_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick form of `python -m benchmarks --only noisy-bounds`."""
    pytest.importorskip("scipy", reason="SciPy is not installed")
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    noisy_bounds = importlib.import_module("benchmarks.noisy_bounds")
    rows = {one["noise"]: one for one in noisy_bounds.run(sets=1)["rows"]}
    assert len(rows) == 8
    assert rows.pop("five elements left open")["found"] is None
    assert all(one["found"] == 1.0 for one in rows.values())
    assert rows["normal"]["failing"] == rows["rounding"]["failing"] == 0
    assert "growing, a bound" in rows["growth, doubling each step"]["said"]


@pytest.mark.slow
def test_sections_run_and_keep_their_promises(tmp_path: Path) -> None:
    markdown = tmp_path / "results.md"
    document = run_benchmarks(
        tmp_path,
        "--quick",
        "--repeats",
        "1",
        "--markdown",
        str(markdown),
        "--only",
        "false-alarms",
        "golden-sizes",
        "golden-check",
        "busy-machine",
        "repeated-runs",
    )
    repeated = document["repeated-runs"]
    assert set(repeated["bounds"]) == {"x", "y", "vx", "vy", "density", "potential"}
    assert (repeated["further"], repeated["failed"]) == (8, 0)
    assert repeated["defect_at"] == "iter 30 / rank 1 / vy"
    for row in document["false-alarms"]["rows"]:
        assert row["missed_chunks"] == 0
        if row["noise_share_of_bound"] <= row["guaranteed_share"]:
            assert row["suspect_share"] == 0
        if row["noise_share_of_bound"] > 1:
            assert row["suspect_share"] == 1
    for row in document["golden-sizes"]["rows"]:
        if row["target_share"] is not None:
            assert row["share_of_data"] <= row["target_share"]
    passed = {row["case"]: row["passed"] for row in document["golden-check"]["rows"]}
    assert passed["ciwrap, tree"] is False  # noise of a tenth of the bound everywhere
    assert all(value for case, value in passed.items() if case != "ciwrap, tree")
    busy = document["busy-machine"]["rows"]
    assert [row["machine"] for row in busy] == ["idle"] * 3 + ["one busy process"] * 3
    assert all(row["times_sleeping"] > 0 and row["max_seconds"] > 0 for row in busy)
    assert {row["times_sleeping"] for row in busy if row["case"] == "threads that sleep"} == {1.0}
    assert markdown.read_text().count("## ") == 5


@pytest.mark.slow
def test_unknown_sections_are_refused(tmp_path: Path) -> None:
    done = run_module("benchmarks", tmp_path, "--only", "speed-of-light")
    assert done.returncode == 2
    assert "tree-building" in done.stderr


@pytest.mark.slow
def test_whole_runs_read_what_is_promised(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    options = (f"--folder={runs}", "--gib=0.01", "--rounds=1", "--no-others")
    document = run_benchmarks(tmp_path, *options, module="benchmarks.histories")
    assert list(runs.iterdir()) == []
    rows = {row["case"]: row for row in document["rows"]}
    equal = rows["a: equal: captures"]
    assert (equal["verdict"], equal["data_bytes"]) == ("match", 0)
    assert equal["capture_bytes"] <= 2 * 64 * 1024
    some = rows["b: 1 % of the chunks differ: captures"]
    assert some["suspect_chunks"] == some["differing"] == 140  # one chunk of each variable
    noise = "c: noise of 10 % of the bound: captures"
    assert rows[noise]["suspect_chunks"] > 0.95 * rows[noise]["chunks"]
    assert rows[noise]["verdict"] == "match"
    against = rows[f"{noise} against A"]
    assert (against["suspect_chunks"], against["data_bytes"]) == (0, 0)
    everything = rows["d: everything differs: captures"]
    assert everything["suspect_chunks"] == everything["chunks"]
    assert everything["differing"] == rows["d: everything differs: direct"]["differing"]


def test_writing_goldens_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import golden_writing

    result = golden_writing.run(counts=(2, 8))
    assert [(row["count"], row["one_lock"]) for row in result["rows"]] == [
        *((2, True), (2, False), (8, True), (8, False)),
    ]
    assert set(result["exponents"]) == {"one lock", "a lock each"}
    assert len(golden_writing.table(result)) == 1 + 4 + 2


@pytest.mark.slow
def test_timing_in_pairs_is_right_as_often_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick form of `python -m benchmarks --only timing-pairs`, with its seed."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import timing_pairs

    result = timing_pairs.run(trials=250, pair_counts=(10,))
    drift = [row for row in result["rows"] if row["machine"].startswith("drift")]
    assert [row["change"] for row in drift] == [0.0, 0.1]
    assert drift[0]["changed"] <= 0.02
    assert drift[0]["blocks_call_a_change"] > 0.4
    assert drift[1]["changed"] >= 0.95
    for row in result["rows"]:
        assert row["covered"] >= 0.92, row  # 0.94 over 3000 trials; three deviations here
        assert row["changed"] + row["not_changed"] + row["inconclusive"] == pytest.approx(1)
    assert len(timing_pairs.table(result)) == 1 + len(result["rows"])


@pytest.mark.slow
def test_moved_elements_are_found_and_none_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick form of `python -m benchmarks --only solve`, with its seed."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import solving

    rows = solving.run(trials=40)["rows"]
    assert all(row["wrong"] == 0 for row in rows)
    assert all(row["found"] == row["suspect"] > 20 for row in rows if row["range"][1] == 10.0)


@pytest.mark.slow
def test_ensembles_are_told_apart_as_often_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick form of `python -m benchmarks --only ensembles`, with its seed."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import ensembles

    result = ensembles.run(trials=200, sizes=((60, 3),))
    shares = {row["change"]: row["rejected"] for row in result["rows"]}
    assert shares[0.0] <= 0.035  # 1 %, and three and a half deviations of 200 trials
    assert shares[0.05] >= 0.95
    assert len(ensembles.table(result)) == 2


@pytest.mark.slow
def test_bounds_written_for_an_mpi_program_hold_and_find_a_defect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quick form of `python -m benchmarks --only written-bounds`."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    if not (Path(sys.executable).parent / "mpiexec").exists():
        pytest.skip("no mpiexec beside this Python (pip install mpich)")
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    from benchmarks import written_bounds

    result = written_bounds.run(runs=10, further=2, names=("mpi",))
    (program,) = result["programs"]
    assert program["codes"] == [0, 0]
    assert program["found"]
    assert all(program["found"].values()), program
    assert "3 x largest of 9 differences" in program["config"]
    assert len(written_bounds.table(result)) == 2


@pytest.mark.slow
def test_an_ensemble_by_commands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick form of `python -m benchmarks --only ensemble-commands`; its seeds are fixed."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    from benchmarks import ensemble_commands

    result = ensemble_commands.run(trials=3, changed_trials=2)
    assert result["honest"] == {"consistent": 3}
    assert result["changed"] == {"inconsistent": 2}
    assert len(ensemble_commands.table(result)) == 3


@pytest.mark.slow
def test_the_size_of_runs_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    from benchmarks import repeat_size

    result = repeat_size.run(data_bytes=1 << 22, runs=3)
    assert 0 < result["repeat"]["peak"] < 500 << 20
    assert result["cpu_ratio"] > 0
    assert len(repeat_size.table(result)) == 3


@pytest.mark.slow
def test_the_plugin_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(NO_OTHER_PLUGINS))
    import pytest_plugin

    cases = pytest_plugin._small(5)
    assert set(cases) == {"ciwrap", "npy + numpy.testing"}
    large = pytest_plugin._large(1000, 1, only=("ciwrap",))
    assert large["ciwrap"]["passed"]
    assert 0 < large["ciwrap"]["baseline_bytes"] < 20_000
    many = pytest_plugin.many(5)
    assert many["ciwrap"]["passed"]
    small = {"check_count": 5, "cases": cases}
    rows = pytest_plugin.table(
        {
            "startup": {},
            "small": small,
            "many": {"check_count": 5, "cases": many},
            "large": {"element_count": 1000, "cases": large},
        }
    )
    assert len(rows) == 4 + len(many)
    rows = pytest_plugin.peers_table(
        {
            "many": {"check_count": 5, "cases": many},
            "large": {"element_count": 1000, "cases": large},
        }
    )
    assert [row[2] for row in rows[1:2]] == ["bytes, write, check / ciwrap: 1.00, 1.00, 1.00"]
    assert rows[-1][0] == "1,000 float64: ciwrap"


def test_the_benchmark_of_a_device_runs(tmp_path: Path) -> None:
    """With the host in the device's place: the program works, its numbers mean nothing."""
    table = tmp_path / "device.md"
    options = ("--quick", "--backend=portable", f"--markdown={table}")
    document = run_benchmarks(tmp_path, *options, module="benchmarks.device")
    assert document["device"].startswith("none")
    copies = {row["case"]: row for row in document["rows"] if row["case"].startswith("copy")}
    assert len(copies) == 3
    for row in document["rows"]:
        assert row["gb_per_second"] > 0
        assert row["beside"] is None or row["ratio"] > 0
    assert len(table.read_text().splitlines()) == 2 + len(document["rows"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--phase", "build"], "no nvcc"),
        (["--phase", "bench"], "nothing is built yet"),
        (["--phase", "everything"], "invalid choice"),
    ],
)
def test_the_gpu_script_says_what_is_missing(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    """A copy of it in an empty folder, on a machine without a toolkit."""
    script = tmp_path / "tools" / "gpu-check"
    script.parent.mkdir()
    for name in ("gpu-check", "gpu_steps.py"):
        shutil.copy(ROOT / "tools" / name, script.parent)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env={"PATH": str(bin_folder), "CUDA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    if words == "no nvcc" and Path("/usr/local/cuda/bin/nvcc").exists():
        words = "no device"
    assert words in done.stderr + done.stdout


@pytest.mark.slow
def test_memory_is_measured(tmp_path: Path) -> None:
    done = run_module("benchmarks.memory", tmp_path, "--quick")
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines()[2:]]
    assert [int(row[1]) for row in rows] == [0] * 4 + [1] * 8
    assert all(0 < int(row[2]) < 300 for row in rows)


@pytest.mark.slow
def test_maps_are_as_good_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick form of `python -m benchmarks --only variability-maps`, with its seed."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import variability_maps

    shares = (0.9, 0.5, 0.1)
    result = variability_maps.run(splits=1, configurations=5, rounds=1, shares=shares)
    double = result["near_double"]
    assert double["configurations"] == 810
    assert double["notes"] == ["frequency: 3, 3.001 are nearly the same and count as 3"]
    assert double["chosen"] == "Gaussian process"
    assert double["ratio"] <= 1.3
    assert 0.85 <= result["coverage"] <= 0.95
    errors = {row["predictor"]: row["errors"] for row in result["rows"]}
    for share in shares:
        ours = errors["Gaussian process"][share]
        assert all(ours <= errors[name][share] for name in variability_maps.PUBLISHED)
        # The order of the published table.
        assert errors["Delaunay"][share] < errors["linear regression"][share]
        assert errors["LSP"][share] < errors["MARS"][share] < errors["linear regression"][share]
    measured = result["figure_9"]["measured"]
    assert 22 <= measured["at_75"][0] <= 28
    assert 30 <= measured["at_90"][0] <= 36
    assert len(variability_maps.table(result)) == 1 + 9 + 4 + 2 + 4 + 1


@pytest.mark.slow
def test_a_table_of_ones_own_is_judged(tmp_path: Path) -> None:
    """`python -m benchmarks.variability_maps TABLE`, on 36 configurations of 10 runs."""
    lines = ["a,b,rate"]
    for a in range(1, 7):
        for b in range(1, 7):
            lines += [f"{a},{b},{a * b + 0.1 * a * (run % 5)}" for run in range(10)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(lines) + "\n")
    done = run_module("benchmarks.variability_maps", tmp_path, str(table), "--splits", "1")
    assert done.returncode == 0, done.stderr
    assert "Gaussian process" in done.stdout
    assert "noise floor" in done.stdout


def test_the_real_table_is_what_its_program_writes(tmp_path: Path) -> None:
    target = tmp_path / "io.csv"
    done = run_module("benchmarks.variability_io", tmp_path, str(target), "--repeats", "2")
    assert done.returncode == 0, done.stderr
    committed = (ROOT / "docs/benchmarks/io-times.csv").read_text().splitlines()
    made = target.read_text().splitlines()
    assert made[0] == committed[0]
    of = [{line.rpartition(",")[0] for line in lines[1:]} for lines in (made, committed)]
    assert of[0] == of[1]
    assert (len(made), len(committed)) == (1 + 80 * 2, 1 + 80 * 30)


@pytest.mark.slow
def test_what_snapshots_cost_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of `python -m benchmarks.snapshots`, on files of a megabyte."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    snapshots = importlib.import_module("benchmarks.snapshots")
    files = {}
    for number in range(3):
        path = tmp_path / f"{number}.so"
        path.write_bytes(f"{number} of an object ".encode() * 20_000)
        files[f"objects/{path.name}"] = path
    sizes = {}
    for how in ("", "z", "zst"):
        create, restore, sizes[how] = snapshots.one_archive(files, tmp_path, how, 1)
        assert create >= 0
        assert restore >= 0
    raw = sum(path.stat().st_size for path in files.values())
    assert sizes[""] >= raw > 20 * sizes["z"] > 0
    assert raw > 20 * sizes["zst"] > 0
    said = snapshots.costs(lambda: sum(range(1000)), repeats=4)
    assert re.fullmatch(
        r"median \d+ ms \(\d+ to \d+\) of processor time \(the first \d+ ms\),"
        r" median \d+ ms \(\d+ to \d+\) by the clock",
        said,
    )


@pytest.mark.slow
def test_recording_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees and residues of the checkpoints that wait to be written, and 16 MiB."""
    need_library()
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import recording

    result = recording.run(size=1000, steps=12, every=2, repeats=1)
    assert [row["way"] for row in result["rows"]] == [
        "not recorded",
        "digests alone",
        "with residues",
        "against a run",
    ]
    trees = result["journal_bytes_with_residues"]  # of all checkpoints, so of those that wait
    assert trees > result["data_bytes"] / 32
    for row in result["rows"]:
        assert row["bytes_more"] <= trees + (16 << 20), row


@pytest.mark.slow
def test_blocked_time_is_measured_for_all_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    need_library()
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import recording_in_place

    result = recording_in_place.run(rows=30, columns=40, repeats=1)
    assert len(result["rows"]) == 3 * (4 + 1)
    assert all(row["ratio"] > 0 for row in result["rows"])
    assert len(recording_in_place.table(result)) == 7


@pytest.mark.slow
def test_growth_is_measured(tmp_path: Path) -> None:
    words = ("--quick", "--repeats", "1", "--only", "check by variables")
    (row,) = run_benchmarks(tmp_path, *words, module="benchmarks.growth")["rows"]
    assert len(row["sizes"]) == len(row["seconds"]) == 4
    assert min(row["seconds"]) > 0


@pytest.mark.slow
def test_peers_are_measured(tmp_path: Path) -> None:
    """And compute the same: a command that fails ends the benchmark."""
    words = ("--quick", "--rounds", "1")
    document = run_benchmarks(tmp_path, *words, module="benchmarks.peers")
    assert len(document["rows"]) == 11
    for one in document["rows"]:
        assert one["rows"][0]["command"] == "ciwrap"
        assert all(row["cpu_seconds"] > 0 for row in one["rows"])
    assert document["growth"]["sizes"] == [12, 24, 48]
    assert len(document["growth"]["rows"]) == 2


def test_growth_by_iterations_is_of_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    growth = importlib.import_module("benchmarks.growth")
    growth.iterations(tmp_path, 3)
    growth.iterations_that_differ(tmp_path / "others", 3)
    for folder in (tmp_path / "A", tmp_path / "others" / "B"):
        assert {file.iteration for file in find_in(folder).files} == {0, 1, 2}


def test_growth_by_ranks_is_of_recorded_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    importlib.import_module("benchmarks.growth").ranks(tmp_path, 3)
    monkeypatch.chdir(tmp_path)
    assert run_cli(("compare", "A", "B")) == 0
    assert "match  18 arrays of 2 variables" in capsys.readouterr().out


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0])
def test_growth_finds_powers(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    growth = importlib.import_module("benchmarks.growth")
    sizes = [8, 100, 200, 400, 800]
    seconds = [0.3 + 0.5 * (size / 800) ** power for size in sizes]
    assert growth.exponent(sizes, seconds) == pytest.approx(power, abs=0.02)
    assert growth.last_exponent(seconds) == pytest.approx(power, abs=1e-6)
    assert growth.exponent(sizes, [0.3, 0.3, 0.31, 0.3, 0.3]) is None
