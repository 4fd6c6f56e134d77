"""What .npy and .npz files may be, and the ways in which they lie."""

from __future__ import annotations

import io
import os
import pickle
import re
import struct
import tracemalloc
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from told_by_readers import reader_for

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    DuplicateVariableError,
    FileLimitError,
    PickledArrayError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
)
from ciwrap.formats import fortran_order
from ciwrap.formats.catalog import Catalog
from ciwrap.formats.find_outputs import find_outputs
from ciwrap.formats.fortran_order import FortranOrder
from ciwrap.formats.reader import Source
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from pathlib import Path


def open_file(path: Path) -> Source:
    return reader_for(path).open(path)


def read_all(path: Path) -> None:
    with open_file(path) as source:
        for info in source.variables:
            for _ in source.slabs(info.name):
                pass


def npy(header: str, data: bytes = b"", *, version: tuple[int, int] = (1, 0)) -> bytes:
    """A .npy with just this header text."""
    text = header.encode("utf-8" if version == (3, 0) else "latin-1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def refused(path: Path, data: bytes, kind: type[CiwrapError], match: str | None = None) -> None:
    path.write_bytes(data)
    with pytest.raises(kind, match=match) as caught:
        read_all(path)
    assert str(caught.value).startswith(str(path))


# --- .npy ---

PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"
WRONG = "x.npy: x: (cannot be read|has a wrong)"


def test_a_header_of_ours_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for header in (
        PLAIN,
        PLAIN + " " * 100 + "\n",
        "{'shape': (2L,), 'fortran_order': True, 'descr': '<f8'}",
        "{'descr': '=f8', 'fortran_order': False, 'shape': (2,)}",
    ):
        path.write_bytes(npy(header, struct.pack("<2d", 1, 2)))
        with open_file(path) as source:
            assert source.variables[0].shape == (2,)
            assert source.variables[0].dtype == "<f8"
            assert source.variables[0].region is not None
            assert source.read("x", 0, 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ("", WRONG),
        ("{", WRONG),
        ("[]", WRONG),
        ("{'descr': '<f8'}", WRONG),
        (PLAIN[:-1] + "'more': 1}", WRONG),
        ("__import__('os').system('true')", WRONG),
        (
            "{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}",
            WRONG,
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': [2]}",
            WRONG,
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': 2}",
            WRONG,
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}",
            WRONG,
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2.0,)}",
            WRONG,
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2)}",
            WRONG,
        ),
        (
            f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({1 << 63}, {1 << 63})}}",
            "shape is",
        ),
        (f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({1 << 40},)}}", "truncated"),
        (
            "{'descr': '<q9', 'fortran_order': False, 'shape': (2,)}",
            WRONG,
        ),
        (
            "{'descr': 3, 'fortran_order': False, 'shape': (2,)}",
            WRONG,
        ),
        (
            "{'descr': [('a',)], 'fortran_order': False, 'shape': (2,)}",
            WRONG,
        ),
        (
            "{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (2,)}",
            WRONG,
        ),
        (
            "{'descr': '<f8'" + "(" * 4000 + ")" * 4000 + "}",
            WRONG,
        ),
        ("-" * 9000 + "1", None),
        ("'\\d': " + PLAIN, WRONG),
    ],
)
def test_wrong_headers(tmp_path: Path, header: str, match: str | None) -> None:
    refused(tmp_path / "x.npy", npy(header, b"\0" * 16), CorruptFileError, match)


def test_wrong_beginnings(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    refused(path, b"", CorruptFileError, "is empty or ends within its header")
    refused(path, b"hello", CorruptFileError, "wrong first bytes")
    refused(path, b"\x93NUMPX\x01\x00" + b"\0" * 80, CorruptFileError, "not .npy data")
    refused(path, npy(PLAIN, b"\0" * 16, version=(4, 0)), UnsupportedFormatError, r"version 4\.0")
    refused(path, b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", CorruptFileError, "4294967295 bytes")
    refused(path, b"\x93NUMPY\x01\x00\x00\x20{}", CorruptFileError, "ends within its header")


def test_truncated_and_left_over(tmp_path: Path) -> None:
    refused(tmp_path / "x.npy", npy(PLAIN, b"\0" * 15), CorruptFileError, "is truncated")
    refused(tmp_path / "x.npy", npy(PLAIN, b"\0" * 17), CorruptFileError, "bytes left over")


def test_truncated_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(100_000))
    with open_file(path) as source:
        os.truncate(path, 500)
        with pytest.raises(CorruptFileError, match="finished writing"):
            list(source.slabs("x"))


class Trap:
    """Unpickling it makes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.target),))


def test_more_dimensions_than_are_read(tmp_path: Path) -> None:
    header = {"descr": "<f8", "fortran_order": False, "shape": (1,) * 64}
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(8))
    with pytest.raises(UnsupportedFormatError, match="has 64 dimensions, of which 32 at most"):
        open_file(tmp_path / "x.npy")


def test_the_remedy_for_a_type_is_one_that_helps(tmp_path: Path) -> None:
    """What is in a file that cannot be opened cannot be ignored."""
    for name, values in (("x", np.zeros(2, "g")), ("y", np.zeros(2, [("a", "M8[s]")]))):
        np.save(tmp_path / f"{name}.npy", values)
        np.savez(tmp_path / f"{name}.npz", **{name: values})
        for suffix in ("npy", "npz"):
            with pytest.raises(UnsupportedDtypeError, match="no defined comparison") as caught:
                open_file(tmp_path / f"{name}.{suffix}")
            assert "'exclude'" in str(caught.value)
            assert "'ignore'" not in str(caught.value)


def test_pickles_are_refused_and_not_run(tmp_path: Path) -> None:
    target = tmp_path / "was_run"
    objects = np.array([Trap(target)], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", x=objects)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(PickledArrayError, match="Python objects"):
            open_file(tmp_path / name)
    (tmp_path / "y.npy").write_bytes(pickle.dumps(Trap(target)))
    with pytest.raises(CorruptFileError):
        open_file(tmp_path / "y.npy")
    fields = np.zeros(2, dtype=[("a", "<f4"), ("b", "O")])
    np.save(tmp_path / "z.npy", fields, allow_pickle=True)
    with pytest.raises(PickledArrayError, match=r"z\.b"):
        open_file(tmp_path / "z.npy")
    assert not target.exists()


@pytest.mark.parametrize("dtype", ["<M8[s]", "<m8[ns]", "|V5", np.longdouble])
def test_dtypes_without_a_comparison(tmp_path: Path, dtype: Any) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3, dtype=dtype))
    with pytest.raises(UnsupportedDtypeError, match="exclude"):
        open_file(tmp_path / "x.npy")


@pytest.mark.parametrize("descr", ["|S0", "<U0"])
def test_strings_of_no_width(tmp_path: Path, descr: str) -> None:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,)}}"
    refused(tmp_path / "x.npy", npy(header), UnsupportedDtypeError, "width 0")


RECORD = np.dtype(
    [
        ("id", "<i4"),
        ("pos", ">f8", (3,)),
        ("inner", [("flag", "?"), ("tag", "S3"), ("grid", "<f4", (2, 2))]),
    ],
    align=True,
)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_records_become_variables(tmp_path: Path, shape: tuple[int, ...], suffix: str) -> None:
    generator = np.random.default_rng(0)
    records = np.zeros(shape, dtype=RECORD)
    for name in ("id", "pos"):
        records[name] = generator.integers(0, 100, records[name].shape)
    records["inner"]["flag"] = generator.integers(0, 2, shape)
    records["inner"]["tag"] = b"ab"
    records["inner"]["grid"] = generator.normal(size=records["inner"]["grid"].shape)
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, np.asfortranarray(records) if len(shape) > 1 else records)
    else:
        np.savez_compressed(path, x=records)
    expected = {
        "x.id": records["id"],
        "x.pos": records["pos"],
        "x.inner.flag": records["inner"]["flag"],
        "x.inner.tag": records["inner"]["tag"],
        "x.inner.grid": records["inner"]["grid"],
    }
    with open_file(path) as source:
        assert [info.name for info in source.variables] == list(expected)
        for info in source.variables:
            wanted = expected[info.name]
            assert (info.dtype, info.shape, info.region) == (wanted.dtype.str, wanted.shape, None)
            for slab_bytes in (1, 50, 1 << 20):
                pieces = list(source.slabs(info.name, slab_bytes))
                assert b"".join(piece.tobytes() for piece in pieces) == wanted.tobytes()


def test_fields_of_the_same_name(tmp_path: Path) -> None:
    twice = np.dtype([("a.b", "<f4"), ("a", [("b", "<f4")])])
    np.save(tmp_path / "x.npy", np.zeros(2, dtype=twice))
    with pytest.raises(DuplicateVariableError, match=r"x\.a\.b"):
        open_file(tmp_path / "x.npy")


def test_arrays_of_records_within_records(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2, dtype=[("a", [("b", "<f4")], (3,))]))
    with pytest.raises(UnsupportedDtypeError, match="array of records"):
        open_file(tmp_path / "x.npy")


# --- Fortran order ---


@given(st.data())
def test_fortran_order_reads_any_piece(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fortran_order, "BUFFER_BYTES", data.draw(st.sampled_from([1, 40, 1000, 1 << 20]))
        )
        patch.setattr(fortran_order, "_FEW_ELEMENTS", data.draw(st.sampled_from([0, 5, 4096])))
        read_pieces(data)


def read_pieces(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=5)))
    array = np.arange(np.prod(shape), dtype="<u4").reshape(shape)
    stored = array.tobytes(order="F")
    reader = FortranOrder(shape, array.dtype, lambda offset, count: stored[offset : offset + count])
    for _ in range(3):
        first = data.draw(st.integers(0, array.size))
        count = data.draw(st.integers(0, array.size - first))
        wanted = array.reshape(-1)[first : first + count]
        assert reader.read(first, count).tolist() == wanted.tolist()


@pytest.mark.parametrize("shape", [(1000, 2000), (3, 700_000), (700_000, 3), (50, 40, 1000)])
def test_fortran_order_in_bounded_memory(
    tmp_path: Path, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fortran_order, "BUFFER_BYTES", 2 << 20)
    array = np.arange(np.prod(shape), dtype="<f8").reshape(shape)
    path = tmp_path / "x.npy"
    np.save(path, np.asfortranarray(array))
    flat = array.reshape(-1)
    with open_file(path) as source:
        tracemalloc.start()
        try:
            done = 0
            for piece in source.slabs("x", 1 << 20):
                assert np.array_equal(piece, flat[done : done + piece.size])
                done += piece.size
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert done == array.size
    assert peak < 14 << 20 < array.nbytes


# --- .npz ---


def archive(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in members:
            file.writestr(name, data)
    return buffer.getvalue()


def as_npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    one = as_npy(np.zeros(3))
    refused(path, archive([("a.npy", one), ("a.npy", one)]), DuplicateVariableError, "twice")
    refused(path, archive([("a.txt", b"hello")]), UnsupportedFormatError, "not a .npy array")
    refused(path, archive([("a.npy", one[:-1])]), CorruptFileError, "its header says")
    refused(path, archive([("a.npy", one + b"x")]), CorruptFileError, "its header says")
    refused(path, archive([("a.npy", one)], zipfile.ZIP_LZMA), UnsupportedFormatError, "method 14")
    refused(path, archive([("a.npy", one)]) + b"more", CorruptFileError)
    refused(path, one, CorruptFileError, "not a zip file")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_cannot_be_read_leaves_the_others(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.npz"
    good, objects = as_npy(np.arange(3.0)), io.BytesIO()
    np.save(objects, np.array([{"who": "me"}]), allow_pickle=True)
    bad = {
        "facts": (objects.getvalue(), "holds Python objects.*; write numbers or fixed-width"),
        "long": (as_npy(np.zeros(2, "g")), "no defined comparison"),
        "cut": (good[:-1], "its header says"),
        "notes.txt": (b"hello", "not a .npy array"),
    }
    members = [
        (f"{name}.npy" if "." not in name else name, data) for name, (data, _) in bad.items()
    ]
    path.write_bytes(archive([("a.npy", good), *members, ("z.npy", good)], method))
    with open_file(path) as source:
        assert {one.name for one in source.variables} == {"a", "z", *bad}
        for name in ("a", "z"):
            assert source.info(name).fault is None
            np.testing.assert_array_equal(source.read(name, 0, 3), np.arange(3.0))
        for name, (_, said) in bad.items():
            assert re.search(said, source.info(name).fault or "")
            assert "exclude" not in (source.info(name).fault or "")
            with pytest.raises(UnsupportedDtypeError, match=said):
                source.read(name, 0, 1)


def test_what_helps_a_member_with_another_checksum(tmp_path: Path) -> None:
    """It is told beside how to go without it."""
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(3.0), z=np.arange(3.0) + 7)
    data = path.read_bytes()
    at = data.index(np.float64(7.0).tobytes())
    path.write_bytes(data[:at] + bytes(8) + data[at + 8 :])
    with (
        Catalog(find_outputs(tmp_path, ["x.npz"])) as catalog,
        pytest.raises(UnsupportedDtypeError, match=r"CRC.*; is it whole.*; name it under 'ignore'"),
    ):
        catalog.values(VariableId("z"))


def test_an_empty_archive_holds_nothing(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz")
    with open_file(tmp_path / "x.npz") as source:
        assert source.variables == ()


def test_encrypted_members(tmp_path: Path) -> None:
    data = bytearray(archive([("a.npy", as_npy(np.zeros(3)))]))
    directory = data.rindex(b"PK\x01\x02")
    data[6] |= 1
    data[directory + 8] |= 1
    refused(tmp_path / "x.npz", bytes(data), UnsupportedFormatError, "encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_wrong_checksum(tmp_path: Path, method: int) -> None:
    data = bytearray(archive([("a.npy", as_npy(np.arange(50.0)))], method))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 16] ^= 1
    path = tmp_path / "x.npz"
    path.write_bytes(data)
    with pytest.raises(CorruptFileError), open_file(path) as source:
        list(source.slabs("a"))


def lying_archive(size: int, packed: bytes, claimed_packed: int | None = None) -> bytes:
    """One deflated member that claims to unpack to `size` bytes."""
    packed_size = len(packed) if claimed_packed is None else claimed_packed
    name = b"a.npy"
    fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, 0, packed_size, size, len(name), 0)
    local = b"PK\x03\x04" + fields + name + packed
    central = b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0)
    central += name
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def test_bombs(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    header = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4000000000,)}")
    size = len(header) + 4_000_000_000
    # A little data that claims to be much.
    refused(path, lying_archive(size, deflated(header)), FileLimitError, "claims to unpack")
    # More packed bytes than the file has.
    data = lying_archive(size, deflated(header), claimed_packed=1 << 31)
    refused(path, data, CorruptFileError)
    # Data that go on after what they claim: only what is claimed is unpacked.
    small = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (10,)}", b"\0" * 10)
    data = lying_archive(len(small), deflated(small + b"\0" * (64 << 20)))
    tracemalloc.start()
    try:
        refused(path, data, CorruptFileError)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_members_in_bounded_memory(tmp_path: Path, order: Any) -> None:
    path = tmp_path / "x.npz"
    array = np.asarray(np.arange(2_000_000, dtype="<i4").reshape(1000, 2000), order=order)
    np.savez_compressed(path, x=array)
    with open_file(path) as source:
        tracemalloc.start()
        try:
            total = sum(int(piece.astype("<i8").sum()) for piece in source.slabs("x", 1 << 18))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert total == 2_000_000 * 1_999_999 // 2
    if order == "C":  # else the member is unpacked, in memory up to 64 MiB
        assert peak < 4 << 20 < array.nbytes
