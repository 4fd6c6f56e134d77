"""Compares two sides unit by unit, here or by workers; captures are used first, then data.

A worker that dies takes a unit with it. The unit is given out again, at last checkpoint by
checkpoint, so that one that kills its workers costs no more than itself: it is lost, with the
reason, and what is lost was not compared.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import deque
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.values import Signature
from ciwrap.base.errors import CiwrapError, NotComparableError, StillWrittenError, one_line
from ciwrap.base.late import numpy as np
from ciwrap.base.progress import NO_PROGRESS, NoProgress
from ciwrap.check.judge import compare_values
from ciwrap.check.two_sides import (
    RUNS,
    EmptySide,
    Findings,
    HistoryOptions,
    WrongAnswerError,
    as_compared,
    chunk_elements,
    not_comparable,
    pair_up,
    refuse_incompatible,
    refuse_other_dtype,
    refuse_other_labels,
    refuse_unseen_mask,
    uncompared,
)
from ciwrap.golden.trees import tree_parameters
from ciwrap.model import Verdict
from ciwrap.model.results import BriefResults
from ciwrap.runs.differences import DifferenceList, add_details
from ciwrap.runs.questions import ElementStage, Pair, PendingComparison, TreeStage
from ciwrap.runs.sides import Look, Variables
from ciwrap.runs.units import (
    EndedEarlyError,
    biggest_first,
    ended_words,
    join_parts,
    list_of_unit,
    name_of,
    stamp_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ciwrap.base.progress import Progress
    from ciwrap.check.two_sides import Work
    from ciwrap.formats.catalog import Rules
    from ciwrap.formats.source_files import CheckpointKey
    from ciwrap.model import VariableId, VariableResult, VariableSettings
    from ciwrap.runs.journal import Journal
    from ciwrap.runs.sides import Run
    from ciwrap.runs.units import Part, Unit

# Checkpoints are looked at so many at a time, and what their captures say is fetched from the disk
# all at once. Few at first: their data are on their way then while others are looked at.
_FIRST_WINDOW = 2
_LAST_WINDOW = 64
_BOOLEAN = Signature("|b1", ())  # as masks are


def compare_checkpoints(
    work: Work,
    sides: tuple[Run, Run],
    rules: Rules,
    options: HistoryOptions,
    keys: Sequence[CheckpointKey],
    *,
    part: Part | None = None,
    differences: DifferenceList | None = None,
) -> Findings:
    """Compares these checkpoints, which both runs have, or a part of the only one.

    Raises UsageError; all else is in the outcome. The sides stay the caller's.
    """
    outcome = Findings()
    work = replace(work, data_bytes_read=0, engine=None)
    before = sum(side.capture_bytes_read for side in sides)
    brief = BriefResults(outcome.results) if options.is_brief and part is None else None
    shorten = brief.catch_up if brief is not None else _nothing
    with ElementStage(work, outcome, options.memory_bytes, differences, shorten) as data:
        run = _Comparison(work, rules, outcome, data, differences, part)
        try:
            end, fetched, count = 0, 0, _FIRST_WINDOW
            while end < len(keys):
                window, end = keys[end : end + count], end + count
                count = min(2 * count, _LAST_WINDOW)
                for side in sides:
                    side.prefetch(keys[fetched : end + count])
                fetched = end + count
                run.checkpoints(window, *sides)
                shorten()
            run.finish()
            shorten()
        except EndedEarlyError as ended:
            outcome.ended_by = str(ended)
            run.give_up(keys, outcome.ended_by)
    if options.detail_bytes > 0 and outcome.ended_by is None:
        only = None if brief is None else brief.whole_ones
        add_details(work, outcome, sides, run.keys_of, rules, options.detail_bytes, only=only)
    run.refuse_changes()
    outcome.capture_bytes_read = sum(side.capture_bytes_read for side in sides) - before
    outcome.data_bytes_read, outcome.engine = work.data_bytes_read, work.engine
    return outcome


class _Comparison:
    """Checkpoints that are compared. keys_of: the checkpoint of each variable that both have."""

    def __init__(
        self,
        work: Work,
        rules: Rules,
        outcome: Findings,
        data: ElementStage,
        differences: DifferenceList | None,
        part: Part | None,
    ) -> None:
        self._part = part
        self._is_first = part is None or part.is_first
        self._work = work
        self._rules = rules
        self._outcome = outcome
        self._data = data
        self._differences = differences
        self._trees = TreeStage(work, outcome, data)
        self._looks: list[Look] = []
        self._paired: set[CheckpointKey] = set()  # all whose variables are known
        self.keys_of: dict[VariableId, CheckpointKey] = {}

    def checkpoints(self, keys: Sequence[CheckpointKey], golden: Run, new: Run) -> None:
        """Compares a window's checkpoints, or begins to; notes the variables of both sides."""
        with ExitStack() as opened:
            for key in keys:
                ours, theirs = (self._opened(side, key, opened) for side in (golden, new))
                # What is not compared at all is reported once: with the first part.
                told = self._outcome if self._is_first else Findings()
                both = pair_up(told, self._rules, ours, theirs)
                self.keys_of.update(dict.fromkeys(both, key))
                self._paired.add(key)
                for identity in both:
                    self._work.progress.advance(0)
                    self._variable(identity, ours, theirs)
                if ours.errors and theirs.errors:
                    self._equal_files(key, ours, theirs, told)
                for one in (ours, theirs):
                    # Each part has files to open: another worker may have opened them all.
                    self._outcome.errors.extend(one.errors)
                    told.notes.extend(one.notes)
                counts = ours.attributes_left_out, theirs.attributes_left_out
                told.attributes_left_out += max(counts)
                self._data.take_answers()
                if ours.has_files_open or theirs.has_files_open:
                    # Not the files of a whole window at once.
                    self._trees.finish(self._fail)
                    opened.pop_all().close()
            self._trees.descend(self._fail)

    def _equal_files(
        self, key: CheckpointKey, ours: Variables, theirs: Variables, told: Findings
    ) -> None:
        """Compares by their bytes the files that neither side can read."""
        from ciwrap.runs.equal_files import take_equal_files

        for result, note in take_equal_files(ours, theirs):
            self.keys_of[result.id] = key
            told.results.append(result)
            told.notes.append(note)

    def _opened(self, side: Run, key: CheckpointKey, opened: ExitStack) -> Variables:
        found = Variables(side, key)
        opened.callback(found.close)
        self._looks.append(found.look)
        if found.stale is not None and self._is_first:
            self._outcome.stale.append((str(side.path), key, found.stale))
        return found

    def finish(self) -> None:
        """Waits for all that is still open."""
        self._trees.finish(self._fail)
        self._data.finish()
        if self._part is None:
            defect = "was compared by nobody, which is a defect of ciwrap"
            self._refuse_unanswered(NotComparableError(defect, remedy="please report it"))

    def give_up(self, keys: Iterable[CheckpointKey], why: str) -> None:
        """Keeps what has been found, and calls all else not compared."""
        self._data.take_answers(at_once=True)
        self._outcome.lost += [(key, ended_words(why)) for key in keys if key not in self._paired]
        self._refuse_unanswered(NotComparableError(ended_words(why)))

    def _refuse_unanswered(self, error: NotComparableError) -> None:
        """Whatever both runs have and has no result by now is not comparable."""
        known = {result.id for result in self._outcome.results}
        for identity in self.keys_of:
            if identity not in known:
                self._fail(uncompared(identity, None, None), error)

    def refuse_changes(self) -> None:
        """Takes back what was found of files that were written while they were read."""
        changed: dict[CheckpointKey, StillWrittenError] = {}
        for look in self._looks:
            change = look.change()
            if change is not None:
                changed[look.key] = StillWrittenError(
                    f"was written while it was being compared: {change}",
                    file=look.run.path,
                    remedy="let the program finish first, then compare again",
                )
        if changed:
            self._outcome.results[:] = [
                not_comparable(result, changed[self.keys_of[result.id]])
                if self.keys_of.get(result.id) in changed
                else result
                for result in self._outcome.results
            ]

    def _fail(self, result: VariableResult, error: CiwrapError) -> None:
        self._outcome.results.append(not_comparable(result, error))

    def _variable(self, identity: VariableId, ours: Variables, theirs: Variables) -> None:
        signature, other = ours.signature(identity), theirs.signature(identity)
        path = theirs.path_of(identity)
        try:
            # Before its dtype is looked at, which may be none that can be compared.
            ours.refuse_fault(identity)
            theirs.refuse_fault(identity)
        except CiwrapError as error:
            self._fail(uncompared(identity, signature, other, source_path=path), error)
            return
        settings = self._rules.settings_for(identity, signature)
        result = uncompared(
            identity,
            signature,
            other,
            bound=settings.bound,
            settings=settings,
            source_path=path,
        )
        try:
            is_series = ours.is_series(identity) and theirs.is_series(identity)
            if not is_series:
                refuse_other_labels(signature.labels, other.labels, RUNS)
            is_plain = settings.has_own_trees and not is_series and not ours.is_aligned(identity)
            is_plain &= not signature.is_text or _has_equal_trees(identity, ours, theirs)
            has_data = ours.has_data and theirs.has_data
            has_elements = math.prod(other.shape) > 0
            if is_plain and signature == other and (has_elements or not has_data):
                pair = Pair(result, settings, ours, theirs)
                if self._part is not None and _is_cut(self._part, pair):
                    self._submit_part(self._part, pair)
                elif self._is_first:
                    self._trees.compare(pair)
            elif self._is_first:
                self._whole(identity, ours, theirs, settings, path)
        except CiwrapError as error:
            self._fail(result, error)

    def _submit_part(self, part: Part, pair: Pair) -> None:
        """Has the part's chunks of a large variable compared."""
        result, shape = pair.result, pair.result.shape or ()
        parameters = tree_parameters(result.dtype or "", pair.settings, variable=result.id)
        per_chunk = chunk_elements(parameters)
        item_bytes = (result.byte_count or 0) // math.prod(shape)
        leaves = part.leaves(per_chunk * item_bytes, -(-math.prod(shape) // per_chunk))
        if leaves:
            numbers = np.arange(leaves.start, leaves.stop, dtype=np.int64)
            pending = PendingComparison(result, parameters, shape, numbers, is_part=True)
            self._data.submit(pending, pair.ours, pair.theirs)

    def _whole(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        settings: VariableSettings,
        source_path: str | None,
    ) -> None:
        """In the general way: masks, aligned rows, other dtypes or shapes, arrays of nothing."""
        from ciwrap.check.other_bounds import Circle, combined_parts
        from ciwrap.golden.scale import in_scale_of

        if not (ours.has_data and theirs.has_data):
            one, other = ours.signature(identity), theirs.signature(identity)
            refuse_incompatible(one, other, RUNS, is_strict=settings.strict_shape)
            refuse_other_dtype(one, other, RUNS)
        refuse_unseen_mask(
            identity,
            settings,
            lambda one: self._rules.settings_for(one, _BOOLEAN).mask,
            lambda one: not self._rules.is_ignored(one),
        )
        golden = ours.values(identity, settings.mask)
        new = theirs.values(identity, settings.mask)
        orders = ours.order_of(identity), theirs.order_of(identity)
        if orders[0] is not None and orders[1] is not None:
            orders[1].refuse_other_ids(orders[0].ids, RUNS.sides)
        result = compare_values(
            golden,
            new,
            settings,
            identity,
            work=self._work,
            source_path=source_path,
            aligned_by=next((one.name for one in orders if one is not None), None),
        )
        self._outcome.results.append(result)
        if result.verdict is not Verdict.NOT_COMPARABLE:
            self._work.data_bytes_read += golden.byte_count + new.byte_count
        if result.text is not None and self._differences is not None:
            self._outcome.notes.append(
                f"--list holds no numbers of texts; the result says where {identity.text} differs"
            )
        elif result.verdict is Verdict.DIFFER and self._differences is not None:
            golden, new, settings = as_compared(golden, new, settings)
            settings = in_scale_of(golden, settings, identity)
            circle = None
            if settings.period:
                circle = Circle(golden.dtype, tuple(golden.shape), settings)
                parts = [(circle.parameters, new)]
            elif settings.combine != "sum":
                parts = combined_parts(golden, new, settings, identity)
            else:
                own = tree_parameters(golden.dtype, settings, variable=identity.text)
                parts = [(own, new)]
            ids = None if orders[0] is None else orders[0].ids
            for parameters, chosen in parts:
                self._differences.add_values(identity, parameters, golden, chosen, circle, ids)


def _has_equal_trees(identity: VariableId, ours: Variables, theirs: Variables) -> bool:
    """Whether captures tell that two texts are equal byte for byte; what differs in them no tree
    tells.
    """
    mine, other = ours.captured.get(identity), theirs.captured.get(identity)
    if mine is None or other is None or mine.plain is None or other.plain is None:
        return False
    one, two = mine.plain, other.plain
    return one.made_with == two.made_with and one.root == two.root


def _nothing() -> None:
    pass


def _is_cut(part: Part, pair: Pair) -> bool:
    """Whether only the part's chunks are compared; all other variables are the first part's."""
    identity = pair.result.id
    is_captured = identity in pair.ours.captured or identity in pair.theirs.captured
    return not is_captured and (pair.result.byte_count or 0) > part.byte_count


class UnitComparer(Struct):
    """Compares units of two runs. Not thread safe; the sides stay the caller's.

    differences: takes every differing element of all units. list_path: has every unit write a list
    of its own instead, named after it and its number.
    """

    work: Work
    golden: Run
    new: Run
    rules: Rules
    options: HistoryOptions
    differences: DifferenceList | None = None
    list_path: Path | None = None

    def __post_init__(self) -> None:
        self.new.other = self.golden

    def compare(self, unit: Unit) -> Findings:
        """Raises UsageError and WriteFailedError; all else is in the outcome."""
        with ExitStack() as opened:
            differences = self.differences
            if self.list_path is not None:
                target = list_of_unit(self.list_path, unit)
                differences = opened.enter_context(DifferenceList(target))
            sides = self.golden, self.new
            shared = [key for key in unit.keys if all(key in side.groups for side in sides)]
            outcome = compare_checkpoints(
                self.work,
                sides,
                self.rules,
                self.options,
                shared,
                part=unit.part,
                differences=differences,
            )
        if outcome.ended_by is not None:
            why = ended_words(outcome.ended_by)
            outcome.lost += [(key, why) for key in unit.keys if key not in shared]
        elif len(shared) < len(unit.keys):
            outcome.add(_one_sided(*sides, self.rules, unit.keys))
        return outcome

    def unless_changed(self, outcome: Findings, unit: Unit) -> Findings:
        """The outcome of a part; of one whose files are not what they were in the plan, that it is
        lost, for the parts before it are of other numbers. For the process that made the plan
        alone: what a file is known by may differ between machines.
        """
        if (stamp_of(unit.keys[0], self.golden, self.new),) == unit.stamps:
            return outcome
        why = (
            "was written while its parts were being compared; let the program finish first, then"
            " compare again"
        )
        return Findings(lost=[(unit.keys[0], why)], ended_by=outcome.ended_by)


def _one_sided(golden: Run, new: Run, rules: Rules, keys: Iterable[CheckpointKey]) -> Findings:
    """The variables of checkpoints that only one run has."""
    outcome = Findings()
    for key in keys:
        if key in golden.groups and key in new.groups:
            continue
        is_reference = key in golden.groups
        found = Variables(golden if is_reference else new, key)
        found.close()
        ours, theirs = (found, EmptySide()) if is_reference else (EmptySide(), found)
        pair_up(outcome, rules, ours, theirs)
        outcome.errors += found.errors
        if found.stale is not None:
            outcome.stale.append((str(found.run.path), key, found.stale))
    return outcome


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
    def outcome(self, answer: Any, unit: Unit) -> Findings: ...
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
        self._found: dict[tuple[int, int], Findings] = {}
        self._units: Sequence[Unit] = ()
        self._ended_by: str | None = None

    def run(self, units: Sequence[Unit]) -> Findings:
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

    def _keep(self, unit: Unit, outcome: Findings, left_bytes: int) -> None:
        """Raises EndedEarlyError if the unit is not the last one and a signal has come.

        left_bytes: what of the unit progress has not heard of yet.
        """
        if outcome.ended_by is not None and unit.part is not None:
            lost = [(key, ended_words(outcome.ended_by)) for key in unit.keys]
            outcome = Findings(lost=lost, ended_by=outcome.ended_by)
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
                    self._found.setdefault(one.order, Findings(lost=[(one.keys[0], reason)]))

    def _together(self) -> Findings:
        """All outcomes in the order of their units, whatever order they came in."""
        self._give_up("nobody answered for it")
        outcome = Findings(ended_by=self._ended_by)
        cut: list[Findings] = []
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


def _joined(parts: Sequence[Findings]) -> Findings:
    """A checkpoint that was cut; of one that lost a part, only that it was not compared."""
    lost = list(dict.fromkeys(one for part in parts for one in part.lost))
    if lost:
        ended_by = next((part.ended_by for part in parts if part.ended_by is not None), None)
        return Findings(lost=lost, ended_by=ended_by)

    outcome = Findings()
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
    comparison. left_bytes: what of the unit has not been reported yet.
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
        self._found[unit.order] = Findings(lost=[(unit.keys[0], reason)])

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
