"""Suspect leaves from stored trees, whether these are read whole or level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap import _core
from ciwrap.base.errors import CorruptCaptureError
from ciwrap.model import VariableId
from ciwrap.runs import sides as stage_one
from ciwrap.runs.capture_file import HEAD_BYTES, CaptureFile, CaptureWriter
from ciwrap.runs.capture_index import CapturedVariable, MadeWith, StoredTree

if TYPE_CHECKING:
    from pathlib import Path

CHUNK_BYTES = 64
PER_CHUNK = CHUNK_BYTES // 4


def stored(path: Path, tree: _core.Tree) -> StoredTree:
    with CaptureWriter(path) as writer:
        section = writer.append(tree.digests.tobytes())
        writer.commit(b"{}")
    return StoredTree(MadeWith.of(tree.parameters), tree.root, section)


def suspects(folder: Path, golden: _core.Tree, new: _core.Tree) -> list[int]:
    paths = [folder / "a.tree", folder / "b.tree"]
    trees = [stored(path, tree) for path, tree in zip(paths, (golden, new), strict=True)]
    variable = CapturedVariable(VariableId("x"), "<f4", (golden.scalar_count,))
    with CaptureFile(paths[0]) as one, CaptureFile(paths[1]) as two:
        descent = stage_one.Descent(one, trees[0], two, trees[1], variable)
        stage_one.prefetch_trees([descent])
        found = stage_one.suspect_leaves(descent).tolist()
    for path in paths:
        path.unlink()
    return found


@pytest.mark.parametrize("most", [0, 8192], ids=["level by level", "read whole"])
@settings(deadline=None, max_examples=examples(60))
@given(
    leaves=st.integers(1, 3000),
    arity=st.sampled_from([2, 3, 16, 256]),
    changed=st.lists(st.integers(0, 2999), max_size=40),
    nan=st.booleans(),
)
def test_exactly_the_leaves_that_do_not_match(
    tmp_path_factory: pytest.TempPathFactory,
    most: int,
    leaves: int,
    arity: int,
    changed: list[int],
    nan: bool,
) -> None:
    golden = np.arange(leaves * PER_CHUNK - 3, dtype=np.float32)
    if nan:
        golden[-1] = np.nan  # matches nothing, not even itself
    new = golden.copy()
    wanted = {leaf % leaves for leaf in changed}
    for leaf in wanted:
        new[leaf * PER_CHUNK] += 1
    if nan:
        wanted.add(leaves - 1)
    parameters = _core.TreeParameters(
        "<f4", atol=0.25, chunk_bytes=CHUNK_BYTES, arity=arity, equal_nan=False
    )
    trees = [_core.build_tree(parameters, values) for values in (golden, new)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_one, "_READ_ALL_UP_TO", most)
        found = suspects(tmp_path_factory.mktemp("trees"), *trees)
    assert found == sorted(wanted)


@pytest.mark.parametrize("leaf", [0, 5, 16, 300, 1023])
@pytest.mark.parametrize("side", [0, 1])
def test_one_leaf_among_equal_ones_is_found_and_few_are_read(
    leaf: int, side: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes of a level are equal but one: who looks at a wrong one sees nothing."""
    arrays = [np.zeros(1024 * PER_CHUNK, dtype=np.float32) for _ in range(2)]
    arrays[side][leaf * PER_CHUNK] = 1
    parameters = _core.TreeParameters("<f4", atol=0.25, chunk_bytes=CHUNK_BYTES, arity=4)
    trees = [_core.build_tree(parameters, array) for array in arrays]
    read: list[tuple[int, int]] = []
    real = CaptureFile.read

    def noted(self: CaptureFile, offset: int, size: int) -> bytes:
        read.append((offset, size))
        return real(self, offset, size)

    monkeypatch.setattr(stage_one, "_READ_ALL_UP_TO", 0)
    monkeypatch.setattr(CaptureFile, "read", noted)
    assert suspects(tmp_path, trees[0], trees[1]) == [leaf]
    # Of each tree the levels above the leaves, and the leaf with the three beside it.
    upper = 1 + 4 + 16 + 64 + 256
    assert [size for _, size in read] == [16 * upper, 16 * upper, 16 * 4, 16 * 4]


@pytest.mark.parametrize(
    "lost", [range(1), range(1, 3), range(5, 21), range(60, 84), range(85, 341)]
)
@pytest.mark.parametrize("sides", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("nan", [False, True])
def test_digests_that_are_lost_on_both_sides_hide_nothing(
    lost: range,
    sides: tuple[int, ...],
    nan: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Zeros equal zeros: what lies below was taken for equal. What no path leads to may be lost."""
    arrays = [np.zeros(256 * PER_CHUNK, dtype=np.float32) for _ in range(2)]
    arrays[1][[3, 100 * PER_CHUNK, 255 * PER_CHUNK]] = np.nan if nan else 1
    parameters = _core.TreeParameters(
        "<f4", atol=0.25, chunk_bytes=CHUNK_BYTES, arity=4, equal_nan=False
    )
    trees = [_core.build_tree(parameters, array) for array in arrays]
    real = CaptureFile.read

    def damaged(self: CaptureFile, offset: int, size: int) -> bytes:
        data = bytearray(real(self, offset, size))
        begin = HEAD_BYTES  # where the tree lies
        if self.path.name in [("a.tree", "b.tree")[side] for side in sides]:
            for node in lost:
                at = begin + 16 * node - offset
                if 0 <= at < size:
                    data[at : at + 16] = bytes(16)
        return bytes(data)

    monkeypatch.setattr(stage_one, "_READ_ALL_UP_TO", 0)
    monkeypatch.setattr(CaptureFile, "read", damaged)
    with pytest.raises(CorruptCaptureError, match="is damaged"):
        suspects(tmp_path, *trees)


@pytest.mark.parametrize(
    ("nodes", "stretches"),
    [
        ([], []),
        ([3], [(3, 4)]),
        ([3, 4, 259, 516], [(3, 260), (516, 517)]),
        ([3, 260], [(3, 4), (260, 261)]),
        (range(250), [(0, 1000)]),
        (range(249), [(0, 249)]),
    ],
)
def test_neighbouring_leaves_are_read_in_one_go(
    nodes: list[int], stretches: list[tuple[int, int]]
) -> None:
    assert stage_one._stretches(np.array(nodes, dtype=np.int64), 1000) == stretches
