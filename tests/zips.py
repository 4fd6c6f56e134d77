"""Zips for tests: plain ones, and those that nobody means well with."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

# Numbers on the edges of what fields of 1, 2, 4 and 8 bytes hold.
_EDGES = (0, 1, 0xFF, 0xFFFF, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 2)
_RECORDS = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7")


def make_zip(
    entries: Mapping[str, bytes],
    *,
    mode: int = 0o100644,
    method: int = zipfile.ZIP_DEFLATED,
    large: bool = False,
) -> bytes:
    """A zip of plain files. large: each in the form for more than 4 GiB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries.items():
            info = zipfile.ZipInfo("x")
            info.filename = name  # as it is; ZipInfo itself would tidy it
            info.compress_type = method
            info.external_attr = mode << 16
            with archive.open(info, "w", force_zip64=large) as stream:
                stream.write(data)
    return buffer.getvalue()


def flagged(data: bytes, bit: int) -> bytes:
    """The zip with a flag set in each entry of its list."""
    out = bytearray(data)
    at = -1
    while (at := out.find(b"PK\1\2", at + 1)) >= 0:
        out[at + 8] |= bit
    return bytes(out)


def million_entries(*, elsewhere: bool = False) -> bytes:
    """The list of a zip of 10^6 files, as small as one can be; no file behind it.

    elsewhere: the record that says so lies not where older readers look, but where it is said to.
    """
    entry = struct.pack(
        "<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0
    )
    count = 10**6
    body = (entry + b"x") * count
    large = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(body), 0)
    locator = struct.pack("<IIQI", 0x07064B50, 0, len(body), 1)
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0, 0)
    # The end's own four bytes hold a size that is no cause for suspicion.
    end = end[:12] + struct.pack("<I", 100) + end[16:]
    return body + large + bytes(16 if elsewhere else 0) + locator + end


def damaged(whole: bytes, dice: random.Random) -> bytes:
    """The zip with one to four places changed, most of them in its records."""
    data = bytearray(whole)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(data))
        if dice.random() < 0.6:
            at = max(0, data.find(dice.choice(_RECORDS), at)) + dice.randrange(80)
        at = min(at, len(data) - 8)
        how = dice.randrange(5)
        if how < 2:
            data[at] = dice.randrange(256)
        elif how < 4:
            size = dice.choice((1, 2, 4, 8))
            number = dice.choice(_EDGES) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, "little")
        else:
            del data[at : at + dice.randrange(1, 9)]
    return bytes(data if dice.random() < 0.8 else data[: dice.randrange(len(data))])
