"""Suspect leaves from stored trees, whether these are read whole or level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciwrap import _core
from ciwrap.captures import stage_one
from ciwrap.captures.container import CaptureFile, CaptureWriter
from ciwrap.captures.index import CapturedVariable, MadeWith, StoredTree
from ciwrap.model import VariableId

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
@settings(deadline=None, max_examples=60)
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
