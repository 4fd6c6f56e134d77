"""Charts of repeated runs: which results are equal, and how differences develop."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.report.svg import (
    WIDTH,
    Frame,
    axes,
    chart,
    element,
    join,
    line,
    number,
    power_label,
    text,
)
from ciwrap.report.text import safe_name, short_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from ciwrap.model.repeat_result import RepeatedVariable

MOST_ROWS = 60
MOST_RUNS = 60
_CELL = 20.0
_NAMES = 150.0
_NAME_CHARACTERS = 22
_WIDE_LABELS = 66.0  # room for 10 to the -14th
# Told apart by all kinds of colour vision; the number in a cell says the class without colour.
_COLOURS = ("#88929f", "#3b82bd", "#d9850b", "#5e9e6e", "#a8439b", "#c8b400", "#7a5c3e", "#c23b3b")


def class_chart(variables: Sequence[RepeatedVariable]) -> Markup:
    """A row for each variable, a column for each run; cells of one number are equal results."""
    shown = variables[:MOST_ROWS]
    runs = min(MOST_RUNS, max((len(one.classes) for one in shown), default=0))
    parts = [
        text(_NAMES + _CELL * (column + 0.5), 12, column + 1)
        for column in range(runs)
        if runs <= 20 or (column + 1) % 5 == 0
    ]
    for row, one in enumerate(shown):
        y = 20 + _CELL * row
        parts.append(text(_NAMES - 6, y + 14, _cut(one.name), "end"))
        parts += [
            _cell(_NAMES + _CELL * column, y, label, one.name, column + 1)
            for column, label in enumerate(one.classes[:runs])
        ]
    height = 24 + _CELL * len(shown)
    return chart(
        "results of each run by variable; equal numbers are equal results",
        join(parts),
        width=max(_NAMES + _CELL * runs + 6, WIDTH),
        height=height,
    )


def _cell(x: float, y: float, label: int, name: str, run: int) -> Markup:
    said = f"result {label}" if label else "no result"
    title = element("title", f"{safe_name(name)}, run {run}: {said}")
    size = _CELL - 2
    shape = element("rect", title, x=x + 1, y=y + 1, width=size, height=size, rx=3,
                    fill=_colour(label))  # fmt: skip
    mark = str(label) if label else "\u2013"
    digit = element("text", mark, x=x + _CELL / 2, y=y + 14, text_anchor="middle", class_="on-cell")
    return join((shape, digit))


def _colour(label: int) -> str:
    return _COLOURS[0] if label == 0 else _COLOURS[1 + (label - 1) % (len(_COLOURS) - 1)]


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 3]}..."


def spread_chart(one: RepeatedVariable) -> Markup | None:
    """The largest and the typical difference by iteration, with bound, spread and horizon; None
    where there is no history to draw.
    """
    rows = [row for row in one.by_iteration if row.iteration is not None]
    sizes = [
        size
        for row in rows
        for size in (row.max_abs, row.typical)
        if size is not None and _is_drawn(size)
    ]
    if len(rows) < 2 or not sizes:
        return None
    levels = _levels(one)
    low = math.floor(math.log10(min(sizes + [size for size, _ in levels])))
    high = math.ceil(math.log10(max(sizes + [size for size, _ in levels])) + 1e-9)
    frame = Frame(left=_WIDE_LABELS)
    first, last = rows[0].iteration or 0, rows[-1].iteration or 1

    def x_of(iteration: float) -> float:
        return frame.x(0.04 + 0.92 * (iteration - first) / max(last - first, 1))

    def y_of(size: float) -> float:
        return frame.y(0.06 + 0.88 * (math.log10(size) - low) / max(high - low, 1))

    parts = []
    step = max(1, math.ceil((high - low) / 5))
    for exponent in range(low, high + 1, step):
        y = y_of(10.0**exponent)
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, power_label(exponent), "end"))
    for size, name in levels:
        parts.append(line(frame.left, y_of(size), frame.right, y_of(size), "bd"))
        parts.append(text(frame.right - 2, y_of(size) - 4, name, "end", "bl"))
    if one.compare_until is not None:
        x = x_of(one.compare_until)
        parts.append(line(x, frame.top, x, frame.bottom, "bd"))
        parts.append(text(x - 4, frame.bottom - 6, f"until {one.compare_until}", "end", "bl"))
    for kind, drawn in (
        ("largest", [(r.iteration or 0, r.max_abs) for r in rows if _is_drawn(r.max_abs)]),
        ("typical", [(r.iteration or 0, r.typical) for r in rows if _is_drawn(r.typical)]),
    ):
        points = [(x_of(i), y_of(size or 1.0), i, size or 1.0) for i, size in drawn]
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y, *_ in points)
        if len(points) > 1:
            parts.append(element("path", d=path, class_="cv" if kind == "typical" else "ln"))
        mark = "mi" if kind == "typical" else "mo"
        for x, y, iteration, size in points:
            said = element("title", f"iteration {iteration}: {kind} {short_number(size)}")
            parts.append(element("circle", said, cx=x, cy=y, r=2.4, class_=mark))
    parts += [
        text(x_of(iteration), frame.bottom + 15, iteration)
        for iteration in _ticks([row.iteration or 0 for row in rows])
    ]
    parts.append(axes(frame, "iteration", "|difference|"))
    return chart(f"differences of {one.name} by iteration", join(parts))


def _levels(one: RepeatedVariable) -> list[tuple[float, str]]:
    """The bound and the spread, as far as they are known."""
    found = []
    suggested = one.suggested_bound
    if one.present_bound is not None and one.present_bound.atol:
        found.append((one.present_bound.atol, "bound"))
    elif suggested is not None and suggested.atol:
        found.append((suggested.atol, "suggested bound"))
    if _is_drawn(one.spread) and one.growth_rate is not None:
        found.append((one.spread or 1.0, "spread"))
    return found


def _is_drawn(size: float | None) -> bool:
    return size is not None and 0 < size < math.inf


def _ticks(values: Sequence[int], most: int = 7) -> list[int]:
    return list(values[:: max(1, math.ceil((len(values) - 1) / (most - 1)))])
