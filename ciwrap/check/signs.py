"""Vectors that mean the same with either sign, as eigenvectors do.

Each new vector is compared with the sign that brings it nearer to the golden one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.arrays.values import Values, slack_of
from ciwrap.base.errors import ParameterMismatchError
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.model import VariableSettings


class SignedValues(Values):
    """New values, each vector with the sign that brings it nearer to the reference's.

    Both have one dtype and size. Nearer is what is beyond the bound by less where it is the most,
    so that a vector matches if it does with either sign. Raises ParameterMismatchError for what
    has no other sign.
    """

    def __init__(self, reference: Values, new: Values, settings: VariableSettings) -> None:
        count, shape = new.element_count, new.shape
        lengths = {"whole": count}
        if len(shape) > 1:
            lengths |= {"rows": count // max(1, shape[0]), "columns": count // max(1, shape[-1])}
        length = lengths.get(settings.up_to_sign, 0)
        # A number is no vector: its sign means something.
        if new.dtype[1:2] not in ("f", "c") or (length < 2 and count):
            raise ParameterMismatchError(
                f"'up_to_sign: {settings.up_to_sign}' is for vectors of two floating-point numbers"
                f" or more, and it has dtype {new.dtype} and shape {tuple(shape)}",
                remedy="set 'up_to_sign: none' for this variable",
            )
        self._values, self._fill_values = new, settings.fill_values
        self.dtype, self.shape, self.labels = new.dtype, shape, new.labels
        # An element is of the vector: its number, divided by the one, modulo the other.
        self._vectors = max(1, count // max(1, length))
        self._per_vector = 1 if settings.up_to_sign == "columns" else max(1, length)
        beyond = np.full((2, self._vectors), -np.inf)
        with np.errstate(all="ignore"):
            for first, slab in new.slabs():
                golden = reference.read(first, slab.size).reshape(-1)
                slack = slack_of(golden, settings.bound, settings.combine)
                at = self._vector_of(first, slab.size)
                for known, moved in zip(beyond, (slab, self._flipped(slab)), strict=True):
                    apart = np.abs(moved - golden) - slack
                    is_infinite = np.isinf(moved) | np.isinf(golden)
                    apart[is_infinite] = np.where(moved == golden, -np.inf, np.inf)[is_infinite]
                    apart[np.isnan(apart)] = -np.inf  # has no sign
                    np.maximum.at(known, at, apart)
        self._is_flipped = beyond[1] < beyond[0]
        self.flipped_count = int(np.count_nonzero(self._is_flipped))

    @property
    def masked_count(self) -> int:
        return self._values.masked_count

    @property
    def mask(self) -> Values | None:
        return self._values.mask

    def read(self, first_element: int, count: int) -> NDArray[Any]:
        values = self._values.read(first_element, count)
        is_flipped = self._is_flipped[self._vector_of(first_element, count)]
        # NumPy computes in this machine's byte order.
        return np.where(is_flipped, self._flipped(values), values).astype(values.dtype)

    def _vector_of(self, first: int, count: int) -> NDArray[np.int64]:
        return (first + np.arange(count)) // self._per_vector % self._vectors

    def _flipped(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values with the other sign, but for those that mean "missing"."""
        if not self._fill_values:
            return -values
        is_missing = np.isin(values, np.asarray(self._fill_values, dtype=values.dtype))
        return np.where(is_missing, values, -values)
