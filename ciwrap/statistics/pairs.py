"""Paired comparison of two sets of run times: changed, not changed, or inconclusive.

Every pair is two runs next to each other, one of each kind, so that a machine that grows slower or
faster over time does the same to both. Nothing is assumed of the times but that, without a change,
either run of a pair is as likely to be the slower one.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.late import numpy as np
from ciwrap.statistics.times import as_times
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    _Numbers = NDArray[np.float64]

# The averages of all couples of pairs are held at once: 500,500 numbers.
MOST_PAIRS = 1000
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
    matters. smallest_detectable: the smallest change that these pairs would have shown; None with
    too few pairs. more_pairs: how many further ones would probably settle it; None where the
    verdict is settled, or where no reasonable number will, because the change is near the margin or
    the times vary too much.
    """

    pairs: int
    change: float
    confidence: float
    margin: float
    verdict: TimingVerdict
    lower: float | None = None
    upper: float | None = None
    smallest_detectable: float | None = None
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
    return replace(
        found,
        verdict=verdict,
        lower=math.expm1(lower),
        upper=math.expm1(upper),
        smallest_detectable=math.expm1(half_width),
        more_pairs=_more_pairs(pairs, half_width, estimate, bound) if is_open else None,
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


def _more_pairs(pairs: int, half_width: float, estimate: float, bound: float) -> int | None:
    """An interval shrinks as one over the square root of the number of pairs: to the width of the
    margin, or, where it is narrower already, to what lies between the estimate and the margin.
    """
    wanted = bound if half_width > bound else bound - abs(estimate)
    if wanted <= 0:
        return None
    more = max(1, math.ceil(pairs * (half_width / wanted) ** 2 - pairs))
    is_reasonable = more <= _MOST_TIMES_MORE * pairs and pairs + more <= MOST_PAIRS
    return more if is_reasonable else None
