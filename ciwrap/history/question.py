"""What the trees leave open of one variable, and the result once its elements were compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ciwrap.compare.variable import element_result, not_comparable, reason_of
from ciwrap.errors import CiwrapError
from ciwrap.model import Evidence, VariableResult, Verdict
from ciwrap.readers.base import as_elements

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.history.stage_two import Streamed
    from ciwrap.model import VariableId


@dataclass(frozen=True, slots=True)
class Question:
    """What the trees leave open: the elements of `leaves` (None: all), and the rest of the result.

    suspects: None without trees.
    """

    identity: VariableId
    parameters: _core.TreeParameters
    shape: tuple[int, ...]
    leaves: NDArray[np.int64] | None
    suspects: NDArray[np.int64] | None
    leaf_count: int
    facts: dict[str, Any]
    roots: dict[str, Any]

    @property
    def item_bytes(self) -> int:
        return self.parameters.scalar_bytes * self.parameters.scalars_per_element


def streamed_result(question: Question, found: Streamed) -> VariableResult:
    if found.comparison is None:
        assert found.error is not None
        facts = question.facts | question.roots
        return not_comparable(question.identity, reason_of(found.error), **facts)
    positions = {flat: at for at, flat in enumerate(found.comparison.indices.tolist())}
    golden, new = (as_elements(values, question.facts["dtype"]) for values in found.first_values)

    def read(side: NDArray[Any], flat: int) -> NDArray[Any]:
        at = positions[flat]
        return side[at : at + 1]

    return result_of(
        question, found.comparison, lambda flat: read(golden, flat), lambda flat: read(new, flat)
    )


def result_of(
    question: Question,
    comparison: _core.Comparison,
    read_golden: Callable[[int], NDArray[Any]],
    read_new: Callable[[int], NDArray[Any]],
) -> VariableResult:
    import numpy as np

    byte_count = math.prod(question.shape) * question.item_bytes
    facts = question.facts | {"evidence": Evidence.DATA, "byte_count": byte_count}
    suspects = question.suspects
    try:
        result = element_result(
            question.identity,
            facts,
            comparison,
            question.parameters,
            question.shape,
            np.empty(0, dtype=np.int64) if suspects is None else suspects,
            question.leaf_count,
            all_compared=question.leaves is None,
            read_golden=read_golden,
            read_new=read_new,
        )
    except CiwrapError as error:
        return not_comparable(question.identity, reason_of(error), **facts)
    more = dict(question.roots)
    if suspects is None:
        more |= {"chunk_count": None, "suspect_chunks": None, "suspect_range_count": None}
    if result.max_drift_share is not None:
        more.pop("max_drift_share", None)
    return replace(result, **more)


def matching_result(
    identity: VariableId,
    parameters: _core.TreeParameters,
    element_count: int,
    leaf_count: int,
    facts: dict[str, Any],
    *,
    is_relative: bool,
) -> VariableResult:
    """A match by digests alone; is_relative: by those made against residues."""
    known: dict[str, Any] = {}
    if parameters.kind == "exact":
        known["max_abs_difference"] = 0.0  # equal codes are equal numbers
    return VariableResult(
        name=identity.name,
        iteration=identity.iteration,
        rank=identity.rank,
        verdict=Verdict.MATCH,
        evidence=Evidence.RESIDUES if is_relative else Evidence.TREE,
        element_count=element_count,
        byte_count=element_count * parameters.scalar_bytes * parameters.scalars_per_element,
        differing_count=0,
        chunk_count=leaf_count,
        suspect_chunks=0,
        **known,
        **facts,
    )
