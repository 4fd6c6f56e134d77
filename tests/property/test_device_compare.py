"""Elements compared on a device: everything a comparison tells is the host's, to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from core_side import parameters
from device_arrays import BACKEND
from hypothesis import given
from hypothesis import strategies as st
from oracle import elements
from test_device_arrays import held
from test_elements import PLAIN, assert_as_expected, tamed

from ciwrap import _core

if TYPE_CHECKING:
    from oracle.cases import Case

    from ciwrap._core import Comparison, TreeParameters

FIELDS = [name for name in dir(_core.Comparison) if not name.startswith("_")]


def assert_identical(ours: Comparison, theirs: Comparison) -> None:
    for field in FIELDS:
        mine, host = getattr(ours, field), getattr(theirs, field)
        np.testing.assert_array_equal(mine, host, err_msg=field)


def compared(
    p: TreeParameters, golden: Any, new: Any, backend: str, max_indices: int = 50
) -> Comparison:
    comparer = _core.ElementComparer(p, backend=backend, max_indices=max_indices)
    comparer.update(golden, new, first_element=7)
    return comparer.finish()


def compared_in_place(
    p: TreeParameters, golden: Any, new: Any, count: int, max_indices: int = 50
) -> Comparison:
    comparer = _core.ElementComparer(p, backend=BACKEND, max_indices=max_indices)
    comparer.update_device(golden, new, first_element=0, element_count=count)
    return comparer.finish()


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_whole_arrays(case: Case) -> None:
    """Against the oracle and the host; types and bounds without a kernel included."""
    p = parameters(case)
    golden, new = tamed(case, 3000, 3)
    ours = compared(p, golden, new, BACKEND, 100)
    assert_identical(ours, compared(p, golden, new, "serial", 100))
    comparer = _core.ElementComparer(p, backend=BACKEND)
    comparer.update(golden, new, first_element=0)
    assert_as_expected(
        comparer.finish(), elements.compare(case.dtype, golden, new, case.contract())
    )


BOUNDS = [
    *((0.0, 0.0), (1e-3, 0.0), (0.0, 1e-3), (1e-6, 1e-3), (1e30, 0.0), (1e-290, 0.0)),
    *((0.0, 1e-280), (1e-3, 1e3), (5e-324, 0.0), (1e-45, 1e-7)),
]
KINDS = ["within", "around", "beyond", "equal", "some", "bits", "edge"]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[TreeParameters, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Stretches that are equal, within, around or beyond the bound, or wild, of any length."""
    dtype = draw(st.sampled_from(["<f4", "<f8", "<c8", "<c16"]))
    atol, rtol = draw(st.sampled_from(BOUNDS))
    p = _core.TreeParameters(dtype, atol=atol, rtol=rtol, equal_nan=draw(st.booleans()))
    real = f"<f{p.scalar_bytes}"
    count = draw(st.one_of(st.integers(0, 200), st.sampled_from([1000, 16384, 16385, 40000])))
    count -= count % p.scalars_per_element
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    golden = rng.normal(size=count) * draw(st.sampled_from([1.0, 1e-300, 1e200, 1e-40, 1e4]))
    new = golden.copy()
    wild = rng.integers(0, 256, size=2 * count * p.scalar_bytes, dtype="u1").view(real)
    with np.errstate(all="ignore"):
        golden = golden.astype(real)
        bound = atol + rtol * np.abs(golden.astype("f8"))
        for at in range(0, count, 96):
            here = slice(at, min(count, at + 96))
            kind = KINDS[int(rng.integers(len(KINDS)))]
            unit = rng.uniform(-1, 1, size=here.stop - here.start)
            base = golden[here].astype("f8")
            if kind == "within":
                new[here] = base + bound[here] * unit
            elif kind == "around":
                new[here] = base + 4 * bound[here] * unit
            elif kind == "beyond":
                new[here] = base * 1.5
            elif kind == "some":
                new[here] = np.where(unit > 0.9, base + 1, base)
            elif kind == "edge":
                new[here] = base + bound[here]
            else:
                new[here] = base
        new = new.astype(real)
        for at in range(0, count, 96):
            if rng.random() < 0.1:
                here = slice(at, min(count, at + 96))
                golden[here] = wild[:count][here]
                new[here] = wild[count:][here] if rng.random() < 0.5 else golden[here]
    return p, golden, new


@given(pairs(), st.sampled_from([0, 3, 1000]))
def test_any_pair(
    pair: tuple[TreeParameters, np.ndarray[Any, Any], np.ndarray[Any, Any]], max_indices: int
) -> None:
    p, golden, new = pair
    want = compared(p, golden, new, "serial", max_indices)
    assert_identical(compared(p, golden, new, BACKEND, max_indices), want)


@given(pairs(), st.sampled_from(["both", "golden", "new"]), st.sampled_from([1, 2, -1]))
def test_any_pair_in_place(
    pair: tuple[TreeParameters, np.ndarray[Any, Any], np.ndarray[Any, Any]], where: str, step: int
) -> None:
    """Arrays on the device, one or both, back to back or by strides."""
    p, golden, new = pair
    sides = [side.view(p.dtype)[::step] for side in (golden, new)]
    host = [np.ascontiguousarray(side) for side in sides]
    comparer = _core.ElementComparer(p, backend="serial", max_indices=50)
    comparer.update(host[0].view("u1"), host[1].view("u1"), first_element=0)
    placed: list[Any] = [side.view("u1") for side in host]
    if where in ("both", "golden"):
        placed[0] = held(sides[0], "dlpack")
    if where in ("both", "new"):
        placed[1] = held(sides[1], "cuda")
    ours = compared_in_place(p, placed[0], placed[1], len(host[0]))
    assert_identical(ours, comparer.finish())


def test_several_waves_and_pieces() -> None:
    """8 MiB of a side at a time, two under way; then a piece behind a gap."""
    rng = np.random.default_rng(1)
    golden = rng.normal(size=5_000_003).astype("f4")
    new = golden + rng.normal(scale=3e-4, size=golden.size).astype("f4")
    new[[17, 2_100_000, 4_999_999]] = np.nan
    p = _core.TreeParameters("<f4", atol=1e-3)
    results = []
    for backend in ("serial", BACKEND):
        comparer = _core.ElementComparer(p, backend=backend, max_indices=10)
        comparer.update(golden[:100], new[:100], first_element=0)
        comparer.update(golden[200:], new[200:], first_element=200)
        results.append(comparer.finish())
    assert results[0].nan_mismatch_count == 3
    assert_identical(results[1], results[0])
    comparer = _core.ElementComparer(p, backend=BACKEND, max_indices=10)
    ours, theirs = held(golden, "dlpack"), held(new, "cuda")
    comparer.update_device(ours, theirs, first_element=0, element_count=100)
    comparer.update_device(ours, theirs, first_element=200, element_count=golden.size - 200)
    assert_identical(comparer.finish(), results[0])


@pytest.mark.parametrize(
    ("dtype", "bound"), [("<i4", {"atol": 2.0}), ("<f4", {"ulps": 3}), ("<f2", {"atol": 0.1})]
)
def test_what_has_no_kernel_is_compared_on_the_host(dtype: str, bound: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    golden = (rng.normal(size=3_000_000) * 100).astype(dtype)
    new = golden.copy()
    new[::1000] += 3
    p = _core.TreeParameters(dtype, **bound)
    want = _core.compare_arrays(p, golden, new)
    got = compared_in_place(p, held(golden, "cuda"), held(new, "cuda"), golden.size, 100)
    assert_identical(got, want)


def test_what_is_refused() -> None:
    p = _core.TreeParameters("<f4", atol=1e-3)
    values = np.zeros(10, "f4")
    array = held(values, "dlpack")
    for backend, new, first, count in (
        ("serial", array, 0, 10),
        (BACKEND, array, 1, 10),
        (BACKEND, values, 0, 9),
        (BACKEND, held(values.astype("f8"), "dlpack"), 0, 10),
    ):
        comparer = _core.ElementComparer(p, backend=backend)
        with pytest.raises(_core.CoreError) as caught:
            comparer.update_device(array, new, first_element=first, element_count=count)
        assert caught.value.code == "invalid_argument"
