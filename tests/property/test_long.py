"""The long mode: a million scalars per dtype x kind of bound x residue levels (CIWRAP_LONG=1).

CIWRAP_LONG=1 python -m pytest tests/property/test_long.py -s
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from core_side import code_differences, core_encoder, parameters
from oracle import adversary, attack, trees
from oracle import cell_codes as cc
from oracle import scalars as sc
from oracle.cases import Case, all_cases

from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

SCALARS = 1_000_000

pytestmark = pytest.mark.long

Table = dict[tuple[str, str], attack.Outcome]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Table]:
    table: Table = {}
    yield table
    print(f"\n{SCALARS:,} scalars per case\n{attack.table(table)}")


def chosen_cases() -> list[Case]:
    """For every dtype x kind of bound x residue levels two of the cases, in either byte order.

    The order of bytes and the further bounds take turns: codes do not depend on the one, and quick
    mode tests all of the other.
    """
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in all_cases():
        key = (case.dtype[1:], case.plan().kind, tuple(case.bound), case.residue_levels)
        groups.setdefault(key, []).append(case)
    chosen = []
    for number, group in enumerate(groups.values()):
        places = {number % len(group), (number + len(group) // 2 + 1) % len(group)}
        chosen.extend(group[place] for place in sorted(places))
    return chosen


@pytest.mark.parametrize("case", chosen_cases(), ids=str)
def test_a_million(case: Case, outcomes: Table) -> None:
    plan, params, rng = case.plan(), parameters(case), case.rng(2)
    golden, new = adversary.pairs(plan, rng, SCALARS)
    golden_bytes, new_bytes = sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)
    outcome = attack.attack(plan, case.contract(), golden, new, core_encoder(params), rng)
    outcomes.setdefault((plan.kind, case.dtype[1:]), attack.Outcome()).add(outcome)
    assert outcome.clean, outcome.example
    assert code_differences(params, plan, golden_bytes, None) == 0
    ours = cc.cell_codes(plan, golden_bytes)
    if ours.residues is not None:
        assert code_differences(params, plan, new_bytes, ours.residues) == 0
    golden_tree = _core.build_tree(params, golden_bytes)
    leaves = trees.leaf_digests(plan, ours)
    assert golden_tree.leaf_digests.tobytes() == b"".join(leaves)
    new_tree = _core.build_tree(params, new_bytes, golden=golden_tree)
    theirs = trees.leaf_digests(plan, cc.cell_codes(plan, new_bytes, ours.residues))
    assert new_tree.leaf_digests.tobytes() == b"".join(theirs)
    assert _core.diff_trees(golden_tree, new_tree).tolist() == trees.suspects(leaves, theirs)
