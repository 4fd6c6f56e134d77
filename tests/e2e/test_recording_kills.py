"""Runs, and references of runs, that are killed or still growing: no whole checkpoint is lost."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.online_runs import against, ciwrap, last_step
from online_programs import ENDLESS_SOURCE
from recorded_runs import build, need_library, recording

from ciwrap.base.errors import ExitCode
from ciwrap.project.outputs import journal_paths
from ciwrap.recording.journal import FINE, JournalReader
from ciwrap.recording.native import include_folder

if TYPE_CHECKING:
    from ciwrap.recording.journal import RecordedCheckpoint


def start(words: list[str], output: str) -> subprocess.Popen[bytes]:
    """A run that is recorded with residues by itself, and that goes on."""
    Path("table.txt").write_text("ciwrap-bounds 3\n*\t*\t-\t-\t-\t-\t15\n")
    env = recording(Path(output).absolute(), CIWRAP_RECORD_BOUNDS=str(Path("table.txt").absolute()))
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not journal_paths(Path(output)) and time.monotonic() < until:
        time.sleep(0.005)
    return process


@pytest.mark.slow
def test_two_runs_at_once(program: list[str]) -> None:
    """The second one follows the first one's journal, and waits for what is not there yet."""
    with start([*program, "-1", "0", "0", "0", "30", "0.03"], "a") as first:
        words = [*program, "21", "5", "0.0014", "0.0004", "30"]
        code, text = ciwrap(*against("a", "stop"), "-o", "b", "--", *words)
        assert first.wait(60) == 0
    assert code == ExitCode.DIFFER, text
    assert 21 <= last_step(text) <= 22
    assert "iter 21 / rank 0 / x@half: [5] moved by" in text


@pytest.mark.slow
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


# Records without a rest, and says in a file how many checkpoints it has handed over.
HASTY = r"""
#include <ciwrap/record.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** words) {
    static double x[20000];
    const int file = open(words[count - 1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, sizeof(long)) != 0)
        return 2;
    volatile long* const done = (volatile long*)mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE,
                                                     MAP_SHARED, file, 0);
    ciwrap_run* run = ciwrap_open("hasty", 0, 1);
    for (;; ++*done) {
        ciwrap_array array = CIWRAP_ARRAY("x", x, 20000);
        x[*done % 20000] += 1;
        ciwrap_prepare(run, *done, "");
        ciwrap_expose(run, &array);
        ciwrap_complete(run);
    }
}
"""


def test_a_killed_program_lacks_at_most_its_last_eight_checkpoints(tmp_path: Path) -> None:
    """As the page says; mostly none of a program that computes between them."""
    need_library()
    source, done = tmp_path / "hasty.c", tmp_path / "done"
    source.write_text(HASTY)
    program = build("cc", ["-std=gnu11", f"-I{include_folder()}", source], tmp_path / "hasty")
    for number in range(5):
        run = tmp_path / f"run{number}"
        done.unlink(missing_ok=True)
        with subprocess.Popen([program, done], env=recording(run)) as process:
            until = time.monotonic() + 30
            while not (done.exists() and any(done.read_bytes())) and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(0.02 * number)
            process.send_signal(signal.SIGKILL)
        count = int.from_bytes(done.read_bytes(), sys.byteorder)
        (path,) = journal_paths(run)
        written = [one.iteration for one in JournalReader(path).checkpoints()]
        assert written == list(range(len(written)))
        assert count > 0
        assert len(written) >= count - 8


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
    assert "what lies beyond iterations 0 to 3" in text


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
    table.write_text("ciwrap-bounds 3\n*\t*\t-\t-\t-\t-\t15\n")
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
