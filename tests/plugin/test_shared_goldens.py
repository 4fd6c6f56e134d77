"""One file for the small goldens of a test file, as users, git and other commands meet it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from plugin.conftest import summary

from ciwrap.studies.changes.state import Where, WorkingTree, state_of

if TYPE_CHECKING:
    from plugin.conftest import Suite

SHARED = "golden/tests/test_it.goldens"
MANY = """
    import os, time
    @pytest.mark.parametrize("n", range(COUNT))
    def test_p(ciwrap, n):
        ciwrap.check(np.random.default_rng(n).normal(size=50) + SHIFT, atol=1e-6)
        time.sleep(float(os.environ.get("NAP", 0)))
"""
WHY = "--ciwrap-reason=as measured"


def write(suite: Suite, count: int, shift: float = 0.0) -> None:
    suite.write(MANY.replace("COUNT", str(count)).replace("SHIFT", str(shift)))


def test_200_checks_are_one_file_about_as_large_as_arrays_alone_compressed(suite: Suite) -> None:
    write(suite, 200)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=200)
    (name,) = [one for one in suite.files(".") if one.startswith("golden/")]
    assert name == SHARED
    # np.savez_compressed of each, as pytest-regressions keeps them: 124,485 bytes.
    assert (suite.root / SHARED).stat().st_size < 155_000


def test_killed_while_it_writes(suite: Suite) -> None:
    write(suite, 30)
    process = subprocess.Popen(
        suite.command("-q", "--ciwrap-update=new"),
        cwd=suite.root,
        env=suite.environment(NAP="0.1"),
        stdout=subprocess.DEVNULL,
    )
    journal = suite.root / f"{SHARED}.next"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        journal.exists() and journal.read_bytes().count(b"\n") > 8
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert journal.exists()
    # A run that writes nothing sees what was noted, says so, and leaves it.
    noted = journal.read_bytes()
    result = suite.run()
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] >= 4
    assert outcomes["passed"] + outcomes["failed"] == 30
    result.stdout.fnmatch_lines(
        [f"*warning: {SHARED}.next holds goldens of a run that was killed*"]
    )
    left = suite.files("golden")
    # It may have held the lock when it was killed; the file alone locks nothing.
    left.pop("tests/test_it/.ciwrap.lock", None)
    assert left == {"tests/test_it.goldens.next": noted}
    # Accepting the others puts all in place.
    assert suite.cli("accept", "--pending").returncode == 0
    assert list(suite.files("golden")) == ["tests/test_it.goldens"]
    suite.run().assert_outcomes(passed=30)


def test_damage_fails_every_check_of_the_file_and_no_other(suite: Suite) -> None:
    write(suite, 3)
    suite.write("def test_other(ciwrap): ciwrap.check(1.0)", "tests/sub/test_it.py")
    mode = "--import-mode=importlib"
    suite.run(mode, "--ciwrap-update=new").assert_outcomes(passed=4)
    path = suite.root / SHARED
    path.write_bytes(path.read_bytes().replace(b'["test_p[1]"', b'["test_p[7]"'))
    before = suite.files("golden")
    for update in ("none", "new"):
        result = suite.run(mode, f"--ciwrap-update={update}")
        result.assert_outcomes(passed=1, failed=3)
        assert summary(result) == "ciwrap: 1 matched, 3 not comparable"
        assert "none of the goldens in it can be used" in result.stdout.str()
        assert suite.files("golden") == before
    suite.run(mode, "--ciwrap-update=failed", WHY).assert_outcomes(passed=4)
    suite.run(mode).assert_outcomes(passed=4)


def test_a_line_that_is_missing_is_a_golden_that_is_missing(suite: Suite) -> None:
    write(suite, 3)
    suite.run("--ciwrap-update=new")
    path = suite.root / SHARED
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(one for one in lines if not one.startswith(b'["test_p[1]"')))
    result = suite.run()
    result.assert_outcomes(passed=2, failed=1)
    assert summary(result) == "ciwrap: 2 matched, 1 new"


def test_show_and_changes_know_it(suite: Suite) -> None:
    suite.write("""
        def test_a(ciwrap): ciwrap.check([1.5, 2.5], atol=1e-3)
        def test_b(ciwrap): ciwrap.check({"u": 3, "text": "abc"})
    """)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    done = suite.cli("show", SHARED)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [one for one in lines if one.startswith("check ")] == ["check test_a", "check test_b"]
    assert "  [0]  1.5  2.5" in lines
    assert any(one.startswith("accepted 20") and "first golden" in one for one in lines)
    shown = json.loads(suite.cli("show", SHARED, "--json", "-").stdout)
    assert [one["check"] for one in shown["goldens"]] == ["test_a", "test_b"]
    assert suite.cli("show", "tests/test_it.py::test_[ab]").returncode == 3  # brackets are brackets
    for name, checks in (("tests/test_it.py::test_b", "b"), ("*::test_?", "ab"), ("tests", "ab")):
        printed = suite.cli("show", name).stdout
        said = [f"check tests/test_it.py::test_{one}" for one in checks]
        assert [one for one in printed.splitlines() if one.startswith("check ")] == said
    assert "  [0]  1.5  2.5" in suite.cli("show", "tests/test_it.py::test_a").stdout
    missing = suite.cli("show", "golden/none.goldens")
    assert (missing.returncode, "there is no such file" in missing.stderr) == (3, True)

    def found() -> dict[str, object]:
        state = state_of(WorkingTree(suite.root), Where(suite.root, ""))
        return {place.check: manifest for place, manifest in state.manifests.items()}

    manifests = found()
    assert set(manifests) == {"tests/test_it.py::test_a", "tests/test_it.py::test_b"}
    assert manifests["tests/test_it.py::test_a"] == suite.golden("test_a").manifest
    path = suite.root / SHARED
    path.write_bytes(path.read_bytes()[:-9])
    assert list(found().values()) == [None]
    damaged = suite.cli("show", "tests/test_it.py::test_b")
    assert (damaged.returncode, SHARED in damaged.stderr) == (3, True)


def test_changes_know_a_renamed_test_and_what_else_is_different(suite: Suite) -> None:
    text = "def test_a(ciwrap): ciwrap.check([1.0], atol=1e-6)\n"
    more = "def test_b(ciwrap): ciwrap.check([2.0], atol=1e-6)\n"
    suite.git("init", "-q")
    suite.write(text + more)
    suite.run("--ciwrap-update=new")
    suite.git("add", "-A")
    suite.git("commit", "-qm", "first")

    def told(update: str, source: str) -> list[tuple[str, str, bool]]:
        suite.write(source)
        suite.run(update, "--ciwrap-unused=delete", WHY)
        done = suite.cli("changes", "--base", "HEAD", "--json", "-")
        found = json.loads(done.stdout)["changes"]
        return [(one["check"].split("::")[1], one["text"], one["wider"]) for one in found]

    before = (
        "called tests/test_it.py::test_a before; its golden is the same, and its log begins anew"
    )
    source = text.replace("test_a", "test_new") + more
    assert told("--ciwrap-update=new", source) == [("test_new", before, False)]
    # With another bound it is another golden.
    wider = told("--ciwrap-update=all", source.replace("[1.0], atol=1e-6", "[1.0], atol=1"))
    assert ("test_a", "its golden is gone", True) in wider
    suite.git("checkout", "-q", "HEAD", "--", "golden")
    # Both names are there: a copy.
    assert told("--ciwrap-update=new", text + source) == [("test_new", "a first golden", False)]


def test_a_golden_that_grows_and_shrinks_keeps_its_history(suite: Suite) -> None:
    for number, size in enumerate((10, 2000, 10)):
        suite.write(f"def test_a(ciwrap): ciwrap.check(np.arange({size}.0))")
        suite.run("--ciwrap-update=failed", f"--ciwrap-reason=step {number}")
        suite.run("--ciwrap-unused=fail").assert_outcomes(passed=1)
        is_shared = [name for name in suite.files("golden") if name.endswith(".goldens")]
        assert bool(is_shared) == (size == 10)
    reasons = [one.why for one in suite.golden("test_a").manifest.accepted]
    assert reasons == ["step 0", "step 1", "step 2"]
    assert list(suite.files("golden")) == ["tests/test_it.goldens"]


def test_a_golden_without_a_bound_stays_in_the_file_when_it_is_replaced(suite: Suite) -> None:
    """It moved by infinitely many bounds, which JSON has no number for."""
    for number, mode in enumerate(("new", "failed", "none")):
        suite.write(f"def test_a(ciwrap): ciwrap.check({number}.0)")
        result = suite.run(f"--ciwrap-update={mode}", "--ciwrap-reason=other numbers")
        if mode == "failed":
            assert f"  replaced: {SHARED} (test_a)" in result.outlines
    done = suite.cli("accept", "--pending", "--reason", "and again")
    assert f"replaced  tests/test_it.py::test_a  ({SHARED})\n" in done.stdout
    assert list(suite.files("golden")) == ["tests/test_it.goldens"]
    shares = [one.largest_bound_share for one in suite.golden("test_a").manifest.accepted]
    assert shares == [None, float("inf"), float("inf")]
    suite.run().assert_outcomes(passed=1)
