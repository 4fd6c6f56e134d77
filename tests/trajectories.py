"""DCD trajectories as CHARMM lays them out, written by hand."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


def write_dcd(
    path: Path,
    frames: Any,
    *,
    order: str = "<",
    cell: bool = True,
    first: int = 0,
    every: int = 10,
) -> Path:
    """frames: (frame, atom, 3)."""

    def record(data: bytes) -> bytes:
        mark = struct.pack(f"{order}i", len(data))
        return mark + data + mark

    control = [len(frames), first, every, *([0] * 7), int(cell), *([0] * 8), 24]
    data = record(b"CORD" + struct.pack(f"{order}20i", *control))
    data += record(struct.pack(f"{order}i", 1) + b"made by a test".ljust(80))
    data += record(struct.pack(f"{order}i", frames.shape[1]))
    for frame in frames:
        if cell:
            data += record(np.arange(6, dtype=f"{order}f8").tobytes())
        for axis in range(3):
            data += record(frame[:, axis].astype(f"{order}f4").tobytes())
    path.write_bytes(data)
    return path
