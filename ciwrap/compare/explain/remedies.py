"""Settings under which what differs would match, seen to be enough for all elements.

Who sets a bound for a variable sets all of it: an rtol or an atol that needs the other one beside
it is offered with it, as a mapping.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.late import numpy as np
from ciwrap.model import number_text, two_digits_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.compare.explain.difference import Difference


def of_atol(atol: float, rtol: float) -> str:
    """`atol: 3e-9`, or with the rtol that is: an atol alone would set that to 0."""
    if not rtol:
        return f"atol: {number_text(atol)}"
    return f"{{atol: {number_text(atol)}, rtol: {number_text(rtol)}}}"


def of_rtol(difference: Difference, rtol: float, held: NDArray[np.bool_]) -> str | None:
    """`rtol: 6e-8`, or the atol that is with it, where noise next to zero needs one; None if they
    are not enough.

    held: of the differing elements, those that are explained.
    """
    golden, new, some = _meant(difference, held)
    with np.errstate(all="ignore"):
        moved, open_ = np.abs(new - golden), rtol * np.abs(golden)
        same = (golden == new) | (np.isnan(golden) & np.isnan(new))

        def is_enough(atol: float) -> bool:
            return bool(np.all((same | (moved <= atol + open_))[some]))

    parameters = difference.parameters
    if is_enough(0.0):
        return f"rtol: {number_text(rtol)}"
    if parameters.ulps or not parameters.atol or not is_enough(parameters.atol):
        return None
    return of_atol(parameters.atol, rtol)


def of_period(
    difference: Difference, periods: list[float], shown: str, held: NDArray[np.bool_]
) -> str | None:
    """`period: 10`, with an atol where the bound is none that a period goes with, or less than what
    rounding leaves; None if that would be as wide as a period.

    periods: of each component, 0 for none. held: of the differing elements, those explained.
    """
    golden, new, some = _meant(difference, held)
    own = np.asarray(periods)[np.arange(golden.size) % len(periods)]
    with np.errstate(all="ignore"):
        moved = new - golden
        turns = np.where(own > 0, np.rint(moved / np.where(own > 0, own, 1.0)), 0.0)
        back = moved - new
        lost = (new - (moved - back)) - (golden + back)
        apart = np.abs(moved - turns * own + lost)
        # One period is what it is; more of them are rounded.
        apart += np.where(np.abs(turns) > 1, np.spacing(np.abs(turns * own)), 0.0)
        apart += np.where(apart > 0, 2 * np.spacing(apart), 0.0)
        needed = float(np.max(apart[some & np.isfinite(moved)], initial=0.0))
    parameters = difference.parameters
    is_absolute = not parameters.rtol and not parameters.ulps
    if is_absolute and needed <= parameters.atol:
        return f"period: {shown}"
    atol = two_digits_above(max(needed, parameters.atol)) if needed else 0.0
    half = min(period for period in periods if period) / 2
    if not math.isfinite(atol) or atol >= half:
        return None
    return f"{{atol: {number_text(atol)}, period: {shown}}}"


def _meant(
    difference: Difference, held: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Both sides as float64, and which of all elements a remedy has to let pass."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        sides = [
            side.reshape(-1).astype(np.float64) for side in (difference.golden, difference.new)
        ]
    some = np.ones(difference.golden.size, dtype=np.bool_)
    some[difference.positions[~held]] = False
    return sides[0], sides[1], some
