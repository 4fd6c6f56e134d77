"""One comparison by the workers of every engine: the same result, whatever becomes of them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest
from command_line import call
from e2e import engine_runs
from e2e.cli_project import ROOT, environment
from e2e.engine_runs import (
    ITERATIONS,
    MPIEXEC,
    RANKS,
    Cluster,
    array_of,
    comparable,
    compared,
    document_in,
    hooked,
    journalled,
    units_begun,
    words_of,
    write_runs,
)
from mpi_installations import ENVIRONMENT, need_mpi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_dask = pytest.mark.skipif(
    find_spec("distributed") is None, reason="the extra dask is not installed"
)
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="no mpi4py, or no mpiexec beside this Python (pip install mpi4py mpich)",
)
HERE = pytest.param("here", id="here")
PROCESS = pytest.param("process", id="process")
OWN = pytest.param("own", id="own")
DASK = pytest.param("dask", id="dask", marks=[needs_dask, pytest.mark.slow])
MPI = [pytest.param(f"mpi-{n}", id=f"mpi-{n}", marks=needs_mpi) for n in (1, 2, 4)]
SEED = 20261122
UNITS = 5  # of the runs that `write_runs` writes
# The source tree is appended, so that an installed ciwrap comes before it.
SCALING = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
runpy.run_module("benchmarks.mpi_scaling", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A working folder; with a Dask cluster if the test's engine is that."""
    chosen = getattr(request.node, "callspec", None)
    if chosen is None or chosen.params.get("engine") != "dask":
        yield tmp_path
        return
    cluster = Cluster(tmp_path)
    try:
        yield tmp_path
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one process says of the runs, in units of several checkpoints."""
    folder = tmp_path_factory.mktemp("alone")
    write_runs(folder)
    code, document, text = compared(folder, "here")
    assert code == 1, text
    assert len(units_begun(folder)) == UNITS
    return comparable(document)


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("engine", [PROCESS, OWN, DASK, *MPI])
def test_every_engine_says_what_one_process_says(folder: Path, engine: str) -> None:
    write_runs(folder, one_sided=True)
    code, alone, _ = compared(folder, "here")
    assert code == 3
    begun = len(units_begun(folder))
    assert 4 <= begun < ITERATIONS * RANKS, "units are batches"
    code, together, text = compared(folder, engine)
    assert code == 3, text
    assert comparable(together) == comparable(alone)
    assert len(units_begun(folder)) == 2 * begun


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("engine", [HERE, PROCESS])
def test_units_of_any_size_come_to_the_same(folder: Path, engine: str) -> None:
    write_runs(folder)
    (folder / "unit-bytes").unlink()
    code, whole, _ = compared(folder, "here")
    assert code == 1
    assert units_begun(folder) == ["0"]
    (folder / "unit-bytes").write_text("1")
    code, single, _ = compared(folder, engine)
    assert code == 1
    assert len(units_begun(folder)) == 1 + ITERATIONS * RANKS
    assert comparable(single) == comparable(whole)


# --- workers that die -----------------------------------------------------------------------------


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("engine", [PROCESS, DASK])
def test_a_worker_that_dies_changes_nothing(
    folder: Path, engine: str, alone: str, long_mode: bool
) -> None:
    write_runs(folder)
    draw = random.Random(SEED)
    count = UNITS
    for _ in range(20 if long_mode else 2):
        order = folder / f"die-at-{draw.randrange(count)}"
        order.touch()
        code, together, text = compared(folder, engine)
        assert not order.exists(), "nobody died"
        assert code == 1, text
        assert comparable(together) == alone


def test_what_one_run_alone_has_is_told_in_one_order(folder: Path) -> None:
    """However they were cut into units, such as one that is taken apart since its worker died."""
    write_runs(folder)
    for iteration in (1, 3):
        np.save(folder / f"B/iter_{iteration}/rank_0/new.npy", array_of(0, 0))
    shutil.rmtree(folder / "A/iter_2")
    told = []
    for size in ("1000000", "1"):
        (folder / "unit-bytes").write_text(size)
        code, document, text = compared(folder, "here")
        assert code == 3, text
        told.append(document["checks"][0]["extra_variables"])
    assert [one["iteration"] for one in told[0]] == [1, 2, 2, 3]
    assert told[0] == told[1]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("engine", [PROCESS, DASK])
def test_a_poisonous_checkpoint_costs_itself(folder: Path, engine: str) -> None:
    write_runs(folder)
    (folder / "poison-4-1").touch()
    code, document, text = compared(folder, engine)
    assert code == 3, text
    check = document["checks"][0]
    assert check["history"]["not_compared_checkpoints"] == 1
    places = {(one["iteration"], one["rank"]) for one in check["variables"]}
    assert len(places) == ITERATIONS * RANKS - 1
    assert (4, 1) not in places
    [told] = [one["text"] for one in check["messages"] if "was not compared" in one["text"]]
    assert told.startswith("iter 4 / rank 1: was not compared: ")
    assert "BrokenProcessPool" in told or "KilledWorker" in told


@pytest.mark.parametrize(
    ("made", "left", "said"),
    [("first", 1, "gave the answer to another question"), ("mute", 0, "is of the type NoneType")],
)
def test_an_executor_that_mixes_up_answers(folder: Path, made: str, left: int, said: str) -> None:
    """The same answer to every question says nothing of the others."""
    write_runs(folder, unit_bytes=1)
    code, document, text = compared(folder, "here", f"--executor=ciwrap_test_engine:{made}")
    assert code == 3, text
    check = document["checks"][0]
    assert check["history"]["not_compared_checkpoints"] == ITERATIONS * RANKS - left
    assert len(check["variables"]) == left
    assert said in text


def test_an_executor_that_does_not_end_changes_no_verdict(folder: Path) -> None:
    write_runs(folder)
    code, document, text = compared(folder, "here", "--executor=ciwrap_test_engine:stays")
    assert code == 1, text
    assert len(document["checks"][0]["variables"]) == ITERATIONS * RANKS
    said = "ciwrap_test_engine:stays does not shut down: RuntimeError: the queue does not answer"
    assert f"warning: --executor {said}\n" in text


# --- the journal ----------------------------------------------------------------------------------


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("engine", [HERE, MPI[1], MPI[2]])
def test_what_a_kill_ended_goes_on(folder: Path, engine: str, alone: str) -> None:
    """With one process the coordinator is killed; with MPI a rank is, and mpiexec ends all."""
    write_runs(folder)
    (folder / "slow").write_text("0.05")
    (folder / "die-at-3").touch()
    code, document, _ = compared(folder, engine, "--journal=j.jsonl")
    assert code not in (0, 1), "somebody was killed"
    assert document is None
    done = {tuple(map(tuple, entry["keys"])) for entry in journalled(folder)}
    count = len(units_begun(folder))
    code, resumed, text = compared(folder, engine, "--journal=j.jsonl", "--resume")
    assert code == 1, text
    assert comparable(resumed) == alone
    entries = journalled(folder)
    assert len(entries) == len({str(entry["keys"]) for entry in entries}), "none was done twice"
    assert len(units_begun(folder)) == count + len(entries) - len(done)
    # Once more: nothing is left to do.
    count = len(units_begun(folder))
    code, again, _ = compared(folder, engine, "--journal=j.jsonl", "--resume")
    assert comparable(again) == alone
    assert len(units_begun(folder)) == count


@pytest.mark.slow
def test_a_killed_coordinator_of_workers(folder: Path, alone: str) -> None:
    """Its workers end with it, and a line that was torn is compared again."""
    write_runs(folder, unit_bytes=30_000)
    (folder / "slow").write_text("0.1")
    process = subprocess.Popen(
        words_of(folder, "process", "--journal=j.jsonl"),
        cwd=folder,
        env=hooked(folder),
        stdout=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not (folder / "j.jsonl").exists() or len(journalled(folder)) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    # Workers hold its output: that ends when the last of them has.
    process.communicate(timeout=30)
    journal = folder / "j.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    done = len(journalled(folder))
    (folder / "slow").unlink()
    # Another engine can go on.
    code, resumed, text = compared(folder, "here", "--journal=j.jsonl", "--resume")
    assert code == 1, text
    assert comparable(resumed) == alone
    assert len(journalled(folder)) == ITERATIONS * RANKS > done


def test_units_whose_files_changed_are_compared_again(folder: Path) -> None:
    write_runs(folder)
    compared(folder, "here", "--journal=j.jsonl")
    count = len(units_begun(folder))
    np.save(folder / "B/iter_2/rank_0/x.npy", np.zeros(1000))
    code, document, text = compared(folder, "here", "--journal=j.jsonl", "--resume")
    assert code == 1, text
    assert len(units_begun(folder)) == count + 1
    [changed] = [
        one
        for one in document["checks"][0]["variables"]
        if (one["iteration"], one["rank"]) == (2, 0)
    ]
    assert changed["differing_count"] == 1000
    code, alone, _ = compared(folder, "here")
    assert comparable(document) == comparable(alone)


def test_what_could_not_be_read_is_tried_again(folder: Path) -> None:
    write_runs(folder, unit_bytes=1)
    path = folder / "B/iter_2/rank_0/x.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert compared(folder, "here", "--journal=j.jsonl")[0] == 3
    assert len(journalled(folder)) == ITERATIONS * RANKS - 1
    path.write_bytes(whole)
    count = len(units_begun(folder))
    code, _, text = compared(folder, "here", "--journal=j.jsonl", "--resume")
    assert code == 1, text
    assert len(units_begun(folder)) == count + 1


def plainly(folder: Path, *more: str) -> tuple[int, str]:
    """Compares in the process of the tests, which is quicker; nobody dies."""
    done = call("compare", "A", "B", *more, folder=folder, environment=environment())
    return done.returncode, done.stdout + done.stderr


def test_a_journal_of_something_else(folder: Path) -> None:
    write_runs(folder)
    assert plainly(folder, "--journal=j.jsonl")[0] == 1
    before = (folder / "j.jsonl").read_bytes()
    for more, said in (
        ((), "already exists; go on with --resume"),
        (("--resume", "--atol=2"), "was made with other rules or options"),
        (("--resume", "--no-captures"), "was made with other rules or options"),
        (("--resume", "--common"), "was made with other rules or options"),
        (("--resume", "--offset=1"), "was made with other rules or options"),
        (("--resume", "--include=*.npy"), "was made with other rules or options"),
        (("--resume", "--format=npy"), "was made with other rules or options"),
    ):
        code, text = plainly(folder, "--journal=j.jsonl", *more)
        assert code == 2
        assert said in text
    (folder / "notes.txt").write_text("mine\n")
    code, text = plainly(folder, "--journal=notes.txt", "--resume")
    assert code == 2
    assert "is not a journal of ciwrap" in text
    assert (folder / "notes.txt").read_text() == "mine\n"
    assert (folder / "j.jsonl").read_bytes() == before
    for words in (("--resume",), ("--scheduler=x",)):
        assert plainly(folder, *words)[0] == 2


# --- those that never end -------------------------------------------------------------------------


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("engine", [HERE, PROCESS, DASK, MPI[1]])
def test_silence_is_told(folder: Path, engine: str) -> None:
    write_runs(folder)
    (folder / "slow").write_text("30")
    started = time.monotonic()
    code, document, text = compared(folder, engine, "--silence=4")
    assert code == 3, text
    assert time.monotonic() - started < 25
    assert document["checks"][0]["history"]["not_compared_checkpoints"] == ITERATIONS * RANKS
    assert "no unit was done for 4 s; give --journal next time" in text


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("engine", "number"),
    [("here", signal.SIGTERM), ("process", signal.SIGINT), ("process", signal.SIGTERM)],
)
def test_what_is_known_is_told_at_the_end_of_a_job(
    folder: Path, engine: str, number: signal.Signals
) -> None:
    """The signal goes to the workers, too, as that of a terminal or a batch system does."""
    write_runs(folder, unit_bytes=1)
    (folder / "slow").write_text("0.4")
    process = begun(folder, engine, "--journal=j.jsonl")
    deadline = time.monotonic() + 60
    while not (folder / "j.jsonl").exists() or len(journalled(folder)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, number)
    told, _ = process.communicate(timeout=60)
    assert b"Traceback" not in told
    assert process.returncode == 3, told.decode()
    check = document_in(folder)["checks"][0]
    lost = check["history"]["not_compared_checkpoints"]
    assert 0 < lost < ITERATIONS * RANKS
    assert len(check["variables"]) == ITERATIONS * RANKS - lost
    assert f"the comparison was ended by {number.name}".encode() in told
    assert b"go on with --resume" in told
    (folder / "slow").unlink()
    assert compared(folder, engine, "--journal=j.jsonl", "--resume")[0] == 1


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_known_is_told_when_the_scheduler_ends(
    tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask looks for it for half a minute, here for a second. The command waited for ever, or told
    nothing of what it had compared.
    """
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    write_runs(tmp_path, unit_bytes=1)
    (tmp_path / "slow").write_text("0.5")
    cluster = Cluster(tmp_path)
    try:
        process = begun(tmp_path, "dask", "--journal=j.jsonl")
        deadline = time.monotonic() + 60
        while not (tmp_path / "j.jsonl").exists() or len(journalled(tmp_path)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        cluster.end_scheduler(number)
        told, _ = process.communicate(timeout=60)
    finally:
        cluster.close()
    assert b"Traceback" not in told
    assert process.returncode == 3, told.decode()
    check = document_in(tmp_path)["checks"][0]
    lost = check["history"]["not_compared_checkpoints"]
    assert len(check["variables"]) == ITERATIONS * RANKS - lost == len(journalled(tmp_path))
    assert b"the Dask scheduler does not answer any more; go on with --resume" in told
    (tmp_path / "slow").unlink()
    assert compared(tmp_path, "here", "--journal=j.jsonl", "--resume")[0] == 1


@pytest.mark.slow
@needs_mpi
def test_what_open_mpi_ends_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its launcher kills all processes, and its own exit code is 1: the journal counts."""
    mpi = need_mpi("Open MPI")
    libraries = sorted((mpi.folder.parent / "lib").glob("libmpi.so.*"))
    if not libraries:
        pytest.skip("the library of that Open MPI is elsewhere")
    for name, text in {**ENVIRONMENT, "MPI4PY_LIBMPI": str(libraries[0])}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(engine_runs, "MPIEXEC", mpi.folder / "mpiexec")
    write_runs(tmp_path, unit_bytes=1)
    (tmp_path / "slow").write_text("0.4")
    process = begun(tmp_path, "mpi-3", "--journal=j.jsonl")
    deadline = time.monotonic() + 60
    while not (tmp_path / "j.jsonl").exists() or len(journalled(tmp_path)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.terminate()
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"iter" not in told
    assert document_in(tmp_path) is None
    (tmp_path / "slow").unlink()
    code, document, text = compared(tmp_path, "mpi-3", "--journal=j.jsonl", "--resume")
    assert code == 1, text
    assert len(document["checks"][0]["variables"]) == ITERATIONS * RANKS


def begun(folder: Path, engine: str, *more: str) -> subprocess.Popen[bytes]:
    """The command at work, as the first of a group of processes."""
    return subprocess.Popen(
        words_of(folder, engine, *more),
        cwd=folder,
        env=hooked(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("engine", [PROCESS, OWN])
def test_a_second_signal_waits_for_no_worker(folder: Path, engine: str) -> None:
    write_runs(folder, unit_bytes=1)
    (folder / "slow").write_text("300")
    process = begun(folder, engine)
    deadline = time.monotonic() + 60
    while not units_begun(folder):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    told, _ = process.communicate(timeout=60)
    assert process.returncode in (3, 130), told.decode()
    assert (folder / "result.json").exists() == (process.returncode == 3)
    assert b"Traceback" not in told


@pytest.mark.slow
@needs_mpi
def test_the_benchmark_of_scaling_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c", SCALING, str(ROOT), "--folder", str(tmp_path)),
            *("--gib", "0.002", "--repeats", "1", "--processes", "2", "--json", "found.json"),
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [(row["way"], row["cache"]) for row in rows] == [
        (way, cache) for way in ("without MPI", "2 MPI processes") for cache in ("cold", "warm")
    ]
    assert all(0 < row["comparison_seconds"] < row["command_seconds"] for row in rows)
    assert list(tmp_path.iterdir()) == [tmp_path / "found.json"]


# --- what is asked for wrongly --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--executor=slurm"], 2, "is not one of process, mpi, dask"),
        (["--executor=no_such_package:make"], 2, "no_such_package"),
        (["--executor=ciwrap_test_engine:wrong"], 2, "returns int"),
        (["--executor=ciwrap_test_engine:raises"], 3, "makes no executor: ValueError: no cluster"),
        (["--executor=ciwrap_test_engine:exits"], 3, "makes no executor: SystemExit: 0"),
        (["--executor=ciwrap_test_engine:full"], 3, "takes no work: cannot schedule"),
        (["--executor=ciwrap_test_engine:picky"], 3, "takes no work: cannot pickle it"),
        (
            ["--executor=ciwrap_test_engine:no_future"],
            3,
            "takes no work: submit() returns NoneType",
        ),
        (["--executor=exits:make"], 2, "exits:make: SystemExit: 0"),
        (["--executor=broken:make"], 2, "broken:make: SyntaxError"),
        (["--executor=..:make"], 2, "..:make: TypeError"),
        pytest.param(["--executor=dask"], 2, "--executor dask needs --scheduler", marks=needs_dask),
        pytest.param(
            ["--executor=dask", "--scheduler=none.json"],
            3,
            "there is no such file of a Dask scheduler",
            marks=needs_dask,
        ),
        pytest.param(
            ["--executor=dask", "--scheduler=notes.json"],
            3,
            "notes.json: is not a file that a Dask scheduler wrote",
            marks=needs_dask,
        ),
        (["--executor=process", "--scheduler=x"], 2, "--scheduler is for --executor dask"),
    ],
)
def test_engines_that_are_none(folder: Path, words: list[str], code: int, said: str) -> None:
    write_runs(folder)
    hooked(folder)
    (folder / "hooks/exits.py").write_text("raise SystemExit(0)\n")
    (folder / "hooks/broken.py").write_text("def make(:\n")
    (folder / "notes.json").write_text('{"mine": 1}\n')
    found, _, text = compared(folder, "here", *words)
    assert found == code
    assert said in text
    assert "Traceback" not in text


def test_libraries_of_engines_are_loaded_if_asked_for(folder: Path) -> None:
    write_runs(folder)
    program = (
        "import sys; from ciwrap.cli.main import run; run(sys.argv[1:]);"
        " print([name for name in ('distributed', 'dask', 'mpi4py') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "compare", "A", "B", "--journal=j.jsonl"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
