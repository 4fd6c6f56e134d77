"""Workers that do not fit, an MPI of another make, and how runs are cut into units."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from msgspec.structs import replace

from ciwrap.base.errors import NotAvailableError
from ciwrap.check.two_sides import Findings, HistoryOptions, WrongAnswerError
from ciwrap.formats.catalog import Rules
from ciwrap.formats.find_outputs import find_in
from ciwrap.golden.trees import DEFAULT_RESOURCES
from ciwrap.model import VariableSettings
from ciwrap.runs import spread as engines
from ciwrap.runs import spread as mpi_job
from ciwrap.runs import units
from ciwrap.runs.comparer import UnitLoop
from ciwrap.runs.journal import answer_of
from ciwrap.runs.sides import Run, open_run
from ciwrap.runs.spread import (
    Order,
    RunOrder,
    Seen,
    compare_unit,
    question_of,
    sights_of,
    versions,
    what_is_seen,
)
from ciwrap.runs.units import EndableProgress, Ending, Part, Unit, biggest_first, plan_units

if TYPE_CHECKING:
    from pathlib import Path


_Asked: TypeAlias = "tuple[Order, Unit, Any, Any]"


class Plain:
    def make_rules(self) -> Rules:
        return Rules(lambda *_: VariableSettings(), lambda _: False)


def sides_of(folder: Path, sizes: dict[int, int]) -> tuple[Run, Run]:
    for run in "AB":
        for iteration, count in sizes.items():
            place = folder / run / f"iter_{iteration}"
            place.mkdir(parents=True, exist_ok=True)
            np.save(place / "x.npy", np.arange(float(count)))
    ours, theirs = (open_run(folder / run, find_in(folder / run)) for run in "AB")
    return ours, theirs


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Asked:
    monkeypatch.chdir(tmp_path)
    sides = sides_of(tmp_path, {1: 10, 2: 20})
    [unit] = plan_units(*sides)
    made = Order(
        str(tmp_path),
        str(tmp_path),
        (RunOrder(sides[0].path, None, False), RunOrder(sides[1].path, None, False)),
        Plain(),
        HistoryOptions(1 << 20),
        DEFAULT_RESOURCES,
        what_is_seen(sides),
        versions(),
    )
    groups = sides[0].groups, sides[1].groups
    return made, unit, groups, sights_of((sides[0].path, sides[1].path), unit, groups)


def test_a_worker_that_fits(order: _Asked) -> None:
    outcome = answer_of(compare_unit(*order), question_of(*order[:2]))
    assert [(one.name, one.iteration) for one in outcome.results] == [("x", 1), ("x", 2)]
    assert len(order[0].seen) == 2


@pytest.mark.parametrize(
    ("place", "text"), [(0, "has ciwrap {here}, the coordinator 9"), (1, "has NumPy {here}")]
)
def test_a_worker_of_another_version(order: _Asked, place: int, text: str) -> None:
    other = list(versions())
    said = text.format(here=other[place])
    other[place] = "9"
    answer = compare_unit(replace(order[0], versions=(other[0], other[1])), *order[1:])
    with pytest.raises(NotAvailableError, match=said):
        answer_of(answer, question_of(*order[:2]))


def test_a_worker_that_sees_other_files(order: _Asked, tmp_path: Path) -> None:
    seen = order[0].seen
    for wrong, said in (
        (replace(seen[1], byte_count=1), "sees another file"),
        (replace(seen[1], mtime_ns=1), "sees another file"),
        (Seen(str(tmp_path / "B/gone"), 1, 1), "does not see it"),
    ):
        answer = compare_unit(replace(order[0], seen=(seen[0], wrong)), *order[1:])
        with pytest.raises(NotAvailableError, match=said):
            answer_of(answer, question_of(*order[:2]))
    answer = compare_unit(replace(order[0], folder=str(tmp_path / "none")), *order[1:])
    with pytest.raises(NotAvailableError, match="does not see it"):
        answer_of(answer, question_of(*order[:2]))


@pytest.mark.parametrize("change", ["size", "time", "gone"])
def test_a_worker_that_sees_other_files_of_one_checkpoint(
    order: _Asked, tmp_path: Path, change: str
) -> None:
    """A mount of another day may have the first file of each run as it is here."""
    path = tmp_path / "B/iter_2/x.npy"
    if change == "size":
        np.save(path, np.arange(21.0))
    elif change == "time":
        os.utime(path, ns=(1, 1))
    else:
        path.unlink()
    outcome = answer_of(compare_unit(*order), question_of(*order[:2]))
    assert [one.iteration for one in outcome.results] == [1]
    [(key, why)] = outcome.lost
    assert key == (2, None)
    assert "sees other files there (size or time) than the coordinator" in why


def test_what_a_worker_did_not_see_is_compared_when_a_journal_goes_on() -> None:
    class Notes:
        former = ()

        def __init__(self) -> None:
            self.kept: list[Unit] = []

        def begin(self, units: Any) -> None:
            pass

        def known(self, unit: Unit) -> None:
            return None

        def add(self, unit: Unit, outcome: Findings) -> None:
            self.kept.append(unit)

    journal = Notes()
    planned = [Unit(0, ((1, 0),), 10), Unit(1, ((2, 0),), 5)]
    answers = Answers(Findings(lost=[((1, 0), "not seen")]), Findings())
    outcome = UnitLoop(answers, journal=journal).run(planned)  # type: ignore[arg-type]
    assert outcome.lost == [((1, 0), "not seen")]
    assert journal.kept == planned[1:]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "is of the type NoneType"),
        (b"no JSON", "cannot be read: it is not JSON"),
        (b"{}", "cannot be read: `asked` is missing"),
        (b'{"asked": "unit 1 of 1"}', "gave the answer to another question"),
        (b'{"asked": "unit 0 of 1"}', "says nothing"),
    ],
)
def test_what_is_no_answer(answer: object, said: str) -> None:
    with pytest.raises(WrongAnswerError, match=said):
        answer_of(answer, "unit 0 of 1")


# --- units ----------------------------------------------------------------------------------------


def test_units_are_batches_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "UNIT_BYTES", 5000)
    sides = sides_of(tmp_path, {1: 10, 2: 10, 3: 400, 4: 10, 5: 10})
    planned = plan_units(*sides)
    assert [[key[0] for key in unit.keys] for unit in planned] == [[1, 2], [3], [4, 5]]
    assert [unit.number for unit in biggest_first(planned)] == [1, 0, 2]
    assert planned[1].byte_count == sum(
        (tmp_path / run / "iter_3/x.npy").stat().st_size for run in "AB"
    )
    # An earlier plan stays, whatever sizes are now; what is new goes beside it.
    former = [[(2, None), (3, None), (9, None)]]
    again = plan_units(*sides, former=former)
    assert [[key[0] for key in unit.keys] for unit in again] == [[1, 4, 5], [2, 3]]


def test_parts_have_every_chunk_once() -> None:
    for chunk, count, size in ((64, 100, 1000), (4096, 7, 4096), (100, 33, 64)):
        total = -(-chunk * count // size)
        for parts in (total, total + 3, max(1, total // 2)):
            cut = [Part(number, parts, size).leaves(chunk, count) for number in range(parts)]
            assert [leaf for leaves in cut for leaf in leaves] == list(range(count))


def test_what_nobody_answers_for_is_lost() -> None:
    """An engine that swallows checkpoints is no way to a match."""

    class Swallows:
        at_once, can_renew, told_bytes = None, False, 0

        def submit(self, unit: Unit) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(RuntimeError("no such worker"))
            return future

        def outcome(self, answer: Any, unit: Unit) -> Findings:
            return answer

        def renew(self) -> None:
            raise AssertionError

    planned = [Unit(0, ((1, 0), (1, 1)), 10), Unit(1, ((2, 0),), 5)]
    outcome = UnitLoop(Swallows()).run(planned)
    assert outcome.lost == [
        (key, "RuntimeError: no such worker") for key in ((1, 0), (1, 1), (2, 0))
    ]


def test_who_worked_beside_the_one_to_blame_is_not_lost() -> None:
    """As Dask does it: what waits at a worker that dies is blamed with what killed it."""

    class BlamesAll:
        at_once, can_renew, told_bytes = None, False, 0

        def __init__(self) -> None:
            self._at_work: list[tuple[Unit, Future[Any]]] = []

        def submit(self, unit: Unit) -> Future[Any]:
            future: Future[Any] = Future()
            # `done` is asked once all that is to be at work is: then the worker dies.
            future.done = lambda: self._end() or Future.done(future)  # type: ignore[method-assign]
            self._at_work.append((unit, future))
            return future

        def _end(self) -> None:
            ended, self._at_work = self._at_work, []
            is_bad = any((2, 1) in unit.keys for unit, _ in ended)
            for unit, future in ended:
                if is_bad:
                    future.set_exception(RuntimeError("the worker died"))
                else:
                    future.set_result(Findings(notes=[str(key) for key in unit.keys]))

        def outcome(self, answer: Any, unit: Unit) -> Findings:
            return answer

        def renew(self) -> None:
            raise AssertionError

    planned = [Unit(0, ((1, 0), (1, 1)), 10), Unit(1, ((2, 0), (2, 1)), 5), Unit(2, ((3, 0),), 5)]
    outcome = UnitLoop(BlamesAll()).run(planned)
    assert outcome.lost == [((2, 1), "RuntimeError: the worker died")]
    assert outcome.notes == ["(1, 0)", "(1, 1)", "(2, 0)", "(3, 0)"]


class Answers:
    """Has an answer for each unit; a signal has come before the one whose answer says so."""

    at_once, can_renew, told_bytes = 1, False, 0

    def __init__(self, *answers: Findings) -> None:
        self._answers = list(answers)

    def submit(self, unit: Unit) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self._answers.pop(0))
        return future

    def outcome(self, answer: Any, unit: Unit) -> Findings:
        return answer

    def renew(self) -> None:
        raise AssertionError


def test_a_signal_in_the_last_part_leaves_no_match() -> None:
    """What other parts of the checkpoint came to does not stand for the whole."""
    keys = ((1, None),)
    whole = Unit(0, ((0, None),), 2)
    parts = [Unit(1 + number, keys, 1, Part(number, 2, 1)) for number in range(2)]
    engine = Answers(Findings(notes=["x"]), Findings(notes=["y"]), Findings(ended_by="SIGTERM"))
    outcome = UnitLoop(engine).run([whole, *parts])
    assert outcome.ended_by == "SIGTERM"
    assert outcome.lost == [((1, None), "SIGTERM ended the comparison first")]
    assert outcome.notes == ["x"]


class Told:
    """Progress that is told to end once so many bytes are done."""

    def __init__(self, at: int) -> None:
        self._ending, self._left = Ending(), at
        self.progress = EndableProgress(self, self._ending)

    def begin(self, label: str, total_bytes: int | None) -> None: ...
    def expect(self, total_bytes: int) -> None: ...
    def end(self) -> None: ...

    def advance(self, byte_count: int) -> None:
        self._left -= byte_count
        if self._left <= 0 and self._ending.signal_name is None:
            self._ending.tell(signal.SIGHUP)


@pytest.mark.parametrize(("at", "found"), [(1, 2), (2, 3), (3, 3)])
def test_what_is_done_when_a_signal_comes_is_kept(at: int, found: int) -> None:
    planned = [Unit(number, ((number, None),), 1) for number in range(3)]
    engine = Answers(*(Findings(notes=[str(number)]) for number in range(3)))
    outcome = UnitLoop(engine, progress=Told(at).progress).run(planned)
    assert outcome.notes == ["0", "1", "2"][:found]
    assert [key[0] for key, _ in outcome.lost] == [0, 1, 2][found:]
    assert outcome.ended_by == (None if found == 3 else "SIGHUP")


# --- MPI ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_an_mpiexec_of_another_mpi(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every process would be rank 0 of one, and compare everything."""
    module = SimpleNamespace(COMM_WORLD=SimpleNamespace(Get_size=lambda: 1))
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=module))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", module)
    for other in mpi_job.WORLD_SIZES:
        monkeypatch.delenv(other, raising=False)
    assert engines.mpi_world() is module.COMM_WORLD
    monkeypatch.setenv(name, "1")
    assert engines.mpi_world() is module.COMM_WORLD
    monkeypatch.setenv(name, "4")
    with pytest.raises(
        NotAvailableError, match="has started 4 processes, of which mpi4py sees one"
    ):
        engines.mpi_world()
