"""A new run against golden residues: what matches, what is suspect, and how far it drifted."""

from __future__ import annotations

import numpy as np
import pytest
from core_side import parameters
from oracle import adversary, contract, trees
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.attack import used_bound
from oracle.cases import Case, cases_of_tier

from ciwrap import _core

WITH_RESIDUES = [case for case in cases_of_tier() if case.plan().k > 1]


def calm_pair(case: Case, count: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """New values within `reach` of the bound for most chunks, so that many of them match."""
    plan, rng = case.plan(), case.rng(5)
    scalar = plan.layout.scalar
    golden, wild = adversary.pairs(plan, rng, count)
    if plan.kind == "steps":
        image = adversary.step_away(plan, rng, golden)
        distance = contract.image_distance(scalar, golden, image)
        near = np.where(distance <= np.uint64(int(plan.n * reach)), image, golden)
    else:
        g = sc.widen(scalar, golden)
        with np.errstate(all="ignore"):
            shift = rng.uniform(-reach, reach, count) * (plan.atol + plan.rtol * np.abs(g))
            near = sc.narrow(scalar, np.where(np.isfinite(g), g + shift, g))
    disturbed = np.repeat(rng.random(-(-count // plan.chunk_scalars)) < 0.3, plan.chunk_scalars)
    return golden, np.where(disturbed[:count], wild, near).astype(golden.dtype)


@pytest.mark.parametrize("case", WITH_RESIDUES, ids=str)
def test_suspects_and_drift(case: Case) -> None:
    small = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes=96)
    plan, params = small.plan(), parameters(small)
    count = 60 * plan.chunk_scalars + 2
    golden, new = calm_pair(small, count, float(plan.share))
    golden_bytes, new_bytes = sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)
    golden_tree = _core.build_tree(params, golden_bytes)
    builder = _core.TreeBuilder(params, count, golden=golden_tree)
    builder.update(new_bytes)
    new_tree = builder.finish()
    drift = builder.drift
    assert drift is not None
    suspects = _core.diff_trees(golden_tree, new_tree).tolist()

    ours = cc.cell_codes(plan, golden_bytes)
    theirs = cc.cell_codes(plan, new_bytes, ours.residues)
    right = trees.suspects(trees.leaf_digests(plan, ours), trees.leaf_digests(plan, theirs))
    assert suspects == right

    # The contract: a difference makes its chunk suspect, small drift alone never does.
    chunk_of = np.arange(count) // plan.chunk_scalars
    differ = contract.differs_of_scalars(plan.layout.scalar, golden, new, small.contract())
    assert set(chunk_of[differ]) <= set(suspects)
    used = used_bound(plan, small.contract())
    beyond = contract.differs_of_scalars(plan.layout.scalar, golden, new, used, plan.share)
    if plan.kind == "relative":
        top = cc.scaled_power(plan.x_exponent)
        beyond |= np.abs(sc.widen(plan.layout.scalar, golden)) >= top
        beyond |= np.abs(sc.widen(plan.layout.scalar, new)) >= top
    assert set(suspects) <= set(chunk_of[beyond])

    # The drift over matching chunks is the exact difference of fine steps.
    matching = ~np.isin(chunk_of, suspects)
    counted = matching & ~ours.special & ~theirs.special
    assert ours.fine is not None
    assert theirs.fine is not None
    delta = np.abs(theirs.fine - ours.fine)
    assert drift.scalar_count == int(counted.sum())
    level = int(delta[counted].max(initial=0))
    assert drift.max_level == level <= plan.h
    assert drift.max_share == pytest.approx(level / (plan.h + 1))
    histogram = np.bincount(delta[counted], minlength=plan.h + 1)
    assert drift.histogram.tolist() == histogram.tolist()
    per_leaf = [
        255 if leaf in suspects else int(delta[counted & (chunk_of == leaf)].max(initial=0))
        for leaf in range(golden_tree.leaf_count)
    ]
    assert drift.leaf_max_level.tolist() == per_leaf


def test_a_run_equal_to_its_golden_has_no_drift() -> None:
    case = Case("<f8", 15, {"atol": 1e-6, "rtol": 1e-6})
    params = parameters(case)
    data = case.rng().standard_normal(5000).tobytes()
    golden = _core.build_tree(params, data)
    builder = _core.TreeBuilder(params, 5000, golden=golden)
    builder.update(data)
    new = builder.finish()
    assert new.root == golden.root
    assert builder.drift is not None
    assert (builder.drift.max_level, builder.drift.max_share) == (0, 0.0)
    assert builder.drift.histogram.tolist() == [5000, 0, 0, 0, 0, 0, 0, 0]


def test_without_residues_there_is_no_drift() -> None:
    case = Case("<f8", 1, {"atol": 1e-6})
    builder = _core.TreeBuilder(parameters(case), 3)
    builder.update(bytes(24))
    builder.finish()
    assert builder.drift is None


@pytest.mark.parametrize(
    "other",
    [
        Case("<f8", 3, {"atol": 1e-5}),
        Case("<f8", 5, {"atol": 1e-6}),
        Case("<f8", 3, {"atol": 1e-6}, {}, 512),
        Case("<f4", 3, {"atol": 1e-6}),
    ],
    ids=str,
)
def test_a_golden_of_other_parameters_is_refused(other: Case) -> None:
    golden = _core.build_tree(parameters(Case("<f8", 3, {"atol": 1e-6})), bytes(8000))
    with pytest.raises(_core.CoreError) as caught:
        _core.TreeBuilder(parameters(other), 1000, golden=golden)
    assert caught.value.code == "invalid_argument"
    same = parameters(Case("<f8", 3, {"atol": 1e-6}))
    with pytest.raises(_core.CoreError):
        _core.TreeBuilder(same, 999, golden=golden)
