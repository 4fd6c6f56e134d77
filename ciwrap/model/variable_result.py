"""One variable's verdict, and what is known of where and by how much it differs."""

from __future__ import annotations

from dataclasses import dataclass

# Types of fields are needed when the program runs: documents are checked against them.
from ciwrap.details import (  # noqa: TC001
    ChunkMap,
    IndexBox,
    Number,
    Pattern,
    Picture,
    ShareMap,
    TreeLevel,
)
from ciwrap.model.rules import ErrorBound, Evidence, VariableId
from ciwrap.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Neighbouring suspect chunks, as the elements they hold: first and last, both included.

    The indices are those of the elements in the variable's shape (C order), () for a 0-d variable.
    """

    first_element: int
    last_element: int
    first_index: tuple[int, ...] = ()
    last_index: tuple[int, ...] = ()
    chunk_count: int = 1

    @property
    def element_count(self) -> int:
        return self.last_element - self.first_element + 1


@dataclass(frozen=True, slots=True)
class DifferingElement:
    """One element beyond its bound. Values are texts that read back exactly (`0.1`, `nan`,
    `b'ab'`).
    """

    index: tuple[int, ...]
    golden: str
    new: str
    abs_difference: Number | None = None  # None where it has no meaning (NaN, bytes)
    bound_share: Number | None = None  # |v - g| / bound; inf for a bound of 0
    rel_difference: Number | None = None  # |v - g| / |g|
    ulps: int | None = None  # floats of the dtype between the two


@dataclass(frozen=True, slots=True)
class Details:
    """What a report draws of one variable; kept for the variables that matter most, and bounded.

    worst_elements: the largest differences, worst first. share_maps: where the differing elements
    (or suspect chunks) are, seen along the axes. picture: values of both sides, where both are at
    hand. tree_levels: the root first.
    """

    chunk_map: ChunkMap | None = None
    tree_levels: tuple[TreeLevel, ...] = ()
    worst_elements: tuple[DifferingElement, ...] = ()
    share_maps: tuple[ShareMap, ...] = ()
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class VariableResult:
    """The verdict on one variable, and what it rests on. None means: not known on this evidence.

    Counts are of elements. If only suspect chunks are known, differing_count is None and the truth
    lies from differing_count_at_least to differing_count_at_most. max_drift_share is the share of
    the bound used up over the matching chunks, to within one fine step of the residues.
    bound_share_histogram has the 34 classes of the core's `Comparison.histogram`; drift_histogram
    has the elements that drifted by 0, 1, ... h fine steps.

    masked_count: elements that the mask took out of the comparison. filled_count: elements that
    hold a fill value on both sides, and so were not compared as numbers; histograms count both as
    elements that did not move. labels: what else the new
    run says of the variable (units, names of dimensions, coordinates), as (key, text).

    Raises ValueError for a match that is none: a match has 0 differing elements and at least one
    that was compared (unless there is none at all), and what is not comparable has a reason.
    """

    name: str
    verdict: Verdict
    iteration: int | None = None
    rank: int | None = None
    evidence: Evidence | None = None
    reason: str | None = None
    dtype: str | None = None  # of the new run; golden_dtype only where it is another
    golden_dtype: str | None = None
    shape: tuple[int, ...] | None = None
    golden_shape: tuple[int, ...] | None = None
    labels: tuple[tuple[str, str], ...] = ()  # of the new run; golden_labels only where others
    golden_labels: tuple[tuple[str, str], ...] = ()
    bound: ErrorBound | None = None
    mask: str | None = None
    aligned_by: str | None = None  # the id variable that ordered the rows
    period: tuple[float, ...] | None = None
    source_path: str | None = None
    golden_root: str | None = None  # hexadecimal
    root: str | None = None
    byte_count: int | None = None

    element_count: int | None = None
    masked_count: int | None = None
    filled_count: int | None = None
    differing_count: int | None = None
    differing_count_at_least: int | None = None
    differing_count_at_most: int | None = None
    first_index: tuple[int, ...] | None = None
    first_differences: tuple[DifferingElement, ...] = ()

    chunk_count: int | None = None
    suspect_chunks: int | None = None
    suspect_ranges: tuple[ChunkRange, ...] = ()  # the first few
    suspect_range_count: int | None = None  # all of them

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

    residue_levels: int | None = None
    # drift up to this share of the bound never raises an alarm
    guaranteed_share: Number | None = None
    max_drift_share: Number | None = None
    drift_histogram: tuple[int, ...] | None = None

    differing_box: IndexBox | None = None
    pattern: Pattern | None = None
    pattern_value: Number | None = None  # of a constant offset or factor
    details: Details | None = None

    def __post_init__(self) -> None:
        if self.verdict is Verdict.MATCH and self.differing_count != 0:
            raise ValueError(f"{self.id}: a match with {self.differing_count} differing elements")
        if self.verdict is Verdict.MATCH and self.element_count and not self.compared_elements:
            raise ValueError(f"{self.id}: a match of which the mask left no element to compare")
        if self.verdict is Verdict.NOT_COMPARABLE and not self.reason:
            raise ValueError(f"{self.id}: not comparable, and no reason given")

    @property
    def id(self) -> VariableId:
        return VariableId(self.name, self.iteration, self.rank)

    @property
    def compared_elements(self) -> int:
        """How many elements the verdict speaks of: all but the masked ones; 0 if not comparable."""
        if self.verdict is Verdict.NOT_COMPARABLE:
            return 0
        return max(0, (self.element_count or 0) - (self.masked_count or 0))
