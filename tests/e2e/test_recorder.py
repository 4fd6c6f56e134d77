"""What programs hand to `ciwrap.Recorder`: odd arrays, names, numbers and threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs import captured, need_library, python, recording

from ciwrap.base.errors import ExitCode
from ciwrap.cli.main import run as run_cli

PROGRAM = """
import numpy as np, ciwrap
x = np.arange(6.0)
with ciwrap.Recorder() as r:
    @BODY@
"""


def record(run: str, body: str) -> str:
    """What the program said on stderr; it has to end by itself, with 0."""
    need_library()
    done = python(PROGRAM.replace("@BODY@", body), recording(Path(run).absolute()))
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_mask_is_not_dropped() -> None:
    record("a", "r.record(0, x=np.ma.array(x, mask=x < 0))")
    said = record("b", "r.record(0, x=np.ma.array(x, mask=x == 2))")
    assert "masked values cannot be recorded" in said
    assert run_cli(["compare", "a", "b"]) == ExitCode.NOT_COMPARABLE


@pytest.mark.parametrize("array", ["[[1, 2], [3]]", "Odd()"])
def test_what_numpy_does_not_take_leaves_the_program_alone(array: str) -> None:
    body = (
        "class Odd:\n        def __array__(self, *a, **k): raise RuntimeError('needs gradient')\n"
        f"    r.record(0, x=x, y={array})"
    )
    for run in ("a", "b"):
        assert "y: dtype" in record(run, body)
    assert run_cli(["compare", "a", "b"]) == ExitCode.NOT_COMPARABLE


def test_names_that_c_or_utf_8_would_cut_are_kept_apart() -> None:
    record("a", r"r.record(0, 'p\0q', **{'a\0b': x, 'a': x + 1, 'b\ud800': x})")
    assert {name.rpartition(" / ")[2] for name in captured(Path("a"))} == {
        r"a\0b@p\0q",
        r"a@p\0q",
        r"b\ud800@p\0q",
    }


@pytest.mark.parametrize("iteration", ["2**64 + 3", "2**63", "-(2**70)", "1.0"])
def test_an_iteration_is_never_another_one(iteration: str) -> None:
    need_library()
    text = PROGRAM.replace("@BODY@", f"r.record({iteration}, x=x)")
    done = python(text, recording(Path("a").absolute()))
    assert "is not a whole number of 64 bits" in done.stderr
    assert not captured(Path("a"))
    assert python(text, {"PATH": ""}).returncode == 0  # nothing is recorded, so nothing is said


def test_an_iteration_may_be_any_whole_number() -> None:
    said = record("a", "r.record(np.int32(3), x=x); r.record(2**63 - 1, x=x); r.record(-(2**40))")
    assert {name.split()[1] for name in captured(Path("a"))} == {"3", str(2**63 - 1)}
    assert "is negative" in said


THREADS = """
    import threading
    def go(k):
        for i in range(300):
            r.record(k * 1000 + i, **{f"t{k}": np.full(20000, float(k * 1000 + i))})
    threads = [threading.Thread(target=go, args=(k,)) for k in range(4)]
    [one.start() for one in threads], [one.join() for one in threads]
"""


def test_threads_record_their_own_arrays() -> None:
    for run in ("a", "b"):
        assert not record(run, THREADS.strip())
    assert len(captured(Path("a"))) == 1200
    assert run_cli(["compare", "a", "b"]) == ExitCode.MATCH


def test_a_child_does_not_wait_for_a_thread_that_it_lacks() -> None:
    record(
        "a",
        "r._lock.acquire(); import os, threading; pid = os.fork()\n"
        "    if pid == 0:\n"
        "        threading.Thread(target=lambda: (r.record(1, x=x), r.close())).run()\n"
        "        t = threading.Thread(target=lambda: (r.record(1, x=x), r.close())); t.start()\n"
        "        t.join(5); os._exit(t.is_alive())\n"
        "    assert os.waitpid(pid, 0)[1] == 0; r.record(0, x=x); r._lock.release()",
    )
    assert len(captured(Path("a"))) == 1


def test_what_both_runs_record_twice_is_compared_within_its_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = "r.bound('x', atol=1e-3); r.record(0, x=x); r.record(0, x=x + {}); r.record(1, x=x)"
    for run, second in (("a", 1), ("b", 1.00001), ("c", 5)):
        record(run, body.format(second))
    assert run_cli(["compare", "a", "b"]) == ExitCode.MATCH
    assert run_cli(["compare", "a", "c"]) == ExitCode.DIFFER
    assert "exact is asked for" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("ciwrap.Recorder(rank=2**32, ranks=2**32 + 1)", "there is no rank 4294967296 of 4294967"),
        ("ciwrap.Recorder(rank=0.5)", "there is no rank 0.5 of 1"),
        ("ciwrap.Recorder(rank='0')", "there is no rank '0' of 1"),
        ("ciwrap.Recorder(5)", "5 is not text"),
        ("r.record(0, None, x=x)", "None is not text"),
        ("r.bound('x', atol=-1)", "the bound of 'x': atol"),
        ("r.bound('x', atol=1e-3, rtol=float('nan'))", "the bound of 'x': rtol"),
        ("r.bound('x', atol='1e-3 m')", "the bound of 'x': atol"),
        ("r.close(); r.record(1, x=x)", "iteration 1 is recorded after the run was closed"),
    ],
)
def test_a_mistake_is_told_in_one_line_where_it_is_made(body: str, said: str) -> None:
    """A negative bound was none, a rank of 2**32 was rank 0, and what came after the end was
    dropped without a word.
    """
    need_library()
    text = PROGRAM.replace("@BODY@", body)
    done = python(text, recording(Path("a").absolute()))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ciwrap.base.errors.UsageError: ")
    assert said in last


def test_a_program_is_called_whatever_it_likes() -> None:
    record("a", r"s = ciwrap.Recorder('a\ud800\0b', rank=1, ranks=2); s.close()")


def test_a_child_says_that_it_records_nothing() -> None:
    body = "import os; pid = os.fork()\n    r.record(1 if pid else 2, x=x); r.record(3, x=x)\n"
    said = record("a", f"{body}    pid or os._exit(0); os.wait()")
    assert said.count("this is a child of fork()") == 1
    assert {name.split()[1] for name in captured(Path("a"))} == {"1", "3"}
