"""Two whole runs against each other, as far as both go; their timelines and trends."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import NotComparableError, UsageError
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.check.findings import check_result, fewer_details
from ciwrap.check.two_sides import RUNS, HistoryOptions, Work, not_comparable
from ciwrap.explain.across import explain_ranks, explainer, hints
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources
from ciwrap.model import Evidence, Message, MessageLevel, Verdict
from ciwrap.model.results import grouped_plural, with_brief_ones
from ciwrap.model.variable_result import HistoryFacts, PointState, Timeline, TimelinePoint, Trend
from ciwrap.runs.capture_index import key_order
from ciwrap.runs.comparer import UnitComparer
from ciwrap.runs.differences import draw_worst, explain_first, parts_of_side
from ciwrap.runs.questions import rules_between, unused_settings, with_bound_notes
from ciwrap.runs.sides import recorded_again
from ciwrap.runs.spread import Spread
from ciwrap.runs.units import plan_units

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from ciwrap.base.errors import CiwrapError
    from ciwrap.base.progress import Progress
    from ciwrap.check.two_sides import Findings, Wording
    from ciwrap.explain.across import Parts
    from ciwrap.formats.catalog import Rules
    from ciwrap.formats.source_files import CheckpointKey
    from ciwrap.model import CheckResult, VariableId, VariableResult
    from ciwrap.runs.differences import DifferenceList
    from ciwrap.runs.sides import Run

# Samples and maps for the report take a second look at the data: of runs up to this size, and of
# larger ones for the first difference alone.
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
        is_drawn = options.detail_bytes > 0
        _explain(outcome, resources, (golden, new), rules, is_drawn=is_drawn)
    if options.is_common:
        ours, theirs = ({iteration for iteration, _ in side.groups} for side in (golden, new))
        outcome.notes += leave_out_uncommon(outcome, (ours, theirs))
    if new.capture is not None and new.capture.ended_in is not None:
        _leave_out_after(outcome, new.capture.ended_in, rules, new.path)
    if options.is_brief:
        outcome.results = with_brief_ones(outcome.results)
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
    """Makes both sides whole where files cannot be paired: rows that are aligned, perhaps
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


def _compare_units(comparer: UnitComparer, spread: Spread, progress: Progress) -> Findings:
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


def _explain(
    outcome: Findings,
    resources: Resources,
    sides: tuple[Run, Run],
    rules: Rules,
    *,
    is_drawn: bool,
) -> None:
    """Says of what does not match why. is_drawn: whether a report is to show it."""
    explain_first(outcome, resources, sides, rules, is_drawn=is_drawn)
    if is_drawn:
        draw_worst(outcome, resources, sides, rules, _MOST_DETAILED_BYTES)
    explain_ranks(outcome.results, partial(_parts_of, sides))


def _parts_of(sides: tuple[Run, Run], first: VariableResult) -> tuple[Parts, Parts]:
    """The variable of a result on every rank of both runs."""
    return parts_of_side(sides[0], first), parts_of_side(sides[1], first)


def _finish(
    name: str,
    outcome: Findings,
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
        notes += hints(outcome, rules, partial(_parts_of, sides))
    told = [Message(MessageLevel.NOTE, text) for text in dict.fromkeys(notes)]
    told += [fingerprint_note(side) for side in (golden, new) if side.is_fingerprint]
    check = replace(check, messages=(*check.messages, *told))
    return replace(check, excluded_files=sum(side.excluded_files for side in (golden, new)))


def _with_history(check: CheckResult, outcome: Findings, golden: Run) -> CheckResult:
    """The result, with what is known of a run's iterations, if there are any."""
    if golden.is_single and not any(one.iteration is not None for one in check.variables):
        return check

    return replace(check, history=history_facts(check, outcome))


def _refuse_unpaired(outcome: Findings) -> None:
    """Makes what both runs have, but in checkpoints that were not compared with each other, not
    comparable: it is no variable that is new or gone, whatever the rules say of these.
    """
    both = {one.id for one in outcome.missing} & {one.id for one in outcome.extra}
    if not both:
        return
    error = NotComparableError(
        "is in both runs, but one has its iteration or rank in the path, and the other in the file,"
        " so the two were not compared with each other",
        remedy="write both runs in one way",
    )
    unpaired = [one for one in outcome.extra if one.id in both]
    outcome.results += [not_comparable(one, error) for one in unpaired]
    for found in (outcome.missing, outcome.extra):
        found[:] = [one for one in found if one.id not in both]


def _refuse_repeated(outcome: Findings, run: Path, repeated: set[VariableId]) -> None:
    """Makes second recordings that the other run does not have not comparable: they are no
    variables that are new or gone, whatever the rules say of these.
    """
    for found in (outcome.missing, outcome.extra):
        again = [one for one in found if one.id in repeated]
        found[:] = [one for one in found if one.id not in repeated]
        outcome.results += [not_comparable(one, recorded_again(run, one.id)) for one in again]


def fingerprint_note(side: Run) -> Message:
    """What is reported of a run of which there is a capture alone."""
    header = side.header
    made = (
        ""
        if header is None or not header.made_at
        else f" (of {header.made_at}, by ciwrap {header.made_by})"
    )
    return Message(
        MessageLevel.NOTE,
        f"{side.path} holds digests and no data{made}: what these leave open stays open",
    )


def _lost(outcome: Findings) -> list[CiwrapError]:
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


def leave_out_uncommon(
    outcome: Findings, in_paths: tuple[Container[int | None], Container[int | None]]
) -> list[str]:
    """Counts as ignored what one run has before the other begins or after it ends, and says so.

    An iteration that is lacking in between stays missing. Where the runs have no iteration between
    them in common, nothing is left out. in_paths: the iterations that the paths of each run tell;
    those of them that nobody came to compare count, too.
    """
    ours, theirs = (
        _iterations((*outcome.results, *alone))
        | {key[0] for key, _ in outcome.lost if key[0] is not None and key[0] in told}
        for alone, told in zip((outcome.missing, outcome.extra), in_paths, strict=True)
    )
    if not ours or not theirs:
        return []
    first, last = max(min(ours), min(theirs)), min(max(ours), max(theirs))
    if first > last:
        return []

    def is_within(one: VariableResult) -> bool:
        return one.iteration is None or first <= one.iteration <= last

    gone = [one.id for one in outcome.missing if not is_within(one)]
    new = [one.id for one in outcome.extra if not is_within(one)]
    outcome.missing = [one for one in outcome.missing if is_within(one)]
    outcome.extra = [one for one in outcome.extra if is_within(one)]
    outcome.ignored += gone + new
    outcome.uncommon += len(gone) + len(new)
    outcome.left_out += gone
    if not gone and not new:
        return []
    text = (
        f"left out is what lies beyond iterations {first} to {last}, as far as both runs go"
        f" (--common): {grouped_plural(len(gone), 'variable')} of the first run,"
        f" {grouped_plural(len(new), 'variable')} of the second"
    )
    return [text]


def _leave_out_after(outcome: Findings, ended_in: int, rules: Rules, path: Path) -> None:
    """Counts as ignored what the new run lacks since it was ended in an iteration, and says so.

    Of its processes one may have come less far than the one that diverged. Where all that it
    recorded is within its bounds, nobody knows what would have followed: that never matches.
    """
    last: dict[int | None, int] = {}
    for one in (*outcome.results, *outcome.extra):
        if one.iteration is not None:
            last[one.rank] = max(last.get(one.rank, -1), one.iteration)

    def is_after(one: VariableResult) -> bool:
        reached = min(ended_in - 1, last.get(one.rank, -1))
        return one.iteration is not None and one.iteration > reached

    gone = [one.id for one in outcome.missing if is_after(one)]
    outcome.missing = [one for one in outcome.missing if not is_after(one)]
    outcome.ignored += gone
    outcome.uncommon += len(gone)
    outcome.left_out += gone
    if not gone:
        return
    outcome.notes.append(
        f"the run was ended since it differed in iteration {ended_in}; left out:"
        f" {grouped_plural(len(gone), 'variable')} that it did not come to"
    )
    is_good = all(one.verdict is Verdict.MATCH for one in outcome.results)
    if is_good and not all(rules.is_ignored(one) for one in gone):
        outcome.errors.append(
            NotComparableError(
                f"the run was ended in iteration {ended_in}, and what it had recorded is within"
                " its bounds after all",
                file=path,
                remedy="run it with --on-divergence report",
            )
        )


def _iterations(results: Iterable[VariableResult]) -> set[int]:
    return {one.iteration for one in results if one.iteration is not None}


# Beyond the bound by so many times what it was one iteration before: a jump, not growth.
_JUMP = 100.0


def history_facts(check: CheckResult, outcome: Findings) -> HistoryFacts:
    return HistoryFacts(
        timelines=timelines(check),
        by_captures=sum(
            variable.evidence in (Evidence.TREE, Evidence.RESIDUES) for variable in check.variables
        ),
        capture_bytes_read=outcome.capture_bytes_read,
        data_bytes_read=outcome.data_bytes_read,
        not_compared_checkpoints=len(outcome.lost),
    )


def timelines(check: CheckResult) -> tuple[Timeline, ...]:
    """One for each name that has iterations, if there is more than one of them."""
    points: dict[str, list[TimelinePoint]] = {}
    sides = dict.fromkeys(check.missing_variables, PointState.FIRST_ONLY) | dict.fromkeys(
        check.extra_variables, PointState.SECOND_ONLY
    )
    for variable in check.variables:
        if variable.id not in sides and variable.iteration is not None:
            points.setdefault(variable.name, []).append(_point(variable))
    for identity, state in sides.items():
        if identity.iteration is not None:
            point = TimelinePoint(identity.iteration, identity.rank, state)
            points.setdefault(identity.name, []).append(point)
    iterations = {point.iteration for some in points.values() for point in some}
    if len(iterations) < 2:
        return ()
    made = []
    for name in sorted(points):
        ordered = tuple(sorted(points[name], key=_order))
        made.append(Timeline(name, ordered, trend(ordered)))
    return tuple(made)


def _order(point: TimelinePoint) -> tuple[int, int]:
    return (
        -1 if point.iteration is None else point.iteration,
        -1 if point.rank is None else point.rank,
    )


_COMPARED = (PointState.MATCH, PointState.WITHIN, PointState.UNDECIDED, PointState.BEYOND)


def _point(variable: VariableResult) -> TimelinePoint:
    share = None if variable.used_interval is None else variable.used_interval[1]
    if variable.verdict is Verdict.NOT_COMPARABLE:
        state = PointState.NOT_COMPARED
    elif variable.verdict is Verdict.UNDECIDED:
        state = PointState.UNDECIDED
    elif variable.verdict is Verdict.DIFFER:
        state = PointState.BEYOND
    elif _has_moved(variable) or variable.suspect_chunks:
        state = PointState.WITHIN
    else:
        state = PointState.MATCH
    return TimelinePoint(
        variable.iteration,
        variable.rank,
        state,
        variable.differing_count,
        variable.max_abs_difference,
        share,
    )


def _has_moved(variable: VariableResult) -> bool:
    """Whether anything is known to have moved. Of numbers in the same step nothing is."""
    share = variable.max_bound_share
    if share is None:
        share = variable.max_drift_share
    return bool(share or variable.max_abs_difference or variable.suspect_chunks)


def trend(points: Sequence[TimelinePoint]) -> Trend | None:
    """How a variable goes beyond its bound, the worst rank of each iteration counting; None where
    nothing does, and where what was compared does not tell.
    """
    worst: dict[int | None, _Step] = {}
    for point in points:
        if point.state in _COMPARED:
            worst[point.iteration] = _with(worst.get(point.iteration, _Step()), point)
    steps = list(worst.values())
    flags = [step.is_beyond for step in steps]
    if not any(flags):
        return None
    first = flags.index(True)
    if not all(flags[first:]):
        return Trend.COMES_AND_GOES
    if first == 0:
        # What was not compared before may have been within the bound.
        is_start = points[0].iteration == next(iter(worst))
        return Trend.FROM_THE_START if is_start else None
    before, at, last = steps[first - 1], steps[first], steps[-1]
    if at.is_known and at.share >= _JUMP * before.share and at.share >= _JUMP:
        return Trend.JUMPS
    if len(steps) - first < 2 or not (at.is_known and last.is_known):
        return None
    return Trend.GROWS if last.share > at.share or math.isinf(last.share) else Trend.STEADY


class _Step(Struct, frozen=True):
    """One iteration. share: the largest of the bound; it is not known of what is undecided."""

    is_beyond: bool = False
    share: float = 0.0
    is_known: bool = True


def _with(step: _Step, point: TimelinePoint) -> _Step:
    return _Step(
        step.is_beyond or point.state in (PointState.UNDECIDED, PointState.BEYOND),
        max(step.share, point.bound_share or 0.0),
        step.is_known and point.state is not PointState.UNDECIDED,
    )
