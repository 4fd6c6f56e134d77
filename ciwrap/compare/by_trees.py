"""Stage one for a comparer: trees of captures, and those that are built for want of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ciwrap import _core
from ciwrap.captures.checkpoint import comparable_trees, fitting
from ciwrap.captures.index import read_tree
from ciwrap.captures.stage_one import Descent, prefetch_trees, roots_match, suspect_leaves
from ciwrap.compare.question import matching_result
from ciwrap.errors import CiwrapError, CorruptCaptureError
from ciwrap.trees.build import build_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.captures.checkpoint import Variables
    from ciwrap.captures.index import CapturedVariable
    from ciwrap.compare.by_data import ByData
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.progress import Progress
    from ciwrap.trees.build import Resources

    _Open: TypeAlias = tuple[Descent, VariableSettings, Variables, Variables]
    # Is told of a variable that cannot be compared: its identity, why, and its path.
    Fail: TypeAlias = Callable[[VariableId, CiwrapError, str], None]


class ByTrees:
    """Finds variables that match, and the suspect chunks of others, for which it turns to `data`.

    Not thread safe.
    """

    def __init__(
        self, outcome: Outcome, data: ByData, resources: Resources, progress: Progress
    ) -> None:
        self._outcome = outcome
        self._data = data
        self._resources = resources
        self._progress = progress
        # Two captured variables whose roots differ: where, is still to be looked for.
        self._open: list[_Open] = []
        self._fetched: list[_Open] = []  # their trees are on their way from the disk

    def compare(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        settings: VariableSettings,
        facts: dict[str, Any],
    ) -> bool:
        """Whether trees could tell; the result is known then, or comes with `descend`."""
        mine = fitting(ours.captured.get(identity), settings, identity)
        other = fitting(theirs.captured.get(identity), settings, identity)
        try:
            if mine is not None and other is not None:
                return self._two_captures(identity, ours, theirs, mine, other, settings, facts)
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
        settings: VariableSettings,
        facts: dict[str, Any],
    ) -> bool:
        pair = comparable_trees(mine, other)
        golden, new = ours.side.capture, theirs.side.capture
        if pair is None or golden is None or new is None:
            return False
        a, b = pair
        roots: dict[str, Any] = {"golden_root": a.root.hex(), "root": b.root.hex()}
        if b.against is not None:
            roots["residue_levels"] = a.parameters.residue_levels
            roots["guaranteed_share"] = a.parameters.guaranteed_share
            roots["max_drift_share"] = b.max_share
        descent = Descent(identity, golden, a, new, b, mine, facts, roots)
        if roots_match(a, b):
            self._outcome.results.append(
                matching_result(
                    identity,
                    a.parameters,
                    mine.element_count,
                    descent.leaf_count,
                    facts | roots,
                    is_relative=b.against is not None,
                )
            )
        else:
            self._open.append((descent, settings, ours, theirs))
        return True

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
        leaf_count = stored.leaf_count
        if suspects.size == 0:
            self._outcome.results.append(
                matching_result(
                    identity,
                    tree.parameters,
                    captured.element_count,
                    leaf_count,
                    facts | roots,
                    is_relative=drift is not None,
                )
            )
            return True
        ours, theirs = (with_capture, without) if is_golden else (without, with_capture)
        self._data.suspects(
            identity, ours, theirs, tree.parameters, suspects, leaf_count, facts, roots
        )
        return True

    def descend(self, fail: Fail) -> None:
        """Has the trees of all that is open fetched, and looks meanwhile for the suspect chunks of
        what was open the last time, to have them compared.
        """
        found, self._fetched, self._open = self._fetched, self._open, []
        prefetch_trees(descent for descent, *_ in self._fetched)
        for position, (descent, settings, ours, theirs) in enumerate(found):
            try:
                self._descend(descent, settings, ours, theirs)
            except CiwrapError as error:
                fail(descent.identity, error, descent.facts["source_path"])
            finally:
                if position + 1 == len(found) or found[position + 1][2] is not ours:
                    # Files that had to be opened: not those of many checkpoints at once.
                    ours.close()
                    theirs.close()
            self._data.take_answers()

    def finish(self, fail: Fail) -> None:
        """The same for all that is open."""
        while self._open or self._fetched:
            self.descend(fail)

    def _descend(
        self, descent: Descent, settings: VariableSettings, ours: Variables, theirs: Variables
    ) -> None:
        try:
            suspects = suspect_leaves(descent)
        except CorruptCaptureError as error:
            self._outcome.unused.append(str(error))
            self._data.all_elements(descent.identity, ours, theirs, settings, descent.facts)
            return
        self._data.suspects(
            descent.identity,
            ours,
            theirs,
            descent.golden_tree.parameters,
            suspects,
            descent.leaf_count,
            descent.facts,
            descent.roots,
        )
