"""The journal of one process of a recorded run (docs/reference/recording-format.md).

A journal only grows, perhaps while it is read. What stands behind the last whole record is still
being written, or was when the program died; a checkpoint counts once its last record is there.
"""

from __future__ import annotations

import math
import os
import struct
from typing import TYPE_CHECKING

from ciwrap import _core
from ciwrap.captures.index import MadeWith
from ciwrap.errors import CorruptCaptureError, UnreadableFileError, UnsupportedFormatError
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

MAGIC = b"\x89CWREC\r\n"
VERSION = 1
_HEAD = struct.Struct("<8sIIQQ16x16s")
_RECORD = struct.Struct("<IIQqIIQQ")
_RECORD_MAGIC = 0x52575243
_CHECKSUM_BYTES = 16
ATTEMPT, POINT, VARIABLE, TREE, COMPLETE, HOLE, ERROR, END = range(1, 9)
_MOST_DIMENSIONS = 15


class RecordedVariable(Struct, frozen=True):
    """A variable as the journal introduces it."""

    name: str
    made_with: MadeWith


class RecordedTree(Struct, frozen=True):
    """A variable at a checkpoint: its plain tree, root first, or the reason that there is none."""

    variable: RecordedVariable
    shape: tuple[int, ...] = ()
    digests: bytes = b""
    reason: str | None = None


class RecordedCheckpoint(Struct, frozen=True):
    """All that was recorded at one point of an iteration. attempt: how often the program began."""

    iteration: int
    point: str
    attempt: int
    trees: tuple[RecordedTree, ...]


class JournalReader(Struct):
    """A journal from its beginning to the last whole record.

    Of what `checkpoints` has read so far: program, made_at (seconds since 1970), made_by: of the
    last attempt; has_table: whether it had a table of bounds; errors: what the program could not
    record; is_closed: whether it closed the journal.
    """

    path: Path
    rank: int = 0
    ranks: int = 1
    program: str = ""
    made_at: int = 0
    made_by: str = ""
    has_table: bool = False
    errors: list[str] = field(default_factory=list)
    is_closed: bool = False

    def read_head(self) -> None:
        """Reads who wrote the journal. Raises as `checkpoints` does."""
        try:
            with self.path.open("rb") as file:
                self._read_head(file)
        except OSError as error:
            raise UnreadableFileError(error.strerror or str(error), file=self.path) from error

    def checkpoints(self) -> Iterator[RecordedCheckpoint]:
        """All checkpoints that are complete, in the order in which they were written.

        Raises UnreadableFileError, UnsupportedFormatError for another version, and
        CorruptCaptureError for a record that is all there and is not what its checksum promises.
        """
        try:
            with self.path.open("rb") as file:
                self._read_head(file)
                yield from _Attempts(self).checkpoints(file)
        except OSError as error:
            raise UnreadableFileError(error.strerror or str(error), file=self.path) from error

    def _read_head(self, file: BinaryIO) -> None:
        raw = file.read(_HEAD.size)
        if len(raw) < _HEAD.size or not raw.startswith(MAGIC):
            raise self.damaged("it does not begin as a journal")
        _, version, _, rank, ranks, checksum = _HEAD.unpack(raw)
        if _core.xxh3_128(raw[: _HEAD.size - _CHECKSUM_BYTES]) != checksum:
            raise self.damaged("its head")
        if version != VERSION:
            raise UnsupportedFormatError(
                f"is a journal of format {version}, this release reads {VERSION}",
                file=self.path,
                remedy="record the run again",
            )
        self.rank, self.ranks = rank, ranks

    def damaged(self, what: str) -> CorruptCaptureError:
        return CorruptCaptureError(
            f"is damaged ({what})", file=self.path, remedy="record the run again"
        )


class _Attempts(Struct):
    """What the records read so far say, of the attempt that they belong to."""

    journal: JournalReader
    attempt: int = 0
    points: dict[int, str] = field(default_factory=lambda: {0: ""})
    variables: dict[int, RecordedVariable] = field(default_factory=dict)
    waiting: list[RecordedTree] = field(default_factory=list)
    place: tuple[int, int] | None = None  # iteration and point of what waits

    def checkpoints(self, file: BinaryIO) -> Iterator[RecordedCheckpoint]:
        for kind, iteration, point, variable, payload in _records(self.journal, file):
            fields = _Fields(self.journal, payload)
            if kind != ATTEMPT and self.attempt == 0:
                raise self.journal.damaged("a record before the first attempt")
            if kind in (TREE, HOLE, COMPLETE):
                self._belongs_to((iteration, point))
            if kind == ATTEMPT:
                self._begin(fields)
            elif kind == POINT:
                self.points[point] = fields.text()
            elif kind == VARIABLE:
                self.variables[variable] = RecordedVariable(fields.text(), fields.made_with())
            elif kind == TREE:
                self.waiting.append(self._tree(self._known(variable), fields))
            elif kind == HOLE:
                self.waiting.append(RecordedTree(self._known(variable), reason=fields.text()))
            elif kind == COMPLETE:
                yield self._complete(iteration, point, fields)
            elif kind == ERROR:
                self.journal.errors.append(fields.text())
            elif kind == END:
                self.journal.is_closed = True
                fields.take(40)
            else:
                raise self.journal.damaged(f"a record of type {kind}")
            fields.end()

    def _belongs_to(self, place: tuple[int, int]) -> None:
        if place[0] < 0 or place[1] not in self.points:
            raise self.journal.damaged("a checkpoint's place")
        if self.waiting and place != self.place:
            raise self.journal.damaged("two checkpoints at once")
        self.place = place

    def _begin(self, fields: _Fields) -> None:
        journal = self.journal
        journal.program, journal.made_by = fields.text(), fields.text()
        journal.made_at = fields.u64()
        journal.has_table = fields.u32() != 0
        journal.is_closed = False
        self.attempt += 1
        self.points = {0: ""}
        self.variables, self.waiting, self.place = {}, [], None

    def _known(self, number: int) -> RecordedVariable:
        try:
            return self.variables[number]
        except KeyError:
            raise self.journal.damaged(f"variable {number} has no name") from None

    def _tree(self, variable: RecordedVariable, fields: _Fields) -> RecordedTree:
        if fields.u32() != 0:
            raise self.journal.damaged("a tree of an unknown kind")
        dimensions = fields.u32()
        if dimensions > _MOST_DIMENSIONS:
            raise self.journal.damaged("a shape")
        shape = tuple(fields.u64() for _ in range(dimensions))
        return RecordedTree(variable, shape, fields.rest())

    def _complete(self, iteration: int, point: int, fields: _Fields) -> RecordedCheckpoint:
        if fields.u32() != len(self.waiting):
            raise self.journal.damaged("a checkpoint that is not whole")
        trees, self.waiting = tuple(self.waiting), []
        return RecordedCheckpoint(iteration, self.points[point], self.attempt, trees)


def _records(journal: JournalReader, file: BinaryIO) -> Iterator[tuple[int, int, int, int, bytes]]:
    """Type, iteration, point, variable and payload of every whole record."""
    count = 0
    # As long as it is now: a program may write faster than this reads.
    size = os.fstat(file.fileno()).st_size
    while len(head := file.read(_RECORD.size)) == _RECORD.size:
        magic, kind, length, iteration, point, variable, unused, number = _RECORD.unpack(head)
        if magic != _RECORD_MAGIC or number != count or unused:
            raise journal.damaged(f"record {count}")
        padded = -(-length // 8) * 8
        if padded + _CHECKSUM_BYTES > size - file.tell():
            return  # still being written, or its writer died
        body = file.read(padded + _CHECKSUM_BYTES)
        if len(body) < padded + _CHECKSUM_BYTES:
            return
        payload, checksum = body[:padded], body[padded:]
        if _core.xxh3_128(head + payload) != checksum:
            raise journal.damaged(f"record {count}")
        yield kind, iteration, point, variable, payload[:length]
        count += 1


class _Fields:
    """A payload, taken apart from its beginning on. Raises CorruptCaptureError."""

    def __init__(self, journal: JournalReader, payload: bytes) -> None:
        self._journal = journal
        self._payload = payload
        self._at = 0

    def take(self, count: int) -> bytes:
        found = self._payload[self._at : self._at + count]
        if len(found) != count:
            raise self._journal.damaged("a record that is too short")
        self._at += count
        return found

    def rest(self) -> bytes:
        return self.take(len(self._payload) - self._at)

    def end(self) -> None:
        if self._at != len(self._payload):
            raise self._journal.damaged("a record that is too long")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def f64(self) -> float:
        value: float = struct.unpack("<d", self.take(8))[0]
        return value

    def text(self) -> str:
        raw = self.take(self.u32())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("utf-8", "backslashreplace")

    def made_with(self) -> MadeWith:
        dtype = self.text()
        atol, rtol, ulps = self.f64(), self.f64(), self.u64()
        residue_levels, arity, chunk_bytes = self.u32(), self.u32(), self.u64()
        equal_nan = self.u32() != 0
        fills = tuple(_fill_value(dtype, self.take(8)) for _ in range(self.u32()))
        if not (math.isfinite(atol) and math.isfinite(rtol)):
            raise self._journal.damaged("a bound")
        return MadeWith(
            dtype, atol, rtol, ulps, residue_levels, chunk_bytes, arity, equal_nan, fills
        )


def _fill_value(dtype: str, bits: bytes) -> float:
    """The number behind the bits of one scalar, little-endian."""
    import numpy as np

    if dtype[1:] == "bf2":
        return float(np.frombuffer(b"\0\0" + bits[:2], "<f4")[0])
    kind = dtype[1:2]
    size = int(dtype[2:]) // (2 if kind == "c" else 1)
    return float(np.frombuffer(bits[:size], f"<{'f' if kind == 'c' else kind}{size}")[0])
