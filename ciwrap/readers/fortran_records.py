"""Records of sequential unformatted Fortran files: where they lie, each between two marks.

A mark is a whole number that says how many bytes the record has, before it and once more after it.
Compilers split records that are too long for a mark of 4 bytes: the mark before a part is negative
if more of the record follows, the mark after it if some of the record came before (GNU Fortran
manual, "File format of unformatted sequential files").
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, NamedTuple

from ciwrap.errors import CorruptFileError, FileLimitError, NotComparableError
from ciwrap.readers.files import InputFile
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from pathlib import Path

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
            raise FileLimitError(f"holds more than {MOST_RECORDS} records", file=self._file.path)
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
            file=self._file.path,
            remedy="is the program still writing it, and was it opened as sequential unformatted?",
        )


def records_of(file: InputFile, kinds: tuple[Marks, ...]) -> tuple[Marks, list[Record]]:
    """All records of a file, and which of these kinds its marks are.

    Raises CorruptFileError if they fit none of them, with what is wrong by the kind that goes
    furthest, and for an empty file; NotComparableError if they fit several that mean other bytes.
    """
    if not file.byte_count:
        raise CorruptFileError(
            "is empty", file=file.path, remedy="is the program still writing it?"
        )
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
            file=file.path,
            remedy="give 'options' with mark_bytes (4 or 8) and byte_order (little or big)",
        )
    if not found:
        assert problem is not None
        raise problem
    return found[0]


def looks_like_fortran(path: Path) -> bool:
    """Whether a file may hold records of unformatted Fortran: its first one lies between its marks.

    Bytes may come out so by chance: no file is read for this alone.
    """
    with contextlib.suppress(NotComparableError):
        file = InputFile(path)
        try:
            return any(_begins_with_record(file, kind) for kind in KINDS)
        finally:
            file.close()
    return False


def _begins_with_record(file: InputFile, kind: Marks) -> bool:
    with contextlib.suppress(CorruptFileError):
        return RecordScan(file, kind).next().byte_count > 0
    return False
