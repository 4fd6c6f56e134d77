"""One element one step apart, at every position: seen wherever the contract says so.

What means nothing for a type (an rtol for integers, any bound for booleans and text) must not let
anything pass, in whatever way two arrays are compared.
"""

from __future__ import annotations

import numpy as np
import pytest
from device_arrays import BACKEND
from hypothesis import given
from hypothesis import strategies as st
from oracle import contract
from oracle import scalars as sc
from oracle.cases import EXACT_DTYPES, FLOAT_DTYPES, INTEGER_DTYPES
from oracle.strategies import BOUNDS

from ciwrap import _core

DTYPES = FLOAT_DTYPES + INTEGER_DTYPES + EXACT_DTYPES
STATED = (
    {},
    {"atol": 0.5},
    {"atol": 1.0},
    {"atol": 1e300},
    {"rtol": 1e-4},
    {"rtol": 2.0},
    {"atol": 1.0, "rtol": 0.5},
)


def ordinary(layout: sc.ScalarLayout, count: int) -> sc.AnyArray:
    """Scalars that are not at the ends of their range."""
    if layout.scalar == "raw":
        return (np.arange(count * layout.scalar_bytes) % 26 + 65).astype("u1").reshape(count, -1)
    if layout.scalar == "b1":
        return (np.arange(count) % 3 == 0).astype("u1")
    if layout.scalar in sc.INTEGERS:
        return (np.arange(count) % 100 + 2).astype("=" + layout.scalar)
    return sc.narrow(layout.scalar, np.arange(count) / 8 + 1)


def a_step_up(layout: sc.ScalarLayout, scalars: sc.AnyArray) -> sc.AnyArray:
    """The next value, the other one for a boolean, another text."""
    if layout.scalar == "raw":
        moved = scalars.copy()
        moved[:, 0] ^= 1
        return moved
    if layout.scalar == "b1":
        return 1 - scalars
    if layout.scalar in sc.INTEGERS:
        return scalars + scalars.dtype.type(1)
    return sc.from_bits(layout.scalar, sc.raw_bits(layout.scalar, scalars) + 1)


def with_one_moved(
    layout: sc.ScalarLayout, scalars: sc.AnyArray, moved: sc.AnyArray, at: int
) -> bytes:
    new = scalars.copy()
    new[at] = moved[at]
    return sc.bytes_of(layout, new)


def on_a_device(p: _core.TreeParameters, golden: bytes, new: bytes) -> _core.Comparison:
    comparer = _core.ElementComparer(p, backend=BACKEND)
    comparer.update(golden, new, first_element=0)
    return comparer.finish()


def assert_seen(p: _core.TreeParameters, golden: bytes, new: bytes, differing: list[int]) -> None:
    for compare in (_core.compare_arrays, on_a_device):
        found = compare(p, golden, new)
        assert found.differing_count == len(differing), compare
        assert found.indices.tolist() == differing, compare
        assert found.first_index == (differing[0] if differing else -1), compare
    each = _core.compare_each(p, golden, new)
    shares = [share for _, share, _, _ in each]
    if None not in shares:  # bytes and text have none
        assert [at for at, share in enumerate(shares) if share > 1] == differing
    suspects = _core.diff_trees(_core.build_tree(p, golden), _core.build_tree(p, new))
    if differing:
        assert suspects.tolist() == [0]
    elif p.kind == "exact" and p.dtype[1:] in (*(d[1:] for d in INTEGER_DTYPES), "b1"):
        assert suspects.size == 0


@pytest.mark.parametrize("stated", STATED, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_position(dtype: str, stated: dict[str, float]) -> None:
    layout = sc.parse_dtype(dtype)
    parts = layout.scalars_per_element
    p = _core.TreeParameters(dtype, **stated)
    for count in (1, 31, 32, 33, 65):
        scalars = ordinary(layout, count * parts)
        moved = a_step_up(layout, scalars)
        golden = sc.bytes_of(layout, scalars)
        wanted = contract.differs_of_scalars(
            layout.scalar, scalars, moved, contract.Bound(**stated)
        )
        for at in range(count * parts):
            new = with_one_moved(layout, scalars, moved, at)
            assert_seen(p, golden, new, [at // parts] if wanted[at] else [])


@given(
    st.sampled_from(DTYPES),
    st.just({}) | BOUNDS,
    st.integers(1, 200),
    st.integers(0, 2**32),
    st.integers(1, 3),
)
def test_any_numbers(
    dtype: str, stated: dict[str, float], count: int, seed: int, steps: int
) -> None:
    """Any bits at all, and some elements a few steps away, or anywhere."""
    layout = sc.parse_dtype(dtype)
    scalar_count = count * layout.scalars_per_element
    generator = np.random.default_rng(seed)
    golden = sc.scalars_of(layout, generator.bytes(scalar_count * layout.scalar_bytes))
    new = golden.copy()
    moved = golden
    with np.errstate(over="ignore"):
        for _ in range(steps):
            moved = a_step_up(layout, moved)
    places = np.unique(generator.integers(0, scalar_count, 3))
    new[places] = moved[places]
    if generator.random() < 0.3:
        new[generator.integers(scalar_count)] = golden[generator.integers(scalar_count)]
    sides = sc.bytes_of(layout, golden), sc.bytes_of(layout, new)
    wanted = contract.differs(dtype, *sides, contract.Bound(**stated))
    assert_seen(_core.TreeParameters(dtype, **stated), *sides, np.flatnonzero(wanted).tolist())


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_a_type_does_not_know_is_not_in_its_parameters(dtype: str) -> None:
    kind = sc.parse_dtype(dtype).scalar
    both = _core.TreeParameters(dtype, atol=2.5, rtol=0.5)
    ulps = _core.TreeParameters(dtype, ulps=3)
    known = {"raw": (0, 0, 0), "b1": (0, 0, 0)}.get(kind, (2.5, 0.5, 3))
    if kind in sc.INTEGERS:
        known = (2.5, 0, 0)
    assert (both.atol, both.rtol, ulps.ulps) == known
    assert _core.TreeParameters(dtype, atol=both.atol, rtol=both.rtol) == both
    with pytest.raises(_core.CoreError, match="excludes"):
        _core.TreeParameters(dtype, atol=1.0, ulps=1)
