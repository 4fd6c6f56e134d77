"""One variable's verdict, and what is known of where and by how much it differs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

# Types of fields are needed when the program runs: documents are checked against them.
from msgspec import Struct

from ciwrap.details import (
    ChunkMap,
    Effect,
    Explanation,
    IndexBox,
    Number,
    Picture,
    ShareMap,
    TreeLevel,
    View,
)
from ciwrap.model.drift import share_interval
from ciwrap.model.rules import ErrorBound, Evidence, VariableId
from ciwrap.model.text_result import TextResult
from ciwrap.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    """One element of a suspect chunk that left its cell, told by the golden's digest without the
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


class VariableResult(Struct, frozen=True):
    """The verdict on one variable, and what it rests on. Counts are of elements. None means: not
    known on this evidence.

    iteration, rank: None where the path tells none. evidence: what the verdict rests on; None if
    there was no golden variable. reason: why it is not comparable, in one line. dtype, shape: of
    the new run. golden_dtype, golden_shape, golden_labels: only where they are others. labels: what
    else the new run says of the variable (units, names of dimensions, coordinates), as (key, text).
    mask: the boolean variable whose true elements count as zero. aligned_by: the id variable that
    ordered the rows. combine: how atol and rtol make one bound, `both` (the smaller part counts) or
    `either` (the larger one); None for their sum. expectation: `expect` or `range`, the key of the
    configuration that says what the numbers have to be, where no golden does. period: differences
    are modulo this, one number for all or one for each component. source_path: the file it was read
    from. golden_root, root: of its trees, in hexadecimal. byte_count: of the variable.

    element_count: of the variable. masked_count: elements that the mask took out of the comparison.
    has_fill_values: whether elements that hold a fill value on both sides were not compared as
    numbers; how many is not counted. differing_count: elements beyond the bound; None if only
    suspect chunks are known, then the truth lies between the next two. differing_count_at_most: the
    elements of all suspect chunks. first_index: of the first differing element, in the variable's
    own dimensions. first_differences: the first few differing elements.

    chunk_count: leaves of the tree. suspect_chunks: leaves whose digests differ. suspect_ranges:
    the first few ranges of neighbouring ones. suspect_range_count: all of them. solved_chunks:
    suspect ones of which it is known which elements moved, though the golden's data are not at
    hand. moved_elements: the first few of these.

    max_abs_difference, mean_abs_difference: over pairs of finite numbers; None where digests have
    settled a part that may hold a larger one. max_rel_difference,
    mean_rel_difference: |new - golden| / |golden|, over finite pairs with golden not 0; likewise.
    max_abs_index, max_rel_index: where the largest is. max_bound_share: largest |new - golden| /
    bound; infinite for a bound of 0, where only one side is finite, or beyond what a double holds.
    bound_share_histogram: 34 counts of |new - golden| / bound: 0; below 2^-16; then [2^(i-18),
    2^(i-17)) for i = 2 to 32; beyond or not finite. Exactly the bound is in class 17, and what
    differs in 18 and above. nan_mismatch_count: NaN without a match.
    inf_mismatch_count: infinities not met by the same infinity. missing_mismatch_count: fill values
    on one side only. Of complex numbers these three count each part.

    residue_levels: of the golden's residues. guaranteed_share: drift up to this share of the bound
    never raises an alarm. max_drift_share: the largest share of the bound used up; on evidence of
    residues, over the matching chunks and to within one of their steps. drift_share_from,
    drift_share_to: it lies between these, whatever the evidence; where chunks are suspect, that of
    the others. drift_histogram: elements that drifted by 0, 1, ... h steps of the residues.
    new_values: of the new run in the suspect chunks, where the golden's data are not at hand.

    differing_box: the smallest that holds all differing elements. explanations: what the differing
    elements have in common, the best first; each was held against all of them. details: samples
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

    residue_levels: int | None = None

    guaranteed_share: Number | None = None
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
            raise ValueError(f"{self.id}: a match with {self.differing_count} differing elements")
        may_be_empty = self.verdict is Verdict.MATCH and self.element_count and self.masked_count
        if may_be_empty and not self.compared_elements:
            raise ValueError(f"{self.id}: a match of which the mask left no element to compare")
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
        return max([self.guaranteed_share or 0.0, *moved])

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

    First the verdict, as exit codes have it: not comparable, differ, suspect, match. Then the
    largest known share of the bound; where nothing but equal numbers match, every difference is
    infinitely many times the bound, so the size of the largest one is next. Then how many elements
    differ, or may.
    """
    count = one.differing_count
    if count is None:
        count = one.differing_count_at_most or 0
    share, size = one.known_share, one.max_abs_difference or 0.0
    return one.verdict.severity, _ordered(share), _ordered(size), count


def _ordered(value: float) -> float:
    """A document may claim NaN, which has no place in an order."""
    return 0.0 if math.isnan(value) else value


def worst_first(results: Iterable[VariableResult]) -> list[VariableResult]:
    """By `severity`; equally bad ones by iteration, rank and name."""
    ordered = sorted(results, key=lambda one: one.id.sort_key)
    return sorted(ordered, key=severity, reverse=True)


def worst_of(results: Iterable[VariableResult]) -> VariableResult:
    """The worst of those whose numbers differ, or may; where there are none, the worst of all."""
    ordered = worst_first(results)
    return next((one for one in ordered if one.verdict.is_alarm), ordered[0])
