"""|difference| / bound of many elements at once, for samples and maps; verdicts are the core's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.convert import is_bfloat16, widen_bfloat16
from ciwrap.details import BOUND_CLASS, NO_NUMBER, SHARE_CLASSES
from ciwrap.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap import _core

_ORDERED = {2: "i2", 4: "i4", 8: "i8"}


def as_numbers(elements: NDArray[Any], dtype: str) -> NDArray[Any] | None:
    """Elements as native numbers NumPy can calculate with; None for bytes and strings."""
    if is_bfloat16(dtype):
        return widen_bfloat16(elements)
    if elements.dtype.kind not in "iufcb":
        return None
    native = elements.astype(elements.dtype.newbyteorder("="), copy=False)
    return native.view(np.uint8) if native.dtype.kind == "b" else native


def ordered(values: NDArray[Any]) -> NDArray[Any] | None:
    """Floats as whole numbers in the same order, neighbours one apart; None for other kinds."""
    if values.dtype.kind != "f" or values.dtype.itemsize not in _ORDERED:
        return None
    bits = np.ascontiguousarray(values).view(_ORDERED[values.dtype.itemsize])
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, lowest - bits, bits)


def share_of_bound(
    golden: NDArray[Any], new: NDArray[Any], parameters: _core.TreeParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(|v - g| / bound, |v - g|) of 1-d arrays in the golden's dtype.

    0 where they are equal in the contract's sense, inf where the bound is 0 or one side is special
    (|v - g| is inf then, too). Rounded: near the bound it may err in the last digits.
    """
    g, v = as_numbers(golden, parameters.dtype), as_numbers(new, parameters.dtype)
    if g is None or v is None:
        unequal = np.where(golden != new, np.inf, 0.0)
        return unequal, np.minimum(unequal, 1.0)
    if g.dtype.kind == "c":
        parts = [
            share_of_numbers(getattr(g, part), getattr(v, part), parameters)
            for part in ("real", "imag")
        ]
        return np.maximum(parts[0][0], parts[1][0]), np.maximum(parts[0][1], parts[1][1])
    return share_of_numbers(g, v, parameters)


def share_of_numbers(
    golden: NDArray[Any], new: NDArray[Any], parameters: _core.TreeParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    with np.errstate(all="ignore"):
        is_same = golden == new
        missing = np.zeros(golden.shape, dtype=bool)
        for value in parameters.fill_values:
            fill = np.asarray(value).astype(golden.dtype)
            ours, theirs = golden == fill, new == fill
            is_same |= ours & theirs
            missing |= ours ^ theirs
        if golden.dtype.kind == "f":
            both_nan = np.isnan(golden) & np.isnan(new)
            if parameters.equal_nan:
                is_same |= both_nan
        g, v = golden.astype(np.float64), new.astype(np.float64)
        difference = np.minimum(np.abs(v - g), np.finfo(np.float64).max)
        if golden.dtype.kind in "iu" and golden.dtype.itemsize == 8:
            difference = _apart(golden, new)
        share = _share(golden, new, g, difference, parameters)
        special = ~is_same & (missing | ~np.isfinite(g) | ~np.isfinite(v))
        share = np.where(special | np.isnan(share), np.inf, share)
        difference = np.where(special, np.inf, difference)
    return np.where(is_same, 0.0, share), np.where(is_same, 0.0, difference)


def _apart(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """How far whole numbers are apart, rounded once: beyond 2^53 neighbours fall together as
    float64, while unsigned wrap-around is exact.
    """
    unsigned = one.astype(np.uint64), other.astype(np.uint64)
    apart = np.where(other > one, unsigned[1] - unsigned[0], unsigned[0] - unsigned[1])
    return apart.astype(np.float64)


def _share(
    golden: NDArray[Any],
    new: NDArray[Any],
    g: NDArray[np.float64],
    difference: NDArray[np.float64],
    parameters: _core.TreeParameters,
) -> NDArray[np.float64]:
    if parameters.ulps:
        ours, theirs = ordered(golden), ordered(new)
        if ours is not None and theirs is not None:
            return _apart(ours, theirs) / parameters.ulps
        return difference / parameters.ulps
    # Whole numbers may be so many of them apart, as the core has it.
    atol = math.floor(parameters.atol) if golden.dtype.kind in "iu" else parameters.atol
    share: NDArray[np.float64] = difference / (atol + parameters.rtol * np.abs(g))
    return share


def share_classes(
    shares: NDArray[np.float64], differences: NDArray[np.float64] | None = None
) -> NDArray[np.uint8]:
    """Classes as in `Comparison.histogram`; whatever is beyond its bound is in one beyond it, and
    what has no finite difference in one of its own.
    """
    with np.errstate(all="ignore"):
        exponents = np.floor(np.log2(shares)) + BOUND_CLASS
    # Exactly the bound is within it.
    exponents = np.where(shares == 1.0, BOUND_CLASS - 1, exponents)
    classes = np.clip(np.nan_to_num(exponents, nan=33, posinf=33, neginf=1), 1, SHARE_CLASSES - 1)
    if differences is not None:
        classes = np.where(np.isinf(differences), NO_NUMBER, classes)
    return np.where(shares == 0, 0, classes).astype(np.uint8)
