"""Whether what does not match was dealt out among the ranks in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.compare.over_checkpoints import MOST_BYTES
from ciwrap.details import MOST_EXPLANATIONS, Cause
from ciwrap.errors import CiwrapError
from ciwrap.model import Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.model import VariableId, VariableResult

    # The values of a variable on each rank; what is not at hand is left out.
    Parts = Iterable[tuple[VariableId, Values]]
    PartsOf = Callable[[VariableResult], tuple[Parts, Parts]]  # golden, new


def explain_ranks(results: list[VariableResult], parts_of: PartsOf) -> None:
    """Says of what does not match first if both sides have it on other ranks.

    parts_of: all variables of the name and iteration of a result, of both sides.
    """
    bad = [
        at
        for at, one in enumerate(results)
        if one.verdict is not Verdict.MATCH and one.rank is not None and not one.aligned_by
    ]
    at = min(bad, key=lambda one: results[one].id.sort_key, default=None)
    if at is None or results[at].text is not None or results[at].series is not None:
        return
    from ciwrap.compare.explain.decomposition import other_decomposition

    first = results[at]
    try:
        golden, new = (_arrays(parts) for parts in parts_of(first))
    except CiwrapError:  # the result tells of it
        return
    if not golden or not new:
        return
    told = other_decomposition(golden, new, first.bound)
    if told is not None:
        rest = [one for one in first.explanations if one.cause is not Cause.WIDER_BOUND]
        results[at] = replace(first, explanations=(told, *rest)[:MOST_EXPLANATIONS])


def parts_of_golden(
    variables: Mapping[VariableId, _core.GoldenVariable], catalog: Catalog, first: VariableResult
) -> tuple[Parts, Parts]:
    """The variable of a result on every rank, as the golden has kept it and as the outputs have."""
    from ciwrap.golden.variables import kept_values

    kept = (
        (identity, kept_values(golden))
        for identity, golden in variables.items()
        if is_part(identity, first) and golden.data is not None
    )
    new = (
        (identity, catalog.values(identity))
        for identity in catalog.entries
        if is_part(identity, first)
    )
    return kept, new


def is_part(identity: VariableId, first: VariableResult) -> bool:
    """Whether it is the variable of a result on some rank."""
    return (identity.name, identity.iteration) == (first.name, first.iteration)


def _arrays(parts: Parts) -> list[NDArray[Any]]:
    """The arrays of all ranks, in the order of the ranks; none if they are too large together."""
    from ciwrap.compare.shares import as_numbers

    found: dict[int, NDArray[Any]] = {}
    size = 0
    for identity, values in parts:
        size += values.byte_count
        if size > MOST_BYTES or identity.rank is None:
            return []
        numbers = as_numbers(values.read(0, values.element_count), values.dtype)
        if numbers is None:
            return []
        found[identity.rank] = numbers.reshape(values.shape)
    return [found[rank] for rank in sorted(found)]
