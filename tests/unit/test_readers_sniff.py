"""Formats by content: every magic number is known, and neither noise nor text is taken for one."""

from __future__ import annotations

import os
import random
import string
from typing import TYPE_CHECKING

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import FortranFile
from tiers import examples

from ciwrap.base.errors import UnsupportedFormatError
from ciwrap.formats.find_outputs import find_in, formats_of
from ciwrap.formats.fortran import looks_like_fortran

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = {
    "npy": b"\x93NUMPY\x01\x00",
    "npz": b"PK\x03\x04" + bytes(22) + b"\x05\0\0\0" + b"a.npy",
    "netcdf": b"CDF\x02" + bytes(60),
    "fits": b"SIMPLE  =                    T" + b" " * 50,
    "vtk": b"# vtk DataFile Version 3.0\n",
    "dcd": b"\x54\0\0\0CORD" + bytes(80),
    "gromacs": b"\0\0\x07\xc9\0\0\0\x0d\0\0\0\x0cGMX_trn_file" + bytes(40),
    "parquet": b"PAR1" + bytes(20) + b"PAR1",
    "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(64),
}


@pytest.mark.parametrize("name", MAGIC)
def test_magic_numbers(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(MAGIC[name])
    assert formats_of(path)[0] == name


@pytest.mark.parametrize("user_block", [512, 1024, 4096, 1 << 20])
def test_hdf5_behind_a_user_block(tmp_path: Path, user_block: int) -> None:
    path = tmp_path / "data"
    with h5py.File(path, "w", userblock_size=user_block) as file:
        file["x"] = np.zeros(3)
    is_in_reach = user_block < 1 << 20
    assert (formats_of(path) == ("hdf5", "netcdf")) is is_in_reach


def test_a_zip_of_other_things_is_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(MAGIC["npz"].replace(b"a.npy", b"a.txt"))
    assert formats_of(path) == ()


def test_none_of_many_random_and_text_files_is_misnamed(tmp_path: Path) -> None:
    """10,000 files, seed 7: bytes, words, numbers, and beginnings of magic numbers."""
    chance = random.Random(7)
    path = tmp_path / "data"
    letters = string.printable.encode()
    beginnings = [magic[:length] for magic in MAGIC.values() for length in (1, 2, 3)]
    for number in range(10_000):
        size = chance.randrange(0, 700)
        if number % 3 == 0:
            data = chance.randbytes(size)
        elif number % 3 == 1:
            data = bytes(chance.choices(letters, k=size))
        else:
            data = chance.choice(beginnings) + bytes(chance.choices(letters, k=size))
        path.write_bytes(data)
        assert formats_of(path) == (), data[:40]


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_the_bytes_are_there_is_an_answer(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "whatever"
    path.write_bytes(data)
    known = [name for name, magic in MAGIC.items() if data[:4] == magic[:4]]
    is_other = data.startswith((b"CDF\x01", b"CDF\x02", b"CDF\x05", b"ITEM: "))
    assert known or is_other or formats_of(path) == ()


@pytest.mark.parametrize("mark", ["<u4", ">u4"])
def test_records_of_fortran_are_offered_and_not_assumed(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "state.unf"
    with FortranFile(path, "w", header_dtype=mark) as file:
        file.write_record(np.arange(5.0))
        file.write_record(np.arange(2, dtype="i4"))
    assert formats_of(path) == ()
    assert looks_like_fortran(path)
    (file,) = find_in(tmp_path).files
    assert file.reader.name == "bytes"
    path.write_bytes(path.read_bytes()[:30])
    assert not looks_like_fortran(path)


def test_what_cannot_be_read_tells_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert formats_of(tmp_path / "pipe") == formats_of(tmp_path / "nothing") == ()


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".nc", ".fits", ".dcd", ".parquet", ".trr"])
def test_a_suffix_against_the_content_is_an_error_that_names_both(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"data{suffix}"
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    (found,) = find_in(path).files
    with pytest.raises(UnsupportedFormatError, match=rf"\{suffix} says .*content it is npy"):
        found.open()


def test_netcdf_4_is_hdf5_with_either_suffix(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "mesh.e"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("n", 3)
        file.createVariable("coord", "f8", ("n",))[:] = [1, 2, 3]
    assert formats_of(path) == ("netcdf", "hdf5")
    (tmp_path / "mesh.h5").write_bytes(path.read_bytes())
    (found,) = find_in(tmp_path / "mesh.h5").files
    with found.open() as source:
        assert "coord" in [one.name for one in source.variables]
