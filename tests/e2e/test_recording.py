"""Runs that were recorded inside the program: compared, shown, killed, and recorded again."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded_runs import LIBRARY, captured, need_library, python, recording, roots

from ciwrap.base.errors import ExitCode
from ciwrap.cli.main import run as run_cli
from ciwrap.project.outputs import journal_paths
from ciwrap.recording.journal import JournalReader

PROGRAM = """
import os, sys, numpy as np, ciwrap
step, place, by = [*sys.argv[1:], -1, 0, 0.0][:3]
step, place, by = int(step), int(place), float(by)
rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("RANKS", 1))
x = np.random.default_rng(3).normal(size=4000)
with ciwrap.Recorder("walk", rank=rank, ranks=ranks) as r:
    for n in range(12):
        x = x + 0.001 * n
        if n == step:
            x[place] += by
        r.record(n, "half", x=x)
        r.record(n, x=x, count=np.arange(10) * n, t=0.5 * n)
    sys.exit(r.errors)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("walk.py").write_text(PROGRAM)
    return [sys.executable, "walk.py"]


def ciwrap(*words: str) -> tuple[int, str]:
    """The exit code, and all that was printed."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(sys.__stderr__ or told):
        code = run_cli(words)
    return code, told.getvalue()


def record(output: str, *words: str, **options: str) -> int:
    given = [text for name, value in options.items() for text in (f"--{name}", value)]
    code, _ = ciwrap("record", "-o", output, *given, "--", *words)
    return code


def test_equal_runs_match(program: list[str]) -> None:
    assert record("a", *program) == 0
    assert record("b", *program) == 0
    assert roots(Path("a")) == roots(Path("b"))
    assert len(roots(Path("a"))) == 12 * 4
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.MATCH, text
    code, text = ciwrap("show", "a")
    assert code == 0
    assert "variable x@half" in text


def test_a_run_keeps_a_snapshot_and_no_secret(
    program: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WALK_API_TOKEN", "tk-4711-secret")
    assert record("a", *program) == 0
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    words = ["env", "X=tk-4711-secret", *program, "-1", "0", "0.0", "--password", "hunter2hunter2"]
    assert record("b", *words) == 0
    # The value of an option in a script, in quotes of its own.
    script = "true --token 'abc def ghi'; OMP_NUM_THREADS=3 exec " + " ".join(program)
    assert record("c", "sh", "-c", script) == 0
    assert b"abc def ghi" not in Path("c/run.json").read_bytes()
    held = b"".join(path.read_bytes() for path in Path().rglob("*") if path.is_file())
    assert b"OMP_NUM_THREADS" in held
    for secret in (b"tk-4711-secret", b"hunter2hunter2"):
        assert secret not in held
    code, text = ciwrap("snapshot", "show", "b")
    assert code == 0
    assert "OMP_NUM_THREADS" in text
    code, text = ciwrap("snapshot", "diff", "a", "b")
    assert code == ExitCode.DIFFER
    assert "OMP_NUM_THREADS" in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("step", [0, 5, 11])
def test_a_defect_is_told_with_its_iteration(program: list[str], step: int) -> None:
    assert record("a", *program) == 0
    assert record("b", *program, str(step), "1234", "1e-12") == 0
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.DIFFER, text
    assert f"first difference: iter {step} / rank 0 / x" in text


def test_a_bound_lets_nothing_pass_that_is_beyond_it(program: list[str]) -> None:
    assert record("a", *program, atol="1e-6") == 0
    assert record("b", *program, "4", "17", "1e-3", atol="1e-6") == 0
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.DIFFER, text  # summaries of chunks prove it
    assert "atol=1e-6" in text
    assert record("c", *program, "4", "17", "1.5e-6", atol="1e-6") == 0
    code, text = ciwrap("compare", "a", "c")
    assert code == ExitCode.NOT_COMPARABLE, text  # without data nobody can tell how far
    assert "record the one with --residues, and the other with --against it" in " ".join(
        text.split()
    )


WITH_DATA = """
import sys, numpy as np, ciwrap
from pathlib import Path
with ciwrap.Recorder() as r:
    r.bound("x", atol=1e-3)
    x = np.random.default_rng(1).normal(size=5000)
    for n in range(4):
        x = x * 1.1
        r.record(n, x=x)
        folder = Path(sys.argv[1]) / f"iter_{n}" / "rank_0"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", x + float(sys.argv[2]))
"""


def test_residues_tell_noise_from_a_defect_where_one_side_has_data(program: list[str]) -> None:
    """Recorded with residues, a run is a golden for data anywhere; without, it leaves doubts."""
    del program
    Path("data.py").write_text(WITH_DATA)
    words = (sys.executable, "data.py")
    plain = ("record", "-o", "plain", "--", *words, "same", "0")
    assert ciwrap(*plain)[0] == 0
    fine = ("record", "--residues", "-o", "fine", "--", *words, "noisy", "0.0006")
    assert ciwrap(*fine)[0] == 0
    assert ciwrap("record", "-o", "c", "--", *words, "wrong", "0.0011")[0] == 0
    assert ciwrap("compare", "plain", "noisy")[0] == ExitCode.NOT_COMPARABLE
    for sides in (("fine", "noisy"), ("noisy", "fine")):
        code, text = ciwrap("compare", *sides)
        assert code == ExitCode.MATCH, text
        assert "at most 75 % of the bound used" in text
    assert ciwrap("compare", "fine", "wrong")[0] == ExitCode.DIFFER


def test_what_recording_took_is_told_at_the_end(program: list[str]) -> None:
    code, text = ciwrap("record", "--residues", "--atol", "0.001", "-o", "a", "--", *program)
    assert code == 0
    took = r"; that took up to \S+ m?s of a process's time \(751\.\d KiB hashed\)"
    assert re.search(took + r" and up to \d+\.\d KiB of its memory\n", text), text
    (path,) = journal_paths(Path("a"))
    reader = JournalReader(path)
    sizes = {
        (state.variable.name, one.point): sum(len(tree.body) for tree in state.trees.values())
        for one in reader.checkpoints()
        for state in one.states
    }
    (cost,) = reader.costs
    assert cost.data_bytes == 12 * (2 * 4000 + 10 + 1) * 8
    # The trees of a checkpoint, and of those before it that wait to be written.
    trees = sum(size for (_, point), size in sizes.items() if not point)
    assert trees > 2000
    assert trees <= cost.held_bytes <= 20 * trees
    # A restart has a cost of its own, and a run that is killed tells of none.
    assert ciwrap("record", "--again", "-o", "a", "--", *program)[0] == 0
    again = JournalReader(path)
    assert len([*again.checkpoints()]) == 48
    assert [one.data_bytes for one in again.costs] == [cost.data_bytes] * 2
    Path("dies.py").write_text(PROGRAM.replace("x[place] += by", "os.kill(os.getpid(), 9)"))
    code, text = ciwrap("record", "-o", "b", "--", program[0], "dies.py", "3", "0", "0")
    assert code == ExitCode.NOT_COMPARABLE
    assert "of its memory" not in text


RECORD_HEAD = struct.Struct("<IIQqIIQQ")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("place", ["magic", "length", "payload"])
def test_a_damaged_journal_is_not_cut_off_by_a_restart(
    program: list[str], place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert record("a", *program) == 0
    (path,) = journal_paths(Path("a"))
    whole = path.read_bytes()
    at = 64
    for _ in range(5):
        at += RECORD_HEAD.size + -(-RECORD_HEAD.unpack_from(whole, at)[2] // 8) * 8 + 16
    # A length beyond the end of the file is that of a record that is half written.
    byte = at + {"magic": 1, "length": 12, "payload": RECORD_HEAD.size + 3}[place]
    damaged = whole[:byte] + bytes([whole[byte] ^ 4]) + whole[byte + 1 :]
    path.write_bytes(damaged)
    code, _ = ciwrap("record", "--again", "-o", "a", "--", *program)
    assert code == ExitCode.NOT_COMPARABLE
    text = capfd.readouterr().err
    assert f"{path.name}: record 5 is damaged; it is left as it is" in text
    assert path.read_bytes() == damaged


def test_half_a_record_is_cut_off_by_a_restart(program: list[str]) -> None:
    assert record("a", *program) == 0
    (path,) = journal_paths(Path("a"))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    iterations = len([*JournalReader(path).checkpoints()])
    assert 0 < iterations < 24
    assert ciwrap("record", "--again", "-o", "a", "--", *program)[0] == 0
    assert len([*JournalReader(path).checkpoints()]) == iterations + 24


def test_bounds_come_from_the_configuration(program: list[str]) -> None:
    Path("ciwrap.yaml").write_text(
        "checks:\n  walk:\n    outputs: none/*.npy\n    atol: 0.25\n    variables:\n"
        "      'x*': {rtol: 0.5}\n      t: {atol: 1}\n"
    )
    assert record("a", *program, check="walk") == 0
    found = captured(Path("a"))
    bounds = {
        name: (one.plain.made_with.atol, one.plain.made_with.rtol)
        for name, one in found.items()
        if one.plain is not None and one.identity.iteration == 3
    }
    assert bounds == {
        "iter 3 / rank 0 / x": (0.0, 0.5),
        "iter 3 / rank 0 / x@half": (0.0, 0.5),
        "iter 3 / rank 0 / t": (1.0, 0.0),
        "iter 3 / rank 0 / count": (0.25, 0.0),
    }
    assert "check walk" in ciwrap("show", "a")[1]


def test_a_folder_that_holds_a_run_is_not_recorded_into(program: list[str]) -> None:
    assert record("a", *program) == 0
    assert record("a", *program) == ExitCode.USAGE


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", ["run.json", "bounds.txt", "snapshot.json"])
def test_files_of_somebody_else_are_left_as_they_are(
    program: list[str], tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "mine" / name
    mine.parent.mkdir()
    mine.write_text('{"steps": 10}\n')
    for more in ((), ("--replace",), ("--again",)):
        assert run_cli(["record", "-o", str(mine.parent), *more, "--", *program]) == ExitCode.USAGE
    assert mine.read_text() == '{"steps": 10}\n'
    assert [one.name for one in mine.parent.iterdir()] == [name]


def test_a_restart_that_repeats_iterations_is_kept_twice_where_it_differs(
    program: list[str],
) -> None:
    assert record("a", *program) == 0
    assert ciwrap("record", "-o", "a", "--again", "--", *program)[0] == 0
    assert len(captured(Path("a"))) == 12 * 4
    assert ciwrap("record", "-o", "a", "--again", "--", *program, "7", "3", "1.0")[0] == 0
    twice = [name for name in captured(Path("a")) if "attempt 3" in name]
    assert {name.split()[1] for name in twice} == {"7", "8", "9", "10", "11"}
    assert record("b", *program) == 0
    assert ciwrap("compare", "b", "a")[0] != ExitCode.MATCH


def test_a_program_that_records_nothing_or_fails_is_code_3(program: list[str]) -> None:
    assert record("a", "true") == ExitCode.NOT_COMPARABLE
    assert record("b", sys.executable, "-c", "import sys; sys.exit(4)") == ExitCode.NOT_COMPARABLE
    assert record("c", *program, "not a number") == ExitCode.NOT_COMPARABLE


def test_a_missing_rank_is_no_match(program: list[str]) -> None:
    for name in ("a", "b"):
        for rank in "01":
            env = recording(Path(name).absolute(), RANK=rank, RANKS="2")
            assert subprocess.run(program, env=env, check=False, timeout=60).returncode == 0
    assert ciwrap("compare", "a", "b")[0] == ExitCode.MATCH
    for name in ("a", "b"):
        journal_paths(Path(name))[1].unlink()
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.NOT_COMPARABLE
    assert "1 of 2 ranks left no journal, such as rank 1" in text


def test_what_cannot_be_recorded_is_no_match(program: list[str]) -> None:
    del program
    text = (
        "import numpy as np, ciwrap\n"
        "with ciwrap.Recorder() as r:\n    r.record(1, x=np.array([None]), y=np.ones(3))\n"
    )
    for name in ("a", "b"):
        done = python(text, recording(Path(name).absolute()))
        assert done.returncode == 0
        assert done.stderr.count("ciwrap:") == 1
    code, text = ciwrap("compare", "a", "b")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert record("c", sys.executable, "-c", "import ciwrap as c; c.Recorder().record(-1)") == 3


ENDLESS = """
import itertools, time, numpy as np, ciwrap
r = ciwrap.Recorder()
for n in itertools.count():
    r.record(n, x=np.full(20000, float(n)), y=np.arange(100) + n)
    time.sleep(0.002)
"""


@pytest.mark.slow
def test_whole_checkpoints_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    need_library()
    counts = []
    for number in range(12):
        run = tmp_path / f"run{number}"
        process = subprocess.Popen([sys.executable, "-c", ENDLESS], env=recording(run))
        while not journal_paths(run):
            time.sleep(0.002)
        time.sleep(0.003 * number**1.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
        (path,) = journal_paths(run)
        reader = JournalReader(path)
        if path.stat().st_size < 64:
            continue  # killed before the head was written
        found = [one.iteration for one in reader.checkpoints()]
        assert found == list(range(len(found)))
        assert not reader.is_closed
        counts.append(len(found))
    assert max(counts) > 5


@pytest.mark.slow
def test_a_growing_run_is_compared_as_far_as_it_is(tmp_path: Path) -> None:
    need_library()
    run, other = tmp_path / "run", tmp_path / "other"
    with subprocess.Popen([sys.executable, "-c", ENDLESS], env=recording(run)) as process:
        try:
            last = 0
            for _ in range(8):
                while not journal_paths(run) or journal_paths(run)[0].stat().st_size < 1000:
                    time.sleep(0.01)
                found = roots(run)
                assert len(found) >= last
                last = len(found)
                time.sleep(0.02)
            assert last > 10
        finally:
            process.kill()
    text = ENDLESS.replace("itertools.count()", "range(5)") + "r.close()\n"
    assert python(text, recording(other)).returncode == 0
    code, text = ciwrap("compare", str(run), str(other))
    assert code == ExitCode.NOT_COMPARABLE
    assert "have not closed their journals" in text
    mine = roots(run)
    assert all(mine[name] == root for name, root in roots(other).items())


FULL = """
import resource, numpy as np, ciwrap
resource.setrlimit(resource.RLIMIT_FSIZE, (@SIZE@, resource.RLIM_INFINITY))
r = ciwrap.Recorder()
total = 0.0
for n in range(60):
    r.record(n, x=np.full(20000, float(n)))
    total += n
    if n == 40 and @IS_RELEASED@:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, resource.RLIM_INFINITY))
        import time
        time.sleep(0.2)
r.close()
assert total == 1770.0
"""


@pytest.mark.parametrize("is_released", [False, True])
def test_a_full_disk_leaves_the_program_alone_and_is_no_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_released: bool
) -> None:
    need_library()
    monkeypatch.chdir(tmp_path)
    text = FULL.replace("@IS_RELEASED@", str(is_released))
    assert record("full", sys.executable, "-c", text.replace("@SIZE@", "16000")) == 3
    found = captured(Path("full"))
    known = [one for one in found.values() if one.plain is not None]
    lost = [one for one in found.values() if one.plain is None]
    assert 5 < len(known) < 60
    assert bool(lost) == is_released
    assert record("whole", sys.executable, "-c", text.replace("@SIZE@", "1 << 30")) == 0
    whole = {one.digests for one in captured(Path("whole")).values()}
    assert {one.digests for one in known} <= whole
    code, said = ciwrap("compare", "whole", "full")
    assert code != ExitCode.MATCH, said


def test_a_folder_that_cannot_be_written_leaves_the_program_alone(tmp_path: Path) -> None:
    need_library()
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = python(
        "import ciwrap; r = ciwrap.Recorder(); r.record(1, x=1.0); print(r.is_on)",
        recording(blocked / "run"),
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False")
    assert done.stderr.count("\n") == 1
    assert "nothing is recorded" in done.stderr


def test_the_library_is_found_where_it_was_built() -> None:
    need_library()
    assert os.access(LIBRARY, os.R_OK)
