"""Pairs (golden, new) chosen to break a rounding scheme, for every scalar type and bound.

The same bytes on every machine: all that is not a single operation comes from `same_numbers`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from . import scalars as sc
from .cell_codes import Plan, scaled_power
from .same_numbers import LN_2, bell, exp2, expm1, uniform

if TYPE_CHECKING:
    from .scalars import AnyArray

Rng = np.random.Generator

MAX_FLOAT = {"f2": 65504.0, "bf2": 2.0**127 * (2 - 2.0**-7), "f4": float(np.finfo("f4").max)}
EPS = 2.0**-20


def golden_floats(plan: Plan, rng: Rng, count: int, bound: tuple[float, float]) -> AnyArray:
    """Golden values: everywhere in the type's range, and thick wherever a rule changes."""
    scalar = plan.layout.scalar
    atol, rtol = bound
    scale = atol if atol > 0 else 1.0
    x = scaled_power(min(plan.x_exponent, 1023))
    sign = rng.choice([-1.0, 1.0], count)
    with np.errstate(all="ignore"):
        sources = [
            bell(rng, count) * scale * exp2(uniform(rng, -6.6, 13.3, count)),
            bell(rng, count),
            sign * exp2(uniform(rng, -1074, 1024, count)),
            sign * exp2(np.rint(uniform(rng, -149, 128, count))),
            sign * x * (1 + rng.integers(-4, 4, count) * exp2(rng.integers(-53, -20, count) * 1.0)),
            sign * x * exp2(uniform(rng, -12, 2, count)),
            cell_borders(plan, rng, count),
            sign * rng.choice([0.0, 5e-324, 2.0**-149, 2.0**-24, 2.0**-133, 2.0**-1022], count),
            sign * rng.choice([math.inf, MAX_FLOAT.get(scalar, 1.7976931348623157e308)], count),
            np.full(count, math.nan),
        ]
        if rtol > 0 and atol > 0:
            turn = atol / rtol if atol / rtol < 1e300 else 1.0
            sources.append(sign * turn * exp2(uniform(rng, -30, 30, count)))
        if plan.kind == "relative":
            # Where the logarithm passes from one octave to the next, its error jumps.
            octave = exp2(np.rint(uniform(rng, 0, 40, count)) + 0.5)
            octave *= 1 + min(rtol, 0.1) * uniform(rng, -2, 2, count)
            sources.append(sign * (octave if plan.log_offset else (octave - 1) / plan.c1))
    weights = [60, 40, 40, 10, 10, 20, 80, 5, 1, 1] + [40] * (len(sources) - 10)
    which = rng.choice(np.repeat(np.arange(len(sources)), weights), count)
    chosen = sc.narrow(scalar, np.choose(which, np.broadcast_arrays(*sources)))
    return nudge(scalar, chosen, rng, 0.3)


def vary_nan(scalar: str, values: AnyArray, rng: Rng) -> AnyArray:
    """Gives every NaN a sign and a payload; those that arithmetic makes differ by machine."""
    bits = sc.raw_bits(scalar, values).astype(np.uint64)
    width = 8 * sc.raw_bits(scalar, values).dtype.itemsize
    infinity = np.uint64(sc.BITS_OF_INF[scalar])
    sign = np.uint64(1 << (width - 1))
    payload = rng.integers(1, int(infinity & (~infinity + np.uint64(1))), bits.shape[0])
    other = infinity | payload.astype(np.uint64)
    other |= np.where(rng.random(bits.shape[0]) < 0.5, sign, np.uint64(0))
    return sc.from_bits(scalar, np.where((bits & ~sign) > infinity, other, bits))


def cell_borders(plan: Plan, rng: Rng, count: int) -> AnyArray:
    """Values where the fine step changes, small and large."""
    sign = rng.choice([-1.0, 1.0], count)
    step = np.floor(exp2(uniform(rng, 0, 50, count))) - 0.5
    if plan.kind == "absolute":
        without_hair = (plan.h + 1) / plan.atol  # borders of steps that do not leave room for error
        return sign * step / np.where(rng.random(count) < 0.5, plan.inv, without_hair)
    if plan.kind == "relative" and plan.log_offset == 0:
        octaves = math.frexp(max(2.0, 900 * plan.c2))[1]
        step = np.floor(exp2(uniform(rng, 0, octaves, count))) - 0.5
        return sign * expm1(np.minimum(step / plan.c2 * LN_2, 700)) / plan.c1
    if plan.kind == "relative":
        phi = (np.floor(uniform(rng, 30, 2100, count) * plan.c2) - 0.5) / plan.c2
        return sign * exp2(phi - 1100)
    return sign * exp2(uniform(rng, -20, 20, count))


def nudge(scalar: str, values: AnyArray, rng: Rng, share: float) -> AnyArray:
    """Moves a share of the finite values by up to two representable values."""
    bits = sc.raw_bits(scalar, values)
    moved = bits.astype(np.int64) + rng.integers(-2, 3, bits.shape[0])
    width = bits.dtype.itemsize * 8
    magnitude = np.uint64((1 << (width - 1)) - 1)
    inside = (bits.astype(np.uint64) & magnitude) < np.uint64(sc.BITS_OF_INF[scalar] - 3)
    inside &= (bits.astype(np.uint64) & magnitude) > 2
    pick = inside & (rng.random(bits.shape[0]) < share)
    return sc.from_bits(scalar, np.where(pick, moved.astype(np.uint64), bits.astype(np.uint64)))


def new_floats(plan: Plan, rng: Rng, golden: AnyArray, bound: tuple[float, float]) -> AnyArray:
    """New values at telling multiples of the bound from the golden ones, and some unrelated."""
    scalar = plan.layout.scalar
    atol, rtol = bound
    count = golden.shape[0]
    share = float(plan.share)
    around = [1 - EPS, 1, 1 + 2.0**-50, 1 + 2.0**-40, 1 + 2.0**-28, 1 + EPS]
    factors = np.array([0, 0.01, 0.3, 0.5, *(share * np.array([1 - EPS, 1, 1 + EPS])), *around, 2])
    factor = np.where(
        rng.random(count) < 0.7, rng.choice(factors, count), uniform(rng, 0, 1.3, count)
    )
    sign = rng.choice([-1.0, 1.0], count)
    g = sc.widen(scalar, golden)
    with np.errstate(all="ignore"):
        near = g + sign * factor * (atol + rtol * np.abs(g))
        if plan.kind == "steps":
            near = g
        lower = np.where(rng.random(count) < 0.5, g / (1 + rtol), near)
    values = sc.narrow(scalar, np.where(rng.random(count) < 0.05, lower, near))
    values = nudge(scalar, values, rng, 0.4)
    if plan.kind == "steps":
        values = step_away(plan, rng, golden)
    unrelated = rng.permutation(golden)
    odd = rng.random(count)
    values = np.where(odd < 0.01, unrelated, values)
    bits = sc.raw_bits(scalar, golden)
    flipped = bits ^ bits.dtype.type(1 << (bits.dtype.itemsize * 8 - 1))
    return np.where(odd > 0.99, sc.from_bits(scalar, flipped), values)


def step_away(plan: Plan, rng: Rng, golden: AnyArray) -> AnyArray:
    """Values a telling number of steps from the golden ones (floats and integers)."""
    scalar = plan.layout.scalar
    count = golden.shape[0]
    n, reach = plan.n, plan.h * plan.d
    steps = [0, 1, reach, reach + 1, n - 1, n, n + 1, 2 * n + 1]
    distance = rng.choice(np.array([s % 2**63 for s in steps], dtype=np.int64), count)
    loose = rng.random(count) < 0.3
    top = min(2 * n + 2, 2**62)
    distance = np.where(loose, rng.integers(0, top, count), distance)
    distance = np.where(rng.random(count) < 0.5, distance, -distance)
    if scalar in sc.INTEGERS:
        unsigned = golden.view(f"=u{golden.dtype.itemsize}")
        return np.asarray((unsigned + distance.astype(unsigned.dtype)).view(golden.dtype))
    image = sc.ordered_image(scalar, golden)
    inf = sc.BITS_OF_INF[scalar]
    with np.errstate(over="ignore"):
        moved = np.clip(image + np.clip(distance, -(2**61), 2**61), -inf, inf)
    width = 2 if scalar == "bf2" else int(scalar[1:])
    sign_bit = np.uint64(1 << (8 * width - 1))
    bits = np.abs(moved).astype(np.uint64) | np.where(moved < 0, sign_bit, np.uint64(0))
    return sc.from_bits(scalar, bits)


def golden_integers(plan: Plan, rng: Rng, count: int) -> AnyArray:
    scalar = plan.layout.scalar
    info = np.iinfo(scalar)
    anywhere = rng.integers(0, 256, count * info.bits // 8).astype(np.uint8).view("=" + scalar)
    small = rng.integers(-100 if info.min else 0, 100, count).astype("=" + scalar)
    ends = rng.choice(np.array([info.min, info.max], dtype="=" + scalar), count)
    which = rng.choice(3, count, p=[0.5, 0.4, 0.1])
    return np.choose(which, [anywhere, small, ends])


@np.errstate(all="ignore")
def pairs(
    plan: Plan, rng: Rng, count: int, bound: tuple[float, float] | None = None
) -> tuple[AnyArray, AnyArray]:
    """`count` scalars of golden and of new, in native order (raw: rows of bytes)."""
    scalar = plan.layout.scalar
    if scalar == "raw":
        golden = rng.integers(97, 100, (count, plan.layout.scalar_bytes)).astype(np.uint8)
        new = golden.copy()
        at = rng.random(count) < 0.2
        new[at, -1] ^= 1
        return golden, new
    if scalar == "b1":
        golden = rng.integers(0, 2, count).astype(np.uint8)
        return golden, np.where(rng.random(count) < 0.2, 1 - golden, golden).astype(np.uint8)
    if scalar in sc.INTEGERS:
        golden = golden_integers(plan, rng, count)
        new = step_away(plan, rng, golden)
    else:
        used = (plan.atol, plan.rtol) if bound is None else bound
        golden = golden_floats(plan, rng, count, used)
        new = new_floats(plan, rng, golden, used)
    for fill in plan.fill_values:
        value = sc.narrow(scalar, np.array([fill], dtype="f8")) if scalar in sc.FLOATS else fill
        golden = np.where(rng.random(count) < 0.02, value, golden).astype(golden.dtype)
        new = np.where(rng.random(count) < 0.02, value, new).astype(golden.dtype)
    if scalar in sc.FLOATS:
        return vary_nan(scalar, golden, rng), vary_nan(scalar, new, rng)
    return golden, new
