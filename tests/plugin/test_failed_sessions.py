"""A session in which a check failed does not end with 0, whatever runs, ends or reports it."""

from __future__ import annotations

from textwrap import dedent

import pytest
from plugin.conftest import Suite, summary

ONE = """
    import contextlib
    BAD = 0.0
    def test_a(ciwrap):
        with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
    def test_b(ciwrap): ciwrap.check(2.0)
"""


@pytest.fixture
def bad(suite: Suite) -> Suite:
    """A test that hides a failed check, and one that passes."""
    suite.write(ONE)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.write(ONE.replace("0.0", "0.5"))
    return suite


def test_the_first_failure_ends_the_session(bad: Suite) -> None:
    result = bad.run("-x")
    result.assert_outcomes(failed=1)
    assert "stopping after 1 failures" in result.stdout.str()


def test_the_last_failed_are_run_again(bad: Suite) -> None:
    bad.run().assert_outcomes(failed=1, passed=1)
    result = bad.run("--lf")
    result.assert_outcomes(failed=1)
    assert summary(result) == "ciwrap: 1 differ"
    # Accepted, it passes again.
    done = bad.cli("accept", "--pending", "--reason", "as measured")
    assert done.returncode == 0, done.stderr
    bad.run("--lf").assert_outcomes(passed=1)


THREADS = """
    import contextlib, threading
    BAD = 0.0
    @pytest.mark.parametrize("number", range(4))
    def test_hidden(ciwrap, number):
        with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
    @pytest.mark.parametrize("number", range(4))
    def test_thread(ciwrap, number):
        thread = threading.Thread(target=lambda: ciwrap.check(1.0 + BAD))
        thread.start()
        thread.join()
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("arguments", [(), ("-n2",)])
def test_workers_and_threads(suite: Suite, arguments: tuple[str, ...]) -> None:
    """With the warnings that pytest makes of threads' exceptions, and all of its plugins."""
    (suite.root / "pytest.ini").write_text("[pytest]\naddopts = -p no:hypothesispytest\n")
    suite.write(THREADS)
    done = suite.subprocess(*arguments, "-q", "--ciwrap-update=new")
    assert done.returncode == 0, done.stdout
    suite.write(THREADS.replace("0.0", "0.5"))
    done = suite.subprocess(*arguments, "-q")
    assert done.returncode == 1
    assert "\nciwrap: 8 differ\n" in done.stdout
    assert "\n8 failed" in done.stdout
    assert done.stdout.count("the test went on after it") >= 8


RERUN = """
    import contextlib
    from pathlib import Path
    def test_it(ciwrap):
        runs = Path("runs")
        runs.write_text((runs.read_text() if runs.exists() else "") + "x")
        with contextlib.suppress(AssertionError):
            ciwrap.check(1.0 if len(runs.read_text()) in (1, 3) else 2.0)
"""


def test_of_reruns_the_last_counts(suite: Suite) -> None:
    suite.write(RERUN)
    assert suite.subprocess("--ciwrap-update=new").returncode == 0
    done = suite.subprocess("--reruns=1")
    assert done.returncode == 0, done.stdout
    assert "\nciwrap: 1 matched\n" in done.stdout
    assert "1 passed, 1 rerun" in done.stdout
    done = suite.subprocess("--reruns=1")
    assert done.returncode == 1
    assert "\nciwrap: 1 differ\n" in done.stdout
    assert "1 failed, 1 rerun" in done.stdout


def test_an_interrupt_after_a_hidden_failure(bad: Suite) -> None:
    bad.write(ONE.replace("0.0", "0.5") + "\n    def test_c(): raise KeyboardInterrupt\n")
    done = bad.subprocess("-q")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "ciwrap: 1 matched, 1 differ" in done.stdout
    bad.write(
        ONE.replace("0.0", "0.5").replace(
            "def test_b(", "    raise KeyboardInterrupt\n    def test_b("
        )
    )
    assert bad.subprocess("-q").returncode == pytest.ExitCode.INTERRUPTED


EXITS = {
    "the test that hid it": """
        def test_a(ciwrap):
            with contextlib.suppress(AssertionError): ciwrap.check(1.0 + BAD)
            if BAD: pytest.exit("enough", returncode=0)
    """,
    "a fixture behind it": """
        @pytest.fixture
        def last():
            yield
            if BAD: pytest.exit("enough", returncode=0)
        def test_a(last, ciwrap): ciwrap.check(1.0 + BAD)
    """,
    "another test": """
        def test_a(ciwrap): ciwrap.check(1.0 + BAD)
        def test_b():
            if BAD: pytest.exit("enough", returncode=0)
    """,
    "a hook of reports": """
        def test_a(ciwrap): ciwrap.check(1.0 + BAD)
    """,
    "a hook of the end": """
        def test_a(ciwrap): ciwrap.check(1.0 + BAD)
    """,
}
CONFTESTS = {
    "a hook of reports": """
        def pytest_runtest_makereport(call):
            if call.excinfo: pytest.exit("enough", returncode=0)
    """,
    "a hook of the end": """
        def pytest_sessionfinish(session): session.exitstatus = 0
    """,
}


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("case", EXITS)
def test_a_session_that_is_told_to_end_with_0(suite: Suite, case: str) -> None:
    head = "import contextlib\nBAD = 0.0\n"
    suite.write(head + dedent(EXITS[case]))
    suite.run("--ciwrap-update=new")
    suite.write(dedent(CONFTESTS.get(case, "")), "conftest.py")
    assert suite.subprocess().returncode == 0
    suite.write(head.replace("0.0", "0.5") + dedent(EXITS[case]))
    done = suite.subprocess()
    assert done.returncode == 1, done.stdout
    told = "checks failed, so the session does not end with 0 as it would have"
    unreported = "tests/test_it.py::test_a: the check failed, and its test ended unreported"
    assert (told in done.stdout) != (unreported in done.stdout), done.stdout


def test_a_plugin_that_turns_failures_into_passes(bad: Suite) -> None:
    """Whatever becomes of the test's report, the session knows of the check."""
    conftest = """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport():
            report = yield
            if report.when == "call": report.outcome, report.longrepr = "WORD", ("", 1, "no")
            return report
    """
    for word in ("passed", "skipped"):
        bad.write(conftest.replace("WORD", word), "conftest.py")
        result = bad.run()
        assert result.ret == 1
        assert summary(result) == "ciwrap: 1 matched, 1 differ"
        line = "tests/test_it.py::test_a: the check failed, but its test was not reported as failed"
        assert f"  error: {line}" in result.outlines
        document = bad.document()
        assert document["verdict"] == "not_comparable"
        assert document["messages"][0]["text"] == line


LATE = """
    import contextlib, threading
    KEPT = []
    def test_a(ciwrap):
        KEPT.append(ciwrap)
        ciwrap.check(1.0)
    def test_b():
        with contextlib.suppress(ValueError): KEPT[0].check(2.0, "late")
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("arguments", [(), ("-n2", "--dist=loadfile")])
def test_a_check_after_the_end_of_its_test(suite: Suite, arguments: tuple[str, ...]) -> None:
    suite.write(LATE.replace('"late"', "").replace("2.0, ", "1.0").replace("def test_b", "def no"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(LATE)
    done = suite.subprocess(*arguments)
    assert done.returncode == 1
    assert "\nciwrap: 1 matched\n" in done.stdout
    assert "2 passed" in done.stdout
    says = "  error: tests/test_it.py::test_a, late: the test had ended when this check was made"
    assert says in done.stdout


def test_a_check_that_fails_while_its_test_ends(suite: Suite) -> None:
    """In the moment between the teardown and the report of it."""
    suite.write(
        """
        THREADS = []
        @pytest.hookimpl(tryfirst=True, wrapper=True)
        def pytest_runtest_teardown(item):
            found = yield
            for thread in THREADS: thread.start(); thread.join()
            return found
        """,
        "conftest.py",
    )
    suite.write("""
        import contextlib, threading
        def test_it(ciwrap, request):
            def compare():
                with contextlib.suppress(AssertionError): ciwrap.check(1.0)
            [found] = [one for one in request.config.pluginmanager.get_plugins()
                       if hasattr(one, "THREADS")]
            found.THREADS.append(threading.Thread(target=compare))
    """)
    result = suite.run()
    result.assert_outcomes(passed=1)
    assert result.ret == 1
    assert summary(result) == "ciwrap: 1 new"
    assert "the check went on, or failed, when the test had ended" in result.stdout.str()


def test_refused_checks_are_in_the_document(suite: Suite) -> None:
    suite.write("""
        def test_a(ciwrap): ciwrap.check(1.0)
        def test_b(ciwrap): ciwrap.check(object(), "x")
    """)
    suite.run("--ciwrap-update=new", "-k", "test_a")
    document = suite.document()
    assert (document["verdict"], document["exit_code"]) == ("not_comparable", 3)
    assert [check["verdict"] for check in document["checks"]] == ["match", "not_comparable"]
    refused = document["checks"][1]
    assert refused["name"] == "tests/test_it.py::test_b::x"
    assert refused["messages"][0]["slug"] == "unsupported-dtype"


@pytest.mark.parametrize(
    ("case", "exit_code"), [("ends the process", 0), ("update without a reason", 4)]
)
def test_no_result_of_an_earlier_session_is_left(suite: Suite, case: str, exit_code: int) -> None:
    suite.write("""
        import os
        def test_a(ciwrap):
            ciwrap.check(1.0)
            if "END" in os.environ: os._exit(0)
    """)
    files = ("--ciwrap-json=result.json", "--ciwrap-report=report.html")
    suite.run("--ciwrap-update=new")
    suite.run(*files)
    written = [suite.root / "result.json", suite.root / "report.html"]
    assert all(path.is_file() for path in written)
    assert suite.subprocess("--collect-only", *files, END="1").returncode == 0
    assert all(path.is_file() for path in written)
    more = () if exit_code == 0 else ("--ciwrap-update=all",)
    assert suite.subprocess(*files, *more, END="1").returncode == exit_code, case
    assert not any(path.exists() for path in written)
