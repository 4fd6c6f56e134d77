"""Objects of HDF5 that h5py cannot write."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

# How h5py calls what is wrong with numbers of 128 bits. Where a long double has as many (arm64), it
# reads them, and nothing is wrong with an attribute of them.
QUAD_IS_READ = np.finfo(np.longdouble).nmant == 112
QUAD_FAULT = "no defined comparison" if QUAD_IS_READ else "Insufficient precision"

# The type of an external link in a link message, and one that only a program of its own can follow.
_EXTERNAL, _OWN = 64, 200


@cache
def _hdf5() -> Any:
    """The library that h5py has loaded."""
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    names = [name for name in loaded if "libhdf5" in name and "_hl" not in name]
    return ctypes.CDLL(sorted(names)[0])


def _quad() -> Any:
    """IEEE numbers of 128 bits."""
    kind = h5py.h5t.IEEE_F64LE.copy()
    kind.set_size(16)
    kind.set_precision(128)
    kind.set_fields(127, 112, 15, 0, 112)
    kind.set_ebias(16383)
    return kind


def add_quad(group: Any, name: str) -> None:
    kind = _quad()
    h5py.h5d.create(group.id, name.encode(), kind, h5py.h5s.create_simple((3,)))


def add_time(group: Any, name: str) -> None:
    """A dataset of the class H5T_TIME, of which h5py knows no more than the number of the class."""
    h5py.h5d.create(group.id, name.encode(), h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((3,)))


def add_new_reference(group: Any, name: str) -> None:
    """A dataset of the references that HDF5 1.12 brought."""
    library = _hdf5()
    number = ctypes.c_int64
    library.H5Dcreate2.restype = number
    library.H5Dcreate2.argtypes = [number, ctypes.c_char_p, *[number] * 5]
    kind = number.in_dll(library, "H5T_STD_REF_g").value
    space = h5py.h5s.create_simple((3,))
    made = library.H5Dcreate2(group.id.id, name.encode(), kind, space.id, 0, 0, 0)
    assert made >= 0
    library.H5Dclose(number(made))


def add_quad_attribute(item: Any, name: str) -> None:
    h5py.h5a.create(item.id, name.encode(), _quad(), h5py.h5s.create(h5py.h5s.SCALAR))


def add_own_link(path: Path, name: str) -> None:
    """Adds a link of a kind that only the program that made it can follow."""
    with h5py.File(path, "a") as file:
        file[name] = h5py.ExternalLink("elsewhere.h5", "/x")
    # Version 1 of a link message; its flags say that the type follows, then come length and name.
    start = bytes([1, 8])
    end = bytes([len(name)]) + name.encode()
    data = path.read_bytes()
    assert data.count(start + bytes([_EXTERNAL]) + end) == 1
    path.write_bytes(data.replace(start + bytes([_EXTERNAL]) + end, start + bytes([_OWN]) + end))
