"""The card of one variable: its sentence, charts, pictures, worst elements and facts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.details import (
    MOST_EXPLANATIONS,
    MOST_LEVELS,
    MOST_WORST,
)
from ciwrap.model import Verdict
from ciwrap.report.causes import cause_words, remedy_words
from ciwrap.report.figures import Figure, histogram_of, is_suspect, legend_of, maps_of, pictures_of
from ciwrap.report.findings import check_title, cut, difference_sentence, match_words, place
from ciwrap.report.matrix import row_of
from ciwrap.report.svg import number
from ciwrap.report.text import (
    bytes_text,
    capital,
    dtype_words,
    grouped_number,
    index_text,
    safe_name,
    short_number,
)
from ciwrap.report.text_words import difference_text, looks_like, summary_line
from ciwrap.report.view import growth_of, timeline_of, where_words
from ciwrap.report.wording import (
    GOLDEN_AND_NEW,
    decide_words,
    evidence_words,
    headline,
    interval_text,
    new_values_words,
    sides_of,
    variable_is_exact,
)
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import DifferingElement, VariableResult
    from ciwrap.report.view import Group

_MOST_SEARCHED = 600
_BAR = Markup(
    '<svg class="bar" viewBox="0 0 220 10" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="c0" width="220" height="10"/><rect class="bo" width="{}" height="10"/>'
    "</svg>"
)


class WorstRow(Struct, frozen=True):
    """One element, every number as text."""

    index: str
    golden: str
    new: str
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


class LevelRow(Struct, frozen=True):
    name: str
    nodes: str
    differing: str
    pruned: str
    bar: Markup


class Part(Struct, frozen=True):
    """One checkpoint of a variable. sides: what the two are called."""

    title: str
    sides: tuple[str, str]
    place: str
    sentence: str
    causes: tuple[CauseView, ...]
    decide: str
    folded: bool
    pictures: tuple[Figure, ...]
    histogram: Figure | None
    maps: tuple[Figure, ...]
    legend: Markup | None
    worst_title: str
    worst: tuple[WorstRow, ...]
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
    has_unknown: bool
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
    sides = sides_of(group.check)
    parts = [_part(first, _first_title(group), sides, folded=False)]
    if is_bad and worst.id != first.id and worst.verdict.is_alarm:
        title = "Most suspect chunks" if is_suspect(worst) else "Largest difference"
        parts.append(_part(worst, title, sides, folded=True))
    words = [group.name, check_title(group.check), group.verdict.words, where_words(group)]
    words += others
    words += [
        first.source_path or "",
        *(f"iter {one.iteration} rank {one.rank}" for one in (first, worst)),
    ]
    growth = growth_of(group)
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
        timeline=timeline_of(group),
        growth=growth,
        has_ring=is_bad,
        has_unknown=any(one.max_bound_share is None for one in group.differing),
        parts=tuple(parts),
    )


def _first_title(group: Group) -> str:
    if group.verdict is Verdict.MATCH:
        return "Where it moved most" if group.is_history else ""
    if not group.is_history:
        return ""
    return {
        Verdict.DIFFER: "First difference",
        Verdict.SUSPECT: "First suspect",
    }.get(group.first.verdict, "First not comparable")


def _part(result: VariableResult, title: str, sides: tuple[str, str], *, folded: bool) -> Part:
    pictures = tuple(pictures_of(result, sides))
    maps = tuple(maps_of(result))
    worst = () if result.details is None else result.details.worst_elements[:MOST_WORST]
    worst = worst or result.first_differences[:MOST_WORST]
    # What has no distance stands in the order of storage.
    is_ranked = bool(result.details and result.details.worst_elements and worst[0].bound_share)
    which = "worst" if is_ranked and not math.isinf(worst[0].bound_share or 0.0) else "first"
    count = result.differing_count or 0
    return Part(
        title=title,
        place=place(result),
        sides=sides,
        sentence=_sentence(result, sides),
        causes=tuple(_causes(result, sides)),
        decide=decide_words([result.verdict]),
        folded=folded,
        pictures=pictures,
        histogram=histogram_of(result),
        maps=maps,
        legend=legend_of(result) if pictures or maps else None,
        worst_title=(
            f"The {which} {len(worst)} of {count:,} differing elements"
            if count > len(worst)
            else "All differing elements"
        ),
        worst=tuple(_worst_row(one, is_exact=variable_is_exact(result)) for one in worst),
        places_title="" if result.text is None else capital(summary_line(result.text)),
        places=tuple(_places(result)),
        facts=tuple(_facts(result, sides)),
        levels=tuple(_levels(result)),
    )


def _causes(result: VariableResult, sides: tuple[str, str]) -> Iterator[CauseView]:
    if not result.verdict.is_alarm:
        return
    for one in result.explanations[:MOST_EXPLANATIONS]:
        remedy = safe_name(one.remedy or "")
        # The sentence above has told it.
        if not remedy and one is result.explanations[0]:
            continue
        yield CauseView(capital(cause_words(one, sides)), remedy_words(one), remedy)


def _sentence(result: VariableResult, sides: tuple[str, str]) -> str:
    if result.verdict.is_alarm:
        return capital(difference_sentence(result, sides))
    if result.verdict is Verdict.MATCH:
        return capital(match_words(result))
    return capital(cut(headline(result)))


def _worst_row(one: DifferingElement, *, is_exact: bool) -> WorstRow:
    def shown(value: float | None) -> str:
        return "" if value is None else short_number(value)

    share = one.bound_share
    return WorstRow(
        index=safe_name(index_text(one.index)),
        golden=safe_name(one.golden, 60),
        new=safe_name(one.new, 60),
        absolute=shown(one.abs_difference),
        relative=shown(one.rel_difference),
        ulps="" if one.ulps is None else _grouped(one.ulps),
        share="" if share is None or is_exact or math.isinf(share) else _times(share),
    )


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


def _facts(result: VariableResult, sides: tuple[str, str]) -> Iterator[tuple[str, str]]:
    if result.bound is not None:
        yield "error bound", "equal numbers" if result.bound.is_exact else result.bound.text
    used = result.used_interval
    if used is not None and not variable_is_exact(result) and result.verdict is Verdict.MATCH:
        yield "largest drift", interval_text(*used) if used[1] else "none"
    if result.new_values is not None:
        yield "in the suspect chunks", new_values_words(result.new_values)
    shape = safe_name(" x ".join(map(str, result.shape))) if result.shape else ""
    if result.shape is not None:
        yield "array", f"{shape or 'a single number'} {dtype_words(result.dtype)}".strip()
    if result.golden_shape is not None or result.golden_dtype is not None:
        other = result.golden_shape if result.golden_shape is not None else result.shape or ()
        golden = safe_name(" x ".join(map(str, other))) or "a single number"
        dtype = dtype_words(result.golden_dtype or result.dtype)
        yield (
            "in the golden" if sides == GOLDEN_AND_NEW else f"in {sides[0]}",
            f"{golden} {dtype}".strip(),
        )
    if result.byte_count is not None:
        yield "size", bytes_text(result.byte_count)
    for name, value, index in (
        ("largest |difference|", result.max_abs_difference, result.max_abs_index),
        ("largest relative", result.max_rel_difference, result.max_rel_index),
    ):
        if value:
            at = f" at {index_text(index)}" if index else ""
            yield name, f"{short_number(value)}{at}"
    if result.mean_abs_difference:
        yield "mean |difference|", short_number(result.mean_abs_difference)
    if result.suspect_chunks is not None and result.chunk_count:
        yield "suspect chunks", f"{result.suspect_chunks:,} of {result.chunk_count:,}"
    for name, count in (
        ("NaN on one side", result.nan_mismatch_count),
        ("infinite on one side", result.inf_mismatch_count),
        ("missing on one side", result.missing_mismatch_count),
    ):
        if count:
            yield name, f"{count:,}"
    words = evidence_words(result)
    if words and result.verdict is not Verdict.NOT_COMPARABLE:
        yield "evidence", words
    if result.mask:
        extent = "" if result.masked_count is None else f": {result.masked_count:,} elements"
        yield "mask", f"{safe_name(result.mask)}{extent} not compared"
    if result.has_fill_values:
        yield "fill values", "elements that hold one on both sides are not compared"
    if result.source_path:
        yield "file", safe_name(result.source_path)


def _levels(result: VariableResult) -> Iterator[LevelRow]:
    levels = () if result.details is None else result.details.tree_levels[:MOST_LEVELS]
    for depth, level in enumerate(levels):
        name = "root" if depth == 0 else str(depth)
        if depth == len(levels) - 1:
            name = "root and leaf" if depth == 0 else f"{name} (leaves: the chunks)"
        part = min(level.differing_count / level.node_count, 1.0) if level.node_count else 0.0
        width = max(220 * part, 1.5) if level.differing_count else 0.0
        yield LevelRow(
            name,
            f"{level.node_count:,}",
            f"{level.differing_count:,}",
            f"{level.node_count - level.differing_count:,}",
            _BAR.format(number(width)),
        )
