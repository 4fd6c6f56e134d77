"""Reads and writes the journal of one process of a recorded run
(docs/reference/recording-format.md).

A journal only grows, perhaps while it is read. What stands behind the last whole record is still
being written, or was when the program died; a checkpoint counts once its last record is there.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct, field

from ciwrap import _core
from ciwrap.base.errors import (
    CorruptCaptureError,
    UnsupportedFormatError,
)
from ciwrap.base.files import writing
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import Closing
from ciwrap.formats.reader import reading
from ciwrap.runs.capture_index import MadeWith


class RecordedVariable(Struct, frozen=True):
    """A variable as the journal introduces it."""

    name: str
    made_with: MadeWith


class RecordedTree(Struct, frozen=True):
    """One tree: its digests, root first, and residues behind them if it is a fine one.

    offset: where they begin in the journal. against: the fine tree that it was made against.
    max_share: how much of the bound values had moved from there, over chunks that match.
    """

    body: bytes
    offset: int
    against: bytes | None = None
    max_share: float | None = None


class Compared(Struct, frozen=True):
    """How a variable was compared with a reference while the program ran.

    reason: why it was not. max_share: of the bound, over chunks that match; None where equality was
    asked for, or no chunk matches. proven_chunks: of the suspect ones, how many surely hold a value
    beyond its bound. least_share: by how many times the bound one of these moved at least; None
    where no distance is sure.
    """

    reason: str | None
    chunks: int
    suspect_chunks: int
    max_share: float | None
    proven_chunks: int = 0
    least_share: float | None = None


class RecordedState(Struct):
    """A variable at a checkpoint: its trees by kind, or the reason that there are none.

    samples: of chunks that do not match the reference, where their elements lie in the journal, and
    how many bytes they are. summaries: of the chunks of some of its trees, by kind: where they lie,
    and their bytes.
    """

    variable: RecordedVariable
    shape: tuple[int, ...] = ()
    trees: dict[int, RecordedTree] = field(default_factory=dict)
    reason: str | None = None
    compared: Compared | None = None
    samples: dict[int, tuple[int, int]] = field(default_factory=dict)
    summaries: dict[int, tuple[int, bytes]] = field(default_factory=dict)


class RecordedCheckpoint(Struct, frozen=True):
    """All that was recorded at one point of an iteration. attempt: how often the program began."""

    iteration: int
    point: str
    attempt: int
    states: tuple[RecordedState, ...]


class RecordingCost(Struct, frozen=True):
    """What recording took of a process.

    data_bytes: of the arrays that were hashed. seconds: in calls, waiting for the journal included.
    held_bytes: of trees, residues and buffers, at most.
    """

    data_bytes: int
    seconds: float
    held_bytes: int


MAGIC = b"\x89CWREC\r\n"
VERSION = 3
_OLDEST = 2  # without what summaries prove
_HEAD = struct.Struct("<8sIIQQ16x16s")
_RECORD = struct.Struct("<IIQqIIQQ")
RECORD_MAGIC = 0x52575243
_CHECKSUM_BYTES = 16
ATTEMPT, POINT, VARIABLE, TREE, COMPLETE, HOLE, ERROR, END, COMPARED, SAMPLE, SUMMARIES = range(
    1, 12
)
PLAIN, FINE, RELATIVE = range(3)
END_NUMBERS = 6  # in the record END, of 8 bytes each
_MOST_DIMENSIONS = 15
_PIECE_BYTES = 1 << 20
_MOST_RECORDS = 1 << 32


class JournalReader(Struct):
    """A journal from its beginning to the last whole record.

    Of what `checkpoints` has read so far: program, made_at (seconds since 1970), made_by: of the
    last attempt; has_table: whether it had a table of bounds; errors: what the program could not
    record; is_closed: whether it closed the journal; costs: of each attempt that did.
    """

    path: Path
    version: int = VERSION
    rank: int = 0
    ranks: int = 1
    program: str = ""
    made_at: int = 0
    made_by: str = ""
    has_table: bool = False
    errors: list[str] = field(default_factory=list)
    is_closed: bool = False
    costs: list[RecordingCost] = field(default_factory=list)

    def read_head(self) -> None:
        """Reads who wrote the journal. Raises as `checkpoints` does."""
        with reading(self.path), self.path.open("rb") as file:
            self.read_head_of(file)

    def checkpoints(self) -> Iterator[RecordedCheckpoint]:
        """All checkpoints that are complete, in the order in which they were written.

        Raises UnreadableFileError, UnsupportedFormatError for another version, and
        CorruptCaptureError for a record that is all there and is not what its checksum promises.
        """
        yield from JournalFollower(self).new_checkpoints()

    def read_head_of(self, file: BinaryIO) -> None:
        """The same of the journal, which is open at its beginning."""
        raw = file.read(_HEAD.size)
        if len(raw) < _HEAD.size or not raw.startswith(MAGIC):
            raise self.damaged("it does not begin as a journal")
        _, version, _, rank, ranks, checksum = _HEAD.unpack(raw)
        if _core.xxh3_128(raw[: _HEAD.size - _CHECKSUM_BYTES]) != checksum:
            raise self.damaged("its head")
        if not _OLDEST <= version <= VERSION:
            raise UnsupportedFormatError(
                f"is a journal of format {version}, this release reads {_OLDEST} to {VERSION}",
                file=self.path,
                remedy="record the run again",
            )
        self.version, self.rank, self.ranks = version, rank, ranks

    def damaged(self, what: str) -> CorruptCaptureError:
        return CorruptCaptureError(
            f"is damaged ({what})", file=self.path, remedy="record the run again"
        )


class JournalFollower:
    """A journal that grows: each call reads on where the last one ended."""

    def __init__(self, journal: JournalReader) -> None:
        self.journal = journal
        self._attempts = _Attempts(journal)
        self._offset = 0
        self._count = 0  # whole records before there

    def new_checkpoints(self) -> Iterator[RecordedCheckpoint]:
        """Checkpoints that are complete now, and were not before. Raises as `checkpoints` does."""
        path = self.journal.path
        with reading(path), path.open("rb") as file:
            if self._offset == 0:
                self.journal.read_head_of(file)
            else:
                file.seek(self._offset)
            yield from self._attempts.checkpoints(self._records(file))

    def _records(self, file: BinaryIO) -> Iterator[_Record]:
        """Every whole record from here on."""
        journal = self.journal
        # As long as it is now: a program may write faster than this reads.
        size = os.fstat(file.fileno()).st_size
        self._offset = file.tell()
        while len(head := file.read(_RECORD.size)) == _RECORD.size:
            magic, kind, length, iteration, point, variable, unused, number = _RECORD.unpack(head)
            if magic != RECORD_MAGIC or number != self._count or unused:
                raise journal.damaged(f"record {self._count}")
            padded = -(-length // 8) * 8
            offset = file.tell()
            if padded + _CHECKSUM_BYTES > size - offset:
                if _holds_later_record(file, size, self._count):
                    raise journal.damaged(f"the length of record {self._count}")
                return  # still being written, or its writer died
            body = file.read(padded + _CHECKSUM_BYTES)
            if len(body) < padded + _CHECKSUM_BYTES:
                return
            payload, checksum = body[:padded], body[padded:]
            if _core.xxh3_128(head + payload) != checksum:
                raise journal.damaged(f"record {self._count}")
            self._count += 1
            self._offset = file.tell()
            yield _Record(kind, iteration, point, variable, payload[:length], offset)


def _holds_later_record(file: BinaryIO, end: int, number: int) -> bool:
    """Whether a record after the one of that number begins between here and `end`. Then the length
    that leads behind it is damaged: what is written last has nothing behind it.
    """
    begin = struct.pack("<I", RECORD_MAGIC)
    kept = b""
    # What was read last may have been written after the journal ended at `end`.
    while piece := file.read(max(0, min(_PIECE_BYTES, end - file.tell()))):
        kept += piece
        at = kept.find(begin)
        while 0 <= at <= len(kept) - _RECORD.size:
            *_, unused, found = _RECORD.unpack_from(kept, at)
            if 0 < found - number < _MOST_RECORDS and not unused:
                return True
            at = kept.find(begin, at + 1)
        kept = kept[1 - _RECORD.size :]
    return False


class _Record(NamedTuple):
    """offset: where the payload begins."""

    kind: int
    iteration: int
    point: int
    variable: int
    payload: bytes
    offset: int


class _Attempts(Struct):
    """What the records read so far say, of the attempt that they belong to."""

    journal: JournalReader
    attempt: int = 0
    points: dict[int, str] = field(default_factory=lambda: {0: ""})
    variables: dict[int, RecordedVariable] = field(default_factory=dict)
    waiting: dict[int, RecordedState] = field(default_factory=dict)  # by number of the variable
    waiting_records: int = 0
    place: tuple[int, int] | None = None  # iteration and point of what waits
    told_errors: int = 0

    def checkpoints(self, records: Iterable[_Record]) -> Iterator[RecordedCheckpoint]:
        for kind, iteration, point, variable, payload, offset in records:
            fields = _Fields(self.journal, payload, offset)
            if kind != ATTEMPT and self.attempt == 0:
                raise self.journal.damaged("a record before the first attempt")
            if kind in (TREE, HOLE, COMPLETE, COMPARED, SAMPLE, SUMMARIES):
                self._belongs_to((iteration, point))
            if kind == ATTEMPT:
                self._begin(fields)
            elif kind == POINT:
                self.points[point] = fields.text()
            elif kind == VARIABLE:
                self.variables[variable] = RecordedVariable(fields.text(), fields.made_with())
            elif kind in (TREE, HOLE, COMPARED, SAMPLE, SUMMARIES):
                self._take(kind, self._state(variable), fields)
            elif kind == COMPLETE:
                yield self._complete(iteration, point, fields)
            elif kind == ERROR:
                self.journal.errors.append(fields.text())
                self.told_errors += 1
            elif kind == END:
                self._end(fields)
            else:
                raise self.journal.damaged(f"a record of type {kind}")
            fields.end()

    def _belongs_to(self, place: tuple[int, int]) -> None:
        if place[0] < 0 or place[1] not in self.points:
            raise self.journal.damaged("a checkpoint's place")
        if self.waiting_records and place != self.place:
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
        self.variables, self.waiting, self.place = {}, {}, None
        self.waiting_records = self.told_errors = 0

    def _end(self, fields: _Fields) -> None:
        """What the library counted as an error and could not write down was not recorded either."""
        journal = self.journal
        journal.is_closed = True
        cost, errors = fields.cost()
        journal.costs.append(cost)
        if errors > self.told_errors:
            journal.errors.append("something of which only stderr tells")

    def _state(self, number: int) -> RecordedState:
        """What waits of a variable."""
        if number not in self.variables:
            raise self.journal.damaged(f"variable {number} has no name")
        self.waiting_records += 1
        return self.waiting.setdefault(number, RecordedState(self.variables[number]))

    def _take(self, kind: int, state: RecordedState, fields: _Fields) -> None:
        if kind == TREE:
            self._take_tree(state, fields)
        elif kind == HOLE:
            state.reason = fields.text()
        elif kind == COMPARED:
            state.compared = fields.compared()
        elif kind == SUMMARIES:
            of_tree, _ = fields.u32(), fields.u32()
            if of_tree not in state.trees or of_tree in state.summaries:
                raise self.journal.damaged("summaries of no tree, or twice")
            offset = fields.offset
            state.summaries[of_tree] = offset, fields.rest()
        else:
            leaf = fields.u64()
            offset = fields.offset
            state.samples[leaf] = (offset, len(fields.rest()))

    def _take_tree(self, state: RecordedState, fields: _Fields) -> None:
        kind, dimensions = fields.u32(), fields.u32()
        if kind not in (PLAIN, FINE, RELATIVE) or kind in state.trees:
            raise self.journal.damaged("a tree of an unknown kind, or one twice")
        if dimensions > _MOST_DIMENSIONS:
            raise self.journal.damaged("a shape")
        shape = tuple(fields.u64() for _ in range(dimensions))
        if state.trees and shape != state.shape:
            raise self.journal.damaged("two shapes of one variable")
        state.shape = shape
        against, share = (fields.take(16), fields.share()) if kind == RELATIVE else (None, None)
        offset = fields.offset
        state.trees[kind] = RecordedTree(fields.rest(), offset, against, share)

    def _complete(self, iteration: int, point: int, fields: _Fields) -> RecordedCheckpoint:
        if fields.u32() != self.waiting_records:
            raise self.journal.damaged("a checkpoint that is not whole")
        states, self.waiting = tuple(self.waiting.values()), {}
        self.waiting_records = 0
        return RecordedCheckpoint(iteration, self.points[point], self.attempt, states)


class _Fields:
    """A payload, taken apart from its beginning on. Raises CorruptCaptureError.

    begin: where it begins in the journal.
    """

    def __init__(self, journal: JournalReader, payload: bytes, begin: int) -> None:
        self._journal = journal
        self._payload = payload
        self._begin = begin
        self._at = 0

    @property
    def offset(self) -> int:
        """Where what is left begins in the journal."""
        return self._begin + self._at

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

    def share(self) -> float | None:
        """A share of a bound; a negative one is none."""
        found = self.f64()
        if not found <= 1:
            raise self._journal.damaged("a share of a bound")
        return found if found >= 0 else None

    def compared(self) -> Compared:
        reason, chunks, suspects, share = self.text(), self.u64(), self.u64(), self.share()
        if self._journal.version == _OLDEST:
            return Compared(reason or None, chunks, suspects, share)
        proven, least = self.u64(), self.f64()
        if proven > suspects or not (least < 0 or (proven and 1 <= least < math.inf)):
            raise self._journal.damaged("what summaries prove")
        return Compared(
            reason or None, chunks, suspects, share, proven, None if least < 0 else least
        )

    def cost(self) -> tuple[RecordingCost, int]:
        """What recording took, and how many errors there were."""
        _, data_bytes, nanoseconds, _, errors, held_bytes = (self.u64() for _ in range(END_NUMBERS))
        return RecordingCost(data_bytes, nanoseconds * 1e-9, held_bytes), errors

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
    if dtype[1:] == "bf2":
        return float(np.frombuffer(b"\0\0" + bits[:2], "<f4")[0])
    kind = dtype[1:2]
    size = int(dtype[2:]) // (2 if kind == "c" else 1)
    return float(np.frombuffer(bits[:size], f"<{'f' if kind == 'c' else kind}{size}")[0])


class JournalWriter(Closing):
    """The journal of one process, from its beginning on. Raises WriteFailedError.

    program: its name. made_at: seconds since 1970.
    """

    def __init__(
        self, path: Path, rank: int, ranks: int, *, program: str, made_by: str, made_at: int = 0
    ) -> None:
        self._path = path
        self._count = 0
        self._points = {"": 0}
        self._variables: dict[tuple[str, MadeWith], int] = {}
        self._records = 0  # of the checkpoint
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb")
        head = struct.pack("<8sIIQQ16x", MAGIC, VERSION, 0, rank, ranks)
        self._write(head + _core.xxh3_128(head))
        payload = _text(program) + _text(made_by) + struct.pack("<QI", made_at, 1)
        self._record(ATTEMPT, payload)

    def tree(
        self,
        iteration: int,
        point: str,
        variable: tuple[str, MadeWith],
        shape: Iterable[int],
        trees: Iterable[tuple[int, bytes, bytes | None]],
    ) -> None:
        """Adds trees of a variable to the checkpoint that is being written.

        variable: its name, and what its trees were made with. trees: kind, digests and residues,
        and summaries of the chunks if there are any.
        """
        place = (iteration, self._point(point), self._variable(*variable))
        extents = tuple(shape)
        for kind, body, summaries in trees:
            head = struct.pack(f"<II{len(extents)}Q", kind, len(extents), *extents)
            self._record(TREE, head + body, place)
            self._records += 1
            if summaries is not None:
                self._record(SUMMARIES, struct.pack("<II", kind, 0) + summaries, place)
                self._records += 1

    def complete(self, iteration: int, point: str) -> None:
        """Ends a checkpoint."""
        payload = struct.pack("<I", self._records)
        self._record(COMPLETE, payload, (iteration, self._points[point], 0))
        self._records = 0

    def end(self) -> None:
        self._record(END, bytes(8 * END_NUMBERS))

    def close(self) -> None:
        with writing(self._path):
            self._file.close()

    def _point(self, name: str) -> int:
        if name not in self._points:
            self._points[name] = len(self._points)
            self._record(POINT, _text(name), (0, self._points[name], 0))
        return self._points[name]

    def _variable(self, name: str, made: MadeWith) -> int:
        key = (name, made)
        if key not in self._variables:
            self._variables[key] = len(self._variables)
            payload = _text(name) + _text(made.dtype)
            payload += struct.pack("<ddQ", made.atol, made.rtol, made.ulps)
            numbers = (made.residue_levels, made.arity, made.chunk_bytes, made.equal_nan)
            payload += struct.pack("<IIQI", *numbers) + struct.pack("<I", len(made.fill_values))
            payload += b"".join(_fill_bits(made.dtype, one) for one in made.fill_values)
            self._record(VARIABLE, payload, (0, 0, self._variables[key]))
        return self._variables[key]

    def _record(self, kind: int, payload: bytes, place: tuple[int, int, int] = (0, 0, 0)) -> None:
        head = struct.pack("<IIQqIIQQ", RECORD_MAGIC, kind, len(payload), *place, 0, self._count)
        body = head + payload + bytes(-len(payload) % 8)
        self._write(body + _core.xxh3_128(body))
        self._count += 1

    def _write(self, data: bytes) -> None:
        with writing(self._path):
            self._file.write(data)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw


def _fill_bits(dtype: str, value: float) -> bytes:
    """The bits of one scalar, little-endian, as 8 bytes."""
    if dtype[1:] == "bf2":
        return np.array([value], "<f4").tobytes()[2:].ljust(8, b"\0")
    kind = dtype[1]
    size = int(dtype[2:]) // (2 if kind == "c" else 1)
    stored = np.array([value]).astype(f"<{'f' if kind == 'c' else kind}{size}")
    return stored.tobytes().ljust(8, b"\0")
