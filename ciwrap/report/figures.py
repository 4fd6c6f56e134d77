"""The figures of one variable: which there are, their texts, and how they are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from markupsafe import Markup
from msgspec import Struct

from ciwrap.model import VariableResult
from ciwrap.model.variable_result import (
    BOUND_CLASS,
    MOST_MAPS,
    NO_NUMBER,
    NOT_FINITE,
    SHARE_CLASSES,
    SUSPECT,
    Picture,
    ShareMap,
    cells,
)
from ciwrap.report.charts import (
    ChartSide,
    Curve,
    Spot,
    colour_bar,
    drift_histogram,
    image_chart,
    image_width,
    line_chart,
    new_line_chart,
    share_histogram,
)
from ciwrap.report.drawing import (
    DIFFERING_PALETTE,
    SHARE_PALETTE,
    SIGNED_PALETTE,
    VALUE_PALETTE,
    Colour,
    css_colour,
    palette_png,
    share_colour,
)
from ciwrap.report.text import axes_words, capital, scale_ticks, short_number
from ciwrap.report.words import lost_count, variable_is_exact

# Of so few a histogram says nothing.
_FEW_ELEMENTS = 8
_TALL = 3
_MOST_EDGES = 2000


class Figure(Struct, frozen=True):
    """is_line: a curve, which wants more room than a map."""

    title: str
    image: Markup
    note: str = ""
    is_line: bool = False


def _figure(title: str, image: Markup, *notes: str, is_line: bool = False) -> Figure:
    """notes: '' for those that there is no need for."""
    return Figure(title, image, "; ".join(filter(None, notes)), is_line)


def histogram_of(result: VariableResult) -> Figure | None:
    if (result.element_count or 0) < _FEW_ELEMENTS:
        return None
    counts = _without_masked(result.bound_share_histogram, result)
    can_be_drawn = counts is not None and len(counts) == SHARE_CLASSES and any(counts)
    if counts is not None and can_be_drawn and not variable_is_exact(result):
        lost = lost_count(result)
        label = f"{result.name}: values by |difference| / bound"
        note = f"not a number on one side: {lost:,}" if lost else ""
        image = share_histogram(counts, label, lost)
        return _figure("How far values moved", image, "logarithmic scales", note)
    steps = _without_masked(result.drift_histogram, result)
    if steps and sum(steps):
        image = drift_histogram(steps, f"{result.name}: values by the share of the bound used")
        note = (
            "as the golden's residues tell it, to within one step (the lines on the bars); blocks"
            " that match only"
        )
        return Figure("How far values moved", image, note)
    return None


def _without_masked(
    counts: tuple[int, ...] | None, result: VariableResult
) -> tuple[int, ...] | None:
    """A histogram of what was compared: masked elements are counted as if they had not moved."""
    if not counts or not result.masked_count:
        return counts
    return (max(0, counts[0] - result.masked_count), *counts[1:])


def pictures_of(result: VariableResult, sides: tuple[str, str]) -> Iterator[Figure]:
    details = result.details
    shape = result.golden_shape or result.shape
    if details is None or shape is None:
        return
    for picture in (details.means, details.picture, details.imaginary, details.zoom):
        if picture is None or not _fits(picture, shape):
            continue
        if not picture.golden:
            yield _new_figure(result, picture, shape, sides[1])
        elif picture.row_axis is None:
            yield _line_figure(result, picture, shape, sides)
        else:
            yield from _plane_figures(result, picture, shape, sides)


def _new_figure(
    result: VariableResult, picture: Picture, shape: tuple[int, ...], side: str
) -> Figure:
    """The new values with the suspect chunks on them, where the golden's are not at hand."""
    title = capital(side) + _part_words(picture)
    label = f"{result.name}: {title}, the blocks that may differ marked"
    plane = _where(picture, shape)
    classes = cells(picture.classes, picture.rows, picture.columns)
    if picture.row_axis is None:
        column = ChartSide(picture.column_axis, shape[picture.column_axis])
        values = _line(picture.new, picture)
        image = new_line_chart(values, classes, column, (picture.low, picture.high), label)
        notes = (plane, "shaded: blocks that may differ", _scale_note(picture))
        return _figure(title, image, *notes, is_line=True)
    image = _image(picture, picture.new, VALUE_PALETTE, shape, label, classes)
    notes = (plane, "outlined: blocks that may differ", _scale_note(picture))
    return _figure(title, image + _value_bar(picture, shape), *notes)


def _line_figure(
    result: VariableResult, picture: Picture, shape: tuple[int, ...], sides: tuple[str, str]
) -> Figure:
    stop = shape[picture.column_axis] if picture.stop is None else picture.stop
    column = ChartSide(picture.column_axis, max(1, stop - picture.start))
    bands = [_line(band, picture) for band in picture.bands] or [[], [], [], []]
    curves = (
        Curve(_line(picture.golden, picture), bands[0], bands[1]),
        Curve(_line(picture.new, picture), bands[2], bands[3]),
    )
    label = f"{result.name}: {sides[0]} and {sides[1]} along axis {picture.column_axis}"
    classes = cells(picture.classes, picture.rows, picture.columns)[: picture.columns]
    scale = (picture.low, picture.high)
    has_bound = not variable_is_exact(result) and not picture.block_elements
    image = line_chart(curves, classes, column, picture.start, scale, label, has_bound=has_bound)
    title = capital(f"{sides[0]} (blue) and {sides[1]} (orange)") + _part_words(picture)
    which = _where(picture, shape)
    if picture.stop is not None:
        which = f"the part [{picture.start}:{picture.stop}]"
    lane = "below: |difference| / bound" if has_bound else "below: where they differ"
    lane = "shaded: blocks that may differ" if picture.block_elements else lane
    places = f"each place: {picture.cell_elements} values, least to greatest"
    each = places if picture.cell_elements > 1 and picture.bands else ""
    return _figure(title, image, which, lane, each, _scale_note(picture), is_line=True)


def _part_words(picture: Picture) -> str:
    if picture.block_elements:
        return f", means of blocks of {picture.block_elements:,}"
    return f", {picture.part} part" if picture.part else ""


def _value_bar(picture: Picture, shape: tuple[int, ...]) -> Markup:
    """The colours of the values of a picture, as wide as it is."""
    ticks = list(zip((0.0, 0.5, 1.0), scale_ticks(picture.low, picture.high), strict=True))
    return colour_bar(VALUE_PALETTE, ticks, "values", image_width(*_sides(picture, shape)))


def _plane_figures(
    result: VariableResult, picture: Picture, shape: tuple[int, ...], sides: tuple[str, str]
) -> Iterator[Figure]:
    def drawn(text: str, palette: Sequence[Colour], label: str) -> Markup:
        return _image(picture, text, palette, shape, label, is_plane=True)

    plane = _where(picture, shape)
    part = _part_words(picture)
    count = picture.cell_elements
    worst = f"each pixel shows the largest of {count} values" if count > 1 else ""
    if picture.block_elements:
        worst = "values in the order in which they are stored"
    wide, values = image_width(*_sides(picture, shape)), _value_bar(picture, shape)
    for title, text in ((sides[0], picture.golden), (sides[1], picture.new)):
        name = f"{capital(title)}{part}"
        label = f"{result.name}: {name} {plane}".rstrip()
        image = drawn(text, VALUE_PALETTE, label)
        yield _figure(name, image + values, plane, worst, _scale_note(picture))
    if picture.signed and picture.signed_limit:
        limit = picture.signed_limit
        name = f"{capital(sides[1])} - {sides[0]}{part}"
        image = drawn(picture.signed, SIGNED_PALETTE, f"{result.name}: {name}")
        ends = list(zip((0.0, 0.5, 1.0), scale_ticks(-limit, limit), strict=True))
        bar = colour_bar(SIGNED_PALETTE, ends, "difference", wide)
        largest = result.max_abs_difference or 0.0
        # The scale leaves out the largest fiftieth; of the parts of complex numbers none is known.
        is_off = largest > 1.01 * limit and not picture.part and not picture.block_elements
        off = f"the largest, {short_number(largest)}, is beyond the colour scale" if is_off else ""
        yield _figure(name, image + bar, plane, worst, off)
    if picture.block_elements:  # the chunks that are suspect are marked on the new values
        return
    name = "Where they differ" if variable_is_exact(result) else "|difference| / bound"
    image = drawn(picture.classes, SHARE_PALETTE, f"{result.name}: {name}")
    yield _figure(name, image, plane, worst)
    if picture.differing:
        name = "Share of differing values"
        image = drawn(picture.differing, DIFFERING_PALETTE, f"{result.name}: {name}")
        ends = [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")]
        bar = colour_bar(DIFFERING_PALETTE, ends, name, wide)
        yield Figure(name, image + bar, f"of the up to {picture.cell_elements} in each cell")


def _scale_note(picture: Picture) -> str:
    """What the scale leaves out."""
    if picture.least is None or picture.greatest is None:
        return ""
    beyond = []
    if picture.least < picture.low:
        beyond.append(f"down to {_end_text(picture.least)}")
    if picture.greatest > picture.high:
        beyond.append(f"up to {_end_text(picture.greatest)}")
    return f"the scale leaves out values {' and '.join(beyond)}" if beyond else ""


def _end_text(value: float) -> str:
    """A whole number as it is: it may be a fill value."""
    is_whole = value == int(value) and abs(value) < 1e6
    return str(int(value)) if is_whole else short_number(value)


def _image(
    one: Picture | ShareMap,
    text: str,
    palette: Sequence[Colour],
    shape: tuple[int, ...],
    label: str,
    outlined: bytes = b"",
    *,
    is_plane: bool = False,
) -> Markup:
    """A map of cells; what is much taller than wide (particles by components) lies on its side.

    outlined: classes of the cells; suspect ones have a line around them.
    """
    values, rows, columns = cells(text, one.rows, one.columns), one.rows, one.columns
    row, column = _sides(one, shape)
    if row is not None and column.axis == one.row_axis:
        values, outlined = (
            b"".join(some[j::columns] for j in range(columns)) for some in (values, outlined)
        )
        rows, columns = columns, rows
    spot = _spot(values, rows, columns) if palette is SHARE_PALETTE else None
    edges = outline(outlined, rows, columns) if outlined else ()
    png = palette_png(values, rows, columns, palette)
    return image_chart(png, row, column, label, spot, edges, is_plane=is_plane)


def _sides(one: Picture | ShareMap, shape: tuple[int, ...]) -> tuple[ChartSide | None, ChartSide]:
    """The axes downwards and across of a map as it is drawn."""
    column = ChartSide(one.column_axis, shape[one.column_axis])
    row = None if one.row_axis is None else ChartSide(one.row_axis, shape[one.row_axis])
    if row is not None and row.extent > _TALL * column.extent:
        row, column = column, row
    return row, column


def outline(classes: bytes, rows: int, columns: int) -> list[tuple[float, float, float, float]]:
    """The edges around suspect cells as (left, top, right, bottom), from 0 to 1; none if there are
    too many to be seen.
    """
    is_suspect = [
        [classes[i * columns + j] == SUSPECT for j in range(columns)] for i in range(rows)
    ]
    edges = [
        (left / columns, at / rows, right / columns, at / rows)
        for at in range(rows + 1)
        for left, right in _edges(is_suspect, at, columns)
    ]
    turned = [list(one) for one in zip(*is_suspect, strict=True)]
    edges += [
        (at / columns, top / rows, at / columns, bottom / rows)
        for at in range(columns + 1)
        for top, bottom in _edges(turned, at, rows)
    ]
    return edges if len(edges) <= _MOST_EDGES else []


def _edges(lines: Sequence[Sequence[bool]], at: int, length: int) -> Iterator[tuple[int, int]]:
    """Where of two neighbouring lines just one is suspect: stretches, the end after the last."""
    nothing = [False] * length
    before = lines[at - 1] if at else nothing
    after = lines[at] if at < len(lines) else nothing
    start: int | None = None
    for place in range(length + 1):
        is_edge = place < length and before[place] != after[place]
        if is_edge and start is None:
            start = place
        elif not is_edge and start is not None:
            yield start, place
            start = None


def _spot(classes: bytes, rows: int, columns: int) -> Spot | None:
    """Where all that is beyond the bound, or suspect, lies."""
    places = [i for i, share_class in enumerate(classes) if share_class >= BOUND_CLASS]
    if not places:
        return None
    across = [i % columns for i in places]
    return Spot(
        top=places[0] // columns / rows,
        left=min(across) / columns,
        bottom=(places[-1] // columns + 1) / rows,
        right=(max(across) + 1) / columns,
    )


def _fits(picture: Picture | ShareMap, shape: tuple[int, ...]) -> bool:
    """Whether a document's map is one of this array."""
    axes = (picture.column_axis, picture.row_axis or 0)
    return all(0 <= axis < len(shape) and shape[axis] > 0 for axis in axes)


def _where(picture: Picture, shape: tuple[int, ...]) -> str:
    shown = [
        ":" if axis in (picture.row_axis, picture.column_axis) else str(position)
        for axis, position in enumerate(picture.index[: len(shape)])
    ]
    # All of the array is shown: nothing to tell.
    return f"[{', '.join(shown)}]" if any(one != ":" for one in shown) else ""


def _line(text: str, picture: Picture) -> list[float | None]:
    values = cells(text, picture.rows, picture.columns)[: picture.columns]
    return [None if value == NOT_FINITE else value / 254 for value in values]


def maps_of(result: VariableResult) -> Iterator[Figure]:
    shape = result.golden_shape or result.shape
    if result.details is None or shape is None:
        return
    picture, shown = result.details.picture, None
    if picture is not None:
        classes = cells(picture.classes, picture.rows, picture.columns)
        is_seen = picture.golden or picture.row_axis is None
        # On new values alone, suspect chunks may be too many to be outlined.
        if is_seen or outline(classes, picture.rows, picture.columns):
            shown = (picture.row_axis, picture.column_axis)
    for one in result.details.share_maps[:MOST_MAPS]:
        if not _fits(one, shape):
            continue
        # The picture has shown these two axes already.
        if (one.row_axis, one.column_axis) == shown:
            continue
        what = "Blocks that may differ" if is_by_chunks(result) else "Differing values"
        hidden = [
            axis
            for axis, extent in enumerate(shape)
            if extent > 1 and axis not in (one.row_axis, one.column_axis)
        ]
        note = f"seen along {axes_words(hidden)}" if hidden else "in the array's own shape"
        label = f"{result.name}: {what}, {note}"
        yield Figure(what, _image(one, one.classes, SHARE_PALETTE, shape, label), note)


def is_suspect(result: VariableResult) -> bool:
    return result.differing_count is None


def is_by_chunks(result: VariableResult) -> bool:
    """Whether its maps are of suspect chunks, of which it may be known what moved."""
    return is_suspect(result) or bool(result.solved_chunks)


def legend_of(result: VariableResult) -> Markup:
    """What the colours of the maps mean."""
    swatches: list[tuple[tuple[int, ...], str]]
    if is_by_chunks(result):
        swatches = [((0,), "block matches"), ((SUSPECT,), "block that may differ")]
    elif variable_is_exact(result):
        swatches = [((0,), "equal"), ((33,), "differs")]
    else:
        swatches = [((0,), "equal"), ((9, 13, 17), "within the bound")]
        swatches.append(((BOUND_CLASS, BOUND_CLASS + 5, 33), "beyond it"))
    if not is_by_chunks(result) and lost_count(result):
        swatches.append(((NO_NUMBER,), "no number: NaN, infinite or missing"))
    parts = (
        Markup("<span>{} {}</span>").format(Markup("").join(map(_swatch, classes)), words)
        for classes, words in swatches
    )
    return Markup("").join(parts)


def _swatch(share_class: int) -> Markup:
    colour = share_colour(share_class)
    return Markup(
        '<svg viewBox="0 0 22 12" width="22" aria-hidden="true"><rect width="22" height="12"'
        ' fill="{}" fill-opacity="{}"/></svg>'
    ).format(css_colour(colour), f"{max(colour[3], 60) / 255:.2f}")


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
