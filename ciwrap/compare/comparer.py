"""Checkpoints of two runs: their captures first, then the data of what these leave open."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from ciwrap.captures.capture_trees import has_own_tree
from ciwrap.captures.checkpoint import Variables
from ciwrap.captures.index import bound_of_tree
from ciwrap.compare.by_data import ByData
from ciwrap.compare.by_trees import ByTrees
from ciwrap.compare.detailed import add_details
from ciwrap.compare.outcome import HistoryOptions, Outcome
from ciwrap.compare.pair import compare_variable, in_one_dtype
from ciwrap.compare.periodic import Circle
from ciwrap.compare.variable import not_comparable, reason_of
from ciwrap.errors import CiwrapError, ExitCode
from ciwrap.model import Verdict
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.by_trees import Fail
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.progress import Progress

# Checkpoints are looked at so many at a time, and what their captures say is fetched from the disk
# all at once. Few at first: their data are on their way then while others are looked at.
_FIRST_WINDOW = 2
_LAST_WINDOW = 64


class Comparer:
    """Compares checkpoints of two runs. Not thread safe; the sides stay the caller's."""

    def __init__(
        self,
        golden: Side,
        new: Side,
        rules: Rules,
        options: HistoryOptions,
        resources: Resources = DEFAULT_RESOURCES,
        progress: Progress = NO_PROGRESS,
        differences: DifferenceList | None = None,
    ) -> None:
        self._differences = differences
        self._golden = golden
        self._new = new
        self._rules = rules
        self._options = options
        self._resources = resources
        self._progress = progress

    def compare(self, keys: Iterable[CheckpointKey]) -> Outcome:
        """Compares these checkpoints. Raises UsageError; all else is in the outcome."""
        outcome = Outcome()
        before = self._golden.capture_bytes_read + self._new.capture_bytes_read
        keys_of: dict[VariableId, CheckpointKey] = {}
        memory_bytes = self._options.memory_bytes
        with ByData(
            outcome, self._resources, memory_bytes, self._differences, self._progress
        ) as data:
            trees = ByTrees(outcome, data, self._resources, self._progress)
            windows = list(_windows(keys))
            for window, coming in zip(windows, [*windows[1:], []], strict=True):
                for side in (self._golden, self._new):
                    side.prefetch([*window, *coming] if window is windows[0] else coming)
                self._checkpoints(window, keys_of, outcome, trees, data)
            trees.finish(_noting(outcome))
            data.finish()
        if self._options.detail_bytes > 0:
            add_details(
                outcome,
                (self._golden, self._new),
                keys_of,
                self._rules,
                self._options.detail_bytes,
                self._resources,
            )
        after = self._golden.capture_bytes_read + self._new.capture_bytes_read
        outcome.capture_bytes_read = after - before
        return outcome

    def _checkpoints(
        self,
        keys: Sequence[CheckpointKey],
        keys_of: dict[VariableId, CheckpointKey],
        outcome: Outcome,
        trees: ByTrees,
        data: ByData,
    ) -> None:
        """Compares a window's checkpoints, or begins to; notes the variables of both sides."""
        fail = _noting(outcome)
        with ExitStack() as opened:
            for key in keys:
                ours = Variables(self._golden, key, outcome)
                opened.callback(ours.close)
                theirs = Variables(self._new, key, outcome)
                opened.callback(theirs.close)
                for identity in self._both(ours, theirs, outcome):
                    keys_of[identity] = key
                    try:
                        self._variable(identity, ours, theirs, outcome, trees, data)
                    except CiwrapError as error:
                        fail(identity, error, theirs.path_of(identity))
                data.take_answers()
                if ours.has_files_open or theirs.has_files_open:
                    # Not the files of a whole window at once.
                    trees.finish(fail)
                    opened.pop_all().close()
            trees.descend(fail)

    def _both(self, ours: Variables, theirs: Variables, outcome: Outcome) -> list[VariableId]:
        """The variables to compare; notes the others."""
        both = []
        for identity in sorted({*ours.identities, *theirs.identities}):
            if self._rules.is_ignored(identity):
                outcome.ignored.append(identity)
            elif identity not in theirs.identities:
                outcome.missing.append(identity)
            elif identity not in ours.identities:
                outcome.extra.append(identity)
            else:
                both.append(identity)
        return both

    def _variable(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        outcome: Outcome,
        trees: ByTrees,
        data: ByData,
    ) -> None:
        dtype, shape = ours.describe(identity)
        settings = self._settings_of(identity, ours, theirs)
        source_path = theirs.path_of(identity)
        if (
            not has_own_tree(settings)
            or theirs.describe(identity) != (dtype, shape)
            or math.prod(shape) == 0
        ):
            self._whole(identity, ours, theirs, settings, source_path, outcome)
            return
        facts = {
            "dtype": dtype,
            "shape": shape,
            "source_path": source_path,
            "bound": settings.bound,
        }
        if not trees.compare(identity, ours, theirs, settings, facts):
            data.all_elements(identity, ours, theirs, settings, facts)

    def _settings_of(
        self, identity: VariableId, ours: Variables, theirs: Variables
    ) -> VariableSettings:
        settings = self._rules.settings_for(identity, ours.describe(identity)[0])
        if not self._options.bounds_from_captures:
            return settings
        for one in (ours.captured.get(identity), theirs.captured.get(identity)):
            if one is not None and one.plain is not None:
                p = one.plain.parameters
                return replace(
                    settings,
                    bound=bound_of_tree(one.plain),
                    equal_nan=p.equal_nan,
                    fill_values=p.fill_values,
                )
        return settings

    def _whole(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        settings: VariableSettings,
        source_path: str,
        outcome: Outcome,
    ) -> None:
        """In the general way: masks, other dtypes or shapes, arrays of nothing."""
        golden = ours.values(identity, settings.mask)
        new = theirs.values(identity, settings.mask)
        compared = compare_variable(
            golden,
            new,
            settings,
            identity,
            source_path=source_path,
            resources=self._resources,
            progress=self._progress,
        )
        outcome.results.append(compared.result)
        outcome.engine = compared.engine or outcome.engine
        if compared.result.verdict is not Verdict.NOT_COMPARABLE:
            outcome.data_bytes_read += golden.byte_count + new.byte_count
        if compared.result.verdict is Verdict.DIFFER and self._differences is not None:
            golden, new, settings = in_one_dtype(golden, new, settings)
            circle = Circle(golden.dtype, golden.shape, settings) if settings.period else None
            parameters = (
                tree_parameters(golden.dtype, settings, variable=identity.text)
                if circle is None
                else circle.parameters
            )
            self._differences.add_values(identity, parameters, golden, new, circle)


def _noting(outcome: Outcome) -> Fail:
    """Takes down that a variable cannot be compared; raises a UsageError on."""

    def fail(identity: VariableId, error: CiwrapError, source_path: str) -> None:
        if error.exit_code is ExitCode.USAGE:
            raise error
        outcome.results.append(not_comparable(identity, reason_of(error), source_path=source_path))

    return fail


def _windows(keys: Iterable[CheckpointKey]) -> Iterator[list[CheckpointKey]]:
    left, count = iter(keys), _FIRST_WINDOW
    while window := list(islice(left, count)):
        yield window
        count = min(2 * count, _LAST_WINDOW)
