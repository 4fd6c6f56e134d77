"""The file that the small goldens of one test file share, and its journal.

Writing a golden adds a line to the journal (`test_flow.goldens.next`) beside the shared file;
putting thousands takes time in proportion, and a process that is killed has lost none. `fold` makes
one new file of both, once, and puts it in the place of the old one; then it removes the journal.
Readers read the journal first and then the file, and let the journal count: whatever they meet
between the steps of a fold, they see each golden as it was written last. A last line of the journal
without its end was not written; anything else that is not whole is damage, of all goldens here.

All that writes is called under the lock of the folder.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ciwrap.documents import DocumentError
from ciwrap.errors import (
    CiwrapError,
    CorruptGoldenError,
    UnreadableFileError,
    UnsupportedFormatError,
)
from ciwrap.golden import paths, shared_lines, shared_text
from ciwrap.golden.files import flush, flush_folder, read_at_most, read_regular, remove
from ciwrap.golden.golden_file import refuse_pointer
from ciwrap.structs import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.golden.shared_text import Line, Shared

MOST_FILE_BYTES = 256 << 20
# A file that is as large as this takes no more goldens; further ones have files of their own.
_FULL_BYTES = 64 << 20
# Of each test's golden several questions are asked, one after the other.
_MOST_DECODED = 1024
_REMEDY = (
    "take the file from a commit where it is whole; or run the tests and accept what then waits:"
    " goldens whose own lines are whole stay as they are"
)
_REMEDY_MERGE = "delete the marks of the merge, and of two lines of one golden the wrong one"
_Stamp = tuple[int, int, int] | None


class State(Struct):
    """What file and journal say together.

    goldens: the lines of goldens by their names. tables: what they have in common, by check sums.
    put: names that the journal has put here. moved: those that may lie in a pair of files by now,
    with the root that pair has if they do. fault: the first damage, which makes all unusable.
    is_merge: whether that is a merge that was not resolved, of which somebody has to choose.
    byte_count: of file and journal. decoded: goldens that were looked at last, by their lines.
    """

    goldens: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)
    put: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    fault: CiwrapError | None = None
    is_merge: bool = False
    byte_count: int = 0
    decoded: dict[bytes, Shared] = field(default_factory=dict)


class SharedFile(Struct, frozen=True):
    """The goldens of a file and its journal, by the order of names. put, moved: as in State."""

    goldens: list[Shared]
    put: set[str]
    moved: dict[str, str]


class SharedGoldens:
    """The small goldens of a folder, in the file beside it."""

    def __init__(self, folder: Path) -> None:
        self.path = paths.shared_path(folder)
        self.journal = paths.journal_path(self.path)
        self._state = State()
        self._stamps: tuple[_Stamp, _Stamp] = (None, None)
        self._journal_end = 0

    @property
    def state(self) -> State:
        """What lies there now; read again only as far as it has changed."""
        stamps = (_stamp(self.path), _stamp(self.journal))
        if stamps != self._stamps:
            self._read(stamps)
        return self._state

    def forget(self) -> None:
        """Lets all be read again, whatever the files' stamps say."""
        self._stamps = (None, None)
        self._state = State()
        self._journal_end = 0

    def has_changed(self) -> bool:
        """Whether another look would find something else than the last one."""
        return (_stamp(self.path), _stamp(self.journal)) != self._stamps

    def is_whole(self) -> bool:
        """Whether nothing is left in a journal."""
        return not self.journal.exists()

    def names(self) -> list[str]:
        """Names of all goldens here, sorted. Raises CorruptGoldenError."""
        return sorted(self._usable().goldens)

    def get(self, name: str) -> Shared | None:
        """A golden; None if it is not here. Raises CorruptGoldenError, also if another line is
        damaged; UnsupportedFormatError, UnreadableFileError.
        """
        body = self._usable().goldens.get(name)
        return None if body is None else self._decoded(body)

    def decode_all(self, data: bytes, journal: bytes = b"") -> SharedFile:
        """All goldens of files that are not looked at here, but given. Raises as `get`."""
        self._take_file(data)
        self._take_journal(journal)
        state = self._state
        if state.fault is not None:
            raise state.fault
        goldens = [self._decoded(state.goldens[name]) for name in sorted(state.goldens)]
        return SharedFile(goldens, state.put, state.moved)

    def salvage(self, name: str) -> Shared | None:
        """A golden whose own line is whole, whatever the others are."""
        body = self.state.goldens.get(name)
        try:
            return None if body is None else self._decoded(body)
        except CorruptGoldenError:
            return None

    def _usable(self) -> State:
        fault = self.state.fault
        if fault is not None:
            # Each check has an error of its own, to which it adds where it met it.
            raise type(fault)(fault.message, file=fault.file, remedy=fault.remedy)
        return self._state

    def _decoded(self, body: bytes) -> Shared:
        known = self._state.decoded.get(body)
        if known is not None:
            return known
        try:
            found = shared_text.decode(body, self._state.tables, self.path.name)
            self._keep_decoded(body, found)
            return found
        except DocumentError as error:
            name = shared_lines.golden_name(body)
            fault = _damaged(self.path, f"the line of {name!r} {error.message}")
            self._state.fault = self._state.fault or fault
            raise fault from None

    def _keep_decoded(self, body: bytes, golden: Shared) -> None:
        decoded = self._state.decoded
        if len(decoded) >= _MOST_DECODED:
            decoded.pop(next(iter(decoded)))
        decoded[body] = golden

    # --- reading

    def _read(self, stamps: tuple[_Stamp, _Stamp]) -> None:
        old_file, old_journal = self._stamps
        file, journal = stamps
        has_grown = (
            file == old_file
            and old_journal is not None
            and journal is not None
            and journal[0] == old_journal[0]
            and journal[1] > old_journal[1]
        )
        if not has_grown:
            self._state = State()
            self._journal_end = 0
        state = self._state
        try:
            # The journal first: what a fold takes out of it is in the file by then.
            journaled = _bytes_of(self.journal, self._journal_end)
            if not has_grown:
                self._take_file(_bytes_of(self.path, 0))
            self._take_journal(journaled)
        except CiwrapError as error:
            state.fault = state.fault or error
        state.byte_count = sum(stamp[1] for stamp in stamps if stamp is not None)
        self._stamps = stamps

    def _take_file(self, data: bytes) -> None:
        if not data:
            return
        refuse_pointer(data, self.path)
        lines = data.split(b"\n")
        if not lines[0].startswith(shared_lines.HEAD_START):
            self._state.fault = _damaged(self.path, "line 1 is not the head of a file of goldens")
        for number, line in enumerate(lines[:-1], 1):
            self._take_line(line, number, self.path)
        is_whole = lines[-1] == b"" and len(lines) > 2 and lines[-2].startswith(shared_lines.END)
        if not is_whole and self._state.fault is None:
            self._state.fault = _damaged(self.path, "it is cut off")

    def _take_journal(self, data: bytes) -> None:
        whole = data.rpartition(b"\n")[0]
        for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
            self._take_line(line, number, self.journal)
        self._journal_end += len(whole) + 1 if whole else 0

    def _take_line(self, line: bytes, number: int, path: Path) -> None:
        state = self._state
        try:
            body, name = shared_lines.body_of(line)
            self._take(body, name, is_journal=path == self.journal)
        except DocumentError as error:
            is_merge = shared_lines.is_of_merge(line)
            state.is_merge = state.is_merge or is_merge
            if state.fault is None:
                remedy = _REMEDY_MERGE if is_merge else _REMEDY
                state.fault = _damaged(path, f"line {number} {error.message}", remedy)

    def _take(self, body: bytes, name: str, *, is_journal: bool) -> None:
        state = self._state
        version = shared_lines.version_of(body)
        if version is not None and version > shared_lines.FORMAT:
            raise UnsupportedFormatError(
                f"has format {version}, this ciwrap reads up to {shared_lines.FORMAT}",
                file=self.path,
                remedy="update ciwrap",
            )
        golden = shared_lines.golden_name(body)
        if golden is not None:
            known = state.goldens.get(golden)
            if known not in (None, body) and not is_journal:
                raise DocumentError(f"is a second golden of {golden!r}")
            state.goldens[golden] = body
            if is_journal:
                state.put.add(golden)
                state.moved.pop(golden, None)
        elif shared_lines.table_kind(body) is not None:
            if state.tables.setdefault(name, body) != body:
                raise DocumentError("has the check sum of another line")
        elif (drop := shared_lines.drop_of(body)) is not None:
            state.put.discard(drop.drop)
            if drop.moved_to is not None:
                state.moved[drop.drop] = drop.moved_to
            else:
                state.goldens.pop(drop.drop, None)
                state.moved.pop(drop.drop, None)
        elif version is None and body != shared_lines.END:
            raise DocumentError("is of no kind that this release knows")

    # --- writing

    def has_room(self, tables: Mapping[str, bytes]) -> bool:
        """Whether a golden can be put here that needs these common lines."""
        state = self.state
        return state.byte_count < _FULL_BYTES and all(
            state.tables.get(name, body) == body for name, body in tables.items()
        )

    def put(self, line: Line) -> None:
        """Adds a golden, or puts it in the place of an older one. Raises OSError."""
        known = self.state.tables
        missing = [one for name, one in line.tables.items() if name not in known]
        self._append([*missing, line.body])
        self._keep_decoded(line.body, line.golden)

    def drop(self, name: str, moved_to: str | None = None) -> None:
        """Takes a golden out. moved_to: the root of the pair of files that is about to be written
        for it; the golden here counts until that is there. Raises OSError.
        """
        if name in self.state.goldens:
            self._append([shared_lines.drop_line(shared_lines.Drop(name, moved_to))])

    def _append(self, bodies: list[bytes]) -> None:
        """All of these lines, or none."""
        state = self.state
        data = b"".join(map(shared_lines.line_of, bodies))
        descriptor = os.open(self.journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if os.fstat(descriptor).st_size > self._journal_end:
                os.ftruncate(descriptor, self._journal_end)  # a line that has no end
            try:
                _write_all(descriptor, data, self._journal_end)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, self._journal_end)
                raise
        finally:
            os.close(descriptor)
        if state.fault is None:
            self._take_journal(data)
            state.byte_count += len(data)
            self._stamps = (self._stamps[0], _stamp(self.journal))

    def flush(self) -> None:
        """Waits until the disk has the journal: before a golden is taken from where it lay. Raises
        OSError.
        """
        if self.journal.exists():
            flush(self.journal)
            flush_folder(self.journal.parent)

    def fold(self) -> None:
        """Makes one file of file and journal. The caller has seen to what has moved. Raises
        OSError, and the errors of reading.
        """
        self._usable()
        self._replace()

    def repair(self) -> None:
        """Drops what is damaged; goldens that are whole stay. Raises UnsupportedFormatError, or
        CorruptGoldenError where nothing here is a file of goldens, or of a merge; OSError.
        """
        fault = self.state.fault
        if fault is None:
            return
        is_ours = isinstance(fault, CorruptGoldenError) and self._is_ours()
        if self._state.is_merge or not is_ours:
            raise fault
        self._state.goldens = {
            name: body
            for name, body in self._state.goldens.items()
            if self.salvage(name) is not None
        }
        self._replace()

    def _is_ours(self) -> bool:
        return not self.path.exists() or bool(self._state.tables)

    def _replace(self) -> None:
        """Writes what the state says; then the journal has nothing more to say."""
        goldens, tables = self._state.goldens, self._state.tables
        if goldens:
            used = self._used_tables()
            ordered = [
                tables[name]
                for kind in shared_lines.TABLES
                for name in sorted(used)
                if shared_lines.table_kind(tables[name]) == kind
            ]
            ordered += [goldens[name] for name in sorted(goldens)]
            staged = self.path.with_name(f"{self.path.name}.whole{paths.STAGED_SUFFIX}")
            try:
                with staged.open("wb") as stream:
                    stream.write(shared_lines.text_of(ordered))
                    stream.flush()
                    os.fsync(stream.fileno())
                staged.replace(self.path)
            except BaseException:
                with contextlib.suppress(OSError):
                    remove(staged)
                raise
        else:
            remove(self.path)
        flush_folder(self.path.parent)
        remove(self.journal)
        self.forget()

    def _used_tables(self) -> set[str]:
        """The sums of the common lines that goldens need. Raises CorruptGoldenError."""
        tables = self._state.tables
        used: set[str] = set()
        for name, body in self._state.goldens.items():
            try:
                needed = shared_text.tables_of(body, tables)
                if not needed <= tables.keys():
                    raise DocumentError("names a line that is not there")
            except DocumentError as error:
                raise _damaged(self.path, f"the line of {name!r} {error.message}") from None
            used |= needed
        return used


def read_shared(data: bytes, path: Path) -> list[Shared]:
    """All goldens of a file's bytes, in the order of their names; path: for messages. Raises
    CorruptGoldenError, UnsupportedFormatError.
    """
    return read_with_journal(data, b"", path).goldens


def read_with_journal(data: bytes, journal: bytes, path: Path) -> SharedFile:
    """As `read_shared`, with what a journal beside the file says."""
    shared = SharedGoldens(path.with_name(path.name.removesuffix(paths.SHARED_SUFFIX)))
    return shared.decode_all(data, journal)


def _damaged(path: Path, what: str, remedy: str = _REMEDY) -> CorruptGoldenError:
    return CorruptGoldenError(
        f"{what}, so none of the goldens in it can be used", file=path, remedy=remedy
    )


def _stamp(path: Path) -> _Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path.stat takes twice as long
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableFileError(error.strerror or "cannot be read", file=path) from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def _bytes_of(path: Path, start: int) -> bytes:
    """What a file holds from a byte on; b"" without the file."""
    try:
        if not start:
            return read_regular(path, MOST_FILE_BYTES)
        with path.open("rb") as stream:
            stream.seek(start)
            return read_at_most(stream, MOST_FILE_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UnreadableFileError(error.strerror or "cannot be read", file=path) from error


def _write_all(descriptor: int, data: bytes, start: int) -> None:
    while data:
        count = os.pwrite(descriptor, data, start)
        data, start = data[count:], start + count
