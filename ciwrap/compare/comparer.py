"""Compares what two sides hold, variable by variable: a run with its golden, or with another run.

Of two runs, captures are asked first, and data for what these leave open.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ciwrap.captures.checkpoint import Look, Variables
from ciwrap.compare.by_data import ElementStage
from ciwrap.compare.by_trees import Pair, TreeStage
from ciwrap.compare.ending import EndedEarlyError, ended_words
from ciwrap.compare.fit import (
    RUNS,
    in_one_dtype,
    refuse_misfit,
    refuse_other_dtype,
    refuse_other_labels,
    refuse_unseen_mask,
)
from ciwrap.compare.law import begun, not_comparable
from ciwrap.compare.outcome import HistoryOptions, Outcome
from ciwrap.compare.pairing import pair_up
from ciwrap.compare.parts import chunk_elements
from ciwrap.compare.question import PendingComparison
from ciwrap.errors import CiwrapError, NotComparableError, StillWrittenError
from ciwrap.late import numpy as np
from ciwrap.model import Verdict
from ciwrap.model.brief import BriefResults
from ciwrap.structs import replace
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Run
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.units import Part
    from ciwrap.compare.work import Work
    from ciwrap.model import VariableId, VariableResult, VariableSettings

# Checkpoints are looked at so many at a time, and what their captures say is fetched from the disk
# all at once. Few at first: their data are on their way then while others are looked at.
_FIRST_WINDOW = 2
_LAST_WINDOW = 64
_BOOLEAN = "|b1"  # as masks are


def compare_checkpoints(
    work: Work,
    sides: tuple[Run, Run],
    rules: Rules,
    options: HistoryOptions,
    keys: Sequence[CheckpointKey],
    *,
    part: Part | None = None,
    differences: DifferenceList | None = None,
) -> Outcome:
    """Compares these checkpoints, which both runs have, or a part of the only one.

    Raises UsageError; all else is in the outcome. The sides stay the caller's.
    """
    outcome = Outcome()
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
        from ciwrap.compare.detailed import add_details

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
        outcome: Outcome,
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
                # What is not compared at all is told of once: with the first part.
                told = self._outcome if self._is_first else Outcome()
                both = pair_up(told, self._rules, ours, theirs)
                self.keys_of.update(dict.fromkeys(both, key))
                self._paired.add(key)
                for identity in both:
                    self._work.progress.advance(0)
                    self._variable(identity, ours, theirs)
                for one in (ours, theirs):
                    # Each part has files to open: another worker may have opened them all.
                    self._outcome.errors.extend(one.errors)
                    told.notes.extend(one.notes)
                self._data.take_answers()
                if ours.has_files_open or theirs.has_files_open:
                    # Not the files of a whole window at once.
                    self._trees.finish(self._fail)
                    opened.pop_all().close()
            self._trees.descend(self._fail)

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
                self._fail(begun(identity, None, None), error)

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
        result = begun(identity, signature, other, source_path=theirs.path_of(identity))
        try:
            # Before its dtype is looked at, which may be none that can be compared.
            ours.refuse_fault(identity)
            theirs.refuse_fault(identity)
        except CiwrapError as error:
            self._fail(result, error)
            return
        settings = self._rules.settings_for(identity, signature.dtype)
        result = replace(
            result,
            bound=settings.bound,
            mask=settings.mask,
            period=settings.period or None,
            has_fill_values=bool(settings.fill_values),
        )
        try:
            is_series = ours.is_series(identity) and theirs.is_series(identity)
            if not is_series:
                refuse_other_labels(signature.labels, other.labels, RUNS)
            is_plain = settings.has_own_trees and not is_series and not ours.is_aligned(identity)
            is_plain &= not signature.is_text
            has_data = ours.has_data and theirs.has_data
            has_elements = math.prod(other.shape) > 0
            if is_plain and signature == other and (has_elements or not has_data):
                pair = Pair(result, settings, ours, theirs)
                if self._part is not None and _is_cut(self._part, pair):
                    self._submit_part(self._part, pair)
                elif self._is_first:
                    self._trees.compare(pair)
            elif self._is_first:
                self._whole(identity, ours, theirs, settings, result.source_path)
        except CiwrapError as error:
            self._fail(result, error)

    def _submit_part(self, part: Part, pair: Pair) -> None:
        """Has the part's chunks of a large variable compared."""
        result, shape = pair.result, pair.result.shape or ()
        parameters = tree_parameters(result.dtype or "", pair.settings, variable=result.id.text)
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
        from ciwrap.catalog.rows import refuse_other_ids
        from ciwrap.compare.circle import Circle
        from ciwrap.compare.combined import combined_parts
        from ciwrap.compare.judge import compare_values

        if not (ours.has_data and theirs.has_data):
            one, other = ours.signature(identity), theirs.signature(identity)
            refuse_misfit(one, other, RUNS, is_strict=settings.strict_shape)
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
            refuse_other_ids(orders[0].name, orders[0].ids, orders[1].ids, RUNS.sides)
        result = compare_values(
            golden,
            new,
            settings,
            identity,
            work=self._work,
            source_path=source_path,
            aligned_by=None if orders[0] is None else orders[0].name,
        )
        self._outcome.results.append(result)
        if result.verdict is not Verdict.NOT_COMPARABLE:
            self._work.data_bytes_read += golden.byte_count + new.byte_count
        if result.text is not None and self._differences is not None:
            self._outcome.notes.append(
                f"--list holds no numbers of texts; the result says where {identity.text} differs"
            )
        elif result.verdict is Verdict.DIFFER and self._differences is not None:
            golden, new, settings = in_one_dtype(golden, new, settings)
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


def _nothing() -> None:
    pass


def _is_cut(part: Part, pair: Pair) -> bool:
    """Whether only the part's chunks are compared; all other variables are the first part's."""
    identity = pair.result.id
    is_captured = identity in pair.ours.captured or identity in pair.theirs.captured
    return not is_captured and (pair.result.byte_count or 0) > part.byte_count
