"""Two whole runs against each other."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ciwrap.captures.checkpoint import Variables
from ciwrap.captures.index import key_order
from ciwrap.compare.bounds_used import rules_between, with_bound_notes
from ciwrap.compare.common import leave_out_uncommon
from ciwrap.compare.comparer import Comparer, ended_words
from ciwrap.compare.hints import hints
from ciwrap.compare.outcome import HistoryOptions, Outcome
from ciwrap.compare.pairing import Nothing, pair_up
from ciwrap.compare.tally import RUNS, check_result
from ciwrap.compare.timelines import history_facts
from ciwrap.compare.work import Work
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.model import Message, MessageLevel, Verdict
from ciwrap.progress import NO_PROGRESS
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Side
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.errors import CiwrapError
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
    """Compares two runs, or two files; raises UsageError, all else is in the result.

    Where nobody asks for a bound, that of a capture holds, for all checkpoints.

    progress: an EndableProgress makes a partial result where a signal comes. differences: takes
    every differing element; raises WriteFailedError then. spread: hands the
    checkpoints, biggest first, to several processes.
    """
    options = HistoryOptions() if options is None else options
    rules = rules_between(rules, golden, new)
    if options.detail_bytes > 0 and _is_large(golden, new):
        options = replace(options, detail_bytes=0)
    # Rows that are aligned by an id, perhaps across ranks, are a matter of whole runs.
    is_paired = golden.groups.keys() == new.groups.keys() or not _grouped_in_other_ways(golden, new)
    if rules.arrangement is not None or not is_paired:
        if spread is not None:
            raise UsageError(
                "rows are aligned, or iterations stand in the paths of one run and in the files"
                " of the other",
                remedy="compare without --mpi",
            )
        for side in (golden, new):
            side.take_whole(rules.arrangement)
    if rules.arrangement is not None and (golden.is_fingerprint or new.is_fingerprint):
        raise UsageError(
            "rows are aligned, or copies chosen, which captures know nothing of",
            remedy="give the runs themselves",
        )
    keys = sorted({*golden.groups, *new.groups}, key=key_order)
    shared = [key for key in keys if key in golden.groups and key in new.groups]
    started = time.monotonic()
    progress.begin(name, None)
    try:
        work = Work(resources, progress)
        comparer = Comparer(work, golden, new, rules, options, differences)
        if spread is None:
            outcome = comparer.compare(shared)
        else:
            outcome = spread(biggest_first(golden, new), lambda key: comparer.compare([key]))
        if outcome.ended_by is not None:
            one_sided_keys = {*keys}.difference(shared)
            outcome.lost += [(key, ended_words(outcome.ended_by)) for key in one_sided_keys]
        elif len(shared) < len(keys):
            outcome.add(one_sided(golden, new, rules, keys))
    finally:
        progress.end()
    if options.is_common:
        outcome.notes += leave_out_uncommon(outcome)
    result = with_bound_notes(finish(name, outcome, golden, new, rules), rules)
    return replace(
        result,
        golden_path=golden_path,
        source_path=source_path,
        backend=resources.backend_used,
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


def _is_large(golden: Side, new: Side) -> bool:
    """Whether the data of both are too many for a second look at them."""
    left = _MOST_DETAILED_BYTES
    for side in (golden, new):
        for files in side.groups.values():
            left -= stored_bytes(files)
            if left < 0:
                return True
    return False


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
        if key in golden.groups and key in new.groups:
            continue
        is_reference = key in golden.groups
        found = Variables(golden if is_reference else new, key)
        found.close()
        ours, theirs = (found, Nothing()) if is_reference else (Nothing(), found)
        pair_up(outcome, rules, ours, theirs)
        outcome.errors += found.errors
        if found.stale is not None:
            outcome.stale.append((str(found.side.run), key, found.stale))
    return outcome


def finish(name: str, outcome: Outcome, golden: Side, new: Side, rules: Rules) -> CheckResult:
    """The check's result of all that was found."""
    messages = []
    for side in (golden, new):
        outcome.errors += side.found.unread
        if side.fault is not None:
            messages.append(f"a capture is not used: {side.fault}")
        stale = [one for one in outcome.stale if one[0] == str(side.run)]
        if stale:
            _, key, reason = min(stale, key=lambda one: key_order(one[1]))
            messages.append(
                f"{side.run}: captured checkpoints that are stale, and were read instead:"
                f" {len(stale)} ({key_text(key)}: {reason})"
            )
    outcome.errors += _lost(outcome)
    if outcome.ended_by is not None:
        error = NotComparableError(
            f"the comparison was ended by {outcome.ended_by} before all was compared; this is what"
            " it had found",
            remedy="compare again",
        )
        outcome.errors.insert(0, error)
    check = check_result(name, outcome, rules, RUNS, messages=messages)
    notes = [note for side in (golden, new) for note in side.found.notes]
    if check.verdict is not Verdict.MATCH:
        notes += hints(outcome, golden, new)
    told = [Message(MessageLevel.NOTE, text) for text in dict.fromkeys(notes)]
    told += [fingerprint_note(side) for side in (golden, new) if side.is_fingerprint]
    check = replace(check, messages=(*check.messages, *told))
    check = replace(check, excluded_files=sum(side.excluded_files for side in (golden, new)))
    if golden.is_single and not any(one.iteration is not None for one in check.variables):
        return check
    return replace(check, history=history_facts(check, outcome))


def fingerprint_note(side: Side) -> Message:
    """What is told of a run of which there is a capture alone."""
    header = side.header
    made = "" if header is None else f" of {header.made_at}, by ciwrap {header.made_by}"
    return Message(
        MessageLevel.NOTE,
        f"{side.run} is a fingerprint{made}: what its trees leave open stays open",
    )


def _lost(outcome: Outcome) -> list[CiwrapError]:
    """An error for each reason for which checkpoints were not compared."""
    by_reason: dict[str, list[CheckpointKey]] = {}
    for key, reason in sorted(outcome.lost, key=lambda one: key_order(one[0])):
        by_reason.setdefault(reason, []).append(key)
    errors: list[CiwrapError] = []
    for reason, keys in by_reason.items():
        if len(keys) == 1:
            error = NotComparableError(f"was not compared: {reason}", variable=key_text(keys[0]))
        else:
            error = NotComparableError(
                f"{len(keys):,} checkpoints, from {key_text(keys[0])} to {key_text(keys[-1])}, were"
                f" not compared: {reason}"
            )
        errors.append(error)
    return errors


def key_text(key: CheckpointKey) -> str:
    """`iter 10 / rank 0`, as far as these are known."""
    parts = [] if key[0] is None else [f"iter {key[0]}"]
    parts += [] if key[1] is None else [f"rank {key[1]}"]
    return " / ".join(parts) or "the run"
