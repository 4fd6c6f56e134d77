"""Who compares two runs: this process, or the workers of an engine; and what is kept meanwhile.

Any `concurrent.futures.Executor` can be an engine; its library is loaded when it is asked for by
name. A worker is any process that imports this module.
"""

from __future__ import annotations

import os
import platform
import threading
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap import __version__
from ciwrap.base.errors import CiwrapError, NotAvailableError, UsageError, one_line
from ciwrap.base.late import futures, hashlib, json
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import Findings, Work
from ciwrap.explain.across import explainer
from ciwrap.formats.find_outputs import FoundOutputs
from ciwrap.formats.source_files import digest_of_sight, source_files
from ciwrap.runs.capture_file import CaptureFile
from ciwrap.runs.comparer import InProcess, UnitComparer, UnitLoop
from ciwrap.runs.journal import Answer, Journal, JournalRules, answer_of, to_text
from ciwrap.runs.questions import rules_between
from ciwrap.runs.sides import open_fingerprint, open_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack

    from ciwrap.base.progress import Progress
    from ciwrap.check.two_sides import HistoryOptions
    from ciwrap.formats.catalog import Rules
    from ciwrap.formats.find_outputs import OutputFile
    from ciwrap.formats.source_files import CheckpointKey
    from ciwrap.golden.trees import Resources
    from ciwrap.runs.capture_index import CaptureHeader
    from ciwrap.runs.comparer import UnitBook
    from ciwrap.runs.sides import Run
    from ciwrap.runs.units import Unit


class Spread(Struct):
    """How one comparison of two runs is spread.

    pool: of workers; None: this process compares. make_rules: needed with a pool. rules_text: all
    that decides verdicts, needed with a journal. journal_path: where what is done is kept; resume:
    whether one that is there goes on. list_path: where every unit lists its differences.
    has_ended_early: set once workers may still be at work on what was given up. compared_names: set
    to the names of the units of which something was compared.
    """

    pool: Pool | None = None
    make_rules: MakesRules | None = None
    rules_text: str = ""
    journal_path: Path | None = None
    resume: bool = False
    silence_seconds: float | None = None
    list_path: Path | None = None
    has_ended_early: bool = False
    compared_names: Sequence[str] = ()

    @property
    def is_by_units(self) -> bool:
        """Whether what each unit came to is reported and kept by itself."""
        return self.pool is not None or self.journal_path is not None

    def journal(self, golden: Run, new: Run, opened: ExitStack) -> Journal | None:
        """The journal, which `opened` will close. Raises as `Journal` does.

        Where nobody has said a bound, that of a capture is a rule, too.
        """
        if self.journal_path is None:
            return None
        ciwrap, numpy = versions()
        headers = [one.header for one in (golden, new) if one.header is not None]
        rules = repr((self.rules_text, [(one.origin, one.bounds) for one in headers]))
        made_with = JournalRules(
            ciwrap,
            numpy,
            str(Path.cwd()),
            str(golden.path),
            str(new.path),
            hashlib.sha256(rules.encode()).hexdigest(),
        )
        journal = Journal(
            self.journal_path, made_with, resume=self.resume, list_path=self.list_path
        )
        return opened.enter_context(journal)

    def loop(self, comparer: UnitComparer, journal: Journal | None, progress: Progress) -> UnitBook:
        """Who compares units."""
        silence = self.silence_seconds
        if self.pool is None:
            return InProcess(comparer, journal=journal, silence_seconds=silence, progress=progress)
        import uuid

        assert self.make_rules is not None
        sides = comparer.golden, comparer.new

        def groups_of(unit: Unit) -> tuple[Groups, Groups]:
            ours, theirs = (
                {key: side.groups[key] for key in unit.keys if key in side.groups} for side in sides
            )
            return ours, theirs

        ours, theirs = (
            RunOrder(
                side.path,
                None if side.capture is None else side.capture.path,
                side.verify_checksums,
                side.header,
                side.is_fingerprint,
                side.is_whole,
                CaptureFile if side.capture is None else type(side.capture),
            )
            for side in sides
        )
        order = Order(
            uuid.uuid4().hex,
            str(Path.cwd()),
            (ours, theirs),
            self.make_rules,
            comparer.options,
            comparer.work.resources,
            what_is_seen(sides),
            versions(),
            self.list_path,
        )
        engine = ByPool(self.pool, order, groups_of, comparer.unless_changed)
        return UnitLoop(engine, journal=journal, silence_seconds=silence, progress=progress)


class MakesRules(Protocol):
    """What becomes rules in another process, too: rules hold functions, which do not travel."""

    def make_rules(self) -> Rules: ...


class Seen(Struct, frozen=True):
    """A file of a run as the coordinator sees it, for workers to find out whether they do."""

    path: str
    byte_count: int
    mtime_ns: int


class RunOrder(Struct, frozen=True):
    """One of the two runs, for a worker. capture: where the one in use lies. header: of the one
    that says which bounds hold, used or not. is_fingerprint, is_whole: as of a Run. open_capture:
    the class of a fingerprint's capture.
    """

    path: Path
    capture: Path | None
    verify_checksums: bool
    header: CaptureHeader | None = None
    is_fingerprint: bool = False
    is_whole: bool = False
    open_capture: Callable[[Path], CaptureFile] = CaptureFile


class Order(Struct, frozen=True):
    """What is the same for all units of a comparison. number: like no other comparison's.

    folder: where the command was started; paths are relative to it. versions: of ciwrap and NumPy.
    """

    number: str
    folder: str
    sides: tuple[RunOrder, RunOrder]
    rules: MakesRules
    options: HistoryOptions
    resources: Resources
    seen: tuple[Seen, ...]
    versions: tuple[str, str]
    list_path: Path | None = None


# The files of a unit's checkpoints, of one run.
Groups = dict["CheckpointKey", "list[OutputFile]"]


def versions() -> tuple[str, str]:
    return __version__, np.__version__


def what_is_seen(sides: tuple[Run, Run]) -> tuple[Seen, ...]:
    """The first file of each run, or the fingerprint in its place, as it is now."""
    found = []
    for side in sides:
        paths = [files[0].path for files in side.groups.values() if files]
        for path in [side.capture.path] if side.is_fingerprint and side.capture else paths:
            try:
                status = path.stat()
            except OSError:
                continue  # the comparison tells of what is gone
            found.append(Seen(str(path), status.st_size, status.st_mtime_ns))
            break
    return tuple(found)


def sights_of(
    sides: tuple[Path, Path], unit: Unit, groups: tuple[Groups, Groups]
) -> tuple[str, ...]:
    """A digest for each checkpoint of a unit: which files this process sees, of which size and
    time. Inodes and times of change are not the same on every node that mounts a file system.
    """
    return tuple(
        digest_of_sight([_sight(*one, key) for one in zip(sides, groups, strict=True)])
        for key in unit.keys
    )


def _sight(run: Path, groups: Groups, key: CheckpointKey) -> list[tuple[str, int, int]] | None:
    try:
        files = source_files(run, groups.get(key, ()))
    except CiwrapError:
        return None
    return [(one.path, one.byte_count, one.mtime_ns) for one in files]


def question_of(order: Order, unit: Unit) -> str:
    """The question that an answer has to repeat."""
    return f"unit {unit.name} of {order.number}"


def compare_unit(
    order: Order, unit: Unit, groups: tuple[Groups, Groups], sights: tuple[str, ...]
) -> bytes:
    """Compares a unit in this process; an `Answer` as JSON. sights: what the coordinator sees."""
    question = question_of(order, unit)
    try:
        comparer = _comparer_of(order, groups)
        unit, unseen = _seen_part(order, unit, groups, sights)
        outcome = comparer.compare(unit) if unit.keys else Findings()
    except CiwrapError as error:
        return to_text(Answer(question, error=error))
    outcome.lost += unseen
    return to_text(Answer(question, outcome))


def _seen_part(
    order: Order, unit: Unit, groups: tuple[Groups, Groups], sights: tuple[str, ...]
) -> tuple[Unit, list[tuple[CheckpointKey, str]]]:
    """What of a unit this process sees as the coordinator does; and the others, with the reason.

    `_prove` looks at one file of each run; the others may be of another day all the same.
    """
    ours = sights_of((order.sides[0].path, order.sides[1].path), unit, groups)
    seen = [key for key, one, other in zip(unit.keys, ours, sights, strict=True) if one == other]
    if len(seen) == len(unit.keys):
        return unit, []
    why = (
        f"{_where()} sees other files there (size or time) than the coordinator; mount the same"
        " folders on all nodes, and let programs end first"
    )
    return replace(unit, keys=tuple(seen)), [(key, why) for key in unit.keys if key not in seen]


def _where() -> str:
    return f"a worker on {platform.node()} (process {os.getpid()})"


# Comparisons this thread has worked for: the order's number, and both sides with their captures.
_kept = threading.local()


def _comparer_of(order: Order, groups: tuple[Groups, Groups]) -> UnitComparer:
    """Raises NotAvailableError if this process is not fit for the order."""
    if getattr(_kept, "number", None) != order.number:
        _prove(order)
        for side in getattr(_kept, "sides", ()):
            side.close()
        _kept.number, _kept.sides = None, ()
        _kept.sides = tuple(_opened(one) for one in order.sides)
        _kept.rules = rules_between(order.rules.make_rules(), *_kept.sides)
        _kept.number = order.number
    rules = _kept.rules
    golden, new = (
        replace(side, groups=some, arrangement=rules.arrangement)
        for side, some in zip(_kept.sides, groups, strict=True)
    )
    work = Work(order.resources, explain=explainer)
    return UnitComparer(work, golden, new, rules, order.options, list_path=order.list_path)


def _opened(order: RunOrder) -> Run:
    if order.is_fingerprint:
        assert order.capture is not None
        return replace(
            open_fingerprint(order.path, order.capture, order.open_capture), is_whole=order.is_whole
        )
    side = open_run(
        order.path,
        FoundOutputs(()),
        order.capture,
        use_capture=order.capture is not None,
        verify_checksums=order.verify_checksums,
    )
    side.header = order.header
    return side


def _prove(order: Order) -> None:
    """Raises NotAvailableError unless this process sees what the coordinator sees."""
    where = _where()
    here = versions()
    for name, ours, theirs in zip(("ciwrap", "NumPy"), order.versions, here, strict=True):
        if ours != theirs:
            raise NotAvailableError(
                f"{where} has {name} {theirs}, the coordinator {ours}",
                remedy="start all workers in the coordinator's environment",
            )
    try:
        if os.getcwd() != order.folder:  # noqa: PTH109
            os.chdir(order.folder)
        for one in order.seen:
            status = os.stat(one.path)  # noqa: PTH116
            if (status.st_size, status.st_mtime_ns) != (one.byte_count, one.mtime_ns):
                raise NotAvailableError(
                    f"{where} sees another file (size or time) than the coordinator",
                    file=one.path,
                    remedy="mount the same folders on all nodes, and write to none meanwhile",
                )
    except FileNotFoundError as error:
        raise NotAvailableError(
            f"{where} does not see it",
            file=error.filename,
            remedy="mount the same folders on all nodes",
        ) from error


# Of Open MPI, and of MPICH and those made from it.
WORLD_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def process_count() -> int:
    """How many processes mpiexec has started with this one; 1 without mpiexec.

    An MPI library of another make sees one of them, whatever this says.
    """
    told = (os.environ.get(name, "") for name in WORLD_SIZES)
    return max((int(text) for text in told if text.isdecimal()), default=1)


NAMES = ("process", "mpi", "dask")
_START_SCHEDULER = "start `dask scheduler --scheduler-file FILE`, and give that file"


class Pool(Struct):
    """An executor that is open. make: another one in its place, None where there is none.

    at_once: how many units it is given at a time; None: all. end: ends this process with an exit
    code, since a worker that hangs would keep it. warn: takes what goes wrong and changes nothing
    of what was found, in words.
    """

    name: str
    executor: futures.Executor
    make: Callable[[], futures.Executor] | None = None
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
    unless_changed: Callable[[Findings, Unit], Findings]

    @property
    def at_once(self) -> int | None:
        return self.pool.at_once

    @property
    def can_renew(self) -> bool:
        return self.pool.make is not None

    def submit(self, unit: Unit) -> futures.Future[Any]:
        groups = self.groups(unit)
        sides = self.order.sides[0].path, self.order.sides[1].path
        sights = sights_of(sides, unit, groups)
        try:
            answer: object = self.pool.executor.submit(
                compare_unit, self.order, unit, groups, sights
            )
        except futures.BrokenExecutor:
            raise
        except Exception as error:  # whatever somebody's executor raises ends the command
            raise self._refused(one_line(error)) from error
        if not isinstance(answer, futures.Future):
            kind = type(answer).__name__
            raise self._refused(f"submit() returns {kind}, no concurrent.futures.Future")
        return answer

    def _refused(self, why: str) -> NotAvailableError:
        return NotAvailableError(
            f"--executor {self.pool.name} takes no work: {why}",
            remedy="give --journal, and go on with --resume and another executor",
        )

    def outcome(self, answer: Any, unit: Unit) -> Findings:
        """Raises the error that ends the command, if the worker met one; WrongAnswerError."""
        outcome = answer_of(answer, question_of(self.order, unit))
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

    def make() -> futures.Executor:
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

    def checked() -> futures.Executor:
        try:
            made = make()
        except (Exception, SystemExit) as error:  # whatever it raises ends the command
            why = one_line(f"{type(error).__name__}: {error}")
            raise NotAvailableError(
                f"--executor {name} makes no executor: {why}", remedy="fix that function"
            ) from error
        if not isinstance(made, futures.Executor):
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
            remedy="pip install mpi4py, and start with mpiexec",
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

    of_mpi = import_module("mpi4py.futures")
    with of_mpi.MPICommExecutor(world, root=0) as executor:
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
            f"--executor dask needs Dask ({one_line(error)})", remedy="pip install distributed"
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

    from ciwrap.runs.on_dask import OnDask

    with client, OnDask(client) as executor:
        yield Pool("dask", executor)


def _refuse_other_file(scheduler: str) -> None:
    """Raises NotAvailableError for a file without a scheduler's address: Dask would look for one
    without end, or break.
    """
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
