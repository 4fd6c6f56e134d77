"""How often one element that moved is found in a chunk whose golden left a digest and residues, and
how long that takes.

A chunk of a smooth field or of noise; every element drifts by up to 30 % of the bound, one is moved
by 0.9 to 1,000,000 bounds. What is found is held against the golden's code, which is known here.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ciwrap import _core

SEED = 11
LEVELS = 15
DRIFT = 0.3
# Share of the bound: the ends of the ranges that the moved element's is drawn from, evenly in its
# logarithm.
RANGES = ((0.9, 10.0), (10.0, 1e3), (1e3, 1e6))
BOUNDS = (("absolute", 1e-3, 0.0), ("relative", 0.0, 1e-4))
TYPES = ("<f4", "<f8")
CHUNK_BYTES = (4096, 65536)


def run(*, trials: int) -> dict[str, Any]:
    """Counts over dtypes, bounds, kinds of field and chunk sizes; `trials` a line."""
    rows = []
    for chunk_bytes in CHUNK_BYTES:
        for kind in ("smooth", "noise"):
            for low, high in RANGES:
                generator = np.random.default_rng((SEED, chunk_bytes, len(rows)))
                rows.append(_row(generator, chunk_bytes, kind, (low, high), trials))
    return {"trials": trials, "seed": SEED, "levels": LEVELS, "rows": rows}


def table(result: dict[str, Any]) -> list[list[str]]:
    head = ["chunk", "field", "moved by, of the bound", "suspect", "found", "wrong", "ms, median"]
    lines = [head]
    for row in result["rows"]:
        low, high = row["range"]
        lines.append(
            [
                f"{row['chunk_bytes'] // 1024} KiB",
                row["kind"],
                f"{low:g} to {high:g}",
                str(row["suspect"]),
                f"{row['found']} ({100 * row['found'] / max(1, row['suspect']):.1f} %)",
                str(row["wrong"]),
                f"{1000 * row['seconds']:.1f}",
            ]
        )
    return lines


def _row(
    generator: np.random.Generator,
    chunk_bytes: int,
    kind: str,
    shares: tuple[float, float],
    trials: int,
) -> dict[str, Any]:
    suspect = found = wrong = 0
    seconds = []
    for trial in range(trials):
        dtype = TYPES[trial % 2]
        _, atol, rtol = BOUNDS[trial // 2 % 2]
        parameters = _core.TreeParameters(
            dtype, atol=atol, rtol=rtol, residue_levels=LEVELS, chunk_bytes=chunk_bytes
        )
        golden = _field(generator, kind, chunk_bytes // parameters.scalar_bytes, dtype)
        share = float(np.exp(generator.uniform(*np.log(shares))))
        at = int(generator.integers(golden.size))
        new = _moved(generator, parameters, golden, at, share)
        builder = _core.TreeBuilder(parameters, golden.size)
        builder.update(golden)
        tree = builder.finish()
        against = _core.TreeBuilder(parameters, golden.size, golden=tree)
        against.update(new)
        if against.finish().root == tree.root:
            continue
        suspect += 1
        began = time.thread_time()
        told = _core.solve_chunk(tree, 0, new)
        seconds.append(time.thread_time() - began)
        codes, residues = _core.cell_codes(parameters, golden)
        assert residues is not None
        found += told == [(at, int(codes[at]), int(residues[at]))]
        wrong += bool(told) and told != [(at, int(codes[at]), int(residues[at]))]
    return {
        "chunk_bytes": chunk_bytes,
        "kind": kind,
        "range": shares,
        "suspect": suspect,
        "found": found,
        "wrong": wrong,
        "seconds": float(np.median(seconds)),
    }


def _field(generator: np.random.Generator, kind: str, count: int, dtype: str) -> Any:
    if kind == "noise":
        return generator.uniform(1, 3, count).astype(dtype)
    return (2 + np.sin(np.arange(count) / 50 + generator.uniform(0, 6))).astype(dtype)


def _moved(
    generator: np.random.Generator,
    parameters: _core.TreeParameters,
    golden: Any,
    at: int,
    share: float,
) -> Any:
    exact = golden.astype(np.float64)
    bounds = parameters.atol + parameters.rtol * np.abs(exact)
    new = exact + generator.uniform(-DRIFT, DRIFT, golden.size) * bounds
    new[at] = exact[at] + generator.choice([-1, 1]) * share * bounds[at]
    return new.astype(golden.dtype)
