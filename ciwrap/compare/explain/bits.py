"""Numbers of which bits or bytes are other ones: memory that fails, files that are read wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.compare.explain.difference import told
from ciwrap.details import Cause
from ciwrap.late import numpy as np
from ciwrap.structs import replace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.compare.explain.difference import Difference
    from ciwrap.details import Explanation

# Rounding turns the last bits.
_LEAST_BIT = 3
# Numbers of so few binary digits, such as 2.0 and 3.0, are often one bit apart by chance.
_ROUND_DIGITS = 10
# A number that is not just the golden's with a bit turned, since both have noise, has to be so many
# times nearer to it than to the golden's own; chance does that once in some ten thousand times.
_NEARER = 1e5


def byte_order(difference: Difference) -> Explanation | None:
    """The bytes of each number stand in the other order."""
    kind = difference.golden.dtype
    if kind.itemsize < 2 or kind.kind == "c":
        return None
    golden, new = _as_bits(difference)
    return told(difference, Cause.BYTE_ORDER, golden.byteswap() == new)


def one_bit(difference: Difference) -> Explanation | None:
    """The same bit of each number is another one, within what the bound leaves open; but for the
    sign, which is told by its name, and for the last bits.
    """
    kind = difference.golden.dtype
    if kind.kind != "f":
        return None
    golden, new = _as_bits(difference)
    below = (1 << (np.finfo(kind).nmant - _ROUND_DIGITS)) - 1 if kind.itemsize > 2 else 0
    if not np.any((golden | new) & golden.dtype.type(below)):
        return None
    sides = difference.sides
    slack = difference.slack(sides[0])
    bits = np.arange(_LEAST_BIT, 8 * kind.itemsize - 1, dtype=np.uint64)
    masks = (np.uint64(1) << bits).astype(golden.dtype)

    def held(mask: Any, some: slice) -> NDArray[np.bool_]:
        turned = golden[some] ^ mask
        with np.errstate(invalid="ignore"):  # a signalling NaN
            values = turned.view(kind).astype(np.float64)
        found: NDArray[np.bool_] = _is_near(values, sides[0][some], sides[1][some], slack[some])
        # A bit of the exponent leaves numbers that are next to zero, but none that is zero.
        found &= sides[1][some] != 0
        found |= turned == new[some]
        return found

    # The first number alone tells nearly always which bits it is not.
    of_first = held(masks, slice(1))
    for bit, mask in zip(bits[of_first].tolist(), masks[of_first], strict=True):
        found = told(difference, Cause.BIT_FLIPPED, held(mask, slice(None)))
        if found is not None:
            part = "fraction" if bit < np.finfo(kind).nmant else "exponent"
            return replace(found, values=(float(bit),), words=part)
    return None


def _as_bits(difference: Difference) -> tuple[NDArray[Any], NDArray[Any]]:
    """Golden and new of the differing elements, as unsigned whole numbers."""
    kind = np.dtype(f"u{difference.golden.dtype.itemsize}")
    golden, new = (
        np.ascontiguousarray(side).reshape(-1)[difference.positions].view(kind)
        for side in (difference.golden, difference.new)
    )
    return golden, new


def _is_near(
    turned: NDArray[np.float64],
    golden: NDArray[np.float64],
    new: NDArray[np.float64],
    slack: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether new numbers are the turned ones, as far as the bound leaves that open, and far away
    from the golden's.
    """
    with np.errstate(all="ignore"):
        # What the golden is off by is scaled by a bit of the exponent, up and down: any number
        # next to zero lies within the bound of one that was turned into zero.
        wide = 2 * slack * np.abs(turned / golden)
        near = np.abs(turned - new) <= wide
        clear: NDArray[np.bool_] = np.abs(new - golden) > _NEARER * wide
        return near & clear & np.isfinite(turned)
