"""Reference implementation of docs/reference/cell-codes.md: leaves, nodes and packed residues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from .cell_codes import Codes, Plan, cell_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .scalars import AnyArray

NEVER = b"\xff" * 16


def digest(data: bytes) -> bytes:
    return xxhash.xxh3_128(data).digest()


def leaf_digests(plan: Plan, codes: Codes) -> list[bytes]:
    width = plan.code_bytes * plan.chunk_scalars
    data = codes.values.tobytes()
    if not data:
        return [digest(b"")]
    leaves = [digest(data[i : i + width]) for i in range(0, len(data), width)]
    if not plan.equal_nan:
        for chunk in np.unique(np.flatnonzero(codes.nan) // plan.chunk_scalars):
            leaves[int(chunk)] = NEVER
    return leaves


def parent(children: Sequence[bytes]) -> bytes:
    return NEVER if NEVER in children else digest(b"".join(children))


def levels(leaves: Sequence[bytes], arity: int) -> list[list[bytes]]:
    """All levels, the root's first."""
    built = [list(leaves)]
    while len(built[0]) > 1:
        below = built[0]
        groups = [below[i : i + arity] for i in range(0, len(below), arity)]
        built.insert(0, [parent(group) for group in groups])
    return built


def packed_per_byte(k: int) -> int:
    p = 1
    while k ** (p + 1) <= 256:
        p += 1
    return p


def pack_residues(plan: Plan, residues: AnyArray) -> NDArray[np.uint8]:
    p = packed_per_byte(plan.k)
    weights = plan.k ** np.arange(p)
    parts = []
    for start in range(0, residues.shape[0], plan.chunk_scalars):
        chunk = residues[start : start + plan.chunk_scalars].astype(np.int64)
        padded = np.pad(chunk, (0, -chunk.shape[0] % p)).reshape(-1, p)
        parts.append((padded * weights).sum(axis=1).astype(np.uint8))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8)


def unpack_residues(plan: Plan, packed: AnyArray, scalar_count: int) -> NDArray[np.uint8]:
    p = packed_per_byte(plan.k)
    parts = []
    at = 0
    for start in range(0, scalar_count, plan.chunk_scalars):
        count = min(plan.chunk_scalars, scalar_count - start)
        size = -(-count // p)
        chunk = packed[at : at + size].astype(np.int64)[:, None] // plan.k ** np.arange(p)
        parts.append((chunk % plan.k).reshape(-1)[:count].astype(np.uint8))
        at += size
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8)


def build(
    plan: Plan, data: bytes, arity: int, golden_residues: AnyArray | None = None
) -> tuple[list[list[bytes]], Codes]:
    codes = cell_codes(plan, data, golden_residues)
    return levels(leaf_digests(plan, codes), arity), codes


def suspects(golden: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """Leaves that do not match, by looking at every one."""
    return [i for i, (a, b) in enumerate(zip(golden, new, strict=True)) if a != b or a == NEVER]
