"""How large a golden file is beside the data it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ciwrap import _core

MIB = 1 << 20


def run(*, data_bytes: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    data = rng.standard_normal(data_bytes // 4, dtype=np.float32)
    rows: list[dict[str, Any]] = []
    for chunk_bytes, levels in (
        (4096, 1),
        (65536, 1),
        (4096, 3),
        (4096, 5),
        (4096, 15),
        (4096, 255),
    ):
        parameters = _core.TreeParameters(
            "<f4", atol=1e-4, residue_levels=levels, chunk_bytes=chunk_bytes
        )
        tree = _core.build_tree(parameters, data)
        size = len(_core.encode_golden([_core.GoldenVariable("x", data.shape, tree)]))
        rows.append(
            {
                "chunk_bytes": chunk_bytes,
                "residue_levels": levels,
                "golden_bytes": size,
                "share_of_data": size / data.nbytes,
                "target_share": {(4096, 1): 4.5 / 1024, (4096, 15): 0.13}.get(
                    (chunk_bytes, levels)
                ),
            }
        )
    return {"data": "standard normal float32", "data_bytes": data.nbytes, "rows": rows}


def table(result: dict[str, Any]) -> list[list[str]]:
    rows = [["evidence", "chunk", "MiB per GiB of float32", "of the data", "target", ""]]
    for row in result["rows"]:
        levels, target, share = row["residue_levels"], row["target_share"], row["share_of_data"]
        rows.append(
            [
                "tree alone" if levels == 1 else f"tree and residues k={levels}",
                f"{row['chunk_bytes'] // 1024} KiB",
                f"{1024 * share:.2f}",
                f"{100 * share:.2f} %",
                "" if target is None else f"{100 * target:.2f} %",
                "" if target is None else ("ok" if share <= target else "ABOVE TARGET"),
            ]
        )
    return rows
