"""The GNU build ID of an ELF file: the digest that the linker gave a build.

Read are files of 64 bits and little-endian order, which is what numerical programs run on; of all
others the SHA-256 tells.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_PT_NOTE = 4
_NT_GNU_BUILD_ID = 3
_MOST_SEGMENTS = 512
_MOST_NOTE_BYTES = 1 << 16
_MOST_ID_BYTES = 64
# Magic, class and byte order, e_phoff, e_phentsize, e_phnum.
_HEADER = struct.Struct("<4s2s26xQ14xHH")
# Type, offset, size in the file, alignment.
_SEGMENT = struct.Struct("<I4xQ16xQ8xQ")
_NOTE = struct.Struct("<III")


def build_id_of(stream: BinaryIO) -> str | None:
    """The build ID in hexadecimal; None for what is no such ELF file, is damaged, or has none.

    stream: seekable, of bytes that nobody vouches for. Raises OSError. The format: System V ABI,
    chapters 4 and 5, and elf(5).
    """
    head = _read_at(stream, 0, _HEADER.size)
    if len(head) < _HEADER.size:
        return None
    magic, kind, table, entry_bytes, count = _HEADER.unpack(head)
    is_known = (magic, kind, entry_bytes) == (b"\x7fELF", b"\2\1", _SEGMENT.size)
    if not is_known or count > _MOST_SEGMENTS:
        return None
    segments = _read_at(stream, table, entry_bytes * count)
    for start in range(0, len(segments) - entry_bytes + 1, entry_bytes):
        kind, offset, size, align = _SEGMENT.unpack_from(segments, start)
        if kind == _PT_NOTE:
            notes = _read_at(stream, offset, min(size, _MOST_NOTE_BYTES))
            found = find_build_id(notes, align)
            if found is not None:
                return found
    return None


def find_build_id(notes: bytes, align: int = 4) -> str | None:
    """The build ID among the notes of a segment; None without one, or where they are damaged.

    align: what name and content of a note are padded to.
    """
    align = 8 if align == 8 else 4
    at = 0
    while at + _NOTE.size <= len(notes):
        name_bytes, id_bytes, kind = _NOTE.unpack_from(notes, at)
        name_at = at + _NOTE.size
        id_at = at + _padded(_NOTE.size + name_bytes, align)
        end = id_at + id_bytes
        if end > len(notes):
            return None
        is_build_id = kind == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_bytes] == b"GNU\0"
        if is_build_id and 0 < id_bytes <= _MOST_ID_BYTES:
            return notes[id_at:end].hex()
        at = id_at + _padded(id_bytes, align)
    return None


def _padded(size: int, align: int) -> int:
    return -(-size // align) * align


def _read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    if offset >= 1 << 62:
        return b""
    stream.seek(offset)
    return stream.read(size)
