"""A golden as one side of a comparison: what it holds, and whether its rows are those of a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.values import as_bytes
from ciwrap.catalog.rows import refuse_other_ids
from ciwrap.compare.fit import GOLDEN
from ciwrap.errors import AlignmentError
from ciwrap.golden.variables import golden_id, golden_signature
from ciwrap.late import numpy as np
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.series import StoredSteps
    from ciwrap.arrays.values import Labels, Signature, Values
    from ciwrap.catalog.rows import RowOrder
    from ciwrap.config import Check
    from ciwrap.golden.pair import StoredGolden


class GoldenVariables:
    """What a golden holds, as one side of a comparison."""

    def __init__(self, golden: StoredGolden | None, check: Check) -> None:
        self._labels = None if golden is None else golden.manifest.labels
        variables = () if golden is None else golden.variables
        self.variables = {golden_id(variable): variable for variable in variables}
        # What the configuration now says itself is no concern of the golden any more.
        self.identities = {one for one in self.variables if check.expectation_of(one) is None}

    def labels(self, identity: VariableId) -> Labels | None:
        """None if the golden does not say."""
        return None if self._labels is None else self._labels.get(identity, ())

    def signature(self, identity: VariableId) -> Signature:
        return golden_signature(self.variables[identity], self.labels(identity) or ())

    def fault_of(self, identity: VariableId) -> None:  # noqa: ARG002 - what it holds can be read
        return None

    def path_of(self, identity: VariableId) -> None:  # noqa: ARG002 - it is not in the outputs
        return None


def steps_of(values: Values, ours: GoldenVariables, identity: VariableId) -> StoredSteps:
    """The steps that a golden has for a series of a text. Raises AlignmentError."""
    from ciwrap.compare.series import stored_steps

    assert values.series is not None
    return stored_steps(values.series, ours.variables, identity, values.element_count)


def refuse_other_rows(
    order: RowOrder, goldens: Mapping[VariableId, _core.GoldenVariable], identity: VariableId
) -> None:
    """Raises AlignmentError unless the golden's rows have the ids of these, in their order.

    The golden's id variable tells, whatever is kept of it: ids are compared exactly.
    """
    golden = goldens.get(VariableId(order.name, identity.iteration, identity.rank))
    if golden is None:
        raise AlignmentError(
            f"the golden does not hold its id variable {order.name!r}, so nothing says which rows"
            " it has",
            remedy="do not ignore the id variable, and accept the outputs anew",
        )
    parameters = golden.tree.parameters
    if parameters.dtype[1:] == order.ids.dtype.str[1:] and parameters.kind == "exact":
        ids = order.ids.astype(parameters.dtype)
        if golden.data is not None:
            theirs = np.frombuffer(golden.data, dtype=parameters.dtype)
            if np.all(theirs[1:] > theirs[:-1]):
                refuse_other_ids(order.name, theirs, order.ids, GOLDEN.sides)
                return
        elif math.prod(golden.shape) == ids.size and _tells_ids_apart(parameters, ids):
            tree = _core.build_tree(parameters, as_bytes(ids))
            if tree.root == golden.tree.root:
                return
    raise AlignmentError(
        f"the rows cannot be paired by {order.name!r}: the golden has other ids, or was made"
        " without 'align_by'",
        remedy="if these ids are right, accept the outputs anew",
    )


def _tells_ids_apart(parameters: _core.TreeParameters, ids: NDArray[Any]) -> bool:
    """Whether no other ids have the tree of these: all fill values are one to a tree."""
    fills = [*parameters.fill_values]
    return len(fills) < 2 or not np.isin(ids, fills).any()
