"""Samples and maps of a difference against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap import api
from ciwrap.check.solve import share_classes
from ciwrap.explain.pictures import chunk_map, chunk_share_maps
from ciwrap.model import Verdict
from ciwrap.model.variable_result import (
    BOUND_CLASS,
    MOST_RUNS,
    MOST_WORST,
    NOT_FINITE,
    SUSPECT,
    ChunkMap,
    cells,
)

DTYPES = ("<f4", ">f8", "<f2", "<i4", "<i8", "<u8", "|b1", "<c16", "|S3", "<U2")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    """Two arrays of one shape and dtype that differ here and there, and a bound."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=0, max_size=4)))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    golden = random.normal(scale=3, size=shape)
    if dtype.kind == "c":
        golden = golden + 1j * random.normal(size=shape)
    if dtype.kind == "u":
        golden = np.abs(golden)
    one = np.asarray(golden).astype(dtype)
    other = one.copy()
    where = random.random(shape) < draw(st.sampled_from((0.02, 0.3, 1.0)))
    moved = np.abs(golden) * 2 + 1 if dtype.kind == "u" else golden * 3 + 1
    other[where] = np.asarray(moved).astype(dtype)[where]
    if dtype.kind == "f" and draw(st.booleans()):
        other[random.random(shape) < 0.1] = random.choice([np.nan, np.inf, -np.inf])
    atol = draw(st.sampled_from((0.0, 0.5, 2.0))) if dtype.kind in "fc" else 0.0
    return one, other, atol


def differs(golden: np.ndarray, new: np.ndarray, atol: float) -> np.ndarray:
    """The contract, part 1."""
    if golden.dtype.kind in "SUbiu":
        return np.asarray(golden != new)
    if golden.dtype.kind == "c":
        return differs(golden.real, new.real, atol) | differs(golden.imag, new.imag, atol)
    with np.errstate(all="ignore"):
        wide = golden.astype(np.float64), new.astype(np.float64)
        near = np.abs(wide[1] - wide[0]) <= atol
        return ~((golden == new) | near | (np.isnan(golden) & np.isnan(new)))


@pytest.mark.parametrize("shape", [(2,), (1, 2), (2, 1)])
def test_details_know_elements_beyond_the_bound_by_a_hair(shape: tuple[int, ...]) -> None:
    """Rounded, the share of the second one is 1; the largest difference is that of the first."""
    golden = np.array([1e6, 0.5334831665319858]).reshape(shape)
    new = np.array([1e6 + 0.5, 0.6868314831851844]).reshape(shape)
    result = api.compare_arrays(golden, new, atol=0.1, rtol=0.1)
    assert (result.differing_count, result.details is None) == (1, False)
    assert result.details is not None
    assert [one.index for one in result.details.worst_elements] == [result.first_index]
    assert result.differing_box is not None
    assert result.differing_box.first_index == result.first_index
    for share_map in result.details.share_maps:
        found = cells(share_map.classes, share_map.rows, share_map.columns)
        assert max(found) == BOUND_CLASS


@given(pairs())
def test_box_and_worst_elements_are_those_of_numpy(case: Any) -> None:
    golden, new, atol = case
    result = api.compare_arrays(golden, new, atol=atol)
    wanted = differs(golden, new, atol)
    assert result.differing_count == np.count_nonzero(wanted)
    if result.verdict is Verdict.MATCH:
        assert result.details is None
        return
    assert result.details is not None
    indices = np.argwhere(wanted)
    if golden.shape:
        assert result.differing_box is not None
        assert result.differing_box.first_index == tuple(indices.min(axis=0))
        assert result.differing_box.last_index == tuple(indices.max(axis=0))
    worst = result.details.worst_elements
    assert len(worst) == min(len(indices), MOST_WORST)
    assert all(wanted[one.index] for one in worst)
    assert len({one.index for one in worst}) == len(worst)
    shares = [np.inf if one.bound_share is None else one.bound_share for one in worst]
    assert shares == sorted(shares, reverse=True)
    if result.max_bound_share is not None:
        assert shares[0] == result.max_bound_share


@given(pairs())
def test_maps_show_every_differing_element(case: Any) -> None:
    golden, new, atol = case
    result = api.compare_arrays(golden, new, atol=atol)
    if result.details is None:
        return
    wanted = differs(golden, new, atol)
    for one in result.details.share_maps:
        found = np.frombuffer(cells(one.classes, one.rows, one.columns), np.uint8)
        found = found.reshape(one.rows, one.columns)
        axes = {one.row_axis, one.column_axis} - {None}
        hidden = tuple(axis for axis in range(golden.ndim) if axis not in axes)
        # So small that every element has a cell of its own.
        assert np.array_equal(found > 0, wanted.any(axis=hidden).reshape(found.shape))
        assert found[found > 0].min() >= 18
    picture = result.details.picture
    if golden.dtype.kind in "SU":
        assert picture is None
    elif picture is not None:
        shown = np.frombuffer(cells(picture.new, picture.rows, picture.columns), np.uint8)
        plane = new[
            tuple(
                slice(None) if axis in (picture.row_axis, picture.column_axis) else position
                for axis, position in enumerate(picture.index)
            )
        ]
        assert np.array_equal(shown == NOT_FINITE, ~np.isfinite(plane.reshape(-1)))


@given(st.lists(st.integers(0, 5000), unique=True), st.integers(5001, 20_000))
def test_the_chunk_map_is_all_suspect_chunks(suspects: list[int], count: int) -> None:
    parameters = api.build_tree(np.zeros(4)).parameters
    ordered = np.array(sorted(suspects), np.int64)
    found = chunk_map(ordered, parameters, count)
    assert len(found.runs) <= MOST_RUNS
    assert unpacked(found) == {one // found.chunks_per_cell for one in suspects}
    assert sum(found.runs) == -(-count // found.chunks_per_cell)


def unpacked(found: ChunkMap) -> set[int]:
    cells_found: set[int] = set()
    at = 0
    for position, length in enumerate(found.runs):
        if position % 2:
            cells_found |= set(range(at, at + length))
        at += length
    return cells_found


def test_a_map_of_too_many_runs_gets_coarser() -> None:
    parameters = api.build_tree(np.zeros(4)).parameters
    found = chunk_map(np.arange(0, 100_000, 2), parameters, 100_000)
    assert len(found.runs) <= MOST_RUNS
    assert found.chunks_per_cell > 1
    assert sum(found.runs[1::2]) == sum(found.runs)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
)
def test_suspect_chunks_are_drawn_whole(shape: list[int], per_chunk: int, seed: int) -> None:
    count = int(np.prod(shape))
    chunks = -(-count // per_chunk)
    random = np.random.default_rng(seed)
    suspects = np.flatnonzero(random.random(chunks) < 0.4)
    wanted = np.isin(np.arange(count) // per_chunk, suspects).reshape(shape)
    for one in chunk_share_maps(suspects, per_chunk, tuple(shape), count):
        found = np.frombuffer(cells(one.classes, one.rows, one.columns), np.uint8)
        axes = {one.row_axis, one.column_axis} - {None}
        hidden = tuple(axis for axis in range(len(shape)) if axis not in axes)
        assert np.array_equal(found == SUSPECT, wanted.any(axis=hidden).reshape(-1))


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=50))
@settings(max_examples=examples(30))
def test_classes_are_those_of_the_core(values: list[float]) -> None:
    new = np.array(values)
    result = api.compare_arrays(np.zeros_like(new), new, atol=1.0)
    assert result.bound_share_histogram is not None
    assert tuple(np.bincount(share_classes(new), minlength=34)) == result.bound_share_histogram


def test_a_large_array_has_a_picture_of_a_plane() -> None:
    golden = np.zeros((40, 300, 500), np.float32)
    new = golden.copy()
    new[17, 100:200, 250] = 1
    result = api.compare_arrays(golden, new, atol=1e-6)
    assert result.details is not None
    picture = result.details.picture
    assert picture is not None
    assert (picture.row_axis, picture.column_axis, picture.index) == (1, 2, (17, 0, 0))
    shown = np.frombuffer(cells(picture.classes, picture.rows, picture.columns), np.uint8)
    shown = shown.reshape(picture.rows, picture.columns)
    assert {int(column) for column in np.nonzero(shown)[1]} == {250 * picture.columns // 500}
    rows = np.nonzero(shown)[0]
    assert (rows.min(), rows.max()) == (100 * picture.rows // 300, 199 * picture.rows // 300)
