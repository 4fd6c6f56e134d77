"""What a comparison of one variable has to say, by all of its settings together.

Element by element, in fractions; nothing of ciwrap is imported. Arrays are NumPy's; bfloat16 is its
bits, as uint16, and said to be so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

INFINITE = math.inf


@dataclass(frozen=True)
class Asked:
    """The settings of one variable, as documented."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0
    combine: str = "sum"
    equal_nan: bool = True
    fill_values: tuple[float, ...] = ()
    period: float | tuple[float, ...] = ()
    mixed_precision: bool = False
    is_bfloat16: bool = False
    is_strict: bool = True


@dataclass
class Told:
    """What is true of two arrays. largest_share: 0 where nothing is a number."""

    differing: list[int] = field(default_factory=list)
    first_index: tuple[int, ...] | None = None
    largest: float | None = None
    largest_share: float = 0.0
    nan_count: int = 0
    infinity_count: int = 0
    missing_count: int = 0
    masked: int = 0


def judge(
    golden: np.ndarray[Any, Any],
    new: np.ndarray[Any, Any],
    asked: Asked,
    masks: tuple[Any, Any] | None = None,
) -> Told | None:
    """What is true of the two; None if they cannot be compared."""
    if golden.shape != new.shape:
        return None
    golden, new = _masked(golden, masks and masks[0]), _masked(new, masks and masks[1])
    kinds = golden.dtype.newbyteorder("="), new.dtype.newbyteorder("=")
    if asked.mixed_precision and set(map(str, kinds)) == {"float32", "float64"}:
        with np.errstate(all="ignore"):
            rounded = [one.astype(np.float32) for one in (golden, new)]
        if any(
            (np.isinf(one) & ~np.isinf(other)).any()
            for one, other in zip(rounded, (golden, new), strict=True)
        ):
            return None
        golden, new = rounded
    elif golden.dtype != new.dtype:
        if asked.is_strict and kinds[0] != kinds[1]:  # another byte order is no other type
            return None
        converted = _converted(new, golden.dtype)
        if converted is None:
            return None
        new = converted
    told = Told(masked=0 if masks is None else int(masks[1].sum()))
    if masks is not None and new.size and told.masked == new.size:
        return None
    kind = golden.dtype.newbyteorder("=")
    fills = [_held(one, kind, asked) for one in asked.fill_values]
    flat = golden.reshape(-1), new.reshape(-1)  # in C order, however it lies in memory
    for at in range(golden.size):
        pair = flat[0][at], flat[1][at]
        if kind.kind in "SUb":
            _plain(told, at, pair, kind.kind)
            continue
        parts = [(one.real, one.imag) if kind.kind == "c" else (one,) for one in pair]
        shares, period = [], _period(asked, golden.shape, at)
        for g, v in zip(*parts, strict=True):
            shares.append(
                _part(told, _exact(g, asked), _exact(v, asked), kind, fills, asked, period)
            )
        share = max(one for one, _ in shares)
        told.largest_share = max(told.largest_share, share)
        if any(differs for _, differs in shares):
            told.differing.append(at)
    if told.differing:
        told.first_index = tuple(map(int, np.unravel_index(told.differing[0], golden.shape)))
    return told


def _converted(new: Any, dtype: Any) -> Any:
    """The numbers as another type holds them; None if it does not hold one of them."""
    if not {new.dtype.kind, dtype.kind} <= set("biufc"):
        return None
    found = np.zeros(new.shape, dtype)
    for at in np.ndindex(new.shape):
        value = new[at].item()
        wanted = value
        with np.errstate(all="ignore"):
            try:
                if dtype.kind != "c" and isinstance(value, complex):
                    if value.imag != 0:
                        return None
                    wanted = value.real
                found[at] = wanted
            except (OverflowError, ValueError):
                return None
        back = found[at].item()
        if not (back == wanted or (back != back and wanted != wanted)):
            return None
        if isinstance(value, complex) and dtype.kind == "c":
            parts = zip((back.real, back.imag), (value.real, value.imag), strict=True)
            if not all(one == other or (one != one and other != other) for one, other in parts):
                return None
    return found


def _masked(array: Any, mask: Any) -> Any:
    if mask is None:
        return array
    found = array.copy()
    found[mask] = np.zeros((), array.dtype)
    return found


def _plain(told: Told, at: int, pair: tuple[Any, Any], kind: str) -> None:
    if pair[0] != pair[1]:
        told.differing.append(at)
        told.largest_share = INFINITE
    if kind == "b":
        told.largest = max(told.largest or 0.0, float(pair[0] != pair[1]))


def _exact(value: Any, asked: Asked) -> float | int:
    """A number as Python holds it, without any rounding."""
    if asked.is_bfloat16:
        return float(np.uint32(int(value) << 16).view(np.float32))
    return int(value) if np.issubdtype(type(value), np.integer) else float(value)


def _held(fill: float, kind: Any, asked: Asked) -> float | int | None:
    """A fill value as the type holds it; None if nothing of the type can be it."""
    if asked.is_bfloat16:
        near = np.float32(fill).view(np.uint32) if fill == fill else np.uint32(0x7FC00000)
        assert fill != fill or int(near) & 0xFFFF == 0, "only what bfloat16 holds is asked here"
        return float(near.view(np.float32))
    if kind.kind in "iu":
        is_held = math.isfinite(fill) and fill == int(fill)
        limits = np.iinfo(kind)
        return int(fill) if is_held and limits.min <= int(fill) <= limits.max else None
    real = {"c8": "f4", "c16": "f8"}.get(f"{kind.kind}{kind.itemsize}", kind)
    with np.errstate(all="ignore"):
        held = float(np.dtype(real).type(fill))
    return None if math.isinf(held) and not math.isinf(fill) else held


def _period(asked: Asked, shape: tuple[int, ...], at: int) -> float:
    if isinstance(asked.period, tuple):
        return asked.period[at % len(asked.period)] if asked.period else 0.0
    return asked.period


def _part(
    told: Told, g: Any, v: Any, kind: Any, fills: list[Any], asked: Asked, period: float
) -> tuple[float, bool]:
    """The share of the bound that one number uses, and whether it differs."""
    missing = [any(x == f or (x != x and f != f) for f in fills if f is not None) for x in (g, v)]
    if any(missing):
        if all(missing):
            return 0.0, False
        told.missing_count += 1
        return INFINITE, True
    if g != g or v != v:
        if g != g and v != v and asked.equal_nan:
            return 0.0, False
        told.nan_count += 1
        return INFINITE, True
    if math.isinf(g) if isinstance(g, float) else False:
        is_other = g != v
    else:
        is_other = math.isinf(v) if isinstance(v, float) else False
        if not is_other:
            return _finite(told, g, v, kind, asked, period)
    told.infinity_count += is_other
    return (INFINITE, True) if is_other else (0.0, False)


def _finite(
    told: Told, g: Any, v: Any, kind: Any, asked: Asked, period: float
) -> tuple[float, bool]:
    apart = abs(Fraction(v) - Fraction(g))
    if period:
        apart %= Fraction(period)
        apart = min(apart, Fraction(period) - apart)
    told.largest = max(told.largest or 0.0, _double(apart))
    is_whole = kind.kind in "iu" and not asked.is_bfloat16
    if asked.ulps and not is_whole:
        steps = abs(_ordinal(v, kind, asked) - _ordinal(g, kind, asked))
        return steps / asked.ulps, steps > asked.ulps
    # Whole numbers are whole numbers apart, but for a period that is none.
    is_floored = is_whole and not asked.period
    absolute = Fraction(math.floor(asked.atol)) if is_floored else Fraction(asked.atol)
    relative = Fraction(0) if is_whole else Fraction(asked.rtol) * abs(Fraction(g))
    join = {"sum": sum, "both": min, "either": max}[asked.combine]
    bound = join((absolute, relative))
    if not apart:
        return 0.0, False
    return (_double(apart / bound) if bound else INFINITE), apart > bound


def _double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return INFINITE


def _ordinal(value: float, kind: Any, asked: Asked) -> int:
    """The number's place among all that its type holds; both zeros have one."""
    if asked.is_bfloat16:
        bits = int(np.float32(abs(value)).view(np.uint32)) >> 16
    else:
        real = {"c8": "f4", "c16": "f8"}.get(f"{kind.kind}{kind.itemsize}", f"f{kind.itemsize}")
        scalar = np.dtype(real).type(abs(value))
        bits = int(scalar.view(f"u{scalar.itemsize}"))
    return -bits if value < 0 else bits
