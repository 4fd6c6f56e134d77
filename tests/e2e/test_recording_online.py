"""Runs that are compared with another one while they run: stopped, told, never a match in vain."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from e2e.online_runs import against, ciwrap, last_step, quietly, record
from mpi_installations import ENVIRONMENT, MPIS, need_mpi
from online_programs import MPI_SOURCE, PYTHON_TEXT
from recorded_runs import need_library

from ciwrap.base.errors import ExitCode
from ciwrap.project.outputs import journal_paths
from ciwrap.recording import online as ended_mark
from ciwrap.recording.journal import JournalReader
from ciwrap.recording.native import include_folder


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
        first = f"first difference: iter {step} / rank {rank} / x"
        assert first in text, text
        index = f"[{place // 60}, {place % 60}] moved by"
        assert index in text, text


def test_a_planted_defect_aborts_two_ranks(two_ranks: list[str], long_mode: bool) -> None:
    """The launcher ends the rank that is right, which waits for the other one, or else we do."""
    record([*two_ranks, "25", "-1", "0", "0", "0", "0"], "a")
    chance = random.Random(9)
    for number in range(20 if long_mode else 2):
        step, rank, place = chance.randrange(20), chance.randrange(2), chance.randrange(6000)
        words = [*two_ranks, "25", *map(str, (step, rank, place, 4e-6, 0))]
        run = Path(f"run{number}")
        code, text = ciwrap(*against("a", "abort"), "-o", str(run), "--", *words)
        assert code == ExitCode.DIFFER, text
        assert "the program is ended" in text
        assert "last step" not in text
        assert f"iter {step} / rank {rank} / x" in text, text
        for path in journal_paths(run):
            recorded = [one.iteration for one in JournalReader(path).checkpoints()]
            assert recorded == list(range(len(recorded)))
            assert len(recorded) <= step + 3


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("policy", ["abort", "stop"])
def test_a_launcher_that_waits_for_an_ended_process_is_ended_itself(
    program: list[str], policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_mark, "_GRACE_SECONDS", 0.5)
    deaf = Path("walk.py").read_text().replace("if r.should_stop():", "if False:")
    Path("deaf.py").write_text(deaf)
    record(program)
    Path("b").mkdir()
    Path("b/.ciwrap.ended").touch()  # of a command that was killed
    # What goes on after the program has a minute and a half, but for a divergence.
    launcher = '"$@"; echo waits; sleep 90; touch waited'
    words = ["sh", "-c", launcher, "sh", *program[:1], "deaf.py"]
    begun = time.monotonic()
    code = quietly(
        *against("a", policy, "--stop-within", "0", "--patience", "0"),
        *("-o", "b", "--", *words, "7", "1234", "0.0013", "0.0005"),
    )
    assert code == ExitCode.DIFFER
    assert time.monotonic() - begun < 60
    assert not Path("waited").exists()
    assert not Path("b/.ciwrap.ended").exists()


def test_what_comes_after_a_program_that_stops_by_itself_goes_on(
    program: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_mark, "_GRACE_SECONDS", 0.0)
    record(program)
    words = ["sh", "-c", '"$@"; sleep 1; touch waited', "sh", *program]
    code = quietly(*against("a", "stop"), "-o", "b", "--", *words, "7", "1234", "0.0013", "0.0005")
    assert code == ExitCode.DIFFER
    assert Path("waited").exists()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("policy", ["stop", "abort"])
def test_a_program_that_ends_by_itself_was_not_ended(program: list[str], policy: str) -> None:
    """What it lacks was left out, since it had diverged, though nobody had told it to end yet."""
    record(program)
    words = [*program, "7", "1234", "0.0013", "0.0005", "12"]
    code, text = ciwrap(*against("a", policy, "--patience", "10"), "-o", "b", "--", *words)
    assert code == ExitCode.NOT_COMPARABLE, text
    assert last_step(text) == 11
    assert "was ended since" not in text
    assert "only in A, not in B" in text
    # Ten checkpoints after the first one it was told to.
    words[-1] = "13"
    code, text = ciwrap(*against("a", policy, "--patience", "10"), "-o", "c", "--", *words)
    assert code == ExitCode.DIFFER, text
    assert "the run was ended since it differed in iteration 7" in text


def test_a_program_that_fails_by_itself_after_it_diverged_is_told(program: list[str]) -> None:
    record(program)
    fails = Path("walk.py").read_text().replace("sys.exit(5 if r.errors else 0)", "sys.exit(9)")
    Path("fails.py").write_text(fails)
    words = [program[0], "fails.py", "7", "1234", "0.0013", "0.0005"]
    code, text = ciwrap(*against("a", "stop", "--patience", "100"), "-o", "b", "--", *words)
    assert code != ExitCode.MATCH
    assert "ended with exit code 9" in text


def test_noise_of_half_the_bound_raises_no_alarm(two_ranks: list[str]) -> None:
    record([*two_ranks, "200", "-1", "0", "0", "0", "0"])
    words = [*two_ranks, "200", "-1", "0", "0", "0", "0.5e-6"]
    code, text = ciwrap(*against("a", "stop"), "-o", "b", "--", *words)
    assert code == ExitCode.MATCH, text
    assert last_step(text) == 199
    assert "compared 1 variable in 400 arrays" in text
    assert "of the bound used" in text


@pytest.mark.slow(but=2)
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
    # What was recorded stands by itself: the same verdict, whenever it is asked for.
    assert quietly("compare", "--common", "a", "b") == code


@pytest.mark.slow(but=1)
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
        # Of the plain run the count is compared exactly, so something can be compared with it.
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


@pytest.mark.slow
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
        assert not (Path(right) / ".ciwrap.reference").exists()


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
