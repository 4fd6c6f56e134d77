"""Stage one on captures: which chunks are suspect, reading no more of the trees than that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.errors import CorruptCaptureError
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
    fifteenth of a tree) are read, and the leaves below nodes that differ, each held against the
    node above it. Raises CorruptCaptureError.
    """
    golden, golden_tree = descent.golden, descent.golden_tree
    new, new_tree = descent.new, descent.new_tree
    counts = descent.counts
    if len(counts) == 1 or counts[-1] <= _READ_ALL_UP_TO:
        leaf_bytes = 16 * counts[-1]
        return _core.diff_leaves(
            golden.section(golden_tree.digests)[-leaf_bytes:],
            new.section(new_tree.digests)[-leaf_bytes:],
        )
    arity = golden_tree.parameters.arity
    offsets = np.concatenate(([0], np.cumsum(counts)))
    upper = int(offsets[-2])
    sides = [_Held(golden, golden_tree, upper), _Held(new, new_tree, upper)]
    differs = ~_matches(sides[0].upper, sides[1].upper)
    nodes = parents = np.zeros(1, dtype=np.int64)
    for level in range(len(counts) - 1):
        parents = nodes[differs[offsets[level] + nodes]]
        nodes = (parents[:, None] * arity + np.arange(arity)).reshape(-1)
        nodes = nodes[nodes < counts[level + 1]]
        if level + 2 < len(counts):
            below = slice(int(offsets[level + 1]), int(offsets[level + 2]))
            for one in sides:
                one.refuse_damage(offsets[level] + parents, parents * arity, one.upper[below])
    found = []
    for first, last in _stretches(nodes, counts[-1]):
        leaves = [one.read(upper + first, last - first) for one in sides]
        inside = parents[(parents * arity >= first) & (parents * arity < last)]
        for one, some in zip(sides, leaves, strict=True):
            one.refuse_damage(offsets[-3] + inside, inside * arity - first, some)
        found.append(np.flatnonzero(~_matches(*leaves)) + first)
    if not found:
        return np.empty(0, dtype=np.int64)
    return np.intersect1d(np.concatenate(found), nodes, assume_unique=True)


class _Held:
    """A tree of which parts are read: the levels above the leaves at once.

    Nobody reads enough of it to hold it against its checksum. So each node that leads to leaves is
    held against its children, and the uppermost one against the root that the index tells: pages
    that both trees have lost look the same, and would hide what differs.
    """

    def __init__(self, capture: CaptureFile, tree: StoredTree, upper: int) -> None:
        self._capture = capture
        self._tree = tree
        self.upper = self.read(0, upper)
        if self.upper[0].tobytes() != tree.root:
            raise self._damaged()

    def read(self, first: int, count: int) -> NDArray[np.uint64]:
        data = self._capture.read(self._tree.digests.offset + 16 * first, 16 * count)
        return np.frombuffer(data, dtype="<u8").reshape(-1, 2)

    def refuse_damage(
        self, nodes: NDArray[np.int64], begins: NDArray[np.int64], children: NDArray[np.uint64]
    ) -> None:
        """Raises CorruptCaptureError for nodes of the upper levels that are not the digests of
        their children. begins: where those of each begin among the children.
        """
        arity = self._tree.parameters.arity
        for node, begin in zip(self.upper[nodes], begins.tolist(), strict=True):
            told, below = node.tobytes(), children[begin : begin + arity]
            if _core.xxh3_128(below) != told and not (told == _UNMATCHABLE and _is_open(below)):
                raise self._damaged()

    def _damaged(self) -> CorruptCaptureError:
        return CorruptCaptureError(
            f"the section at byte {self._tree.digests.offset} is damaged (a digest is not that of"
            " what lies below it)",
            file=self._capture.path,
            remedy="capture the run again",
        )


def _is_open(digests: NDArray[np.uint64]) -> bool:
    """Whether one of them matches nothing, not even itself."""
    return bool((digests == np.uint64(0xFFFFFFFFFFFFFFFF)).all(axis=1).any())


def _matches(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.bool_]:
    equal = (a == b).all(axis=1)
    matches: NDArray[np.bool_] = equal & (a != np.uint64(0xFFFFFFFFFFFFFFFF)).any(axis=1)
    return matches


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
