"""Gives units to workers and puts together what they found, whatever becomes of the workers.

A worker that dies takes a unit with it. The unit is given out again, at last checkpoint by
checkpoint, so that one that kills its workers costs no more than itself: it is lost, with the
reason, and what is lost was not compared.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ciwrap.compare.ending import EndedEarlyError, ended_words
from ciwrap.compare.outcome import Outcome, WrongAnswerError
from ciwrap.compare.units import biggest_first, name_of
from ciwrap.errors import one_line
from ciwrap.progress import NO_PROGRESS, NoProgress
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.compare.journal import Journal
    from ciwrap.compare.unit_comparer import UnitComparer
    from ciwrap.compare.units import Unit
    from ciwrap.progress import Progress

# How long a signal may have come before it is noticed while others work.
_LOOK_SECONDS = 0.2


class Answer(Protocol):
    """What the loop asks of a `concurrent.futures.Future`, or of whatever else is like one."""

    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def exception(self) -> BaseException | None: ...
    def result(self) -> Any: ...
    def cancel(self) -> bool: ...


class Engine(Protocol):
    """What units are given to. at_once: how many at a time; None: all."""

    @property
    def at_once(self) -> int | None: ...
    @property
    def can_renew(self) -> bool: ...
    def submit(self, unit: Unit) -> Answer: ...
    def outcome(self, answer: Any, unit: Unit) -> Outcome: ...
    def renew(self) -> None: ...


class _SilenceError(BaseException):
    """No Exception: it may come wherever somebody's code is at work, which must not catch it."""


class UnitBook:
    """What one comparison's units came to, whoever compares them. silence_seconds: how long to wait
    for a unit; None: for ever.

    A progress that raises EndedEarlyError, as EndableProgress does, makes a partial outcome.
    has_ended_early: whether workers may still be at work on what was given up.
    """

    has_ended_early = False

    def __init__(
        self,
        *,
        journal: Journal | None = None,
        silence_seconds: float | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._journal = journal
        self._silence = silence_seconds
        self._progress = progress
        self._found: dict[tuple[int, int], Outcome] = {}
        self._units: Sequence[Unit] = ()
        self._ended_by: str | None = None

    def run(self, units: Sequence[Unit]) -> Outcome:
        """Until all is compared or lost. Raises UsageError, and whatever ends the command."""
        self._units = units
        if self._journal is not None:
            self._journal.begin(units)
        self._progress.expect(sum(unit.byte_count for unit in units))
        try:
            left = units
            if self._journal is not None:
                left = [one for unit in units for one in self._left_of(unit)]
            self._compare(left)
        except EndedEarlyError as end:
            self._end_early(str(end))
        except _SilenceError:
            self._give_up(f"no unit was done for {self._silence:g} s; {self._remedy}")
        return self._together()

    def _compare(self, units: Sequence[Unit]) -> None:
        """Gives each of them to `_keep`, with its outcome."""
        raise NotImplementedError

    @property
    def compared_names(self) -> list[str]:
        """The names of the units, or of their checkpoints, of which something was compared."""
        found = self._found.items()
        return [name_of(order) for order, one in found if one.results or not one.lost]

    def _left_of(self, unit: Unit) -> list[Unit]:
        """What the journal does not know of a unit."""
        if self._take_known(unit):
            return []
        singles = unit.apart() if len(unit.keys) > 1 else []
        left = [one for one in singles if not self._take_known(one)]
        return left if len(left) < len(singles) else [unit]

    def _take_known(self, unit: Unit) -> bool:
        known = None if self._journal is None else self._journal.known(unit)
        if known is None:
            return False
        self._found[unit.order] = known
        self._progress.advance(unit.progress_bytes)
        return True

    def _keep(self, unit: Unit, outcome: Outcome, left_bytes: int) -> None:
        """Raises EndedEarlyError if the unit is not the last one and a signal has come.

        left_bytes: what of the unit progress has not been told yet.
        """
        if outcome.ended_by is not None and unit.part is not None:
            lost = [(key, ended_words(outcome.ended_by)) for key in unit.keys]
            outcome = Outcome(lost=lost, ended_by=outcome.ended_by)
        self._found[unit.order] = outcome
        if outcome.ended_by is not None:
            raise EndedEarlyError(outcome.ended_by)
        # What could not be read, or was not seen, is to be tried again when the journal goes on.
        if self._journal is not None and not (outcome.errors or outcome.lost):
            self._journal.add(unit, outcome)
        self._progress.advance(left_bytes)

    @property
    def _remedy(self) -> str:
        return "go on with --resume" if self._journal is not None else "give --journal next time"

    def _end_early(self, signal_name: str) -> None:
        """Gives up all that is not done; where nothing is left, nothing ended."""
        if not all(self._is_found(unit) for unit in self._units):
            self._ended_by = signal_name
            self._give_up(ended_words(signal_name))

    def _is_found(self, unit: Unit) -> bool:
        return unit.order in self._found or all(one.order in self._found for one in unit.apart())

    def _give_up(self, reason: str) -> None:
        """Names as lost all that has no outcome yet, by the plan: nothing is forgotten."""
        for unit in self._units:
            if unit.order not in self._found:
                for one in unit.apart():
                    self._found.setdefault(one.order, Outcome(lost=[(one.keys[0], reason)]))

    def _together(self) -> Outcome:
        """All outcomes in the order of their units, whatever order they came in."""
        self._give_up("nobody answered for it")
        outcome = Outcome(ended_by=self._ended_by)
        cut: list[Outcome] = []
        parts = {unit.number: unit.part for unit in self._units}
        for order in sorted(self._found):
            found = self._found[order]
            part = parts[order[0]]
            if part is None:
                outcome.add(found)
                continue
            cut.append(found)
            if part.number + 1 == part.count:
                outcome.add(_joined(cut))
                cut = []
        return outcome


def _joined(parts: Sequence[Outcome]) -> Outcome:
    """A checkpoint that was cut; of one that lost a part, only that it was not compared."""
    lost = list(dict.fromkeys(one for part in parts for one in part.lost))
    if lost:
        ended_by = next((part.ended_by for part in parts if part.ended_by is not None), None)
        return Outcome(lost=lost, ended_by=ended_by)
    from ciwrap.compare.whole import join_parts

    outcome = Outcome()
    for part in parts:
        outcome.add(part)
    outcome.results = join_parts(outcome.results, outcome.sums)
    outcome.sums.clear()
    outcome.errors = list({str(error): error for error in outcome.errors}.values())
    return outcome


class InProcess(UnitBook):
    """Compares units one by one, here."""

    def __init__(self, comparer: UnitComparer, **options: Any) -> None:
        super().__init__(**options)
        self._steps = UnitSteps(self._progress)
        self._comparer = replace(comparer, work=replace(comparer.work, progress=self._steps))

    def _compare(self, units: Sequence[Unit]) -> None:
        """Raises whatever comparing raises: nobody else can be lost."""
        for unit in units:
            self._steps.left_bytes = unit.progress_bytes
            with _alarm(self._silence):
                outcome = self._comparer.compare(unit)
            if unit.part is not None:
                outcome = self._comparer.unless_changed(outcome, unit)
            self._keep(unit, outcome, self._steps.left_bytes)


class UnitSteps(NoProgress):
    """Progress within a unit that this process compares; `expect` and the like are for the whole
    comparison. left_bytes: what of the unit has not been told yet.
    """

    left_bytes = 0

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def advance(self, byte_count: int) -> None:
        """Raises EndedEarlyError as the progress of the whole does."""
        step = min(byte_count, self.left_bytes)
        self.left_bytes -= step
        self._progress.advance(step)


class UnitLoop(UnitBook):
    """Gives units to the workers of an engine, whatever becomes of these."""

    def __init__(self, engine: Engine, **options: Any) -> None:
        super().__init__(**options)
        self._engine = engine
        self._waiting: deque[Unit] = deque()
        # What was at work when a worker died: one of them is to blame, so each is tried alone.
        self._suspects: deque[Unit] = deque()
        self._alone: Unit | None = None
        self._at_work: dict[Answer, Unit] = {}

    def _compare(self, units: Sequence[Unit]) -> None:
        self._waiting += biggest_first(units)
        try:
            while self._waiting or self._suspects or self._at_work:
                self._give_out()
                self._take_in()
        except EndedEarlyError:
            # What is done by now is kept.
            for future in [one for one in self._at_work if one.done()]:
                unit = self._at_work.pop(future)
                if _error_of(future) is None:
                    self._take_answer(unit, future.result())
            raise
        finally:
            self.has_ended_early = bool(self._at_work)
            for future in self._at_work:
                future.cancel()

    def _give_out(self) -> None:
        limit = self._engine.at_once
        while self._waiting and not self._suspects:
            if limit is not None and len(self._at_work) >= limit:
                return
            if not self._submit(self._waiting):
                return
        if self._suspects and not self._at_work:
            self._submit(self._suspects)

    def _submit(self, units: deque[Unit]) -> bool:
        """Gives out the first of them; whether somebody took it."""
        try:
            with _alarm(self._silence):
                future = self._engine.submit(units[0])
        except RuntimeError as error:
            if not _is_broken(error):
                raise
            # Somebody's death was not noticed yet.
            self._broken([], error)
            return False
        self._alone = None if self._at_work else units[0]
        self._at_work[future] = units.popleft()
        return True

    def _take_in(self) -> None:
        if not self._at_work:
            return
        done = self._next_done()
        broken: BaseException | None = None
        victims = []
        for future in done:
            unit = self._at_work.pop(future)
            error = _error_of(future)
            if error is None:
                self._take_answer(unit, future.result())
            elif _is_broken(error):
                broken = error
                victims.append(unit)
            else:
                self._failed(unit, error)
        if broken is not None:
            self._broken(victims, broken)

    def _take_answer(self, unit: Unit, answer: Any) -> None:
        try:
            outcome = self._engine.outcome(answer, unit)
        except WrongAnswerError as error:
            self._failed(unit, error)
            return
        self._keep(unit, outcome, unit.progress_bytes)

    def _next_done(self) -> set[Answer]:
        """Waits until something is done. Raises _SilenceError, and EndedEarlyError: a signal that
        comes while others work sets a mark, which has to be looked at.
        """
        done = {one for one in self._at_work if one.done()}
        if done:
            return done
        # Only where somebody else works: it brings logging along.
        from concurrent.futures import FIRST_COMPLETED, wait

        deadline = None if self._silence is None else time.monotonic() + self._silence
        others: dict[Any, Unit] = self._at_work
        while True:
            ended, _ = wait(others, _LOOK_SECONDS, FIRST_COMPLETED)
            if ended:
                return set(ended)
            if deadline is not None and time.monotonic() >= deadline:
                raise _SilenceError
            self._progress.advance(0)

    def _failed(self, unit: Unit, error: BaseException) -> None:
        """A unit that was lost: its checkpoints are tried one by one, and then with nothing beside
        them, for Dask blames all that waits at a worker that dies.
        """
        if len(unit.keys) > 1:
            self._waiting.extendleft(reversed(unit.apart()))
            return
        if unit is not self._alone:
            self._suspects.append(unit)
            return
        reason = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        self._found[unit.order] = Outcome(lost=[(unit.keys[0], reason)])

    def _broken(self, victims: list[Unit], error: BaseException) -> None:
        """A pool that is of no use any more, with all that was at work in it."""
        victims += self._at_work.values()
        self._at_work.clear()
        if len(victims) == 1:
            self._failed(victims[0], error)
        else:
            self._suspects.extend(sorted(victims, key=lambda unit: unit.order))
        # Workers may have died of the signal that this process was sent, too.
        self._progress.advance(0)
        if self._engine.can_renew:
            self._engine.renew()
        else:
            self._waiting.clear()
            self._suspects.clear()
            self._give_up(one_line(f"{type(error).__name__}: {error}; {self._remedy}"))


def _error_of(answer: Answer) -> BaseException | None:
    if not answer.cancelled():
        return answer.exception()
    from concurrent.futures import CancelledError

    return CancelledError()


def _is_broken(error: BaseException) -> bool:
    """Whether it says that a pool is of no use any more."""
    from concurrent.futures import BrokenExecutor

    return isinstance(error, BrokenExecutor)


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raises _SilenceError in the block after so many seconds, as far as it can be interrupted."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise _SilenceError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
