"""What a report draws of one variable: bounded samples and small maps, never the data themselves.

Maps are strings of base64, a byte for each cell, row by row. Shares of the bound are classes as in
`VariableResult.bound_share_histogram`: 0 nothing moved, 1 to 17 within the bound (17: from half of
it), 18 to 33 beyond it (18: up to twice); `NO_NUMBER` where one side is NaN, infinite or missing,
which is never a distance; `SUSPECT` where a chunk is suspect and no more is known;
`NO_CELL` where there is nothing to say.
"""

from __future__ import annotations

import binascii
import numbers
from typing import TYPE_CHECKING

from msgspec import Struct

from ciwrap.structs import Word

if TYPE_CHECKING:
    Number = float
else:
    # A float that may be NaN or infinite, which JSON lacks; ciwrap.documents knows this type.
    Number = numbers.Real

SHARE_CLASSES = 34
BOUND_CLASS = 18  # the first one beyond the bound
SUSPECT = 34
NO_NUMBER = 35  # NaN, infinite or missing on one side, which is no distance
NO_CELL = 255
# Of a picture's values: the cell holds no finite number.
NOT_FINITE = 255
MOST_CELLS = 1 << 14
# Of all planes of a view together, and the bytes of each cell.
MOST_VIEW_CELLS = 1 << 14
VIEW_BYTES = 6
MOST_WORST = 20
MOST_RUNS = 2048
MOST_LEVELS = 64
MOST_MAPS = 3
MOST_EXPLANATIONS = 4
# Who is so many times further off than the bound has a defect, and no bound that is somewhat tight.
FAR_BEYOND = 100.0


class Cause(Word):
    """What differing elements have in common."""

    SIGN_FLIPPED = "sign_flipped"  # new = -golden
    CONSTANT_OFFSET = "constant_offset"  # new = golden + value
    CONSTANT_FACTOR = "constant_factor"  # new = golden * value
    ALL_ZERO = "all_zero"  # new = 0
    ALL_NAN = "all_nan"  # new = NaN
    FILL_VALUE = "fill_value"  # one side holds one value, which lies beyond all others
    LESS_PRECISE = "less_precise"  # one side is the other, rounded to a shorter type
    BIT_FLIPPED = "bit_flipped"  # one and the same bit of each number is another
    BYTE_ORDER = "byte_order"  # the bytes of each number stand in the other order
    PERIODIC_IMAGE = "periodic_image"  # new = golden + a whole number of periods
    SHIFTED = "shifted"  # new = golden, moved along an axis
    TRANSPOSED = "transposed"  # new = golden, two axes exchanged
    COLUMNS_FIRST = "columns_first"  # new = golden, written in the other order of axes
    EXCHANGED = "exchanged"  # new = golden, some components of an axis in each other's place
    OTHER_ORDER = "other_order"  # the same rows in another order
    OTHER_ITERATION = "other_iteration"  # new = golden of the iteration before or after
    ONE_RANK = "one_rank"  # of several ranks only one differs
    ACROSS_RANKS = "across_ranks"  # the same numbers, dealt out among the ranks in another way
    STRIPE = "stripe"  # all in the rows that one of several threads would be dealt
    BOUNDARY = "boundary"  # all at the faces of the array
    NEAR_ZERO = "near_zero"  # golden values next to 0, where a relative bound is next to nothing
    WIDER_BOUND = "wider_bound"  # no cause: the bound that would have let all of them pass


class Explanation(Struct, frozen=True):
    """What differing elements have in common, and on how many of them that was seen to hold.

    values: the offset, the factor (of complex numbers its two parts), the bit, the period of each
    component, the rows that it is moved by, the golden components in the order that new has them,
    the fill value, the layers at the faces, the iteration, the rank and how many there are, the
    ranks of both sides, the thread and how many, or the atol that would have passed. axes: what is
    moved or exchanged. on_golden: whether it is the golden side that holds the fill value or is
    rounded. words: what the factor or the type is called, the part of the number that the bit is
    in, what the ranks hold (rows, array), the digits of a fill value that no double is, or what is
    to be said beside a bound. remedy: a line for ciwrap.yaml.
    """

    cause: Cause
    held_count: int
    differing_count: int
    values: tuple[Number, ...] = ()
    axes: tuple[int, ...] = ()
    on_golden: bool = False
    words: str | None = None
    remedy: str | None = None


class IndexBox(Struct, frozen=True):
    """The smallest box that holds all differing elements, both corners included."""

    first_index: tuple[int, ...]
    last_index: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.first_index) != len(self.last_index):
            raise ValueError("a box's corners have different dimensions")


class ChunkMap(Struct, frozen=True):
    """Which chunks are suspect, all of them.

    chunks_per_cell: cells of so many chunks, in order; a cell is suspect if a chunk of it is. runs:
    how many cells match, then are suspect, then match again, ... (the first may be 0).
    """

    chunk_elements: int
    chunk_count: int
    chunks_per_cell: int
    runs: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.chunk_elements < 1 or self.chunks_per_cell < 1 or len(self.runs) > MOST_RUNS:
            raise ValueError("a chunk map is out of range")


class TreeLevel(Struct, frozen=True):
    """One level of the tree.

    differing_count: nodes whose digests differ; the subtrees of the others were pruned.
    """

    node_count: int
    differing_count: int


class ShareMap(Struct, frozen=True):
    """The largest class of |difference| / bound in each cell, seen along the other axes.

    row_axis: None for a map of one row; cells of equal width cover the whole of both axes. classes:
    base64 of a byte for each cell, row by row: 0 to 33 as in bound_share_histogram; 34 for a
    suspect chunk of which no more is known; 35 for NaN, infinite or missing on one side; 255 where
    there is nothing to say.
    """

    column_axis: int
    rows: int
    columns: int
    classes: str
    row_axis: int | None = None

    def __post_init__(self) -> None:
        cells(self.classes, self.rows, self.columns)


class Picture(Struct, frozen=True):
    """Golden and new values in one plane (or line), both on the scale from `low` to `high`.

    index: the plane's index in each axis; the row and column axes have 0 there. start, stop: the
    part of the column axis that is shown; None: to its end. golden, new: base64 of a byte for each
    cell, low + (high - low) * byte / 254, or 255 where it is not finite; what lies outside of the
    scale is at its ends. cell_elements: a cell is of so many elements at most, and shows the one
    whose difference is largest. least, greatest: of all finite values of both sides in the plane;
    the scale leaves out a hundredth at each end if these are far away. part: of complex numbers.
    classes: of |difference| / bound, as in a share map. differing: the share of differing elements
    of each cell, of 254; '' where a cell is one element. signed: new - golden, 127 for 0, 0 and 254
    for -signed_limit and signed_limit and beyond, 255 where it is not finite. golden: '' where the
    golden's data are not at hand; then classes are of suspect chunks. bands: of lines whose cells
    are of several elements, the least and greatest of golden and of new, as golden and new.
    """

    column_axis: int
    rows: int
    columns: int
    index: tuple[int, ...]
    low: float
    high: float
    golden: str
    new: str
    classes: str
    row_axis: int | None = None
    start: int = 0
    stop: int | None = None
    cell_elements: int = 1
    least: Number | None = None
    greatest: Number | None = None
    part: str | None = None
    differing: str = ""
    signed: str = ""
    signed_limit: Number | None = None
    bands: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.bands) not in (0, 4):
            raise ValueError("a picture's bands are not those of two sides")
        more = (text for text in (self.golden, self.differing, self.signed, *self.bands) if text)
        for text in (self.new, self.classes, *more):
            cells(text, self.rows, self.columns)


class View(Struct, frozen=True):
    """The numbers of both sides in a plane (or line), and in the planes that follow one another
    along one more axis, for a page that shows them on request.

    row_axis: None for a line. axis, positions: along which the planes lie, and where; None and ()
    for a single one. index: as of a picture. planes: base64, for each cell of each plane three
    16-bit little-endian numbers: golden and new as low + (high - low) * n / 65534, what lies off
    the scale at its ends, 65535 for what is not finite; and |difference| / bound as
    2^((n - 32768) / 256), 0 for equal ones, 65535 for what is no number on one side. In a plane all
    golden numbers come first, then the new ones, then the shares. cell_elements: as of a picture.
    shown: which plane the worst element is in. part: of complex numbers. is_cut: whether values lie
    off the scale.
    """

    column_axis: int
    rows: int
    columns: int
    index: tuple[int, ...]
    low: float
    high: float
    planes: tuple[str, ...]
    row_axis: int | None = None
    axis: int | None = None
    positions: tuple[int, ...] = ()
    cell_elements: int = 1
    shown: int = 0
    part: str | None = None
    is_cut: bool = False

    def __post_init__(self) -> None:
        count = max(1, len(self.positions))
        is_right = count == len(self.planes) and 0 <= self.shown < count
        if not is_right or self.rows * self.columns * count > MOST_VIEW_CELLS:
            raise ValueError("a view is out of range")
        for one in self.planes:
            _decoded(one, VIEW_BYTES * self.rows * self.columns)


class Effect(Struct, frozen=True):
    """What a difference comes to over all elements that are finite on both sides.

    rms: the root of the mean of (new - golden)^2. bias: the mean of new - golden. least, greatest:
    of golden. golden_sum, new_sum: of the values. size_sum: of |golden|. apart, apart_count: a
    golden value that stands far beyond all others, as a fill value does, and in how many elements;
    they are left out of all the rest.
    """

    element_count: int
    rms: Number
    bias: Number
    least: Number
    greatest: Number
    golden_sum: Number
    new_sum: Number
    size_sum: Number
    apart: Number | None = None
    apart_count: int = 0


def cells(text: str, rows: int, columns: int) -> bytes:
    """The bytes of a map. Raises ValueError unless they are rows * columns of them."""
    if rows < 1 or columns < 1 or rows * columns > MOST_CELLS:
        raise ValueError("a map is out of range")
    return _decoded(text, rows * columns)


def _decoded(text: str, size: int) -> bytes:
    import base64

    try:
        found = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("a map is not base64") from None
    if len(found) != size:
        raise ValueError("a map has another size than it says")
    return found


def cells_text(values: bytes) -> str:
    return binascii.b2a_base64(values, newline=False).decode("ascii")
