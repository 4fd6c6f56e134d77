"""What the card of one variable says and shows, as plain data; `page.py` makes its HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import SimpleNamespace

from markupsafe import Markup

from ciwrap.model import DifferingElement, MovedElement, VariableResult, Verdict
from ciwrap.model.variable_result import (
    MOST_EXPLANATIONS,
    MOST_LEVELS,
    MOST_WORST,
    DifferingNumbers,
    MaskedText,
    UnpairedLines,
)
from ciwrap.report.cause_words import cause_words, remedy_words
from ciwrap.report.digest_words import (
    decide_words,
    new_values_words,
    share_interval_words,
    told_apart,
    unknown_golden,
)
from ciwrap.report.drawing import effect_facts, number, view_text
from ciwrap.report.figures import figures_of, is_suspect
from ciwrap.report.lead import Group, check_title, cut, match_words, place, sentence_on
from ciwrap.report.text import (
    GOLDEN_AND_NEW,
    bytes_text,
    capital,
    common_start,
    dtype_words,
    grouped_number,
    index_text,
    plural,
    range_words,
    safe_name,
    short_number,
    size_text,
)
from ciwrap.report.text_words import difference_text, looks_like, place_hints, summary_line
from ciwrap.report.view import growth_of, row_of, timeline_of, timeline_words, where_words
from ciwrap.report.words import (
    bound_text,
    evidence_words,
    interval_text,
    lost_count,
    mean_text,
    relative_text,
    sides_of,
    special_counts,
    variable_is_exact,
)

_BAR = Markup(
    '<svg class="bar" viewBox="0 0 220 10" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="c0" width="220" height="10"/><rect class="bo" width="{}" height="10"/>'
    "</svg>"
)


def facts_of(result: VariableResult, sides: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """What each fact is called, and the fact."""
    if result.bound is not None and result.expectation != "range":
        yield "error bound", bound_text(result) or "equal numbers"
    used = result.used_interval
    if used is not None and not variable_is_exact(result) and result.verdict is Verdict.MATCH:
        yield "largest change", interval_text(*used) if used[1] else "none"
    if result.new_values is not None:
        yield "in the blocks that may differ", new_values_words(result.new_values)
    if result.shape is not None:
        yield "array", _array_words(result.shape, result.dtype)
    if result.golden_shape is not None or result.golden_dtype is not None:
        other = result.golden_shape if result.golden_shape is not None else result.shape or ()
        name = "in the golden" if sides == GOLDEN_AND_NEW else f"in {sides[0]}"
        yield name, _array_words(other, result.golden_dtype or result.dtype)
    if result.byte_count is not None:
        yield "size", bytes_text(result.byte_count)
    yield from _size_facts(result)
    if result.details is not None and result.details.effect is not None:
        yield from effect_facts(result.details.effect, sides, is_whole=not lost_count(result))
    if result.suspect_chunks is not None and result.chunk_count:
        yield "blocks whose digests differ", f"{result.suspect_chunks:,} of {result.chunk_count:,}"
    for count, name in special_counts(result):
        yield name, f"{count:,}"
    words = evidence_words(result)
    if words and result.verdict is not Verdict.NOT_COMPARABLE:
        yield "evidence", words
    if result.mask:
        extent = "what both sides mask is"
        if result.masked_count is not None:
            extent = plural(result.masked_count, "value")
        yield "mask", f"{safe_name(result.mask)}: {extent} not compared"
    if result.has_fill_values:
        yield "fill values", "values that hold one on both sides are not compared"
    if result.source_path:
        yield "file", safe_name(result.source_path)


def _array_words(shape: tuple[int, ...], dtype: str | None) -> str:
    extents = safe_name(" x ".join(map(str, shape))) or "a single number"
    return f"{extents} {dtype_words(dtype)}".strip()


def _size_facts(result: VariableResult) -> Iterator[tuple[str, str]]:
    """How large the largest difference is, of the number and of the range, and the mean one."""
    size, relative = result.max_abs_difference, result.max_rel_difference
    if size:
        effect = None if result.details is None else result.details.effect
        share = range_words(effect, size)
        against = f", {share}" if share else ""
        yield "largest |difference|", f"{size_text(size)}{_at(result.max_abs_index)}{against}"
    if words := relative_text(relative, size):
        yield "largest relative", f"{words}{_at(result.max_rel_index)}"
    if words := mean_text(result.mean_abs_difference):
        yield "mean |difference|", words


def _at(index: tuple[int, ...] | None) -> str:
    return f" at {index_text(index)}" if index else ""


def levels_of(result: VariableResult) -> Iterator[SimpleNamespace]:
    """The root first."""
    levels = () if result.details is None else result.details.tree_levels[:MOST_LEVELS]
    for depth, level in enumerate(levels):
        name = "root" if depth == 0 else str(depth)
        if depth == len(levels) - 1:
            name = "root and leaf" if depth == 0 else f"{name} (leaves: the blocks)"
        part = min(level.differing_count / level.node_count, 1.0) if level.node_count else 0.0
        width = max(220 * part, 1.5) if level.differing_count else 0.0
        yield SimpleNamespace(
            name=name,
            nodes=f"{level.node_count:,}",
            differing=f"{level.differing_count:,}",
            pruned=f"{level.node_count - level.differing_count:,}",
            bar=_BAR.format(number(width)),
        )


_MOST_SEARCHED = 600
_PLAIN = re.compile(r"-?\d+(\.\d*)?")
# Of the table of elements: title and field; left out where no row has one.
_COLUMNS = (
    ("|difference|", "absolute"),
    ("relative", "relative"),
    ("ULPs", "ulps"),
    ("of the bound", "share"),
)
# Of the first part of a card.
_FIRST_TITLES = {
    Verdict.MATCH: "Where it moved most",
    Verdict.DIFFER: "First difference",
    Verdict.UNDECIDED: "First undecided checkpoint",
    Verdict.NOT_COMPARABLE: "First not comparable",
}
# What stands before the words on the page.
_TO_DECIDE = "to decide"


def card_of(
    number: int,
    group: Group,
    *,
    with_check: bool,
    others: tuple[str, ...] = (),
    more_others: int = 0,
    is_folded: bool = False,
) -> SimpleNamespace:
    """others: the names of variables that were not compared for the same reason."""
    first, worst = group.first, group.worst
    is_bad = group.verdict is not Verdict.MATCH
    sides = sides_of(group.check, first)
    title = _FIRST_TITLES[first.verdict] if group.is_history else ""
    parts = [_part(first, title, sides, folded=False, has_view=not is_folded)]
    if is_bad and worst.id != first.id and worst.verdict.is_alarm:
        title = "Most blocks that may differ" if is_suspect(worst) else "Largest difference"
        parts.append(_part(worst, title, sides, folded=True))
    places = [f"iter {one.iteration} rank {one.rank}" for one in (first, worst)]
    said = [group.name, check_title(group.check), group.verdict.words, where_words(group)]
    words = [*said, *others, first.source_path or "", *places]
    growth, timeline = growth_of(group), timeline_of(group)
    return SimpleNamespace(
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
        # Of what matches residues tell how far it moved to within a step.
        is_at_most=any(
            one.max_bound_share is None and one.used_interval is not None
            for one in group.results
            if one.verdict is Verdict.MATCH
        ),
        parts=tuple(parts),
    )


def _part(
    result: VariableResult,
    title: str,
    sides: tuple[str, str],
    *,
    folded: bool,
    has_view: bool = False,
) -> SimpleNamespace:
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
    worst_title = "All differing values"
    if rows and count > len(worst):
        worst_title = f"The {which} {len(worst)} of {count:,} differing values"
    elif not rows and result.moved_elements:
        rows = [_moved_row(one) for one in result.moved_elements]
        worst_title = f"The first values that are known to have moved ({len(rows)})"
        if len(rows) == 1:
            worst_title = "The value that is known to have moved"
    return SimpleNamespace(
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
        places_title=_places_title(result),
        places=tuple(_places(result, sides)),
        facts=tuple(facts_of(result, sides)),
        levels=tuple(levels_of(result)),
    )


def _causes(result: VariableResult, sides: tuple[str, str]) -> Iterator[SimpleNamespace]:
    for one in result.explanations[:MOST_EXPLANATIONS]:
        remedy = safe_name(one.remedy or "")
        # The sentence above has said it.
        is_told = result.differing_count is not None and one is result.explanations[0]
        if remedy or not is_told:
            words = capital(cause_words(one, sides, result.name))
            yield SimpleNamespace(words=words, when=remedy_words(one), remedy=remedy)


def _sentence(result: VariableResult, sides: tuple[str, str]) -> str:
    if result.verdict is Verdict.MATCH:
        return capital(match_words(result))
    words = sentence_on(result, sides)
    return capital(words if result.verdict.is_alarm else cut(words))


def _worst_row(one: DifferingElement, pads: tuple[str, str], *, is_exact: bool) -> SimpleNamespace:
    share, size = one.bound_share, one.abs_difference
    relative = relative_text(one.rel_difference, size)
    # Where zero lies between both, the floats between them are not worth counting.
    is_sign_other = one.golden.startswith("-") != one.new.startswith("-")
    has_share = share is not None and not is_exact and not math.isinf(share)
    return SimpleNamespace(
        index=safe_name(index_text(one.index)),
        golden=_parted(one.golden, one.new) + pads[0],
        new=_parted(one.new, one.golden) + pads[1],
        absolute="" if size is None else size_text(size),
        relative="0" if one.rel_difference == 0 else relative,
        ulps="" if one.ulps is None or is_sign_other else _grouped(one.ulps),
        share=f"{grouped_number(share or 0.0)}\u00a0\u00d7" if has_share else "",
    )


def _pads(texts: list[str]) -> list[str]:
    """What stands after each of some numbers, so that their points are below one another."""
    plain = [_PLAIN.fullmatch(text) for text in texts]
    lengths = [0 if one is None else len(one[1] or "") for one in plain]
    if None in plain:
        return [""] * len(texts)
    return ["\u00a0" * (max(lengths) - length) for length in lengths]


def _moved_row(one: MovedElement) -> SimpleNamespace:
    """Told by residues: the golden's value and the share lie between two ends."""
    golden = safe_name(one.golden_from or unknown_golden(one), 60)
    if one.golden_to != one.golden_from:
        golden = " to ".join(told_apart(one.golden_from, one.golden_to))
    share = ""
    if one.share_from is not None and one.share_to is not None:
        share = share_interval_words(one.share_from, one.share_to)
    part = f" ({one.part})" if one.part else ""
    return SimpleNamespace(
        index=safe_name(index_text(one.index)) + part,
        golden=golden,
        new=safe_name(one.new, 60),
        **dict.fromkeys(("absolute", "relative", "ulps"), ""),
        share=share.removesuffix(" the bound").replace(" x", "\u00a0\u00d7"),
    )


def _parted(text: str, other: str) -> Markup:
    """The number, marked from the first digit on in which the other one is not the same."""
    start = common_start(text, other)
    same, rest = safe_name(text[:start], 60), safe_name(text[start:], 60)
    return Markup("{}<b>{}</b>").format(same, rest) if start else Markup("{}").format(rest)


def _places_title(result: VariableResult) -> str:
    return "" if result.text is None else capital(summary_line(result.text) or "left out")


def _places(result: VariableResult, sides: tuple[str, str]) -> Iterator[SimpleNamespace]:
    """The places of a text, templates of lines without partner, and what is left out."""
    text = result.text
    for one in () if text is None else text.places:
        yield SimpleNamespace(
            count=f"{one.count:,}",
            template=f"{safe_name(one.template, 160)} (number {one.number})",
            golden_place=f"{one.golden.line}:{one.golden.column}",
            new_place=f"{one.new.line}:{one.new.column}",
            difference=difference_text(one),
            remedy="; ".join(place_hints(one, sides, with_place=True)),
            **_both_texts(one),
        )
    for lines in () if text is None else text.unpaired:
        remedy = looks_like(lines.remedies, sides) if lines.remedies else ""
        yield _whole_lines(lines, lines.golden_count + lines.new_count, "no partner", remedy)
    for masked in () if text is None else text.masked:
        yield _whole_lines(masked, masked.lines, f"left out by {masked.by}")


def _whole_lines(
    one: UnpairedLines | MaskedText, count: int, why: str, remedy: str = ""
) -> SimpleNamespace:
    """Lines of one template of which no numbers are compared. why: they are not."""
    return SimpleNamespace(
        count=f"{count:,}",
        template=f"{safe_name(one.template, 160) or '(blank)'} ({why})",
        golden_place="" if one.golden is None else one.golden.line,
        new_place="" if one.new is None else one.new.line,
        difference="",
        remedy=remedy,
        **_both_texts(one),
    )


def _both_texts(one: DifferingNumbers | UnpairedLines | MaskedText) -> dict[str, str]:
    """What stands on either side, '' on one that has nothing."""
    return {
        "golden": "" if one.golden is None else safe_name(one.golden.text, 60),
        "new": "" if one.new is None else safe_name(one.new.text, 60),
    }


def _grouped(count: int) -> str:
    return f"{count:,}" if count < 10**9 else short_number(float(count))
