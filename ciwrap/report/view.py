"""A result as the page shows it: a row, a card and a timeline for each variable, the worst first.

No more of them than a page can hold; its table has a line for each variable.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from ciwrap.model import VariableResult, Verdict
from ciwrap.model.variable_result import (
    BOUND_CLASS,
    NO_CELL,
    SHARE_CLASSES,
    SUSPECT,
    Picture,
    ShareMap,
    cells,
)
from ciwrap.report.cause_words import cause_name
from ciwrap.report.charts import (
    CELL_DIFFER,
    CELL_MATCH,
    CELL_NONE,
    CELL_NOT_COMPARABLE,
    CROSSES,
    DASHES,
    Point,
    growth_curve,
    timeline,
)
from ciwrap.report.digest_words import lost_words
from ciwrap.report.drawing import SHARE_PALETTE, data_uri, iteration_ticks, palette_png
from ciwrap.report.lead import Group, check_title, checkpoint_words, place
from ciwrap.report.place_words import (
    box_words,
    is_the_same_cause,
    is_the_same_place,
    of_the_first,
    suspect_place,
)
from ciwrap.report.text import (
    LEAST_TOLD_SHARE,
    grouped_number,
    percent_text,
    plural,
    rounded_down,
    safe_name,
)
from ciwrap.report.top import worst_words
from ciwrap.report.where import where_listed
from ciwrap.report.words import (
    headline,
    interval_text,
    used_share,
    variable_is_exact,
    without_share_text,
)

# Cards that a page has at most.
MOST_CARDS = 60
_MOST_TIMELINE_COLUMNS = 100
_MOST_TIMELINE_ROWS = 16
_MOST_POINTS = 150


def bundles_of(groups: Sequence[Group], places: Iterable[int]) -> list[list[int]]:
    """Places of groups, those together that were not compared for the same reason: a card each."""
    found: dict[object, list[int]] = {}
    for at in places:
        group = groups[at]
        key: object = at
        if group.verdict is Verdict.NOT_COMPARABLE and not group.differing:
            key = headline(group.first)
        found.setdefault(key, []).append(at)
    return list(found.values())


def card_numbers(groups: Sequence[Group]) -> dict[int, int]:
    """The number of the card of each group that does not match, by the group's place."""
    bad = [at for at, group in enumerate(groups) if group.verdict is not Verdict.MATCH]
    bundles = bundles_of(groups, bad)[:MOST_CARDS]
    return {at: number for number, places in enumerate(bundles, 1) for at in places}


def where_words(group: Group) -> str:
    """When and on which ranks it does not match: `from iteration 7 on, on ranks 1 and 2`."""
    return where_listed(group.check, group.results)


def numbers_too_words(group: Group) -> str:
    """Of a variable that could not be compared everywhere: that it differs where it could be."""
    if group.verdict is not Verdict.NOT_COMPARABLE or not group.differing:
        return ""
    first = group.differing[0]
    verb = "differ" if first.verdict is Verdict.DIFFER else "may differ"
    return f"numbers {verb}, too, first at {place(first)}"


def more_words(group: Group) -> list[str]:
    """What is to be said beside the first checkpoint that does not match, where there are more."""
    words = (where_words(group), worst_words(group.results), numbers_too_words(group))
    return [part for part in words if part]


def timeline_of(group: Group) -> Markup | None:
    """Iteration x rank; None where there is only one checkpoint."""
    iterations = _ordered(one.iteration for one in group.results)
    ranks = _ordered(one.rank for one in group.results)
    if len(iterations) < 2 and len(ranks) < 2:
        return None
    columns = min(len(iterations), _MOST_TIMELINE_COLUMNS)
    rows = min(len(ranks), _MOST_TIMELINE_ROWS)
    column_of = {one: i * columns // len(iterations) for i, one in enumerate(iterations)}
    row_of = {one: i * rows // len(ranks) for i, one in enumerate(ranks)}
    grid = [[CELL_NONE] * columns for _ in range(rows)]
    for one in group.results:
        i, j = row_of[one.rank], column_of[one.iteration]
        grid[i][j] = worse_cell(grid[i][j], cell_of(one))
    first = None
    bad = [one for one in group.results if one.verdict is not Verdict.MATCH]
    if bad:
        first = (row_of[bad[0].rank], column_of[bad[0].iteration])
    label = f"{group.name}: share of the bound by iteration and rank"
    named = _named(iterations, column_of, columns)
    return timeline(named, _labels(ranks, rows), grid, label, first)


def _ordered(numbers: Iterable[int | None]) -> list[int | None]:
    """Each once; what has none comes first."""
    return sorted(set(numbers), key=lambda one: -1 if one is None else one)


def timeline_words(group: Group, drawn: str) -> str:
    """What its cells, marks and frame mean; `drawn`: the chart."""
    checkpoints = {(one.iteration, one.rank) for one in group.results}
    columns, rows = (len(set(one)) for one in zip(*checkpoints, strict=True))
    wide, high = -(-columns // _MOST_TIMELINE_COLUMNS), -(-rows // _MOST_TIMELINE_ROWS)
    cell = "a checkpoint" if wide * high == 1 else f"the worst of up to {wide * high} checkpoints"
    if group.verdict is Verdict.MATCH:
        return f"one cell for {cell}, darker where more of the bound is used"
    marks = [
        words
        for class_, words in ((CROSSES, "cross: does not match"), (DASHES, "dash: not compared"))
        if f'class="{class_}"' in drawn
    ]
    marks = marks or ["orange, red or purple: does not match"]
    return "; ".join([f"one cell for {cell}", *marks, "frame: the first of these"])


def _named(
    iterations: Sequence[int | None], column_of: Mapping[int | None, int], columns: int
) -> list[str]:
    """What stands below each column: the iterations that are named, where they are."""
    words = [""] * columns
    for one in iteration_ticks([value for value in iterations if value is not None]):
        words[column_of[one]] = str(one)
    return words


def _labels(values: Sequence[int | None], count: int) -> list[str]:
    """The first value of each of `count` bins."""
    found = [""] * count
    for i, value in reversed(list(enumerate(values))):
        found[i * count // len(values)] = "" if value is None else str(value)
    return found


def cell_of(result: VariableResult) -> int:
    if result.verdict is Verdict.NOT_COMPARABLE:
        return CELL_NOT_COMPARABLE
    share = result.max_bound_share
    if result.verdict is Verdict.UNDECIDED:
        return SUSPECT
    if result.verdict is Verdict.DIFFER and share is None:
        # Told by residues: at least so much.
        share = max((one.share_from or 0.0 for one in result.moved_elements), default=0.0) or None
    if result.verdict is Verdict.DIFFER and (share is None or math.isinf(share)):
        return CELL_DIFFER
    if share is None:
        share = used_share(result)
    if share is None:
        return CELL_MATCH
    return share_class(share, is_beyond=result.verdict is Verdict.DIFFER)


_WITHIN, _BEYOND = range(BOUND_CLASS), range(BOUND_CLASS, SHARE_CLASSES)
_CELL_ORDER = (CELL_NONE, CELL_MATCH, *_WITHIN, SUSPECT, *_BEYOND, CELL_DIFFER, CELL_NOT_COMPARABLE)


def worse_cell(one: int, other: int) -> int:
    return max(one, other, key=_CELL_ORDER.index)


def share_class(share: float, *, is_beyond: bool) -> int:
    """The class of a share, as in `VariableResult.bound_share_histogram`."""
    if share <= 0:
        return 0
    if math.isnan(share) or math.isinf(share):
        return SHARE_CLASSES - 1
    found = min(max(math.floor(math.log2(share)) + 18, 1), SHARE_CLASSES - 1)
    return max(found, 18) if is_beyond else min(found, 17)


def growth_of(group: Group) -> Markup | None:
    """The largest share of the bound by iteration; None where that is one point or unknown."""
    by_iteration: dict[int, list[VariableResult]] = {}
    for one in group.results:
        if one.iteration is not None and one.verdict is not Verdict.NOT_COMPARABLE:
            by_iteration.setdefault(one.iteration, []).append(one)
    is_lost = group.verdict is Verdict.NOT_COMPARABLE and not group.differing
    if is_lost or len(by_iteration) < 2 or all(map(variable_is_exact, group.results)):
        return None
    points = [_point(iteration, by_iteration[iteration]) for iteration in sorted(by_iteration)]
    if all(point.share is None for point in points):
        return None
    if len(points) > _MOST_POINTS:
        points = _thinned(points)
    label = f"{group.name}: largest difference as a share of the bound, by iteration"
    return growth_curve(points, label, iteration_ticks(list(by_iteration)))


def _point(iteration: int, results: Iterable[VariableResult]) -> Point:
    shares: list[float] = []
    is_beyond = is_unknown = False
    for one in results:
        share = one.max_bound_share
        if one.verdict.is_alarm:
            is_beyond = True
            is_unknown |= share is None
        elif share is None:
            share = used_share(one)
        if share is not None and not math.isnan(share):
            shares.append(share)
    beyond = [share for share in shares if share > 1]
    if is_unknown and not beyond:
        return Point(iteration, None, is_beyond=True)
    return Point(iteration, max(shares, default=None), is_beyond=is_beyond)


def _thinned(points: Sequence[Point]) -> list[Point]:
    """The worst point of each bin, so that no divergence gets lost."""
    bins: dict[int, Point] = {}
    for i, point in enumerate(points):
        at = i * _MOST_POINTS // len(points)
        kept = bins.get(at)
        if kept is None or _height(point) > _height(kept):
            bins[at] = point
    return list(bins.values())


def _height(point: Point) -> tuple[bool, float]:
    return point.is_beyond, math.inf if point.share is None else point.share


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
    ("s1", "undecided", "undecided"),
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
    first, is_bad = group.first, group.verdict is not Verdict.MATCH
    return Row(
        number=number,
        verdict=group.verdict,
        check=safe_name(check_title(group.check), 80),
        name=safe_name(group.name, 120),
        first=checkpoint_words(first) if is_bad and group.is_history else "",
        worst=_worst_words(group),
        is_near=not is_bad and (group.share or 0.0) >= NEAR_THE_BOUND,
        count=_count_words(group),
        pattern=safe_name(_pattern(group, first), 160),
        over_time=mini_timeline(group, iterations),
        thumb=thumbnail(group.worst) or thumbnail(first),
    )


def _worst_words(group: Group) -> str:
    """`937,000 x`, `> 87.5 %`, and of what matches the share that is used up."""
    if group.verdict is Verdict.NOT_COMPARABLE:
        return ""
    if group.verdict is Verdict.MATCH:
        used = group.worst.used_interval
        if used is None or variable_is_exact(group.worst):
            return "equal" if variable_is_exact(group.worst) else ""
        return interval_text(*used).removesuffix(" of the bound") if used[1] else "no change seen"
    if (worst := group.worst.max_bound_share) is not None and not variable_is_exact(group.worst):
        if math.isfinite(worst):
            words = f"{grouped_number(worst)}\u00a0\u00d7"
            return f"just over {words}" if 1 < worst < LEAST_TOLD_SHARE else words
        return without_share_text(group.worst).removesuffix(" on one side")
    known = [one for one in group.differing if not variable_is_exact(one)]
    if any(m.share_from is None for one in known for m in one.moved_elements):
        return "no number"
    moved = [m.share_from for one in known for m in one.moved_elements if m.share_from]
    moved += [one.least_share for one in known if one.least_share]
    if moved and max(moved) > 1:
        return f"> {grouped_number(rounded_down(max(moved)))}\u00a0\u00d7"
    shares = [one.guaranteed_share for one in group.differing if one.guaranteed_share]
    return f"> {percent_text(rounded_down(max(shares)))}" if shares else ""


def _count_words(group: Group) -> str:
    """Differing elements, or suspect chunks, of those of the checkpoints that do not match, as the
    terminal counts them.
    """
    if not group.differing:
        return ""
    counts = [one.differing_count for one in group.differing]
    total = sum(one.compared_elements for one in group.differing)
    if None not in counts:
        return f"{sum(filter(None, counts)):,} of {total:,}"
    suspect = sum(one.suspect_chunks or 0 for one in group.differing)
    chunks = sum(one.chunk_count or 0 for one in group.differing)
    return f"{suspect:,} of {plural(chunks, 'block')}"


def _pattern(group: Group, first: VariableResult) -> str:
    if group.verdict is Verdict.MATCH:
        return ""
    names = [name for one in first.explanations if (name := cause_name(one))]
    if group.verdict is Verdict.NOT_COMPARABLE:
        return "; ".join([*names[:1], headline(first)])
    if not names and first.differing_count == 1 and (first.element_count or 0) > 1:
        names = ["one value"]
    new = first.new_values
    if new is not None and first.differing_count is None and lost_words(new):
        names = [f"{lost_words(new)} among the new numbers"]
    place = suspect_place(first) or box_words(first)
    words = [*names[:1], *([place] if place else [])]
    is_of_all = is_the_same_place(first, group.results) and is_the_same_cause(first, group.results)
    said = "; ".join(words)
    return said if is_of_all or not words else of_the_first(first, group.results, said)


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
