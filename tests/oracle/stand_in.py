"""A stand-in for the compiled core, made of the reference implementation, and broken ones.

    CIWRAP_STAND_IN=none python -m pytest -p oracle.stand_in property   (from tests/)

As a pytest plugin it takes the place of `ciwrap._core`, so that the property suite runs against it:
whole (`none`), to know that the suite is right; with one of BROKEN, to know that it can fail.
"""

from __future__ import annotations

import os
import sys
import types
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import cell_codes as cc
from . import mutants, trees

if TYPE_CHECKING:
    from .cell_codes import Codes, Plan
    from .scalars import AnyArray

BROKEN = (
    "diff skips leaves one level higher",
    "diff misses one leaf of many",
    "NaN leaves match themselves",
    "a single child is promoted, not hashed",
    "a short chunk is padded",
    "residues are packed across chunks",
    "a scalar cut in two is damaged",
    "drift counts too much",
    "the share is overstated",
    "the logarithm is fused",
)


class CoreError(Exception):
    def __init__(self, message: str, code: str = "invalid_argument") -> None:
        super().__init__(message)
        self.code = code


class TreeParameters:
    def __init__(self, dtype: str, *, arity: int = 16, **given: Any) -> None:
        given["fill_values"] = tuple(given.get("fill_values", ()))
        self.identity = (dtype, arity, repr(sorted(given.items())))
        self.plan = plan = cc.make_plan(dtype, **given)
        self.arity = arity
        self.kind, self.residue_levels, self.code_bytes = plan.kind, plan.k, plan.code_bytes
        self.scalar_bytes = plan.layout.scalar_bytes
        self.scalars_per_element = plan.layout.scalars_per_element
        self.chunk_scalars = plan.chunk_scalars
        self.guaranteed_share = float(plan.share)
        self.exact_above = cc.scaled_power(plan.x_exponent)
        if broken("the share is overstated"):
            self.guaranteed_share *= 1.001


def broken(name: str) -> bool:
    assert name in BROKEN
    return os.environ.get("CIWRAP_STAND_IN") == name


def codes_of(plan: Plan, data: bytes, residues: AnyArray | None) -> Codes:
    if broken("the logarithm is fused"):
        fused = next(m for m in mutants.MUTANTS if m.name == "relative: fused operations")
        return fused.encoder()(plan, data, residues)
    return cc.cell_codes(plan, data, residues)


def leaves_of(plan: Plan, codes: Codes) -> list[bytes]:
    leaves = trees.leaf_digests(plan, codes)
    data, width = codes.values.tobytes(), plan.code_bytes * plan.chunk_scalars
    if broken("a short chunk is padded") and len(data) % width and leaves[-1] != trees.NEVER:
        short = len(data) % width
        leaves[-1] = trees.digest(data[-short:] + bytes(width - short))
    return leaves


def levels_of(leaves: list[bytes], arity: int) -> list[list[bytes]]:
    levels = trees.levels(leaves, arity)
    if broken("a single child is promoted, not hashed"):
        for above, below in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
            for i in range(len(above)):
                group = below[i * arity : (i + 1) * arity]
                if trees.NEVER not in group:
                    above[i] = group[0] if len(group) == 1 else trees.digest(b"".join(group))
    return levels


class Tree:
    def __init__(
        self,
        parameters: TreeParameters,
        scalar_count: int,
        leaves: list[bytes],
        residues: AnyArray | None,
    ) -> None:
        levels = levels_of(leaves, parameters.arity)
        self.parameters, self.scalar_count, self.residues = parameters, scalar_count, residues
        self.leaves, self.leaf_count = leaves, len(leaves)
        self.level_counts = tuple(len(level) for level in levels)
        self.root = levels[0][0]
        flat = b"".join(digest for level in levels for digest in level)
        self.digests = np.frombuffer(flat, dtype=np.uint8).reshape(-1, 16)
        self.leaf_digests = self.digests[-len(leaves) :]

    @staticmethod
    def from_parts(
        parameters: TreeParameters,
        scalar_count: int,
        leaf_digests: AnyArray,
        residues: AnyArray | None = None,
    ) -> Tree:
        if len(leaf_digests) != max(1, -(-scalar_count // parameters.chunk_scalars)):
            raise CoreError("leaves do not fit the scalars")
        return Tree(parameters, scalar_count, [bytes(leaf) for leaf in leaf_digests], residues)

    def leaf_residues(self, leaf: int) -> AnyArray:
        assert self.residues is not None
        plan = self.parameters.plan
        unpacked = trees.unpack_residues(plan, self.residues, self.scalar_count)
        return unpacked[leaf * plan.chunk_scalars : (leaf + 1) * plan.chunk_scalars]


@dataclass
class Drift:
    scalar_count: int
    max_level: int
    max_share: float
    histogram: AnyArray
    leaf_max_level: AnyArray


class TreeBuilder:
    def __init__(
        self,
        parameters: TreeParameters,
        scalar_count: int,
        *,
        golden: Tree | None = None,
        **_: Any,
    ) -> None:
        if golden is not None:
            same = golden.parameters.identity == parameters.identity
            if not same or golden.scalar_count != scalar_count:
                raise CoreError("the golden has other parameters")
        self.parameters, self.scalar_count, self.golden = parameters, scalar_count, golden
        self.data = b""
        self.drift: Drift | None = None

    def update(self, data: Any) -> None:
        piece = bytes(data)
        inside = len(self.data) % self.parameters.scalar_bytes != 0
        if broken("a scalar cut in two is damaged") and inside and piece:
            piece = bytes([piece[0] ^ 1]) + piece[1:]
        self.data += piece

    def finish(self) -> Tree:
        plan = self.parameters.plan
        if len(self.data) != self.scalar_count * plan.layout.scalar_bytes:
            raise CoreError("not the promised number of scalars")
        stored = None if self.golden is None else self.golden.residues
        residues = None
        if stored is not None:
            residues = trees.unpack_residues(plan, stored, self.scalar_count)
        codes = codes_of(plan, self.data, residues)
        packed = None
        if codes.residues is not None:
            across = broken("residues are packed across chunks")
            one = replace(plan, chunk_scalars=max(1, self.scalar_count)) if across else plan
            packed = trees.pack_residues(one, codes.residues)
        tree = Tree(self.parameters, self.scalar_count, leaves_of(plan, codes), packed)
        if residues is not None:
            assert self.golden is not None
            self.drift = drift_of(plan, codes, trees.suspects(self.golden.leaves, tree.leaves))
        return tree


def drift_of(plan: Plan, codes: Codes, suspects: list[int]) -> Drift:
    assert codes.delta is not None
    chunk = np.arange(len(codes.delta)) // plan.chunk_scalars
    counted = ~np.isin(chunk, suspects) & ~codes.special
    level = np.where(counted, np.abs(codes.delta), 0)
    histogram = np.bincount(level[counted], minlength=plan.h + 1)
    if broken("drift counts too much"):
        histogram[0] += 1
    leaves = max(1, -(-len(chunk) // plan.chunk_scalars))
    per_leaf = [
        255 if leaf in suspects else level[chunk == leaf].max(initial=0) for leaf in range(leaves)
    ]
    largest = int(level.max(initial=0))
    return Drift(
        int(counted.sum()),
        largest,
        largest / (plan.h + 1),
        histogram,
        np.array(per_leaf, dtype=np.uint8),
    )


def build_tree(
    parameters: TreeParameters, data: Any, *, golden: Tree | None = None, **_: Any
) -> Tree:
    builder = TreeBuilder(parameters, len(data) // parameters.scalar_bytes, golden=golden)
    builder.update(data)
    return builder.finish()


def cell_codes(
    parameters: TreeParameters, data: Any, residues: AnyArray | None = None
) -> tuple[AnyArray, AnyArray | None]:
    codes = codes_of(parameters.plan, bytes(data), residues)
    return codes.values, codes.residues


def diff_trees(golden: Tree, new: Tree, *, start_level: int = -1) -> AnyArray:
    same = golden.parameters.identity == new.parameters.identity
    if not same or golden.scalar_count != new.scalar_count:
        raise CoreError("the trees have other parameters")
    pairs = enumerate(zip(golden.leaves, new.leaves, strict=True))
    if broken("NaN leaves match themselves"):
        return np.array([i for i, (a, b) in pairs if a != b], dtype=np.int64)
    found = trees.suspects(golden.leaves, new.leaves)
    count = golden.leaf_count
    if broken("diff skips leaves one level higher") and start_level >= 2:
        whole = 1 << (count.bit_length() - 1)
        found = [leaf for leaf in found if whole == count or leaf < 2 * (count - whole)]
    if broken("diff misses one leaf of many"):
        found = [leaf for leaf in found if leaf != 127]
    return np.array(found, dtype=np.int64)


def xxh3_128(data: Any) -> bytes:
    return trees.digest(bytes(data))


def pytest_configure() -> None:
    """Puts this module in the core's place, before any test imports it."""
    package = types.ModuleType("ciwrap")
    package._core = sys.modules[__name__]  # type: ignore[attr-defined]
    sys.modules["ciwrap"] = package
    sys.modules["ciwrap._core"] = sys.modules[__name__]
