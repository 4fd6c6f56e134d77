"""What the trees leave open of one variable, and the result once its elements were compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ciwrap.compare.variable import element_result, not_comparable, reason_of
from ciwrap.errors import CiwrapError
from ciwrap.model import Evidence, VariableResult, Verdict
from ciwrap.readers.base import as_elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.compare.parts import ReadElements
    from ciwrap.compare.stream import Streamed
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

    def read_first(flats: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        golden, new = found.first_values
        dtype = question.facts["dtype"]
        return as_elements(golden, dtype)[: len(flats)], as_elements(new, dtype)[: len(flats)]

    return result_of(question, found.comparison, read_first)


def result_of(
    question: Question, comparison: _core.Comparison, read_elements: ReadElements
) -> VariableResult:
    """The comparison of the question's elements as a result.

    read_elements: is asked for no others than the comparison's first few differing ones.
    """
    byte_count = math.prod(question.shape) * question.item_bytes
    facts = question.facts | {"evidence": Evidence.DATA, "byte_count": byte_count}
    try:
        return element_result(
            question.identity,
            facts | question.roots,
            comparison,
            question.parameters,
            question.shape,
            question.suspects,
            question.leaf_count,
            all_compared=question.leaves is None,
            read_elements=read_elements,
        )
    except CiwrapError as error:
        return not_comparable(question.identity, reason_of(error), **facts)


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
