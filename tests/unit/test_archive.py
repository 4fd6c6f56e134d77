"""What others made: whatever it holds, nothing gets out of the folder or fills the disk."""

from __future__ import annotations

import io
import os
import random
import stat
import struct
import time
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zips import damaged, flagged, make_zip, million_entries

from ciwrap.base import archive
from ciwrap.base.errors import ArtifactError, CorruptFileError, FileLimitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAIN = {"result.json": b'{"a": 1}' * 50, "pending/a/b.golden": bytes(range(256)) * 20, "r": b""}


def unpack(data: bytes, folder: Path) -> None:
    with archive.zip_files(io.BytesIO(data), "run.zip") as files:
        archive.copy_files(files, folder, "run.zip")


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(data: bytes, folder: Path, words: str) -> None:
    """Refused before anything is written, in one line that names the zip."""
    inner = folder / "in"
    inner.mkdir(exist_ok=True)
    with pytest.raises(ArtifactError, match=words) as caught:
        unpack(data, inner)
    assert str(caught.value).startswith("run.zip: ")
    assert str(caught.value).isprintable()
    assert files_in(folder) == {}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("large", [False, True])
def test_a_plain_zip(tmp_path: Path, method: int, large: bool) -> None:
    unpack(make_zip(PLAIN, method=method, large=large), tmp_path)
    assert files_in(tmp_path) == PLAIN


def test_folders_in_a_zip_are_nothing_to_copy(tmp_path: Path) -> None:
    unpack(make_zip({"a/": b"", "a/b/": b""}, mode=stat.S_IFDIR | 0o755), tmp_path)
    assert files_in(tmp_path) == {}


NAMES = [
    "", ".", "..", "../x", "a/../../x", "./x", "a//x", "/etc/x", "/", "a\\..\\x", "\\x", "C:/x",
    "a/b:c", "a\0b", "\0", "a\nb", "a\x1b[2Jb", "a\u202eb", "x/" * archive.MOST_DEPTH + "y",
    "n" * 256, "\u00e9" * 128, "../", "a/../b/",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    refused(make_zip({"first": b"1", name: b"x"}), tmp_path, "is not a path that can be taken over")


@pytest.mark.parametrize("names", [("a", "a/x"), ("a/x", "a/x/y")])
def test_names_that_a_file_and_a_folder_would_share(tmp_path: Path, names: tuple[str, str]) -> None:
    for number, order in enumerate((names, names[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(ArtifactError, match="cannot be copied"):
            unpack(make_zip(dict.fromkeys(order, b"x")), folder)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["x", "a/long name"])
def test_a_name_twice(tmp_path: Path, name: str) -> None:
    data = io.BytesIO(make_zip({name: b"1"}))
    with zipfile.ZipFile(data, "a") as again:
        again.writestr(name, b"2")
    refused(data.getvalue(), tmp_path, "is there twice")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
@pytest.mark.parametrize("name", ["x", "x/"])
def test_what_is_no_plain_file(tmp_path: Path, kind: int, name: str) -> None:
    refused(make_zip({name: b"/etc/passwd"}, mode=kind | 0o777), tmp_path, "is a link or no")


def test_a_folder_that_is_said_to_be_a_file(tmp_path: Path) -> None:
    refused(make_zip({"x": b""}, mode=stat.S_IFDIR | 0o755), tmp_path, "no regular file")


def test_encryption(tmp_path: Path) -> None:
    refused(flagged(make_zip(PLAIN), 1), tmp_path, "is encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_rare_ways_of_packing(tmp_path: Path, method: int) -> None:
    refused(make_zip(PLAIN, method=method), tmp_path, f"packed with method {method}")


def test_a_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILE_BYTES", 1 << 20)
    data = make_zip({"x": bytes(64 << 20)})
    assert len(data) < 1 << 20
    with pytest.raises(FileLimitError, match="'x' is too large"):
        unpack(data, tmp_path)
    assert sum(len(one) for one in files_in(tmp_path).values()) <= 1 << 20


def test_a_bomb_of_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    with pytest.raises(FileLimitError, match="is too large"):
        unpack(make_zip({f"{n}": bytes(100_000) for n in range(20)}), tmp_path)
    assert sum(len(one) for one in files_in(tmp_path).values()) <= 1 << 20


def test_a_size_that_lies_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILE_BYTES", 1 << 20)
    data = bytearray(make_zip({"x": bytes(8 << 20)}))
    directory = data.rfind(b"PK\x01\x02")
    for start in (22, directory + 24):
        struct.pack_into("<I", data, start, 10)  # the size before compression
    with pytest.raises(CorruptFileError):
        unpack(bytes(data), tmp_path)
    assert sum(len(one) for one in files_in(tmp_path).values()) <= 1 << 20


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_million_files_are_refused_before_they_are_listed(
    tmp_path: Path, elsewhere: bool
) -> None:
    data = million_entries(elsewhere=elsewhere)
    started = time.process_time()
    with pytest.raises((FileLimitError, ArtifactError)) as caught:
        unpack(data, tmp_path)
    assert time.process_time() - started < 0.5
    assert elsewhere or "more than 10000 files" in str(caught.value)


def test_many_small_entries(tmp_path: Path) -> None:
    with pytest.raises(FileLimitError, match="more than 10000 files"):
        unpack(make_zip({f"{n}": b"" for n in range(archive.MOST_FILES + 1)}), tmp_path)


@given(st.binary(max_size=300))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    refused(data, tmp_path_factory.mktemp("any"), "is not a .zip that can be read")


def whole_zips(monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield make_zip(PLAIN, method=method)
    yield make_zip(PLAIN, large=True)
    with monkeypatch.context() as patch:
        # The end's large form, which otherwise takes 65,536 files.
        patch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
        yield make_zip(PLAIN)


def outcome_of(data: bytes, folder: Path) -> str:
    try:
        unpack(data, folder)
    except CorruptFileError as error:
        return type(error.__cause__).__name__ if str(error).isprintable() else str(error)
    return "whole"


def test_damage_anywhere_is_told_and_stays_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_mode: bool
) -> None:
    dice = random.Random(7)
    outcomes = set()
    for whole in whole_zips(monkeypatch):
        for number in range(20_000 if long_mode else 300):
            folder = tmp_path / f"{number}"
            inner = folder / "in"
            inner.mkdir(parents=True, exist_ok=True)
            outcomes.add(outcome_of(damaged(whole, dice), inner))
            assert [path.name for path in folder.iterdir()] == ["in"]
            for path in sorted(inner.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
    # The damage reaches the ways in which a zip can fail; "error" is zlib's.
    often = {"whole", "NoneType", "BadZipFile", "ValueError", "NotImplementedError", "error"}
    assert (
        often <= outcomes <= {*often, "EOFError", "OverflowError", "UnicodeDecodeError", "OSError"}
    )


def test_what_the_system_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    with pytest.raises(ArtifactError, match="'r' cannot be copied: File exists"):
        unpack(make_zip({"r": b"1"}), tmp_path / "in")


# --- folders --------------------------------------------------------------------------------------


def test_a_folder(tmp_path: Path) -> None:
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    unpack(make_zip(PLAIN), tmp_path / "from")
    archive.copy_files(archive.folder_files(tmp_path / "from"), tmp_path / "to", "it")
    assert files_in(tmp_path / "to") == PLAIN


@pytest.mark.parametrize("target", ["/etc/passwd", "/etc", "nowhere"])
def test_links_in_a_folder(tmp_path: Path, target: str) -> None:
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(ArtifactError, match="'link' is a link"):
        archive.folder_files(tmp_path)


def test_a_link_that_comes_later_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    files = archive.folder_files(tmp_path)
    (tmp_path / "x").unlink()
    (tmp_path / "x").symlink_to("/etc/passwd")
    (tmp_path / "to").mkdir()
    with pytest.raises(ArtifactError, match="cannot be copied"):
        archive.copy_files(files, tmp_path / "to", tmp_path)
    assert not (tmp_path / "to/x").read_bytes()


def test_pipes_and_strange_names_in_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArtifactError, match="no regular file"):
        archive.folder_files(tmp_path)
    (tmp_path / "pipe").unlink()
    (tmp_path / os.fsdecode(b"\xff")).touch()
    with pytest.raises(ArtifactError, match="is not a path") as caught:
        archive.folder_files(tmp_path)
    assert str(caught.value).isprintable()


def test_many_files_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}").touch()
    with pytest.raises(FileLimitError, match="more than 3 files"):
        archive.folder_files(tmp_path)
