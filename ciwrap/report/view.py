"""A result as the page shows it: variables gathered over iterations and ranks, the worst first,
and no more of them than a page can hold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.details import BOUND_CLASS, SHARE_CLASSES, SUSPECT
from ciwrap.model import Verdict, severity, worst_of
from ciwrap.report.findings import leading, place
from ciwrap.report.iteration_charts import (
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
from ciwrap.report.lead import worst_words
from ciwrap.report.sizes import variable_is_exact
from ciwrap.report.svg import iteration_ticks
from ciwrap.report.where import by_name, where_listed
from ciwrap.report.wording import headline, used_share
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from ciwrap.model import CheckResult, RunResult, VariableResult

# Cards that a page has at most.
MOST_CARDS = 60
_MOST_TIMELINE_COLUMNS = 100
_MOST_TIMELINE_ROWS = 16
_MOST_POINTS = 150


class Group(Struct, frozen=True):
    """One variable of one check, over all its iterations and ranks, in that order.

    verdict: the worst. first: the first one of that verdict or worse; of a match, the one that
    moved most. worst: the worst one, see `ciwrap.model.worst_of`. share: the largest share of the
    bound; None if it is not known or the bound is 0.
    """

    check: CheckResult
    name: str
    results: tuple[VariableResult, ...]
    verdict: Verdict
    first: VariableResult
    worst: VariableResult
    share: float | None

    @property
    def differing(self) -> tuple[VariableResult, ...]:
        return tuple(result for result in self.results if result.verdict.is_alarm)

    @property
    def is_history(self) -> bool:
        return len(self.results) > 1

    @property
    def sort_key(self) -> tuple[int, tuple[float, ...], tuple[int, int, str], str]:
        _, *rest = severity(self.worst)
        worse = tuple(-one for one in rest)
        return -self.verdict.severity, worse, self.first.id.sort_key, self.check.name


def group_of(check: CheckResult, name: str, results: Sequence[VariableResult]) -> Group:
    """The group of a variable's results, in any order."""
    if len(results) == 1:
        (one,) = results
        return Group(check, name, (one,), one.verdict, one, one, used_share(one))
    ordered = tuple(sorted(results, key=lambda one: one.id.sort_key))
    shares = [share for one in ordered if (share := used_share(one)) is not None]
    bad = [one for one in ordered if one.verdict is not Verdict.MATCH]
    worst = worst_of(ordered)
    return Group(
        check=check,
        name=name,
        results=ordered,
        verdict=Verdict.worst(one.verdict for one in ordered),
        first=bad[0] if bad else worst,
        worst=worst,
        share=max(shares, default=None),
    )


def groups_of(run: RunResult) -> list[Group]:
    """All variables, the worst first; what diverged first stands before what diverged most."""
    found: list[Group] = []
    for check in run.checks:
        named = by_name(check.variables).items()
        found += [group_of(check, name, results) for name, results in named]
    found.sort(key=lambda group: group.sort_key)
    for check, divergence in reversed(leading(run)):
        (group,) = [
            one for one in found if one.check is check and one.name == divergence.variable.name
        ]
        found.remove(group)
        found.insert(0, group)
    return found


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
    """What its cells, marks and ring mean; `drawn`: the chart."""
    checkpoints = {(one.iteration, one.rank) for one in group.results}
    columns, rows = (len(set(one)) for one in zip(*checkpoints, strict=True))
    wide, high = -(-columns // _MOST_TIMELINE_COLUMNS), -(-rows // _MOST_TIMELINE_ROWS)
    cell = "a checkpoint" if wide * high == 1 else f"the worst of up to {wide * high} checkpoints"
    if group.verdict is Verdict.MATCH:
        return f"each cell {cell}, darker where more of the bound is used"
    marks = [
        words
        for class_, words in ((CROSSES, "a cross does not match"), (DASHES, "a dash: not compared"))
        if f'class="{class_}"' in drawn
    ]
    marks = marks or ["what is orange, red or purple does not match"]
    return "; ".join([f"each cell {cell}", *marks, "the ring is the first of these"])


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
    if result.verdict is Verdict.SUSPECT:
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
