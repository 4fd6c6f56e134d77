"""Whole numbers in legacy ASCII files of VTK that their type cannot hold, of which VTK makes others
without a word: 3 of a 259 in 8 bits, 65535 of a -1 without a sign. What else is too large it
refuses itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError
from ciwrap.readers.files import whole_file

if TYPE_CHECKING:
    from pathlib import Path

_ARRAY = re.compile(
    rb"\b(bit|char|signed_char|(?:unsigned_|vtktypeu)\w+)\b[ \t]*\d*[ \t]*\r?\n"
    rb"(?:[ \t]*LOOKUP_TABLE[^\n]*\n)?([0-9+\-\s]*)",
    re.IGNORECASE,
)
# An array of a field has its two lengths before its type.
_LENGTHS = re.compile(rb"\b(\d{1,18})[ \t]+(\d{1,18})[ \t]+\Z")
_NEAR_BYTES = 64
_LONGEST_LINE = 1 << 16
_LIMITS = {
    b"bit": (0, 1),
    b"char": (-128, 127),
    b"signed_char": (-128, 127),
    b"unsigned_char": (0, 255),
}
_UNSIGNED = (0, 1 << 64)


def refuse_wrapped(path: Path) -> None:
    """Raises CorruptFileError for a legacy file with such a number."""
    with path.open("rb") as stream:
        head = [stream.readline(_LONGEST_LINE) for _ in range(3)]
    if head[2].strip().upper() != b"ASCII":
        return
    data = whole_file(path)
    for array in _ARRAY.finditer(data):
        kind = bytes(array[1]).lower()
        if kind not in _LIMITS and b"-" not in array[2]:
            continue  # many numbers, and not one to look at
        words = re.findall(rb"[+-]?\d+", array[2])
        lengths = _LENGTHS.search(data[max(0, array.start() - _NEAR_BYTES) : array.start()])
        if lengths is not None:
            words = words[: int(lengths[1]) * int(lengths[2])]
        least, most = _LIMITS.get(kind, _UNSIGNED)
        for word in words:
            if len(word) <= 21 and not least <= int(word) <= most:
                raise CorruptFileError(
                    f"holds {word.decode()}, which is not of type {kind.decode()}; VTK makes"
                    " something else of it",
                    file=path,
                    remedy="have the program write numbers of the type that it says",
                )
