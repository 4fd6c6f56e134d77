"""A bounded sample of each variable: how it is spread, and how its elements move from run to run.

The largest difference is taken over all elements; root mean squares, spreads and digits are those
of the sample.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.convert import as_doubles, is_bfloat16
from ciwrap.late import numpy as np
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

_BLOCK = 64
_MOST_ELEMENTS = 16_384
_LEAST_ELEMENTS = 256
# Of all variables together; some arrays of doubles are kept for each.
_BUDGET = 1 << 21
_SAME = 1e-14
# No digit is left long before; its square is a double.
_LARGEST_RELATIVE = 1e150


def sample_size(variables: int) -> int:
    """How many elements of each of so many variables are kept."""
    return max(_LEAST_ELEMENTS, min(_MOST_ELEMENTS, _BUDGET // max(1, variables)))


def read_sample(values: Values, size: int) -> NDArray[np.float64] | None:
    """All elements of a small variable, else evenly spaced blocks of them; None for what is no
    number. Complex numbers are two each. Shape (elements,).
    """
    kind = values.dtype[1:2]
    if kind not in "fciub" or values.dtype == "|b1":
        return None
    count = values.element_count
    if count <= size:
        return as_doubles(values.read(0, count), values.dtype)
    blocks = size // _BLOCK
    firsts = np.linspace(0, count - _BLOCK, blocks).astype(np.int64)
    parts = [as_doubles(values.read(int(first), _BLOCK), values.dtype) for first in firsts]
    return np.concatenate(parts)


def has_zeros(values: Values) -> bool:
    """Whether any element, or a part of a complex one, is 0. Reads all of them."""
    return any(_has_zero(slab, values.dtype) for _, slab in values.slabs())


def _has_zero(slab: NDArray[Any], dtype: str) -> bool:
    # NumPy counts its own types where they lie, three times as fast as copies of them.
    is_own = slab.dtype.kind in "fiu" and not is_bfloat16(dtype)
    numbers = slab if is_own else as_doubles(slab, dtype)
    return int(np.count_nonzero(numbers)) < numbers.size


class Movement(Struct):
    """How the sampled elements of one variable of one checkpoint move over the runs.

    reference: g; period: differences are modulo this, or 0; norms: the root of the sum of the
    squares of v - g, by run. Relative differences z are counted where g is finite and not 0; where
    it is 0 and some run's value is not, z is as large as it gets.
    """

    reference: NDArray[np.float64]
    period: float = 0.0
    norms: dict[int, float] = field(default_factory=dict)
    runs: int = 0
    _mean: NDArray[np.float64] | None = None
    _squares: NDArray[np.float64] | None = None
    _largest: NDArray[np.float64] | None = None
    _left_zero: NDArray[np.bool_] | None = None

    @property
    def _told(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.reference) & (self.reference != 0))

    def add(self, run: int, sample: NDArray[np.float64] | None) -> None:
        """Takes a run's sample; None for one that is equal to the reference."""
        if sample is None or sample.shape != self.reference.shape:
            difference = np.zeros_like(self.reference)
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                difference = sample - self.reference
            if self.period:
                difference -= self.period * np.round(difference / self.period)
        # What is no number moves nothing; two finite numbers may be further apart than a double is.
        difference = np.nan_to_num(difference, nan=0.0, posinf=math.inf, neginf=-math.inf)
        difference[~np.isfinite(self.reference)] = 0.0
        self.norms[run] = _norm(difference)
        left = (self.reference == 0) & (difference != 0)
        self._left_zero = left if self._left_zero is None else self._left_zero | left
        told = self._told
        with np.errstate(over="ignore"):
            z = difference[told] / self.reference[told]
        self._add_relative(np.clip(z, -_LARGEST_RELATIVE, _LARGEST_RELATIVE))

    def _add_relative(self, z: NDArray[np.float64]) -> None:
        if self._mean is None or self._squares is None or self._largest is None:
            self._mean, self._squares = np.zeros_like(z), np.zeros_like(z)
            self._largest = np.zeros_like(z)
        self.runs += 1
        step = z - self._mean
        self._mean += step / self.runs
        self._squares += step * (z - self._mean)
        np.maximum(self._largest, np.abs(z), out=self._largest)

    @property
    def largest_relative(self) -> NDArray[np.float64]:
        """Of each told element, the largest |z| of any run."""
        return np.empty(0) if self._largest is None else self._with_left_zeros(self._largest)

    @property
    def relative_spread(self) -> NDArray[np.float64]:
        """Of each told element, the standard deviation of z over the runs; at least 2 of them."""
        if self._squares is None or self.runs < 2:
            return np.empty(0)
        return self._with_left_zeros(np.sqrt(self._squares / (self.runs - 1)))

    def _with_left_zeros(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """And one more for each element that is 0 in the reference alone: no digit is common."""
        count = 0 if self._left_zero is None else int(np.count_nonzero(self._left_zero))
        return np.concatenate([found, np.full(count, _LARGEST_RELATIVE)])


def _norm(numbers: NDArray[np.float64]) -> float:
    """The root of the sum of squares, none of which overflows or vanishes."""
    return _root_mean_square(numbers) * math.sqrt(numbers.size)


def _root_mean_square(numbers: NDArray[np.float64]) -> float:
    largest = float(np.abs(numbers).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    return largest * math.sqrt(float(np.mean((numbers / largest) ** 2)))


def _mean(numbers: NDArray[np.float64]) -> float:
    """The mean, whose sum does not overflow."""
    largest = float(np.abs(numbers).max(initial=0.0))
    return largest * float(np.mean(numbers / largest)) if largest else 0.0


def _median(sizes: NDArray[np.float64]) -> float:
    """The median of numbers that are not below 0; the sum of two of them may be no double."""
    middle = [(sizes.size - 1) // 2, sizes.size // 2]
    low, high = np.partition(sizes, middle)[middle]
    return float(low + (high - low) / 2)


class Spread(Struct):
    """Standard deviation and typical magnitude of all sampled values of one name."""

    count: int = 0
    mean: float = 0.0
    _deviation: float = 0.0
    nan_count: int = 0
    magnitudes: list[float] = field(default_factory=list)

    def add(self, sample: NDArray[np.float64]) -> None:
        finite = sample[np.isfinite(sample)]
        self.nan_count += int(np.isnan(sample).sum())
        if finite.size == 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean(finite)
            # Squares of two parts about their own means lose no digits (Chan, Golub and LeVeque);
            # by their shares of all, no sum is larger than a double.
            total = self.count + finite.size
            old, new = self.count / total, finite.size / total
            own = _root_mean_square(finite - mean)
            apart = math.sqrt(old * new)
            self._deviation = math.hypot(
                math.sqrt(old) * self._deviation,
                math.sqrt(new) * own,
                apart * mean - apart * self.mean,
            )
            self.mean = old * self.mean + new * mean
            self.magnitudes.append(_median(np.abs(finite)))
        self.count = total

    @property
    def deviation(self) -> float:
        """The standard deviation; of a constant its magnitude."""
        if not self.count:
            return 0.0
        # What rounding leaves of equal values is no spread.
        is_constant = self._deviation <= _SAME * abs(self.mean)
        return abs(self.mean) if is_constant else self._deviation

    @property
    def magnitude(self) -> float | None:
        """The median over checkpoints of the median |g|."""
        return _median(np.array(self.magnitudes)) if self.magnitudes else None
