"""Arrays of one name in one place of a file, of which VTK keeps the last one without a word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from ciwrap.errors import CorruptFileError
from ciwrap.readers.files import whole_file
from ciwrap.readers.vtk_library import READERS

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.readers.vtk_library import Element, VtkLibrary

XDMF = (".xdmf", ".xmf")
# Every array of a legacy file but one kind has its type behind its name.
_WORD = re.compile(rb"[A-Za-z][A-Za-z0-9_]{2,19}(?!\S)")
_SECTIONS = {b"point_data", b"cell_data", b"vertex_data", b"edge_data", b"row_data"}
_TYPES = {
    *(b"bit", b"char", b"unsigned_char", b"signed_char", b"short", b"unsigned_short", b"int"),
    *(b"unsigned_int", b"long", b"unsigned_long", b"float", b"double", b"vtkidtype"),
    *(b"vtktypeint64", b"vtktypeuint64", b"string", b"utf8_string", b"variant"),
}
_KINDS = {
    *(b"scalars", b"vectors", b"normals", b"tensors", b"tensors6", b"global_ids"),
    *(b"pedigree_ids", b"edge_flags"),
}
_NEAR_BYTES = 1000


def refuse_twice(vtk: VtkLibrary, path: Path) -> None:
    """Raises CorruptFileError for a legacy or XDMF file that has an array twice.

    Of the XML files VTK itself refuses those.
    """
    suffix = path.suffix.lower()
    if suffix in XDMF:
        _look_in_grids(vtk.xml(path), path)
    elif suffix == ".vtk" or suffix not in READERS:  # which is read as a legacy file
        _look_in_legacy(path)


def _look_in_legacy(path: Path) -> None:
    data = whole_file(path)
    section, seen = b"", set[tuple[bytes, bytes]]()
    for found in _WORD.finditer(data):
        word, start = bytes(found[0]).lower(), found.start()
        if word in _SECTIONS:
            section = word
        elif word == b"vtk" and data[max(0, start - 2) : start] == b"# ":
            section, seen = b"", set()  # of several data sets in a file, the next one begins
        elif name := _named_by(word, data, start):
            if (section, name) in seen:
                raise _twice(unquote_to_bytes(name).decode("utf-8", "replace"), path)
            seen.add((section, name))


def _named_by(word: bytes, data: bytearray, start: int) -> bytes | None:
    """The name of the array of which a word is the type, or COLOR_SCALARS; None if of none."""
    if word == b"color_scalars":
        after = bytes(data[start : start + _NEAR_BYTES]).split()[1:3]
        return after[0] if len(after) == 2 and after[1].isdigit() else None
    if word not in _TYPES:
        return None
    before = [b"", b"", b"", *bytes(data[max(0, start - _NEAR_BYTES) : start]).split()]
    third, second, first = before[-3:]
    if first.isdigit() and (second.isdigit() or third.lower() == b"texture_coordinates"):
        return third if second.isdigit() else second  # an array of a field has two lengths
    return first if second.lower() in _KINDS else None


def _look_in_grids(element: Element, path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for one in element.all("Attribute"):
        key = (one.attributes.get("Center", "Node"), one.attributes.get("Name", ""))
        if key in seen:
            raise _twice(key[1], path)
        seen.add(key)
    for one in element.inner:
        _look_in_grids(one, path)


def _twice(name: str, path: Path) -> CorruptFileError:
    return CorruptFileError(
        f"has two arrays named {ascii(name)[:60]} in one place, of which VTK keeps one",
        file=path,
        remedy="have the program write it once",
    )
