"""Files that are no captures, which no capture is written over."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_PIECE_BYTES = 1 << 20


def refuse_file_there(path: Path, magic: bytes) -> None:
    """Raises UsageError for a file that is there and is not a capture; OSError."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        refuse_other_file(file.fileno(), path, magic)


def refuse_other_file(descriptor: int, path: Path, magic: bytes) -> None:
    """Raises UsageError for a file that is not a capture, nor what a crash may leave of a new one;
    OSError.

    A power loss may leave zeros, and arrays of somebody begin with zeros, too: so all of it has to
    be zeros.
    """
    if magic.startswith(os.pread(descriptor, len(magic), 0)) or _holds_zeros_alone(descriptor):
        return
    raise UsageError(
        "already exists and is not a capture; it is left as it is",
        file=path,
        remedy="give another name with -o",
    )


def _holds_zeros_alone(descriptor: int) -> bool:
    offset = 0
    while piece := os.pread(descriptor, _PIECE_BYTES, offset):
        if piece.count(0) != len(piece):
            return False
        offset += len(piece)
    return True
