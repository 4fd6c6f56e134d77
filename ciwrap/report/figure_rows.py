"""How the figures of one variable are put side by side."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ciwrap.report.figures import histogram_of, legend_of, maps_of, pictures_of
from ciwrap.report.sizes import lost_count

if TYPE_CHECKING:
    from ciwrap.model import VariableResult

# So many maps fill a row.
_MOST_IN_A_ROW = 4


def figures_of(
    result: VariableResult, sides: tuple[str, str], *, has_table: bool
) -> SimpleNamespace:
    """All figures of a variable, in rows. has_table: whether a table of elements follows, beside
    which one of them has room. is_of_lines: a row's figures are curves, of which two fill it.
    """
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
    rows = [SimpleNamespace(figures=some, is_of_lines=lined) for some, lined in kinds if some]
    return SimpleNamespace(rows=tuple(rows), beside=beside, legend=legend)
