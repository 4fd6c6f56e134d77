"""What comparing some variables comes to; several outcomes add up, whoever found them."""

from __future__ import annotations

import msgspec
from msgspec import field

from ciwrap.captures.index import CheckpointKey
from ciwrap.details import Number
from ciwrap.errors import CiwrapError
from ciwrap.model import VariableId, VariableResult
from ciwrap.structs import Struct

_MEMORY_BYTES = 256 << 20


class HistoryOptions(Struct, frozen=True):
    """memory_bytes: for the buffers of stage two. detail_bytes: of differing variables, what may be
    read once more for the samples and maps that a report draws. is_common: whether the iterations
    that one run has and the other does not reach are left out. is_explained: whether the first
    difference is looked at once more, to say what its elements have in common. ended_in: the
    iteration in which the new run diverged and was ended for that; what it lacks from there on is
    left out. has_timelines: whether a result that matches throughout has its timelines, too, which
    only documents and every detail show. is_brief: whether of thousands that do not match most say
    little, as `ciwrap.model.brief` says.
    """

    memory_bytes: int = _MEMORY_BYTES
    detail_bytes: int = 64 << 20
    is_common: bool = False
    is_explained: bool = False
    ended_in: int | None = None
    has_timelines: bool = True
    is_brief: bool = False


class WrongAnswerError(Exception):
    """What came back says nothing of what was asked."""


class PartSums(msgspec.Struct, frozen=True):
    """What was compared of a variable's part, and what its means are made of: sums over pairs of
    finite numbers, and how many pairs these are (relative: with a reference other than 0).
    """

    variable: VariableId
    element_count: int
    sum_abs: Number
    finite_count: int
    sum_rel: Number
    nonzero_count: int


class Outcome(msgspec.Struct):
    """What was found. Several outcomes add up, whoever found them.

    missing, extra: what only one side has, as results that have only begun. ignored: left out as
    the rules say; left_out: those of them that the reference holds; uncommon: how many of the
    ignored ones are of iterations that were not to be compared. notes: what to tell besides.
    """

    results: list[VariableResult] = field(default_factory=list)
    missing: list[VariableResult] = field(default_factory=list)
    extra: list[VariableResult] = field(default_factory=list)
    ignored: list[VariableId] = field(default_factory=list)
    left_out: list[VariableId] = field(default_factory=list)
    uncommon: int = 0
    errors: list[CiwrapError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Checkpoints whose capture no longer holds: run, checkpoint, why.
    stale: list[tuple[str, CheckpointKey, str]] = field(default_factory=list)
    # Why a tree that should have been used was not.
    unused: list[str] = field(default_factory=list)
    # Checkpoints that nobody came to compare, and why.
    lost: list[tuple[CheckpointKey, str]] = field(default_factory=list)
    # Of variables that are compared in parts.
    sums: list[PartSums] = field(default_factory=list)
    capture_bytes_read: int = 0
    data_bytes_read: int = 0
    engine: str | None = None
    # The signal that ended the comparison before all was compared.
    ended_by: str | None = None

    def add(self, other: Outcome) -> None:
        """Takes in what another one holds: lists and counts add up, of the rest the last counts."""
        for name in self.__struct_fields__:
            ours, theirs = getattr(self, name), getattr(other, name)
            if isinstance(ours, list):
                ours += theirs
            else:
                setattr(self, name, ours + theirs if isinstance(ours, int) else theirs or ours)
