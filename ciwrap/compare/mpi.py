"""Many processes on one comparison: checkpoints are dealt out over MPI, the biggest first.

Rank 0 deals, and compares as the others do: in every process a thread compares and the main thread
talks, so that neither waits for the other. Every process says that it lives; one that has been
silent for too long is given up, with the checkpoint it had, and the rest goes on. When rank 0 falls
silent the others end. Only the main thread calls MPI.

What an MPI does when a process dies is its own affair: most end the whole job. So `launch` starts
the job itself, has every outcome kept in a file, and tells what there is whatever became of it.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.compare.outcome import Outcome
from ciwrap.errors import CiwrapError, NotAvailableError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ciwrap.captures.index import CheckpointKey

    # Compares one checkpoint.
    Work = Callable[[CheckpointKey], Outcome]

DEFAULT_SILENCE_SECONDS = 30.0
# Where the processes of a launched job keep their outcomes.
JOURNAL_VARIABLE = "CIWRAP_MPI_JOURNAL"
_TAG = 7301
_ALIVE_EVERY = 1.0
_ALIVE = "alive"
# In which mpiexec tells a process how many there are; an MPI library of another make sees one.
_WORLD_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_PAUSE = 0.002


def world() -> Any:
    """The communicator of all processes. Raises NotAvailableError without mpi4py or an MPI, or if
    that MPI is not the one that started the processes: each would be alone.
    """
    try:
        found = import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:
        raise NotAvailableError(
            f"--mpi needs mpi4py and an MPI library ({one_line(error)})",
            remedy="pip install mpi4py, and start with mpiexec",
        ) from error
    told = next((os.environ[name] for name in _WORLD_SIZES if name in os.environ), "1")
    if told != "1" and found.Get_size() == 1:
        raise NotAvailableError(
            f"mpiexec has started {told} processes, of which mpi4py sees one",
            remedy="start with the mpiexec of the MPI library that mpi4py loads (MPI4PY_LIBMPI"
            " names it)",
        )
    return found


def _keep(key: CheckpointKey, outcome: Outcome) -> None:
    """Writes an outcome down where `launch` looks for it, if that has started us."""
    journal = os.environ.get(JOURNAL_VARIABLE)
    if journal is not None:
        target = Path(journal) / f"{key[0]}-{key[1]}"
        unfinished = target.with_suffix(".new")
        unfinished.write_bytes(pickle.dumps((key, outcome)))
        unfinished.replace(target)


def launch(
    launcher: Sequence[str], arguments: Sequence[str], keys: Sequence[CheckpointKey]
) -> Outcome:
    """Runs `launcher ciwrap arguments` to its end and adds up what its processes have found.

    Checkpoints of which there is no outcome are lost, whatever the launcher's exit code. Raises
    NotAvailableError if the launcher cannot be started. The outcomes are kept below the working
    folder meanwhile, which all nodes have to share.
    """
    journal = Path(tempfile.mkdtemp(prefix=".ciwrap-mpi-", dir=Path.cwd()))
    try:
        try:
            code = subprocess.call(
                [*launcher, sys.executable, "-m", "ciwrap", *arguments],
                stdout=sys.stderr,
                env={**os.environ, JOURNAL_VARIABLE: str(journal)},
            )
        except OSError as error:
            raise NotAvailableError(
                f"{launcher[0]} cannot be started: {error.strerror}", remedy="mend --mpi-launch"
            ) from error
        found = Outcome()
        known = set()
        for path in sorted(journal.iterdir()):
            if path.suffix != ".new":
                key, outcome = pickle.loads(path.read_bytes())
                known.add(key)
                found.add(outcome)
        reason = f"the MPI job ended without it ({launcher[0]}: exit code {code})"
        found.lost += [(key, reason) for key in keys if key not in known]
        return found
    finally:
        shutil.rmtree(journal, ignore_errors=True)


class _Hands:
    """A thread that compares what it is given, one checkpoint after the other."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._wanted: queue.SimpleQueue[CheckpointKey | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[CheckpointKey, Outcome]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def give(self, key: CheckpointKey) -> None:
        self._wanted.put(key)

    def take(self) -> tuple[CheckpointKey, Outcome] | None:
        try:
            return self._done.get_nowait()
        except queue.Empty:
            return None

    def stop(self) -> None:
        self._wanted.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (key := self._wanted.get()) is not None:
            try:
                outcome = self._work(key)
            except CiwrapError as error:
                outcome = Outcome(lost=[(key, str(error))])
            # A fault of ours in one checkpoint must not cost the others.
            except Exception as error:
                text = one_line(f"{type(error).__name__}: {error}")
                outcome = Outcome(lost=[(key, f"internal error: {text}")])
            _keep(key, outcome)
            self._done.put((key, outcome))


class _Outbox:
    """Messages on their way. Nobody waits for a receiver, who may have died."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._pending: list[Any] = []

    def send(self, message: Any, dest: int) -> None:
        self._pending = [one for one in self._pending if not one.test()[0]]
        self._pending.append(self._comm.isend(message, dest=dest, tag=_TAG))

    def flush(self) -> None:
        """Gives what is on its way a moment."""
        deadline = time.monotonic() + _ALIVE_EVERY
        while time.monotonic() < deadline and not all(one.test()[0] for one in self._pending):
            time.sleep(_PAUSE)


@dataclass(slots=True)
class _Worker:
    """What rank 0 knows of another process. heard: when it last said something."""

    heard: float
    at_work: list[CheckpointKey] = field(default_factory=list)
    has_stopped: bool = False
    is_lost: bool = False


class Dealer:
    """Rank 0. keys: in the order in which they are dealt out."""

    def __init__(
        self, comm: Any, keys: Sequence[CheckpointKey], work: Work, silence_seconds: float
    ) -> None:
        self._comm = comm
        self._left = list(reversed(keys))
        self._hands = _Hands(work)
        self._own: CheckpointKey | None = None
        self._silence = silence_seconds
        now = time.monotonic()
        self._workers = {rank: _Worker(now) for rank in range(1, comm.Get_size())}
        self._said = now
        self._outbox = _Outbox(comm)
        self.outcome = Outcome()
        self.by_rank = dict.fromkeys(range(comm.Get_size()), 0)

    @property
    def has_lost_workers(self) -> bool:
        return any(worker.is_lost for worker in self._workers.values())

    def run(self) -> Outcome:
        """Until everything is compared or given up."""
        while not self._is_finished():
            moved = self._own_work()
            moved |= self._listen()
            self._give_up_the_silent()
            self._say_that_we_live()
            if not moved:
                time.sleep(_PAUSE)
        self._hands.stop()
        self._outbox.flush()
        return self.outcome

    def lose_the_rest(self, reason: str) -> Outcome:
        """What is known now; all else was not compared."""
        rest = list(self._left)
        rest += [] if self._own is None else [self._own]
        for worker in self._workers.values():
            rest += worker.at_work
            worker.is_lost = worker.is_lost or not worker.has_stopped
        self.outcome.lost += [(key, reason) for key in rest]
        self._left, self._own = [], None
        return self.outcome

    def _is_finished(self) -> bool:
        others = all(one.has_stopped or one.is_lost for one in self._workers.values())
        return others and not self._left and self._own is None

    def _own_work(self) -> bool:
        done = self._hands.take()
        if done is not None:
            self._own = None
            self.outcome.add(done[1])
            self.by_rank[0] += 1
        if self._own is None and self._left:
            self._own = self._left.pop()
            self._hands.give(self._own)
            return True
        return done is not None

    def _listen(self) -> bool:
        moved = False
        while self._comm.iprobe(tag=_TAG):
            rank, kind, key, outcome = self._comm.recv(tag=_TAG)
            moved = True
            worker = self._workers[rank]
            worker.heard = time.monotonic()
            if worker.is_lost:
                continue  # what it had is told of as lost already
            if kind == "done":
                worker.at_work.remove(key)
                self.outcome.add(outcome)
                self.by_rank[rank] += 1
            if kind in ("done", "ready"):
                if self._left:
                    worker.at_work.append(self._left.pop())
                    self._outbox.send(worker.at_work[-1], rank)
                else:
                    worker.has_stopped = True
                    self._outbox.send(None, rank)
        return moved

    def _say_that_we_live(self) -> None:
        now = time.monotonic()
        if now - self._said >= _ALIVE_EVERY:
            self._said = now
            for rank, worker in self._workers.items():
                if not worker.has_stopped and not worker.is_lost:
                    self._outbox.send(_ALIVE, rank)

    def _give_up_the_silent(self) -> None:
        now = time.monotonic()
        for rank, worker in self._workers.items():
            gone = worker.has_stopped or worker.is_lost
            if not gone and now - worker.heard > self._silence:
                worker.is_lost = True
                reason = f"MPI rank {rank} has not been heard of for {self._silence:g} s"
                self.outcome.lost += [(key, reason) for key in worker.at_work]
                worker.at_work.clear()


def serve(comm: Any, work: Work, silence_seconds: float) -> bool:
    """All other ranks: compares what rank 0 deals out, until there is no more; False if rank 0 has
    not been heard of for so long that it must be lost, and MPI with it.
    """
    hands = _Hands(work)
    rank = comm.Get_rank()
    outbox = _Outbox(comm)
    outbox.send((rank, "ready", None, None), 0)
    said = heard = time.monotonic()
    while True:
        moved = False
        now = time.monotonic()
        if comm.iprobe(source=0, tag=_TAG):
            key = comm.recv(source=0, tag=_TAG)
            heard = now
            if key is None:
                hands.stop()
                outbox.flush()
                return True
            if key != _ALIVE:
                hands.give(key)
            moved = True
        elif now - heard > silence_seconds:
            return False
        done = hands.take()
        if done is not None:
            outbox.send((rank, "done", *done), 0)
            said, moved = now, True
        elif now - said > _ALIVE_EVERY:
            outbox.send((rank, _ALIVE, None, None), 0)
            said = now
        if not moved:
            time.sleep(_PAUSE)
