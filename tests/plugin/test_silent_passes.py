"""What passes silently, or does damage, with other tools: here it fails, or is refused.

Each test names where it was seen.
"""

from __future__ import annotations

import json
import shutil

import pytest
from plugin.conftest import Suite, summary


def changed(suite: Suite, before: str, after: str, *arguments: str) -> pytest.RunResult:
    suite.write(before)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(after)
    return suite.run(*arguments)


def test_dropped_key(suite: Suite) -> None:
    """pytest-regressions drops a column unseen."""
    before = "def test_it(ciwrap): ciwrap.check({'a': [1.0], 'b': [2.0]}, atol=1)"
    after = "def test_it(ciwrap): ciwrap.check({'a': [1.0]}, atol=1)"
    changed(suite, before, after).assert_outcomes(failed=1)


def test_dtype_change(suite: Suite) -> None:
    """float32 against float64 passes numpy, pytest-regressions, cdo, fieldcompare."""
    before = "def test_it(ciwrap): ciwrap.check(np.ones(3), atol=1)"
    after = "def test_it(ciwrap): ciwrap.check(np.ones(3, np.float32), atol=1)"
    changed(suite, before, after).assert_outcomes(failed=1)


@pytest.mark.parametrize("evidence", ["auto", "tree"])
def test_an_element_within_a_large_array(suite: Suite, evidence: str) -> None:
    """syrupy keeps NumPy's repr, which leaves out the middle."""
    text = """
        def test_it(ciwrap):
            x = np.linspace(1, 2, 10_000_000)
            x[5_123_456] *= FACTOR
            ciwrap.check(x, "x", atol=1e-9, evidence="EVIDENCE")
    """.replace("EVIDENCE", evidence)
    result = changed(suite, text.replace("FACTOR", "1"), text.replace("FACTOR", "1.00001"))
    result.assert_outcomes(failed=1)
    assert "value [5123456] moved by" in result.stdout.str()
    assert sum(len(data) for data in suite.files("golden").values()) < 6e6


def test_small_numbers_with_the_default_bound(suite: Suite) -> None:
    """A factor of five at 1e-12 passes the default atol of pytest-regressions."""
    before = "def test_it(ciwrap): ciwrap.check(np.full(3, 1e-12))"
    changed(suite, before, before.replace("1e-12", "5e-12")).assert_outcomes(failed=1)


def test_missing_golden_in_ci_writes_none(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-regressions writes a missing baseline even in CI, so that a rerun passes."""
    monkeypatch.setenv("CI", "true")
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)")
    for _ in range(2):
        result = suite.run()
        result.assert_outcomes(failed=1)
        assert summary(result) == "ciwrap: 1 new"
        assert not (suite.root / "golden").exists()
    assert list(suite.waiting()) == ["tests/test_it.py::test_it"]


@pytest.mark.parametrize("name", ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "TF_BUILD"])
def test_updates_are_refused_in_ci(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """jest#3206: CI must never write."""
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)")
    monkeypatch.setenv(name, "1")
    for option in ("--ciwrap-update=new", "--ciwrap-unused=delete"):
        result = suite.run(option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "is refused in CI" in result.stderr.str()
    assert suite.goldens() == []
    if name == "CI":
        suite.run("--ciwrap-update=new", "--ciwrap-update-in-ci").assert_outcomes(passed=1)
        assert len(suite.goldens()) == 1
        monkeypatch.setenv(name, "false")
        assert suite.run("--ciwrap-update=new").ret == 0


def test_crash_before_the_check_while_updating(suite: Suite) -> None:
    """syrupy's update deleted the baseline of a test that crashed before its assertion."""
    text = "def test_it(ciwrap):\n    CRASH\n    ciwrap.check(1.0)"
    suite.write(text.replace("CRASH", "pass"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    before = suite.files("golden")
    suite.write(text.replace("CRASH", "raise RuntimeError('early')"))
    for mode in ("failed", "all"):
        result = suite.run(f"--ciwrap-update={mode}", "--ciwrap-reason=x", "--ciwrap-unused=delete")
        result.assert_outcomes(failed=1)
        assert suite.files("golden") == before
        assert "unused" not in summary(result)


def test_a_test_that_fails_before_its_check_matches_nothing(suite: Suite) -> None:
    text = """
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b(ciwrap):
            EARLY
            ciwrap.check(2.0)
        def test_c(): OTHER
    """
    suite.write(text.replace("EARLY", "ciwrap.check(1.0, 'other')").replace("OTHER", "pass"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=3)
    for early, other, verdict, lost in (
        ("pass", "assert False", "match", []),  # test_c makes no checks
        ("assert False", "pass", "not_comparable", ["test_b"]),
        ("ciwrap.check(1.0, 'other')", "pass", "match", []),
        ("ciwrap.check(1.5, 'other')", "pass", "differ", []),
        ("ciwrap.check(1.5, 'other'); assert False", "pass", "differ", []),
    ):
        suite.write(text.replace("EARLY", early).replace("OTHER", other))
        document = suite.document()
        assert document["verdict"] == verdict
        texts = [one["text"] for one in document["messages"] if one["level"] == "error"]
        assert texts == [
            f"tests/test_it.py::{test} failed, and what it did not reach is not compared"
            for test in lost
        ]


@pytest.mark.parametrize(
    ("how", "arguments"),
    [
        ("raise KeyboardInterrupt", ()),
        ("pytest.exit('enough', returncode=0)", ()),
        ("assert False", ("-x",)),
        ("assert False", ("-n2", "--maxfail=1")),
    ],
)
def test_tests_that_an_interrupted_session_does_not_come_to(
    suite: Suite, how: str, arguments: tuple[str, ...]
) -> None:
    text = """
        import time
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b():
            HOW
        @pytest.mark.parametrize("i", range(30))
        def test_c(ciwrap, i):
            time.sleep(PAUSE)
            ciwrap.check(2.0)
    """
    suite.write(text.replace("HOW", "pass").replace("PAUSE", "0"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=32)
    assert suite.document()["verdict"] == "match"
    suite.write(text.replace("HOW", how).replace("PAUSE", "0.2"))
    suite.subprocess("--ciwrap-json=result.json", *arguments)
    document = json.loads((suite.root / "result.json").read_text())
    assert (document["verdict"], document["exit_code"]) == ("not_comparable", 3)
    texts = [one["text"] for one in document["messages"] if one["level"] == "error"]
    end = " was not run to its end, and what it checks is not compared"
    assert texts[0].startswith("tests/test_it.py::test_c[")
    assert texts[0].endswith(end)
    assert texts[-1].startswith("... and ")


def test_an_interrupt_within_a_test_that_makes_checks(suite: Suite) -> None:
    text = "def test_a(ciwrap): ciwrap.check(1.0)\ndef test_b(ciwrap): HOW; ciwrap.check(1.0)"
    suite.write(text.replace("HOW", "pass"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.write(text.replace("HOW", "raise KeyboardInterrupt"))
    suite.subprocess("--ciwrap-json=result.json")
    document = json.loads((suite.root / "result.json").read_text())
    assert document["verdict"] == "not_comparable"
    assert "test_b was not run to its end" in document["messages"][0]["text"]


def test_a_test_that_asks_late_and_fails_before_its_check(suite: Suite) -> None:
    text = """
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b(request):
            late = request.getfixturevalue("ciwrap")
            EARLY
            late.check(2.0)
    """
    suite.write(text.replace("EARLY", "pass"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    assert suite.document()["verdict"] == "match"
    suite.write(text.replace("EARLY", "assert False"))
    document = suite.document()
    assert (document["verdict"], document["exit_code"]) == ("not_comparable", 3)
    assert "test_b failed, and what it did not reach" in document["messages"][0]["text"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("@pytest.mark.ciwrap\ndef test_it(): pass", "does not ask for the fixture"),
        ("@pytest.mark.ciwrap\ndef test_it(ciwrap): pass", "made no ciwrap.check()"),
        ("@pytest.mark.ciwrap(repeat=2)\ndef test_it(ciwrap): pass", "made no ciwrap.check()"),
        (
            """
            import unittest
            @pytest.mark.ciwrap
            class TestIt(unittest.TestCase):
                def test_it(self): pass
            """,
            "does not ask for the fixture",
        ),
    ],
)
def test_a_marked_test_that_checks_nothing(suite: Suite, text: str, says: str) -> None:
    """pytest-mpl#223, #231: marked, and nothing compared because a flag was forgotten."""
    suite.write(text)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert says in result.stdout.str()


def test_no_flag_is_needed(suite: Suite) -> None:
    """pytest-arraydiff#40, sunpy#6523: without its flag nothing was checked."""
    before = "def test_it(ciwrap): ciwrap.check(1.0)"
    changed(suite, before, before.replace("1.0", "1.1")).assert_outcomes(failed=1)


def test_without_the_plugin_nothing_passes(suite: Suite) -> None:
    suite.write("@pytest.mark.ciwrap\ndef test_it(): pass")
    done = suite.subprocess("-p", "no:ciwrap")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "'ciwrap' not found in `markers`" in done.stdout
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)")
    result = suite.run("-p", "no:ciwrap")
    result.assert_outcomes(errors=1)
    assert "fixture 'ciwrap' not found" in result.stdout.str()


@pytest.mark.parametrize("damage", ["cut", "emptied", "binary", "manifest", "swapped", "conflict"])
def test_a_damaged_golden(suite: Suite, damage: str) -> None:
    """gmx check and cprnc exit 0 on a truncated file."""
    suite.write("""
        def test_a(ciwrap): ciwrap.check(np.arange(600.0), atol=1e-3)
        def test_b(ciwrap): ciwrap.check(np.arange(600.0) + 1, atol=1e-3)
    """)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    folder = suite.root / "golden/tests/test_it"
    binary, manifest = folder / "test_a.golden", folder / "test_a.golden.yaml"
    if damage == "cut":
        binary.write_bytes(binary.read_bytes()[:-20])
    elif damage == "emptied":
        binary.write_bytes(b"")
    elif damage == "binary":
        binary.unlink()
    elif damage == "manifest":
        manifest.unlink()
    elif damage == "swapped":
        binary.write_bytes((folder / "test_b.golden").read_bytes())
    else:
        manifest.write_text(f"<<<<<<< ours\n{manifest.read_text()}")
    before = suite.files("golden")
    # `new` makes what is missing; what is damaged is not missing.
    for mode in ("none", "new"):
        result = suite.run(f"--ciwrap-update={mode}")
        result.assert_outcomes(passed=1, failed=1)
        assert summary(result) == "ciwrap: 1 matched, 1 not comparable"
        assert suite.files("golden") == before
    result = suite.run("--ciwrap-update=failed", "--ciwrap-reason=it was damaged")
    if damage == "conflict":  # which somebody has to resolve: both sides' history is in it
        result.assert_outcomes(passed=1, failed=1)
        assert suite.files("golden") == before
        manifest.write_text(manifest.read_text().removeprefix("<<<<<<< ours\n"))
    else:
        result.assert_outcomes(passed=2)
    suite.run().assert_outcomes(passed=2)


def test_a_moved_test_does_not_pass(suite: Suite) -> None:
    """xcompact3d/x3d2#360: a mistyped path creates a new reference and passes."""
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)")
    suite.run("--ciwrap-update=new")
    suite.write("def test_itt(ciwrap): ciwrap.check(2.0)")
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 1 new, 1 unused"


def test_rerun_of_a_failed_check_fails_again(suite: Suite) -> None:
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)")
    for _ in range(3):
        suite.run().assert_outcomes(failed=1)


MASKED = """
    def test_it(ciwrap):
        x, land = np.arange(10.0), np.zeros(10, bool)
        land[:COUNT] = True
        bounds = {"x": {"mask": "land"}}
        ciwrap.check({"x": x + STEP * land, "land": land}, bounds=bounds)
"""


def test_a_mask_that_is_true_everywhere(suite: Suite) -> None:
    """Of ten elements none was compared, and two variables were said to match."""
    suite.write(MASKED.replace("COUNT", "10").replace("STEP", "0"))
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(failed=1)
    assert "the mask 'land' takes out all 10 values" in result.stdout.str()
    assert suite.run().ret == 1
    shutil.rmtree(suite.root / "golden", ignore_errors=True)
    suite.write(MASKED.replace("COUNT", "4").replace("STEP", "0"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(MASKED.replace("COUNT", "4").replace("STEP", "5"))
    document = suite.document()
    assert document["verdict"] == "match"
    variable = next(one for one in document["checks"][0]["variables"] if one["name"] == "x")
    assert (variable["element_count"], variable["masked_count"]) == (10, 4)
    suite.write(MASKED.replace("COUNT", "10").replace("STEP", "5"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 1 not comparable"


FORKED = """
    import os
    def make(check, waits=True):
        child = os.fork()
        if child == 0:
            try:
                check()
            finally:
                os._exit(0)
        if waits:
            os.waitpid(child, 0)
"""


def test_a_check_in_a_forked_process(suite: Suite) -> None:
    """Its exception ends the child, and the test has no need to look how that ended."""
    suite.write(
        FORKED
        + """
    def test_a(ciwrap): ciwrap.check(1.0)
    def test_b(ciwrap): make(lambda: ciwrap.check(2.0))
    def test_c(ciwrap):
        ciwrap.check(3.0)
        try:
            make(lambda: ciwrap.check(4.0, "more"))
        except Exception:
            pass
    def test_d(ciwrap): ciwrap.check(5.0)
    """
    )
    result = suite.run("--ciwrap-update=new", "-p", "no:warnings")
    result.assert_outcomes(passed=2, failed=2)
    assert summary(result) == "ciwrap: 2 refused, 3 written"
    assert "was made in a process that its test had forked" in result.stdout.str()
    assert len(suite.goldens()) == 3
    document = suite.document("-p", "no:warnings")
    assert document["verdict"] == "not_comparable"


def test_a_check_in_a_forked_process_that_goes_on(suite: Suite) -> None:
    suite.write(
        FORKED
        + """
    import time
    def test_a(ciwrap): ciwrap.check(1.0)
    def test_b(ciwrap): make(lambda: (time.sleep(0.3), ciwrap.check(2.0)), waits=False)
    def test_c(): time.sleep(1)
    """
    )
    result = suite.run("--ciwrap-update=new", "-p", "no:warnings")
    assert result.ret == 1
    assert "was made in a process that its test had forked" in result.stdout.str()
