"""HDF5 files, through h5py: what their groups and links lead to."""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.closing import closed_on_error
from ciwrap.errors import ConfigError, FileLimitError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.attributes import add_attributes
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import check_is_file
from ciwrap.readers.hdf5_datasets import (
    OpenDatasets,
    add_dataset,
    dimension_names,
    file_number,
    followed,
    type_text,
)
from ciwrap.readers.history import HistoryReader, IterationRule, Place, place_of
from ciwrap.readers.labels import plain_name
from ciwrap.readers.look import look_first
from ciwrap.readers.openpmd import CONSTANT, TIMES, add_constant
from ciwrap.readers.optional import library

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.readers.attributes import AttributeRule
    from ciwrap.readers.base import Source

MAX_DEPTH = 100
_CACHE_BYTES = 32 << 20


class Hdf5Reader(HistoryReader):
    """Every name that leads to a dataset is a variable, named by its path in the file; so a dataset
    that a link leads to has several.

    Groups such as `iter_0010` and `rank_2` (also openPMD's numbered ones) give iteration and rank.
    Other attributes than those that say what the numbers mean are compared only if `attributes`
    asks for it.
    """

    name: ClassVar[str] = "hdf5"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["hdf5"].suffixes
    # No dimension goes through time: groups alone tell iterations, and number them.
    option_names: ClassVar[tuple[str, ...]] = ("iterations", "attributes")

    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        if rule.axis not in ("auto", "none"):
            raise ConfigError(
                "must be auto or none, since in HDF5 groups alone tell iterations"
                " ('format: netcdf' knows dimensions)",
                file=path,
                key="options.iterations",
            )
        check_is_file(path)
        library("h5py", "hdf5", file=path)
        look_first(path, partial(_source, path, rule, attributes), has_open_files)
        return _source(path, rule, attributes)


def has_open_files() -> bool:
    """Whether HDF5 holds a file open in this process, whoever opened it."""
    h5f = import_module("h5py").h5f
    return bool(h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_FILE))


def _source(path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
    h5py = library("h5py", "hdf5", file=path)
    file = open_file(h5py, path)
    listing = Listing(path)
    with closed_on_error(file.close), guarded(path):
        _Walk(h5py, file, listing, rule, attributes).root(file)
    return EntrySource(path, listing.entries, file.close)


def open_file(h5py: Any, path: Path) -> Any:
    """The open h5py.File. Raises CorruptFileError."""
    with guarded(path):
        return h5py.File(path, "r", rdcc_nbytes=_CACHE_BYTES, locking="best-effort")


class _Walk:
    """Lists every name below a group, whether or not another name leads to the same object."""

    def __init__(
        self,
        h5py: Any,
        file: Any,
        listing: Listing,
        rule: IterationRule,
        attributes: AttributeRule,
    ) -> None:
        self._h5py = h5py
        self._opened = OpenDatasets(file)
        self._listing = listing
        self._rule = rule
        self._attributes = attributes
        self._file_number = file_number(h5py, file)
        self._is_openpmd = "openPMD" in file.attrs
        self._digits_after = ("data",) if rule.is_on and self._is_openpmd else ()

    def root(self, file: Any) -> None:
        self._group(file, (), {self._address(file): "/"})

    def _group(self, group: Any, above: tuple[str, ...], inside: Mapping[int, str]) -> None:
        """inside: the groups that this one is in, itself among them, and their paths."""
        if len(above) > MAX_DEPTH:
            raise FileLimitError("nests its groups too deeply", file=self._listing.path)
        self._all_attributes(group, above)
        if self._is_openpmd and len(above) == 2 and above[0] == "data" and above[1].isdecimal():
            self._times(group, above)
        names = list(group)
        for name in names:
            called = plain_name(name)
            place = self._place(above, called)
            with self._listing.one("/".join([*above, called]), **place.facts):
                self._member(group, name, above, inside)
        if above and not names and self._is_openpmd and set(group.attrs) >= CONSTANT:
            self._constant(group, above)
        elif above and not names:
            # Without a variable nobody would see that the group is there.
            place = self._place(above[:-1], f"{above[-1]}/")
            path = "/".join([*above, ""])
            self._listing.add_array(path, np.empty(0, dtype=bool), **place.facts)

    def _times(self, iteration: Any, path: tuple[str, ...]) -> None:
        for name in TIMES:
            if name in iteration.attrs and name not in iteration:
                facts = self._place(path, name).facts
                with self._listing.one("/".join([*path, name]), **facts):
                    value = iteration.attrs[name]
                    self._listing.add_array("/".join([*path, name]), value, **facts)

    def _constant(self, group: Any, path: tuple[str, ...]) -> None:
        """A component of openPMD all of whose elements have the value that an attribute says."""
        facts = self._place(path[:-1], path[-1]).facts
        add_constant(self._listing, "/".join(path), group.attrs, self._attributes, **facts)

    def _member(
        self, group: Any, name: str | bytes, above: tuple[str, ...], inside: Mapping[int, str]
    ) -> None:
        called = plain_name(name)
        path, place = "/".join([*above, called]), self._place(above, called)
        item = followed(self._h5py, group, name, self._file_number)
        if isinstance(item, str):
            self._listing.add_fault(path, item, **place.facts)
        elif isinstance(item, self._h5py.Group):
            address = self._address(item)
            if address in inside:
                # A circle: what can be compared is where it leads.
                self._listing.add_array(path, f"link to {inside[address]}", **place.facts)
            else:
                self._group(item, (*above, called), {**inside, address: f"/{path}"})
        elif isinstance(item, self._h5py.Dataset):
            # Units may stand at the group that holds the components of one quantity.
            known = ChainMap(item.attrs, group.attrs)
            labels = self._attributes.labels(dimension_names(item), known)
            opened, listing = self._opened, self._listing
            add_dataset(self._h5py, opened, listing, item, path, place, labels=labels)
            self._all_attributes(item, (*above, called))
        else:
            self._listing.add_array(
                path, f"datatype {type_text(self._h5py, item.dtype)}", **place.facts
            )

    def _address(self, item: Any) -> int:
        return int(self._h5py.h5o.get_info(item.id).addr)

    def _place(self, above: tuple[str, ...], name: str) -> Place:
        if not self._rule.is_on:
            return Place("/".join([*above, name]))
        return place_of(above, name, digits_after=self._digits_after)

    def _all_attributes(self, item: Any, path: tuple[str, ...]) -> None:
        if self._attributes.has_all:
            add_attributes(self._listing, item.attrs, path, self._place)
