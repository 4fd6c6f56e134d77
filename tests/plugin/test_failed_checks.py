"""A check that failed in a test that goes on: the test fails, once, whatever hid the exception."""

from __future__ import annotations

import re

import pytest
from plugin.conftest import PREAMBLE, Suite, summary

HEAD = "import asyncio, contextlib, threading, unittest\nBAD = 0.0\n"
# Every one of them computes something else as soon as BAD is not zero.
HIDDEN = {
    "swallowed": """
        def test_it(ciwrap):
            try: ciwrap.check(1.0 + BAD)
            except BaseException: pass
    """,
    "suppressed": """
        def test_it(ciwrap):
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
    """,
    "raises": """
        def test_it(ciwrap):
            if not BAD: ciwrap.check(1.0); return
            with pytest.raises(AssertionError): ciwrap.check(1.0 + BAD)
    """,
    "retried": """
        def test_it(ciwrap):
            for number in range(3):
                try: ciwrap.check(1.0 + BAD * (number == 0), str(number))
                except AssertionError: continue
    """,
    "returned": """
        def test_it(ciwrap):
            try: ciwrap.check(1.0 + BAD)
            finally: return
    """,
    "thread": """
        def test_it(ciwrap):
            thread = threading.Thread(target=lambda: ciwrap.check(1.0 + BAD))
            thread.start()
            thread.join()
    """,
    "task": """
        def test_it(ciwrap):
            async def compare(): ciwrap.check(1.0 + BAD)
            async def both(): await asyncio.gather(compare(), return_exceptions=True)
            asyncio.run(both())
    """,
    "skipped": """
        def test_it(ciwrap):
            try: ciwrap.check(1.0 + BAD)
            except AssertionError: pytest.skip("not on this machine")
    """,
    "skipped as unittest does": """
        def test_it(ciwrap):
            try: ciwrap.check(1.0 + BAD)
            except AssertionError: raise unittest.SkipTest("not on this machine")
    """,
    "unittest": """
        class TestIt(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def bring(self, ciwrap): self.ciwrap = ciwrap
            def test_it(self):
                with self.assertRaises(AssertionError) if BAD else contextlib.nullcontext():
                    self.ciwrap.check(1.0 + BAD)
    """,
    "skipped unittest": """
        class TestIt(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def bring(self, ciwrap): self.ciwrap = ciwrap
            def test_it(self):
                try: self.ciwrap.check(1.0 + BAD)
                except AssertionError: self.skipTest("not on this machine")
    """,
    "setup": """
        @pytest.fixture
        def compared(ciwrap):
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
        def test_it(compared): pass
    """,
    "not comparable": """
        def test_it(ciwrap):
            with contextlib.suppress(AssertionError): ciwrap.check([1.0] * (2 if BAD else 1))
    """,
    "no golden": """
        def test_it(ciwrap):
            with contextlib.suppress(AssertionError):
                ciwrap.check(1.0, "new" if BAD else "old")
    """,
    "refused": """
        def test_it(ciwrap):
            with contextlib.suppress(ValueError): ciwrap.check("text" if BAD else 1.0)
    """,
    "broken off": """
        class Broken:
            def __ciwrap__(self): raise MemoryError("too large")
        def test_it(ciwrap):
            with contextlib.suppress(MemoryError): ciwrap.check(Broken() if BAD else 1.0)
    """,
    "interrupted": """
        class Interrupted:
            def __ciwrap__(self): raise KeyboardInterrupt
        def test_it(ciwrap):
            try: ciwrap.check(Interrupted() if BAD else 1.0)
            except BaseException: pass
    """,
    "all of several": """
        def test_it(ciwrap):
            with contextlib.suppress(AssertionError), ciwrap.all():
                ciwrap.check(1.0 + BAD, "a")
                ciwrap.check(1.0 + BAD, "b")
    """,
    "repeated": """
        RUNS = []
        @pytest.mark.ciwrap(repeat=3)
        def test_it(ciwrap):
            RUNS.append(1)
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD * (len(RUNS) == 2))
    """,
}
HIDDEN_UNTIL_TEARDOWN = {
    "swallowed": """
        @pytest.fixture
        def compared(ciwrap):
            yield
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
        def test_it(compared): pass
    """,
    "skipped": """
        @pytest.fixture
        def compared(ciwrap):
            yield
            try: ciwrap.check(1.0 + BAD)
            except AssertionError: pytest.skip("not on this machine")
        def test_it(compared): pass
    """,
    "setup of a test that is skipped": """
        @pytest.fixture
        def compared(ciwrap):
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
            if BAD: pytest.skip("not on this machine")
        def test_it(compared): pass
    """,
    "thread": """
        @pytest.fixture
        def threads():
            found = []
            yield found
            for thread, may_go in found:
                may_go.set()
                thread.join()
        def test_it(threads, ciwrap):
            may_go = threading.Event()
            def compare():
                may_go.wait()
                ciwrap.check(1.0 + BAD)
            thread = threading.Thread(target=compare)
            thread.start()
            threads.append((thread, may_go))
    """,
    "thread that is never joined": """
        class Slow:
            def __init__(self): self.seconds = 3.0 if BAD else 0.0
            def __ciwrap__(self):
                threading.Event().wait(self.seconds)
                return np.ones(3)
        def test_it(ciwrap):
            thread = threading.Thread(target=lambda: ciwrap.check(Slow()))
            thread.start()
            if not BAD: thread.join()
    """,
}


def write(suite: Suite, cases: dict[str, str], bad: float) -> None:
    """A file for each case."""
    for number, text in enumerate(cases.values()):
        suite.write(text, f"tests/test_{number}.py")
        path = suite.root / f"tests/test_{number}.py"
        body = path.read_text().removeprefix(PREAMBLE)
        path.write_text(PREAMBLE + HEAD.replace("0.0", repr(bad)) + body)


def reported(result: pytest.RunResult, word: str) -> set[int]:
    """Numbers of the files that the summary names with this word."""
    return {
        int(number)
        for number in re.findall(rf"^{word} tests/test_(\d+).py", result.stdout.str(), re.MULTILINE)
    }


# In this process, that of the suite hears of the threads of its tests, too.
quiet_threads = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@quiet_threads
def test_a_hidden_failure_of_a_check_fails_the_test(suite: Suite) -> None:
    write(suite, HIDDEN, 0.0)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=len(HIDDEN))
    suite.run().assert_outcomes(passed=len(HIDDEN))
    write(suite, HIDDEN, 0.5)
    result = suite.run("-rA")
    names = list(HIDDEN)
    assert {names[number] for number in reported(result, "FAILED")} == set(HIDDEN)
    result.assert_outcomes(failed=len(HIDDEN))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.stdout.str().count("  the test went on after it; ") == len(HIDDEN)
    assert "checked at tests/test_0.py:8\n" in result.stdout.str()
    assert summary(result) == (
        "ciwrap: 2 matched, 14 differ, 1 not reproducible from run to run, 1 not comparable, 1 new,"
        " 3 refused"
    )


@quiet_threads
def test_a_failure_hidden_until_the_teardown_is_an_error(suite: Suite) -> None:
    write(suite, HIDDEN_UNTIL_TEARDOWN, 0.0)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=len(HIDDEN_UNTIL_TEARDOWN))
    write(suite, HIDDEN_UNTIL_TEARDOWN, 0.5)
    result = suite.run()
    names = list(HIDDEN_UNTIL_TEARDOWN)
    assert {names[number] for number in reported(result, "ERROR")} == set(names)
    result.assert_outcomes(passed=len(names) - 1, skipped=1, errors=len(names))
    assert "the check is still going on in a thread; join the thread" in result.stdout.str()


TOLD = {
    "raised": ("def test_it(ciwrap): ciwrap.check(1.0 + BAD)", "failed"),
    "followed by another failure": (
        """
        def test_it(ciwrap):
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
            assert not BAD
        """,
        "failed",
    ),
    "unittest": (
        """
        class TestIt(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def bring(self, ciwrap): self.ciwrap = ciwrap
            def test_it(self): self.ciwrap.check(1.0 + BAD)
        """,
        "failed",
    ),
    "all": (
        """
        def test_it(ciwrap):
            with ciwrap.all():
                ciwrap.check(1.0 + BAD, "a")
                ciwrap.check(1.0 + BAD, "b")
        """,
        "failed",
    ),
    "setup": (
        """
        @pytest.fixture
        def compared(ciwrap): ciwrap.check(1.0 + BAD)
        def test_it(compared): pass
        """,
        "errors",
    ),
    "teardown": (
        """
        @pytest.fixture
        def compared(ciwrap):
            yield
            ciwrap.check(1.0 + BAD)
        def test_it(compared): pass
        """,
        "errors",
    ),
}


def test_an_error_of_another_class_is_told_once(suite: Suite) -> None:
    suite.write("""
        class Broken:
            def __ciwrap__(self): raise KeyError("boom")
        def test_it(ciwrap): ciwrap.check(Broken())
    """)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "checks that failed, too" not in result.stdout.str()


@pytest.mark.parametrize("case", TOLD)
def test_a_failure_that_is_told_of_is_told_once(suite: Suite, case: str) -> None:
    text, word = TOLD[case]
    write(suite, {case: text}, 0.0)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    write(suite, {case: text}, 0.5)
    result = suite.run()
    found = {key: count for key, count in result.parseoutcomes().items() if key != "passed"}
    assert found == {word: 1} or found == {"error": 1}
    assert "the test went on" not in result.stdout.str()


@pytest.mark.parametrize(
    "body",
    [
        """
        def test_it(ciwrap, subtests):
            with subtests.test("a"): ciwrap.check(1.0 + BAD, "a")
            with subtests.test("b"): ciwrap.check(1.0, "b")
        """,
        """
        class TestIt(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def bring(self, ciwrap): self.ciwrap = ciwrap
            def test_it(self):
                with self.subTest("a"): self.ciwrap.check(1.0 + BAD, "a")
                with self.subTest("b"): self.ciwrap.check(1.0, "b")
        """,
    ],
)
def test_subtests(suite: Suite, body: str) -> None:
    if not hasattr(pytest, "Subtests"):
        pytest.skip("pytest has no subtests before 9.0")
    write(suite, {"it": body}, 0.0)
    suite.run("--ciwrap-update=new")
    write(suite, {"it": body}, 0.5)
    result = suite.run("--ciwrap-unused=fail")
    assert result.ret == 1
    assert summary(result) == "ciwrap: 1 matched, 1 differ"
    text = result.stdout.str()
    assert text.count("GoldenMismatch: a: 1 of 1 value") == 2  # where it is, and in the summary
    assert "the test went on" not in text
    # Hidden within a subtest that passes.
    hidden = body.replace(
        'ciwrap.check(1.0 + BAD, "a")',
        'pytest.raises(AssertionError, SELFciwrap.check, 1.0 + BAD, "a")',
    )
    hidden = hidden.replace("self.pytest", "pytest")
    hidden = hidden.replace("SELF", "self." if "self" in body else "")
    write(suite, {"it": hidden}, 0.5)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "the test went on after it" in result.stdout.str()


EXPECTED_FAILURES = [
    ("@pytest.mark.xfail", "pass", "xfailed"),
    ("@pytest.mark.xfail(strict=True)", "pass", "xfailed"),
    ("@pytest.mark.xfail(raises=AssertionError)", "pass", "xfailed"),
    ("@pytest.mark.xfail(raises=ValueError)", "pass", "failed"),
    ("@pytest.mark.xfail(raises=ValueError)", "raise ValueError", "failed"),
    ("@pytest.mark.xfail", "raise ValueError", "xfailed"),
    ("", "pytest.xfail('known')", "xfailed"),
    ("@pytest.mark.xfail(False, reason='not here')", "pass", "failed"),
]


def test_expected_failures(suite: Suite) -> None:
    text = "\n".join(
        f"{mark}\ndef test_{number}(ciwrap):\n"
        f"    with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)\n    {end}\n"
        for number, (mark, end, _) in enumerate(EXPECTED_FAILURES)
    )
    write(suite, {"it": text}, 0.0)
    suite.run("--ciwrap-update=new")
    write(suite, {"it": text}, 0.5)
    result = suite.run("-rA")
    words = re.findall(r"^(FAILED|XFAIL) \S+::test_(\d)", result.stdout.str(), re.MULTILINE)
    found = {int(number): word for word, number in words}
    assert found == {
        number: "FAILED" if word == "failed" else "XFAIL"
        for number, (_, _, word) in enumerate(EXPECTED_FAILURES)
    }
    # A test that is expected to fail, and does, is what it was said to be.
    result = suite.run(*(f"tests/test_0.py::test_{number}" for number in (0, 1, 2, 5, 6)))
    assert result.ret == 0
    assert summary(result) == "ciwrap: 5 differ"
    assert suite.run("--runxfail").parseoutcomes()["failed"] == len(EXPECTED_FAILURES)
