"""The table at the head of the page: a line for each variable."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.details import BOUND_CLASS, NO_CELL, SHARE_CLASSES, SUSPECT, cells
from ciwrap.model import Verdict
from ciwrap.report.boxes import box_words, is_the_same_cause, is_the_same_place
from ciwrap.report.causes import cause_name
from ciwrap.report.digest_words import lost_words, suspect_place
from ciwrap.report.findings import check_title, checkpoint_words
from ciwrap.report.iteration_charts import CELL_DIFFER, CELL_NOT_COMPARABLE
from ciwrap.report.palette import SHARE_PALETTE
from ciwrap.report.png import data_uri, palette_png
from ciwrap.report.sizes import variable_is_exact, without_share_text
from ciwrap.report.text import (
    LEAST_TOLD_SHARE,
    grouped_number,
    percent_text,
    plural,
    rounded_down,
    safe_name,
)
from ciwrap.report.view import cell_of, worse_cell
from ciwrap.report.wording import headline, interval_text
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.details import Picture, ShareMap
    from ciwrap.model import VariableResult
    from ciwrap.report.view import Group

_MOST_MARKS = 48
# What matches and has used up so much of its bound fails soon.
NEAR_THE_BOUND = 0.8
_WIDE, _HIGH = 144, 14
_MOST_THUMB_CELLS = 4096
_THUMB_WIDTH = 44
# Pixels across of the smallest cell of a thumb that is seen.
_SMALLEST = 2
# Of a suspect cell, between what is within its bound and what is beyond it.
SUSPECT_WEIGHT = 2 * BOUND_CLASS - 1
# The class of a mark, and the word for one and for several.
_BEATS = (
    ("s0", "matches", "match"),
    ("s1", "suspect", "suspect"),
    ("s2", "differs", "differ"),
    ("s3", "not compared", "not compared"),
)


class Row(Struct, frozen=True):
    """A line of the table of all variables; texts, and pictures that may be empty. is_near: it
    matches and is close to its bound.
    """

    number: int
    verdict: Verdict
    check: str
    name: str
    first: str
    worst: str
    is_near: bool
    count: str
    pattern: str
    over_time: Markup
    thumb: Markup


def row_of(number: int, group: Group, iterations: Sequence[int] = ()) -> Row:
    """iterations: all of the run, in order, for an axis that all rows share."""
    first = group.first
    return Row(
        number=number,
        verdict=group.verdict,
        check=safe_name(check_title(group.check), 80),
        name=safe_name(group.name, 120),
        first=_first_words(group),
        worst=_worst_words(group),
        is_near=group.verdict is Verdict.MATCH and (group.share or 0.0) >= NEAR_THE_BOUND,
        count=_count_words(group),
        pattern=safe_name(_pattern(group, first), 160),
        over_time=mini_timeline(group, iterations),
        thumb=thumbnail(group.worst) or thumbnail(first),
    )


def _first_words(group: Group) -> str:
    """The first checkpoint that does not match."""
    is_told = group.verdict is not Verdict.MATCH and group.is_history
    return checkpoint_words(group.first) if is_told else ""


def _worst_words(group: Group) -> str:
    """`937,000 x`, `> 87.5 %`, and of what matches the share that is used up."""
    if group.verdict is Verdict.NOT_COMPARABLE:
        return ""
    if group.verdict is Verdict.MATCH:
        used = group.worst.used_interval
        if used is None or variable_is_exact(group.worst):
            return "equal" if variable_is_exact(group.worst) else ""
        return interval_text(*used).removesuffix(" of the bound") if used[1] else "no drift"
    if (worst := group.worst.max_bound_share) is not None and not variable_is_exact(group.worst):
        if math.isfinite(worst):
            words = f"{grouped_number(worst)}\u00a0\u00d7"
            return f"just over {words}" if 1 < worst < LEAST_TOLD_SHARE else words
        return without_share_text(group.worst).removesuffix(" on one side")
    known = [one for one in group.differing if not variable_is_exact(one)]
    if any(m.share_from is None for one in known for m in one.moved_elements):
        return "no number"
    moved = [m.share_from for one in known for m in one.moved_elements if m.share_from]
    if moved and max(moved) > 1:
        return f"> {grouped_number(rounded_down(max(moved)))}\u00a0\u00d7"
    shares = [one.guaranteed_share for one in group.differing if one.guaranteed_share]
    return f"> {percent_text(rounded_down(max(shares)))}" if shares else ""


def _count_words(group: Group) -> str:
    """Differing elements of all checkpoints, or the chunks that are suspect."""
    if not group.differing:
        return ""
    counts = [one.differing_count for one in group.differing]
    total = sum(one.compared_elements for one in group.results)
    if None not in counts:
        return f"{sum(filter(None, counts)):,} of {total:,}"
    suspect = sum(one.suspect_chunks or 0 for one in group.results)
    chunks = sum(one.chunk_count or 0 for one in group.results)
    return f"{suspect:,} of {plural(chunks, 'chunk')}"


def _pattern(group: Group, first: VariableResult) -> str:
    if group.verdict is Verdict.MATCH:
        return ""
    names = [name for one in first.explanations if (name := cause_name(one))]
    if group.verdict is Verdict.NOT_COMPARABLE:
        return "; ".join([*names[:1], headline(first)])
    if not names and first.differing_count == 1 and (first.element_count or 0) > 1:
        names = ["one element"]
    new = first.new_values
    if new is not None and first.differing_count is None and lost_words(new):
        names = [f"{lost_words(new)} among the new numbers"]
    place = suspect_place(first) or box_words(first)
    words = [*names[:1], *([place] if place else [])]
    is_of_all = is_the_same_place(first, group.results) and is_the_same_cause(first, group.results)
    return f"{'' if is_of_all or not words else 'at first '}{'; '.join(words)}"


def mini_timeline(group: Group, iterations: Sequence[int] = ()) -> Markup:
    """A mark for each iteration, the worst rank counting; nothing without several of them.

    iterations: those of the axis, among which the variable's own are; () for these alone.
    """
    by_iteration: dict[int, int] = {}
    for one in group.results:
        if one.iteration is not None:
            cell = cell_of(one)
            known = by_iteration.get(one.iteration)
            by_iteration[one.iteration] = cell if known is None else worse_cell(known, cell)
    if len(by_iteration) < 2:
        return Markup("")
    axis = iterations or sorted(by_iteration)
    ordered = [by_iteration.get(iteration) for iteration in axis]
    marks = min(len(ordered), _MOST_MARKS)
    wide = min(12, _WIDE // marks)
    paths: dict[int, list[str]] = {}
    for mark in range(marks):
        some = ordered[mark * len(ordered) // marks : (mark + 1) * len(ordered) // marks]
        beats = [_beat(cell) for cell in some if cell is not None]
        if not beats:
            continue
        worst = max(beats)
        # A height of its own as well, so that it is read without colours.
        high = (5, 10, _HIGH, _HIGH)[worst]
        path = f"M{mark * wide} {_HIGH - high}h{wide - 1}v{high}h{1 - wide}z"
        paths.setdefault(worst, []).append(path)
    parts = [
        Markup('<path class="{}" d="{}"/>').format(_BEATS[beat][0], "".join(path))
        for beat, path in sorted(paths.items())
    ]
    counts = Counter(map(_beat, by_iteration.values()))
    said = ", ".join(
        f"{counts[beat]} {_BEATS[beat][1 if counts[beat] == 1 else 2]}" for beat in sorted(paths)
    )
    return Markup(
        '<svg class="beat" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">'
        "<title>{2} iterations: {3}</title>{4}</svg>"
    ).format(marks * wide, _HIGH, len(by_iteration), said, Markup("").join(parts))


def _beat(cell: int) -> int:
    if cell == CELL_NOT_COMPARABLE:
        return 3
    if cell == CELL_DIFFER or BOUND_CLASS <= cell < SHARE_CLASSES:
        return 2
    return 1 if cell == SUSPECT else 0


def _shrunk(values: bytes, rows: int, columns: int, high: int) -> tuple[bytes, int, int]:
    """A map of no more cells than a thumb has room for, each the worst of its own: a browser that
    makes a picture smaller leaves out or blends what stands alone.
    """
    many, most = min(rows, high // _SMALLEST), min(columns, _THUMB_WIDTH // _SMALLEST)
    if (many, most) == (rows, columns):
        return values, rows, columns
    ranks = values.translate(_RANKS)
    parts = _parts(columns, most)
    found = bytearray()
    for top, bottom in _parts(rows, many):
        lines = [ranks[row * columns : (row + 1) * columns] for row in range(top, bottom)]
        found += bytes(max(max(line[left:right]) for line in lines) for left, right in parts)
    return bytes(found.translate(_BY_RANK)), many, most


def _parts(count: int, parts: int) -> list[tuple[int, int]]:
    """Where each of the parts begins and ends into which so many are cut, as evenly as can be."""
    starts = [-(-part * count // parts) for part in range(parts + 1)]
    return list(itertools.pairwise(starts))


def _weight(cell: int) -> int:
    """What counts for more in a cell of several: what has no number, then what is furthest off."""
    return -1 if cell == NO_CELL else SUSPECT_WEIGHT if cell == SUSPECT else 2 * cell


# All cells by weight, and the place of each in this order.
_ORDER = sorted(range(256), key=_weight)
_BY_RANK, _RANKS = bytes(_ORDER), bytes(map(_ORDER.index, range(256)))


def has_thumbnail(group: Group) -> bool:
    """Whether its row shows where it differs."""
    details = [one.details for one in (group.worst, group.first) if one.details is not None]
    is_bad = group.verdict is not Verdict.MATCH
    return is_bad and any(one.share_maps or one.picture is not None for one in details)


def thumbnail(result: VariableResult) -> Markup:
    """Where it differs, as large as a thumb; nothing where there is no map."""
    if result.details is None:
        return Markup("")
    maps: Sequence[Picture | ShareMap] = result.details.share_maps
    if result.details.picture is not None and result.details.picture.row_axis is not None:
        maps = [result.details.picture]
    for one in maps:
        values = cells(one.classes, one.rows, one.columns)
        if len(values) > 4 * _MOST_THUMB_CELLS:
            continue
        high = 14 if one.row_axis is None else 28
        values, rows, columns = _shrunk(values, one.rows, one.columns, high)
        uri = data_uri(palette_png(values, rows, columns, SHARE_PALETTE))
        return Markup(
            '<svg class="thumb" viewBox="0 0 44 {0}" width="44" height="{0}" aria-hidden="true">'
            '<image href="{1}" width="44" height="{0}" preserveAspectRatio="none" class="px"/>'
            '<rect x=".5" y=".5" width="43" height="{2}" class="fr"/></svg>'
        ).format(high, uri, high - 1)
    return Markup("")
