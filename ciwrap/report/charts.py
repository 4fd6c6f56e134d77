"""The page's charts: images and lines of arrays, growth over iterations, ensembles, histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from ciwrap.model import Shift
from ciwrap.model.variable_result import BOUND_CLASS, NO_NUMBER, SHARE_CLASSES, SUSPECT
from ciwrap.report.drawing import (
    NARROW,
    WIDTH,
    Colour,
    Frame,
    axes,
    box,
    chart,
    css_colour,
    curve,
    data_uri,
    decade_lines,
    dot,
    element,
    join,
    line,
    number,
    palette_png,
    path,
    power_label,
    rect,
    round_ticks,
    share_colour,
    some_of,
    text,
    triangle,
    turned_text,
)
from ciwrap.report.text import (
    grouped_number,
    percent_text,
    safe_name,
    safe_text,
    scale_ticks,
    short_number,
)

# Of an image, the longer side; and of the colours under a narrow one, which have two numbers.
_SIDE, _LEAST_BAR = 300.0, 110.0


class ChartSide(Struct, frozen=True):
    """An axis of an image: which one of the array's, and the elements it has."""

    axis: int
    extent: int


class Spot(Struct, frozen=True):
    """A part of an image, from 0 (top, left) to 1."""

    top: float
    left: float
    bottom: float
    right: float


def image_chart(
    png: bytes,
    row: ChartSide | None,
    column: ChartSide,
    label: str,
    spot: Spot | None = None,
    edges: Sequence[tuple[float, float, float, float]] = (),
    *,
    is_plane: bool = False,
) -> Markup:
    """An image of cells with the array's own indices along its sides.

    spot: what the eye should find; ringed where it is too small to be seen. edges: lines over the
    image as (left, top, right, bottom), from 0 to 1. is_plane: whether the page knows the numbers
    behind it, and tells those under the pointer.
    """
    axes = f"{'' if row is None else row.axis},{column.axis}"
    left, top = 40.0, 6.0
    width = image_width(row, column)
    height = 34.0
    if row is not None:
        height = max(row.extent * _SIDE / max(column.extent, row.extent), 34.0)
    bottom = top + height
    parts = [
        _image(png, left, top, width, height, **({"data_axes": axes} if is_plane else {})),
        *_rings(spot, left, top, width, height),
        *_edge_lines(edges, left, top, width, height),
        text(left, bottom + 14, "0", "start"),
        text(left + width, bottom + 14, column.extent - 1, "end"),
        text(left + width / 2, bottom + 14, f"axis {column.axis}", class_="lb"),
    ]
    if row is not None:
        parts.append(turned_text(left - 8, top + height / 2, f"axis {row.axis}"))
        # No room for numbers as well in a thin one.
        if height > 70:
            parts.append(text(left - 5, top + 9, "0", "end"))
            parts.append(text(left - 5, bottom, row.extent - 1, "end"))
    return chart(label, join(parts), width=NARROW, height=bottom + 20)


def _image(
    png: bytes, left: float, top: float, width: float, height: float, **more: object
) -> Markup:
    """Cells in a frame."""
    place = {"x": left, "y": top, "width": width, "height": height}
    shown = {"preserveAspectRatio": "none", "class_": "px"}
    image = element("image", href=data_uri(png), **place, **shown, **more)
    return image + rect(left, top, width, height, "fr")


def _rings(
    spot: Spot | None, left: float, top: float, width: float, height: float
) -> Iterator[Markup]:
    if spot is None or max((spot.right - spot.left) * width, (spot.bottom - spot.top) * height) > 9:
        return
    x, y = left + (spot.left + spot.right) / 2 * width, top + (spot.top + spot.bottom) / 2 * height
    yield element("circle", cx=x, cy=y, r=9, class_="ring")


def _edge_lines(
    edges: Sequence[tuple[float, float, float, float]],
    left: float,
    top: float,
    width: float,
    height: float,
) -> Iterator[Markup]:
    if not edges:
        return
    drawn = [
        f"M{number(left + x1 * width)} {number(top + y1 * height)}"
        f"L{number(left + x2 * width)} {number(top + y2 * height)}"
        for x1, y1, x2, y2 in edges
    ]
    # Two lines over one another are seen on any ground.
    yield path(drawn, "e0")
    yield path(drawn, "e1")


class Curve(Struct, frozen=True):
    """Values along an axis, 0 to 1 of the scale; None where there is no finite number. low, high:
    the least and greatest of each cell, where cells are of several elements.
    """

    values: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


def line_chart(
    sides: tuple[Curve, Curve],
    classes: bytes,
    column: ChartSide,
    start: int,
    scale: tuple[float, float],
    label: str,
    *,
    has_bound: bool = True,
) -> Markup:
    """Golden and new along one axis, from the least to the greatest of each cell, and under them
    how far they are apart, against the bound. Differing spans are shaded.

    column: its extent is that of what is shown, which begins at `start`. has_bound: whether there
    is a bound that may be drawn; else the lane says where the two differ.
    """
    frame, lane = Frame(left=76, bottom=150), Frame(left=76, top=166, bottom=232)
    parts = [
        # Where anything is no number, or beyond its bound: shaded over both lanes.
        *_shaded(classes, frame, lane, "sx", range(NO_NUMBER, NO_NUMBER + 1)),
        *_shaded(classes, frame, lane, "sp", range(BOUND_CLASS, SHARE_CLASSES)),
        *_shaded(classes, frame, lane, "sq", range(SUSPECT, SUSPECT + 1)),
        *_value_lines(frame, scale),
    ]
    for side, band, thin in zip(sides, ("bg", "bw"), ("lg", "ln"), strict=True):
        parts.append(
            path(_band(side, frame), band) if side.low else path(_line(side.values, frame), thin)
        )
    parts += _distances(classes, lane) if has_bound else _marked(classes, lane)
    parts += _index_labels(lane, column, start)
    assert len(sides[0].values) == len(classes)
    return chart(label, join(parts), height=lane.bottom + 22)


def new_line_chart(
    values: Sequence[float | None],
    classes: bytes,
    column: ChartSide,
    scale: tuple[float, float],
    label: str,
) -> Markup:
    """One side along an axis, what is in suspect chunks shaded."""
    frame = Frame(left=76, bottom=150)
    parts = [*_shaded(classes, frame, frame, "sq", range(SUSPECT, SUSPECT + 1))]
    parts += _value_lines(frame, scale)
    parts.append(path(_line(values, frame), "ln"))
    parts += _index_labels(frame, column, 0)
    return chart(label, join(parts), height=frame.bottom + 22)


def _index_labels(frame: Frame, column: ChartSide, start: int) -> list[Markup]:
    """What stands below a line: the first index, the last one, and whose they are."""
    x, y = (frame.left + frame.right) / 2, frame.bottom + 15
    return [
        text(frame.left, y, start, "start"),
        text(frame.right, y, start + column.extent - 1, "end"),
        text(x, y, f"index along axis {column.axis}", class_="lb"),
    ]


def _value_lines(frame: Frame, scale: tuple[float, float]) -> Iterator[Markup]:
    """The grid of the values, with numbers."""
    for part, words in zip((0.0, 0.5, 1.0), scale_ticks(*scale), strict=True):
        y = frame.y(part)
        yield line(frame.left, y, frame.right, y, "gr")
        yield text(frame.left - 6, y + 4, words, "end")


def _line(values: Sequence[float | None], frame: Frame) -> list[str]:
    drawn, pen_down = [], False
    if all(value in (None, 0.0, 1.0) for value in values):
        return _steps(values, frame)
    for i, value in enumerate(values):
        if value is None:
            pen_down = False
            continue
        x = frame.x((i + 0.5) / len(values))
        drawn.append(f"{'L' if pen_down else 'M'}{number(x)} {number(frame.y(value))}")
        pen_down = True
    return drawn


def _steps(values: Sequence[float | None], frame: Frame) -> list[str]:
    """Of truth values, which have nothing between them: each as wide as its place."""
    drawn, last = [], None
    for i, value in enumerate(values):
        if value is not None:
            left, right = (number(frame.x((i + more) / len(values))) for more in (0, 1))
            y = number(frame.y(value))
            drawn.append(f"{'M' if last is None else 'L'}{left} {y}L{right} {y}")
        last = value
    return drawn


def _band(curve: Curve, frame: Frame) -> Iterator[str]:
    """A bar for each cell, from its least to its greatest value, a pixel at least."""
    wide = (frame.right - frame.left) / len(curve.low)
    for i, (low, high) in enumerate(zip(curve.low, curve.high, strict=True)):
        if low is not None and high is not None:
            top = frame.y(high) - 0.5
            yield box(frame.left + i * wide, top, wide, max(frame.y(low) + 0.5 - top, 1))


def _shaded(
    classes: bytes, frame: Frame, lane: Frame, class_: str, shown: range
) -> Iterator[Markup]:
    """The stretches of these classes, from the top of one frame to the bottom of the other."""
    wide = (frame.right - frame.left) / len(classes)
    drawn, at = [], 0
    while at < len(classes):
        end = at
        while end < len(classes) and classes[end] in shown:
            end += 1
        if end > at:
            span = max((end - at) * wide, 2)
            x = frame.left + at * wide
            drawn.append(box(x, frame.top, span, lane.bottom - frame.top))
        at = max(end, at + 1)
    if drawn:
        yield path(drawn, class_)


def _marked(classes: bytes, lane: Frame) -> Iterator[Markup]:
    """Where the two differ at all, where nothing but equal numbers match; or suspect chunks."""
    yield from _shaded(classes, lane, lane, "bo", range(1, SHARE_CLASSES))
    yield from _shaded(classes, lane, lane, "sq", range(SUSPECT, SUSPECT + 1))
    yield from _shaded(classes, lane, lane, "bx", range(NO_NUMBER, NO_NUMBER + 1))
    word = "suspect" if SUSPECT in classes else "differ"
    yield text(lane.left - 6, (lane.top + lane.bottom) / 2 + 4, word, "end", "bl")
    yield line(lane.left, lane.bottom, lane.right, lane.bottom, "ax")


def _distances(classes: bytes, lane: Frame) -> Iterator[Markup]:
    """|difference| / bound as bars on a logarithmic scale, and the bound."""
    known = [one for one in classes if 0 < one < SHARE_CLASSES]
    low = min([*known, BOUND_CLASS - 6]) - 1
    high = max([*known, BOUND_CLASS + 3]) + 1
    wide = (lane.right - lane.left) / len(classes)

    def y_of(share_class: float) -> float:
        return lane.y((share_class - low) / (high - low))

    for class_, shown in (
        ("bi", range(1, BOUND_CLASS)),
        ("bo", range(BOUND_CLASS, SHARE_CLASSES)),
        ("bx", range(NO_NUMBER, NO_NUMBER + 1)),
    ):
        drawn = []
        for i, one in enumerate(classes):
            if one in shown:
                top = lane.top if one == NO_NUMBER else y_of(one + 1)
                drawn.append(box(lane.left + i * wide, top, max(wide, 1), lane.bottom - top))
        if drawn:
            yield path(drawn, class_)
    y = y_of(BOUND_CLASS)
    # Seen on bars, too.
    yield line(lane.left, y, lane.right, y, "bh")
    yield line(lane.left, y, lane.right, y, "bd")
    yield text(lane.left - 6, y + 4, "bound", "end", "bl")
    yield line(lane.left, lane.bottom, lane.right, lane.bottom, "ax")
    # The last class has no upper end.
    is_open = high == SHARE_CLASSES
    top_share = 2.0 ** (SHARE_CLASSES - 1 if is_open else high) / 2.0**BOUND_CLASS
    more = "\u2265 " if is_open else ""
    yield text(lane.left - 6, lane.top + 8, f"{more}{grouped_number(top_share)} x", "end")


def image_width(row: ChartSide | None, column: ChartSide) -> float:
    """How wide an image of these axes is drawn."""
    extent = row.extent if row else 1
    return max(column.extent * _SIDE / max(column.extent, extent), 60.0)


def colour_bar(
    palette: Sequence[Colour],
    ticks: Sequence[tuple[float, str]],
    label: str,
    width: float = _SIDE,
) -> Markup:
    """The scale of an image under it, as wide as it is, with numbers; in a narrow one these stand
    at the ends alone. ticks: places from 0 to 1, and words.
    """
    left, top, width = 40.0, 2.0, max(width, _LEAST_BAR)
    if width < _SIDE / 2:
        ticks = [one for one in ticks if one[0] in (0.0, 1.0)]
    ramp = palette_png(bytes(range(255)), 1, 255, palette)
    parts = [_image(ramp, left, top, width, 10)]
    for place, words in ticks:
        anchor = "start" if place <= 0 else "end" if place >= 1 else "middle"
        x = left + width * place
        parts.append(line(x, top + 10, x, top + 14, "ax"))
        parts.append(text(x, top + 26, words, anchor))
    return chart(label, join(parts), width=NARROW, height=32)


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
        return triangle(x, y, words, "mo" if point.share is not None else "mu")
    return dot(x, y, 2.6, words)


# Marks of cells that do not match, and of cells that were not compared.
CROSSES, DASHES = "xx", "xx na"
# Of a cell of the timeline: a class of the share, or one of these.
CELL_MATCH, CELL_DIFFER, CELL_NOT_COMPARABLE, CELL_NONE = 100, 101, 102, 103
_BAD_CELLS = (CELL_DIFFER, CELL_NOT_COMPARABLE, SUSPECT)


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
            is_bad = cell in _BAD_CELLS or BOUND_CLASS <= cell < SHARE_CLASSES
            if is_bad and cell_width >= 6 and cell_height >= 8:
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


def _cells(cell: int, drawn: str) -> Markup:
    if cell >= CELL_MATCH:
        class_ = {CELL_MATCH: "cm", CELL_DIFFER: "cd", CELL_NOT_COMPARABLE: "cn"}[cell]
        return path((drawn,), class_)
    if cell == 0:
        return path((drawn,), "c0")
    return element("path", d=drawn, fill=css_colour(share_colour(cell)))


MOST_SHIFTS = 12
_ROW = 22.0
# So far a mean of honest runs goes once in twenty times.
_USUAL = 2.0
_LONGEST_LABEL = 34


def shift_bars(shifts: Sequence[Shift]) -> Markup:
    """A bar for each of the features that moved most; the band is where honest runs mostly lie."""
    shown = shifts[:MOST_SHIFTS]
    height = 16 + _ROW * len(shown) + 44
    frame = Frame(left=225, right=450, top=12, bottom=height - 44)
    finite = [abs(one.deviations) for one in shown if math.isfinite(one.deviations)]
    most = 1.15 * max([*finite, 1.5 * _USUAL])

    def x_of(deviations: float) -> float:
        return frame.x((max(-most, min(most, deviations)) + most) / (2 * most))

    tall = frame.bottom - frame.top
    usual = f"within {_USUAL:g}: where the mean of honest runs mostly lies"
    parts = [
        rect(x_of(-_USUAL), frame.top, x_of(_USUAL) - x_of(-_USUAL), tall, "mg", usual),
        line(x_of(0), frame.top, x_of(0), frame.bottom, "ax"),
    ]
    for row, one in enumerate(shown):
        y = frame.top + 4 + _ROW * row
        left, right = sorted((x_of(0), x_of(one.deviations)))
        said = f"{safe_name(one.feature)}: {short_number(one.deviations)}"
        parts.append(rect(left, y, max(right - left, 1.0), _ROW - 8, "sb", said))
        parts.append(text(frame.left - 8, y + 11, _label(one.feature), "end"))
    parts += [text(x_of(tick), frame.bottom + 15, f"{tick:g}") for tick in round_ticks(-most, most)]
    parts.append(axes(frame, "standard deviations of such a mean", ""))
    return chart("How far each feature moved", join(parts), height=height)


def _label(feature: str) -> str:
    """`x std, block 2 of 8`: a long name of a variable is cut, never what was made of it."""
    name, block, place = (
        feature.rpartition(", block ") if ", block " in feature else (feature, "", "")
    )
    variable, _, statistic = name.rpartition(" ")
    what = safe_text(f" {statistic}{block}{place}")
    return safe_name(variable, max(9, _LONGEST_LABEL - len(what))) + what


_HEIGHT = 260
_FRAME = Frame(left=60, top=20, right=NARROW - 12, bottom=_HEIGHT - 44)


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


def share_histogram(counts: Sequence[int], label: str, lost: int = 0) -> Markup:
    """Elements by |difference| / bound, both axes logarithmic, the bound marked.

    lost: those of the last class that are NaN, infinite or missing on one side; they have no
    distance, and a bar of their own beyond a gap.
    """
    frame = _FRAME
    lost = min(lost, counts[-1])
    counts = [*counts[:-1], counts[-1] - lost]
    grid, decades = count_axis(frame, max(*counts, lost))
    used = [i for i, count in enumerate(counts) if count and i > 0]
    first = min([*used, BOUND_CLASS - 4])
    last = max([*used, BOUND_CLASS + 3])
    # One slot for equal elements and a gap, then the classes.
    slots = last - first + 1 + 1.6 + (1.8 if lost else 0)
    slot = (frame.right - frame.left) / slots

    def left_of(share_class: float) -> float:
        return frame.left + (1.6 + share_class - first) * slot

    def bar(x: float, count: int, class_: str, words: str) -> Markup:
        top = frame.y(count_height(count, decades))
        said = f"{words}: {count:,}"
        return rect(x + 0.5, top, max(slot - 1, 0.5), frame.bottom - top, class_, said)

    bars = []
    if counts[0]:
        bars.append(bar(frame.left, counts[0], "b0", "equal"))
    bars += [
        bar(left_of(i), counts[i], "bo" if i >= BOUND_CLASS else "bi", class_words(i))
        for i in range(max(first, 1), last + 1)
        if counts[i]
    ]
    ticks = [text(frame.left + slot / 2, frame.bottom + 15, "0")]
    if lost:
        bars.append(bar(left_of(last + 1.8), lost, "bx", "not a number on one side"))
        ticks.append(text(frame.right, frame.bottom + 28, "no number", "end"))
    low, high = (first - BOUND_CLASS) * math.log10(2), (last + 1 - BOUND_CLASS) * math.log10(2)
    step = max(1, math.ceil((high - low) / 5))
    for exponent in range(-step * 10, 40, step):
        if low + 0.1 <= exponent <= high:
            x = left_of(BOUND_CLASS + exponent / math.log10(2))
            ticks.append(text(x, frame.bottom + 15, power_label(exponent)))
            ticks.append(line(x, frame.bottom, x, frame.bottom + 4, "ax"))
    bound = _bound_line(frame, left_of(BOUND_CLASS))
    body = join((grid, *bars, bound, axes(frame, "|difference| / bound", "values"), *ticks))
    return chart(label, body, width=NARROW, height=_HEIGHT)


def _bound_line(frame: Frame, x: float) -> Markup:
    name = text(x, frame.top - 7, "bound", "middle", "bl")
    return line(x, frame.top - 4, x, frame.bottom, "bd") + name


def class_words(share_class: int) -> str:
    if share_class == 0:
        return "equal"
    if share_class == 1:
        return "less than 0.00002 of the bound"
    if share_class == SHARE_CLASSES - 1:
        return "at least 33,000 x the bound"
    low = 2.0 ** (share_class - BOUND_CLASS)
    return f"{short_number(low)} to {short_number(2 * low)} x the bound"


def drift_histogram(counts: Sequence[int], label: str) -> Markup:
    """Elements by how many fine steps they drifted. A drift of k steps is one of k - 1 to k + 1 of
    them, so its bar stands about k; the bound is where the steps end.
    """
    frame = _FRAME
    grid, decades = count_axis(frame, max(counts))
    slot = (frame.right - frame.left - 10) / len(counts)
    parts = []
    for step, count in enumerate(counts):
        if not count:
            continue
        top = frame.y(count_height(count, decades))
        low, high = max(step - 1, 0) / len(counts), (step + 1) / len(counts)
        left = frame.left + max(step - 0.5, 0) * slot
        said = f"{percent_text(low).removesuffix(' %')} to {percent_text(high)} of the bound"
        words = f"{said if step > 1 else f'less than {percent_text(high)} of the bound'}: {count:,}"
        wide = max(frame.left + (step + 0.5) * slot - left - 1, 0.5)
        class_ = "bi" if step < 0.8 * len(counts) else "bn"
        parts.append(rect(left + 0.5, top, wide, frame.bottom - top, class_, words))
        # How far the elements of this bar may really have moved.
        least, most = frame.left + max(step - 1, 0) * slot, frame.left + (step + 1) * slot
        parts.append(line(least, top, most, top, "wh"))
    for part in (0, 25, 50, 75, 100):
        x = frame.left + slot * len(counts) * part / 100
        parts.append(text(x, frame.bottom + 15, f"{part} %"))
    bound = _bound_line(frame, frame.left + slot * len(counts))
    body = join((grid, *parts, bound, axes(frame, "share of the bound used", "values")))
    return chart(label, body, width=NARROW, height=_HEIGHT)
