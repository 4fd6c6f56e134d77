"""The reference's variables as the compiled core's, and the conformance vectors of golden files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap import _core

if TYPE_CHECKING:
    from oracle import golden_format as gf

FOLDER = Path(__file__).resolve().parent.parent / "conformance" / "golden"
INDEX = json.loads((FOLDER / "vectors.json").read_text())
SOUND = [vector for vector in INDEX["vectors"] if "error" not in vector]
EARLIER = [vector for vector in SOUND if "root_written_anew" in vector]
UNSOUND = [vector for vector in INDEX["vectors"] if "error" in vector]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["file"]).removesuffix(".golden")


def parameters_of(v: gf.Variable, fill_values: tuple[float | int, ...] = ()) -> Any:
    return _core.TreeParameters(
        v.dtype,
        atol=v.atol,
        rtol=v.rtol,
        ulps=v.ulps,
        residue_levels=v.requested_levels,
        chunk_bytes=v.chunk_bytes,
        arity=v.arity,
        equal_nan=v.equal_nan,
        fill_values=fill_values,
    )


def to_core(v: gf.Variable, fill_values: tuple[float | int, ...] = ()) -> Any:
    """The same variable for the core, its tree made from leaves alone."""
    residues = np.frombuffer(v.residues, np.uint8) if v.levels > 1 else None
    leaves = np.frombuffer(v.leaves, np.uint8).reshape(-1, 16)
    parameters = parameters_of(v, fill_values)
    tree = _core.Tree.from_parts(parameters, v.scalar_count, leaves, residues)
    return _core.GoldenVariable(
        v.name,
        v.shape,
        tree,
        iteration=v.iteration,
        rank=v.rank,
        data=v.data,
        summaries=v.summaries,
    )


def assert_same(core: Any, v: gf.Variable) -> None:
    """v: with the bound that its dtype allows."""
    assert (core.name, core.iteration, core.rank) == (v.name, v.iteration, v.rank)
    assert core.shape == v.shape
    assert core.data == v.data
    assert (None if core.summaries is None else core.summaries.tobytes()) == v.summaries
    assert core.evidence == (
        "data" if v.data is not None else "residues" if v.levels > 1 else "tree"
    )
    tree, parameters = core.tree, core.tree.parameters
    assert tree.leaf_digests.tobytes() == v.leaves
    assert tree.digests.tobytes() == b"".join(v.tree)
    assert (b"" if tree.residues is None else tree.residues.tobytes()) == v.residues
    assert tree.scalar_count == v.scalar_count
    for field in ("dtype", "atol", "rtol", "ulps", "chunk_bytes", "arity", "equal_nan"):
        assert getattr(parameters, field) == getattr(v, field), field
    assert parameters.requested_residue_levels == v.requested_levels
    assert parameters.residue_levels == v.levels
