"""The bound that would have let everything pass, and whether it is too small next to zero only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.compare.explain.remedies import of_atol
from ciwrap.compare.planes import value_apart
from ciwrap.details import FAR_BEYOND, Cause, Explanation
from ciwrap.late import numpy as np
from ciwrap.model import two_digits_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.compare.explain.difference import Difference

# Golden values of this share of the largest one are next to zero.
_NEAR = 1e-3
# A bound of this share of the largest value is still far below anything that matters.
_SMALL = 1e-6


def by_bound(difference: Difference) -> list[Explanation]:
    """The least atol, beside the rtol that is, under which all elements would have passed; none
    where it would hide that something is far beyond the bound.
    """
    parameters = difference.parameters
    if difference.golden.dtype.kind not in "fc" or parameters.ulps:
        return []
    golden, new = difference.sides
    finite = np.isfinite(golden) & np.isfinite(new)
    # Missing equals missing only, whatever the bound.
    missing = np.isin(golden, parameters.fill_values) | np.isin(new, parameters.fill_values)
    if not finite.all() or missing.any():
        return []
    with np.errstate(all="ignore"):
        moved, open_ = _parts(new - golden), parameters.rtol * _least(golden)
        # What doubles may have lost of the difference and of what rtol allows.
        lost = np.spacing(np.maximum(moved, open_))
        needed = float(np.max(moved - open_ + 2 * lost))
        is_far = bool(np.any(moved > FAR_BEYOND * (parameters.atol + open_)))
        largest = _largest(difference.golden)
    atol = two_digits_above(needed) if needed > 0 else math.inf
    if not math.isfinite(atol):
        return []
    is_near = float(np.max(np.abs(golden))) <= _NEAR * largest and needed <= _SMALL * largest
    if is_far and not is_near and parameters.kind != "exact":
        return []
    return [
        Explanation(
            Cause.NEAR_ZERO if is_near else Cause.WIDER_BOUND,
            difference.count,
            difference.count,
            values=(atol,),
            words="rtol as it is" if parameters.rtol else None,
            remedy=of_atol(atol, parameters.rtol),
        )
    ]


def _largest(golden: NDArray[Any]) -> float:
    """The largest |value|; not one that stands apart from all others, as a fill value does."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        sizes = np.abs(golden.reshape(-1)).astype(np.float64)
    apart = value_apart(sizes)
    sizes = sizes[np.isfinite(sizes)]
    if apart is not None:
        sizes = sizes[sizes != apart[0]]
    return float(sizes.max()) if sizes.size else 0.0


def _parts(moved: NDArray[Any]) -> NDArray[np.float64]:
    """|difference|; of complex numbers, of the part that moved most."""
    size: NDArray[np.float64] = np.maximum(np.abs(moved.real), np.abs(moved.imag))
    return size


def _least(golden: NDArray[Any]) -> NDArray[np.float64]:
    """What rtol is relative to; of complex numbers the smaller part, so that nothing is promised
    that does not hold.
    """
    size: NDArray[np.float64] = np.abs(golden.real)
    if golden.dtype.kind == "c":
        size = np.minimum(size, np.abs(golden.imag))
    return size
