"""Captures without data: what they settle is settled, all else is "not comparable"."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.history_runs import ATOL, SMALL, capture, ciwrap, path_of, write_run

from ciwrap.cli.main import run as run_cli
from ciwrap.runs.capture_file import CaptureFile
from ciwrap.runs.capture_index import read_checkpoint, read_index

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

RUNS = 10
SHARE_THAT_PASSES = 0.87  # of the bound, with the residues that captures have


def arrays_of(number: int) -> dict[str, NDArray[Any]]:
    """One of ten runs: 0 to 2 are equal; others have noise, a defect, NaN, -0 or other counts."""
    random = np.random.default_rng(1)
    x, n = random.normal(size=3000), random.integers(0, 9, size=3000)
    noise = np.random.default_rng([2, number]).uniform(-1, 1, size=3000) * ATOL
    x[:5] = 0.0
    if number == 3:
        x[:5] = -0.0
    elif number in (4, 5):
        x += 0.2 * noise
    elif number == 6:
        x += 0.45 * noise
    elif number == 7:
        x[1234] += 1.5 * ATOL
    elif number == 8:
        x[7] = np.nan
        n[2999] += 1
    elif number == 9:
        x += 3 * noise
    return {"x": x, "n": n}


def write(run: Path, arrays: dict[str, NDArray[Any]]) -> Path:
    for name, array in arrays.items():
        path = run / "iter_1" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)
    return run


def worst(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The largest difference by plain NumPy; infinite where NaN meets a number."""
    apart = np.abs(one.astype(float) - other.astype(float))
    apart[np.isnan(one.astype(float)) & np.isnan(other.astype(float))] = 0.0
    return float(np.nan_to_num(apart, nan=np.inf).max())


def verdicts(tmp_path: Path, one: Path, other: Path, *more: str) -> dict[str, dict[str, Any]]:
    target = tmp_path / "verdicts.json"
    run_cli(["compare", str(one), str(other), *more, "--json", str(target)])
    (check,) = json.loads(target.read_text())["checks"]
    return {found["name"]: found for found in check["variables"]}


def lose_data(run: Path) -> None:
    for folder in run.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)


@pytest.fixture(scope="module")
def ten_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten runs, captured with residues, and their data kept elsewhere."""
    root = tmp_path_factory.mktemp("ten")
    for number in range(RUNS):
        run = write(root / f"run{number}", arrays_of(number))
        more = ["--residues"] if number == 0 else ["--against", root / "run0/.ciwrap.tree"]
        capture(root, run, f"--atol={ATOL}", *more, *(["--residues"] if number else []))
        shutil.copytree(run, root / f"kept{number}")
        lose_data(run)
    return root


@pytest.mark.parametrize("second", ["run", "kept"], ids=["both without data", "one with data"])
def test_ten_runs_in_pairs_and_no_wrong_match(ten_runs: Path, second: str) -> None:
    settled = 0
    for one, other in itertools.combinations(range(RUNS), 2):
        found = verdicts(ten_runs, ten_runs / f"run{one}", ten_runs / f"{second}{other}")
        ours, theirs = arrays_of(one), arrays_of(other)
        for name in ("x", "n"):
            apart = worst(ours[name], theirs[name])
            bound = ATOL if name == "x" else 0.0
            verdict, what = found[name]["verdict"], (one, other, found[name])
            if verdict == "match":
                assert apart <= bound, what
            elif verdict == "differ":
                assert apart > bound, what
            elif verdict == "undecided":
                # Residues tell what lies in the last part of the bound from nothing beyond it.
                assert apart > SHARE_THAT_PASSES * bound, what
            else:
                assert "data needed" in found[name]["reason"], what
            if apart == 0:
                assert verdict == "match", what
            if name == "n":
                assert verdict == ("match" if apart == 0 else "differ"), what
            has_residues = one == 0 or second == "kept"
            if has_residues and apart <= SHARE_THAT_PASSES * bound:
                assert verdict == "match", what
            if has_residues and apart > bound:
                assert verdict in ("differ", "undecided"), what
            if has_residues and apart > 10 * bound:
                # By summaries of chunks, or by the elements that moved.
                assert verdict == "differ", what
            settled += verdict != "not_comparable"
    assert settled > 45


def test_either_order_and_every_name_of_a_fingerprint_is_one(
    ten_runs: Path, tmp_path: Path
) -> None:
    one = shutil.copy(ten_runs / "run0/.ciwrap.tree", tmp_path / "one.tree")
    (tmp_path / "beside").mkdir()
    shutil.copy(one, tmp_path / "beside.tree")
    for reference in (one, ten_runs / "run0", tmp_path / "beside", ten_runs / "kept0/.ciwrap.tree"):
        for other in (ten_runs / "run7", ten_runs / "kept7", ten_runs / "kept7/.ciwrap.tree"):
            found = verdicts(tmp_path, reference, other)
            # Where the data of one side are there, the element that moved is worked out.
            has_data = other == ten_runs / "kept7"
            wanted = "differ" if has_data else "undecided"
            assert (found["x"]["verdict"], found["n"]["verdict"]) == (wanted, "match")
            back = verdicts(tmp_path, other, reference)
            assert back["n"]["verdict"] == "match"
            assert back["x"]["verdict"] != "match"


def test_a_relative_bound_is_of_the_first_run(tmp_path: Path) -> None:
    """So residues of the second run, which are relative to its own numbers, settle nothing."""
    small, large = np.full(100, 1.0), np.full(100, 1.2)
    for name, numbers in (("small", small), ("large", large)):
        for place in (f"{name}-kept", name):
            write(tmp_path / place, {"x": numbers})
        capture(tmp_path, tmp_path / name, "--rtol=0.5", "--residues")
        lose_data(tmp_path / name)

    def found(one: str, other: str) -> dict[str, Any]:
        return verdicts(tmp_path, tmp_path / one, tmp_path / other)["x"]

    assert found("small", "large-kept")["verdict"] == "match"
    assert found("large", "small-kept")["verdict"] == "match"
    # Within the bound, but nothing that may be used says so.
    assert found("small-kept", "large")["verdict"] == "not_comparable"
    assert found("large-kept", "small")["verdict"] == "not_comparable"
    assert found("large-kept", "large")["verdict"] == "match"


def test_what_is_open_is_not_comparable_and_says_how_much(tmp_path: Path) -> None:
    for run, by in (("a", 0.0), ("b", 2 * ATOL)):
        arrays = {"x": np.zeros(640)}
        arrays["x"][:5] += by
        capture(tmp_path, write(tmp_path / run, arrays), f"--atol={ATOL}")
        lose_data(tmp_path / run)
    code, document = ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "b")
    (one,) = document["checks"][0]["variables"]
    assert code == 3
    assert one["reason"].startswith("1 of 10 blocks is open")
    assert (one["suspect_chunks"], one["chunk_count"]) == (1, 10)
    assert any("and no data" in text["text"] for text in document["checks"][0]["messages"])


def test_exact_digests_refute(tmp_path: Path) -> None:
    for run, by in (("a", 0.0), ("b", 1e-9)):
        arrays = {"x": np.arange(640.0), "y": np.ones(3)}
        arrays["x"][5] += by
        capture(tmp_path, write(tmp_path / run, arrays))
        lose_data(tmp_path / run)
    code, document = ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "b")
    found = {one["name"]: one for one in document["checks"][0]["variables"]}
    assert (code, found["x"]["verdict"], found["y"]["verdict"]) == (1, "differ", "match")
    assert (found["x"]["differing_count_at_least"], found["x"]["differing_count_at_most"]) == (
        1,
        64,
    )


def test_another_bound_than_it_was_made_with(ten_runs: Path, tmp_path: Path) -> None:
    for other in ("run1", "kept1"):
        found = verdicts(tmp_path, ten_runs / "run0", ten_runs / other, "--atol=1")
        # Whatever matched by the bound of the captures does so by a wider one.
        assert {one["verdict"] for one in found.values()} == {"match"}
        assert found["x"]["golden_bound"] != found["x"]["bound"]
    found = verdicts(tmp_path, ten_runs / "run0", ten_runs / "kept1", "--atol=1e-12")
    assert found["x"]["verdict"] in ("differ", "undecided", "not_comparable")


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"x": np.zeros(7)}, "shape"),
        ({"x": np.zeros(6, "f4")}, "dtype"),
        ({"y": np.zeros(6)}, "only in A, not in B"),
    ],
)
@pytest.mark.parametrize("is_lost", [True, False])
def test_what_does_not_fit(
    tmp_path: Path, arrays: dict[str, Any], word: str, is_lost: bool
) -> None:
    capture(tmp_path, write(tmp_path / "a", {"x": np.zeros(6)}))
    capture(tmp_path, write(tmp_path / "b", arrays))
    lose_data(tmp_path / "a")
    if is_lost:
        lose_data(tmp_path / "b")
    found = verdicts(tmp_path, tmp_path / "a", tmp_path / "b")
    assert found["x"]["verdict"] == "not_comparable"
    assert word in found["x"]["reason"]


def test_arrays_of_nothing_match(tmp_path: Path) -> None:
    for run in ("a", "b"):
        capture(tmp_path, write(tmp_path / run, {"x": np.zeros((0, 3)), "y": np.ones(2)}))
        lose_data(tmp_path / run)
    found = verdicts(tmp_path, tmp_path / "a", tmp_path / "b")
    assert {one["verdict"] for one in found.values()} == {"match"}


def test_what_has_no_tree_is_not_comparable(tmp_path: Path) -> None:
    for run in ("a", "b"):
        arrays = {"x": np.zeros(6), "y": np.ones(2)}
        capture(tmp_path, write(tmp_path / run, arrays), "--ignore", "y")
        lose_data(tmp_path / run)
    found = verdicts(tmp_path, tmp_path / "a", tmp_path / "b")
    assert (found["x"]["verdict"], found["y"]["verdict"]) == ("match", "not_comparable")
    assert "it is ignored" in found["y"]["reason"]


def test_iterations_inside_files_against_a_fingerprint(tmp_path: Path) -> None:
    run = write_run(tmp_path / "A")
    capture(tmp_path, run)
    other = tmp_path / "B.npz"
    np.savez(other, iter_0005=np.zeros(3))
    shutil.copy(run / ".ciwrap.tree", tmp_path / "a.tree")
    code, _ = ciwrap(tmp_path, "compare", tmp_path / "a.tree", other)
    assert code == 2  # a file is no run


def test_the_layout_comes_with_the_fingerprint(tmp_path: Path) -> None:
    for run in ("a", "b"):
        path = tmp_path / run / "out-7-of-x.npy"
        path.parent.mkdir()
        np.save(path, np.ones(5))
    layout = "--layout=out-{iteration:d}-of-{name}.npy"
    capture(tmp_path, tmp_path / "a", layout)
    shutil.copy(tmp_path / "a/.ciwrap.tree", tmp_path / "a.tree")
    code, document = ciwrap(tmp_path, "compare", tmp_path / "a.tree", tmp_path / "b")
    assert code == 0
    assert document["checks"][0]["variables"][0]["iteration"] == 7


def test_damage_is_no_difference_and_no_match(tmp_path: Path) -> None:
    for run, by in (("a", 0.0), ("b", 1.0)):
        capture(tmp_path, write(tmp_path / run, {"x": np.arange(640.0) + by}))
        lose_data(tmp_path / run)
    path = tmp_path / "b/.ciwrap.tree"
    with CaptureFile(path) as opened:
        (directory,) = read_index(opened).checkpoints.values()
        (one,) = read_checkpoint(opened, directory).variables
    assert one.plain is not None
    for at in (one.plain.digests.offset, directory.section.offset + 3, path.stat().st_size - 3):
        whole = bytearray(path.read_bytes())
        damaged = whole.copy()
        damaged[at] ^= 1
        path.write_bytes(damaged)
        code, _ = ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "b")
        assert code == 3
        path.write_bytes(whole)
    assert ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "b")[0] == 1


def test_options_that_need_data_are_refused(ten_runs: Path, tmp_path: Path) -> None:
    one, run = ten_runs / "run0", ten_runs / "kept1"
    for options in (
        ["--no-captures"],
        ["--list", tmp_path / "d.csv"],
        ["--capture-a", one / ".ciwrap.tree"],
    ):
        assert ciwrap(tmp_path, "compare", one, run, *options)[0] == 2
    assert ciwrap(tmp_path, "compare", one, ten_runs / "run1", "--verify-checksums")[0] == 2
    for option in ("--include", "--exclude"):
        for other in (ten_runs / "run1", ten_runs / "kept1/.ciwrap.tree"):
            assert ciwrap(tmp_path, "compare", one, other, option, "*.npy")[0] == 2
        assert ciwrap(tmp_path, "compare", one, run, option, "*.npy")[0] != 2


def test_a_run_that_lost_some_of_its_files_is_still_a_run(
    tmp_path: Path, runs: tuple[Path, Path]
) -> None:
    """What is left decides; that the capture knows more does not make up for files."""
    for run in runs:
        capture(tmp_path, run, f"--atol={ATOL}")
    shutil.rmtree(path_of(runs[1], 10, 0, "x").parent)
    code, document = ciwrap(tmp_path, "compare", *runs)
    assert code == 3
    assert len(document["checks"][0]["missing_variables"]) == 2
    # The captures themselves still agree.
    trees = [run / ".ciwrap.tree" for run in runs]
    assert ciwrap(tmp_path, "compare", *trees)[0] == 0
    # Captured again, what is gone is gone.
    capture(tmp_path, runs[1])
    assert ciwrap(tmp_path, "compare", *trees)[0] == 3


def test_copies_without_times_are_no_false_alarm(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    a, b = runs
    for path in b.rglob("*.npy"):
        np.save(path, np.load(path) + np.float32(ATOL / 4))
    capture(tmp_path, a, f"--atol={ATOL}", "--residues")
    capture(tmp_path, b, "--against", a / ".ciwrap.tree")
    for run in runs:
        for path in run.rglob("*.npy"):
            os.utime(path, ns=(7, 7))
    trees = [run / ".ciwrap.tree" for run in runs]
    for one, other in itertools.product((a, trees[0]), (b, trees[1])):
        code, document = ciwrap(tmp_path, "compare", one, other)
        # B's tree was made against residues that the data of A no longer have beside them.
        is_open = (one, other) == (a, trees[1])
        assert (code, document["checks"][0]["bounds_from"]) == (3 * is_open, "A's capture")


def test_show_tells_what_a_capture_holds(
    tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    capture(tmp_path, runs[0], f"--atol={ATOL}", "--residues")
    capsys.readouterr()
    code, document = ciwrap(tmp_path, "show", runs[0] / ".ciwrap.tree")
    shown = document["capture"]
    assert code == 0
    assert (shown["iterations"], shown["ranks"]) == ([5, 10, 20], [0, 1])
    assert (shown["checkpoints"], shown["bounds_from"], shown["chunk_bytes"]) == (6, "given", 512)
    assert [(one["name"], one["checkpoints"]) for one in shown["variables"]] == [
        ("phi", 6),
        ("x", 6),
    ]
    assert shown["variables"][0]["data_bytes"] == 6 * 2000 * 8
    said = capsys.readouterr().out
    assert "variable phi\n  <f8 40x50, atol=0.0001 rtol=0\n  evidence plain, residues" in said
    # Neither who nor where: captures travel.
    assert str(tmp_path) not in said
    assert str(tmp_path).encode() not in (runs[0] / ".ciwrap.tree").read_bytes()
    code, _ = ciwrap(tmp_path, "show", runs[0])
    assert (code, capsys.readouterr().out) == (0, said)


def test_a_folder_of_nothing_but_hidden_things_without_a_capture_is_no_run(tmp_path: Path) -> None:
    capture(tmp_path, write(tmp_path / "a", {"x": np.ones(3)}), SMALL)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".hidden").write_text("x")
    assert ciwrap(tmp_path, "compare", tmp_path / "a", tmp_path / "b")[0] == 3


def write_histories(folder: Path, files: dict[str, dict[str, float]]) -> None:
    """HDF5 files, and the captures of the folders that they lie in."""
    h5py = pytest.importorskip("h5py")
    for name, inside in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            for variable, value in inside.items():
                file[variable] = np.full(3, value)
    for run in {name[0] for name in files}:
        capture(folder, folder / run, "-o", folder / f"{run}.tree")


def test_checkpoints_that_no_path_tells_of_are_not_all_of_a_run(tmp_path: Path) -> None:
    """A has iteration 6 besides, in a file whose path tells; B's paths tell of all others."""
    write_histories(
        tmp_path,
        {
            "A/history.h5": {"step_5/x": 1.0},
            "A/iter_6/history.h5": {"x": 1.0},
            "B/iter_5/history.h5": {"x": 1.0},
        },
    )
    pairs = [*itertools.product(("A", "A.tree"), ("B", "B.tree")), ("A.tree", "B", "process")]
    for one, other, *engine in pairs:
        spread = [f"--executor={name}" for name in engine]
        code, document = ciwrap(tmp_path, "compare", tmp_path / one, tmp_path / other, *spread)
        coverage = document["checks"][0]["coverage"]
        assert (code, coverage["compared_variables"], coverage["missing"]) == (3, 1, 1)
    code, document = ciwrap(tmp_path, "compare", tmp_path / "B", tmp_path / "A.tree")
    coverage = document["checks"][0]["coverage"]
    assert (code, coverage["compared_variables"], coverage["extra"]) == (3, 1, 1)


def test_what_two_checkpoints_hold_is_not_compared_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file's path tells the iteration, the other file does; B is as the one, C as the other."""
    write_histories(
        tmp_path,
        {
            "A/history.h5": {"step_5/x": 7.0},
            "A/iter_5/history.h5": {"x": 1.0},
            "B/iter_5/history.h5": {"x": 1.0},
            "C/iter_5/history.h5": {"x": 7.0},
        },
    )
    for other in ("B", "C", "B.tree", "C.tree"):
        for one in ("A", "A.tree"):
            assert ciwrap(tmp_path, "compare", tmp_path / one, tmp_path / other)[0] == 3
            said = capsys.readouterr()
            assert "iter 5 / history/x: is " in said.out + said.err


def test_what_stands_in_files_that_are_not_paired_is_not_let_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Iteration 5 stands in a path of A and within a file of B, and both have such files."""
    write_histories(
        tmp_path,
        {
            "A/history.h5": {"step_1/x": 1.0},
            "A/iter_5/history.h5": {"x": 1.0},
            "B/history.h5": {"step_1/x": 1.0, "step_5/x": 2.0},
        },
    )
    (tmp_path / "ciwrap.yaml").write_text(
        "checks: {some: {outputs: ., strict: {variables: false}}}\n"
    )
    check = ("--check=some", f"--config={tmp_path / 'ciwrap.yaml'}")
    for one, other in itertools.product(("A", "A.tree"), ("B", "B.tree")):
        for words in ((), check):
            code, document = ciwrap(tmp_path, "compare", tmp_path / one, tmp_path / other, *words)
            coverage = document["checks"][0]["coverage"]
            counts = [coverage[name] for name in ("not_comparable", "missing", "extra", "let_go")]
            assert (code, counts) == (3, [1, 0, 0, 0])
            said = capsys.readouterr().out
            assert (
                "iter 5 / history/x: is in both runs, but one has its iteration or rank in the path"
                in said
            )
