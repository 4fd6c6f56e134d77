"""How far the next run may be from earlier ones, and whether run times of two commands differ.

Nothing is assumed of the distribution of differences, but that runs are alike. Times are compared
in pairs of runs next to each other, so that a machine that grows slower does the same to both;
without a change, either run of a pair is as likely to be the slower one. SciPy is an extra.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, localcontext
from enum import Enum
from importlib import import_module
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import NotAvailableError, UsageError
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
# Fewer differences than this suggest nothing: one later run in two would be beyond.
LEAST_COMPARISONS = 3
# From here on the smaller factor is enough.
MANY_COMPARISONS = 9
# Sizes with so wide a gap between them are two groups, with so many at least before it.
_GAP = 10.0
_LEAST_NEAR = 3
# The caller's context may round to fewer digits, or raise.
_OWN = Context(prec=28)
_STEPS = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))


def unequal_run_limit(runs: int) -> float:
    """The largest chance, as far as equal runs can tell, that the next run differs from the first.

    runs: how many agreed to the bit, at least 2. With p that chance, N - 1 runs agree with the
    first with probability (1 - p)^(N - 1); the limit is where that falls below 5 %.
    Raises ValueError for fewer runs.
    """
    _refuse_few(runs - 1)
    return float(1 - (1 - CONFIDENCE) ** (1 / (runs - 1)))


def share_within(comparisons: int) -> float:
    """The least share of later runs that stays within the largest difference seen (Wilks 1941)."""
    _refuse_few(comparisons)
    return float((1 - CONFIDENCE) ** (1 / comparisons))


def safety_factor(comparisons: int) -> int | None:
    """By what the largest difference is multiplied to be a bound; None for too few to tell.

    With normal noise, bounds of three times the largest of nine differences let 0.003 % of later
    runs fail; with tails such as Cauchy's, 2 %.
    """
    if comparisons < LEAST_COMPARISONS:
        return None
    return 3 if comparisons >= MANY_COMPARISONS else 5


def rounded_up(value: float) -> float:
    """The smallest of 1, 2 and 5 x 10^k that is not below a positive number.

    Exact: decimals, as people write them, are compared, not their nearest doubles. Raises
    ValueError for what is not finite or not above 0.
    """
    if not 0 < value < math.inf:
        raise ValueError(f"{value} is not a positive number")
    with localcontext(_OWN):
        wanted = Decimal(repr(float(value)))
        exponent = wanted.adjusted()
        # A product such as 3 x 1e-7 is 3.0000000000000004e-07: what lies beyond 15 digits is no
        # news.
        wanted = wanted.quantize(Decimal(1).scaleb(exponent - 14))
        steps = (one.scaleb(wanted.adjusted()) for one in _STEPS)
        return float(next(one for one in steps if one >= wanted))


class Differences(Struct, frozen=True):
    """What the runs' differences from the reference g come to, for one name: over all checkpoints.

    comparisons: how many runs were compared with the reference. max_abs: the largest |v - g|.
    max_rel: the largest |v - g| / |g|, where g is not 0. median_magnitude: of |g|, None if unknown.
    has_zeros: whether g is 0 anywhere, so that no relative bound would let it vary.
    """

    comparisons: int
    max_abs: float
    max_rel: float
    median_magnitude: float | None = None
    has_zeros: bool = True


class SuggestedBound(Struct, frozen=True):
    """A bound that would have held, with room to spare.

    One of atol and rtol is 0. factor: by what the largest difference was multiplied before it was
    rounded up. confidence: that at least the share `within` of later runs stays within the largest
    difference itself.
    """

    atol: float
    rtol: float
    factor: int
    comparisons: int
    confidence: float
    within: float


def suggest_bound(found: Differences) -> SuggestedBound | None:
    """The bound to write for these differences; None for too few, for no difference, and for
    differences that are not finite.

    A relative bound is offered where it is the tighter one for a typical value and no value is 0.
    """
    factor = safety_factor(found.comparisons)
    if factor is None or not 0 < found.max_abs < math.inf:
        return None
    is_relative = _is_relative(found)
    largest = found.max_rel if is_relative else found.max_abs
    # Above the largest double there is no bound to write, nor one to round up to.
    wanted = factor * largest
    bound = rounded_up(wanted) if wanted < math.inf else math.inf
    if bound == math.inf:
        return None
    return SuggestedBound(
        atol=0.0 if is_relative else bound,
        rtol=bound if is_relative else 0.0,
        factor=factor,
        comparisons=found.comparisons,
        confidence=CONFIDENCE,
        within=share_within(found.comparisons),
    )


def far_ones(sizes: Mapping[int, float]) -> set[int]:
    """Which of several sizes are a group that lies ten times beyond all others; none where there is
    no such gap.

    sizes: not below 0; those of 0 are no group. Three others at least lie before the gap: of
    numbers around 0, one or two are often as near to it by chance, and three in one set of 1000.
    """
    order = sorted((size, key) for key, size in sizes.items() if size > 0)
    places = range(_LEAST_NEAR, len(order))
    widest = max(places, key=lambda at: order[at][0] / order[at - 1][0], default=None)
    if widest is None or order[widest][0] < _GAP * order[widest - 1][0]:
        return set()
    return {key for _, key in order[widest:]}


def _is_relative(found: Differences) -> bool:
    median = found.median_magnitude
    if found.has_zeros or not median or not 0 < found.max_rel < math.inf:
        return False
    return found.max_rel < found.max_abs / median


def _refuse_few(comparisons: int) -> None:
    if comparisons < 1:
        raise ValueError("at least two runs are needed")


def as_times(values: ArrayLike) -> NDArray[np.float64]:
    """The values as doubles, along one axis. Raises UsageError without one, or unless all of them
    are finite and above 0.
    """
    times = np.asarray(values, dtype=np.float64)
    if times.ndim != 1 or times.size == 0 or not np.all(np.isfinite(times) & (times > 0)):
        raise UsageError("measurements must be finite numbers above 0")
    return times


def scipy(part: str, what_for: str) -> Any:
    """The module `scipy.PART`. Raises NotAvailableError, which says what it is needed for."""
    try:
        return import_module(f"scipy.{part}")
    except ModuleNotFoundError as error:
        raise NotAvailableError(
            f"{what_for} needs SciPy, which is not installed",
            remedy="pip install scipy",
        ) from error


if TYPE_CHECKING:
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


# The averages of all couples of pairs are held at once: 500,500 numbers.
MOST_PAIRS = 1000
_MOSTLY = 0.9
# Nobody takes a hundred times as many; the change then is as large as the margin.
_MOST_TIMES_MORE = 100


class TimingVerdict(str, Enum):
    CHANGED = "changed"
    NOT_CHANGED = "not_changed"
    INCONCLUSIVE = "inconclusive"

    def __str__(self) -> str:
        return self.value.replace("_", " ")


class PairedComparison(Struct, frozen=True):
    """How B compares with A. All changes are ratios minus one: 0.1 is B taking 10 % longer.

    pairs: how many. change: the estimate. lower, upper: the interval that holds the true change
    with the given confidence; None with too few pairs for one. margin: the smallest change that
    matters. seen_in_half, seen_in_most: the changes that so many pairs of such times call changed
    in one of two, and in nine of ten cases; None with too few pairs. more_pairs: how many more than
    these settle it in nine of ten cases, if all are run anew; None where the verdict is settled, or
    where no reasonable number will, because the change is near the margin or the times vary too
    much.
    """

    pairs: int
    change: float
    confidence: float
    margin: float
    verdict: TimingVerdict
    lower: float | None = None
    upper: float | None = None
    seen_in_half: float | None = None
    seen_in_most: float | None = None
    more_pairs: int | None = None


def compare_pairs(
    a: Sequence[float], b: Sequence[float], *, margin: float, confidence: float
) -> PairedComparison:
    """Compares pairs of run times in seconds; a[i] and b[i] ran next to each other.

    The estimate is that of Hodges and Lehmann (1963) over d = ln(b / a): the median of the averages
    of all couples of differences. The interval is the exact one of the signed-rank test.

    Raises UsageError without a pair, for times that are not positive, for a margin that is not, or
    for a confidence outside of 0 to 1.
    """
    first, second = as_times(a), as_times(b)
    if first.size != second.size or first.size > MOST_PAIRS:
        raise UsageError(f"times must come in 1 to {MOST_PAIRS} pairs")
    if not 0 < margin < math.inf or not 0 < confidence < 1:
        raise UsageError("the margin must be above 0, and the confidence between 0 and 1")
    pairs = int(first.size)
    averages = walsh_averages(np.log(second / first))
    estimate = float(np.median(averages))
    bound = math.log1p(margin)
    found = PairedComparison(
        pairs=pairs,
        change=math.expm1(estimate),
        confidence=confidence,
        margin=margin,
        verdict=TimingVerdict.INCONCLUSIVE,
    )
    interval = signed_rank_interval(averages, pairs, confidence)
    if interval is None:
        return replace(found, more_pairs=least_pairs(confidence) - pairs)
    lower, upper = interval
    half_width = (upper - lower) / 2
    verdict = _verdict(estimate, lower, upper, bound)
    is_open = verdict is TimingVerdict.INCONCLUSIVE
    error = half_width / NormalDist().inv_cdf((1 + confidence) / 2)
    seen = max(bound, half_width)
    return replace(
        found,
        verdict=verdict,
        lower=math.expm1(lower),
        upper=math.expm1(upper),
        seen_in_half=math.expm1(seen),
        seen_in_most=math.expm1(seen + NormalDist().inv_cdf(_MOSTLY) * error),
        more_pairs=_more_pairs(pairs, half_width, error, estimate, bound) if is_open else None,
    )


def least_pairs(confidence: float) -> int:
    """With how many pairs the interval becomes finite: 6 at 95 %, 8 at 99 %."""
    return math.ceil(math.log2(2 / (1 - confidence)))


def walsh_averages(differences: _Numbers) -> _Numbers:
    """The averages (d_i + d_j) / 2 of all i <= j, sorted."""
    rows, columns = np.triu_indices(differences.size)
    averages: _Numbers = np.sort((differences[rows] + differences[columns]) / 2)
    return averages


def signed_rank_interval(
    averages: _Numbers, count: int, confidence: float
) -> tuple[float, float] | None:
    """The exact interval of the signed-rank test from the sorted averages of `count` differences.

    None where so few differences allow none of that confidence.
    """
    below = np.cumsum(_signed_rank_probabilities(count))
    # How many averages may be left out at either end; a hair for the sum's own rounding.
    left_out = int(np.searchsorted(below, (1 - confidence) / 2 * (1 + 1e-9), side="right"))
    if left_out == 0:
        return None
    return float(averages[left_out - 1]), float(averages[averages.size - left_out])


def _signed_rank_probabilities(count: int) -> _Numbers:
    """Of the signed-rank statistic 0, 1, 2, ... without a change: each rank counts or does not."""
    found = np.zeros(count * (count + 1) // 2 + 1)
    found[0] = 1.0
    for rank in range(1, count + 1):
        found[rank:] = (found[rank:] + found[:-rank]) / 2
        found[:rank] /= 2
    return found


def _verdict(estimate: float, lower: float, upper: float, bound: float) -> TimingVerdict:
    if not lower <= 0 <= upper and abs(estimate) >= bound:
        return TimingVerdict.CHANGED
    if -bound < lower and upper < bound:
        return TimingVerdict.NOT_CHANGED
    return TimingVerdict.INCONCLUSIVE


def _more_pairs(
    pairs: int, half_width: float, error: float, estimate: float, bound: float
) -> int | None:
    """How many more pairs than these settle it in nine of ten cases, if the change is the estimate
    and all are run anew.

    error: the standard deviation of the estimate. It and the interval shrink as one over the square
    root of the number of pairs.
    """
    for wanted in range(pairs + 1, min(MOST_PAIRS, (1 + _MOST_TIMES_MORE) * pairs) + 1):
        shrink = math.sqrt(pairs / wanted)
        new = NormalDist(estimate, error * shrink)
        inside, outside = bound - half_width * shrink, max(bound, half_width * shrink)
        settled = new.cdf(-outside) + 1 - new.cdf(outside)
        if inside > 0:
            settled += new.cdf(inside) - new.cdf(-inside)
        if settled >= _MOSTLY:
            return wanted - pairs
    return None


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
