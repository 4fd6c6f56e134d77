"""The commands on good input, as people and scripts use them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from e2e.cli_project import BASE, Project, command, environment, validator


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "p")


def git(project: Project, *arguments: str, env: dict[str, str] | None = None) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=project.folder,
        env=env or environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


# --- check
# ------------------------------------------------------------------------------------------


def test_check_match_then_differ(project: Project) -> None:
    project.accept()
    outcome = project.run("check")
    assert outcome.code == 0
    assert outcome.out.startswith("match  all 2 variables")
    assert outcome.err == ""
    moved = BASE.copy()
    moved[3, 7] += 1e-3
    project.save("temperature", moved)
    outcome = project.run("check")
    assert outcome.code == 1
    assert "1 of 600 elements differ beyond atol=1e-6 rtol=0" in outcome.out
    assert "first at [3, 7]" in outcome.out
    assert "ciwrap accept mesh --reason" in outcome.out
    variable = outcome.variable("temperature")
    assert variable["verdict"] == "differ"
    assert variable["first_index"] == [3, 7]
    assert variable["max_abs_difference"] == pytest.approx(1e-3)
    assert outcome.document["environment"]["cpu"]
    assert outcome.document["checks"][0]["backend"] in ("serial", "openmp")
    assert outcome.document["checks"][0]["golden_path"] == "golden/mesh.golden"
    assert variable["source_path"] == "out/temperature.npy"


def test_check_works_on_a_read_only_project(project: Project) -> None:
    """Nothing but the JSON result is written, so a checkout may be read-only."""
    project.accept()
    before = project.snapshot()
    stamps = {path: path.stat().st_mtime_ns for path in project.folder.rglob("*")}
    assert project.run("check", "-v").code == 0
    assert project.snapshot() == before
    assert {path: path.stat().st_mtime_ns for path in project.folder.rglob("*")} == stamps


def test_json_on_stdout_is_json_alone(project: Project) -> None:
    project.accept()
    outcome = project.run("check", "--json", "-", json_too=False)
    document = json.loads(outcome.out)
    validator().validate(document)
    assert document["verdict"] == "match"
    assert outcome.err.startswith("match")


def test_several_checks_and_an_orphan(project: Project) -> None:
    (project.folder / "ciwrap.yaml").write_text(
        "checks:\n  a: {outputs: out/ids.npy}\n  b: {outputs: out/temperature.npy}\n"
    )
    project.accept()
    assert project.run("check", "a").code == 0
    project.save("ids", np.arange(1, 101, dtype=np.int32))
    assert project.run("check", "--check", "b").code == 0
    outcome = project.run("check")
    assert outcome.code == 1
    assert [check["verdict"] for check in outcome.document["checks"]] == ["differ", "match"]
    (project.folder / "out" / "temperature.npy").unlink()
    # What could not be compared weighs more than what differs.
    assert project.run("check").code == 3
    (project.folder / "ciwrap.yaml").write_text("checks:\n  a: {outputs: out/ids.npy}\n")
    outcome = project.run("check")
    assert "the golden of 'b' belongs to no check" in outcome.out


def test_history_by_iteration_and_rank(project: Project) -> None:
    for iteration in (10, 20, 30):
        for rank in (0, 1):
            folder = project.folder / "out" / f"iter_{iteration:04d}" / f"rank_{rank}"
            folder.mkdir(parents=True)
            np.save(folder / "x.npy", BASE + iteration)
    project.accept()
    for iteration in (20, 30):
        path = project.folder / f"out/iter_{iteration:04d}/rank_1/x.npy"
        np.save(path, np.load(path) + 1)
    outcome = project.run("check")
    assert outcome.code == 1
    assert "first divergence: iter 20 / rank 1 / x" in outcome.out
    found = {
        (v["iteration"], v["rank"]): v["verdict"]
        for v in outcome.document["checks"][0]["variables"]
        if v["name"] == "x"
    }
    assert [key for key, verdict in found.items() if verdict == "differ"] == [(20, 1), (30, 1)]


def test_masks_ignored_and_relaxed_variables(project: Project) -> None:
    mask = np.zeros(BASE.shape, bool)
    mask[0] = True
    project.save("land", mask)
    project.configure(
        "    ignore: [wall*]\n    strict: {variables: false}\n"
        "    variables: {temperature: {mask: land}}\n"
    )
    project.save("wall_time", np.float64(1.0))
    project.accept()
    moved = BASE.copy()
    moved[0] = 1e9
    project.save("temperature", moved)
    project.save("wall_time", np.float64(2.0))
    project.save("extra", np.zeros(2))
    outcome = project.run("check")
    assert outcome.code == 0, outcome
    assert "not in the golden" in outcome.out
    assert outcome.document["checks"][0]["ignored_variables"] == [{"name": "wall_time"}]
    (project.folder / "out" / "land.npy").unlink()
    outcome = project.run("check")
    assert outcome.code == 3
    assert "mask 'land' is not among the outputs" in outcome.out


def test_a_misspelt_pattern_is_told_of(project: Project) -> None:
    project.accept()
    project.configure("    variables: {temprature: {atol: 1e-3}}\n")
    outcome = project.run("check")
    assert outcome.code == 0
    assert "'temprature'" in outcome.out


# --- run
# --------------------------------------------------------------------------------------------


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


def test_outputs_left_from_an_earlier_run_are_no_evidence(project: Project) -> None:
    project.accept()
    with_command(project, WRITE)
    outcome = project.run("run")
    assert outcome.code == 3
    assert "out/ids.npy: was not written by this run" in outcome.out
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


def test_ctrl_c_ends_the_command_and_its_children(project: Project) -> None:
    project.accept()
    with_command(
        project,
        "import os, time; open('pid', 'w').write(str(os.getpid())); print(flush=True);"
        " time.sleep(60)",
    )
    process = subprocess.Popen(
        command("run"),
        cwd=project.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid_file = project.folder / "pid"
    deadline = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    # The signal has been sent; dying, and being buried by init, takes the machine its time.
    while has_not_ended(int(pid_file.read_text())):
        assert time.monotonic() < deadline, "the command's child is still running"
        time.sleep(0.01)


def has_not_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


# --- compare
# ----------------------------------------------------------------------------------------


def test_compare_two_files(project: Project) -> None:
    a = project.save("a", BASE)
    b = project.save("b", BASE + 1e-9)
    assert project.run("compare", str(a), str(a)).code == 0
    assert project.run("compare", str(a), str(b)).code == 1
    assert project.run("compare", str(a), str(b), "--atol", "1e-8").code == 0
    outcome = project.run("compare", str(a), str(b), "--rtol", "1e-12")
    assert outcome.code == 1
    expected = np.count_nonzero(abs(np.load(b) - BASE) > 1e-12 * abs(BASE))
    assert outcome.variable("a")["differing_count"] == expected


def test_compare_two_folders(project: Project, tmp_path: Path) -> None:
    sides = []
    for name in ("one", "two"):
        folder = tmp_path / name / "iter_0001" / "rank_0"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", BASE)
        np.save(folder / "y.npy", BASE)
        sides.append(tmp_path / name)
    one, two = map(str, sides)
    assert project.run("compare", one, two).code == 0
    np.save(sides[1] / "iter_0001/rank_0/x.npy", BASE + 1)
    outcome = project.run("compare", one, two)
    assert outcome.code == 1
    assert outcome.variable("x")["iteration"] == 1
    (sides[1] / "iter_0001/rank_0/y.npy").unlink()
    outcome = project.run("compare", one, two)
    assert outcome.code == 3
    assert "is on the first side only" in outcome.out
    assert project.run("compare", one, two, "--ignore", "y", "--atol", "2").code == 0
    (sides[0] / "run.log").write_text("x")
    assert project.run("compare", one, two, "--ignore", "y", "--atol", "2").code == 3
    code = project.run(
        "compare", one, two, "--ignore", "y", "--atol", "2", "--exclude", "*.log"
    ).code
    assert code == 0


def test_compare_by_the_bounds_of_a_check(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    np.save(other / "temperature.npy", BASE + 5e-7)
    np.save(other / "ids.npy", np.arange(100, dtype=np.int32))
    assert project.run("compare", "out", str(other)).code == 1
    assert project.run("compare", "out", str(other), "--check", "mesh").code == 0
    assert project.run("compare", "out", str(other), "--check", "mesh", "--atol", "1e-9").code == 1


# --- show, doctor, init
# ----------------------------------------------------------------------------


def test_show_is_stable_and_readable(project: Project) -> None:
    project.accept()
    first = project.run("show", "golden/mesh.golden")
    assert first.code == 0
    assert "variable temperature" in first.out
    assert f"[3, 4]  {BASE[3, 4]}" in first.out
    assert project.run("show", "mesh").out == first.out
    assert project.run("show", "golden/mesh.golden.yaml").out == first.out
    copy = project.folder.parent / "blob_x1y2"
    copy.write_bytes(project.golden.read_bytes())
    assert project.run("show", str(copy)).out == first.out
    assert first.document["variables"][1]["atol"] == 1e-6


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_show_any_evidence(project: Project, evidence: str) -> None:
    project.configure(bound=f"atol: 1e-6, evidence: {evidence}")
    project.save("large", np.random.default_rng(1).normal(size=(300, 1000)).astype("f4"))
    project.save("text", np.array(["a", "bc\x1b[2J"]))
    project.save("half", np.array([1.5], "f2"))
    project.accept()
    outcome = project.run("show", "mesh")
    assert outcome.code == 0
    assert f"evidence {evidence}" in outcome.out
    assert all(line.isprintable() for line in outcome.out.splitlines())
    assert len(outcome.out.splitlines()) < 1200


def test_show_of_what_is_no_golden(project: Project) -> None:
    for name in ("ciwrap.yaml", "nowhere.golden", "nothing"):
        outcome = project.run("show", name)
        assert outcome.code == 3
        assert len(outcome.error_lines) == 1


def test_git_diff_of_a_golden_is_readable(project: Project, tmp_path: Path) -> None:
    git(project, "init", "-q")
    (project.folder / "ciwrap.yaml").unlink()
    script = tmp_path / "bin" / "ciwrap"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ciwrap "$@"\n')
    script.chmod(0o755)
    outcome = project.run("init", "--git")
    assert outcome.code == 0, outcome
    project.accept()
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first golden")
    moved = BASE.copy()
    moved[3, 7] = 42.5
    project.save("temperature", moved)
    project.accept("--reason", "the answer, nearly")
    env = environment(PATH=f"{script.parent}:{os.environ['PATH']}")
    diff = git(project, "diff", "golden/out.golden", env=env)
    changed = [
        line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert any("42.5" in line and line.startswith("+") for line in changed), diff
    assert any(str(BASE[3, 7]) in line and line.startswith("-") for line in changed)
    assert len(changed) <= 8, changed
    manifest = git(project, "diff", "golden/out.golden.yaml")
    assert '+  why: "the answer, nearly"' in manifest
    assert "*.golden.next" in (project.folder / ".gitignore").read_text().splitlines()


def test_doctor(project: Project) -> None:
    outcome = project.run("doctor")
    assert outcome.code == 0, outcome
    document = outcome.document
    assert {backend["name"] for backend in document["backends"]} >= {"serial", "openmp"}
    assert {engine["name"] for engine in document["io_engines"]} == {"io_uring", "pread"}
    assert sum(level["active"] for level in document["cpu_levels"]) == 1
    assert document["config"]["checks"] == [{"name": "mesh", "has_golden": False}]
    assert "kokkos" in outcome.out
    assert "no golden yet for mesh" in outcome.out
    project.configure(bound="atol: -1")
    outcome = project.run("doctor")
    assert outcome.code == 0
    assert "ciwrap.yaml:2" in outcome.out


def test_init_writes_a_configuration_that_works(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "notes.txt").write_text("not an output")
    (project.folder / "out" / "run.log").write_text("nor this")
    outcome = project.run("init")
    assert outcome.code == 0, outcome
    assert "check out: 2 files, 2 variables" in outcome.out
    text = (project.folder / "ciwrap.yaml").read_text()
    assert "temperature: {atol: 1e-6}  # <f8, 20x30" in text
    project.accept()
    assert project.run("check").code == 0
    again = project.run("init")
    assert again.code == 2
    assert (project.folder / "ciwrap.yaml").read_text() == text


def test_init_of_named_outputs_and_of_nothing(project: Project) -> None:
    (project.folder / "ciwrap.yaml").unlink()
    (project.folder / "table.csv").write_text("t,x\n0,1.5\n1,2.5\n")
    outcome = project.run("init", "table.csv", "--dry-run")
    assert outcome.code == 0
    assert "table.csv" in outcome.out
    assert not (project.folder / "ciwrap.yaml").exists()
    for path in [project.folder / "table.csv", *(project.folder / "out").iterdir()]:
        path.unlink()
    outcome = project.run("init")
    assert outcome.code == 3
    assert "run the program first" in outcome.err


# --- the frame
# ---------------------------------------------------------------------------------------


def test_help_and_version_are_quick_to_load() -> None:
    code = (
        "import sys; from ciwrap.cli.main import run; code = run(['--help']);"
        "heavy = {'numpy', 'pydantic', 'yaml', 'ciwrap._core'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("init", "run", "check", "compare", "accept", "show", "doctor", "demo"):
        assert f"  {name} " in done.stdout


def test_a_reader_of_our_output_may_leave(project: Project) -> None:
    project.accept()
    project.save("temperature", BASE + 1)
    done = subprocess.run(
        ["bash", "-c", '"$@" check -v | true; echo ${PIPESTATUS[0]}', "-", *command()],
        cwd=project.folder,
        env=environment(PYTHONUNBUFFERED="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
    assert done.stderr == ""


def test_colour_on_a_terminal_only(project: Project) -> None:
    project.accept()
    assert "\x1b" not in project.run("check").out
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command("check"),
        cwd=project.folder,
        env=environment(TERM="xterm-256color"),
        stdout=follower,
        stderr=follower,
        stdin=follower,
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    assert process.wait() == 0
    assert b"\x1b[" in seen
    assert b"match" in seen


def test_a_plain_locale(project: Project) -> None:
    project.save("größe", BASE)
    project.accept()
    project.save("größe", BASE + 1)
    outcome = project.run("check", "-v", PYTHONIOENCODING="ascii")
    assert outcome.code == 1, outcome
    assert "gr\\xf6\\xdfe" in outcome.out


def test_hostile_names_do_not_reach_the_terminal(project: Project) -> None:
    name = "x\x1b[2J\u202e"
    np.save(project.folder / "out" / f"{name}.npy", BASE)
    outcome = project.run("accept")
    assert outcome.code in (2, 3)
    assert "\x1b" not in outcome.out + outcome.err
    assert len(outcome.error_lines) == 1


def test_a_fault_of_our_own_is_no_verdict() -> None:
    code = (
        "import ciwrap.cli.main as m, sys\n"
        "def broken(*a, **k): raise ZeroDivisionError('oh')\n"
        "m.group.main = broken\n"
        "sys.exit(m.run(['check']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    assert "internal error" in done.stderr
    assert "ZeroDivisionError" in done.stderr


# --- large files
# -------------------------------------------------------------------------------------


def sparse_npy(path: Path, byte_count: int) -> None:
    """A .npy file of zeros that takes no room on the disk."""
    with path.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": (byte_count // 8,)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + byte_count)


PEAK = (
    "import resource, subprocess, sys\n"
    "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
    "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(project: Project) -> None:
    big, other = project.folder / "out" / "big.npy", project.folder / "other.npy"
    for path in (big, other):
        sparse_npy(path, 1 << 30)
    with other.open("r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        stream.write(np.float64(1).tobytes())
    calls = (
        (("accept",), 0),
        (("check",), 0),
        (("compare", "out/big.npy", "other.npy", "--atol", "1e-3"), 1),
    )
    for arguments, expected in calls:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *command(*arguments)],
            cwd=project.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        code, peak_mib = map(int, done.stdout.split())
        assert code == expected, done.stderr
        assert peak_mib < 400, (arguments, peak_mib)
