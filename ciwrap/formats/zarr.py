"""Zarr stores of format 2 and 3 in a folder, through zarr-python."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import ConfigError, CorruptFileError, FileLimitError, UnreadableFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import (
    MAX_TEXTS,
    EntrySource,
    FlatReader,
    HistoryReader,
    IterationRule,
    Listing,
    Packing,
    Place,
    box_reader,
    place_of,
    time_axis,
)
from ciwrap.formats.find_outputs import ZARR_MARKERS
from ciwrap.formats.hdf5 import MAX_DEPTH
from ciwrap.formats.reader import (
    AttributeRule,
    Source,
    add_attributes,
    library,
    not_there,
)

# Where xarray names the dimensions in stores of format 2.
_DIMENSIONS = "_ARRAY_DIMENSIONS"
_UNDESCRIBED = "is a folder in which no zarr.json, .zarray or .zgroup says what it holds"
_MAX_METADATA_BYTES = 64 << 20
# What may lie in the folder of an array besides its chunks.
_DESCRIPTIONS = (*ZARR_MARKERS, ".zattrs")


class ZarrReader(HistoryReader):
    """Every array is a variable, named by its path in the store.

    A dimension named `time` (or the only one named so) gives the iterations, and so do groups such
    as `iter_0010`. Packed variables are unpacked; other attributes than those that say what the
    numbers mean are compared only if asked for.
    """

    name: ClassVar[str] = "zarr"
    is_folder: ClassVar[bool] = True

    def is_output(self, path: Path) -> bool:
        return path.suffix.lower() in self.suffixes or any(
            (path / marker).is_file() for marker in ZARR_MARKERS
        )

    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        _check_is_store(path)
        zarr = library("zarr", file=path)
        listing = Listing(path)
        with _quiet():
            # What somebody once consolidated may lack arrays, and tell other shapes and units.
            root = zarr.open(str(path), mode="r", use_consolidated=False)
            walk = _Walk(zarr, listing, rule, attributes)
            walk.node(root, path.stem, (), {})
        if rule.axis not in ("auto", "none") and not walk.has_found_axis:
            raise ConfigError(f"no array has a dimension {rule.axis!r}", key="options.iterations")
        return EntrySource(path, listing.entries, attributes_left_out=listing.left_out)


def _check_is_store(path: Path) -> None:
    if not path.exists():
        raise not_there(path)
    if not path.is_dir():
        raise UnreadableFileError(
            "is not a folder, as a Zarr store is", remedy="give the store's folder"
        )
    names = {one.name for one in path.iterdir()}
    marker = next((one for one in ZARR_MARKERS if one in names), None)
    if marker is None:
        raise CorruptFileError(
            "is not a Zarr store: it holds neither zarr.json nor .zgroup nor .zarray"
        )
    if (path / marker).stat().st_size > _MAX_METADATA_BYTES:
        raise FileLimitError("is too large for a description of arrays", file=path / marker)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without zarr's warnings about dtypes that its specification leaves open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Walk:
    """Lists the arrays below a group."""

    def __init__(
        self, zarr: Any, listing: Listing, rule: IterationRule, attributes: AttributeRule
    ) -> None:
        self._zarr = zarr
        self._listing = listing
        self._rule = rule
        self._attributes = attributes
        self._steps: dict[tuple[str, ...], list[int]] = {}
        self.has_found_axis = False

    def node(
        self,
        node: Any,
        stem: str,
        above: tuple[str, ...],
        inside: Mapping[tuple[int, int], str],
        parent: Any = None,
    ) -> None:
        """A group, or an array named `stem` in the group `parent`.

        inside: the folders of the groups that it is in, and their paths.
        """
        if isinstance(node, self._zarr.Array):
            self._array(node, above, stem, parent)
            return
        here = (*above, stem) if parent is not None else above
        if len(here) > MAX_DEPTH:
            raise FileLimitError("nests its groups too deeply")
        status = (self._listing.path / node.path).stat()
        folder = (status.st_dev, status.st_ino)  # which two ways to one folder share
        if folder in inside:
            # A circle of links: what can be compared is where it leads.
            place = self._place(above, stem)
            self._listing.add_array("/".join(here), f"link to {inside[folder]}", **place.facts)
            return
        inside = {**inside, folder: f"/{'/'.join(here)}"}
        self._all_attributes(dict(node.attrs), here)
        names, others = _member_names(self._listing.path, node)
        for name in others:
            facts = self._place(here, name).facts
            self._listing.add_fault("/".join([*here, name]), _UNDESCRIBED, **facts)
        for name in names:
            with self._listing.one("/".join([*here, name]), **self._place(here, name).facts):
                self.node(node[name], name, here, inside, node)
        if here and not names and not others:
            # Without a variable nobody would see that the group is there.
            place = self._place(above, f"{stem}/")
            self._listing.add_array("/".join([*here, ""]), np.empty(0, dtype=bool), **place.facts)

    def _place(self, above: tuple[str, ...], name: str) -> Place:
        return place_of(above, name) if self._rule.is_on else Place("/".join([*above, name]))

    def _array(self, array: Any, above: tuple[str, ...], name: str, parent: Any) -> None:
        listing = self._listing
        place = self._place(above, name)
        path = "/".join([*above, name])
        attributes = dict(array.attrs)
        self._all_attributes(attributes, (*above, name))
        attributes = _with_fill_value(array, attributes)
        fault = _folder_fault(listing.path / array.path, array)
        if fault is None and "pickle" in _codec_names(array):
            fault = "holds pickled objects; unpickling them could run code, so they are refused"
        dtype, shape = np.dtype(array.dtype), tuple(array.shape)
        is_text = dtype.hasobject or dtype.kind == "T"
        if fault is None and is_text and math.prod(shape) > MAX_TEXTS:
            fault = f"holds more than {MAX_TEXTS} texts of any length"
        if fault is not None:
            listing.add_fault(path, fault, **place.facts)
            return
        dimensions = _dimension_names(array, attributes)
        steps = self._steps_of(array, dimensions, above, parent)
        packing = None if is_text else Packing.of(attributes, dtype)
        labels = self._attributes.labels(dimensions, attributes, packing)
        facts = {**place.facts, "steps": steps, "labels": labels}
        if is_text:
            values = _box_reader(array)((0,) * len(shape), shape).astype(object)
            listing.add_array(path, values, **facts)
            return
        chunk_rows = next(iter(array.chunks)) if shape else 0
        read: Any = FlatReader(shape, dtype, _box_reader(array), chunk_rows).read
        stored = _stored_bytes(listing.path, array)
        if packing is not None:
            dtype, read = packing.dtype, packing.reader(read)
        region = None if packing is not None else _region(listing.path, array, dtype)
        listing.add(path, dtype, shape, read, region=region, stored_bytes=stored, **facts)

    def _steps_of(
        self,
        array: Any,
        dimensions: Sequence[str | None] | None,
        above: tuple[str, ...],
        parent: Any,
    ) -> list[int] | None:
        """The iterations of the array's first axis, if that goes through time."""
        if not dimensions:
            return None
        axis = time_axis(self._rule, [name or "" for name in dimensions], [])
        if axis is None:
            return None
        self.has_found_axis = True
        if dimensions[0] != axis:
            return None
        length = int(array.shape[0])

        def values_of(name: str) -> Any:
            holder = parent[name] if parent is not None and name in parent else None
            if holder is None or tuple(holder.shape) != (length,):
                return None  # before it is read
            return holder[...]

        if self._rule.variable is None or above not in self._steps:
            self._steps[above] = self._rule.along(axis, length, values_of, kind="array")
        return self._steps[above]

    def _all_attributes(self, attributes: Mapping[str, Any], path: tuple[str, ...]) -> None:
        plain = {
            name: value if isinstance(value, (str, bool, int, float)) else json.dumps(value)
            for name, value in attributes.items()
            if name != _DIMENSIONS
        }
        add_attributes(self._listing, plain, path, self._place, self._attributes)


def _member_names(store: Path, group: Any) -> tuple[list[str], list[str]]:
    """The names of the arrays and groups in a group, and of other folders that hold something.

    zarr-python lists none of them if it does not understand one, so their folders are looked at.
    """
    folders = sorted(one for one in (store / group.path).iterdir() if one.is_dir())
    described = [one for one in folders if any((one / name).is_file() for name in ZARR_MARKERS)]
    others = [one for one in folders if one not in described and any(one.iterdir())]
    return [one.name for one in described], [one.name for one in others]


def _dimension_names(array: Any, attributes: Mapping[str, Any]) -> Sequence[str | None] | None:
    """The names of the dimensions, as format 3 or xarray writes them; None if there are none."""
    names = getattr(array.metadata, "dimension_names", None)
    names = attributes.get(_DIMENSIONS) if names is None else names
    if not isinstance(names, (list, tuple)) or len(names) != len(array.shape):
        return None
    return [None if name is None else str(name) for name in names]


def _with_fill_value(array: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, with the missing value that xarray puts elsewhere in stores of format 2."""
    value = array.metadata.to_dict().get("fill_value")
    is_there = array.metadata.zarr_format == 2 and _DIMENSIONS in attributes and value is not None
    return {"_FillValue": array.fill_value, **attributes} if is_there else dict(attributes)


def _box_reader(array: Any) -> Any:
    read_box = box_reader(array)

    def read(start: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
        with _quiet():
            return read_box(start, lengths)

    return read


def _first_chunk(array: Any) -> str:
    """The name of the file of an array's first chunk, below its folder."""
    return str(array.metadata.encode_chunk_key((0,) * len(array.shape)))


def _folder_fault(folder: Path, array: Any) -> str | None:
    """What lies in an array's folder and is none of its chunks.

    zarr-python takes chunks of other names, as some older programs write them, and links that lead
    nowhere for chunks that were never written, and gives the fill value for their numbers.
    """
    chunk = re.compile(re.escape(_first_chunk(array)).replace("0", r"\d+"))
    start = len(str(folder)) + 1
    is_blosc = _codec_names(array)[-1:] == ["blosc"]
    for here, _, names in os.walk(folder):
        for name in names:
            inner = os.path.join(here, name)[start:]  # noqa: PTH118 - there may be many
            if inner in _DESCRIPTIONS or (name.startswith(".") and name not in ZARR_MARKERS):
                continue
            if not chunk.fullmatch(inner) or not (folder / inner).is_file():
                return f"has {inner!r} in its folder, which is none of its chunks"
            if is_blosc and _is_cut_off(folder / inner):
                return f"is damaged: its chunk {inner!r} is cut off"
    return None


def _codec_names(array: Any) -> list[str]:
    """What the chunks are packed with, in this order."""
    described = array.metadata.to_dict()
    codecs = [*(described.get("filters") or ()), *(described.get("codecs") or ())]
    codecs.append(described.get("compressor") or {})
    names = (str(one.get("id") or one.get("name") or "") for one in codecs if isinstance(one, dict))
    return [name.rpartition(".")[2] for name in names if name]


def _is_cut_off(chunk: Path) -> bool:
    """Whether a chunk of blosc ends before it says: blosc would read on in what memory holds."""
    with chunk.open("rb") as file:
        head = file.read(16)
    return len(head) < 16 or int.from_bytes(head[12:], "little") > chunk.stat().st_size


def _stored_bytes(path: Path, array: Any) -> int | None:
    """Bytes in the array's files, looked up only where the array claims much."""
    if array.nbytes <= 1 << 30:
        return None
    found: int = sum(one.stat().st_size for one in (path / array.path).rglob("*") if one.is_file())
    return found


def _region(path: Path, array: Any, dtype: np.dtype[Any]) -> FileRegion | None:
    """The chunk's file, for an array of a single chunk as it is."""
    if dtype.names is not None or dtype.hasobject or list(array.chunks) != list(array.shape):
        return None
    described = array.metadata.to_dict()
    if described.get("zarr_format") == 2:
        is_plain = not described.get("filters") and not described.get("compressor")
        is_plain = is_plain and described.get("order") == "C"
    else:
        codecs = described.get("codecs") or []
        is_plain = len(codecs) == 1 and codecs[0].get("name") == "bytes"
        # The dtype is the native one, whatever order the bytes have.
        order = (codecs[0].get("configuration") or {}).get("endian", "little") if codecs else ""
        is_plain = is_plain and (dtype.itemsize == 1 or order == "little")
    file = path / array.path / _first_chunk(array)
    if not is_plain or not file.is_file() or file.stat().st_size != array.nbytes:
        return None
    return FileRegion(str(file), 0, int(array.nbytes))
