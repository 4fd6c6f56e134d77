"""What a golden's variables are: which, of what shape, and their values where they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.arrays.values import ArrayValues, Signature, Values
from ciwrap.late import numpy as np
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from ciwrap import _core
    from ciwrap.arrays.values import Labels


def golden_id(golden: _core.GoldenVariable) -> VariableId:
    """Which variable of which checkpoint a golden's variable is."""
    return VariableId(golden.name, golden.iteration, golden.rank)


def golden_signature(golden: _core.GoldenVariable, labels: Labels = ()) -> Signature:
    """What a golden's variable is."""
    return Signature(golden.tree.parameters.dtype, tuple(golden.shape), labels)


def kept_values(golden: _core.GoldenVariable) -> Values:
    """The values of a golden that keeps its data."""
    assert golden.data is not None
    dtype = golden.tree.parameters.dtype
    data = np.frombuffer(golden.data, dtype=storage_dtype(dtype))
    return ArrayValues(data.reshape(tuple(golden.shape)), dtype)
