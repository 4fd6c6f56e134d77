"""Zips that others made: whatever they hold, nothing gets out of the folder or fills the disk."""

from __future__ import annotations

import contextlib
import io
import json
import random
import stat
import struct
import time
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.action import artifact
from ciwrap.action.artifact import read_meta, unpack
from ciwrap.errors import CorruptFileError, FileLimitError

if TYPE_CHECKING:
    from pathlib import Path


def make_zip(entries: dict[str, bytes], **more: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = more.get("mode", 0o100644) << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_plain_zip(tmp_path: Path) -> None:
    entries = {"result.json": b"{}", "pending/a/b.golden": b"\x00" * 5000, "report.html": b""}
    unpack(make_zip(entries), tmp_path, "ciwrap")
    assert files_in(tmp_path) == entries


@pytest.mark.parametrize(
    "name",
    [
        "../x", "a/../../x", "/etc/x", "a\\..\\x", "C:/x", "a\nb", "a\x1b[2Jb", "a\u202eb", "..",
        "x/" * 20 + "y", "n" * 300,
    ],
)  # fmt: skip
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with pytest.raises(CorruptFileError):
        unpack(make_zip({name: b"x"}), folder, "ciwrap")
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_what_is_no_plain_file(tmp_path: Path, kind: int) -> None:
    with pytest.raises(CorruptFileError, match="no plain file"):
        unpack(make_zip({"x": b"/etc/passwd"}, mode=kind | 0o777), tmp_path, "ciwrap")
    assert list(tmp_path.iterdir()) == []


def test_a_name_twice_however_written(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="twice"):
        unpack(make_zip({"a/x": b"1", "A/X": b"2"}), tmp_path, "ciwrap")


def test_a_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MOST_ENTRY_BYTES", 1 << 20)
    data = make_zip({"x": bytes(64 << 20)})
    assert len(data) < 1 << 20
    with pytest.raises(FileLimitError):
        unpack(data, tmp_path, "ciwrap")
    assert sum(len(one) for one in files_in(tmp_path).values()) <= 1 << 20


def test_a_bomb_of_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MOST_BYTES", 1 << 20)
    with pytest.raises(FileLimitError):
        unpack(make_zip({f"{n}": bytes(100_000) for n in range(20)}), tmp_path, "ciwrap")
    assert sum(len(one) for one in files_in(tmp_path).values()) <= 1 << 20


def test_a_size_that_lies_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MOST_ENTRY_BYTES", 1 << 20)
    data = bytearray(make_zip({"x": bytes(8 << 20)}))
    directory = data.rfind(b"PK\x01\x02")
    for start in (22, directory + 24):
        struct.pack_into("<I", data, start, 10)  # the size before compression
    with pytest.raises((CorruptFileError, FileLimitError)):
        unpack(bytes(data), tmp_path, "ciwrap")
    assert sum(len(one) for one in files_in(tmp_path).values()) <= 1 << 20


def million_entries() -> bytes:
    """The list of a zip of 10^6 files, as small as one can be; no file behind it."""
    entry = struct.pack(
        "<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0
    )
    count = 10**6
    body = (entry + b"x") * count
    large = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(body), 0)
    locator = struct.pack("<IIQI", 0x07064B50, 0, len(body), 1)
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return body + large + locator + end


def test_a_million_files_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    data = million_entries()
    started = time.process_time()
    with pytest.raises(FileLimitError, match="more than 10000 files"):
        unpack(data, tmp_path, "ciwrap")
    assert time.process_time() - started < 0.5


def test_many_small_entries(tmp_path: Path) -> None:
    with pytest.raises(FileLimitError):
        unpack(make_zip({f"{n}": b"" for n in range(artifact.MOST_ENTRIES + 1)}), tmp_path, "z")


@given(st.binary(max_size=300))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    with pytest.raises(CorruptFileError):
        unpack(data, folder, "ciwrap")


def test_damage_anywhere_is_told_and_stays_inside(tmp_path: Path) -> None:
    whole = make_zip({"result.json": b'{"a": 1}' * 50, "pending/x.golden": bytes(range(256)) * 4})
    dice = random.Random(7)
    for number in range(300):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        folder = tmp_path / f"{number}/in"
        folder.mkdir(parents=True)
        length = dice.choice((len(data), dice.randrange(len(data))))
        with contextlib.suppress(CorruptFileError):
            unpack(bytes(data[:length]), folder, "z")
        outside = [p for p in (tmp_path / str(number)).iterdir() if p != folder]
        assert outside == []


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"platform_key": 3, "sha": "", "commit": ""}',
        '{"platform_key": "", "sha": 3, "commit": ""}',
        '{"platform_key": "../x", "sha": "", "commit": ""}', '{"platform_key": "", "sha": ""}',
        '{"platform_key": "-x", "sha": "", "commit": ""}', "[" * 9000,
        '{"platform_key": "", "sha": "", "commit": "--x"}',
    ],
)  # fmt: skip
def test_a_description_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.json").write_text(text)
    with pytest.raises(CorruptFileError):
        read_meta(tmp_path)


def test_a_description(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(
        json.dumps({"platform_key": "linux-x", "sha": "0" * 40, "commit": ""})
    )
    assert read_meta(tmp_path).platform_key == "linux-x"
