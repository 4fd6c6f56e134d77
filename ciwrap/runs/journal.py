"""What units came to, kept in a file as they are done, so that a comparison can be resumed.

The file is JSON, one record a line, each with a checksum; no code is ever read from it. A line that
a crash has torn is dropped, and its unit compared again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ciwrap.base.documents import DocumentError, load_json, to_plain, to_record
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    LockBusyError,
    NotComparableError,
    UsageError,
    WriteFailedError,
    all_errors,
)
from ciwrap.base.late import json
from ciwrap.base.processes import Closing
from ciwrap.check.two_sides import Findings, WrongAnswerError
from ciwrap.formats.source_files import CheckpointKey
from ciwrap.runs.units import Part, Unit, stamp_of_list

_Record = TypeVar("_Record", bound=msgspec.Struct)
# A unit is some 4,000 files at most, with any number of variables.
_MOST_VALUES = 1 << 30


class ErrorRecord(msgspec.Struct, frozen=True):
    """An error, by the slug of its class."""

    slug: str
    message: str
    file: str | None = None
    variable: str | None = None
    remedy: str | None = None
    line: int | None = None
    column: int | None = None
    key: str | None = None
    suggestion: str | None = None

    @classmethod
    def of(cls, error: CiwrapError) -> ErrorRecord:
        more = {}
        if isinstance(error, ConfigError):
            more = {name: getattr(error, name) for name in ("line", "column", "key", "suggestion")}
        return cls(error.slug, error.message, error.file, error.variable, error.remedy, **more)

    def error(self) -> CiwrapError:
        kind = all_errors().get(self.slug, NotComparableError)
        if issubclass(kind, ConfigError):
            return kind(
                self.message,
                file=self.file,
                line=self.line,
                column=self.column,
                key=self.key,
                suggestion=self.suggestion,
                remedy=self.remedy,
            )
        return kind(self.message, file=self.file, variable=self.variable, remedy=self.remedy)


class Answer(msgspec.Struct, frozen=True):
    """What a worker says of a unit: an outcome, or the error that ends the command.

    asked: what it was asked, in its own words: answers go ways that are not ours.
    """

    asked: str
    outcome: Findings | None = None
    error: CiwrapError | None = None


def to_text(record: msgspec.Struct) -> bytes:
    """A record as one line of JSON, without the line's end."""
    plain = to_plain(record, {}, {CiwrapError: ErrorRecord.of})
    return json.dumps(plain, separators=(",", ":")).encode()


def from_text(text: bytes, kind: type[_Record]) -> _Record:
    """The record that `to_text` wrote. Raises DocumentError."""
    plain = load_json(text, most_values=_MOST_VALUES)
    return to_record(plain, kind, {CiwrapError: lambda one: to_record(one, ErrorRecord).error()})


def answer_of(text: object, asked: str) -> Findings:
    """The outcome in a worker's answer. Raises the error that it holds instead; WrongAnswerError
    for what is no answer, or one to another question.
    """
    if not isinstance(text, bytes):
        raise WrongAnswerError(f"the worker's answer is of the type {type(text).__name__}")
    try:
        answer = from_text(text, Answer)
    except DocumentError as error:
        raise WrongAnswerError(f"the worker's answer cannot be read: {error}") from None
    if answer.asked != asked:
        raise WrongAnswerError("the executor gave the answer to another question")
    if answer.error is not None:
        raise answer.error
    if answer.outcome is None:
        raise WrongAnswerError("the worker's answer says nothing")
    return answer.outcome


_SYNC_EVERY_SECONDS = 1.0
_LINE = re.compile(rb'\{"crc":(\d{1,10}),"is":(.*)\}\n', re.DOTALL)


class JournalRules(msgspec.Struct, frozen=True):
    """What all units were compared by; a journal goes on only where nothing of it has changed.

    rules: digest of bounds, options and configuration. folder: where the command was started.
    """

    ciwrap_version: str
    numpy_version: str
    folder: str
    golden: str
    new: str
    rules: str


class PlannedUnit(msgspec.Struct, frozen=True):
    """A unit before it is compared. stamps: of its files, one for each checkpoint."""

    keys: tuple[CheckpointKey, ...]
    byte_count: int
    stamps: tuple[str, ...]
    part: Part | None = None


class JournalHead(msgspec.Struct, frozen=True):
    """The first line."""

    kind: Literal["ciwrap-journal"]
    format: Literal[1]
    made_with: JournalRules
    units: tuple[PlannedUnit, ...]


class JournalEntry(msgspec.Struct, frozen=True):
    """Every other line: a unit that was compared. listed: what its list of differences looked like
    then, if it has one.
    """

    keys: tuple[CheckpointKey, ...]
    stamps: tuple[str, ...]
    outcome: Findings
    part: Part | None = None
    listed: tuple[int, ...] | None = None


class Journal(Closing):
    """A journal that is being written. Raises WriteFailedError, and LockBusyError while another
    process writes it.

    former: batches of the plan it began with. Units have to have stamps. list_path: where every
    unit lists its differences, which the journal does not hold.
    """

    def __init__(
        self,
        path: Path,
        made_with: JournalRules,
        *,
        resume: bool,
        list_path: Path | None = None,
    ) -> None:
        self._path = path
        self._list_path = list_path
        self._made_with = made_with
        self._entries: dict[Any, JournalEntry] = {}
        self.former: list[tuple[CheckpointKey, ...]] = []
        self._synced = time.monotonic()
        self._is_new = True
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o666)
            self._stream = os.fdopen(descriptor, "r+b")
        except OSError as error:
            raise self._failed(error) from error
        try:
            self._refuse_device()
            self._lock()
            self._begin(resume=resume)
        except OSError as error:
            self._stream.close()
            if isinstance(error, (LockBusyError, WriteFailedError)):
                raise
            raise self._failed(error) from error
        except BaseException:
            self._stream.close()
            raise

    def _refuse_device(self) -> None:
        """Raises UsageError for what is no file: of a device there may be no end."""
        if not stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode):
            raise self._refused("is not a regular file")

    def _lock(self) -> None:
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # a file system without locks
            raise LockBusyError(
                "another process is writing this journal",
                file=self._path,
                remedy="let it finish, or give another name",
            ) from None

    def _begin(self, *, resume: bool) -> None:
        lines = _lines(self._stream)
        position, text = next(lines, (0, b""))
        if not text:
            if os.fstat(self._stream.fileno()).st_size and not self._is_torn_head():
                raise self._refused("is not a journal of ciwrap, or a damaged one")
            return
        try:
            head = from_text(text, JournalHead)
        except DocumentError as error:
            raise self._refused(f"is not a journal that this ciwrap reads: {error}") from None
        if not resume:
            raise UsageError(
                "already exists", file=self._path, remedy="go on with --resume, or delete it"
            )
        self._refuse_other(head.made_with)
        self._is_new = False
        self.former = list(dict.fromkeys(unit.keys for unit in head.units))
        for position, text in lines:  # noqa: B007 - the last one is where the file goes on
            entry = _entry(text)
            if entry is not None:
                self._entries[entry.keys, entry.part, entry.stamps] = entry
        # What a crash has torn is cut off.
        self._stream.seek(position)
        self._stream.truncate()

    def _is_torn_head(self) -> bool:
        """Whether the file holds the beginning of a first line, and no more."""
        self._stream.seek(0)
        start = self._stream.readline(64)
        return start.startswith(b'{"crc":') and not self._stream.read().count(b"\n")

    def _refuse_other(self, former: JournalRules) -> None:
        for name in JournalRules.__struct_fields__:
            then, now = getattr(former, name), getattr(self._made_with, name)
            if then != now:
                what = name.replace("_", " ")
                told = "other rules or options" if name == "rules" else f"{what} {then}, not {now}"
                raise self._refused(f"was made with {told}")

    def _refused(self, text: str) -> UsageError:
        return UsageError(text, file=self._path, remedy="give another name with --journal")

    def begin(self, units: Iterable[Unit]) -> None:
        """Says what will be compared, in a journal that is new."""
        if self._is_new:
            self._is_new = False
            self._stream.seek(0)
            self._stream.truncate()
            planned = tuple(
                PlannedUnit(unit.keys, unit.byte_count, unit.stamps, unit.part) for unit in units
            )
            self._write(JournalHead("ciwrap-journal", 1, self._made_with, planned))
            self._sync()

    def known(self, unit: Unit) -> Findings | None:
        """What the unit came to, if it was compared, its files are still the same, and so is its
        list of differences, which another comparison, or another unit of that number, may have
        replaced.
        """
        entry = self._entries.get((unit.keys, unit.part, unit.stamps))
        if entry is None or "" in unit.stamps:
            return None
        is_listed = self._list_path is None or entry.listed is not None
        if not is_listed or entry.listed != self._listed(unit):
            return None
        return entry.outcome

    def _listed(self, unit: Unit) -> tuple[int, ...] | None:
        return None if self._list_path is None else stamp_of_list(self._list_path, unit)

    def add(self, unit: Unit, outcome: Findings) -> None:
        self._write(JournalEntry(unit.keys, unit.stamps, outcome, unit.part, self._listed(unit)))
        if time.monotonic() - self._synced >= _SYNC_EVERY_SECONDS:
            self._sync()

    def _write(self, record: msgspec.Struct) -> None:
        text = to_text(record)
        try:
            self._stream.write(b'{"crc":%d,"is":%b}\n' % (zlib.crc32(text), text))
            self._stream.flush()
        except OSError as error:
            raise self._failed(error) from error

    def _sync(self) -> None:
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise self._failed(error) from error
        self._synced = time.monotonic()

    def _failed(self, error: OSError) -> WriteFailedError:
        text = f"the journal cannot be written: {error.strerror or error}"
        return WriteFailedError(text, file=self._path, remedy="give a writable place")

    def close(self) -> None:
        if not self._stream.closed:
            try:
                self._sync()
            finally:
                self._stream.close()


def _lines(stream: Any) -> Iterator[tuple[int, bytes]]:
    """(where the next line begins, record) of each whole line; those that are damaged are b''."""
    stream.seek(0)
    for line in stream:
        if not line.endswith(b"\n"):
            return
        found = _LINE.fullmatch(line)
        is_whole = found is not None and zlib.crc32(found[2]) == int(found[1])
        yield stream.tell(), found[2] if found is not None and is_whole else b""


def _entry(text: bytes) -> JournalEntry | None:
    """Raises nothing: what cannot be read is compared again."""
    try:
        return from_text(text, JournalEntry)
    except DocumentError:
        return None
