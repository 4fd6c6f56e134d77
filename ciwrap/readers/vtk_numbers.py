"""Numbers in XML files that VTK does not take as they stand there.

Behind as many as it wants of an array VTK reads no further, nor what an array holds itself that is
said to be in the appended data, and it makes 4 of a 260 in a text that is said to have 8 bits, all
without a word.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError
from ciwrap.late import numpy as np
from ciwrap.readers.files import whole_file
from ciwrap.readers.vtk_blocks import Blocks, Stored
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_TAG = re.compile(rb"<(/?)([A-Za-z]\w*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
_ATTRIBUTE = re.compile(rb"(\w+)\s*=\s*[\"']([^\"']*)[\"']")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_FLOAT = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf(?:inity)?))")
_WHOLE = re.compile(rb"[+-]?\d+")
# Numbers with no blank between them, as Fortran writes them: VTK reads one after the other.
_FUSED = re.compile(rb"[\d.][+-]|\.\d*\.|[eE][+-]?\d+\.|[fny][+.-]|[\d.][in]", re.IGNORECASE)
# Elements within an array, and CDATA.
_INNER = re.compile(rb"<(\w+)(?:[^<>]*[^<>/])?>.*?</\1\s*>|<\w[^<>]*/>", re.DOTALL)
_CELLS = {b"Cells", b"Verts", b"Lines", b"Strips", b"Polys"}
_ARRAYS = (b"DataArray", b"Array")
_SECTIONS = {b"PointData", b"CellData", b"FieldData", b"Points", b"Coordinates", *_CELLS}
# Of each cell there is one; of the others as many as the last, or largest, of these says.
_PER_CELL = (b"offsets", b"types", b"polyhedron_offsets", b"faceoffsets")
_ENDS_OF = {
    b"connectivity": b"offsets",
    b"polyhedron_to_faces": b"polyhedron_offsets",
    b"face_connectivity": b"face_offsets",
    b"faces": b"faceoffsets",
}
# Of other types VTK itself refuses what is out of range.
_WRAPPED = re.compile(rb"UInt(8|16|32|64)|Int8")


class _Array(Struct, frozen=True):
    """An array, as text or not.

    section: the element that it is in, b"" for one that is not known. place: which of these, in the
    order of the file. number: which array of that element. stored: None if it is a text, or if its
    offset leads nowhere. unread: what it holds besides.
    """

    section: bytes
    place: int
    number: int
    piece: Mapping[bytes, bytes]
    known: Mapping[bytes, bytes]
    text: bytes
    stored: Stored | None
    unread: bytes

    @property
    def is_text(self) -> bool:
        """Whatever its format is said to be, VTK looks for an offset first."""
        return b"offset" not in self.known and self.known.get(b"format") != b"binary"

    @property
    def called(self) -> bytes:
        return self.known.get(b"Name", b"")

    @property
    def kind(self) -> bytes:
        return self.known.get(b"type", b"")


def refuse_other_numbers(path: Path) -> None:
    """Raises CorruptFileError for a file with numbers of which VTK reads others, or not all."""
    data = whole_file(path)
    head = _head_of(data)
    blocks = Blocks(data, _outermost(head), path)
    arrays = list(_arrays_of(head, blocks))
    ends = {(one.place, one.called): one for one in reversed(arrays)}  # VTK takes the first
    for array in arrays:
        wanted = _wanted(array)
        if array.section in _CELLS and array.called in _ENDS_OF:
            wanted = _last_end(ends.get((array.place, _ENDS_OF[array.called])), array, blocks)
        problem = _beside(array) or _problem(array, wanted, blocks)
        if problem is not None:
            called = array.called.decode("utf-8", "backslashreplace")
            raise CorruptFileError(
                f"its array {ascii(called)[:60]} {problem}, of which VTK makes something else",
                file=path,
                remedy="have the program write as many numbers of that type as it says",
            )


def _head_of(data: bytearray) -> bytes:
    """What comes before the appended data, without comments."""
    end = data.find(b"<AppendedData")
    return _COMMENT.sub(b"", bytes(data if end < 0 else data[:end]))


def _outermost(head: bytes) -> dict[bytes, bytes]:
    """The attributes of the element that all others are in."""
    found = next((tag for tag in _TAG.finditer(head) if tag[2] == b"VTKFile"), None)
    return {} if found is None else dict(_ATTRIBUTE.findall(found[3]))


def _arrays_of(head: bytes, blocks: Blocks) -> Iterator[_Array]:
    section, place, number, piece = b"", 0, 0, dict[bytes, bytes]()
    for tag in _TAG.finditer(head):
        name, known = tag[2], dict(_ATTRIBUTE.findall(tag[3]))
        is_empty = tag[3].endswith(b"/")
        if tag[1] or (is_empty and name not in (b"Piece", *_ARRAYS)):
            section = b"" if name == section else section
        elif name == b"Piece":
            piece = known
        elif name in _SECTIONS:
            section, place, number = name, place + 1, 0
        elif name in _ARRAYS:
            end = tag.end() if is_empty else head.find(b"</%b" % name, tag.end())
            inner = head[tag.end() : end]
            text = inner.partition(b"<")[0]
            unread = _INNER.sub(b"", inner[len(text) :])
            stored = None
            if b"offset" in known:
                stored, unread = blocks.appended(known[b"offset"]), text + unread
            elif known.get(b"format") == b"binary":
                stored = blocks.inline(text)
            yield _Array(section, place, number, piece, known, text, stored, unread.strip())
            number += 1


def _beside(array: _Array) -> str | None:
    """What an array has where VTK looks for nothing."""
    if array.unread:
        return f"holds {_shown(array.unread)} besides"
    offset = array.known.get(b"offset", b"0")
    return None if offset.strip().isdigit() else f"has the offset {_shown(offset)}"


def _problem(array: _Array, wanted: int | None, blocks: Blocks) -> str | None:
    """What VTK does not take as it stands there, or leaves unread; what it refuses itself is not
    looked for.
    """
    if array.kind == b"String":
        return _of_texts(array, wanted, blocks)
    return _of_words(array, wanted) if array.is_text else _surplus(array, wanted, blocks)


def _of_texts(array: _Array, wanted: int | None, blocks: Blocks) -> str | None:
    """Texts are their bytes, with a zero behind each; VTK crashes where there are fewer."""
    if array.stored is not None:
        data = blocks.values(array.stored, b"UInt8").tobytes()
        if array.known.get(b"format") == b"binary" and blocks.has_more(array.stored):
            return "goes on behind its last byte"
    else:
        words = array.text.split()
        odd = next((one for one in words if not _WHOLE.fullmatch(one) or len(one) > 20), None)
        odd = odd or next((one for one in words if not -128 <= int(one) <= 255), None)
        if odd is not None:
            return f"holds {_shown(odd)}, which is no byte of a text"
        data = bytes(int(one) & 255 for one in words)
    if data and data[-1]:
        return "ends within a text"
    count = data.count(0)
    return None if wanted in (None, count) else f"holds {count} texts where {wanted} belong"


def _shown(text: bytes) -> str:
    return ascii(text.decode("utf-8", "replace"))[:40]


def _surplus(array: _Array, wanted: int | None, blocks: Blocks) -> str | None:
    """What VTK leaves unread of an array that is not text."""
    bits = re.search(rb"\d+$", array.kind)
    if array.stored is None or wanted is None or not (bits or array.kind == b"Bit"):
        return None
    room = (wanted + 7) // 8 if bits is None else wanted * int(bits[0]) // 8
    found = blocks.byte_count(array.stored)
    if found > room:
        return f"holds {found} bytes where {room} belong"
    if array.known.get(b"format") == b"binary" and blocks.has_more(array.stored):
        return "goes on behind its last byte"
    return None


def _last_end(ends: _Array | None, array: _Array, blocks: Blocks) -> int | None:
    """How long a list is, from the array of the ends of its parts; None if that does not tell."""
    cells = _count(array.piece, b"NumberOf" + array.section, None)
    if cells == 0:
        return 0  # VTK reads none of them
    if ends is None:
        return None
    is_any = ends.called == b"faceoffsets"  # of a cell without faces it is -1
    if ends.stored is not None:
        if not re.fullmatch(rb"U?Int(8|16|32|64)", ends.kind):
            return None
        found = blocks.values(ends.stored, ends.kind)
        numbers = [int(found.max()) if is_any else int(found[-1])] if found.size else []
    else:
        words = ends.text.split()
        numbers = [int(word) for word in words if _WHOLE.fullmatch(word) and len(word) < 20]
    if not numbers:
        return None
    return max(0, max(numbers) if is_any else numbers[-1])


def _of_words(array: _Array, wanted: int | None) -> str | None:
    """What VTK does not take as it stands there in a text."""
    kind = array.kind
    if not kind.startswith((b"Int", b"UInt", b"Float", b"Bit")):
        return None
    number = _FLOAT if kind.startswith(b"Float") else _WHOLE
    words = array.text.split()
    if _FUSED.search(array.text):
        words = [part for word in words for part in _parted(word, number)]
    if wanted is not None and len(words) > wanted:
        return f"holds {len(words)} numbers where {wanted} belong"
    if wanted is not None and len(words) < wanted:
        return None  # VTK says so
    if kind == b"Bit":
        other = next((word for word in words if word not in (b"0", b"1")), None)
        return None if other is None else f"holds {_shown(other)}"
    if words and not number.fullmatch(words[-1]):
        return f"ends with {_shown(words[-1])}"
    if _WRAPPED.fullmatch(kind):
        limits = np.iinfo(kind.decode().lower())
        beyond = (word for word in words if _WHOLE.fullmatch(word))
        for word in beyond:
            if len(word) > 20 or not limits.min <= int(word) <= limits.max:
                return f"holds {word.decode()[:40]}, which is not of type {kind.decode()}"
    return None


def _parted(word: bytes, number: re.Pattern[bytes]) -> list[bytes]:
    """The numbers that a word is made of; the word itself if it is not made of numbers."""
    found = number.findall(word)
    return found if b"".join(found) == word else [word]


def _wanted(array: _Array) -> int | None:
    """How many numbers VTK reads; None if that is not known from the tags."""
    section, known = array.section, array.known
    width = _count(known, b"NumberOfComponents", 1)
    if section == b"FieldData":
        tuples = _count(known, b"NumberOfTuples", 0)
    elif section == b"Points":
        tuples, width = _points(array.piece), 3
    elif section == b"Coordinates":
        tuples, width = _along(array.piece, array.number), 1
    elif section == b"PointData":
        tuples = _points(array.piece)
    elif section == b"CellData":
        tuples = _cells(array.piece)
    elif array.called in _PER_CELL:
        of_kind = b"NumberOf" + section
        tuples, width = _count(array.piece, of_kind, None), 1
    else:
        return None
    return None if tuples is None or width is None else tuples * width


def _points(piece: Mapping[bytes, bytes]) -> int | None:
    lengths = _lengths(piece)
    if lengths is None:
        return _count(piece, b"NumberOfPoints", None)
    return math.prod(length + 1 for length in lengths)


def _cells(piece: Mapping[bytes, bytes]) -> int | None:
    lengths = _lengths(piece)
    if lengths is not None:
        return math.prod(max(1, length) for length in lengths)
    if b"NumberOfCells" in piece:
        return _count(piece, b"NumberOfCells", None)
    counts = [_count(piece, b"NumberOf" + kind, 0) for kind in _CELLS - {b"Cells"}]
    return sum(one for one in counts if one is not None)


def _along(piece: Mapping[bytes, bytes], axis: int) -> int | None:
    """How many points there are along an axis."""
    lengths = _lengths(piece)
    return None if lengths is None or axis > 2 else lengths[axis] + 1


def _lengths(piece: Mapping[bytes, bytes]) -> list[int] | None:
    """From the first to the last index along each axis of an extent."""
    words = piece.get(b"Extent", b"").split()
    if len(words) != 6 or not all(_WHOLE.fullmatch(word) and len(word) < 12 for word in words):
        return None
    ends = [int(word) for word in words]
    lengths = [ends[at + 1] - ends[at] for at in (0, 2, 4)]
    return lengths if min(lengths) >= 0 else None


def _count(known: Mapping[bytes, bytes], name: bytes, default: int | None) -> int | None:
    text = known.get(name, b"").strip()
    return int(text) if text.isdigit() and len(text) < 20 else default
