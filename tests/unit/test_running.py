"""Running a command once: what it gets, what is told of it, and that nothing of it stays."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from ciwrap.base.errors import UsageError
from ciwrap.project import run_command as guard
from ciwrap.project import run_command as running
from ciwrap.project.run_command import ending_of, halves_of_cores, run_command
from ciwrap.project.settings import CommandSettings


def settings(code: str, folder: Path, **more: Any) -> CommandSettings:
    return CommandSettings((sys.executable, "-c", code), folder, **more)


def test_a_command_gets_its_folder_and_variables(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ['ADDED'], 'PATH' in os.environ)"
    outcome = run_command(settings(code, tmp_path, env={"ADDED": "yes"}), is_shown=False)
    assert outcome.output_tail.split() == [str(tmp_path.resolve()), "yes", "True"]
    assert outcome.exit_code == 0
    assert not outcome.timed_out
    assert "ADDED" not in os.environ


def test_a_list_of_words_needs_no_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of containers have none at times."""
    monkeypatch.setattr(guard, "_SHELL", str(tmp_path / "sh"))
    outcome = run_command(settings("print('hello')", tmp_path), is_shown=False)
    assert (outcome.exit_code, outcome.output_tail) == (0, "hello\n")


def test_seconds_are_those_of_the_command(tmp_path: Path) -> None:
    outcome = run_command(settings("import time; time.sleep(0.3)", tmp_path), is_shown=False)
    assert 0.3 <= outcome.seconds < 10


def test_output_is_shown_only_where_asked(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    quiet = run_command(settings("print('hello')", tmp_path), is_shown=False)
    assert capfdbinary.readouterr().err == b""
    assert quiet.output_tail == "hello\n"


def test_the_end_of_much_output_is_kept(tmp_path: Path) -> None:
    outcome = run_command(settings("print('a' * 100_000); print('end')", tmp_path), is_shown=False)
    assert outcome.output_tail.endswith("a\nend\n")
    assert len(outcome.output_tail) < 10_000


@pytest.mark.linux
def test_a_command_runs_on_the_cores_that_it_is_given(tmp_path: Path) -> None:
    ours = os.sched_getaffinity(0)
    core = min(ours)
    code = "import os; print(*os.sched_getaffinity(0))"
    outcome = run_command(settings(code, tmp_path, cores=frozenset({core})), is_shown=False)
    assert outcome.output_tail.split() == [str(core)]
    assert os.sched_getaffinity(0) == ours
    free = run_command(settings(code, tmp_path), is_shown=False)
    assert {int(word) for word in free.output_tail.split()} == ours


@pytest.mark.linux
@pytest.mark.parametrize("cores", [frozenset(), frozenset({100_000}), frozenset({-1})])
def test_cores_that_are_not_there_are_a_mistake(tmp_path: Path, cores: frozenset[int]) -> None:
    ours = os.sched_getaffinity(0)
    with pytest.raises(UsageError, match="no command can run on the cores"):
        run_command(settings("", tmp_path, cores=cores), is_shown=False)
    assert os.sched_getaffinity(0) == ours


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(4)", "ended with exit code 4"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
    ],
)
def test_how_a_command_ended(tmp_path: Path, code: str, words: str) -> None:
    assert ending_of(run_command(settings(code, tmp_path), is_shown=False)) == words


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    outcome = run_command(CommandSettings(("no-such-program",), tmp_path), is_shown=False)
    assert outcome.exit_code is None
    assert ending_of(outcome) == "could not be started: No such file or directory"


@pytest.mark.parametrize(("name", "why"), [("no", "No such file"), ("file", "Not a directory")])
def test_a_folder_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    outcome = run_command(CommandSettings("true", tmp_path / name))
    assert ending_of(outcome).startswith(f"could not be started: its folder '{name}': ")
    assert why in ending_of(outcome)


def test_a_command_that_the_locale_cannot_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = UnicodeEncodeError("ascii", "echo \xe9", 5, 6, "ordinal not in range(128)")
    monkeypatch.setattr(running, "_begin", Mock(side_effect=error))
    outcome = run_command(CommandSettings("echo \xe9", tmp_path))
    assert ending_of(outcome) == "could not be started: the locale's ascii has no '\\xe9'"


def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    # A shell is there at once, also where Python takes longer than the limit to start.
    command = CommandSettings("sleep 60 & echo $!; wait", tmp_path, timeout_seconds=1)
    started = time.monotonic()
    outcome = run_command(command, is_shown=False)
    assert time.monotonic() - started < 30
    assert outcome.timed_out
    assert outcome.exit_code is None
    assert ending_of(outcome) == "ran out of time after 1 s"
    _wait_for_end(int(outcome.output_tail))


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 20
    while _is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Begins a process that ignores SIGTERM, says its number, and waits; the first one ends at once.
_DEAF_CHILD = (
    "import subprocess, sys, time;"
    " child = subprocess.Popen([sys.executable, '-c', 'import signal, time;"
    " signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)'],"
    " stdout=subprocess.PIPE); child.stdout.readline(); print(child.pid, flush=True);"
    " time.sleep(60)"
)


def test_a_child_that_ignores_the_end_of_its_parent_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program behind a shell does, of which the shell alone obeys."""
    monkeypatch.setattr("ciwrap.project.run_command._GRACE_SECONDS", 0.3)
    outcome = run_command(settings(_DEAF_CHILD, tmp_path, timeout_seconds=5), is_shown=False)
    assert outcome.timed_out
    _wait_for_end(int(outcome.output_tail))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_does_not_outlive_us(tmp_path: Path, number: signal.Signals) -> None:
    """Also where somebody asks a second time, while the first is still waited for."""
    ours = subprocess.Popen(
        [sys.executable, "-c", _RUN_DEAF_CHILD.format(folder=str(tmp_path), code=_DEAF_CHILD)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ours.stderr is not None
    child = int(ours.stderr.readline())
    ours.send_signal(number)
    time.sleep(0.5)
    ours.send_signal(number)
    assert ours.communicate(timeout=30)[0] == "interrupted\n"
    _wait_for_end(child)


_RUN_DEAF_CHILD = """
import sys
from pathlib import Path
from ciwrap.project.settings import CommandSettings
from ciwrap.project.run_command import run_command
try:
    run_command(CommandSettings((sys.executable, "-c", {code!r}), Path({folder!r})))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_time_that_is_up_is_told_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither rounded to no time at all, nor with the time that ending it took."""
    ends: list[float] = []

    def end(process: subprocess.Popen[bytes]) -> None:
        ends.append(time.perf_counter())
        process.kill()
        process.wait()

    monkeypatch.setattr("ciwrap.project.run_command._end", end)
    started = time.perf_counter()
    outcome = run_command(settings("import time; time.sleep(60)", tmp_path, timeout_seconds=0.1))
    assert outcome.seconds <= ends[0] - started
    assert ending_of(replace(outcome, seconds=0.41)) == "ran out of time after 0.41 s"
    assert ending_of(replace(outcome, seconds=61.3)) == "ran out of time after 61 s"


class _FullDisk(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_command_may_go_on_where_its_output_can_no_longer_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pipe was closed, so that it failed in a way of its own."""
    log = io.TextIOWrapper(io.BufferedWriter(_FullDisk(), 1))
    monkeypatch.setattr(sys, "stderr", log)
    code = "for _ in range(300): print('a' * 1000)\nopen('done', 'w').close()"
    with pytest.raises(OSError, match="No space left"):
        run_command(settings(code, tmp_path))
    assert (tmp_path / "done").exists()


_RUN_SLOW = """
import sys
from pathlib import Path
from ciwrap.project.settings import CommandSettings
from ciwrap.project.run_command import Guard
from ciwrap.project.run_command import run_command
plain = Guard.watch
def watch(self, group):
    plain(self, group)
    Path({folder!r}, "watched").touch()
Guard.watch = watch
run_command(CommandSettings("sleep 300 & echo $$ $! > pids; wait", Path({folder!r})))
"""


def test_a_command_ends_with_what_was_killed(tmp_path: Path) -> None:
    """Nothing can catch SIGKILL; what went on wrote over the outputs of the next call."""
    code = _RUN_SLOW.format(folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code])
    pids = tmp_path / "pids"
    deadline = time.monotonic() + 60
    while not (
        pids.exists() and len(pids.read_text().split()) == 2 and (tmp_path / "watched").exists()
    ):
        assert time.monotonic() < deadline
    process.kill()
    process.wait()
    for pid in pids.read_text().split():
        _wait_for_end(int(pid))


def test_what_a_command_leaves_running_is_left_alone(tmp_path: Path) -> None:
    """A server that a command starts outlives it, as before."""
    outcome = run_command(
        CommandSettings("sleep 300 > nothing 2>&1 & echo $!", tmp_path), is_shown=False
    )
    pid = int(outcome.output_tail)
    assert _is_alive(pid)
    os.kill(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("late", ["Popen", "CommandOutput"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_starts_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, late: str
) -> None:
    """On a busy machine a command may run for long before its start is over for us."""
    module = subprocess if late == "Popen" else running
    begin, begun = getattr(module, late), []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        begun.append(begin(*arguments, **options))
        os.kill(os.getpid(), number)
        return begun[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module, late, interrupted)
        pids = tmp_path / "pid"
        with pytest.raises(KeyboardInterrupt):
            run_command(CommandSettings(f"echo $$ > {pids}; sleep 60; true", tmp_path))
    if late == "Popen":
        assert [one.returncode is None for one in begun] == [False, False]  # its guard, and it
    if pids.exists() and pids.read_text().strip():
        assert not _is_alive(int(pids.read_text()))


def test_a_time_limit_does_not_blur_run_times(tmp_path: Path) -> None:
    """Python's own wait with a limit would look 0.16 s after the start, and then every 50 ms."""
    settings = CommandSettings("sleep 0.12", tmp_path, timeout_seconds=60)
    for stop in (None, threading.Event()):
        limited, unlimited = [], []
        for _ in range(5):
            limited.append(run_command(settings, stop=stop).seconds)
            started = time.monotonic()
            subprocess.run(["sleep", "0.12"], check=True)
            unlimited.append(time.monotonic() - started)
        assert min(limited) < min(unlimited) + 0.03


@pytest.mark.linux
def test_a_kernel_that_cannot_tell_of_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> int:
        raise OSError("not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    settings = CommandSettings("sleep 0.1", tmp_path, timeout_seconds=60)
    assert run_command(settings).exit_code == 0
    outcome = run_command(replace(settings, timeout_seconds=0.05))
    assert (outcome.exit_code, outcome.timed_out) == (None, True)


@pytest.mark.parametrize(("count", "half"), [(2, 1), (3, 1), (5, 2), (8, 4)])
def test_halves_of_cores_are_apart_and_equally_large(count: int, half: int) -> None:
    first, second = halves_of_cores(range(count))
    assert len(first) == len(second) == half
    assert not first & second
    assert first | second <= set(range(count))


def test_threads_of_one_core_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on many machines: of four cores with two threads each, 0 and 4 are one."""
    for cpu in range(8):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "core_id").write_text(f"{cpu % 4}\n")
    monkeypatch.setattr("ciwrap.project.run_command._TOPOLOGY", tmp_path)
    assert halves_of_cores(range(8)) == ({0, 4, 1, 5}, {2, 6, 3, 7})


def test_one_core_has_no_halves() -> None:
    with pytest.raises(UsageError, match="there is only one core"):
        halves_of_cores([3])


_STALLED = """
import sys
from pathlib import Path
from ciwrap.project.settings import CommandSettings
from ciwrap.project.run_command import run_command
print(run_command(CommandSettings((sys.executable, "-c", {code!r}), Path({folder!r}))).exit_code)
"""


@pytest.mark.parametrize(
    "more", ["", "import subprocess; subprocess.Popen('timeout 30 yes', shell=True)"]
)
def test_a_reader_that_stalls_gets_all_in_the_end(tmp_path: Path, more: str) -> None:
    """It got what there was after 2 s, and Python aborted in the end, since a thread was writing.

    Also where a process is left behind that prints for ever.
    """
    code = f"print('a' * 150_000 + 'end', flush=True)\n{more}"
    ours = subprocess.Popen(
        [sys.executable, "-c", _STALLED.format(folder=str(tmp_path), code=code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(4)
    said, shown = ours.communicate(timeout=60)
    assert (ours.returncode, said) == (0, b"0\n")
    assert shown.startswith(b"a" * 150_000 + b"end\n")
    assert set(shown[150_004:].split()) <= {b"y"}
