"""`ciwrap watch`: live, killed, interrupted, at a terminal and not."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded_runs import need_library

from ciwrap.base.errors import ExitCode
from ciwrap.cli.main import run as run_cli

# Arguments: growth of the noise of x, of its bound an iteration; iterations; seconds of rest; a
# file that ends it once it is there.
GROWS = """
import os, sys, time, numpy as np, ciwrap
grow, steps, rest = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
x = np.random.default_rng(3).normal(size=4000)
noise = np.random.default_rng(4).uniform(-1, 1, size=4000)
noise[7] = 1.0
with ciwrap.Recorder("grows") as r:
    r.bound("x", atol=1e-3)
    r.bound("steady", atol=1e-3)
    for n in range(steps):
        r.record(n, x=x + grow * n * 1e-3 * noise, count=np.arange(10) * n)
        r.record(n, "late", steady=x + (0.3e-3 * noise if grow else 0))
        time.sleep(rest)
        if os.path.exists(sys.argv[4] if len(sys.argv) > 4 else ""):
            break
"""
WATCH = [sys.executable, "-m", "ciwrap", "watch"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("grows.py").write_text(GROWS)
    words = [sys.executable, "grows.py"]
    assert cli("record", "--residues", "-o", "a", "--", *words, "0", "60", "0")[0] == 0
    return words


def cli(*words: str) -> tuple[int, str]:
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        code = run_cli(words)
    return code, told.getvalue()


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ciwrap", "record", "--against", "a", "-o", "b", "--", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_shares_and_when_the_bound_is_reached(program: list[str]) -> None:
    assert cli("record", "--against", "a", "-o", "b", "--", *program, "0.011", "60", "0")[0] == 0
    code, text = cli("watch", "b")
    assert code == ExitCode.MATCH
    lines = text.splitlines()
    assert lines[0] == "iteration 59, 1 process, 120 checkpoints (ended)"
    assert [line.split()[0] for line in lines[1:]] == ["x", "count", "steady@late"]
    # 59 x 1.1 % of the bound: told to within an eighth.
    share = re.search(
        r"at most ([0-9.]+) % of the bound; grows by ([0-9.]+) % an iteration", lines[1]
    )
    assert share is not None, text
    assert 64.9 <= float(share[1]) <= 64.9 + 2 * 12.5
    assert 0.9 <= float(share[2]) <= 1.3
    reached = re.search(r"near iteration (\d+) if it goes on so", lines[1])
    assert reached is not None
    assert 80 <= int(reached[1]) <= 105  # 1 / 1.1 %: 91
    assert lines[2].endswith("equal")
    assert "grows" not in lines[3]
    assert "at most 37.5 % of the bound" in lines[3] or "at most 50 % of the bound" in lines[3]


def test_what_is_beyond_is_told_with_its_place(program: list[str]) -> None:
    words = [*program, "0.03", "60", "0"]
    assert cli("record", "--against", "a", "-o", "b", "--", *words)[0] == ExitCode.DIFFER
    code, text = cli("watch", "b")
    assert code == ExitCode.DIFFER
    found = re.search(r"x .*does not match since iteration (\d+) \(rank 0, \d of 8 blocks\)", text)
    assert found is not None, text
    assert 29 <= int(found[1]) <= 34  # 87.5 % of the bound are certain to pass


def test_a_run_that_was_held_against_nothing_is_no_match(program: list[str]) -> None:
    del program
    code, text = cli("watch", "a")
    assert code == ExitCode.NOT_COMPARABLE
    assert "nothing is compared: record the run with --against, or use ciwrap compare" in text
    assert "not compared 60 times" not in text
    assert cli("watch", "nowhere", "--wait", "0")[0] == ExitCode.NOT_COMPARABLE


def test_live_until_the_run_ends(program: list[str]) -> None:
    with start(*program, "0", "4000", "0.25", "enough"):
        words = [*WATCH, "b", "--every", "0.2"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            heads = []
            for line in watch.stdout:
                assert "\x1b" not in line
                if line.startswith("iteration"):
                    heads.append(line.rstrip())
                # The run ends once this has been seen, however slow the machine is.
                if len(heads) >= 3:
                    Path("enough").touch()
    assert watch.returncode == ExitCode.MATCH
    steps = [int(re.findall(r"\d+", head)[0]) for head in heads]
    assert steps == sorted(steps)
    assert all("still running" in head for head in heads[:-1])
    last = steps[-1]
    assert heads[-1] == f"iteration {last}, 1 process, {2 * last + 2} checkpoints (ended)"


def test_ends_when_the_run_is_killed(program: list[str]) -> None:
    with start(*program, "0", "4000", "0.02") as run:
        with subprocess.Popen([*WATCH, "b"], stdout=subprocess.PIPE, text=True) as watch:
            while not Path("b/000/rank-000000.cwr").exists():
                time.sleep(0.02)
            time.sleep(0.5)
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
            # Beside the program a shell waits for its parent's end (`project/run_command.py`).
            (program_pid,) = (
                int(one)
                for one in children
                if program[1] in Path(f"/proc/{one}/cmdline").read_text()
            )
            os.kill(program_pid, signal.SIGKILL)
            text, _ = watch.communicate(timeout=30)
        run.wait(30)
    assert watch.returncode == ExitCode.NOT_COMPARABLE, text
    assert "ended; 1 of 1 without an end" in text
    once = subprocess.run([*WATCH, "b", "--once"], stdout=subprocess.PIPE, text=True, check=False)
    assert once.returncode == ExitCode.NOT_COMPARABLE
    assert "ended; 1 of 1 without an end" in once.stdout


def test_is_interrupted(program: list[str]) -> None:
    with start(*program, "0", "200", "0.03") as run:
        with subprocess.Popen([*WATCH, "b"], stdout=subprocess.PIPE, text=True) as watch:
            while not Path("b/000/rank-000000.cwr").exists():
                time.sleep(0.02)
            time.sleep(1.0)
            watch.send_signal(signal.SIGINT)
            text, _ = watch.communicate(timeout=30)
        run.terminate()
        run.wait(30)
    assert watch.returncode == 130
    assert "still running" in text


def test_at_a_terminal_it_stays_in_its_place(program: list[str]) -> None:
    with start(*program, "0.01", "30", "0.1"):
        main, side = pty.openpty()
        with subprocess.Popen([*WATCH, "b"], stdout=side, stderr=side) as watch:
            os.close(side)
            shown = b""
            with contextlib.suppress(OSError):  # the terminal is gone when its last writer is
                while part := os.read(main, 4096):
                    shown += part
            assert watch.wait(30) == ExitCode.MATCH
        os.close(main)
    text = shown.decode()
    shown_times = len(re.findall(r"\(still running\)|\(ended\)|nothing recorded yet", text))
    assert shown_times >= 3
    assert len(re.findall(r"\x1b\[\d+A\x1b\[J", text)) == shown_times - 1
    assert "(ended)" in text.split("\x1b[J")[-1]
