"""What the checks of a session did not compare is said at its end, in failures, and in JUnit."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from plugin.conftest import Suite, summary

BOTH = """
def test_both(ciwrap):
    ciwrap.check({'a': np.arange(3.), 't': np.arange(2.)}%s)
"""


def test_a_session_says_how_much_it_compared(suite: Suite) -> None:
    suite.write(BOTH % "")
    written = suite.run("--ciwrap-update=new")
    written.assert_outcomes(passed=1)
    written.stdout.no_fnmatch_line("  compared *")  # there was nothing to compare it with
    result = suite.run()
    result.assert_outcomes(passed=1)
    assert summary(result) == "ciwrap: 1 matched"
    result.stdout.fnmatch_lines(["  compared 2 variables, 5 values"])


def test_what_is_ignored_of_the_golden_is_said(suite: Suite) -> None:
    suite.write(BOTH % "")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(BOTH % ", ignore='t'")
    result = suite.run("--junitxml=j.xml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the golden holds it, but the configuration ignores it*"])
    suite.run("--ciwrap-update=failed", "--ciwrap-reason=Ignore it")
    result = suite.run("--junitxml=j.xml")
    result.assert_outcomes(passed=1)
    properties = ElementTree.parse(suite.root / "j.xml").iter("property")
    (told,) = [one.get("value") for one in properties if "test_both" in str(one.get("name"))]
    assert told is not None
    assert told.endswith("; compared 1 variable, 3 values; not compared: 1 variable (ignore)")


def test_a_failure_says_what_it_did_not_compare(suite: Suite) -> None:
    suite.write(BOTH % ", ignore='t'")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write((BOTH % ", ignore='t'").replace("arange(3.)", "ones(3)"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *  compared 1 variable, 3 values; not compared: 1 variable (ignore)"]
    )
    assert summary(result) == "ciwrap: 1 differ"


@pytest.mark.slow
def test_several_workers_say_it_together(suite: Suite) -> None:
    text = BOTH % ", ignore='t'"
    suite.write(text + text.replace("both", "too"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    done = suite.subprocess("-n2")
    assert done.returncode == 0, done.stdout
    line = "  compared 2 variables, 6 values; not compared: 2 variables (ignore)\n"
    assert line in done.stdout
