"""Values that ciwrap.yaml says what they have to be, in place of a golden."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import Values
from ciwrap.compare.judge import compare_values
from ciwrap.compare.law import begun, not_comparable
from ciwrap.errors import (
    CiwrapError,
    DtypeMismatchError,
    UnsupportedDtypeError,
    VariableMissingError,
)
from ciwrap.late import numpy as np
from ciwrap.model import ErrorBound, VariableId
from ciwrap.structs import replace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.catalog.catalog import Catalog
    from ciwrap.compare.work import Work
    from ciwrap.config import Check, Expectation
    from ciwrap.model import VariableResult, VariableSettings


def judge_expected(check: Check, catalog: Catalog, work: Work) -> list[VariableResult]:
    """The verdicts on all values that the check says something of itself.

    One that is not there is not comparable. Raises UsageError for bounds that the values cannot
    have.
    """
    results = []
    for identity in catalog.identities:
        expected = check.expectation_of(identity)
        if expected is not None and not check.is_ignored(identity):
            results.append(_judge(check, catalog, identity, expected, work))
    found = {result.name.rpartition("/")[2] for result in results}
    ignored = {one.name.rpartition("/")[2] for one in catalog.identities if check.is_ignored(one)}
    for name in check.expected:
        if name not in found | ignored:
            error = VariableMissingError("is expected, but not in the outputs")
            results.append(not_comparable(begun(VariableId(name), None, None), error))
    return results


def _judge(
    check: Check, catalog: Catalog, identity: VariableId, expected: Expectation, work: Work
) -> VariableResult:
    info = catalog.entries[identity].info
    settings = check.settings_for(identity, info.dtype)
    path = catalog.path_of(identity)
    begin = begun(identity, None, info.signature, bound=settings.bound, source_path=path)
    try:
        if np.dtype(info.dtype).kind not in "iuf":
            raise UnsupportedDtypeError("is text, and a number is expected")
        _refuse_fractions(expected, info.dtype)
        new = catalog.values(identity, settings.mask)
        reference = _Expected(new, expected)
        if expected.values is not None:
            result = compare_values(reference, new, settings, identity, work=work, source_path=path)
            return replace(result, expectation="expect")
        exact = _exact(settings)
        result = compare_values(reference, new, exact, identity, work=work, source_path=path)
        # A range has no bound that could be wider, and its nearest numbers tell of no cause.
        return replace(result, expectation="range", explanations=())
    except CiwrapError as error:
        return not_comparable(begin, error)


def _exact(settings: VariableSettings) -> VariableSettings:
    # On a circle a number far outside of the range would be the image of one of its ends. A missing
    # value would match an end that is a fill value as well.
    return replace(settings, bound=ErrorBound(), combine="sum", period=(), fill_values=())


class _Expected(Values):
    """What the values have to be: numbers, or the nearest ones of a range."""

    def __init__(self, new: Values, expected: Expectation) -> None:
        self.dtype = new.dtype
        self.labels = new.labels
        self._new = new
        self._expected = expected
        numbers = expected.values
        is_one = new.shape == () and numbers is not None and len(numbers) == 1
        is_each = expected.is_each and not is_one
        self.shape = (len(numbers),) if numbers is not None and is_each else new.shape
        self._numbers = None if not is_each else np.asarray(numbers, dtype=self.dtype)

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        if self._numbers is not None:
            return self._numbers[first_element : first_element + count]
        if self._expected.values is not None:
            return np.full(count, self._expected.values[0], dtype=self.dtype)
        values = self._new.read(first_element, count)
        if values.dtype.kind != "f":
            limits = np.iinfo(values.dtype)
            low, high = _whole_range(self._expected, values.dtype)
            whole: NDArray[Any] = np.clip(values, max(low, limits.min), min(high, limits.max))
            return whole
        # What is infinite, or no number, is in no range, of which one end may be open.
        finite = np.finfo(values.dtype)
        least = max(self._expected.low, float(finite.min))
        nearest = np.clip(values, least, min(self._expected.high, float(finite.max)))
        return np.where(np.isnan(nearest), least, nearest).astype(values.dtype)


def _whole_range(expected: Expectation, dtype: np.dtype[Any]) -> tuple[int, int]:
    """The whole numbers of a range that the dtype holds."""
    limits = np.iinfo(dtype)
    low = math.ceil(expected.low) if math.isfinite(expected.low) else int(limits.min)
    high = math.floor(expected.high) if math.isfinite(expected.high) else int(limits.max)
    return low, high


def _refuse_fractions(expected: Expectation, dtype: str) -> None:
    """Raises DtypeMismatchError if whole numbers are found where others are expected."""
    if np.dtype(dtype).kind == "f":
        return
    for number in expected.values or ():
        if not math.isfinite(number) or number != round(number) or abs(number) >= 1 << 53:
            raise DtypeMismatchError(
                f"is a whole number, but {number:g} is expected",
                remedy="fix 'expect', or take it as a number: {name} in place of {name:int}",
            )
    if expected.values is None:
        ends = [one for one in (expected.low, expected.high) if math.isfinite(one)]
        if any(abs(one) >= 1 << 53 for one in ends):
            raise DtypeMismatchError(
                "is a whole number, and a range that ends beyond 2^53 is rounded",
                remedy="fix 'range', or take it as a number: {name} in place of {name:int}",
            )
        limits = np.iinfo(dtype)
        low, high = _whole_range(expected, np.dtype(dtype))
        if low > high or low > limits.max or high < limits.min:
            raise DtypeMismatchError(
                "is a whole number, and none lies within the range", remedy="fix 'range'"
            )
