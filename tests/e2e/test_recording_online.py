"""Runs that are held against another one while they run: stopped, told, never a match in vain."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from mpi_installations import ENVIRONMENT, MPIS, need_mpi
from online_programs import ENDLESS_SOURCE, MPI_SOURCE, PYTHON_TEXT
from recorded_runs import build, need_library, recording

from ciwrap.captures.journal import FINE, JournalReader
from ciwrap.captures.journals import journal_paths
from ciwrap.cli.main import run as run_cli
from ciwrap.errors import ExitCode
from ciwrap.native.library import include_folder

if TYPE_CHECKING:
    from ciwrap.captures.journal import RecordedCheckpoint

LAST = re.compile(r"^last step (\d+)$", re.MULTILINE)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("walk.py").write_text(PYTHON_TEXT)
    return [sys.executable, "walk.py"]


def ciwrap(*words: str) -> tuple[int, str]:
    """The exit code, and all that was printed; what the program says is in it, too."""
    done = subprocess.run(
        [sys.executable, "-m", "ciwrap", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def quietly(*words: str) -> int:
    with contextlib.redirect_stdout(io.StringIO()):
        return run_cli(words)


def last_step(text: str) -> int:
    found = LAST.search(text)
    assert found is not None, text
    return int(found[1])


def against(reference: str, policy: str, *more: str) -> list[str]:
    return ["record", "--against", reference, "--on-divergence", policy, *more]


def record(reference: list[str], output: str = "a", *more: str) -> None:
    code, text = ciwrap("record", "--residues", "-o", output, *more, "--", *reference)
    assert code == 0, text


@pytest.fixture(params=MPIS)
def two_ranks(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The words that start a program of two processes, but for its arguments."""
    need_library()
    mpi = need_mpi(request.param)
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    Path("online.c").write_text(MPI_SOURCE)
    program = mpi.build([f"-I{include_folder()}", "online.c"], tmp_path / "online")
    return [*mpi.start(2), str(program)]


def test_a_planted_defect_stops_two_ranks(two_ranks: list[str], long_mode: bool) -> None:
    """Any step, rank and element: at most two checkpoints later, and it is named."""
    record([*two_ranks, "25", "-1", "0", "0", "0", "0"], "a")
    chance = random.Random(8)
    for number in range(50 if long_mode else 3):
        step, rank, place = chance.randrange(22), chance.randrange(2), chance.randrange(6000)
        by = chance.choice((-1, 1)) * 1e-6 * chance.uniform(1.3, 9)
        words = [*two_ranks, "25", *map(str, (step, rank, place, by, 0.5e-6))]
        code, text = ciwrap(*against("a", "stop"), "-o", f"run{number}", "--", *words)
        assert code == ExitCode.DIFFER, text
        assert step <= last_step(text) <= step + 2
        first = f"first divergence: iter {step} / rank {rank} / x"
        assert first in text, text
        index = f"[{place // 60}, {place % 60}] moved by"
        assert index in text, text


def test_a_planted_defect_aborts_two_ranks(two_ranks: list[str], long_mode: bool) -> None:
    """The launcher ends the rank that is right, which waits for the other one."""
    record([*two_ranks, "25", "-1", "0", "0", "0", "0"], "a")
    chance = random.Random(9)
    for number in range(20 if long_mode else 2):
        step, rank, place = chance.randrange(20), chance.randrange(2), chance.randrange(6000)
        words = [*two_ranks, "25", *map(str, (step, rank, place, 4e-6, 0))]
        code, text = ciwrap(*against("a", "abort"), "-o", f"run{number}", "--", *words)
        assert code == ExitCode.DIFFER, text
        assert "the program is ended" in text
        assert "last step" not in text
        assert f"iter {step} / rank {rank} / x" in text, text
        for path in journal_paths(Path(f"run{number}")):
            recorded = [one.iteration for one in JournalReader(path).checkpoints()]
            assert recorded == list(range(len(recorded)))
            assert len(recorded) <= step + 3


def test_noise_of_half_the_bound_raises_no_alarm(two_ranks: list[str]) -> None:
    record([*two_ranks, "200", "-1", "0", "0", "0", "0"])
    words = [*two_ranks, "200", "-1", "0", "0", "0", "0.5e-6"]
    code, text = ciwrap(*against("a", "stop"), "-o", "b", "--", *words)
    assert code == ExitCode.MATCH, text
    assert last_step(text) == 199
    assert "compared 1 variable in 400 arrays" in text
    assert "of the bound used" in text


@pytest.mark.parametrize(
    ("policy", "patience", "last", "code"),
    [
        ("report", "1", 19, ExitCode.DIFFER),
        ("callback", "1", 19, ExitCode.DIFFER),
        ("stop", "0", 7, ExitCode.DIFFER),
        ("stop", "4", 9, ExitCode.DIFFER),
        ("abort", "0", None, ExitCode.DIFFER),
    ],
)
def test_policies(
    program: list[str], policy: str, patience: str, last: int | None, code: ExitCode
) -> None:
    record(program)
    words = [*program, "7", "1234", "0.0013", "0.0005"]
    found, text = ciwrap(*against("a", policy, "--patience", patience), "-o", "b", "--", *words)
    assert found == code, text
    assert "first that did not match while it ran: iter 7 / rank 0 / x@half: [1234] moved" in text
    assert text.count("ciwrap: rank 0: x@half does not match the reference in iteration 7") == 1
    if last is None:
        assert "last step" not in text
        assert "the program is ended" in text
    else:
        assert last_step(text) == last
    told = re.findall(r"^told (.*)$", text, re.MULTILINE)
    expected = [f"{n} {point} x 1 8" for n in range(7, 20) for point in ("half", "")]
    assert [" ".join(one.split()) for one in told] == (
        [" ".join(one.split()) for one in expected] if policy == "callback" else []
    )
    # What was recorded stands by itself: the same verdict, whenever it is asked for. An aborted run
    # lacks the rest of its last iteration.
    later = ExitCode.NOT_COMPARABLE if policy == "abort" else code
    assert quietly("compare", "--common", "a", "b") == later


@pytest.mark.parametrize(("seconds", "is_ended"), [("0.2", True), ("60", False)])
def test_a_program_that_never_asks_is_ended_in_the_end(
    program: list[str], seconds: str, is_ended: bool
) -> None:
    deaf = Path("walk.py").read_text().replace("if r.should_stop():", "if False:")
    Path("deaf.py").write_text(deaf)
    record(program)
    words = [program[0], "deaf.py", "7", "1234", "0.0013", "0.0005", "20", "0.05"]
    limit = ("--stop-within", seconds)
    code, text = ciwrap(*against("a", "stop", *limit), "-o", "b", "--", *words)
    assert code == ExitCode.DIFFER, text
    assert ("the program is ended" in text) == is_ended
    assert ("last step 19" in text) == (not is_ended)
    (path,) = journal_paths(Path("b"))
    recorded = [one.iteration for one in JournalReader(path).checkpoints()]
    assert (recorded[-1] < 19) == is_ended
    assert recorded[-1] > 8


def test_a_run_that_ends_early_by_itself_is_no_match(program: list[str]) -> None:
    record(program)
    shorter = [*program, "-1", "0", "0", "0", "15"]
    code, text = ciwrap("record", "--against", "a", "-o", "b", "--", *shorter)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "missing" in text
    code, text = ciwrap("record", "--against", "a", "--common", "-o", "c", "--", *shorter)
    assert code == ExitCode.MATCH, text


def test_what_nothing_can_be_held_against_is_told_before_the_program_runs(
    program: list[str],
) -> None:
    code, text = ciwrap("record", "-o", "plain", "--", *program)
    assert code == 0
    Path("empty").mkdir()
    ran = [sys.executable, "-c", "open('ran', 'w')"]
    for reference in ("nowhere", "empty", "walk.py", "plain"):
        code, text = ciwrap("record", "--against", reference, "-o", "b", "--", *ran)
        # Of the plain run the count is compared exactly, so something can be held against it.
        if reference == "plain":
            continue
        assert code == ExitCode.NOT_COMPARABLE, text
        assert reference in text
        assert not Path("ran").exists()
    assert ciwrap("record", "--on-divergence", "stop", "-o", "b", "--", *ran)[0] == ExitCode.USAGE
    assert ciwrap("record", "--against", "plain", "-o", "plain", "--", *ran)[0] == ExitCode.USAGE


def test_other_bounds_shapes_and_names_are_not_comparable(program: list[str]) -> None:
    record(program)
    code, text = ciwrap("record", "--against", "a", "--atol", "0.1", "-o", "b", "--", *program)
    assert code == ExitCode.NOT_COMPARABLE, text
    other = Path("walk.py").read_text().replace("size=4000", "size=4001")
    Path("other.py").write_text(other)
    code, text = ciwrap(*against("a", "stop"), "-o", "c", "--", sys.executable, "other.py")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "shape" in text
    assert last_step(text) == 19


def test_captures_and_goldens(program: list[str]) -> None:
    """The same run as files: captured, and accepted with residues or with data."""
    del program
    text = PYTHON_TEXT.replace(
        "        time.sleep", "        save(n, x=y, count=np.arange(10) * n)\n        time.sleep"
    ).replace('        r.record(n, "half", x=y)\n', "")
    save = (
        "from pathlib import Path\ndef save(n, **arrays):\n"
        "    folder = Path('data') / f'iter_{n}' / 'rank_0'\n"
        "    folder.mkdir(parents=True, exist_ok=True)\n"
        "    for name, array in arrays.items():\n        np.save(folder / f'{name}.npy', array)\n"
    )
    Path("saves.py").write_text(save + text)
    words = [sys.executable, "saves.py"]
    subprocess.run(words, check=True, timeout=60)
    for evidence in ("residues", "data"):
        Path("ciwrap.yaml").write_text(
            f"golden_dir: by-{evidence}\nchecks:\n  walk:\n"
            "    outputs: data/**/*.npy\n    layout: data/iter_{iteration}/rank_{rank}/{name}.npy\n"
            f"    evidence: {evidence}\n    variables: {{x: {{atol: 0.001}}}}\n"
        )
        assert quietly("accept", "--reason", "new") == 0
    assert quietly("capture", "--residues", "--atol", "0.001", "-o", "run.tree", "data") == 0
    Path("data").rename("elsewhere")
    references = ("run.tree", "by-residues/walk", "by-data/walk.golden")
    for number, reference in enumerate(references):
        same, right = [f"{name}{number}" for name in ("same", "wrong")]
        code, said = ciwrap(
            *against(reference, "stop"), "-o", same, "--", *words, "-1", "0", "0", "0.0005"
        )
        assert code == ExitCode.MATCH, said
        wrong = [*words, "6", "77", "-0.0017", "0.0005"]
        code, said = ciwrap(*against(reference, "stop"), "-o", right, "--", *wrong)
        assert code == ExitCode.DIFFER, said
        assert "iter 6 / rank 0 / x: [77] moved by" in said
        assert last_step(said) <= 8
        assert not (Path(right) / ".reference").exists()


def start(words: list[str], output: str) -> subprocess.Popen[bytes]:
    """A run that is recorded with residues by itself, and that goes on."""
    Path("table.txt").write_text("ciwrap-bounds 2\n*\t*\t-\t-\t-\t-\t15\n")
    env = recording(Path(output).absolute(), CIWRAP_RECORD_BOUNDS=str(Path("table.txt").absolute()))
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not journal_paths(Path(output)) and time.monotonic() < until:
        time.sleep(0.005)
    return process


def test_two_runs_at_once(program: list[str]) -> None:
    """The second one follows the first one's journal, and waits for what is not there yet."""
    with start([*program, "-1", "0", "0", "0", "30", "0.03"], "a") as first:
        words = [*program, "21", "5", "0.0014", "0.0004", "30"]
        code, text = ciwrap(*against("a", "stop"), "-o", "b", "--", *words)
        assert first.wait(60) == 0
    assert code == ExitCode.DIFFER, text
    assert 21 <= last_step(text) <= 22
    assert "iter 21 / rank 0 / x@half: [5] moved by" in text


def test_a_run_whose_reference_is_killed_goes_on(program: list[str]) -> None:
    with start([*program, "-1", "0", "0", "0", "4000", "0.02"], "a") as first:
        second = subprocess.Popen(
            [sys.executable, "-m", "ciwrap", *against("a", "stop"), "-o", "b", "--", *program],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        time.sleep(1.2)
        first.send_signal(signal.SIGKILL)
        first.wait()
        text, _ = second.communicate(timeout=60)
    assert last_step(text) == 19
    # As far as both went, all matches; but nobody asked for that alone.
    assert second.returncode == ExitCode.NOT_COMPARABLE, text
    assert "have not closed their journals" in text


KILLED = """
import os, sys, numpy as np, ciwrap
r = ciwrap.Recorder()
for n in range(int(sys.argv[1])):
    r.record(n, x=np.full(1000, float(n)))
if sys.argv[2] == "killed":
    import time
    time.sleep(1)
    os._exit(1)
r.close()
"""


def test_what_a_killed_reference_never_came_to_is_no_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_library()
    monkeypatch.chdir(tmp_path)
    words = ["--", sys.executable, "-c", KILLED]
    assert ciwrap("record", "-o", "a", *words, "4", "killed")[0] == ExitCode.NOT_COMPARABLE
    code, text = ciwrap("record", "--against", "a", "-o", "b", *words, "8", "ended")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "--common" not in text
    code, text = ciwrap("record", "--against", "a", "--common", "-o", "c", *words, "8", "ended")
    assert code == ExitCode.MATCH, text
    assert "iterations 0 to 3 were compared" in text


def test_a_damaged_reference_never_makes_a_match(program: list[str]) -> None:
    record(program)
    (path,) = journal_paths(Path("a"))
    whole = path.read_bytes()
    chance = np.random.default_rng(5)
    for number in range(4):
        damaged = bytearray(whole)
        damaged[int(chance.integers(3000, len(whole)))] ^= 0x10
        path.write_bytes(damaged)
        code, text = ciwrap("record", "--against", "a", "-o", f"b{number}", "--", *program)
        assert code == ExitCode.NOT_COMPARABLE, text
    path.write_bytes(whole)
    assert ciwrap("record", "--against", "a", "-o", "c", "--", *program)[0] == ExitCode.MATCH


def run_and_kill(
    program: Path, run: Path, moments: tuple[float, float], **env: str
) -> list[list[RecordedCheckpoint]]:
    """What two processes had recorded that were killed so many seconds after they began to."""
    processes = [
        subprocess.Popen(
            [program, str(rank), "2", env.get("NOISE", "0")], env=recording(run, **env)
        )
        for rank in (0, 1)
    ]
    until = time.monotonic() + 30
    while len(journal_paths(run)) < 2 and time.monotonic() < until:
        time.sleep(0.001)
    begun = time.monotonic()
    for process, moment in sorted(zip(processes, moments, strict=True), key=lambda one: one[1]):
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()
    found = []
    for path in journal_paths(run):
        reader = JournalReader(path)
        # A process may have died before the head of its journal was written.
        found.append([*reader.checkpoints()] if path.stat().st_size >= 64 else [])
        assert not reader.is_closed
    return found


def test_kills_at_random_moments_lose_no_whole_checkpoint(tmp_path: Path, long_mode: bool) -> None:
    """Any rank, at any moment, recorded alone with residues and against another run: what is read
    is what was recorded, from the beginning on and without a gap.
    """
    need_library()
    source = tmp_path / "endless.c"
    source.write_text(ENDLESS_SOURCE)
    program = build("cc", [f"-I{include_folder()}", source], tmp_path / "endless")
    table = tmp_path / "table.txt"
    table.write_text("ciwrap-bounds 2\n*\t*\t-\t-\t-\t-\t15\n")
    alone = {"CIWRAP_RECORD_BOUNDS": str(table)}
    reference = run_and_kill(program, tmp_path / "reference", (0.4, 0.4), **alone)
    held = {"CIWRAP_RECORD_AGAINST": str(tmp_path / "reference"), "NOISE": "0.5e-6"}
    chance = random.Random(21)
    counts = []
    for number in range(500 if long_mode else 20):
        moments = chance.uniform(0, 0.15), chance.uniform(0, 0.15)
        is_held = number % 2 == 1
        run = tmp_path / f"run{number}"
        journals = run_and_kill(program, run, moments, **(held if is_held else alone))
        for rank, checkpoints in enumerate(journals):
            assert [one.iteration for one in checkpoints] == list(range(len(checkpoints)))
            counts.append(len(checkpoints))
            for one, other in zip(checkpoints, reference[rank], strict=False):
                if is_held:
                    compared = one.states[0].compared
                    assert compared is not None
                    assert (compared.reason, compared.suspect_chunks) == (None, 0)
                else:
                    assert one.states[0].trees[FINE].body == other.states[0].trees[FINE].body
        shutil.rmtree(run)
    assert max(counts) > 20
    assert min(counts) < max(counts) / 4


# Arguments: iteration:value, in the order in which they are recorded.
FILLED_TEXT = """
import sys, numpy as np, ciwrap
with ciwrap.Recorder("filled") as r:
    for word in sys.argv[1:]:
        iteration, value = word.split(":")
        r.record(int(iteration), x=np.full(100, float(value)))
"""


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    need_library()
    monkeypatch.chdir(tmp_path)
    Path("filled.py").write_text(FILLED_TEXT)
    return [sys.executable, "filled.py"]


@pytest.mark.parametrize("is_restart", [False, True])
def test_an_iteration_recorded_twice_is_compared_twice(filled: list[str], is_restart: bool) -> None:
    """Both values lie in one cell of the plain tree, and the second is beyond the bound."""
    record([*filled, "0:0.55"], "a", "--atol", "1")
    words = [*against("a", "report"), "-o", "b", "--"]
    if is_restart:
        code, text = ciwrap(*words, *filled, "0:0.45")
        assert code == 0, text
        words.insert(1, "--again")
        code, text = ciwrap(*words, *filled, "0:-0.47")
    else:
        code, text = ciwrap(*words, *filled, "0:0.45", "0:-0.47")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "was recorded twice, and not the same" in text
    assert "does not match the reference in iteration 0" in text


def test_a_second_recording_is_no_new_variable(filled: list[str]) -> None:
    """A check that allows new variables does not allow a restart that went another way."""
    Path("ciwrap.yaml").write_text(
        "checks: {m: {outputs: run, atol: 1, strict: {variables: allow-new}}}\n"
    )
    record([*filled, "0:1", "1:5"], "run", "--check", "m")
    assert ciwrap("accept", "m")[0] == 0
    words = ["record", "--check", "m", "--replace", "--against", "golden/m", "-o", "run", "--"]
    code, text = ciwrap(*words, *filled, "0:1", "1:5")
    assert code == 0, text
    assert "1970" not in text
    for found in (ciwrap(*words, *filled, "0:1", "0:9", "1:5"), ciwrap("check", "m")):
        assert found[0] == ExitCode.NOT_COMPARABLE, found[1]
        assert "was recorded twice, and not the same" in found[1]


@pytest.mark.parametrize("change", ["another value", "a new file", "a lost file"])
def test_a_run_that_is_not_what_its_capture_tells_is_no_reference(
    filled: list[str], change: str
) -> None:
    run = Path("data")
    run.mkdir()
    for iteration, value in enumerate((1.0, 5.0)):
        np.save(run / f"{iteration}_x.npy", np.full(100, value))
    layout = ["--layout", "{iteration}_{name}.npy"]
    assert ciwrap("capture", "data", *layout, "--residues", "--atol", "1", "--settle", "0")[0] == 0
    words = [*against("data", "report"), "-o", "b", "--replace", "--", *filled, "0:1", "1:5"]
    code, text = ciwrap(*words)
    assert code == 0, text
    if change == "another value":
        np.save(run / "1_x.npy", np.full(100, 50.0))
    elif change == "a new file":
        np.save(run / "2_x.npy", np.full(100, 50.0))
    else:
        (run / "1_x.npy").unlink()
    code, text = ciwrap(*words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "is not what its capture tells of any more" in text
    words[words.index("data")] = "data/.ciwrap.tree"
    code, text = ciwrap(*words)
    assert code == 0, text


def test_what_a_capture_has_no_tree_of_is_not_left_out_unseen(filled: list[str]) -> None:
    Path("data").mkdir()
    np.save("data/0_x.npy", np.full(100, 1.0))
    np.save("data/0_angle.npy", np.full(3, 1.0))
    text = "checks: {m: {outputs: data, layout: '{iteration}_{name}.npy', atol: 1, variables: "
    Path("ciwrap.yaml").write_text(text + "{angle: {period: 360}}}}\n")
    capture = ["capture", "data", "--check", "m", "--residues", "--settle", "0"]
    assert ciwrap(*capture)[0] == 0
    words = [*against("data", "report"), "-o", "b", "--", *filled, "0:1"]
    code, text = ciwrap(*words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "iter 0 / angle" in text
    assert "has no tree of it" in text
    assert ciwrap(*capture, "--ignore", "angle", "--rebuild")[0] == 0
    code, text = ciwrap(*words)
    assert code == 0, text


def test_a_journal_does_not_go_on_with_a_run_that_was_recorded_on(filled: list[str]) -> None:
    """The folder of a recorded run looks the same when its journals have grown."""
    for run in ("a", "b"):
        record([*filled, "0:1", "1:5"], run)
    again = ["record", "--again", "-o", "b", "--"]
    assert ciwrap(*again, *filled, "1:5")[0] == 0
    compare = ["compare", "a", "b", "--journal", "kept"]
    assert ciwrap(*compare)[0] == ExitCode.MATCH
    assert ciwrap(*compare, "--resume")[0] == ExitCode.MATCH
    assert ciwrap(*again, *filled, "1:9")[0] == 0
    code, text = ciwrap(*compare, "--resume")
    assert code == ExitCode.NOT_COMPARABLE, text
    assert "was recorded twice, and not the same" in text


def test_a_program_that_fails_leaves_a_whole_result(filled: list[str], tmp_path: Path) -> None:
    """Its numbers match, the run does not: terminal, JSON and page say both."""
    record([*filled, "0:1", "1:5"], "a")
    text = Path("filled.py").read_text()
    Path("filled.py").write_text(f"{text}sys.exit(5)\n")
    words = [*against("a", "report"), "-o", "b", "--json", "b.json", "--report", "b.html", "--"]
    code, said = ciwrap(*words, *filled, "0:1", "1:5")
    assert code == ExitCode.NOT_COMPARABLE, said
    assert "ended with exit code 5, though all that it recorded matches" in said
    assert "not compared" not in said
    document = json.loads((tmp_path / "b.json").read_text())
    assert document["verdict"] == "not_comparable"
    assert [one["verdict"] for one in document["checks"]] == ["match"]
    assert "though all that it recorded matches" in (tmp_path / "b.html").read_text()
    code, said = ciwrap("record", "-o", "c", "--", *filled, "0:1")
    assert (code, "so what it recorded may not be all" in said) == (3, True), said
