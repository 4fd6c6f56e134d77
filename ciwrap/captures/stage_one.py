"""Stage one on captures: which chunks are suspect, reading no more of the trees than that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.late import numpy as np
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ciwrap.captures.container import CaptureFile
    from ciwrap.captures.index import CapturedVariable, StoredTree

_UNMATCHABLE = b"\xff" * 16
# Neighbouring groups of leaves are read in one go across gaps up to this.
_GAP_NODES = 256
# From this share of suspect parents on, all leaves are read at once.
_READ_ALL_FROM = 0.25
# Trees of up to so many leaves are read at once: finding out which would take the disk longer.
_READ_ALL_UP_TO = 8192


class Descent(Struct, frozen=True):
    """Two captured trees whose roots differ, of one size and with the same chunks."""

    golden: CaptureFile
    golden_tree: StoredTree
    new: CaptureFile
    new_tree: StoredTree
    variable: CapturedVariable

    @property
    def counts(self) -> tuple[int, ...]:
        """Nodes of each level of either tree, root first."""
        tree = self.golden_tree
        return tree.counts(self.variable.element_count * tree.parameters.scalars_per_element)

    def verify(self) -> None:
        """Reads both trees whole. Raises CorruptCaptureError if one is damaged."""
        self.golden.section(self.golden_tree.digests)
        self.new.section(self.new_tree.digests)


def prefetch_trees(descents: Iterable[Descent]) -> None:
    """Has the system fetch what `suspect_leaves` will read first, of all of them at once."""
    parts: dict[CaptureFile, list[tuple[int, int]]] = {}
    for one in descents:
        counts = one.counts
        count = sum(counts if counts[-1] <= _READ_ALL_UP_TO else counts[:-1])
        for capture, tree in ((one.golden, one.golden_tree), (one.new, one.new_tree)):
            part = (tree.digests.offset, 16 * count)
            parts.setdefault(capture, []).append(part)
    for capture, some in parts.items():
        capture.prefetch(some)


def roots_match(a: StoredTree, b: StoredTree) -> bool:
    """Whether no element of the variable can differ; a NaN that equals nothing keeps it open."""
    return a.root == b.root and a.root != _UNMATCHABLE


def suspect_leaves(descent: Descent) -> NDArray[np.int64]:
    """Indices of the leaves that do not match, ascending.

    Small trees are read whole, and held against their checksums. Of others, the upper levels (a
    fifteenth of a tree) are read, and the leaves below nodes that differ. Raises
    CorruptCaptureError.
    """
    golden, golden_tree = descent.golden, descent.golden_tree
    new, new_tree = descent.new, descent.new_tree
    counts = descent.counts
    if counts[-1] <= _READ_ALL_UP_TO:
        leaf_bytes = 16 * counts[-1]
        return _core.diff_leaves(
            golden.section(golden_tree.digests)[-leaf_bytes:],
            new.section(new_tree.digests)[-leaf_bytes:],
        )
    arity = golden_tree.parameters.arity
    offsets = np.concatenate(([0], np.cumsum(counts)))
    upper = int(offsets[-2])
    differs = ~_matches(_read(golden, golden_tree, 0, upper), _read(new, new_tree, 0, upper))
    nodes = np.zeros(1, dtype=np.int64)
    for level in range(len(counts) - 1):
        nodes = nodes[differs[offsets[level] + nodes]]
        nodes = (nodes[:, None] * arity + np.arange(arity)).reshape(-1)
        nodes = nodes[nodes < counts[level + 1]]
    found = []
    for first, last in _stretches(nodes, counts[-1]):
        at = upper + first
        ours = _read(golden, golden_tree, at, last - first)
        theirs = _read(new, new_tree, at, last - first)
        found.append(np.flatnonzero(~_matches(ours, theirs)) + first)
    if not found:
        return np.empty(0, dtype=np.int64)
    return np.intersect1d(np.concatenate(found), nodes, assume_unique=True)


def _matches(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.bool_]:
    equal = (a == b).all(axis=1)
    matches: NDArray[np.bool_] = equal & (a != np.uint64(0xFFFFFFFFFFFFFFFF)).any(axis=1)
    return matches


def _read(capture: CaptureFile, tree: StoredTree, first: int, count: int) -> NDArray[np.uint64]:
    data = capture.read(tree.digests.offset + 16 * first, 16 * count)
    return np.frombuffer(data, dtype="<u8").reshape(-1, 2)


def _stretches(nodes: NDArray[np.int64], leaf_count: int) -> list[tuple[int, int]]:
    """The leaves to read, as (first, one past the last)."""
    if nodes.size == 0:
        return []
    if nodes.size >= _READ_ALL_FROM * leaf_count:
        return [(0, leaf_count)]
    breaks = np.flatnonzero(np.diff(nodes) > _GAP_NODES)
    firsts = nodes[np.concatenate(([0], breaks + 1))]
    lasts = nodes[np.concatenate((breaks, [nodes.size - 1]))] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
