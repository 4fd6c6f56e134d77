"""What is known of a variable of which the golden has no data, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ciwrap.model import MovedElement, NewValues, VariableResult, Verdict
from ciwrap.report.place_words import range_text, suspect_place
from ciwrap.report.text import (
    index_text,
    plural,
    rounded_down,
    rounded_up,
    safe_name,
    share_text,
    short_number,
)
from ciwrap.report.words import by_more_words

_MOST_RANGES = 3


def by_digests_sentence(variable: VariableResult) -> str:
    """What is sure of a variable if nobody knows how many of its elements differ."""
    at_least = variable.differing_count_at_least or 0
    at_most = variable.differing_count_at_most or 0
    total = plural((variable.element_count or 0) - (variable.masked_count or 0), "value")
    suspect = f"{variable.suspect_chunks or 0:,}"
    chunks = f"{suspect} of {plural(variable.chunk_count or 0, 'block')}"
    bound = "" if variable.bound is None or variable.bound.is_exact else variable.bound.text
    beyond = by_more_words(variable)
    if at_least:
        count = f"from {at_least:,} to {at_most:,}"
        count = count if at_most > at_least else f"at least {at_least:,}"
        verb = "differs" if at_least == at_most == 1 else "differ"
        if not variable.moved_elements:
            proven = "differs" if variable.suspect_chunks == 1 else "differ"
            # So many are proof, if as many elements differ at least.
            state = proven if at_least >= (variable.suspect_chunks or 0) else "may differ"
            return f"{chunks} {state}: {count} of {total} {verb}{beyond}{_least_words(variable)}"
        first = "" if at_least == 1 else "the first: "
        moved = f"{first}{moved_words(first_moved(variable))}"
        least = _least_words(variable)
        return f"{chunks} may differ: {count} of {total} {verb}{beyond}{least}; {moved}"
    inside = "in it" if variable.suspect_chunks == 1 else "in each"
    note = f" ({bound})" if bound else ""
    share = variable.guaranteed_share
    if share is not None and share >= 0.001:
        return (
            f"{chunks} may differ: {inside}, a value moved by more than"
            f" {share_text(rounded_down(share))}{note}{_lost_words(variable)}"
        )
    if share is not None or variable.golden_bound is not None:
        made = "" if variable.golden_bound is None else f", made with {variable.golden_bound},"
        return (
            f"{chunks} may differ: whether a value of them is beyond its bound{note}, the golden's"
            f" {variable.evidence}{made} cannot tell"
        )
    return (
        f"{chunks} may differ: {inside}, a value moved; whether beyond its"
        f" bound{note}, a golden that is a tree alone cannot tell"
    )


def _least_words(variable: VariableResult) -> str:
    """How far a value moved at least, where that is all that is known of the distance."""
    if not variable.least_share:
        return ""
    return f", one by at least {share_text(rounded_down(variable.least_share))}"


def by_digests_lines(variable: VariableResult) -> list[str]:
    """The elements that surely moved, the places of suspect chunks, and what is new there."""
    # The sentence tells of the first one.
    is_told = variable.differing_count is None and variable.differing_count_at_least
    first = first_moved(variable) if is_told and variable.moved_elements else None
    told = [one for one in variable.moved_elements if one is not first]
    lines = [f"{'value ' * bool(one.index)}{moved_words(one)}" for one in told[:_MOST_RANGES]]
    is_part = variable.suspect_chunks != variable.chunk_count
    if variable.differing_count is None and variable.suspect_ranges and is_part:
        shown = variable.suspect_ranges[:_MOST_RANGES]
        shape = variable.golden_shape or variable.shape or ()
        rest = (variable.suspect_range_count or len(variable.suspect_ranges)) - len(shown)
        more = f" and {rest} more ranges" if rest > 0 else ""
        lines.append(f"in values {', '.join(range_text(one, shape) for one in shown)}{more}")
    new = variable.new_values
    if new is not None and not (new.number_count == 1 and variable.moved_elements):
        lines.append(f"in the blocks that may differ: {new_values_words(new)}")
    return lines


def moved_place(variable: VariableResult) -> str:
    """What digests tell of where something moved, and how far: an element if one is known, else
    the suspect chunks.
    """
    if variable.moved_elements:
        return moved_words(first_moved(variable))
    place = suspect_place(variable)
    if not place or not variable.least_share:
        return place
    return f"{place}, by at least {share_text(rounded_down(variable.least_share))}"


def _lost_words(variable: VariableResult) -> str:
    """What the new run holds there that is not a number: `; 800 of their new numbers are NaN`."""
    new = variable.new_values
    words = "" if new is None else lost_words(new)
    if new is None or not words:
        return ", or is NaN, infinite or missing on one side"
    return f", or is not a number: of their {new.number_count:,} new values, {words}"


def decide_words(verdicts: Iterable[Verdict]) -> str:
    """How to find out whether undecided variables differ; nothing if there are none."""
    if Verdict.UNDECIDED not in verdicts:
        return ""
    return (
        "to decide, run the old version again, then `ciwrap compare OLD NEW`; to keep values next"
        " time, set 'evidence: data' before you accept"
    )


def first_moved(variable: VariableResult) -> MovedElement:
    """The first element that is surely beyond its bound; where none is, the first one that moved.

    Raises IndexError if none is known.
    """
    moved = variable.moved_elements
    return next((one for one in moved if one.is_beyond), moved[0])


def moved_words(moved: MovedElement) -> str:
    """`[3, 17] moved by 1.25 to 1.5 x the bound (golden between 1.0 and 1.001, new 1.3)`."""
    part = f" ({moved.part} part)" if moved.part else ""
    golden = safe_name(moved.golden_from or unknown_golden(moved))
    if moved.golden_to != moved.golden_from:
        golden = "between {} and {}".format(*told_apart(moved.golden_from, moved.golden_to))
    how_far = "differs"
    if moved.share_from is not None and moved.share_to is not None:
        how_far = f"moved by {share_interval_words(moved.share_from, moved.share_to)}"
    place = index_text(moved.index) if moved.index else "it"
    return f"{place}{part} {how_far} (golden {golden}, new {safe_name(moved.new)})"


def unknown_golden(moved: MovedElement) -> str:
    """What the golden held where its value is not known."""
    return "a fill value" if moved.golden_is_fill else "a number"


def told_apart(least: str | None, greatest: str | None) -> tuple[str, str]:
    """Two numbers with as few digits as tell them apart."""
    for digits in range(3, 18):
        texts = tuple(f"{float(text or 0):.{digits}g}" for text in (least, greatest))
        if texts[0] != texts[1]:
            return texts[0], texts[1]
    return least or "", greatest or ""


def share_interval_words(least: float, greatest: float) -> str:
    """`1.25 to 1.5 x the bound`, both ends rounded outwards."""
    if math.isinf(greatest):
        return "more than the bound"
    if least == greatest:
        return share_text(greatest)
    ends = rounded_down(least), rounded_up(greatest)
    return f"{short_number(ends[0])} to {short_number(ends[1])} x the bound"


def new_values_words(new: NewValues) -> str:
    """`3,840 new numbers, from 0.01 to 0.99, mean 0.5; 800 NaN`."""
    words = plural(new.number_count, "new number")
    if new.number_count == 1 and new.mean is not None:
        words += f", {short_number(new.mean)}"
    elif new.least is not None and new.greatest is not None and new.mean is not None:
        words += (
            f", from {short_number(new.least)} to {short_number(new.greatest)},"
            f" mean {short_number(new.mean)}"
        )
    lost = lost_words(new)
    return f"{words}; {lost}" if lost else words


def lost_words(new: NewValues) -> str:
    """`800 NaN and 2 infinite`; nothing if all are numbers."""
    counts = ((new.nan_count, "NaN"), (new.infinity_count, "infinite"))
    return " and ".join(f"{count:,} {what}" for count, what in counts if count)
