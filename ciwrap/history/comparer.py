"""Checkpoints of two runs: their captures first, then the data of what these leave open."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.compare.convert import ConvertedValues
from ciwrap.compare.pair import compare_variable
from ciwrap.compare.parts import MOST_INDICES, suspect_pieces
from ciwrap.compare.variable import Compared, not_comparable, reason_of
from ciwrap.errors import (
    CiwrapError,
    CorruptCaptureError,
    ExitCode,
    from_core_error,
)
from ciwrap.golden.capture import DEFAULT_RESOURCES, Resources, build_tree, tree_parameters
from ciwrap.golden.progress import NO_PROGRESS
from ciwrap.golden.values import as_bytes
from ciwrap.history.capture import has_own_tree
from ciwrap.history.checkpoint import Variables, comparable_trees, fitting
from ciwrap.history.detailed import add_details
from ciwrap.history.index import bound_of_tree, read_tree
from ciwrap.history.outcome import HistoryOptions, Outcome
from ciwrap.history.question import Question, result_of, streamed_result
from ciwrap.history.stage_one import Descent, prefetch_trees, roots_match, suspect_leaves
from ciwrap.history.stage_two import Stream
from ciwrap.model import Evidence, VariableResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.compare.runs import Rules
    from ciwrap.golden.progress import Progress
    from ciwrap.history.differences import DifferenceList
    from ciwrap.history.index import CapturedVariable, CheckpointKey, StoredTree
    from ciwrap.history.side import Side
    from ciwrap.model import VariableId, VariableSettings

# From this share of suspect chunks on, reading everything in order beats reading here and there.
_STREAM_FROM = 0.5
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
        self._outcome = Outcome()
        self._stream = Stream(resources, options.memory_bytes)
        # Two captured variables whose roots differ: where, is still to be looked for.
        self._open: list[tuple[Descent, Variables, Variables]] = []

    def compare(self, keys: Iterable[CheckpointKey]) -> Outcome:
        """Compares these checkpoints. Raises UsageError; all else is in the outcome."""
        self._outcome = Outcome()
        before = self._golden.capture_bytes_read + self._new.capture_bytes_read
        keys_of: dict[VariableId, CheckpointKey] = {}
        self._stream = Stream(
            self._resources,
            self._options.memory_bytes,
            sink=None if self._differences is None else self._list,
        )
        with self._stream:
            windows = list(_windows(keys))
            for window, coming in zip(windows, [*windows[1:], []], strict=True):
                for side in (self._golden, self._new):
                    side.prefetch([*window, *coming] if window is windows[0] else coming)
                self._checkpoints(window, keys_of)
            self._take_answers(wait=True)
            facts = self._stream.facts()
        self._outcome.data_bytes_read += facts.bytes_read
        self._outcome.engine = facts.engine or self._outcome.engine
        if self._options.detail_bytes > 0:
            add_details(
                self._outcome,
                (self._golden, self._new),
                keys_of,
                self._rules,
                self._options.detail_bytes,
                self._resources,
            )
        after = self._golden.capture_bytes_read + self._new.capture_bytes_read
        self._outcome.capture_bytes_read = after - before
        return self._outcome

    def _checkpoints(
        self, keys: Sequence[CheckpointKey], keys_of: dict[VariableId, CheckpointKey]
    ) -> None:
        """Compares a window's checkpoints, or begins to; notes the variables of both sides."""
        with ExitStack() as opened:
            for key in keys:
                ours = Variables(self._golden, key, self._outcome)
                opened.callback(ours.close)
                theirs = Variables(self._new, key, self._outcome)
                opened.callback(theirs.close)
                keys_of.update(dict.fromkeys(self._checkpoint(ours, theirs), key))
                if ours.has_files_open or theirs.has_files_open:
                    # Not the files of a whole window at once.
                    self._descend()
                    opened.pop_all().close()
            self._descend()

    def _take_answers(self, *, wait: bool = False) -> None:
        for question, found in self._stream.answers(wait=wait):
            self._outcome.results.append(streamed_result(question, found))

    # --- one checkpoint ---------------------------------------------------------------------------

    def _checkpoint(self, ours: Variables, theirs: Variables) -> list[VariableId]:
        """Compares a checkpoint's variables, or begins to; returns those of both sides."""
        for identity in sorted({*ours.identities, *theirs.identities}):
            if self._rules.is_ignored(identity):
                self._outcome.ignored.append(identity)
            elif identity not in theirs.identities:
                self._outcome.missing.append(identity)
            elif identity not in ours.identities:
                self._outcome.extra.append(identity)
            else:
                self._variable(identity, ours, theirs)
        self._take_answers()
        return sorted(ours.identities & theirs.identities)

    def _variable(self, identity: VariableId, ours: Variables, theirs: Variables) -> None:
        dtype, shape = ours.describe(identity)
        settings = self._settings_of(identity, ours, theirs)
        source_path = theirs.path_of(identity)
        try:
            if (
                not has_own_tree(settings)
                or theirs.describe(identity) != (dtype, shape)
                or math.prod(shape) == 0
            ):
                self._whole(identity, ours, theirs, settings, source_path)
                return
            facts = {
                "dtype": dtype,
                "shape": shape,
                "source_path": source_path,
                "bound": settings.bound,
            }
            if self._by_trees(identity, ours, theirs, settings, facts):
                return
            self._by_streaming(identity, ours, theirs, settings, facts)
        except CiwrapError as error:
            self._fail(identity, error, source_path)

    def _fail(self, identity: VariableId, error: CiwrapError, source_path: str) -> None:
        if error.exit_code is ExitCode.USAGE:
            raise error
        self._outcome.results.append(
            not_comparable(identity, reason_of(error), source_path=source_path)
        )

    def _settings_of(
        self, identity: VariableId, ours: Variables, theirs: Variables
    ) -> VariableSettings:
        mine, other = ours.captured.get(identity), theirs.captured.get(identity)
        settings = self._rules.settings_for(identity, ours.describe(identity)[0])
        if not self._options.bounds_from_captures:
            return settings
        for one in (mine, other):
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
        self._take(compared)
        if compared.result.verdict is not Verdict.NOT_COMPARABLE:
            self._outcome.data_bytes_read += golden.byte_count + new.byte_count
        if compared.result.verdict is Verdict.DIFFER and self._differences is not None:
            parameters = tree_parameters(golden.dtype, settings, variable=identity.text)
            if golden.dtype != new.dtype:
                new = ConvertedValues(new, golden.dtype)
            self._differences.add_values(identity, parameters, golden, new)

    def _take(self, compared: Compared) -> None:
        self._outcome.results.append(compared.result)
        self._outcome.engine = compared.engine or self._outcome.engine

    # --- stage one --------------------------------------------------------------------------------

    def _by_trees(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        settings: VariableSettings,
        facts: dict[str, Any],
    ) -> bool:
        """Whether trees could tell; the result is known then, or on its way."""
        mine = fitting(ours.captured.get(identity), settings, identity)
        other = fitting(theirs.captured.get(identity), settings, identity)
        try:
            if mine is not None and other is not None:
                return self._two_captures(identity, ours, theirs, mine, other, facts)
            if mine is not None:
                return self._one_capture(identity, ours, theirs, mine, facts, is_golden=True)
            if other is not None:
                return self._one_capture(identity, theirs, ours, other, facts, is_golden=False)
        except CorruptCaptureError as error:
            self._outcome.unused.append(str(error))
        return False

    def _two_captures(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        mine: CapturedVariable,
        other: CapturedVariable,
        facts: dict[str, Any],
    ) -> bool:
        pair = comparable_trees(mine, other)
        golden, new = self._golden.capture, self._new.capture
        if pair is None or golden is None or new is None:
            return False
        a, b = pair
        is_relative = b.against is not None
        roots: dict[str, Any] = {"golden_root": a.root, "root": b.root}
        if is_relative:
            roots["residue_levels"] = a.parameters.residue_levels
            roots["guaranteed_share"] = a.parameters.guaranteed_share
            roots["max_drift_share"] = b.max_share
        leaf_count = a.counts(mine.element_count * a.parameters.scalars_per_element)[-1]
        if roots_match(a, b):
            self._matches(identity, mine, a, leaf_count, facts | roots, is_relative)
        else:
            descent = Descent(identity, golden, a, new, b, mine, facts, roots)
            self._open.append((descent, ours, theirs))
        return True

    def _descend(self) -> None:
        """Looks for the suspect chunks of what is open."""
        found, self._open = self._open, []
        prefetch_trees(descent for descent, _, _ in found)
        for descent, ours, theirs in found:
            identity, facts = descent.identity, descent.facts
            try:
                try:
                    suspects = suspect_leaves(descent)
                except CorruptCaptureError as error:
                    self._outcome.unused.append(str(error))
                    settings = self._settings_of(identity, ours, theirs)
                    self._by_streaming(identity, ours, theirs, settings, facts)
                    continue
                tree = descent.golden_tree
                leaf_count = tree.counts(descent.scalar_count)[-1]
                self._stage_two(
                    identity,
                    ours,
                    theirs,
                    tree.parameters,
                    suspects,
                    leaf_count,
                    facts,
                    descent.roots,
                )
            except CiwrapError as error:
                self._fail(identity, error, facts["source_path"])
            self._take_answers()

    def _one_capture(
        self,
        identity: VariableId,
        with_capture: Variables,
        without: Variables,
        captured: CapturedVariable,
        facts: dict[str, Any],
        *,
        is_golden: bool,
    ) -> bool:
        """Builds the other side's tree now; only that side's data are read for it."""
        capture = with_capture.side.capture
        # A relative bound is one of the first run's values: only it can be held against residues.
        tree = captured.fine if is_golden and captured.fine is not None else captured.plain
        if capture is None or tree is None:
            return False
        stored = read_tree(capture, captured, tree)
        values = without.values(identity)
        built, drift, engine = build_tree(
            tree.parameters,
            values,
            resources=self._resources,
            golden=stored if tree is captured.fine else None,
            progress=self._progress,
        )
        self._outcome.engine = engine or self._outcome.engine
        self._outcome.data_bytes_read += values.byte_count
        sides = (stored, built) if is_golden else (built, stored)
        roots: dict[str, Any] = {"golden_root": sides[0].root.hex(), "root": sides[1].root.hex()}
        if drift is not None:
            roots["residue_levels"] = tree.parameters.residue_levels
            roots["guaranteed_share"] = tree.parameters.guaranteed_share
            roots["max_drift_share"] = float(drift.max_share)
        suspects = _core.diff_trees(stored, built)
        if suspects.size == 0:
            self._matches(
                identity, captured, tree, stored.leaf_count, facts | roots, drift is not None
            )
            return True
        ours, theirs = (with_capture, without) if is_golden else (without, with_capture)
        self._stage_two(
            identity, ours, theirs, tree.parameters, suspects, stored.leaf_count, facts, roots
        )
        return True

    def _matches(
        self,
        identity: VariableId,
        variable: CapturedVariable,
        tree: StoredTree,
        leaf_count: int,
        facts: dict[str, Any],
        is_relative: bool,
    ) -> None:
        """A match by digests alone."""
        item_bytes = tree.parameters.scalar_bytes * tree.parameters.scalars_per_element
        known: dict[str, Any] = {}
        if tree.parameters.kind == "exact":
            known["max_abs_difference"] = 0.0  # equal codes are equal numbers
        self._outcome.results.append(
            VariableResult(
                name=identity.name,
                iteration=identity.iteration,
                rank=identity.rank,
                verdict=Verdict.MATCH,
                evidence=Evidence.RESIDUES if is_relative else Evidence.TREE,
                element_count=variable.element_count,
                byte_count=variable.element_count * item_bytes,
                differing_count=0,
                chunk_count=leaf_count,
                suspect_chunks=0,
                **known,
                **facts,
            )
        )

    # --- stage two --------------------------------------------------------------------------------

    def _stage_two(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        parameters: _core.TreeParameters,
        suspects: NDArray[np.int64],
        leaf_count: int,
        facts: dict[str, Any],
        roots: dict[str, Any],
    ) -> None:
        leaves = None if suspects.size >= _STREAM_FROM * leaf_count else suspects
        self._ask(
            Question(
                identity, parameters, facts["shape"], leaves, suspects, leaf_count, facts, roots
            ),
            ours,
            theirs,
        )

    def _by_streaming(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        settings: VariableSettings,
        facts: dict[str, Any],
    ) -> None:
        """No trees: everything is read once, and compared."""
        parameters = tree_parameters(facts["dtype"], settings, variable=identity.text)
        question = Question(identity, parameters, facts["shape"], None, None, 0, facts, {})
        self._ask(question, ours, theirs)

    def _ask(self, question: Question, ours: Variables, theirs: Variables) -> None:
        """Puts a question to the data: into the stream where they lie in files as they are, else
        through the readers, at once.
        """
        golden, new = ours.region(question.identity), theirs.region(question.identity)
        if golden is not None and new is not None:
            self._stream.ask(question, golden, new)
            return
        mine, other = ours.values(question.identity), theirs.values(question.identity)
        try:
            comparer = _core.ElementComparer(
                question.parameters,
                max_indices=MOST_INDICES,
                backend=self._resources.backend,
                threads=self._resources.threads,
            )
            for first, count in suspect_pieces(question.parameters, mine, question.leaves):
                one, two = as_bytes(mine.read(first, count)), as_bytes(other.read(first, count))
                comparer.update(one, two, first_element=first)
                self._outcome.data_bytes_read += one.nbytes + two.nbytes
            comparison = comparer.finish()
        except _core.CoreError as error:
            raise from_core_error(error) from error
        result = result_of(
            question, comparison, lambda flat: mine.read(flat, 1), lambda flat: other.read(flat, 1)
        )
        self._outcome.results.append(result)
        if result.verdict is Verdict.DIFFER and self._differences is not None:
            self._differences.add_values(question.identity, question.parameters, mine, other)

    def _list(
        self,
        question: Question,
        indices: NDArray[np.int64],
        golden: NDArray[np.uint8],
        new: NDArray[np.uint8],
    ) -> None:
        assert self._differences is not None
        self._differences.add(
            question.identity, question.shape, question.parameters.dtype, indices, golden, new
        )


def _windows(keys: Iterable[CheckpointKey]) -> Iterator[list[CheckpointKey]]:
    left, count = iter(keys), _FIRST_WINDOW
    while window := list(islice(left, count)):
        yield window
        count = min(2 * count, _LAST_WINDOW)
