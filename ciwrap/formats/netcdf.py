"""NetCDF files: the classic formats (CDF-1, CDF-2, CDF-5) and NetCDF-4, which is HDF5, by their
specifications.

Every variable of a classic file, or record of one, lies in one stretch, which the core can read.
Source for NetCDF-4: Unidata, "NetCDF File Format Specifications", "The NetCDF-4/HDF5 File Format".
"""

from __future__ import annotations

import math
import struct
from collections import ChainMap
from functools import partial
from operator import gt
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import (
    ConfigError,
    CorruptFileError,
    FileLimitError,
    UnsupportedFormatError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import (
    EntrySource,
    FlatReader,
    HistoryReader,
    IterationRule,
    Listing,
    Packing,
    Place,
    box_reader,
    joined,
    time_axis,
)
from ciwrap.formats.exodus import with_names
from ciwrap.formats.hdf5 import (
    MAX_DEPTH,
    OpenDatasets,
    StoredAttributes,
    add_dataset,
    attached_scales,
    file_number,
    followed,
    has_open_files,
    open_file,
    opened_item,
    storage_fault,
)
from ciwrap.formats.look import look_first
from ciwrap.formats.reader import (
    InputFile,
    add_attributes,
    as_elements,
    check_is_file,
    guarded,
    library,
    plain_name,
)
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.formats.entries import Lengths
    from ciwrap.formats.reader import AttributeRule, Source

MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_TYPES = {
    1: "|i1", 2: "|S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8",
    7: "|u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8",
}  # fmt: skip
_NEWER_TYPES = 7  # from here on CDF-5 only
_MAX_HEADER_BYTES = 256 << 20
_STEP_BYTES = 64 << 10
_TAIL_BYTES = 3  # what may follow the last value


class ClassicVariable(Struct, frozen=True):
    """A variable of the header. dtype: NumPy's text. begin: of its first value in the file."""

    name: str
    dtype: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    is_record: bool
    begin: int
    attributes: dict[str, Any]

    @property
    def record_bytes(self) -> int:
        """Bytes of one record, or of the whole variable if it has none."""
        lengths = self.shape[1:] if self.is_record else self.shape
        return math.prod(lengths) * np.dtype(self.dtype).itemsize


class ClassicHeader(Struct):
    """What a file holds. record_step: bytes from one record to the next."""

    record_count: int = 0
    dimensions: dict[str, int] = field(default_factory=dict)
    unlimited: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    variables: list[ClassicVariable] = field(default_factory=list)
    record_step: int = 0


class ClassicFile:
    """A classic file, open for reading. Raises CorruptFileError for whatever does not add up."""

    def __init__(self, file: InputFile) -> None:
        self.file = file
        self.header = _HeaderParser(file).parse()
        self._check_size()

    def _check_size(self) -> None:
        header = self.header
        end = 0
        for one in header.variables:
            if one.is_record and header.record_count == 0:
                continue
            last = (header.record_count - 1) * header.record_step if one.is_record else 0
            end = max(end, one.begin + last + one.record_bytes)
        size = self.file.byte_count
        if size < end:
            raise CorruptFileError(
                f"is truncated: it has {size} bytes, its header says {end}",
                file=self.file.path,
                remedy="is the program still writing it?",
            )
        # A record ends with the last variable's padding, which may be there or not.
        records = [one.record_bytes for one in header.variables if one.is_record]
        padding = max(0, header.record_step - sum(records)) if records else 0
        if header.variables and size > end + _TAIL_BYTES + padding:
            raise CorruptFileError(
                f"has {size - end} bytes after its last value: records that its header does not"
                " count",
                file=self.file.path,
                remedy="let the program close the file",
            )

    def reader(self, one: ClassicVariable) -> Callable[[int, int], NDArray[Any]]:
        """Reads elements first .. first + count - 1 of a variable."""
        item = np.dtype(one.dtype).itemsize
        if not one.is_record:
            return self.file.elements(one.begin, one.dtype)
        per_record = math.prod(one.shape[1:])

        def parts(first: int, count: int) -> Iterator[NDArray[Any]]:
            while count > 0:
                record, within = divmod(first, per_record)
                take = min(count, per_record - within)
                offset = one.begin + record * self.header.record_step + within * item
                yield as_elements(self.file.read_at(offset, take * item), one.dtype)
                first, count = first + take, count - take

        return lambda first, count: joined(parts(first, count), count, np.dtype(one.dtype))

    def region(self, one: ClassicVariable, record: int = 0) -> FileRegion:
        """Where a variable without records lies, or one record of another one."""
        offset = one.begin + record * self.header.record_step
        return FileRegion(str(self.file.path), offset, one.record_bytes)


class _HeaderParser:
    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._data = b""
        self._at = 0

    def parse(self) -> ClassicHeader:
        self._version = self._take(4)[3]
        self._count_format = ">q" if self._version == 5 else ">i"
        header = ClassicHeader()
        records = self._take(8 if self._version == 5 else 4)
        is_streaming = set(records) == {0xFF}
        header.record_count = 0 if is_streaming else int.from_bytes(records, "big", signed=True)
        if header.record_count < 0:
            raise self._error("claims a negative number of records")
        self._dimensions(header)
        header.attributes = self._attributes()
        self._variables(header, is_streaming=is_streaming)
        return header

    def _dimensions(self, header: ClassicHeader) -> None:
        names: list[str] = []
        for _ in range(self._list(0x0A)):
            name, length = self._name(), self._count()
            if name in header.dimensions:
                raise self._error(f"has two dimensions named {ascii(name)[:60]}")
            if length == 0 and header.unlimited is None:
                header.unlimited = name
            header.dimensions[name] = length
            names.append(name)
        self._names = names

    def _variable(self, header: ClassicHeader) -> ClassicVariable:
        """The next variable, of whose records none are counted yet."""
        name = self._name()
        rank = self._count()
        if rank > 1024:
            raise self._error(f"claims {rank} dimensions for one variable")
        ids = [self._count() for _ in range(rank)]
        if any(number >= len(self._names) for number in ids):
            raise self._error("names a dimension that it does not have")
        dimensions = tuple(self._names[number] for number in ids)
        if header.unlimited in dimensions[1:]:
            raise self._error("uses its record dimension other than first")
        attributes = self._attributes()
        dtype = self._type()
        self._count()  # the size, which is too small a field for large variables
        begin = self._int(">i" if self._version == 1 else ">q")
        if begin < 0:
            raise self._error("has a variable that begins before the file")
        shape = tuple(header.dimensions[one] for one in dimensions)
        is_record = dimensions[:1] == (header.unlimited,)
        return ClassicVariable(name, dtype, dimensions, shape, is_record, begin, attributes)

    def _variables(self, header: ClassicHeader, *, is_streaming: bool) -> None:
        found = [self._variable(header) for _ in range(self._list(0x0B))]
        records = [one for one in found if one.is_record]
        sizes = [one.record_bytes for one in records]
        # A lone record variable is not padded.
        padded = [size if len(sizes) == 1 else size + -size % 4 for size in sizes]
        header.record_step = sum(padded)
        if is_streaming:
            first = min((one.begin for one in records), default=self._file.byte_count)
            rest = max(0, self._file.byte_count - first)
            header.record_count = rest // header.record_step if header.record_step else 0
        count = header.record_count
        if header.unlimited is not None:
            header.dimensions[header.unlimited] = count
        header.variables = [
            replace(one, shape=(count, *one.shape[1:])) if one.is_record else one for one in found
        ]

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self._list(0x0C)):
            name = self._name()
            dtype = np.dtype(self._type())
            count = self._count()
            data = self._take(count * dtype.itemsize)
            self._take(-len(data) % 4)
            if dtype.kind == "S":
                found[name] = data.rstrip(b"\0").decode("utf-8", "surrogateescape")
            else:
                found[name] = np.frombuffer(data, dtype=dtype)
        return found

    def _list(self, tag: int) -> int:
        given = self._int(">i")
        count = self._count()
        if given not in (0, tag) or (given == 0 and count != 0):
            raise self._error("has a damaged header")
        # Every item takes 4 bytes at the least.
        if count * 4 > self._file.byte_count:
            raise self._error("claims more than the file can hold")
        return count

    def _type(self) -> str:
        code = self._int(">i")
        if code not in _TYPES or (code >= _NEWER_TYPES and self._version != 5):
            raise self._error(f"has a variable of the unknown type {code}")
        return _TYPES[code]

    def _name(self) -> str:
        length = self._count()
        data = self._take(length)
        self._take(-length % 4)
        return data.decode("utf-8", "surrogateescape")

    def _count(self) -> int:
        value = self._int(self._count_format)
        if value < 0:
            raise self._error("has a negative length")
        return value

    def _int(self, code: str) -> int:
        return int(struct.unpack(code, self._take(struct.calcsize(code)))[0])

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > min(self._file.byte_count, _MAX_HEADER_BYTES):
            raise self._error("ends within its header")
        while len(self._data) < end:
            self._data += self._file.read_some(len(self._data), max(_STEP_BYTES, len(self._data)))
        found = self._data[self._at : end]
        self._at = end
        return found

    def _error(self, problem: str) -> CorruptFileError:
        return CorruptFileError(
            problem, file=self._file.path, remedy="is it whole, and is it NetCDF?"
        )


# The kinds of numbers that records are filled with that were never written.
_FILLED_IN = "fiu"


class NetcdfReader(HistoryReader):
    """Every variable is one, named by its path; the time dimension gives the iterations.

    Those of Exodus have the names that the file gives them.

    Packed variables (scale_factor, add_offset) are unpacked. Other attributes than those that say
    what the numbers mean are compared only if `attributes` asks for it.
    """

    name: ClassVar[str] = "netcdf"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["netcdf"].suffixes

    def open_history(self, path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
        check_is_file(path)
        file = InputFile(path)
        with closed_on_error(file.close):
            start = file.read_some(0, 4)
            if start in MAGIC:
                return _classic(file, rule, attributes)
            if start.startswith(b"CDF"):
                raise UnsupportedFormatError(
                    f"is classic NetCDF of the unknown version {start[3:]!r}", file=path
                )
        file.close()
        # Damaged or not, everything else is HDF5's to judge.
        library("h5py", file=path)
        return look_first(path, partial(_netcdf4, path, rule, attributes), has_open_files)


def _classic(file: InputFile, rule: IterationRule, attributes: AttributeRule) -> Source:
    classic = ClassicFile(file)
    header = classic.header
    listing = Listing(file.path)
    unlimited = [] if header.unlimited is None else [header.unlimited]
    axis = _axis(rule, list(header.dimensions), unlimited)
    numbers = _Numbers(rule, axis)
    by_name = {one.name: one for one in header.variables}
    for one in header.variables:
        with listing.one(one.name):
            steps = None
            if axis is not None and one.dimensions[:1] == (axis,):
                length = header.dimensions[axis]
                steps = numbers.along(length, lambda name: _whole(by_name, classic, name))
            _classic_variable(listing, classic, one, steps, attributes)
        add_attributes(listing, one.attributes, (one.name,), _place, attributes)
    add_attributes(listing, header.attributes, (), _place, attributes)
    entries = with_names(listing.entries)
    return EntrySource(file.path, entries, file.close, attributes_left_out=listing.left_out)


def _classic_variable(
    listing: Listing,
    classic: ClassicFile,
    one: ClassicVariable,
    steps: list[int] | None,
    attributes: AttributeRule,
) -> None:
    dtype, read = np.dtype(one.dtype), classic.reader(one)
    width = _text_width(dtype, one.shape, steps)
    packing = Packing.of(one.attributes, dtype)
    dimensions = one.dimensions[:-1] if width else one.dimensions
    labels = attributes.labels(dimensions, one.attributes, packing)
    if width:
        texts = _texts(read, width)
        dtype, shape = np.dtype(f"S{width}"), one.shape[:-1]
        listing.add(one.name, dtype, shape, texts, steps=steps, labels=labels)
    elif packing is not None:
        listing.add(
            one.name, packing.dtype, one.shape, packing.reader(read), steps=steps, labels=labels
        )
    elif not steps or not one.is_record:
        region = None if one.is_record else classic.region(one)
        listing.add(one.name, dtype, one.shape, read, region=region, steps=steps, labels=labels)
    else:
        for record, step in enumerate(steps):
            stretch = classic.region(one, record)
            listing.add(
                f"{one.name}[{record}]",
                dtype,
                one.shape[1:],
                classic.file.elements(stretch.offset, one.dtype),
                region=stretch,
                called=one.name,
                iteration=step,
                labels=labels,
            )


# Characters along a longer axis are one for each place, not those of a text.
_MOST_CHARACTERS = 4096


def _text_width(dtype: np.dtype[Any], shape: Sequence[int], steps: Sequence[int] | None) -> int:
    """How many characters along the last axis are one text; 0 if they are none. steps: those that
    the first axis goes through, if it does.
    """
    axes = len(shape) - (steps is not None)
    is_text = dtype == np.dtype("S1") and axes > 0 and 0 < shape[-1] <= _MOST_CHARACTERS
    return int(shape[-1]) if is_text else 0


def _texts(
    read: Callable[[int, int], NDArray[Any]], width: int
) -> Callable[[int, int], NDArray[Any]]:
    """Texts of so many characters each, without the NUL bytes at their ends."""

    def joined_characters(first: int, count: int) -> NDArray[Any]:
        characters = np.ascontiguousarray(read(first * width, count * width))
        return characters.view(f"S{width}")

    return joined_characters


def _whole(by_name: Mapping[str, Any], classic: ClassicFile, name: str) -> Any:
    one = by_name.get(name)
    if one is None:
        return None
    return classic.reader(one)(0, int(np.prod(one.shape, dtype=np.int64)))


def _place(above: tuple[str, ...], name: str) -> Place:
    return Place("/".join([*above, name]))


class _Numbers:
    """The iterations along the time axis, found when they are first needed."""

    def __init__(self, rule: IterationRule, axis: str | None) -> None:
        self._rule = rule
        self._axis = axis
        self._steps: list[int] | None = None

    def along(self, length: int, values_of: Callable[[str], Any]) -> list[int]:
        """values_of: as in `IterationRule.along`, which also says what is raised."""
        if self._steps is None:
            self._steps = self._rule.along(self._axis, length, values_of)
        return self._steps


def _axis(rule: IterationRule, names: Sequence[str], unlimited: Sequence[str]) -> str | None:
    axis = time_axis(rule, names, unlimited)
    if axis is None and rule.axis not in ("auto", "none"):
        raise ConfigError(
            f"there is no dimension {rule.axis!r} (known: {', '.join(names[:20]) or 'none'})",
            key="options.iterations",
        )
    return axis


def _netcdf4(path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
    h5py = library("h5py", file=path)
    file = open_file(h5py, path)
    listing = Listing(path)
    with closed_on_error(file.close), guarded(path):
        groups = _Groups(h5py, file)
        root = groups.below(file)
        _Walk(h5py, OpenDatasets(file), listing, rule, attributes, groups.scales).group(root, ())
        entries = with_names(listing.entries)
    return EntrySource(path, entries, file.close, attributes_left_out=listing.left_out)


# What the name of a dimension begins with that is no variable.
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
# What NetCDF keeps in attributes for itself.
_HIDDEN = frozenset(
    {"CLASS", "DIMENSION_LIST", "NAME", "REFERENCE_LIST", "_NCProperties", "_Netcdf4Coordinates"}
    | {"_Netcdf4Dimid", "_nc3_strict"}
)


class _Attributes(StoredAttributes):
    """Attributes as netCDF has them."""

    hidden = _HIDDEN

    def _value(self, value: Any) -> Any:
        """Texts as text, one of a length of 1 by itself."""
        if isinstance(value, self._h5py.Empty):
            return "" if value.dtype.kind == "S" else np.empty(0, value.dtype)
        array = np.asarray(value)
        if array.dtype.kind in "SO":
            texts = [_decoded(one) for one in array.reshape(-1).tolist()]
            return texts[0] if len(texts) == 1 else texts
        return array.reshape(-1)[0] if array.size == 1 else value


def _decoded(text: Any) -> Any:
    """As in classic files; h5py has decoded texts of variable length."""
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text


class _Dimension(Struct, frozen=True):
    """number: by which variables of several dimensions that are scales themselves name theirs."""

    name: str
    size: int
    is_unlimited: bool
    number: int


class _Group(Struct):
    """A group as netCDF has it.

    dimensions: its own first, then those of the groups around it. variables: what each is called in
    the HDF5 file. faults: why what a name leads to is not compared.
    """

    stored: Any
    dimensions: ChainMap[str, _Dimension]
    parent: _Group | None
    variables: dict[str, str | bytes] = field(default_factory=dict)
    groups: dict[str, _Group] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def own_dimensions(self) -> Mapping[str, _Dimension]:
        return self.dimensions.maps[0]

    @property
    def known_dimensions(self) -> list[str]:
        """The names of its dimensions, and of those of the groups in it."""
        found = list(self.own_dimensions)
        for inner in self.groups.values():
            found += inner.known_dimensions
        return found


class _Groups:
    """Finds the groups of a file. scales: its dimensions, by the addresses of their datasets."""

    def __init__(self, h5py: Any, file: Any) -> None:
        self._h5py = h5py
        self._file = file
        self._number = file_number(h5py, file)
        self.scales: dict[int, _Dimension] = {}

    def below(self, stored: Any, parent: _Group | None = None, depth: int = 0) -> _Group:
        """A group with all that is in it. Datasets do not stay open: of thousands, each has some
        20 KB.
        """
        if depth > MAX_DEPTH:
            raise FileLimitError("nests its groups too deeply", file=self._file.filename)
        around = ChainMap[str, _Dimension]() if parent is None else parent.dimensions.new_child()
        group = _Group(stored, around, parent)
        inner = {}
        for given in stored:
            name = plain_name(given)
            item = followed(self._h5py, stored, given, self._number)
            if isinstance(item, str):
                group.faults[name] = item
            elif isinstance(item, self._h5py.Group):
                inner[name] = item
            elif isinstance(item, self._h5py.Dataset):
                self._note(group, given, item)
        for name, item in inner.items():
            group.groups[name] = self.below(item, group, depth + 1)
        return group

    def _note(self, group: _Group, stored: str | bytes, dataset: Any) -> None:
        """Enters a dataset as dimension, as variable, or as both."""
        name = plain_name(stored)
        attributes = StoredAttributes(self._h5py, dataset)
        if attributes.get("CLASS") == b"DIMENSION_SCALE" and dataset.shape:
            scale = self._scale(name, dataset, attributes)
            # The first of its names counts, if links give it more.
            self.scales.setdefault(int(self._h5py.h5o.get_info(dataset.id).addr), scale)
            group.dimensions[name] = scale
        if _NO_VARIABLE not in attributes.get("NAME", b""):
            # Its plain name is that of a dimension of which it is no coordinate.
            group.variables[name.removeprefix("_nc4_non_coord_")] = stored

    def _scale(self, name: str, dataset: Any, attributes: StoredAttributes) -> _Dimension:
        size = dataset.shape[0]
        is_unlimited = dataset.maxshape == (None,)
        if is_unlimited:
            # It is as long as the longest variable that has it.
            for reference, axis in attributes.get("REFERENCE_LIST", ()):
                other = self._h5py.h5r.dereference(reference, self._file.id)
                size = max(size, other.shape[axis])
        number = attributes.get("_Netcdf4Dimid", len(self.scales))
        return _Dimension(name, int(size), is_unlimited, int(number))


class _Found(Struct, frozen=True):
    """A dataset, and what is to be known of it as a variable. dimensions: None if it names none."""

    dataset: Any
    attributes: _Attributes
    dimensions: tuple[str, ...] | None
    shape: tuple[int, ...]


class _Walk:
    """Lists the variables of a group and those below it."""

    def __init__(
        self,
        h5py: Any,
        opened: OpenDatasets,
        listing: Listing,
        rule: IterationRule,
        attributes: AttributeRule,
        scales: Mapping[int, _Dimension],
    ) -> None:
        self._h5py = h5py
        self._opened = opened
        self._listing = listing
        self._rule = rule
        self._attributes = attributes
        self._scales = scales

    def group(
        self, group: _Group, above: tuple[str, ...], outer: tuple[str, _Numbers] | None = None
    ) -> None:
        """outer: the time axis of the group that this one is in."""
        axis, numbers = self._time(group, outer)
        for name in group.variables:
            path = (*above, name)
            with self._listing.one("/".join(path)):
                one = self._found(group, name)
                steps = None
                if axis is not None and (one.dimensions or ())[:1] == (axis,):
                    steps = numbers.along(one.shape[0], lambda other: self._values(group, other))
                self._variable(one, path, steps)
                add_attributes(self._listing, one.attributes, path, _place, self._attributes)
        for name, fault in group.faults.items():
            self._listing.add_fault("/".join([*above, name]), fault)
        attributes = _Attributes(self._h5py, group.stored)
        add_attributes(self._listing, attributes, above, _place, self._attributes)
        for name, inner in group.groups.items():
            self.group(inner, (*above, name), None if axis is None else (axis, numbers))
        if above and not (group.variables or group.groups or group.faults):
            # Without a variable nobody would see that the group is there.
            self._listing.add_array("/".join([*above, ""]), np.empty(0, dtype=bool))

    def _time(
        self, group: _Group, outer: tuple[str, _Numbers] | None
    ) -> tuple[str | None, _Numbers]:
        """The time axis of a group, its own or that of the group that it is in."""
        rule = self._rule
        names = list(group.own_dimensions)
        unlimited = [name for name, one in group.own_dimensions.items() if one.is_unlimited]
        is_elsewhere = rule.axis not in ("auto", "none") and rule.axis not in names
        # A named dimension may be that of another group, and groups see those of the groups above.
        axis = None if is_elsewhere else _axis(rule, names, unlimited)
        if axis is None and outer is not None:
            return outer
        if is_elsewhere and outer is None:
            _axis(rule, group.known_dimensions, unlimited)
        return axis, _Numbers(rule, axis)

    def _found(self, group: _Group, name: str) -> _Found:
        """A variable. Raises CorruptFileError if it does not fit its dimensions."""
        stored = group.variables[name]
        dataset = opened_item(self._h5py, group.stored, stored)
        attributes = _Attributes(self._h5py, dataset)
        shape = tuple(dataset.shape or ())
        known = self._dimensions(group, plain_name(stored), dataset, attributes)
        if known is None:
            return _Found(dataset, attributes, None, shape)
        sizes = tuple(
            # No dimension knows of the variables that are dimensions themselves.
            max(one.size, length) if one.is_unlimited else one.size
            for one, length in zip(known, shape, strict=True)
        )
        if any(map(gt, shape, sizes)):
            raise CorruptFileError(f"has the shape {shape}, its dimensions have {sizes}")
        return _Found(dataset, attributes, tuple(one.name for one in known), sizes)

    def _dimensions(
        self, group: _Group, stored: str, dataset: Any, attributes: _Attributes
    ) -> list[_Dimension] | None:
        """Those of a variable, by what it is called in the HDF5 file; None if it names none."""
        if stored in group.own_dimensions:
            if dataset.ndim == 1:
                return [group.own_dimensions[stored]]
            # Those of the group itself come last.
            by_number = {one.number: one for one in group.dimensions.values()}
            if "_Netcdf4Coordinates" not in attributes.stored:
                return None
            numbers = dataset.attrs["_Netcdf4Coordinates"].tolist()
            return [by_number[number] for number in numbers]
        if "DIMENSION_LIST" not in attributes.stored:
            return None
        scales = attached_scales(self._h5py, dataset)
        if not any(scales):
            return None
        if not all(scales):
            raise CorruptFileError("names only some of its dimensions")
        # Of several scales the last one counts, as in netCDF.
        return [self._scales[one[-1]] for one in scales]

    def _values(self, group: _Group | None, name: str) -> Any:
        """All values of a variable of this group or one above."""
        while group is not None:
            if name in group.variables:
                one = self._found(group, name)
                return _filled_up(one.dataset, one.shape)((0,) * len(one.shape), one.shape)
            group = group.parent
        return None

    def _variable(self, one: _Found, path: tuple[str, ...], steps: list[int] | None) -> None:
        listing, name = self._listing, "/".join(path)
        dataset, shape, dtype = one.dataset, one.shape, one.dataset.dtype
        is_whole = tuple(dataset.shape or ()) == shape
        packing = None if dtype.hasobject else Packing.of(one.attributes, dtype)
        width = _text_width(dtype, shape, steps) if is_whole else 0
        dimensions = (one.dimensions or ())[:-1] if width else one.dimensions
        labels = self._attributes.labels(dimensions, one.attributes, packing)
        if packing is None and is_whole and not width:
            opened, place = self._opened, Place(name)
            add_dataset(
                self._h5py, opened, listing, dataset, name, place, steps=steps, labels=labels
            )
            return
        fault = storage_fault(self._h5py, dataset)
        if fault is None and not width and dtype.kind not in _FILLED_IN:
            what = "texts" if dtype.kind in "SO" else f"values of type {dtype}"
            fault = f"holds {what} in records that were never written"
        if fault is not None:
            listing.add_fault(name, fault, labels=labels)
            return
        chunk_rows = dataset.chunks[0] if dataset.chunks and shape else 0

        def make(values: Any) -> FlatReader:
            return FlatReader(shape, dtype, _filled_up(values, shape), chunk_rows)

        read = self._opened.reader(dataset.name, None, make)
        listed, lengths = dtype, shape
        if width:
            listed, lengths, read = np.dtype(f"S{width}"), shape[:-1], _texts(read, width)
        elif packing is not None:
            listed, read = packing.dtype, packing.reader(read)
        listing.add(
            name,
            listed,
            lengths,
            read,
            stored_bytes=dataset.id.get_storage_size(),
            steps=steps,
            labels=labels,
        )


def _filled_up(dataset: Any, shape: tuple[int, ...]) -> Callable[[Lengths, Lengths], NDArray[Any]]:
    """Boxes of a variable of that shape. Of records that were never written its dataset may have
    none; their values are its fill value.
    """
    read_box = box_reader(dataset)
    if dataset.shape == shape:
        return read_box

    def read(start: Lengths, lengths: Lengths) -> NDArray[Any]:
        box = np.full(lengths, dataset.fillvalue, dataset.dtype)
        ends = zip(start, lengths, dataset.shape, strict=True)
        there = tuple(max(0, min(length, end - at)) for at, length, end in ends)
        if all(there):
            box[tuple(map(slice, there))] = read_box(start, there)
        return box

    return read
