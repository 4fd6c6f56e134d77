"""The index of a capture: what is in it is sound, or refused."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.base.errors import CorruptCaptureError
from ciwrap.formats.find_outputs import FoundOutputs, find_in
from ciwrap.model import VariableId
from ciwrap.runs.capture_index import decode_checkpoint, decode_index, encode_checkpoint, key_order
from ciwrap.runs.sides import by_checkpoint

if TYPE_CHECKING:
    from ciwrap.formats.source_files import CheckpointKey
    from ciwrap.runs.capture_index import CapturedCheckpoint

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=17),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


@given(st.one_of(st.binary(max_size=50), _VALUES.map(msgspec.msgpack.encode)))
@example(b"\xdd\xff\xff\xff\xff")  # a list of 2**32 - 1 rows that are not there
@example(b"\x91" * 10_000)
def test_an_index_of_anything_is_refused(data: bytes) -> None:
    for decode in (
        lambda: decode_index(data, Path("x")),
        lambda: decode_checkpoint(data, (None, None), Path("x")),
    ):
        with contextlib.suppress(CorruptCaptureError):
            decode()


def _tree() -> list[Any]:
    parameters = ["<f4", 1e-6, 0.0, 0, 1, 64, 16, True, [math.inf, -999.0]]
    return [parameters, bytes(16), [8192, 16 * 8, bytes(16)]]


def _row() -> list[Any]:
    """A checkpoint as docs/reference/capture-format.md has it."""
    return [
        [1, 0],
        [["iter_1/x.npy", 100, 5, 6, 7, "npy", None]],
        [
            [
                {"name": "x", "iteration": 1, "rank": 0},
                "<f4",
                [10, 10],
                _tree(),
                None,
                None,
                None,
                ["iter_1/x.npy", 128],
                [["dims", "x y"], ["units", "m"]],
            ]
        ],
    ]


def _decoded(row: Any) -> CapturedCheckpoint:
    return decode_checkpoint(msgspec.msgpack.encode(row), (1, 0), Path("x"))


def test_a_sound_checkpoint_is_taken() -> None:
    found = _decoded(_row())
    (variable,) = found.variables
    assert variable.shape == (10, 10)
    assert variable.identity == VariableId("x", 1, 0)
    assert variable.plain is not None
    assert variable.plain.parameters.fill_values == (math.inf, -999.0)
    assert msgspec.msgpack.decode(encode_checkpoint(found, Path())) == [
        *_row()[:2],
        [[*_row()[2][0][:3], [*_row()[2][0][3], None, None, None, None], *_row()[2][0][4:]]],
    ]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((0, 0), 2, "a checkpoint's key"),
        ((0, 0), -1, "int"),
        ((1, 0, 0), "elsewhere.npy", "a region's file"),
        ((2, 0, 0, "rank"), -1, "an iteration or a rank"),
        ((2, 0, 0, "iteration"), -1, "an iteration or a rank"),
        ((2, 0, 1), "<f8", "a tree's dtype"),
        ((2, 0, 2), [10, 20], "the size of a tree"),
        ((2, 0, 2), [1 << 31, 1 << 31], "a shape"),
        ((2, 0, 2), [1 << 30, 1 << 30], "a shape"),
        ((2, 0, 2), [1] * 65, "length <= 64"),
        ((2, 0, 3, 0, 1), -1.0, "bound"),
        ((2, 0, 3, 0, 7), 1, "bool"),
        ((2, 0, 3, 1), bytes(15), "length >= 16"),
        ((2, 0, 3, 2, 0), 1 << 62, "int"),
        ((2, 0, 7, 1), -1, "int"),
        ((2, 0, 3, 4), [bytes(16)], "a baseline"),
        ((2, 0, 4), _tree(), "residues"),  # a fine tree without any
        ((2, 0, 5), _tree(), "a baseline"),
        ((2, 0, 3, 3), [0, 16, bytes(16)], "residues"),
        ((2, 0, 8, 0), ["dims"], "length"),
    ],
)
def test_one_wrong_value_is_named(place: tuple[Any, ...], value: Any, message: str) -> None:
    row = _row()
    node: Any = row
    for key in place[:-1]:
        node = node[key]
    if isinstance(node, list):
        node.extend([None] * (place[-1] + 1 - len(node)))  # what is missing at the end is nil
    node[place[-1]] = value
    with pytest.raises(CorruptCaptureError) as caught:
        _decoded(row)
    ours = message.split()[0] in ("a", "an", "the", "residues")
    assert (f"({message})" if ours else message) in str(caught.value)


@pytest.mark.parametrize("kind", range(3, 6))
def test_each_tree_of_a_variable_is_looked_at(kind: int) -> None:
    """Also where others are not there."""
    row = _row()
    tree = [*_tree(), *([None] * 2)]
    if kind == 4:
        tree[3] = [8192, 16, bytes(16)]
    if kind == 5:
        tree[4] = [bytes(16)]
    row[2][0][3:6] = [tree if number == kind else None for number in range(3, 6)]
    assert len(_decoded(row).variables) == 1
    tree[2] = [8192, 16 * 9, bytes(16)]
    with pytest.raises(CorruptCaptureError, match=r"\(the size of a tree\)"):
        _decoded(row)


def test_a_variable_stands_there_once() -> None:
    row = _row()
    row[2].append(row[2][0])
    with pytest.raises(CorruptCaptureError, match=r"\(a variable twice\)"):
        _decoded(row)


def _index(*keys: tuple[int | None, int | None]) -> bytes:
    header = ["given", 4096, []]
    return msgspec.msgpack.encode(
        [header, [[key, [8192, 1, bytes(16)], bytes(16)] for key in keys]]
    )


def test_a_checkpoint_stands_there_once() -> None:
    keys = [(None, None), (0, 0), (0, 1), (1, 0)]
    assert list(decode_index(_index(*keys), Path("x")).checkpoints) == keys
    for wrong, message in (
        ([*keys, (0, 1)], r"\(a checkpoint twice\)"),
        ([(-1, 0)], "int"),
        ([(0, -1)], "int"),
    ):
        with pytest.raises(CorruptCaptureError, match=message):
            decode_index(_index(*wrong), Path("x"))


def test_checkpoints_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    keys: list[CheckpointKey] = [(None, None), (None, 0), (0, None), (0, 0), (2, 1), (10, 0)]
    mixed = [keys[place] for place in (4, 1, 5, 0, 3, 2)]
    assert sorted(mixed, key=key_order) == keys
    for name in ("x", "rank_0/x", "iter_0/x", *(f"iter_{n}/rank_{m}/x" for n, m in keys[3:])):
        path = tmp_path / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.ones(1))
    found = find_in(tmp_path)
    found = FoundOutputs(tuple(reversed(found.files)))
    assert list(by_checkpoint(found)) == keys


@settings(max_examples=examples(300))
@given(st.data())
def test_a_checkpoint_with_something_else_in_it_is_refused_or_sound(data: st.DataObject) -> None:
    """One value replaced anywhere: an error of ours, or a checkpoint; nothing else."""
    row = _row()
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            places.append((node, key))
            if isinstance(value, (dict, list)):
                walk(value)

    walk(row)
    node, key = data.draw(st.sampled_from(places))
    node[key] = data.draw(
        st.one_of(_VALUES, st.sampled_from([-1, 1 << 63, 1e400, "|O8", "<U4", [0] * 65]))
    )
    with contextlib.suppress(CorruptCaptureError):
        _decoded(row)


@settings(max_examples=examples(300))
@given(st.data())
def test_damaged_bytes_of_a_checkpoint_are_refused_or_sound(data: st.DataObject) -> None:
    raw = bytearray(msgspec.msgpack.encode(_row()))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptCaptureError):
        decode_checkpoint(bytes(raw), (1, 0), Path("x"))
