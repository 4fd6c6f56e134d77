"""Stage two: elements, of suspect chunks or all, by the stream or by readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.closing import Closing
from ciwrap.compare.outcome import PartSums
from ciwrap.compare.parts import read_each
from ciwrap.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.captures.checkpoint import Variables
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.outcome import Outcome
    from ciwrap.compare.question import PendingComparison
    from ciwrap.compare.stream import Stream, Streamed
    from ciwrap.compare.work import Work

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
        outcome: Outcome,
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
        """Into the stream where both arrays lie in files as they are, else by readers, at once.

        Raises CiwrapError for what cannot be read at once.
        """
        # Most captured runs leave nothing open.
        from ciwrap.compare.elements import compare_elements
        from ciwrap.compare.stream import Stream, fits_stream

        identity = pending.result.id
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

        result = pending.finish(comparison, lambda flats: read_each(read_both, flats))
        self._outcome.results.append(result)
        self._note_sums(pending, comparison)
        if result.verdict is Verdict.DIFFER and self._differences is not None:
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
