"""Stage one: trees of captures, and those that are built for want of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ciwrap import _core
from ciwrap.captures.checkpoint import comparable_trees, fitting, usable_residues
from ciwrap.captures.index import read_tree
from ciwrap.captures.stage_one import Descent, prefetch_trees, roots_match, suspect_leaves
from ciwrap.compare.by_data import STREAM_FROM
from ciwrap.compare.findings import (
    Suspects,
    judged_by_digests,
    matched_by_digests,
    with_drift,
    with_residues,
    with_roots,
)
from ciwrap.compare.question import PendingComparison
from ciwrap.errors import CiwrapError, CorruptCaptureError, ParameterMismatchError
from ciwrap.model import Verdict
from ciwrap.structs import Struct, replace
from ciwrap.trees.bounds import describe_bound
from ciwrap.trees.build import build_tree, tree_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.captures.checkpoint import Variables
    from ciwrap.captures.index import CapturedVariable
    from ciwrap.compare.by_data import ElementStage
    from ciwrap.compare.outcome import Outcome
    from ciwrap.compare.work import Work
    from ciwrap.model import VariableResult, VariableSettings

    # Is told of a variable that cannot be compared: what is known of it, and why.
    Fail: TypeAlias = Callable[[VariableResult, CiwrapError], None]


class Pair(Struct, frozen=True):
    """One variable of both runs, of one signature, and the result of it that has begun."""

    result: VariableResult
    settings: VariableSettings
    ours: Variables
    theirs: Variables


class _Open(Struct, frozen=True):
    """Two captured trees whose roots differ: where, is still to be looked for."""

    pair: Pair
    descent: Descent


# What helps where a bound leaves a doubt that only data would settle.
_WHILE_IT_RUNS = "record the one with --residues, and the other with --against it"


def _refuse_fingerprint(pair: Pair, held: Variables) -> None:
    """Raises ParameterMismatchError: the side has trees alone, and they were made otherwise."""
    captured = held.captured.get(pair.result.id)
    assert captured is not None
    assert captured.any_tree is not None  # else it would have been refused before
    made_with = captured.any_tree.parameters
    asked = tree_parameters(
        made_with.dtype, pair.settings, chunk_bytes=made_with.chunk_bytes, arity=made_with.arity
    )
    made, wanted = describe_bound(made_with), describe_bound(asked)
    path = held.path_of(pair.result.id)
    if made == wanted and _have_other_kinds(pair):
        raise ParameterMismatchError(
            "one side has a tree with residues of its own, the other one without: the two do not"
            " tell of each other",
            file=path,
            remedy=_WHILE_IT_RUNS,
        )
    why = f"with {made}, but {wanted} is asked for"
    if made == wanted:
        why = f"with chunks of {made_with.chunk_bytes} bytes, and the other side otherwise"
    raise ParameterMismatchError(
        f"only its capture is at hand, which was made {why}",
        file=path,
        remedy="compare by what it was captured with, or where its data are",
    )


def _have_other_kinds(pair: Pair) -> bool:
    """Whether neither side has data, and they have no kind of tree in common."""
    if pair.ours.has_data or pair.theirs.has_data:
        return False
    mine, other = (one.captured.get(pair.result.id) for one in (pair.ours, pair.theirs))
    return mine is None or other is None or mine.plain is None or other.plain is None


def _with_remedy(result: VariableResult, pair: Pair) -> VariableResult:
    """The result, saying what helps two runs that were recorded, each by itself."""
    sides = (pair.ours.run, pair.theirs.run)
    if pair.ours.has_data or not all(one.is_recorded for one in sides):
        return result
    return replace(result, reason=f"{result.reason}; {_WHILE_IT_RUNS}")


class TreeStage:
    """Finds variables that match, and the suspect chunks of others, for which it turns to `data`.

    Not thread safe.
    """

    def __init__(self, work: Work, outcome: Outcome, data: ElementStage) -> None:
        self._work = work
        self._outcome = outcome
        self._data = data
        self._open: list[_Open] = []
        self._fetched: list[_Open] = []  # their trees are on their way from the disk

    def compare(self, pair: Pair) -> None:
        """Compares by trees as far as there are any, else by data; the result comes at the latest
        with `finish` and that of the data. Raises CiwrapError for what cannot be compared.
        """
        identity = pair.result.id
        mine = fitting(pair.ours.captured.get(identity), pair.settings, identity)
        other = fitting(pair.theirs.captured.get(identity), pair.settings, identity)
        try:
            is_known = self._by_captures(pair, mine, other)
        except CorruptCaptureError as error:
            self._outcome.unused.append(str(error))
            is_known = False
        if not is_known:
            self._all_elements(pair)

    def _by_captures(
        self, pair: Pair, mine: CapturedVariable | None, other: CapturedVariable | None
    ) -> bool:
        """Whether captures told: those of both, else that of one side and the other side's data."""
        if mine is not None and other is not None and self._two_captures(pair, mine, other):
            return True
        # Where both data are at hand, two captures that do not fit are of no use.
        if mine is not None and pair.theirs.has_data and (other is None or not pair.ours.has_data):
            return self._one_capture(pair, mine, is_reference=True)
        if other is not None and pair.ours.has_data and (mine is None or not pair.theirs.has_data):
            return self._one_capture(pair, other, is_reference=False)
        return False

    def _two_captures(self, pair: Pair, mine: CapturedVariable, other: CapturedVariable) -> bool:
        trees = comparable_trees(mine, other)
        golden, new = pair.ours.run.capture, pair.theirs.run.capture
        if trees is None or golden is None or new is None:
            return False
        a, b = trees
        result = with_roots(pair.result, a.root, b.root)
        if b.against is not None:
            result = with_residues(result, a.parameters)
            if b.max_share is not None:
                result = with_drift(result, b.max_share, a.parameters)
        descent = Descent(golden, a, new, b, mine)
        if roots_match(a, b):
            self._outcome.results.append(
                matched_by_digests(result, a.parameters, descent.counts[-1], mine.element_count)
            )
        else:
            self._open.append(_Open(replace(pair, result=result), descent))
        return True

    def _one_capture(self, pair: Pair, captured: CapturedVariable, *, is_reference: bool) -> bool:
        """Builds the other side's tree now; only that side's data are read for it."""
        known, other = (pair.ours, pair.theirs) if is_reference else (pair.theirs, pair.ours)
        capture = known.run.capture
        tree = usable_residues(captured, is_reference=is_reference) or captured.plain
        if capture is None or tree is None:
            return False
        stored = read_tree(capture, captured, tree)
        values = other.values(pair.result.id)
        built, drift, engine = build_tree(
            tree.parameters,
            values,
            resources=self._work.resources,
            golden=stored if tree is captured.fine else None,
            progress=self._work.progress,
        )
        self._work.engine = engine or self._work.engine
        self._work.data_bytes_read += values.byte_count
        sides = (stored, built) if is_reference else (built, stored)
        result = with_roots(pair.result, sides[0].root, sides[1].root)
        if drift is not None:
            result = with_residues(result, tree.parameters)
            result = with_drift(result, float(drift.max_share), tree.parameters)
        suspects = Suspects(_core.diff_trees(stored, built), stored.leaf_count)
        if suspects.leaves.size == 0:
            self._outcome.results.append(
                matched_by_digests(
                    result, tree.parameters, suspects.leaf_count, captured.element_count
                )
            )
        else:
            self._suspects(replace(pair, result=result), tree.parameters, suspects)
        return True

    def descend(self, fail: Fail) -> None:
        """Has the trees of all that is open fetched, and looks meanwhile for the suspect chunks of
        what was open the last time, to have them compared.
        """
        found, self._fetched, self._open = self._fetched, self._open, []
        if self._fetched:
            prefetch_trees(one.descent for one in self._fetched)
        for position, one in enumerate(found):
            pair = one.pair
            try:
                self._descend(one)
            except CiwrapError as error:
                fail(pair.result, error)
            finally:
                if position + 1 == len(found) or found[position + 1].pair.ours is not pair.ours:
                    # Files that had to be opened: not those of many checkpoints at once.
                    pair.ours.close()
                    pair.theirs.close()
            self._data.take_answers()

    def finish(self, fail: Fail) -> None:
        """Descends in all trees that are still open."""
        while self._open or self._fetched:
            self.descend(fail)

    def _descend(self, one: _Open) -> None:
        descent = one.descent
        try:
            if not (one.pair.ours.has_data and one.pair.theirs.has_data):
                # Digests alone are to decide: damage to them is not to pass for a difference.
                descent.verify()
            leaves = suspect_leaves(descent)
        except CorruptCaptureError as error:
            self._outcome.unused.append(str(error))
            self._all_elements(one.pair)
            return
        suspects = Suspects(leaves, descent.counts[-1])
        self._suspects(one.pair, descent.golden_tree.parameters, suspects)

    def _suspects(self, pair: Pair, parameters: _core.TreeParameters, suspects: Suspects) -> None:
        """Has the elements of suspect chunks compared; without data, judges by digests."""
        if not (pair.ours.has_data and pair.theirs.has_data):
            self._without_data(pair, parameters, suspects)
            return
        are_many = suspects.leaves.size >= STREAM_FROM * suspects.leaf_count
        shape = pair.result.shape or ()
        leaves = None if are_many else suspects.leaves
        pending = PendingComparison(pair.result, parameters, shape, leaves, suspects)
        self._data.submit(pending, pair.ours, pair.theirs)

    def _without_data(
        self, pair: Pair, parameters: _core.TreeParameters, suspects: Suspects
    ) -> None:
        """Judges by digests; if that leaves a doubt, residues may settle it."""
        result = judged_by_digests(pair.result, parameters, pair.result.shape or (), suspects)
        if result.verdict is Verdict.NOT_COMPARABLE and self._by_residues(pair):
            return
        if result.verdict is Verdict.NOT_COMPARABLE and not pair.theirs.has_data:
            result = _with_remedy(result, pair)
        if result.verdict is Verdict.SUSPECT:
            from ciwrap.compare.sampled import solved_by_samples

            result = solved_by_samples(result, pair.ours, pair.theirs, suspects)
        self._outcome.results.append(result)

    def _by_residues(self, pair: Pair) -> bool:
        """Whether one side's residues could be held against the other side's data."""
        if pair.ours.has_data == pair.theirs.has_data:
            return False
        is_reference = not pair.ours.has_data
        held = pair.ours if is_reference else pair.theirs
        captured = fitting(held.captured.get(pair.result.id), pair.settings, pair.result.id)
        if captured is None or usable_residues(captured, is_reference=is_reference) is None:
            return False
        return self._one_capture(pair, captured, is_reference=is_reference)

    def _all_elements(self, pair: Pair) -> None:
        """Without trees: everything is read once, and compared."""
        result = pair.result
        for one in (pair.ours, pair.theirs):
            if not one.has_data:
                _refuse_fingerprint(pair, one)
        parameters = tree_parameters(result.dtype or "", pair.settings, variable=result.id.text)
        pending = PendingComparison(result, parameters, result.shape or ())
        self._data.submit(pending, pair.ours, pair.theirs)
