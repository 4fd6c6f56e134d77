"""The two stages of comparing runs: trees first, then the values of chunks that may differ.

Read first `TreeStage`, then `ElementStage`. `rules_between` says by which bounds two runs are
compared; a `PendingComparison` is what trees left open of one variable.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import Values, item_bytes, storage_dtype
from ciwrap.base.errors import (
    CiwrapError,
    ContradictionError,
    CorruptCaptureError,
    ParameterMismatchError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import Closing
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.check.findings import (
    Suspects,
    by_summaries_alone,
    judged_by_digests,
    matched_by_digests,
    with_drift,
    with_elements,
    with_residues,
    with_roots,
    with_solved,
)
from ciwrap.check.solve import LeastShares, shares_between, solve_chunks, summaries_against
from ciwrap.check.two_sides import (
    MOST_INDICES,
    PartSums,
    chunk_elements,
    compare_elements,
    not_comparable,
    read_each,
)
from ciwrap.formats.reader import as_elements
from ciwrap.golden.trees import (
    asked_for,
    build_tree,
    describe_bound,
    is_other_bound,
    tree_parameters,
)
from ciwrap.model import Evidence, Message, MessageLevel, VariableSettings, Verdict
from ciwrap.runs.capture_index import (
    IGNORED,
    IN_AN_ORDER,
    IN_ANOTHER_WAY,
    NONE_GIVEN,
    Bounds,
    key_order,
    read_checkpoint,
    read_summaries,
    read_tree,
    rules_with,
)
from ciwrap.runs.sides import (
    Descent,
    comparable_trees,
    fitting,
    prefetch_trees,
    roots_match,
    suspect_leaves,
    usable_residues,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Literal

    from numpy.typing import NDArray

    from ciwrap.arrays.values import FileRegion
    from ciwrap.base.progress import Progress
    from ciwrap.check.solve import Solved
    from ciwrap.check.two_sides import Findings, ReadElements, Work
    from ciwrap.formats.catalog import Rules
    from ciwrap.golden.trees import Resources
    from ciwrap.model import CheckResult, VariableResult
    from ciwrap.runs.capture_index import CapturedVariable
    from ciwrap.runs.differences import DifferenceList
    from ciwrap.runs.sides import Run, Variables

# Of a capture's origin.
_OF_CHECK = "check "
_MOST_NAMES = 3


def rules_between(rules: Rules, golden: Run, new: Run) -> Rules:
    """The rules as they hold for two runs: with the bounds that are asked for, or else with those
    of a capture as a whole.

    The first run's counts before the second's, and one for which a bound was asked for before one
    that compares exactly because nobody said anything. Whether captured trees still describe the
    files plays no part.
    """
    for side in (golden, new):
        if side.capture is not None and side.capture.repeated:
            rules = replace(
                rules, is_ignored=partial(side.capture.leaves_out, is_ignored=rules.is_ignored)
            )
    if rules.bounds_are_given:
        return rules
    known = _captured_bounds(golden, new)
    return replace(rules, bounds_from=NONE_GIVEN) if known is None else rules_with(rules, *known)


def _captured_bounds(golden: Run, new: Run) -> tuple[Bounds, str] | None:
    """The bounds of the first capture for which some were asked for, and what they are called."""
    for side, name in ((golden, "A"), (new, "B")):
        if side.header is not None and side.header.origin != NONE_GIVEN:
            return Bounds.of_header(side.header), f"{name}'s capture"
    return None


def with_bound_notes(
    check: CheckResult, rules: Rules, golden: Run, new: Run, unused: Iterable[str] = ()
) -> CheckResult:
    """The result, saying where its bounds are from, and when that may explain all differences.

    unused: as of `unused_settings`.
    """
    notes = [Message(MessageLevel.NOTE, text) for text in unused]
    known = _captured_bounds(golden, new)
    if known is not None and known[1] == rules.bounds_from:
        # Of what the capture whose bounds hold says nothing, as where paths are read otherwise.
        bounds, whose = known
        plain = VariableSettings()
        names = {
            one.name
            for one in check.variables
            if one.verdict is not Verdict.NOT_COMPARABLE
            and one.text is None
            and one.dtype is not None
            and bounds.settings_for(plain, one.id, one.golden_dtype or one.dtype) is None
        }
        if names:
            text = f"{whose} has no bound for {_listed(names)}: compared exactly"
            notes.append(Message(MessageLevel.NOTE, text))
    if rules.bounds_from == NONE_GIVEN and check.verdict is not Verdict.MATCH:
        notes += _notes(check)
    return replace(check, bounds_from=rules.bounds_from, messages=(*check.messages, *notes))


def unused_settings(rules: Rules, sides: Iterable[tuple[str, Run]]) -> Iterator[str]:
    """Of each side whose capture was made with a check: which settings of that do not count, since
    a capture holds bounds alone. sides: with what they are called.
    """
    if rules.bounds_from.startswith(_OF_CHECK):
        return  # a check is given, and says itself what counts
    for called, side in sides:
        if side.header is None or not side.header.origin.startswith(_OF_CHECK):
            continue
        variables = list(_captured_ends(side))
        beyond = {
            one.identity.name
            for one in variables
            if (one.reason or "").startswith((IN_AN_ORDER, IN_ANOTHER_WAY))
            and rules.settings_for(one.identity, one.signature).has_own_trees
        }
        ignored = {
            one.identity.name
            for one in variables
            if one.reason == IGNORED and not rules.is_ignored(one.identity)
        }
        said = [f"mask, period, combine and align_by of {_listed(beyond)}"] if beyond else []
        said += [f"ignore of {_listed(ignored)}"] if ignored else []
        if said:
            yield (
                f"{called}'s capture was made with {side.header.origin} and holds nothing but"
                f" bounds of it, so this does not count: {'; '.join(said)} (give --check)"
            )


def _captured_ends(side: Run) -> Iterator[CapturedVariable]:
    """The variables of the first captured checkpoint and of the last."""
    if side.capture is None or side.index is None:
        return
    keys = sorted(side.index.checkpoints, key=key_order)
    for key in dict.fromkeys((*keys[:1], *keys[-1:])):
        with suppress(CorruptCaptureError):  # of which the comparison tells
            yield from read_checkpoint(side.capture, side.index.checkpoints[key]).variables


def _listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    found = sorted(names)
    more = f" and {len(found) - _MOST_NAMES:,} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more


def _notes(check: CheckResult) -> Iterator[Message]:
    differing = [one for one in check.variables if one.verdict is Verdict.DIFFER]
    if differing and all(_is_tiny(one) for one in differing):
        largest = max(one.max_rel_difference or 0.0 for one in differing)
        yield Message(
            MessageLevel.NOTE,
            "compared exactly, since no bound was given; differences of what is not 0 on the first"
            f" side are tiny (at most {largest:.2g} of it): if they are rounding, give --atol or"
            " --rtol",
        )


def _is_tiny(one: VariableResult) -> bool:
    """Whether numbers differ by less than half of the digits that their type holds, as far as the
    reference is not 0.
    """
    if one.dtype is None or one.dtype[1:2] not in ("f", "c") or not one.max_rel_difference:
        return False
    has_special = one.nan_mismatch_count or one.inf_mismatch_count or one.missing_mismatch_count
    digits = float(np.finfo(one.dtype).eps)
    return not has_special and one.max_rel_difference < digits**0.5


class PendingComparison(Struct, frozen=True):
    """The elements of `leaves` (None: all) of a variable, and what is known of it already.

    suspects: None without trees. is_part: whether `leaves` are all that anybody wants to know of
    now: other parts of the variable are compared by themselves.
    """

    result: VariableResult
    parameters: _core.TreeParameters
    shape: tuple[int, ...]
    leaves: NDArray[np.int64] | None = None
    suspects: Suspects | None = None
    is_part: bool = False

    @property
    def byte_count(self) -> int:
        """Of one side's array."""
        return math.prod(self.shape) * item_bytes(self.parameters.dtype)

    def finish(self, comparison: _core.Comparison, read_elements: ReadElements) -> VariableResult:
        """The comparison of these elements as a result.

        read_elements: is asked for no others than the comparison's first few differing ones.
        """
        result = replace(self.result, evidence=Evidence.DATA, byte_count=self.byte_count)
        try:
            if self.suspects is not None:
                _refuse_contradiction(self, self.suspects, comparison)
            return with_elements(
                result,
                comparison,
                self.parameters,
                self.shape,
                self.suspects,
                all_compared=self.leaves is None or self.is_part,
                read_elements=read_elements,
            )
        except CiwrapError as error:
            return not_comparable(result, error)

    def finish_streamed(self, found: Streamed) -> VariableResult:
        """The result of what went through the stream."""
        if found.comparison is None:
            assert found.error is not None
            return not_comparable(self.result, found.error)
        golden, new = (as_elements(side, self.parameters.dtype) for side in found.first_values)
        return self.finish(
            found.comparison, lambda flats: (golden[: len(flats)], new[: len(flats)])
        )


def _refuse_contradiction(
    pending: PendingComparison, suspects: Suspects, comparison: _core.Comparison
) -> None:
    """Raises CorruptCaptureError if captured trees and the data cannot both be right: the capture
    is damaged, or of other data.
    """
    try:
        _core.check_deciders(
            pending.parameters, comparison, suspects.leaves, compared_leaves=pending.leaves
        )
    except ContradictionError as error:
        raise CorruptCaptureError(
            f"its captured trees contradict its data: {error}",
            remedy="capture the runs anew with --rebuild, or compare with --no-captures",
        ) from error


class SampledValues(Values):
    """The elements of whole chunks. samples: bytes by number of the chunk.

    `read` raises CorruptCaptureError for elements that were not kept.
    """

    def __init__(
        self,
        variable: CapturedVariable,
        parameters: _core.TreeParameters,
        samples: dict[int, bytes],
    ) -> None:
        self.dtype = variable.dtype
        self.shape = tuple(variable.shape)
        self._per_chunk = chunk_elements(parameters)
        self._samples = samples

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        leaf, begin = divmod(first_element, self._per_chunk)
        kept = np.frombuffer(self._samples.get(leaf, b""), storage_dtype(self.dtype))
        if begin + count > kept.size:
            raise CorruptCaptureError("a sample of a block is too short")
        return kept[begin : begin + count]


def solved_by_samples(result: VariableResult, pair: Pair, suspects: Suspects) -> VariableResult:
    """The result, naming elements that moved, where a program kept those of suspect chunks.

    result: undecided, by residues of the first side. Raises CorruptCaptureError.
    """
    ours, theirs = pair.ours, pair.theirs
    golden, new = ours.captured.get(result.id), theirs.captured.get(result.id)
    if golden is None or new is None or golden.fine is None:
        return result
    if ours.run.capture is None or theirs.run.capture is None:
        return result
    samples = theirs.run.capture.samples_of(result.id)
    leaves = suspects.leaves[np.isin(suspects.leaves, list(samples))]
    if leaves.size == 0:
        return result
    tree = read_tree(ours.run.capture, golden, golden.fine)
    values = SampledValues(new, tree.parameters, samples)
    shape = tuple(golden.shape)
    asked = asked_for(tree.parameters, pair.settings, result.id)
    return with_solved(result, solve_chunks(tree, values, leaves, shape, asked))


# The smallest buffers hold one such element of each side, whatever surrounds it.
_LARGEST_ELEMENT_BYTES = 64 << 10


class Streamed(Struct, frozen=True):
    """What became of what was submitted: a comparison, or the error that stopped it.

    first_values: both sides' bytes of the first few differing elements, back to back.
    """

    comparison: _core.Comparison | None
    error: CiwrapError | None = None
    first_values: tuple[bytes, bytes] = (b"", b"")


class StreamFacts(Struct, frozen=True):
    """How much was read, and how."""

    bytes_read: int = 0
    engine: str | None = None


class Pending(Protocol):
    """What is to be compared: the chunks `leaves` of an array, ascending; None: all."""

    @property
    def parameters(self) -> _core.TreeParameters: ...
    @property
    def leaves(self) -> NDArray[np.int64] | None: ...


_Pending = TypeVar("_Pending", bound=Pending)


class Stream(Closing, Generic[_Pending]):
    """Compares stored arrays, all in one stream that goes on while its user finds
    further ones; one that fails does not stop the others.

    sink: is handed every differing element, as they are found, on another thread: what was
    submitted, flat indices, and both sides' elements. The next call raises what the sink has
    raised, or NotAvailableError for an engine that is missing; whoever calls once more gets
    InterruptedCallError.
    """

    def __init__(
        self,
        resources: Resources,
        memory_bytes: int,
        *,
        direct: Literal["auto", "always", "never"] = "auto",
        sink: Callable[[_Pending, NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]], None]
        | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._resources = resources
        self._memory_bytes = memory_bytes
        self._direct: Literal["auto", "always", "never"] = direct
        self._sink = sink
        self._progress = progress
        self._told_bytes = 0
        self.submitted_bytes = 0  # of both sides, what there is to compare
        self._open: dict[int, _Pending] = {}  # those that have no answer yet, by number
        self.submitted_count = 0
        self._session: _core.StreamSession | None = None

    def _begin(self) -> _core.StreamSession:
        return _core.StreamSession(
            engine=self._resources.engine,
            memory_bytes=self._memory_bytes,
            direct=self._direct,
            max_indices=MOST_INDICES,
            backend=self._resources.backend,
            threads=self._resources.threads,
            sink=None if self._sink is None else self._hand_on,
        )

    def _hand_on(
        self,
        number: int,
        indices: NDArray[np.int64],
        golden: NDArray[np.uint8],
        new: NDArray[np.uint8],
    ) -> None:
        assert self._sink is not None
        self._sink(self._open[number], indices, golden, new)

    def submit(self, pending: _Pending, golden: FileRegion, new: FileRegion) -> None:
        """Both regions hold the array, and are of one size."""
        # Not before there is something to read: threads, memory and a ring come with it.
        self._session = self._session or self._begin()
        # Numbers are given in order, so the sink finds it whenever it is called.
        self._open[self.submitted_count] = pending
        self.submitted_count += 1
        self.submitted_bytes += _bytes_to_compare(pending, golden.byte_count)
        self._session.add(
            pending.parameters,
            golden.path,
            golden.offset,
            new.path,
            new.offset,
            golden.byte_count,
            pending.leaves,
        )

    def answers(self, *, wait: bool = False) -> Iterator[tuple[_Pending, Streamed]]:
        """What has been found out since the last call. wait: all that has been asked."""
        if self._session is None:
            return
        while True:
            done = self._session.take_done(wait, self._tell)
            for number, comparison, failure, values in done:
                yield self._open.pop(number), Streamed(comparison, failure, values)
            # Progress may end the work, and what is done is not to be lost with it.
            self._tell()
            if not (wait and done):
                return

    @property
    def open_bytes(self) -> int:
        """Of both sides, what has been asked for and is not compared yet."""
        return 0 if self._session is None else self.submitted_bytes - self._session.bytes_compared

    @property
    def open_count(self) -> int:
        """How many have no answer that was taken."""
        return len(self._open)

    def _tell(self) -> None:
        assert self._session is not None
        compared = self._session.bytes_compared
        self._progress.advance(compared - self._told_bytes)
        self._told_bytes = compared

    def facts(self) -> StreamFacts:
        """Ends the stream, all of whose answers have been taken."""
        if self._session is None:
            return StreamFacts()
        totals = self._session.close()
        return StreamFacts(totals["bytes_read"], totals["engine"])

    def close(self) -> None:
        """Gives up what has no answer yet."""
        if self._session is not None:
            self._session.give_up()
            self._session = None


def fits_stream(parameters: _core.TreeParameters) -> bool:
    """Whether elements are small enough for the buffers of any stream."""
    return parameters.scalar_bytes * parameters.scalars_per_element <= _LARGEST_ELEMENT_BYTES


def _bytes_to_compare(pending: Pending, byte_count: int) -> int:
    """Of both sides."""
    if pending.leaves is None or pending.leaves.size == 0:
        return 2 * byte_count if pending.leaves is None else 0
    chunk = pending.parameters.chunk_scalars * pending.parameters.scalar_bytes
    end = (int(pending.leaves[-1]) + 1) * chunk
    return 2 * (int(pending.leaves.size) * chunk - max(0, end - byte_count))


# From this share of suspect chunks on, reading everything in order beats reading here and there.
STREAM_FROM = 0.5
# With less than this still to be compared, finding out what else there is comes first.
_ENOUGH_BYTES = 32 << 20
# So many answers are not left lying in the stream, however small their arrays are.
_MOST_OPEN = 2000


class ElementStage(Closing):
    """Compares the data of both runs; what is found goes to the outcome. Not thread safe.

    differences: takes every differing element. take_notice: is called after some results at a time.
    """

    def __init__(
        self,
        work: Work,
        outcome: Findings,
        memory_bytes: int,
        differences: DifferenceList | None,
        take_notice: Callable[[], None],
    ) -> None:
        self._work = work
        self._outcome = outcome
        self._differences = differences
        self._take_notice = take_notice
        self._memory_bytes = memory_bytes
        # None as long as nothing was asked of it.
        self._stream: Stream[PendingComparison] | None = None

    def submit(self, pending: PendingComparison, ours: Variables, theirs: Variables) -> None:
        """At once where both arrays are in memory, into the stream where they lie in files as they
        are, else by readers, at once.

        Raises CiwrapError for what cannot be read at once.
        """
        identity = pending.result.id
        held = ours.held(identity), theirs.held(identity)
        if held[0] is not None and held[1] is not None and pending.leaves is None:
            self._compare_held(pending, held[0], held[1], ours, theirs)
            return
        reference, new = ours.region(identity), theirs.region(identity)
        if reference is not None and new is not None and fits_stream(pending.parameters):
            if self._stream is None:
                sink = None if self._differences is None else self._list
                self._stream = Stream(
                    self._work.resources,
                    self._memory_bytes,
                    sink=sink,
                    progress=self._work.progress,
                )
            self._stream.submit(pending, reference, new)
            return
        mine, other = ours.values(identity), theirs.values(identity)
        comparison = compare_elements(self._work, pending.parameters, mine, other, pending.leaves)
        self._work.data_bytes_read += 2 * comparison.element_count * mine.item_bytes

        def read_both(flat: int, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
            return mine.read(flat, count), other.read(flat, count)

        self._keep(pending, comparison, lambda flats: read_each(read_both, flats), ours, theirs)

    def _compare_held(
        self,
        pending: PendingComparison,
        golden: memoryview,
        new: memoryview,
        ours: Variables,
        theirs: Variables,
    ) -> None:
        """golden, new: all bytes of both arrays."""
        parameters = pending.parameters
        comparison = _core.compare_arrays(parameters, golden, new, max_indices=MOST_INDICES)
        self._work.progress.advance(new.nbytes)
        self._work.data_bytes_read += golden.nbytes + new.nbytes
        elements = (as_elements(golden, parameters.dtype), as_elements(new, parameters.dtype))

        def read_elements(flats: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
            places = list(flats)
            return elements[0][places], elements[1][places]

        self._keep(pending, comparison, read_elements, ours, theirs)

    def _keep(
        self,
        pending: PendingComparison,
        comparison: _core.Comparison,
        read_elements: ReadElements,
        ours: Variables,
        theirs: Variables,
    ) -> None:
        """Makes a result of what was compared at once."""
        result = pending.finish(comparison, read_elements)
        self._outcome.results.append(result)
        self._note_sums(pending, comparison)
        if result.verdict is Verdict.DIFFER and self._differences is not None:
            identity = result.id
            mine, other = ours.values(identity), theirs.values(identity)
            self._differences.add_values(
                identity, pending.parameters, mine, other, leaves=pending.leaves
            )

    def _list(
        self,
        pending: PendingComparison,
        indices: NDArray[np.int64],
        golden: NDArray[np.uint8],
        new: NDArray[np.uint8],
    ) -> None:
        assert self._differences is not None
        self._differences.add(
            pending.result.id, pending.shape, pending.parameters.dtype, indices, golden, new
        )

    def take_answers(self, *, at_once: bool = False) -> None:
        """Makes results of what the stream has found so far, unless it is about to run dry.

        at_once: however much it still has to do.
        """
        if self._stream is None:
            return
        is_dry = self._stream.open_bytes < _ENOUGH_BYTES and self._stream.open_count < _MOST_OPEN
        if is_dry and not at_once:
            return
        self._take(self._stream.answers())

    def _take(self, answers: Iterable[tuple[PendingComparison, Streamed]]) -> None:
        for count, (pending, found) in enumerate(answers, 1):
            self._outcome.results.append(pending.finish_streamed(found))
            if found.comparison is not None:
                self._note_sums(pending, found.comparison)
            if count % _MOST_OPEN == 0:
                self._take_notice()
        self._take_notice()

    def _note_sums(self, pending: PendingComparison, one: _core.Comparison) -> None:
        if pending.is_part:
            self._outcome.sums.append(
                PartSums(
                    pending.result.id,
                    int(one.element_count),
                    float(one.sum_abs_difference),
                    int(one.finite_count),
                    float(one.sum_rel_difference),
                    int(one.nonzero_count),
                )
            )

    def finish(self) -> None:
        """Waits for all answers."""
        if self._stream is None:
            return
        self._work.progress.expect(self._stream.submitted_bytes)
        self._take(self._stream.answers(wait=True))
        facts = self._stream.facts()
        self._work.data_bytes_read += facts.bytes_read
        self._work.engine = facts.engine or self._work.engine

    def close(self) -> None:
        """Gives up what has no answer yet."""
        if self._stream is not None:
            self._stream.close()


if TYPE_CHECKING:
    # Is called for a variable that cannot be compared: what is known of it, and why.
    Fail: TypeAlias = Callable[[VariableResult, CiwrapError], None]


class Pair(Struct, frozen=True):
    """One variable of both runs, of one signature, and the result of it that has begun."""

    result: VariableResult
    settings: VariableSettings
    ours: Variables
    theirs: Variables

    @property
    def has_both_data(self) -> bool:
        return self.ours.has_data and self.theirs.has_data


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
        why = _unlike_other(pair, held, made_with)
    raise ParameterMismatchError(
        f"only its capture is at hand, which was made {why}",
        file=path,
        remedy="compare by what it was captured with, or where its data are",
    )


def _unlike_other(pair: Pair, held: Variables, made_with: _core.TreeParameters) -> str:
    """In what a tree was made otherwise than the other side's."""
    sides = (pair.theirs, pair.ours) if held is pair.ours else (pair.ours, pair.theirs)
    captured = sides[0].captured.get(pair.result.id)
    tree = None if captured is None else captured.any_tree
    other = None if tree is None else describe_bound(tree.parameters)
    if other is not None and other != describe_bound(made_with):
        return f"with {describe_bound(made_with)}, and the other side's with {other}"
    return f"with blocks of {made_with.chunk_bytes} bytes, and the other side otherwise"


def _most_steps(result: VariableResult, parameters: _core.TreeParameters) -> int | None:
    """By how many steps a value moved at most, where the other run was rounded by residues."""
    if result.residue_levels is None or result.max_drift_share is None:
        return None
    return round(result.max_drift_share * ((parameters.residue_levels - 1) // 2 + 1))


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


def least_between(descent: Descent, leaves: NDArray[np.int64]) -> LeastShares | None:
    """What the summaries of both trees prove of changed chunks; None if one has none. Raises
    CorruptCaptureError.
    """
    variable = descent.variable
    ours = read_summaries(descent.golden, variable, descent.golden_tree)
    theirs = read_summaries(descent.new, variable, descent.new_tree)
    if ours is None or theirs is None:
        return None
    parameters = descent.golden_tree.parameters
    scalars = variable.element_count * parameters.scalars_per_element
    return shares_between(parameters, scalars, leaves, ours[leaves], theirs[leaves])


class TreeStage:
    """Finds variables that match, and the suspect chunks of others, for which it turns to `data`.

    Not thread safe.
    """

    def __init__(self, work: Work, outcome: Findings, data: ElementStage) -> None:
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
        mine, other = (
            fitting(
                side.captured.get(identity),
                pair.settings,
                identity,
                with_any_bound=not pair.has_both_data,
            )
            for side in (pair.ours, pair.theirs)
        )
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
        if golden is None or new is None:
            return False
        if trees is None:
            is_open = pair.ours.has_data or pair.theirs.has_data
            return not is_open and self._by_summaries(pair, mine, other)
        a, b = trees
        result = with_roots(pair.result, a.root, b.root)
        if b.against is not None:
            result = with_residues(result, a.parameters)
            if b.max_share is not None:
                result = with_drift(result, b.max_share, a.parameters)
        descent = Descent(golden, a, new, b, mine)
        pair = replace(pair, result=result)
        if not roots_match(a, b):
            self._open.append(_Open(pair, descent))
        else:
            self._matched(pair, a.parameters, descent.counts[-1])
        return True

    def _by_summaries(self, pair: Pair, mine: CapturedVariable, other: CapturedVariable) -> bool:
        """Whether the chunks of two trees with residues of their own prove a difference."""
        golden, new = pair.ours.run.capture, pair.theirs.run.capture
        a, b = mine.fine, other.fine
        if golden is None or new is None or a is None or b is None or a.parameters != b.parameters:
            return False
        descent = Descent(golden, a, new, b, mine)
        least = least_between(descent, np.arange(descent.counts[-1]))
        asked = asked_for(a.parameters, pair.settings, pair.result.id)
        result = with_roots(pair.result, a.root, b.root)
        found = None if least is None else by_summaries_alone(result, asked, a.parameters, least)
        if found is None:
            return False
        self._outcome.results.append(found)
        return True

    def _matched(
        self,
        pair: Pair,
        parameters: _core.TreeParameters,
        leaf_count: int,
        drift: _core.Drift | None = None,
    ) -> None:
        """What trees match of which the roots, or all leaves, are equal."""
        asked = asked_for(parameters, pair.settings, pair.result.id)
        if is_other_bound(asked, parameters):
            none = Suspects(np.zeros(0, dtype=np.int64), leaf_count)
            self._without_data(pair, parameters, none, drift)
            return
        count = math.prod(pair.result.shape or ())
        self._outcome.results.append(matched_by_digests(pair.result, parameters, leaf_count, count))

    def _one_capture(self, pair: Pair, captured: CapturedVariable, *, is_reference: bool) -> bool:
        """Builds the other side's tree now; only that side's data are read for it."""
        known, other = (pair.ours, pair.theirs) if is_reference else (pair.theirs, pair.ours)
        capture = known.run.capture
        tree = usable_residues(captured, is_reference=is_reference) or captured.plain
        if capture is None or tree is None:
            return False
        stored = read_tree(capture, captured, tree)
        values = other.values(pair.result.id)
        made = build_tree(
            tree.parameters,
            values,
            resources=self._work.resources,
            golden=stored if tree is captured.fine else None,
            progress=self._work.progress,
        )
        built, drift = made.tree, made.drift
        self._work.engine = made.engine or self._work.engine
        self._work.data_bytes_read += values.byte_count
        sides = (stored, built) if is_reference else (built, stored)
        result = with_roots(pair.result, sides[0].root, sides[1].root)
        if drift is not None:
            result = with_residues(result, tree.parameters)
            result = with_drift(result, float(drift.max_share), tree.parameters)
        changed = _core.diff_trees(stored, built)
        pair = replace(pair, result=result)
        if changed.size == 0:
            self._matched(pair, tree.parameters, stored.leaf_count, drift)
            return True
        solve, least = None, None
        if not pair.has_both_data:
            kept = read_summaries(capture, captured, tree)
            if kept is not None:
                theirs = summaries_against(stored, values, changed)
                scalars = stored.scalar_count
                least = shares_between(tree.parameters, scalars, changed, kept[changed], theirs)
            if is_reference:
                asked = asked_for(tree.parameters, pair.settings, pair.result.id)
                shape = tuple(captured.shape)
                solve = partial(solve_chunks, stored, values, changed, shape, asked)
        suspects = Suspects(changed, stored.leaf_count, least)
        self._suspects(pair, tree.parameters, suspects, drift, solve)
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
        least = None if one.pair.has_both_data else least_between(descent, leaves)
        suspects = Suspects(leaves, descent.counts[-1], least)
        self._suspects(one.pair, descent.golden_tree.parameters, suspects)

    def _suspects(
        self,
        pair: Pair,
        parameters: _core.TreeParameters,
        suspects: Suspects,
        drift: _core.Drift | None = None,
        solve: Callable[[], Solved] | None = None,
    ) -> None:
        """Has the elements of suspect chunks compared; without data, judges by digests."""
        if not pair.has_both_data:
            self._without_data(pair, parameters, suspects, drift, solve)
            return
        are_many = suspects.leaves.size >= STREAM_FROM * suspects.leaf_count
        shape = pair.result.shape or ()
        leaves = None if are_many else suspects.leaves
        pending = PendingComparison(pair.result, parameters, shape, leaves, suspects)
        self._data.submit(pending, pair.ours, pair.theirs)

    def _without_data(
        self,
        pair: Pair,
        parameters: _core.TreeParameters,
        suspects: Suspects,
        drift: _core.Drift | None,
        solve: Callable[[], Solved] | None = None,
    ) -> None:
        """Judges by digests; if that leaves a doubt, residues may settle it."""
        asked = asked_for(parameters, pair.settings, pair.result.id)
        steps = _most_steps(pair.result, parameters)
        result = judged_by_digests(pair.result, asked, parameters, suspects, drift, steps, solve)
        if result.verdict is Verdict.NOT_COMPARABLE and self._by_residues(pair):
            return
        if result.verdict is Verdict.NOT_COMPARABLE and not pair.theirs.has_data:
            result = _with_remedy(result, pair)
        if result.verdict is Verdict.UNDECIDED:
            result = solved_by_samples(result, pair, suspects)
        self._outcome.results.append(result)

    def _by_residues(self, pair: Pair) -> bool:
        """Whether one side's residues could be compared with the other side's data."""
        if pair.ours.has_data == pair.theirs.has_data:
            return False
        is_reference = not pair.ours.has_data
        held = pair.ours if is_reference else pair.theirs
        identity = pair.result.id
        captured = fitting(
            held.captured.get(identity), pair.settings, identity, with_any_bound=True
        )
        if captured is None or usable_residues(captured, is_reference=is_reference) is None:
            return False
        return self._one_capture(pair, captured, is_reference=is_reference)

    def _all_elements(self, pair: Pair) -> None:
        """Without trees: everything is read once, and compared."""
        result = pair.result
        for one in (pair.ours, pair.theirs):
            if not one.has_data:
                _refuse_fingerprint(pair, one)
        parameters = tree_parameters(result.dtype or "", pair.settings, variable=result.id)
        pending = PendingComparison(result, parameters, result.shape or ())
        self._data.submit(pending, pair.ours, pair.theirs)
