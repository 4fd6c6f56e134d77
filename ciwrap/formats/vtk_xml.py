"""VTK's XML files: .vti, .vtr, .vts, .vtu and .vtp.

An array is text, or base64, or it lies behind the XML (in base64 or as it is) at an offset after an
underscore. But for text, a header says how many bytes it has; of a compressed array how many blocks
there are, how long they are, and how long each is as stored. Anything else is refused.
Source: "VTK XML Format Details" in VTK's documentation.
"""

from __future__ import annotations

import base64
import lzma
import math
import re
import zlib
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import array_of_texts
from ciwrap.formats.reader import InputFile, library
from ciwrap.formats.vtk_arrays import (
    POLYHEDRON,
    Array,
    Grid,
    Piece,
    array_of,
    cells_of,
    faces_in,
    labels_from,
    numbers,
    types_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from numpy.typing import NDArray

    from ciwrap.formats.vtk_arrays import Extent

# By suffix: the element, how its points are given, and its kinds of cells in the order of the
# arrays over them.
GRIDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    ".vti": ("ImageData", "", ()),
    ".vtr": ("RectilinearGrid", "Coordinates", ()),
    ".vts": ("StructuredGrid", "Points", ()),
    ".vtu": ("UnstructuredGrid", "Points", ("Cells",)),
    ".vtp": ("PolyData", "Points", ("Verts", "Lines", "Strips", "Polys")),
}
_HAVE_EXTENT = ("ImageData", "StructuredGrid")
_TYPES = {
    "Int8": "i1", "Int16": "i2", "Int32": "i4", "Int64": "i8", "Float32": "f4", "Float64": "f8",
    "UInt8": "u1", "UInt16": "u2", "UInt32": "u4", "UInt64": "u8",
}  # fmt: skip
_PACKERS = ("", "vtkZLibDataCompressor", "vtkLZ4DataCompressor", "vtkLZMADataCompressor")
_FACES = ("face_connectivity", "face_offsets", "polyhedron_to_faces", "polyhedron_offsets")
_PER_CELL = ("offsets", "types", "faceoffsets", "polyhedron_offsets")
_NO_TURN = "1 0 0 0 1 0 0 0 1"
_APPENDED = re.compile(rb"<AppendedData\s[^<>]*>\s*_")
_END = re.compile(rb"</AppendedData\s*>\s*</VTKFile\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)
_END_BYTES = 4096
_FILLING = b"\0 \t\r\n"  # what may stand between two arrays
_FIRST_BYTES = 1 << 16
_MOST_NAMES = 1000


def bad(problem: str) -> CorruptFileError:
    return CorruptFileError(problem)


class XmlFile:
    """An XML file of VTK. Raises CorruptFileError and what `InputFile` raises."""

    def __init__(self, path: Path) -> None:
        self.path, self._start, self._end = path, 0, 0
        self.root = _parsed(self._split())
        known = self.root.attrib
        word, self._packer = known.get("header_type", "UInt32"), known.get("compressor", "")
        if word not in ("UInt32", "UInt64") or self._packer not in _PACKERS:
            raise bad(f"has headers of type {word[:20]!r}, or is packed by {self._packer[:60]!r}")
        self._is_swapped = known.get("byte_order") == "BigEndian"
        if known.get("byte_order", "LittleEndian") not in ("LittleEndian", "BigEndian"):
            raise bad("has a byte order that is not known")
        self._word = self._dtype(word)
        behind = self.root.find("AppendedData")
        self._is_base64 = behind is not None and behind.get("encoding") == "base64"
        offsets = (one.get("offset", "") for one in self.root.iter())
        self._offsets = sorted({int(one) for one in offsets if one.strip().isdecimal()})

    def _split(self) -> bytes:
        """The XML; and finds where the appended data begin and end."""
        file, count = InputFile(self.path), _FIRST_BYTES
        while (found := _APPENDED.search(head := file.read_some(0, count))) is None:
            if count >= file.byte_count:
                return head
            count *= 8
        first = max(found.end(), file.byte_count - _END_BYTES)
        end = _END.search(file.read_some(first, _END_BYTES))
        if end is None:
            raise bad("does not end with </AppendedData></VTKFile>")
        self._start, self._end = found.end(), first + end.start()
        return head[: found.end() - 1] + b"</AppendedData></VTKFile>"

    def _dtype(self, kind: str) -> np.dtype[Any]:
        if kind not in _TYPES:
            raise bad(f"is of type {kind[:20]!r}, which is not known")
        return np.dtype(f"{'>' if self._is_swapped else '<'}{_TYPES[kind]}")

    def only(self, tag: str, *others: str) -> Element:
        """What the file holds, beside others that may be there."""
        found = children(self.root, (tag, *others)).get(tag)
        if found is None:
            raise bad(f"holds no {tag}")
        return found

    def arrays_in(
        self, section: str, element: Element | None, count: int | None, nameless: str = "Array {}"
    ) -> dict[str, Array]:
        """The arrays of an element, as `section/NAME`. count: how many tuples each has; None: as it
        says itself.
        """
        found: dict[str, Array] = {}
        for number, one in enumerate(element if element is not None else ()):
            name = f"{section}/{one.get('Name') or nameless.format(number)}"
            if one.tag not in ("DataArray", "Array") or name in found:
                raise bad(f"has two arrays named {ascii(name)[:60]}, or a {one.tag[:40]} for one")
            says = count is None and one.get("NumberOfTuples") is not None
            found[name] = self.array(one, whole_number(one, "NumberOfTuples") if says else count)
        return found

    def fields_in(self, element: Element | None) -> dict[str, Array]:
        return self.arrays_in("field_data", element, None, "array_{}")

    def array(self, element: Element, tuples: int | None) -> Array:
        """An array. tuples: how many it has; None if nothing but its own length says so."""
        try:
            return self._array(element, tuples)
        except CorruptFileError as error:
            error.blame(variable=element.get("Name"))
            raise

    def _array(self, element: Element, tuples: int | None) -> Array:
        kind = element.get("type", "")
        width = whole_number(element, "NumberOfComponents", 1)
        count = None if tuples is None else tuples * width
        is_text = _form(element) == "ascii"
        if "TimeStep" in element.attrib or width == 0 or (is_text and "offset" in element.attrib):
            raise bad("has no components, or is one of several times, or in two places")
        keys = {one.get("name"): (one.text or "").strip() for one in element}
        components = [element.get(f"ComponentName{n}") for n in range(min(width, _MOST_NAMES))]
        labels = labels_from(keys.get("UNITS_LABEL"), components)
        if kind == "String":
            values: NDArray[Any] = array_of_texts(_texts(self._bytes(element, None)))
        elif kind == "Bit":
            values = self._bits(element, count)
        else:
            dtype = self._dtype(kind)
            size = None if count is None else count * dtype.itemsize
            region = self._region(element, size, dtype.itemsize)
            if region is not None:
                count = region.byte_count // dtype.itemsize
                shape = (count,) if width == 1 else (count // width, width)
                return Array(dtype, shape, region=region, labels=labels)
            if is_text:
                values = numbers(_words(element), dtype.newbyteorder("<"))
            else:
                values = np.frombuffer(self._bytes(element, size), dtype)
                values = values.astype(dtype.newbyteorder("<"))
        if values.size % width or count not in (None, values.size):
            raise bad(f"holds {values.size} numbers or texts where {count} belong")
        return array_of(values if width == 1 else values.reshape(-1, width), labels)

    def _bits(self, element: Element, count: int | None) -> NDArray[Any]:
        if _form(element) == "ascii":
            return numbers(_words(element), np.dtype("u1"), most=1)
        size = None if count is None else -(-count // 8)
        return np.unpackbits(np.frombuffer(self._bytes(element, size), "u1"))[:count]

    def _place(self, element: Element) -> tuple[int, int]:
        """Where an appended array is in the file: its first byte, and where the next one begins."""
        offset = element.get("offset", "").strip()
        if _form(element) != "appended" or not offset.isdecimal() or not self._start:
            raise bad(f"has no format that is known, or the offset {offset[:20]!r}")
        if _words(element):
            raise bad("has something beside its appended data")
        later = (self._start + one for one in self._offsets if one > int(offset))
        return self._start + int(offset), min(next(later, self._end), self._end)

    def _region(self, element: Element, size: int | None, item: int) -> FileRegion | None:
        """Where an array lies that is stored as it is; None for others."""
        is_plain = not (self._packer or self._is_base64 or self._is_swapped)
        if not is_plain or _form(element) != "appended":
            return None
        first, end = self._place(element)
        head = self._word.itemsize
        length = self._header(self._read(first, min(end, first + head)), 1)[0]
        if length > end - first - head or length % item or size not in (None, length):
            raise bad(f"holds {length} bytes where {size} belong, or is cut off")
        if self._read(first + head + length, end).strip(_FILLING):
            raise bad("is followed by data that belong to no array")
        return FileRegion(str(self.path), first + head, length)

    def _bytes(self, element: Element, size: int | None) -> bytes:
        """The bytes of an array, unpacked. size: how many there have to be."""
        form = _form(element)
        if form == "ascii":
            # A byte above 127 is a number below 0.
            return (numbers(_words(element), np.dtype("i2"), most=255) & 255).astype("u1").tobytes()
        is_inline = form == "binary" and "offset" not in element.attrib
        data = b"".join(_words(element)) if is_inline else self._read(*self._place(element))
        if is_inline or self._is_base64:
            data = _decoded(data)
        if is_inline and not data and not size:
            return b""
        found, end = self._unpacked(data, size)
        rest = data[end:] if is_inline else data[end:].strip(_FILLING)
        if size not in (None, len(found)) or rest:
            raise bad(f"holds {len(found)} bytes where {size} belong, or more after them")
        return found

    def _read(self, first: int, end: int) -> bytes:
        return InputFile(self.path).read_some(first, end - first)

    def _header(self, data: bytes, count: int) -> list[int]:
        size = count * self._word.itemsize
        if len(data) < size:
            raise bad("is cut off")
        return [int(word) for word in np.frombuffer(data[:size], self._word)]

    def _unpacked(self, data: bytes, size: int | None) -> tuple[bytes, int]:
        """What an array holds, and where it ends."""
        word, count = self._word.itemsize, self._header(data, 1)[0]
        if not self._packer:
            if word + count > len(data):
                raise bad("is cut off")
            return data[word : word + count], word + count
        if count == 0:
            return b"", 3 * word
        _, length, last, *packed = self._header(data, 3 + count)
        lengths = [length] * (count - 1) + [last or length]
        if size not in (None, sum(lengths)):
            raise bad(f"holds {sum(lengths)} bytes where {size} belong")
        blocks, at = [], word * (3 + count)
        for wanted, part in zip(lengths, packed, strict=True):
            blocks.append(self._unpack(data[at : at + part], wanted))
            at += part
            if len(blocks[-1]) != wanted or at > len(data):
                raise bad("has a block that cannot be unpacked")
        return b"".join(blocks), at

    def _unpack(self, data: bytes, length: int) -> bytes:
        if self._packer == "vtkLZ4DataCompressor":
            lz4 = library("lz4.block", file=self.path)
            return bytes(lz4.decompress(data, uncompressed_size=length))
        is_zlib = self._packer == "vtkZLibDataCompressor"
        unpacker: Any = zlib.decompressobj() if is_zlib else lzma.LZMADecompressor()
        found: bytes = unpacker.decompress(data, length + 1)
        return found if unpacker.eof else b""


def _decoded(text: bytes) -> bytes:
    """Base64, of which some programs encode the header by itself, others together with the rest."""
    try:
        parts = re.findall(rb"[^=]+=*", b"".join(text.split()))
        return b"".join(base64.b64decode(part, validate=True) for part in parts)
    except ValueError as error:
        raise bad(f"is no base64: {error}") from error


def _form(element: Element) -> str:
    return element.get("format", "appended" if "offset" in element.attrib else "ascii")


def _words(element: Element) -> list[bytes]:
    """The text of an array, which stands before what is said of it."""
    if any(one.tag != "InformationKey" or (one.tail or "").strip() for one in element):
        raise bad("holds something besides its numbers")
    return (element.text or "").encode().split()


def _texts(data: bytes) -> list[str]:
    """Texts are their bytes, with a zero behind each."""
    *texts, rest = data.split(b"\0")
    if rest:
        raise bad("ends within a text")
    return [one.decode("utf-8", "surrogateescape") for one in texts]


def _parsed(text: bytes) -> Element:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise bad(f"is not complete XML: {error}") from error
    if root.tag != "VTKFile" or b"<!DOCTYPE" in text:
        raise bad(f"is XML of another kind: {ascii(root.tag)[:60]}")
    return root


def children(element: Element, known: Collection[str], many: str = "") -> dict[str, Element]:
    """The elements in one, by name; of the kind `many` there may be several, which are left out.

    Raises CorruptFileError for one that is not known, and for another one twice.
    """
    found: dict[str, Element] = {}
    for one in element:
        if one.tag != many:
            if one.tag not in known or one.tag in found:
                raise bad(f"its {element.tag} holds {one.tag[:40]!r}, which is not known, or twice")
            found[one.tag] = one
    return found


def whole_number(element: Element, name: str, default: int | None = None) -> int:
    text = element.get(name, str(default)).strip()
    if not re.fullmatch(r"\d{1,18}", text):
        raise bad(f"its {element.tag} has the {name} {ascii(text)[:40]}")
    return int(text)


def extent_of(element: Element, name: str) -> Extent:
    words = element.get(name, "").split()
    if len(words) != 6 or not all(re.fullmatch(r"-?\d{1,10}", word) for word in words):
        raise bad(f"its {element.tag} has no {name} of six whole numbers")
    first_x, last_x, first_y, last_y, first_z, last_z = map(int, words)
    return first_x, last_x, first_y, last_y, first_z, last_z


def is_within(extent: Extent, whole: Extent) -> bool:
    return all(whole[at] <= extent[at] and extent[at + 1] <= whole[at + 1] for at in (0, 2, 4))


def facts_of(grid: Element) -> dict[str, Array]:
    """Origin, spacing and direction of an image; a direction as usual is none."""
    found: dict[str, Array] = {}
    if grid.tag.endswith("ImageData"):
        given = (("Origin", "0 0 0"), ("Spacing", "1 1 1"), ("Direction", _NO_TURN))
        for name, default in given:
            values = numbers(grid.get(name, default).encode().split(), np.dtype("<f8"))
            shape = (3, 3) if name == "Direction" else (3,)
            found[name.lower()] = array_of(values.reshape(shape))
        if (found["direction"].values == np.eye(3)).all():
            del found["direction"]
    return found


def read_grid(path: Path) -> Grid:
    """The pieces of a file. Raises CorruptFileError and what `InputFile` raises."""
    file = XmlFile(path)
    tag, place, kinds = GRIDS[path.suffix.lower()]
    grid = file.only(tag, "AppendedData")
    fields = file.fields_in(children(grid, ("FieldData",), "Piece").get("FieldData"))
    whole = None if kinds else extent_of(grid, "WholeExtent")
    pieces = [_piece(file, one, whole, place, kinds) for one in grid.findall("Piece")]
    if not pieces:
        raise bad("holds no piece")
    return Grid(pieces, {**fields, **facts_of(grid)}, whole, tag in _HAVE_EXTENT)


def _piece(
    file: XmlFile, element: Element, whole: Extent | None, place: str, kinds: Sequence[str]
) -> Piece:
    inner = children(element, ("PointData", "CellData", place, *kinds))
    extent = None
    if whole is None:
        points = whole_number(element, "NumberOfPoints")
        counts = tuple(whole_number(element, f"NumberOf{kind}", 0) for kind in kinds)
    else:
        extent = extent_of(element, "Extent")
        lengths = [max(0, extent[axis + 1] - extent[axis] + 1) for axis in (0, 2, 4)]
        points = math.prod(lengths)
        counts = (math.prod(max(1, one - 1) for one in lengths) if points else 0,)
        if points and not is_within(extent, whole):
            raise bad(f"has a piece {extent} beyond its WholeExtent {whole}")
    arrays = file.arrays_in("point_data", inner.get("PointData"), points)
    arrays.update(file.arrays_in("cell_data", inner.get("CellData"), sum(counts)))
    where = list(inner.get(place, ()))
    if points and place and len(where) != (1 if place == "Points" else 3):
        raise bad("does not say by one array, or three of coordinates, where its points are")
    if place == "Points":
        empty = array_of(np.zeros((0, 3), "<f4"))
        arrays["points"] = file.array(where[0], points) if where else empty
        if arrays["points"].shape[1:] != (3,):
            raise bad("has points without three components each")
    elif place:
        for name, one, length in zip("xyz", where, lengths, strict=True):
            # VTK writes a coordinate even where there are no points.
            arrays[name] = file.array(one, length) if points else array_of(np.zeros(0))
    for kind, count in zip(kinds, counts, strict=False):
        arrays.update(_cells(file, list(inner.get(kind, ())), kind.lower(), count))
    return Piece(arrays, points, counts, extent)


def _cells(file: XmlFile, elements: Sequence[Element], kind: str, count: int) -> dict[str, Array]:
    """The points of each cell, one after the other, and where these begin and end."""
    allowed = {"connectivity", *_PER_CELL, *_FACES, "faces"}
    needed = {"connectivity", "offsets", *(["types"] if kind == "cells" else [])}
    known = {one.get("Name", ""): one for one in elements}
    if len(known) != len(elements) or not set(known) <= allowed or (count and needed - set(known)):
        raise bad(f"does not describe its {kind} by one array of each kind")
    arrays = {
        name: file.array(one, count if count and name in _PER_CELL else None)
        for name, one in known.items()
    }
    if not count:
        if any(one.shape[0] for one in arrays.values()):
            raise bad(f"describes {kind}, of which it says that there are none")
        return {}
    found = cells_of(kind, arrays["connectivity"], arrays["offsets"].values)
    if kind == "cells":
        types = types_of(arrays["types"].values)
        found["cells/types"] = array_of(types)
        found.update(_faces(types, {name: one.values for name, one in arrays.items()}))
    return found


def _faces(types: NDArray[Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """The faces of all polyhedra, as `faces_in` has them."""
    where = np.flatnonzero(types == POLYHEDRON)
    if set(_FACES) <= set(arrays):
        points, ends, faces, of_cell = (arrays[name].tolist() for name in _FACES)
        stream, starts = list[int](), [0, *ends]
        for cell in where.tolist():
            own = faces[of_cell[cell - 1] if cell else 0 : of_cell[cell]]
            stream.append(len(own))
            for face in own:
                part = points[starts[face] : ends[face]]
                stream += [len(part), *part]
        found = np.array(stream, "<i8")
        is_whole = faces == list(range(len(ends))) and len(stream) == (
            where.size + len(ends) + len(points)
        )
    else:
        found = arrays.get("faces", np.zeros(0)).astype("<i8")
        ends = arrays.get("faceoffsets", np.zeros(types.size))[where].tolist()
        is_whole = faces_in(found)[1] == ends
    if not is_whole or (where.size and not found.size):
        raise bad("does not describe the faces of its polyhedra, each once and in order")
    return {"cells/faces": array_of(found)} if where.size else {}
