"""Chunks that hold a differing element, as elements tell it and as digests do, beside an oracle."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from core_side import parameters
from device_arrays import BACKEND
from hypothesis import given
from hypothesis import strategies as st
from oracle import adversary, contract
from oracle import scalars as sc
from oracle.cases import Case, all_cases

from ciwrap import _core
from ciwrap.base.errors import ContradictionError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

CASES = all_cases()


def a_pair(case: Case, elements: int, salt: int) -> tuple[bytes, bytes]:
    """Stretches that are equal, near the bound, or anything; NaN and infinities among them."""
    plan, rng = case.plan(), case.rng(salt)
    count = elements * plan.layout.scalars_per_element
    golden, new = adversary.pairs(plan, rng, count)
    for at in range(0, count, 24):
        if rng.random() < 0.6:
            new[at : at + 24] = golden[at : at + 24]
    return sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)


def chunk_elements(case: Case) -> int:
    plan = case.plan()
    return max(1, plan.chunk_scalars // plan.layout.scalars_per_element)


def leaves_of(case: Case, golden: bytes, new: bytes) -> list[int]:
    """The chunks that hold an element which differs by the contract."""
    differing = np.flatnonzero(contract.differs(case.dtype, golden, new, case.contract()))
    return np.unique(differing // chunk_elements(case)).tolist()


def compared(
    case: Case, golden: bytes, new: bytes, cuts: list[int], **more: Any
) -> _core.Comparison:
    """Compared piece by piece."""
    p = parameters(case)
    size = p.scalar_bytes * p.scalars_per_element
    comparer = _core.ElementComparer(p, max_indices=3, **more)
    for first, last in itertools.pairwise(cuts):
        piece = slice(first * size, last * size)
        comparer.update(golden[piece], new[piece], first_element=first)
    return comparer.finish()


@given(
    st.sampled_from(CASES),
    st.sampled_from([64, 100, 512, 4096]),
    st.integers(1, 700),
    st.integers(0, 2**32),
    st.lists(st.integers(0, 700), max_size=4),
    st.sampled_from(["serial", "openmp", BACKEND]),
)
def test_elements_tell_their_chunks(
    case: Case, chunk_bytes: int, count: int, salt: int, cuts: list[int], backend: str
) -> None:
    case = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes)
    golden, new = a_pair(case, count, salt)
    places = sorted({0, count, *(cut for cut in cuts if cut < count)})
    found = compared(case, golden, new, places, backend=backend)
    assert found.differing_leaves.dtype == np.int64
    assert found.differing_leaves.tolist() == leaves_of(case, golden, new)


def test_more_elements_than_are_compared_at_once() -> None:
    """Blocks, waves of blocks, and chunks that lie in two of them."""
    count, chunk_bytes = 40_000_003, 4000
    golden, new = np.zeros(count, "u1"), np.zeros(count, "u1")
    places = [0, 16_383, 16_384, 16_777_215, 16_777_216, 30_000_000, 30_000_001, count - 1]
    new[places] = 1
    p = _core.TreeParameters("|u1", chunk_bytes=chunk_bytes)
    want = sorted({place // chunk_bytes for place in places})
    for backend in ("serial", "openmp"):
        comparer = _core.ElementComparer(p, backend=backend)
        comparer.update(golden, new, first_element=0)
        assert comparer.finish().differing_leaves.tolist() == want
    assert _core.compare_arrays(p, golden, golden).differing_leaves.size == 0
    assert _core.compare_arrays(p, golden, golden + 1).differing_leaves.tolist() == list(
        range(-(-count // chunk_bytes))
    )


@pytest.mark.parametrize("case", CASES[::17], ids=str)
def test_a_stream_tells_the_chunks_among_those_it_compared(case: Case, tmp_path: Path) -> None:
    case = Case(case.dtype, case.residue_levels, case.bound, case.special, 720)
    golden, new = a_pair(case, 20_003, 5)
    (tmp_path / "golden").write_bytes(golden)
    (tmp_path / "new").write_bytes(new)
    want = leaves_of(case, golden, new)
    leaves = np.arange(0, -(-20_003 // chunk_elements(case)), 3)
    session = _core.StreamSession(memory_bytes=1 << 20)
    for chosen in (None, leaves):
        session.add(
            parameters(case),
            str(tmp_path / "golden"),
            0,
            str(tmp_path / "new"),
            0,
            len(golden),
            chosen,
        )
    session.close()
    found = {job: comparison for job, comparison, _, _ in session.take_done()}
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].differing_leaves.tolist() == want
    assert found[1].differing_leaves.tolist() == [leaf for leaf in want if leaf % 3 == 0]


def suspects_of(p: _core.TreeParameters, golden: bytes, new: bytes) -> np.ndarray[Any, Any]:
    tree = _core.build_tree(p, golden)
    return _core.diff_trees(tree, _core.build_tree(p, new, golden=tree))


@given(st.sampled_from(CASES), st.integers(1, 300), st.integers(0, 2**32))
def test_digests_and_elements_never_contradict_each_other(
    case: Case, count: int, salt: int
) -> None:
    """NaN that equals nothing, fill values and fallbacks included; where a suspect is proof, the
    digests find exactly the chunks that the contract does."""
    case = Case(case.dtype, case.residue_levels, case.bound, case.special, 64)
    golden, new = a_pair(case, count, salt)
    p = parameters(case)
    suspects = suspects_of(p, golden, new)
    comparison = _core.compare_arrays(p, golden, new)
    _core.check_deciders(p, comparison, suspects)
    want = leaves_of(case, golden, new)
    assert set(want) <= set(suspects.tolist())
    if p.suspect_is_proof:
        assert suspects.tolist() == want


def refused(*arguments: Any, **more: Any) -> str:
    with pytest.raises(ContradictionError) as caught:
        _core.check_deciders(*arguments, **more)
    assert caught.value.code == "internal"
    return str(caught.value)


@given(st.sampled_from(CASES), st.integers(0, 2**32), st.randoms())
def test_whatever_contradicts_is_an_internal_error(case: Case, salt: int, random: Any) -> None:
    case = Case(case.dtype, case.residue_levels, case.bound, case.special, 64)
    golden, new = a_pair(case, 400, salt)
    p = parameters(case)
    suspects = suspects_of(p, golden, new).tolist()
    comparison = _core.compare_arrays(p, golden, new)
    differing = comparison.differing_leaves.tolist()
    leaf_count = -(-400 // chunk_elements(case))
    if differing:
        lost = random.choice(differing)
        rest = np.array([leaf for leaf in suspects if leaf != lost], dtype=np.int64)
        assert f"block {lost}: a value differs" in refused(p, comparison, rest)
    others = sorted(set(range(leaf_count)) - set(suspects))
    if others:
        added = random.choice(others)
        more = np.array(sorted([*suspects, added]), dtype=np.int64)
        elsewhere = np.array([leaf for leaf in range(leaf_count) if leaf != added])
        if p.suspect_is_proof:
            assert f"block {added}: its digests differ" in refused(p, comparison, more)
            with pytest.raises(ContradictionError):
                _core.check_deciders(p, comparison, more, compared_leaves=np.arange(leaf_count))
        else:
            _core.check_deciders(p, comparison, more)
        _core.check_deciders(p, comparison, more, compared_leaves=elsewhere)


@pytest.mark.parametrize(
    ("dtype", "bound", "proof"),
    [
        ("<f8", {}, True),
        ("<f8", {"atol": 1e-6}, False),
        ("<f8", {"atol": 1e-6, "residue_levels": 15}, False),
        ("<f8", {"rtol": 1e-15}, False),  # too small for a scale: falls back to bits
        ("<f8", {"ulps": 3, "residue_levels": 7}, True),
        ("<f8", {"ulps": 3, "residue_levels": 3}, False),
        ("<f8", {"ulps": 3}, False),
        ("<i4", {}, True),
        ("<i4", {"rtol": 0.5}, True),
        ("<i4", {"atol": 0.5}, True),
        ("<i4", {"atol": 2.0}, False),
        ("<i4", {"atol": 2.0, "residue_levels": 5}, True),
        ("|b1", {"atol": 5.0}, True),
        ("|S3", {"rtol": 5.0}, True),
        ("<bf2", {"atol": 1e-3}, False),
        ("<bf2", {}, True),
        ("<c16", {}, True),
    ],
)
def test_what_a_suspect_chunk_proves(dtype: str, bound: dict[str, Any], proof: bool) -> None:
    assert _core.TreeParameters(dtype, **bound).suspect_is_proof is proof


def test_trees_with_residues_of_their_own_are_not_compared() -> None:
    """Equal cells of two such trees may be up to k fine steps apart: here 0.05 and 1.3 in 1."""
    p = _core.TreeParameters("<f8", atol=1.0, residue_levels=15)
    ours, theirs = (_core.build_tree(p, np.array([value])) for value in (0.05, 1.3))
    assert ours.root == theirs.root
    with pytest.raises(UsageError, match="make one of them against the other") as caught:
        _core.diff_trees(ours, theirs)
    assert caught.value.code == "invalid_argument"
    relative = _core.build_tree(p, np.array([1.3]), golden=ours)
    assert _core.diff_trees(ours, relative).tolist() == [0]
    assert _core.diff_trees(ours, ours).size == 0
