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

from ciwrap.errors import (
    CiwrapError,
    CorruptGoldenError,
    GoldenToMendError,
    UnreadableFileError,
)
from ciwrap.files import (
    flush,
    flush_folder,
    read_at_most,
    read_regular,
    remove,
    write_atomically,
)
from ciwrap.golden import paths, shared_lines
from ciwrap.golden.shared_state import MOST_FILE_BYTES, State

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.golden.shared_text import Line, Shared

# A file that is as large as this takes no more goldens; further ones have files of their own.
_FULL_BYTES = 64 << 20
_Stamp = tuple[int, ...] | None


class SharedGoldens:
    """The small goldens of a folder, in the file beside it."""

    def __init__(self, folder: Path) -> None:
        self.path = paths.shared_path(folder)
        self.journal = paths.journal_path(self.path)
        self._state = State(self.path)
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
        self._state = State(self.path)
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
        return None if body is None else self._state.golden_of(body)

    def salvage(self, name: str) -> Shared | None:
        """A golden whose own line is whole, whatever the others are."""
        body = self.state.goldens.get(name)
        try:
            return None if body is None else self._state.golden_of(body)
        except CorruptGoldenError:
            return None

    def _usable(self) -> State:
        fault = self.state.fault
        if fault is not None:
            # Each check has an error of its own, to which it adds where it met it.
            raise type(fault)(fault.message, file=fault.file, remedy=fault.remedy)
        return self._state

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
            self._state = State(self.path)
            self._journal_end = 0
        state = self._state
        try:
            # The journal first: what a fold takes out of it is in the file by then.
            journaled = _bytes_of(self.journal, self._journal_end)
            if not has_grown:
                state.take_file(_bytes_of(self.path, 0))
            self._journal_end += state.take_journal(journaled)
        except CiwrapError as error:
            # What was not read to its end is not to be written anew without the rest.
            state.fault = error
        state.byte_count = sum(stamp[1] for stamp in stamps if stamp is not None)
        self._stamps = stamps

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
        self.state.keep_decoded(line.body, line.golden)

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
            self._journal_end += state.take_journal(data)
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
        GoldenToMendError where somebody has to mend the file; OSError.
        """
        fault = self.state.fault
        if fault is None:
            return
        if isinstance(fault, GoldenToMendError) or not isinstance(fault, CorruptGoldenError):
            raise fault
        self._state.goldens = {
            name: body
            for name, body in self._state.goldens.items()
            if self.salvage(name) is not None
        }
        self._replace()

    def _replace(self) -> None:
        """Writes what the state says; then the journal has nothing more to say."""
        if self._state.goldens:
            text = self._state.whole_text()
            staged = self.path.with_name(f"{self.path.name}.whole{paths.STAGED_SUFFIX}")
            write_atomically(self.path, text, staged=staged)
        else:
            remove(self.path)
            flush_folder(self.path.parent)
        remove(self.journal)
        self.forget()


def _stamp(path: Path) -> _Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - Path.stat takes twice as long
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableFileError(error.strerror or "cannot be read", file=path) from error
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


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
