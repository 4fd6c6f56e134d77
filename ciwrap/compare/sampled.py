"""Values of which only some chunks were kept: those that did not match while a program ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.arrays.values import Values
from ciwrap.captures.index import read_tree
from ciwrap.compare.findings import with_solved
from ciwrap.compare.parts import chunk_elements
from ciwrap.compare.solve import solve_chunks
from ciwrap.errors import CorruptCaptureError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.captures.checkpoint import Variables
    from ciwrap.captures.index import CapturedVariable
    from ciwrap.compare.findings import Suspects
    from ciwrap.model import VariableResult


class SampledValues(Values):
    """The elements of whole chunks. samples: bytes by number of the chunk.

    `read` raises CorruptCaptureError for elements that were not kept.
    """

    def __init__(
        self,
        variable: CapturedVariable,
        parameters: _core.TreeParameters,
        samples: dict[int, bytes],
    ) -> None:
        self.dtype = variable.dtype
        self.shape = tuple(variable.shape)
        self._per_chunk = chunk_elements(parameters)
        self._samples = samples

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        leaf, begin = divmod(first_element, self._per_chunk)
        kept = np.frombuffer(self._samples.get(leaf, b""), storage_dtype(self.dtype))
        if begin + count > kept.size:
            raise CorruptCaptureError("a sample of a chunk is too short")
        return kept[begin : begin + count]


def solved_by_samples(
    result: VariableResult, ours: Variables, theirs: Variables, suspects: Suspects
) -> VariableResult:
    """The result, naming elements that moved, where a program kept those of suspect chunks.

    result: suspect, by residues of the first side. Raises CorruptCaptureError.
    """
    golden, new = ours.captured.get(result.id), theirs.captured.get(result.id)
    if golden is None or new is None or golden.fine is None:
        return result
    if ours.run.capture is None or theirs.run.capture is None:
        return result
    samples = theirs.run.capture.samples_of(result.id)
    leaves = suspects.leaves[np.isin(suspects.leaves, list(samples))]
    if leaves.size == 0:
        return result
    tree = read_tree(ours.run.capture, golden, golden.fine)
    values = SampledValues(new, tree.parameters, samples)
    return with_solved(result, solve_chunks(tree, values, leaves, tuple(golden.shape)))
