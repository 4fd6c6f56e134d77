"""What git is told of goldens when the first ones are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plugin.conftest import Suite

TEST = "def test_it(ciwrap): ciwrap.check(1.0, 'x')"
ATTRIBUTES = "golden/.gitattributes"


@pytest.fixture
def tested(suite: Suite) -> Suite:
    suite.git("init", "-q")
    suite.write(TEST)
    return suite


def test_the_first_golden_brings_them(tested: Suite) -> None:
    result = tested.run("--ciwrap-update=new")
    result.stdout.fnmatch_lines([f"*written for git: *{ATTRIBUTES}"])
    top = tested.root / "golden"
    assert "*.goldens text eol=lf diff=ciwrap\n" in (top / ".gitattributes").read_text()
    tested.git("config", "core.autocrlf", "true")
    tested.git("add", "-A")
    tested.git("commit", "-qm", "first")
    for path in top.rglob("*.goldens"):
        path.unlink()
    tested.git("checkout", "-q", "golden")
    tested.run().assert_outcomes(passed=1)
    # A journal is not to be committed, a lock not either.
    (top / "tests/test_it.goldens.next").write_text("")
    (top / ".ciwrap.lock").write_text("")
    assert not [one for one in tested.git("status", "--short").splitlines() if "golden" in one]


def test_what_git_knows_already_is_left(tested: Suite) -> None:
    (tested.root / ".gitattributes").write_text("*.goldens eol=lf\n")
    tested.run("--ciwrap-update=new").assert_outcomes(passed=1)
    assert not (tested.root / ATTRIBUTES).exists()


def test_accepting_brings_them_too_and_keeps_what_is_there(tested: Suite) -> None:
    (tested.root / "golden").mkdir()
    (tested.root / ATTRIBUTES).write_text("*.csv text")
    tested.run().assert_outcomes(failed=1)
    done = tested.cli("accept", "--pending")
    assert "written for git: " in done.stdout
    first, second, third = (tested.root / ATTRIBUTES).read_text().splitlines()
    assert (first, second.split()[0], third.split()[0]) == ("*.csv text", "*.golden", "*.goldens")
    assert "written for git" not in tested.cli("accept", "--pending").stdout


def test_outside_of_a_repository_there_are_none(suite: Suite) -> None:
    suite.write(TEST)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    assert not (suite.root / ATTRIBUTES).exists()
