"""Test vectors of docs/reference/cell-codes.md, written by the reference implementation.

    cd tests && python -m oracle.vectors > conformance/cell_codes.json

They are frozen: a change of this file is a change of the format, and invalidates every golden.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

from . import adversary, trees
from . import scalars as sc
from .cases import Case

SCALARS = 18
CHUNK_BYTES = 64
ARITY = 2

CASES = (
    Case("<f4"),
    Case(">f8"),
    Case("<bf2"),
    Case("<i2"),
    Case("|b1"),
    Case("|S3"),
    Case(">U2"),
    Case("<f2", 1, {"atol": 0.01}),
    Case("<f4", 1, {"atol": 1e-3}),
    Case("<f4", 15, {"atol": 1e-3}),
    Case(">f4", 3, {"atol": 2.0**-10}, {"fill_values": (-1.0, math.nan)}),
    Case("<f4", 5, {"atol": 1e-3}, {"equal_nan": False}),
    Case("<bf2", 255, {"atol": 0.5}),
    Case("<f8", 1, {"atol": 1e-9}),
    Case("<f8", 15, {"atol": 1e-9}),
    Case(">f8", 255, {"atol": 2.0**-30}),
    Case("<f8", 3, {"atol": 1e308}),
    Case("<f4", 1, {"rtol": 1e-3}),
    Case("<f4", 15, {"rtol": 1e-6}),
    Case("<f4", 5, {"rtol": 1e-9}),
    Case("<f8", 15, {"rtol": 1e-9}),
    Case("<f8", 3, {"rtol": 100.0}),
    Case("<f8", 1, {"atol": 1e-6, "rtol": 1e-3}),
    Case("<f8", 15, {"atol": 1e-6, "rtol": 1e-3}),
    Case("<f4", 63, {"atol": 1.0, "rtol": 0.5}),
    Case("<f8", 15, {"atol": 1e-3, "rtol": 1e-15}),
    Case("<c8", 15, {"atol": 1e-3, "rtol": 1e-3}),
    Case(">c16", 3, {"atol": 1e-6}),
    Case("<f2", 3, {"ulps": 1}),
    Case("<f4", 15, {"ulps": 4}),
    Case("<f8", 5, {"ulps": 1000}),
    Case("|u1", 3, {"atol": 5.0}),
    Case("<i4", 15, {"atol": 3.0}, {"fill_values": (0,)}),
    Case("<u8", 5, {"atol": 2.0**40}),
    Case(">i8", 1, {"atol": 1e30}),
)


def vector(case: Case) -> dict[str, Any]:
    plan, rng = case.plan(), case.rng()
    golden, new = adversary.pairs(plan, rng, SCALARS)
    if plan.layout.scalar in sc.FLOATS:
        odd = np.array([0.0, -0.0, math.nan, math.inf, -math.inf])
        golden[:5] = sc.narrow(plan.layout.scalar, odd)
        new[:4] = golden[[1, 0, 2, 3]]
    data, other = sc.bytes_of(plan.layout, golden), sc.bytes_of(plan.layout, new)
    levels, codes = trees.build(plan, data, ARITY)
    levels_new, codes_new = trees.build(plan, other, ARITY, codes.residues)
    bound = {
        key: value.hex() if type(value) is float else value for key, value in case.bound.items()
    }
    special = {
        key: [str(fill) for fill in value] if key == "fill_values" else value
        for key, value in case.special.items()
    }
    result: dict[str, Any] = {
        "dtype": case.dtype,
        **bound,
        **special,
        "residue_levels": case.residue_levels,
        "chunk_bytes": CHUNK_BYTES,
        "arity": ARITY,
        "kind": plan.kind,
        "effective_residue_levels": plan.k,
        "code_bytes": plan.code_bytes,
        "golden": data.hex(),
        "golden_codes": codes.values.tobytes().hex(),
    }
    if codes.residues is not None:
        result["golden_residues"] = codes.residues.tolist()
        result["packed_residues"] = trees.pack_residues(plan, codes.residues).tobytes().hex()
    result |= {
        "golden_leaves": [digest.hex() for digest in levels[-1]],
        "golden_root": levels[0][0].hex(),
        "new": other.hex(),
        "new_codes": codes_new.values.tobytes().hex(),
        "new_root": levels_new[0][0].hex(),
        "suspects": trees.suspects(levels[-1], levels_new[-1]),
    }
    return result


def document() -> dict[str, Any]:
    cases = [Case(c.dtype, c.residue_levels, c.bound, c.special, CHUNK_BYTES) for c in CASES]
    return {
        "of": "docs/reference/cell-codes.md",
        "written_by": "tests/oracle/vectors.py (NumPy, Python integers, xxhash; not by ciwrap)",
        "numbers": "bounds in hexadecimal floating point; data, codes and digests as bytes in hex",
        "vectors": [vector(case) for case in cases],
    }


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1)
    sys.stdout.write("\n")
