"""How many digits of a result are the same in every run.

Sohier, de Oliveira Castro, Fevotte, Lathuiliere, Petit and Jamond, "Confidence intervals for
stochastic arithmetic", ACM TOMS 47(2), 2021. Digits are of z = v / g - 1, the relative difference
of a run's value v from the reference g.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.statistics.library import scipy

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBABILITY = 0.95
CONFIDENCE = 0.95
MOST_BITS = 53.0


def bits_of_spread(
    spread: NDArray[Any],
    runs: int,
    probability: float = PROBABILITY,
    confidence: float = CONFIDENCE,
) -> NDArray[np.float64]:
    """Significant bits of each element if z is normally distributed, with that confidence.

    spread: the standard deviation of z over the runs (with runs - 1), at least 2. At least so many
    bits of a run are those of the runs' mean, with that probability; another single run is no such
    middle. An element that never varied has all 53. Raises NotAvailableError without SciPy.
    """
    # Not scipy.stats, which takes five times as long to import.
    special = scipy("special", "the number of significant digits")
    chi_square = 2 * float(special.gammaincinv((runs - 1) / 2, (1 - confidence) / 2))
    lost = 0.5 * math.log2((runs - 1) / chi_square)
    lost += math.log2(float(special.ndtri((probability + 1) / 2)))
    return _limited(-_log2(np.asarray(spread, np.float64)) - lost)


def common_bits(differences: NDArray[Any]) -> NDArray[np.float64]:
    """The largest k with |z| <= 2^-k in every run, for each element; nothing is assumed of z.

    differences: z, shape (runs, ...). How sure that is depends on the number of runs alone.
    """
    return _limited(np.floor(-_log2(np.abs(differences).max(axis=0))))


def decimal_digits(bits: float) -> float:
    """Bits as decimal digits."""
    return bits * math.log10(2)


def _log2(values: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log2(values))


def _limited(bits: NDArray[np.float64]) -> NDArray[np.float64]:
    # None are 0, of no sign: the logarithm of 1 is -0 once it has been turned around.
    return np.clip(bits, 0.0, MOST_BITS) + 0.0
