"""The compiled core's golden files against the reference implementation of tree-format.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import golden_format as gf
from oracle.golden_cases import variable_of
from oracle.scalars import parse_dtype
from tiers import examples
from unit.core_goldens import FOLDER, SOUND, assert_same, parameters_of, to_core

from ciwrap import _core

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
    else:
        bound = draw(st.sampled_from([{}, {"atol": 1.5}, {"rtol": 0.25}]))
    v = variable_of(
        draw(NAMES),
        data,
        dtype=dtype,
        shape=shape,
        iteration=draw(NUMBERS),
        rank=draw(NUMBERS),
        keep_data=draw(st.booleans()),
        keep_summaries=draw(st.booleans()),
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
    stated = gf.encode(ordered)
    assert gf.decode(stated) == ordered
    allowed = [gf.as_allowed(v) for v in ordered]
    written = gf.encode(allowed)
    assert _core.encode_golden([to_core(v, fill) for v, fill in pairs]) == written
    for file in (stated, written):
        decoded = _core.decode_golden(file)
        for core, v in zip(decoded, allowed, strict=True):
            assert_same(core, v)
        assert _core.encode_golden(decoded) == written
        assert _core.golden_root(file) == gf.root(file)


@given(variables())
def test_trees_are_those_of_the_core(pair: tuple[gf.Variable, tuple[float | int, ...]]) -> None:
    """The reference's leaves and residues are the core's: the same file, whoever made it."""
    v, fill = pair
    if v.data is None:
        return
    tree = _core.build_tree(parameters_of(v, fill), v.data)
    summaries = None
    if v.summaries is not None:
        found = _core.summarize_chunks(tree.parameters, v.data)
        # An array of no scalars has a leaf, and no chunk to be summarised.
        summaries = found.tobytes() if v.scalar_count else v.summaries
    made = _core.GoldenVariable(
        v.name,
        v.shape,
        tree,
        iteration=v.iteration,
        rank=v.rank,
        data=v.data,
        summaries=summaries,
    )
    assert _core.encode_golden([made]) == gf.encode([gf.as_allowed(v)])


@given(st.data(), st.sampled_from(SOUND))
@settings(max_examples=examples(200))
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
