"""HDF5 files, through h5py."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ciwrap.closing import closed_on_error
from ciwrap.errors import CorruptFileError, FileLimitError
from ciwrap.readers.base import FileRegion, Source
from ciwrap.readers.boxes import FlatReader, box_reader
from ciwrap.readers.entries import EntrySource, Listing, guarded, is_plain
from ciwrap.readers.files import check_is_file
from ciwrap.readers.history import HistoryReader, IterationRule, Place, place_of
from ciwrap.readers.optional import library
from ciwrap.readers.probe import look_first

if TYPE_CHECKING:
    from pathlib import Path

MAX_DEPTH = 100
# Texts of variable length are read whole, to learn how wide they are.
MAX_TEXTS = 1 << 20
_CACHE_BYTES = 32 << 20


class Hdf5Reader(HistoryReader):
    """Every dataset is a variable, named by its path in the file.

    Groups such as `iter_0010` and `rank_2` (also openPMD's numbered ones) give iteration and rank.
    Attributes hold dates and versions and are compared only if `attributes` asks for it.
    """

    name: ClassVar[str] = "hdf5"
    suffixes: ClassVar[tuple[str, ...]] = (".h5", ".hdf5", ".he5", ".hdf")

    def open_history(self, path: Path, rule: IterationRule, *, has_attributes: bool) -> Source:
        check_is_file(path)
        h5py = library("h5py", "hdf5", file=path)
        look_first(path, lambda: _source(h5py, path, rule, has_attributes=has_attributes))
        return _source(h5py, path, rule, has_attributes=has_attributes)


def _source(h5py: Any, path: Path, rule: IterationRule, *, has_attributes: bool) -> Source:
    file = open_file(h5py, path)
    listing = Listing(path)
    with closed_on_error(file.close), guarded(path):
        _Walk(h5py, file, listing, rule, has_attributes=has_attributes).group(file, ())
    return EntrySource(path, listing.entries, file.close)


def open_file(h5py: Any, path: Path) -> Any:
    """The open h5py.File. Raises CorruptFileError."""
    with guarded(path):
        return h5py.File(path, "r", rdcc_nbytes=_CACHE_BYTES, locking="best-effort")


class _Walk:
    """Lists the datasets below a group, each once however many links lead to it."""

    def __init__(
        self, h5py: Any, file: Any, listing: Listing, rule: IterationRule, *, has_attributes: bool
    ) -> None:
        self._h5py = h5py
        self._listing = listing
        self._rule = rule
        self._has_attributes = has_attributes
        self._seen: set[Any] = set()
        is_openpmd = rule.is_on and "openPMD" in file.attrs
        self._digits_after = ("data",) if is_openpmd else ()

    def group(self, group: Any, above: tuple[str, ...]) -> None:
        if len(above) > MAX_DEPTH:
            raise FileLimitError("nests its groups too deeply", file=self._listing.path)
        self._attributes(group, above)
        for name in group:
            link = group.get(name, getlink=True)
            place = self._place(above, name)
            path = "/".join([*above, name])
            if isinstance(link, self._h5py.SoftLink):
                continue  # what it leads to is listed where it is
            if isinstance(link, self._h5py.ExternalLink):
                self._listing.add_fault(
                    path, "is a link to another file, which is not followed", **place.facts
                )
                continue
            item = group[name]
            key = self._h5py.h5o.get_info(item.id).addr
            if key in self._seen:
                continue
            self._seen.add(key)
            if isinstance(item, self._h5py.Group):
                self.group(item, (*above, name))
            elif isinstance(item, self._h5py.Dataset):
                add_dataset(self._h5py, self._listing, item, path, place)
                self._attributes(item, (*above, name))

    def _place(self, above: tuple[str, ...], name: str) -> Place:
        if not self._rule.is_on:
            return Place("/".join([*above, name]))
        return place_of(above, name, digits_after=self._digits_after)

    def _attributes(self, item: Any, path: tuple[str, ...]) -> None:
        if self._has_attributes:
            add_attributes(self._listing, item.attrs, path, self._place)


def add_attributes(listing: Listing, attributes: Any, path: tuple[str, ...], place: Any) -> None:
    """Attributes as small variables `path@name`."""
    above, last = path[:-1], path[-1] if path else ""
    for name in attributes:
        at = place(above, f"{last}@{name}")
        key = "/".join([*above, f"{last}@{name}"])
        value = np.asarray(attributes[name])
        if value.dtype.hasobject and not all(
            isinstance(one, (str, bytes)) for one in value.reshape(-1).tolist()
        ):
            listing.add_fault(key, "is an attribute that is neither number nor text", **at.facts)
        else:
            listing.add_array(key, value, **at.facts)


def add_dataset(
    h5py: Any,
    listing: Listing,
    dataset: Any,
    name: str,
    place: Place,
    *,
    steps: list[int] | None = None,
) -> None:
    """Lists an h5py dataset, by the iterations of its first axis where `steps` names them."""
    facts = {**place.facts, "steps": steps}
    dtype, shape = dataset.dtype, dataset.shape
    fault = _storage_fault(h5py, dataset)
    if fault is not None:
        facts.pop("steps")
        listing.add_fault(name, fault, **facts)
    elif shape is None:  # a null dataspace
        listing.add(name, dtype, (0,), lambda *_: np.empty(0, dtype), **place.facts)
    elif h5py.check_string_dtype(dtype) is not None and dtype.hasobject:
        if dataset.size > MAX_TEXTS:
            facts.pop("steps")
            listing.add_fault(name, f"holds more than {MAX_TEXTS} texts of any length", **facts)
        else:
            listing.add_array(name, np.asarray(dataset[()], dtype=object), **facts)
    elif dtype.hasobject:
        facts.pop("steps")
        what = "holds references or lists of any length, which have no defined comparison"
        listing.add_fault(name, what, **facts)
    else:
        # Chunks may lack what was never written, and compress without limit.
        stored = dataset.id.get_storage_size()
        chunk_rows = dataset.chunks[0] if dataset.chunks and shape else 0
        flat = FlatReader(shape, dtype, box_reader(dataset), chunk_rows)
        listing.add(
            name,
            dtype,
            shape,
            flat.read,
            region=_region(listing.path, dataset),
            stored_bytes=stored,
            **facts,
        )


def _storage_fault(h5py: Any, dataset: Any) -> str | None:
    """Why the bytes of a dataset cannot be had, None if they can."""
    if dataset.is_virtual:
        return "is a virtual dataset, put together from other files; compare those"
    if dataset.external:
        return "keeps its data in other files, which are not read"
    layout = dataset.id.get_create_plist()
    for number in range(layout.get_nfilters()):
        code, _, _, text = layout.get_filter(number)
        if not h5py.h5z.filter_avail(code):
            with contextlib.suppress(ImportError):
                import_module("hdf5plugin")  # importing it makes its filters known
        if not h5py.h5z.filter_avail(code):
            known = text.decode("utf-8", "replace") or "unnamed"
            return f"is packed with the HDF5 filter {code} ({known}), which is not installed"
    return None


def _region(path: Path, dataset: Any) -> FileRegion | None:
    """Where a contiguous dataset lies; None if it is stored otherwise."""
    offset = dataset.id.get_offset()
    if offset is None or dataset.chunks is not None or not is_plain(dataset.dtype):
        return None
    if dataset.nbytes != dataset.id.get_storage_size():
        return None
    if offset + dataset.nbytes > path.stat().st_size:
        raise CorruptFileError(
            "ends before its last element", file=path, variable=dataset.name.lstrip("/")
        )
    return FileRegion(str(path), int(offset), int(dataset.nbytes))
