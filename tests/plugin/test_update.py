"""Update modes, and goldens that are whole whatever happens meanwhile."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time

import pytest
from plugin.conftest import Suite, summary

from ciwrap.golden import places as paths
from ciwrap.golden.store import GoldenStore

TEXT = """
    A, B, C = VALUES
    def test_a(ciwrap): ciwrap.check(np.full(100, A, float), atol=1e-3)
    def test_b(ciwrap): ciwrap.check(np.full(100, B, float), atol=1e-3)
    def test_c(ciwrap): ciwrap.check(np.full(100, C, float), atol=1e-3)
"""
WHY = "--ciwrap-reason=as measured"


def write(suite: Suite, a: float, b: float, c: float | None = None) -> None:
    text = TEXT.replace("VALUES", repr((a, b, c)))
    suite.write(text if c is not None else text[: text.index("    def test_c")])


def test_many_goldens_of_one_folder(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing one does not look at all the others, and nothing is left behind."""
    listed = []
    original = paths.stored_stems
    monkeypatch.setattr(
        paths, "stored_stems", lambda folder: listed.append(folder) or original(folder)
    )
    text = """
        @pytest.mark.parametrize("number", range(12))
        def test_many(ciwrap, number): ciwrap.check(np.full(10, SHIFT + number), atol=1e-3)
    """
    suite.write(text.replace("SHIFT", "0.0"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=12)
    assert len(listed) <= 3
    assert len(suite.goldens()) == 12
    listed.clear()
    suite.write(text.replace("SHIFT", "0.5"))
    suite.run().assert_outcomes(failed=12)
    assert len(suite.waiting()) == 12
    assert len(listed) <= 3
    assert [path for path in suite.root.rglob("*") if path.name.endswith((".lock", ".next"))] == []


def line(suite: Suite, name: str) -> bytes:
    """What the shared file says of a golden."""
    lines = suite.files("golden")["tests/test_it.goldens"].splitlines()
    (found,) = [one for one in lines if one.startswith(f'["{name}"'.encode())]
    return found


def state(suite: Suite) -> dict[str, tuple[int, int]]:
    folder = suite.root / "golden"
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_each_mode_writes_what_it_says(suite: Suite) -> None:
    write(suite, 1, 2)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    write(suite, 1.0001, 2.5, 3)  # within the bound, beyond it, new
    before = state(suite)
    a, b = line(suite, "test_a"), line(suite, "test_b")

    result = suite.run()
    result.assert_outcomes(passed=1, failed=2)
    assert summary(result) == "ciwrap: 1 matched, 1 differ, 1 new"
    assert set(suite.waiting()) == {"tests/test_it.py::test_b", "tests/test_it.py::test_c"}
    assert state(suite) == before

    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(passed=2, failed=1)
    assert summary(result) == "ciwrap: 1 matched, 1 differ, 1 written"
    assert "  created: golden/tests/test_it.goldens (test_c)" in result.outlines
    assert set(suite.waiting()) == {"tests/test_it.py::test_b"}
    assert (line(suite, "test_a"), line(suite, "test_b")) == (a, b)

    result = suite.run("--ciwrap-update=failed", WHY)
    result.assert_outcomes(passed=3)
    assert summary(result) == "ciwrap: 2 matched, 1 written"
    assert "  replaced: golden/tests/test_it.goldens (test_b)" in result.outlines
    assert suite.waiting() == {}
    # What still passes is not rewritten, so that it does not creep along with the noise.
    assert line(suite, "test_a") == a
    assert line(suite, "test_b") != b

    result = suite.run("--ciwrap-update=all", WHY)
    result.assert_outcomes(passed=3)
    assert summary(result) == "ciwrap: 2 matched, 1 written"
    assert "  replaced: golden/tests/test_it.goldens (test_a)" in result.outlines
    assert suite.run().ret == 0
    history = suite.golden("test_b").manifest.accepted
    assert [entry.why for entry in history] == ["first golden", "as measured"]
    assert history[1].largest_bound_share == pytest.approx(500)


def test_replacing_needs_a_reason(suite: Suite) -> None:
    write(suite, 1, 2)
    for mode in ("failed", "all"):
        result = suite.run(f"--ciwrap-update={mode}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "needs a reason" in result.stderr.str()
        assert suite.run(f"--ciwrap-update={mode}", "--ciwrap-reason= ").ret == 4
    assert suite.goldens() == []


def test_a_check_that_matches_again_no_longer_waits(suite: Suite) -> None:
    write(suite, 1, 2)
    suite.run("--ciwrap-update=new")
    write(suite, 5, 2)
    suite.run()
    assert list(suite.waiting()) == ["tests/test_it.py::test_a"]
    write(suite, 1, 2)
    result = suite.run()
    assert suite.waiting() == {}
    assert "review" not in result.stdout.str()
    # Nothing is left but the index.
    assert set(suite.files(".ciwrap")) == {".gitignore", "pending/pending.json"}


def test_variants(suite: Suite) -> None:
    """pytest-mpl#149, #91: several valid results, by platform."""
    write(suite, 1, 2)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    write(suite, 1, 9)
    result = suite.run("--ciwrap-variant=arm64")
    result.assert_outcomes(passed=1, failed=1)
    assert "golden/tests/test_it.goldens" in result.stdout.str()
    result = suite.run("--ciwrap-variant=arm64", "--ciwrap-update=failed", WHY)
    result.assert_outcomes(passed=2)
    assert "  created: golden/tests/test_it/@arm64.goldens (test_b)" in result.outlines
    document = suite.document("--ciwrap-variant=arm64", "--ciwrap-unused=fail")
    assert document["verdict"] == "match"
    assert [check.get("variant") for check in document["checks"]] == [None, "arm64"]
    # Everywhere else the common one holds.
    suite.run().assert_outcomes(passed=1, failed=1)
    suite.run("-o", "ciwrap_variants={python} arm64 {system}").assert_outcomes(passed=2)
    result = suite.run("-o", "ciwrap_variants={cpu}")
    result.assert_outcomes(errors=2)
    assert "unknown field" in result.stdout.str()


SLOW = """
    import time
    @pytest.mark.parametrize("number", range(24))
    def test_it(number, ciwrap): ciwrap.check(np.full(2000, VALUE + number))
"""


def test_killed_while_updating(suite: Suite) -> None:
    suite.write(SLOW.replace("VALUE", "1"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=24)
    suite.write(SLOW.replace("VALUE", "2"))
    process = subprocess.Popen(
        suite.command("-q", "--ciwrap-update=failed", WHY),
        cwd=suite.root,
        env=suite.environment(),
        stdout=subprocess.DEVNULL,
    )
    store = GoldenStore(suite.root / "golden/tests/test_it")
    old = {name: store.read(name).root for name in store.checks()}
    first = store.path(sorted(old)[0])
    begun = first.stat().st_ino
    deadline = time.monotonic() + 60
    while first.stat().st_ino == begun and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.1)
    process.kill()
    process.wait()
    # Every golden is whole: the old one or the new one.
    now = {name: store.read(name).root for name in store.checks()}
    assert set(now) == set(old)
    assert any(now[name] != old[name] for name in old)
    suite.run("--ciwrap-update=failed", WHY).assert_outcomes(passed=24)
    assert not [name for name in suite.files("golden") if name.endswith((".next", ".lock"))]
    assert suite.run().ret == 0


def test_a_full_disk_while_updating(suite: Suite) -> None:
    suite.write("def test_it(ciwrap): ciwrap.check(np.random.default_rng(1).normal(size=9000))")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    before = suite.files("golden")
    suite.write("def test_it(ciwrap): ciwrap.check(np.random.default_rng(2).normal(size=9000))")

    def no_more_than_20_kb() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    for mode in ("none", "failed"):
        done = subprocess.run(
            suite.command("-q", f"--ciwrap-update={mode}", WHY),
            cwd=suite.root,
            env=suite.environment(),
            preexec_fn=no_more_than_20_kb,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stdout
        assert "could not be written" in done.stdout
        assert suite.files("golden") == before
        assert suite.waiting() == {}
        assert [name for name in suite.files(".ciwrap") if name.endswith(".golden")] == []
    suite.run().assert_outcomes(failed=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_golden_folder_that_cannot_be_written(suite: Suite) -> None:
    write(suite, 1, 2)
    (suite.root / "golden").mkdir(mode=0o500)
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(failed=2)
    assert "make the folder writable" in result.stdout.str()


def test_two_processes_update_at_once(suite: Suite) -> None:
    suite.write(SLOW.replace("VALUE", "1"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=24)
    suite.write(SLOW.replace("VALUE", "2"))
    processes = [
        subprocess.Popen(
            suite.command("-q", "--ciwrap-update=failed", f"--ciwrap-reason=number {number}"),
            cwd=suite.root,
            env=suite.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert suite.run("--ciwrap-unused=fail").ret == 0
    assert len(suite.goldens()) == 24
    assert not [name for name in suite.files("golden") if name.endswith((".next", ".lock"))]


def test_two_processes_leave_pending_goldens_at_once(suite: Suite) -> None:
    suite.write(SLOW.replace("VALUE", "1"))
    processes = [
        subprocess.Popen(
            suite.command("-q", f"--basetemp={suite.root}/tmp{number}"),
            cwd=suite.root,
            env=suite.environment(),
            stdout=subprocess.DEVNULL,
        )
        for number in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [1, 1]
    assert len(suite.waiting()) == 24
    done = suite.cli("accept", "--pending")
    assert done.returncode == 0, done.stderr
    assert suite.run().ret == 0


@pytest.mark.parametrize("mode", ["failed", "all"])
def test_what_does_not_match_itself_is_not_called_matched(suite: Suite, mode: str) -> None:
    """A golden that has nothing new to take is not a match for that."""
    suite.write("def test_it(ciwrap): ciwrap.check(np.array([np.nan, 1.0]), equal_nan=False)")
    for _ in range(2):
        result = suite.run(f"--ciwrap-update={mode}", WHY)
        assert (result.ret, summary(result)) == (1, "ciwrap: 1 differ")


def test_goldens_that_cannot_be_put_in_place_are_told_of_once(suite: Suite) -> None:
    """They count where they lie; the session fails, in a line, and not with a traceback."""
    write(suite, 1, 2)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    in_the_way = suite.root / "golden/tests/test_it.goldens.whole.next"
    in_the_way.mkdir()
    write(suite, 1.5, 2)
    done = suite.subprocess("--ciwrap-update=failed", WHY)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert said.count("could not be written: Is a directory") == 1
    assert "lies in test_it.goldens.next beside it, and counts" in said
    in_the_way.rmdir()
    assert suite.cli("accept", "--pending").returncode == 0
    suite.run().assert_outcomes(passed=2)


@pytest.mark.parametrize("size", [2, 1000])
def test_a_golden_that_another_process_has_just_made_is_not_new(suite: Suite, size: int) -> None:
    suite.write(
        """
        import os, subprocess, sys
        from ciwrap.pytest_plugin.one_check import Checker

        compare = Checker.compare

        def compare_and_lose_the_race(*arguments):
            found = compare(*arguments)
            if os.environ.pop("NUMBER") == "2.0":
                again = [sys.executable, "-B", "-m", "pytest", "--ciwrap-update=new"]
                subprocess.run(again, env={**os.environ, "NUMBER": "1.0"}, check=True)
            os.environ["NUMBER"] = "0"
            return found

        Checker.compare = compare_and_lose_the_race
        """,
        "conftest.py",
    )
    suite.write(f"""
        import os
        def test_it(ciwrap): ciwrap.check(np.full({size}, float(os.environ["NUMBER"])))
    """)
    done = suite.subprocess("--ciwrap-update=new", NUMBER="2.0")
    assert "golden 1.0, new 2.0" in done.stdout
    assert (done.returncode, "ciwrap: 1 differ" in done.stdout) == (1, True)
    assert len(suite.golden("test_it").manifest.accepted) == 1


def test_the_variable_is_the_default_of_the_option(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(suite, 1, 2)
    monkeypatch.setenv("CIWRAP_UPDATE", "new")
    monkeypatch.setenv("CI", "true")
    refused = suite.run()
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "CIWRAP_UPDATE=new is refused in CI" in refused.stderr.str()
    assert not suite.goldens()
    monkeypatch.setenv("CI", "false")
    suite.run("--ciwrap-update=none").assert_outcomes(failed=2)
    suite.run().assert_outcomes(passed=2)
    for value, words in (
        ("failed", "CIWRAP_UPDATE=failed replaces goldens, which needs a reason"),
        ("yes", "CIWRAP_UPDATE=yes: there is none, new, failed, all only"),
    ):
        monkeypatch.setenv("CIWRAP_UPDATE", value)
        refused = suite.run()
        assert refused.ret == pytest.ExitCode.USAGE_ERROR
        assert words in refused.stderr.str()
