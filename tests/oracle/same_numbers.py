"""Random numbers and powers that are the same on every machine, to the last bit.

NumPy takes powers, exponentials and normal numbers from the C library or from code for one
processor, and `Generator.uniform` is one multiplication and addition that compilers fuse where the
machine can. What is here is made of single operations that IEEE 754 rounds in one way alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Rng = np.random.Generator

LN_2 = 0.6931471805599453
TERMS = 17  # of exp(y) for |y| < 0.35: what follows is below 2^-53


def uniform(rng: Rng, low: float, high: float, count: int) -> Reals:
    return low + (high - low) * rng.random(count)


def bell(rng: Rng, count: int) -> Reals:
    """Roughly normal numbers: the sum of twelve uniform ones, whose variance is 1."""
    total = np.full(count, -6.0)
    for _ in range(12):
        total = total + rng.random(count)
    return total


def exp2(x: Reals) -> Reals:
    """2^x within a few units in the last place, exact for whole x; -1100 <= x <= 1024."""
    whole = np.rint(x)
    part = expm1((x - whole) * LN_2) + 1.0
    half = np.floor(whole / 2)
    return part * power(half) * power(whole - half)


def expm1(y: Reals) -> Reals:
    """e^y - 1; within a few units in the last place where |y| < 0.35, else as exact as y is."""
    near = np.clip(y, -0.35, 0.35)
    total = np.zeros_like(y)
    for term in range(TERMS, 1, -1):
        total = (total + 1.0) * near / float(term)
    small = (total + 1.0) * near
    if np.all(np.abs(y) <= 0.35):
        return small
    return np.where(np.abs(y) <= 0.35, small, exp2(y / LN_2) - 1.0)


def power(whole: Reals) -> Reals:
    """2^n for whole n from -1022 to 1023."""
    biased = whole.astype(np.int64) + 1023
    return (biased << 52).view(np.float64)
