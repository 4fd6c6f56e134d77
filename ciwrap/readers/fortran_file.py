"""Sequential unformatted files of Fortran, whose records the configuration describes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.dtypes import parse_dtype, storage_dtype
from ciwrap.closing import closed_on_error
from ciwrap.errors import CiwrapError, ConfigError, CorruptFileError, UnreadFileError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, FileRegion, Source, VariableInfo, as_elements
from ciwrap.readers.entries import Entry, EntrySource, Listing
from ciwrap.readers.files import InputFile
from ciwrap.readers.fortran_records import KINDS, Marks, Record, records_of
from ciwrap.readers.history import OPTION_NAMES as HISTORY_OPTIONS
from ciwrap.readers.history import IterationRule
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_RECORDS = "options.records"


class FortranReader(CheckedReader):
    """Records as `WRITE(unit)` leaves them, streamed; each is described by `records`.

    A file has the described records once, or again and again: every repetition is an iteration
    then. `first_records` come once, before them.
    """

    name: ClassVar[str] = "fortran"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["fortran"].suffixes
    option_names: ClassVar[tuple[str, ...]] = (
        *("records", "first_records", "mark_bytes", "byte_order"),
        *HISTORY_OPTIONS,
    )

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        rule = IterationRule.of(options, path)
        kinds = _kinds(options, path)
        file = InputFile(path)
        with closed_on_error(file.close):
            if "records" not in options:
                raise UnreadFileError(
                    "nothing says what its records hold",
                    file=path,
                    remedy="give 'options' with records, one entry for each WRITE, such as"
                    " [{names: [it, n], dtype: i4}, {u: f8}]",
                )
            marks, records = records_of(file, kinds)
            layout = _Layout(path, options, marks, rule)
            return EntrySource(path, layout.entries(file, records), file.close)


class _Field(Struct, frozen=True):
    """A variable within a record. shape: one length may be -1; None: as many as there is room."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def item_bytes(self) -> int:
        return storage_dtype(self.dtype).itemsize

    @property
    def known_bytes(self) -> int:
        return math.prod(n for n in self.shape if n != -1) * self.item_bytes


class _Layout:
    """What the configuration says of the records of a file."""

    def __init__(
        self, path: Path, options: Mapping[str, Any], marks: Marks, rule: IterationRule
    ) -> None:
        self._path = path
        self._rule = rule
        is_big = marks.order == "big"
        first = options.get("first_records") or []
        self._first = _described(path, "options.first_records", first, is_big=is_big)
        self._records = _described(path, _RECORDS, options["records"], is_big=is_big)
        if not self._records:
            raise ConfigError("must describe at least one record", file=path, key=_RECORDS)
        names = [field.name for fields in (*self._first, *self._records) for field in fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"names {twice!r} twice", file=path, key=_RECORDS)

    def entries(self, file: InputFile, records: Sequence[Record]) -> list[Entry]:
        """All variables of a file with these records."""
        listing = Listing(self._path)
        before, each = len(self._first), len(self._records)
        times, over = divmod(len(records) - before, each)
        if times < 1 or over or (times > 1 and not self._rule.is_on):
            raise CorruptFileError(
                f"has {len(records)} records, which is not {before} and"
                f" {each if not self._rule.is_on else f'a multiple of {each}'}",
                file=self._path,
                remedy="is the program still writing it, or do 'records' describe another file?",
            )
        for number, fields in enumerate(self._first):
            for entry in self._entries(file, records[number], number, fields):
                listing.put(entry)
        groups = [
            [
                self._entries(file, records[number], number, fields)
                for number, fields in enumerate(self._records, before + time * each)
            ]
            for time in range(times)
        ]
        found = [[entry for entries in group for entry in entries] for group in groups]
        if times == 1 and self._rule.variable is None:
            for entry in found[0]:
                listing.put(entry)
            return listing.entries
        steps = self._steps(found)
        for number, (step, entries) in enumerate(zip(steps, found, strict=True)):
            for entry in entries:
                listing.put(_in_history(entry, number, step))
        return listing.entries

    def _steps(self, found: list[list[Entry]]) -> list[int]:
        name = self._rule.variable
        if name is None:
            return list(range(len(found)))
        values: list[Any] = []
        for entries in found:
            entry = next((one for one in entries if one.info.name == name), None)
            if entry is None or entry.info.element_count != 1:
                raise ConfigError(
                    f"there is no variable {name!r} with one value in 'records'",
                    file=self._path,
                    key="options.iteration_variable",
                )
            values.append(entry.read(0, 1)[0])
        return self._rule.numbers(np.array(values), self._path, name)

    def _entries(
        self, file: InputFile, record: Record, number: int, fields: tuple[_Field, ...]
    ) -> list[Entry]:
        """The variables of one record. Raises CorruptFileError if it has another length."""
        known = sum(field.known_bytes for field in fields if -1 not in field.shape)
        found: list[Entry] = []
        at = 0
        for field in fields:
            shape = field.shape
            if -1 in shape:
                rows, over = divmod(record.byte_count - known, max(1, field.known_bytes))
                if rows < 0 or over or not field.known_bytes:
                    raise self._other_length(record, number, fields)
                shape = tuple(rows if n == -1 else n for n in shape)
            byte_count = math.prod(shape) * field.item_bytes
            if at + byte_count > record.byte_count:
                raise self._other_length(record, number, fields)
            offset = record.offset_of(at, byte_count)
            region = None if offset is None else FileRegion(str(self._path), offset, byte_count)
            info = VariableInfo(field.name, field.dtype, shape, region)
            found.append(Entry(info, _part_reader(file, record, at, field.dtype)))
            at += byte_count
        if at != record.byte_count:
            raise self._other_length(record, number, fields)
        return found

    def _other_length(
        self, record: Record, number: int, fields: tuple[_Field, ...]
    ) -> CorruptFileError:
        said = ", ".join(
            f"{field.name} ({field.dtype[1:]} {list(field.shape)})" for field in fields[:4]
        )
        return CorruptFileError(
            f"record {number + 1} has {record.byte_count} bytes, which do not hold {said}",
            file=self._path,
            remedy="is 'records' in the options right?",
        )


def _in_history(entry: Entry, number: int, step: int) -> Entry:
    info = entry.info
    return Entry(
        VariableInfo(
            f"{info.name}[{number}]", info.dtype, info.shape, info.region, info.name, step
        ),
        entry.read,
    )


def _part_reader(file: InputFile, record: Record, at: int, dtype: str) -> Any:
    item = storage_dtype(dtype).itemsize

    def read(first: int, count: int) -> NDArray[Any]:
        return as_elements(record.read(file, at + first * item, count * item), dtype)

    return read


def _kinds(options: Mapping[str, Any], path: Path) -> tuple[Marks, ...]:
    """The marks that the file may have. Raises ConfigError."""
    size, order = options.get("mark_bytes"), options.get("byte_order")
    if isinstance(size, bool) or size not in (None, 4, 8):
        raise ConfigError("must be 4 or 8", file=path, key="options.mark_bytes")
    if order not in (None, "little", "big"):
        raise ConfigError("must be little or big", file=path, key="options.byte_order")
    return tuple(
        kind for kind in KINDS if size in (None, kind.byte_count) and order in (None, kind.order)
    )


def _described(path: Path, key: str, given: Any, *, is_big: bool) -> list[tuple[_Field, ...]]:
    if not isinstance(given, (list, tuple)):
        raise ConfigError("must be a list with an entry for each record", file=path, key=key)
    return [
        tuple(_fields(path, f"{key}[{number}]", one, is_big=is_big))
        for number, one in enumerate(given)
    ]


def _fields(path: Path, key: str, given: Any, *, is_big: bool) -> Iterator[_Field]:
    """The variables of one record: `{names: [a, b], dtype: i4}`, or of each name its dtype, or a
    mapping of its dtype and shape.
    """
    if not isinstance(given, dict) or not given:
        raise ConfigError(
            "must be a mapping, such as {names: [it, n], dtype: i4} or {u: f8}", file=path, key=key
        )
    if "names" in given:
        names, dtype = given["names"], given.get("dtype")
        if set(given) != {"names", "dtype"} or not isinstance(names, (list, tuple)) or not names:
            raise ConfigError("must hold a list of names, and a dtype", file=path, key=key)
        given = {name: {"dtype": dtype, "shape": []} for name in names}
    free = [-1] if len(given) == 1 else []
    unknown = 0
    for name, one in given.items():
        facts = {"dtype": one} if isinstance(one, str) else one
        if not isinstance(facts, dict) or set(facts) - {"dtype", "shape"} or not name:
            raise ConfigError(
                "must be a dtype, or a mapping with dtype and shape", file=path, key=f"{key}.{name}"
            )
        shape = _shape(path, f"{key}.{name}.shape", facts.get("shape", free))
        unknown += shape.count(-1)
        if unknown > 1:
            raise ConfigError("may have one -1 in each record", file=path, key=key)
        yield _Field(str(name), _dtype(path, f"{key}.{name}", facts.get("dtype"), is_big), shape)


def _shape(path: Path, key: str, given: Any) -> tuple[int, ...]:
    lengths = given if isinstance(given, (list, tuple)) else [given]
    if len(lengths) > 32 or not all(type(n) is int and -1 <= n < 1 << 62 for n in lengths):
        raise ConfigError("must hold whole numbers, of which one may be -1", file=path, key=key)
    return tuple(lengths)


def _dtype(path: Path, key: str, given: Any, is_big: bool) -> str:
    if not isinstance(given, str):
        raise ConfigError("must be a dtype, as text such as f8", file=path, key=key)
    # What a person wrote of a byte order goes before that of the marks: a file may mix them.
    has_order = given.strip()[:1] in ("<", ">")
    try:
        return parse_dtype(given, big_endian=None if has_order else is_big)
    except CiwrapError as error:
        raise ConfigError(error.message, file=path, key=key) from error
