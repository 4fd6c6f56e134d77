"""The device kernels' source gives the same bits as the host's vector code.

It runs on the host, or on a GPU if CIWRAP_DEVICE_BACKEND=cuda (tools/gpu-check).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from device_arrays import BACKEND

from ciwrap import _core

FLOATS = ["<f2", ">f2", "<bf2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c16"]
DTYPES = [*FLOATS, "<i4", "<u2", ">u8", "|i1", "|b1", "|S7", "<U3", ">U3"]
BOUNDS: list[dict[str, Any]] = [
    {},
    {"atol": 1e-3},
    {"atol": 3.0},
    {"rtol": 1e-4},
    {"atol": 1e-5, "rtol": 1e-3},
    {"ulps": 5},
    {"atol": 1e-3, "equal_nan": False},
    {"atol": 1e-3, "fill_values": (0, 1)},
]
ELEMENTS = 3001


def parameters_for(dtype: str) -> list[_core.TreeParameters]:
    """Every combination that the dtype admits."""
    combinations = []
    for bound, levels, chunk_bytes in itertools.product(
        BOUNDS, (1, 3, 5, 15, 255), (64, 320, 1088, 4096, 12345)
    ):
        if "ulps" in bound and dtype[1] not in "fbc":
            continue
        if (bound.get("ulps") or bound.get("fill_values")) and dtype == "|b1":
            continue
        if bound.get("fill_values") and dtype[1] in "SU":
            continue
        combinations.append(
            _core.TreeParameters(dtype, residue_levels=levels, chunk_bytes=chunk_bytes, **bound)
        )
    return combinations


def raw_data(dtype: str, scalars: int, scalar_bytes: int) -> np.ndarray:
    """Random bit patterns (so NaN, infinities, subnormals) amid ordinary numbers."""
    rng = np.random.default_rng(scalars + scalar_bytes)
    raw = rng.integers(0, 256, size=scalars * scalar_bytes, dtype="u1")
    if dtype[1] in "fc" and dtype != "<bf2":
        numbers = rng.normal(size=scalars).astype(f"{dtype[0]}f{scalar_bytes}")
        numbers[::7] = raw.view(numbers.dtype)[::7]
        numbers[3::11] = 0
        raw = numbers.view("u1")
    return raw


def moved(p: _core.TreeParameters, raw: np.ndarray) -> np.ndarray:
    """Numbers within their bounds of those in raw, which differ by all that residues tell."""
    if p.dtype[1:] not in ("f4", "f8", "c8", "c16"):
        return raw.copy()
    numbers = raw.view(f"{p.dtype[0]}f{p.scalar_bytes}").copy()
    share = np.linspace(-0.9, 0.9, numbers.size)
    with np.errstate(all="ignore"):
        numbers += (share * (p.atol + p.rtol * np.abs(numbers))).astype(numbers.dtype)
    return numbers.view("u1")


@pytest.mark.parametrize("dtype", DTYPES)
def test_device_source_gives_the_host_bits(dtype: str) -> None:
    combinations = parameters_for(dtype)
    assert len(combinations) >= 40
    for p in combinations:
        raw = raw_data(dtype, ELEMENTS * p.scalars_per_element, p.scalar_bytes)
        host = _core.build_tree(p, raw, backend="serial")
        device = _core.build_tree(p, raw, backend=BACKEND)
        np.testing.assert_array_equal(host.digests, device.digests, err_msg=repr(p))
        if host.residues is None:
            assert device.residues is None
            continue
        np.testing.assert_array_equal(host.residues, device.residues, err_msg=repr(p))
        for run in (raw, raw[::-1].copy(), moved(p, raw)):
            drifts = []
            for backend in ("serial", BACKEND):
                builder = _core.TreeBuilder(p, host.scalar_count, golden=host, backend=backend)
                builder.update(run)
                tree = builder.finish()
                drift = builder.drift
                assert drift is not None
                drifts.append((tree.digests, drift.histogram, drift.leaf_max_level))
            for ours, theirs in zip(*drifts, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=repr(p))


LEVELS = [level["name"] for level in _core.cpu_levels() if level["usable"]]
# Around what the hash and the kernels count in: stripes, blocks, short inputs, chunks.
COUNTS = [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 59, 60, 61, 63, 64, 65, 127, 128, 129]
COUNTS += [239, 240, 241, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1031, 2047, 2049, 8193]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size_on_every_cpu_level(dtype: str, level: str) -> None:
    cases = [
        one for one in parameters_for(dtype) if one.chunk_bytes == 4096 and not one.fill_values
    ]
    _core.set_cpu_level(level)
    try:
        for turn, count in enumerate(COUNTS):
            for p in cases[turn % 5 :: 5]:
                raw = raw_data(dtype, count * p.scalars_per_element, p.scalar_bytes)
                host = _core.build_tree(p, raw, backend="serial")
                device = _core.build_tree(p, raw, backend=BACKEND)
                np.testing.assert_array_equal(host.digests, device.digests, err_msg=f"{p} {count}")
                if host.residues is not None:
                    np.testing.assert_array_equal(host.residues, device.residues)
    finally:
        _core.set_cpu_level("auto")
