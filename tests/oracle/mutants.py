"""Deliberately broken encoders. A suite that lets one of them pass is not worth running.

Each mutant changes the reference implementation in one place. `breaks` tells what the contract
attack has to report about it ("misses", "false_alarms", "met", "wrong_drift"); those with an empty
`breaks` keep the contract but not the codes: only bit-identity with the reference tells them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from . import cell_codes as cc
from . import scalars as sc
from .cases import Case

if TYPE_CHECKING:
    from collections.abc import Callable

    from .attack import Encoder
    from .cell_codes import Codes, Plan
    from .scalars import AnyArray


@dataclass(frozen=True)
class Mutant:
    name: str
    cases: tuple[Case, ...]
    breaks: tuple[str, ...]
    plan: Callable[[Plan], Plan] | None = None
    patches: tuple[tuple[Any, str, Any], ...] = ()

    def encoder(self) -> Encoder:
        def encode(plan: Plan, data: bytes, residues: AnyArray | None) -> Codes:
            used = plan if self.plan is None else self.plan(plan)
            with contextlib.ExitStack() as stack:
                for module, name, function in self.patches:
                    stack.enter_context(mock.patch.object(module, name, function))
                return cc.cell_codes(used, data, residues)

        return encode


def down(x: float, n: int) -> float:
    return cc.from_bits64(cc.bits64(x) & ~((1 << (53 - n)) - 1))


def scaled_inv(factor: float) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, inv=down(plan.inv * factor, 26))


def scaled_c2(factor: float) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, c2=down(plan.c2 * factor, 40))


def without_hair(plan: Plan) -> Plan:
    return replace(plan, inv=down((plan.h + 1) / plan.atol, 26))


def without_log_budget(plan: Plan) -> Plan:
    return replace(plan, c2=down((plan.h + 1) / plan.log_bound, 40))


def linear_log_bound(plan: Plan) -> Plan:
    bound = plan.rtol * cc.LOG2E
    return replace(plan, c2=cc.up((plan.h + 1) / bound, 40))


def naive_round2(a: AnyArray, b: AnyArray) -> AnyArray:
    return np.asarray(np.floor((a + b) + 0.5).astype(np.int64))


def half_even(x: AnyArray) -> AnyArray:
    return np.asarray(np.rint(x).astype(np.int64))


def half_dropped(x: AnyArray) -> AnyArray:
    return np.asarray(np.floor(x).astype(np.int64))


def toward_zero(x: AnyArray) -> AnyArray:
    return np.asarray(np.trunc(x).astype(np.int64))


def unsigned_as_signed(scalar: str, scalars: AnyArray) -> AnyArray:
    if scalar in sc.UNSIGNED:
        return scalars.view(f"=i{scalars.dtype.itemsize}").astype(np.int64)
    return sc.ordered_image(scalar, scalars)


def image_with_two_zeros(scalar: str, scalars: AnyArray) -> AnyArray:
    image = _image(scalar, scalars)
    bits = sc.raw_bits(scalar, scalars)
    negative = (bits >> bits.dtype.type(bits.dtype.itemsize * 8 - 1)) != 0
    return np.where(negative, image - 1, image)


def payload_kept(scalar: str, scalars: AnyArray) -> AnyArray:
    bits = sc.raw_bits(scalar, scalars).copy()
    bits[sc.widen(scalar, scalars) == 0] = 0
    return bits


def sign_of_zero_kept(scalar: str, scalars: AnyArray) -> AnyArray:
    bits = sc.raw_bits(scalar, scalars).copy()
    bits[np.isnan(sc.widen(scalar, scalars))] = sc.CANONICAL_NAN[scalar]
    return bits


def contracted_log2(y: AnyArray, terms: int) -> tuple[AnyArray, AnyArray]:
    """Wider intermediates, as of a compiler that fuses operations."""
    e, _ = _log2(y, terms)
    bits = (y * np.where(y < 2.0**-1022, 2.0**54, 1.0)).view(np.int64)
    u = (bits - (((bits - cc.B) >> 52) << 52)).view(np.float64).astype(np.longdouble) - 1
    p = np.zeros_like(u)
    for c in reversed(cc.COEFFICIENTS[terms]):
        p = p * u + c
    return e, p.astype(np.float64)


def short_log2(y: AnyArray, terms: int) -> tuple[AnyArray, AnyArray]:
    return _log2(y, 16)


def infinities_alike(plan: Plan, scalars: AnyArray) -> tuple[AnyArray, AnyArray]:
    special, codes = _special(plan, scalars)
    negative = sc.widen(plan.layout.scalar, scalars) == -np.inf
    positive = _special(plan, sc.narrow(plan.layout.scalar, np.array([np.inf])))[1]
    codes[negative] = positive[0]
    return special, codes


def missing_as_nan(plan: Plan, scalars: AnyArray) -> tuple[AnyArray, AnyArray]:
    special, codes = _special(plan, scalars)
    codes[sc.missing_mask(plan.layout.scalar, scalars, plan.fill_values)] = plan.int_min
    return special, codes


def first_fill_only(scalar: str, scalars: AnyArray, fills: tuple[float | int, ...]) -> AnyArray:
    return _missing(scalar, scalars, fills[:1])


def nothing_missing(scalar: str, scalars: AnyArray, fills: tuple[float | int, ...]) -> AnyArray:
    return _missing(scalar, scalars, ())


_image, _log2, _special, _missing = (
    sc.ordered_image,
    cc.log2_parts,
    cc.special_codes,
    sc.missing_mask,
)

ABS4 = tuple(Case("<f4", k, {"atol": a}) for k in (1, 5, 15) for a in (1e-3, 2.0**-10))
ABS8 = tuple(Case("<f8", k, {"atol": a}) for k in (1, 3, 15) for a in (1e-3, 2.0**-10))
ABS8_ODD = tuple(Case("<f8", k, {"atol": 0.0012345}) for k in (1, 3, 15))
ABS_K = tuple(Case(t, k, {"atol": 1e-3}) for k in (3, 15) for t in ("<f4", "<f8"))
REL = tuple(Case(t, k, {"rtol": 1e-3}) for k in (1, 5, 15) for t in ("<f4", "<f8"))
REL_SMALL = tuple(Case("<f4", k, {"atol": 1.0, "rtol": 2.0**-29}) for k in (1, 15))
REL_TINY = (Case("<f8", 3, {"atol": 1.0, "rtol": 2.0**-43}),)
MIXED = tuple(Case(t, k, {"atol": 1e-5, "rtol": 1e-3}) for k in (1, 15) for t in ("<f4", "<f8"))
STEPS = tuple(Case(t, k, {"ulps": 100}) for k in (1, 3, 15) for t in ("<f4", "<f8"))
UNSIGNED = tuple(Case(t, 3, {"atol": 3.0}) for t in ("<u8", "|u1"))
FILLED = tuple(
    Case("<f4", k, b, {"fill_values": (2.0, np.nan, -1.0)})
    for k, b in ((1, {"atol": 1e-3}), (5, {"rtol": 1e-3}), (3, {"ulps": 9}), (1, {}))
)
EXACT = (Case("<f4"), Case("<f8"), Case("<bf2"))

MISS, ALARM, MET = ("misses",), ("false_alarms",), ("met",)

MUTANTS: tuple[Mutant, ...] = (
    Mutant("absolute: hair of the wrong sign", ABS4, MISS, scaled_inv(1 - 2.0**-19)),
    Mutant("absolute, 8 bytes: hair of the wrong sign", ABS8, MISS, scaled_inv(1 - 2.0**-19)),
    Mutant("absolute, 8 bytes: no hair", ABS8_ODD, MISS, without_hair),
    Mutant("absolute: steps 2^-18 too fine", ABS_K, ALARM, scaled_inv(1 + 2.0**-17)),
    Mutant("absolute: d = atol / h", ABS_K, MISS, lambda p: scaled_inv(p.h / (p.h + 1))(p)),
    Mutant("absolute: h one too large", ABS_K, MISS, lambda p: replace(p, h=p.h + 1)),
    Mutant("absolute: h one too small", ABS_K, ALARM, lambda p: replace(p, h=p.h - 1)),
    Mutant(
        "absolute: one-step product for f8", ABS8, MISS, patches=((cc, "round2", naive_round2),)
    ),
    Mutant("absolute: truncation", ABS4, MISS, patches=((cc, "floor_half", toward_zero),)),
    Mutant("absolute: half to even", ABS4, (), patches=((cc, "floor_half", half_even),)),
    Mutant("absolute: no half added", ABS4, (), patches=((cc, "floor_half", half_dropped),)),
    Mutant(
        "special codes one too low",
        ABS4 + ABS8,
        MET,
        lambda p: replace(p, special_base=p.special_base - 1),
    ),
    Mutant(
        "special codes one too high",
        ABS4 + ABS8,
        (),
        lambda p: replace(p, special_base=p.special_base + 1),
    ),
    Mutant(
        "X four times too small",
        ABS4 + ABS8,
        ("met",),
        lambda p: replace(p, x_exponent=p.x_exponent - 2),
    ),
    Mutant(
        "infinities alike",
        ABS4 + REL + STEPS,
        MISS,
        patches=((cc, "special_codes", infinities_alike),),
    ),
    Mutant("relative: steps too coarse by 2^-12", REL, MISS, scaled_c2(1 - 2.0**-12)),
    Mutant("relative: steps too fine by 2^-12", REL[2:], ALARM, scaled_c2(1 + 2.0**-12)),
    Mutant("relative: no logarithm budget, f4", REL_SMALL, (), without_log_budget),
    Mutant("relative: no logarithm budget, f8", REL_TINY, MISS, without_log_budget),
    Mutant("relative: L = rtol * log2(e)", REL, MISS, linear_log_bound),
    Mutant(
        "relative: 16 coefficients for f8 and a tiny bound",
        REL_TINY,
        ALARM,
        patches=((cc, "log2_parts", short_log2),),
    ),
    Mutant(
        "relative: fused operations",
        REL + MIXED,
        (),
        patches=((cc, "log2_parts", contracted_log2),),
    ),
    Mutant("relative: no offset of the logarithm", REL, MISS, lambda p: replace(p, log_offset=1)),
    Mutant("relative: c1 halved", MIXED, MISS, lambda p: replace(p, c1=p.c1 / 2)),
    Mutant("steps: d one too large", STEPS, MISS, lambda p: replace(p, d=p.d + 1)),
    Mutant("steps: d one too small", STEPS[2:], ALARM, lambda p: replace(p, d=p.d - 1)),
    Mutant(
        "steps: -0 and +0 apart", STEPS, (), patches=((sc, "ordered_image", image_with_two_zeros),)
    ),
    Mutant(
        "integers: unsigned read as signed",
        UNSIGNED,
        MISS,
        patches=((sc, "ordered_image", unsigned_as_signed),),
    ),
    Mutant(
        "missing coded as NaN", FILLED[:3], (), patches=((cc, "special_codes", missing_as_nan),)
    ),
    Mutant(
        "only the first fill value", FILLED, MISS, patches=((sc, "missing_mask", first_fill_only),)
    ),
    Mutant("fill values ignored", FILLED, ALARM, patches=((sc, "missing_mask", nothing_missing),)),
    Mutant(
        "exact: NaN payload kept",
        EXACT,
        ALARM,
        patches=((cc, "canonical_float_bits", payload_kept),),
    ),
    Mutant(
        "exact: sign of zero kept",
        EXACT,
        ALARM,
        patches=((cc, "canonical_float_bits", sign_of_zero_kept),),
    ),
)
