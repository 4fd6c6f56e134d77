"""Two whole runs against each other."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from ciwrap.captures.index import key_order
from ciwrap.compare.bounds_used import rules_between, unused_settings, with_bound_notes
from ciwrap.compare.explaining import explainer
from ciwrap.compare.fit import RUNS
from ciwrap.compare.law import not_comparable
from ciwrap.compare.outcome import HistoryOptions
from ciwrap.compare.spread import Spread
from ciwrap.compare.tally import check_result, fewer_details
from ciwrap.compare.unit_comparer import UnitComparer
from ciwrap.compare.units import plan_units
from ciwrap.compare.work import Work
from ciwrap.errors import NotComparableError, UsageError
from ciwrap.model import Message, MessageLevel, Verdict
from ciwrap.model.brief import with_brief_ones
from ciwrap.progress import NO_PROGRESS
from ciwrap.structs import replace
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.captures.side import Run
    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.across_ranks import Parts
    from ciwrap.compare.differences import DifferenceList
    from ciwrap.compare.fit import Wording
    from ciwrap.compare.outcome import Outcome
    from ciwrap.errors import CiwrapError
    from ciwrap.model import CheckResult, VariableId, VariableResult
    from ciwrap.progress import Progress


# Samples and maps for the report take a second look at the data: of runs up to this size.
_MOST_DETAILED_BYTES = 64 << 20


def compare_histories(
    name: str,
    golden: Run,
    new: Run,
    rules: Rules,
    options: HistoryOptions | None = None,
    *,
    golden_path: str,
    source_path: str,
    wording: Wording = RUNS,
    resources: Resources = DEFAULT_RESOURCES,
    progress: Progress = NO_PROGRESS,
    differences: DifferenceList | None = None,
    spread: Spread | None = None,
) -> CheckResult:
    """Compares two runs, or two files; raises UsageError, all else is in the result.

    Where nobody asks for a bound, that of a capture holds, for all checkpoints.

    progress: an EndableProgress makes a partial result where a signal comes. differences: takes
    every differing element; raises WriteFailedError then. spread: who compares; default: this
    process. wording: how what one side alone has is spoken of.
    """
    options = HistoryOptions() if options is None else options
    spread = Spread() if spread is None else spread
    rules = rules_between(rules, golden, new)
    unused = tuple(unused_settings(rules, (("A", golden), ("B", new))))
    _lay_out(golden, new, rules)
    started = time.monotonic()
    progress.begin(name, None)
    try:
        work = Work(resources, explain=explainer)
        comparer = UnitComparer(work, golden, new, rules, options, differences, spread.list_path)
        outcome = _compare_units(comparer, spread, progress)
    finally:
        progress.end()
    is_match = all(one.verdict is Verdict.MATCH for one in outcome.results)
    if options.is_explained and outcome.ended_by is None and not is_match:
        _explain(outcome, resources, (golden, new), rules)
    _leave_out(outcome, options, (golden, new))
    if not is_match:
        outcome.results = fewer_details(outcome.results)
    can_go_on = spread.journal_path is not None
    result = _finish(name, outcome, (golden, new), rules, wording, can_go_on=can_go_on)
    if options.has_timelines or result.verdict is not Verdict.MATCH:
        result = _with_history(result, outcome, golden)
    result = with_bound_notes(result, rules, golden, new, unused)
    return replace(
        result,
        golden_path=golden_path,
        source_path=source_path,
        backend=resources.backend_used,
        seconds=time.monotonic() - started,
    )


def _lay_out(golden: Run, new: Run, rules: Rules) -> None:
    """Makes both sides whole where files cannot be paired: rows that are aligned by an id, perhaps
    across ranks, are a matter of whole iterations.
    """
    is_paired = golden.groups.keys() == new.groups.keys() or not _grouped_in_other_ways(golden, new)
    if rules.arrangement is not None or not is_paired:
        is_by_path = all(side.has_iterations_in_paths for side in (golden, new))
        for side in (golden, new):
            side.take_whole(rules.arrangement, by_iteration=is_by_path)
    if rules.arrangement is not None and (golden.is_fingerprint or new.is_fingerprint):
        raise UsageError(
            "rows are aligned, or copies chosen, which captures know nothing of",
            remedy="give the runs themselves",
        )


def _grouped_in_other_ways(golden: Run, new: Run) -> bool:
    """Whether iterations or ranks stand in the paths of one run and in the files of the other, so
    that variables, not files, have to be paired.
    """
    return any(
        any(key[part] is None for key in golden.groups)
        != any(key[part] is None for key in new.groups)
        for part in (0, 1)
    )


def _compare_units(comparer: UnitComparer, spread: Spread, progress: Progress) -> Outcome:
    golden, new = comparer.golden, comparer.new
    with ExitStack() as opened:
        journal = spread.journal(golden, new, opened)
        former = () if journal is None else journal.former
        units = plan_units(golden, new, former=former, has_stamps=journal is not None)
        if sum(unit.byte_count for unit in units) > _MOST_DETAILED_BYTES:
            comparer.options = replace(comparer.options, detail_bytes=0)
        loop = spread.loop(comparer, journal, progress)
        outcome = loop.run(units)
        spread.has_ended_early = loop.has_ended_early
        if spread.list_path is not None:
            spread.compared_names = loop.compared_names
    _refuse_unpaired(outcome)
    return outcome


def _explain(outcome: Outcome, resources: Resources, sides: tuple[Run, Run], rules: Rules) -> None:
    """Says of what does not match why."""
    from ciwrap.compare.across_ranks import explain_ranks
    from ciwrap.compare.detailed import explain_first

    explain_first(outcome, resources, sides, rules)
    explain_ranks(outcome.results, partial(_parts_of, sides))


def _parts_of(sides: tuple[Run, Run], first: VariableResult) -> tuple[Parts, Parts]:
    """The variable of a result on every rank of both runs."""
    from ciwrap.compare.detailed import parts_of_side

    return parts_of_side(sides[0], first), parts_of_side(sides[1], first)


def _leave_out(outcome: Outcome, options: HistoryOptions, sides: tuple[Run, Run]) -> None:
    """Drops what nobody wants to be told of, and notes what that was."""
    if options.is_common:
        from ciwrap.compare.common import leave_out_uncommon

        ours, theirs = ({iteration for iteration, _ in side.groups} for side in sides)
        outcome.notes += leave_out_uncommon(outcome, (ours, theirs))
    if options.ended_in is not None:
        from ciwrap.compare.common import leave_out_after

        outcome.notes += leave_out_after(outcome, options.ended_in)
    if options.is_brief:
        outcome.results = with_brief_ones(outcome.results)


def _finish(
    name: str,
    outcome: Outcome,
    sides: tuple[Run, Run],
    rules: Rules,
    wording: Wording,
    *,
    can_go_on: bool,
) -> CheckResult:
    """The check's result of all that was found."""
    golden, new = sides
    messages = []
    for side in (golden, new):
        outcome.errors += [*side.found.unread, *side.faults]
        if side.fault is not None:
            messages.append(f"a capture is not used: {side.fault}")
        stale = [one for one in outcome.stale if one[0] == str(side.path)]
        if stale:
            _, key, reason = min(stale, key=lambda one: key_order(one[1]))
            messages.append(
                f"{side.path}: captured checkpoints that are stale, and were read instead:"
                f" {len(stale)} ({key_text(key)}: {reason})"
            )
        if side.capture is not None and side.capture.repeated:
            _refuse_repeated(outcome, side.path, set(side.capture.repeated))
    if outcome.lost:
        outcome.errors += _lost(outcome)
    if outcome.ended_by is not None:
        error = NotComparableError(
            f"the comparison was ended by {outcome.ended_by} before all was compared; this is what"
            " it had found",
            remedy="go on with --resume" if can_go_on else "compare again",
        )
        outcome.errors.insert(0, error)
    check = check_result(name, outcome, rules, wording, messages=messages, explain=explainer)
    notes = [note for side in (golden, new) for note in (*side.found.notes, *side.notes)]
    if check.verdict is not Verdict.MATCH:
        from ciwrap.compare.hints import hints

        notes += hints(outcome, rules, partial(_parts_of, sides))
    told = [Message(MessageLevel.NOTE, text) for text in dict.fromkeys(notes)]
    told += [fingerprint_note(side) for side in (golden, new) if side.is_fingerprint]
    check = replace(check, messages=(*check.messages, *told))
    return replace(check, excluded_files=sum(side.excluded_files for side in (golden, new)))


def _with_history(check: CheckResult, outcome: Outcome, golden: Run) -> CheckResult:
    """The result, with what is known of a run's iterations, if there are any."""
    if golden.is_single and not any(one.iteration is not None for one in check.variables):
        return check
    from ciwrap.compare.timelines import history_facts

    return replace(check, history=history_facts(check, outcome))


def _refuse_unpaired(outcome: Outcome) -> None:
    """Makes what both runs have, but in checkpoints that were not held against each other, not
    comparable: it is no variable that is new or gone, whatever the rules say of these.
    """
    both = {one.id for one in outcome.missing} & {one.id for one in outcome.extra}
    if not both:
        return
    error = NotComparableError(
        "is on both sides, but its iteration or rank stands in the path on one side, and in the"
        " file on the other, so the two were not compared with each other",
        remedy="write both runs in one way",
    )
    unpaired = [one for one in outcome.extra if one.id in both]
    outcome.results += [not_comparable(one, error) for one in unpaired]
    for found in (outcome.missing, outcome.extra):
        found[:] = [one for one in found if one.id not in both]


def _refuse_repeated(outcome: Outcome, run: Path, repeated: set[VariableId]) -> None:
    """Makes second recordings that the other run does not have not comparable: they are no
    variables that are new or gone, whatever the rules say of these.
    """
    from ciwrap.captures.side import recorded_again

    for found in (outcome.missing, outcome.extra):
        again = [one for one in found if one.id in repeated]
        found[:] = [one for one in found if one.id not in repeated]
        outcome.results += [not_comparable(one, recorded_again(run, one.id)) for one in again]


def fingerprint_note(side: Run) -> Message:
    """What is told of a run of which there is a capture alone."""
    header = side.header
    made = (
        ""
        if header is None or not header.made_at
        else f" of {header.made_at}, by ciwrap {header.made_by}"
    )
    return Message(
        MessageLevel.NOTE,
        f"{side.path} is a fingerprint{made}: what its trees leave open stays open",
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
