"""Golden files through the core's Python interface: what fits, errors, limits and sizes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import golden_format as gf
from oracle.golden_cases import variable_of

from ciwrap import _core


def simple(name: str = "x", **keywords: Any) -> Any:
    tree = _core.build_tree(_core.TreeParameters("<f4"), np.ones(6, "<f4"))
    return _core.GoldenVariable(name, (2, 3), tree, **keywords)


def test_variable_refuses_what_does_not_fit() -> None:
    tree = simple().tree
    for arguments, keywords, text in (
        (("", (6,), tree), {}, "is empty"),
        (("a\nb", (6,), tree), {}, "control character"),
        (("x", (7,), tree), {}, "a shape of 7 scalars, but a tree of 6"),
        (("x", (2**62, 4), tree), {}, "2^62"),
        (("x", (6,), tree), {"data": b"123"}, "3 bytes of data"),
        (("x", (6,), tree), {"iteration": -1}, "iteration must not be negative"),
        (("x", (6,), tree), {"rank": -5}, "rank must not be negative"),
    ):
        with pytest.raises(_core.CoreError, match=text.replace("^", r"\^")) as caught:
            _core.GoldenVariable(*arguments, **keywords)
        assert caught.value.code == "invalid_argument"


def test_a_tree_without_its_residues_is_no_golden() -> None:
    parameters = _core.TreeParameters("<f8", atol=1.0, residue_levels=15)
    golden = _core.build_tree(parameters, np.zeros(5))
    bare = _core.Tree.from_parts(parameters, 5, golden.leaf_digests)
    with pytest.raises(_core.CoreError, match="without the residues"):
        _core.GoldenVariable("x", (5,), bare)


def test_nothing_and_duplicates_are_refused() -> None:
    with pytest.raises(_core.CoreError, match="at least one variable"):
        _core.encode_golden([])
    with pytest.raises(_core.CoreError, match="variable 'x' is there twice"):
        _core.encode_golden([simple(), simple("y"), simple()])


def test_data_are_copied_from_any_contiguous_buffer() -> None:
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    expected = array.tobytes()
    made = simple(data=array)
    array[:] = 0
    assert made.data == expected
    assert made.evidence == "data"
    with pytest.raises(ValueError, match="contiguous"):
        simple(data=np.zeros((3, 4), "<f4")[:, ::2])


def test_write_and_read(tmp_path: Path) -> None:
    path = tmp_path / "x.golden"
    variables = [simple(iteration=3, rank=1), simple()]
    root = _core.write_golden(str(path), variables)
    assert path.read_bytes() == _core.encode_golden(variables)
    assert root == _core.read_golden_header(str(path)) == _core.golden_root(path.read_bytes())
    assert [v.iteration for v in _core.decode_golden(path.read_bytes())] == [None, 3]
    assert "'x'" in repr(variables[0])


def test_the_header_is_enough_for_the_root(tmp_path: Path) -> None:
    """Not even the rest of the directory's file is looked at: 1 GiB of field, a few KiB read."""
    leaves = np.random.default_rng(0).integers(0, 256, (262144, 16), dtype=np.uint8)
    tree = _core.Tree.from_parts(_core.TreeParameters("<f4"), 1 << 28, leaves)
    path = tmp_path / "big.golden"
    root = _core.write_golden(str(path), [_core.GoldenVariable("field", (1 << 28,), tree)])
    assert path.stat().st_size <= 4.5 * 2**20
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(path.stat().st_size - 4096))
    assert _core.read_golden_header(str(path)) == root
    with pytest.raises(_core.CoreError, match="lower tree levels of variable 'field' are damaged"):
        _core.decode_golden(path.read_bytes())


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, errno.ENOENT),
        (lambda path: path.mkdir(), errno.EISDIR),
        (lambda path: os.mkfifo(path), None),
    ],
    ids=["missing", "folder", "pipe"],
)
def test_what_cannot_be_read(tmp_path: Path, make: Any, reason: int | None) -> None:
    path = tmp_path / "x.golden"
    make(path)
    with pytest.raises(_core.CoreError) as caught:
        _core.read_golden_header(str(path))
    assert caught.value.code == "io"
    assert str(caught.value).startswith(f"{path}: ")
    if reason == errno.ENOENT:
        assert os.strerror(reason) in str(caught.value)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(_core.CoreError, match="No such file") as caught:
        _core.write_golden(str(tmp_path / "no" / "x.golden"), [simple()])
    assert caught.value.code == "io"
    if Path("/dev/full").exists():
        with pytest.raises(_core.CoreError, match="No space left"):
            _core.write_golden("/dev/full", [simple()])


def test_the_limit_covers_all_that_is_decoded() -> None:
    array = np.zeros(1 << 18, "<f4")
    file = gf.encode([variable_of("zeros", array, keep_data=True)])
    needed = array.nbytes + sum(len(level) for level in gf.decode(file)[0].tree)
    assert _core.decode_golden(file, max_decoded_bytes=needed)
    with pytest.raises(_core.CoreError, match=f"more than {needed - 1} bytes") as caught:
        _core.decode_golden(file, max_decoded_bytes=needed - 1)
    assert caught.value.code == "too_large"


def test_residues_keep_their_size_budget() -> None:
    """k = 15 on random float32: at most 0.13 of the data, tree and all."""
    generator = np.random.default_rng(0)
    parameters = _core.TreeParameters("<f4", atol=1e-3, residue_levels=15)
    data = generator.normal(size=1 << 22).astype("<f4")
    golden = _core.GoldenVariable("x", data.shape, _core.build_tree(parameters, data))
    assert len(_core.encode_golden([golden])) <= 0.13 * data.nbytes


def test_values_that_only_a_residue_tells_apart_change_the_root() -> None:
    """The root names the golden's contents, not only its cells."""
    parameters = _core.TreeParameters("<f8", atol=1.0, residue_levels=15)
    trees = [_core.build_tree(parameters, np.array([x])) for x in (0.0, 0.2)]
    assert trees[0].root == trees[1].root
    roots = [
        _core.golden_root(_core.encode_golden([_core.GoldenVariable("x", (1,), t)])) for t in trees
    ]
    assert roots[0] != roots[1]
