"""Two whole runs against each other."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ciwrap.captures.checkpoint import Variables
from ciwrap.captures.index import key_order
from ciwrap.compare.comparer import Comparer
from ciwrap.compare.outcome import HistoryOptions, Outcome
from ciwrap.compare.runs import compare_runs
from ciwrap.compare.tally import Tally
from ciwrap.compare.timelines import history_facts, with_history
from ciwrap.compare.variable import Compared
from ciwrap.errors import CiwrapError, NotComparableError, UnsupportedFormatError, UsageError
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.model import CheckResult
    from ciwrap.progress import Progress
    from ciwrap.readers.layout import OutputFile

    # Has every checkpoint compared by somebody and adds up what they found.
    Spread = Callable[[Sequence[CheckpointKey], Callable[[CheckpointKey], Outcome]], Outcome]


# Samples and maps for the report take a second look at the data: of runs up to this size.
_MOST_DETAILED_BYTES = 64 << 20


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
    differences: DifferenceList | None = None,
    spread: Spread | None = None,
) -> CheckResult:
    """Compares two runs; raises UsageError, all else is in the result.

    differences: takes every differing element; raises WriteFailedError then. spread: hands the
    checkpoints, biggest first, to several processes.
    """
    options = fitted_options(golden, new, options)
    keys = sorted({*golden.groups, *new.groups}, key=key_order)
    shared = [key for key in keys if key in golden.groups and key in new.groups]
    # Rows that are aligned by an id, perhaps across ranks, are a matter of whole catalogs.
    if rules.arrangement is not None or _grouped_in_other_ways(golden, new):
        for unused, option in ((spread, "--mpi"), (differences, "--list")):
            if unused is not None:
                raise UsageError(
                    "rows are aligned, or iterations stand in the paths of one run and in the files"
                    " of the other",
                    remedy=f"compare without {option}",
                )
        compared = compare_runs(
            name,
            golden.found,
            new.found,
            rules,
            golden_path=golden_path,
            source_path=source_path,
            resources=resources,
            progress=progress,
        )
        return with_history(compared)
    started = time.monotonic()
    progress.begin(name, None)
    try:
        comparer = Comparer(golden, new, rules, options, resources, progress, differences)
        if spread is None:
            outcome = comparer.compare(shared)
        else:
            outcome = spread(biggest_first(golden, new), lambda key: comparer.compare([key]))
        outcome.add(one_sided(golden, new, rules, keys))
    finally:
        progress.end()
    result = finish(name, outcome, golden, new, rules, resources)
    return replace(
        result,
        golden_path=golden_path,
        source_path=source_path,
        seconds=time.monotonic() - started,
    )


def biggest_first(golden: Side, new: Side) -> list[CheckpointKey]:
    """The checkpoints of both runs, those with the most data first."""
    shared = [key for key in golden.groups if key in new.groups]
    return sorted(
        shared,
        key=lambda key: (
            -stored_bytes(golden.groups[key]) - stored_bytes(new.groups[key]),
            key_order(key),
        ),
    )


def fitted_options(golden: Side, new: Side, options: HistoryOptions | None) -> HistoryOptions:
    """The options for runs of this size."""
    options = HistoryOptions() if options is None else options
    left = _MOST_DETAILED_BYTES
    for side in (golden, new):
        for files in side.groups.values():
            left -= stored_bytes(files)
            if left < 0:
                return replace(options, detail_bytes=0)
    return options


def stored_bytes(files: Iterable[OutputFile]) -> int:
    """What the files of a checkpoint hold, as far as they can be asked."""
    total = 0
    for file in files:
        with contextlib.suppress(OSError):
            total += file.path.stat().st_size
    return total


def _grouped_in_other_ways(golden: Side, new: Side) -> bool:
    """Whether iterations or ranks stand in the paths of one run and in the files of the other, so
    that variables, not files, have to be paired.
    """
    return any(
        any(key[part] is None for key in golden.groups)
        != any(key[part] is None for key in new.groups)
        for part in (0, 1)
    )


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
    golden: Side,
    new: Side,
    rules: Rules,
    resources: Resources,
) -> CheckResult:
    """The check's result of all that was found."""
    tally = Tally(strict_variables=rules.strict_variables)
    for side in (golden, new):
        for path in side.found.unmatched:
            tally.fail(_unmatched(path))
        if side.fault is not None:
            tally.warn(f"a capture is not used: {side.fault}")
        stale = [one for one in outcome.stale if one[0] == str(side.run)]
        if stale:
            _, key, reason = min(stale, key=lambda one: key_order(one[1]))
            tally.warn(
                f"{side.run}: captured checkpoints that are stale, and were read instead:"
                f" {len(stale)} ({key_text(key)}: {reason})"
            )
    for text in dict.fromkeys(outcome.unused):
        tally.warn(f"a capture is not used: {text}")
    for error in outcome.errors:
        tally.fail(error)
    for key, reason in sorted(outcome.lost, key=lambda one: key_order(one[0])):
        tally.fail(NotComparableError(f"was not compared: {reason}", variable=key_text(key)))
    for identity in sorted(outcome.missing):
        tally.missing(identity, "is on the first side only", "write it in both runs")
    for identity in sorted(outcome.extra):
        tally.extra(identity, "is on the second side only", "write it in both runs")
    for result in sorted(outcome.results, key=lambda one: one.id.sort_key):
        tally.add(Compared(result, outcome.engine), 0)
    check = tally.result(name, sorted(outcome.ignored), backend=resources.backend_used)
    check = replace(check, bytes_read=outcome.capture_bytes_read + outcome.data_bytes_read)
    return replace(check, history=history_facts(check, outcome))


def key_text(key: CheckpointKey) -> str:
    """`iter 10 / rank 0`, as far as these are known."""
    parts = [] if key[0] is None else [f"iter {key[0]}"]
    parts += [] if key[1] is None else [f"rank {key[1]}"]
    return " / ".join(parts) or "the run"


def _unmatched(path: Path) -> CiwrapError:
    return UnsupportedFormatError(
        "is not compared: no reader knows its suffix, or no layout fits its path",
        file=path,
        remedy="leave it out with 'exclude', or give 'format' or 'layout'",
    )
