"""How far run times lie apart, and what that costs when several runs wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy
from ciwrap.statistics.times import as_times
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    _Numbers = NDArray[np.float64]

# With fewer times, groups cannot be told from accidents.
LEAST_FOR_MODES = 20
_EVEN_SAMPLES = 2000
_RARE = 0.01


class Spread(Struct, frozen=True):
    """One set of run times, in seconds.

    count: how many. median_lower, median_upper: the interval that holds the true median with 95 %
    confidence; None with fewer than 6 times. range: (maximum - minimum) / minimum. iqr: the
    interquartile range over the median. cov: the standard deviation over the mean; None for one
    time. autocorrelation: of each time with the next one; None for fewer than 3 times, or equal
    ones. modes: 2 if the times fall into two groups, 1 if nothing says so; None for fewer than 20
    times.
    """

    count: int
    median: float
    minimum: float
    maximum: float
    mean: float
    range: float
    iqr: float
    median_lower: float | None = None
    median_upper: float | None = None
    cov: float | None = None
    autocorrelation: float | None = None
    modes: int | None = None


def spread_of(times: Sequence[float], *, seed: int) -> Spread:
    """The spread of run times in the order in which they ran. seed: for finding groups.

    Raises UsageError without a time or for times that are not positive, NotAvailableError without
    SciPy.
    """
    values = as_times(times)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    interval = median_interval(values, 0.95)
    return Spread(
        count=int(values.size),
        median=float(middle),
        minimum=float(values.min()),
        maximum=float(values.max()),
        mean=float(values.mean()),
        range=float((values.max() - values.min()) / values.min()),
        iqr=float((high - low) / middle),
        median_lower=None if interval is None else interval[0],
        median_upper=None if interval is None else interval[1],
        cov=float(values.std(ddof=1) / values.mean()) if values.size > 1 else None,
        autocorrelation=_autocorrelation(values),
        modes=count_modes(values, np.random.default_rng(seed)),
    )


def median_interval(
    times: Sequence[float] | _Numbers, confidence: float
) -> tuple[float, float] | None:
    """The exact interval of the median from order statistics; None with too few times for one.

    How many times lie below the true median follows a binomial law, whatever the times' own is.
    """
    values = np.sort(np.asarray(times, dtype=np.float64))
    tail = (1 - confidence) / 2
    binomial = scipy("stats", "the interval of a median").binom(values.size, 0.5)
    # The most that may lie beyond either end.
    beyond = int(binomial.ppf(tail))
    if binomial.cdf(beyond) > tail * (1 + 1e-9):
        beyond -= 1
    if beyond < 0:
        return None
    return float(values[beyond]), float(values[values.size - 1 - beyond])


def makespan(times: Sequence[float]) -> float:
    """How long a group takes that waits for its slowest member, in seconds."""
    return float(as_times(times).max())


def waste(times: Sequence[float]) -> float:
    """The share of a group's time that its members spend waiting for the slowest one."""
    values = as_times(times)
    return float(1 - values.mean() / values.max())


def expected_makespan(times: Sequence[float], size: int) -> float:
    """The mean makespan of groups of `size` whose members take any of these times, in seconds.

    The sum over the sorted times t_(i) of t_(i) [(i/n)^size - ((i-1)/n)^size]: the chance that
    t_(i) is the largest. Raises UsageError for a size below 1.
    """
    values = np.sort(as_times(times))
    if size < 1:
        raise UsageError(f"a group must have at least one member, not {size}")
    chances = np.diff((np.arange(values.size + 1) / values.size) ** size)
    return float(np.sum(values * chances))


def count_modes(times: Sequence[float] | _Numbers, generator: np.random.Generator) -> int | None:
    """2 if the times fall into two groups, 1 if nothing says so; None for fewer than 20 of them.

    The statistic is how much of the scatter of the logarithms is left within two groups, cut where
    least is left. Two groups are found if fewer than 1 % of as many evenly spread numbers leave as
    little: among distributions with one peak, these come near to two groups most easily.
    """
    values = np.sort(np.log(np.asarray(times, dtype=np.float64)))
    if values.size < LEAST_FOR_MODES:
        return None
    if np.ptp(values) == 0:
        return 1
    even = np.sort(generator.random((_EVEN_SAMPLES, values.size)), axis=1)
    rare = np.quantile(_scatter_left(even), _RARE)
    return 2 if _scatter_left(values[np.newaxis])[0] < rare else 1


def _scatter_left(rows: _Numbers) -> _Numbers:
    """Of each row of sorted numbers: the squares within two groups over those within one, for the
    best cut that leaves a tenth of the numbers on either side.
    """
    count = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    least = max(2, count // 10)
    first = np.arange(least, count - least + 1)
    sums = np.cumsum(centred, axis=1)[:, first - 1]
    # The rest sums up to the opposite, since all of them sum up to nothing.
    between = sums**2 / first + sums**2 / (count - first)
    left: _Numbers = 1 - between.max(axis=1) / np.sum(centred**2, axis=1)
    return left


def _autocorrelation(values: _Numbers) -> float | None:
    centred = values - values.mean()
    total = float(np.sum(centred**2))
    if values.size < 3 or total <= (1e-12 * float(np.abs(values).max())) ** 2:
        return None
    return float(np.sum(centred[1:] * centred[:-1]) / total)
