"""Chunks a tree suspects although no element exceeds its bound, by residue levels and noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ciwrap import _core

LEVELS = (1, 3, 5, 15, 255)
NOISE_SHARES = (1e-6, 1e-4, 1e-2, 0.1, 0.5, 0.66, 0.87, 0.99, 1.05)
ATOL = 1e-3
CHUNK_BYTES = 8192  # 1024 float64 values


def run(*, chunk_count: int) -> dict[str, Any]:
    """Normal data; the new run is off by a uniform amount within +-share * bound everywhere, and by
    the full amount in one element of every chunk."""
    rng = np.random.default_rng(2)
    per_chunk = CHUNK_BYTES // 8
    golden = rng.standard_normal(chunk_count * per_chunk)
    rows: list[dict[str, Any]] = []
    for share in NOISE_SHARES:
        noise = rng.uniform(-share, share, golden.size) * ATOL
        noise.reshape(chunk_count, per_chunk)[:, 0] = share * ATOL
        new = golden + noise
        beyond = (np.abs(new - golden) > ATOL).reshape(chunk_count, per_chunk).any(axis=1)
        for levels in LEVELS:
            parameters = _core.TreeParameters(
                "<f8", atol=ATOL, residue_levels=levels, chunk_bytes=CHUNK_BYTES
            )
            tree = _core.build_tree(parameters, golden)
            suspect = np.zeros(chunk_count, dtype=bool)
            suspect[_core.diff_trees(tree, _core.build_tree(parameters, new, golden=tree))] = True
            rows.append(
                {
                    "noise_share_of_bound": share,
                    "residue_levels": levels,
                    "guaranteed_share": parameters.guaranteed_share,
                    "suspect_share": float(suspect.mean()),
                    "chunks_beyond_bound": int(beyond.sum()),
                    "missed_chunks": int((beyond & ~suspect).sum()),
                }
            )
    return {"chunk_count": chunk_count, "values_per_chunk": per_chunk, "atol": ATOL, "rows": rows}


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["noise / bound", "beyond the bound", *(f"k={levels}" for levels in LEVELS), "missed"]]
    for share in NOISE_SHARES:
        found = [row for row in result["rows"] if row["noise_share_of_bound"] == share]
        rows.append(
            [
                f"{100 * share:g} %",
                f"{100 * found[0]['chunks_beyond_bound'] / result['chunk_count']:.3g} %",
                *(f"{100 * row['suspect_share']:.3g} %" for row in found),
                str(sum(row["missed_chunks"] for row in found)),
            ]
        )
    return rows
