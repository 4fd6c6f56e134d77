"""Sets verdicts: of a variable by what the core found (`with_*`), of a check by its variables.

A result's bound is the one that the core compared by: what was asked, if the type allows it.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.values import UNREAD_LABEL, Signature
from ciwrap.base.errors import (
    CiwrapError,
    NotComparableError,
    UnreadFileError,
    VariableExtraError,
    VariableMissingError,
    escape,
    one_line,
)
from ciwrap.base.files import is_packed
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import (
    GOLDEN,
    MOST_ELEMENTS,
    judged_elements,
    message_of,
    not_comparable,
    says_why,
    suspect_ranges,
    to_index,
)
from ciwrap.formats.find_outputs import glob_of, kind_of
from ciwrap.golden.trees import (
    bound_of,
    bound_ratio,
    describe_bound,
    guaranteed_share,
    is_other_bound,
    proven_share,
)
from ciwrap.model import (
    CheckResult,
    ChunkRange,
    Evidence,
    Message,
    MessageLevel,
    StrictVariables,
    VariableId,
    VariableResult,
    Verdict,
    severity,
)
from ciwrap.model.results import grouped_plural, names_text
from ciwrap.model.settings import number_text
from ciwrap.model.variable_result import (
    BOUND_CLASS,
    Cause,
    Explanation,
    share_interval,
    step_interval,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.check.solve import LeastShares, Solved
    from ciwrap.check.two_sides import Explainer, Findings, ReadElements, Wording
    from ciwrap.formats.catalog import Rules


class Suspects(Struct, frozen=True):
    """What trees say of a variable: the leaves that do not match, ascending, of so many. least:
    what summaries prove of these.
    """

    leaves: NDArray[np.int64]
    leaf_count: int
    least: LeastShares | None = None


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
    share = _one_zero(comparison.max_bound_share) if is_known else None
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
        not_finite_count=_not_finite_count(comparison, parameters) if all_compared else None,
        max_bound_share=share,
        max_abs_difference=_one_zero(comparison.max_abs_difference) if knows_abs else None,
        max_abs_index=to_index(comparison.max_abs_index, shape) if has_abs else None,
        max_rel_difference=_one_zero(comparison.max_rel_difference) if knows_rel else None,
        max_rel_index=to_index(comparison.max_rel_index, shape) if has_rel else None,
        bound_share_histogram=_histogram(comparison) if all_compared else None,
        mean_abs_difference=_one_zero(comparison.mean_abs_difference) if has_means else None,
        mean_rel_difference=_one_zero(comparison.mean_rel_difference) if has_means else None,
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


def _not_finite_count(comparison: _core.Comparison, parameters: _core.TreeParameters) -> int | None:
    """How many elements are NaN or infinite on both sides alike; of complex numbers, parts. None
    where fill values, which are neither, are among them.
    """
    if parameters.dtype[1:2] not in "fcb" or parameters.dtype[1:] == "b1":
        return 0
    if parameters.fill_values:
        return None
    lost = (comparison.nan_mismatch_count, comparison.inf_mismatch_count)
    scalars = comparison.element_count * parameters.scalars_per_element
    return max(0, int(scalars - comparison.finite_count - sum(lost)))


def _histogram(comparison: _core.Comparison) -> tuple[int, ...]:
    """The core's counts of shares; what has a share of 1 is within its bound, or just beyond it
    where that is rounded, as the count of differing elements tells.
    """
    counts: list[int] = comparison.histogram.tolist()
    within = sum(counts[BOUND_CLASS:]) - int(comparison.differing_count)
    counts[BOUND_CLASS] -= within
    counts[BOUND_CLASS - 1] += within
    return _one_histogram(tuple(counts))


@lru_cache(maxsize=256)
def _one_histogram(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Arrays in which nothing moved share it."""
    return counts


def _one_zero(value: float) -> float:
    """The number; a zero as the one object that all results share."""
    return float(value) or 0.0


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
    ours = reference.hex()
    theirs = ours if new == reference else new.hex()
    return replace(result, golden_root=ours, root=theirs, masked_count=masked)


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
    # How many suspect chunks surely hold a differing element.
    proven, share = _proven(suspects.least, 1.0)
    at_least = suspect_count if parameters.suspect_is_proof else proven
    verdict = Verdict.DIFFER if at_least else Verdict.UNDECIDED if suspect_count else Verdict.MATCH
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
        least_share=share,
        explanations=_became_nan(suspects.least),
        # Equal codes are equal numbers.
        max_abs_difference=0.0 if not suspect_count and parameters.kind == "exact" else None,
        drift_histogram=None if drift is None else tuple(map(int, drift.histogram)),
    )


def _became_nan(least: LeastShares | None) -> tuple[Explanation, ...]:
    """What summaries prove of NaN: how many are new."""
    count = 0 if least is None else least.nan_count
    return (Explanation(Cause.ALL_NAN, count, count, words=""),) if count else ()


def _proven(least: LeastShares | None, bound: float) -> tuple[int, float | None]:
    """In how many chunks a value surely moved by more than so many of the golden's own bounds, and
    the largest share of these bounds that is sure; None if no distance is.
    """
    if least is None:
        return 0, None
    is_proven = least.shares >= bound
    sizes = least.shares[is_proven & least.has_size & np.isfinite(least.shares)]
    return int(is_proven.sum()), float(sizes.max() / bound) if sizes.size and bound else None


def by_summaries_alone(
    result: VariableResult,
    asked: _core.TreeParameters,
    made: _core.TreeParameters,
    least: LeastShares,
) -> VariableResult | None:
    """The result of two trees whose digests tell nothing of each other, since each was made with
    residues of its own; None if the summaries of all their chunks prove no difference.
    """
    bound = bound_ratio(asked, made)[1]
    is_proven = (least.shares >= bound) & (least.shares > 0)
    if not is_proven.any():
        return None
    leaves = np.arange(least.shares.size)
    count = int(np.count_nonzero(is_proven))
    found = with_digests(
        replace(result, evidence=Evidence.TREE),
        made,
        result.shape or (),
        Suspects(leaves, leaves.size),
    )
    is_other = is_other_bound(asked, made)
    return replace(
        found,
        verdict=Verdict.DIFFER,
        bound=bound_of(asked),
        golden_bound=describe_bound(made) if is_other else None,
        differing_count_at_least=count,
        least_share=_proven(least, bound)[1] if bound else None,
    )


def with_other_bound(
    result: VariableResult,
    asked: _core.TreeParameters,
    made: _core.TreeParameters,
    shape: tuple[int, ...],
    changed: Suspects,
    drift: _core.Drift | None,
    most_steps: int | None = None,
) -> tuple[VariableResult, Suspects]:
    """The result by digests that were made with another bound than is asked for, and the chunks
    that may hold an element beyond the one asked for.

    drift, most_steps: of digests that were made against residues, how far values of each matching
    chunk moved, or of all of them together at most; None without residues.

    What is known of each chunk is the least and the greatest share of the old bound by which a
    value of it moved; of one whose digest differs the least alone. That is within the new bound,
    beyond it, or either.
    """
    least, greatest = bound_ratio(asked, made)
    count = changed.leaf_count
    steps = np.zeros(count, dtype=np.uint8) if drift is None else drift.leaf_max_level
    has_changed = np.zeros(count, dtype=bool)
    has_changed[changed.leaves] = True
    low, high = _moved_shares(made, drift, most_steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        lows = np.where(has_changed, proven_share(made), low[steps * ~has_changed])
        proofs = lows.copy()
        if changed.least is not None:
            proofs[changed.leaves] = np.maximum(lows[changed.leaves], changed.least.shares)
        highs = high[steps * ~has_changed]
        is_open = has_changed | (highs > least)
        is_beyond = is_open & (has_changed | (steps > 0)) & (proofs >= greatest)
        least_shares = np.nan_to_num(lows / greatest, nan=0.0)
        greatest_shares = np.nan_to_num(highs / least, nan=0.0)
        at_all = np.nan_to_num(steps / low.size / least, nan=0.0)
    suspects = Suspects(np.flatnonzero(is_open).astype(np.int64), changed.leaf_count)
    result = with_digests(result, made, shape, suspects)
    proven = int(np.count_nonzero(is_beyond))
    if suspects.leaves.size:
        verdict = Verdict.DIFFER if proven else Verdict.UNDECIDED
        result = replace(result, verdict=verdict, differing_count_at_least=proven)
    if not bound_of(asked).is_exact:  # a bound of zero has no shares
        is_told = result.residue_levels is not None and suspects.leaves.size > 0
        result = replace(
            result,
            least_share=_proven(changed.least, greatest)[1],
            guaranteed_share=float(least_shares[is_open].min()) if is_told else None,
            max_drift_share=None if drift is None else float(at_all[~is_open].max(initial=0.0)),
            drift_share_from=float(least_shares[~is_open].max(initial=0.0)),
            drift_share_to=float(greatest_shares[~is_open].max(initial=0.0)),
        )
    else:
        result = replace(result, guaranteed_share=None)
    return replace(result, bound=bound_of(asked)), suspects


def _moved_shares(
    made: _core.TreeParameters, drift: _core.Drift | None, most_steps: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how large a share of its bound a value of a matching chunk has moved, at least and at
    most, for each largest drift in steps of the residues.
    """
    share = guaranteed_share(made)
    if drift is None and most_steps is not None:
        return np.zeros(1), np.full(1, step_interval(most_steps, made.residue_levels, share)[1])
    if drift is None:  # digests alone: somewhere in the cell
        return np.zeros(1), np.full(1, 0.0 if made.kind == "exact" else 1.0)
    steps = range(drift.histogram.size)
    low, high = zip(*(step_interval(one, made.residue_levels, share) for one in steps), strict=True)
    return np.array(low), np.array(high)


def judged_by_digests(
    result: VariableResult,
    asked: _core.TreeParameters,
    made: _core.TreeParameters,
    suspects: Suspects,
    drift: _core.Drift | None = None,
    most_steps: int | None = None,
    solve: Callable[[], Solved] | None = None,
) -> VariableResult:
    """The result where data that would decide are not at hand.

    Where digests match, so do the values. Where they do not, equality is refuted if it was asked
    for, and residues tell as much as they tell of a golden; else the variable is not comparable.
    asked, made, drift, most_steps: as of `with_other_bound`. solve: which values of suspect chunks
    moved, where one side's are at hand.
    """
    is_by_residues = result.residue_levels is not None
    result = replace(result, evidence=Evidence.RESIDUES if is_by_residues else Evidence.TREE)
    shape = result.shape or ()
    if is_other_bound(asked, made):
        result = replace(result, golden_bound=describe_bound(made))
        found, suspects = with_other_bound(result, asked, made, shape, suspects, drift, most_steps)
    else:
        found = with_digests(result, made, shape, suspects)
    if solve is not None and suspects.leaves.size:
        found = with_solved(found, solve())
    if found.verdict is not Verdict.UNDECIDED or is_by_residues:
        return found
    count, total = suspects.leaves.size, suspects.leaf_count
    verb = "is" if count == 1 else "are"
    return replace(
        found,
        verdict=Verdict.NOT_COMPARABLE,
        reason=f"{count} of {total} block{'' if total == 1 else 's'} {verb} open, whether within"
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


# Variables of one check whose samples and maps are kept in memory.
MOST_DETAILED_NAMES = 200


def _with_known_masks(results: list[VariableResult]) -> list[VariableResult]:
    """The results; where masks differ, nobody says how many elements both sides masked.

    An element that one side alone masks is compared, as zero, and may be among those that differ.
    """
    other = {one.id for one in results if one.verdict is not Verdict.MATCH}
    return [
        replace(one, masked_count=None)
        if one.mask is not None and VariableId(one.mask, one.iteration, one.rank) in other
        else one
        for one in results
    ]


def check_result(
    name: str,
    outcome: Findings,
    rules: Rules,
    wording: Wording,
    *,
    messages: Iterable[str] = (),
    explain: Callable[[], Explainer] | None = None,
) -> CheckResult:
    """The check's result of all that was found. messages: warnings besides. explain: as of `Work`.

    What could not be read makes the whole not comparable, and so does nothing compared at all.
    """
    unused = [f"a capture is not used: {text}" for text in dict.fromkeys(outcome.unused)]
    of_texts = [one for one in outcome.results if one.text is not None or one.series is not None]
    notes = dict.fromkeys([*outcome.notes, *(_encoding_notes(of_texts) if of_texts else ())])
    warnings = (*messages, *notes, *unused)
    told = [Message(MessageLevel.WARNING, text) for text in warnings]
    told += [Message(MessageLevel.NOTE, text) for text in _worth_knowing(outcome, rules, wording)]
    if outcome.errors:
        told += grouped_messages(outcome.errors)
    if of_texts:
        told += [Message(MessageLevel.WARNING, text) for text in _too_fine(of_texts)]
    results = [_unless_unread(one, wording) for one in outcome.results]
    left_out = set(outcome.left_out)
    if outcome.missing or outcome.extra:
        for found in (outcome.missing, outcome.extra):
            # Whatever units they were found in.
            found.sort(key=attrgetter("id.sort_key"))
        left_out |= _add_one_sided(outcome, rules.strict_variables, wording, results, told)
    verdict = Verdict.worst(result.verdict for result in results)
    if outcome.errors:
        verdict = Verdict.NOT_COMPARABLE
    elif not results:
        text = "nothing was compared: no variable is on both sides and not ignored"
        told.append(Message(MessageLevel.ERROR, text))
    if verdict is not Verdict.MATCH:
        results = _with_known_masks(results)
        if explain is not None:
            # A file that could not be read may hold what seems to be missing.
            lost = [] if outcome.errors else [one for one in outcome.missing if not says_why(one)]
            gone = {one.id for one in lost} - left_out
            extra = {one.id for one in outcome.extra}
            results = explain().together(results, gone, extra)
    results.sort(key=attrgetter("id.sort_key"))
    if verdict is not Verdict.MATCH:
        results = fewer_details(results)
    return CheckResult(
        name=name,
        verdict=verdict,
        variables=tuple(results),
        missing_variables=tuple(one.id for one in outcome.missing),
        extra_variables=tuple(one.id for one in outcome.extra),
        messages=tuple(told),
        ignored_variables=tuple(sorted(outcome.ignored)),
        uncommon=outcome.uncommon,
        left_out_variables=tuple(sorted(left_out)),
        engine=outcome.engine,
        bytes_read=outcome.capture_bytes_read + outcome.data_bytes_read,
    )


def _has_lines(result: VariableResult) -> bool:
    return result.text is not None and result.text.lines != (0, 0)


def unless_nothing(check: CheckResult) -> CheckResult:
    """The result of files; not comparable where all that matches has neither elements nor lines, as
    tables of a program that never ran.
    """
    some = any(one.element_count != 0 or _has_lines(one) for one in check.variables)
    if check.verdict is not Verdict.MATCH or some or not check.variables:
        return check
    count = grouped_plural(len(check.variables), "variable")
    told = Message(MessageLevel.ERROR, f"nothing was compared: {count} without values")
    return replace(check, verdict=Verdict.NOT_COMPARABLE, messages=(*check.messages, told))


_LIKE_FORTRAN = " (it looks like records of unformatted Fortran: the reader 'fortran' takes them)"


def _unless_unread(result: VariableResult, wording: Wording) -> VariableResult:
    """The result; of a file that no reader knows, that other bytes are not comparable."""
    if result.verdict is not Verdict.DIFFER or UNREAD_LABEL not in result.labels:
        return result
    from ciwrap.formats.fortran import looks_like_fortran

    path = None if result.source_path is None else Path(result.source_path)
    looks = "" if path is None or not looks_like_fortran(path) else _LIKE_FORTRAN
    # A capture holds the file under its name; what is packed has another one.
    name = Path(result.name)
    glob = glob_of(path if path is not None and (is_packed(path) or not name.suffix) else name)
    remedy = (
        f"say --format '{glob}=READER' (ciwrap.yaml: 'formats'), or leave it out with 'exclude'"
    )
    if wording is GOLDEN:
        remedy += ", or, if the new bytes are right, accept the outputs"
    error = UnreadFileError(
        f"differs in bytes, and no reader knows what they mean{looks}",
        file=result.source_path,
        remedy=remedy,
    )
    return replace(not_comparable(result, error), first_differences=(), first_index=None)


def _worth_knowing(outcome: Findings, rules: Rules, wording: Wording) -> Iterator[str]:
    """How variables were compared, where somebody might expect something else."""
    yield from _other_bounds(outcome.results, "golden" if wording is GOLDEN else "capture")
    yield from _stored_otherwise(outcome.results, wording)
    yield from _not_finite(outcome.results)
    yield from _without_rtol(outcome, rules, wording)
    if outcome.attributes_left_out:
        yield _attributes_text(outcome, wording)


def _names_of(results: Iterable[VariableResult]) -> str:
    """The names of variables, each once, the first few of them."""
    return names_text(list(dict.fromkeys(escape(one.name) for one in results)), _MOST_NAMES)


def _alike(
    results: Iterable[VariableResult], said: Callable[[VariableResult], str | None]
) -> Iterator[tuple[str, str]]:
    """The names of variables of which the same is to be said, and that. said: None for nothing."""
    groups: dict[str, list[VariableResult]] = {}
    for result in results:
        text = said(result)
        if text is not None:
            groups.setdefault(text, []).append(result)
    for text, group in groups.items():
        yield _names_of(group), text


def _other_bounds(results: Iterable[VariableResult], what: str) -> Iterator[str]:
    """Of variables whose golden or capture was made with another bound than they are judged by."""
    for names, bound in _alike(results, lambda one: one.golden_bound):
        made = f"{names}: the {what} was made with {bound}"
        yield f"{made}; judged by the bound that is asked for now"


def _without_rtol(outcome: Findings, rules: Rules, wording: Wording) -> Iterator[str]:
    """Of whole numbers that differ, where a bound was asked for that only other numbers have."""
    found = []
    for one in outcome.results:
        if one.verdict is not Verdict.DIFFER or one.dtype is None or one.dtype[1:2] not in "iu":
            continue
        asked = rules.settings_for(one.id, Signature(one.dtype, one.shape or (), one.labels)).bound
        if asked.rtol or asked.ulps:
            found.append(one)
    if found:
        atol = "'atol'" if wording is GOLDEN else "--atol"
        yield (
            f"{_names_of(found)}: whole numbers, to which rtol and ulps do not apply; {atol} does"
        )


def _not_finite(results: Iterable[VariableResult]) -> Iterator[str]:
    """Of elements that are equal without being numbers."""
    some = [one for one in results if one.not_finite_count]
    if some:
        count = sum(one.not_finite_count or 0 for one in some)
        verb = "is" if count == 1 else "are"
        what = f"{grouped_plural(count, 'value')} {verb} NaN or infinite"
        yield f"{_names_of(some)}: {what} on both sides, which counts as equal"


def _attributes_text(outcome: Findings, wording: Wording) -> str:
    said = "'options: {attributes: true}'" if wording is GOLDEN else "--option attributes=true"
    count = outcome.attributes_left_out
    verb = "was" if count == 1 else "were"
    return f"{grouped_plural(count, 'attribute')} {verb} not compared; {said} compares them"


def _stored_otherwise(results: Iterable[VariableResult], wording: Wording) -> Iterator[str]:
    """Of variables that both sides store in ways of which none is a difference."""
    strict = "'strict: {dtype: as-stored}'" if wording is GOLDEN else "--strict dtype=as-stored"
    for names, how in _alike(results, _how_stored):
        yield f"{names}: {how} (no difference; {strict} makes it one)"


def _how_stored(result: VariableResult) -> str | None:
    """In what way the two sides are stored otherwise; None if they are not, or could not be
    compared.
    """
    one, other = result.golden_dtype, result.dtype
    if one is None or other is None or result.verdict is Verdict.NOT_COMPARABLE:
        return None
    if one[1:] == other[1:]:
        return "stored in another byte order"
    if {one[1:], other[1:]} == {"i8", "f8"}:
        return "whole numbers on one side only, compared as float64"
    return "texts of another fixed length" if one[1:2] == other[1:2] == "S" else None


def _too_fine(results: Iterable[VariableResult]) -> Iterator[str]:
    """Of bounds that no two different printed numbers can meet."""
    for result in results:
        if result.series is not None and result.series.is_too_fine and result.bound is not None:
            bound = result.bound.rtol or result.bound.atol
            digits = grouped_plural(result.series.printed_digits or 0, "printed digit")
            yield (
                f"{result.name}: the bound {number_text(bound)} is finer than the {digits}, so only"
                " equal numbers match"
            )


def _add_one_sided(
    outcome: Findings,
    strict: StrictVariables,
    wording: Wording,
    results: list[VariableResult],
    messages: list[Message],
) -> set[VariableId]:
    """Adds what one side alone has: results (not comparable) where that is refused, else messages.

    Returns the variables of the reference that are gone, and of which only a warning tells.
    """
    let_go = set()
    here, there = wording.sides
    gone = f"only {here}, not {there}", wording.if_missing
    new = f"only {there}, not {here}", wording.if_extra
    if outcome.errors:
        gone = _as_far_as_read(gone[0])
        new = _as_far_as_read(new[0]) if wording.is_read_twice else new
    for result in outcome.missing:
        error = _error_of(result, VariableMissingError(gone[0], remedy=gone[1]))
        if strict.refuses_missing:
            results.append(not_comparable(result, error))
        else:
            let_go.add(result.id)
            messages.append(_about(result, error, MessageLevel.WARNING))
    is_allowed = strict is StrictVariables.ALLOW_NEW
    for result in outcome.extra:
        error = _error_of(result, VariableExtraError(new[0], remedy=new[1]))
        if strict.refuses_extra:
            results.append(not_comparable(result, error))
        else:
            level = MessageLevel.NOTE if is_allowed else MessageLevel.WARNING
            messages.append(_about(result, error, level))
    return let_go


def _error_of(result: VariableResult, alone: CiwrapError) -> CiwrapError:
    """What is reported of a variable of one side alone: why nothing can be read of it, if so."""
    return NotComparableError(str(result.reason)) if says_why(result) else alone


def _as_far_as_read(where: str) -> tuple[str, str]:
    """What is said of a variable, and its remedy, where a file that may hold it is an error."""
    return f"{where}, as far as files could be read", "first fix what the errors name"


def _about(result: VariableResult, error: CiwrapError, level: MessageLevel) -> Message:
    error.variable = result.id.text
    return message_of(error, level)


def fewer_details(results: Iterable[VariableResult]) -> list[VariableResult]:
    """The results, in their order, with the details that a DetailKeeper keeps."""
    keeper = DetailKeeper([])
    for result in results:
        keeper.add(result)
    return keeper.results


class DetailKeeper:
    """Adds results to a list, and lets each variable keep the details of its first checkpoint and
    of its worst one: what reports draw stays bounded, however many differ.
    """

    def __init__(self, results: list[VariableResult]) -> None:
        self.results = results
        self._detailed: dict[str, list[int]] = {}

    def add(self, result: VariableResult) -> None:
        position = len(self.results)
        self.results.append(result)
        if result.details is None:
            return
        kept = self._detailed.get(result.name)
        if kept is None:
            if len(self._detailed) < MOST_DETAILED_NAMES:
                self._detailed[result.name] = [position]
            else:
                self._drop(position)
            return
        dropped = position
        if severity(result) > severity(self.results[kept[-1]]):
            dropped = kept.pop() if len(kept) > 1 else -1
            kept.append(position)
        if dropped >= 0:
            self._drop(dropped)

    def _drop(self, position: int) -> None:
        self.results[position] = replace(self.results[position], details=None)


def _encoding_notes(results: Iterable[VariableResult]) -> list[str]:
    """A warning for texts that are no UTF-8; [] if there are none."""
    names = [one.id.text for one in results if one.text is not None and one.text.not_utf8]
    if not names:
        return []
    return [f"{names_text(names, 1)}: is not UTF-8 and was read as Latin-1"]


_MOST_NAMES = 3
_MOST_KINDS = 8
_MOST_MESSAGES = 50


def grouped_messages(errors: Iterable[CiwrapError]) -> list[Message]:
    """The errors as messages, in the order in which they first came.

    Errors of one kind that say the same of several files, or of several variables, are one message.
    """
    groups: dict[object, list[CiwrapError]] = {}
    for error in errors:
        is_of_file = error.file is not None
        key = (type(error), error.message, error.remedy, is_of_file, error.variable is not None)
        groups.setdefault(key, []).append(error)
    shown = list(groups.values())[:_MOST_MESSAGES]
    messages = [_message(group) for group in shown]
    rest = sum(len(group) for group in groups.values()) - sum(len(group) for group in shown)
    if rest:
        text = f"... and {grouped_plural(rest, 'more error')}, each of another kind or place"
        messages.append(Message(MessageLevel.ERROR, text))
    return messages


def _message(group: Sequence[CiwrapError]) -> Message:
    first = group[0]
    if len(group) == 1:
        return message_of(first)
    if isinstance(first, UnreadFileError):
        text = _kinds_text(group)
    else:
        text = f"{_count_text(group)}: {first.message} ({_places_text(group)})"
    text = one_line(f"{text}; {first.remedy}" if first.remedy else text)
    return Message(MessageLevel.ERROR, text, slug=first.slug)


def _kinds_text(group: Sequence[CiwrapError]) -> str:
    """`47 files of 6 kinds were not compared: .log (3), ...; no reader knows ...`."""
    kinds = Counter(kind_of(Path(error.file or "")) for error in group)
    shown = kinds.most_common(_MOST_KINDS)
    said = ", ".join(f"{escape(kind)} ({count:,})" for kind, count in shown)
    if len(kinds) > len(shown):
        said += f" and {grouped_plural(len(kinds) - len(shown), 'more kind')}"
    return (
        f"{grouped_plural(len(group), 'file')} of {grouped_plural(len(kinds), 'kind')} were not"
        f" compared: {said}, such as {escape(group[0].file or '')}: {group[0].message}"
    )


def _count_text(group: Sequence[CiwrapError]) -> str:
    if group[0].file is not None:
        return grouped_plural(len({error.file for error in group}), "file")
    if group[0].variable is not None:
        return grouped_plural(len({error.variable for error in group}), "variable")
    return grouped_plural(len(group), "time")


def _places_text(group: Sequence[CiwrapError]) -> str:
    places = list(dict.fromkeys(error.where for error in group if error.where))
    return names_text(places, _MOST_NAMES)
