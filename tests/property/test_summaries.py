"""Summaries of chunks: the numbers are those of the specification, and what they prove is true."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from core_side import parameters
from oracle import adversary, contract, trees
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.attack import used_bound
from oracle.cases import Case, cases_of_tier

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues
from ciwrap.check.judge import check_golden
from ciwrap.check.solve import LeastShares, shares_between
from ciwrap.golden.manifest import capture
from ciwrap.model import (
    ErrorBound,
    Evidence,
    EvidencePolicy,
    VariableId,
    VariableSettings,
    Verdict,
)

CASES = [case for case in cases_of_tier() if case.plan().kind != "exact"]


def each(step: int) -> list[Any]:
    """All cases, of which the quick tier takes one in so many: some of every type."""
    return [
        pytest.param(case, marks=[pytest.mark.slow] if number % step else [])
        for number, case in enumerate(CASES)
    ]


@pytest.mark.parametrize("case", each(2), ids=str)
def test_they_are_those_of_the_specification(case: Case) -> None:
    small = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes=96)
    plan, params = small.plan(), parameters(small)
    count = 7 * plan.chunk_scalars + 2
    golden, new = adversary.pairs(plan, small.rng(1), count)
    golden_bytes, new_bytes = sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)
    ours = cc.cell_codes(plan, golden_bytes)
    assert np.array_equal(_core.summarize_chunks(params, golden_bytes), trees.summaries(plan, ours))
    theirs = cc.cell_codes(plan, new_bytes, ours.residues)
    tree = _core.build_tree(params, golden_bytes)
    right = trees.summaries(plan, theirs)
    assert np.array_equal(_core.summarize_chunks(params, new_bytes, golden=tree), right)
    # From any chunk on, and of a part of them.
    width = plan.chunk_scalars * plan.layout.scalar_bytes
    part = new_bytes[2 * width : 5 * width]
    found = _core.summarize_chunks(params, part, golden=tree, first_leaf=2)
    assert np.array_equal(found, right[2:5])


@pytest.mark.parametrize("case", each(2), ids=str)
def test_codes_far_apart_are_values_far_apart(case: Case) -> None:
    """Whether the other side is rounded by itself, or relative to the golden's residues."""
    plan, params = case.plan(), parameters(case)
    if params.is_narrowed:
        return
    golden, new = adversary.pairs(plan, case.rng(2), 3000)
    bound = used_bound(plan, case.contract())
    ours = cc.cell_codes(plan, sc.bytes_of(plan.layout, golden))
    residues = [None] if ours.residues is None else [None, ours.residues]
    for used in residues:
        theirs = cc.cell_codes(plan, sc.bytes_of(plan.layout, new), used)
        numbers = ~ours.special & ~theirs.special
        apart = [
            abs(int(one) - int(other)) if rounded else 0
            for one, other, rounded in zip(ours.values, theirs.values, numbers, strict=True)
        ]
        shares = {one: _core.least_share(params, min(one, 2**62)) for one in set(apart)}
        assert all(share < 1 for one, share in shares.items() if one < 2)
        for share in {0.0, *shares.values()} - {0.0}:
            at = np.array([shares[one] == share for one in apart])
            moved = contract.differs_of_scalars(
                plan.layout.scalar, golden[at], new[at], bound, Fraction(share)
            )
            assert moved.all(), share


@pytest.mark.parametrize("case", each(6), ids=str)
def test_what_a_chunk_proves_is_true(case: Case) -> None:
    """Of chunks of which values were changed, moved to other places, or took those of others,
    rounded relative to the golden's residues or with residues of their own.
    """
    small = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes=96)
    plan, params = small.plan(), parameters(small)
    if params.is_narrowed:
        return
    rng, per_chunk = small.rng(10), plan.chunk_scalars
    golden, new = adversary.pairs(plan, rng, 40 * per_chunk)
    new = new.copy()
    for first in range(0, new.shape[0], per_chunk):
        chunk, way = slice(first, first + per_chunk), rng.random()
        if way < 0.3:
            new[chunk] = new[chunk][rng.permutation(per_chunk)]
        elif way < 0.5:
            new[chunk] = golden[chunk][rng.permutation(per_chunk)]
        elif way < 0.7:
            new[chunk] = golden[chunk]
            new[first + rng.integers(per_chunk)] = golden[rng.integers(golden.shape[0])]
    sides = [sc.bytes_of(plan.layout, side) for side in (golden, new)]
    tree = _core.build_tree(params, sides[0])
    ours = _core.summarize_chunks(params, sides[0])
    leaves = np.arange(ours.shape[0])
    bound = used_bound(plan, small.contract())
    for other in (tree, None):
        theirs = _core.summarize_chunks(params, sides[1], golden=other)
        found = shares_between(params, golden.shape[0], leaves, ours, theirs)
        refuse_untrue(plan, bound, golden, new, found)


def refuse_untrue(plan: Any, bound: Any, golden: Any, new: Any, found: LeastShares) -> None:
    """Fails unless a value moved as far as it is said of each chunk that is said to differ."""
    per_chunk = plan.chunk_scalars
    for leaf in np.flatnonzero(found.shares >= 1).tolist():
        chunk = slice(leaf * per_chunk, (leaf + 1) * per_chunk)
        share = found.shares[leaf] if found.has_size[leaf] else 1.0
        least = Fraction(1) if np.isinf(share) else Fraction(float(share))
        scalar = plan.layout.scalar
        moved = contract.differs_of_scalars(scalar, golden[chunk], new[chunk], bound, least)
        assert moved.any(), (leaf, found.shares[leaf], found.summaries[leaf])


def settings(bound: ErrorBound, levels: int) -> VariableSettings:
    return VariableSettings(
        bound=bound, evidence=EvidencePolicy.RESIDUES, residue_levels=levels, chunk_bytes=4096
    )


def fields(rng: np.random.Generator) -> dict[str, np.ndarray]:
    y, x = np.mgrid[0:192, 0:192] / 192
    return {
        "smooth": np.sin(7 * x) * np.cos(5 * y),
        "temperature": 300 + 20 * np.sin(3 * x + 2 * y) + rng.normal(size=x.shape) / 10,
        "white noise": rng.normal(size=x.shape),
        "30 orders": 10 ** rng.uniform(-15, 15, size=x.shape),
        "coordinates": rng.uniform(0, 10, size=x.shape),
    }


def defects(field: np.ndarray, bound: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    row, sigma, value = field.copy(), field.copy(), field.copy()
    row[0] = row[1]
    sigma[50, 60] += field.std() / 2
    value[50, 60] += 1000 * bound
    columns = field.copy()
    columns[:, [10, 20]] = columns[:, [20, 10]]
    return {
        "sign": -field,
        "factor": field * 1.001,
        "shifted by a row": np.roll(field, 1, axis=0),
        "permuted": rng.permutation(field.ravel()).reshape(field.shape),
        "offset of 10 bounds": field + 10 * bound,
        "noise of 100 bounds": field + rng.normal(size=field.shape) * 100 * bound,
        "noise of 10,000 bounds": field + rng.normal(size=field.shape) * 1e4 * bound,
        "a boundary row": row,
        "a value by half a sigma": sigma,
        "a value by 1,000 bounds": value,
        "two columns exchanged": columns,
    }


@pytest.mark.parametrize("levels", [1, 15])
def test_fields_and_defects_of_real_programs(levels: int) -> None:
    """Nearly every chunk that differs is proved to, and each variable is."""
    rng = np.random.default_rng(0)
    weak = {}
    for name, field in fields(rng).items():
        bound = float(1e-6 * field.std())
        asked = settings(ErrorBound(bound), levels)
        golden = capture(ArrayValues(field), asked, VariableId("x")).variable
        for defect, new in defects(field, bound, rng).items():
            differs = (np.abs(new - field) > bound).reshape(-1, 512).any(axis=1)
            result = check_golden(golden, ArrayValues(np.ascontiguousarray(new)), asked)
            assert result.evidence is not Evidence.DATA
            assert result.verdict is Verdict.DIFFER, (name, defect)
            assert result.least_share is not None
            assert 1 <= result.least_share <= np.abs(new - field).max() / bound
            proven = result.differing_count_at_least
            assert proven is not None
            if proven < differs.sum():
                weak[name, defect] = proven / differs.sum()
    # Numbers of 30 orders of which few differ by as much as what rounds the sum.
    assert {defect for _, defect in weak} <= {"two columns exchanged"}
    assert min(weak.values()) > 0.4


def test_chunks_of_a_narrowed_bound_prove_nothing() -> None:
    """Digests know it in part, so a share of that says little."""
    field = np.full(600, 1e6)
    asked = settings(ErrorBound(1e-9, 1e-14), 15)
    golden = capture(ArrayValues(field), asked, VariableId("x")).variable
    assert golden.tree.parameters.is_narrowed
    result = check_golden(golden, ArrayValues(field * (1 + 1e-14)), asked)
    assert (result.verdict, result.least_share) == (Verdict.UNDECIDED, None)


@pytest.mark.parametrize(("rtol", "verdict"), [(1.0, Verdict.UNDECIDED), (0.5, Verdict.DIFFER)])
def test_a_number_that_became_zero(rtol: float, verdict: Verdict) -> None:
    """It moved by exactly 1 / rtol bounds: by one if rtol is 1, which is within it."""
    field = np.arange(1.0, 2000.0)
    asked = settings(ErrorBound(0.0, rtol), 1)
    golden = capture(ArrayValues(field), asked, VariableId("x")).variable
    new = field.copy()
    new[[7, 90, 300]] = 0.0
    result = check_golden(golden, ArrayValues(new), asked)
    assert result.verdict is verdict
    assert (result.least_share or 0.0) < 1 / rtol


def test_nan_and_infinities_are_proof_and_no_distance() -> None:
    field = np.arange(2000.0)
    asked = settings(ErrorBound(1e-3), 15)
    golden = capture(ArrayValues(field), asked, VariableId("x")).variable
    for lost in (np.nan, np.inf, -np.inf):
        new = field.copy()
        new[500:900] = lost
        result = check_golden(golden, ArrayValues(new), asked)
        assert (result.verdict, result.least_share) == (Verdict.DIFFER, None)


def test_nan_in_place_of_zero_is_proof_though_no_sum_changes() -> None:
    field = np.zeros(2000)
    field[::7] = 1.0
    asked = settings(ErrorBound(1e-3), 15)
    golden = capture(ArrayValues(field), asked, VariableId("x")).variable
    new = field.copy()
    new[[1, 2, 3, 4, 5]] = np.nan
    result = check_golden(golden, ArrayValues(new), asked)
    assert (result.verdict, result.differing_count_at_least) == (Verdict.DIFFER, 1)
    assert result.least_share is None


def test_numbers_that_changed_places_with_nan_are_proof_and_no_distance() -> None:
    field = np.zeros(512)
    field[100:110], field[400:410] = np.nan, 1000.0
    asked = settings(ErrorBound(1e-3), 15)
    golden = capture(ArrayValues(field), asked, VariableId("x")).variable
    new = field.copy()
    new[100:110], new[400:410] = field[400:410], field[100:110]
    result = check_golden(golden, ArrayValues(new), asked)
    assert (result.verdict, result.least_share) == (Verdict.DIFFER, None)


def test_a_golden_without_summaries_is_judged_as_before() -> None:
    field = np.arange(2000.0)
    asked = settings(ErrorBound(1e-3), 15)
    made = capture(ArrayValues(field), asked, VariableId("x")).variable
    bare = _core.GoldenVariable("x", made.shape, made.tree)
    assert check_golden(bare, ArrayValues(field), asked).verdict is Verdict.MATCH
    result = check_golden(bare, ArrayValues(field + 1), asked)
    assert (result.verdict, result.least_share) == (Verdict.UNDECIDED, None)
