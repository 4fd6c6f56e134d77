"""XDMF: a description in XML of meshes and the data over them, which lie in HDF5 files beside it.

Source: "XDMF Model and Format", versions 2 and 3.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from xml.etree import ElementTree

from msgspec.structs import replace

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    UnsupportedFormatError,
    VariableMissingError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import Entry, EntrySource, Listing
from ciwrap.formats.hdf5 import Hdf5Reader
from ciwrap.formats.reader import CheckedReader, InputFile, Source, guarded, whole_file
from ciwrap.formats.words import numbers_in

if TYPE_CHECKING:
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from ciwrap.arrays.values import Labels

_KINDS = {"Float": "f", "Int": "i", "UInt": "u"}
_ORDERS = {"Native": "<", "Little": "<", "Big": ">"}


class XdmfReader(CheckedReader):
    """`points`, `cells`, `point_data/NAME`, `cell_data/NAME` of each grid, by its name where the
    file has several. Times of a temporal collection are iterations, counted, and the variable
    `time`; other collections are counted, `0/points`. What an HDF5 file holds besides is listed by
    the name of that file.
    """

    name: ClassVar[str] = "xdmf"
    option_names: ClassVar[tuple[str, ...]] = ("iterations",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        file = _Xdmf(Listing(path, options))
        with closed_on_error(file.close):
            file.read()
            left_out = sum(one.attributes_left_out for one in file.sources)
        entries = file.listing.entries
        return EntrySource(path, entries, file.close, attributes_left_out=left_out)

    def companions(self, path: Path) -> tuple[Path, ...]:
        """The files with the data."""
        try:
            items = _parsed(path).iter("DataItem")
        except CiwrapError:
            return ()  # opening it says why
        found = {_heavy_file(item) for item in items}
        return tuple(path.parent / name for name in sorted(found) if name)


def _parsed(path: Path) -> Element:
    data = bytes(whole_file(path))
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise CorruptFileError(f"is not complete XML: {error}") from error
    if root.tag != "Xdmf" or b"<!ENTITY" in data:
        raise CorruptFileError(f"is XML of another kind: {root.tag[:60]!a}")
    return root


def _heavy_file(item: Element) -> str:
    """The file that an item's data are in; '' if they are in the XML."""
    form, text = item.get("Format", "XML").upper(), (item.text or "").strip()
    return {"HDF": text.rpartition(":")[0], "BINARY": text}.get(form, "")


class _Xdmf:
    """A file while it is listed, and the HDF5 files that it names."""

    def __init__(self, listing: Listing) -> None:
        self.listing, self._path = listing, listing.path
        self._files: dict[str, Source] = {}
        self._used: set[tuple[str, str]] = set()

    @property
    def sources(self) -> list[Source]:
        return list(self._files.values())

    def close(self) -> None:
        for source in self.sources:
            source.close()

    def read(self) -> None:
        """Lists all. Raises CorruptFileError, UnsupportedFormatError."""
        grids = _parsed(self._path).findall("Domain/Grid")
        if not grids:
            raise CorruptFileError("holds no Grid")
        for number, grid in enumerate(grids):
            self._grid(grid, f"{grid.get('Name', number)}/" if len(grids) > 1 else "", None)
        for file, source in self._files.items():
            for info in source.variables:
                if (file, info.name) not in self._used:
                    self._add_from(source, info.name, f"{file}/{info.name}", info.shape)

    def _grid(self, grid: Element, begin: str, step: int | None) -> None:
        """Lists a grid, or all of a collection. step: of a history; None outside of one."""
        is_uniform = grid.get("GridType", "Uniform") == "Uniform"
        is_history = not is_uniform and grid.get("CollectionType") == "Temporal"
        if is_history and step is not None:
            raise UnsupportedFormatError("holds a history within a history")
        for number, one in enumerate(grid.findall("Grid")):
            place = (begin, number) if is_history else (f"{begin}{number}/", step)
            self._grid(one, *place)
        for one in grid:
            if one.tag == "Time" and "Value" in one.attrib:
                self._add_array(f"{begin}time", numbers_in([one.attrib["Value"].strip()])[0], step)
            elif is_uniform and one.tag in ("Geometry", "Topology", "Attribute"):
                self._part(one, begin, step)
            elif one.tag.endswith("include") and "href" not in one.attrib:
                pass  # a mesh that stands elsewhere in this file, where it is listed
            elif one.tag not in ("Information", *(() if is_uniform else ("Grid",))):
                raise UnsupportedFormatError(f"holds a {one.tag[:40]!a} that is not read")

    def _part(self, part: Element, begin: str, step: int | None) -> None:
        """Lists a mesh's points or cells, or data over them."""
        center = part.get("Center", "Node").lower()
        over = {"node": "point"}.get(center, center)
        name = {"Geometry": "points", "Topology": "cells"}.get(part.tag)
        name = begin + (name or f"{over}_data/{part.get('Name', 'nameless')}")
        kind = part.get("GeometryType") or part.get("TopologyType") or part.get("Type")
        labels = (("type", kind),) if kind else ()
        items = part.findall("DataItem")
        if len(items) != len(part):
            raise UnsupportedFormatError(
                f"{part.tag} holds something other than a DataItem", variable=name
            )
        if not items:  # a regular mesh, of which there are only its extents
            extents = part.get("Dimensions") or part.get("NumberOfElements") or ""
            self._add_array(name, numbers_in(extents.split(), "<i8"), step, labels)
        for number, item in enumerate(items):
            called = name if len(items) == 1 else f"{name}/{number}"
            with guarded(self._path, called):
                self._item(item, called, step, labels)

    def _item(self, item: Element, name: str, step: int | None, labels: Labels) -> None:
        text, form = (item.text or "").strip(), item.get("Format", "XML").upper()
        if item.get("ItemType", "Uniform") != "Uniform" or "Reference" in item.attrib:
            raise UnsupportedFormatError("is a DataItem made of others, which is not read")
        full, facts = self._place(name, step)
        shape = tuple(numbers_in(item.get("Dimensions", "").split(), "<i8").tolist())
        kind = _KINDS.get(item.get("NumberType") or item.get("DataType") or "Float", "V")
        if form == "HDF":
            heavy, inside = _heavy_file(item), text.rpartition(":")[2].strip("/")
            if heavy not in self._files:
                path = self._path.parent / heavy
                self._files[heavy] = Hdf5Reader().open(path, options={"iterations": "none"})
            self._used.add((heavy, inside))
            self._add_from(self._files[heavy], inside, full, shape, labels=labels, **facts)
        elif form == "XML" and kind != "V":
            values = numbers_in(text.split(), "<f8" if kind == "f" else "<i8")
            self._add_array(name, values.reshape(shape), step, labels)
        elif form == "BINARY" and kind != "V":
            order = _ORDERS[item.get("Endian", "Native")]
            dtype = np.dtype(f"{order}{kind}{item.get('Precision', '4')}")
            file = InputFile(self._path.parent / text)
            read = file.elements(int(item.get("Seek", "0")), dtype.str)
            self.listing.add(full, dtype, shape, read, labels=labels, **facts)
        else:
            raise UnsupportedFormatError(f"is in the format {form[:20]!a}, which is not read")

    def _place(self, name: str, step: int | None) -> tuple[str, dict[str, Any]]:
        """What a variable is called in the file, and where it stands in a history."""
        return (name, {}) if step is None else self.listing.at_step(name, step)

    def _add_array(self, name: str, values: Any, step: int | None, labels: Labels = ()) -> None:
        full, facts = self._place(name, step)
        self.listing.add_array(full, values, labels=labels, **facts)

    def _add_from(self, source: Source, inside: str, name: str, shape: Any, **facts: Any) -> None:
        """Lists a variable of an HDF5 file as another one."""
        try:
            info = source.info(inside)
        except VariableMissingError:
            raise CorruptFileError(f"is {inside[:60]!a}, which {source.path.name} lacks") from None
        if math.prod(shape) != info.element_count:
            raise CorruptFileError(f"has {info.element_count} values, where {shape} are described")
        facts["labels"] = tuple(sorted({*info.labels, *facts.get("labels", ())}))
        info = replace(info, **{"called": None, "name": name, "shape": shape, **facts})
        self.listing.put(Entry(info, partial(source.read, inside)))
