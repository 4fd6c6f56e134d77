"""Arrays of real GPU libraries on a real GPU: hashed in place, equal to their copies on the host.

Runs where there is a device and a build with CUDA (tools/gpu-check).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.api import build_tree, compare_arrays, make_golden
from ciwrap.arrays.handover import take_over
from ciwrap.arrays.values import DeviceValues
from ciwrap.base.errors import DeviceArrayError
from ciwrap.model import Verdict

VALUES = np.random.default_rng(0).normal(size=(123, 457)).astype("f4")


def has_device() -> bool:
    return any(one["name"] == "cuda" and one["usable"] for one in _core.backends())


pytestmark = pytest.mark.skipif(not has_device(), reason="no CUDA device here (tools/gpu-check)")


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"no CUDA device here with {name}: {error}")


def on_gpu(name: str, values: np.ndarray[Any, Any]) -> Any:
    module = library({"numba": "numba.cuda"}.get(name, name))
    if name == "torch":
        return module.from_numpy(values).cuda()
    if name == "cupy":
        return module.asarray(values)
    if name == "numba":
        return module.to_device(values)
    return module.device_put(values, module.devices("gpu")[0])


LIBRARIES = ["torch", "cupy", "numba", "jax"]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("dtype", ["f2", "f4", "i4", "u1", "?"])
def test_trees_are_those_of_the_host(name: str, dtype: str) -> None:
    values = (VALUES * 50).astype(dtype)
    array = on_gpu(name, values)
    assert isinstance(take_over(array), DeviceValues)
    bound = {"atol": 1e-3} if dtype in ("f2", "f4") else {}
    ours = build_tree(array, residue_levels=15, **bound)
    theirs = build_tree(values, residue_levels=15, **bound)
    assert ours.root == theirs.root
    if theirs.residues is not None and ours.residues is not None:
        np.testing.assert_array_equal(ours.residues, theirs.residues)


@pytest.mark.parametrize("name", LIBRARIES)
def test_comparing_and_checking(name: str) -> None:
    new = VALUES.copy()
    new[7, 11] += 1
    golden, changed = on_gpu(name, VALUES), on_gpu(name, new)
    assert compare_arrays(golden, changed, atol=1e-3) == compare_arrays(VALUES, new, atol=1e-3)
    kept = make_golden({"x": golden}, atol=1e-3, evidence="residues")
    assert kept.check("x", golden).verdict is Verdict.MATCH
    assert kept.check("x", changed).verdict is Verdict.DIFFER


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_strides(name: str) -> None:
    array = on_gpu(name, VALUES)
    for ours, theirs in ((array.T, VALUES.T), (array[::2, 3:], VALUES[::2, 3:])):
        assert build_tree(ours, atol=1e-3).root == build_tree(theirs, atol=1e-3).root


def test_work_that_still_goes_on_is_waited_for() -> None:
    """The array is made on a stream of its own, behind work that takes a while."""
    torch = library("torch")
    want = build_tree(np.full((4096, 4096), 4096.0, "f4"), atol=1e-3).root
    for _ in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            ones = torch.ones((4096, 4096), device="cuda")
            for _ in range(20):
                product = ones @ ones
        with torch.cuda.stream(stream):
            assert build_tree(product, atol=1e-3).root == want


def test_bfloat16() -> None:
    torch = library("torch")
    host = torch.from_numpy(VALUES).to(torch.bfloat16)
    assert build_tree(host.cuda(), atol=1e-2).root == build_tree(host, atol=1e-2).root


def test_another_device_is_refused() -> None:
    torch = library("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("no CUDA device here beside the first")
    with pytest.raises(DeviceArrayError):
        build_tree(torch.ones(10, device="cuda:1"))
