"""What the suite of readers does to files and to memory: bytes changed, files removed, permission
taken, memory filled before it is handed out.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NOBODY = 65534
# Of malloc.h and of mallopt(3).
_M_PERTURB = -6
_PERTURB = "MALLOC_PERTURB_"
MUTATIONS = ("flip", "set", "cut", "insert", "double")


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """For the block, root (in a container, say) is somebody whom permissions keep out."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@contextlib.contextmanager
def filled_memory(byte: int) -> Iterator[None]:
    """For the block, memory that is asked for is full of this byte's complement, in this process
    and in those that it starts; so what was never written shows. byte: 1 to 255.

    Raises NotImplementedError where the C library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not mallopt(_M_PERTURB, byte):
        raise NotImplementedError("only glibc can fill memory before it hands it out")
    before = os.environ.get(_PERTURB)
    os.environ[_PERTURB] = str(byte)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, int(before or 0))
        os.environ.pop(_PERTURB)
        if before is not None:
            os.environ[_PERTURB] = before


def mutate(data: bytearray, position: int, kind: str, value: int) -> None:
    """Changes bytes in place. kind: one of MUTATIONS."""
    position = min(position, len(data) - 1)
    if not data:
        return
    if kind == "flip":
        data[position] ^= 1 << value % 8
    elif kind == "set":
        data[position] = value
    elif kind == "cut":
        del data[position : position + 1 + value]
    elif kind == "insert":
        data[position:position] = bytes([value])
    else:
        data[position:position] = data[position : position + 1 + value]
