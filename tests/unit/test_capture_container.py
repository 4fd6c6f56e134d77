"""The capture file as a container: whatever moment a crash comes at, a whole state is left."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ciwrap import _core
from ciwrap.captures import container
from ciwrap.captures.container import (
    HEAD_BYTES,
    MAGIC,
    SLOT_OFFSETS,
    VERSION,
    CaptureFile,
    CaptureWriter,
    Section,
    pack_slot,
    replaced_capture,
)
from ciwrap.captures.index_codec import decode_checkpoint, decode_index, encode_checkpoint
from ciwrap.errors import (
    CiwrapError,
    CorruptCaptureError,
    LockBusyError,
    OutputMissingError,
    UnsupportedFormatError,
    UsageError,
)
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from ciwrap.captures.index import CapturedCheckpoint


def read_root(path: Path) -> bytes:
    with CaptureFile(path) as capture:
        return capture.packed_section(capture.root)


def write(path: Path, root: bytes, *sections: bytes) -> list[Section]:
    with CaptureWriter(path) as writer:
        found = [writer.append(section) for section in sections]
        writer.commit(root)
    return found


def test_round_trip_and_growth(tmp_path: Path) -> None:
    path = tmp_path / "a.tree"
    (first,) = write(path, b"one", b"x" * 1000)
    (second,) = write(path, b"two", b"y" * 10)
    with CaptureFile(path) as capture:
        assert capture.packed_section(capture.root) == b"two"
        assert capture.section(first) == b"x" * 1000
        assert capture.section(second) == b"y" * 10
        assert capture.generation == 2
        assert capture.bytes_read > HEAD_BYTES


class Recorder:
    """Every change to a file, in order, so that a crash can be put between any two."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: list[tuple[str, Any, Any]] = []
        pwrite, ftruncate, fsync = os.pwrite, os.ftruncate, os.fsync

        def recorded_pwrite(descriptor: int, data: Any, offset: int) -> int:
            self.changes.append(("write", bytes(data), offset))
            return pwrite(descriptor, data, offset)

        def recorded_ftruncate(descriptor: int, length: int) -> None:
            self.changes.append(("truncate", length, None))
            ftruncate(descriptor, length)

        def recorded_fsync(descriptor: int) -> None:
            self.changes.append(("sync", None, None))
            fsync(descriptor)

        monkeypatch.setattr(container.os, "pwrite", recorded_pwrite)
        monkeypatch.setattr(container.os, "ftruncate", recorded_ftruncate)
        monkeypatch.setattr(container.os, "fsync", recorded_fsync)


def apply(data: bytearray, change: tuple[str, Any, Any], part: float = 1.0) -> None:
    kind, value, offset = change
    if kind == "truncate":
        del data[value:]
        data.extend(bytes(value - len(data)))
    elif kind == "write":
        value = value[: int(len(value) * part)]
        data.extend(bytes(max(0, offset + len(value) - len(data))))
        data[offset : offset + len(value)] = value


def test_every_crash_leaves_a_whole_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops after every prefix of the writes, also inside one, and also where the writes between
    two syncs reach the disk in another order (here: one of them not at all).
    """
    path, crashed = tmp_path / "a.tree", tmp_path / "crashed.tree"
    recorder = Recorder(monkeypatch)
    states = [b"root %d" % number for number in range(4)]
    marks = []
    for number, state in enumerate(states):
        write(path, state, b"tree" * 50 * (number + 1), bytes(range(256)))
        marks.append(len(recorder.changes))
    monkeypatch.undo()
    changes = recorder.changes
    seen = set()
    for stop in range(len(changes) + 1):
        committed = sum(mark <= stop for mark in marks)
        last_sync = max((at for at in range(stop) if changes[at][0] == "sync"), default=-1)
        for part in (0.0, 0.3, 0.9):
            for lost in (None, *range(last_sync + 1, stop)):
                data = bytearray()
                for at in range(stop):
                    if at != lost or changes[at][0] != "write":
                        apply(data, changes[at])
                if stop < len(changes):
                    apply(data, changes[stop], part)
                crashed.write_bytes(data)
                try:
                    found = states.index(read_root(crashed))
                except CorruptCaptureError:
                    assert committed == 0
                    found = -1
                else:
                    assert found >= committed - 1
                seen.add(found)
                # The next writer goes on from there.
                write(crashed, b"after", b"more")
                assert read_root(crashed) == b"after"
    assert seen == {-1, 0, 1, 2, 3}


@pytest.mark.linux
def test_a_system_that_takes_no_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS, whose `os` has no such call."""
    path = tmp_path / "a.tree"
    (section,) = write(path, b"root", b"x" * 1000)
    monkeypatch.delattr(os, "posix_fadvise")
    monkeypatch.setattr(container, "_HAS_ADVICE", False)
    with CaptureFile(path) as capture:
        capture.prefetch([(section.offset, section.byte_count)])
        assert capture.section(section) == b"x" * 1000


def test_what_no_commit_followed_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.tree"
    write(path, b"one", b"x")
    size = path.stat().st_size
    with CaptureWriter(path) as writer:
        writer.append(b"y" * 5000)
    assert path.stat().st_size == size
    assert read_root(path) == b"one"


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with CaptureWriter(tmp_path / "a.tree"), pytest.raises(LockBusyError):
        CaptureWriter(tmp_path / "a.tree")


def test_a_capture_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.tree"
    write(path, b"one", b"x")

    def interrupted() -> None:
        with replaced_capture(path) as writer:
            writer.append(b"y" * 5000)
            writer.commit(b"two")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert read_root(path) == b"one"
    assert [one.name for one in tmp_path.iterdir()] == ["a.tree"]

    # What an earlier call that was killed left beside it counts for nothing.
    write(tmp_path / "a.tree.new", b"half", b"z" * 9000)
    with replaced_capture(path) as writer:
        writer.commit(b"three")
        assert read_root(path) == b"one"
    with CaptureFile(path) as capture:
        assert (capture.packed_section(capture.root), capture.generation) == (b"three", 1)
    assert path.stat().st_size < 9000
    assert [one.name for one in tmp_path.iterdir()] == ["a.tree"]


def test_two_that_replace_a_capture_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.tree"
    with replaced_capture(path) as writer:
        writer.append(b"x" * 5000)
        with pytest.raises(LockBusyError), replaced_capture(path):
            pass
        writer.commit(b"first")
    assert read_root(path) == b"first"


def test_a_file_that_was_replaced_while_it_was_opened_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tree"
    write(path, b"one")
    flock = fcntl.flock

    def too_late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        with replaced_capture(path) as writer:
            writer.commit(b"two")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with pytest.raises(LockBusyError):
        CaptureWriter(path)
    assert read_root(path) == b"two"


def test_an_interrupted_close_lets_go_of_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    writer = CaptureWriter(tmp_path / "a.tree")
    writer.commit(b"root")
    writer.append(b"never committed")
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.close()
    CaptureWriter(tmp_path / "a.tree").close()


@pytest.mark.parametrize("content", [b"numbers that matter", b"\x93NUMPY\x01\x00" + b"1" * 9000])
def test_a_file_that_is_no_capture_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.dat"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        CaptureWriter(path)
    assert path.read_bytes() == content
    with pytest.raises(CorruptCaptureError):
        CaptureFile(path)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.tree"
    with pytest.raises(OutputMissingError):
        CaptureFile(path)
    write(path, b"one", b"x" * 100)
    good = path.read_bytes()
    newer = bytearray(good)
    newer[8] = VERSION + 1
    path.write_bytes(newer)
    with pytest.raises(UnsupportedFormatError):
        CaptureFile(path)
    path.write_bytes(good[:-1])
    with pytest.raises(CorruptCaptureError, match="truncated"):
        CaptureFile(path)
    damaged = bytearray(good)
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptCaptureError, match="checksum"):
        read_root(path)


def test_sections_stay_inside_and_bombs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tree"
    (section,) = write(path, b"one", zlib.compress(bytes(100_000)))
    with CaptureFile(path) as capture:
        for offset, count in ((0, 10), (HEAD_BYTES, 1 << 40), (1 << 60, 1), (HEAD_BYTES, -1)):
            with pytest.raises(CorruptCaptureError):
                capture.read(offset, count)
        assert capture.packed_section(section) == bytes(100_000)
        monkeypatch.setattr(container, "MOST_INDEX_BYTES", 1000)
        with pytest.raises(CorruptCaptureError):
            capture.packed_section(section)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_is_an_error_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.tree"
    path.unlink(missing_ok=True)
    write(path, b"one", b"x" * 100)
    write(path, b"two", b"y" * 100)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from([*range(40), *range(64, 128), *range(4160, 4224)]))
        raw[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    with contextlib.suppress(CiwrapError):
        assert read_root(path) in (b"one", b"two")


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


def _row() -> list[Any]:
    """A checkpoint as docs/reference/capture-format.md has it."""
    parameters = ["<f4", 1e-6, 0.0, 0, 1, 64, 16, True, [math.inf, -999.0]]
    tree = [parameters, bytes(16), [8192, 16 * 8, bytes(16)]]
    return [
        [1, 0],
        [["iter_1/x.npy", 100, 5, 6, 7, "npy", None]],
        [
            [
                {"name": "x", "iteration": 1, "rank": 0},
                "<f4",
                [10, 10],
                tree,
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
        [[*_row()[2][0][:3], [*_row()[2][0][3], None, None, None], *_row()[2][0][4:]]],
    ]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((0, 0), 2, "a checkpoint's key"),
        ((0, 0), -1, "a checkpoint's key"),
        ((1, 0, 0), "elsewhere.npy", "a region's file"),
        ((2, 0, 0, "rank"), -1, "a rank"),
        ((2, 0, 0, "iteration"), -1, "an iteration"),
        ((2, 0, 1), "<f8", "a tree's dtype"),
        ((2, 0, 2), [10, 20], "the size of a tree"),
        ((2, 0, 2), [1 << 31, 1 << 31], "a shape"),
        ((2, 0, 2), [1] * 65, "length <= 64"),
        ((2, 0, 3, 0, 1), -1.0, "bound"),
        ((2, 0, 3, 0, 7), 1, "bool"),
        ((2, 0, 3, 1), bytes(15), "length >= 16"),
        ((2, 0, 3, 2, 0), 1 << 62, "int"),
        ((2, 0, 7, 1), -1, "int"),
        ((2, 0, 3, 4), [bytes(16)], "a baseline"),
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
    with pytest.raises(CorruptCaptureError, match=message):
        _decoded(row)


def test_a_variable_stands_there_once() -> None:
    row = _row()
    row[2].append(row[2][0])
    with pytest.raises(CorruptCaptureError, match="a variable twice"):
        _decoded(row)


@settings(max_examples=300)
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


@settings(max_examples=300)
@given(st.data())
def test_damaged_bytes_of_a_checkpoint_are_refused_or_sound(data: st.DataObject) -> None:
    raw = bytearray(msgspec.msgpack.encode(_row()))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptCaptureError):
        decode_checkpoint(bytes(raw), (1, 0), Path("x"))


def test_slots_are_sectors_apart() -> None:
    assert SLOT_OFFSETS[0] // 4096 != SLOT_OFFSETS[1] // 4096
    slot = pack_slot(1, Section(HEAD_BYTES, 1, bytes(16)), HEAD_BYTES + 1)
    assert len(slot) == 64
    assert slot[-16:] == _core.xxh3_128(slot[:-16])
    assert len(MAGIC) == 8
