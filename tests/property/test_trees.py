"""Digests and trees of the core against the `xxhash` package over the documented codes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xxhash
from core_side import parameters
from hypothesis import given
from hypothesis import strategies as st
from oracle import adversary, trees
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.cases import Case, cases_of_tier

from ciwrap import _core

ARITIES = (2, 4, 16)


def assert_same_tree(
    case: Case, data: bytes, arity: int, tree: _core.Tree, golden: _core.Tree | None = None
) -> None:
    plan = case.plan()
    scalar_count = len(data) // plan.layout.scalar_bytes
    residues = None
    if golden is not None and golden.residues is not None:
        residues = trees.unpack_residues(plan, golden.residues, scalar_count)
    levels, codes = trees.build(plan, data, arity, residues)
    assert tree.scalar_count == scalar_count
    assert tree.leaf_count == len(levels[-1])
    assert tree.level_counts == tuple(len(level) for level in levels)
    assert tree.root == levels[0][0]
    flat = b"".join(digest for level in levels for digest in level)
    assert tree.digests.shape == (sum(tree.level_counts), 16)
    assert tree.digests.tobytes() == flat
    assert tree.leaf_digests.tobytes() == b"".join(levels[-1])
    if plan.k > 1 and residues is None and scalar_count:
        assert codes.residues is not None
        assert tree.residues is not None
        packed = trees.pack_residues(plan, codes.residues)
        assert tree.residues.tobytes() == packed.tobytes()


def data_of(case: Case, scalar_count: int, salt: int = 0) -> tuple[bytes, bytes]:
    plan, rng = case.plan(), case.rng(salt)
    golden, new = adversary.pairs(plan, rng, max(scalar_count, 1))
    return (
        sc.bytes_of(plan.layout, golden[:scalar_count]),
        sc.bytes_of(plan.layout, new[:scalar_count]),
    )


class PrefixTrees:
    """The oracle's trees of every prefix of some data (codes do not depend on what follows).

    What whole chunks have, they have in every prefix, so that it is worked out once: leaves, nodes
    that have all their children, and residues.
    """

    def __init__(self, case: Case, data: bytes, residues: np.ndarray | None = None) -> None:
        self.plan = case.plan()
        self.codes = cc.cell_codes(self.plan, data, residues)
        self.leaves = trees.leaf_digests(self.plan, self.codes)
        self._whole_levels: dict[int, list[list[bytes]]] = {}
        self._packed = b""
        if self.codes.residues is not None:
            self._packed = trees.pack_residues(self.plan, self.codes.residues).tobytes()

    def digests(self, count: int, arity: int) -> bytes:
        whole = (count - 1) // self.plan.chunk_scalars
        start = whole * self.plan.chunk_scalars
        last = trees.digest(self.codes.values[start:count].tobytes())
        if not self.plan.equal_nan and self.codes.nan[start:count].any():
            last = trees.NEVER
        if arity not in self._whole_levels:
            self._whole_levels[arity] = self._levels_of_whole(arity)
        below = self._whole_levels[arity]
        levels = [[*below[0][:whole], last]]
        while len(levels[0]) > 1:
            # All but the last parent have all their children, none of which is the last one.
            parents = (len(levels[0]) - 1) // arity
            rest = trees.parent(levels[0][parents * arity :])
            levels.insert(0, [*below[len(levels)][:parents], rest])
        return b"".join(digest for level in levels for digest in level)

    def _levels_of_whole(self, arity: int) -> list[list[bytes]]:
        """The leaves first, then of each level the nodes that have all their children."""
        found = [self.leaves]
        while len(found[-1]) >= arity:
            below = found[-1]
            groups = [below[i : i + arity] for i in range(0, len(below) - arity + 1, arity)]
            found.append([trees.parent(group) for group in groups])
        return [*found, []]

    def residues(self, count: int) -> bytes:
        assert self.codes.residues is not None
        whole = (count - 1) // self.plan.chunk_scalars
        start = whole * self.plan.chunk_scalars
        size = -(-self.plan.chunk_scalars // trees.packed_per_byte(self.plan.k))
        last = trees.pack_residues(self.plan, self.codes.residues[start:count])
        return self._packed[: whole * size] + last.tobytes()


def test_hash_of_every_length() -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, 1 << 18).astype(np.uint8).tobytes()
    for length in [*range(2200), 4095, 4096, 4097, 65536, (1 << 18) - 1, 1 << 18]:
        piece = data[3 : 3 + length]
        assert _core.xxh3_128(piece) == xxhash.xxh3_128(piece).digest(), length


@pytest.mark.parametrize("case", cases_of_tier(), ids=str)
def test_whole_trees(case: Case) -> None:
    small = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes=200)
    per_element = small.plan().layout.scalars_per_element
    golden, new = data_of(small, 700 * per_element)
    params = parameters(small)
    golden_tree = _core.build_tree(params, golden)
    assert_same_tree(small, golden, 16, golden_tree)
    new_tree = _core.build_tree(params, new, golden=golden_tree)
    assert_same_tree(small, new, 16, new_tree, golden_tree)


@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize(
    "case",
    [
        Case("<f4", 1, {"atol": 1e-3}, {}, 64),
        Case("<f4", 3, {"atol": 1e-3}, {}, 64),
        Case("<f4", 15, {"rtol": 1e-3}, {"equal_nan": False}, 68),
        Case("<f8", 5, {"ulps": 9}, {}, 71),
        Case("|S7", 1, {}, {}, 64),
    ],
    ids=str,
)
def test_every_chunk_count_and_tail(case: Case, arity: int) -> None:
    """1 to 130 chunks, each with every length of the last chunk."""
    params = parameters(case, arity=arity)
    per_chunk = params.chunk_scalars
    golden, new = data_of(case, 130 * per_chunk)
    expected = PrefixTrees(case, golden)
    expected_new = PrefixTrees(case, new, expected.codes.residues)
    for chunks in range(1, 131):
        for tail in range(1, per_chunk + 1):
            count = (chunks - 1) * per_chunk + tail
            size = count * params.scalar_bytes
            tree = _core.build_tree(params, golden[:size])
            assert tree.leaf_count == chunks
            assert tree.digests.tobytes() == expected.digests(count, arity)
            if case.residue_levels > 1:
                assert tree.residues is not None
                assert tree.residues.tobytes() == expected.residues(count)
                other = _core.build_tree(params, new[:size], golden=tree)
                assert other.digests.tobytes() == expected_new.digests(count, arity)


@pytest.mark.parametrize("arity", [2, 3, 7, 16, 255, 256])
@pytest.mark.parametrize("chunks", [1, 2, 3, 15, 16, 17, 255, 256, 257, 4096, 4097, 65537])
def test_large_counts_and_odd_arities(chunks: int, arity: int) -> None:
    case = Case("<i8", 1, {}, {}, 64)
    data = np.arange(8 * chunks - 3, dtype="<i8").tobytes()
    assert_same_tree(case, data, arity, _core.build_tree(parameters(case, arity=arity), data))


@pytest.mark.parametrize("dtype", ["<f4", "<c16", "|b1", "|S5", "<u8"])
def test_empty_arrays_have_one_leaf(dtype: str) -> None:
    bound = {"atol": 1e-3} if dtype[1] in "fc" else {}
    case = Case(dtype, 3, bound)
    tree = _core.build_tree(parameters(case), b"")
    assert tree.level_counts == (1,)
    assert tree.root == xxhash.xxh3_128(b"").digest()
    assert_same_tree(case, b"", 16, tree)


BUILDER_CASES = [
    Case("<f4", 1, {"atol": 1e-3}, {}, 64),
    Case(">f8", 15, {"rtol": 1e-3}, {}, 64),
    Case("<c8", 3, {"atol": 1e-3, "rtol": 1e-3}, {}, 76),
    Case(">U3", 1, {}, {}, 70),
    Case("<bf2", 255, {"atol": 1e-2}, {"equal_nan": False}, 65),
]


@pytest.mark.parametrize("case", BUILDER_CASES, ids=str)
def test_a_stream_cut_at_any_byte(case: Case) -> None:
    params = parameters(case, arity=3)
    count = 60 * params.scalars_per_element
    golden, new = data_of(case, count)
    whole = _core.build_tree(params, golden)
    whole_new = _core.build_tree(params, new, golden=whole)
    for cut in range(len(golden) + 1):
        for data, against, right in ((golden, None, whole), (new, whole, whole_new)):
            builder = _core.TreeBuilder(params, count, golden=against)
            builder.update(data[:cut])
            builder.update(data[cut:])
            tree = builder.finish()
            assert tree.digests.tobytes() == right.digests.tobytes()
            if right.residues is not None:
                assert tree.residues is not None
                assert tree.residues.tobytes() == right.residues.tobytes()


@given(st.sampled_from(BUILDER_CASES), st.lists(st.integers(0, 40_000), max_size=12))
def test_a_stream_cut_anywhere_many_times(case: Case, cuts: list[int]) -> None:
    params = parameters(case)
    count = 2000 * params.scalars_per_element
    golden, new = data_of(case, count)
    whole = _core.build_tree(params, golden)
    whole_new = _core.build_tree(params, new, golden=whole)
    builder = _core.TreeBuilder(params, count, golden=whole)
    places = [0, *sorted(min(cut, len(new)) for cut in cuts), len(new)]
    for first, last in itertools.pairwise(places):
        builder.update(new[first:last])
    assert builder.finish().digests.tobytes() == whole_new.digests.tobytes()


def stream_of(params: _core.TreeParameters, scalar_count: int, data: bytes) -> _core.Tree:
    builder = _core.TreeBuilder(params, scalar_count)
    builder.update(data)
    return builder.finish()


def test_a_stream_of_the_wrong_length_is_refused() -> None:
    params = parameters(BUILDER_CASES[0])
    for given_bytes in (0, 4, 39, 41, 44):
        with pytest.raises(_core.CoreError) as caught:
            stream_of(params, 10, bytes(given_bytes))
        assert caught.value.code == "invalid_argument"


@pytest.mark.parametrize("case", BUILDER_CASES, ids=str)
def test_trees_from_their_parts(case: Case) -> None:
    params = parameters(case)
    golden, _ = data_of(case, 500 * params.scalars_per_element)
    tree = _core.build_tree(params, golden)
    again = _core.Tree.from_parts(
        params, tree.scalar_count, np.array(tree.leaf_digests), tree.residues
    )
    assert again.digests.tobytes() == tree.digests.tobytes()
    plan = case.plan()
    if plan.k > 1:
        right = cc.cell_codes(plan, golden).residues
        assert right is not None
        got = [tree.leaf_residues(leaf) for leaf in range(tree.leaf_count)]
        assert np.concatenate(got).tobytes() == right.tobytes()
    with pytest.raises(_core.CoreError):
        _core.Tree.from_parts(params, tree.scalar_count, np.array(tree.leaf_digests)[1:])
