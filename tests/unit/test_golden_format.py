"""The compiled core's golden files against the reference implementation of tree-format.md."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import golden_format as gf
from oracle import golden_vectors
from oracle.golden_cases import variable_of
from oracle.scalars import parse_dtype

from ciwrap import _core

FOLDER = Path(__file__).resolve().parent.parent / "conformance" / "golden"
INDEX = json.loads((FOLDER / "vectors.json").read_text())
SOUND = [vector for vector in INDEX["vectors"] if "error" not in vector]
UNSOUND = [vector for vector in INDEX["vectors"] if "error" in vector]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["file"]).removesuffix(".golden")


def parameters_of(v: gf.Variable, fill_values: tuple[float | int, ...] = ()) -> Any:
    return _core.TreeParameters(
        v.dtype,
        atol=v.atol,
        rtol=v.rtol,
        ulps=v.ulps,
        residue_levels=v.requested_levels,
        chunk_bytes=v.chunk_bytes,
        arity=v.arity,
        equal_nan=v.equal_nan,
        fill_values=fill_values,
    )


def to_core(v: gf.Variable, fill_values: tuple[float | int, ...] = ()) -> Any:
    """The same variable for the core, its tree made from leaves alone."""
    residues = np.frombuffer(v.residues, np.uint8) if v.levels > 1 else None
    leaves = np.frombuffer(v.leaves, np.uint8).reshape(-1, 16)
    parameters = parameters_of(v, fill_values)
    tree = _core.Tree.from_parts(parameters, v.scalar_count, leaves, residues)
    return _core.GoldenVariable(
        v.name, v.shape, tree, iteration=v.iteration, rank=v.rank, data=v.data
    )


def assert_same(core: Any, v: gf.Variable) -> None:
    assert (core.name, core.iteration, core.rank) == (v.name, v.iteration, v.rank)
    assert core.shape == v.shape
    assert core.data == v.data
    assert core.evidence == (
        "data" if v.data is not None else "residues" if v.levels > 1 else "tree"
    )
    tree, parameters = core.tree, core.tree.parameters
    assert tree.leaf_digests.tobytes() == v.leaves
    assert tree.digests.tobytes() == b"".join(v.tree)
    assert (b"" if tree.residues is None else tree.residues.tobytes()) == v.residues
    assert tree.scalar_count == v.scalar_count
    for field in ("dtype", "atol", "rtol", "ulps", "chunk_bytes", "arity", "equal_nan"):
        assert getattr(parameters, field) == getattr(v, field), field
    assert parameters.requested_residue_levels == v.requested_levels
    assert parameters.residue_levels == v.levels


# --- conformance vectors --------------------------------------------------------------------------


def test_the_vectors_are_what_their_generator_makes() -> None:
    made = golden_vectors.vectors()
    assert golden_vectors.index(made) == (FOLDER / "vectors.json").read_text()
    assert {path.name for path in FOLDER.glob("*.golden")} == {f"{v.name}.golden" for v in made}
    for vector in made:
        assert (FOLDER / f"{vector.name}.golden").read_bytes() == vector.file, vector.name


@pytest.mark.parametrize("vector", SOUND, ids=name_of)
def test_sound_vector(vector: dict[str, Any]) -> None:
    path = FOLDER / vector["file"]
    file = path.read_bytes()
    variables = _core.decode_golden(file, source=str(path))
    for core, v, described in zip(variables, gf.decode(file), vector["variables"], strict=True):
        assert_same(core, v)
        assert core.tree.root.hex() == described["root"]
        assert core.evidence == described["evidence"]
    root = bytes.fromhex(vector["root"])
    assert _core.golden_root(file) == _core.read_golden_header(str(path)) == root
    assert _core.encode_golden(variables) == file
    assert _core.encode_golden(variables[::-1]) == file


@pytest.mark.parametrize("vector", SOUND, ids=name_of)
def test_trees_of_sound_vectors_are_those_of_their_data(vector: dict[str, Any]) -> None:
    for variable in _core.decode_golden((FOLDER / vector["file"]).read_bytes()):
        if variable.data is not None:
            tree = _core.build_tree(variable.tree.parameters, variable.data)
            assert tree.root == variable.tree.root


@pytest.mark.parametrize("vector", UNSOUND, ids=name_of)
def test_unsound_vector(vector: dict[str, Any]) -> None:
    path = FOLDER / vector["file"]
    limits = (
        {"max_decoded_bytes": vector["max_decoded_bytes"]} if "max_decoded_bytes" in vector else {}
    )
    with pytest.raises(_core.CoreError) as caught:
        _core.decode_golden(path.read_bytes(), source="some/file.golden", **limits)
    assert caught.value.code == vector["error"]
    text = str(caught.value)
    assert text.startswith("some/file.golden: ")
    assert text.isprintable()
    for part in vector["message_holds"]:
        assert part in text
    if not limits:
        with pytest.raises(gf.FormatError):
            gf.decode(path.read_bytes())


@pytest.mark.parametrize("vector", UNSOUND, ids=name_of)
def test_the_header_of_an_unsound_vector(vector: dict[str, Any]) -> None:
    """Reading the header notices, or gives the root of a directory that is right by itself."""
    path = FOLDER / vector["file"]
    file = path.read_bytes()
    try:
        expected = gf.root(file)
    except gf.FormatError:
        with pytest.raises(_core.CoreError, match=re.escape(f"{path}: ")) as caught:
            _core.read_golden_header(str(path))
        assert caught.value.code == vector["error"]
        with pytest.raises(_core.CoreError):
            _core.golden_root(file)
    else:
        assert _core.read_golden_header(str(path)) == _core.golden_root(file) == expected


# --- both ways, generated -------------------------------------------------------------------------

NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp")), min_size=1, max_size=12
)
NUMBERS = st.none() | st.integers(0, 3) | st.integers(0, 2**63 - 1)
DTYPES = st.sampled_from(
    [
        "<f4",
        ">f4",
        "<f8",
        ">f8",
        "<f2",
        "<bf2",
        "<c8",
        ">c16",
        "<i4",
        ">u2",
        "|i1",
        "|b1",
        "|S3",
        "<U2",
    ]
)
SHAPES = st.lists(st.integers(0, 7), max_size=3).map(tuple)


@st.composite
def variables(draw: st.DrawFn) -> tuple[gf.Variable, tuple[float | int, ...]]:
    dtype, shape = draw(DTYPES), draw(SHAPES)
    layout = parse_dtype(dtype)
    element_bytes = layout.scalar_bytes * layout.scalars_per_element
    size = int(np.prod(shape, dtype=np.int64)) * element_bytes
    seed = draw(st.integers(0, 2**32))
    pattern = draw(st.sampled_from(["noise", "zeros", "few"]))
    generator = np.random.default_rng(seed)
    data = {
        "noise": lambda: generator.bytes(size),
        "zeros": lambda: bytes(size),
        "few": lambda: generator.choice([0, 1, 63], size).astype(np.uint8).tobytes(),
    }[pattern]()
    if dtype == "|b1":
        data = (np.frombuffer(data, np.uint8) & 1).tobytes()
    bound: dict[str, Any] = {}
    fill: tuple[float | int, ...] = ()
    if layout.scalar[0] in "fiu" or layout.scalar == "bf2":
        is_float = layout.scalar[0] in "fb"
        bound = draw(
            st.sampled_from(
                [{}, {"atol": 1.5}, {"atol": 1e-3, "rtol": 2.0**-9}, {"rtol": 0.25}]
                + ([{"ulps": 1}, {"ulps": 100}] if is_float else [])
            )
        )
        fill = draw(st.sampled_from([(), (0,), (1, 7), (float("nan"), 2.0) if is_float else (3,)]))
    v = variable_of(
        draw(NAMES),
        data,
        dtype=dtype,
        shape=shape,
        iteration=draw(NUMBERS),
        rank=draw(NUMBERS),
        keep_data=draw(st.booleans()),
        arity=draw(st.sampled_from([2, 3, 16, 256])),
        chunk_bytes=draw(st.sampled_from([64, 72, 100, 4096])),
        residue_levels=draw(st.sampled_from([1, 3, 5, 15, 255])),
        equal_nan=draw(st.booleans()),
        fill_values=fill,
        **bound,
    )
    return v, fill


@given(st.lists(variables(), min_size=1, max_size=5, unique_by=lambda pair: pair[0].key))
def test_round_trip_both_ways(pairs: list[tuple[gf.Variable, tuple[float | int, ...]]]) -> None:
    ordered = sorted((v for v, _ in pairs), key=lambda v: v.key)
    file = gf.encode(v for v, _ in pairs)
    assert _core.encode_golden([to_core(v, fill) for v, fill in pairs]) == file
    assert gf.decode(file) == ordered
    decoded = _core.decode_golden(file)
    for core, v in zip(decoded, ordered, strict=True):
        assert_same(core, v)
    assert _core.encode_golden(decoded) == file
    assert _core.golden_root(file) == gf.root(file)


@given(variables())
def test_trees_are_those_of_the_core(pair: tuple[gf.Variable, tuple[float | int, ...]]) -> None:
    """The reference's leaves and residues are the core's: the same file, whoever made it."""
    v, fill = pair
    if v.data is None:
        return
    tree = _core.build_tree(parameters_of(v, fill), v.data)
    made = _core.GoldenVariable(
        v.name, v.shape, tree, iteration=v.iteration, rank=v.rank, data=v.data
    )
    assert _core.encode_golden([made]) == gf.encode([v])


@given(st.data(), st.sampled_from(SOUND))
@settings(max_examples=200)
def test_any_flipped_bit_is_noticed(data: st.DataObject, vector: dict[str, Any]) -> None:
    file = bytearray((FOLDER / vector["file"]).read_bytes())
    bit = data.draw(st.integers(0, 8 * len(file) - 1))
    file[bit // 8] ^= 1 << bit % 8
    with pytest.raises(_core.CoreError):
        _core.decode_golden(bytes(file))


@given(st.binary(max_size=300))
def test_any_bytes_are_no_golden(junk: bytes) -> None:
    with pytest.raises(_core.CoreError) as caught:
        _core.decode_golden(junk, source="junk")
    assert caught.value.code == "corrupt_file"


@pytest.mark.parametrize("dtype", ["<f8", "<i8", "<f4", "<i2"])
@pytest.mark.parametrize("elements", [(1 << 17) - 1, 1 << 17, (1 << 17) + 1, 1 << 20])
def test_blocks_are_compressed_alike(dtype: str, elements: int) -> None:
    """Sections of about one block and of several; contents that are stored, plain, shuffled."""
    generator = np.random.default_rng(elements)
    contents = {
        "noise": generator.integers(-(2**15), 2**15, elements).astype(dtype),
        "counter": np.arange(elements).astype(dtype),
        "walk": np.cumsum(generator.normal(size=elements)).astype(dtype),
        "few": generator.choice(np.array([1, 2, 30]), elements).astype(dtype),
    }
    made = [variable_of(name, array, keep_data=True) for name, array in contents.items()]
    file = gf.encode(made)
    assert _core.encode_golden([to_core(v) for v in made]) == file
    for variable in _core.decode_golden(file):
        assert variable.data == contents[variable.name].tobytes()


# --- the Python interface -------------------------------------------------------------------------


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
    assert caught.value.code == "unsupported"


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
