"""What trees leave open of one variable, and the result once its elements were compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.dtypes import item_bytes
from ciwrap.compare.findings import Suspects, with_elements
from ciwrap.compare.law import not_comparable
from ciwrap.core_errors import ContradictionError
from ciwrap.errors import CiwrapError, CorruptCaptureError
from ciwrap.model import Evidence
from ciwrap.readers.base import as_elements
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.compare.parts import ReadElements
    from ciwrap.compare.stream import Streamed
    from ciwrap.model import VariableResult


class Question(Struct, frozen=True):
    """The elements of `leaves` (None: all) of a variable, and what is known of it already.

    suspects: None without trees. is_part: whether `leaves` are all that anybody wants to know of
    now: other parts of the variable are other questions.
    """

    result: VariableResult
    parameters: _core.TreeParameters
    shape: tuple[int, ...]
    leaves: NDArray[np.int64] | None = None
    suspects: Suspects | None = None
    is_part: bool = False

    @property
    def byte_count(self) -> int:
        """Of one side's array."""
        return math.prod(self.shape) * item_bytes(self.parameters.dtype)


def streamed_result(question: Question, found: Streamed) -> VariableResult:
    """The result of a question that went through the stream."""
    if found.comparison is None:
        assert found.error is not None
        return not_comparable(question.result, found.error)

    def read_first(flats: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        golden, new = found.first_values
        dtype = question.parameters.dtype
        return as_elements(golden, dtype)[: len(flats)], as_elements(new, dtype)[: len(flats)]

    return answered(question, found.comparison, read_first)


def answered(
    question: Question, comparison: _core.Comparison, read_elements: ReadElements
) -> VariableResult:
    """The comparison of the question's elements as a result.

    read_elements: is asked for no others than the comparison's first few differing ones.
    """
    result = replace(question.result, evidence=Evidence.DATA, byte_count=question.byte_count)
    try:
        if question.suspects is not None:
            _refuse_contradiction(question, question.suspects, comparison)
        return with_elements(
            result,
            comparison,
            question.parameters,
            question.shape,
            question.suspects,
            all_compared=question.leaves is None or question.is_part,
            read_elements=read_elements,
        )
    except CiwrapError as error:
        return not_comparable(result, error)


def _refuse_contradiction(
    question: Question, suspects: Suspects, comparison: _core.Comparison
) -> None:
    """Raises CorruptCaptureError if captured trees and the data cannot both be right: the capture
    is damaged, or of other data.
    """
    try:
        _core.check_deciders(
            question.parameters, comparison, suspects.leaves, compared_leaves=question.leaves
        )
    except ContradictionError as error:
        raise CorruptCaptureError(
            f"its captured trees contradict its data: {error}",
            remedy="capture the runs anew with --rebuild, or compare with --no-captures",
        ) from error
