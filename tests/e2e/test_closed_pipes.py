"""Whoever reads our output may go away, or never have been there: the exit code stays, and the
files that were asked for are written.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from command_line import SECONDS, command
from e2e.cli_project import environment

# What leads to each of the exit codes that a comparison can have.
CASES: dict[int, tuple[str, ...]] = {
    0: ("a", "same"),
    1: ("a", "moved"),
    2: ("a", "same", "--atol=-1"),
    3: ("a", "lost"),
}
TAILS = {
    "true": "| true",
    "head": "| head -1",
    "no stdout": ">&-",
    "no stderr": "2>&-",
    "neither": "<&- >&- 2>&-",
}
FULL = Path("/dev/full")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, values in (("a", [0.0, 1.0]), ("same", [0.0, 1.0]), ("moved", [0.0, 2.0])):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "x.npy", np.array(values))
    (tmp_path / "lost").mkdir()
    np.save(tmp_path / "lost" / "y.npy", np.zeros(1))
    return tmp_path


def arguments_for(code: int) -> list[str]:
    return ["compare", "-v", *CASES[code], "--json", f"{code}.json", "--report", f"{code}.html"]


def check_files(folder: Path, code: int, told: int | None = None) -> None:
    document = json.loads((folder / f"{code}.json").read_text(encoding="utf-8"))
    assert document["exit_code"] == (code if told is None else told)
    assert (folder / f"{code}.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


def start(folder: Path, words: list[str], **streams: IO[str] | int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, text=True, **streams
    )


@pytest.mark.parametrize("tail", TAILS)
def test_every_verdict_survives_its_reader(here: Path, tail: str) -> None:
    running = {}
    for code in CASES:
        line = f"{shlex.join(command(*arguments_for(code)))} {TAILS[tail]}"
        words = ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"]
        running[code] = start(here, words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for code, process in running.items():
        _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        assert "Exception" not in errors
        check_files(here, code)


@pytest.mark.parametrize("streams", [("stdout",), ("stdout", "stderr")])
def test_every_verdict_survives_pipes_that_nobody_reads(
    here: Path, streams: tuple[str, ...]
) -> None:
    """From the start, so that nothing depends on who is faster."""
    with unread_pipe() as pipe:
        running = {
            code: start(here, command(*arguments_for(code)), **dict.fromkeys(streams, pipe))
            for code in CASES
        }
        for code, process in running.items():
            assert process.wait(SECONDS) == code
            check_files(here, code)


@pytest.mark.parametrize("option", ["--json=-", "--report=-", "--json=/dev/stdout"])
def test_a_document_for_stdout_that_nobody_reads(here: Path, option: str) -> None:
    with unread_pipe() as pipe:
        running = {
            code: start(here, command("compare", *CASES[code], option), stdout=pipe)
            for code in (0, 3)
        }
        assert {code: process.wait(SECONDS) for code, process in running.items()} == {0: 0, 3: 3}


def test_a_closed_stream_is_no_place_for_the_next_file(here: Path) -> None:
    """Its number must not be given to a file, or what is printed ends up in there."""
    line = f"{shlex.join(command(*arguments_for(1)))} --list list.csv >&- 2>&-"
    assert start(here, ["bash", "-c", line]).wait(SECONDS) == 1
    check_files(here, 1)
    assert (here / "list.csv").read_text(encoding="utf-8").splitlines() == [
        "iteration,rank,variable,index,golden,new,difference,id",
        ",,x,1,1.0,2.0,1.0,",
    ]


def test_the_command_that_is_run_is_heard_to_its_end(here: Path) -> None:
    """Its output goes to our stderr; it must not wait for ever for somebody who reads that."""
    talkative = "python3 -c 'print(300_000 * chr(120))' && cp a/x.npy out.npy"
    (here / "ciwrap.yaml").write_text(
        f"version: 1\nrun: {{command: {json.dumps(talkative)}}}\n"
        "checks: {x: {outputs: out.npy}}\n"
    )
    with unread_pipe() as pipe:
        assert start(here, command("run"), stdout=pipe, stderr=pipe).wait(SECONDS) == 3
    assert (here / "out.npy").exists()


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_full_disk_is_an_error_and_no_verdict(here: Path) -> None:
    """What was printed is not whole, and nobody can know what is missing."""
    for code in (0, 1):
        with FULL.open("w") as full:
            process = start(
                here, command(*arguments_for(code)), stdout=full, stderr=subprocess.PIPE
            )
            _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 3, errors
        assert "No space left" in errors
        assert "Traceback" not in errors
        check_files(here, code, told=3)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_version_that_cannot_be_written_is_an_error(here: Path) -> None:
    with FULL.open("w") as full:
        process = start(here, command("--version"), stdout=full, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (3, "error: No space left on device\n")


@pytest.mark.parametrize("files", [1, 3])
def test_a_list_on_a_full_disk_is_an_error_and_no_verdict(tmp_path: Path, files: int) -> None:
    """The list is written by another thread than the one that asks for what differs."""
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        for i in range(files):
            np.save(tmp_path / side / f"x{i}.npy", np.full(100_000, side == "b", dtype=float))

    def no_more_than_20_kb() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        command("compare", "a", "b", "--list=all.csv"),
        cwd=tmp_path,
        preexec_fn=no_more_than_20_kb,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert (
        done.stderr == "error: all.csv: the list of differences cannot be written: File too large\n"
    )
    assert not (tmp_path / "all.csv").exists()


class unread_pipe:  # noqa: N801 - a context manager, used like a function
    """The writing end of a pipe whose reading end is closed."""

    def __enter__(self) -> int:
        read_end, self._write_end = os.pipe()
        os.close(read_end)
        return self._write_end

    def __exit__(self, *_: object) -> None:
        os.close(self._write_end)
