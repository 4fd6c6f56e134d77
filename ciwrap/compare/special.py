"""Goldens against values that are compared on a circle, or in another precision.

Digests and residues are of the values as they were. What has to be seen otherwise needs the
golden's data, or is not comparable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.arrays.convert import RoundedValues, is_mixed_precision
from ciwrap.arrays.dtypes import storage_dtype
from ciwrap.arrays.values import ArrayValues
from ciwrap.compare.pair import compare_variable
from ciwrap.compare.variable import (
    Compared,
    check_variable,
    golden_id,
    not_comparable,
    reason_of,
    refuse_other_parameters,
)
from ciwrap.errors import CiwrapError, DtypeMismatchError, ExitCode, PeriodError
from ciwrap.model import Evidence

if TYPE_CHECKING:
    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.model import VariableSettings


def check_arranged(
    golden: _core.GoldenVariable, values: Values, settings: VariableSettings, **rest: Any
) -> Compared:
    """As `check_variable`, honouring `period` and `mixed_precision` where the golden allows it."""
    made_of = golden.tree.parameters.dtype
    is_mixed = settings.mixed_precision and is_mixed_precision(made_of, values.dtype)
    if not settings.period and not is_mixed:
        return check_variable(golden, values, settings, **rest)
    if is_mixed and made_of[1:] == "f4" and not settings.period:
        return check_variable(golden, RoundedValues(values, made_of), settings, **rest)
    identity = golden_id(golden)
    try:
        refuse_other_parameters(golden, settings, identity)
        if golden.data is None and settings.period:
            raise PeriodError(
                f"the golden keeps its {golden.evidence} alone, which cannot be compared modulo a"
                " period",
                remedy="set 'evidence: data' and accept the outputs anew",
            )
        if golden.data is None:
            raise DtypeMismatchError(
                f"the golden keeps the {golden.evidence} of float64 values, which float32 values"
                " cannot be held against",
                remedy="accept the float32 outputs, or set 'evidence: data' and accept anew",
            )
        data = np.frombuffer(golden.data, dtype=storage_dtype(made_of))
        kept = ArrayValues(data.reshape(golden.shape), made_of)
        compared = compare_variable(kept, values, settings, identity, **rest)
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        return Compared(
            not_comparable(
                identity,
                reason_of(error),
                dtype=values.dtype,
                shape=tuple(values.shape),
                evidence=Evidence(golden.evidence),
                bound=settings.bound,
                period=settings.period or None,
            )
        )
    return compared
