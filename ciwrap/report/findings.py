"""The sentence at the top: what happened first, where, how much, and what it looks like."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.details import Cause
from ciwrap.model import Divergence, DivergenceKind, Verdict, worst_of
from ciwrap.report.boxes import box_words
from ciwrap.report.causes import cause_words
from ciwrap.report.digest_words import suspect_place
from ciwrap.report.sides import sides_of
from ciwrap.report.sizes import (
    counted_lost,
    has_distance,
    lost_count,
    special_counts,
    variable_is_exact,
)
from ciwrap.report.text import (
    capital,
    grouped_number,
    plural,
    safe_name,
    safe_text,
    share_text,
    size_text,
)
from ciwrap.report.text_words import place_words
from ciwrap.report.timelines import together_text
from ciwrap.report.wording import (
    alike_words,
    arrays_words,
    at_most_words,
    differ_words,
    elements_words,
    headline,
    match_title,
    total_words,
    used_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ciwrap.model import CheckResult, RunResult, VariableResult

_LONGEST_REASON = 400
_LONGEST_VALUE = 60


def title(run: RunResult) -> str:
    """The verdict in a few words."""
    from ciwrap.report.ensemble_words import ensemble_title

    counts = run.verdict_counts
    if run.verdict is Verdict.MATCH:
        return match_title(run.coverage, run.kind)
    if run.verdict is Verdict.SUSPECT:
        return "Not cleared: numbers may be beyond their bounds"
    if run.verdict.is_statistical:
        return ensemble_title(run.checks)
    if run.verdict is Verdict.DIFFER:
        return "Numbers differ"
    if counts[Verdict.DIFFER]:
        return "Numbers differ, and not everything could be compared"
    if counts[Verdict.SUSPECT]:
        return "Numbers may be beyond their bounds, and not everything could be compared"
    return "Not everything could be compared"


def leading(run: RunResult) -> list[_Told]:
    """What is told first: the first divergence of all histories, and beside it their first one of
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


_Told = tuple["CheckResult", Divergence]


def _earliest(found: Iterable[tuple[CheckResult, Divergence | None]]) -> _Told | None:
    known = [(check, one) for check, one in found if one is not None]
    return min(known, key=lambda pair: pair[1].variable.id.sort_key, default=None)


def _largest(run: RunResult) -> _Told | None:
    """The variable furthest beyond its bound; where none is for sure, the worst suspect one."""
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


def lead(run: RunResult) -> list[str]:
    """What to know first: one sentence for each verdict that is not a match, else one on the
    margin that is left.
    """
    return list(_lead(run, None)) or [match_sentence(run)]


def lead_beside(run: RunResult, told: Divergence) -> list[str]:
    """The same without the sentence on a divergence that has been told of."""
    return list(_lead(run, told))


def _lead(run: RunResult, without: Divergence | None) -> Iterator[str]:
    from ciwrap.report.ensemble_words import ensemble_sentence

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
    alarms = counts[Verdict.SUSPECT] + counts[Verdict.DIFFER]
    # Where nothing tells what was early, one difference is the largest of nothing.
    is_alone = (alarms + check.is_history * counts[Verdict.NOT_COMPARABLE]) == 1
    is_second = leading(run)[0][1] != divergence
    opening = _opening(run, check, divergence, is_alone=is_alone, is_second=is_second)
    where = f" (check {safe_name(check_title(check))})" if len(run.checks) > 1 else ""
    return f"{opening}: {place(divergence.variable)}{where}"


_ALONE = {DivergenceKind.DIFFER: "Difference", DivergenceKind.SUSPECT: "Suspect"}


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
            return "First suspect"
        return "Largest difference" if _is_largest(run, divergence.variable) else "Worst"
    if is_second:
        return "First numeric divergence"
    if divergence.kind.is_alarm:
        return "First divergence"
    return f"First divergence ({divergence.kind.words})"


def _is_largest(run: RunResult, worst: VariableResult) -> bool:
    """Whether the variable that is told first is the one with the largest difference, too."""
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
        check, first = min(bad, key=lambda pair: pair[1].id.sort_key)
        more = f" (the first of {len(bad)})" if len(bad) > 1 else ""
        yield f"Not compared{more}: {place(first)}: {_with_cause(check, first)}."
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
    causes = [cause_words(one, sides) for one in variable.explanations[:1]]
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
        return f"{sentence}; no drift was seen."
    return f"{sentence}; {at_most_words(share)} used, by {place(mover)}."


def place(variable: VariableResult) -> str:
    """`iteration 7, rank 2, u`."""
    return ", ".join(filter(None, (checkpoint_words(variable), safe_name(variable.name))))


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
        parts[0] += f", {place_words(variable.text.places[0])}"
    if variable.differing_count == 1 and variable.first_differences:
        only = variable.first_differences[0]
        golden, new = safe_name(only.golden, _LONGEST_VALUE), safe_name(only.new, _LONGEST_VALUE)
        parts.append(f"{sides[0]} {golden}, {sides[1]} {new}")
    if variable.explanations and variable.explanations[0].cause is not Cause.WIDER_BOUND:
        parts.append(cause_words(variable.explanations[0], sides))
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
    elements = "its one element is" if is_one else f"all {elements_words(variable)} are"
    return f"{elements} {alike_words(variable)}"


def beyond_text(share: float) -> str:
    """`16,600 x the bound`."""
    return f"{grouped_number(share)} x the bound" if share >= 10 else share_text(share)


def cut(text: str) -> str:
    """A reason as part of a sentence, of a length to be read."""
    text = text.rstrip(".")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
