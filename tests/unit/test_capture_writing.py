"""How the bytes of a capture come into its file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ciwrap.base.errors import LockBusyError, UnreadableFileError, UsageError, WriteFailedError
from ciwrap.runs import capture_file as container
from ciwrap.runs.capture_file import (
    HEAD_BYTES,
    CaptureFile,
    CaptureWriter,
    Section,
    replaced_capture,
)
from ciwrap.runs.sides import capture_paths

LONG = os.urandom(10_000)


def written(path: Path) -> Section:
    with CaptureWriter(path) as writer:
        section = writer.append(LONG)
        writer.commit(b"the index")
    return section


def test_a_system_that_writes_less_than_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does when a signal comes, or a limit is reached, and for more than 2 GiB."""
    path, pwrite, asked = tmp_path / "run.tree", os.pwrite, []

    def short(descriptor: int, data: memoryview, offset: int) -> int:
        asked.append((offset, len(data)))
        return pwrite(descriptor, data[:999], offset)

    with monkeypatch.context() as patch:
        patch.setattr(container.os, "pwrite", short)
        with CaptureWriter(path) as writer:
            # The head is written in one go, and is whole or nothing that was ever completed.
            os.ftruncate(writer._descriptor, HEAD_BYTES)
            section = writer.append(LONG)
            writer.commit(b"the index")
    assert (section.offset + 999, section.byte_count - 999) in asked
    with CaptureFile(path) as file:
        assert file.section(section) == LONG
        assert file.packed_section(file.root) == b"the index"


def test_a_system_that_reads_less_than_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pread = tmp_path / "run.tree", os.pread
    section = written(path)
    least = len(LONG) // 9  # which leaves a single byte
    assert len(LONG) % least == 1
    monkeypatch.setattr(
        container.os, "pread", lambda at, count, offset: pread(at, min(count, least), offset)
    )
    with CaptureFile(path) as file:
        assert file.bytes_read == HEAD_BYTES
        assert file.section(section) == LONG
        assert file.bytes_read == HEAD_BYTES + len(LONG)
        assert file.packed_section(file.root) == b"the index"


def test_whoever_cannot_write_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.tree"
    with CaptureWriter(path), pytest.raises(LockBusyError) as busy:
        CaptureWriter(path)
    with pytest.raises(WriteFailedError) as failed:
        CaptureWriter(tmp_path / "nowhere" / "run.tree")
    assert busy.value.file == str(path)
    assert failed.value.file == str(tmp_path / "nowhere" / "run.tree")


def test_a_writer_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number is soon that of another file."""
    writer = CaptureWriter(tmp_path / "run.tree")
    writer.commit(b"")
    writer.close()
    closed: list[int] = []
    monkeypatch.setattr(container.os, "close", closed.append)
    writer.close()
    assert closed == []


def test_what_could_not_be_opened_is_not_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[int] = []

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(container.os, "open", refuse)
        patch.setattr(container.os, "close", closed.append)
        with pytest.raises(UnreadableFileError):
            CaptureFile(tmp_path / "run.tree")
        with pytest.raises(WriteFailedError):
            CaptureWriter(tmp_path / "run.tree")
    assert closed == []


def test_a_reader_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "run.tree")
    file = CaptureFile(tmp_path / "run.tree")
    file.close()
    closed: list[int] = []
    monkeypatch.setattr(container.os, "close", closed.append)
    file.close()
    assert closed == []


def test_a_capture_is_as_readable_as_other_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        written(tmp_path / "run.tree")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.tree").stat().st_mode) == 0o640


@pytest.mark.parametrize("count", [1, 8, 20_000])
def test_a_file_of_zeros_is_begun_anew(tmp_path: Path, count: int) -> None:
    """What a machine that lost power may leave of a new file."""
    path = tmp_path / "run.tree"
    path.write_bytes(bytes(count))
    section = written(path)
    with CaptureFile(path) as file:
        assert file.section(section) == LONG


@pytest.mark.parametrize("data", [bytes(9000) + b"1", b"numbers of somebody", b"\0" * 8 + b"x"])
@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_a_file_of_somebody_is_left_as_it_is(tmp_path: Path, data: bytes, is_rebuilt: bool) -> None:
    """Also one that begins with zeros, as raw arrays do, and one that --rebuild is to replace."""
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with (
        pytest.raises(UsageError, match="is not a capture; it is left as it is"),
        replaced_capture(path) if is_rebuilt else CaptureWriter(path),
    ):
        pass
    assert path.read_bytes() == data
    assert [one.name for one in tmp_path.iterdir()] == ["x.bin"]


def test_a_full_disk_while_closing_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not committed may stay behind the end that counts; what was committed counts."""
    path = tmp_path / "run.tree"
    first = written(path)

    def fails(*_: int) -> None:
        raise OSError(5, "Input/output error")

    with CaptureWriter(path) as writer:
        writer.append(LONG)
        monkeypatch.setattr(container.os, "ftruncate", fails)
    monkeypatch.undo()
    with CaptureFile(path) as file:
        assert file.section(first) == LONG
    with CaptureWriter(path):
        pass
    with CaptureFile(path) as file:
        assert path.stat().st_size == file.committed_bytes


def test_the_root_of_a_file_system_has_nothing_beside_it() -> None:
    assert capture_paths(Path("/")) == (Path("/.ciwrap.tree"),)
    assert capture_paths(Path("/a/b")) == (Path("/a/b/.ciwrap.tree"), Path("/a/b.tree"))
