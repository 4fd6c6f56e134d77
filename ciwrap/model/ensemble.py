"""What a check says of runs whose statistics were held against an ensemble."""

from __future__ import annotations

from msgspec import Struct

from ciwrap.details import Number
from ciwrap.model.rules import VariableId


class Shift(Struct, frozen=True):
    """How far the new runs' mean of one feature is from the members' mean, in standard deviations
    of the mean of so many members; infinite for a feature that no member varies.
    """

    feature: str
    deviations: Number


class EnsembleFacts(Struct, frozen=True):
    """Runs against an ensemble.

    members, runs: how many there are that differ from each other. features: how many numbers stand
    for each. rate: of honest runs that are called inconsistent. p: how often runs drawn from all of
    them lie as far out; None where they are too few, and more_members then says how many further
    ones it takes. shifts: of the features that moved, the largest first. without_statistics: what
    the new runs hold that is no numbers, or empty; nothing of it was compared. masked_elements: of
    all new runs; they have no part in the statistics. filled: variables with fill values, which
    have none either.
    """

    members: int
    runs: int
    features: int
    rate: float
    p: float | None = None
    more_members: int | None = None
    shifts: tuple[Shift, ...] = ()
    without_statistics: tuple[VariableId, ...] = ()
    masked_elements: int = 0
    filled: int = 0
