"""The top of the page: what happened, where, how much, why, and which command looks further."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ciwrap.model import (
    CheckResult,
    Divergence,
    Evidence,
    RunResult,
    VariableResult,
    Verdict,
    worst_of,
)
from ciwrap.model.results import command_words
from ciwrap.model.variable_result import Cause
from ciwrap.report.cause_words import cause_words
from ciwrap.report.digest_words import first_moved, lost_words, moved_words
from ciwrap.report.lead import (
    checkpoint_words,
    count_words,
    lead,
    lead_place,
    lead_sentences,
    leading,
)
from ciwrap.report.place_words import box_words, is_the_same_place, suspect_place
from ciwrap.report.text import (
    beyond_text,
    capital,
    name_in_text,
    percent_text,
    plural,
    range_words,
    rounded_down,
    safe_name,
    share_text,
    size_text,
)
from ciwrap.report.where import where_listed
from ciwrap.report.words import (
    arrays_words,
    became_nan,
    counted_lost,
    elements_words,
    has_distance,
    headline,
    lost_count,
    lost_to,
    sides_of,
    special_counts,
    variable_is_exact,
)


class Top(Struct, frozen=True):
    """The top of the page. facts: of what differs first, or is missing, as (what it is, words); ()
    if there is no such thing. commands: those that look further, as (what for, the command).
    earlier, sentences: what is to be known before the facts, and beside them.
    """

    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()


def top_of_page(run: RunResult) -> Top:
    told = leading(run)
    with_facts = [pair for pair in told if pair[1].kind.is_alarm or _has_stopped(pair[1].variable)]
    if not with_facts:
        return Top(tuple(lead(run)), commands=next_steps(run))
    check, divergence = with_facts[0]
    sentences = tuple(lead_sentences(run, divergence))
    earlier = 0 if told[0] == with_facts[0] else 1
    return Top(
        sentences[earlier:],
        _facts(run, check, divergence),
        sentences[:earlier],
        next_steps(run),
    )


def _has_stopped(variable: VariableResult) -> bool:
    return any(one.cause is Cause.STOPPED for one in variable.explanations)


def _facts(
    run: RunResult, check: CheckResult, divergence: Divergence
) -> tuple[tuple[str, str], ...]:
    variable = divergence.variable
    every = [one for one in check.variables if one.name == variable.name]
    # What was not compared has no place among the numbers that differ.
    results = [one for one in every if one.verdict is not Verdict.NOT_COMPARABLE]
    where = lead_place(run, check, divergence)
    if divergence.kind.is_alarm:
        count = headline(variable) if variable.differing_count is None else _count(variable)
        place = _where(check, variable, every)
        size = _how_much(variable, results)
    else:
        sides = sides_of(check, variable)
        count = "not in the outputs" if check.source_path is None else f"only in {sides[0]}"
        place = where_listed(check, sorted(every, key=lambda one: one.id.sort_key))
        every_array = sum(one.variable_count for one in run.checks)
        size = f"{arrays_words(len(check.missing_variables), 0)} of {every_array:,}"
    facts = (
        ("What", f"{where}: {count}"),
        ("Where", place),
        ("How much", size),
        ("Likely cause", _cause(check, variable)),
    )
    return tuple((name, f"{capital(words)}.") for name, words in facts if words)


def _count(variable: VariableResult) -> str:
    """How many values differ, and whether that is since they are numbers no more."""
    nan = became_nan(variable)
    if nan and nan == variable.differing_count:
        return f"{nan:,} of {elements_words(variable)} became NaN"
    return count_words(variable)


def _cause(check: CheckResult, variable: VariableResult) -> str:
    """The most telling things that the differing elements have in common."""
    sides = sides_of(check, variable)
    known = [one for one in variable.explanations if one.cause is not Cause.WIDER_BOUND]
    # That it is one rank is said where it is.
    telling = [one for one in known if one.cause is not Cause.ONE_RANK]
    if telling:
        return "; ".join(cause_words(one, sides, variable.name) for one in telling[:2])
    if variable.new_values is not None and (lost := lost_words(variable.new_values)):
        return f"the new values hold {lost}"
    if variable.differing_count is None:
        return "not known: no values were kept to look at"
    return "none of those that ciwrap knows"


def next_steps(run: RunResult) -> tuple[tuple[str, str], ...]:
    """What looks further than the result, for the first check that does not match: (what for, the
    command), without a command where it is the program that is to be looked at.

    Which commit moved it, where it began, and the values, if nobody kept them; of what was not
    compared, what is expected.
    """
    told = leading(run)
    bad = [check for check in run.checks if not check.verdict.is_good]
    check = told[0][0] if told else next(iter(bad), None)
    if check is None or check.verdict.is_good or run.kind not in ("check", "run", "compare"):
        return ()
    began = _where_it_began(check, told[0][1]) if told else ""
    look = [(began, "")] if began else []
    if run.kind == "compare":
        return (*look, *_of_two_runs(check))
    found = []
    is_alarm = check.verdict.is_alarm
    if is_alarm and (commits := _commits(run, check)) is not None:
        command = "" if run.kind == "run" else " -- COMMAND"
        words = command_words(f"ciwrap bisect {' '.join(commits)} --check", [check.name], command)
        found.append(("which commit moved it", words))
    found += look
    # A recorded run has no values, and is no output of the configuration's command.
    has_values = check.source_path is None
    is_open = told and told[0][1].variable.differing_count is None
    if is_alarm and is_open and has_values:
        words = command_words("ciwrap compare OLD . --check", [check.name])
        found.append(("every value, once the old version has run in the folder OLD", words))
    if not is_alarm and check.golden_bytes is not None:
        found.append(("what the golden holds", command_words("ciwrap show", [check.name])))
    return tuple(found)


def _where_it_began(check: CheckResult, first: Divergence) -> str:
    """Look at what computes or writes `u` on rank 2 between iterations 40 and 50; nothing where a
    file could not be read, which the message says.
    """
    variable = first.variable
    name, when = name_in_text(variable.name), _when_it_began(check, variable)
    ranks = {
        one.rank
        for one in check.variables
        if one.verdict.is_alarm and (one.name, one.iteration) == (variable.name, variable.iteration)
    }
    on_rank = f" on rank {variable.rank}" if ranks == {variable.rank} != {None} else ""
    stopped = [one for one in variable.explanations if one.cause is Cause.STOPPED]
    if stopped and stopped[0].words:
        return f"look at what happened to {safe_name(stopped[0].words)}{when}: its log, its errors"
    if not first.kind.is_alarm:
        return ""
    if lost := lost_to(variable):
        return f"look at what makes {name} {lost}{on_rank}{when}"
    # Of more than two that are swapped, this one has another's values, and not the other way round.
    swapped = [one.words for one in variable.explanations if one.cause is Cause.SWAPPED]
    names = " and ".join([name, *(name_in_text(one) for one in swapped if one)])
    return f"look at what computes or writes {names}{on_rank}{when}"


def _when_it_began(check: CheckResult, first: VariableResult) -> str:
    """` between iterations 40 and 50`: since the last one in which it matched, as far as the result
    lists what matches; of what grows, since it does.
    """
    if first.iteration is None or not check.is_history:
        return ""
    grows = [one for one in first.explanations if one.cause is Cause.GROWS]
    if grows:
        return f" from iteration {grows[0].values[0]:.0f} on"
    before = [
        one.iteration
        for one in check.variables
        if (one.name, one.rank) == (first.name, first.rank)
        and one.verdict is Verdict.MATCH
        and one.iteration is not None
        and one.iteration < first.iteration
    ]
    if before:
        return f" between iterations {max(before)} and {first.iteration}"
    return f" up to iteration {first.iteration}"


def _of_two_runs(check: CheckResult) -> tuple[tuple[str, str], ...]:
    if check.golden_path is None or check.source_path is None:
        return ()
    sides = [check.golden_path, check.source_path]
    runs = [one.removesuffix("/.ciwrap.tree").removesuffix(".tree") for one in sides]
    told = [one for one in check.variables if one.verdict.is_alarm]
    if told and all(one.differing_count is None for one in told):
        # Captures have no values to list.
        words = command_words("ciwrap compare", runs)
        return (("every value, if the folders of both runs are left", words),)
    what, options = "every variable", " --verbose"
    if check.verdict.is_alarm:
        what, options = "every value that differs", " --list differences.csv"
    words = command_words("ciwrap compare", sides, options)
    return ((f"{what} (with the bounds as before)", words),)


def _commits(run: RunResult, check: CheckResult) -> tuple[str, str] | None:
    """The commit that the golden was made at, and that of the run, if these are two."""
    golden, new = base_commit(check), commit_of(check.environment or run.environment)
    return (golden, new) if golden and new and golden != new else None


def base_commit(check: CheckResult) -> str:
    """The commit that the golden was made at, shortened; '' if it is not known."""
    return commit_of(check.golden_environment)


def commit_of(environment: Mapping[str, str]) -> str:
    """The commit of an environment, shortened, without a word on uncommitted changes."""
    commit = environment.get("git_commit", "")[:_COMMIT_DIGITS]
    return commit if _COMMIT.fullmatch(commit) else ""


_COMMIT_DIGITS = 12
_COMMIT = re.compile("[0-9a-f]{7,12}")


def _where(check: CheckResult, variable: VariableResult, every: list[VariableResult]) -> str:
    """every: the variable in each checkpoint, also where it was not compared."""
    inside = suspect_place(variable) or box_words(variable)
    if variable.differing_count is None and variable.chunk_count == 1 and len(every) > 1:
        inside = ""  # anywhere in it
    compared = [one for one in every if one.verdict is not Verdict.NOT_COMPARABLE]
    if inside and not is_the_same_place(variable, compared):
        inside = f"at first {inside}"
    ordered = sorted(every, key=lambda one: one.id.sort_key)
    when = where_listed(check, ordered, alarms_only=True)
    return "; ".join(part for part in (when, inside) if part)


def _how_much(variable: VariableResult, results: list[VariableResult]) -> str:
    """Of the first one, and of the worst one if that is another."""
    first = _size(variable)
    worst = worst_of(results)
    last = _size(worst)
    if worst.max_bound_share is None and worst.moved_elements and worst.known_share:
        last = f"more than {beyond_text(rounded_down(worst.known_share))}"
    for count in (lost_count, became_nan):
        every = sum(map(count, results))
        if every > count(variable) > 0:
            return f"{first} at first, {every:,} in all"
    if worst.id == variable.id or not last or last == first:
        is_open = first == _passed_words(variable) != ""
        return f"{first}; no values were kept that show how much more" if is_open else first
    at = checkpoint_words(worst)
    return f"{first} at first, {last} at {at}" if first and at else last


def _passed_words(variable: VariableResult) -> str:
    """`more than 87.5 % of the bound`: what residues would have let pass."""
    share = variable.guaranteed_share
    return f"more than {percent_text(rounded_down(share))} of the bound" if share else ""


def worst_words(results: Sequence[VariableResult]) -> str:
    """`the worst at iteration 7, rank 2: up to 42 x the bound`; nothing where the first one that
    does not match is the worst one as well.
    """
    bad = [one for one in results if one.verdict is not Verdict.MATCH]
    worst = worst_of(bad or results)
    first = min(bad or results, key=lambda one: one.id.sort_key)
    at, size = checkpoint_words(worst), _size(worst)
    is_told = worst.id == first.id or not (worst.verdict.is_alarm and at and size)
    return "" if is_told else f"the worst at {at}: {size}"


def _size(variable: VariableResult) -> str:
    share = variable.max_bound_share
    if share is not None and math.isfinite(share) and not variable_is_exact(variable):
        effect = None if variable.details is None else variable.details.effect
        against = range_words(effect, variable.max_abs_difference or 0.0)
        return f"up to {beyond_text(share)}{f' ({against})' if against else ''}"
    new = variable.new_values
    if variable.differing_count is None and (nan := became_nan(variable)):
        return f"{plural(nan, 'value')} became NaN"
    if variable.differing_count is None and new is not None and lost_words(new):
        return f"of the {new.number_count:,} new values there, {lost_words(new)}"
    if share is None and variable.least_share:
        return f"at least {share_text(rounded_down(variable.least_share))}"
    if share is None and variable.moved_elements:
        return moved_words(first_moved(variable))
    if variable.differing_count is None and (passed := _passed_words(variable)):
        return passed
    if variable.differing_count is None and variable.verdict.is_alarm:
        is_tree = variable.evidence is not Evidence.RESIDUES
        return f"not known: the golden is {'a tree' if is_tree else 'residues'} alone"
    parts = []
    if lost := lost_count(variable):
        is_nan = Cause.ALL_NAN in {one.cause for one in variable.explanations}
        whats = [(lost, "became NaN")] if is_nan else special_counts(variable)
        parts += [f"{counted_lost(variable, count)} {what}" for count, what in whats]
    if has_distance(variable):
        parts.append(f"largest |difference| {size_text(variable.max_abs_difference or 0.0)}")
    return "; ".join(parts)
