"""What stands at the top of an output: what happened first, where, how much, what it looks like;
and in which order its variables follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ciwrap.model import (
    CheckResult,
    Divergence,
    DivergenceKind,
    EnsembleFacts,
    Message,
    RunResult,
    Shift,
    VariableResult,
    Verdict,
    severity,
    worst_of,
)
from ciwrap.model.variable_result import Cause
from ciwrap.report.cause_words import cause_words
from ciwrap.report.place_words import box_words, suspect_place
from ciwrap.report.text import (
    beyond_text,
    capital,
    name_in_text,
    plural,
    safe_name,
    safe_text,
    short_number,
    size_text,
)
from ciwrap.report.text_words import text_place_words
from ciwrap.report.where import by_name, together_text
from ciwrap.report.words import (
    alike_words,
    arrays_words,
    at_most_words,
    counted_lost,
    differ_words,
    elements_words,
    has_distance,
    headline,
    lost_count,
    match_title,
    sides_of,
    special_counts,
    total_words,
    used_share,
    variable_is_exact,
)

_LONGEST_REASON = 400
_LONGEST_VALUE = 60


def title(run: RunResult) -> str:
    """The verdict in a few words."""
    counts = run.verdict_counts
    if run.verdict is Verdict.MATCH:
        return match_title(run.coverage, run.kind)
    if run.verdict is Verdict.UNDECIDED:
        return "Undecided: numbers may be beyond their bounds"
    if run.verdict.is_statistical:
        return ensemble_title(run.checks)
    if run.verdict is Verdict.DIFFER:
        return "Numbers differ"
    if counts[Verdict.DIFFER]:
        return "Numbers differ, and not everything could be compared"
    if counts[Verdict.UNDECIDED]:
        return "Numbers may be beyond their bounds, and not everything could be compared"
    is_some = any(counts[one] for one in counts if one is not Verdict.NOT_COMPARABLE)
    return f"{'Not everything' if is_some else 'Nothing'} could be compared"


def leading(run: RunResult) -> list[_Leading]:
    """What is said first: the first divergence of all histories, and beside it their first one of
    numbers; where no history differs, the largest difference.
    """
    histories = [check for check in run.checks if check.is_history]
    first = _earliest((check, check.first_divergence) for check in histories)
    numeric = _earliest((check, check.first_numeric_divergence) for check in histories)
    is_told = first is not None and first[1].kind.is_alarm
    if numeric is None and not is_told:
        numeric = _largest(run)
    found = [one for one in (first, numeric) if one is not None]
    return found[:1] if len(found) == 2 and found[0] == found[1] else found


_Leading = tuple[CheckResult, Divergence]


def _earliest(found: Iterable[tuple[CheckResult, Divergence | None]]) -> _Leading | None:
    known = [(check, one) for check, one in found if one is not None]
    return min(known, key=lambda pair: pair[1].variable.id.time_key, default=None)


def _largest(run: RunResult) -> _Leading | None:
    """The variable furthest beyond its bound; where none is for sure, the worst undecided one."""
    found = [
        (check, variable)
        for check in run.checks
        for variable in check.variables
        if variable.verdict.is_alarm
    ]
    if not found:
        return None
    worst = worst_of(variable for _, variable in found)
    check = next(check for check, variable in found if variable is worst)
    return check, Divergence(DivergenceKind(worst.verdict.value), worst)


class Group(Struct, frozen=True):
    """One variable of one check, over all its iterations and ranks, in that order.

    verdict: the worst. first: the first one of that verdict or worse; of a match, the one that
    moved most. worst: the worst one, see `ciwrap.model.worst_of`. share: the largest share of the
    bound; None if it is not known or the bound is 0.
    """

    check: CheckResult
    name: str
    results: tuple[VariableResult, ...]
    verdict: Verdict
    first: VariableResult
    worst: VariableResult
    share: float | None

    @property
    def differing(self) -> tuple[VariableResult, ...]:
        return tuple(result for result in self.results if result.verdict.is_alarm)

    @property
    def leaves_out_text(self) -> bool:
        return any(one.text is not None and one.text.masked for one in self.results)

    @property
    def is_history(self) -> bool:
        return len(self.results) > 1

    @property
    def sort_key(self) -> tuple[int, tuple[float, ...], tuple[int, int, str], str]:
        _, *rest = severity(self.worst)
        worse = tuple(-one for one in rest)
        return -self.verdict.severity, worse, self.first.id.sort_key, self.check.name


def group_of(check: CheckResult, name: str, results: Sequence[VariableResult]) -> Group:
    """The group of a variable's results, in any order."""
    if len(results) == 1:
        (one,) = results
        return Group(check, name, (one,), one.verdict, one, one, used_share(one))
    ordered = tuple(sorted(results, key=lambda one: one.id.sort_key))
    shares = [share for one in ordered if (share := used_share(one)) is not None]
    bad = [one for one in ordered if one.verdict is not Verdict.MATCH]
    worst = worst_of(ordered)
    return Group(
        check=check,
        name=name,
        results=ordered,
        verdict=Verdict.worst(one.verdict for one in ordered),
        first=bad[0] if bad else worst,
        worst=worst,
        share=max(shares, default=None),
    )


def groups_of(run: RunResult) -> list[Group]:
    """All variables, the worst first; what diverged first stands before what diverged most."""
    found: list[Group] = []
    for check in run.checks:
        named = by_name(check.variables).items()
        found += [group_of(check, name, results) for name, results in named]
    found.sort(key=lambda group: group.sort_key)
    for check, divergence in reversed(leading(run)):
        (group,) = [
            one for one in found if one.check is check and one.name == divergence.variable.name
        ]
        found.remove(group)
        found.insert(0, group)
    return found


def lead(run: RunResult) -> list[str]:
    """What to know first: one sentence for each verdict that is not a match, else one on the
    margin that is left.
    """
    return list(lead_sentences(run, None)) or [match_sentence(run)]


def lead_sentences(run: RunResult, without: Divergence | None) -> Iterator[str]:
    """without: a divergence that has been told of."""
    counts = run.verdict_counts
    told = leading(run)
    for number, (check, divergence) in enumerate(told):
        variable = divergence.variable
        if divergence.kind.is_alarm:
            words = difference_sentence(variable, sides_of(check, variable))
        else:
            words = _with_cause(check, variable)
        if divergence != without:
            yield f"{lead_place(run, check, divergence)}: {words}."
        if number == 0 and check.is_history:
            yield from _together(check, divergence)
    if any(not one.kind.is_alarm for _, one in told):
        lost = counts[Verdict.NOT_COMPARABLE]
        if lost > 1:
            names = {(check.name, one.name) for check in run.checks for one in _lost(check)}
            is_listed = sum(len(_lost(check)) for check in run.checks) == lost
            words = arrays_words(lost, len(names) if is_listed else 0)
            if run.coverage.checkpointed and is_listed:
                # A variable that lacks one checkpoint was compared in the others.
                words = f"{lost:,} arrays of {plural(len(names), 'variable')}"
            yield f"{words} were not compared."
    elif run.verdict is Verdict.NOT_COMPARABLE:
        yield from _uncompared(run)
    for check in run.checks:
        if check.verdict.is_statistical and check.ensemble is not None:
            name = f"{safe_name(check_title(check))}: " if len(run.checks) > 1 else ""
            yield f"{capital(f'{name}{ensemble_sentence(check.ensemble)}')}."


def _lost(check: CheckResult) -> list[VariableResult]:
    return [one for one in check.variables if one.verdict is Verdict.NOT_COMPARABLE]


def lead_place(run: RunResult, check: CheckResult, divergence: Divergence) -> str:
    """`First divergence: iteration 7, rank 2, u (check wave)`."""
    counts = run.verdict_counts
    alarms = counts[Verdict.UNDECIDED] + counts[Verdict.DIFFER]
    # Where nothing tells what was early, one difference is the largest of nothing.
    is_alone = (alarms + check.is_history * counts[Verdict.NOT_COMPARABLE]) == 1
    is_second = leading(run)[0][1] != divergence
    opening = _opening(run, check, divergence, is_alone=is_alone, is_second=is_second)
    where = f" (check {safe_name(check_title(check))})" if len(run.checks) > 1 else ""
    return f"{opening}: {place(divergence.variable)}{where}"


_ALONE = {DivergenceKind.DIFFER: "Difference", DivergenceKind.UNDECIDED: "Undecided"}


def _together(check: CheckResult, first: Divergence) -> Iterator[str]:
    """The other variables that do not match where the first divergence is."""
    words = together_text(check) if first == check.first_divergence else ""
    if words:
        yield f"{capital(words)}."


def _opening(
    run: RunResult, check: CheckResult, divergence: Divergence, *, is_alone: bool, is_second: bool
) -> str:
    if is_alone:
        return _ALONE.get(divergence.kind, "Not compared")
    if not check.is_history:
        if divergence.kind is not DivergenceKind.DIFFER:
            return "First undecided variable"
        return "Largest difference" if _is_largest(run, divergence.variable) else "Worst"
    if is_second:
        return "First difference of numbers"
    if divergence.kind.is_alarm:
        return "First difference"
    return f"First difference ({divergence.kind.words})"


def _is_largest(run: RunResult, worst: VariableResult) -> bool:
    """Whether the variable that is named first is the one with the largest difference, too."""
    if not variable_is_exact(worst):
        # What is no number is at no distance, and on residues nobody knows how far.
        return worst.max_bound_share is not None and math.isfinite(worst.max_bound_share)
    alarms = [one for check in run.checks for one in check.variables if one.verdict.is_alarm]
    size = worst.max_abs_difference
    if size is None or lost_count(worst):
        return False
    # By digests alone nobody knows how large the others are.
    others = (one.max_abs_difference for one in alarms)
    return all(other is not None and other <= size for other in others)


def _uncompared(run: RunResult) -> Iterator[str]:
    """Why the whole is not comparable: the first error, of which what is missing may be a
    consequence, and the first variable.
    """
    errors = run.all_errors
    if errors:
        yield error_sentence(errors[0])
    bad = [
        (check, variable)
        for check in run.checks
        for variable in check.variables
        if variable.verdict is Verdict.NOT_COMPARABLE
    ]
    if bad:
        check, first = min(bad, key=lambda pair: pair[1].id.time_key)
        more = f" (the first of {len(bad)})" if len(bad) > 1 else ""
        of_check = f"{safe_name(check_title(check), 80)}: " if len(run.checks) > 1 else ""
        yield f"Not compared{more}: {of_check}{place(first)}: {_with_cause(check, first)}."
    elif not errors:
        yield "Nothing was compared."


def error_sentence(text: str) -> str:
    """An error's message as a sentence on the whole."""
    said = cut(safe_text(text))
    return said if said.endswith("?") else f"{said}."


def _with_cause(check: CheckResult, variable: VariableResult) -> str:
    """Why a variable was not compared, and before it what is known of its numbers."""
    words = cut(headline(variable))
    sides = sides_of(check, variable)
    causes = [cause_words(one, sides, variable.name) for one in variable.explanations[:1]]
    return "; ".join([*causes, words])


def match_sentence(run: RunResult) -> str:
    words = total_words(run)
    verb = "matches" if words.startswith("1 ") else "match"
    sentence = f"{words} in {plural(len(run.checks), 'check')} {verb}"
    found = [one for check in run.checks for one in check.variables if used_share(one) is not None]
    if not found:
        return f"{sentence}."
    mover = worst_of(found)
    share = used_share(mover)
    if not share:
        return f"{sentence}; no change was seen."
    return f"{sentence}; {at_most_words(share)} used, by {place(mover)}."


def place(variable: VariableResult) -> str:
    """iteration 7, rank 2, `u`."""
    return ", ".join(filter(None, (checkpoint_words(variable), name_in_text(variable.name))))


def checkpoint_words(variable: VariableResult) -> str:
    """`iteration 7, rank 2`; nothing for a variable that is there once."""
    parts = [] if variable.iteration is None else [f"iteration {variable.iteration}"]
    parts += [] if variable.rank is None else [f"rank {variable.rank}"]
    return ", ".join(parts)


def check_title(check: CheckResult) -> str:
    return f"{check.name} ({check.label})" if check.label else check.name


def check_prefix(run: RunResult, check: CheckResult, name: str = "") -> str:
    """`c (a): ` before what is said of a check's variable of that name, where there are several
    checks; nothing where a check is called as its variable is, as those of tests are.
    """
    is_told = len(run.checks) > 1 and (check.label or check.name != name)
    return f"{safe_name(check_title(check), 80)}: " if is_told else ""


def sentence_on(variable: VariableResult, sides: tuple[str, str]) -> str:
    """What is said of a variable on which there is one sentence, without its name."""
    return difference_sentence(variable, sides) if variable.verdict.is_alarm else headline(variable)


def golden_file(check: CheckResult) -> str | None:
    """The manifest: the file of the repository that a reviewer of the golden looks at."""
    path = check.golden_path
    return f"{path}.yaml" if path is not None and path.endswith(".golden") else None


def difference_sentence(variable: VariableResult, sides: tuple[str, str]) -> str:
    """How many elements, where, what they have in common, how far beyond the bound."""
    if variable.differing_count is None:
        place = suspect_place(variable)
        is_told = not place or variable.suspect_chunks == variable.chunk_count
        return headline(variable) if is_told else f"{headline(variable)}; {place}"
    parts = [count_words(variable)]
    is_all = variable.differing_count == variable.compared_elements
    where = "" if is_all else box_words(variable)
    if where:
        parts[0] += f", {where}"
    if variable.text is not None and variable.text.places:
        parts[0] += f", {text_place_words(variable.text.places[0])}"
    if variable.differing_count == 1 and variable.first_differences:
        only = variable.first_differences[0]
        golden, new = safe_name(only.golden, _LONGEST_VALUE), safe_name(only.new, _LONGEST_VALUE)
        parts.append(f"{sides[0]} {golden}, {sides[1]} {new}")
    if variable.explanations and variable.explanations[0].cause is not Cause.WIDER_BOUND:
        parts.append(cause_words(variable.explanations[0], sides, variable.name))
    share = variable.max_bound_share
    if share is not None and math.isfinite(share) and not variable_is_exact(variable):
        parts.append(f"up to {beyond_text(share)}")
    elif has_distance(variable):
        parts.append(f"largest |difference| {size_text(variable.max_abs_difference or 0.0)}")
    specials = [
        f"{counted_lost(variable, count)} {words}"
        for count, words in special_counts(variable)
        if Cause.ALL_NAN not in {one.cause for one in variable.explanations}
    ]
    return "; ".join([*parts, *specials])


def count_words(variable: VariableResult) -> str:
    """`3 of 1,000 elements differ beyond atol=1e-6 rtol=0`, `all 10 elements differ`."""
    total = elements_words(variable)
    if variable.element_count == 1:
        return f"it {differ_words(variable, is_one=True)}"
    if variable.differing_count == variable.compared_elements:
        return f"all {total} {differ_words(variable, is_one=False)}"
    verb = differ_words(variable, is_one=variable.differing_count == 1)
    return f"{variable.differing_count:,} of {total} {verb}"


def match_words(variable: VariableResult) -> str:
    """Of one variable that matches, and how much of its bound it used up."""
    is_one = variable.element_count == 1
    elements = "its one value is" if is_one else f"all {elements_words(variable)} are"
    return f"{elements} {alike_words(variable)}"


def cut(text: str) -> str:
    """A reason as part of a sentence, of a length to be read."""
    text = text.rstrip(".")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


_MOST_SHIFTS = 5
SHIFT_UNIT = "standard deviations of the mean of so many members"


def rate_text(rate: float) -> str:
    """A rate as somebody has set it: `1 %`, `0.01 %`."""
    return f"{100 * rate:.10g} %"


def ensemble_sentence(facts: EnsembleFacts) -> str:
    """The verdict in one sentence, with what it rests on and what moved most."""
    runs, rate = plural(facts.runs, "new run"), rate_text(facts.rate)
    if facts.p is None:
        members = plural(facts.more_members or 0, "member")
        return (
            f"the ensemble is too small: {runs} and {plural(facts.members, 'member')} cannot tell"
            f" at {rate}; add {members} that differ from the others, or make more new runs"
        )
    is_consistent = facts.p > facts.rate
    word = Verdict.CONSISTENT if is_consistent else Verdict.INCONSISTENT
    numbers = f"{plural(facts.members, 'member')}, {plural(facts.features, 'feature')}"
    said = (
        f"the statistics of {runs} are {word} with the ensemble at {rate} ({numbers},"
        f" p = {short_number(facts.p)})"
    )
    return said if is_consistent else f"{said}; {_what_moved(facts.shifts)}"


def _what_moved(shifts: Iterable[Shift]) -> str:
    most = [
        f"{safe_name(one.feature, 80)} ({short_number(one.deviations)})"
        for one in list(shifts)[:_MOST_SHIFTS]
    ]
    return f"what moved most, in {SHIFT_UNIT}: {', '.join(most)}"


def other_messages(check: CheckResult) -> tuple[Message, ...]:
    """A check's messages, but for the one that is its verdict on statistics in a sentence."""
    if check.ensemble is None or check.ensemble.p is None:
        return check.messages
    sentence = ensemble_sentence(check.ensemble)
    return tuple(message for message in check.messages if message.text != sentence)


def ensemble_title(checks: Iterable[CheckResult]) -> str:
    """The verdict of a command in a few words, where statistics decided it."""
    found = list(checks)
    bad = sum(check.verdict is Verdict.INCONSISTENT for check in found)
    others = sum(not check.verdict.is_statistical for check in found)
    ensemble = "the ensemble" if len(found) == 1 else "the ensembles"
    if bad:
        which = f", in {bad} of {len(found)} checks" if len(found) > 1 else ""
        return f"Inconsistent with {ensemble}{which}"
    if not others:
        return f"Consistent with {ensemble}"
    return "All compared numbers match; the statistics are consistent"
