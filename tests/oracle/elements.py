"""What an element comparison has to say, computed plainly.

The verdict comes from the contract oracle, exactly. Shares of the bound are in extended precision;
elements whose share is too near a bin's edge to be sure are counted apart, as `unsure_bins`, and so
are those whose bound or share is so small that binary64 holds it with few bits (`tiny`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import contract
from . import scalars as sc

if TYPE_CHECKING:
    from .scalars import AnyArray

BINS = 34
TINY = 2.0**-1000
WIDE = contract.WIDE if contract.WIDE is not None else np.float64


@dataclass(slots=True)
class Expected:
    element_count: int
    differing: AnyArray  # element indices, ascending
    max_abs_difference: float
    max_abs_elements: AnyArray  # elements that attain it
    mean_abs_difference: float  # over scalars that are finite numbers on both sides
    max_rel_difference: float
    mean_rel_difference: float  # over those with a golden other than zero
    max_bound_share: float
    nan_mismatch_count: int
    inf_mismatch_count: int
    missing_mismatch_count: int
    histogram: AnyArray  # lower bounds of the counts
    unsure_bins: int
    tiny: int


@np.errstate(all="ignore")
def compare(dtype: str, golden: bytes, new: bytes, bound: contract.Bound) -> Expected:
    layout = sc.parse_dtype(dtype)
    scalar, parts = layout.scalar, layout.scalars_per_element
    g, v = sc.scalars_of(layout, golden), sc.scalars_of(layout, new)
    differs = contract.differs_of_scalars(scalar, g, v, bound)
    lost_g = sc.missing_mask(scalar, g, bound.fill_values)
    lost_v = sc.missing_mask(scalar, v, bound.fill_values)
    present = ~lost_g & ~lost_v
    nan = sc.nan_mask(scalar, g) | sc.nan_mask(scalar, v)
    infinite = np.zeros_like(nan)
    if scalar in sc.FLOATS:
        infinite = np.isinf(sc.widen(scalar, g)) | np.isinf(sc.widen(scalar, v))
    finite = present & ~nan & ~infinite
    difference, size = _difference(scalar, g, v, finite)
    share = np.where(differs, np.inf, 0).astype(WIDE)
    if scalar != "raw":
        share[finite] = _share(scalar, g, v, difference, size, bound, differs)[finite]
    relative = np.where(finite & (size > 0), difference / np.where(size > 0, size, 1), 0)

    per_element = share.reshape(-1, parts).max(axis=1)
    allowed = WIDE(bound.atol) + WIDE(bound.rtol) * size
    small = finite & (difference > 0) & (allowed > 0) & ((allowed < TINY) | (share < TINY))
    tiny = small.reshape(-1, parts).any(axis=1)
    histogram, unsure = _histogram(per_element, tiny)
    rounded = np.where(finite, difference, 0).astype(np.float64)
    by_element = rounded.reshape(-1, parts).max(axis=1)
    largest = by_element.max(initial=0.0)
    counted = finite & (size > 0)
    return Expected(
        element_count=len(per_element),
        differing=np.flatnonzero(differs.reshape(-1, parts).any(axis=1)),
        max_abs_difference=float(largest),
        max_abs_elements=np.flatnonzero(by_element == largest),
        mean_abs_difference=float(difference[finite].sum() / max(1, finite.sum())),
        max_rel_difference=float(relative.max(initial=WIDE(0))),
        mean_rel_difference=float(relative[counted].sum() / max(1, counted.sum())),
        max_bound_share=float(per_element[~tiny].max(initial=WIDE(0))),
        nan_mismatch_count=int((differs & present & nan).sum()),
        inf_mismatch_count=int((differs & present & ~nan & infinite).sum()),
        missing_mismatch_count=int((lost_g != lost_v).sum()),
        histogram=histogram,
        unsure_bins=unsure,
        tiny=int(tiny.sum()),
    )


def _difference(
    scalar: str, g: AnyArray, v: AnyArray, finite: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """|v - g| and |g| of finite scalars in extended precision, 0 elsewhere."""
    if scalar == "raw":
        nothing = np.zeros(len(finite), dtype=WIDE)
        finite[:] = False
        return nothing, nothing
    if scalar in sc.INTEGERS:
        distance = contract.image_distance(scalar, g, v).astype(WIDE)
        return np.where(finite, distance, 0), np.abs(g.astype(WIDE)) * finite
    wide_g, wide_v = (
        (a.astype(WIDE) if scalar == "b1" else sc.widen(scalar, a).astype(WIDE)) for a in (g, v)
    )
    size = np.where(finite, np.abs(wide_g), 0)
    return np.where(finite, np.abs(wide_v - wide_g), 0), size


def _share(
    scalar: str,
    g: AnyArray,
    v: AnyArray,
    difference: AnyArray,
    size: AnyArray,
    bound: contract.Bound,
    differs: AnyArray,
) -> AnyArray:
    if scalar in sc.FLOATS and bound.ulps:
        share = contract.image_distance(scalar, g, v).astype(WIDE) / WIDE(bound.ulps)
    else:
        allowed = WIDE(bound.atol) + WIDE(bound.rtol) * size
        if scalar in sc.INTEGERS:
            allowed = np.full(len(g), np.floor(WIDE(bound.atol)))
        elif scalar == "b1":
            allowed = np.zeros(len(g), dtype=WIDE)
        share = np.where(allowed > 0, difference / np.where(allowed > 0, allowed, 1), np.inf)
        share = np.where(difference == 0, 0, share)
    # The exact verdict decides on which side of 1 a share lies that is 1 to within rounding.
    share = np.where(differs & (share <= 1), np.nextafter(WIDE(1), WIDE(2)), share)
    return np.where(~differs & (share > 1), WIDE(1), share)


def _histogram(share: AnyArray, tiny: AnyArray) -> tuple[AnyArray, int]:
    """[0]: 0; [1]: below 2^-16; [i]: from 2^(i-18) below 2^(i-17); [33]: from 2^15 on."""
    finite = np.isfinite(share) & (share > 0)
    mantissa, exponent = np.frexp(np.where(finite, share, 1))
    index = np.clip(exponent + 17, 1, 33)
    edge = 2.0**-45
    unsure = finite & ((mantissa < 0.5 * (1 + edge)) | (mantissa > 1 - edge))
    unsure &= ~((share > 1) & (share < 1 + edge))  # the verdict decides just above 1
    unsure |= tiny
    index = np.where(share == 0, 0, np.where(np.isfinite(share), index, 33))
    return np.bincount(index[~unsure], minlength=BINS), int(unsure.sum())
