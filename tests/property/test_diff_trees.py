"""Breadth-first comparison of trees: no leaf that differs is ever left out, and none is added."""

from __future__ import annotations

import numpy as np
import pytest
from core_side import parameters
from hypothesis import given
from hypothesis import strategies as st
from oracle import trees
from oracle.cases import Case

from ciwrap import _core

CASE = Case("|u1", 1, {}, {}, 64)


def leaves_of(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 255, (count, 16)).astype(np.uint8)


def tree_of(leaves: np.ndarray, arity: int) -> _core.Tree:
    return _core.Tree.from_parts(parameters(CASE, arity=arity), 64 * len(leaves) - 7, leaves)


@pytest.mark.parametrize("arity", [2, 4, 16])
def test_each_single_leaf_from_every_start_level(arity: int) -> None:
    for count in range(1, 131):
        leaves = leaves_of(count)
        golden = tree_of(leaves, arity)
        depth = len(golden.level_counts)
        for level in range(-1, depth):
            assert _core.diff_trees(golden, golden, start_level=level).size == 0
        for leaf in range(count):
            changed = leaves.copy()
            changed[leaf, leaf % 16] ^= 1
            new = tree_of(changed, arity)
            for level in range(-1, depth):
                assert _core.diff_trees(golden, new, start_level=level).tolist() == [leaf]


@given(
    st.integers(1, 3000),
    st.sampled_from([2, 3, 4, 16, 64, 256]),
    st.lists(st.integers(0, 2999), max_size=80),
    st.integers(-1, 11),
)
def test_any_subset(count: int, arity: int, picks: list[int], level: int) -> None:
    leaves = leaves_of(count)
    changed = leaves.copy()
    wanted = sorted({pick % count for pick in picks})
    changed[wanted, 3] ^= 0x40
    golden, new = tree_of(leaves, arity), tree_of(changed, arity)
    level = min(level, len(golden.level_counts) - 1)
    found = _core.diff_trees(golden, new, start_level=level)
    assert found.dtype == np.int64
    assert found.tolist() == wanted


@given(st.integers(1, 400), st.lists(st.integers(0, 399), max_size=9), st.integers(-1, 8))
def test_leaves_that_never_match(count: int, picks: list[int], level: int) -> None:
    """The digest ff..ff (NaN under equal_nan=False) matches nothing, not even itself."""
    leaves = leaves_of(count)
    wanted = sorted({pick % count for pick in picks})
    leaves[wanted] = 0xFF
    tree = tree_of(leaves, 4)
    level = min(level, len(tree.level_counts) - 1)
    assert _core.diff_trees(tree, tree, start_level=level).tolist() == wanted
    if wanted:
        assert tree.root == trees.NEVER


def test_trees_that_cannot_be_compared_are_refused() -> None:
    one, other = leaves_of(5), leaves_of(6)
    with pytest.raises(_core.CoreError):
        _core.diff_trees(tree_of(one, 4), tree_of(other, 4))
    with pytest.raises(_core.CoreError):
        _core.diff_trees(tree_of(one, 4), tree_of(one, 16))
    golden = _core.build_tree(parameters(Case("<f4", 1, {"atol": 1e-3})), bytes(400))
    for case in (
        Case("<f4", 1, {"atol": 1e-4}),
        Case("<f4", 3, {"atol": 1e-3}),
        Case("<i4", 1, {}),
        Case("<f4", 1, {"atol": 1e-3}, {"equal_nan": False}),
        Case("<f4", 1, {"atol": 1e-3}, {"fill_values": (0.0,)}),
        Case("<f4", 1, {"atol": 1e-3}, {}, 512),
    ):
        with pytest.raises(_core.CoreError):
            _core.diff_trees(golden, _core.build_tree(parameters(case), bytes(400)))


def found_or_refused(golden: _core.Tree, new: _core.Tree, level: int) -> list[int] | str:
    try:
        return _core.diff_trees(golden, new, start_level=level).tolist()
    except _core.CoreError as error:
        return error.code


def test_a_start_level_beyond_the_leaves_misses_nothing() -> None:
    """Refused, or answered rightly; never an empty answer."""
    leaves = leaves_of(24)
    changed = leaves.copy()
    changed[23, 0] ^= 1
    golden, new = tree_of(leaves, 2), tree_of(changed, 2)
    for level in (len(golden.level_counts), 13, 63, 1 << 30):
        assert found_or_refused(golden, new, level) in ([23], "invalid_argument")
