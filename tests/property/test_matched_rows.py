"""Rows paired by coordinates, against all pairs that there are: nothing is paired in doubt."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.errors import AlignmentError
from ciwrap.formats.matched_rows import match_cells, match_points
from ciwrap.model import ErrorBound

SIDES = ("on the first side", "on the second side")
BOUNDS = st.sampled_from(
    [ErrorBound(), ErrorBound(1e-9), ErrorBound(0.01), ErrorBound(0.0, 1e-6), ErrorBound(ulps=3)]
)


def slack(golden: Any, bound: ErrorBound) -> Any:
    if bound.ulps:
        return bound.ulps * np.spacing(np.abs(golden))
    return bound.atol + bound.rtol * np.abs(golden)


def near(golden: Any, new: Any, bound: ErrorBound) -> Any:
    """Whether row j of new lies within the bound of row i of golden."""
    apart = np.abs(new[None].astype(float) - golden[:, None])
    return np.all(apart <= slack(golden, bound)[:, None], axis=2)


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[Any, Any, ErrorBound]:
    """Points on a grid, which has all distances from none to far, each side with noise of its own;
    some are lost, some there twice, some moved.
    """
    axes, count = draw(st.integers(1, 3)), draw(st.integers(0, 12))
    bound, rng = draw(BOUNDS), np.random.default_rng(draw(st.integers(0, 999)))
    step = draw(st.sampled_from([1.0, 0.1, 0.015, 1e-9, 1e6]))
    golden = step * rng.integers(-3, 9, (count, axes))
    if draw(st.booleans()):
        golden = np.unique(golden, axis=0)
    share = draw(st.sampled_from([0.0, 0.3, 0.99, 1.01, 2.5]))
    new = golden + share * slack(golden, bound) * rng.choice([-1.0, 0.0, 1.0], golden.shape)
    new = new[rng.permutation(len(new))]
    if draw(st.booleans()) and len(new):
        new = np.delete(new, rng.integers(len(new)), axis=0)
    return golden, new, bound


@given(two_sides())
def test_a_pair_is_the_only_one_or_stands_where_it_stood(case: Any) -> None:
    golden, new, bound = case
    is_near = near(golden, new, bound)
    try:
        rows = match_points("p", golden, new, bound, SIDES)
    except AlignmentError:
        return
    assert sorted(rows) == [*range(len(golden))] == [*range(len(new))]
    assert all(is_near[i, row] for i, row in enumerate(rows))
    is_unique = (is_near.sum(axis=0) == 1).all() and (is_near.sum(axis=1) == 1).all()
    assert is_unique or list(rows) == [*range(len(golden))]


@given(st.integers(1, 60), st.integers(1, 3), BOUNDS, st.integers(0, 999), st.booleans(), st.data())
def test_meshes_with_room_between_points_are_always_paired(
    count: int, axes: int, bound: ErrorBound, seed: int, is_single: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    scale = data.draw(st.sampled_from([1.0, 1e-7, 3e5]))
    golden = scale * rng.permutation(4 * count)[:count, None].repeat(axes, axis=1)
    golden = (golden * rng.uniform(1, 1.001, axes)).astype("<f4" if is_single else "<f8")
    if bound.atol * 16 > scale:
        bound = ErrorBound(scale / 20)
    order = rng.permutation(count)
    noise = 0.999 * slack(golden.astype(float), bound) * rng.uniform(-1, 1, golden.shape)
    is_felt = not bound.ulps and np.abs(noise).max() > 8 * np.spacing(np.abs(golden).max())
    new = (golden.astype(float) + noise)[order] if is_felt else golden[order]
    assert np.array_equal(match_points("p", golden, new, bound, SIDES), np.argsort(order))
    if axes == 1:
        found = match_points("p", golden[:, 0], new[:, 0], bound, SIDES)
        assert np.array_equal(found, np.argsort(order))


SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("golden", "new", "atol", "words"),
    [
        (
            SQUARE,
            SQUARE[[1, 0, 2]],
            1e-9,
            "1 point is only on the first side, the first at (0, 1)",
        ),
        (
            SQUARE[:3],
            SQUARE[[1, 3, 0, 2]],
            1e-9,
            "1 point is only on the second side, the first at (0, 1)",
        ),
        (SQUARE, SQUARE[::-1] + 1e-6, 1e-9, "is 1e-06 away, and the bound of 'p' is atol=1e-9"),
        (SQUARE, SQUARE[::-1], 0.2, "points have to be 2.4 apart"),
        (SQUARE[[0, 1, 1]], SQUARE[[1, 1, 0]], 0.0, "two points are 0 apart, at (1, 0)"),
        (SQUARE, SQUARE[[1, 1, 2, 3]], 0.0, "two points are 0 apart"),
        (SQUARE, SQUARE[::-1, :1], 0.0, "has 2 coordinates on the first side, 1 on the second"),
        (SQUARE, SQUARE[::-1] + math.inf, 0.0, "not all finite"),
        (SQUARE, SQUARE.astype(complex), 0.0, "one to 3 floating-point numbers"),
        (np.zeros((2, 4)), np.zeros((2, 4)), 0.0, "one to 3 floating-point numbers"),
    ],
)
def test_what_is_refused(golden: Any, new: Any, atol: float, words: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(AlignmentError) as caught:
        match_points("p", golden, new, ErrorBound(atol), SIDES)
    assert words in str(caught.value)


def test_points_too_near_to_be_moved_may_stand_where_they_stood() -> None:
    twice = SQUARE[[0, 1, 1, 2]]
    assert list(match_points("p", twice, twice.copy(), ErrorBound(), SIDES)) == [0, 1, 2, 3]


def test_time_is_linear_in_the_number_of_points() -> None:
    side = np.linspace(0, 1, 60)
    grid = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    order = np.random.default_rng(1).permutation(len(grid))
    found = match_points("p", grid, grid[order] + 1e-12, ErrorBound(1e-9), SIDES)
    assert np.array_equal(found, np.argsort(order))


def listed(cells: list[list[int]]) -> tuple[Any, Any]:
    ends = np.cumsum([0, *map(len, cells)])
    return np.array([one for cell in cells for one in cell], dtype=np.int64), ends


@given(st.lists(st.lists(st.integers(0, 7), unique=True, max_size=5), max_size=12), st.randoms())
def test_cells_are_paired_by_their_points_alone(cells: list[list[int]], random: Any) -> None:
    order = random.sample(range(len(cells)), len(cells))
    new = [random.sample(cells[at], len(cells[at])) for at in order]
    sets = [frozenset(one) for one in cells]
    if len(set(sets)) < len(sets) and [set(one) for one in new] != [set(one) for one in cells]:
        with pytest.raises(AlignmentError):
            match_cells(listed(cells), listed(new))
        return
    rows = match_cells(listed(cells), listed(new))
    assert [frozenset(new[row]) for row in rows] == sets
    if new:
        new[-1] = [*new[-1], 8]
        with pytest.raises(AlignmentError):
            match_cells(listed(cells), listed(new))


def test_cells_of_very_many_points_take_no_room() -> None:
    long = [list(range(100)), [1]]
    with pytest.raises(AlignmentError, match="more than 64 points"):
        match_cells(listed(long), listed(long[::-1]))
