"""How the figures of one variable are put side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.figures import Figure, histogram_of, legend_of, maps_of, pictures_of
from ciwrap.report.sizes import lost_count
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from markupsafe import Markup

    from ciwrap.model import VariableResult

# So many maps fill a row.
_MOST_IN_A_ROW = 4


class FigureRow(Struct, frozen=True):
    """Figures side by side. is_of_lines: they are curves, of which two fill a row."""

    figures: tuple[Figure, ...]
    is_of_lines: bool


class Figures(Struct, frozen=True):
    """beside: what has room beside the table of elements. legend: of the maps, if there are any."""

    rows: tuple[FigureRow, ...]
    beside: Figure | None
    legend: Markup | None


def figures_of(result: VariableResult, sides: tuple[str, str], *, has_table: bool) -> Figures:
    """All figures of a variable. has_table: whether a table of elements follows."""
    pictures, maps = list(pictures_of(result, sides)), list(maps_of(result))
    histogram = histogram_of(result)
    lines = [one for one in pictures if one.is_line]
    planes = [one for one in pictures if not one.is_line]
    # The colours beside lines are told by the line of the bound, but for what is no number.
    legend = legend_of(result) if planes or maps or (lines and lost_count(result)) else None
    beside = None
    if histogram is not None and not maps and has_table:
        beside = histogram
    elif histogram is not None:
        maps = [histogram, *maps]
    elif len(lines) == 1 and not planes and not maps and has_table:
        beside, lines = lines[0], []
    if len(planes) + len(maps) <= _MOST_IN_A_ROW:
        planes, maps = [*planes, *maps], []
    kinds = ((lines, True), (planes, False), (maps, False))
    rows = [FigureRow(tuple(some), is_line) for some, is_line in kinds if some]
    return Figures(tuple(rows), beside, legend)
