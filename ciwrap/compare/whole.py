"""The result of a large variable, put together from the results of its parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.compare.law import not_comparable
from ciwrap.compare.parts import MOST_ELEMENTS
from ciwrap.errors import NotComparableError
from ciwrap.model import VariableResult, Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap.compare.outcome import PartSums
    from ciwrap.model import VariableId

# The variable has the sum of these counts.
_COUNTS = (
    "differing_count",
    "nan_mismatch_count",
    "inf_mismatch_count",
    "missing_mismatch_count",
)
# Largest values, and where they are.
_LARGEST = (
    ("max_abs_difference", "max_abs_index"),
    ("max_rel_difference", "max_rel_index"),
    ("max_bound_share", None),
    ("max_drift_share", None),
    ("drift_share_from", None),
    ("drift_share_to", None),
)


def join_parts(results: Iterable[VariableResult], sums: Iterable[PartSums]) -> list[VariableResult]:
    """The results, those of one variable as one. Parts, and what their means are made of, come in
    the order of their elements.
    """
    found: dict[VariableId, list[VariableResult]] = {}
    for result in results:
        found.setdefault(result.id, []).append(result)
    terms: dict[VariableId, list[PartSums]] = {}
    for one in sums:
        terms.setdefault(one.variable, []).append(one)
    return [_joined(parts, terms.get(identity, [])) for identity, parts in found.items()]


def _joined(parts: Sequence[VariableResult], terms: Sequence[PartSums]) -> VariableResult:
    failed = [part for part in parts if part.verdict is Verdict.NOT_COMPARABLE]
    if failed:
        return failed[0]
    if terms and sum(one.element_count for one in terms) != math.prod(parts[0].shape or ()):
        # Who had a part may not have found the variable at all, and then says nothing of it.
        return not_comparable(parts[0], NotComparableError("a part of it was not compared"))
    if len(parts) == 1:
        return parts[0]
    differing = [part for part in parts if part.verdict is not Verdict.MATCH]
    first = (differing or parts)[0]
    said: dict[str, Any] = {name: _sum(getattr(part, name) for part in parts) for name in _COUNTS}
    for name, place in _LARGEST:
        said |= _largest(parts, name, place)
    histograms = [
        part.bound_share_histogram for part in parts if part.bound_share_histogram is not None
    ]
    return replace(
        first,
        **said,
        bound_share_histogram=None
        if len(histograms) < len(parts)
        else tuple(map(sum, zip(*histograms, strict=True))),
        first_differences=tuple(one for part in parts for one in part.first_differences)[
            :MOST_ELEMENTS
        ],
        **_means(parts, terms),
    )


def _means(parts: Sequence[VariableResult], terms: Sequence[PartSums]) -> dict[str, Any]:
    """Of all finite pairs; None where a part has none to tell of."""
    if len(terms) != len(parts) or any(part.mean_abs_difference is None for part in parts):
        return {"mean_abs_difference": None, "mean_rel_difference": None}
    count, nonzero = (sum(counts) for counts in zip(*map(_counts, terms), strict=True))
    return {
        "mean_abs_difference": sum(one.sum_abs for one in terms) / count if count else 0.0,
        "mean_rel_difference": sum(one.sum_rel for one in terms) / nonzero if nonzero else 0.0,
    }


def _counts(one: PartSums) -> tuple[int, int]:
    return one.finite_count, one.nonzero_count


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def _largest(parts: Sequence[VariableResult], name: str, place: str | None) -> dict[str, Any]:
    """The largest of all parts, of equal ones the first, as a single comparison has it."""
    best = None
    for part in parts:
        value = getattr(part, name)
        has_place = place is None or getattr(part, place) is not None
        if value is not None and has_place and (best is None or value > getattr(best, name)):
            best = part
    if best is None:
        best = parts[0]
    value = getattr(best, name)
    assert value is None or not math.isnan(value)
    return {name: value} | ({} if place is None else {place: getattr(best, place)})
