"""One file for the small goldens of a test file, as users, git and other commands meet it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from plugin.conftest import summary

from ciwrap.changes.file_trees import WorkingTree
from ciwrap.changes.state import Where, state_of

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


def test_200_checks_are_one_file_and_smaller_than_arrays_alone_compressed(suite: Suite) -> None:
    write(suite, 200)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=200)
    (name,) = [one for one in suite.files(".") if one.startswith("golden/")]
    assert name == SHARED
    # np.savez_compressed of each, as pytest-regressions keeps them: 124,485 bytes.
    assert (suite.root / SHARED).stat().st_size < 120_000


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
    assert suite.files("golden") == {"tests/test_it.goldens.next": noted}
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
