"""The card of one variable: its sentence, charts, pictures, worst elements and facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.details import (
    BOUND_CLASS,
    MOST_LEVELS,
    MOST_MAPS,
    MOST_WORST,
    NOT_FINITE,
    SHARE_CLASSES,
    SUSPECT,
    cells,
)
from ciwrap.model import Verdict
from ciwrap.report import svg
from ciwrap.report.findings import check_title, cut, difference_sentence, match_words, place
from ciwrap.report.palette import SHARE_PALETTE, VALUE_PALETTE, css_colour, share_colour
from ciwrap.report.png import palette_png
from ciwrap.report.text import (
    bytes_text,
    dtype_words,
    grouped_number,
    index_text,
    safe_name,
    share_text,
    short_number,
)
from ciwrap.report.view import growth_of, timeline_of, where_words
from ciwrap.report.wording import evidence_words, headline, variable_is_exact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.details import Picture, ShareMap
    from ciwrap.model import DifferingElement, VariableResult
    from ciwrap.report.png import Colour
    from ciwrap.report.view import Group

_MOST_SEARCHED = 600
# Of so few a histogram says nothing.
_FEW_ELEMENTS = 8
_TALL = 3
_BAR = Markup(
    '<svg class="bar" viewBox="0 0 220 10" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="c0" width="220" height="10"/><rect class="bo" width="{}" height="10"/>'
    "</svg>"
)


@dataclass(frozen=True, slots=True)
class Figure:
    title: str
    image: Markup
    note: str = ""


@dataclass(frozen=True, slots=True)
class WorstRow:
    """One element, every number as text."""

    index: str
    golden: str
    new: str
    absolute: str
    relative: str
    ulps: str
    share: str


@dataclass(frozen=True, slots=True)
class LevelRow:
    name: str
    nodes: str
    differing: str
    pruned: str
    bar: Markup


@dataclass(frozen=True, slots=True)
class Part:
    """One checkpoint of a variable."""

    title: str
    place: str
    sentence: str
    folded: bool
    pictures: tuple[Figure, ...]
    histogram: Figure | None
    maps: tuple[Figure, ...]
    legend: Markup | None
    worst_title: str
    worst: tuple[WorstRow, ...]
    facts: tuple[tuple[str, str], ...]
    levels: tuple[LevelRow, ...]


@dataclass(frozen=True, slots=True)
class Card:
    number: int
    name: str
    check: str
    verdict: Verdict
    search: str
    where: str
    timeline: Markup | None
    growth: Markup | None
    has_ring: bool
    has_unknown: bool
    parts: tuple[Part, ...]


def card_of(number: int, group: Group, *, with_check: bool) -> Card:
    first, worst = group.first, group.worst
    is_bad = group.verdict is not Verdict.MATCH
    parts = [_part(first, _first_title(group), folded=False)]
    if is_bad and worst.id != first.id and worst.verdict is Verdict.DIFFER:
        title = "Most suspect chunks" if _is_suspect(worst) else "Largest difference"
        parts.append(_part(worst, title, folded=True))
    words = [group.name, check_title(group.check), group.verdict.words, where_words(group)]
    words += [
        first.source_path or "",
        *(f"iter {one.iteration} rank {one.rank}" for one in (first, worst)),
    ]
    growth = growth_of(group)
    return Card(
        number=number,
        name=safe_name(group.name),
        check=safe_name(check_title(group.check)) if with_check else "",
        verdict=group.verdict,
        search=safe_name(" ".join(words), _MOST_SEARCHED),
        where=_capital(where_words(group)),
        timeline=timeline_of(group),
        growth=growth,
        has_ring=is_bad,
        has_unknown=any(one.max_bound_share is None for one in group.differing),
        parts=tuple(parts),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_title(group: Group) -> str:
    if group.verdict is Verdict.MATCH:
        return "Where it moved most" if group.is_history else ""
    if not group.is_history:
        return ""
    return "First divergence" if group.first.verdict is Verdict.DIFFER else "First not comparable"


def _part(result: VariableResult, title: str, *, folded: bool) -> Part:
    pictures = tuple(_pictures(result))
    maps = tuple(_maps(result))
    worst = () if result.details is None else result.details.worst_elements[:MOST_WORST]
    worst = worst or result.first_differences[:MOST_WORST]
    which = "worst" if result.details and result.details.worst_elements else "first"
    count = result.differing_count or 0
    return Part(
        title=title,
        place=place(result),
        sentence=_sentence(result),
        folded=folded,
        pictures=pictures,
        histogram=_histogram(result),
        maps=maps,
        legend=_legend(result) if pictures or maps else None,
        worst_title=(
            f"The {which} {len(worst)} of {count:,} differing elements"
            if count > len(worst)
            else "All differing elements"
        ),
        worst=tuple(_worst_row(one, is_exact=variable_is_exact(result)) for one in worst),
        facts=tuple(_facts(result)),
        levels=tuple(_levels(result)),
    )


def _sentence(result: VariableResult) -> str:
    if result.verdict is Verdict.DIFFER:
        return _capital(difference_sentence(result))
    if result.verdict is Verdict.MATCH:
        return _capital(match_words(result))
    return _capital(cut(headline(result)))


def _histogram(result: VariableResult) -> Figure | None:
    if (result.element_count or 0) < _FEW_ELEMENTS:
        return None
    counts = result.bound_share_histogram
    if (
        counts is not None
        and len(counts) == SHARE_CLASSES
        and any(count > 0 for count in counts)
        and not variable_is_exact(result)
    ):
        image = svg.share_histogram(counts, f"{result.name}: elements by |difference| / bound")
        return Figure("How far elements moved", image, "logarithmic scales")
    steps = result.drift_histogram
    if steps and sum(steps):
        image = svg.drift_histogram(
            steps, f"{result.name}: elements by the share of the bound used"
        )
        note = "from the residues of the golden; chunks that match only"
        return Figure("How far elements moved", image, note)
    return None


def _can_be_drawn(counts: Sequence[int]) -> bool:
    return len(counts) == SHARE_CLASSES and any(count > 0 for count in counts)


def _pictures(result: VariableResult) -> Iterator[Figure]:
    picture = None if result.details is None else result.details.picture
    shape = result.golden_shape or result.shape
    if picture is None or shape is None or not _fits(picture, shape):
        return
    column = svg.Side(picture.column_axis, shape[picture.column_axis])
    if picture.row_axis is None:
        golden, new = _line(picture.golden, picture), _line(picture.new, picture)
        label = f"{result.name}: golden and new along axis {picture.column_axis}"
        yield Figure(
            "Golden (blue) and new (orange)",
            svg.line_chart(golden, new, column, picture.low, picture.high, label),
            _where(picture, shape),
        )
        return
    for title, text, palette in (
        ("Golden", picture.golden, VALUE_PALETTE),
        ("New", picture.new, VALUE_PALETTE),
        ("|difference| / bound", picture.classes, SHARE_PALETTE),
    ):
        plane = _where(picture, shape)
        label = f"{result.name}: {title} {plane}".rstrip()
        yield Figure(title, _image(picture, text, palette, shape, label), plane)


def _image(
    one: Picture | ShareMap,
    text: str,
    palette: Sequence[Colour],
    shape: tuple[int, ...],
    label: str,
) -> Markup:
    """A map of cells; what is much taller than wide (particles by components) lies on its side."""
    values, rows, columns = cells(text, one.rows, one.columns), one.rows, one.columns
    column = svg.Side(one.column_axis, shape[one.column_axis])
    row = None if one.row_axis is None else svg.Side(one.row_axis, shape[one.row_axis])
    if row is not None and row.extent > _TALL * column.extent:
        values = bytes(values[i * columns + j] for j in range(columns) for i in range(rows))
        rows, columns, row, column = columns, rows, column, row
    return svg.image_chart(palette_png(values, rows, columns, palette), row, column, label)


def _fits(picture: Picture | ShareMap, shape: tuple[int, ...]) -> bool:
    """Whether a document's map is one of this array."""
    axes = (picture.column_axis, picture.row_axis or 0)
    return all(0 <= axis < len(shape) and shape[axis] > 0 for axis in axes)


def _where(picture: Picture, shape: tuple[int, ...]) -> str:
    shown = [
        ":" if axis in (picture.row_axis, picture.column_axis) else str(position)
        for axis, position in enumerate(picture.index[: len(shape)])
    ]
    # All of the array is shown: nothing to tell.
    return f"[{', '.join(shown)}]" if any(one != ":" for one in shown) else ""


def _line(text: str, picture: Picture) -> list[float | None]:
    values = cells(text, picture.rows, picture.columns)[: picture.columns]
    return [None if value == NOT_FINITE else value / 254 for value in values]


def _maps(result: VariableResult) -> Iterator[Figure]:
    shape = result.golden_shape or result.shape
    if result.details is None or shape is None:
        return
    picture = result.details.picture
    for one in result.details.share_maps[:MOST_MAPS]:
        if not _fits(one, shape):
            continue
        same = picture is not None and (one.row_axis, one.column_axis) == (
            picture.row_axis,
            picture.column_axis,
        )
        # The picture has shown these two axes already.
        if same and one.row_axis is not None:
            continue
        what = "Suspect chunks" if _is_suspect(result) else "Differing elements"
        hidden = [
            str(axis)
            for axis, extent in enumerate(shape)
            if extent > 1 and axis not in (one.row_axis, one.column_axis)
        ]
        note = f"seen along axis {' and '.join(hidden)}" if hidden else "in the array's own shape"
        label = f"{result.name}: {what}, {note}"
        yield Figure(what, _image(one, one.classes, SHARE_PALETTE, shape, label), note)


def _is_suspect(result: VariableResult) -> bool:
    return result.differing_count is None


def _legend(result: VariableResult) -> Markup:
    """What the colours of the maps mean."""
    swatches = [(0, "equal"), (9, ""), (13, ""), (17, "within the bound")]
    swatches += [(BOUND_CLASS, ""), (BOUND_CLASS + 5, ""), (33, "beyond it")]
    if _is_suspect(result):
        swatches = [(0, "chunk matches"), (SUSPECT, "suspect chunk")]
    parts = []
    for share_class, words in swatches:
        colour = share_colour(share_class)
        box = Markup(
            '<svg viewBox="0 0 22 12" width="22" aria-hidden="true"><rect width="22" height="12"'
            ' fill="{}" fill-opacity="{}"/></svg>'
        ).format(css_colour(colour), f"{max(colour[3], 60) / 255:.2f}")
        parts.append(Markup("<span>{}{}</span>").format(box, f" {words}" if words else ""))
    if not _is_suspect(result):
        picture = None if result.details is None else result.details.picture
        if picture is not None and picture.row_axis is not None:
            parts.append(
                Markup("<span>values: {} (dark) to {} (bright)</span>").format(
                    short_number(picture.low), short_number(picture.high)
                )
            )
    return Markup("").join(parts)


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


def _grouped(count: int) -> str:
    return f"{count:,}" if count < 10**9 else short_number(float(count))


def _times(share: float) -> str:
    return f"{grouped_number(share)}\u00a0\u00d7"


def _facts(result: VariableResult) -> Iterator[tuple[str, str]]:
    if result.bound is not None:
        yield "error bound", "equal numbers" if result.bound.is_exact else result.bound.text
    share = result.max_bound_share if result.max_bound_share is not None else result.max_drift_share
    if share is not None and not variable_is_exact(result) and result.verdict is Verdict.MATCH:
        yield "at most used", share_text(share) if share else "no drift seen"
    shape = safe_name(" x ".join(map(str, result.shape))) if result.shape else ""
    if result.shape is not None:
        yield "array", f"{shape or 'a single number'} {dtype_words(result.dtype)}".strip()
    if result.golden_shape is not None or result.golden_dtype is not None:
        other = result.golden_shape if result.golden_shape is not None else result.shape or ()
        golden = safe_name(" x ".join(map(str, other))) or "a single number"
        dtype = dtype_words(result.golden_dtype or result.dtype)
        yield "in the golden", f"{golden} {dtype}".strip()
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
        yield "mask", safe_name(result.mask)
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
            _BAR.format(svg.number(width)),
        )
