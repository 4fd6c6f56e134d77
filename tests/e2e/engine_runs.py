"""Two runs, and processes that compare them: workers whose deaths a test can order.

Every Python that is started here runs HOOKS first, whatever engine started it, so that one way of
making workers die serves all engines. What is to happen is told by files in the working folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import call, command
from e2e.cli_project import environment, validator

from ciwrap.runs import units
from ciwrap.runs.comparer import UnitComparer

if TYPE_CHECKING:
    from collections.abc import Sequence

MPIEXEC = Path(sys.executable).parent / "mpiexec"
ITERATIONS, RANKS = 10, 2
# Open MPI's mpiexec has its ranks find its libraries.
_OF_THE_CALL = ("seconds", "started_at", "project")
_BY_MPIEXEC = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "LD_LIBRARY_PATH")

# unit-bytes: the size of units. units.log: each unit that is begun. die-at-N: the first process
# that begins unit N takes the file away and dies; poison-I-R: whoever has that checkpoint dies.
# slow: seconds that every unit takes. part-bytes: the size of parts, and of files that have them.
# blind-at-N: who compares unit N may not open files of B, or of what the file names. write-at-N:
# what it holds is written to B/large.npy before unit N, with the time that this had. other-stamps:
# workers know files by something else than the coordinator, as on another node.
HOOKS = """
import multiprocessing, os, signal, time
from pathlib import Path
from ciwrap.runs import comparer as unit_comparer, units
start = Path(os.environ["CIWRAP_TEST_FOLDER"])
if (start / "unit-bytes").exists():
    units.UNIT_BYTES = int((start / "unit-bytes").read_text())
if (start / "part-bytes").exists():
    units.LARGE_FILE_BYTES = units.PART_BYTES = int((start / "part-bytes").read_text())
plain = unit_comparer.UnitComparer.compare
def blind(self, unit, start):
    opened = os.open
    def refuse(path, *more, **others):
        if str(path).startswith(start):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *more, **others)
    os.open = refuse
    try:
        return plain(self, unit)
    finally:
        os.open = opened
def compare(self, unit):
    with open("units.log", "a") as log:
        log.write(unit.name + "\\n")
    if Path("slow").exists():
        time.sleep(float(Path("slow").read_text()))
    if Path("other-stamps").exists() and multiprocessing.parent_process() is not None:
        unit_comparer.stamp_of = lambda *_: "of another node"
    if Path(f"write-at-{unit.name}").exists():
        target = Path("B/large.npy")
        before = target.stat()
        written = Path("written")
        written.write_bytes(Path(f"write-at-{unit.name}").read_bytes())
        os.utime(written, ns=(before.st_atime_ns, before.st_mtime_ns))
        # In one step, for others that open it at this moment.
        written.replace(target)
    if Path(f"blind-at-{unit.name}").exists():
        return blind(self, unit, Path(f"blind-at-{unit.name}").read_text() or "B")
    for path in Path().glob("poison-*"):
        if tuple(map(int, path.name.split("-")[1:])) in unit.keys:
            os.kill(os.getpid(), signal.SIGKILL)
    try:
        os.unlink(f"die-at-{unit.name}")
    except FileNotFoundError:
        return plain(self, unit)
    os.kill(os.getpid(), signal.SIGKILL)
unit_comparer.UnitComparer.compare = compare
"""
_HOOKED = (
    (units, "UNIT_BYTES"),
    (units, "PART_BYTES"),
    (units, "LARGE_FILE_BYTES"),
    (UnitComparer, "compare"),
)
OWN = """
from concurrent.futures import Executor, Future, ThreadPoolExecutor
def make():
    return ThreadPoolExecutor(3)
def wrong():
    return 3
def raises():
    raise ValueError("no cluster")
def exits():
    raise SystemExit(0)
class Odd(Executor):
    def __init__(self, kind):
        self.kind, self.first, self.pool = kind, None, ThreadPoolExecutor(1)
    def submit(self, function, *words):
        if self.kind == "full":
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self.kind == "picky":
            raise TypeError("cannot pickle it")
        if self.kind == "no future":
            return None
        if self.kind == "stays":
            return self.pool.submit(function, *words)
        answer = Future()
        if self.kind == "first":
            self.first = self.first or self.pool.submit(function, *words)
        answer.set_result(self.first and self.first.result())
        return answer
    def shutdown(self, wait=True, *, cancel_futures=False):
        if self.kind == "stays":
            raise RuntimeError("the queue does not answer")
def first():
    return Odd("first")
def mute():
    return Odd("mute")
def full():
    return Odd("full")
def picky():
    return Odd("picky")
def no_future():
    return Odd("no future")
def stays():
    return Odd("stays")
"""


def array_of(iteration: int, rank: int) -> Any:
    return np.random.default_rng([iteration, rank]).normal(size=1000 * (1 + rank))


def write_runs(folder: Path, *, one_sided: bool = False, unit_bytes: int = 100_000) -> None:
    """B differs from A in one element of each rank from iteration 7 on."""
    # In one step: workers that start meanwhile read it.
    (folder / "unit-bytes.new").write_text(str(unit_bytes))
    (folder / "unit-bytes.new").replace(folder / "unit-bytes")
    for run in ("A", "B"):
        for iteration in range(ITERATIONS):
            for rank in range(RANKS):
                place = folder / run / f"iter_{iteration}" / f"rank_{rank}"
                place.mkdir(parents=True)
                array = array_of(iteration, rank)
                if run == "B" and iteration >= 7:
                    array[iteration] += 1
                np.save(place / "x.npy", array)
    if one_sided:
        np.save(folder / "A/iter_3/rank_0/gone.npy", array_of(3, 0))
        (folder / "B/iter_11").mkdir()
        np.save(folder / "B/iter_11/late.npy", array_of(11, 0))


def hooked(folder: Path) -> dict[str, str]:
    """The environment of processes that run HOOKS."""
    hooks = folder / "hooks"
    if not hooks.exists():  # in one step, and once: workers that start meanwhile read them
        (folder / "hooks.new").mkdir()
        (folder / "hooks.new/sitecustomize.py").write_text(HOOKS)
        (folder / "hooks.new/ciwrap_test_engine.py").write_text(OWN)
        (folder / "hooks.new").rename(hooks)
    path = os.pathsep.join([str(hooks), *filter(None, [os.environ.get("PYTHONPATH")])])
    return environment(PYTHONPATH=path, CIWRAP_TEST_FOLDER=str(folder), OMP_NUM_THREADS="1")


def words_of(folder: Path, engine: str, *more: str) -> list[str]:
    """The command line that has an engine compare A with B. `mpi-4` is MPI with four processes."""
    name, _, count = engine.partition("-")
    words = command("compare", "A", "B", "--threads=1", "--json=result.json", *more)
    if name == "here":
        return words
    if name == "mpi":
        return [str(MPIEXEC), "-n", count, *words, "--executor=mpi"]
    if name == "dask":
        return [*words, "--executor=dask", f"--scheduler={folder / 'scheduler.json'}"]
    return [*words, f"--executor={'ciwrap_test_engine:make' if name == 'own' else name}"]


def compared(folder: Path, engine: str, *more: str) -> tuple[int, Any, str]:
    """Exit code, document (None if there is none) and what was printed.

    What needs no other process, and in which nobody is to die or to sleep, is compared in this one.
    """
    (folder / "result.json").unlink(missing_ok=True)
    orders = [path for name in ("die-at-*", "poison-*", "slow") for path in folder.glob(name)]
    asks_for_engine = any(word.startswith("--executor") for word in more)
    if engine == "here" and not orders and not asks_for_engine:
        done = _in_this_process(folder, words_of(folder, engine, *more))
    else:
        done = subprocess.run(
            words_of(folder, engine, *more),
            cwd=folder,
            env=hooked(folder),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    return done.returncode, document_in(folder), done.stdout + done.stderr


def _in_this_process(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in _HOOKED:
            patch.setattr(owner, name, getattr(owner, name))  # to be put back
        for name, text in hooked(folder).items():
            # Documents tell of some of them; that it is too late for OMP_NUM_THREADS does not
            # matter with --threads=1.
            patch.setenv(name, text)
        exec(HOOKS, {})
        return call(*words[len(command()) :], folder=folder, environment=os.environ.copy())


def document_in(folder: Path) -> Any:
    target = folder / "result.json"
    if not target.exists():
        return None
    document = json.loads(target.read_text())
    validator().validate(document)
    return document


def comparable(document: Any) -> str:
    """All of a document but when it was made, in what time and folder, by how many processes."""
    kept = {key: value for key, value in document.items() if key not in _OF_THE_CALL}
    kept["environment"] = {
        key: value for key, value in kept["environment"].items() if key not in _BY_MPIEXEC
    }
    kept["checks"] = [
        {key: value for key, value in check.items() if key != "seconds"}
        for check in document["checks"]
    ]
    return json.dumps(kept)


def units_begun(folder: Path) -> list[str]:
    path = folder / "units.log"
    return path.read_text().split() if path.exists() else []


class Cluster:
    """A Dask scheduler and two workers, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        file = f"--scheduler-file={folder / 'scheduler.json'}"
        self._start(folder, "scheduler", file, "--no-dashboard", "--host=127.0.0.1", "--port=0")
        self._start(
            folder,
            *("worker", file, "--nworkers=2", "--nthreads=1", "--no-dashboard"),
            *("--memory-limit=0", f"--local-directory={folder / 'dask-scratch'}"),
        )
        deadline = time.monotonic() + 60
        while not (folder / "scheduler.json").exists():
            assert time.monotonic() < deadline, "the Dask scheduler does not start"
            time.sleep(0.1)
        self._wait_for_nannies(folder, deadline)

    def _wait_for_nannies(self, folder: Path, deadline: float) -> None:
        """They start workers anew that die, unless one dies before its nanny has begun to look,
        though it may have work by then: with that nanny all of `dask worker` ends.
        """
        distributed = pytest.importorskip("distributed")
        with distributed.Client(scheduler_file=str(folder / "scheduler.json")) as client:
            states: list[str] = []
            while states != ["running", "running"]:
                assert time.monotonic() < deadline, f"the Dask workers do not start: {states}"
                time.sleep(0.1)
                told = client.run(lambda dask_worker: dask_worker.status.name, nanny=True)
                states = list(told.values())

    def _start(self, folder: Path, part: str, *options: str) -> None:
        words = [sys.executable, "-m", f"distributed.cli.dask_{part}", *options]
        log = (folder / f"dask-{part}.log").open("wb")
        with log:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=hooked(folder),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)

    def end_scheduler(self, number: signal.Signals) -> None:
        os.killpg(self._processes[0].pid, number)

    def close(self) -> None:
        """Ends all of it at once; workers are children of the process that was started."""
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def journalled(folder: Path, name: str = "j.jsonl") -> Sequence[dict[str, Any]]:
    """The units in a journal; a torn line is none."""
    lines = (folder / name).read_bytes().splitlines(keepends=True)[1:]
    return [json.loads(line)["is"] for line in lines if line.endswith(b"\n")]
