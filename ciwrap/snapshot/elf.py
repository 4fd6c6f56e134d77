"""The GNU build ID of an ELF file: the digest that the linker gave a build."""

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
# By ELF class: offset of e_phoff in the header, its type, offset of e_phentsize.
_LAYOUTS = {1: (28, "I", 42), 2: (32, "Q", 54)}


def build_id_of(stream: BinaryIO) -> str | None:
    """The build ID in hexadecimal; None for what is no ELF file, is damaged, or has none.

    stream: seekable, of bytes that nobody vouches for. Raises OSError. The format: System V ABI,
    chapters 4 and 5, and elf(5).
    """
    head = _read_at(stream, 0, 64)
    if len(head) < 52 or head[:4] != b"\x7fELF" or head[4] not in _LAYOUTS or head[5] not in (1, 2):
        return None
    order = "<" if head[5] == 1 else ">"
    at, kind, sizes_at = _LAYOUTS[head[4]]
    if len(head) < sizes_at + 4:
        return None
    (table,) = struct.unpack_from(order + kind, head, at)
    entry_bytes, count = struct.unpack_from(f"{order}HH", head, sizes_at)
    least = 56 if head[4] == 2 else 32
    if entry_bytes < least or count > _MOST_SEGMENTS:
        return None
    segments = _read_at(stream, table, entry_bytes * count)
    for start in range(0, len(segments) - least + 1, entry_bytes):
        offset, size, align = _note_segment(segments, start, order, is_wide=head[4] == 2)
        if size:
            notes = _read_at(stream, offset, min(size, _MOST_NOTE_BYTES))
            found = find_build_id(notes, order, align)
            if found is not None:
                return found
    return None


def find_build_id(notes: bytes, order: str = "<", align: int = 4) -> str | None:
    """The build ID among the notes of a segment; None without one, or where they are damaged.

    order: "<" or ">". align: what name and content of a note are padded to.
    """
    align = 8 if align == 8 else 4
    at = 0
    while at + 12 <= len(notes):
        name_bytes, id_bytes, kind = struct.unpack_from(f"{order}III", notes, at)
        name_at = at + 12
        id_at = name_at + _padded(name_bytes, 4)
        if align == 8:
            id_at = at + _padded(12 + name_bytes, 8)
        end = id_at + id_bytes
        if end > len(notes):
            return None
        is_build_id = kind == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_bytes] == b"GNU\0"
        if is_build_id and 0 < id_bytes <= _MOST_ID_BYTES:
            return notes[id_at:end].hex()
        at = id_at + _padded(id_bytes, align)
    return None


def _note_segment(
    segments: bytes, start: int, order: str, *, is_wide: bool
) -> tuple[int, int, int]:
    """Offset, size and alignment of a segment of notes; size 0 for segments of other things."""
    if is_wide:
        kind, _, offset, _, _, size, _, align = struct.unpack_from(
            f"{order}IIQQQQQQ", segments, start
        )
    else:
        kind, offset, _, _, size, _, _, align = struct.unpack_from(f"{order}8I", segments, start)
    return offset, size if kind == _PT_NOTE else 0, align


def _padded(size: int, align: int) -> int:
    return -(-size // align) * align


def _read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    if offset >= 1 << 62:
        return b""
    stream.seek(offset)
    return stream.read(size)
