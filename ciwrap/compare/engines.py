"""Engines: what gives units to workers. Any `concurrent.futures.Executor` can be one.

Libraries are loaded when an engine of that name is asked for.
"""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.compare.mpi_job import process_count
from ciwrap.compare.outcome_record import answer_of
from ciwrap.compare.remote import asked, compare_unit, sights_of
from ciwrap.errors import NotAvailableError, UsageError, one_line
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ciwrap.compare.outcome import Outcome
    from ciwrap.compare.remote import Order
    from ciwrap.compare.units import Unit

NAMES = ("process", "mpi", "dask")
_START_SCHEDULER = "start `dask scheduler --scheduler-file FILE`, and give that file"


class Pool(Struct):
    """An executor that is open. make: another one in its place, None where there is none.

    at_once: how many units it is given at a time; None: all. end: ends this process with an exit
    code, since a worker that hangs would keep it. warn: takes what goes wrong and changes nothing
    of what was found, in words.
    """

    name: str
    executor: Executor
    make: Callable[[], Executor] | None = None
    at_once: int | None = None
    end: Callable[[int], None] = field(default=lambda code: os._exit(code))
    warn: Callable[[str], None] = field(default=lambda _: None)

    def shut_down(self, *, wait: bool) -> None:
        """Ends the executor, and warns if that fails."""
        try:
            self.executor.shutdown(wait=wait)
        except (Exception, SystemExit) as error:  # whatever somebody's executor raises
            why = one_line(f"{type(error).__name__}: {error}")
            self.warn(f"--executor {self.name} does not shut down: {why}")


class ByPool(Struct):
    """Has the workers of a pool compare units as an order says."""

    pool: Pool
    order: Order
    groups: Callable[[Unit], Any]
    unless_changed: Callable[[Outcome, Unit], Outcome]

    @property
    def at_once(self) -> int | None:
        return self.pool.at_once

    @property
    def can_renew(self) -> bool:
        return self.pool.make is not None

    def submit(self, unit: Unit) -> Future[Any]:
        groups = self.groups(unit)
        sides = self.order.sides[0].path, self.order.sides[1].path
        sights = sights_of(sides, unit, groups)
        try:
            answer: object = self.pool.executor.submit(
                compare_unit, self.order, unit, groups, sights
            )
        except BrokenExecutor:
            raise
        except Exception as error:  # whatever somebody's executor raises ends the command
            raise self._refused(one_line(error)) from error
        if not isinstance(answer, Future):
            kind = type(answer).__name__
            raise self._refused(f"submit() returns {kind}, no concurrent.futures.Future")
        return answer

    def _refused(self, why: str) -> NotAvailableError:
        return NotAvailableError(
            f"--executor {self.pool.name} takes no work: {why}",
            remedy="give --journal, and go on with --resume and another executor",
        )

    def outcome(self, answer: Any, unit: Unit) -> Outcome:
        """Raises the error that ends the command, if the worker met one; WrongAnswerError."""
        outcome = answer_of(answer, asked(self.order, unit))
        return outcome if unit.part is None else self.unless_changed(outcome, unit)

    def renew(self) -> None:
        """Another executor in the place of one that is broken."""
        assert self.pool.make is not None
        self.pool.shut_down(wait=False)
        self.pool.executor = self.pool.make()


@contextmanager
def open_pool(
    name: str, scheduler: str | None, warn: Callable[[str], None]
) -> Iterator[Pool | None]:
    """The engine of that name; None in a process that has served as a worker and is done.

    warn: as of `Pool`.

    Raises UsageError for a name that means nothing, NotAvailableError for a library that is not
    installed, or a scheduler that cannot be reached.
    """
    if scheduler is not None and name != "dask":
        raise UsageError("--scheduler is for --executor dask", remedy="leave it out")
    if name == "mpi":
        with _mpi() as pool:
            yield pool
        return
    if name == "dask":
        with _dask(scheduler) as pool:
            yield pool
        return
    pool = _processes() if name == "process" else _of_somebody(name)
    pool.warn = warn
    try:
        yield pool
    finally:
        pool.shut_down(wait=True)


def _processes() -> Pool:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    count = os.cpu_count() or 1

    def make() -> Executor:
        # Not by fork: threads of ours would be missing in the child.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent)

    def end(code: int) -> None:
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(code)

    return Pool("process", make(), make, at_once=2 * count, end=end)


def _end_with_parent() -> None:
    """Has this process end with the one that started it, which may be killed at any time, and leave
    Ctrl-C, which reaches both, to that one.
    """
    import multiprocessing
    import signal
    from multiprocessing.connection import wait
    from threading import Thread

    parent = multiprocessing.parent_process()
    assert parent is not None
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _of_somebody(name: str) -> Pool:
    """`package.module:make`: a function without arguments that returns an executor."""
    place, _, attribute = name.partition(":")
    if not place or not attribute:
        known = ", ".join(NAMES)
        raise UsageError(
            f"--executor {name!r} is not one of {known}, nor package.module:function",
            remedy="name one of these",
        )
    try:
        make = getattr(import_module(place), attribute)
    except (Exception, SystemExit) as error:  # whatever somebody's module raises ends the command
        why = one_line(f"{type(error).__name__}: {error}")
        raise UsageError(f"--executor {name}: {why}", remedy=f"fix the name, or {place}") from error

    def checked() -> Executor:
        try:
            made = make()
        except (Exception, SystemExit) as error:  # whatever it raises ends the command
            why = one_line(f"{type(error).__name__}: {error}")
            raise NotAvailableError(
                f"--executor {name} makes no executor: {why}", remedy="fix that function"
            ) from error
        if not isinstance(made, Executor):
            raise UsageError(
                f"--executor {name} returns {type(made).__name__}, no concurrent.futures.Executor",
                remedy="return one",
            )
        return made

    return Pool(name, checked(), checked)


def mpi_world() -> Any:
    """The communicator of all processes. Raises NotAvailableError without mpi4py or an MPI, or if
    that MPI is not the one that started the processes: each would be alone.
    """
    try:
        found = import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:
        raise NotAvailableError(
            f"--executor mpi needs mpi4py and an MPI library ({one_line(error)})",
            remedy="pip install 'ciwrap[mpi]', and start with mpiexec",
        ) from error
    told = process_count()
    if told > 1 and found.Get_size() == 1:
        raise NotAvailableError(
            f"mpiexec has started {told} processes, of which mpi4py sees one",
            remedy="start with the mpiexec of the MPI library that mpi4py loads (MPI4PY_LIBMPI"
            " names it)",
        )
    return found


@contextmanager
def _mpi() -> Iterator[Pool | None]:
    world = mpi_world()

    def end(code: int) -> None:
        # Ends a process that hangs, too; MPI's own end would wait for it.
        world.Abort(code)
        os._exit(code)

    futures = import_module("mpi4py.futures")
    with futures.MPICommExecutor(world, root=0) as executor:
        if executor is not None:
            yield Pool("mpi", executor, end=end)
    if executor is None:
        yield None


@contextmanager
def _dask(scheduler: str | None) -> Iterator[Pool]:
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise NotAvailableError(
            f"--executor dask needs Dask ({one_line(error)})", remedy="pip install 'ciwrap[dask]'"
        ) from error
    if scheduler is None:
        raise UsageError(
            "--executor dask needs --scheduler",
            remedy=_START_SCHEDULER,
        )
    if not Path(scheduler).is_file():
        raise NotAvailableError(
            "there is no such file of a Dask scheduler", file=scheduler, remedy=_START_SCHEDULER
        )
    _refuse_other_file(scheduler)
    try:
        client = distributed.Client(scheduler_file=scheduler)
    except (OSError, ValueError) as error:
        raise NotAvailableError(
            f"no Dask scheduler answers: {one_line(error)}",
            file=scheduler,
            remedy=_START_SCHEDULER,
        ) from error
    from ciwrap.compare.on_dask import OnDask

    with client, OnDask(client) as executor:
        yield Pool("dask", executor)


def _refuse_other_file(scheduler: str) -> None:
    """Raises NotAvailableError for a file without a scheduler's address: Dask would look for one
    without end, or break.
    """
    import json

    try:
        written = json.loads(Path(scheduler).read_bytes())
    except (OSError, ValueError) as error:
        written, why = None, f": {one_line(error)}"
    else:
        why = ""
    if not isinstance(written, dict) or not isinstance(written.get("address"), str):
        raise NotAvailableError(
            f"is not a file that a Dask scheduler wrote{why}",
            file=scheduler,
            remedy=_START_SCHEDULER,
        )
