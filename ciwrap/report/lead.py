"""What stands at the top of the page: what happened, where, and how much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.details import Cause
from ciwrap.model import Evidence, Verdict, worst_of
from ciwrap.report.boxes import box_words, is_the_same_place
from ciwrap.report.causes import cause_words
from ciwrap.report.digest_words import first_moved, lost_words, moved_words, suspect_place
from ciwrap.report.findings import (
    beyond_text,
    checkpoint_words,
    count_words,
    lead,
    lead_beside,
    lead_place,
    leading,
)
from ciwrap.report.sides import sides_of
from ciwrap.report.sizes import counted_lost, has_distance, lost_count, variable_is_exact
from ciwrap.report.text import capital, percent_text, rounded_down, size_text
from ciwrap.report.views import range_words
from ciwrap.report.where import where_listed
from ciwrap.report.wording import headline
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.model import CheckResult, Divergence, RunResult, VariableResult


class Top(Struct, frozen=True):
    """The top of the page. facts: what differs first, where, and how much, as (what it is, words);
    () if nothing differs. earlier, sentences: what is to be known before that, and beside it.
    """

    sentences: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()


def top_of_page(run: RunResult) -> Top:
    told = leading(run)
    alarms = [(check, one) for check, one in told if one.kind.is_alarm]
    if not alarms:
        return Top(tuple(lead(run)))
    check, divergence = alarms[0]
    sentences = tuple(lead_beside(run, divergence))
    earlier = 0 if told[0] == alarms[0] else 1
    facts = _three_facts(run, check, divergence)
    return Top(sentences[earlier:], facts, sentences[:earlier])


def _three_facts(
    run: RunResult, check: CheckResult, divergence: Divergence
) -> tuple[tuple[str, str], ...]:
    variable = divergence.variable
    # What was not compared has no place among the numbers that differ.
    every = [one for one in check.variables if one.name == variable.name]
    results = [one for one in every if one.verdict is not Verdict.NOT_COMPARABLE]
    what = f"{lead_place(run, check, divergence)}: {_what(check, variable)}"
    facts = (
        ("What", what),
        ("Where", _where(check, variable, every)),
        ("How much", _how_much(variable, results)),
    )
    return tuple((name, f"{capital(words)}.") for name, words in facts if words)


def _what(check: CheckResult, variable: VariableResult) -> str:
    words = headline(variable)
    if variable.differing_count is not None:
        words = count_words(variable)
    causes = [one for one in variable.explanations if one.cause is not Cause.WIDER_BOUND]
    sides = sides_of(check, variable)
    return f"{words}; {cause_words(causes[0], sides)}" if causes else words


def _where(check: CheckResult, variable: VariableResult, every: list[VariableResult]) -> str:
    """every: the variable in each checkpoint, also where it was not compared."""
    inside = suspect_place(variable) or box_words(variable)
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
    if worst.id == variable.id or not last or last == first:
        return first
    at = checkpoint_words(worst)
    return f"{first} at first, {last} at {at}" if first and at else last


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
    if variable.differing_count is None and new is not None and lost_words(new):
        return f"of {new.number_count:,} new numbers there, {lost_words(new)}: no distance"
    if share is None and variable.moved_elements:
        return moved_words(first_moved(variable))
    if variable.differing_count is None and variable.guaranteed_share:
        return f"more than {percent_text(rounded_down(variable.guaranteed_share))} of the bound"
    if variable.differing_count is None and variable.verdict.is_alarm:
        is_tree = variable.evidence is not Evidence.RESIDUES
        return f"not known: the golden is {'a tree' if is_tree else 'residues'} alone"
    parts = []
    if lost := lost_count(variable):
        parts.append(f"{counted_lost(variable, lost)} without a number on one side")
    if has_distance(variable):
        parts.append(f"largest |difference| {size_text(variable.max_abs_difference or 0.0)}")
    return "; ".join(parts)
