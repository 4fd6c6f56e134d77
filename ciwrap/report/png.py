"""Small palette images: a byte for each cell, as a PNG of a few hundred bytes."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Colour = tuple[int, int, int, int]  # red, green, blue, opacity


def palette_png(values: bytes, rows: int, columns: int, palette: Sequence[Colour]) -> bytes:
    """An image of rows * columns cells; palette: the colour of each of the 256 values."""
    assert len(values) == rows * columns
    assert len(palette) == 256
    # Each line begins with the number of its filter: 0, none.
    lines = b"".join(b"\0" + values[i * columns : (i + 1) * columns] for i in range(rows))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(part for colour in palette for part in colour[:3])),
            _chunk(b"tRNS", bytes(colour[3] for colour in palette)),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def rgb_png(lines: Sequence[bytes]) -> bytes:
    """An image of lines of pixels, three bytes each."""
    width = len(lines[0]) // 3
    assert all(len(line) == 3 * width for line in lines)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(lines), 8, 2, 0, 0, 0)),
            _chunk(b"IDAT", zlib.compress(b"".join(b"\0" + line for line in lines), 9)),
            _chunk(b"IEND", b""),
        )
    )


def data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
