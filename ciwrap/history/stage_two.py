"""Stage two: the elements of suspect chunks, read from both runs while others are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ciwrap import _core
from ciwrap.compare.parts import MOST_INDICES
from ciwrap.errors import CiwrapError, from_core_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.golden.capture import Resources
    from ciwrap.golden.values import RegionLike
    from ciwrap.model import VariableId

DEFAULT_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class StreamJob:
    """Two stored arrays of one size to compare. leaves: the chunks of `parameters`; None: all."""

    identity: VariableId
    parameters: _core.TreeParameters
    shape: tuple[int, ...]
    golden: RegionLike
    new: RegionLike
    leaves: NDArray[np.int64] | None

    @property
    def byte_count(self) -> int:
        """Of both sides, what is to be read at least."""
        if self.leaves is None:
            return 2 * self.golden.byte_count
        chunk = self.parameters.chunk_scalars * self.parameters.scalar_bytes
        last = -(-self.golden.byte_count // chunk) - 1
        short = chunk * (last + 1) - self.golden.byte_count
        has_last = self.leaves.size > 0 and int(self.leaves[-1]) == last
        return 2 * (int(self.leaves.size) * chunk - (short if has_last else 0))


@dataclass(frozen=True, slots=True)
class Streamed:
    """What a job came to: a comparison, or the error that stopped it.

    first_values: both sides' bytes of the first few differing elements, back to back.
    """

    comparison: _core.Comparison | None
    error: CiwrapError | None = None
    first_values: tuple[bytes, bytes] = (b"", b"")


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """How the data were read. direct_bytes_read: the part that went past the system's cache."""

    bytes_read: int = 0
    direct_bytes_read: int = 0
    read_count: int = 0
    engine: str | None = None


# Of one job: flat indices of differing elements, and both sides' elements.
Sink: TypeAlias = (
    "Callable[[StreamJob, NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]], None]"
)


def run_jobs(
    jobs: Sequence[StreamJob],
    resources: Resources,
    memory_bytes: int,
    *,
    direct: Literal["auto", "always", "never"] = "auto",
    sink: Sink | None = None,
) -> tuple[list[Streamed], StreamFacts]:
    """Compares all jobs in one stream; one that fails does not stop the others.

    sink: is handed every differing element, as they are found. Raises NotAvailableError for an
    engine that is missing, and what the sink raises.
    """

    def hand_on(
        position: int,
        indices: NDArray[np.int64],
        golden: NDArray[np.uint8],
        new: NDArray[np.uint8],
    ) -> None:
        assert sink is not None
        sink(jobs[position], indices, golden, new)

    try:
        report = _core.stream_compare(
            [
                _core.StreamJob(
                    job.parameters,
                    job.golden.path,
                    job.golden.offset,
                    job.new.path,
                    job.new.offset,
                    job.golden.byte_count,
                    job.leaves,
                )
                for job in jobs
            ],
            engine=resources.engine,
            memory_bytes=memory_bytes,
            direct=direct,
            max_indices=MOST_INDICES,
            backend=resources.backend,
            threads=resources.threads,
            sink=None if sink is None else hand_on,
        )
    except _core.CoreError as error:
        raise from_core_error(error) from error
    results = [
        Streamed(comparison, None, values)
        if error is None
        else Streamed(None, from_core_error(error))
        for comparison, error, values in zip(
            report["comparisons"], report["errors"], report["first_values"], strict=True
        )
    ]
    return results, StreamFacts(
        report["bytes_read"],
        report["direct_bytes_read"],
        report["read_count"],
        report["engine"],
    )
