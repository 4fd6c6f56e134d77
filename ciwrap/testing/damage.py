"""What the suite of readers does to files: bytes changed, files removed, permission taken."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NOBODY = 65534
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
