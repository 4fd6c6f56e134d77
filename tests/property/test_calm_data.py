"""Ordinary data: long stretches without special values, as the fast paths of the core see them.

The other suites are full of values that fast paths hand over to slow ones; here hardly any are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from core_side import parameters
from oracle import scalars as sc
from oracle import trees
from oracle.cases import Case, cases_of_tier

from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = cases_of_tier()
LEVELS = [level["name"] for level in _core.cpu_levels() if level["usable"]]


@pytest.fixture
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


class Expected:
    """Calm data of a case, and what the oracle says of them."""

    def __init__(self, case: Case, chunk_bytes: int, specials: int) -> None:
        one = Case(case.dtype, case.residue_levels, case.bound, case.special, chunk_bytes)
        self.plan = plan = one.plan()
        self.params = parameters(one)
        count = 4 * min(plan.chunk_scalars, 600) + 38
        self.golden, self.new = calm(one, count, specials=specials)
        levels, codes = trees.build(plan, self.golden, 16)
        levels_new, _ = trees.build(plan, self.new, 16, codes.residues)
        self.leaves, self.leaves_new = b"".join(levels[-1]), b"".join(levels_new[-1])
        self.residues = None
        if codes.residues is not None:
            self.residues = trees.pack_residues(plan, codes.residues).tobytes()


@lru_cache(maxsize=3)  # for all CPU levels
def expected(number: int, chunk_bytes: int, specials: int) -> Expected:
    return Expected(CASES[number], chunk_bytes, specials)


@pytest.mark.parametrize("cpu_level", LEVELS, indirect=True)  # of a case one after the other
@pytest.mark.parametrize("number", range(len(CASES)), ids=map(str, CASES))
def test_calm_trees(number: int, cpu_level: str) -> None:
    """Whole chunks and odd ones, at addresses of any alignment, with few special values or none."""
    for chunk_bytes, specials, shift in ((4096, 0, 0), (1000, 3, 1), (68, 1, 3)):
        it = expected(number, chunk_bytes, specials)
        tree = _core.build_tree(it.params, memoryview(bytes(shift) + it.golden)[shift:])
        assert tree.leaf_digests.tobytes() == it.leaves
        if it.residues is not None:
            assert tree.residues is not None
            assert tree.residues.tobytes() == it.residues
        other = _core.build_tree(it.params, memoryview(bytes(shift) + it.new)[shift:], golden=tree)
        assert other.leaf_digests.tobytes() == it.leaves_new
        plan = it.plan
        if plan.k > 1 and specials == 0 and plan.kind != "steps" and not plan.fill_values:
            assert _core.diff_trees(tree, other).size == 0
