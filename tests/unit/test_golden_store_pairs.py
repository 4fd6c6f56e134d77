"""A golden's two files: whether they are of each other, and what is said where they are not."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest
from golden_pairs import value_of, write

from ciwrap.base import files
from ciwrap.base.errors import (
    CiwrapError,
    CorruptGoldenError,
    FileLimitError,
    GoldenMissingError,
    LockBusyError,
    UnreadableFileError,
    WriteFailedError,
)
from ciwrap.golden import places as lock
from ciwrap.golden import places as paths
from ciwrap.golden import store as golden_store
from ciwrap.golden.places import Place
from ciwrap.golden.store import GoldenStores

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.golden.store import GoldenStore, StoredGolden


@pytest.fixture
def store(tmp_path: Path) -> GoldenStore:
    store = GoldenStores(tmp_path / "golden").at(Place("", ""))
    write(store, "mesh", 1.0)
    return store


def edit(store: GoldenStore, old: str, new: str) -> None:
    path = store.manifest_path("mesh")
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("check: mesh\n", "check: other\n", "it is the manifest of 'mesh.golden', check 'other'"),
        ("file: mesh.golden", "file: o.golden", "it is the manifest of 'o.golden', check 'mesh'"),
        (
            "bound: atol=0.001 rtol=0",
            "bound: atol=0.1 rtol=0",
            "it describes other variables than the golden file holds",
        ),
        (
            "{name: x",
            "{name: y",
            "it describes other variables than the golden file holds",
        ),
    ],
)
def test_a_manifest_of_something_else(store: GoldenStore, old: str, new: str, said: str) -> None:
    edit(store, old, new)
    with pytest.raises(CorruptGoldenError) as caught:
        store.read("mesh")
    assert caught.value.message == said
    assert caught.value.file == str(store.manifest_path("mesh"))


def test_a_manifest_of_more_variables_than_there_are(store: GoldenStore) -> None:
    path = store.manifest_path("mesh")
    (row,) = [line for line in path.read_text().splitlines() if line.startswith("- {name")]
    edit(store, row, f"{row}\n{row.replace('name: x', 'name: y')}")
    with pytest.raises(CorruptGoldenError, match="it describes other variables"):
        store.read("mesh")


@pytest.mark.parametrize("times", [1, 4, 5, 9])
def test_a_golden_that_others_replace_while_it_is_read(
    store: GoldenStore, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Between manifest and golden file: what is read is one pair or the other, or an error."""
    read_pair, reads, waits = golden_store.read_pair, [], []

    def late(*arguments: Any) -> StoredGolden:
        if len(reads) < times:
            write(store, "mesh", 2.0 + len(reads))
        reads.append(1)
        return read_pair(*arguments)

    monkeypatch.setattr(golden_store, "read_pair", late)
    monkeypatch.setattr(golden_store.time, "sleep", waits.append)
    if times < golden_store.READ_ATTEMPTS:
        assert value_of(store.read("mesh")) == 1.0 + times
        assert len(reads) == times + 1
        assert waits == [golden_store.RETRY_SECONDS] * times
    else:
        with pytest.raises(CorruptGoldenError):
            store.read("mesh")
        assert (len(reads), len(waits)) == (5, 4)


def test_a_golden_that_nobody_replaces_is_read_once(
    store: GoldenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.pair_path("mesh")
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(golden_store.time, "sleep", lambda _: pytest.fail("waits for nobody"))
    with pytest.raises(CorruptGoldenError, match="; take both files from the same commit, or"):
        store.read("mesh")


def test_a_staged_file_counts_where_the_other_is_damaged(store: GoldenStore) -> None:
    path = store.path("mesh")
    size = path.stat().st_size
    path.replace(paths.staged(path))
    path.write_bytes(bytes(size))
    found = store.read("mesh")
    assert (value_of(found), found.was_interrupted) == (1.0, True)


# --- the lock


def test_a_folder_to_be_locked_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with lock.writer_lock(folder):
        assert (folder / paths.LOCK_NAME).exists()
    assert list(folder.iterdir()) == []
    lock._make_folder(folder)  # as if another process had been quicker


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(WriteFailedError) as caught, lock.writer_lock(tmp_path / "a"):
        pass
    assert caught.value.file == str(tmp_path / "a" / paths.LOCK_NAME)
    with pytest.raises(WriteFailedError) as caught, lock.writer_lock(tmp_path / "a" / "b"):
        pass
    assert "cannot lock the folder" in str(caught.value)


def test_a_lock_file_that_was_removed_is_no_lock(tmp_path: Path) -> None:
    """Who holds it is alone with it: the next one makes another."""
    path = tmp_path / paths.LOCK_NAME
    descriptor = lock._open(path)
    try:
        assert lock._is_current(descriptor, path)
        path.unlink()
        assert not lock._is_current(descriptor, path)
        path.write_text("another")
        assert not lock._is_current(descriptor, path)
    finally:
        os.close(descriptor)


def test_whoever_holds_the_lock_is_named_as_far_as_that_can_be_read(tmp_path: Path) -> None:
    with lock.writer_lock(tmp_path):
        with pytest.raises(LockBusyError, match=rf"process {os.getpid()} is writing"):
            lock._acquire(tmp_path / paths.LOCK_NAME, 0, "writing goldens", is_needed=True)
        (tmp_path / paths.LOCK_NAME).write_bytes(b"\xff process")
        with pytest.raises(LockBusyError, match="is writing goldens in this folder"):
            lock._acquire(tmp_path / paths.LOCK_NAME, 0, "writing goldens", is_needed=True)


# --- files


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert files.read_regular(path, 5) == b"12345"
    assert files.read_regular(path, 6) == b"12345"
    with pytest.raises(FileLimitError):
        files.read_regular(path, 4)
    with pytest.raises(CiwrapError):
        files.read_regular(tmp_path, 4)
    # More than any machine has, so nothing as large as the limit may be taken.
    assert files.read_regular(path, 1 << 60) == b"12345"


@pytest.mark.parametrize("limit", [3, 5, 6, 7, 8, 1 << 60])
def test_a_file_that_grows_is_read_up_to_the_limit(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    status = path.stat()
    path.write_bytes(b"1234567890")
    monkeypatch.setattr(files.os, "fstat", lambda _: status)
    monkeypatch.setattr(files, "_PIECE", 2)
    with path.open("rb") as stream:
        assert files.read_at_most(stream, limit) == b"1234567890"[:limit]


def test_a_pipe_is_not_even_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(descriptor, b"123456")
        with pytest.raises(UnreadableFileError, match="this is not a regular file"):
            files.read_regular(tmp_path / "pipe", 5)
        assert os.read(descriptor, 9) == b"123456"
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("number", "is_raised"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)]
)
def test_a_folder_that_cannot_be_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_raised: bool
) -> None:
    """Some file systems know no flushing of folders; a disk that fails is another matter."""

    def fail(descriptor: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no") if is_raised else contextlib.nullcontext():
        files.flush_folder(tmp_path)


def test_errors_name_the_file_of_the_golden(store: GoldenStore) -> None:
    with pytest.raises(GoldenMissingError) as missing:
        store.read("other")
    assert missing.value.file == str(store.path("other"))
    assert "ensemble" not in str(missing.value)
    binary = store.pair_path("mesh")
    write(store, "other", 2.0)
    binary.write_bytes(store.pair_path("other").read_bytes())
    with pytest.raises(CorruptGoldenError, match="the manifest belongs to another file") as mixed:
        store.read("mesh")
    assert mixed.value.file == str(binary)
    store.manifest_path("mesh").unlink()
    with pytest.raises(CorruptGoldenError, match=r"its manifest mesh\..* is missing") as alone:
        store.read("mesh")
    assert alone.value.file == str(binary)


def test_an_ensemble_is_no_golden_of_a_single_run(store: GoldenStore) -> None:
    paths.ensemble_path(store.folder, "spread").write_text("{}")
    with pytest.raises(GoldenMissingError, match="there is an ensemble: name the folders"):
        store.read("spread")
