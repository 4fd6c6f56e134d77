"""Fortran's sequential unformatted files, whose records are configured.

A record lies between two marks, whole numbers that give its length in bytes. Compilers split
records that are too long for a mark of 4 bytes: the mark before a part is negative if more of the
record follows, the mark after it if some of it came before (GNU Fortran manual, "File format of
unformatted sequential files").
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.values import FileRegion, parse_dtype, storage_dtype
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    FileLimitError,
    NotComparableError,
    UnreadFileError,
)
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import OPTION_NAMES as HISTORY_OPTIONS
from ciwrap.formats.entries import (
    Entry,
    EntrySource,
    IterationRule,
    Listing,
    filled_in,
    lengths_of,
)
from ciwrap.formats.reader import CheckedReader, InputFile, Source, VariableInfo, as_elements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ByteOrder = Literal["little", "big"]
MOST_RECORDS = 4_000_000
# Marks of short records are read many at a time.
_WINDOW_BYTES = 4096


class Marks(NamedTuple):
    """How the marks of a file are written."""

    byte_count: int
    order: ByteOrder

    def __str__(self) -> str:
        return f"{self.byte_count} bytes, {self.order}-endian"


_ORDERS: tuple[ByteOrder, ...] = ("little", "big")
KINDS = tuple(Marks(count, order) for count in (4, 8) for order in _ORDERS)


class Record(Struct, frozen=True):
    """One record. starts: how many of its bytes come before each part; offsets: where in the file
    the part begins. A record that is not split is one part.
    """

    byte_count: int
    starts: tuple[int, ...]
    offsets: tuple[int, ...]

    def offset_of(self, at: int, count: int) -> int | None:
        """Where in the file these bytes of the record lie together; None if they do not."""
        part = bisect_right(self.starts, at) - 1
        end = (*self.starts, self.byte_count)[part + 1]
        return self.offsets[part] + at - self.starts[part] if at + count <= end else None

    def elements(
        self, file: InputFile, at: int, dtype: str, first: int, count: int
    ) -> NDArray[Any]:
        """Some of the elements that lie back to back from byte `at` of the record on."""
        item = storage_dtype(dtype).itemsize
        return as_elements(self.read(file, at + first * item, count * item), dtype)

    def read(self, file: InputFile, at: int, count: int) -> bytes | bytearray:
        """Bytes at .. at + count - 1 of the record. Raises as `InputFile.read_at`."""
        whole = self.offset_of(at, count)
        if whole is not None:
            return file.read_at(whole, count)
        found = bytearray()
        ends = (*self.starts[1:], self.byte_count)
        for start, end, offset in zip(self.starts, ends, self.offsets, strict=True):
            first, last = max(at, start), min(at + count, end)
            if first < last:
                found += file.read_at(offset + first - start, last - first)
        return found


class RecordScan:
    """Goes through the marks of a file, record by record, and reads nothing else."""

    def __init__(self, file: InputFile, marks: Marks) -> None:
        self._file = file
        self._marks = marks
        self._window = b""
        self._window_at = 0
        self.at = 0
        self.count = 0

    @property
    def is_done(self) -> bool:
        return self.at >= self._file.byte_count

    def next(self) -> Record:
        """The next record. Raises CorruptFileError that says which mark is wrong."""
        size = self._marks.byte_count
        starts: list[int] = []
        offsets: list[int] = []
        total = 0
        goes_on = True
        while goes_on:
            begin = self.at + size
            before = self._mark(self.at)
            goes_on = before < 0
            length = abs(before)
            if begin + length + size > self._file.byte_count:
                raise self._damaged(
                    f"claims {length} bytes at byte {self.at}, and the file ends after"
                    f" {self._file.byte_count}"
                )
            after = self._mark(begin + length)
            wanted = -length if starts else length
            if after != wanted:
                raise self._damaged(
                    f"is {length} bytes long by the mark at byte {self.at}, and the mark behind it"
                    f" says {after}"
                )
            starts.append(total)
            offsets.append(begin)
            total += length
            self.at = begin + length + size
            # An empty part in the middle would let a small file claim records without end.
            if goes_on and not length:
                raise self._damaged(f"is split at byte {begin} where it is empty")
        self.count += 1
        if self.count > MOST_RECORDS:
            raise FileLimitError(f"holds more than {MOST_RECORDS} records")
        return Record(total, tuple(starts), tuple(offsets))

    def _mark(self, at: int) -> int:
        within = at - self._window_at
        size = self._marks.byte_count
        if not 0 <= within <= len(self._window) - size:
            self._window = self._file.read_some(at, _WINDOW_BYTES)
            self._window_at = at
            within = 0
        mark = self._window[within : within + size]
        if len(mark) < size:
            raise self._damaged(f"begins at byte {at}, and the file ends within its mark")
        return int.from_bytes(mark, self._marks.order, signed=True)

    def _damaged(self, problem: str) -> CorruptFileError:
        return CorruptFileError(
            f"record {self.count + 1} {problem} (marks of {self._marks})",
        )


def records_of(file: InputFile, kinds: tuple[Marks, ...]) -> tuple[Marks, list[Record]]:
    """All records of a file, and which of these kinds its marks are.

    Raises CorruptFileError if they fit none of them, with what is wrong by the kind that goes
    furthest, and for an empty file; NotComparableError if they fit several that mean other bytes.
    """
    if not file.byte_count:
        raise CorruptFileError("is empty")
    found: list[tuple[Marks, list[Record]]] = []
    furthest, problem = -1, None
    for kind in kinds:
        scan = RecordScan(file, kind)
        records: list[Record] = []
        try:
            while not scan.is_done:
                records.append(scan.next())
        except CorruptFileError as error:
            if scan.at > furthest:
                furthest, problem = scan.at, error
            continue
        found.append((kind, records))
    if len(found) > 1:
        said = " or ".join(str(kind) for kind, _ in found)
        raise NotComparableError(
            f"may have marks of {said}",
            remedy="give 'options' with mark_bytes (4 or 8) and byte_order (little or big)",
        )
    if not found:
        assert problem is not None
        problem.remedy = "is it whole, and was it opened as sequential unformatted?"
        raise problem
    return found[0]


def looks_like_fortran(path: Path) -> bool:
    """Whether a file may hold records of unformatted Fortran: its first one lies between its marks.

    Bytes may come out so by chance: no file is read for this alone.
    """
    with contextlib.suppress(NotComparableError), contextlib.closing(InputFile(path)) as file:
        for kind in KINDS:
            with contextlib.suppress(CorruptFileError):
                if RecordScan(file, kind).next().byte_count:
                    return True
    return False


_RECORDS = "options.records"


class FortranReader(CheckedReader):
    """Records as `WRITE(unit)` leaves them, streamed; each is described by `records`.

    A file has the described records once, or again and again: every repetition is an iteration
    then. `first_records` come once, before them.
    """

    name: ClassVar[str] = "fortran"
    option_names: ClassVar[tuple[str, ...]] = (
        *("records", "first_records", "mark_bytes", "byte_order"),
        *HISTORY_OPTIONS,
    )

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        rule = IterationRule.of(options)
        kinds = _kinds(options)
        file = InputFile(path)
        with closed_on_error(file.close):
            if "records" not in options:
                raise UnreadFileError(
                    "nothing says what its records hold",
                    remedy="give 'options' with records, one entry for each WRITE, such as"
                    " [{names: [it, n], dtype: i4}, {u: f8}]",
                )
            marks, records = records_of(file, kinds)
            layout = _Layout(options, marks, rule)
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

    def __init__(self, options: Mapping[str, Any], marks: Marks, rule: IterationRule) -> None:
        self._rule = rule
        is_big = marks.order == "big"
        first = options.get("first_records") or []
        self._first = _described("options.first_records", first, is_big=is_big)
        self._records = _described(_RECORDS, options["records"], is_big=is_big)
        if not self._records:
            raise ConfigError("must describe at least one record", key=_RECORDS)
        names = [field.name for fields in (*self._first, *self._records) for field in fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"names {twice!r} twice", key=_RECORDS)

    def entries(self, file: InputFile, records: Sequence[Record]) -> list[Entry]:
        """All variables of a file with these records."""
        listing = Listing(file.path)
        before, each = len(self._first), len(self._records)
        times, over = divmod(len(records) - before, each)
        if times < 1 or over or (times > 1 and not self._rule.is_on):
            raise CorruptFileError(
                f"has {len(records)} records, which is not {before} and"
                f" {each if not self._rule.is_on else f'a multiple of {each}'}",
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
        def values_of(name: str) -> list[Any]:
            ones = [one for entries in found for one in entries if one.info.name == name]
            return [one.read(0, 1)[0] for one in ones if one.info.element_count == 1]

        return self._rule.along("records", len(found), values_of)

    def _entries(
        self, file: InputFile, record: Record, number: int, fields: tuple[_Field, ...]
    ) -> list[Entry]:
        """The variables of one record. Raises CorruptFileError if it has another length."""
        known = sum(field.known_bytes for field in fields if -1 not in field.shape)
        found: list[Entry] = []
        at = 0
        for field in fields:
            byte_count = field.known_bytes
            if -1 in field.shape:
                byte_count = record.byte_count - known
            shape = filled_in(field.shape, byte_count, field.item_bytes)
            if shape is None or at + byte_count > record.byte_count:
                raise self._other_length(record, number, fields)
            offset = record.offset_of(at, byte_count)
            region = None if offset is None else FileRegion(str(file.path), offset, byte_count)
            info = VariableInfo(field.name, field.dtype, shape, region)
            found.append(Entry(info, partial(record.elements, file, at, field.dtype)))
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
            remedy="is 'records' in the options right?",
        )


def _in_history(entry: Entry, number: int, step: int) -> Entry:
    name = entry.info.name
    info = replace(entry.info, name=f"{name}[{number}]", called=name, iteration=step)
    return Entry(info, entry.read)


def _kinds(options: Mapping[str, Any]) -> tuple[Marks, ...]:
    """The marks that the file may have. Raises ConfigError."""
    size, order = options.get("mark_bytes"), options.get("byte_order")
    if isinstance(size, bool) or size not in (None, 4, 8):
        raise ConfigError("must be 4 or 8", key="options.mark_bytes")
    if order not in (None, "little", "big"):
        raise ConfigError("must be little or big", key="options.byte_order")
    return tuple(
        kind for kind in KINDS if size in (None, kind.byte_count) and order in (None, kind.order)
    )


def _described(key: str, given: Any, *, is_big: bool) -> list[tuple[_Field, ...]]:
    if not isinstance(given, (list, tuple)):
        raise ConfigError("must be a list with an entry for each record", key=key)
    return [
        tuple(_fields(f"{key}[{number}]", one, is_big=is_big)) for number, one in enumerate(given)
    ]


def _fields(key: str, given: Any, *, is_big: bool) -> Iterator[_Field]:
    """The variables of one record: `{names: [a, b], dtype: i4}`, or of each name its dtype, or a
    mapping of its dtype and shape.
    """
    if not isinstance(given, dict) or not given:
        raise ConfigError(
            "must be a mapping, such as {names: [it, n], dtype: i4} or {u: f8}", key=key
        )
    if "names" in given:
        names, dtype = given["names"], given.get("dtype")
        if set(given) != {"names", "dtype"} or not isinstance(names, (list, tuple)) or not names:
            raise ConfigError("must hold a list of names, and a dtype", key=key)
        given = {name: {"dtype": dtype, "shape": []} for name in names}
    free = [-1] if len(given) == 1 else []
    unknown = 0
    for name, one in given.items():
        facts = {"dtype": one} if isinstance(one, str) else one
        if not isinstance(facts, dict) or set(facts) - {"dtype", "shape"} or not name:
            raise ConfigError(
                "must be a dtype, or a mapping with dtype and shape", key=f"{key}.{name}"
            )
        shape = lengths_of(facts.get("shape", free), f"{key}.{name}.shape")
        unknown += shape.count(-1)
        if unknown > 1:
            raise ConfigError("may have one -1 in each record", key=key)
        yield _Field(str(name), _dtype(f"{key}.{name}", facts.get("dtype"), is_big), shape)


def _dtype(key: str, given: Any, is_big: bool) -> str:
    if not isinstance(given, str):
        raise ConfigError("must be a dtype, as text such as f8", key=key)
    # What a person wrote of a byte order goes before that of the marks: a file may mix them.
    has_order = given.strip()[:1] in ("<", ">")
    try:
        return parse_dtype(given, big_endian=None if has_order else is_big)
    except CiwrapError as error:
        raise ConfigError(error.message, key=key) from error
