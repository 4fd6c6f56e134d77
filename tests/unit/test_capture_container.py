"""The capture file as a container: whatever moment a crash comes at, a whole state is left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap import _core
from ciwrap.base.errors import (
    CiwrapError,
    CorruptCaptureError,
    LockBusyError,
    OutputMissingError,
    UnsupportedFormatError,
    UsageError,
)
from ciwrap.runs import capture_file as container
from ciwrap.runs.capture_file import (
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

if TYPE_CHECKING:
    from pathlib import Path


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


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_slots_are_sectors_apart() -> None:
    assert SLOT_OFFSETS[0] // 4096 != SLOT_OFFSETS[1] // 4096
    slot = pack_slot(1, Section(HEAD_BYTES, 1, bytes(16)), HEAD_BYTES + 1)
    assert len(slot) == 64
    assert slot[-16:] == _core.xxh3_128(slot[:-16])
    assert len(MAGIC) == 8
