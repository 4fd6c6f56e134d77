"""Which format a file has by its content, where nothing else says it.

A magic number has to be long enough, or what follows it odd enough, that neither text nor random
bytes are taken for the format.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

_HEAD_BYTES = 512
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_HEAD_BYTES = 1 << 16
_PARQUET = b"PAR1"
_MOST_USER_BLOCK = 1 << 20  # HDF5 lets 512, 1024, 2048, ... bytes of others stand before it
ZARR_MARKERS = ("zarr.json", ".zgroup", ".zarray")


def formats_of(path: Path) -> tuple[str, ...]:
    """Names of the readers that the content is for, the likeliest first; () if it tells none.

    Files that cannot be read tell none: whoever opens them says why.
    """
    with contextlib.suppress(OSError):
        if path.is_dir():
            is_store = any((path / one).is_file() for one in ZARR_MARKERS)
            return ("zarr",) if is_store else ()
        # Pipes and devices must not be opened: a pipe waits for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            return ()
        with path.open("rb") as file:
            return _formats_in(file)
    return ()


def _formats_in(file: BinaryIO) -> tuple[str, ...]:
    head = file.read(_HEAD_BYTES)
    for name, matches in _MAGIC.items():
        if matches(head):
            return (name,)
    byte_count = os.fstat(file.fileno()).st_size
    if head.startswith(_PARQUET) and byte_count > len(_PARQUET):
        file.seek(-len(_PARQUET), os.SEEK_END)
        return ("parquet",) if file.read(len(_PARQUET)) == _PARQUET else ()
    for offset in _user_blocks(byte_count):
        file.seek(offset)
        start = file.read(_HDF5_HEAD_BYTES)
        if start.startswith(_HDF5):
            # Its attribute, which NetCDF libraries write: NetCDF-4 is HDF5 with rules of its own.
            # Libraries that could tell for certain are not let near an unknown file here.
            return ("netcdf", "hdf5") if b"_NCProperties" in start else ("hdf5", "netcdf")
    return ()


def _is_npz(head: bytes) -> bool:
    """A zip file whose first member is an array."""
    length = int.from_bytes(head[26:28], "little")
    return head.startswith(b"PK\x03\x04") and head[30 : 30 + length].endswith(b".npy")


def _is_fits(head: bytes) -> bool:
    """The first card says that the file follows the standard: T in column 30."""
    return head.startswith(b"SIMPLE  =") and head[9:29].strip() == b"" and head[29:30] == b"T"


def _is_dcd(head: bytes) -> bool:
    """A Fortran record of 84 bytes that begins with CORD."""
    return head[4:8] == b"CORD" and head[:4] in (b"\x54\0\0\0", b"\0\0\0\x54")


def _is_gromacs(head: bytes) -> bool:
    """TRR says its version; XTC, of old and of many atoms, says the number of atoms twice."""
    if head.startswith(b"\0\0\x07\xc9"):
        return b"GMX_trn_file" in head[:32]
    atoms = head[52:56]
    is_xtc = head[:4] in (b"\0\0\x07\xcb", b"\0\0\x07\xe7")
    return is_xtc and len(atoms) == 4 and atoms == head[4:8] != bytes(4)


_MAGIC: dict[str, Callable[[bytes], bool]] = {
    "npy": lambda head: head.startswith(b"\x93NUMPY"),
    "npz": _is_npz,
    "netcdf": lambda head: head[:4] in (b"CDF\x01", b"CDF\x02", b"CDF\x05"),
    "fits": _is_fits,
    "vtk": lambda head: head.startswith(b"# vtk DataFile Version"),
    "dcd": _is_dcd,
    "gromacs": _is_gromacs,
    "lammps": lambda head: head.startswith((b"ITEM: TIMESTEP", b"ITEM: UNITS")),
}


def _user_blocks(byte_count: int) -> list[int]:
    found, offset = [0], 512
    while offset < min(byte_count, _MOST_USER_BLOCK):
        found.append(offset)
        offset *= 2
    return found
