"""The frozen test vectors of the cell codes, against the reference implementation and the core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from oracle import trees
from oracle.cell_codes import make_plan

from ciwrap import _core

if TYPE_CHECKING:
    from conformance.conftest import Way

DOCUMENT = json.loads((Path(__file__).parent / "cell_codes.json").read_text())
VECTORS: list[dict[str, Any]] = DOCUMENT["vectors"]


def keywords(vector: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {
        key: float.fromhex(vector[key]) for key in ("atol", "rtol") if key in vector
    }
    for key in ("ulps", "equal_nan", "residue_levels", "chunk_bytes"):
        if key in vector:
            given[key] = vector[key]
    if "fill_values" in vector:
        number = float if vector["dtype"][1] in "fcb" else int
        given["fill_values"] = tuple(number(fill) for fill in vector["fill_values"])
    return given


def name(vector: dict[str, Any]) -> str:
    return f"{vector['dtype']} {vector['kind']} k={vector['residue_levels']}"


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_reference_implementation(vector: dict[str, Any]) -> None:
    plan = make_plan(vector["dtype"], **keywords(vector))
    assert plan.kind == vector["kind"]
    assert plan.k == vector["effective_residue_levels"]
    golden, new = bytes.fromhex(vector["golden"]), bytes.fromhex(vector["new"])
    levels, codes = trees.build(plan, golden, vector["arity"])
    levels_new, codes_new = trees.build(plan, new, vector["arity"], codes.residues)
    assert codes.values.tobytes().hex() == vector["golden_codes"]
    assert codes_new.values.tobytes().hex() == vector["new_codes"]
    if codes.residues is not None:
        assert codes.residues.tolist() == vector["golden_residues"]
        packed = trees.pack_residues(plan, codes.residues)
        assert packed.tobytes().hex() == vector["packed_residues"]
    assert [leaf.hex() for leaf in levels[-1]] == vector["golden_leaves"]
    assert levels[0][0].hex() == vector["golden_root"]
    assert levels_new[0][0].hex() == vector["new_root"]
    assert trees.suspects(levels[-1], levels_new[-1]) == vector["suspects"]


@pytest.mark.parametrize("vector", VECTORS, ids=name)
def test_core(vector: dict[str, Any]) -> None:
    params = _core.TreeParameters(vector["dtype"], arity=vector["arity"], **keywords(vector))
    assert params.kind == vector["kind"]
    assert params.residue_levels == vector["effective_residue_levels"]
    golden, new = bytes.fromhex(vector["golden"]), bytes.fromhex(vector["new"])
    codes, residues = _core.cell_codes(params, golden)
    assert np.ascontiguousarray(codes).tobytes().hex() == vector["golden_codes"]
    if "golden_residues" in vector:
        assert residues is not None
        assert residues.tolist() == vector["golden_residues"]
    tree = _core.build_tree(params, golden)
    if "packed_residues" in vector:
        assert tree.residues is not None
        assert tree.residues.tobytes().hex() == vector["packed_residues"]
    assert [bytes(leaf).hex() for leaf in tree.leaf_digests] == vector["golden_leaves"]
    assert tree.root.hex() == vector["golden_root"]
    other = _core.build_tree(params, new, golden=tree)
    assert other.root.hex() == vector["new_root"]
    assert _core.diff_trees(tree, other).tolist() == vector["suspects"]


def test_all_ways_to_compute(way: Way) -> None:
    for vector in VECTORS:
        params = _core.TreeParameters(vector["dtype"], arity=vector["arity"], **keywords(vector))
        golden, new = bytes.fromhex(vector["golden"]), bytes.fromhex(vector["new"])
        tree = _core.build_tree(params, golden, **way._asdict())
        other = _core.build_tree(params, new, golden=tree, **way._asdict())
        assert [bytes(leaf).hex() for leaf in tree.leaf_digests] == vector["golden_leaves"]
        assert (tree.root.hex(), other.root.hex()) == (vector["golden_root"], vector["new_root"])
        if "packed_residues" in vector:
            assert tree.residues is not None
            assert tree.residues.tobytes().hex() == vector["packed_residues"]
        assert _core.diff_trees(tree, other).tolist() == vector["suspects"]


def test_every_kind_has_vectors() -> None:
    assert {vector["kind"] for vector in VECTORS} == {"exact", "absolute", "relative", "steps"}
