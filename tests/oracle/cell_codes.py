"""Reference implementation of docs/reference/cell-codes.md: parameters, codes and residues.

Written from the page alone, section by section, in NumPy float64 and int64 (each elementwise
operation is one correctly rounded binary64 operation) and Python integers. Plain and slow.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import scalars as sc

if TYPE_CHECKING:
    from .scalars import AnyArray, ScalarLayout

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

LOG2E = float.fromhex("0x1.71547652b82fep+0")
B = 0x3FE6A09E667F3BCD  # encoding of sqrt(1/2)

COEFFICIENTS_16 = """
0x0.0p+0 0x1.71547652ba359p+0 -0x1.71547651e169ap-1 0x1.ec709db6a917ap-2 -0x1.71547766fca6dp-2
0x1.2776cb63ef368p-2 -0x1.ec701d0cd6a80p-3 0x1.a6149909f6312p-3 -0x1.7161bf1d85e89p-3
0x1.489bad0387ab2p-3 -0x1.26e4c9d196c5dp-3 0x1.07d4b6f771000p-3 -0x1.ececf14ab5518p-4
0x1.05e7b912bae76p-3 -0x1.f4a54c65e5645p-4 0x1.ea3a58193fa78p-5
"""
COEFFICIENTS_24 = """
0x0.0p+0 0x1.71547652b82fep+0 -0x1.71547652b82fdp-1 0x1.ec709dc3a0426p-2 -0x1.71547652b8515p-2
0x1.2776c50ef7991p-2 -0x1.ec709dc373636p-3 0x1.a61762a94f5a4p-3 -0x1.715476626450fp-3
0x1.484b13860745dp-3 -0x1.2776c1d8c87ccp-3 0x1.0c9a8d06e8dbfp-3 -0x1.ec716ecb6c9cfp-4
0x1.c68ea051151aep-4 -0x1.a606a0e2e5489p-4 0x1.89ed08e639ca6p-4 -0x1.72286131d83dap-4
0x1.5cc8f96567d52p-4 -0x1.426e037a7fa39p-4 0x1.284638b28f325p-4 -0x1.3720d3f2c428ap-4
0x1.6a8d31439926ep-4 -0x1.3a81b63b5ef41p-4 0x1.f6e7b0707b2a5p-6
"""
COEFFICIENTS = {
    16: tuple(float.fromhex(word) for word in COEFFICIENTS_16.split()),
    24: tuple(float.fromhex(word) for word in COEFFICIENTS_24.split()),
}


def bits64(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


def from_bits64(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def bits32(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def up(x: float, n: int) -> float:
    """The smallest double >= x with at most n significant bits."""
    mask = (1 << (53 - n)) - 1
    return from_bits64((bits64(x) + mask) & ~mask)


def power_of_two_at_least(x: float) -> int:
    """Exponent of the smallest power of two >= x > 0."""
    mantissa, exponent = math.frexp(x)
    return exponent - 1 if mantissa == 0.5 else exponent


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything derived from the parameters. Fields that a kind does not use stay at 0."""

    layout: ScalarLayout
    kind: str
    k: int
    h: int
    code_bytes: int
    chunk_scalars: int
    equal_nan: bool
    fill_values: tuple[float | int, ...]
    atol: float = 0.0  # the bound as used, which may be stricter than the bound as asked
    rtol: float = 0.0
    n: int = 0
    x_exponent: int = 1024  # X = 2^x_exponent
    inv: float = 0.0
    c1: float = 0.0
    c2: float = 0.0
    log_offset: int = 0  # E
    log_terms: int = 24
    log_error: float = 0.0  # w
    log_bound: float = 0.0  # L
    code_limit: int = 0  # C
    special_base: int = 0  # K
    d: int = 1
    fallback: bool = False  # `exact` although more was allowed

    @property
    def int_min(self) -> int:
        return -(1 << (8 * self.code_bytes - 1))

    @property
    def share(self) -> Fraction:
        """The share of the bound as used that always gives equal codes, never rounded up."""
        return guaranteed_share(self)


def scaled_power(exponent: int) -> float:
    return math.inf if exponent >= 1024 else math.ldexp(1.0, exponent)


def log2_parts(y: F64, terms: int) -> tuple[I64, F64]:
    """log2(y) as integer part e and fraction p, for y > 0."""
    tiny = y < 2.0**-1022
    y = y * np.where(tiny, 2.0**54, 1.0)
    bits = y.view(np.int64)
    e = (bits - B) >> 52
    u = (bits - (e << 52)).view(np.float64) - 1.0
    e = np.where(tiny, e - 54, e)
    u2 = u * u
    u4 = u2 * u2
    c = COEFFICIENTS[terms]
    p = np.zeros_like(u)
    for j in reversed(range(terms // 4)):
        low = c[4 * j] + c[4 * j + 1] * u
        high = c[4 * j + 2] + c[4 * j + 3] * u
        group = low + u2 * high
        p = group if j == terms // 4 - 1 else p * u4 + group
    return e, p


def scalar_log2(x: float, terms: int) -> tuple[int, float]:
    e, p = log2_parts(np.array([x]), terms)
    return int(e[0]), float(p[0])


def make_plan(
    dtype: str,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    ulps: int = 0,
    residue_levels: int = 1,
    chunk_bytes: int = 4096,
    equal_nan: bool = True,
    fill_values: tuple[float | int, ...] = (),
) -> Plan:
    layout = sc.parse_dtype(dtype)
    chunk_scalars = max(1, chunk_bytes // layout.scalar_bytes)
    if layout.scalars_per_element == 2 and chunk_scalars > 1:
        chunk_scalars -= chunk_scalars % 2
    exact = Plan(
        layout=layout,
        kind="exact",
        k=1,
        h=0,
        code_bytes=layout.scalar_bytes,
        chunk_scalars=chunk_scalars,
        equal_nan=equal_nan,
        fill_values=fill_values,
    )
    if layout.scalar in ("b1", "raw"):
        return exact
    if layout.scalar in sc.INTEGERS:
        n = min(math.floor(atol), 1 << 62)
        return _steps_plan(exact, n, residue_levels) if n > 0 else exact
    if ulps > 0:
        return _steps_plan(exact, ulps, residue_levels)
    plan = None
    if rtol > 0:
        plan = _relative_plan(exact, atol, rtol, residue_levels)
    elif atol > 0:
        plan = _absolute_plan(exact, atol, residue_levels)
    else:
        return exact
    if plan is None:
        return replace(exact, fallback=True)
    code_max = -plan.int_min - 1
    inf_bits = sc.BITS_OF_INF["f4" if plan.code_bytes == 4 else "f8"]
    return plan if plan.special_base + inf_bits <= code_max - 3 else replace(exact, fallback=True)


def _steps_plan(exact: Plan, n: int, residue_levels: int) -> Plan:
    k = min(residue_levels, 2 * n + 1)
    h = (k - 1) // 2
    return replace(
        exact,
        kind="steps",
        k=k,
        h=h,
        n=n,
        d=(n + 1) // (h + 1),
        code_bytes=4 if exact.layout.scalar_bytes <= 4 else 8,
    )


def _absolute_plan(exact: Plan, atol: float, k: int) -> Plan | None:
    narrow = exact.layout.scalar != "f8"
    if atol < (2.0**-149 if narrow else 2.0**-900):
        return None
    if not narrow:
        atol = min(atol, 2.0**960)
    h = (k - 1) // 2
    inv = up(((h + 1) / atol) * (1 + 2.0**-20), 26)
    shift, top = (24, 128) if narrow else (53, 1024)
    x_exponent = min(power_of_two_at_least(atol) + shift, top)
    largest = float(np.finfo(np.float32 if narrow else np.float64).max)
    code_limit = math.floor(min(scaled_power(x_exponent), largest) * inv / k) + 4
    x_bits = (x_exponent + 127) << 23 if narrow else (x_exponent + 1023) << 52
    return replace(
        exact,
        kind="absolute",
        k=k,
        h=h,
        atol=atol,
        inv=inv,
        x_exponent=x_exponent,
        code_limit=code_limit,
        special_base=code_limit + 1 - x_bits,
        code_bytes=4 if narrow else 8,
    )


def _relative_plan(exact: Plan, atol: float, rtol: float, k: int) -> Plan | None:
    c1 = 1.0
    if atol > 0:
        c1 = math.nextafter(rtol / atol, math.inf)
        if rtol / atol < 2.0**-1000:
            return _absolute_plan(exact, atol, k)
        if rtol / atol > 2.0**1000:
            atol = 0.0
    if rtol <= 2.0**-10:
        bound = (rtol - rtol * rtol * 0.5) * (LOG2E * (1 - 2.0**-50))
    else:
        e, p = scalar_log2(1 + rtol, 24)
        bound = (e + p) - 2.0**-48
    h = (k - 1) // 2
    if bound < 2.0**-44 or (h + 1) / bound > 2.0**48:
        return _absolute_plan(exact, atol, k) if atol > 0 else None
    terms = 16 if exact.layout.scalar != "f8" and bound >= 2.0**-30 else 24
    error = 2.0**-38 if terms == 16 else 2.0**-48
    c2 = up(((h + 1) + 2.0**-20) / (bound - error), 40)
    x_exponent = 1024
    if atol > 0 and c1 > 1:
        x_exponent = 1023 - power_of_two_at_least(c1)
    code_limit = math.floor(3200 * c2 / k) + 4
    return replace(
        exact,
        kind="relative",
        k=k,
        h=h,
        atol=atol,
        rtol=rtol,
        c1=c1,
        c2=c2,
        log_offset=0 if atol > 0 else 1100,
        log_terms=terms,
        log_error=error,
        log_bound=bound,
        x_exponent=x_exponent,
        code_limit=code_limit,
        special_base=code_limit + 1 - ((x_exponent + 1023) << 52),
        code_bytes=8,
    )


def round2(a: F64, b: F64) -> I64:
    n1 = np.rint((a + b) * 2.0**-30)
    low = np.floor(((a - n1 * 2.0**30) + b) + 0.5)
    return n1.astype(np.int64) * (1 << 30) + low.astype(np.int64)


def floor_half(x: F64) -> I64:
    return np.floor(x + 0.5).astype(np.int64)


def fine_steps(plan: Plan, scalars: AnyArray, special: AnyArray) -> I64:
    """Sections 5 to 7: the fine step f of every scalar; 0 for special ones."""
    if plan.kind == "steps":
        image = np.where(special, 0, sc.ordered_image(plan.layout.scalar, scalars))
        return np.asarray(image // plan.d, dtype=np.int64)
    x = np.where(special, 1.0, sc.widen(plan.layout.scalar, scalars))
    if plan.kind == "absolute" and plan.code_bytes == 4:
        f = floor_half(x * plan.inv)
    elif plan.kind == "absolute":
        high = (x.view(np.uint64) & ~np.uint64((1 << 27) - 1)).view(np.float64)
        f = round2(high * plan.inv, (x - high) * plan.inv)
    else:
        magnitude = np.abs(x)
        y = magnitude if plan.log_offset else 1.0 + plan.c1 * magnitude
        e, p = log2_parts(y, plan.log_terms)
        sign = np.copysign(1.0, x)
        a = (e + plan.log_offset).astype(np.float64) * plan.c2
        f = round2(sign * a, sign * (p * plan.c2))
    return np.where(special, 0, f)


@dataclass(frozen=True, slots=True)
class Codes:
    values: AnyArray  # int32 or int64, or rows of code_bytes bytes for `exact`
    residues: NDArray[np.uint8] | None  # of a golden with k > 1
    fine: I64 | None
    special: AnyArray
    nan: AnyArray  # NaN that are not missing
    delta: I64 | None = None  # against golden residues: r - s, wrapped


def special_codes(plan: Plan, scalars: AnyArray) -> tuple[AnyArray, I64]:
    """Which scalars are special, and the code of those that are."""
    scalar = plan.layout.scalar
    missing = sc.missing_mask(scalar, scalars, plan.fill_values)
    codes = np.zeros(scalars.shape[0], dtype=np.int64)
    special = missing.copy()
    int_max = -plan.int_min - 1
    if scalar in sc.FLOATS:
        x = sc.widen(scalar, scalars)
        magnitude = np.abs(x)
        large = magnitude >= scaled_power(plan.x_exponent)
        if plan.kind == "steps":
            large = np.isinf(x)
            codes[large] = np.where(x[large] > 0, int_max, int_max - 1)
        else:
            if plan.code_bytes == 4:
                bits = magnitude.astype(np.float32).view(np.uint32).astype(np.int64)
            else:
                bits = magnitude.view(np.int64)
            value = bits[large] + plan.special_base
            codes[large] = np.where(x[large] < 0, -value, value)
        special |= large
        if plan.kind == "relative" and plan.log_offset:
            special |= x == 0
            codes[x == 0] = plan.int_min + 2
        special |= np.isnan(x)
        codes[np.isnan(x)] = plan.int_min
    codes[missing] = plan.int_min + 1
    return special, codes


@np.errstate(all="ignore")  # overflow and NaN are part of the matter here
def cell_codes(plan: Plan, data: bytes, golden_residues: AnyArray | None = None) -> Codes:
    """Codes of every scalar of `data`, as a golden or, given residues, as a new run."""
    scalars = sc.scalars_of(plan.layout, data)
    missing = sc.missing_mask(plan.layout.scalar, scalars, plan.fill_values)
    nan = sc.nan_mask(plan.layout.scalar, scalars) & ~missing
    if plan.kind == "exact":
        rows = exact_bits(plan, scalars, missing)
        return Codes(rows, None, None, np.ones(scalars.shape[0], dtype=bool), nan)
    special, codes = special_codes(plan, scalars)
    f = fine_steps(plan, scalars, special)
    r = f % plan.k
    residues = delta = None
    if plan.k == 1:
        rounded = f
    elif golden_residues is None:
        rounded = f // plan.k
        residues = np.where(special, 0, r).astype(np.uint8)
    else:
        s = golden_residues.astype(np.int64)
        above = r - s > plan.h
        below = r - s < -plan.h
        rounded = f // plan.k + above - below
        delta = r - s - plan.k * above.astype(np.int64) + plan.k * below.astype(np.int64)
    values = np.where(special, codes, rounded).astype(f"<i{plan.code_bytes}")
    return Codes(values, residues, f, special, nan, delta)


def exact_bits(plan: Plan, scalars: AnyArray, missing: AnyArray) -> AnyArray:
    """Section 3: rows of the scalar's own canonical bytes."""
    layout = plan.layout
    if layout.scalar in ("raw", "b1"):
        return scalars.reshape(-1, layout.scalar_bytes)
    if layout.scalar in sc.FLOATS:
        bits = canonical_float_bits(layout.scalar, scalars)
        if missing.any():
            fill = sc.narrow(layout.scalar, np.array([plan.fill_values[0]], dtype=np.float64))
            bits[missing] = canonical_float_bits(layout.scalar, fill)[0]
    else:
        bits = scalars.copy()
        if missing.any():
            bits[missing] = int(plan.fill_values[0])
    little = bits.astype(bits.dtype.newbyteorder("<"))
    return np.frombuffer(little.tobytes(), dtype=np.uint8).reshape(-1, layout.scalar_bytes)


def canonical_float_bits(scalar: str, scalars: AnyArray) -> AnyArray:
    bits = sc.raw_bits(scalar, scalars).copy()
    x = sc.widen(scalar, scalars)
    bits[x == 0] = 0
    bits[np.isnan(x)] = sc.CANONICAL_NAN[scalar]
    return bits


def _floor_root(base: Fraction, places: int = 40) -> Fraction:
    scale = 10**places
    return Fraction(base.numerator * scale // base.denominator, scale)


def guaranteed_share(plan: Plan) -> Fraction:
    """Section 5 to 7's `share`, rounded down a little so that a test of it is fair."""
    h = plan.h
    if plan.kind == "exact":
        return Fraction(0 if plan.fallback else 1)
    if plan.kind == "steps":
        return Fraction(h * plan.d, plan.n)
    if h == 0:
        return Fraction(0)
    tiny = Fraction(1, 2**20)
    if plan.kind == "absolute":
        return _floor_root((h - tiny) / ((h + 1) * (1 + 2 * tiny)))
    with localcontext() as context:
        context.prec = 60
        rtol = Decimal(plan.rtol)
        log_bound = (1 + rtol).ln() / Decimal(2).ln()
        t = (Decimal(h) - Decimal(2) ** -19) / (Decimal(plan.c2) * log_bound)
        t -= 2 * Decimal(plan.log_error) / log_bound
        if t <= 0:
            return Fraction(0)
        share = (1 - (-t * (1 + rtol).ln()).exp()) / rtol
        return Fraction(share) * (1 - Fraction(1, 10**30))
