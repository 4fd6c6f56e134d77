"""Blocks of checks: `with ciwrap.all():` and `with ciwrap.expect_mismatch():`."""

from __future__ import annotations

import pytest
from plugin.conftest import Suite, summary

THREE = """
    def test_it(ciwrap):
        with ciwrap.all():
            for number, name in enumerate("abc"):
                result = ciwrap.check(np.full(3, number + BAD), name)
                assert result.verdict in ("match", VERDICT)
        assert not BAD, "nobody comes here"
"""


def test_all_checks_of_a_block_are_made(suite: Suite) -> None:
    good = THREE.replace("BAD", "0.0").replace("VERDICT", "'not_comparable'")
    suite.write(good)
    result = suite.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "GoldenMismatch: 3 checks failed:" in text
    for name in "abc":
        assert f"{name}: there is no golden yet" in text
    assert "nobody comes here" not in text.split("short test summary")[1]
    assert "contextlib" not in text
    # All of them wait, so one acceptance is enough.
    assert len(suite.waiting()) == 3
    assert suite.cli("accept", "--pending").returncode == 0
    suite.run().assert_outcomes(passed=1)
    suite.write(THREE.replace("BAD", "0.5").replace("VERDICT", "'differ'"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 3 differ"
    assert result.stdout.str().count("  checked at tests/test_it.py:8") == 3


def test_a_block_of_many_checks_and_its_exception(suite: Suite) -> None:
    suite.write("""
        from ciwrap import GoldenMismatch
        def test_it(ciwrap):
            with pytest.raises(GoldenMismatch) as caught, ciwrap.all():
                for number in range(7): ciwrap.check(1.0, f"n{number}")
            assert caught.value.result.name.endswith("n0")
            assert "... and 2 more: n5, n6" in str(caught.value)
            raise RuntimeError("as meant")
        def test_errors_go_first(ciwrap):
            with ciwrap.all():
                ciwrap.check(1.0, "a")
                raise RuntimeError("first")
        def test_refusals_are_not_gathered(ciwrap):
            with ciwrap.all():
                ciwrap.check("text", "b")
                raise AssertionError("nobody comes here")
    """)
    result = suite.run()
    result.assert_outcomes(failed=3)
    lines = [line for line in result.outlines if line.startswith("E ")]
    assert lines[0] == "E       RuntimeError: as meant"
    assert lines[1] == "E           RuntimeError: first"
    assert "a string could be a path or a value" in lines[2]


SENSITIVE = """
    def test_it(ciwrap):
        x = np.linspace(0, 1, 50)
        ciwrap.check(x, atol=1e-6)
        with ciwrap.expect_mismatch() as caught:
            ciwrap.check(x + STEP, atol=1e-6)
        assert caught.result.variables[0].differing_count == 50
"""


def test_a_mismatch_that_is_meant(suite: Suite) -> None:
    suite.write(SENSITIVE.replace("STEP", "2e-6"))
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(passed=1)
    assert summary(result) == "ciwrap: 1 differ as expected, 1 written"
    before = suite.files("golden")
    for arguments in ((), ("--ciwrap-update=all", "--ciwrap-reason=x"), ("--ciwrap-unused=fail",)):
        result = suite.run(*arguments)
        assert result.ret == 0
        assert summary(result) == "ciwrap: 1 matched, 1 differ as expected"
        assert suite.files("golden") == before
        assert suite.waiting() == {}
    document = suite.document()
    assert (document["verdict"], len(document["checks"])) == ("match", 1)
    said = [message["text"] for message in document["messages"]]
    assert said == ["1 check left out: found to differ, as the test expects"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("pass", "a check was expected to differ from its golden, but none was made"),
        (
            "ciwrap.check(1.0)",
            "a check was expected to differ from its golden, but all of them match",
        ),
        ("ciwrap.check(1.0, 'other')", "other: there is no golden yet"),
        ("ciwrap.check('text')", "a string could be a path or a value"),
        ("raise ValueError('mine')", "ValueError: mine"),
        ("raise AssertionError('mine')", "AssertionError: mine"),
        ("GOLDEN.write_bytes(b'no'); ciwrap.check(2.0)", "CorruptGolden"),
        ("ciwrap.all().__enter__()", "cannot be nested"),
    ],
)
def test_what_is_not_a_mismatch_is_not_what_was_meant(suite: Suite, call: str, says: str) -> None:
    suite.write("def test_it(ciwrap): ciwrap.check(1.0)")
    suite.run("--ciwrap-update=new")
    suite.write(f"""
    from pathlib import Path
    GOLDEN = Path("golden/tests/test_it.goldens")
    def test_it(ciwrap):
        with ciwrap.expect_mismatch() as caught:
            {call}
    """)
    result = suite.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert says in text or (says == "CorruptGolden" and "error: " in text and "golden" in text)
    assert suite.waiting() == {}
    # Nor can the block's own failure be hidden.
    suite.write(f"""
    from pathlib import Path
    GOLDEN = Path("golden/tests/test_it.goldens")
    def test_it(ciwrap):
        try:
            with ciwrap.expect_mismatch() as caught:
                {call}
        except (AssertionError, ValueError, TypeError): pass
    """)
    result = suite.run()
    if "mine" not in call:
        assert result.ret == 1


OF_A_THREAD = """
    import contextlib, threading
    def test_it(ciwrap):
        def other():
            with contextlib.suppress(AssertionError):
                ciwrap.check(2.0 + BAD, "other")
        ciwrap.check(1.0, "x")
        with ciwrap.expect_mismatch():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            ciwrap.check(1.5, "x")
"""


def test_a_mismatch_of_another_thread_is_not_the_one_that_is_meant(suite: Suite) -> None:
    suite.write(OF_A_THREAD.replace("BAD", "0.0"))
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(passed=1)
    assert summary(result) == "ciwrap: 1 differ as expected, 2 written"
    suite.write(OF_A_THREAD.replace("BAD", "0.5"))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 1 matched, 1 differ, 1 differ as expected"


def test_a_marked_test_may_expect_a_mismatch_only(suite: Suite) -> None:
    suite.write("@pytest.mark.ciwrap\ndef test_it(ciwrap): ciwrap.check(1.0)")
    suite.run("--ciwrap-update=new")
    suite.write("""
        @pytest.mark.ciwrap
        def test_it(ciwrap):
            with ciwrap.expect_mismatch(): ciwrap.check([1.0, 2.0])
    """)
    result = suite.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (0, "ciwrap: 1 differ as expected")
    suite.write("""
        @pytest.mark.ciwrap(repeat=2)
        def test_it(ciwrap):
            with ciwrap.expect_mismatch(): ciwrap.check(1.0)
    """)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "repeat=N has none" in result.stdout.str()


SEVERAL = """
    def test_three(ciwrap):
        for number, name in enumerate("abc"):
            ciwrap.check(np.arange(3.0) + PLUS * number, name)
        assert True
"""


def test_one_run_makes_all_checks_of_a_test(suite: Suite) -> None:
    suite.write(SEVERAL.replace("PLUS", "0"))
    result = suite.run("--ciwrap-all")
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 3 new"
    assert len(suite.waiting()) == 3
    assert "3 checks failed:" in result.stdout.str()
    assert "the test went on" not in result.stdout.str()
    assert "--full-trace" not in result.stdout.str()
    suite.cli("accept", "--pending")
    suite.run("--ciwrap-all").assert_outcomes(passed=1)
    suite.write(SEVERAL.replace("PLUS", "1"))
    suite.run().assert_outcomes(failed=1)
    assert len(suite.waiting()) == 1
    (suite.root / "pytest.ini").write_text(
        (suite.root / "pytest.ini").read_text() + "ciwrap_all = true\n"
    )
    result = suite.run()
    assert summary(result) == "ciwrap: 1 matched, 2 differ"
    assert sorted(suite.waiting()) == [f"tests/test_it.py::test_three::{name}" for name in "bc"]


@pytest.mark.parametrize(
    "end", ["raise ValueError('other')", "assert False", "pytest.skip('no')", "raise SystemExit"]
)
def test_no_failed_check_is_lost_whatever_the_test_ends_with(suite: Suite, end: str) -> None:
    for body in ("ciwrap.check(1.0, 'a'); ciwrap.check(2.0, 'b')", "inner(ciwrap)"):
        suite.write(f"""
            def inner(ciwrap):
                with ciwrap.all():
                    ciwrap.check(1.0, 'a'); ciwrap.check(2.0, 'b')
                    {end}
            def test_it(ciwrap):
                {body}
                {end}
        """)
        result = suite.run("--ciwrap-all")
        result.assert_outcomes(failed=1)
        text = result.stdout.str()
        assert "2 checks failed:" in text
        assert text.count("a: there is no golden yet") == text.count("b: there is no golden yet")
        assert sorted(suite.waiting()) == [
            "tests/test_it.py::test_it::a",
            "tests/test_it.py::test_it::b",
        ]
        assert summary(result) == "ciwrap: 2 new"


def test_a_block_and_a_run_of_all_checks_tell_of_each_once(suite: Suite) -> None:
    suite.write("""
        def test_it(ciwrap):
            ciwrap.check(1.0, 'a')
            with ciwrap.all():
                ciwrap.check(2.0, 'b')
        @pytest.mark.xfail(strict=True)
        def test_xfail(ciwrap): ciwrap.check(1.0)
        def test_caught(ciwrap):
            try: ciwrap.check(object())
            except ValueError: pass
            ciwrap.check(1.0)
        def test_expected(ciwrap):
            with ciwrap.expect_mismatch(): ciwrap.check(1.0)
    """)
    result = suite.run("--ciwrap-all")
    result.assert_outcomes(failed=3, xfailed=1)
    text = result.stdout.str()
    assert "ciwrap: checks that failed, too" in text
    assert text.count("E       ciwrap.GoldenMismatch: b: there is no golden") == 1


@pytest.mark.parametrize("size", [2, 1000])
def test_where_a_new_golden_will_lie(suite: Suite, size: int) -> None:
    suite.write(f"def test_it(ciwrap): ciwrap.check(np.arange({size}.0))")
    document = suite.document()
    text = suite.run().stdout.str()
    assert suite.cli("accept", "--pending").returncode == 0
    [path] = [f"golden/{name}" for name in suite.files("golden") if ".golden" in name[-8:]]
    assert f"there is no golden yet ({path})" in text
    assert document["checks"][0]["golden_path"] == path
    assert document["checks"][0]["messages"][0]["file"] == path
