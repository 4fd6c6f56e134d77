"""What `ciwrap check-ensemble` and `capture-ensemble` found, as records of JSON documents."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciwrap.details import Number
from ciwrap.statistics.ensemble import EnsembleVerdict


class Shift(msgspec.Struct, frozen=True):
    """How far the new runs' mean of one feature is from the members' mean, in standard deviations
    of the mean of so many members; infinite for a feature that no member varies.
    """

    feature: str
    deviations: Number


class EnsembleDocument(msgspec.Struct, frozen=True):
    """What check-ensemble found. verdict: never a match, since no value was compared with another.

    members, runs: how many there are that differ from each other. p: how often runs drawn from all
    of them lie as far out; null where they are too few. more_members: how many further ones it
    takes. shifts: of all features that moved, the largest first.
    """

    schema_version: Literal[1]
    kind: Literal["ensemble"]
    exit_code: Literal[0, 1, 3]
    check: str
    verdict: EnsembleVerdict
    golden_path: str
    features: int
    members: int
    runs: int
    rate: float
    seed: int
    environment: dict[str, str]
    golden_environment: dict[str, str]
    ciwrap_version: str
    started_at: str
    p: float | None = None
    more_members: int | None = None
    shifts: tuple[Shift, ...] = ()


class CaptureEnsembleDocument(msgspec.Struct, frozen=True):
    """What capture-ensemble did. members: how many runs there are. distinct: how many of them
    differ from each other. least_runs: for how many new runs at once the ensemble is large enough;
    null if for none.
    """

    schema_version: Literal[1]
    kind: Literal["capture-ensemble"]
    check: str
    golden_path: str
    members: int
    distinct: int
    features: tuple[str, ...]
    least_runs: int | None
