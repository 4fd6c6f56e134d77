"""What an array looks like: an image of its cells, or a line along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.png import data_uri
from ciwrap.report.svg import NARROW, Frame, axes, chart, element, join, line, number, text
from ciwrap.report.text import short_number
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup


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
    png: bytes, row: Side | None, column: Side, label: str, spot: Spot | None = None
) -> Markup:
    """An image of cells with the array's own indices along its sides.

    spot: what the eye should find; ringed where it is too small to be seen.
    """
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
        *_rings(spot, left, top, width, height),
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


def _rings(
    spot: Spot | None, left: float, top: float, width: float, height: float
) -> Iterator[Markup]:
    if spot is None or max((spot.right - spot.left) * width, (spot.bottom - spot.top) * height) > 9:
        return
    x, y = left + (spot.left + spot.right) / 2 * width, top + (spot.top + spot.bottom) / 2 * height
    yield element("circle", cx=x, cy=y, r=9, class_="ring")


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
