"""How a variable went from iteration to iteration: growth against the bound, and timeline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.details import BOUND_CLASS, SHARE_CLASSES, SUSPECT
from ciwrap.report.palette import css_colour, share_colour
from ciwrap.report.svg import (
    WIDTH,
    Frame,
    axes,
    box,
    chart,
    curve,
    decade_lines,
    dot,
    element,
    join,
    line,
    number,
    path,
    rect,
    some_of,
    text,
    turned_text,
)
from ciwrap.report.text import short_number
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup


class Point(Struct, frozen=True):
    """One iteration in a growth curve. share: None if not known; then `is_beyond` says on which
    side of the bound it lies.
    """

    iteration: int
    share: float | None
    is_beyond: bool


def growth_curve(points: Sequence[Point], label: str, ticks: Sequence[int]) -> Markup:
    """The largest |difference| / bound against the iteration, the bound drawn in.

    ticks: the iterations that are named.
    """
    frame = Frame(left=60)
    known = [p.share for p in points if p.share and 0 < p.share < math.inf]
    low = math.floor(min([math.log10(share) for share in known] + [-1.0]))
    high = math.ceil(max([math.log10(share) for share in known] + [0.5]))
    first, last = points[0].iteration, points[-1].iteration

    def x_of(iteration: int) -> float:
        return frame.x_among(iteration, first, last)

    has_infinite = any(p.share is not None and math.isinf(p.share) for p in points)
    has_unknown = any(p.share is None for p in points)
    # The lowest tenth is for zeros; above the numbers there is room for what is none.
    room = 0.76 if has_infinite or has_unknown else 0.86

    def y_of(share: float | None) -> float:
        if share is None or math.isinf(share):
            return frame.y(0.98)
        if share <= 0:
            return frame.y(0.0)
        return frame.y(0.1 + room * (math.log10(share) - low) / (high - low))

    has_zero = any(p.share == 0 for p in points)
    parts = decade_lines(frame, low, high, y_of, has_zero=has_zero)
    if has_infinite or has_unknown:
        what = "/".join("\u221e" * has_infinite + "?" * has_unknown)
        parts.append(text(frame.left - 6, frame.y(0.98) + 4, what, "end"))
    y = y_of(1.0)
    parts.append(line(frame.left, y, frame.right, y, "bd"))
    parts.append(text(frame.right - 2, y - 4, "bound", "end", "bl"))
    drawn = [p for p in points if p.share is not None and math.isfinite(p.share)]
    if len(drawn) > 1:
        parts.append(curve(((x_of(p.iteration), y_of(p.share)) for p in drawn), "cv"))
    parts += [_mark(x_of(p.iteration), y_of(p.share), p) for p in points]
    parts += [
        text(x_of(iteration), frame.bottom + 15, iteration)
        for iteration in ticks
        if first <= iteration <= last
    ]
    parts.append(axes(frame, "iteration", "|difference| / bound"))
    return chart(label, join(parts))


def _mark(x: float, y: float, point: Point) -> Markup:
    said = "not known"
    if point.share is not None:
        said = "not a number on one side, or far beyond the bound"
        if math.isfinite(point.share):
            said = f"{short_number(point.share)} x the bound"
    words = f"iteration {point.iteration}: {said}"
    if point.is_beyond:
        # A shape of its own, not a colour alone.
        shape = f"M{number(x)} {number(y - 5)}l4.6 8h-9.2z"
        return path((shape,), "mo" if point.share is not None else "mu", words)
    return dot(x, y, 2.6, words)


# Marks of cells that do not match, and of cells that were not compared.
CROSSES, DASHES = "xx", "xx na"
# Of a cell of the timeline: a class of the share, or one of these.
CELL_MATCH, CELL_DIFFER, CELL_NOT_COMPARABLE, CELL_NONE = 100, 101, 102, 103


def timeline(
    iterations: Sequence[str],
    ranks: Sequence[str],
    grid: Sequence[Sequence[int]],
    label: str,
    first: tuple[int, int] | None,
) -> Markup:
    """Iteration x rank, coloured by the share of the bound; what does not match carries a mark.

    iterations: what stands below each column; '' for those that are not named. first: (row, column)
    of the first one that does not match, ringed.
    """
    columns, rows = len(iterations), len(ranks)
    left, right = 52.0, 12.0
    cell_width = min(40.0, (WIDTH - left - right) / columns)
    cell_height = min(26.0, max(5.0, 144.0 / rows))
    height = 22 + rows * cell_height + 40
    gap = 1.0 if cell_width > 4 else 0.0
    paths: dict[int, list[str]] = {}
    crosses: list[str] = []
    dashes: list[str] = []
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            if cell == CELL_NONE:
                continue
            x, y = left + j * cell_width, 8 + i * cell_height
            w, h = cell_width - gap, cell_height - gap
            paths.setdefault(cell, []).append(box(x, y, w, h))
            if _is_bad(cell) and cell_width >= 6 and cell_height >= 8:
                r = min(w, h) * 0.22
                cx, cy = x + w / 2, y + h / 2
                if cell == CELL_NOT_COMPARABLE:
                    dashes.append(f"M{number(cx - r)} {number(cy)}h{number(2 * r)}")
                    continue
                cross = f"M{number(cx - r)} {number(cy - r)}l{number(2 * r)} {number(2 * r)}"
                cross += f"m0 -{number(2 * r)}l-{number(2 * r)} {number(2 * r)}"
                crosses.append(cross)
    parts = [_cells(cell, "".join(some)) for cell, some in sorted(paths.items())]
    parts += [path(some, name) for some, name in ((crosses, CROSSES), (dashes, DASHES)) if some]
    if first is not None:
        x, y = left + first[1] * cell_width - 2, 8 + first[0] * cell_height - 2
        w, h = max(cell_width + 4 - gap, 5), cell_height + 4 - gap
        parts.append(rect(x, y, w, h, "ring", "the first that does not match", rx=3))
    label_width = max(7 * max(map(len, iterations)) + 10, 24)
    named = [j for j, words in enumerate(iterations) if words]
    for j in some_of(named, max(2, int(columns * cell_width / label_width))):
        x = left + (j + 0.5) * cell_width
        parts.append(text(x, 8 + rows * cell_height + 14, iterations[j]))
    parts += [
        text(left - 6, 8 + (i + 0.5) * cell_height + 4, ranks[i], "end")
        for i in some_of(range(rows), 8)
    ]
    below = 8 + rows * cell_height
    parts.append(text(left + columns * cell_width / 2, below + 32, "iteration", class_="lb"))
    parts.append(turned_text(12, 8 + rows * cell_height / 2, "rank" if any(ranks) else ""))
    return chart(label, join(parts), height=height)


def _is_bad(cell: int) -> bool:
    return cell in (CELL_DIFFER, CELL_NOT_COMPARABLE, SUSPECT) or (
        BOUND_CLASS <= cell < SHARE_CLASSES
    )


def _cells(cell: int, drawn: str) -> Markup:
    if cell >= CELL_MATCH:
        class_ = {CELL_MATCH: "cm", CELL_DIFFER: "cd", CELL_NOT_COMPARABLE: "cn"}[cell]
        return path((drawn,), class_)
    if cell == 0:
        return path((drawn,), "c0")
    return element("path", d=drawn, fill=css_colour(share_colour(cell)))
