"""NetCDF files: the classic formats by themselves, NetCDF-4 through h5netcdf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ciwrap.closing import closed_on_error
from ciwrap.errors import ConfigError, UnsupportedFormatError
from ciwrap.readers.boxes import FlatReader, box_reader
from ciwrap.readers.entries import EntrySource, Listing, guarded
from ciwrap.readers.files import InputFile, check_is_file
from ciwrap.readers.hdf5 import add_attributes, add_dataset, open_file
from ciwrap.readers.history import HistoryReader, IterationRule, Place, time_axis
from ciwrap.readers.netcdf_classic import ClassicFile
from ciwrap.readers.optional import library
from ciwrap.readers.packed import Packing
from ciwrap.readers.probe import look_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ciwrap.readers.base import Source

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


class NetcdfReader(HistoryReader):
    """Every variable is one, named by its path; the time dimension gives the iterations.

    Packed variables (scale_factor, add_offset) are unpacked. Attributes hold dates and versions
    and are compared only if `attributes` asks for it.
    """

    name: ClassVar[str] = "netcdf"
    suffixes: ClassVar[tuple[str, ...]] = (".nc", ".nc4", ".cdf", ".netcdf")

    def open_history(self, path: Path, rule: IterationRule, *, has_attributes: bool) -> Source:
        check_is_file(path)
        file = InputFile(path)
        with closed_on_error(file.close):
            start = file.read_some(0, len(_HDF5_MAGIC))
            if start.startswith(b"CDF"):
                if start[3:4] not in (b"\x01", b"\x02", b"\x05"):
                    raise UnsupportedFormatError(
                        f"is classic NetCDF of the unknown version {start[3:4]!r}", file=path
                    )
                return _classic(path, file, rule, has_attributes=has_attributes)
        file.close()
        # Damaged or not, everything else is HDF5's to judge.
        look_first(path, lambda: _netcdf4(path, rule, has_attributes=has_attributes))
        return _netcdf4(path, rule, has_attributes=has_attributes)


def _classic(path: Path, file: InputFile, rule: IterationRule, *, has_attributes: bool) -> Source:
    classic = ClassicFile(file)
    header = classic.header
    listing = Listing(path)
    unlimited = [] if header.unlimited is None else [header.unlimited]
    axis = _axis(rule, list(header.dimensions), unlimited, path)
    numbers = _Numbers(rule, axis, path)
    by_name = {one.name: one for one in header.variables}
    for one in header.variables:
        dtype = np.dtype(one.dtype)
        read = classic.reader(one)
        packing = _packing(listing, one.name, one.attributes, dtype)
        if packing is not None:
            read, dtype = packing.reader(read), packing.dtype
        plain = packing is None
        region = classic.region(one) if plain else None
        if axis is not None and one.dimensions[:1] == (axis,):
            if numbers.steps is None:
                numbers.find(
                    header.dimensions[axis],
                    lambda name: _whole(by_name, classic, name),
                )
            if one.is_record and plain:
                for record, step in enumerate(numbers.steps or ()):
                    stretch = classic.record_region(one, record)
                    listing.add(
                        f"{one.name}[{record}]",
                        dtype,
                        one.shape[1:],
                        file.elements(stretch.offset, one.dtype),
                        region=stretch,
                        called=one.name,
                        iteration=step,
                    )
            else:
                listing.add(one.name, dtype, one.shape, read, region=region, steps=numbers.steps)
        else:
            listing.add(one.name, dtype, one.shape, read, region=region)
        if has_attributes:
            add_attributes(listing, one.attributes, (one.name,), _place)
    if has_attributes:
        add_attributes(listing, header.attributes, (), _place)
    return EntrySource(path, listing.entries, file.close)


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
        self.steps: list[int] | None = None

    def find(self, length: int, values_of: Any) -> None:
        self.steps = self._rule.along(self._axis, length, values_of, self._path)


def _axis(
    rule: IterationRule, names: Sequence[str], unlimited: Sequence[str], path: Path
) -> str | None:
    axis = time_axis(rule, names, unlimited)
    if axis is None and rule.axis not in ("auto", "none"):
        raise ConfigError(
            f"there is no dimension {rule.axis!r} (there is: {', '.join(names[:20]) or 'none'})",
            file=path,
            key="options.iterations",
        )
    return axis


def _packing(
    listing: Listing, name: str, attributes: Mapping[str, Any], dtype: np.dtype[Any]
) -> Packing | None:
    with guarded(listing.path, name):
        return Packing.of(attributes, dtype)


def _netcdf4(path: Path, rule: IterationRule, *, has_attributes: bool) -> Source:
    h5py, h5netcdf = (library(name, "netcdf", file=path) for name in ("h5py", "h5netcdf"))
    file = open_file(h5py, path)
    with closed_on_error(file.close), guarded(path):
        # Where this fails h5netcdf leaves half an object behind that complains on its own.
        file.attrs.get("_nc3_strict")
        netcdf = h5netcdf.File(file, "r", phony_dims="sort", decode_vlen_strings=True)
        listing = Listing(path)
        _group(h5py, listing, netcdf, (), rule, has_attributes=has_attributes)

    def finish() -> None:
        netcdf.close()  # leaves the HDF5 file open, and must live as long as its variables
        file.close()

    return EntrySource(path, listing.entries, finish)


def _group(
    h5py: Any,
    listing: Listing,
    group: Any,
    above: tuple[str, ...],
    rule: IterationRule,
    *,
    has_attributes: bool,
    outer: tuple[str | None, _Numbers] | None = None,
) -> None:
    names = list(group.dimensions)
    unlimited = [name for name in names if group.dimensions[name].isunlimited()]
    asked = rule.axis not in ("auto", "none") and rule.axis not in names
    # A named dimension may be that of another group, and groups see those of the groups above.
    axis = None if asked else _axis(rule, names, unlimited, listing.path)
    if axis is None and outer is not None:
        axis, numbers = outer
    else:
        if asked and outer is None:
            _axis(rule, _all_dimensions(group), unlimited, listing.path)
        numbers = _Numbers(rule, axis, listing.path)
    for name, variable in group.variables.items():
        _variable(h5py, listing, group, variable, (*above, name), axis, numbers)
        if has_attributes:
            add_attributes(listing, _plain(variable.attrs), (*above, name), _place)
    if has_attributes:
        add_attributes(listing, _plain(group.attrs), above, _place)
    for name, inner in group.groups.items():
        _group(
            h5py,
            listing,
            inner,
            (*above, name),
            rule,
            has_attributes=has_attributes,
            outer=(axis, numbers) if axis is not None else None,
        )


def _all_dimensions(group: Any) -> list[str]:
    found = list(group.dimensions)
    for inner in group.groups.values():
        found += _all_dimensions(inner)
    return found


def _plain(attributes: Any) -> dict[str, Any]:
    return {name: attributes[name] for name in attributes}


def _variable(
    h5py: Any,
    listing: Listing,
    group: Any,
    variable: Any,
    path: tuple[str, ...],
    axis: str | None,
    numbers: _Numbers,
) -> None:
    name = "/".join(path)
    dataset = _dataset(group, path[-1])
    dtype, shape = variable.dtype, tuple(variable.shape)
    is_text = not isinstance(dtype, np.dtype) or dtype.hasobject
    steps = None
    if axis is not None and variable.dimensions[:1] == (axis,):
        if numbers.steps is None:
            numbers.find(shape[0], lambda one: _values(group, one))
        steps = numbers.steps
    packing = None if is_text else _packing(listing, name, _plain(variable.attrs), dtype)
    if packing is None and dataset is not None and tuple(dataset.shape or ()) == shape:
        add_dataset(h5py, listing, dataset, name, Place(name), steps=steps)
        return
    if is_text:
        listing.add_fault(name, "holds texts in records that were never written")
        return
    chunks = None if dataset is None else dataset.chunks
    flat = FlatReader(shape, dtype, box_reader(variable), chunks[0] if chunks and shape else 0)
    read = flat.read if packing is None else packing.reader(flat.read)
    listing.add(
        name,
        dtype if packing is None else packing.dtype,
        shape,
        read,
        stored_bytes=None if dataset is None else dataset.id.get_storage_size(),
        steps=steps,
    )


def _dataset(group: Any, name: str) -> Any:
    """The HDF5 dataset behind a variable."""
    h5group = group._h5group
    for candidate in (name, f"_nc4_non_coord_{name}"):
        if candidate in h5group:
            return h5group[candidate]
    return None


def _values(group: Any, name: str) -> Any:
    """All values of a variable of this group or one above."""
    here = group
    while here is not None:
        if name in here.variables:
            return here.variables[name][...]
        here = here.parent if here.parent is not here else None
    return None
