"""Sequential unformatted files, written by hand: marks of any kind, records split as asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


def fortran_bytes(
    records: Sequence[bytes],
    *,
    mark_bytes: int = 4,
    order: Literal["little", "big"] = "little",
    most: int = 1 << 30,
) -> bytes:
    """most: the longest part; what is longer is split as GNU Fortran does it."""
    data = b""
    for record in records:
        parts = [record[at : at + most] for at in range(0, len(record), most)] or [b""]
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            before = len(part) if is_last else -len(part)
            after = -len(part) if number else len(part)
            data += before.to_bytes(mark_bytes, order, signed=True) + part
            data += after.to_bytes(mark_bytes, order, signed=True)
    return data
