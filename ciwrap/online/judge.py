"""The verdict on a run that was held against another one while it ran."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ciwrap.captures.recording import RecordedCapture
from ciwrap.captures.side import open_fingerprint
from ciwrap.compare.histories import compare_histories
from ciwrap.compare.outcome import HistoryOptions

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.catalog.rules import Rules
    from ciwrap.model import CheckResult
    from ciwrap.online.reference import Reference
    from ciwrap.trees.build import Resources


def judge_recorded(
    reference: Reference,
    run: Path,
    rules: Rules,
    *,
    is_common: bool,
    ended_in: int | None,
    resources: Resources,
) -> CheckResult:
    """Compares what all processes have recorded with the reference.

    The library stops a program as soon as one process finds a chunk that does not match; what that
    means, and what diverged first, is told here, once all have told. is_common, ended_in: as in
    `HistoryOptions`. Raises UsageError, and the errors of reading.
    """
    with (
        closing(reference.open()) as ours,
        closing(open_fingerprint(run, run, RecordedCapture)) as theirs,
    ):
        return compare_histories(
            f"{reference.named} : {run}",
            ours,
            theirs,
            rules,
            HistoryOptions(detail_bytes=0, is_common=is_common, ended_in=ended_in),
            golden_path=str(reference.named),
            source_path=str(run),
            resources=resources,
        )
