"""Arrays as scalars: parsing dtype strings, byte order, bfloat16 and order-preserving images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = ("f2", "bf2", "f4", "f8")
SIGNED = ("i1", "i2", "i4", "i8")
UNSIGNED = ("u1", "u2", "u4", "u8")
INTEGERS = SIGNED + UNSIGNED
CANONICAL_NAN = {"f2": 0x7E00, "bf2": 0x7FC0, "f4": 0x7FC00000, "f8": 0x7FF8000000000000}
BITS_OF_INF = {"f2": 0x7C00, "bf2": 0x7F80, "f4": 0x7F800000, "f8": 0x7FF0000000000000}

AnyArray = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ScalarLayout:
    """How an array of `dtype` falls apart into scalars."""

    dtype: str  # as given: "<f4", ">c16", "|S12", "<bf2"
    scalar: str  # f2 bf2 f4 f8 i1..u8 b1 raw
    scalar_bytes: int
    scalars_per_element: int
    big_endian: bool
    unicode: bool = False


def parse_dtype(dtype: str) -> ScalarLayout:
    order, name = dtype[0], dtype[1:]
    if order not in "<>|":
        raise ValueError(f"dtype {dtype!r} lacks a byte order")
    big = order == ">"
    if name in ("c8", "c16"):
        half = int(name[1:]) // 2
        return ScalarLayout(dtype, f"f{half}", half, 2, big)
    if name == "bf2":
        return ScalarLayout(dtype, "bf2", 2, 1, big)
    if name[0] == "S":
        return ScalarLayout(dtype, "raw", int(name[1:]), 1, False)
    if name[0] == "U":
        return ScalarLayout(dtype, "raw", 4 * int(name[1:]), 1, big, unicode=True)
    if name == "b1" or name in FLOATS + INTEGERS:
        return ScalarLayout(dtype, name, int(name[1:]), 1, big)
    raise ValueError(f"unsupported dtype {dtype!r}")


def scalars_of(layout: ScalarLayout, data: bytes) -> AnyArray:
    """The scalars in native byte order; bf2 as uint16, b1 as 0/1 uint8, raw as rows of bytes."""
    order = ">" if layout.big_endian else "<"
    if layout.scalar == "raw":
        if layout.unicode:
            units = np.frombuffer(data, dtype=order + "u4").astype("<u4")
            return np.frombuffer(units.tobytes(), dtype=np.uint8).reshape(-1, layout.scalar_bytes)
        return np.frombuffer(data, dtype=np.uint8).reshape(-1, layout.scalar_bytes)
    if layout.scalar == "b1":
        return (np.frombuffer(data, dtype=np.uint8) != 0).astype(np.uint8)
    name = "u2" if layout.scalar == "bf2" else layout.scalar
    return np.frombuffer(data, dtype=order + name).astype("=" + name)


def bytes_of(layout: ScalarLayout, scalars: AnyArray) -> bytes:
    """The inverse of `scalars_of`, in the layout's byte order."""
    if layout.scalar == "raw":
        if layout.unicode and layout.big_endian:
            return scalars.tobytes() and scalars.view("<u4").astype(">u4").tobytes()
        return scalars.tobytes()
    return scalars.astype(scalars.dtype.newbyteorder(">" if layout.big_endian else "<")).tobytes()


def bf16_to_f64(bits: AnyArray) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def f64_to_bf16(values: AnyArray) -> NDArray[np.uint16]:
    """Rounded to nearest-even by way of binary32 (double rounding does not matter to the tests)."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = np.isnan(single)
    return np.where(nan, 0x7FC0, rounded).astype(np.uint16)


def widen(scalar: str, scalars: AnyArray) -> NDArray[np.float64]:
    """Float scalars as binary64, exactly."""
    if scalar == "bf2":
        return bf16_to_f64(scalars)
    with np.errstate(invalid="ignore"):
        return scalars.astype(np.float64)


def narrow(scalar: str, values: AnyArray) -> AnyArray:
    """binary64 values rounded to a float scalar type."""
    if scalar == "bf2":
        return f64_to_bf16(np.asarray(values, dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values, dtype=np.float64).astype("=" + scalar)


def raw_bits(scalar: str, scalars: AnyArray) -> AnyArray:
    """Float scalars as unsigned integers of their own width."""
    if scalar == "bf2":
        return scalars
    return scalars.view(f"=u{scalars.dtype.itemsize}")


def from_bits(scalar: str, bits: AnyArray) -> AnyArray:
    width = 2 if scalar == "bf2" else int(scalar[1:])
    unsigned = bits.astype(f"=u{width}")
    return unsigned if scalar == "bf2" else unsigned.view("=" + scalar)


def ordered_image(scalar: str, scalars: AnyArray) -> NDArray[np.int64]:
    """Neighbouring values one apart, -0 and +0 at the same place (cell-codes.md section 7)."""
    if scalar in SIGNED:
        return scalars.astype(np.int64)
    if scalar in UNSIGNED:
        width = scalars.dtype.itemsize * 8
        if width == 64:
            return (scalars ^ np.uint64(1 << 63)).view(np.int64)
        return scalars.astype(np.int64) - (1 << (width - 1))
    bits = raw_bits(scalar, scalars)
    width = bits.dtype.itemsize * 8
    magnitude = (bits & bits.dtype.type((1 << (width - 1)) - 1)).astype(np.int64)
    negative = (bits >> bits.dtype.type(width - 1)) != 0
    return np.where(negative, -magnitude, magnitude)


def missing_mask(scalar: str, scalars: AnyArray, fill_values: tuple[float | int, ...]) -> AnyArray:
    """Where a scalar equals, as a number, one of the fill values (NaN listed as NaN)."""
    mask = np.zeros(scalars.shape[0], dtype=bool)
    if scalar == "raw":
        return mask
    for fill in fill_values:
        if scalar in FLOATS:
            wide = widen(scalar, scalars)
            mask |= np.isnan(wide) if fill != fill else wide == float(fill)
        elif scalar == "b1":
            mask |= scalars == np.uint8(bool(fill))
        else:
            mask |= scalars == scalars.dtype.type(int(fill))
    return mask


def nan_mask(scalar: str, scalars: AnyArray) -> AnyArray:
    if scalar not in FLOATS:
        return np.zeros(scalars.shape[0], dtype=bool)
    return np.isnan(widen(scalar, scalars))
