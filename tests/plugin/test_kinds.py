"""All kinds of tests, and pytest's other plugins beside this one."""

from __future__ import annotations

import importlib.util
import json
import xml.etree.ElementTree as ET

import pytest
from plugin.conftest import Suite, summary

KINDS = """
    import asyncio, functools, unittest

    class TestClass:
        @pytest.mark.ciwrap
        @pytest.mark.parametrize("x", [1.0, 2.0])
        def test_method(self, x, ciwrap): ciwrap.check(x)

    class TestUnit(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def _ciwrap(self, ciwrap): self.ciwrap = ciwrap
        @pytest.mark.ciwrap
        def test_method(self): self.ciwrap.check(3.0)

    @pytest.mark.ciwrap
    async def test_async(ciwrap):
        await asyncio.sleep(0)
        ciwrap.check(4.0)

    @pytest.fixture
    def result(ciwrap): return ciwrap.check(5.0, "by a fixture")
    @pytest.mark.ciwrap
    def test_fixture(result): assert result.verdict == "match"
"""
# What plugins for asynchronous tests do, in short.
CONFTEST = """
    import asyncio, inspect

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem):
        if inspect.iscoroutinefunction(pyfuncitem.obj):
            names = pyfuncitem._fixtureinfo.argnames
            arguments = {name: pyfuncitem.funcargs[name] for name in names}
            asyncio.run(pyfuncitem.obj(**arguments))
            return True
"""


def test_all_kinds_of_tests(suite: Suite) -> None:
    suite.write(CONFTEST, "conftest.py")
    suite.write(KINDS)
    suite.run().assert_outcomes(failed=4, errors=1)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=5)
    assert suite.goldens() == [
        "tests/test_it/TestClass.test_method%5B1.0%5D.golden",
        "tests/test_it/TestClass.test_method%5B2.0%5D.golden",
        "tests/test_it/TestUnit.test_method.golden",
        "tests/test_it/test_async.golden",
        "tests/test_it/test_fixture-by%20a%20fixture.golden",
    ]
    result = suite.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (0, "ciwrap: 5 matched")
    suite.write(KINDS.replace("3.0", "3.5").replace("4.0", "4.5").replace("5.0", "5.5"))
    suite.run().assert_outcomes(passed=2, failed=2, errors=1)


def test_last_failed_and_keywords(suite: Suite) -> None:
    text = """
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b(ciwrap): ciwrap.check(2.0)
    """
    suite.write(text)
    suite.run("--ciwrap-update=new")
    suite.write(text.replace("2.0", "2.5"))
    suite.run().assert_outcomes(passed=1, failed=1)
    result = suite.run("--lf")
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 1 differ"
    result = suite.run("-k", "test_a")
    assert summary(result) == "ciwrap: 1 matched"


RERUN = """
    from pathlib import Path
    def test_it(ciwrap):
        runs = Path("runs")
        runs.write_text((runs.read_text() if runs.exists() else "") + "x")
        ciwrap.check(1.0 if len(runs.read_text()) in GOOD else 2.0)
"""


def test_reruns(suite: Suite) -> None:
    """The last run of a test is what counts, in the summary and for what waits."""
    suite.write(RERUN.replace("GOOD", "(1, 3)"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    done = suite.subprocess("--reruns=1")
    assert done.returncode == 0, done.stdout
    assert "ciwrap: 1 matched" in done.stdout
    assert "1 rerun" in done.stdout
    assert suite.waiting() == {}
    done = suite.subprocess("--reruns=1")
    assert done.returncode == 1
    assert "ciwrap: 1 differ\n" in done.stdout
    assert len(suite.waiting()) == 1


NEIGHBOURS = """
    def test_it(ciwrap, num_regression, ndarrays_regression, snapshot):
        x = np.linspace(0, 1, 5)
        ciwrap.check(x)
        num_regression.check({"x": x})
        assert [1, 2] == snapshot
"""


@pytest.mark.slow
def test_beside_pytest_regressions_and_syrupy(suite: Suite) -> None:
    missing = [name for name in ("pandas",) if importlib.util.find_spec(name) is None]
    text = NEIGHBOURS
    if missing:
        text = text.replace('num_regression.check({"x": x})', 'ndarrays_regression.check({"x": x})')
    suite.write(text)
    done = suite.subprocess("--ciwrap-update=new", "--force-regen", "--snapshot-update")
    assert "created: golden/tests/test_it.goldens (test_it)" in done.stdout
    suite.subprocess("--snapshot-update")
    done = suite.subprocess()
    assert done.returncode == 0, done.stdout
    assert "ciwrap: 1 matched" in done.stdout
    assert "1 snapshot passed" in done.stdout
    assert suite.goldens() == ["tests/test_it/test_it.golden"]


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_mpl") is None, reason="pytest-mpl is not installed"
)
def test_beside_pytest_mpl(suite: Suite) -> None:
    suite.write("""
        @pytest.mark.mpl_image_compare
        @pytest.mark.ciwrap
        def test_it(ciwrap):
            from matplotlib.figure import Figure
            ciwrap.check(1.0)
            return Figure()
    """)
    done = suite.subprocess("--ciwrap-update=new", "--mpl-generate-path=baseline")
    assert "ciwrap: 1 written" in done.stdout
    done = suite.subprocess("--mpl", "--mpl-baseline-path=baseline")
    assert done.returncode == 0, done.stdout
    assert "ciwrap: 1 matched" in done.stdout


def test_junit_properties(suite: Suite) -> None:
    suite.write("""
        def test_a(ciwrap): ciwrap.check(np.ones(4), "x<y>&", atol=1.0); ciwrap.check(1.0)
        @pytest.mark.ciwrap(repeat=2)
        def test_b(ciwrap): ciwrap.check(1.0)
    """)
    suite.run("--ciwrap-update=new")
    suite.write("""
        def test_a(ciwrap): ciwrap.check(np.ones(4) + 0.5, "x<y>&", atol=1.0); ciwrap.check(2.0)
        @pytest.mark.ciwrap(repeat=2)
        def test_b(ciwrap): ciwrap.check(1.0)
    """)
    suite.run("--junitxml=junit.xml").assert_outcomes(passed=1, failed=1)
    cases = {one.get("name"): one for one in ET.parse(suite.root / "junit.xml").iter("testcase")}
    properties = {
        one.get("name"): one.get("value")
        for case in cases.values()
        for one in case.iter("property")
    }
    assert properties == {
        "ciwrap tests/test_it.py::test_a::x<y>&": (
            "matched, 1 variable, at most 50 % of the bound used"
        ),
        "ciwrap tests/test_it.py::test_a": "differ, 1 variable",
        "ciwrap tests/test_it.py::test_b": "repeated",
    }


def test_json_and_report(suite: Suite) -> None:
    suite.write("""
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b(ciwrap): ciwrap.check(2.0, "x")
    """)
    suite.run("--ciwrap-update=new", "-k", "test_a")
    document = suite.document()
    assert document["kind"] == "pytest"
    assert (document["verdict"], document["exit_code"]) == ("not_comparable", 3)
    assert [check["test_id"] for check in document["checks"]] == [
        "tests/test_it.py::test_a",
        "tests/test_it.py::test_b",
    ]
    assert document["checks"][1]["messages"][0]["slug"] == "golden-missing"
    assert "cpu" in document["environment"]
    # A run without any check is no match either.
    document = suite.document("-k", "nothing")
    assert document["verdict"] == "not_comparable"
    assert document["messages"][0]["text"] == "no test made a check"


def test_a_json_file_that_cannot_be_written(suite: Suite) -> None:
    suite.write("def test_a(ciwrap): ciwrap.check(1.0)")
    suite.run("--ciwrap-update=new")
    result = suite.run("--ciwrap-json=no/such/folder/x.json", "--ciwrap-report=report.html")
    assert result.ret == 1
    assert "could not be written" in result.stdout.str()
    assert "  report: report.html" in result.outlines
    assert (suite.root / "report.html").exists()


def test_html_report(suite: Suite) -> None:
    suite.write("def test_a(ciwrap): ciwrap.check(1.0, '<script>')")
    result = suite.run("--ciwrap-report=report.html")
    assert "  report: report.html" in result.outlines
    text = (suite.root / "report.html").read_text()
    assert "test_a" in text
    assert "<script>'" not in text


def test_results_are_json_of_one_line_each_worker_can_send(suite: Suite) -> None:
    suite.write("def test_a(ciwrap): ciwrap.check([np.nan, np.inf, 1.0])")
    suite.run("--ciwrap-update=new")
    suite.write("def test_a(ciwrap): ciwrap.check([1.0, -np.inf, 1.0])")
    document = suite.document()
    assert json.loads(json.dumps(document)) == document
    assert document["checks"][0]["variables"][0]["nan_mismatch_count"] == 1


@pytest.mark.parametrize("more", ["", "@settings(suppress_health_check=list(HealthCheck))"])
def test_a_test_of_hypothesis_is_refused_before_it_runs(suite: Suite, more: str) -> None:
    suite.write(f"""
        from hypothesis import HealthCheck, given, settings, strategies
        {more}
        @given(strategies.integers())
        def test_it(ciwrap, number): ciwrap.check(number)
    """)
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(errors=1)
    text = result.stdout.str()
    assert "a test with @given is called with many values, and a golden is of one" in text
    assert "Falsifying" not in text
    assert not suite.files("golden")
