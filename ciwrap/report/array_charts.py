"""What an array looks like: an image of its cells, or a line along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.details import BOUND_CLASS, NO_NUMBER, SHARE_CLASSES, SUSPECT
from ciwrap.report.png import data_uri, palette_png
from ciwrap.report.svg import (
    NARROW,
    Frame,
    box,
    chart,
    element,
    join,
    line,
    number,
    path,
    rect,
    text,
    turned_text,
)
from ciwrap.report.text import grouped_number, scale_ticks
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from ciwrap.report.png import Colour


# Of an image, the longer side; and of the colours under a narrow one, which have two numbers.
_SIDE, _LEAST_BAR = 300.0, 110.0


class Side(Struct, frozen=True):
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
    row: Side | None,
    column: Side,
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
    column: Side,
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
    parts = [*_spans(classes, frame, lane), *_value_lines(frame, scale)]
    for curve, band, thin in zip(sides, ("bg", "bw"), ("lg", "ln"), strict=True):
        parts.append(
            path(_band(curve, frame), band) if curve.low else path(_line(curve.values, frame), thin)
        )
    parts += _distances(classes, lane) if has_bound else _marked(classes, lane)
    parts += _index_labels(lane, column, start)
    assert len(sides[0].values) == len(classes)
    return chart(label, join(parts), height=lane.bottom + 22)


def new_line_chart(
    values: Sequence[float | None],
    classes: bytes,
    column: Side,
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


def _index_labels(frame: Frame, column: Side, start: int) -> list[Markup]:
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


def _spans(classes: bytes, frame: Frame, lane: Frame) -> Iterator[Markup]:
    """Where anything is beyond its bound, or no number: shaded over both lanes."""
    yield from _shaded(classes, frame, lane, "sx", range(NO_NUMBER, NO_NUMBER + 1))
    yield from _shaded(classes, frame, lane, "sp", range(BOUND_CLASS, SHARE_CLASSES))


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
    """Where the two differ at all, where nothing but equal numbers match."""
    yield from _shaded(classes, lane, lane, "bo", range(1, SHARE_CLASSES))
    yield from _shaded(classes, lane, lane, "bx", range(NO_NUMBER, NO_NUMBER + 1))
    yield text(lane.left - 6, (lane.top + lane.bottom) / 2 + 4, "differ", "end", "bl")
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


def image_width(row: Side | None, column: Side) -> float:
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
