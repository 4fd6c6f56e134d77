"""NetCDF files: the classic formats by themselves, NetCDF-4 through h5netcdf."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.closing import closed_on_error
from ciwrap.errors import ConfigError, UnsupportedFormatError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.attributes import add_attributes
from ciwrap.readers.boxes import FlatReader, box_reader
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile, check_is_file
from ciwrap.readers.hdf5 import has_open_files, open_file
from ciwrap.readers.hdf5_datasets import (
    OpenDatasets,
    add_dataset,
    file_number,
    followed,
    storage_fault,
)
from ciwrap.readers.history import HistoryReader, IterationRule, Place, time_axis
from ciwrap.readers.look import look_first
from ciwrap.readers.netcdf_classic import ClassicFile
from ciwrap.readers.optional import library
from ciwrap.readers.packed import Packing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ciwrap.readers.attributes import AttributeRule
    from ciwrap.readers.base import Source
    from ciwrap.readers.netcdf_classic import ClassicVariable

# What a dataset has that is a dimension, or has some.
_NAMING = ("CLASS", "DIMENSION_LIST", "_Netcdf4Coordinates")
# The kinds of numbers that h5netcdf fills records with that were never written.
_FILLED_IN = "fiu"
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


class NetcdfReader(HistoryReader):
    """Every variable is one, named by its path; the time dimension gives the iterations.

    Packed variables (scale_factor, add_offset) are unpacked. Other attributes than those that say
    what the numbers mean are compared only if `attributes` asks for it.
    """

    name: ClassVar[str] = "netcdf"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["netcdf"].suffixes

    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        check_is_file(path)
        file = InputFile(path)
        with closed_on_error(file.close):
            start = file.read_some(0, len(_HDF5_MAGIC))
            if start.startswith(b"CDF"):
                if start[3:4] not in (b"\x01", b"\x02", b"\x05"):
                    raise UnsupportedFormatError(
                        f"is classic NetCDF of the unknown version {start[3:4]!r}", file=path
                    )
                return _classic(path, file, rule, attributes)
        file.close()
        # Damaged or not, everything else is HDF5's to judge.
        _libraries(path)
        look_first(path, partial(_netcdf4, path, rule, attributes), has_open_files)
        return _netcdf4(path, rule, attributes)


def _classic(path: Path, file: InputFile, rule: IterationRule, attributes: AttributeRule) -> Source:
    classic = ClassicFile(file)
    header = classic.header
    listing = Listing(path)
    unlimited = [] if header.unlimited is None else [header.unlimited]
    axis = _axis(rule, list(header.dimensions), unlimited, path)
    numbers = _Numbers(rule, axis, path)
    by_name = {one.name: one for one in header.variables}
    for one in header.variables:
        with listing.one(one.name):
            steps = None
            if axis is not None and one.dimensions[:1] == (axis,):
                length = header.dimensions[axis]
                steps = numbers.along(length, lambda name: _whole(by_name, classic, name))
            _classic_variable(listing, file, classic, one, steps, attributes)
        if attributes.has_all:
            add_attributes(listing, one.attributes, (one.name,), _place)
    if attributes.has_all:
        add_attributes(listing, header.attributes, (), _place)
    return EntrySource(path, listing.entries, file.close)


def _classic_variable(
    listing: Listing,
    file: InputFile,
    classic: ClassicFile,
    one: ClassicVariable,
    steps: list[int] | None,
    attributes: AttributeRule,
) -> None:
    dtype, read = np.dtype(one.dtype), classic.reader(one)
    packing = Packing.of(one.attributes, dtype)
    labels = attributes.labels(one.dimensions, one.attributes, packing)
    if packing is not None:
        listing.add(
            one.name, packing.dtype, one.shape, packing.reader(read), steps=steps, labels=labels
        )
    elif not steps or not one.is_record:
        region = classic.region(one)
        listing.add(one.name, dtype, one.shape, read, region=region, steps=steps, labels=labels)
    else:
        for record, step in enumerate(steps):
            stretch = classic.record_region(one, record)
            listing.add(
                f"{one.name}[{record}]",
                dtype,
                one.shape[1:],
                file.elements(stretch.offset, one.dtype),
                region=stretch,
                called=one.name,
                iteration=step,
                labels=labels,
            )


def _whole(by_name: Mapping[str, Any], classic: ClassicFile, name: str) -> Any:
    one = by_name.get(name)
    if one is None:
        return None
    return classic.reader(one)(0, int(np.prod(one.shape, dtype=np.int64)))


def _place(above: tuple[str, ...], name: str) -> Place:
    return Place("/".join([*above, name]))


class _Numbers:
    """The iterations along the time axis, found when they are first needed."""

    def __init__(self, rule: IterationRule, axis: str | None, path: Path) -> None:
        self._rule = rule
        self._axis = axis
        self._path = path
        self._steps: list[int] | None = None

    def along(self, length: int, values_of: Callable[[str], Any]) -> list[int]:
        """values_of: as in `IterationRule.along`, which also says what is raised."""
        if self._steps is None:
            self._steps = self._rule.along(self._axis, length, values_of, self._path)
        return self._steps


def _axis(
    rule: IterationRule, names: Sequence[str], unlimited: Sequence[str], path: Path
) -> str | None:
    axis = time_axis(rule, names, unlimited)
    if axis is None and rule.axis not in ("auto", "none"):
        raise ConfigError(
            f"there is no dimension {rule.axis!r} (known: {', '.join(names[:20]) or 'none'})",
            file=path,
            key="options.iterations",
        )
    return axis


def _libraries(path: Path) -> tuple[Any, Any]:
    """h5py and h5netcdf. Raises ReaderPluginError if one is not installed."""
    return library("h5py", "netcdf", file=path), library("h5netcdf", "netcdf", file=path)


def _netcdf4(path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
    h5py, h5netcdf = _libraries(path)
    file = open_file(h5py, path)
    with closed_on_error(file.close), guarded(path):
        # Where this fails h5netcdf leaves half an object behind that complains on its own.
        file.attrs.get("_nc3_strict")
        netcdf = h5netcdf.File(file, "r", phony_dims="sort", decode_vlen_strings=True)
        listing = Listing(path)
        _Walk(h5py, OpenDatasets(file), listing, rule, attributes).group(netcdf, ())

    def finish() -> None:
        netcdf.close()  # leaves the HDF5 file open, and must live as long as its variables
        file.close()

    return EntrySource(path, listing.entries, finish)


class _Walk:
    """Lists the variables of a group and those below it."""

    def __init__(
        self,
        h5py: Any,
        opened: OpenDatasets,
        listing: Listing,
        rule: IterationRule,
        attributes: AttributeRule,
    ) -> None:
        self._h5py = h5py
        self._opened = opened
        self._listing = listing
        self._rule = rule
        self._attributes = attributes
        self._file_number = file_number(h5py, opened.file)

    def group(
        self, group: Any, above: tuple[str, ...], outer: tuple[str, _Numbers] | None = None
    ) -> None:
        """outer: the time axis of the group that this one is in."""
        axis, numbers = self._time(group, outer)
        for name in group.variables:
            path = (*above, name)
            with self._listing.one("/".join(path)):
                fault = self._link_fault(group, _stored_name(group, name))
                if fault is not None:
                    self._listing.add_fault("/".join(path), fault)
                    continue
                variable = group.variables[name]
                steps = None
                if axis is not None and variable.dimensions[:1] == (axis,):
                    steps = numbers.along(variable.shape[0], lambda one: _values(group, one))
                self._variable(group, variable, path, steps)
                if self._attributes.has_all:
                    add_attributes(self._listing, variable.attrs, path, _place)
        if self._attributes.has_all:
            add_attributes(self._listing, group.attrs, above, _place)
        for name, inner in group.groups.items():
            fault = self._link_fault(group, name)
            if fault is None:
                self.group(inner, (*above, name), None if axis is None else (axis, numbers))
            else:
                self._listing.add_fault("/".join([*above, name]), fault)
        if above and not group.variables and not group.groups:
            # Without a variable nobody would see that the group is there.
            self._listing.add_array("/".join([*above, ""]), np.empty(0, dtype=bool))

    def _link_fault(self, group: Any, name: str | None) -> str | None:
        """Why a name in a group does not lead to what is compared; None if it does."""
        if name is None:
            return None
        found = followed(self._h5py, group._h5group, name, self._file_number)
        return found if isinstance(found, str) else None

    def _time(self, group: Any, outer: tuple[str, _Numbers] | None) -> tuple[str | None, _Numbers]:
        """The time axis of a group, its own or that of the group that it is in."""
        rule, path = self._rule, self._listing.path
        names = list(group.dimensions)
        unlimited = [name for name in names if group.dimensions[name].isunlimited()]
        is_elsewhere = rule.axis not in ("auto", "none") and rule.axis not in names
        # A named dimension may be that of another group, and groups see those of the groups above.
        axis = None if is_elsewhere else _axis(rule, names, unlimited, path)
        if axis is None and outer is not None:
            return outer
        if is_elsewhere and outer is None:
            _axis(rule, _all_dimensions(group), unlimited, path)
        return axis, _Numbers(rule, axis, path)

    def _variable(
        self, group: Any, variable: Any, path: tuple[str, ...], steps: list[int] | None
    ) -> None:
        listing, name = self._listing, "/".join(path)
        dataset = _dataset(group, path[-1])
        dtype, shape = variable.dtype, tuple(variable.shape)
        is_text = not isinstance(dtype, np.dtype) or dtype.hasobject
        packing = None if is_text else Packing.of(variable.attrs, dtype)
        dimensions = _dimension_names(variable, dataset)
        labels = self._attributes.labels(dimensions, variable.attrs, packing)
        if packing is None and dataset is not None and tuple(dataset.shape or ()) == shape:
            opened, place = self._opened, Place(name)
            add_dataset(
                self._h5py, opened, listing, dataset, name, place, steps=steps, labels=labels
            )
            return
        fault = None if dataset is None else storage_fault(self._h5py, dataset)
        if fault is not None:
            listing.add_fault(name, fault)
            return
        if is_text or dtype.kind not in _FILLED_IN:
            what = "texts" if is_text or dtype.kind == "S" else f"values of type {dtype}"
            listing.add_fault(name, f"holds {what} in records that were never written")
            return
        chunks = None if dataset is None else dataset.chunks
        flat = FlatReader(shape, dtype, box_reader(variable), chunks[0] if chunks and shape else 0)
        listing.add(
            name,
            dtype if packing is None else packing.dtype,
            shape,
            flat.read if packing is None else packing.reader(flat.read),
            stored_bytes=None if dataset is None else dataset.id.get_storage_size(),
            steps=steps,
            labels=labels,
        )


def _dimension_names(variable: Any, dataset: Any) -> Sequence[str] | None:
    """The names of a variable's dimensions; None if the file has none, which h5netcdf makes up."""
    if dataset is not None and not any(name in dataset.attrs for name in _NAMING):
        return None
    names: Sequence[str] = variable.dimensions
    return names


def _all_dimensions(group: Any) -> list[str]:
    found = list(group.dimensions)
    for inner in group.groups.values():
        found += _all_dimensions(inner)
    return found


def _dataset(group: Any, name: str) -> Any:
    """The HDF5 dataset behind a variable."""
    stored = _stored_name(group, name)
    return None if stored is None else group._h5group[stored]


def _stored_name(group: Any, name: str) -> str | None:
    """What a variable is called in the HDF5 file; None if it is not there.

    The plain name is that of the dimension where a variable of the same name is none of its
    coordinates.
    """
    candidates = (f"_nc4_non_coord_{name}", name)
    return next((one for one in candidates if one in group._h5group), None)


def _values(group: Any, name: str) -> Any:
    """All values of a variable of this group or one above."""
    here = group
    while here is not None:
        if name in here.variables:
            return here.variables[name][...]
        here = here.parent if here.parent is not here else None
    return None
