"""Charts as static SVG, drawn here: they need no script and no library on either side, follow the
page's colours in dark and light, and are a few kilobytes each.

Every text that goes in is escaped; numbers are written with three digits after the point at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ciwrap.details import BOUND_CLASS, SHARE_CLASSES, SUSPECT
from ciwrap.report.palette import css_colour, share_colour
from ciwrap.report.png import data_uri
from ciwrap.report.text import safe_name, short_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH, HEIGHT = 460, 210
NARROW, HISTOGRAM_HEIGHT = 348, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 16, 44


@dataclass(frozen=True, slots=True)
class Frame:
    """The plotting area of a chart within its view box."""

    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM

    def x(self, part: float) -> float:
        return self.left + (self.right - self.left) * part

    def y(self, part: float) -> float:
        """0: the bottom, 1: the top."""
        return self.bottom - (self.bottom - self.top) * part


_HISTOGRAM = Frame(right=NARROW - _RIGHT, bottom=HISTOGRAM_HEIGHT - _BOTTOM)


def number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def element(name: str, body: object = "", /, **attributes: object) -> Markup:
    """One element; `_` in names of attributes stands for `-`, and `class_` for `class`."""
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
    ]
    return Markup(f"<{name}{''.join(parts)}>{escape(body)}</{name}>")


def _attribute(value: object) -> str:
    return number(value) if isinstance(value, (int, float)) else str(value)


def text(x: float, y: float, words: object, anchor: str = "middle", class_: str = "tk") -> Markup:
    return element("text", safe_name(words), x=x, y=y, text_anchor=anchor, class_=class_)


def join(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def chart(label: str, body: Markup, *, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    return element(
        "svg",
        element("title", safe_name(label, 500)) + body,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        class_="chart",
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("path", d=f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", class_=class_)


def axes(frame: Frame, x_label: str, y_label: str) -> Markup:
    middle = (frame.top + frame.bottom) / 2
    return join(
        (
            line(frame.left, frame.bottom, frame.right, frame.bottom, "ax"),
            text((frame.left + frame.right) / 2, frame.bottom + 36, x_label, class_="lb"),
            element(
                "text",
                safe_name(y_label),
                transform=f"translate(12 {number(middle)}) rotate(-90)",
                text_anchor="middle",
                class_="lb",
            ),
        )
    )


def power_label(exponent: int) -> Markup:
    """10 to a power, the way people write it."""
    if 0 <= exponent <= 3:
        return Markup(str(10**exponent))
    if -2 <= exponent < 0:
        return Markup(number(10.0**exponent))
    return Markup(f"10{str(exponent).translate(_SUPERSCRIPTS)}")


_SUPERSCRIPTS = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


def count_axis(frame: Frame, largest: int) -> tuple[Markup, float]:
    """Ticks of a logarithmic axis of counts from 1 to `largest`, and its decades."""
    decades = max(1.0, math.log10(largest) + 0.15) if largest > 0 else 1.0
    step = max(1, math.ceil(decades / 5))
    parts = []
    for exponent in range(0, int(decades) + 1, step):
        y = frame.y((exponent + 0.3) / (decades + 0.3))
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, power_label(exponent), "end"))
    return join(parts), decades


def count_height(count: int, decades: float) -> float:
    """How high a bar is, of 1; one element stays visible among a million."""
    return 0.0 if count <= 0 else (math.log10(count) + 0.3) / (decades + 0.3)


def share_histogram(counts: Sequence[int], label: str) -> Markup:
    """Elements by |difference| / bound, both axes logarithmic, the bound marked."""
    frame = _HISTOGRAM
    grid, decades = count_axis(frame, max(counts))
    used = [i for i, count in enumerate(counts) if count and i > 0]
    first = min([*used, BOUND_CLASS - 4])
    last = max([*used, BOUND_CLASS + 3])
    # One slot for equal elements and a gap, then the classes.
    slots = last - first + 1 + 1.6
    slot = (frame.right - frame.left) / slots

    def left_of(share_class: float) -> float:
        return frame.left + (1.6 + share_class - first) * slot

    def bar(x: float, count: int, class_: str, words: str) -> Markup:
        top = frame.y(count_height(count, decades))
        return element(
            "rect",
            element("title", f"{words}: {count:,}"),
            x=x + 0.5,
            y=top,
            width=max(slot - 1, 0.5),
            height=frame.bottom - top,
            class_=class_,
        )

    bars = []
    if counts[0]:
        bars.append(bar(frame.left, counts[0], "b0", "equal"))
    bars += [
        bar(left_of(i), counts[i], "bo" if i >= BOUND_CLASS else "bi", class_words(i))
        for i in range(max(first, 1), last + 1)
        if counts[i]
    ]
    ticks = [text(frame.left + slot / 2, frame.bottom + 15, "0")]
    at_bound = left_of(BOUND_CLASS)
    low, high = (first - BOUND_CLASS) * math.log10(2), (last + 1 - BOUND_CLASS) * math.log10(2)
    step = max(1, math.ceil((high - low) / 5))
    for exponent in range(-step * 10, 40, step):
        if low + 0.1 <= exponent <= high:
            x = left_of(BOUND_CLASS + exponent / math.log10(2))
            ticks.append(text(x, frame.bottom + 15, power_label(exponent)))
            ticks.append(line(x, frame.bottom, x, frame.bottom + 4, "ax"))
    bound = line(at_bound, frame.top - 4, at_bound, frame.bottom, "bd") + text(
        at_bound + 4, frame.top + 4, "bound", "start", "bl"
    )
    body = join((grid, *bars, bound, axes(frame, "|difference| / bound", "elements"), *ticks))
    return chart(label, body, width=NARROW, height=HISTOGRAM_HEIGHT)


def class_words(share_class: int) -> str:
    if share_class == 0:
        return "equal"
    if share_class == 1:
        return "less than 0.00002 of the bound"
    if share_class == SUSPECT:
        return "suspect: how much is not known"
    if share_class == SHARE_CLASSES - 1:
        return "33000 x the bound and more, or not finite"
    low = 2.0 ** (share_class - BOUND_CLASS)
    return f"{short_number(low)} to {short_number(2 * low)} x the bound"


def drift_histogram(counts: Sequence[int], label: str) -> Markup:
    """Elements by how many fine steps they drifted, the last step ending at the bound."""
    frame = _HISTOGRAM
    grid, decades = count_axis(frame, max(counts))
    slot = (frame.right - frame.left - 10) / len(counts)
    parts = []
    for step, count in enumerate(counts):
        top = frame.y(count_height(count, decades))
        parts.append(
            element(
                "rect",
                element("title", f"{step} of {len(counts)} steps: {count:,}"),
                x=frame.left + step * slot + 0.5,
                y=top,
                width=max(slot - 1, 0.5),
                height=frame.bottom - top,
                class_="bi",
            )
        )
    end = frame.left + slot * len(counts)
    for part in (0, 25, 50, 75, 100):
        x = frame.left + slot * len(counts) * part / 100
        parts.append(text(x, frame.bottom + 15, f"{part} %"))
    parts.append(line(end, frame.top - 4, end, frame.bottom, "bd"))
    parts.append(text(end - 4, frame.top + 4, "bound", "end", "bl"))
    body = join((grid, *parts, axes(frame, "share of the bound used", "elements")))
    return chart(label, body, width=NARROW, height=HISTOGRAM_HEIGHT)


@dataclass(frozen=True, slots=True)
class Point:
    """One iteration in a growth curve. share: None if not known; then `is_beyond` says on which
    side of the bound it lies.
    """

    iteration: int
    share: float | None
    is_beyond: bool


def growth_curve(points: Sequence[Point], label: str) -> Markup:
    """The largest |difference| / bound against the iteration, the bound drawn in."""
    frame = Frame()
    known = [p.share for p in points if p.share and 0 < p.share < math.inf]
    low = math.floor(min([math.log10(share) for share in known] + [-1.0]))
    high = math.ceil(max([math.log10(share) for share in known] + [0.5]))
    first, last = points[0].iteration, points[-1].iteration

    def x_of(iteration: int) -> float:
        return (
            frame.x(0.04 + 0.92 * (iteration - first) / (last - first))
            if last > first
            else (frame.x(0.5))
        )

    def y_of(share: float | None) -> float:
        if share is None or math.isinf(share):
            return frame.y(0.98)
        if share <= 0:
            return frame.y(0.0)
        # The lowest tenth is for zeros.
        return frame.y(0.1 + 0.86 * (math.log10(share) - low) / (high - low))

    parts = []
    step = max(1, math.ceil((high - low) / 5))
    for exponent in range(high - (high - low) // step * step, high + 1, step):
        y = y_of(10.0**exponent)
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, power_label(exponent), "end"))
    if any(p.share == 0 for p in points):
        parts.append(text(frame.left - 6, frame.bottom + 3, "0", "end"))
    y = y_of(1.0)
    parts.append(line(frame.left, y, frame.right, y, "bd"))
    parts.append(text(frame.right - 2, y - 4, "bound", "end", "bl"))
    drawn = [p for p in points if p.share is not None]
    if len(drawn) > 1:
        path = "M" + "L".join(f"{number(x_of(p.iteration))} {number(y_of(p.share))}" for p in drawn)
        parts.append(element("path", d=path, class_="cv"))
    parts += [_mark(x_of(p.iteration), y_of(p.share), p) for p in points]
    parts += [
        text(x_of(iteration), frame.bottom + 15, iteration)
        for iteration in _some([p.iteration for p in points], 7)
    ]
    parts.append(axes(frame, "iteration", "largest |difference| / bound"))
    return chart(label, join(parts))


def _mark(x: float, y: float, point: Point) -> Markup:
    said = "not known" if point.share is None else f"{short_number(point.share)} x the bound"
    title = element("title", f"iteration {point.iteration}: {said}")
    if point.is_beyond:
        # A shape of its own, not a colour alone.
        shape = f"M{number(x)} {number(y - 5)}l4.6 8h-9.2z"
        return element("path", title, d=shape, class_="mo" if point.share is not None else "mu")
    return element("circle", title, cx=x, cy=y, r=2.6, class_="mi")


def _some(values: Sequence[int], most: int) -> list[int]:
    """Values at even steps, the first among them, so that one can count on."""
    distinct = sorted(set(values))
    return distinct[:: max(1, math.ceil((len(distinct) - 1) / max(most - 1, 1)))]


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

    first: (row, column) of the first divergence, ringed.
    """
    columns, rows = len(iterations), len(ranks)
    left, right = 52.0, 12.0
    cell_width = min(40.0, (WIDTH - left - right) / columns)
    cell_height = min(26.0, max(5.0, 144.0 / rows))
    height = 22 + rows * cell_height + 40
    gap = 1.0 if cell_width > 4 else 0.0
    paths: dict[int, list[str]] = {}
    marks: list[str] = []
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            if cell == CELL_NONE:
                continue
            x, y = left + j * cell_width, 8 + i * cell_height
            w, h = cell_width - gap, cell_height - gap
            paths.setdefault(cell, []).append(
                f"M{number(x)} {number(y)}h{number(w)}v{number(h)}h-{number(w)}z"
            )
            if _is_bad(cell) and cell_width >= 6 and cell_height >= 8:
                r = min(w, h) * 0.22
                cx, cy = x + w / 2, y + h / 2
                cross = f"M{number(cx - r)} {number(cy - r)}l{number(2 * r)} {number(2 * r)}"
                cross += f"m0 -{number(2 * r)}l-{number(2 * r)} {number(2 * r)}"
                marks.append(
                    cross
                    if cell != CELL_NOT_COMPARABLE
                    else f"M{number(cx - r)} {number(cy)}h{number(2 * r)}"
                )
    parts = [_cells(cell, "".join(path)) for cell, path in sorted(paths.items())]
    if marks:
        parts.append(element("path", d="".join(marks), class_="xx"))
    if first is not None:
        i, j = first
        parts.append(
            element(
                "rect",
                element("title", "first divergence"),
                x=left + j * cell_width - 2,
                y=8 + i * cell_height - 2,
                width=max(cell_width + 4 - gap, 5),
                height=cell_height + 4 - gap,
                rx=3,
                class_="ring",
            )
        )
    for j in _some(range(columns), max(2, min(9, int(columns * cell_width / 44)))):
        x = left + (j + 0.5) * cell_width
        parts.append(text(x, 8 + rows * cell_height + 14, iterations[j]))
    parts += [
        text(left - 6, 8 + (i + 0.5) * cell_height + 4, ranks[i], "end")
        for i in _some(range(rows), 8)
    ]
    parts.append(
        text(left + columns * cell_width / 2, 8 + rows * cell_height + 32, "iteration", class_="lb")
    )
    parts.append(
        element(
            "text",
            "rank" if any(ranks) else "",
            transform=f"translate(12 {number(8 + rows * cell_height / 2)}) rotate(-90)",
            text_anchor="middle",
            class_="lb",
        )
    )
    return chart(label, join(parts), height=height)


def _is_bad(cell: int) -> bool:
    return cell in (CELL_DIFFER, CELL_NOT_COMPARABLE, SUSPECT) or (
        BOUND_CLASS <= cell < SHARE_CLASSES
    )


def _cells(cell: int, path: str) -> Markup:
    if cell >= CELL_MATCH:
        class_ = {CELL_MATCH: "cm", CELL_DIFFER: "cd", CELL_NOT_COMPARABLE: "cn"}[cell]
        return element("path", d=path, class_=class_)
    if cell == 0:
        return element("path", d=path, class_="c0")
    return element("path", d=path, fill=css_colour(share_colour(cell)))


@dataclass(frozen=True, slots=True)
class Side:
    """An axis of an image: which one of the array's, and the elements it has."""

    axis: int
    extent: int


def image_chart(png: bytes, row: Side | None, column: Side, label: str) -> Markup:
    """An image of cells with the array's own indices along its sides."""
    left, top, side = 40.0, 6.0, 300.0
    extent = row.extent if row else 1
    scale = side / max(column.extent, extent)
    width = max(column.extent * scale, 60.0)
    height = 34.0 if row is None else max(extent * scale, 34.0)
    bottom = top + height
    parts = [
        element(
            "image",
            href=data_uri(png),
            x=left,
            y=top,
            width=width,
            height=height,
            preserveAspectRatio="none",
            class_="px",
        ),
        element("rect", x=left, y=top, width=width, height=height, class_="fr"),
        text(left, bottom + 14, "0", "start"),
        text(left + width, bottom + 14, column.extent - 1, "end"),
        text(left + width / 2, bottom + 14, f"axis {column.axis}", class_="lb"),
    ]
    if row is not None:
        turned = f"translate({number(left - 8)} {number(top + height / 2)}) rotate(-90)"
        parts.append(
            element("text", f"axis {row.axis}", transform=turned, text_anchor="middle", class_="lb")
        )
    # No room for both in a thin one.
    if row is not None and height > 70:
        parts += [
            text(left - 5, top + 9, "0", "end"),
            text(left - 5, bottom, row.extent - 1, "end"),
        ]
    return chart(label, join(parts), width=NARROW, height=bottom + 20)


def line_chart(
    golden: Sequence[float | None],
    new: Sequence[float | None],
    column: Side,
    low: float,
    high: float,
    label: str,
) -> Markup:
    """Values of both sides along one axis."""
    frame = Frame(left=76)

    def path(values: Sequence[float | None]) -> str:
        drawn, pen_down = [], False
        for i, value in enumerate(values):
            if value is None:
                pen_down = False
                continue
            x = frame.x((i + 0.5) / len(values))
            drawn.append(f"{'L' if pen_down else 'M'}{number(x)} {number(frame.y(value))}")
            pen_down = True
        return "".join(drawn)

    parts = []
    for part in (0.0, 0.5, 1.0):
        y = frame.y(part)
        parts.append(line(frame.left, y, frame.right, y, "gr"))
        parts.append(text(frame.left - 6, y + 4, short_number(low + (high - low) * part), "end"))
    parts += [
        element("path", d=path(golden), class_="lg"),
        element("path", d=path(new), class_="ln"),
        text(frame.left, frame.bottom + 15, "0", "start"),
        text(frame.right, frame.bottom + 15, column.extent - 1, "end"),
        axes(frame, f"index along axis {column.axis}", "value"),
    ]
    return chart(label, join(parts))
