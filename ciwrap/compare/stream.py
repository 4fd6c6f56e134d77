"""Stage two: the elements of suspect chunks, read from both sides while others are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ciwrap import _core
from ciwrap.closing import Closing
from ciwrap.compare.parts import MOST_INDICES
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.arrays.values import FileRegion
    from ciwrap.errors import CiwrapError
    from ciwrap.progress import Progress
    from ciwrap.trees.build import Resources

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
