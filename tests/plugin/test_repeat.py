"""`repeat=N`: run-to-run reproducibility, without a golden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugin.conftest import summary

if TYPE_CHECKING:
    from plugin.conftest import Suite

COUNTER = """
    RUNS = []

    @pytest.mark.ciwrap(repeat=4, atol=1e-9)
    def test_it(ciwrap, tmp_path):
        RUNS.append(1)
        x = np.linspace(0, 1, 1000)
        x[123:126] += NOISE * (len(RUNS) == 3)
        ciwrap.check(x, "x")
        ciwrap.check({"n": len("abc")}, "n")
        np.save(tmp_path / "y.npy", x)
        ciwrap.check(tmp_path, "files")

    def test_count(): assert len(RUNS) == COUNT
"""


def test_a_reproducible_test(suite: Suite) -> None:
    suite.write(COUNTER.replace("NOISE", "5e-10").replace("COUNT", "4"))
    result = suite.run()
    result.assert_outcomes(passed=2)
    assert summary(result) == "ciwrap: 3 reproducible from run to run"
    document = suite.document()
    assert [check["verdict"] for check in document["checks"]] == ["match"] * 3
    # Of all runs the one that moved most is told of.
    shares = {
        check["name"].rpartition("::")[2]: check["variables"][0]["max_bound_share"]
        for check in document["checks"]
    }
    assert 0.49 < shares["x"] < 0.51
    assert 0.49 < shares["files"] < 0.51
    assert shares["n"] == 0
    notes = [check["messages"][-1]["text"] for check in document["checks"]]
    assert notes[0] == (
        "run 4 of 4 compared with run 1; the worst is shown; x: atol: 5e-9 would hold"
    )
    assert not (suite.root / "golden").exists()
    # What the environment was, and nothing of the test.
    kept = {one.name for one in (suite.root / ".ciwrap").iterdir()}
    assert kept == {".gitignore", "snapshots"}


def test_a_test_that_is_not_reproducible(suite: Suite) -> None:
    suite.write(COUNTER.replace("NOISE", "1e-3").replace("COUNT", "3"))
    result = suite.run()
    result.assert_outcomes(passed=1, failed=1)
    assert summary(result) == (
        "ciwrap: 2 reproducible from run to run, 1 not reproducible from run to run"
    )
    text = result.stdout.str()
    assert "run 3 of 4 does not match the first run: x: up to 1e6 x the bound: 3 of 1,000" in text
    assert "first at [123]: run 1 0.123" in text
    assert ", run 3 0.124" in text
    assert "golden" not in text.partition("run 3 of 4 is not like")[2].partition("assert")[0]
    assert suite.run("--ciwrap-update=all", "--ciwrap-reason=x").ret == 1


def test_runs_that_check_different_things(suite: Suite) -> None:
    suite.write("""
        RUNS = []
        @pytest.mark.ciwrap(repeat=2)
        def test_fewer(ciwrap):
            RUNS.append(1)
            ciwrap.check(1.0, "a")
            if len(RUNS) == 1:
                ciwrap.check(1.0, "b")
        MORE = []
        @pytest.mark.ciwrap(repeat=2)
        def test_more(ciwrap):
            MORE.append(1)
            ciwrap.check(1.0, "a")
            if len(MORE) == 2:
                ciwrap.check(1.0, "b")
        KEYS = []
        @pytest.mark.ciwrap(repeat=2)
        def test_keys(ciwrap):
            KEYS.append(1)
            ciwrap.check({str(number): 1.0 for number in range(len(KEYS))})
        NAN = []
        @pytest.mark.ciwrap(repeat=2, equal_nan=False)
        def test_nan(ciwrap):
            ciwrap.check(np.nan)
    """)
    result = suite.run()
    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    assert "run 2 of 2 did not make the check tests/test_it.py::test_fewer::b" in text
    assert "run 2 makes this check, run 1 did not" in text
    assert "only in B, not in A" in text
    assert "run 1 of 2 does not match the first run" in text


def test_all_kinds_of_tests_repeat(suite: Suite) -> None:
    suite.write("""
        import unittest
        RUNS = {"class": 0, "unit": 0, "set_up": 0}
        class TestClass:
            @pytest.mark.ciwrap(repeat=3)
            def test_it(self, ciwrap):
                RUNS["class"] += 1
                ciwrap.check(1.0)
        class TestUnit(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _ciwrap(self, ciwrap): self.ciwrap = ciwrap
            def setUp(self): RUNS["set_up"] += 1
            @pytest.mark.ciwrap(repeat=3)
            def test_it(self):
                RUNS["unit"] += 1
                self.ciwrap.check(1.0)
            @pytest.mark.ciwrap(repeat=3)
            def test_wrong(self):
                RUNS["wrong"] = RUNS.get("wrong", 0) + 1
                self.ciwrap.check(1.0 * RUNS["wrong"])
        def test_count(): assert RUNS == {"class": 3, "unit": 3, "set_up": 5, "wrong": 2}
    """)
    suite.run().assert_outcomes(passed=3, failed=1)


def test_failures_and_output_of_later_runs_are_told(suite: Suite) -> None:
    suite.write("""
        RUNS = []
        @pytest.mark.ciwrap(repeat=3)
        def test_it(ciwrap):
            RUNS.append(1)
            print("this is run", len(RUNS))
            ciwrap.check(1.0)
            assert len(RUNS) < 2, "the second run broke"
    """)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "the second run broke" in result.stdout.str()
    assert "this is run 2" in result.stdout.str()
    assert "this is run 3" not in result.stdout.str()
