"""What a capture holds, keeps and is believed, whatever happens to the run or to itself."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from e2e.cli_project import command, environment
from e2e.history_runs import (
    ATOL,
    SMALL,
    capture,
    change,
    ciwrap,
    counts_in,
    oracle,
    path_of,
    write_run,
)

from ciwrap.cli.main import run as run_cli
from ciwrap.runs.capture_file import CaptureFile
from ciwrap.runs.capture_index import read_checkpoint, read_index

if TYPE_CHECKING:
    from pathlib import Path


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
    identity = capture(tmp_path, run)["identity"]
    anew = capture(tmp_path, run, "--rebuild")
    assert anew["identity"] == identity
    assert len(anew["captured"]) == 4


def test_a_capture_keeps_its_bound_until_it_is_begun_anew(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, _ = runs
    first = capture(tmp_path, a, f"--atol={ATOL}")
    assert (first["bounds_from"], [one["atol"] for one in first["bounds"]]) == ("given", [ATOL])
    assert f"bound: atol={ATOL} rtol=0 (given)" in capsys.readouterr().out
    again = capture(tmp_path, a)
    assert (again["captured"], again["bounds"]) == ([], first["bounds"])
    for other in ("--atol=1", "--atol=0", f"--rtol={ATOL}"):
        code, _ = ciwrap(tmp_path, "capture", a, SMALL, "--settle=0", other)
        assert code == 2
        assert "--rebuild" in capsys.readouterr().err
    code, _ = ciwrap(tmp_path, "capture", a, "--chunk-bytes=1024", "--settle=0")
    assert code == 2
    # Nothing of all this has changed it.
    assert capture(tmp_path, a)["captured"] == []
    kept = capture(tmp_path, a, "--rebuild")
    assert kept["bounds"] == first["bounds"]
    anew = capture(tmp_path, a, "--rebuild", "--atol=1")
    assert [one["atol"] for one in anew["bounds"]] == [1.0]


def test_a_capture_that_compares_exactly_says_so(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert capture(tmp_path, runs[0])["bounds_from"] == "none given"
    assert "bound: none given, captured exactly" in capsys.readouterr().out


def test_the_bound_of_a_capture_holds_for_what_it_no_longer_describes(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies with other times, checkpoints written since, iterations in paths against iterations
    in files: noise within the bound of the capture is no difference.
    """
    a, b = runs
    for path in b.rglob("*.npy"):
        np.save(path, np.load(path) + np.float32(ATOL / 4))
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}")
    for path in (*a.rglob("*.npy"), *b.rglob("*.npy")):
        os.utime(path, ns=(7, 7))
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert (code, document["checks"][0]["bounds_from"]) == (0, "A's capture")
    assert {one["evidence"] for one in document["checks"][0]["variables"]} == {"data"}
    assert f"bound: atol={ATOL} rtol=0, of A's capture" in capsys.readouterr().out
    for run, value in ((a, 0.0), (b, ATOL / 4)):
        path = path_of(run, 30, 0, "new")
        path.parent.mkdir(parents=True)
        np.save(path, np.full(7, value))
    assert ciwrap(tmp_path, "compare", a, b)[0] == 0
    (a / ".ciwrap.tree").unlink()
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert (code, document["checks"][0]["bounds_from"]) == (0, "B's capture")
    (b / ".ciwrap.tree").unlink()
    capsys.readouterr()
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert (code, document["checks"][0]["bounds_from"]) == (1, "none given")
    assert "bound: none given, compared exactly" in capsys.readouterr().out


def test_tiny_differences_without_a_bound_get_a_hint(tmp_path: Path) -> None:
    for run, by in (("a", 0.0), ("b", 1e-12), ("c", 1e-3)):
        path = tmp_path / run / "iter_1" / "x.npy"
        path.parent.mkdir(parents=True)
        np.save(path, np.arange(1.0, 9.0) + by)

    def notes(other: str, *more: str) -> list[str]:
        _, document = ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / other, *more)
        return [one["text"] for one in document["checks"][0]["messages"]]

    (note,) = notes("b")
    assert "no bound was given" in note
    assert notes("c") == []
    assert notes("b", "--atol=0") == []


def test_against_takes_bound_and_chunks_over(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for path in b.rglob("*.npy"):
        np.save(path, np.load(path) + np.float32(ATOL / 4))
    capture(tmp_path, a, f"--atol={ATOL}", "--residues")
    code, document = ciwrap(tmp_path, "capture", b, "--against", a / ".ciwrap.tree", "--settle=0")
    assert code == 0
    assert [one["atol"] for one in document["bounds"]] == [ATOL]
    assert "--against" in document["bounds_from"]
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 0
    assert {one["evidence"] for one in document["checks"][0]["variables"]} == {"residues"}
    # Captured with another bound before, it is not changed unasked.
    shutil.copytree(a, tmp_path / "C")
    capture(tmp_path, tmp_path / "C", "--rebuild", "--atol=1")
    code, _ = ciwrap(
        tmp_path, "capture", tmp_path / "C", "--against", a / ".ciwrap.tree", "--settle=0"
    )
    assert code == 2


def test_against_a_run_whose_fill_value_is_nan(tmp_path: Path) -> None:
    config = tmp_path / "ciwrap.yaml"
    config.write_text(
        "version: 1\nchecks:\n  c: {outputs: a, atol: 1e-3, fill_values: [.nan, 1e20]}\n"
    )
    a, b = tmp_path / "a", tmp_path / "b"
    for run in (a, b):
        run.mkdir()
        np.save(run / "x.npy", np.array([1.0, np.nan], "f4"))
    asked = ("--check=c", f"--config={config}", "--settle=0")
    assert ciwrap(tmp_path, "capture", a, "--residues", *asked)[0] == 0
    assert ciwrap(tmp_path, "capture", b, "--against", a / ".ciwrap.tree", *asked)[0] == 0
    config.write_text(config.read_text().replace("1e20", "1e19"))
    assert ciwrap(tmp_path, "capture", b, "--against", a / ".ciwrap.tree", *asked)[0] == 2


def test_a_damaged_capture_does_not_lose_its_bound_unseen(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, _ = runs
    capture(tmp_path, a, f"--atol={ATOL}")
    path = a / ".ciwrap.tree"
    damaged = bytearray(path.read_bytes())
    damaged[-20] ^= 1
    older = bytearray(path.read_bytes())
    older[8] -= 1
    for data in (damaged, older):
        path.write_bytes(data)
        capsys.readouterr()
        assert ciwrap(tmp_path, "capture", a, "--settle=0")[0] == 2
        assert "--rebuild" in capsys.readouterr().err
        assert path.read_bytes() == data
    assert len(capture(tmp_path, a, f"--atol={ATOL}")["captured"]) == 6


def test_checksums_that_nobody_took_cannot_be_verified(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = runs
    assert ciwrap(tmp_path, "compare", a, b, "--verify-checksums")[0] == 2
    capture(tmp_path, a, "--checksums")
    capture(tmp_path, b)
    assert ciwrap(tmp_path, "compare", a, b, "--verify-checksums")[0] == 2
    assert "--checksums" in capsys.readouterr().err
    capture(tmp_path, b, "--checksums")
    assert ciwrap(tmp_path, "compare", a, b, "--verify-checksums")[0] == 0


def test_a_stale_capture_is_not_believed(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}")
    change(path_of(b, 10, 0, "x"), (1, 1))
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert code == 1
    assert counts_in(document) == oracle(a, b)
    assert any("stale" in one["text"] for one in document["checks"][0]["messages"])


@pytest.mark.parametrize("moved", [False, True])
def test_a_file_that_took_the_place_of_another_is_not_believed(
    tmp_path: Path, runs: tuple[Path, Path], moved: bool
) -> None:
    """Of one size and time, as an archive may have them."""
    for run in runs:
        capture(tmp_path, run)
    a, b = runs
    if moved:
        b = b.rename(tmp_path / "elsewhere")
    assert ciwrap(tmp_path, "compare", a, b)[0] == 0
    path = path_of(b, 10, 1, "x")
    before = path.stat()
    values = np.load(path)
    values[3, 4] += 1
    other = tmp_path / "other.npy"
    np.save(other, values)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert (code, counts_in(document)[10, 1, "x"]) == (1, 1)
    assert "one that took its place" in str(document["checks"][0]["messages"])
    assert capture(tmp_path, b)["captured"] == [[10, 1]]
    code, document = ciwrap(tmp_path, "compare", a, b)
    assert (code, counts_in(document)[10, 1, "x"]) == (1, 1)


@pytest.mark.parametrize("change_first", [False, True])
def test_a_copy_is_not_believed(
    tmp_path: Path, runs: tuple[Path, Path], change_first: bool
) -> None:
    """Nobody knows what was copied: the file may have been written, and given its old time."""
    a, b = runs
    for run in runs:
        capture(tmp_path, run)

    def write(run: Path) -> None:
        path = path_of(run, 10, 1, "x")
        before = path.stat()
        change(path, (3, 4))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    if change_first:
        write(b)
    copy = shutil.copytree(b, tmp_path / "copy")
    if not change_first:
        code, document = ciwrap(tmp_path, "compare", a, copy)
        assert code == 0
        assert "but a copy" in str(document["checks"][0]["messages"])
        write(copy)
    code, document = ciwrap(tmp_path, "compare", a, copy)
    assert (code, counts_in(document)[10, 1, "x"]) == (1, 1)
    assert capture(tmp_path, copy)["kept"] == []
    assert capture(tmp_path, copy)["captured"] == []
    code, document = ciwrap(tmp_path, "compare", a, copy)
    assert (code, counts_in(document)[10, 1, "x"]) == (1, 1)
    assert "stale" not in str(document["checks"][0]["messages"])


def test_checksums_see_what_times_do_not(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}", "--checksums")
    path = path_of(b, 10, 0, "x")
    times = path.stat()
    change(path, (1, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    # The time of change tells, which no program sets, and that it is another file does.
    assert ciwrap(tmp_path, "compare", a, b)[0] == 1
    copied = path.with_name("copied")
    shutil.copy2(path, copied)
    copied.replace(path)
    assert ciwrap(tmp_path, "compare", a, b)[0] == 1
    b = shutil.copytree(b, tmp_path / "copy")
    assert ciwrap(tmp_path, "compare", a, b)[0] == 1
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


@pytest.mark.slow
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
        assert read_index(found).identity == read_index(wanted).identity


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


def test_what_a_capture_does_not_hold_of_its_check_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Masks, periods, orders of rows and what is ignored: without the check all is compared."""
    for name in "AB":
        folder = tmp_path / name
        folder.mkdir()
        for one in ("land", "seen", "angle", "noise"):
            np.save(folder / f"{one}.npy", np.arange(4) < 2 if one == "land" else np.arange(4.0))
    (tmp_path / "ciwrap.yaml").write_text(
        'checks: {sea: {outputs: "A/*.npy", atol: 1, ignore: [noise],'
        " variables: {seen: {mask: land}, angle: {period: 6}}}}\n"
    )
    check = ("--check=sea", f"--config={tmp_path / 'ciwrap.yaml'}")
    assert ciwrap(tmp_path, "capture", tmp_path / "A", *check)[0] == 0
    capsys.readouterr()
    told = (
        "note: A's capture was made with check sea and holds nothing but bounds of it, so this does"
        " not count: mask, period, combine and align_by of angle, seen; ignore of noise (give"
        " --check)\n"
    )
    # A capture holds no bound of what is ignored.
    unsaid = "note: A's capture has no bound for noise: compared exactly\n"
    assert ciwrap(tmp_path, "compare", tmp_path / "A", tmp_path / "B")[0] == 0
    out = capsys.readouterr().out
    assert told in out
    assert unsaid in out
    assert ciwrap(tmp_path, "compare", tmp_path / "A", tmp_path / "B", *check)[0] == 0
    assert "capture was made" not in capsys.readouterr().out


def test_arrays_of_nothing_are_captured_with_residues(tmp_path: Path) -> None:
    """A rank without particles: its tree has residues of no element."""
    runs = tmp_path / "A", tmp_path / "B"
    for run in runs:
        (run / "iter_1").mkdir(parents=True)
        np.save(run / "iter_1/none.npy", np.empty((0, 3)))
        np.save(run / "iter_1/x.npy", np.arange(9.0))
    atol = f"--atol={ATOL}"
    capture(tmp_path, runs[0], atol, "--residues")
    assert capture(tmp_path, runs[0], atol, "--residues")["captured"] == []
    against = f"--against={runs[0] / '.ciwrap.tree'}"
    capture(tmp_path, runs[1], atol, against)
    assert capture(tmp_path, runs[1], atol, against)["captured"] == []
    for a, b in itertools.product(*((run, run / ".ciwrap.tree") for run in runs)):
        code, document = ciwrap(tmp_path, "compare", a, b)
        assert code == 0
        assert document["checks"][0]["coverage"]["compared_variables"] == 2


def test_a_run_that_has_nothing_is_held_against(tmp_path: Path) -> None:
    for name in "AB":
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "none.npy", np.empty(0))
    capture(tmp_path, tmp_path / "A", f"--atol={ATOL}", "--residues")
    capture(tmp_path, tmp_path / "B", f"--against={tmp_path / 'A/.ciwrap.tree'}")
    assert ciwrap(tmp_path, "compare", tmp_path / "A", tmp_path / "B")[0] == 3
