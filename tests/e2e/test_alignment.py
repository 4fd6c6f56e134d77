"""Rows by id, circles, fill values, precision and duplicates, through the command line.

Each case is laid out as a real program writes it; what must be found is known beforehand.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciwrap.cli.main import run
from ciwrap.compare.periodic import _Circle
from ciwrap.model import ErrorBound, VariableSettings

if TYPE_CHECKING:
    from pathlib import Path

BOX = 10.0
ATOL = 1e-3


class Case:
    """Two runs `a` and `b` in a folder, and a check over whichever is in `out`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
        self.folder = folder
        monkeypatch.chdir(folder)
        (folder / "ciwrap.yaml").write_text(
            f"version: 1\ndefaults: {{atol: {ATOL}}}\nchecks:\n  c:\n    outputs: out\n{keys}"
        )

    def save(self, run_name: str, path: str, array: Any) -> None:
        target = self.folder / run_name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, array)

    def compare(self, code: int) -> dict[str, Any]:
        return self._run(code, "compare", "a", "b", "--check", "c")

    def check(self, code: int) -> dict[str, Any]:
        return self._run(code, "check")

    def accept(self, run_name: str, code: int = 0) -> None:
        self.use(run_name)
        assert run(["accept", "--reason", "test"]) == code

    def use(self, run_name: str) -> None:
        out = self.folder / "out"
        if out.is_symlink():
            out.unlink()
        out.symlink_to(self.folder / run_name)

    def _run(self, code: int, *arguments: str) -> dict[str, Any]:
        found = run([*arguments, "--json", "result.json"])
        document = json.loads((self.folder / "result.json").read_text())
        assert found == code, document
        variables: list[dict[str, Any]] = document["checks"][0]["variables"]
        self.messages = [message["text"] for message in document["checks"][0]["messages"]]
        return {
            " / ".join(str(v[k]) for k in ("iteration", "rank", "name") if v.get(k) is not None): v
            for v in variables
        }


def particles(seed: int, count: int = 500) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        "id": draw.permutation(count).astype("<i8") * 7,
        "x": draw.uniform(0, BOX, (count, 3)),
        "mass": draw.normal(size=count).astype("<f4"),
        "hit": draw.integers(0, 9, count).astype("<i4"),
    }


def shuffled(rows: dict[str, Any], seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(rows["id"].size)
    return {name: array[order] for name, array in rows.items()}


def save_ranks(case: Case, run_name: str, rows: dict[str, Any], ranks: int, step: int = 5) -> None:
    """Rows dealt out to ranks by where the particles are, as domain decomposition does."""
    owner = (rows["x"][:, 0] / BOX * ranks).astype(int).clip(0, ranks - 1)
    for rank in range(ranks):
        for name, array in rows.items():
            case.save(run_name, f"iter_{step:04d}/rank_{rank}/{name}.npy", array[owner == rank])


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda keys: Case(tmp_path, monkeypatch, keys)


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


def wrapped(golden: Any, new: Any) -> Any:
    raw = np.abs(new - golden)
    return np.minimum(raw, BOX - raw)


def test_a_lost_row_is_never_a_match(case: Any) -> None:
    it = case("    align_by: id\n")
    rows = particles(1)
    for name, array in rows.items():
        it.save("a", f"{name}.npy", array)
        it.save("b", f"{name}.npy", array[rows["id"] != 21])
    found = it.compare(3)
    assert "1 only on the first side (21)" in found["x"]["reason"]
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
        if code == 1:
            assert found["energy"]["first_index"] == [2]


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
            assert "1 only on the first side (140)" in found["5 / x"]["reason"]


def test_a_golden_made_without_alignment(case: Any) -> None:
    it = case("")
    rows = particles(6)
    for name, array in rows.items():
        it.save("a", f"{name}.npy", array)
    it.accept("a")
    case("    align_by: id\n")
    assert "made without 'align_by'" in it.check(3)["x"]["reason"]


# --- circles --------------------------------------------------------------------------------------


def test_periodic_wrap(case: Any) -> None:
    it = case("    variables: {x: {atol: 1e-3, period: 10}, angle: {atol: 1e-3, period: 360}}\n")
    draw = np.random.default_rng(9)
    for dtype in ("<f4", "<f8"):
        x = draw.uniform(0, BOX, (300, 3)).astype(dtype)
        x[0] = [0.0001, 9.9999, 5]
        noise = draw.normal(size=x.shape) * 2e-4
        noise[0] = [-2e-4, 2e-4, 0]
        y = ((x + noise) % BOX).astype(dtype)
        y[7, 2] = (x[7, 2] + 0.25) % BOX
        it.save("a", "x.npy", x)
        it.save("b", "x.npy", y)
        it.save("a", "angle.npy", np.array([0.0, 359.9999, 180.0]))
        it.save("b", "angle.npy", np.array([359.9999, 0.0, 180.0005]))
        found = it.compare(1)
        truth = wrapped(x.astype("f8"), y.astype("f8")) > ATOL
        assert found["x"]["differing_count"] == truth.sum() == 1
        assert found["x"]["first_index"] == [7, 2]
        assert found["x"]["period"] == [10]
        assert found["x"]["max_abs_difference"] == pytest.approx(0.25, abs=1e-5)
        assert found["angle"]["verdict"] == "match"
        # A golden with its data can do the same; one without cannot, and says so.
        it.accept("a")
        it.use("b")
        assert it.check(1)["x"]["differing_count"] == 1


def test_a_golden_without_data_and_a_period(case: Any, capsys: pytest.CaptureFixture[str]) -> None:
    it = case("    period: 10\n    evidence: residues\n")
    it.save("a", "x.npy", np.linspace(0, 9, 50))
    it.accept("a", code=3)
    assert "modulo a period" in capsys.readouterr().err
    case("    evidence: residues\n")
    it.accept("a")
    case("    period: 10\n    evidence: residues\n")
    assert "keeps its residues alone" in it.check(3)["x"]["reason"]


@pytest.mark.parametrize(
    ("keys", "array", "words"),
    [
        ("{period: 10, rtol: 1e-3}", np.ones(3), "give 'atol' alone"),
        ("{period: 10, atol: 5}", np.ones(3), "nothing could differ"),
        ("{period: [1, 2], atol: 0.1}", np.ones((4, 3)), "2 periods"),
        ("{period: 10, atol: 0.1}", np.ones(3, complex), "dtype <c16"),
        ("{period: 10}", np.arange(3), "dtype <i8"),
    ],
)
def test_periods_without_meaning(case: Any, keys: str, array: Any, words: str) -> None:
    it = case(f"    variables: {{x: {keys}}}\n")
    it.save("a", "x.npy", array)
    it.save("b", "x.npy", array)
    assert words in it.compare(3)["x"]["reason"]


@given(
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.floats(0.1, 50),
    st.floats(0, 1),
    st.booleans(),
)
@settings(deadline=None)
def test_circles_are_decided_exactly(
    golden: float, new: float, period: float, share: float, on_the_bound: bool
) -> None:
    """Against exact fractions, also where the difference is the bound itself."""
    raw = Fraction(new) - Fraction(golden)
    truth = abs(raw - round(raw / Fraction(period)) * Fraction(period))
    atol = float(truth) if on_the_bound else share * period / 4
    if atol >= period / 2:
        return
    circle = _Circle("<f8", (1,), VariableSettings(bound=ErrorBound(atol), period=(period,)))
    base, moved = circle.differences(np.array([golden]), np.array([new]), 0)
    assert base[0] == 0
    assert (abs(moved[0]) <= atol) == (truth <= Fraction(atol))


# --- fill values, precision, frames, duplicates ---------------------------------------------------


def test_fill_values_of_two_precisions(case: Any) -> None:
    """-1e18 is another number in float32: 9.99999984306749e17 apart from it is 1.6e10."""
    keys = "    fill_values: [-1e18]\n    mixed_precision: true\n"
    values = np.linspace(0, 1, 100)
    values[[3, 50]] = -1e18
    it = case(keys)
    it.save("a", "ssh.npy", values.astype("<f4"))
    it.save("b", "ssh.npy", values)
    assert it.compare(0)["ssh"]["verdict"] == "match"
    values[50] = 0.5
    it.save("b", "ssh.npy", values)
    found = it.compare(1)["ssh"]
    assert (found["differing_count"], found["missing_mismatch_count"]) == (1, 1)


def test_mixed_precision_is_only_taken_when_asked_for(case: Any) -> None:
    values = np.random.default_rng(1).normal(size=200)
    for keys, code in (("", 3), ("    mixed_precision: true\n    atol: 0\n", 0)):
        it = case(keys)
        it.save("a", "x.npy", values.astype("<f4"))
        it.save("b", "x.npy", values)
        found = it.compare(code)["x"]
        assert code == 0 or "dtype <f4 on one side, <f8 on the other" in found["reason"]
    # By the bound of the coarser: one step of float32 is a difference.
    values[5] = np.nextafter(np.float32(values[5]), np.float32(9))
    it.save("b", "x.npy", values)
    assert it.compare(1)["x"]["differing_count"] == 1


def test_mixed_precision_and_goldens(case: Any) -> None:
    values = np.random.default_rng(1).normal(size=200)
    keys = "    mixed_precision: true\n    evidence: {}\n"
    for evidence in ("data", "residues"):
        it = case(keys.format(evidence))
        it.save("a", "x.npy", values.astype("<f4"))
        it.save("b", "x.npy", values)
        it.accept("a")
        it.use("b")
        assert it.check(0)["x"]["verdict"] == "match"
        it.accept("b")
        it.use("a")
        found = it.check(0 if evidence == "data" else 3)["x"]
        assert evidence == "data" or "float64" in found["reason"]


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
