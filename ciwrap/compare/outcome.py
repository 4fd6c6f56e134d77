"""What comparing some checkpoints comes to; several outcomes add up, whoever found them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ciwrap.compare.stream import DEFAULT_MEMORY_BYTES

if TYPE_CHECKING:
    from ciwrap.captures.index import CheckpointKey
    from ciwrap.errors import CiwrapError
    from ciwrap.model import VariableId, VariableResult


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """memory_bytes: for the buffers of stage two. bounds_from_captures: take the error bound that
    the first run was captured with, since none was given. detail_bytes: of differing variables,
    what may be read once more for the samples and maps that a report draws.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    bounds_from_captures: bool = False
    detail_bytes: int = 64 << 20


@dataclass(slots=True)
class Outcome:
    """What was found on some checkpoints; several add up, whoever found them."""

    results: list[VariableResult] = field(default_factory=list)
    missing: list[VariableId] = field(default_factory=list)
    extra: list[VariableId] = field(default_factory=list)
    ignored: list[VariableId] = field(default_factory=list)
    errors: list[CiwrapError] = field(default_factory=list)
    # Checkpoints whose capture no longer holds: run, checkpoint, why.
    stale: list[tuple[str, CheckpointKey, str]] = field(default_factory=list)
    # Why a tree that should have been used was not.
    unused: list[str] = field(default_factory=list)
    # Checkpoints that nobody came to compare, and why.
    lost: list[tuple[CheckpointKey, str]] = field(default_factory=list)
    by_mpi_rank: list[int] = field(default_factory=list)
    capture_bytes_read: int = 0
    data_bytes_read: int = 0
    engine: str | None = None

    def add(self, other: Outcome) -> None:
        for item in fields(self):
            mine = getattr(self, item.name)
            if isinstance(mine, list):
                mine.extend(getattr(other, item.name))
        self.capture_bytes_read += other.capture_bytes_read
        self.data_bytes_read += other.data_bytes_read
        self.engine = other.engine or self.engine
