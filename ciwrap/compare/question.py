"""What trees leave open of one variable, and the result once its elements were compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.compare.parts import ReadElements
    from ciwrap.compare.stream import Streamed
    from ciwrap.model import VariableResult


class PendingComparison(Struct, frozen=True):
    """The elements of `leaves` (None: all) of a variable, and what is known of it already.

    suspects: None without trees. is_part: whether `leaves` are all that anybody wants to know of
    now: other parts of the variable are compared by themselves.
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

    def finish(self, comparison: _core.Comparison, read_elements: ReadElements) -> VariableResult:
        """The comparison of these elements as a result.

        read_elements: is asked for no others than the comparison's first few differing ones.
        """
        result = replace(self.result, evidence=Evidence.DATA, byte_count=self.byte_count)
        try:
            if self.suspects is not None:
                _refuse_contradiction(self, self.suspects, comparison)
            return with_elements(
                result,
                comparison,
                self.parameters,
                self.shape,
                self.suspects,
                all_compared=self.leaves is None or self.is_part,
                read_elements=read_elements,
            )
        except CiwrapError as error:
            return not_comparable(result, error)

    def finish_streamed(self, found: Streamed) -> VariableResult:
        """The result of what went through the stream."""
        if found.comparison is None:
            assert found.error is not None
            return not_comparable(self.result, found.error)
        golden, new = (as_elements(side, self.parameters.dtype) for side in found.first_values)
        return self.finish(
            found.comparison, lambda flats: (golden[: len(flats)], new[: len(flats)])
        )


def _refuse_contradiction(
    pending: PendingComparison, suspects: Suspects, comparison: _core.Comparison
) -> None:
    """Raises CorruptCaptureError if captured trees and the data cannot both be right: the capture
    is damaged, or of other data.
    """
    try:
        _core.check_deciders(
            pending.parameters, comparison, suspects.leaves, compared_leaves=pending.leaves
        )
    except ContradictionError as error:
        raise CorruptCaptureError(
            f"its captured trees contradict its data: {error}",
            remedy="capture the runs anew with --rebuild, or compare with --no-captures",
        ) from error
