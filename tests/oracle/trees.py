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


SUMMARY_NUMBERS = 10


def summaries(plan: Plan, codes: Codes) -> AnyArray:
    """cell-codes.md, section 9: a row of ten numbers for each chunk, in Python's integers."""
    assert plan.kind != "exact"
    code = [int(one) for one in codes.values]
    kinds = [_class_of(plan, one) for one in code]
    rows = []
    for start in range(0, max(1, len(code)), plan.chunk_scalars):
        stop = min(start + plan.chunk_scalars, len(code))
        kept = {i - start: code[i] for i in range(start, stop) if kinds[i] is None}
        row = [0] * SUMMARY_NUMBERS
        if kept:
            row[:4] = [
                min(kept.values()),
                max(kept.values()),
                _wrapped(sum(kept.values())),
                _wrapped(sum(place * one for place, one in kept.items())),
            ]
        for kind in kinds[start:stop]:
            if kind is not None:
                row[kind] += 1
        rows.append(row)
    return np.array(rows, dtype=np.int64)


def _wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _class_of(plan: Plan, code: int) -> int | None:
    """The column that counts a special code; None for one of a rounded scalar."""
    lowest, highest = plan.int_min, -plan.int_min - 1
    nan, above, below, missing, zero, huge = range(4, 10)
    is_float = plan.layout.scalar in ("f2", "bf2", "f4", "f8")
    if plan.fill_values and code == lowest + 1:
        return missing
    if plan.kind == "steps":
        if not is_float:
            return None
        return {lowest: nan, highest: above, highest - 1: below}.get(code)
    if abs(code) <= plan.code_limit:
        return None
    if code == lowest:
        return nan
    if plan.kind == "relative" and plan.atol == 0 and code == lowest + 2:
        return zero
    is_narrow = plan.kind == "absolute" and plan.code_bytes == 4
    infinity = plan.special_base + (0x7F800000 if is_narrow else 0x7FF0000000000000)
    return {infinity: above, -infinity: below}.get(code, huge)
