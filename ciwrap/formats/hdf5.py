"""HDF5 files, through h5py: groups, links, and datasets of any type and layout as variables."""

from __future__ import annotations

import contextlib
import math
from collections import ChainMap, OrderedDict
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import FileRegion
from ciwrap.base.errors import ConfigError, CorruptFileError, FileLimitError
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.chunks import chunk_reader
from ciwrap.formats.entries import (
    MAX_TEXTS,
    EntrySource,
    FlatReader,
    HistoryReader,
    IterationRule,
    Listing,
    Place,
    box_reader,
    is_plain,
    place_of,
)
from ciwrap.formats.look import look_first
from ciwrap.formats.openpmd import CONSTANT, TIMES, add_constant
from ciwrap.formats.reader import (
    add_attributes,
    check_is_file,
    guarded,
    library,
    names_as_text,
    plain_name,
)
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels
    from ciwrap.formats.entries import Lengths
    from ciwrap.formats.reader import AttributeRule, Source

# Each keeps a row of chunks and what HDF5 keeps: of thousands in a file that would be all memory.
_MOST_OPEN = 4


class OpenDatasets:
    """Reads datasets of an open file, of which only those read last stay open."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self._open: OrderedDict[tuple[str, str | None], FlatReader] = OrderedDict()

    def reader(
        self, path: str, field: str | None, make: Callable[[Any], FlatReader]
    ) -> Callable[[int, int], NDArray[Any]]:
        """Reads elements of the dataset at `path`. field: a field of it, or None; make: what reads
        it, or that field, once it is open.
        """

        def read(first: int, count: int) -> NDArray[Any]:
            flat = self._open.pop((path, field), None)
            if flat is None:
                while len(self._open) >= _MOST_OPEN:
                    self._open.popitem(last=False)
                dataset = self.file[path]
                flat = make(dataset if field is None else dataset.fields(field))
            self._open[path, field] = flat
            return flat.read(first, count)

        return read


def add_dataset(
    h5py: Any,
    opened: OpenDatasets,
    listing: Listing,
    dataset: Any,
    name: str,
    place: Place,
    *,
    steps: list[int] | None = None,
    labels: Labels = (),
) -> None:
    """Lists an h5py dataset, by the iterations of its first axis where `steps` names them.

    It need not stay open: `opened` opens it again to read it.
    """
    words = [*_words_of(h5py, dataset.dtype, "")]
    if words:
        labels = tuple(sorted((*labels, ("enum", names_as_text(words)))))
    facts = {**place.facts, "labels": labels}
    fault = storage_fault(h5py, dataset)
    if fault is not None:
        listing.add_fault(name, fault, **facts)
        return
    if dataset.shape is None:
        # It has no shape, which is not that of an array without elements.
        facts["labels"] = tuple(sorted((*facts["labels"], ("dataspace", "null"))))
        dtype = dataset.dtype
        listing.add(name, dtype, (0,), lambda *_: np.empty(0, dtype), **facts)
        return
    facts["steps"] = steps
    _Values(h5py, opened, listing, dataset, facts).add(name, dataset.dtype)


def _words_of(h5py: Any, dtype: np.dtype[Any], within: str) -> Iterator[str]:
    """What the numbers of an enumeration stand for: `0=RED`, of a field `colour.0=RED`."""
    words = h5py.check_enum_dtype(dtype) or {}
    yield from (f"{within}{n}={word}" for n, word in sorted((int(n), w) for w, n in words.items()))
    if dtype.subdtype is not None:
        yield from _words_of(h5py, dtype.base, within)
    for name in dtype.names or ():
        yield from _words_of(h5py, dtype[name], f"{within}{name}.")


def type_text(h5py: Any, dtype: np.dtype[Any]) -> str:
    """A type as text, with what NumPy's text leaves out: words, and what is in lists."""
    if h5py.check_string_dtype(dtype) is not None:
        return str(dtype)
    if h5py.check_enum_dtype(dtype) is not None:
        return f"{dtype} ({names_as_text([*_words_of(h5py, dtype, '')])})"
    if h5py.check_vlen_dtype(dtype) is not None:
        return f"list of {type_text(h5py, h5py.check_vlen_dtype(dtype))}"
    if dtype.subdtype is not None:
        base = type_text(h5py, dtype.base)
        return str(dtype) if base == str(dtype.base) else f"{dtype} of {base}"
    inner = {name: type_text(h5py, dtype[name]) for name in dtype.names or ()}
    told = [f"{name}: {text}" for name, text in inner.items() if text != str(dtype[name])]
    return f"{dtype} ({', '.join(told)})" if told else str(dtype)


class _Values:
    """Lists the values of one dataset, or of the fields of one; holds it while it does so."""

    def __init__(
        self,
        h5py: Any,
        opened: OpenDatasets,
        listing: Listing,
        dataset: Any,
        facts: dict[str, Any],
    ) -> None:
        self._h5py = h5py
        self._opened = opened
        self._listing = listing
        self._dataset = dataset
        self._facts = facts

    def add(self, name: str, dtype: np.dtype[Any], field: str | None = None) -> None:
        """field: lists that field of the dataset alone."""
        if not dtype.hasobject:
            self._numbers(name, dtype, field)
        elif self._h5py.check_string_dtype(dtype) is not None:
            self._texts(name, self._dataset if field is None else self._dataset.fields(field))
        elif dtype.names is not None and field is None:
            for one in dtype.names:
                # Some of them have no fixed length.
                called = self._facts["called"]
                facts = {**self._facts, "called": None if called is None else f"{called}.{one}"}
                inner = _Values(self._h5py, self._opened, self._listing, self._dataset, facts)
                inner.add(f"{name}.{one}", dtype[one], one)
        else:
            what = "holds references or lists of any length, which have no defined comparison"
            self._fault(name, what)

    def _fault(self, name: str, fault: str) -> None:
        facts = {key: value for key, value in self._facts.items() if key != "steps"}
        self._listing.add_fault(name, fault, **facts)

    def _texts(self, name: str, values: Any) -> None:
        if self._dataset.size > MAX_TEXTS:
            self._fault(name, f"holds more than {MAX_TEXTS} texts of any length")
        else:
            self._listing.add_array(name, np.asarray(values[()], dtype=object), **self._facts)

    def _numbers(self, name: str, dtype: np.dtype[Any], field: str | None) -> None:
        dataset = self._dataset
        outer = tuple(dataset.shape)
        # An array for each element is further dimensions.
        base, shape = dtype.base, (*outer, *dtype.shape)
        chunk_rows = dataset.chunks[0] if dataset.chunks and outer else 0

        def make(values: Any) -> FlatReader:
            read_box = box_reader(values) if base is dtype else _inner_boxes(values, len(outer))
            if field is None and base is dtype and _is_as_stored(self._h5py, values):
                read_box = chunk_reader(self._h5py, values, dtype) or read_box
            return FlatReader(shape, base, read_box, chunk_rows)

        read = self._opened.reader(dataset.name, field, make)
        self._listing.add(
            name,
            base,
            shape,
            read,
            region=None if field else _region(self._h5py, self._listing.path, dataset),
            # Chunks may lack what was never written, and compress without limit.
            stored_bytes=dataset.id.get_storage_size(),
            **self._facts,
        )


def _inner_boxes(values: Any, axes: int) -> Callable[[Lengths, Lengths], NDArray[Any]]:
    """Boxes of a dataset whose elements are arrays. axes: how many it has without them."""

    def read(start: Lengths, lengths: Lengths) -> NDArray[Any]:
        box = tuple(slice(at, at + length) for at, length in zip(start, lengths, strict=True))
        found = np.asarray(values[box[:axes]] if axes else values[()])
        return found[(slice(None),) * axes + box[axes:]]

    return read


def file_number(h5py: Any, item: Any) -> int:
    """The number of the open file that a file, group or dataset is in."""
    return int(h5py.h5o.get_info(item.id).fileno)


def followed(h5py: Any, group: Any, name: str | bytes, number: int) -> Any:
    """What a name in a group leads to, or why it leads to nothing that is compared.

    number: of the file that is being read.
    """
    if group.id.links.get_info(_encoded(name)).type == h5py.h5l.TYPE_HARD:
        return opened_item(h5py, group, name)
    if isinstance(name, bytes):  # for which h5py has no link
        return "is a link whose name is not UTF-8, which is not followed; give it another name"
    try:
        link = group.get(name, getlink=True)
    except TypeError:
        return "is a link of a kind that only the program that made it can follow"
    if isinstance(link, h5py.ExternalLink):
        return "is a link to another file, which is not followed"
    try:
        item = group[name]
    except KeyError:
        if isinstance(link, h5py.SoftLink):
            return f"is a broken link to {link.path}"
        raise
    if file_number(h5py, item) != number:
        return f"is a link to {link.path}, which is in another file and not followed"
    return item


def opened_item(h5py: Any, group: Any, name: str | bytes) -> Any:
    """What has that name in a group. h5py would ask for the file each time, to learn that datasets
    may keep what they know of their shape.
    """
    item = h5py.h5o.open(group.id, _encoded(name))
    if isinstance(item, h5py.h5d.DatasetID):
        return h5py.Dataset(item, readonly=True)
    return h5py.Group(item) if isinstance(item, h5py.h5g.GroupID) else h5py.Datatype(item)


class StoredAttributes(Mapping[str, Any]):
    """Attributes of a file, group or dataset, without those of the `hidden` names. Names are listed
    once, and each value is read once: h5py would ask the file for every look. stored: all names.
    """

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, h5py: Any, item: Any) -> None:
        self._h5py, self._attributes = h5py, item.attrs
        self.stored: list[str | bytes] = []
        h5py.h5a.iterate(item.id, lambda name, *_: self.stored.append(_decoded(name)))
        self._names = [name for name in self.stored if name not in self.hidden]
        self._values: dict[str | bytes, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        if name not in self._values:
            self._values[name] = self._value(self._attributes[name])
        return self._values[name]

    def _value(self, value: Any) -> Any:
        return value


def attached_scales(h5py: Any, dataset: Any) -> list[list[int]]:
    """The addresses of the scales that are attached to each dimension of a dataset."""
    found: list[list[int]] = [[] for _ in dataset.shape or ()]
    for axis, scales in enumerate(found):

        def note(scale: Any, to: list[int] = scales) -> None:
            to.append(int(h5py.h5o.get_info(scale).addr))

        h5py.h5ds.iterate(dataset.id, axis, note)
    return found


class ScaleNames:
    """The names of a file's objects by their addresses, for dimension scales: HDF5 itself looks
    through all of the file for each.
    """

    def __init__(self, h5py: Any, file: Any) -> None:
        self._h5py = h5py
        self._file = file
        self._known: dict[int, str] | None = None

    def of(self, address: int) -> str:
        """The name, without the groups that it is in."""
        if self._known is None:
            known: dict[int, str] = {}

            def note(path: bytes, facts: Any) -> None:
                known[facts.addr] = plain_name(_decoded(path)).rpartition("/")[2]

            self._h5py.h5o.visit(self._file.id, note, info=True)
            self._known = known
        return self._known[address]


def _encoded(name: str | bytes) -> bytes:
    return name if isinstance(name, bytes) else name.encode()


def _decoded(path: bytes) -> str | bytes:
    """As h5py names an object: bytes where they are not UTF-8."""
    try:
        return path.decode()
    except UnicodeDecodeError:
        return path


def dimension_names(
    h5py: Any, dataset: Any, attributes: StoredAttributes, names: ScaleNames
) -> Sequence[str | None] | None:
    """The labels of a dataset's dimensions, else the names of the scales attached to them; None if
    there are neither.
    """
    if "DIMENSION_LABELS" in attributes:
        labels = [one.label for one in dataset.dims]
        if any(labels):
            return labels
    if "DIMENSION_LIST" not in attributes:
        return None
    return [names.of(one[0]) if one else None for one in attached_scales(h5py, dataset)]


def storage_fault(h5py: Any, dataset: Any) -> str | None:
    """Why the bytes of a dataset cannot be had, None if they can."""
    layout = dataset.id.get_create_plist()
    if layout.get_layout() == h5py.h5d.VIRTUAL:
        return "is a virtual dataset, put together from other files; compare those"
    if layout.get_external_count():
        return "keeps its data in other files, which are not read"
    for number in range(layout.get_nfilters()):
        code, _, _, text = layout.get_filter(number)
        if not h5py.h5z.filter_avail(code):
            with contextlib.suppress(ImportError):
                import_module("hdf5plugin")  # importing it makes its filters known
        if not h5py.h5z.filter_avail(code):
            known = text.decode("utf-8", "replace") or "unnamed"
            return f"is packed with the HDF5 filter {code} ({known}), which is not installed"
    # Whether the library leaves what was never written as memory is.
    is_unfilled = (
        layout.fill_value_defined() == h5py.h5d.FILL_VALUE_UNDEFINED
        or layout.get_fill_time() == h5py.h5d.FILL_TIME_NEVER
    )
    if dataset.size and is_unfilled and _lacks_storage(h5py, dataset, layout):
        return "has values that were never written, and no fill value"
    return None


def _lacks_storage(h5py: Any, dataset: Any, layout: Any) -> bool:
    """Whether there is an element for which the file has no place."""
    if dataset.chunks is None:
        is_contiguous = layout.get_layout() == h5py.h5d.CONTIGUOUS
        return bool(is_contiguous and dataset.id.get_offset() is None)
    lengths = zip(dataset.shape, dataset.chunks, strict=True)
    wanted = math.prod(-(-length // chunk) for length, chunk in lengths)
    return bool(dataset.id.get_num_chunks() < wanted)


def _is_as_stored(h5py: Any, dataset: Any) -> bool:
    """Whether the bytes of a dataset are its values; not if they are 12 bits of 16, of which the
    library makes a number.
    """
    if not is_plain(dataset.dtype.base):
        return False
    stored = dataset.id.get_type()
    if isinstance(stored, h5py.h5t.TypeArrayID):
        stored = stored.get_super()
    return bool(stored == h5py.h5t.py_create(dataset.dtype.base, logical=True))


def _region(h5py: Any, path: Path, dataset: Any) -> FileRegion | None:
    """Where a contiguous dataset lies; None if it is stored otherwise."""
    offset = dataset.id.get_offset()
    if offset is None or dataset.chunks is not None or not _is_as_stored(h5py, dataset):
        return None
    if dataset.nbytes != dataset.id.get_storage_size():
        return None
    if offset + dataset.nbytes > path.stat().st_size:
        raise CorruptFileError(
            "ends before its last value", file=path, variable=plain_name(dataset.name).lstrip("/")
        )
    return FileRegion(str(path), int(offset), int(dataset.nbytes))


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
        library("h5py", file=path)
        return look_first(path, partial(_source, path, rule, attributes), has_open_files)


def has_open_files() -> bool:
    """Whether HDF5 holds a file open in this process, whoever opened it."""
    h5f = import_module("h5py").h5f
    return bool(h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_FILE))


def _source(path: Path, rule: IterationRule, attributes: AttributeRule) -> Source:
    h5py = library("h5py", file=path)
    file = open_file(h5py, path)
    listing = Listing(path)
    with closed_on_error(file.close), guarded(path):
        _Walk(h5py, file, listing, rule, attributes).list_all()
    return EntrySource(path, listing.entries, file.close, attributes_left_out=listing.left_out)


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
        self._scales = ScaleNames(h5py, file)
        self._is_openpmd = "openPMD" in file.attrs
        self._digits_after = ("data",) if rule.is_on and self._is_openpmd else ()

    def list_all(self) -> None:
        file = self._opened.file
        self._group(file, (), {self._address(file): "/"})

    def _group(self, group: Any, above: tuple[str, ...], inside: Mapping[int, str]) -> None:
        """inside: the groups that this one is in, itself among them, and their paths."""
        if len(above) > MAX_DEPTH:
            raise FileLimitError("nests its groups too deeply", file=self._listing.path)
        attributes = StoredAttributes(self._h5py, group)
        self._all_attributes(attributes, above)
        if self._is_openpmd and len(above) == 2 and above[0] == "data" and above[1].isdecimal():
            self._times(group, attributes, above)
        names = list(group)
        for name in names:
            called = plain_name(name)
            place = self._place(above, called)
            with self._listing.one("/".join([*above, called]), **place.facts):
                self._member(group, attributes, name, above, inside)
        if above and not names and self._is_openpmd and attributes.keys() >= CONSTANT:
            facts = self._place(above[:-1], above[-1]).facts
            add_constant(self._listing, "/".join(above), attributes, self._attributes, **facts)
        elif above and not names:
            # Without a variable nobody would see that the group is there.
            place = self._place(above[:-1], f"{above[-1]}/")
            path = "/".join([*above, ""])
            self._listing.add_array(path, np.empty(0, dtype=bool), **place.facts)

    def _times(self, iteration: Any, attributes: StoredAttributes, path: tuple[str, ...]) -> None:
        for name in TIMES:
            if name in attributes and name not in iteration:
                facts = self._place(path, name).facts
                with self._listing.one("/".join([*path, name]), **facts):
                    value = attributes[name]
                    self._listing.add_array("/".join([*path, name]), value, **facts)

    def _member(
        self,
        group: Any,
        around: Any,
        name: str | bytes,
        above: tuple[str, ...],
        inside: Mapping[int, str],
    ) -> None:
        """around: the attributes of the group."""
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
            attributes: Any = StoredAttributes(self._h5py, item)
            # Units may stand at the group that holds the components of one quantity.
            known = ChainMap(attributes, around)
            dimensions = dimension_names(self._h5py, item, attributes, self._scales)
            labels = self._attributes.labels(dimensions, known)
            opened, listing = self._opened, self._listing
            add_dataset(self._h5py, opened, listing, item, path, place, labels=labels)
            self._all_attributes(attributes, (*above, called))
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

    def _all_attributes(self, attributes: StoredAttributes, path: tuple[str, ...]) -> None:
        add_attributes(self._listing, attributes, path, self._place, self._attributes)
