"""Workers of pytest-xdist, as real processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plugin.conftest import Suite

MANY = """
    @pytest.mark.parametrize("number", range(30))
    def test_it(number, ciwrap):
        ciwrap.check(np.full(50, VALUE + number))
    @pytest.mark.ciwrap(repeat=2)
    def test_repeat(ciwrap):
        ciwrap.check(1.0)
"""
XDIST = ("-n2", "-q", "-p", "no:syrupy", "-p", "no:rerunfailures")


@pytest.mark.slow
def test_two_workers(suite: Suite) -> None:
    suite.write(MANY.replace("VALUE", "1.0"))
    done = suite.subprocess(*XDIST)
    assert "ciwrap: 1 reproducible from run to run, 30 new" in done.stdout
    assert "30 goldens wait for review" in done.stdout
    assert len(suite.waiting()) == 30
    done = suite.subprocess(*XDIST, "--ciwrap-update=new")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("  created: golden/") == 30
    assert len(suite.goldens()) == 30
    assert suite.waiting() == {}
    assert not [name for name in suite.files("golden") if name.endswith((".next", ".lock"))]
    # Unused goldens are found from what workers collected; a part of the tests tells nothing.
    suite.write(MANY.replace("VALUE", "1.0").replace("range(30)", "range(28)"))
    done = suite.subprocess(*XDIST, "--ciwrap-unused=fail")
    assert done.returncode == 1
    assert "28 matched, 1 reproducible from run to run, 2 unused\n" in done.stdout
    done = suite.subprocess(*XDIST, "-k", "not repeat", "--ciwrap-unused=fail")
    assert done.returncode == 0, done.stdout
    assert "ciwrap: 28 matched\n" in done.stdout


def test_a_worker_that_dies(suite: Suite) -> None:
    suite.write(MANY.replace("VALUE", "1.0"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=31)
    before = suite.goldens()
    suite.write(
        MANY.replace("VALUE", "1.0").replace(
            "ciwrap.check(np", "if number == 9: __import__('os')._exit(1)\n        ciwrap.check(np"
        )
    )
    target = suite.root / "found.json"
    done = suite.subprocess(*XDIST, "--ciwrap-unused=delete", "--ciwrap-json", str(target))
    assert done.returncode == 1
    assert "ciwrap: 29 matched, 1 reproducible from run to run\n" in done.stdout
    assert suite.goldens() == before
    found = json.loads(target.read_text())
    assert found["verdict"] == "not_comparable"
    (message,) = (one["text"] for one in found["messages"] if one["level"] == "error")
    assert message == (
        "tests/test_it.py::test_it[9] failed, and what it did not reach is not compared"
    )


@pytest.mark.slow
def test_all_workers_count_that_run_the_same_tests(suite: Suite) -> None:
    """Whichever ends first: a worker that differs is in the document, too."""
    text = """
        import os, time
        IS_FIRST = os.environ.get("PYTEST_XDIST_WORKER") == "gw0"
        def test_a(): time.sleep(0 if IS_FIRST else 2)
        def test_b(ciwrap): ciwrap.check(1.0 + BAD * IS_FIRST)
    """
    suite.write(text.replace("BAD", "0.0"))
    suite.run("--ciwrap-update=new")
    suite.write(text.replace("BAD", "0.5"))
    target = suite.root / "found.json"
    both = ("--dist=each", "--tx", "2*popen", "--ciwrap-json", str(target))
    done = suite.subprocess(*both)
    assert done.returncode == 1, done.stdout
    assert "ciwrap: 1 matched, 1 differ\n" in done.stdout
    assert json.loads(target.read_text())["verdict"] == "differ"
