"""The truth about `differs`: the error-bound contract, evaluated exactly.

A value v differs from a golden value g iff not (v == g, or |v - g| <= atol + rtol * |g|) over the
reals, with NaN, infinities and missing values as classes of their own. `differs_scalar` says so for
one pair with `fractions`; `exceeds` is its vectorised form: extended precision decides wherever its
error cannot matter and Python integers decide the rest, so it is exact as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from . import scalars as sc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .scalars import AnyArray

# Trusted only where it is wider than binary64 in both mantissa and exponent.
WIDE = np.longdouble if np.finfo(np.longdouble).maxexp > 2200 else None


@dataclass(frozen=True, slots=True)
class Bound:
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    equal_nan: bool = True
    fill_values: tuple[float | int, ...] = ()


def differs_scalar(
    golden: float | int, new: float | int, bound: Bound, *, integer: bool = False
) -> bool:
    """Contract section 1 for one pair and an (atol, rtol) bound, word for word."""

    def is_nan(x: float | int) -> bool:
        return x != x

    def missing(x: float | int) -> bool:
        return any(x == fill or (is_nan(x) and is_nan(fill)) for fill in bound.fill_values)

    if missing(golden) or missing(new):
        return missing(golden) != missing(new)
    if is_nan(golden) or is_nan(new):
        return not (bound.equal_nan and is_nan(golden) and is_nan(new))
    if golden == new:
        return False
    if math.isinf(golden) or math.isinf(new):
        return True
    allowed = Fraction(bound.atol)
    if not integer:
        allowed += Fraction(bound.rtol) * abs(Fraction(golden))
    return abs(Fraction(new) - Fraction(golden)) > allowed


def _units(values: AnyArray) -> list[int]:
    """Finite doubles as integers in units of 2^-1074."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64).tolist()
    shift = (exponent.astype(np.int64) - 53 + 1074).tolist()
    return [w << s if s >= 0 else w >> -s for w, s in zip(whole, shift, strict=True)]


def exceeds_exactly(golden: AnyArray, new: AnyArray, atol: Fraction, rtol: Fraction) -> list[bool]:
    """|new - golden| > atol + rtol * |golden| in integers, for finite doubles."""
    common = atol.denominator * rtol.denominator // math.gcd(atol.denominator, rtol.denominator)
    absolute = (atol.numerator * (common // atol.denominator)) << 1074
    relative = rtol.numerator * (common // rtol.denominator)
    return [
        abs(v - g) * common > absolute + relative * abs(g)
        for g, v in zip(_units(golden), _units(new), strict=True)
    ]


def exceeds(golden: AnyArray, new: AnyArray, atol: Fraction, rtol: Fraction) -> AnyArray:
    """|new - golden| > atol + rtol * |golden| over the reals, for finite binary64 arrays."""
    result = np.ones(golden.shape[0], dtype=bool)
    doubtful = np.ones(golden.shape[0], dtype=bool)
    if WIDE is not None:
        with np.errstate(all="ignore"):
            difference = np.abs(new.astype(WIDE) - golden.astype(WIDE))
            limit = _wide(atol) + _wide(rtol) * np.abs(golden).astype(WIDE)
            # Each side has at most four roundings of 2^-63; 2^-58 of the larger leaves room.
            slack = np.maximum(difference, limit) * WIDE(2.0**-58)
            result = difference > limit
            doubtful = ~(np.abs(difference - limit) > slack)
    at = np.flatnonzero(doubtful)
    if at.size:
        result[at] = exceeds_exactly(golden[at], new[at], atol, rtol)
    return result


def _wide(x: Fraction) -> Any:
    """A fraction in extended precision, within 2^-60 of it."""
    assert WIDE is not None
    if x == 0:
        return WIDE(0)
    shift = x.denominator.bit_length() - x.numerator.bit_length() + 62
    mantissa = (x.numerator << shift if shift > 0 else x.numerator) // (
        x.denominator if shift > 0 else x.denominator << -shift
    )
    high, low = mantissa >> 32, mantissa & 0xFFFFFFFF
    return np.ldexp(WIDE(high) * WIDE(2.0**32) + WIDE(low), -shift)


def image_distance(scalar: str, golden: AnyArray, new: AnyArray) -> AnyArray:
    """|i(new) - i(golden)| as uint64, which never overflows."""
    a, b = sc.ordered_image(scalar, golden), sc.ordered_image(scalar, new)
    distance = np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)
    return np.asarray(distance)


@np.errstate(all="ignore")
def differs_of_scalars(
    scalar: str,
    golden: AnyArray,
    new: AnyArray,
    bound: Bound,
    share: Fraction | None = None,
) -> AnyArray:
    """`differs` per scalar. With `share`: beyond that share of the bound, or of another class."""
    factor = Fraction(1) if share is None else share
    if scalar == "raw":
        return np.any(golden != new, axis=1)
    lost_g = sc.missing_mask(scalar, golden, bound.fill_values)
    lost_v = sc.missing_mask(scalar, new, bound.fill_values)
    if scalar == "b1":
        result = golden != new
    elif scalar in sc.INTEGERS:
        allowed = math.floor(Fraction(bound.atol) * factor)
        distance = image_distance(scalar, golden, new)
        result = distance > np.uint64(min(allowed, 2**64 - 1))
    else:
        result = _floats_differ(scalar, golden, new, bound, factor)
    return np.where(lost_g | lost_v, lost_g != lost_v, result)


def _floats_differ(
    scalar: str, golden: AnyArray, new: AnyArray, bound: Bound, factor: Fraction
) -> AnyArray:
    g, v = sc.widen(scalar, golden), sc.widen(scalar, new)
    both_nan = np.isnan(g) & np.isnan(v)
    finite = np.isfinite(g) & np.isfinite(v)
    result = np.ones(g.shape[0], dtype=bool)
    if bound.ulps:
        allowed = math.floor(bound.ulps * factor)
        result[finite] = image_distance(scalar, golden, new)[finite] > np.uint64(allowed)
    else:
        atol, rtol = Fraction(bound.atol) * factor, Fraction(bound.rtol) * factor
        result[finite] = exceeds(g[finite], v[finite], atol, rtol)
    result[g == v] = False
    if bound.equal_nan:
        result[both_nan] = False
    return result


def differs(dtype: str, golden: bytes, new: bytes, bound: Bound) -> AnyArray:
    """`differs` per element (a complex element differs if either part does)."""
    layout = sc.parse_dtype(dtype)
    g, v = sc.scalars_of(layout, golden), sc.scalars_of(layout, new)
    per_scalar = differs_of_scalars(layout.scalar, g, v, bound)
    if layout.scalars_per_element == 2:
        return np.asarray(per_scalar.reshape(-1, 2).any(axis=1))
    return per_scalar


def differs_structured(
    golden: AnyArray, new: AnyArray, bounds: Mapping[str, Bound], prefix: str = ""
) -> dict[str, AnyArray]:
    """Field by field, nested fields as "outer.inner"; every field is an array of its own."""
    assert golden.dtype == new.dtype
    assert golden.dtype.names is not None
    result: dict[str, AnyArray] = {}
    for name in golden.dtype.names:
        path = f"{prefix}{name}"
        g, v = golden[name], new[name]
        if g.dtype.names is not None:
            result |= differs_structured(g, v, bounds, path + ".")
            continue
        dtype = g.dtype.str if g.dtype.kind != "b" else "|b1"
        flat = differs(
            dtype,
            np.ascontiguousarray(g).tobytes(),
            np.ascontiguousarray(v).tobytes(),
            bounds.get(path, Bound()),
        )
        result[path] = flat.reshape(g.shape)
    return result
