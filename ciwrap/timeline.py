"""What is known of a history beyond single variables: how its variables diverge over time."""

from __future__ import annotations

from msgspec import Struct

from ciwrap.details import Number
from ciwrap.structs import Word


class PointState(Word):
    """One variable of one checkpoint. MATCH: the trees agree, or all values are equal. WITHIN:
    values moved, none beyond its bound. SUSPECT: digests differ, and nobody can tell. FIRST_ONLY,
    SECOND_ONLY: only that run has it.
    """

    MATCH = "match"
    WITHIN = "within"
    SUSPECT = "suspect"
    BEYOND = "beyond"
    NOT_COMPARED = "not_compared"
    FIRST_ONLY = "first_only"
    SECOND_ONLY = "second_only"


class Trend(Word):
    """What the checkpoints beyond the bound look like in the order of iterations."""

    FROM_THE_START = "from_the_start"  # in the first iteration already
    JUMPS = "jumps"  # at once to many times what it was before
    GROWS = "grows"
    STEADY = "steady"
    COMES_AND_GOES = "comes_and_goes"  # within the bound again after having been beyond it


class TimelinePoint(Struct, frozen=True):
    """bound_share: the largest share of the bound, as far as it is known; by residues the upper end
    of what they leave open, over matching chunks.
    """

    iteration: int | None
    rank: int | None
    state: PointState
    differing_count: int | None = None
    max_abs_difference: Number | None = None
    bound_share: Number | None = None


class Timeline(Struct, frozen=True):
    """One variable over all checkpoints, in the order of iteration and rank. trend: None where
    nothing is beyond its bound, or where that tells no trend, as one iteration does.
    """

    name: str
    points: tuple[TimelinePoint, ...]
    trend: Trend | None = None


class HistoryFacts(Struct, frozen=True):
    """Of two runs as histories. Bytes are those asked of captures and of data files.

    by_captures: variables that were settled without their data.
    """

    timelines: tuple[Timeline, ...] = ()
    by_captures: int = 0
    capture_bytes_read: int = 0
    data_bytes_read: int = 0
    not_compared_checkpoints: int = 0
