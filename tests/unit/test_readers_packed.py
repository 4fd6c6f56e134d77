"""Packed files of any format: read as what is in them, and refused unless they are whole."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    FileLimitError,
    ReaderPluginError,
    UnreadableFileError,
    UnsupportedFormatError,
)
from ciwrap.formats import catalog, packed
from ciwrap.formats.catalog import Catalog
from ciwrap.formats.find_outputs import find_in, find_outputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACK = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TABLE = b"t,x\n" + b"".join(b"%d,%.3f\n" % (row, row / 7) for row in range(50))
LOG = b"start\n" + b"".join(b"energy %.3f after %d\n" % (row / 7, row) for row in range(50))

each = pytest.mark.parametrize("suffix", PACK)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: Any) -> Iterator[Path]:
    """Where packed files are unpacked, and nothing is when a test is over."""
    folder = tmp_path_factory.mktemp("unpacked")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def write(path: Path, suffix: str, data: bytes) -> Path:
    packed_path = path.with_name(path.name + suffix)
    packed_path.write_bytes(PACK[suffix](data))
    return packed_path


def read(path: Path) -> dict[str, list[Any]]:
    with Catalog(find_in(path)) as found:
        assert not found.errors
        contents = {}
        for one in found.identities:
            values = found.values(one)  # until others are asked for
            contents[one.text] = values.read(0, values.element_count).tolist()
        return contents


@each
@pytest.mark.parametrize(("name", "data"), [("t.csv", TABLE), ("log", LOG), ("run.txt", LOG)])
def test_what_is_packed_is_read_as_it_is(
    tmp_path: Path, suffix: str, name: str, data: bytes
) -> None:
    plain = tmp_path / "plain" / name
    plain.parent.mkdir()
    plain.write_bytes(data)
    (tmp_path / "packed").mkdir()
    write(tmp_path / "packed" / name, suffix, data)
    found, expected = find_in(tmp_path / "packed"), find_in(plain.parent)
    assert [one.label for one in found.files] == [one.label for one in expected.files]
    assert [one.reader.name for one in found.files] == [one.reader.name for one in expected.files]
    assert read(tmp_path / "packed") == read(plain.parent)


@each
def test_regions_are_those_of_the_open_file_alone(tmp_path: Path, suffix: str) -> None:
    numbers = np.arange(12.0)
    np.save(tmp_path / "x.npy", numbers)
    path = write(tmp_path / "x.npy", suffix, (tmp_path / "x.npy").read_bytes())
    with Catalog(find_in(path)) as found:
        (entry,) = found.entries.values()
        assert entry.info.region is None
        region = found.values(entry.identity).region
        assert region is not None
        with open(region.path, "rb") as file:  # noqa: PTH123
            file.seek(region.offset)
            assert file.read(region.byte_count) == numbers.tobytes()


def test_files_that_are_closed_and_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_MOST_OPEN_FILES", 1)
    for number, suffix in enumerate(PACK):
        write(tmp_path / f"{number}.csv", suffix, TABLE)
    found = read(tmp_path)
    assert {len(values) for values in found.values()} == {50}
    assert len(found) == 2 * len(PACK)


@each
def test_damage(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / "t.csv", suffix, TABLE)
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = bytearray(whole)
    flipped[middle] ^= 0x10
    for data in (
        b"",
        whole[:middle],
        whole[:-1],
        whole + b"more",
        bytes(flipped),
        whole + whole[:9],
    ):
        path.write_bytes(data)
        (file,) = find_in(path).files
        with pytest.raises(CorruptFileError) as caught:
            file.open()
        assert caught.value.file == str(path)
        with pytest.raises(CorruptFileError):  # whatever is said of what is in it
            list(packed.pieces(path))


@each
def test_several_streams_and_padding(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(PACK[suffix](TABLE[:100]) + PACK[suffix](TABLE[100:]) + bytes(512))
    assert len(read(path)["x"]) == 50


@each
@settings(max_examples=examples(15), deadline=None)
@given(parts=st.lists(st.binary(max_size=20_000), min_size=1, max_size=3), cut=st.integers(1, 200))
def test_pieces_are_what_was_packed(
    suffix: str, parts: list[bytes], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("p") / f"x{suffix}"
    streams = [PACK[suffix](part) for part in parts]
    path.write_bytes(b"".join(streams))
    assert b"".join(packed.pieces(path)) == b"".join(parts)
    path.write_bytes(b"".join(streams)[: -min(cut, len(streams[-1]) - 1)])
    with pytest.raises(CorruptFileError):
        list(packed.pieces(path))


@each
def test_pieces_are_small(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / "x", suffix, bytes(40 << 20))
    sizes = [len(piece) for piece in packed.pieces(path)]
    assert sum(sizes) == 40 << 20
    assert suffix == ".zst" or max(sizes) <= 1 << 20


def test_what_unpacks_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x", ".bz2", bytes(1 << 20))
    monkeypatch.setattr(packed, "_ANY_BYTES", 1 << 19)
    monkeypatch.setattr(packed, "_MOST_RATIO", 1000)
    with pytest.raises(FileLimitError, match="unpack it first"):
        find_in(path).files[0].open()


def test_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, data: bytes) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(UnreadableFileError, match=r"No space left.*TMPDIR"):
        packed._write(Full(), b"x", tmp_path / "t.csv.gz")  # type: ignore[arg-type]


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv", ".zst", TABLE)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (file,) = find_in(path).files
    with pytest.raises(ReaderPluginError, match="pip install zstandard"):
        file.open()


def test_errors_name_the_packed_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ".gz", b"t,x\n1,2\n3,word and\0\n")
    with pytest.raises(CiwrapError) as caught, find_in(path).files[0].open() as source:
        source.read("x", 0, 2)
    assert str(caught.value).startswith(f"{path}: ")
    assert packed.FOLDER not in str(caught.value)


def test_files_that_belong_together(tmp_path: Path) -> None:
    (tmp_path / "a.vtu").write_text("<VTKFile/>")
    text = b'<VTKFile type="Collection"><Collection><DataSet file="a.vtu"/></Collection></VTKFile>'
    write(tmp_path / "x.pvd", ".gz", text)
    (tmp_path / "x.bin.yaml").write_text("dtype: <f8\nshape: [2]\n")
    write(tmp_path / "x.bin", ".gz", bytes(16))
    for name, other in (("x.pvd.gz", "a.vtu"), ("x.bin.gz", "x.bin.yaml")):
        with pytest.raises(UnsupportedFormatError, match=f"together with {other}; unpack it first"):
            find_in(tmp_path / name).files[0].open()


def test_options_and_formats_are_those_of_what_is_in_it(tmp_path: Path) -> None:
    write(tmp_path / "x.bin", ".gz", np.arange(4.0).tobytes())
    options = {"dtype": "<f8", "shape": [4]}
    (file,) = find_outputs(tmp_path, ["x.bin.gz"], options=options).files
    with file.open() as source:
        assert source.read("x", 0, 4).tolist() == [0, 1, 2, 3]
    (file,) = find_outputs(tmp_path, ["*.gz"], format_name="bytes").files
    with file.open() as source:
        assert source.variables[0].dtype == "|S32"
