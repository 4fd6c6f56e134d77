"""From what the core found to the result of a variable, field by field.

The bound of a result is the one that the core compared by: of what was asked, what the type allows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.compare.parts import MOST_ELEMENTS, judged_elements, suspect_ranges, to_index
from ciwrap.details import BOUND_CLASS
from ciwrap.model import ChunkRange, Evidence, VariableResult, Verdict
from ciwrap.model.drift import share_interval
from ciwrap.structs import Struct, replace
from ciwrap.trees.bounds import bound_of, guaranteed_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.compare.parts import ReadElements
    from ciwrap.compare.solve import Solved


class Suspects(Struct, frozen=True):
    """What trees say of a variable: the leaves that do not match, ascending, of so many."""

    leaves: NDArray[np.int64]
    leaf_count: int


def with_elements(
    result: VariableResult,
    comparison: _core.Comparison,
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    suspects: Suspects | None,
    *,
    all_compared: bool,
    read_elements: ReadElements,
) -> VariableResult:
    """The result once elements were compared: exact counts and indices.

    suspects: None without trees. all_compared: whether every element was, or those of suspect
    chunks only. Then means and histogram would speak of a part and are left out, and so are maxima
    that may lie elsewhere. read_elements: is asked for the first few differing elements.
    """
    differing = int(comparison.differing_count)
    is_known = bool(all_compared or differing or parameters.kind == "exact")
    is_number = parameters.dtype[1:2] not in ("S", "U")
    has_means = all_compared and is_number
    is_whole = all_compared or parameters.kind == "exact"
    knows_abs = is_number and (is_whole or _is_largest_abs(comparison, parameters))
    knows_rel = is_number and (is_whole or _is_largest_rel(comparison, parameters))
    # Where no pair of numbers has a difference, none is the largest.
    has_abs = knows_abs and comparison.max_abs_index >= 0
    has_rel = knows_rel and comparison.max_rel_index >= 0
    share = float(comparison.max_bound_share) if is_known else None
    count = math.prod(shape)
    ranges: tuple[ChunkRange, ...] = ()
    range_count = None if suspects is None else 0
    if suspects is not None and suspects.leaves.size:
        ranges, range_count, _ = suspect_ranges(suspects.leaves, parameters, shape, count)
    result = replace(
        result,
        verdict=Verdict.DIFFER if differing else Verdict.MATCH,
        reason=None,
        bound=bound_of(parameters),
        element_count=count,
        differing_count=differing,
        chunk_count=None if suspects is None else suspects.leaf_count,
        suspect_chunks=None if suspects is None else int(suspects.leaves.size),
        suspect_ranges=ranges,
        suspect_range_count=range_count,
        nan_mismatch_count=int(comparison.nan_mismatch_count),
        inf_mismatch_count=int(comparison.inf_mismatch_count),
        missing_mismatch_count=int(comparison.missing_mismatch_count),
        max_bound_share=share,
        max_abs_difference=float(comparison.max_abs_difference) if knows_abs else None,
        max_abs_index=to_index(comparison.max_abs_index, shape) if has_abs else None,
        max_rel_difference=float(comparison.max_rel_difference) if knows_rel else None,
        max_rel_index=to_index(comparison.max_rel_index, shape) if has_rel else None,
        bound_share_histogram=_histogram(comparison) if all_compared else None,
        mean_abs_difference=float(comparison.mean_abs_difference) if has_means else None,
        mean_rel_difference=float(comparison.mean_rel_difference) if has_means else None,
        max_drift_share=share if all_compared else result.max_drift_share,
        drift_share_from=share if all_compared else result.drift_share_from,
        drift_share_to=share if all_compared else result.drift_share_to,
    )
    if not differing:
        return result
    indices = comparison.indices[:MOST_ELEMENTS].tolist()
    return replace(
        result,
        first_index=to_index(comparison.first_index, shape),
        first_differences=judged_elements(indices, parameters, shape, read_elements),
    )


def _histogram(comparison: _core.Comparison) -> tuple[int, ...]:
    """The core's counts of shares; what has a share of 1 is within its bound, or just beyond it
    where that is rounded, as the count of differing elements tells.
    """
    counts = [int(count) for count in comparison.histogram]
    within = sum(counts[BOUND_CLASS:]) - int(comparison.differing_count)
    counts[BOUND_CLASS] -= within
    counts[BOUND_CLASS - 1] += within
    return tuple(counts)


def _is_largest_abs(comparison: _core.Comparison, parameters: _core.TreeParameters) -> bool:
    """Whether no element of a matching chunk can have a larger difference: under rtol or ulps, a
    large number that is within its bound may be further off than a small one beyond its own.
    """
    is_absolute = not (parameters.rtol or parameters.ulps)
    return is_absolute and float(comparison.max_abs_difference) >= parameters.atol > 0


def _is_largest_rel(comparison: _core.Comparison, parameters: _core.TreeParameters) -> bool:
    """Likewise of relative differences, which atol bounds for no number."""
    is_relative = not (parameters.atol or parameters.ulps)
    return is_relative and float(comparison.max_rel_difference) >= parameters.rtol > 0


def with_roots(
    result: VariableResult, reference: bytes, new: bytes, values: Values | None = None
) -> VariableResult:
    """The result, naming the roots of both trees, and how much a mask took out of the new values.

    values: of the new run, where the variable may have a mask.
    """
    masked = None if values is None or result.mask is None else values.masked_count
    return replace(result, golden_root=reference.hex(), root=new.hex(), masked_count=masked)


def with_digests(
    result: VariableResult,
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    suspects: Suspects,
    *,
    drift: _core.Drift | None = None,
) -> VariableResult:
    """The result by digests alone, without the reference's data.

    drift: of digests that were made against residues.
    """
    count = math.prod(shape)
    ranges, range_count, suspect_elements = suspect_ranges(
        suspects.leaves, parameters, shape, count
    )
    suspect_count = int(suspects.leaves.size)
    # Whether a suspect chunk surely holds a differing element.
    at_least = suspect_count if suspect_count and parameters.suspect_is_proof else 0
    verdict = Verdict.DIFFER if at_least else Verdict.SUSPECT if suspect_count else Verdict.MATCH
    if drift is not None:
        result = with_drift(result, float(drift.max_share), parameters)
    return replace(
        result,
        verdict=verdict,
        reason=None,
        bound=bound_of(parameters),
        element_count=count,
        chunk_count=suspects.leaf_count,
        suspect_chunks=suspect_count,
        suspect_ranges=ranges,
        suspect_range_count=range_count,
        differing_count=None if suspect_count else 0,
        differing_count_at_least=at_least if suspect_count else None,
        differing_count_at_most=suspect_elements if suspect_count else None,
        # Equal codes are equal numbers.
        max_abs_difference=0.0 if not suspect_count and parameters.kind == "exact" else None,
        drift_histogram=None if drift is None else tuple(map(int, drift.histogram)),
    )


def judged_by_digests(
    result: VariableResult,
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    suspects: Suspects,
) -> VariableResult:
    """The result where data that would decide are not at hand.

    Where digests match, so do the values. Where they do not, equality is refuted if it was asked
    for, and residues tell as much as they tell of a golden; else the variable is not comparable.
    """
    is_by_residues = result.residue_levels is not None
    result = replace(result, evidence=Evidence.RESIDUES if is_by_residues else Evidence.TREE)
    found = with_digests(result, parameters, shape, suspects)
    if found.verdict is not Verdict.SUSPECT or is_by_residues:
        return found
    count, total = suspects.leaves.size, suspects.leaf_count
    verb = "is" if count == 1 else "are"
    return replace(
        found,
        verdict=Verdict.NOT_COMPARABLE,
        reason=f"{count} of {total} chunk{'' if total == 1 else 's'} {verb} open, whether within"
        " the bound or beyond it: data needed",
        differing_count_at_least=None,
    )


def with_solved(result: VariableResult, solved: Solved) -> VariableResult:
    """The result of suspect chunks, once it is known of some which elements moved, and how far.

    An element surely beyond its bound is a difference. Where all suspect chunks are solved and all
    that moved is within the bound, it is a match: everything else lies in the golden's cells.
    """
    if not solved.elements:
        return result
    # A complex element may have moved in both of its parts.
    sure = {one.index for one in solved.elements if one.is_beyond is True}
    open_ = {one.index for one in solved.elements if one.is_beyond is None} - sure
    beyond = len(sure)
    is_within = all(one.is_beyond is False for one in solved.elements)
    result = replace(
        result,
        solved_chunks=solved.chunk_count,
        moved_elements=solved.elements[:MOST_ELEMENTS],
        differing_count_at_least=max(result.differing_count_at_least or 0, beyond),
    )
    if solved.chunk_count == result.suspect_chunks:
        result = replace(
            result,
            differing_count=None if open_ else beyond,
            differing_count_at_most=beyond + len(open_),
        )
        if is_within:
            low, high = result.used_interval or (0.0, 0.0)
            low = max([low, *(one.share_from or 0.0 for one in solved.elements)])
            high = max([high, *(one.share_to or 0.0 for one in solved.elements)])
            return replace(
                result,
                verdict=Verdict.MATCH,
                max_drift_share=(low + high) / 2,
                drift_share_from=low,
                drift_share_to=high,
                details=None,
            )
    return replace(result, verdict=Verdict.DIFFER) if beyond else result


def with_residues(result: VariableResult, parameters: _core.TreeParameters) -> VariableResult:
    """The result, saying how sure a verdict on residues of that kind is."""
    return replace(
        result,
        residue_levels=parameters.residue_levels,
        guaranteed_share=guaranteed_share(parameters),
    )


def with_drift(
    result: VariableResult, max_share: float, parameters: _core.TreeParameters
) -> VariableResult:
    """The result, saying how much of the bound the matching chunks used up, and how surely."""
    low, high = share_interval(max_share, parameters.residue_levels, guaranteed_share(parameters))
    return replace(result, max_drift_share=max_share, drift_share_from=low, drift_share_to=high)


def matched_by_digests(
    result: VariableResult, parameters: _core.TreeParameters, leaf_count: int, element_count: int
) -> VariableResult:
    """The result of two captured trees of which one look at their roots says that they match."""
    return replace(
        result,
        verdict=Verdict.MATCH,
        reason=None,
        bound=bound_of(parameters),
        evidence=Evidence.RESIDUES if result.residue_levels is not None else Evidence.TREE,
        element_count=element_count,
        differing_count=0,
        chunk_count=leaf_count,
        suspect_chunks=0,
        max_abs_difference=0.0 if parameters.kind == "exact" else None,
    )
