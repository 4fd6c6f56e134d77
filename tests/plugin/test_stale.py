"""Goldens that wait since an earlier run, or were made by other code than what lies here."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from plugin.review_suite import write

if TYPE_CHECKING:
    from plugin.conftest import Suite

TEST = "tests/test_it.py"


def accepted(suite: Suite) -> tuple[str, list[str | None]]:
    """What accepting would say, and why each golden is stale."""
    target = suite.root / "accept.json"
    options = ("--pending", "-m", "x", "--dry-run", "--json", str(target))
    done = suite.cli("accept", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, [one.get("stale") for one in json.loads(target.read_text())["checks"]]


def test_what_waits_is_of_the_code_that_lies_here(changed: Suite) -> None:
    said, stale = accepted(changed)
    assert stale == [None] * len(stale)
    assert len(stale) >= 2
    assert "warning" not in said
    # To accept one of them changes tracked files, and none that says anything of the code.
    assert changed.cli("accept", f"{TEST}::test_b", "-m", "x").returncode == 0
    assert set(accepted(changed)[1]) == {None}


def test_changes_that_were_taken_back(changed: Suite) -> None:
    changed.git("checkout", "-q", TEST)
    said, stale = accepted(changed)
    assert set(stale) == {"it was made with changes that are no longer here"}
    assert "  warning: it was made with changes that are no longer here" in said
    done = changed.cli("review")
    assert "warning: it was made with changes" in done.stdout


def test_changes_after_the_run(changed: Suite) -> None:
    path = changed.root / TEST
    path.write_text(path.read_text() + "\n# more\n")
    later = time.time() + 5
    os.utime(path, (later, later))
    assert set(accepted(changed)[1]) == {f"{TEST} has changed since it was made"}


def test_another_commit(changed: Suite) -> None:
    changed.git("commit", "-qam", "second")
    head = changed.git("rev-parse", "HEAD")[:12]
    (why,) = set(accepted(changed)[1])
    assert why is not None
    assert why.endswith(f"and {head} is checked out")


def test_without_git_nothing_is_said(suite: Suite) -> None:
    write(suite)
    suite.run().assert_outcomes(failed=2)
    assert set(accepted(suite)[1]) == {None}


def test_what_an_earlier_run_left_is_counted(changed: Suite) -> None:
    count = len(changed.waiting())
    result = changed.run("-k", "test_b")
    text = f"  {count} goldens wait for review, {count - 1} of an earlier run: ciwrap review"
    assert text in result.outlines
    assert f"  {count} goldens wait for review: ciwrap review" in changed.run().outlines
