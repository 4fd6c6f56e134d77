"""The card of one variable: its sentence, charts, pictures, worst elements and facts."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.details import (
    MOST_EXPLANATIONS,
    MOST_WORST,
)
from ciwrap.model import Verdict
from ciwrap.report.causes import cause_words, remedy_words
from ciwrap.report.digest_words import (
    decide_words,
    share_interval_words,
    told_apart,
    unknown_golden,
)
from ciwrap.report.facts import LevelRow, facts_of, levels_of
from ciwrap.report.figure_rows import Figures, figures_of
from ciwrap.report.figures import is_suspect
from ciwrap.report.findings import check_title, cut, difference_sentence, match_words, place
from ciwrap.report.matrix import row_of
from ciwrap.report.sides import sides_of
from ciwrap.report.sizes import relative_text, variable_is_exact
from ciwrap.report.text import (
    capital,
    common_start,
    grouped_number,
    index_text,
    safe_name,
    short_number,
    size_text,
)
from ciwrap.report.text_words import difference_text, looks_like, summary_line
from ciwrap.report.view import growth_of, timeline_of, timeline_words, where_words
from ciwrap.report.views import view_text
from ciwrap.report.wording import headline
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import DifferingElement, MovedElement, VariableResult
    from ciwrap.report.view import Group

_MOST_SEARCHED = 600
_PLAIN = re.compile(r"-?\d+(\.\d*)?")
# Of the table of elements: title and field; left out where no row has one.
_COLUMNS = (
    ("|difference|", "absolute"),
    ("relative", "relative"),
    ("ULPs", "ulps"),
    ("of the bound", "share"),
)
# What stands before the words on the page.
_TO_DECIDE = "to decide what is suspect"


class WorstRow(Struct, frozen=True):
    """One element, every number as text; what both sides have in common stands back."""

    index: str
    golden: str | Markup
    new: str | Markup
    absolute: str
    relative: str
    ulps: str
    share: str


class PlaceRow(Struct, frozen=True):
    """A place of a text, or a template of lines without partner; what a side lacks is ''."""

    count: str
    template: str
    golden_place: str
    golden: str
    new_place: str
    new: str
    difference: str
    remedy: str


class CauseView(Struct, frozen=True):
    """words: what the elements have in common. when: the remedy is right then. remedy: a line for
    ciwrap.yaml; '' if there is none.
    """

    words: str
    when: str
    remedy: str


class Part(Struct, frozen=True):
    """One checkpoint of a variable. sides: what the two are called. columns: of the
    table of elements after the two sides, title and field. view: for the script.
    """

    title: str
    sides: tuple[str, str]
    place: str
    sentence: str
    causes: tuple[CauseView, ...]
    decide: str
    folded: bool
    figures: Figures
    worst_title: str
    worst: tuple[WorstRow, ...]
    columns: tuple[tuple[str, str], ...]
    view: str
    places_title: str
    places: tuple[PlaceRow, ...]
    facts: tuple[tuple[str, str], ...]
    levels: tuple[LevelRow, ...]


class Card(Struct, frozen=True):
    number: int
    name: str
    check: str
    others: tuple[str, ...]
    more_others: int
    is_folded: bool
    verdict: Verdict
    short: str
    search: str
    where: str
    timeline: Markup | None
    growth: Markup | None
    has_ring: bool
    timeline_note: str
    has_unknown: bool
    is_at_most: bool
    parts: tuple[Part, ...]


def card_of(
    number: int,
    group: Group,
    *,
    with_check: bool,
    others: tuple[str, ...] = (),
    more_others: int = 0,
    is_folded: bool = False,
) -> Card:
    """others: the names of variables that were not compared for the same reason."""
    first, worst = group.first, group.worst
    is_bad = group.verdict is not Verdict.MATCH
    sides = sides_of(group.check, first)
    parts = [_part(first, _first_title(group), sides, folded=False, has_view=not is_folded)]
    if is_bad and worst.id != first.id and worst.verdict.is_alarm:
        title = "Most suspect chunks" if is_suspect(worst) else "Largest difference"
        parts.append(_part(worst, title, sides, folded=True))
    words = [group.name, check_title(group.check), group.verdict.words, where_words(group)]
    words += others
    words += [
        first.source_path or "",
        *(f"iter {one.iteration} rank {one.rank}" for one in (first, worst)),
    ]
    growth, timeline = growth_of(group), timeline_of(group)
    return Card(
        number=number,
        name=safe_name(group.name),
        check=safe_name(check_title(group.check)) if with_check else "",
        others=others,
        more_others=more_others,
        is_folded=is_folded,
        verdict=group.verdict,
        short=row_of(number, group).worst,
        search=safe_name(" ".join(words), _MOST_SEARCHED),
        where=capital(where_words(group)),
        timeline=timeline,
        growth=growth,
        has_ring=is_bad,
        timeline_note=timeline_words(group, timeline or ""),
        has_unknown=any(one.max_bound_share is None for one in group.differing),
        is_at_most=any(map(_is_known_at_most, group.results)),
        parts=tuple(parts),
    )


def _is_known_at_most(result: VariableResult) -> bool:
    """Whether residues alone tell how far a checkpoint that matches moved: to within a step."""
    is_drift = result.max_bound_share is None and result.used_interval is not None
    return is_drift and result.verdict is Verdict.MATCH


def _first_title(group: Group) -> str:
    if group.verdict is Verdict.MATCH:
        return "Where it moved most" if group.is_history else ""
    if not group.is_history:
        return ""
    return {
        Verdict.DIFFER: "First difference",
        Verdict.SUSPECT: "First suspect",
    }.get(group.first.verdict, "First not comparable")


def _part(
    result: VariableResult,
    title: str,
    sides: tuple[str, str],
    *,
    folded: bool,
    has_view: bool = False,
) -> Part:
    worst = () if result.details is None else result.details.worst_elements[:MOST_WORST]
    worst = worst or result.first_differences[:MOST_WORST]
    # What has no distance stands in the order of storage.
    is_ranked = result.details is not None and bool(result.details.worst_elements)
    is_ranked &= any(one.abs_difference is not None for one in worst)
    which = "worst" if is_ranked else "first"
    pads = zip(_pads([one.golden for one in worst]), _pads([one.new for one in worst]), strict=True)
    is_exact = variable_is_exact(result)
    rows = [_worst_row(one, pad, is_exact=is_exact) for one, pad in zip(worst, pads, strict=True)]
    count = result.differing_count or 0
    worst_title = "All differing elements"
    if rows and count > len(worst):
        worst_title = f"The {which} {len(worst)} of {count:,} differing elements"
    elif not rows and result.moved_elements:
        rows = [_moved_row(one) for one in result.moved_elements]
        worst_title = f"The first elements that are known to have moved ({len(rows)})"
        if len(rows) == 1:
            worst_title = "The element that is known to have moved"
    return Part(
        title=title,
        place=place(result),
        sides=sides,
        sentence=_sentence(result, sides),
        causes=tuple(_causes(result, sides)),
        decide=decide_words([result.verdict]).removeprefix(_TO_DECIDE),
        folded=folded,
        figures=figures_of(result, sides, has_table=bool(rows)),
        worst_title=worst_title,
        worst=tuple(rows),
        columns=tuple(one for one in _COLUMNS if any(getattr(row, one[1]) for row in rows)),
        view=view_text(result, sides) if has_view else "",
        places_title="" if result.text is None else capital(summary_line(result.text)),
        places=tuple(_places(result)),
        facts=tuple(facts_of(result, sides)),
        levels=tuple(levels_of(result)),
    )


def _causes(result: VariableResult, sides: tuple[str, str]) -> Iterator[CauseView]:
    for one in result.explanations[:MOST_EXPLANATIONS]:
        remedy = safe_name(one.remedy or "")
        # The sentence above has told it.
        is_told = result.differing_count is not None and one is result.explanations[0]
        if not remedy and is_told:
            continue
        yield CauseView(capital(cause_words(one, sides)), remedy_words(one), remedy)


def _sentence(result: VariableResult, sides: tuple[str, str]) -> str:
    if result.verdict.is_alarm:
        return capital(difference_sentence(result, sides))
    if result.verdict is Verdict.MATCH:
        return capital(match_words(result))
    return capital(cut(headline(result)))


def _worst_row(one: DifferingElement, pads: tuple[str, str], *, is_exact: bool) -> WorstRow:
    def shown(value: float | None) -> str:
        return "" if value is None else size_text(value)

    share = one.bound_share
    return WorstRow(
        index=safe_name(index_text(one.index)),
        golden=_parted(one.golden, one.new) + pads[0],
        new=_parted(one.new, one.golden) + pads[1],
        absolute=shown(one.abs_difference),
        relative=_relative(one),
        ulps="" if one.ulps is None or _is_sign_other(one) else _grouped(one.ulps),
        share="" if share is None or is_exact or math.isinf(share) else _times(share),
    )


def _relative(one: DifferingElement) -> str:
    relative = relative_text(one.rel_difference, one.abs_difference)
    return "0" if one.rel_difference == 0 else relative


def _pads(texts: list[str]) -> list[str]:
    """What stands after each of some numbers, so that their points are below one another."""
    plain = [_PLAIN.fullmatch(text) for text in texts]
    lengths = [0 if one is None else len(one[1] or "") for one in plain]
    if None in plain:
        return [""] * len(texts)
    return ["\u00a0" * (max(lengths) - length) for length in lengths]


def _moved_row(one: MovedElement) -> WorstRow:
    """Told by residues: the golden's value and the share lie between two ends."""
    golden = safe_name(one.golden_from or unknown_golden(one), 60)
    if one.golden_to != one.golden_from:
        golden = " to ".join(told_apart(one.golden_from, one.golden_to))
    share = ""
    if one.share_from is not None and one.share_to is not None:
        share = share_interval_words(one.share_from, one.share_to)
    part = f" ({one.part})" if one.part else ""
    return WorstRow(
        index=safe_name(index_text(one.index)) + part,
        golden=golden,
        new=safe_name(one.new, 60),
        absolute="",
        relative="",
        ulps="",
        share=share.removesuffix(" the bound").replace(" x", "\u00a0\u00d7"),
    )


def _parted(text: str, other: str) -> Markup:
    """The number, marked from the first digit on in which the other one is not the same."""
    start = common_start(text, other)
    same, rest = safe_name(text[:start], 60), safe_name(text[start:], 60)
    return Markup("{}<b>{}</b>").format(same, rest) if start else Markup("{}").format(rest)


def _is_sign_other(one: DifferingElement) -> bool:
    """Whether zero lies between both: then the floats between them are not worth counting."""
    return one.golden.startswith("-") != one.new.startswith("-")


def _places(result: VariableResult) -> Iterator[PlaceRow]:
    text = result.text
    for one in () if text is None else text.places:
        yield PlaceRow(
            f"{one.count:,}",
            f"{safe_name(one.template, 160)} (number {one.number})",
            f"{one.golden.line}:{one.golden.column}",
            safe_name(one.golden.text, 60),
            f"{one.new.line}:{one.new.column}",
            safe_name(one.new.text, 60),
            difference_text(one),
            looks_like(one.remedies) if one.remedies else "",
        )
    for lines in () if text is None else text.unpaired:
        golden, new = lines.golden, lines.new
        yield PlaceRow(
            f"{lines.golden_count + lines.new_count:,}",
            f"{safe_name(lines.template, 160) or '(blank)'} (no partner)",
            "" if golden is None else str(golden.line),
            "" if golden is None else safe_name(golden.text, 60),
            "" if new is None else str(new.line),
            "" if new is None else safe_name(new.text, 60),
            "",
            looks_like(lines.remedies) if lines.remedies else "",
        )


def _grouped(count: int) -> str:
    return f"{count:,}" if count < 10**9 else short_number(float(count))


def _times(share: float) -> str:
    return f"{grouped_number(share)}\u00a0\u00d7"
