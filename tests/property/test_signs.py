"""Vectors up to their sign, against both signs of each tried by itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ciwrap
from ciwrap.arrays.values import ArrayValues, MaskedValues
from ciwrap.check.judge import compare_values
from ciwrap.model import ErrorBound, VariableId, VariableSettings, Verdict

X = VariableId("x")
BOUNDS = [ErrorBound(), ErrorBound(0.125), ErrorBound(0.0, 0.0625), ErrorBound(0.03125, 0.03125)]
FILL = -7.0


def beyond(g: Any, v: Any, bound: ErrorBound, combine: str) -> Any:
    """Which values differ; missing and NaN equal themselves alone."""
    kind = [np.where(x == FILL, 1, np.where(np.isnan(x), 2, 0)) for x in (g, v)]
    pick = {"sum": np.add, "both": np.minimum, "either": np.maximum}[combine]
    with np.errstate(invalid="ignore"):
        parts = (np.full(g.shape, bound.atol), bound.rtol * np.abs(g))
        is_apart = ~((np.abs(v - g) <= pick(*parts)) | (v == g))
    return np.where((kind[0] == 0) & (kind[1] == 0), is_apart, kind[0] != kind[1])


def vectors(array: Any, way: str) -> list[Any]:
    if way == "whole":
        return [array.reshape(-1)]
    moved = array if way == "rows" else np.moveaxis(array, -1, 0)
    return list(moved.reshape(len(moved), -1))


@given(
    st.sampled_from([(2, 3), (3, 2), (2, 2, 4), (5, 2)]),
    st.sampled_from(["whole", "rows", "columns"]),
    st.sampled_from(BOUNDS),
    st.sampled_from(["sum", "both", "either"]),
    st.sampled_from(["<f8", ">f4"]),
    st.integers(0, 9999),
)
def test_a_vector_matches_if_it_does_with_either_sign(
    shape: tuple[int, ...], way: str, bound: ErrorBound, combine: str, dtype: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    some = [0.0, -0.0, 1.0, -2.0, 0.25, 1.0625, -1.0625, math.inf, math.nan, FILL]
    weights = np.array([2, 1, 9, 9, 9, 9, 9, 1, 1, 2]) / 52
    golden = rng.choice(some, shape, p=weights).astype(dtype)
    new = with_signs(golden, way, rng)
    at = tuple(rng.integers(0, one) for one in shape)
    if rng.random() < 0.4:
        new[at] = rng.choice(some)
    settings = VariableSettings(bound=bound, combine=combine, up_to_sign=way, fill_values=(FILL,))
    found = compare_values(ArrayValues(golden), ArrayValues(new), settings, X)
    pairs = list(zip(vectors(golden, way), vectors(new, way), strict=True))
    if combine != "sum" and found.verdict is Verdict.NOT_COMPARABLE:
        return
    counts = [
        [int(beyond(g, sign(v), bound, combine).sum()) for sign in (np.array, flipped)]
        for g, v in pairs
    ]
    is_match = all(min(one) == 0 for one in counts)
    assert (found.verdict is Verdict.MATCH) == is_match, (golden, new, found)
    assert found.flipped_count is not None
    assert found.flipped_count <= len(pairs)
    assert found.flipped_count >= sum(one[0] > 0 == one[1] for one in counts)


def flipped(values: Any) -> Any:
    return np.where(values == FILL, values, -values)


def with_signs(golden: Any, way: str, rng: Any) -> Any:
    """Each vector of the golden with a sign of its own, and a little noise."""
    count = {"whole": 1, "rows": golden.shape[0], "columns": golden.shape[-1]}[way]
    signs = rng.choice([-1.0, 1.0], count)
    if way == "rows":
        signs = signs.reshape(-1, *[1] * (golden.ndim - 1))
    noise = golden + rng.choice([0.0, 0.0625]) * rng.choice([-1.0, 0.0, 1.0], golden.shape)
    moved = np.where(golden == FILL, FILL, noise * signs)
    return moved.astype(golden.dtype)


V = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]


def test_eigenvectors() -> None:
    new = V * [1, -1, 1, -1, -1]
    found = ciwrap.compare_arrays(V, new, atol=1e-12, up_to_sign="columns")
    assert (found.verdict, found.flipped_count) == (Verdict.MATCH, 3)
    assert ciwrap.compare_arrays(V, new, atol=1e-12).verdict is Verdict.DIFFER
    for way in ("whole", "rows"):
        told = ciwrap.compare_arrays(V, new, atol=1e-12, up_to_sign=way)
        assert told.verdict is Verdict.DIFFER
    new[2, 1] *= -1
    found = ciwrap.compare_arrays(V, new, atol=1e-12, up_to_sign="columns")
    assert found.differing_count == 1
    assert found.first_index == (2, 1)
    assert float(found.first_differences[0].new) == -new[2, 1]
    assert ciwrap.compare_arrays(V, -V, up_to_sign="whole").flipped_count == 1
    assert ciwrap.compare_arrays(V * 1j, V * -1j, up_to_sign="whole").verdict is Verdict.MATCH


def test_infinities_and_nan() -> None:
    golden = np.array([[math.inf, -1.0, math.nan], [math.inf, 1.0, 1.0]])
    found = ciwrap.compare_arrays(golden, -golden, up_to_sign="rows")
    assert (found.verdict, found.flipped_count) == (Verdict.MATCH, 2)


def test_zero_vectors_and_masks() -> None:
    zeros = np.zeros((3, 4))
    assert ciwrap.compare_arrays(zeros, -zeros, up_to_sign="rows").flipped_count == 0
    mask = ArrayValues(np.eye(3, 4, dtype=bool))
    ours, theirs = (MaskedValues(ArrayValues(one + 1.0), mask, "m") for one in (zeros, zeros - 2))
    settings = VariableSettings(up_to_sign="rows", mask="m")
    found = compare_values(ours, theirs, settings, X)
    assert (found.verdict, found.flipped_count, found.masked_count) == (Verdict.MATCH, 3, 3)


@pytest.mark.parametrize(
    ("array", "way"),
    [
        (np.arange(6).reshape(2, 3), "rows"),
        (np.array([[True, False]]), "rows"),
        (np.arange(3.0), "columns"),
        (np.arange(3.0), "rows"),
        (np.arange(3.0)[:, None], "rows"),
        (np.float64(3), "whole"),
    ],
)
def test_the_sign_of_a_number_means_something(array: Any, way: str) -> None:
    found = ciwrap.compare_arrays(array, array, up_to_sign=way)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "set 'up_to_sign: none' for this variable" in str(found.reason)
