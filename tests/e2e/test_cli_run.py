"""`ciwrap run`: the configured commands, and what they leave."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from e2e.cli_project import Project

WRITE = "import numpy as np; np.save('out/temperature.npy', np.load('out/temperature.npy'))"
WRITE_ALL = WRITE + "; np.save('out/ids.npy', np.load('out/ids.npy'))"


def with_command(project: Project, code: str, more: str = "") -> None:
    words = json.dumps([sys.executable, "-c", code])
    text = (project.folder / "ciwrap.yaml").read_text()
    (project.folder / "ciwrap.yaml").write_text(text + f"run:\n  command: {words}\n{more}")


def test_run_then_check(project: Project) -> None:
    project.accept()
    with_command(project, WRITE_ALL + "; print('hello from the program')")
    outcome = project.run("run")
    assert outcome.code == 0, outcome
    assert "hello from the program" in outcome.err
    assert "hello" not in outcome.out
    assert outcome.document["command"]["exit_code"] == 0
    assert "hello" in outcome.document["command"]["output_tail"]


CHANGES_GOLDENS = {
    "accepts": "import subprocess, sys; subprocess.run([sys.executable, '-m', 'ciwrap', 'accept',"
    " '--force', '--reason', 'x'], check=True, cwd='.')",
    "copies": "import shutil; shutil.copytree('other', 'golden', dirs_exist_ok=True)",
    "deletes": "import shutil; shutil.rmtree('golden')",
}


@pytest.mark.parametrize("how", CHANGES_GOLDENS)
def test_a_golden_that_the_command_changes_is_compared_with_nothing(
    project: Project, how: str
) -> None:
    project.accept()
    shutil.copytree(project.folder / "golden", project.folder / "other")
    for path in (project.folder / "other").glob("*.yaml"):
        path.write_text(path.read_text() + "# another one\n")
    move = "np.save('out/temperature.npy', np.load('out/temperature.npy') + 1)"
    with_command(project, f"{WRITE_ALL}; {move}; {CHANGES_GOLDENS[how]}")
    outcome = project.run("run")
    assert outcome.code == 3
    assert "its golden changed while the command ran, so nothing was compared" in outcome.out
    assert all(not one["variables"] for one in outcome.document["checks"])


def test_a_golden_of_tests_that_the_command_replaces_fails_the_run(project: Project) -> None:
    """Tests that are compared with what the command has just written prove nothing either."""
    project.accept()
    shared = project.folder / "golden/tests/test_it.goldens"
    text = "{WRITE_ALL}; from pathlib import Path; p = Path('golden/tests/test_it.goldens');"
    text += " p.parent.mkdir(exist_ok=True); p.write_text(str(len(list(p.parent.iterdir()))))"
    with_command(project, text.replace("{WRITE_ALL}", WRITE_ALL))
    assert project.run("run").code == 0  # a first one takes no other one's place
    outcome = project.run("run")
    assert shared.read_text() == "1"
    assert outcome.code == 3
    (failed,) = [one for one in outcome.document["checks"] if one["verdict"] == "not_comparable"]
    assert failed["name"] == "golden/tests/test_it.goldens"
    assert "changed while the command ran" in failed["messages"][0]["text"]
    assert project.run("run").code == 0  # nothing changes any more


@pytest.mark.parametrize("name", ["CI", "GITHUB_ACTIONS"])
def test_in_ci_accepting_wants_a_word_of_its_own(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "true")
    outcome = project.run("accept")
    assert outcome.code == 2
    assert "accepting is refused in CI" in outcome.err
    assert not (project.folder / "golden").exists()
    assert project.run("accept", "--dry-run").code == 0
    assert project.run("accept", "--in-ci").code == 0
    assert (project.folder / "golden").exists()


def test_outputs_left_from_an_earlier_run_are_no_evidence(project: Project) -> None:
    project.accept()
    with_command(project, WRITE)
    outcome = project.run("run")
    assert outcome.code == 3
    assert "out/ids.npy: was not written by this run" in outcome.out
    assert "remove it, or leave it out with 'exclude'" in outcome.out
    assert "temperature" not in outcome.out


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; print('oops'); sys.exit(7)", ("exit code 7", "oops")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ("signal 11",)),
    ],
)
def test_a_failing_command_is_not_compared(
    project: Project, code: str, words: tuple[str, ...]
) -> None:
    project.accept()
    with_command(project, code)
    outcome = project.run("run")
    assert outcome.code == 3
    assert all(word in outcome.out for word in words), outcome.out
    assert outcome.document["checks"][0]["variables"] == []


def test_what_the_command_writes_into_no_check_is_counted(project: Project) -> None:
    """A main log beside the outputs; what was there before, and what is left out, is not."""
    text = (project.folder / "ciwrap.yaml").read_text()
    outputs = "outputs: out/*.npy\n    exclude: [out/a.tmp]"
    (project.folder / "ciwrap.yaml").write_text(text.replace("outputs: out", outputs))
    project.accept()
    (project.folder / "out/notes.txt").write_text("by hand\n")
    names = "('main.log', 'b.log', 'a.tmp', '.hidden')"
    with_command(project, f"{WRITE_ALL}; [open(f'out/{{n}}', 'w').write(n) for n in {names}]")
    outcome = project.run("run")
    assert outcome.code == 0, outcome
    words = "not compared: 2 files that the command wrote are in no check (out/b.log, out/main.log)"
    assert words in outcome.out
    assert [one["text"] for one in outcome.document["messages"]] == [words]


def test_a_command_that_takes_too_long(project: Project) -> None:
    project.accept()
    with_command(
        project,
        "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)",
        "  timeout_seconds: 1\n",
    )
    started = time.monotonic()
    outcome = project.run("run")
    assert time.monotonic() - started < 30
    assert outcome.code == 3
    assert "ran out of time" in outcome.out
    assert outcome.document["command"]["timed_out"] is True


def test_a_command_that_does_not_exist(project: Project) -> None:
    project.accept()
    text = (project.folder / "ciwrap.yaml").read_text()
    (project.folder / "ciwrap.yaml").write_text(text + "run:\n  command: [no-such-program]\n")
    outcome = project.run("run")
    assert outcome.code == 3
    assert "could not be started" in outcome.out


def test_commands_of_single_checks(project: Project) -> None:
    (project.folder / "ciwrap.yaml").write_text(
        "checks:\n"
        f"  a: {{outputs: out/ids.npy, run: [{sys.executable!r}, '-c', 'raise SystemExit(3)']}}\n"
        "  b: {outputs: out/temperature.npy}\n"
    )
    project.accept()
    outcome = project.run("run")
    assert outcome.code == 3
    verdicts = {check["name"]: check["verdict"] for check in outcome.document["checks"]}
    assert verdicts == {"a": "not_comparable", "b": "match"}
    assert outcome.document["checks"][0]["command"]["exit_code"] == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_its_children(
    project: Project, number: signal.Signals
) -> None:
    project.accept()
    with_command(
        project,
        "import os, time; open('pid', 'w').write(str(os.getpid())); print(flush=True);"
        " time.sleep(60)",
    )
    process = project.begin("run")
    pid_file = project.folder / "pid"
    deadline = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    # The signal has been sent; dying, and being buried by init, takes the machine its time.
    deadline = time.monotonic() + 30
    while has_not_ended(int(pid_file.read_text())):
        assert time.monotonic() < deadline, "the command's child is still running"
        time.sleep(0.01)


def has_not_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
