"""What the suite of readers writes and reads back: arrays of every dtype and shape."""

from __future__ import annotations

from typing import Any

from ciwrap.late import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]

ALL_DTYPES = (
    "|b1", "|i1", "|u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8",
    "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16", "|S5", "<U3", ">U3",
)  # fmt: skip
ALL_SHAPES = (
    (),
    (0,),
    (1,),
    (7,),
    (1000,),
    (3, 5),
    (0, 4),
    (4, 0),
    (2, 3, 4),
    (1, 1, 1),
    (5, 1, 7),
)


def sample(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """An array of that dtype and shape with the same values every time, extremes among them."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if kind.kind == "b":
        values = generator.integers(0, 2, count).astype(kind)
    elif kind.kind in "iu":
        limits = np.iinfo(kind)
        values = generator.integers(limits.min, limits.max, count, dtype=kind.newbyteorder("="))
        values[:2] = [limits.min, limits.max][: min(2, count)]
    elif kind.kind == "c":
        values = (generator.normal(size=count) + 1j * generator.normal(size=count)).astype(kind)
    elif kind.kind == "f":
        values = generator.normal(size=count).astype(kind)
        special = [np.nan, np.inf, -np.inf, -0.0, np.finfo(kind).tiny, np.finfo(kind).max]
        values[: len(special)] = special[:count]
    else:
        words = ["", "a", "ab", "xyz", "q r"]
        values = np.array([words[n % len(words)] for n in range(count)], dtype=kind)
    return values.astype(kind).reshape(shape)


def same_values(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays hold the same dtype and the same bits."""
    return found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()
