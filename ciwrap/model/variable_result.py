"""One variable's verdict, where and by how much it differs, and what a report draws of it.

Pictures are bounded samples and small maps, never the data. Maps are strings of base64, a byte for
each cell, row by row. Shares of the bound are classes as in
`VariableResult.bound_share_histogram`: 0 nothing moved, 1 to 17 within the bound (17: from half of
it), 18 to 33 beyond it (18: up to twice); `NO_NUMBER` where one side is NaN, infinite or missing,
which is never a distance; `SUSPECT` where a chunk is suspect and no more is known;
`NO_CELL` where there is nothing to say.
"""

from __future__ import annotations

import binascii
import math
import numbers
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from ciwrap.base.errors import ExitCode
from ciwrap.base.words import Word
from ciwrap.model.settings import ErrorBound, Evidence, VariableId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

if TYPE_CHECKING:
    Number = float
else:
    # A float that may be NaN or infinite, which JSON lacks; base/documents.py knows this type.
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
    SWAPPED = "swapped"  # new = golden of other variables, which stand in each other's place
    GROWS = "grows"  # the largest difference grows along a curve over the iterations
    STOPPED = "stopped"  # a rank, a variable or all of the run is missing from an iteration on
    ONE_RANK = "one_rank"  # of several ranks only one differs
    ACROSS_RANKS = "across_ranks"  # the same numbers, dealt out among the ranks in another way
    STRIPE = "stripe"  # all in the rows that one of several threads would be dealt
    BOUNDARY = "boundary"  # all at the faces of the array
    NEAR_ZERO = "near_zero"  # golden values next to 0, where a relative bound is next to nothing
    WIDER_BOUND = "wider_bound"  # no cause: the bound that would have let all of them pass


class Explanation(Struct, frozen=True):
    """What differing elements have in common, and on how many of them that was seen to hold; of
    growth iterations are counted, and of what stopped the variables that are missing.

    values: the offset, the factor (of complex numbers its two parts), the bit, the period of each
    component, the rows that it is moved by, the golden components in the order that new has them,
    the fill value, the layers at the faces, the iteration, the rank and how many there are, the
    ranks of both sides, the thread and how many, how many variables hold the numbers of another,
    the first iteration that is missing (none if all are), or the atol that would have passed; of
    growth the iteration it starts in, the rate, and the first iteration beyond the bound. axes:
    what is moved or exchanged. on_golden: whether it is the golden side that holds the fill value
    or is rounded. words: what the factor or the type is called, the part of the number that the bit
    is in, what the ranks hold (rows, array), the digits of a fill value that no double is, the one
    face (`the last column`), the variable whose numbers it holds, what stopped ('' for all of the
    run), where in the array all that became NaN is (of a golden without data), or what is to be
    said beside a bound; of growth `exponential` (the rate is the iterations in which it doubles),
    `share` or `difference` (by so many bounds, or so much, in each iteration), or `rises` where a
    golden without data leaves sizes open (the values are then an iteration and the share of the
    bound that is not passed there, a later one and the share that is, and the first iteration with
    a suspect chunk). remedy: a line for ciwrap.yaml. of_means: whether it was seen on the means of
    suspect chunks alone, which are counted then. of_residues: whether it was seen on the residues
    of a golden without data alone; the values of suspect chunks are counted then. unexplained: the
    smallest box of the differing values of which it does not hold; None if it holds of all of them,
    or if nobody knows.
    """

    cause: Cause
    held_count: int
    differing_count: int
    values: tuple[Number, ...] = ()
    axes: tuple[int, ...] = ()
    on_golden: bool = False
    words: str | None = None
    remedy: str | None = None
    of_means: bool = False
    of_residues: bool = False
    unexplained: IndexBox | None = None


class IndexBox(Struct, frozen=True):
    """The smallest box that holds all elements in question, both corners included."""

    first_index: tuple[int, ...]
    last_index: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.first_index) != len(self.last_index):
            raise ValueError("a box's corners have different dimensions")

    def as_slices(self, shape: Sequence[int]) -> str:
        """`[0, :, 3:17]`, as NumPy would slice an array of this shape."""
        parts = []
        for first, last, extent in zip(self.first_index, self.last_index, shape, strict=True):
            if first == last and extent > 1:
                parts.append(str(first))
            elif first == 0 and last == extent - 1:
                parts.append(":")
            else:
                parts.append(f"{first}:{last + 1}")
        return f"[{', '.join(parts)}]"


def layers_text(axis: int, dimensions: int, count: int = 1) -> str:
    """What a part of an array is called that has one index, or a few, along an axis: `column`, `2
    rows`, `3 planes of axis 2`.
    """
    name = "value"
    if dimensions == 2:
        name = ("row", "column")[axis]
    elif dimensions > 2:
        name = "plane"
    of = f" of axis {axis}" if dimensions > 2 else ""
    return f"{name}{of}" if count == 1 else f"{count:,} {name}s{of}"


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
            raise ValueError("a block map is out of range")


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
    suspect chunk, and no more is known; 35 for NaN, infinite or missing on one side; 255 where
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
    block_elements: both sides are means of blocks of so many elements, as they are stored; 0: they
    are the elements themselves.
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
    block_elements: int = 0

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
    2^((n - 32768) / 256), odd where new is below golden, 0 for equal ones, 65535 for what is no
    number on one side. In a plane all golden numbers come first, then the new ones, then the
    shares. cell_elements: as of a picture.
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


# Types of fields are needed when the program runs: documents are checked against them.


class TextPlace(Struct, frozen=True):
    """Where something stands in a text. line, column: from 1. text: what stands there, cut."""

    line: int
    column: int
    text: str


class DifferingNumbers(Struct, frozen=True):
    """Numbers that differ in one place of one template.

    template: the line with `#` for its numbers. number: which of them, from 1. count: lines in
    which it differs. golden, new: the first of these. remedies: sets of `ignore`, each of which
    would leave it out. is_part: what stands beside it may belong to it, so that both have to be
    written alike whatever the bound, and are not. place: what `ignore_places` takes to leave it
    out; empty if the line is too long for that, or has no word.
    """

    template: str
    number: int
    count: int
    golden: TextPlace
    new: TextPlace
    max_abs_difference: Number
    max_bound_share: Number
    remedies: tuple[str, ...] = ()
    is_part: bool = False
    place: str = ""


class UnpairedLines(Struct, frozen=True):
    """Lines of one template that have no partner on the other side.

    golden_count, new_count: how many there are on each side. golden, new: the first of them.
    remedies: sets of `ignore` that together would have paired the first one.
    """

    template: str
    golden_count: int = 0
    new_count: int = 0
    golden: TextPlace | None = None
    new: TextPlace | None = None
    remedies: tuple[str, ...] = ()


class MaskedText(Struct, frozen=True):
    """What is left out of lines of one template, or the lines that a pattern leaves out.

    by: a set of `ignore`, `ignore_places` or `ignore_lines`. template: the line with `#` for its
    numbers and `...` for what is left out; of `ignore_lines`, the pattern. lines: how many, on the
    side that has more. numbers: left out of the golden's. golden, new: the first on each side.
    """

    by: str
    template: str
    lines: int
    numbers: int
    golden: TextPlace | None = None
    new: TextPlace | None = None


class TextResult(Struct, frozen=True):
    """What a comparison of two texts has found. Counts are of numbers or of lines.

    lines: of the golden text and of the new one. unpaired_lines: those without a partner, on each
    side; they were not compared. ignored_lines: those that `ignore_lines` covers, on each side.
    numbers: those compared. differing: those of them beyond the bound. ignored: those that `ignore`
    and `ignore_places` cover in lines that are not equal, and of ignored lines. places: where
    numbers differ, the first few; place_count: all of them. unpaired: templates of lines without
    partner, the first few; unpaired_count: all of them. masked: what `ignored` counts, by template,
    the first few; masked_count: all of them. not_utf8: sides that are read as Latin-1.
    """

    lines: tuple[int, int]
    unpaired_lines: tuple[int, int]
    ignored_lines: tuple[int, int]
    numbers: int
    differing: int
    ignored: int
    places: tuple[DifferingNumbers, ...] = ()
    place_count: int = 0
    unpaired: tuple[UnpairedLines, ...] = ()
    unpaired_count: int = 0
    masked: tuple[MaskedText, ...] = ()
    masked_count: int = 0
    not_utf8: tuple[str, ...] = ()


class Verdict(Word):
    """The result words. A variable has one of the first four; a check whose golden is an ensemble
    has one of the last two, or is not comparable: nothing of it was compared value by value, so it
    never matches. undecided: digests differ, and without the golden's data nobody can tell whether
    a number is beyond its bound. It fails as a difference does.
    """

    MATCH = "match"
    UNDECIDED = "undecided"
    DIFFER = "differ"
    NOT_COMPARABLE = "not_comparable"
    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"

    exit_code: ExitCode
    # How bad it is, from 0 for a match to the highest for what was not compared.
    severity: int
    # Whether the command that comes to it ends with 0.
    is_good: bool
    # Whether numbers were compared that are beyond their bound, or may be.
    is_alarm: bool
    # Whether it comes from a test on the statistics of runs, and not from their values.
    is_statistical: bool

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """The most severe of the verdicts; of none at all: not_comparable."""
        return max(verdicts, key=attrgetter("severity"), default=Verdict.NOT_COMPARABLE)

    @staticmethod
    def worst_first() -> tuple[Verdict, ...]:
        """Those that variables have, the most severe one first: the order in which they are
        listed.
        """
        return _WORST_FIRST


# From the least severe to the most: a test that is wrong once in a hundred times weighs less than
# numbers that were compared.
_EXIT_CODES = {
    Verdict.MATCH: ExitCode.MATCH,
    Verdict.CONSISTENT: ExitCode.MATCH,
    Verdict.INCONSISTENT: ExitCode.DIFFER,
    Verdict.UNDECIDED: ExitCode.DIFFER,
    Verdict.DIFFER: ExitCode.DIFFER,
    Verdict.NOT_COMPARABLE: ExitCode.NOT_COMPARABLE,
}
for _severity, (_verdict, _exit_code) in enumerate(_EXIT_CODES.items()):
    _verdict.severity = _severity
    _verdict.exit_code = _exit_code
    _verdict.is_good = _exit_code is ExitCode.MATCH
    _verdict.is_alarm = _verdict in (Verdict.UNDECIDED, Verdict.DIFFER)
    _verdict.is_statistical = _verdict in (Verdict.CONSISTENT, Verdict.INCONSISTENT)
_WORST_FIRST = (Verdict.NOT_COMPARABLE, Verdict.DIFFER, Verdict.UNDECIDED, Verdict.MATCH)


def step_interval(step: int, residue_levels: int, guaranteed_share: float) -> tuple[float, float]:
    """The least and the greatest share of the bound of a number that drifted by so many steps.

    Both sides are rounded to steps, so a drift of k steps is one of more than k - 1 and of less
    than k + 1 of them. Under a bound with rtol the steps are even on a logarithmic scale; on the
    scale of the bound itself they lie within the same ends, since the greatest share is convex and
    the least one concave in the number of steps (docs/explanation/residues.md).
    """
    half = (residue_levels - 1) // 2
    least = guaranteed_share * max(step - 1, 0) / half
    return least, (step + 1) / (half + 1)


def share_interval(
    max_share: float, residue_levels: int, guaranteed_share: float
) -> tuple[float, float]:
    """As `step_interval`, of a largest drift that is given as steps / (h + 1)."""
    half = (residue_levels - 1) // 2
    return step_interval(round(max_share * (half + 1)), residue_levels, guaranteed_share)


# Types of fields are needed when the program runs: documents are checked against them.


class ChunkRange(Struct, frozen=True):
    """Neighbouring suspect chunks, as the elements they hold, in C order.

    last_element: included. first_index, last_index: of these elements, in the variable's shape; ()
    for a 0-d variable.
    """

    first_element: int
    last_element: int
    first_index: tuple[int, ...] = ()
    last_index: tuple[int, ...] = ()
    chunk_count: int = 1

    @property
    def element_count(self) -> int:
        return self.last_element - self.first_element + 1


class DifferingElement(Struct, frozen=True):
    """One element beyond its bound. Where a number has no meaning (NaN, bytes), it is None.

    golden, new: texts that read back as the same value (`0.1`, `nan`, `b'ab'`). bound_share: |new -
    golden| / bound; infinite for a bound of 0. rel_difference: |new - golden| / |golden|. ulps:
    floats of the dtype from one to the other.
    """

    index: tuple[int, ...]
    golden: str
    new: str
    abs_difference: Number | None = None
    bound_share: Number | None = None
    rel_difference: Number | None = None
    ulps: int | None = None


class MovedElement(Struct, frozen=True):
    """One element of a suspect chunk that left its cell, as the golden's digest shows without the
    golden's value.

    part: `real` or `imaginary` of a complex number; else None. golden_from, golden_to: the golden's
    value lies between these, both included; texts that read back as the same value. None: it was a
    number, and no more is known, or one of several fill values. golden_is_fill: the latter, and
    nobody knows which. new: as text.
    share_from, share_to: |new - golden| / bound lies between these; None where a difference has no
    meaning (NaN). is_beyond: whether it is beyond the bound; None if the golden's value decides.
    """

    index: tuple[int, ...]
    new: str
    golden_from: str | None = None
    golden_to: str | None = None
    part: str | None = None
    share_from: Number | None = None
    share_to: Number | None = None
    is_beyond: bool | None = None
    golden_is_fill: bool = False


class NewValues(Struct, frozen=True):
    """What the new run holds in the suspect chunks, where the golden's data are not at hand. Counts
    are of numbers: a complex element is two. least, greatest, mean: of the finite ones; None where
    there are none.
    """

    number_count: int
    nan_count: int = 0
    infinity_count: int = 0
    least: Number | None = None
    greatest: Number | None = None
    mean: Number | None = None


class Details(Struct, frozen=True):
    """What a report draws of one variable; kept for the variables that matter most, and bounded.

    worst_elements: the largest differences, worst first. share_maps: where the differing elements
    (or suspect chunks) are, seen along the axes. picture: values of both sides, where both are at
    hand; of complex numbers the real part, and the imaginary one beside it. zoom: a line's elements
    next to the worst one. tree_levels: the root first. view: the numbers behind the picture, for a
    page that shows them on request. effect: whether the difference matters, over all elements.
    means: of the chunks of both sides, where the golden's data are not at hand.
    """

    chunk_map: ChunkMap | None = None
    tree_levels: tuple[TreeLevel, ...] = ()
    worst_elements: tuple[DifferingElement, ...] = ()
    share_maps: tuple[ShareMap, ...] = ()
    picture: Picture | None = None
    imaginary: Picture | None = None
    zoom: Picture | None = None
    view: View | None = None
    effect: Effect | None = None
    means: Picture | None = None


class NumberInText(Struct, frozen=True):
    """A number as a text has it. line, column: from 1; None where the text is not at hand."""

    text: str
    line: int | None = None
    column: int | None = None


class DifferingInSeries(Struct, frozen=True):
    """The first element of a series that differs. step: None where elements are only counted."""

    golden: NumberInText
    new: NumberInText
    step: int | None = None


class SeriesResult(Struct, frozen=True):
    """What a text says of a variable that was found in it, match by match.

    count: matches on the golden side and on the new one. printed_digits: significant digits of the
    number that is printed with the most. is_too_fine: whether the bound is below half of the
    smallest unit that is printed, so that only equal texts match.
    """

    count: tuple[int, int]
    first_differing: DifferingInSeries | None = None
    printed_digits: int | None = None
    is_too_fine: bool = False


class VariableResult(Struct, frozen=True, gc=False):
    """The verdict on one variable, and what it rests on. Counts are of elements. None means: not
    known on this evidence.

    iteration, rank: None where the path tells none. evidence: what the verdict rests on; None if
    there was no golden variable. reason: why it is not comparable, in one line. dtype, shape: of
    the new run. golden_dtype, golden_shape, golden_labels: only where they are others. labels: what
    else the new run says of the variable (units, names of dimensions, coordinates), as (key, text).
    bound_scale: what atol is a multiple of, as it was asked for: `1e-12*max` of the golden.
    golden_bound: what the golden was made with, where another bound is asked for now.
    mask: the boolean variable whose true elements count as zero. aligned_by: the id variable that
    ordered the rows. combine: how atol and rtol make one bound, `both` (the smaller part counts) or
    `either` (the larger one); None for their sum. expectation: `expect` or `range`, the key of the
    configuration that says what the numbers have to be, where no golden does. period: differences
    are modulo this, one number for all or one for each component. source_path: the file it was read
    from. golden_root, root: of its trees, in hexadecimal. byte_count: of the variable.

    element_count: of the variable. masked_count: elements that the mask took out of the comparison.
    flipped_count: vectors that were compared with the other sign; None where signs count.
    has_fill_values: whether elements that hold a fill value on both sides were not compared as
    numbers; how many is not counted. differing_count: elements beyond the bound; None if only
    suspect chunks are known, then the truth lies between the next two. differing_count_at_most: the
    elements of all suspect chunks. first_index: of the first differing element, in the variable's
    own dimensions. first_differences: the first few differing elements.

    chunk_count: leaves of the tree. suspect_chunks: leaves whose digests differ, and of a golden
    made with another bound those that may hold an element beyond the one asked for. suspect_ranges:
    the first few ranges of neighbouring ones. suspect_range_count: all of them. solved_chunks: how
    many suspect chunks show which elements moved, though the golden's data are not at hand.
    moved_elements: the first few of these.

    max_abs_difference, mean_abs_difference: over pairs of finite numbers; None where digests have
    settled a part that may hold a larger one. max_rel_difference,
    mean_rel_difference: |new - golden| / |golden|, over finite pairs with golden not 0; likewise.
    max_abs_index, max_rel_index: where the largest is. max_bound_share: largest |new - golden| /
    bound; infinite for a bound of 0, where only one side is finite, or beyond what a double holds.
    bound_share_histogram: 34 counts of |new - golden| / bound: 0; below 2^-16; then [2^(i-18),
    2^(i-17)) for i = 2 to 32; beyond or not finite. Exactly the bound is in class 17, and what
    differs in 18 and above. nan_mismatch_count: NaN without a match.
    inf_mismatch_count: infinities not met by the same infinity. missing_mismatch_count: fill values
    on one side only. not_finite_count: elements that are NaN or infinite on both sides alike; None
    with fill values. Of complex numbers these four count each part.

    residue_levels: of the golden's residues. guaranteed_share: drift up to this share of the bound
    never raises an alarm, so in each suspect chunk a value moved by more. least_share: a value
    moved by this share of the bound at least, as summaries of chunks prove. max_drift_share: the
    largest share of the bound used up; on evidence of residues, over the matching chunks and to
    within one of their steps. drift_share_from, drift_share_to: it lies between these, whatever the
    evidence; where chunks are suspect, that of the others. drift_histogram: elements that drifted
    by 0, 1, ... h steps of the residues. new_values: of the new run in the suspect chunks, where
    the golden's data are not at hand.

    differing_box: the smallest that holds all differing elements. explanations: what the differing
    elements have in common, the best first; each was tried on all of them. details: samples
    and small maps, for the variables that matter most. text: of a text that was compared token by
    token; elements are its numbers then, and masked those that are ignored. series: of a variable
    that was found in a text.

    Raises ValueError if the verdict is a match, but elements differ or none of those that are there
    was compared; and if it is not comparable without a reason.
    """

    name: str
    verdict: Verdict
    iteration: int | None = None
    rank: int | None = None
    evidence: Evidence | None = None
    reason: str | None = None
    dtype: str | None = None
    golden_dtype: str | None = None
    shape: tuple[int, ...] | None = None
    golden_shape: tuple[int, ...] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    golden_labels: tuple[tuple[str, str], ...] = ()
    bound: ErrorBound | None = None
    bound_scale: str | None = None
    golden_bound: str | None = None
    mask: str | None = None
    aligned_by: str | None = None
    combine: str | None = None
    expectation: str | None = None
    period: tuple[float, ...] | None = None
    source_path: str | None = None
    golden_root: str | None = None
    root: str | None = None
    byte_count: int | None = None

    element_count: int | None = None
    masked_count: int | None = None
    flipped_count: int | None = None
    has_fill_values: bool = False
    differing_count: int | None = None
    differing_count_at_least: int | None = None
    differing_count_at_most: int | None = None
    first_index: tuple[int, ...] | None = None
    first_differences: tuple[DifferingElement, ...] = ()

    chunk_count: int | None = None
    suspect_chunks: int | None = None
    suspect_ranges: tuple[ChunkRange, ...] = ()
    suspect_range_count: int | None = None
    solved_chunks: int | None = None
    moved_elements: tuple[MovedElement, ...] = ()
    new_values: NewValues | None = None

    max_abs_difference: Number | None = None
    max_abs_index: tuple[int, ...] | None = None
    mean_abs_difference: Number | None = None
    max_rel_difference: Number | None = None
    max_rel_index: tuple[int, ...] | None = None
    mean_rel_difference: Number | None = None
    max_bound_share: Number | None = None
    bound_share_histogram: tuple[int, ...] | None = None
    nan_mismatch_count: int | None = None
    inf_mismatch_count: int | None = None
    missing_mismatch_count: int | None = None
    not_finite_count: int | None = None

    residue_levels: int | None = None

    guaranteed_share: Number | None = None
    least_share: Number | None = None
    max_drift_share: Number | None = None
    drift_share_from: Number | None = None
    drift_share_to: Number | None = None
    drift_histogram: tuple[int, ...] | None = None

    differing_box: IndexBox | None = None
    explanations: tuple[Explanation, ...] = ()
    details: Details | None = None
    text: TextResult | None = None
    series: SeriesResult | None = None

    def __post_init__(self) -> None:
        if self.verdict.is_statistical:
            raise ValueError(f"{self.id}: a verdict on statistics, which no variable has")
        if self.verdict is Verdict.MATCH and self.differing_count != 0:
            raise ValueError(f"{self.id}: a match with {self.differing_count} differing values")
        may_be_empty = self.verdict is Verdict.MATCH and self.element_count and self.masked_count
        if may_be_empty and not self.compared_elements:
            raise ValueError(f"{self.id}: a match of which the mask left no value to compare")
        if self.verdict is Verdict.NOT_COMPARABLE and not self.reason:
            raise ValueError(f"{self.id}: not comparable, and no reason given")

    @property
    def id(self) -> VariableId:
        return VariableId(self.name, self.iteration, self.rank)

    @property
    def used_interval(self) -> tuple[float, float] | None:
        """The largest share of the bound used up lies between these; None if it is not known. Where
        chunks are suspect it is that of the others.
        """
        if self.max_bound_share is not None:
            return self.max_bound_share, self.max_bound_share
        if self.drift_share_from is not None and self.drift_share_to is not None:
            return self.drift_share_from, self.drift_share_to
        share = self.max_drift_share
        if share is None:
            return None
        if self.residue_levels is None or self.guaranteed_share is None:
            return share, share
        return share_interval(share, self.residue_levels, self.guaranteed_share)

    @property
    def known_share(self) -> float:
        """The largest share of its bound that is known of it: as values tell, or the least that
        digests do; of a match, what it used up at most. 0 if nothing is known.
        """
        if self.max_bound_share is not None or not self.verdict.is_alarm:
            return (self.used_interval or (0.0, 0.0))[1]
        moved = (one.share_from or 0.0 for one in self.moved_elements)
        return max([self.guaranteed_share or 0.0, self.least_share or 0.0, *moved])

    @property
    def is_mask_unknown(self) -> bool:
        """Whether a mask took out elements, and nobody knows how many."""
        return self.mask is not None and self.masked_count is None

    @property
    def compared_elements(self) -> int:
        """How many elements the verdict speaks of: all but those that are known to be masked; 0 if
        not comparable.
        """
        if self.verdict is Verdict.NOT_COMPARABLE:
            return 0
        return max(0, (self.element_count or 0) - (self.masked_count or 0))


def severity(one: VariableResult) -> tuple[int, float, float, int]:
    """How bad a result is, the worse the greater: the one order of all outputs.

    First the verdict, as exit codes have it: not comparable, differ, undecided, match. Then the
    largest known share of the bound; where nothing but equal numbers match, every difference is
    infinitely many times the bound, so the size of the largest one is next. Then how many elements
    differ, or may.
    """
    count = one.differing_count
    if count is None:
        count = one.differing_count_at_most or 0
    share, size = one.known_share, one.max_abs_difference or 0.0
    # A document may claim NaN, which has no place in an order.
    share, size = (0.0 if math.isnan(value) else value for value in (share, size))
    return one.verdict.severity, share, size, count


def worst_first(results: Iterable[VariableResult]) -> list[VariableResult]:
    """By `severity`; equally bad ones by iteration, rank and name."""
    ordered = sorted(results, key=attrgetter("id.sort_key"))
    return sorted(ordered, key=severity, reverse=True)


def worst_of(results: Iterable[VariableResult]) -> VariableResult:
    """The worst of those whose numbers differ, or may; where there are none, the worst of all."""
    ordered = worst_first(results)
    return next((one for one in ordered if one.verdict.is_alarm), ordered[0])


class PointState(Word):
    """One variable of one checkpoint. MATCH: the trees agree, or all values are equal. WITHIN:
    values moved, none beyond its bound. UNDECIDED: digests differ, and nobody can tell. FIRST_ONLY,
    SECOND_ONLY: only that run has it.
    """

    MATCH = "match"
    WITHIN = "within"
    UNDECIDED = "undecided"
    BEYOND = "beyond"
    NOT_COMPARED = "not_compared"
    FIRST_ONLY = "first_only"
    SECOND_ONLY = "second_only"


class Trend(Word):
    """What the checkpoints beyond the bound look like in the order of iterations."""

    FROM_THE_START = "from_the_start"  # in the first iteration already
    JUMPS = "jumps"  # at once to many times what it was before
    GROWS = "grows"
    STEADY = "steady"
    COMES_AND_GOES = "comes_and_goes"  # within the bound again after having been beyond it


class TimelinePoint(Struct, frozen=True):
    """bound_share: the largest share of the bound, as far as it is known; by residues the upper end
    of what they leave open, over matching chunks.
    """

    iteration: int | None
    rank: int | None
    state: PointState
    differing_count: int | None = None
    max_abs_difference: Number | None = None
    bound_share: Number | None = None


class Timeline(Struct, frozen=True):
    """One variable over all checkpoints, in the order of iteration and rank. trend: None where
    nothing is beyond its bound, or where that tells no trend, as one iteration does.
    """

    name: str
    points: tuple[TimelinePoint, ...]
    trend: Trend | None = None


class HistoryFacts(Struct, frozen=True):
    """Of two runs as histories. Bytes are those asked of captures and of data files.

    by_captures: variables that were settled without their data.
    """

    timelines: tuple[Timeline, ...] = ()
    by_captures: int = 0
    capture_bytes_read: int = 0
    data_bytes_read: int = 0
    not_compared_checkpoints: int = 0
