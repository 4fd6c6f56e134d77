"""A picture of the first difference as a file: golden | new | difference, for places that show an
image and no page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.details import cells
from ciwrap.report.findings import leading, place
from ciwrap.report.palette import SHARE_PALETTE, SIGNED_PALETTE, VALUE_PALETTE
from ciwrap.report.png import rgb_png
from ciwrap.report.sides import sides_of
from ciwrap.report.text import safe_name
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.details import Picture
    from ciwrap.model import CheckResult, RunResult, VariableResult
    from ciwrap.report.png import Colour

_SIDE, _GAP, _LINE_WIDTH, _LINE_HEIGHT = 300, 12, 640, 48
_GROUND = (255, 255, 255)


class PictureFile(Struct, frozen=True):
    """png: its bytes. words: what it shows, from left to right, or from the top down."""

    png: bytes
    words: str


def picture_file(run: RunResult) -> PictureFile | None:
    """Of what differs first, else of the first variable that has a picture; None without any."""
    told = [(check, divergence.variable) for check, divergence in leading(run)]
    others = [(check, one) for check in run.checks for one in check.variables]
    for check, variable in (*told, *others):
        picture = None if variable.details is None else variable.details.picture
        shape = variable.golden_shape or variable.shape
        if picture is None or not picture.golden or shape is None:
            continue
        if variable.verdict.is_alarm and max(picture.row_axis or 0, picture.column_axis) < len(
            shape
        ):
            return _drawn(check, variable, picture, shape)
    return None


def _drawn(
    check: CheckResult, variable: VariableResult, picture: Picture, shape: tuple[int, ...]
) -> PictureFile:
    panels = [(picture.golden, VALUE_PALETTE), (picture.new, VALUE_PALETTE)]
    golden, new = sides_of(check, variable)
    what = f"{new} - {golden}" if picture.signed else "|difference| / bound"
    is_signed = bool(picture.signed)
    panels.append(
        (picture.signed, SIGNED_PALETTE) if is_signed else (picture.classes, SHARE_PALETTE)
    )
    is_line = picture.row_axis is None
    size = (_LINE_HEIGHT, _LINE_WIDTH) if is_line else _size(picture, shape)
    drawn = [_panel(picture, text, palette, size) for text, palette in panels]
    gap_line = bytes(_GROUND) * size[1]
    if is_line:
        lines = [line for panel in drawn for line in (*panel, *[gap_line] * _GAP)][:-_GAP]
    else:
        gap = bytes(_GROUND) * _GAP
        lines = [gap.join(parts) for parts in zip(*drawn, strict=True)]
    return PictureFile(rgb_png(lines), f"{place(variable)}: {golden} | {new} | {safe_name(what)}")


def _size(picture: Picture, shape: tuple[int, ...]) -> tuple[int, int]:
    """Height and width of a panel, in the array's own proportions as far as these can be seen."""
    assert picture.row_axis is not None
    ratio = shape[picture.row_axis] / shape[picture.column_axis]
    ratio = min(max(ratio, 0.25), 4.0)
    return round(_SIDE * min(1.0, ratio)), round(_SIDE * min(1.0, 1 / ratio))


def _panel(
    picture: Picture, text: str, palette: Sequence[Colour], size: tuple[int, int]
) -> list[bytes]:
    """The lines of one panel, three bytes for each of its pixels."""
    height, width = size
    values = cells(text, picture.rows, picture.columns)
    colours = [_on_ground(colour) for colour in palette]
    columns = [x * picture.columns // width for x in range(width)]
    rows = [
        b"".join(colours[values[row * picture.columns + column]] for column in columns)
        for row in range(picture.rows)
    ]
    return [rows[y * picture.rows // height] for y in range(height)]


def _on_ground(colour: Colour) -> bytes:
    share = colour[3] / 255
    pairs = zip(colour[:3], _GROUND, strict=True)
    return bytes(round(one * share + other * (1 - share)) for one, other in pairs)
