"""Every setting of a variable works in a test as it does in ciwrap.yaml, with every evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from plugin.conftest import Suite, summary

if TYPE_CHECKING:
    from pathlib import Path

EVIDENCE = ("data", "residues")
SETUP = """
rows = np.arange(50)
other = np.random.default_rng(1).permutation(50)
land = rows % 2 == 1
x = np.linspace(0, 1, 50)
"""


class Case(NamedTuple):
    """What a check is given at first, and later.

    same: matches with the setting only; changed: does not match with it either. says: of that.
    """

    setting: str
    first: str
    same: str
    changed: str
    says: str


CASES = {
    "mask": Case(
        "bounds={'x': {'atol': 1e-6, 'mask': 'land'}}",
        "{'x': x, 'land': land}",
        "{'x': np.where(land, 9.0, x + 1e-8), 'land': land}",
        "{'x': np.where(land, x, x + 0.5), 'land': land}",
        "25 of 25 values (100 %; 25 more are masked) differ by more than",
    ),
    "align_by": Case(
        "align_by='id', atol=1e-6",
        "{'x': x, 'id': rows}",
        "{'x': x[other] + 1e-8, 'id': other}",
        "{'x': x[other] + (other == 7), 'id': other}",
        "1 of 50 values (2 %) differs by more than",
    ),
    "mixed_precision": Case(
        "mixed_precision=True, atol=1e-6",
        "{'x': x.astype('f4')}",
        "{'x': x + 1e-8}",
        "{'x': x + 0.5}",
        "50 of 50 values (100 %) differ by more than",
    ),
}


def told(case: Case, values: str, evidence: str, *, with_it: bool = True) -> str:
    setting = case.setting if with_it else "atol=1e-6"
    call = f"ciwrap.check({values}, {setting}, evidence='{evidence}')"
    return f"{SETUP}\ndef test_it(ciwrap):\n    {call}\n"


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", CASES)
def test_it_matches_and_differs(suite: Suite, name: str, evidence: str) -> None:
    case = CASES[name]
    suite.write(told(case, case.first, evidence))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.run().assert_outcomes(passed=1)

    suite.write(told(case, case.same, evidence))
    suite.run().assert_outcomes(passed=1)
    suite.write(told(case, case.same, evidence, with_it=False))
    suite.run().assert_outcomes(failed=1)

    suite.write(told(case, case.changed, evidence))
    found = suite.run()
    found.assert_outcomes(failed=1)
    shown = found.stdout.str()
    if evidence == "data":
        assert case.says in shown
    else:
        assert "x: " in shown
        assert "1 differ" in summary(found)


def period(values: str, evidence: str = "data", period: str = ", 'period': 360") -> str:
    return f"""
        def test_it(ciwrap):
            ciwrap.check({{'angle': {values}}}, bounds={{'angle': {{'atol': 1e-3{period}}}}},
                         evidence='{evidence}')
    """


def test_a_period_matches_and_differs(suite: Suite) -> None:
    suite.write(period("[359.9999, 10.0]"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(period("[0.0001, 10.0]"))
    suite.run().assert_outcomes(passed=1)
    suite.write(period("[0.0001, 10.0]", period=""))
    suite.run().assert_outcomes(failed=1)
    suite.write(period("[0.0001, 10.5]"))
    found = suite.run()
    found.assert_outcomes(failed=1)
    assert "1 of 2 values" in found.stdout.str()
    assert "10.0, new 10.5" in found.stdout.str()


def test_a_golden_without_data_is_no_golden_of_a_period(suite: Suite) -> None:
    """It cannot be made, and one that was made without the period cannot be compared with it."""
    suite.write(period("[359.9999, 10.0]", "residues"))
    found = suite.run("--ciwrap-update=new")
    found.assert_outcomes(failed=1)
    assert "modulo a period" in found.stdout.str()
    assert suite.goldens() == []

    suite.write(period("[359.9999, 10.0]", "residues", period=""))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(period("[359.9999, 10.0]", "residues"))
    found = suite.run()
    found.assert_outcomes(failed=1)
    assert "keeps its residues alone" in found.stdout.str()


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_rows_that_moved_to_another_rank(suite: Suite, evidence: str, tmp_path: Path) -> None:
    ids = np.arange(20)

    def save(name: str, ranks: int, values: np.ndarray) -> Path:
        for rank, part in enumerate(np.array_split(np.roll(ids, 3 * ranks), ranks)):
            place = tmp_path / name / "iter_1" / f"rank_{rank}"
            place.mkdir(parents=True)
            np.save(place / "id.npy", part)
            np.save(place / "x.npy", values[part])
        return tmp_path / name

    def ask(folder: Path, setting: str = "align_by='id', across_ranks=True") -> str:
        return f"""
            from pathlib import Path
            def test_it(ciwrap):
                ciwrap.check(Path({str(folder)!r}), {setting}, atol=1e-6, evidence='{evidence}')
        """

    x = np.linspace(0, 1, 20)
    suite.write(ask(save("a", 2, x)))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    b = save("b", 3, x + 1e-8)
    suite.write(ask(b))
    suite.run().assert_outcomes(passed=1)
    suite.write(ask(b, "align_by='id'"))
    suite.run().assert_outcomes(failed=1)
    suite.write(ask(save("c", 3, x + (ids == 5))))
    found = suite.run()
    found.assert_outcomes(failed=1)
    assert "iter 1 / x" in found.stdout.str()
    assert "rank" not in summary(found)


def test_a_marker_and_repeats_take_them_too(suite: Suite) -> None:
    suite.write("""
        @pytest.mark.ciwrap(align_by='id', atol=1e-6)
        def test_marked(ciwrap):
            order = np.random.default_rng().permutation(50)
            ciwrap.check({'x': order / 100, 'id': order})

        @pytest.mark.ciwrap(align_by='id', atol=1e-6, repeat=3)
        def test_repeated(ciwrap):
            order = np.random.default_rng().permutation(50)
            ciwrap.check({'x': order / 100, 'id': order})

        @pytest.mark.ciwrap(bounds={'x': {'mask': 'land'}}, repeat=2)
        def test_masked(ciwrap):
            x = np.random.default_rng().random(3)
            x[2] = 0.5
            ciwrap.check({'x': x, 'land': [True, True, False]})
    """)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=3)
    suite.run().assert_outcomes(passed=3)


def strict(values: str, words: str) -> str:
    return f"""
        def test_it(ciwrap):
            ciwrap.check({values}{words})
        @pytest.mark.ciwrap({words.removeprefix(", ")})
        def test_marked(ciwrap):
            ciwrap.check({values})
    """


def test_new_variables_may_be_allowed(suite: Suite) -> None:
    allowed = ", strict={'variables': 'allow-new'}"
    suite.write(strict("{'x': 1.0, 'y': 2.0}", ""))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    for values, words, passed in (
        ("{'x': 1.0, 'y': 2.0, 'z': 3.0}", "", 0),
        ("{'x': 1.0, 'y': 2.0, 'z': 3.0}", allowed, 2),
        ("{'x': 1.0, 'z': 3.0}", allowed, 0),
        ("{'x': 1.5, 'y': 2.0, 'z': 3.0}", allowed, 0),
        ("{'x': 1.0, 'z': 3.0}", ", strict={'variables': False}", 2),
        ("{'x': 1.0, 'y': 2.0, 'z': 3.0}", ", strict={'variables': 'some'}", 0),
    ):
        suite.write(strict(values, words))
        found = suite.run()
        outcomes = found.parseoutcomes()
        assert outcomes.get("passed", 0) == passed, (values, words)
    assert "strict: variables must be true, false or allow-new, not 'some'" in found.stdout.str()


def test_which_of_two_equal_ids_counts(suite: Suite) -> None:
    def ask(values: str, word: str) -> str:
        return f"""
            def test_it(ciwrap):
                ciwrap.check({{'x': {values}, 'id': [1, 2, 2]}}, align_by='id'{word})
        """

    suite.write(ask("[1.0, 2.0, 3.0]", ""))
    found = suite.run("--ciwrap-update=new")
    found.assert_outcomes(failed=1)
    assert "'duplicates: first' or 'last'" in found.stdout.str()
    suite.write(ask("[1.0, 2.0, 3.0]", ", duplicates='last'"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(ask("[1.0, 9.0, 3.0]", ", duplicates='last'"))
    suite.run().assert_outcomes(passed=1)
    suite.write(ask("[1.0, 9.0, 3.0]", ", duplicates='first'"))
    suite.run().assert_outcomes(failed=1)
    suite.write(ask("[1.0, 9.0, 3.0]", ", duplicates='both'"))
    found = suite.run()
    found.assert_outcomes(failed=1)
    assert "duplicates must be one of error, first, last, not 'both'" in found.stdout.str()
