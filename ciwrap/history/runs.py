"""Two whole runs against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ciwrap.compare.tally import Tally
from ciwrap.compare.variable import Compared
from ciwrap.errors import CiwrapError, UnsupportedFormatError
from ciwrap.golden.capture import DEFAULT_RESOURCES, Resources
from ciwrap.golden.progress import NO_PROGRESS
from ciwrap.history.checkpoint import Variables
from ciwrap.history.comparer import Comparer
from ciwrap.history.index import key_order
from ciwrap.history.outcome import HistoryOptions, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.compare.runs import Rules
    from ciwrap.golden.progress import Progress
    from ciwrap.history.index import CheckpointKey
    from ciwrap.history.side import Side
    from ciwrap.model import CheckResult


def compare_histories(
    name: str,
    golden: Side,
    new: Side,
    rules: Rules,
    options: HistoryOptions | None = None,
    *,
    golden_path: str,
    source_path: str,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
) -> CheckResult:
    """Compares two runs; raises UsageError, all else is in the result."""
    options = HistoryOptions() if options is None else options
    tally = Tally(strict_variables=rules.strict_variables)
    keys = sorted({*golden.groups, *new.groups}, key=key_order)
    shared = [key for key in keys if key in golden.groups and key in new.groups]
    progress.begin(name, None)
    try:
        outcome = Comparer(golden, new, rules, options, resources, progress).compare(shared)
        outcome.add(one_sided(golden, new, rules, keys))
    finally:
        progress.end()
    return finish(name, outcome, tally, golden, new, golden_path, source_path, resources)


def one_sided(golden: Side, new: Side, rules: Rules, keys: Iterable[CheckpointKey]) -> Outcome:
    """The variables of checkpoints that only one run has."""
    outcome = Outcome()
    for key in keys:
        for side, other, where in (
            (golden, new, outcome.missing),
            (new, golden, outcome.extra),
        ):
            if key in side.groups and key not in other.groups:
                variables = Variables(side, key, outcome)
                variables.close()
                for identity in sorted(variables.identities):
                    (outcome.ignored if rules.is_ignored(identity) else where).append(identity)
    return outcome


def finish(
    name: str,
    outcome: Outcome,
    tally: Tally,
    golden: Side,
    new: Side,
    golden_path: str,
    source_path: str,
    resources: Resources,
) -> CheckResult:
    """The check's result of all that was found."""
    for side in (golden, new):
        for path in side.found.unmatched:
            tally.fail(_unmatched(path))
        if side.fault is not None:
            tally.warn(f"a capture is not used: {side.fault}")
        if side.stale:
            key, reason = next(iter(side.stale.items()))
            tally.warn(
                f"{side.run}: {len(side.stale)} captured checkpoints are stale and were read"
                f" instead (iter {key[0]} / rank {key[1]}: {reason})"
            )
    for text in outcome.stale:
        tally.warn(f"a capture is not used: {text}")
    for error in outcome.errors:
        tally.fail(error)
    for identity in outcome.missing:
        tally.missing(identity, "is on the first side only", "write it in both runs")
    for identity in outcome.extra:
        tally.extra(identity, "is on the second side only", "write it in both runs")
    for result in sorted(outcome.results, key=lambda one: one.id.sort_key):
        tally.add(Compared(result, outcome.engine), 0)
    return replace(
        tally.result(
            name,
            sorted(outcome.ignored),
            golden_path=golden_path,
            source_path=source_path,
            backend=resources.backend_used,
        ),
        bytes_read=outcome.capture_bytes_read + outcome.data_bytes_read,
    )


def _unmatched(path: Path) -> CiwrapError:
    return UnsupportedFormatError(
        "is not compared: no reader knows its suffix, or no layout fits its path",
        file=path,
        remedy="leave it out with 'exclude', or give 'format' or 'layout'",
    )
