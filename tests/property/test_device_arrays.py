"""Arrays on a device, hashed where they lie, have the trees that their copies on the host have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from device_arrays import BACKEND, placed, wrap
from hypothesis import given
from hypothesis import strategies as st
from test_device_source import BOUNDS, DTYPES, parameters_for, raw_data

from ciwrap import _core

if TYPE_CHECKING:
    from ciwrap._core import DeviceArray, Drift, Tree, TreeParameters

HOW = ["dlpack", "old dlpack", "cuda"]


def held(values: np.ndarray[Any, Any], how: str) -> DeviceArray:
    array = wrap(values, how)
    if how == "cuda":
        interface = array.__cuda_array_interface__
        return _core.DeviceArray.from_address(
            interface["data"][0],
            interface["shape"],
            interface["strides"],
            interface["typestr"],
            owner=values,
        )
    return _core.DeviceArray.from_dlpack(array.__dlpack__())


def on_device(
    parameters: TreeParameters, array: DeviceArray, scalars: int, golden: Tree | None = None
) -> tuple[Tree, Drift | None]:
    builder = _core.TreeBuilder(parameters, scalars, golden=golden, backend=BACKEND)
    builder.update_device(array)
    return builder.finish(), builder.drift


def on_host(
    parameters: TreeParameters, values: np.ndarray[Any, Any], golden: Tree | None = None
) -> tuple[Tree, Drift | None]:
    flat = np.ascontiguousarray(values).reshape(-1).view("u1")
    scalars = flat.size // parameters.scalar_bytes
    builder = _core.TreeBuilder(parameters, scalars, golden=golden, backend="serial")
    builder.update(flat)
    return builder.finish(), builder.drift


def assert_same(ours: tuple[Tree, Drift | None], theirs: tuple[Tree, Drift | None]) -> None:
    np.testing.assert_array_equal(ours[0].digests, theirs[0].digests)
    assert (ours[0].residues is None) == (theirs[0].residues is None)
    if ours[0].residues is not None:
        np.testing.assert_array_equal(ours[0].residues, theirs[0].residues)
    assert (ours[1] is None) == (theirs[1] is None)
    if ours[1] is not None and theirs[1] is not None:
        np.testing.assert_array_equal(ours[1].histogram, theirs[1].histogram)
        np.testing.assert_array_equal(ours[1].leaf_max_level, theirs[1].leaf_max_level)
        assert ours[1].max_share == theirs[1].max_share


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_and_bound(dtype: str) -> None:
    """By address, since DLPack knows neither text nor foreign byte orders."""
    for parameters in parameters_for(dtype)[::3]:
        scalars = 1999 * parameters.scalars_per_element
        raw = raw_data(dtype, scalars, parameters.scalar_bytes)
        array = _core.DeviceArray.from_address(placed(raw), (1999,), None, dtype, owner=raw)
        mine = on_device(parameters, array, scalars)
        golden = on_host(parameters, raw)
        assert_same(mine, golden)
        if golden[0].residues is not None:
            run = np.ascontiguousarray(raw[::-1])
            array = _core.DeviceArray.from_address(placed(run), (1999,), None, dtype, owner=run)
            assert_same(
                on_device(parameters, array, scalars, golden[0]),
                on_host(parameters, run, golden[0]),
            )


@st.composite
def views(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Views of every shape and stride: sliced, reversed, transposed, broadcast, empty."""
    dtype = draw(st.sampled_from(["f2", "f4", "f8", "c8", "c16", "i1", "u2", "i8", "?"]))
    shape = draw(st.lists(st.integers(0, 9), max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    size = int(np.prod(shape))
    values = rng.normal(size=size) * 50
    if (
        np.dtype(dtype).kind in "iu"
    ):  # what a double beyond an integer's range becomes differs by processor
        values = values.astype(np.int64)
    values = values.astype(dtype).reshape(shape)
    view = values[
        tuple(
            slice(None, None, draw(st.sampled_from([1, 1, 2, -1, -3]))) for _ in range(len(shape))
        )
    ]
    view = view.transpose(draw(st.permutations(range(view.ndim))))
    if draw(st.booleans()):
        view = np.broadcast_to(view, (draw(st.integers(0, 3)), *view.shape))
    return view


@given(
    views(),
    st.sampled_from(HOW),
    st.sampled_from(BOUNDS[:-1]),
    st.sampled_from([1, 3, 15, 255]),
    st.sampled_from([64, 200, 4096]),
)
def test_any_view(
    values: np.ndarray[Any, Any], how: str, bound: dict[str, Any], levels: int, chunk_bytes: int
) -> None:
    if "ulps" in bound and values.dtype.kind not in "fc":
        bound = {}
    parameters = _core.TreeParameters(
        values.dtype.str, residue_levels=levels, chunk_bytes=chunk_bytes, **bound
    )
    scalars = values.size * parameters.scalars_per_element
    golden = on_host(parameters, values)
    assert_same(on_device(parameters, held(values, how), scalars), golden)
    if golden[0].residues is not None:
        other = np.ascontiguousarray(values)[..., ::-1] if values.ndim else values
        assert_same(
            on_device(parameters, held(other, how), scalars, golden[0]),
            on_host(parameters, other, golden[0]),
        )


def test_more_than_goes_into_a_piece() -> None:
    """Both lanes are used again and again: from the host (8 MiB a piece), in place (64 MiB)."""
    parameters = _core.TreeParameters("<f4", atol=1e-3, residue_levels=15, chunk_bytes=65536)
    rng = np.random.default_rng(0)
    values = rng.normal(size=5_000_011).astype("f4")
    run = values + np.float32(1e-4)
    golden = on_host(parameters, values)
    builder = _core.TreeBuilder(parameters, values.size, backend=BACKEND)
    for at in (0, 1, 4_100_000, values.size):  # pieces that end amid a chunk
        builder.update(values[at : {0: 1, 1: 4_100_000}.get(at, values.size)].view("u1"))
    assert_same((builder.finish(), builder.drift), golden)
    assert_same(
        on_device(parameters, held(run, "dlpack"), run.size, golden[0]),
        on_host(parameters, run, golden[0]),
    )
    many = np.broadcast_to(values[:1_000_000], (18, 1_000_000))  # 72 MB, gathered in two pieces
    assert_same(on_device(parameters, held(many, "cuda"), many.size), on_host(parameters, many))


def test_two_builders_at_once() -> None:
    """Each has lanes of its own; those of a builder that is given up serve the next."""
    parameters = _core.TreeParameters("<f8", atol=1e-6, residue_levels=3)
    arrays = [np.linspace(i, i + 1, 30_001) for i in range(4)]
    builders = [_core.TreeBuilder(parameters, 30_001, backend=BACKEND) for _ in arrays]
    for begin in range(0, 30_001, 7000):
        for builder, array in zip(builders, arrays, strict=True):
            builder.update(array[begin : begin + 7000].view("u1"))
    given_up = builders.pop()
    del given_up
    for builder, array in zip(builders, arrays, strict=False):
        assert builder.finish().root == on_host(parameters, array)[0].root


def test_what_a_builder_refuses() -> None:
    parameters = _core.TreeParameters("<f4", atol=1e-3)
    array = held(np.zeros(100, "f4"), "dlpack")
    for backend, scalars, before in (("serial", 100, 0), (BACKEND, 99, 0), (BACKEND, 101, 4)):
        builder = _core.TreeBuilder(parameters, scalars, backend=backend)
        builder.update(bytes(before))
        with pytest.raises(_core.CoreError) as caught:
            builder.update_device(array)
        assert caught.value.code == "invalid_argument"
    builder = _core.TreeBuilder(parameters, 100, backend=BACKEND)
    builder.update_device(array)
    with pytest.raises(_core.CoreError):
        builder.update_device(array)
