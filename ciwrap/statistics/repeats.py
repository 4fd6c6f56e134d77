"""How many repeats a wanted precision takes, and how precise so many repeats are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LEAST = 2
_MOST = 10**9
_FEW = 30
# The smallest kurtosis of any distribution is 1 (two equal peaks), where theory needs no repeats.
_LEAST_KURTOSIS = 1.05


def kurtosis_of(values: ArrayLike) -> float | None:
    """The fourth moment over the square of the second: 3 for normal noise, 1 for two narrow peaks.

    That of n values, times (n + 1) / (n - 1): of n normal ones it would be 3 (n - 1) / (n + 1) in
    the mean, 2.5 of ten. None for fewer than 4 values, or equal ones.
    """
    numbers = np.asarray(values, dtype=np.float64)
    # Of equal values, the mean is rounded: its differences from them are no noise.
    if numbers.size < 4 or np.ptp(numbers) == 0:
        return None
    centred = numbers - numbers.mean()
    centred /= np.max(np.abs(centred))
    few = (numbers.size + 1) / (numbers.size - 1)
    return few * float(np.mean(centred**4)) / float(np.mean(centred**2)) ** 2


def repeats_for_sigma(error: float, confidence: float, kurtosis: float = 3.0) -> int:
    """Repeats until the standard deviation is known to within a share of itself.

    The least n with z^2 ((kurtosis - 1) / n + 2 / (n (n - 1))) <= (2 error)^2: the left side is the
    variance of the square of n repeats' standard deviation, which is exact. Raises UsageError for
    an error or a confidence without a meaning, NotAvailableError without SciPy.
    """
    z = _normal_quantile(error, confidence)
    spread = max(kurtosis, _LEAST_KURTOSIS) - 1
    wanted = (2 * error / z) * (2 * error / z)
    if wanted * _MOST <= spread:
        return _MOST
    # wanted n^2 - (wanted + spread) n + spread - 2 = 0
    half = (1 + spread / wanted) / 2
    return _whole(half + math.sqrt(max(half**2 - (spread - 2) / wanted, 0.0)))


def repeats_for_mean(error: float, confidence: float, relative_sigma: float) -> int:
    """Repeats until the mean is known to within a share of itself.

    relative_sigma: the standard deviation over the mean, which may be below 0. (z relative_sigma /
    error)^2, with Student's t where that is below 30. Raises as `repeats_for_sigma`.
    """
    z, relative_sigma = _normal_quantile(error, confidence), abs(relative_sigma)
    root = z * relative_sigma / error
    count = _whole(root * root)
    if count >= _FEW:
        return count
    student = scipy("stats", "repeats needed").t
    for count in range(LEAST, 4 * _FEW):
        t = float(student.ppf((1 + confidence) / 2, count - 1))
        if t * relative_sigma / math.sqrt(count) <= error:
            return count
    return 4 * _FEW


def sigma_half_width(count: int, confidence: float, kurtosis: float = 3.0) -> float:
    """To within which share of itself a standard deviation is known after so many repeats, at least
    2; see `repeats_for_sigma`.
    """
    z = _normal_quantile(1.0, confidence)
    spread = max(kurtosis, _LEAST_KURTOSIS) - 1
    return z / 2 * math.sqrt(spread / count + 2 / (count * (count - 1)))


def bootstrapped_sigmas(
    values: ArrayLike, count: int, draws: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Standard deviations of `draws` sets of `count` values drawn with replacement."""
    numbers = np.asarray(values, dtype=np.float64)
    drawn = numbers[generator.integers(numbers.size, size=(draws, count))]
    found: NDArray[np.float64] = drawn.std(axis=1, ddof=1)
    return found


def _normal_quantile(error: float, confidence: float) -> float:
    if not 0 < confidence < 1:
        raise UsageError("a confidence must be between 0 and 1")
    if not 0 < error < math.inf:
        raise UsageError("an error must be a share above 0, as 0.1 for 10 %")
    return float(scipy("stats", "repeats needed").norm.ppf((1 + confidence) / 2))


def _whole(count: float) -> int:
    return max(LEAST, math.ceil(min(count, _MOST)))
