"""`ciwrap compare` of runs that do not quite fit: ended, longer, shifted, renamed, reordered."""

from __future__ import annotations

import csv
import os
import re
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from e2e.history_runs import ciwrap
from e2e.test_first_contact import LAYOUT, names, save, texts

from ciwrap.cli.main import run as run_cli
from ciwrap.runs.comparer import _Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "A", tmp_path / "B"


def write(run: Path, iterations: Iterable[int], *, by: float = 0.0, name: str = "x") -> None:
    for iteration in iterations:
        save(run / f"iter_{iteration}/{name}.npy", np.arange(20.0) + by)


def verdicts(document: Any) -> dict[tuple[int | None, int | None, str], str]:
    return {
        (one["iteration"], one["rank"], one["name"]): one["verdict"]
        for one in document["checks"][0]["variables"]
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("at", [0, 1, 7, 99])
def test_what_was_found_before_a_signal_is_told(
    tmp_path: Path,
    pair: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    at: int,
) -> None:
    """The signal comes while variable number `at` is begun; all 100 of them differ or match."""
    write(pair[0], range(100))
    write(pair[1], range(0, 100, 2), by=1.0)
    write(pair[1], range(1, 100, 2))
    begin, seen = _Comparison._variable, []

    def begin_one(self: Any, *arguments: Any) -> None:
        if len(seen) == at:
            os.kill(os.getpid(), number)
        seen.append(arguments)
        begin(self, *arguments)

    monkeypatch.setattr(_Comparison, "_variable", begin_one)
    code, document = ciwrap(tmp_path, "compare", *pair, "--no-captures")
    assert code == 3
    told = texts(document)
    found = verdicts(document)
    if at < 99:
        assert f"the comparison was ended by {number.name}" in told[0]
        lost = re.search(r"([\d,]+) checkpoints, from iter", " ".join(told))
        assert lost is not None
        assert len(found) + int(lost[1]) == 100
        assert len(seen) == at + 1
    for (iteration, _, _), verdict in found.items():
        right = "match" if iteration % 2 else "differ"
        assert verdict in (right, "not_comparable")


def test_a_second_signal_ends_at_once(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in pair:
        write(run, range(3))

    def end(*_: Any) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(_Comparison, "_variable", end)
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert (code, document) == (130, None)


def test_handlers_are_put_back(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    for run in pair:
        write(run, range(2))
    ciwrap(tmp_path, "compare", *pair)
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before


def test_as_far_as_both_runs_go(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    write(pair[0], range(30))
    write(pair[1], range(10, 40))
    assert ciwrap(tmp_path, "compare", *pair)[0] == 3
    code, document = ciwrap(tmp_path, "compare", *pair, "--common")
    assert code == 0
    assert sorted(key[0] for key in verdicts(document)) == list(range(10, 30))
    (told,) = texts(document, "warning")
    assert "beyond iterations 10 to 29" in told
    assert "10 variables of the first run, 10 variables of the second" in told
    assert document["coverage"]["text"].endswith("not compared: 20 arrays of iterations left out")
    # What is lacking in between is not let go, and what differs differs.
    (pair[1] / "iter_15/x.npy").unlink()
    (pair[1] / "iter_15/y.npy").write_bytes(b"")
    assert ciwrap(tmp_path, "compare", *pair, "--common", "--exclude", "y.npy")[0] == 3


def test_nothing_in_common_is_no_match(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    write(pair[0], range(3))
    write(pair[1], range(5, 8))
    assert ciwrap(tmp_path, "compare", *pair, "--common")[0] == 3


def test_an_offset_of_no_iteration(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        save(run / "x.npy", np.arange(20.0))
    for words in (pair, [run / "x.npy" for run in pair]):
        code, document = ciwrap(tmp_path, "compare", *words, "--offset", 3)
        assert code == 0
        assert texts(document, "note") == []
        assert texts(document, "warning") == ["no iteration is known, which --offset needs"]


@pytest.mark.parametrize("offset", [5, -5])
def test_iterations_with_an_offset(tmp_path: Path, pair: tuple[Path, Path], offset: int) -> None:
    for side, run in enumerate(pair):
        for i in range(5, 9):
            save(run / f"iter_{i + offset * side}/x.npy", np.arange(20.0) + i)
    assert ciwrap(tmp_path, "compare", *pair)[0] in (1, 3)
    code, document = ciwrap(tmp_path, "compare", *pair, "--offset", offset)
    assert code == 0
    assert sorted(key[0] for key in verdicts(document)) == [i + max(offset, 0) for i in range(5, 9)]
    assert f"with i {'+' if offset > 0 else '-'} 5 of B" in texts(document, "note")[0]
    assert ciwrap(tmp_path, "compare", *pair, "--offset", -offset)[0] in (1, 3)


def test_an_offset_within_files(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    import h5py

    for side, run in enumerate(pair):
        run.mkdir()
        with h5py.File(run / "all.h5", "w") as file:
            for i in range(3):
                file[f"step_{i + 2 * side}/x"] = np.arange(4.0) + i
    code, document = ciwrap(tmp_path, "compare", *pair, "--offset", 2)
    assert (code, len(verdicts(document))) == (0, 3)


def test_a_part_of_names_that_differs_from_run_to_run(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    for run, job in zip(pair, (1234, 1235), strict=True):
        for step in (10, 20):
            for name in ("u", "v"):
                save(run / f"job.{job}_step{step:04d}_{name}.npy")
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    (hint,) = texts(document, "note")
    assert "'1234' in A and '1235' in B" in hint
    assert "for it in --layout, such as 'job.{*}_{name}'" in hint
    assert ciwrap(tmp_path, "compare", *pair, "--layout", "job.{*}_{name}")[0] == 0
    layout = "job.{*}_step{iteration:d}_{name}.npy"
    code, document = ciwrap(tmp_path, "compare", *pair, "--layout", layout)
    assert code == 0
    assert set(verdicts(document)) == {(i, None, name) for i in (10, 20) for name in "uv"}


@pytest.mark.parametrize(
    ("files", "layout"),
    [
        (["u_{}", "v_{}"], "{name}_{*}"),
        (["{}.rho"], "{*}.{name}"),
        (["{}/u", "{}/v"], None),  # of one folder
        (["a_{}_b", "c_{}_d"], None),
        (["iter_1/u_{}"], None),  # a layout would take the place of the one that tells iterations
    ],
)
def test_the_layout_that_is_proposed_fits(
    tmp_path: Path, pair: tuple[Path, Path], files: list[str], layout: str | None
) -> None:
    for run, job in zip(pair, ("1234", "1235"), strict=True):
        for file in files:
            save(run / f"{file.format(job)}.npy")
    (hint,) = texts(ciwrap(tmp_path, "compare", *pair)[1], "note")
    assert ("such as" in hint) == (layout is not None), hint
    if layout is not None:
        assert f"such as {layout!r}" in hint
        assert ciwrap(tmp_path, "compare", *pair, "--layout", layout)[0] == 0


def write_particles(run: Path, seed: int, *, moved: bool) -> dict[int, float]:
    """40 particles on two ranks, in an order of their own; 7 has another value in B."""
    chance = np.random.default_rng(seed)
    ids = chance.permutation(40)
    values = ids * 0.5 + (seed == 2) * (ids == 7)
    cut = 25 if moved else 20
    for rank, rows in enumerate((slice(0, cut), slice(cut, 40))):
        save(run / f"iter_1/rank_{rank}/id.npy", ids[rows])
        save(run / f"iter_1/rank_{rank}/mass.npy", values[rows])
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_are_aligned_and_listed_with_their_ids(
    tmp_path: Path, pair: tuple[Path, Path], suffix: str
) -> None:
    held = [
        write_particles(run, seed, moved=seed == 2) for run, seed in zip(pair, (1, 2), strict=True)
    ]
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    assert any("--align-by id --across-ranks" in one for one in texts(document, "note"))
    target = tmp_path / f"list{suffix}"
    options = ("--align-by", "id", "--across-ranks", "--list", target)
    code, document = ciwrap(tmp_path, "compare", *pair, *options)
    assert code == 1
    assert names(document) == {"id", "mass"}
    if suffix == ".csv":
        with target.open() as stream:
            rows = list(csv.DictReader(stream))
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(target).to_pylist()
    different = [one for one in held[0] if held[0][one] != held[1][one]]
    assert [int(row["id"]) for row in rows] == different == [7]
    assert [float(row["new"]) for row in rows] == [4.5]


def test_the_same_ids_in_another_order(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run, seed in zip(pair, (1, 3), strict=True):
        write_particles(run, seed, moved=False)
        for rank in (0, 1):
            ids = np.random.default_rng(seed).permutation(20) + 20 * rank
            save(run / f"iter_1/rank_{rank}/id.npy", ids)
            save(run / f"iter_1/rank_{rank}/mass.npy", ids * 2.0)
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 1
    assert any("another order: try --align-by id" in one for one in texts(document, "note"))
    assert ciwrap(tmp_path, "compare", *pair, "--align-by", "id")[0] == 0


def test_float32_against_float64(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    save(pair[0] / "x.npy", np.arange(5.0))
    save(pair[1] / "x.npy", np.arange(5.0, dtype=np.float32))
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    assert any("try --mixed-precision" in one for one in texts(document, "note"))
    assert "    hint: float32 on one side" in capsys.readouterr().out
    assert ciwrap(tmp_path, "compare", *pair, "--mixed-precision", "--atol", 1e-6)[0] == 0


@pytest.mark.parametrize(
    ("folder", "layout", "keys"),
    [
        ("step_{0:04d}", "step_{iteration:d}/{name}.npy", {(0, None), (10, None)}),
        ("out/pe{1}/T{0}", "out/pe{rank:d}/T{iteration:d}/{name}.npy", {(0, 1), (10, 1)}),
        ("case{0}", None, set()),
    ],
)
def test_folders_that_count(
    tmp_path: Path,
    pair: tuple[Path, Path],
    folder: str,
    layout: str | None,
    keys: set[tuple[int, int | None]],
) -> None:
    for run, by in zip(pair, (0.0, 1.0), strict=True):
        for step in (0, 10):
            for name in "uv":
                save(run / folder.format(step, 1) / f"{name}.npy", np.arange(5.0) + by)
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 1
    told = [one for one in texts(document, "note") if "folders are numbered" in one]
    assert len(told) == (layout is not None)
    if layout is not None:
        assert f"--layout {layout!r} " in told[0]
        code, document = ciwrap(tmp_path, "compare", *pair, "--layout", layout)
        assert code == 1
        assert verdicts(document) == {(*key, name): "differ" for key in keys for name in "uv"}
        assert not any("folders are numbered" in one for one in texts(document, "note"))


def test_nobody_is_told_to_try_what_was_tried(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    save(pair[0] / "x.npy", np.full(5, 1e300))
    save(pair[1] / "x.npy", np.arange(5, dtype=np.float32))
    code, document = ciwrap(tmp_path, "compare", *pair, "--mixed-precision")
    assert code == 3
    assert not any("hint" in one for one in texts(document, "note"))


def test_several_processes_that_do_the_same(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in pair:
        write(run, range(2))
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    _, document = ciwrap(tmp_path, "compare", *pair)
    assert "one of 4 processes that mpiexec started" in texts(document, "warning")[0]
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert texts(ciwrap(tmp_path, "compare", *pair)[1], "warning") == []


def test_a_line_for_each_variable_the_first_to_diverge_first(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for side, run in enumerate(pair):
        for i in range(20):
            for name, begins, size in (
                ("late", 15, 1e6),
                ("u", 5, 1.0),
                ("v", 5, 2.0),
                ("w", 99, 0),
            ):
                save(run / f"iter_{i}/{name}.npy", np.arange(4.0) + (side and i >= begins) * size)
    ciwrap(tmp_path, "compare", *pair)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "DIFFER  3 of 4 variables, at 15 of 20 iterations"
    assert shown[1].strip() == "bound: none given, compared exactly"
    assert shown[2].strip() == "first difference: iter 5 / u"
    # No bound is offered that is a third of what the values span.
    assert shown[3].strip().endswith("values that differ, B = A + 1")
    assert shown[4].strip() == "[0]: A 0.0, B 1.0, compared exactly"
    assert shown[5].strip() == "also not matching in iteration 5: `v`"
    lines = [line.split()[1] for line in shown if line.startswith("    DIFFER")]
    assert lines == ["u:", "v:", "late:"]
    assert "u: from iteration 5 on; 60 of 60 values differ there" in shown[6]
    assert not any("golden" in line for line in shown)
    ciwrap(tmp_path, "compare", *pair, "-v")
    assert "A 0.0, B 1.0" in capsys.readouterr().out


def test_what_has_no_iteration_beside_what_has(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """What differs outside all iterations is in none; bounds are counted by variables."""
    for side, run in enumerate(pair):
        for i in range(3):
            save(run / f"iter_{i}/u.npy", np.arange(4.0) + side)
        for name in ("kinetic", "potential"):
            save(run / f"{name}.npy", np.arange(4.0) + side)
        save(run / "count.npy", np.array(["a", "b"]))
    ciwrap(tmp_path, "compare", *pair, "--atol", 1e-6)
    shown = capsys.readouterr().out
    assert "first difference: iter 0 / u" in shown
    assert "DIFFER  potential" in shown
    assert "None" not in shown
    bounds = "atol=1e-6 rtol=0 (3 variables), exact by type (1 variable)"
    assert f"bound: {bounds}, as given\n" in shown


def test_a_jump_is_told_with_the_iterations_it_lies_between(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for side, run in enumerate(pair):
        for i in (0, 30, 600):
            save(run / f"iter_{i}/x.npy", np.arange(4.0) + (side and i == 600) * 7.0)
    ciwrap(tmp_path, "compare", *pair, "--atol", 1e-6)
    assert "jumps between 30 and 600" in capsys.readouterr().out


def test_a_file_that_is_written_while_it_is_read_is_not_comparable(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written in place, once the first look at it is past."""
    for run in pair:
        save(run / "x.npy", np.ones(4000))
        save(run / "iter_3/x.npy", np.ones(40))
    finish = _Comparison.finish

    def write_and_finish(self: Any) -> None:
        finish(self)
        with (pair[1] / "x.npy").open("r+b") as file:
            file.seek(200)
            file.write(bytes(800))

    monkeypatch.setattr(_Comparison, "finish", write_and_finish)
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    found = {one["iteration"]: one for one in document["checks"][0]["variables"]}
    assert found[3]["verdict"] == "match"
    assert found[None]["verdict"] == "not_comparable"
    assert "was written while it was being compared" in found[None]["reason"]


def test_a_rule_for_one_variable_switches_nothing_off_for_others(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    """No row is aligned, and no variable is called angle."""
    write(pair[0], range(2))
    write(pair[1], range(2), by=1.0)
    config = tmp_path / "ciwrap.yaml"
    config.write_text(
        f'version: 1\nchecks:\n  c:\n    outputs: "{LAYOUT}"\n    atol: 1e-6\n'
        "    variables: {angle: {atol: 1e-6, period: 1.0}}\n"
    )
    captured = (
        "capture",
        pair[0],
        "--checksums",
        "--settle",
        "0",
        "--check",
        "c",
        "--config",
        config,
    )
    assert run_cli([str(word) for word in captured]) == 0
    target = tmp_path / "list.csv"
    options = ("--check", "c", "--config", config, "--list", target, "--verify-checksums")
    code, _ = ciwrap(tmp_path, "compare", *pair, *options)
    assert code == 1
    assert len(target.read_text().splitlines()) == 41


def test_two_runs_are_a_and_b_in_every_output(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for side, run in enumerate(pair):
        for i in range(3):
            for name in ("u", "v"):
                save(run / f"iter_{i}/{name}.npy", np.arange(40.0) + (side and i > 0) * 2.0)
    report = tmp_path / "r.html"
    ciwrap(tmp_path, "compare", *pair, "--report", report)
    page = report.read_text()
    assert "values that differ, B = A + 2" in page.replace("\xa0", " ")
    assert "Also not matching in iteration 1: <code>v</code>." in page
    assert ">A</th>" in page
    assert ">golden</th>" not in page.partition('id="environment"')[0]
