"""Floats of every size under relative bounds: the same codes on every CPU level.

Logarithms are estimated, in floats or doubles, and only relied on away from the boundaries of
steps. So what an estimate gets wrong are few numbers in a million, at no place in particular.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from ciwrap import _core

LEVELS = [level["name"] for level in _core.cpu_levels() if level["usable"]]
# Steps of every length that floats are used for, and slopes rtol / atol of all sizes, exact as
# floats or not.
BOUNDS = [
    {"rtol": 1e-4, "atol": 1e-6},
    {"rtol": 1e-4},
    {"rtol": 1e-3, "atol": 3e-4},
    {"rtol": 6e-5, "atol": 7.0},
    {"rtol": 4.3e-5},
    {"rtol": 2e-5, "atol": 1e-9},
    {"rtol": 0.01, "atol": 1e-32},
    {"rtol": 0.1, "atol": 1e20},
    {"rtol": 2.0, "atol": 1e-3},
]


@lru_cache(maxsize=1)
def strided(stride: int) -> np.ndarray:
    """Every stride-th of all floats by their bits, NaN and infinities among them."""
    return np.arange(0, 1 << 32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_all_levels_round_floats_of_every_size_alike(bound: dict[str, float]) -> None:
    # A prime, so that all endings of mantissas come; blocks of one exponent stay ordinary tiles.
    data = strided(1021)
    parameters = _core.TreeParameters("<f4", chunk_bytes=4096, **bound)
    found = {}
    for level in LEVELS:
        _core.set_cpu_level(level)
        try:
            found[level] = _core.build_tree(parameters, data, threads=1).leaf_digests.tobytes()
        finally:
            _core.set_cpu_level("auto")
    assert set(found.values()) == {found[LEVELS[0]]}, [
        level for level in LEVELS if found[level] != found[LEVELS[0]]
    ]
