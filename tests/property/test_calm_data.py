"""Ordinary data: long stretches without special values, as the fast paths of the core see them.

The other suites are full of values that fast paths hand over to slow ones; here hardly any are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from core_side import parameters
from oracle import scalars as sc
from oracle import trees
from oracle.cases import Case, all_cases

from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = [level["name"] for level in _core.cpu_levels() if level["usable"]]


@pytest.fixture(params=LEVELS)
def cpu_level(request: pytest.FixtureRequest) -> Iterator[str]:
    _core.set_cpu_level(request.param)
    yield request.param
    _core.set_cpu_level("auto")


def calm(case: Case, count: int, *, specials: int) -> tuple[bytes, bytes]:
    """Values of a size that the bound can resolve, and the same within half the share of it."""
    plan, rng = case.plan(), case.rng(11)
    scalar = plan.layout.scalar
    if scalar in sc.FLOATS:
        size = 1000 * plan.atol if plan.kind == "absolute" else 1.0
        g = sc.widen(scalar, sc.narrow(scalar, rng.standard_normal(count) * size))
        g[~np.isfinite(g)] = 1.0
        # Rounding v to its type doubles the distance at most, so that it stays within the share.
        v = g + rng.uniform(-0.5, 0.5, count) * (plan.atol + plan.rtol * np.abs(g)) * float(
            plan.share
        )
        v = np.where(np.isfinite(sc.widen(scalar, sc.narrow(scalar, v))), v, g)
        if specials:
            g[rng.integers(0, count, specials)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
            v[rng.integers(0, count, specials)] = rng.choice([np.nan, np.inf, -1.0, 0.0, 2.0])
        golden, new = sc.narrow(scalar, g), sc.narrow(scalar, v)
    elif scalar in sc.INTEGERS:
        golden = rng.integers(20, 100, count).astype("=" + scalar)
        new = golden + rng.integers(0, 2, count).astype("=" + scalar)
    else:
        shape = (count, plan.layout.scalar_bytes) if scalar == "raw" else count
        golden = rng.integers(0, 2, shape).astype(np.uint8)
        new = golden.copy()
    return sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_calm_trees(case: Case, cpu_level: str) -> None:
    """Whole chunks and odd ones, at addresses of any alignment, with few special values or none."""
    for chunk_bytes, specials, shift in ((4096, 0, 0), (1000, 3, 1), (68, 1, 3)):
        one = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes)
        plan, params = one.plan(), parameters(one)
        count = 4 * min(plan.chunk_scalars, 600) + 38
        golden, new = calm(one, count, specials=specials)
        levels, codes = trees.build(plan, golden, 16)
        levels_new, _ = trees.build(plan, new, 16, codes.residues)
        tree = _core.build_tree(params, memoryview(bytes(shift) + golden)[shift:])
        assert tree.leaf_digests.tobytes() == b"".join(levels[-1])
        if codes.residues is not None:
            assert tree.residues is not None
            assert tree.residues.tobytes() == trees.pack_residues(plan, codes.residues).tobytes()
        other = _core.build_tree(params, memoryview(bytes(shift) + new)[shift:], golden=tree)
        assert other.leaf_digests.tobytes() == b"".join(levels_new[-1])
        if plan.k > 1 and specials == 0 and plan.kind != "steps" and not plan.fill_values:
            assert _core.diff_trees(tree, other).size == 0
