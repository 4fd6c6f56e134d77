"""What `ciwrap capture --ensemble` did, as a record of a JSON document."""

from __future__ import annotations

from typing import Literal

from ciwrap.documents.records import DocumentHead


class CaptureEnsembleDocument(DocumentHead, frozen=True):
    """What capture --ensemble did. members: how many runs there are. distinct: how many of them
    differ from each other. least_runs: for how many new runs at once the ensemble is large enough;
    null if for none. without_statistics: variables of the runs of which nothing is kept, since they
    are no numbers, or empty. rounded: variables with integers that no double holds.
    """

    kind: Literal["capture-ensemble"]
    check: str
    golden_path: str
    members: int
    distinct: int
    features: tuple[str, ...]
    least_runs: int | None
    without_statistics: tuple[str, ...]
    rounded: tuple[str, ...]
