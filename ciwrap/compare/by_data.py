"""Stage two for a comparer: elements, of suspect chunks or all, by the stream or by readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.closing import Closing
from ciwrap.compare.parts import MOST_INDICES, read_each, suspect_pieces
from ciwrap.compare.question import Question, result_of, streamed_result
from ciwrap.compare.stream import Stream, fits_stream
from ciwrap.model import Verdict
from ciwrap.trees.build import tree_parameters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.captures.checkpoint import Variables
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.outcome import Outcome
    from ciwrap.model import VariableId, VariableSettings
    from ciwrap.progress import Progress
    from ciwrap.trees.build import Resources

# From this share of suspect chunks on, reading everything in order beats reading here and there.
_STREAM_FROM = 0.5
# With less than this still to be compared, finding out what else there is comes first.
_ENOUGH_BYTES = 32 << 20


class ByData(Closing):
    """Puts questions to the data of both runs; what is found goes to the outcome. Not thread safe.

    differences: takes every differing element.
    """

    def __init__(
        self,
        outcome: Outcome,
        resources: Resources,
        memory_bytes: int,
        differences: DifferenceList | None,
        progress: Progress,
    ) -> None:
        self._outcome = outcome
        self._resources = resources
        self._differences = differences
        sink = None if differences is None else self._list
        self._progress = progress
        self._stream: Stream[Question] = Stream(
            resources, memory_bytes, sink=sink, progress=progress
        )

    def all_elements(
        self,
        identity: VariableId,
        ours: Variables,
        theirs: Variables,
        settings: VariableSettings,
        facts: dict[str, Any],
    ) -> None:
        """Without trees: everything is read once, and compared."""
        parameters = tree_parameters(facts["dtype"], settings, variable=identity.text)
        question = Question(identity, parameters, facts["shape"], None, None, 0, facts, {})
        self._ask(question, ours, theirs)

    def suspects(
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
        """The elements of suspect chunks."""
        leaves = None if suspects.size >= _STREAM_FROM * leaf_count else suspects
        question = Question(
            identity, parameters, facts["shape"], leaves, suspects, leaf_count, facts, roots
        )
        self._ask(question, ours, theirs)

    def _ask(self, question: Question, ours: Variables, theirs: Variables) -> None:
        """Into the stream where both arrays lie in files as they are, else by readers, at once."""
        golden, new = ours.region(question.identity), theirs.region(question.identity)
        if golden is not None and new is not None and fits_stream(question.parameters):
            self._stream.ask(question, golden, new)
            return
        mine, other = ours.values(question.identity), theirs.values(question.identity)
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
        read_elements = read_each(
            lambda flat, count: (mine.read(flat, count), other.read(flat, count))
        )
        result = result_of(question, comparison, read_elements)
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

    def take_answers(self) -> None:
        """Makes results of what the stream has found so far, unless it is about to run dry."""
        if self._stream.open_bytes < _ENOUGH_BYTES:
            return
        for question, found in self._stream.answers():
            self._outcome.results.append(streamed_result(question, found))

    def finish(self) -> None:
        """Waits for all answers."""
        if self._stream.asked_bytes:
            self._progress.expect(self._stream.asked_bytes)
        for question, found in self._stream.answers(wait=True):
            self._outcome.results.append(streamed_result(question, found))
        facts = self._stream.facts()
        self._outcome.data_bytes_read += facts.bytes_read
        self._outcome.engine = facts.engine or self._outcome.engine

    def close(self) -> None:
        """Gives up what has no answer yet."""
        self._stream.close()
